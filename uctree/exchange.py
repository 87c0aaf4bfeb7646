"""Many trees at once, in one kernel, and the leaves that are valued outside of it.

In a call of the kernel every tree first gets the answers that its simulations wait for, and backs
them up. Then it begins new ones until it has as many leaves waiting as it may or its budget is used
up. What is asked is written to arrays that Python reads: a state that waits already, or whose
answer is kept, is not asked again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import gumbel
from uctree._compile import UNBOUND, Kernel, apart
from uctree._machine import Frame
from uctree.backup import LEAF
from uctree.errors import BrokenGame
from uctree.evaluators import (
    BAD_VALUE,
    DONE,
    IS_OUTSIDE,
    NUM_PLAYERS,
    SETTLED,
    WAITING,
    Outside,
    observe,
)  # fmt: skip
from uctree.game import Game, StateViews, seeded
from uctree.scoring import HAS_NOISE, LISTS
from uctree.simulation import conclude, key_hash, list_actions, place_edges, simulate
from uctree.tree import (
    HAS_PRIORS,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    ZERO_SUM,
    node_of,
    write_edge,
)  # fmt: skip

# Bound when a search is composed.
OBSERVES = UNBOUND  # the kernel shows observations, and values are those of who is to play
array_at = UNBOUND  # reads an array of a frame

# What a tree does: nothing that the kernel sees to; it is to begin anew; its root is valued; that
# has been done, and Python has to go on; it uses its budget; the budget is used up.
IDLE, PLANTED, FRESH, VALUED, GROWING, ENDED = 0, 1, 2, 3, 4, 5

WAYS = 4  # places where an answer may be kept; the oldest of them makes room


def slot_dtype(num_players: int) -> np.dtype:
    """A simulation that waits for its leaf's answer."""
    return np.dtype(
        [
            ("row", np.int64),  # of the answer
            ("is_kept", np.int64),  # whether it is among the answers that are kept
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
        ("slot", np.int64),  # and its path
        ("num_asked", np.int64),  # rows that Python is asked about
        ("num_answers", np.int64),  # rows that Python has answered
        ("num_stopped", np.int64),  # trees that were VALUED or ENDED
        ("stamp", np.int64),  # grows with every answer that is kept
        ("num_kept", np.int64),  # answers found among those kept
        ("holds", np.int64),  # whether no simulation may begin
    ]
)
KEPT = np.dtype([("key", np.uint64, (2,)), ("stamp", np.int64)])
DESK = np.dtype(
    [
        ("waiting", np.int64),  # simulations that wait for answers
        ("ready", np.int64),  # how many of them have theirs
        ("settled", np.int64),
        ("phase", np.int64),
        ("budget", np.int64),
        ("seed", np.uint64),
        ("has_noise", np.int64),  # whether the root gets the noise that the options ask for
        ("num_listed", np.int64),  # edges that the root considers
        ("schedules", np.int64),  # where those of the budget begin
        ("schedule", np.int64),  # the one for as many edges as the root has
    ]
)


# --- kernels -------------------------------------------------------------------------------------


