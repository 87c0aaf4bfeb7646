"""Positions without their states: the replay of a game with large states holds the actions.

A state of three in a row on 100 x 100 has 80 kB. So a position of such a game stores the action
that was taken, at every ply from the start on, and the policy in few slots: under 100 bytes in all.
Its state is reached again when a batch is drawn. So that no episode is walked from its start every
time, states at every 128th ply stay in memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from uctree.engine.bindings import action_array, bound_rule
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.recent import table_of
from uctree.engine.stepping import LARGE_STATE
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game, StateViews
from uctree.learn import filling
from uctree.learn.filling import COUNT, FIRST, NONE, SLOT
from uctree.views import whole
from uctree.views.frames import cell_at, index_of

FEW_SLOTS = 11  # of a stored policy; the rest of it is spread over all other legal actions
EVERY = 128  # plies between states that stay in memory
SNAPSHOT_BYTES = 256 << 20  # of the states that stay in memory


def is_walked(game: Game) -> bool:
    """Whether the replay of a game stores actions instead of states."""
    if game.environment is not None or game.rules.chance is not None:
        return False
    return game.view is not None or game.dtype.itemsize > LARGE_STATE


def state_fields(game: Game) -> list[Any]:
    """The fields of a position that say what its state is."""
    if not is_walked(game):
        return [("state", game.dtype)]
    return [("action", "<i4"), ("to_play", "i1")]


def policy_fields(game: Game, most: int) -> list[Any]:
    """The fields of a position that hold its policy, in `most` slots unless states are large."""
    if not is_walked(game):
        slots = min(game.num_actions, most)
        return [("policy_actions", "<i4", slots), ("policy_shares", "<f4", slots)]
    slots = min(game.num_actions, FEW_SLOTS)
    number = "<i2" if game.num_actions < 1 << 15 else "<i4"
    return [("policy_actions", number, slots), ("policy_shares", "<f2", slots)]


def players_of(positions: np.ndarray) -> np.ndarray:
    """The player to move in each position."""
    found: np.ndarray = (
        positions["state"]["to_play"] if "state" in (positions.dtype.names or ())
        else positions["to_play"]
    )  # fmt: skip
    return found


def has_rest(positions: np.ndarray) -> bool:
    """Whether a policy of these positions may leave out a part that is spread when it is read."""
    return bool(positions.dtype["policy_shares"].base == np.dtype("<f2"))


def write_states(positions: np.ndarray, states: np.ndarray, actions: Any) -> None:
    """Write what says which states these are; of walked games only who is to move is read."""
    if "state" in (positions.dtype.names or ()):
        positions["state"] = states
    else:
        positions["to_play"] = states["to_play"]
        positions["action"][: len(actions)] = actions


def check_moves(game: Game, positions: np.ndarray) -> None:
    """Raise UctreeError unless the actions of an episode are legal, one after the other."""
    if not is_walked(game):
        return
    played = whole(game)
    states = np.zeros(1, game.dtype)
    states[0] = start_of(game)
    moves = np.ascontiguousarray(positions["action"], np.int64)
    arguments = (
        _shown(states), moves, np.ascontiguousarray(positions["to_play"], np.int64),
        action_array(played), np.zeros(game.num_players), game.data,
    )  # fmt: skip
    place = _called(game, filling.first_wrong, arguments)
    if place >= 0:
        raise UctreeError(
            f"position {place} of the episode cannot be reached by its actions, or its action "
            f"{moves[place]} is not legal in {game.name}"
        )


def start_of(game: Game) -> np.record:
    """The start of a game, made once."""
    known = table_of(game, "start", 1)
    found: np.record | None = known.get("start")
    if found is None:
        found = game.start()
        known.put("start", found)
    return found


# --- states by their actions ---------------------------------------------------------------------


@dataclass(frozen=True)
class Paths:
    """How the states of rows are reached: moves from one of `bases`, or from the row before."""

    bases: np.ndarray  # [slots], states
    rows: np.ndarray  # [n, 4], by SLOT, FIRST, COUNT, CHOICE
    moves: np.ndarray  # int64, those of all rows


@dataclass(frozen=True)
class Walked:
    """What `fill` writes."""

    planes: np.ndarray  # [n, planes, cells]
    policy: np.ndarray  # [n, num_actions]
    legal: np.ndarray  # [n, num_actions]
    windows: np.ndarray  # [n, 2], the centre of each state's own window
    taken: np.ndarray  # [n], the share of the policy inside the window it is seen in


class StoredActions(Protocol):
    """What a `Retracer` needs of a replay."""

    game: Game

    def actions_of(self, entry: np.ndarray) -> np.ndarray:
        """The actions of an episode, those of the whole game."""


class Retracer:
    """States of a replay, reached again by the actions of their episodes."""

    def __init__(self, replay: StoredActions) -> None:
        self.replay, self.game = replay, replay.game
        self._most = max(1, SNAPSHOT_BYTES // self.game.dtype.itemsize)
        self._slots = np.zeros(64, self.game.dtype)
        self._slots[0] = start_of(self.game)
        # The slot of a state by the number of its episode's first position and its ply.
        self._places: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._used: set[int] = set()  # slots of the paths that are made now

    def states(self, entries: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The states of positions by their numbers, all of them of episodes in `entries`."""
        paths = self.paths(entries, numbers[:, None])
        states = np.zeros(len(numbers), self.game.dtype)
        self._walk(paths, states)
        return states

    def paths(self, entries: np.ndarray, numbers: np.ndarray) -> Paths:
        """The paths to positions by their numbers, [n, k]: row by row of one episode each.

        In a row each number is that before it, or one more.
        """
        self._used = set()
        count, width = numbers.shape
        rows = np.zeros((count, width, 4), np.int64)
        firsts = entries["first"].astype(np.int64)
        found = np.searchsorted(firsts, numbers[:, 0], side="right") - 1
        parts, at = [], 0
        for i, row in enumerate(found):
            actions = self.replay.actions_of(entries[row])
            plies = numbers[i] - firsts[row]
            base = int(plies[0]) // EVERY * EVERY
            rows[i, 0, SLOT] = self._slot(int(firsts[row]), base, actions)
            rows[i, 1:, SLOT] = NONE
            rows[i, 0, FIRST], rows[i, 0, COUNT] = at, plies[0] - base
            rows[i, 1:, FIRST], rows[i, 1:, COUNT] = at + plies[:-1] - base, np.diff(plies)
            parts.append(actions[base : plies[-1]])
            at += len(parts[-1])
        moves = np.concatenate(parts).astype(np.int64)
        return Paths(self._slots, rows.reshape(-1, 4), moves)

    def _slot(self, first: int, ply: int, actions: np.ndarray) -> int:
        """The slot of the state at a ply of an episode, which is walked to if it is not there."""
        if ply == 0:
            return 0
        slot = self._places.get((first, ply))
        if slot is None:
            before = self._slot(first, ply - EVERY, actions)
            moves = np.ascontiguousarray(actions[ply - EVERY : ply], np.int64)
            slot = self._free_slot()
            rows = np.array([[before, 0, EVERY, 0]])
            self._walk(Paths(self._slots, rows, moves), self._slots[slot : slot + 1])
            self._places[first, ply] = slot
        self._places.move_to_end((first, ply))
        self._used.add(slot)
        return slot

    def _free_slot(self) -> int:
        """A slot that is free, or that was not used for longest."""
        if len(self._places) + 1 >= self._most:
            oldest = next(iter(self._places))
            if self._places[oldest] not in self._used:
                return self._places.pop(oldest)
        slot = len(self._places) + 1
        if slot >= len(self._slots):
            longer = np.zeros(2 * len(self._slots), self.game.dtype)
            longer[: len(self._slots)] = self._slots
            self._slots = longer
        return slot

    def _walk(self, paths: Paths, states: np.ndarray) -> None:
        game = self.game
        arguments = (
            _shown(paths.bases), paths.rows, paths.moves, _shown(states),
            np.zeros(game.num_players), game.data,
        )  # fmt: skip
        _called(game, filling.walk, arguments)


