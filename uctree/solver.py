# Kernels hand on NumPy integers where they say int.
# mypy: disable-error-code="arg-type, return-value, type-arg"
"""Exact values of small games: every state that can be reached is evaluated once.

The search is depth first, in compiled code, with its own stack. A table holds the key of every
state met and its value, a vector over the players. Each player takes the action that is best for
that player, the first of equals (max^n), and the value of a chance state is the mean over its
outcomes.

If play can return to a state, sweeps over all states improve the values, from 0 on, until they
converge. So endless play is worth the rewards it pays, and a draw if it pays none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from uctree import evaluators
from uctree.engine.bindings import game_bindings
from uctree.engine.compile import Kernel, bind, compile_kernel
from uctree.errors import BrokenGame, UctreeError
from uctree.game import CHANCE, OVER, Game, State, StateViews
from uctree.kernels.backups import add_outcome, best_reply, step_return
from uctree.kernels.binding import UNBOUND
from uctree.kernels.rules import (
    DISCOUNT,
    GUARD_AT,
    HAS_CHANCE,
    MAX_OUTCOMES,
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

KEY_SIZE = UNBOUND  # bound when a game is solved: the bytes of a key

NONE = np.int64(-1)
PIECE = 200_000  # steps of a kernel before it returns, so that Ctrl-C works
CONVERGED = 1e-12  # sweeps end when no value changes by more than this
MAX_SWEEPS = 20_000

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
        ("stores", np.int64),  # whether records are stored, for sweeps
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


def place_all(head: Any, slots: np.ndarray, keys: np.ndarray, whole: np.ndarray) -> None:
    """Give a slot to every state of the table that has none, after the table has grown."""
    while head.placed < head.used:
        entry = np.int64(head.placed)
        slots[find_slot(slots, keys, keys, entry, whole)] = entry
        head.placed += 1


# --- kernels: the search -------------------------------------------------------------------------


def list_choices(state: Any, actions: np.ndarray, probabilities: np.ndarray, data: Any) -> int:
    """The number of legal actions or outcomes, written to `actions`; minus a status on error."""
    player = np.int64(state.to_play)
    if HAS_CHANCE and player == CHANCE:
        count = np.int64(chance(state, actions, probabilities, data))
        if count < 1 or count > MAX_OUTCOMES:
            return -BAD_CHANCE
        total = 0.0
        for i in range(count):
            if not probabilities[i] >= 0.0:
                return -BAD_CHANCE
            total += probabilities[i]
        return count if abs(total - 1.0) < 1e-9 else -BAD_CHANCE
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
    """Step the state and write the reward; DONE, or BAD_REWARD if it is not finite."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    step(state, action, reward, data)
    total = 0.0
    for player in range(NUM_PLAYERS):
        total += reward[player]
    return DONE if math.isfinite(total) else BAD_REWARD


