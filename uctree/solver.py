# Kernels hand on NumPy integers where they say int.
# mypy: disable-error-code="arg-type, return-value, type-arg"
"""Exact values of small games: every state that can be reached is evaluated once.

The search is depth first, in compiled code, with its own stack. A table holds the key of every
state met and its value, a vector over the players. Each player takes the action that is best for
that player, the first of equals (max^n), and the value of a chance state is the mean over its
outcomes.

If play can return to a state, `values_with_cycles` finds the values instead, component by component
of the graph of states; never-ending play is worth the game's `repetition_value`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from uctree import evaluators, specs
from uctree.engine.bindings import game_bindings
from uctree.engine.compile import Kernel, bind, compile_kernel, interpreted
from uctree.engine.looks import look_at
from uctree.errors import BrokenGame, UctreeError
from uctree.game import CHANCE, LARGEST, OVER, Game, State, StateViews
from uctree.kernels.backups import add_outcome, best_reply, step_return
from uctree.kernels.binding import UNBOUND
from uctree.kernels.cycles import (
    CONVERGED,
    PROGRESS,
    Components,
    Graph,
    Sweep,
    Traversal,
    converge,
    find_components,
    narrow,
    narrow_acyclic,
    survey,
    value_acyclic,
)
from uctree.kernels.playouts import are_bounded, is_distribution
from uctree.kernels.rules import (
    DISCOUNT,
    GUARD_AT,
    HAS_CHANCE,
    NUM_ACTIONS,
    NUM_PLAYERS,
    chance,
    legal,
    step,
)
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_TO_PLAY,
    DONE,
    GUARD,
    NEED_CAPACITY,
)
from uctree.pages import document
from uctree.pages.columns import aligned

KEY_SIZE = UNBOUND  # bound when a game is solved: the bytes of a key

NONE = np.int64(-1)
PIECE = 200_000  # steps of a kernel before it returns, so that Ctrl-C works
EQUAL = 1e-9  # actions are equally good if their values differ by no more
MOST_ROWS = 12  # of a printed table

# FNV-1a, 64 bits (Fowler, Noll, Vo), folded at the end so that the low bits depend on all.
_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_29 = np.uint64(29)

_HEAD = np.dtype(
    [
        ("depth", np.int64),  # of the frame on top of the stack; -1 before the root is entered
        ("used", np.int64),  # states in the table
        ("placed", np.int64),  # those of them that have a slot
        ("cyclic", np.int64),  # whether a state occurred again among its descendants
        ("stores", np.int64),  # whether records are stored, for the graph
        ("choices", np.int64),  # of all states in the table
        ("linked", np.int64),  # states whose choices are in the graph
    ]
)


def _frame_dtype(num_players: int) -> np.dtype:
    return np.dtype(
        [
            ("entry", np.int64),
            ("first", np.int64),  # index of its first choice in the pool
            ("count", np.int64),
            ("next", np.int64),  # the choice that is being evaluated
            ("player", np.int64),
            ("reward", np.float64, (num_players,)),  # of that choice
            ("best", np.float64, (num_players,)),  # the value so far
        ]
    )


class TableArrays(NamedTuple):
    """The arrays of a `Table`: the states met, the stack of the search, and those of one step."""

    heads: np.ndarray  # [1], of _HEAD
    frames: np.ndarray  # [depth], of the stack
    states: Any  # [depth], of the frames
    raw: np.ndarray  # [depth, bytes], of the states
    slots: np.ndarray  # [power of two], int32: the entry that a hash leads to
    keys: np.ndarray  # [entries, KEY_SIZE], uint8
    values: np.ndarray  # [entries, players]
    records: Any  # [entries], if they are stored
    is_open: np.ndarray  # [entries]: the state is on the stack
    record_bytes: np.ndarray  # [KEY_SIZE], int64: where the bytes of a key are in a record
    table_bytes: np.ndarray  # [KEY_SIZE], and in a row of `keys`
    pool: np.ndarray  # [choices], int32: actions or outcomes of the frames
    chances: np.ndarray  # [choices], their probabilities
    actions: np.ndarray  # see `bindings.action_array`
    probabilities: np.ndarray
    reward: np.ndarray  # [players]
    data: Any  # of the game


# --- kernels: the table --------------------------------------------------------------------------


def hash_of(raw: np.ndarray, row: int, offsets: np.ndarray) -> np.uint64:
    """A hash of the key bytes in a row."""
    bits = _BASIS
    for i in range(KEY_SIZE):
        bits = (bits ^ np.uint64(raw[row, offsets[i]])) * _PRIME
    return bits ^ (bits >> _29)


def find_slot(
    slots: np.ndarray, keys: np.ndarray, raw: np.ndarray, row: int, offsets: np.ndarray
) -> int:
    """The slot of the state in `raw[row]`, or the empty one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = np.int64(hash_of(raw, row, offsets) & mask)
    while slots[slot] >= 0:
        # Keys are compared by content: two states with the same hash stay distinct.
        same = True
        for i in range(KEY_SIZE):
            if keys[slots[slot], i] != raw[row, offsets[i]]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & np.int64(mask)
    return slot