def exchange(frame: Any, logits: np.ndarray, values: np.ndarray, data: Any) -> int:
    """Hand out answers, and search on: WAITING for more, DONE, GROW, or what is wrong.

    Args:
        frame: the arrays of `Desk.arrays`, in their order.
    """
    heads = array_at(frame, 0)
    blank = array_at(frame, 1)
    edges = array_at(frame, 2)
    untried = array_at(frame, 3)
    roots = array_at(frame, 4)
    root_squares = array_at(frame, 5)
    tables = array_at(frame, 6)
    noises = array_at(frame, 7)
    given_noise = array_at(frame, 8)
    lists = array_at(frame, 9)
    draws = array_at(frame, 10)
    schedules = array_at(frame, 11)
    rngs = array_at(frame, 12)
    desks = array_at(frame, 13)
    states = array_at(frame, 14)
    works = array_at(frame, 15)
    key_bytes = array_at(frame, 16)
    key_words = array_at(frame, 17)
    key_ranges = array_at(frame, 18)
    lock = array_at(frame, 19)
    paths = array_at(frame, 20)
    slots = array_at(frame, 21)
    leaves = array_at(frame, 22)
    controls = array_at(frame, 23)
    asked = array_at(frame, 24)
    observations = array_at(frame, 25)
    keys = array_at(frame, 26)
    places = array_at(frame, 27)
    kept = array_at(frame, 28)
    kept_logits = array_at(frame, 29)
    kept_values = array_at(frame, 30)
    control, work = controls[0], works[0]
    most = slots.shape[0] // heads.shape[0]
    if IS_OUTSIDE and control.num_answers > 0:
        for row in range(control.num_answers):
            keep(control, kept, kept_logits, kept_values, keys, logits, values, np.int64(row))
        forget_asked(control, desks, keys, places)
    for tree in range(heads.shape[0]):
        control.tree = tree
        head, desk, rng = heads[tree][0], desks[tree], rngs[tree]
        if desk.phase == PLANTED:
            plant(
                heads[tree], blank, edges[tree], roots[tree], root_squares[tree], tables[tree],
                rng, desk,
            )  # fmt: skip
        is_entered = False
        while True:
            if IS_OUTSIDE and desk.ready > 0:
                desk.ready -= 1
                desk.waiting -= 1
                slot = tree * most + desk.waiting
                control.slot = slot
                states[1] = leaves[slot]
                is_kept = slots[slot].is_kept
                status = take_answer(
                    head, edges[tree], paths[slot], work, states, root_squares[tree], rng,
                    slots[slot], kept_logits if is_kept else logits,
                    kept_values if is_kept else values, untried[tree], data,
                )  # fmt: skip
                if status != DONE:
                    return status
                continue
            if head.remaining <= 0 and desk.waiting == 0:
                if desk.phase == FRESH and not HAS_NOISE:
                    if LISTS:
                        halve_root(
                            edges[tree], work, desk, noises[tree], given_noise, lists[tree],
                            draws[tree], rng,
                        )  # fmt: skip
                    begin_budget(head, desk)
                    is_entered = False
                    continue
                if desk.phase == FRESH or desk.phase == GROWING:
                    desk.phase = VALUED if desk.phase == FRESH else ENDED
                    control.num_stopped += 1
                break
            if head.remaining <= 0 or control.holds or desk.waiting >= most:
                break
            if not is_entered:
                is_entered = True
                states[0] = roots[tree]
                read_noise(work, desk, noises[tree], lists[tree], draws[tree])
            slot = tree * most + desk.waiting
            control.slot = slot
            status = simulate(
                heads[tree], edges[tree], states, paths[slot], works, root_squares[tree],
                schedules[desk.schedule], tables[tree], key_bytes, key_words, key_ranges, rng, lock,
                untried[tree], data,
            )  # fmt: skip
            if status == SETTLED:
                desk.settled = 1
                head.remaining = 0
            elif IS_OUTSIDE and status == WAITING:
                low, high = key_hash(key_bytes, key_words, np.int64(1), key_ranges)
                write_slot(slots[slot], work, states[1])
                leaves[slot] = states[1]
                row = find_kept(kept, low, high)
                slots[slot].is_kept = row != NONE
                if row != NONE:
                    control.num_kept += 1
                    desk.ready = 1
                else:
                    row = ask(
                        control, states[1], asked, observations, keys, places, low, high, data
                    )
                slots[slot].row = row
                desk.waiting += 1
            elif status != DONE:
                return status
    return WAITING if IS_OUTSIDE and control.num_asked > 0 else DONE


def forget_asked(control: Any, desks: np.ndarray, keys: np.ndarray, places: np.ndarray) -> None:
    """All that wait have their answers; what comes is asked anew."""
    for tree in range(desks.shape[0]):
        desks[tree].ready = desks[tree].waiting
    mask = places.shape[0] - 1
    for row in range(control.num_asked):
        place = np.int64(keys[row, 0] & np.uint64(0x7FFFFFFF)) & mask
        while places[place] != NONE:  # and what stands behind, which is forgotten as well
            places[place] = NONE
            place = (place + 1) & mask
    control.num_answers = 0
    control.num_asked = 0


# --- kernels: from one root to the next ----------------------------------------------------------