def enter(
    head: Any, frames: np.ndarray, states: Any, raw: np.ndarray, slot: int, slots: np.ndarray,
    keys: np.ndarray, values: np.ndarray, records: Any, offsets: np.ndarray, pool: np.ndarray,
    chances: np.ndarray, actions: np.ndarray, probabilities: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Put the state above the top of the stack into the table and onto the stack."""
    depth = np.int64(head.depth + 1)
    first = np.int64(0)
    if depth > 0:
        first = np.int64(frames[depth - 1].first + frames[depth - 1].count)
    count = list_choices(states[depth], actions, probabilities, data)
    if count < 0:
        return -count
    entry = np.int64(head.used)
    slots[slot] = entry
    for i in range(KEY_SIZE):
        keys[entry, i] = raw[depth, offsets[i]]
    if head.stores:
        records[entry] = states[depth]
    frame = frames[depth]
    for player in range(NUM_PLAYERS):
        values[entry, player] = 0.0  # until it is known; the value of returning to this state
        frame.best[player] = 0.0
    for i in range(count):
        pool[first + i] = actions[i]
        chances[first + i] = probabilities[i]
    frame.entry, frame.first, frame.count, frame.next = entry, first, count, 0
    frame.player = states[depth].to_play
    head.used += 1
    head.placed += 1
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


def explore(
    heads: np.ndarray, frames: np.ndarray, states: Any, raw: np.ndarray, slots: np.ndarray,
    keys: np.ndarray, values: np.ndarray, records: Any, is_open: np.ndarray, offsets: np.ndarray,
    pool: np.ndarray, chances: np.ndarray, actions: np.ndarray, probabilities: np.ndarray,
    vectors: np.ndarray, data: Any, num_steps: int,
) -> int:  # fmt: skip
    """Continue for up to `num_steps` steps; DONE, NONE if not done yet, or why it stopped."""
    head = heads[0]
    reward = vectors[0]
    place_all(head, slots, keys, offsets[1])
    for _ in range(num_steps):
        depth = np.int64(head.depth)
        top = np.int64(0)
        if depth >= 0:
            top = np.int64(frames[depth].first + frames[depth].count)
        if (
            head.used >= keys.shape[0]
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
            status = step_once(states[depth + 1], np.int64(pool[choice]), reward, data)
            if status != DONE:
                return status
            for player in range(NUM_PLAYERS):
                frame.reward[player] = reward[player]
            if states[depth + 1].to_play == OVER:
                fold(frame, values, NONE, chances[choice])
                continue
        slot = find_slot(slots, keys, raw, depth + 1, offsets[0])
        if slots[slot] >= 0:
            entry = np.int64(slots[slot])
            if is_open[entry]:
                head.cyclic = 1
            fold(frames[depth], values, entry, chances[frames[depth].first + frames[depth].next])
            continue
        is_open[head.used] = 1
        status = enter(
            head, frames, states, raw, slot, slots, keys, values, records, offsets[0], pool,
            chances, actions, probabilities, data,
        )  # fmt: skip
        if status != DONE:
            return status
    return NONE


def sweep(
    heads: np.ndarray, frames: np.ndarray, states: Any, raw: np.ndarray, slots: np.ndarray,
    keys: np.ndarray, values: np.ndarray, records: Any, is_open: np.ndarray, offsets: np.ndarray,
    pool: np.ndarray, chances: np.ndarray, actions: np.ndarray, probabilities: np.ndarray,
    vectors: np.ndarray, data: Any, num_steps: int,
) -> float:  # fmt: skip
    """Evaluate every state by its choices once more; the largest change of a value."""
    change = 0.0
    frame = frames[0]
    for back in range(heads[0].used):
        index = heads[0].used - 1 - back  # states met later are mostly nearer to an end
        states[0] = records[index]
        count = list_choices(states[0], actions, probabilities, data)
        frame.player = states[0].to_play
        frame.next = 0
        for player in range(NUM_PLAYERS):
            frame.best[player] = 0.0
        for i in range(count):
            if HAS_CHANCE and frame.player == CHANCE and probabilities[i] == 0.0:
                continue
            states[1] = states[0]
            step_once(states[1], np.int64(actions[i]), vectors[0], data)
            for player in range(NUM_PLAYERS):
                frame.reward[player] = vectors[0, player]
            entry = NONE
            if states[1].to_play != OVER:
                entry = np.int64(slots[find_slot(slots, keys, raw, np.int64(1), offsets[0])])
            fold(frame, values, entry, probabilities[i])
        for player in range(NUM_PLAYERS):
            difference = abs(frame.best[player] - values[index, player])
            change = max(change, difference / max(1.0, abs(frame.best[player])))
            values[index, player] = frame.best[player]
    return change


# --- driving -------------------------------------------------------------------------------------


class Table:
    """The states met, with their values, and the arrays that kernels work on."""

    def __init__(self, game: Game, root: np.record, stores: bool, debug: bool) -> None:
        self.game, self.debug = game, debug
        self.num_choices = max(game.num_actions, game.max_outcomes)
        offsets = key_offsets(game)
        # The bytes of a key, in a record and in the table.
        self.offsets = np.array([offsets, np.arange(len(offsets))])
        self.head = np.zeros(1, _HEAD)
        self.head["depth"], self.head["stores"] = -1, stores
        self.keys = np.zeros((0, len(offsets)), np.uint8)
        self.values = np.zeros((0, game.num_players))
        self.is_open = np.zeros(0, np.uint8)
        self.records = np.zeros(1, game.dtype)
        self.frames = np.zeros(0, _frame_dtype(game.num_players))
        self.states = np.zeros(0, game.dtype)
        self.pool, self.chances = np.zeros(0, np.int32), np.zeros(0)
        self.actions = np.full(2 * self.num_choices + 1024, GUARD, np.int32)
        self.probabilities = np.zeros(self.num_choices + 1024)
        self.vectors = np.zeros((1, game.num_players))
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

    def arguments(self) -> tuple[Any, ...]:
        raw = self.states.view(np.uint8).reshape(len(self.states), -1)
        return (
            self.head, self.frames, self.states, raw, self.slots, self.keys, self.values,
            self.records, self.is_open, self.offsets, self.pool, self.chances, self.actions,
            self.probabilities, self.vectors, self.game.data, np.int64(PIECE),
        )  # fmt: skip

    def compile(self, kernel: Any) -> Kernel:
        bound = game_bindings(self.game, evaluators.playout())
        bound["KEY_SIZE"] = self.keys.shape[1]
        label = f"{self.game.name}: {kernel.__name__}"
        return compile_kernel(kernel, bound, self.arguments(), label=label, debug=self.debug)

    def call(self, kernel: Kernel) -> Any:
        head, frames, states, raw, slots, keys, values, records, *rest = self.arguments()
        if kernel.interpreted:
            head, frames = head.view(np.recarray), frames.view(np.recarray)
            states, records = StateViews(states), StateViews(records)
        try:
            with np.errstate(over="ignore"):
                return kernel.call(
                    head, frames, states, raw, slots, keys, values, records, *rest
                )  # fmt: skip
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
            slot = self._find_slot(self.slots, self.keys, key[None], 0, self.offsets[1])
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
    BAD_CHANCE: "chance gave probabilities that are no distribution, or too many outcomes",
    BAD_REWARD: "step paid a reward that is not finite",
}


def fill(game: Game, root: np.record, max_states: int, stores: bool, debug: bool) -> Table | None:
    """The table of all states that follow `root`; None if there are more than `max_states`."""
    table = Table(game, root, stores, debug)
    kernel = table.compile(explore)
    while True:
        status = int(table.call(kernel))
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
    if table.head["cyclic"][0]:
        return _converged(table) if stores else fill(game, root, max_states, True, debug)
    return table


def _converged(table: Table) -> Table:
    """The table after sweeps until its values no longer change."""
    kernel = table.compile(sweep)
    for _ in range(MAX_SWEEPS):
        change = float(table.call(kernel))
        if change <= CONVERGED:
            return table
    raise UctreeError(
        f"{table.game.name}: play can go in circles, and the values of its {table.num_states:,} "
        f"states did not converge in {MAX_SWEEPS:,} sweeps (the last change was {change:.2g}); "
        "give the game a discount below 1, or a field that counts plies and an end"
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """The exact value of a state, and of all states that can follow it."""

    game: Game
    state: np.record
    value: np.ndarray  # [num_players], the returns from `state` on
    states: int  # the number of different states, without those that are over
    cyclic: bool  # whether play can return to an earlier state
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
        key = np.frombuffer(self.game.key(state), np.uint8)
        entry = None if self._table is None else self._table.find(key)
        if self._table is None or entry is None:
            raise ValueError("this state cannot follow the one that was solved; pass it to solve")
        return self._table.values[entry].copy()

    def __str__(self) -> str:
        best = "" if self.action is None else f"action {self.action}, "
        circles = "; play can go in circles" if self.cyclic else ""
        value = " ".join(f"{number:+.6g}" for number in self.value)
        return f"{self.game.name}: {best}value {value} ({self.states:,} states{circles})"


def solve(
    game: Game, state: State | None = None, *, max_states: int = 10_000_000, debug: bool = False
) -> Solution:
    """The exact values of a state (the start by default) and of all states that follow it.

    Every player takes the action that is best for that player, the first of equals in the order of
    `legal`; chance is averaged. Endless play is worth the rewards it pays.

    Args:
        max_states: raise a UctreeError if there are more different states.
        debug: compile with bounds checks.
    """
    if max_states < 1:
        raise ValueError(f"max_states must be at least 1; got {max_states}")
    solution = solve_within(game, state, max_states, debug)
    if solution is None:
        raise UctreeError(
            f"{game.name} has more than {max_states:,} states from here on; solve a later state or "
            "a smaller board, or raise max_states= (a state takes about "
            f"{key_offsets(game).size + 8 * game.num_players + 13} bytes)"
        )
    return solution


def solve_within(game: Game, state: State | None, max_states: int, debug: bool) -> Solution | None:
    """As `solve`, but None if there are more than `max_states` states."""
    if game.is_continuous:
        raise TypeError(
            f"the actions of {game.name} are vectors, so its states cannot be listed; "
            "continuous.solve_backward(game) solves it by backward induction"
        )
    root = game.start() if state is None else game.copy(state)
    game.legal(root)  # raises in plain Python if the rules are wrong at the root
    if game.is_over(root):
        return Solution(game, root, np.zeros(game.num_players), 0, False, None)
    table = fill(game, root, max_states, False, debug)
    if table is None:
        return None
    value = table.values[0].copy()
    return Solution(game, root, value, table.num_states, bool(table.head["cyclic"][0]), table)