def fill(
    game: Game, paths: Paths, positions: np.ndarray, tables: tuple[np.ndarray, np.ndarray]
) -> Walked:
    """Observations, policies and legal actions of positions that are reached by paths.

    Args:
        tables: the symmetries of actions and of cells.
    """
    count, shape = len(positions), game.observation_shape or ()
    num_cells = tables[1].shape[1]
    planes = np.empty((count, math.prod(shape) // num_cells, num_cells), np.float32)
    policy = np.zeros((count, game.num_actions), np.float32)
    mask = np.zeros((count, game.num_actions), np.bool_)
    windows, taken = np.zeros((count, 2), np.int64), np.zeros(count)
    scratch = np.zeros(shape, np.float32)
    arguments = (
        _shown(paths.bases), _shown(np.zeros(1, game.dtype)), paths.rows, paths.moves,
        np.ascontiguousarray(positions["policy_actions"], np.int32),
        np.ascontiguousarray(positions["policy_shares"], np.float32), *tables, scratch,
        scratch.reshape(planes.shape[1:]), planes, policy, mask, windows, taken,
        np.zeros(game.num_actions), action_array(game), np.zeros(game.num_players), game.data,
    )  # fmt: skip
    if _called(game, filling.fill_walked, arguments) < 0:
        raise wrong_legal(game)
    return Walked(planes, policy, mask, windows, taken)


def wrong_legal(game: Game) -> BrokenGame:
    """The error for a game whose `legal` returned a wrong number of actions."""
    return BrokenGame(
        f"legal of {game.name} is wrong in a state of the replay; run `uctree check` on the game "
        "to see why"
    )


# --- kernels -------------------------------------------------------------------------------------


def _shown(states: np.ndarray) -> Any:
    return StateViews(states) if interpreted() else states


def _called(game: Game, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a kernel returns, compiled for a game when it is first called."""
    known, key = table_of(game, "moves", 8), (function.__name__, interpreted())
    kernel: Kernel | None = known.get(key)
    if kernel is None or kernel.is_stale:
        label = f"{game.name}: {function.__name__}"
        kernel = compile_kernel(function, _bindings(game, function), arguments, label=label)
        known.put(key, kernel)
    with np.errstate(over="ignore"):
        return kernel.call(*arguments)


def _bindings(game: Game, function: Callable[..., Any]) -> dict[str, Any]:
    """What the kernel is bound to: steps are those of the game without a window, for speed."""
    view = game.view
    played = game if view is None else view.game
    listed = played if function is filling.first_wrong else game
    found = {
        "legal": bound_rule(listed, "legal"), "step": bound_rule(played, "step"),
        "observe": bound_rule(game, "observe"), "NUM_ACTIONS": listed.num_actions,
        "GUARD_AT": listed.num_actions, "move_window": filling.no_window,
        "read_window": filling.no_center, "put_window": filling.no_center,
        "reframed": filling.as_it_is,
    }  # fmt: skip
    if view is None:
        return found
    return found | {
        "move_window": view.center, "read_window": filling.read_center,
        "put_window": filling.put_center, "reframed": _reframing(view),
    }  # fmt: skip


def _reframing(view: Any) -> Callable[..., int]:
    """The function that gives the action of one window in another; NONE outside."""
    rows, cols, size = view.frame.rows, view.frame.cols, view.size
    num_local = size * size

    def reframed(action: int, windows: np.ndarray, row: int, root: int) -> int:
        if action >= num_local:
            return action
        cell = cell_at(action, windows[row, 0], windows[row, 1], rows, cols, size)
        return index_of(cell, windows[root, 0], windows[root, 1], cols, size)

    return reframed
