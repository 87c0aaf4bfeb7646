"""Rules that are called one at a time as machine code, for games with large states.

`game.step` and `game.legal` are plain Python, which shows a mistake in the rules where it happens.
On a board of 100 x 100 that takes tens of milliseconds an action, and matches and self-play need
thousands of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.engine.bindings import action_array, bound_rule
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.recent import table_of
from uctree.errors import BrokenGame
from uctree.game import Game
from uctree.kernels.binding import UNBOUND
from uctree.kernels.status import GUARD

# Bound when a kernel is composed.
legal = step = UNBOUND

LARGE_STATE = 4096  # bytes of a state from which on its rules are slow in plain Python


def with_machine_code(game: Game) -> Game:
    """The game, whose `step` and `legal` run as machine code if its states are large."""
    is_large = game.dtype.itemsize > LARGE_STATE and game.environment is None
    if not is_large or game.is_continuous or game.stepper is not None or interpreted():
        return game
    made = object.__new__(Game)
    made.__dict__.update(game.__dict__)
    made.stepper = _Stepper(game)
    return made


class _Stepper:
    """What `Game.stepper` is: two rules as machine code, compiled when they are first needed."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.guard_at = max(game.num_actions, game.max_outcomes)

    def legal(self, state: np.record) -> tuple[np.ndarray, int]:
        """The actions that `legal` writes, and what it returns."""
        listed = action_array(self.game)
        count = int(self._call(list_legal, "legal", self._copied(state), listed, self.game.data))
        if listed[self.guard_at] != GUARD:
            raise BrokenGame(f"legal of {self.game.name} wrote more than {self.guard_at} actions")
        return listed[: self.game.num_actions], count

    def step(self, state: np.record, action: int, reward: np.ndarray) -> np.record:
        """The state after an action, whose reward is added."""
        states = self._copied(state)
        self._call(take_step, "step", states, action, reward, self.game.data)
        after: np.record = states.view(np.dtype((np.record, self.game.dtype)))[0]
        return after

    def _copied(self, state: np.record) -> np.ndarray:
        states = np.zeros(1, self.game.dtype)
        states[0] = state
        return states

    def _call(self, function: Any, rule: str, *arguments: Any) -> Any:
        known = table_of(self.game, "stepping", 2)
        kernel: Kernel | None = known.get(rule)
        if kernel is None or kernel.is_stale:
            bound = {rule: bound_rule(self.game, rule)}
            label = f"{self.game.name}: {rule}"
            kernel = compile_kernel(function, bound, arguments, label=label)
            known.put(rule, kernel)
        return kernel.call(*arguments)


def list_legal(states: Any, actions: np.ndarray, data: Any) -> int:
    """Write the legal actions of the first state; returns how many."""
    return legal(states[0], actions, data)


def take_step(states: Any, action: int, reward: np.ndarray, data: Any) -> None:
    """Take an action in the first state."""
    step(states[0], np.int64(action), reward, data)
