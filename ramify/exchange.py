"""Many trees at once, in one kernel, and the leaves that are valued outside of it.

A call of the kernel first gives the simulations that wait their answers, and backs them up. Then
every tree begins new ones until it has as many leaves waiting as it may or its budget is used up.
What is asked is written to arrays that Python reads: a state that waits already, or whose answer is
kept, is not asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify._compile import UNBOUND, Kernel
from ramify.backup import LEAF
from ramify.errors import BrokenGame
from ramify.evaluators import (
    BAD_VALUE,
    DONE,
    IS_OUTSIDE,
    NUM_PLAYERS,
    SETTLED,
    WAITING,
    Outside,
    observe,
)  # fmt: skip
from ramify.game import Game, StateViews
from ramify.simulation import conclude, key_hash, list_actions, place_edges, simulate
from ramify.tree import HAS_PRIORS, NONE, ZERO_SUM, node_of

# Bound when a search is composed.
OBSERVES = UNBOUND  # the kernel shows observations, and values are those of who is to play
HAS_ROOT_NOISE = UNBOUND  # each tree has noise of its own

WAYS = 4  # places where an answer may be kept; the oldest of them makes room


def slot_dtype(num_players: int) -> np.dtype:
    """A simulation that waits for its leaf's answer."""
    return np.dtype(
        [
            ("row", np.int64),  # of the answer
            ("depth", np.int64),
            ("player", np.int64),  # who is to play in the leaf
            ("expands", np.int64),  # whether the leaf gets edges
            ("returns", np.float64, (num_players,)),  # what chance paid before the answer counts
            ("discount", np.float64),  # how much the answer counts
        ]
    )


CONTROL = np.dtype(
    [
        ("tree", np.int64),  # the one that is worked on, for messages
        ("num_asked", np.int64),  # rows that Python is asked about
        ("num_answers", np.int64),  # rows that Python has answered
        ("stamp", np.int64),  # grows with every answer that is kept
        ("num_kept", np.int64),  # answers found among those kept
        ("holds", np.int64),  # whether no simulation may begin
    ]
)
KEPT = np.dtype([("key", np.uint64, (2,)), ("stamp", np.int64)])
DESK = np.dtype([("waiting", np.int64), ("settled", np.int64)])


# --- kernels -------------------------------------------------------------------------------------