@apart
def plant(
    heads: np.ndarray, blank: np.ndarray, edges: np.ndarray, root: Any, root_squares: np.ndarray,
    table: np.ndarray, rng: np.ndarray, desk: Any,
) -> None:  # fmt: skip
    """Let a tree begin anew; with priors its root is valued first, outside the budget."""
    heads[0] = blank[0]
    head = heads[0]
    head.root_player = root.to_play
    write_edge(edges, np.int64(0), np.int64(0))
    for i in range(root_squares.shape[0]):
        for j in range(NUM_VALUES):
            root_squares[i, j] = 0.0
    if SHARES_NODES:
        for i in range(table.shape[0]):
            table[i].node = NONE
    rng[0] = seeded(desk.seed, np.uint64(0))
    desk.waiting = desk.ready = desk.settled = 0
    desk.schedule = desk.schedules
    desk.phase = FRESH if HAS_PRIORS else GROWING
    head.remaining = 1 if HAS_PRIORS else desk.budget


@apart
def halve_root(
    edges: np.ndarray, work: Any, desk: Any, noise: np.ndarray, given: np.ndarray,
    listed: np.ndarray, draws: np.ndarray, rng: np.ndarray,
) -> None:  # fmt: skip
    """Prepare the sequential halving of a root that is valued: noise, a list, the schedule."""
    first, count = np.int64(edges[0].first), np.int64(edges[0].num_edges)
    is_given = given.shape[0] > 0
    scale = work.root_parameters[4] if desk.has_noise else 0.0
    for i in range(count):
        work.prior[i] = edges[first + i].prior
        if is_given:
            noise[i] = given[edges[first + i].action]
    desk.num_listed = gumbel.consider(
        rng, scale, is_given, count, noise, work.prior, work.scratch, listed, draws
    )
    desk.schedule = desk.schedules + min(count, np.int64(work.root_parameters[3]))


def begin_budget(head: Any, desk: Any) -> None:
    """Let a tree whose root is valued use its budget; what was simulated before does not count."""
    head.simulations = 0
    head.since_root = 0
    head.depth_sum = 0
    head.remaining = desk.budget
    desk.phase = GROWING


def read_noise(
    work: Any, desk: Any, noise: np.ndarray, listed: np.ndarray, draws: np.ndarray
) -> None:
    """Let the root's rule see the noise of a tree, and what is considered there."""
    if LISTS:
        work.num_listed = desk.num_listed
        for i in range(desk.num_listed):
            work.listed[i] = listed[i]
            work.draws[i] = draws[i]
    elif HAS_NOISE:
        for i in range(noise.shape[0]):
            work.noise[i] = noise[i]


# --- kernels: questions and answers --------------------------------------------------------------


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
        observations[row] = 0.0  # an earlier batch was written there
        observe(state, np.int64(state.to_play), observations[row], data)
    else:
        asked[row] = state
    return row