def place_all(table: TableArrays) -> None:
    """Give a slot to every state of the table that has none, after the table has grown."""
    head, slots, keys = table.heads[0], table.slots, table.keys
    while head.placed < head.used:
        entry = np.int64(head.placed)
        slots[find_slot(slots, keys, keys, entry, table.table_bytes)] = entry
        head.placed += 1


# --- kernels: the search -------------------------------------------------------------------------


def list_choices(state: Any, actions: np.ndarray, probabilities: np.ndarray, data: Any) -> int:
    """The number of legal actions or outcomes, written to `actions`; minus a status on error."""
    player = np.int64(state.to_play)
    if HAS_CHANCE and player == CHANCE:
        count = np.int64(chance(state, actions, probabilities, data))
        return count if is_distribution(count, actions, probabilities) else -BAD_CHANCE
    if player < 0 or player >= NUM_PLAYERS:
        return -BAD_TO_PLAY
    count = np.int64(legal(state, actions, data))
    if count < 1 or count > NUM_ACTIONS or actions[GUARD_AT] != GUARD:
        return -BAD_COUNT
    for i in range(count):
        probabilities[i] = 1.0  # not used, but the pool stores both
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return -BAD_ACTION
    return count


def step_once(state: Any, action: int, reward: np.ndarray, data: Any) -> int:
    """Step the state and write the reward; DONE, or BAD_REWARD if it is too large or NaN."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    step(state, action, reward, data)
    return DONE if are_bounded(reward) else BAD_REWARD


def enter(table: TableArrays, slot: int) -> int:
    """Put the state above the top of the stack into the table and onto the stack."""
    head, frames, states = table.heads[0], table.frames, table.states
    depth = np.int64(head.depth + 1)
    first = np.int64(0)
    if depth > 0:
        first = np.int64(frames[depth - 1].first + frames[depth - 1].count)
    count = list_choices(states[depth], table.actions, table.probabilities, table.data)
    if count < 0:
        return -count
    entry = np.int64(head.used)
    table.slots[slot] = entry
    for i in range(KEY_SIZE):
        table.keys[entry, i] = table.raw[depth, table.record_bytes[i]]
    if head.stores:
        table.records[entry] = states[depth]
    frame = frames[depth]
    for player in range(NUM_PLAYERS):
        table.values[entry, player] = 0.0  # until it is known; that of returning to this state
        frame.best[player] = 0.0
    for i in range(count):
        table.pool[first + i] = table.actions[i]
        table.chances[first + i] = table.probabilities[i]
    frame.entry, frame.first, frame.count, frame.next = entry, first, count, 0
    frame.player = states[depth].to_play
    head.used += 1
    head.placed += 1
    head.choices += count
    head.depth = depth
    return DONE


def fold(frame: Any, values: np.ndarray, entry: int, probability: float) -> None:
    """Update the value of a state by that of its current choice; NONE: the episode is over.

    A player takes the best choice, the first of equals, as `best_reply` [Eq. 8]; chance takes the
    mean [Eq. 7].
    """
    mover = max(np.int64(frame.player), np.int64(0))
    after = values[entry, mover] if entry != NONE else 0.0
    is_chance = HAS_CHANCE and frame.player == CHANCE
    value = step_return(frame.reward[mover], DISCOUNT, after)
    if is_chance or frame.next == 0 or value > frame.best[mover]:
        for player in range(NUM_PLAYERS):
            after = values[entry, player] if entry != NONE else 0.0
            value = step_return(frame.reward[player], DISCOUNT, after)
            if is_chance:
                frame.best[player] = add_outcome(frame.best[player], probability, value)
            else:
                frame.best[player] = value
    frame.next += 1


def explore(table: TableArrays, num_steps: int) -> int:
    """Continue for up to `num_steps` steps; DONE, NONE if not done yet, or why it stopped."""
    head, frames, states, slots = table.heads[0], table.frames, table.states, table.slots
    values, is_open, pool, chances = table.values, table.is_open, table.pool, table.chances
    place_all(table)
    for _ in range(num_steps):
        depth = np.int64(head.depth)
        top = np.int64(0)
        if depth >= 0:
            top = np.int64(frames[depth].first + frames[depth].count)
        if (
            head.used >= table.keys.shape[0]
            or depth + 1 >= frames.shape[0]
            or top + GUARD_AT > pool.shape[0]
        ):
            return NEED_CAPACITY
        if depth >= 0:
            frame = frames[depth]
            if frame.next == frame.count:
                entry = np.int64(frame.entry)
                for player in range(NUM_PLAYERS):
                    values[entry, player] = frame.best[player]
                is_open[entry] = 0
                if depth == 0:
                    return DONE
                head.depth = depth - 1
                parent = frames[depth - 1]
                fold(parent, values, entry, chances[parent.first + parent.next])
                continue
            choice = np.int64(frame.first + frame.next)
            if HAS_CHANCE and frame.player == CHANCE and chances[choice] == 0.0:
                frame.next += 1  # an impossible outcome
                continue
            states[depth + 1] = states[depth]
            status = step_once(states[depth + 1], np.int64(pool[choice]), table.reward, table.data)
            if status != DONE:
                return status
            for player in range(NUM_PLAYERS):
                frame.reward[player] = table.reward[player]
            if states[depth + 1].to_play == OVER:
                fold(frame, values, NONE, chances[choice])
                continue
        slot = find_slot(slots, table.keys, table.raw, depth + 1, table.record_bytes)
        if slots[slot] >= 0:
            entry = np.int64(slots[slot])
            if is_open[entry]:
                head.cyclic = 1
            fold(frames[depth], values, entry, chances[frames[depth].first + frames[depth].next])
            continue
        is_open[head.used] = 1
        status = enter(table, slot)
        if status != DONE:
            return status
    return NONE


def link(table: TableArrays, graph: Graph, num_states: int) -> None:
    """Write the choices of the next `num_states` states of the table to the graph."""
    head, states, probabilities = table.heads[0], table.states, table.probabilities
    for index in range(head.linked, min(head.linked + num_states, head.used)):
        states[0] = table.records[index]
        count = list_choices(states[0], table.actions, probabilities, table.data)
        is_chance = HAS_CHANCE and states[0].to_play == CHANCE
        choice = graph.first[index]
        for i in range(count):
            if is_chance and probabilities[i] == 0.0:
                continue  # an impossible outcome
            states[1] = states[0]
            step_once(states[1], np.int64(table.actions[i]), table.reward, table.data)
            graph.after[choice] = NONE
            if states[1].to_play != OVER:
                one = np.int64(1)
                slot = find_slot(table.slots, table.keys, table.raw, one, table.record_bytes)
                graph.after[choice] = table.slots[slot]
            for player in range(NUM_PLAYERS):
                graph.paid[choice, player] = table.reward[player]
            graph.chance[choice] = probabilities[i]
            choice += 1
        graph.mover[index] = states[0].to_play
        graph.first[index + 1] = choice
    head.linked = min(head.linked + num_states, head.used)


# --- driving -------------------------------------------------------------------------------------


class Table:
    """The states met, with their values, and the arrays that kernels work on."""

    def __init__(self, game: Game, root: np.record, stores: bool, debug: bool, check: bool) -> None:
        self.game, self.root, self.debug, self.check = game, root, debug, check
        self.num_choices = max(game.num_actions, game.max_outcomes)
        self.record_bytes = key_offsets(game)
        self.table_bytes = np.arange(len(self.record_bytes))
        self.head = np.zeros(1, _HEAD)
        self.head["depth"], self.head["stores"] = -1, stores
        self.keys = np.zeros((0, len(self.record_bytes)), np.uint8)
        self.values = np.zeros((0, game.num_players))
        self.is_open = np.zeros(0, np.uint8)
        self.records = np.zeros(1, game.dtype)
        self.frames = np.zeros(0, _frame_dtype(game.num_players))
        self.states = np.zeros(0, game.dtype)
        self.pool, self.chances = np.zeros(0, np.int32), np.zeros(0)
        self.actions = np.full(2 * self.num_choices + 1024, GUARD, np.int32)
        self.probabilities = np.zeros(self.num_choices + 1024)
        self.reward = np.zeros(game.num_players)
        self.is_endless: np.ndarray | None = None  # [num_states], if play can return to a state
        self.grow_table(1024)
        self.grow_stack(64)
        self.states[0] = root

    @property
    def num_states(self) -> int:
        return int(self.head["used"][0])

    def grow_table(self, size: int) -> None:
        more = size - len(self.keys)
        self.keys = np.concatenate([self.keys, np.zeros((more, self.keys.shape[1]), np.uint8)])
        self.values = np.concatenate([self.values, np.zeros((more, self.game.num_players))])
        self.is_open = np.concatenate([self.is_open, np.zeros(more, np.uint8)])
        if self.head["stores"][0]:
            self.records = np.concatenate(
                [self.records[: size - more], np.zeros(more, self.game.dtype)]
            )
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        self.head["placed"] = 0

    def grow_stack(self, size: int) -> None:
        more = size - len(self.frames)
        self.frames = np.concatenate([self.frames, np.zeros(more, self.frames.dtype)])
        self.states = np.concatenate([self.states, np.zeros(more, self.game.dtype)])
        self.grow_pool(max(len(self.pool), 64 * self.num_choices))

    def grow_pool(self, size: int) -> None:
        more = size - len(self.pool)
        self.pool = np.concatenate([self.pool, np.zeros(more, np.int32)])
        self.chances = np.concatenate([self.chances, np.zeros(more)])

    def grow(self) -> None:
        """Double the arrays that are full."""
        depth = int(self.head["depth"][0])
        if self.num_states >= len(self.keys):
            self.grow_table(2 * len(self.keys))
        if depth + 1 >= len(self.frames):
            self.grow_stack(2 * len(self.frames))
        top = 0 if depth < 0 else int(self.frames["first"][depth] + self.frames["count"][depth])
        if top + self.num_choices > len(self.pool):
            self.grow_pool(2 * len(self.pool))

    def arrays(self) -> TableArrays:
        """The arrays as they are now, for kernels."""
        return TableArrays(
            heads=self.head,
            frames=self.frames,
            states=self.states,
            raw=self.states.view(np.uint8).reshape(len(self.states), -1),
            slots=self.slots,
            keys=self.keys,
            values=self.values,
            records=self.records,
            is_open=self.is_open,
            record_bytes=self.record_bytes,
            table_bytes=self.table_bytes,
            pool=self.pool,
            chances=self.chances,
            actions=self.actions,
            probabilities=self.probabilities,
            reward=self.reward,
            data=self.game.data,
        )

    def graph(self) -> Graph:
        """All states with their choices, from the records."""
        count, num_choices = self.num_states, int(self.head["choices"][0])
        graph = Graph(
            np.zeros(count, np.int64),
            np.zeros(count + 1, np.int64),
            np.zeros(num_choices, np.int64),
            np.zeros((num_choices, self.game.num_players)),
            np.zeros(num_choices),
        )
        kernel = self.compile(link, graph, np.int64(PIECE))
        while self.head["linked"][0] < count:
            self.call(kernel, graph, np.int64(PIECE))
        self.records = np.zeros(1, self.game.dtype)  # no longer needed
        used = int(graph.first[-1])  # fewer, if outcomes are impossible
        return graph._replace(
            after=graph.after[:used], paid=graph.paid[:used], chance=graph.chance[:used]
        )

    def compile(self, kernel: Any, *arguments: Any) -> Kernel:
        """A kernel that takes the arrays of the table, and these arguments."""
        bound = game_bindings(self.game, evaluators.playout())
        bound["KEY_SIZE"] = self.keys.shape[1]
        label = f"{self.game.name}: {kernel.__name__}"
        if self.check:
            look_at(self.game, self.root)
        given = (self.arrays(), *arguments)
        return compile_kernel(kernel, bound, given, label=label, debug=self.debug)

    def call(self, kernel: Kernel, *arguments: Any) -> Any:
        """Call such a kernel."""
        given = self.arrays()
        if kernel.interpreted:
            given = given._replace(
                heads=given.heads.view(np.recarray),
                frames=given.frames.view(np.recarray),
                states=StateViews(given.states),
                records=StateViews(given.records),
            )
        try:
            with np.errstate(over="ignore"):
                return kernel.run(given, *arguments)
        except Exception as error:
            raise BrokenGame(
                f"{self.game.name}: a rule raised {type(error).__name__}: {error}\n  "
                f"after the actions {self.actions_taken()}; uctree.check(game) says more"
            ) from error

    def actions_taken(self) -> list[int]:
        """The actions from the root to the choice that is being evaluated."""
        frames = self.frames[: int(self.head["depth"][0]) + 1]
        last = np.minimum(frames["first"] + frames["next"], len(self.pool) - 1)
        return [int(action) for action in self.pool[last]]

    @cached_property
    def _find_slot(self) -> Any:
        return bind(find_slot, {"KEY_SIZE": self.keys.shape[1]})

    def find(self, key: np.ndarray) -> int | None:
        """The entry of a state by its key."""
        with np.errstate(over="ignore"):
            slot = self._find_slot(self.slots, self.keys, key[None], 0, self.table_bytes)
        entry = int(self.slots[slot])
        return None if entry < 0 else entry


def key_offsets(game: Game) -> np.ndarray:
    """The offsets of the bytes of the key fields in a record."""
    fields: Any = game.dtype.fields
    spans = [(fields[name][1], fields[name][0].itemsize) for name in game.key_fields]
    return np.array([first + i for first, size in spans for i in range(size)], np.int64)


_PROBLEMS = {
    BAD_COUNT: "legal returned a count out of range, or wrote too many actions",
    BAD_ACTION: "legal gave an action out of range",
    BAD_TO_PLAY: "to_play is neither a player nor OVER, nor CHANCE in a game that has chance=",
    BAD_CHANCE: "chance gave too many outcomes, an outcome below 0, or probabilities that are no "
    "distribution",
    BAD_REWARD: f"step paid a reward that is not a number of at most {LARGEST:g}",
}


def fill(
    game: Game, root: np.record, max_states: int, stores: bool, debug: bool, check: bool
) -> Table | None:
    """The table of all states that follow `root`; None if there are more than `max_states`."""
    table = Table(game, root, stores, debug, check)
    kernel = table.compile(explore, np.int64(PIECE))
    while True:
        status = int(table.call(kernel, np.int64(PIECE)))
        if status == DONE:
            break
        if status == NEED_CAPACITY:
            table.grow()
        elif status != NONE:
            raise BrokenGame(
                f"{game.name}: {_PROBLEMS[status]}\n  after the actions {table.actions_taken()}; "
                "uctree.check(game) says more"
            )
        if table.num_states > max_states:
            return None
    if not table.head["cyclic"][0]:
        return table
    if not stores:
        return fill(game, root, max_states, True, debug, check)
    values, table.is_endless = values_with_cycles(game, table.graph(), debug)
    table.values[: len(values)] = values
    return table


# --- play that returns to a state ----------------------------------------------------------------
# The equations "value of a state = best or mean value of its choices" have many solutions if play
# can go on for ever. The least one, L, is the value of the game in which never-ending play is worth
# less than any end; sweeps from below find it. The greatest one, U, is found from above. Where they
# agree, never-ending play does not matter.
#
# Else let never-ending play be worth v. A lower bound l of the values is improved in two ways:
#   - by sweeps that start from l: player 0 may take what is known so far;
#   - by sweeps y <- T(max(l, min(y, v))) that start from v, T being one sweep: player 1 may stop
#     play for v anywhere, which never helps player 0.
# If neither changes l, it is the value. Against l, player 1 takes the best choice at states worth
# more than v, and at others what is best in the second kind of sweeps. Then the value along a play
# never rises on average, so it converges; a play that never ends cannot stay where the value is
# below v, since there the second kind of sweeps would have given v. So it pays at most what its
# states are worth. Upper bounds are lower bounds with the players exchanged.
#
# This needs steps inside a component that pay nothing, or all pay the same player: else the sum of
# the rewards of a play that never ends may have no limit.

AGREE = 1e-9  # values found from below and from above may differ by as much
MAX_SWEEPS = 100_000
MAX_ROUNDS = 1_000  # of both kinds of sweeps


def values_with_cycles(game: Game, graph: Graph, debug: bool) -> tuple[np.ndarray, np.ndarray]:
    """The values of all states, and whether each depends on what never-ending play is worth."""
    solver = _CycleSolver(game, graph, debug)
    sums = graph.paid.sum(axis=1)
    is_end = graph.after == NONE
    total = float(sums[is_end][0]) if is_end.any() else 0.0
    is_constant = not sums[~is_end].any() and bool((sums[is_end] == total).all())
    if game.num_players > 2 or (
        game.num_players == 2 and not (is_constant and (game.discount == 1.0 or total == 0.0))
    ):
        return solver.for_several_players(), np.zeros(len(graph.mover), bool)
    values, is_endless = solver.for_opposed_players()
    if game.num_players == 1:
        return values[:, None], is_endless
    if is_endless.any() and game.repetition_value.sum() != total:
        raise UctreeError(
            f"{game.name}: play can go on for ever, ends pay the players {total:g} together, and "
            f"repetition_value {game.repetition_value.tolist()}; give Game a repetition_value that "
            "adds up to the same"
        )
    return np.stack([values, total - values], axis=1), is_endless


class _CycleSolver:
    """Finds values component by component, each after those it leads to."""

    def __init__(self, game: Game, graph: Graph, debug: bool) -> None:
        self.game, self.graph, self.debug = game, graph, debug
        self.num_states = len(graph.mover)
        self.components = Components(
            np.zeros(self.num_states, np.int64),
            np.zeros(self.num_states + 1, np.int64),
            np.full(self.num_states, NONE),
        )
        self.found = np.zeros(4)  # see `survey`
        # Of the component at hand, and at first of none: values, lower bounds, no lower bounds.
        self.values, self.bound, self.none = np.full((3, self.num_states), -np.inf)
        self.kernels: dict[Any, Kernel] = {}
        traversal = Traversal(*np.full((len(Traversal._fields), self.num_states), NONE))
        self.count = int(self.run(find_components, traversal))

    def run(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel with the graph and its components."""
        arguments = (self.graph, self.components, *arguments)
        if kernel not in self.kernels:
            label = f"states by number: {kernel.__name__}"
            self.kernels[kernel] = compile_kernel(
                kernel, {}, arguments, label=label, debug=self.debug
            )
        return self.kernels[kernel].call(*arguments)

    def sweep(self, kernel: Any, component: int, *arguments: Any) -> None:
        """Call a kernel until it has converged."""
        states = self.states_of(component)
        progress = np.array([(0, np.nan)], PROGRESS)
        num_sweeps = np.int64(min(MAX_SWEEPS, max(1, PIECE // len(states))))
        heads = progress.view(np.recarray) if interpreted() else progress
        while not self.run(kernel, np.int64(component), *arguments, heads, num_sweeps):
            if progress["sweeps"][0] >= MAX_SWEEPS:
                self.refuse(f"did not converge in {MAX_SWEEPS:,} sweeps", len(states))

    def refuse(self, reason: str, num_states: int) -> None:
        raise UctreeError(
            f"{self.game.name}: play can go in circles, and the values of {num_states:,} of its "
            f"{self.num_states:,} states {reason}; give the game a discount below 1, or a field "
            "that counts plies and an end"
        )

    def states_of(self, component: int) -> np.ndarray:
        first, end = self.components.starts[component : component + 2]
        return self.components.order[first:end]

    def survey(self, component: int, known: np.ndarray, player: int) -> None:
        """Write to `found` what a component pays a player."""
        discount = self.game.discount
        self.run(survey, np.int64(component), known, discount, np.int64(player), self.found)

    def margin(self, component: int) -> float:
        """How far a value may lie beyond what ways out of the component pay."""
        steps = len(self.states_of(component)) + 1.0
        if self.game.discount < 1.0:
            steps = 1 / (1 - self.game.discount)
        return 1.0 + steps * float(np.abs(self.found[2:]).max())

    # One player, or two with opposed payoffs: values are those of player 0.

    def for_opposed_players(self) -> tuple[np.ndarray, np.ndarray]:
        """The values of all states, and whether each depends on what never-ending play is worth."""
        least, greatest, values = np.zeros((3, self.num_states, 1))
        component = 0
        while True:
            for known in (least, greatest, values):
                sweep = self.sweep_of(known, 1.0, self.none, np.inf)
                following = self.run(
                    value_acyclic, np.int64(component), np.int64(self.count), sweep, self.found
                )
            component = int(following)
            if component == self.count:
                return values[:, 0], (_gap(least, greatest) > AGREE)[:, 0]
            states = self.states_of(component)
            least[states, 0] = self.least(component, least, 1.0)
            greatest[states, 0] = -self.least(component, greatest, -1.0)
            if (_gap(least[states], greatest[states]) <= AGREE).all():
                values[states] = (least[states] + greatest[states]) / 2
            else:
                values[states, 0] = self.between(component, values)
            component += 1

    def least(self, component: int, known: np.ndarray, sign: float) -> np.ndarray:
        """The least values of a component; of the mirrored game if `sign` is -1."""
        states = self.states_of(component)
        self.survey(component, known, 0)
        ends = sign * np.append(self.found[:2], self.game.repetition_value[0])
        lowest = ends[np.isfinite(ends)].min()  # a component may have no way out
        self.values[states] = lowest - self.margin(component)
        self.converge(component, known, sign, self.none, np.inf)
        return self.values[states]

    def between(self, component: int, known: np.ndarray) -> np.ndarray:
        """The values of a component in which never-ending play matters."""
        states = self.states_of(component)
        if self.found[2] < 0.0 < self.found[3]:
            self.refuse("depend on rewards whose sum need not have a limit", len(states))
        low, high = (sign * self.lower_bound(component, known, sign) for sign in (1.0, -1.0))
        if (_gap(low, high) > AGREE).any():
            self.refuse("did not converge to the same from below and from above", len(states))
        return (low + high) / 2

    def lower_bound(self, component: int, known: np.ndarray, sign: float) -> np.ndarray:
        """The values of a component from below; of the mirrored game if `sign` is -1."""
        endless = sign * float(self.game.repetition_value[0])
        states = self.states_of(component)
        self.bound[states] = -np.inf
        for _ in range(MAX_ROUNDS):
            self.values[states] = endless
            self.converge(component, known, sign, self.bound, endless)
            self.converge(component, known, sign, self.none, np.inf)
            if (_gap(self.values[states], self.bound[states]) <= CONVERGED).all():
                break
            self.bound[states] = self.values[states]
        else:
            self.refuse(f"did not converge in {MAX_ROUNDS:,} rounds", len(states))
        return self.values[states]

    def converge(
        self, component: int, known: np.ndarray, sign: float, floor: np.ndarray, cap: float
    ) -> None:
        """Sweep over the values; states of the component count with max(floor, min(value, cap))."""
        self.sweep(converge, component, self.sweep_of(known, sign, floor, cap))

    def sweep_of(self, known: np.ndarray, sign: float, floor: np.ndarray, cap: float) -> Sweep:
        return Sweep(known, self.values, floor, cap, sign, self.game.discount)

    # Several players, each of whom takes the choice that is best for that player.

    def for_several_players(self) -> np.ndarray:
        """The values of all states, if they are the same whatever never-ending play is worth."""
        low = np.full((self.num_states, self.game.num_players), -np.inf)
        high = -low
        discount, component = self.game.discount, 0
        while True:
            component = int(
                self.run(
                    narrow_acyclic, np.int64(component), np.int64(self.count), low, high, discount,
                    self.found,
                )
            )  # fmt: skip
            if component == self.count:
                return low
            states = self.states_of(component)
            for player, endless in enumerate(self.game.repetition_value):
                self.survey(component, low, player)
                margin = self.margin(component)
                low[states, player] = min(self.found[0], endless) - margin
                high[states, player] = max(self.found[1], endless) + margin
            self.sweep(narrow, component, low, high, discount)
            is_bounded = np.isfinite(low[states]).all()
            if not (is_bounded and (_gap(low[states], high[states]) <= AGREE).all()):
                self.refuse(
                    "are not defined: they depend on whether the others end play", len(states)
                )
            low[states] = high[states] = (low[states] + high[states]) / 2
            component += 1


def _gap(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How far apart values are, in relation to their size if that is above 1."""
    return np.abs(high - low) / np.maximum(1.0, np.abs(low))


@dataclass(frozen=True, eq=False)
class Solution:
    """The exact value of a state, and of all states that can follow it."""

    game: Game
    state: np.record
    value: np.ndarray  # [num_players], the returns from `state` on
    states: int  # the number of different states, without those that are over
    cyclic: bool  # whether play can return to an earlier state
    endless: int  # the number of states whose value depends on what never-ending play is worth
    _table: Table | None = field(repr=False)

    @cached_property
    def action_values(self) -> dict[int, np.ndarray]:
        """The values per player of each legal action or outcome, in the order of `legal`."""
        values = {}
        for action in self.game.legal(self.state):
            after, reward = self.game.step(self.state, action)
            values[action] = reward + self.game.discount * self.value_of(after)
        return values

    @cached_property
    def action(self) -> int | None:
        """The best action, the first of equals; None at a chance state or after the end."""
        player = self.game.to_play(self.state)
        if player in (OVER, CHANCE):
            return None
        return list(self.action_values)[
            best_reply(np.array(list(self.action_values.values())), player)
        ]

    def value_of(self, state: State) -> np.ndarray:
        """The value per player of a state that can follow the solved one."""
        if self.game.is_over(state):
            return np.zeros(self.game.num_players)
        table, entry = self._entry_of(state)
        return table.values[entry].copy()

    def is_endless(self, state: State) -> bool:
        """Whether a state's value depends on what never-ending play is worth.

        If so, another `repetition_value` of the game could give another value.
        """
        if self.game.is_over(state):
            return False
        table, entry = self._entry_of(state)
        return table.is_endless is not None and bool(table.is_endless[entry])

    def _entry_of(self, state: State) -> tuple[Table, int]:
        key = np.frombuffer(self.game.key(state), np.uint8)
        entry = None if self._table is None else self._table.find(key)
        if self._table is None or entry is None:
            raise ValueError("this state cannot follow the one that was solved; pass it to solve")
        return self._table, entry

    @cached_property
    def best_actions(self) -> list[int]:
        """All actions that are as good as `action` for the player to move."""
        if self.action is None:
            return []
        player = self.game.to_play(self.state)
        best = self.action_values[self.action][player]
        return [a for a, value in self.action_values.items() if value[player] >= best - EQUAL]

    def to_json(self) -> dict[str, Any]:
        """The solution as plain numbers, lists and strings, ready for `json.dumps`."""
        return {
            "game": self.game.name,
            "to_play": self.game.to_play(self.state),
            "value": self.value.tolist(),
            "action": self.action,
            "best_actions": self.best_actions,
            "action_values": [
                {"action": action, "value": value.tolist()}
                for action, value in self.action_values.items()
            ],
            "states": self.states,
            "cyclic": self.cyclic,
            "endless": self.endless,
        }

    def __str__(self) -> str:
        lines = [self.game.show(self.state), "", *self._headline()]
        if self.action_values:
            lines += ["", *aligned(self._rows(), left=())]
            hidden = len(self.action_values) - MOST_ROWS
            lines += [f"... and {hidden} more"] if hidden > 0 else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Board, value and table as HTML for a notebook."""
        parts = [document.preformatted(self.game.show(self.state))]
        parts += [document.paragraph(line) for line in self._headline()]
        parts += [document.table(self._rows())] if self.action_values else []
        return "".join(parts)

    def _headline(self) -> list[str]:
        """The value per player and the best actions; then the size of the game."""
        player, size = self.game.to_play(self.state), f"{self.states:,} states"
        if player == OVER:
            return [f"{self.game.name}: the episode is over, there is nothing to solve"]
        who = "chance" if player == CHANCE else f"player {player}"
        shown = [self.game.show_action(self.state, action) for action in self.best_actions]
        listed = ", ".join(shown[:MOST_ROWS]) + (", ..." if len(shown) > MOST_ROWS else "")
        best = f"; best: {listed}" if shown else ""
        values = ", ".join(f"{_signed(value)} for player {i}" for i, value in enumerate(self.value))
        circles = "; play can go in circles" if self.cyclic else ""
        if self.endless:
            circles += f", which matters in {self.endless:,}"
        return [f"{self.game.name}, {who} to move{best}", f"value {values} ({size}{circles})"]

    def _rows(self) -> list[list[str]]:
        """The cells of the table, titles first; the best actions come first."""
        player = max(0, self.game.to_play(self.state))
        ranked = sorted(self.action_values.items(), key=lambda each: -each[1][player])
        values = [f"player {i}" for i in range(self.game.num_players)]
        return [["action", *values]] + [
            [self.game.show_action(self.state, action), *map(_signed, value)]
            for action, value in ranked[:MOST_ROWS]
        ]


def _signed(number: float) -> str:
    return f"{number + 0.0:+.6g}"  # the sum turns -0 into 0


def solve(
    game: Game | str,
    state: State | None = None,
    *,
    max_states: int = 10_000_000,
    debug: bool = False,
    check: bool = True,
) -> Solution:
    """The exact values of a state (the start by default) and of all states that follow it.

    Every player takes the action that is best for that player, the first of equals in the order of
    `legal`; chance is averaged. Never-ending play is worth the game's `repetition_value`, unless it
    is discounted. With several players, or two whose payoffs do not add up to a constant, a game in
    which play can go in circles is refused if values depend on whether players ever end it.

    Args:
        game: a game, or its text, as `connect_four(rows=4, cols=5)`.
        max_states: raise a UctreeError if there are more different states.
        debug: compile with bounds checks.
        check: as in `search`.
    """
    game = specs.as_game(game)
    if max_states < 1:
        raise ValueError(f"max_states must be at least 1; got {max_states}")
    solution = solve_within(game, state, max_states, debug, check)
    if solution is None:
        raise UctreeError(
            f"{game.name} has more than {max_states:,} states from here on; solve a later state or "
            "a smaller board, or raise max_states= (a state takes about "
            f"{key_offsets(game).size + 8 * game.num_players + 13} bytes)"
        )
    return solution


def solve_within(
    game: Game, state: State | None, max_states: int, debug: bool, check: bool = True
) -> Solution | None:
    """As `solve`, but None if there are more than `max_states` states."""
    if game.is_continuous:
        raise UctreeError(
            f"the actions of {game.name} are vectors, so its states cannot be listed; "
            "continuous.solve_backward(game) solves it by backward induction"
        )
    root = game.start() if state is None else game.copy(state)
    game.legal(root)  # raises in plain Python if the rules are wrong at the root
    if game.is_over(root):
        return Solution(game, root, np.zeros(game.num_players), 0, False, 0, None)
    table = fill(game, root, max_states, False, debug, check)
    if table is None:
        return None
    value = table.values[0].copy()
    endless = 0 if table.is_endless is None else int(table.is_endless.sum())
    is_cyclic = bool(table.head["cyclic"][0])
    return Solution(game, root, value, table.num_states, is_cyclic, endless, table)