def exchange(
    heads: np.ndarray, edges: np.ndarray, roots: Any, root_squares: np.ndarray,
    tables: np.ndarray, noises: np.ndarray, schedules: np.ndarray, rngs: np.ndarray,
    desks: np.ndarray, states: Any, works: np.ndarray, key_bytes: np.ndarray,
    key_words: np.ndarray, key_ranges: np.ndarray, lock: np.ndarray, paths: np.ndarray,
    slots: np.ndarray, leaves: Any, controls: np.ndarray, asked: Any, observations: np.ndarray,
    keys: np.ndarray, places: np.ndarray, logits: np.ndarray, values: np.ndarray,
    kept: np.ndarray, kept_logits: np.ndarray, kept_values: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Hand out answers, and search on: WAITING for more, DONE, GROW, or what is wrong."""
    control, work = controls[0], works[0]
    most = slots.shape[0] // heads.shape[0]
    if IS_OUTSIDE and control.num_answers > 0:
        for row in range(control.num_answers):
            keep(control, kept, kept_logits, kept_values, keys, logits, values, np.int64(row))
        for tree in range(heads.shape[0]):
            control.tree = tree
            while desks[tree].waiting > 0:
                desks[tree].waiting -= 1
                slot = tree * most + desks[tree].waiting
                states[1] = leaves[slot]
                status = take_answer(
                    heads[tree][0], edges[tree], paths[slot], work, states, root_squares[tree],
                    rngs[tree], slots[slot], logits, values, np.int64(slots[slot].row), data,
                )  # fmt: skip
                if status != DONE:
                    return status
        control.num_answers = 0
        control.num_asked = 0
        for place in range(places.shape[0]):
            places[place] = NONE
    for tree in range(heads.shape[0]):
        control.tree = tree
        if heads[tree][0].remaining <= 0 or control.holds:
            continue
        states[0] = roots[tree]
        if HAS_ROOT_NOISE:
            for i in range(noises.shape[1]):
                work.noise[i] = noises[tree, i]
        while desks[tree].waiting < most:
            slot = tree * most + desks[tree].waiting
            status = simulate(
                heads[tree], edges[tree], states, paths[slot], works, root_squares[tree],
                schedules[tree], tables[tree], key_bytes, key_words, key_ranges, rngs[tree], lock,
                data,
            )  # fmt: skip
            if status == SETTLED:
                desks[tree].settled = 1
                heads[tree][0].remaining = 0
                break
            if IS_OUTSIDE and status == WAITING:
                low, high = key_hash(key_bytes, key_words, np.int64(1), key_ranges)
                write_slot(slots[slot], work, states[1])
                row = find_kept(kept, low, high)
                if row != NONE:
                    control.num_kept += 1
                    status = take_answer(
                        heads[tree][0], edges[tree], paths[slot], work, states,
                        root_squares[tree], rngs[tree], slots[slot], kept_logits, kept_values, row,
                        data,
                    )  # fmt: skip
                    if status != DONE:
                        return status
                    continue
                leaves[slot] = states[1]
                slots[slot].row = ask(
                    control, states[1], asked, observations, keys, places, low, high, data
                )
                desks[tree].waiting += 1
                continue
            if status != DONE:
                return status
            break
    return WAITING if IS_OUTSIDE and control.num_asked > 0 else DONE


def write_slot(slot: Any, work: Any, state: Any) -> None:
    """Let a simulation wait."""
    slot.depth = work.depth
    slot.player = state.to_play
    slot.expands = work.count
    slot.discount = work.reward[0]
    for player in range(NUM_PLAYERS):
        slot.returns[player] = work.returns[player]


def ask(
    control: Any, state: Any, asked: Any, observations: np.ndarray, keys: np.ndarray,
    places: np.ndarray, low: int, high: int, data: Any,
) -> int:  # fmt: skip
    """The row of the answer for a state, which is asked about unless it is already."""
    mask = places.shape[0] - 1
    place = np.int64(low & np.uint64(0x7FFFFFFF)) & mask
    while places[place] != NONE:
        row = np.int64(places[place])
        if keys[row, 0] == low and keys[row, 1] == high:
            return row
        place = (place + 1) & mask
    row = np.int64(control.num_asked)
    control.num_asked += 1
    places[place] = row
    keys[row, 0], keys[row, 1] = low, high
    if OBSERVES:
        observe(state, np.int64(state.to_play), observations[row], data)
    else:
        asked[row] = state
    return row


def take_answer(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any,
    root_squares: np.ndarray, rng: np.ndarray, slot: Any, logits: np.ndarray, values: np.ndarray,
    row: int, data: Any,
) -> int:  # fmt: skip
    """Go on with a simulation that waited, in the leaf `states[1]`."""
    work.depth, work.ending, work.leaf_player = slot.depth, LEAF, slot.player
    work.timed = 0  # what was measured since belongs to others
    status = read_values(slot, values, row, work)
    depth = np.int64(slot.depth)
    node = node_of(edges, np.int64(path[depth - 1].edge)) if depth > 0 else np.int64(0)
    if HAS_PRIORS and status == DONE and slot.expands and edges[node].first == NONE:
        status = list_actions(states[1], work, data)
        if status == DONE:
            for i in range(work.count):
                action = work.actions[i]
                if 0 <= action < logits.shape[1]:  # others are told by `place_edges`
                    work.logits[action] = logits[row, action]
            status = place_edges(tree, edges, node, work)
    return conclude(tree, edges, path, work, states, root_squares, rng, data, status)


def read_values(slot: Any, values: np.ndarray, row: int, work: Any) -> int:
    """The returns of a simulation from the values of its leaf, in the order of the players."""
    total = 0.0
    for j in range(NUM_PLAYERS):
        player = (slot.player + j) % NUM_PLAYERS if OBSERVES else j
        value = float(values[row, j])
        total += value
        work.values[player] = value
    if not math.isfinite(total):
        return BAD_VALUE
    if ZERO_SUM:
        # Both sides were estimated: what is won is what the other one loses.
        work.values[0] = 0.5 * (work.values[0] - work.values[1])
        work.values[1] = -work.values[0]
    for player in range(NUM_PLAYERS):
        work.returns[player] = slot.returns[player] + slot.discount * work.values[player]
    return DONE


# --- kernels: answers that are kept --------------------------------------------------------------


def find_kept(kept: np.ndarray, low: int, high: int) -> int:
    """The row of an answer that is kept; NONE where there is none."""
    if kept.shape[0] == 0:
        return NONE
    first = np.int64(low & np.uint64(0x7FFFFFFF)) & (kept.shape[0] - WAYS)
    for row in range(first, first + WAYS):
        if kept[row].stamp > 0 and kept[row].key[0] == low and kept[row].key[1] == high:
            return np.int64(row)
    return NONE


def keep(
    control: Any, kept: np.ndarray, kept_logits: np.ndarray, kept_values: np.ndarray,
    keys: np.ndarray, logits: np.ndarray, values: np.ndarray, row: int,
) -> None:  # fmt: skip
    """Keep an answer in place of the oldest of those that could stand there."""
    low, high = keys[row, 0], keys[row, 1]
    if kept.shape[0] == 0 or find_kept(kept, low, high) != NONE:
        return
    first = np.int64(low & np.uint64(0x7FFFFFFF)) & (kept.shape[0] - WAYS)
    oldest = first
    for place in range(first + 1, first + WAYS):
        if kept[place].stamp < kept[oldest].stamp:
            oldest = np.int64(place)
    control.stamp += 1
    kept[oldest].stamp = control.stamp
    kept[oldest].key[0], kept[oldest].key[1] = low, high
    for i in range(kept_logits.shape[1]):
        kept_logits[oldest, i] = logits[row, i]
    for i in range(kept_values.shape[1]):
        kept_values[oldest, i] = values[row, i]


# --- arrays --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trees:
    """The arrays of trees that are searched together, the tree's number first."""

    heads: np.ndarray  # [trees, 1]
    edges: np.ndarray  # [trees, capacity]
    roots: np.ndarray  # [trees], states
    root_squares: np.ndarray  # [trees, edges of the root, values]
    tables: np.ndarray  # [trees, places]
    noises: np.ndarray  # [trees, actions]
    schedules: np.ndarray  # [trees, simulations]
    rngs: np.ndarray  # [trees, 1]


class Desk:
    """Where simulations wait for answers, and what Python is asked."""

    def __init__(
        self, game: Game, outside: Outside | None, gives_priors: bool, path: np.dtype,
        num_trees: int, leaves: int, longest: int,
    ) -> None:  # fmt: skip
        rows = num_trees * leaves
        self.game, self.outside, self.gives_priors = game, outside, gives_priors
        self.generation = 0 if outside is None else outside.generation
        self.desks = np.zeros(num_trees, DESK)
        self.paths = np.zeros((rows, longest), path)
        self.slots = np.zeros(rows, slot_dtype(game.num_players))
        self.leaves = np.zeros(rows, game.dtype)
        self.control = np.zeros(1, CONTROL)
        observes = outside is not None and outside.observes
        shape = game.observation_shape if observes else (1,)
        assert shape is not None
        self.observations = np.zeros((rows if observes else 1, *shape), np.float32)
        self.asked = np.zeros(1 if observes else rows, game.dtype)
        self.keys = np.zeros((rows, 2), np.uint64)
        self.places = np.full(1 << (2 * rows).bit_length(), NONE, np.int64)
        self.width = game.num_actions if gives_priors else 1
        self.logits = np.zeros((1, self.width), np.float32)
        self.values = np.zeros((1, game.num_players), np.float32)
        self._make_kept(0 if outside is None else outside.cache_bytes)

    def _make_kept(self, num_bytes: int) -> None:
        """Room for answers: a power of two of them."""
        each = 4 * (self.width + self.game.num_players) + KEPT.itemsize
        rows = 1 << max(0, int(num_bytes // each).bit_length() - 1) if num_bytes >= each else 0
        rows = rows if rows >= WAYS else 0
        self.kept = np.zeros(rows, KEPT)
        self.kept_logits = np.zeros((rows, self.width), np.float32)
        self.kept_values = np.zeros((rows, self.game.num_players), np.float32)

    def arguments(self, trees: Trees, work: Any) -> tuple[Any, ...]:
        """What the kernel takes."""
        return (
            trees.heads, trees.edges, trees.roots, trees.root_squares, trees.tables, trees.noises,
            trees.schedules, trees.rngs, self.desks, work.states, work.work, *work.key_views,
            work.key_ranges, work.lock, self.paths, self.slots, self.leaves, self.control,
            self.asked, self.observations, self.keys, self.places, self.logits, self.values,
            self.kept, self.kept_logits, self.kept_values, work.data,
        )  # fmt: skip

    def call(self, kernel: Kernel, trees: Trees, work: Any) -> int:
        """One call of the kernel; its status."""
        if self.outside is not None and self.outside.generation != self.generation:
            self.generation = self.outside.generation
            self.kept["stamp"] = 0
        arguments: Sequence[Any] = self.arguments(trees, work)
        if kernel.interpreted:
            arguments = [_as_records(argument, self.game.dtype) for argument in arguments]
        return int(kernel.call(*arguments))

    def answer(self) -> int:
        """Value what is asked; how many rows there were."""
        outside, count = self.outside, int(self.control["num_asked"][0])
        if outside is None or count == 0:
            return 0
        rows = self.observations[:count] if outside.observes else self.asked[:count]
        logits, values = outside.value(rows)
        if self.gives_priors:
            self.logits = self._checked(logits, count, self.width, "logits", "num_actions")
        self.values = self._checked(values, count, self.game.num_players, "values", "num_players")
        self.control["num_answers"] = count
        return count

    @property
    def num_waiting(self) -> int:
        """Simulations that wait for answers."""
        return int(self.desks["waiting"].sum())

    @property
    def is_answered(self) -> bool:
        """Whether there are answers that nobody has taken yet."""
        return bool(self.control["num_answers"][0])

    def forget_waiting(self) -> None:
        """Nothing waits any more; for trees that are given up or mended by other means."""
        self.desks["waiting"] = 0
        self.desks["settled"] = 0
        self.control["num_asked"] = self.control["num_answers"] = self.control["holds"] = 0
        self.places[:] = NONE

    def _checked(self, given: Any, count: int, width: int, what: str, name: str) -> np.ndarray:
        array = np.ascontiguousarray(given, np.float32)
        if array.shape != (count, width):
            raise BrokenGame(
                f"{what} of a batch of {count} must be [{count}, {width}], one row per leaf and "
                f"{name} of {self.game.name}; got {list(array.shape)}"
            )
        return array


def _as_records(argument: Any, state: np.dtype) -> Any:
    """An array as a kernel sees it that is not compiled."""
    if not isinstance(argument, np.ndarray) or not argument.dtype.names:
        return argument
    return StateViews(argument) if argument.dtype == state else argument.view(np.recarray)