def take_answer(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any,
    root_squares: np.ndarray, rng: np.ndarray, slot: Any, logits: np.ndarray, values: np.ndarray,
    untried: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Go on with a simulation that waited, in the leaf `states[1]`."""
    work.depth, work.ending, work.leaf_player = slot.depth, LEAF, slot.player
    work.timed = 0  # what was measured since belongs to others
    status = read_values(slot, values, np.int64(slot.row), work)
    depth = np.int64(slot.depth)
    node = node_of(edges, np.int64(path[depth - 1].edge)) if depth > 0 else np.int64(0)
    if HAS_PRIORS and status == DONE and slot.expands and edges[node].first == NONE:
        status = list_actions(states[1], work, data)
        if status == DONE:
            status = place_edges(tree, edges, node, work, logits[slot.row], untried)
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


@apart
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
    blank: np.ndarray  # [1], the head of a tree that begins
    edges: np.ndarray  # [trees, capacity]
    untried: np.ndarray  # [trees, capacity], log-priors of actions that have no edge
    roots: np.ndarray  # [trees], states
    root_squares: np.ndarray  # [trees, edges of the root, values]
    tables: np.ndarray  # [trees, places]
    noises: np.ndarray  # [trees, actions]
    given_noise: np.ndarray  # [actions], or nothing where noise is drawn
    lists: np.ndarray  # [trees, edges that the root considers]
    draws: np.ndarray  # [trees, edges that the root considers], see `gumbel.write_draws`
    schedules: np.ndarray  # [schedules, simulations], for each budget by the edges considered
    rngs: np.ndarray  # [trees, 1]


class Desk:
    """Where simulations wait for answers, and what Python is asked."""

    def __init__(
        self, game: Game, outside: Outside | None, gives_priors: bool, path: np.dtype,
        num_trees: int, leaves: int, longest: int,
    ) -> None:  # fmt: skip
        rows = num_trees * leaves
        self.game, self.outside, self.gives_priors = game, outside, gives_priors
        self.generation = None if outside is None else outside.generation
        self.desks = np.zeros(num_trees, DESK)
        self.paths = np.zeros((rows, longest), path)
        self.slots = np.zeros(rows, slot_dtype(game.num_players))
        self.leaves = np.zeros(rows, game.dtype)
        self.control = np.zeros(1, CONTROL)
        self._counts = memoryview(self.control.view(np.int64))  # read faster than by NumPy
        self._trees: Trees | None = None
        self._frame = Frame(())
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

    def arrays(self, trees: Trees, work: Any) -> tuple[np.ndarray, ...]:
        """What the kernel takes in a frame."""
        return (
            *vars(trees).values(), self.desks, work.states, work.work, *work.key_views,
            work.key_ranges, work.lock, self.paths, self.slots, self.leaves, self.control,
            self.asked, self.observations, self.keys, self.places, self.kept, self.kept_logits,
            self.kept_values,
        )  # fmt: skip

    def arguments(self, trees: Trees, work: Any) -> tuple[Any, ...]:
        """What the kernel takes; the frame is made anew where it is called with other trees."""
        if self._trees is not trees:
            self._trees, self._frame = trees, Frame(self.arrays(trees, work))
        return self._frame.words, self.logits, self.values, work.data

    def _as_records(self, array: np.ndarray) -> Any:
        """An array as a kernel sees it that is not compiled."""
        if not array.dtype.names:
            return array
        is_state = array.dtype == self.game.dtype
        return StateViews(array) if is_state else array.view(np.recarray)

    def call(self, kernel: Kernel, trees: Trees, work: Any) -> int:
        """One call of the kernel; its status."""
        if self.outside is not None:
            generation = self.outside.generation
            if generation != self.generation:
                self.generation = generation
                self.kept["stamp"] = 0
        arguments = self.arguments(trees, work)
        if not kernel.interpreted:
            return int(kernel.call(*arguments))
        with np.errstate(over="ignore"):
            frame = tuple(map(self._as_records, self._frame.arrays))
            return int(kernel.call(frame, *arguments[1:]))

    def answer(self) -> int:
        """Value what is asked; how many rows there were."""
        outside, count = self.outside, self.num_asked
        if outside is None or count == 0:
            return 0
        rows = self.observations[:count] if outside.observes else self.asked[:count]
        logits, values = outside.value(rows)
        if self.gives_priors:
            self.logits = self._checked(logits, count, self.width, "logits", "num_actions")
        self.values = self._checked(values, count, self.game.num_players, "values", "num_players")
        self._counts[_NUM_ANSWERS] = count
        return count

    @property
    def num_asked(self) -> int:
        """Rows that Python is asked about."""
        return self._counts[_NUM_ASKED]

    def take_stopped(self) -> int:
        """How many trees have stopped since this was last asked."""
        count = self._counts[_NUM_STOPPED]
        self._counts[_NUM_STOPPED] = 0
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
        for name in ("waiting", "ready", "settled"):
            self.desks[name] = 0
        self.control["num_asked"] = self.control["num_answers"] = self.control["holds"] = 0
        self.places[:] = NONE
        # They hold on to the trees, which could not be cut to size.
        self._trees, self._frame = None, Frame(())

    def _checked(self, given: Any, count: int, width: int, what: str, name: str) -> np.ndarray:
        shape = (count, width)
        if type(given) is np.ndarray and given.dtype == _FLOAT and given.shape == shape:
            if given.flags.c_contiguous and given.flags.writeable:
                return given
        array = np.require(given, np.float32, ["C", "W"])  # kernels take no others
        if array.shape != shape:
            raise BrokenGame(
                f"{what} of a batch of {count} must be [{count}, {width}], one row per leaf and "
                f"{name} of {self.game.name}; got {list(array.shape)}"
            )
        return array


_FLOAT = np.dtype(np.float32)
_NAMES = list(CONTROL.names or ())
_NUM_ASKED, _NUM_ANSWERS = _NAMES.index("num_asked"), _NAMES.index("num_answers")
_NUM_STOPPED = _NAMES.index("num_stopped")
