"""A model that knows a game exactly: its hidden states are the game's states."""

from __future__ import annotations

from typing import Any

import numpy as np

import uctree
from uctree import evaluators
from uctree.engine.driver import BatchedSearch
from uctree.engine.latent import Answers, Roots


class ExactModel:
    """Answers by the rules of a game; `judge(state, values, logits, data)` evaluates a state.

    All actions must be legal below the root.
    """

    def __init__(self, game: uctree.Game, judge: Any) -> None:
        self.game, self.judge = game, judge

    def begin(self, states: Any) -> Roots:
        legal = np.zeros((len(states), self.game.num_actions), bool)
        for row, state in enumerate(states):
            legal[row, self.game.legal(self.game.copy(state))] = True
        return Roots(states, legal, *self._judged(states))

    def step(self, hidden: Any, actions: Any) -> Answers:
        steps = [
            self.game.step(self.game.copy(state), int(action))
            for state, action in zip(hidden, actions, strict=True)
        ]
        after = np.array([state for state, _ in steps], self.game.dtype)
        rewards = relative(np.array([paid for _, paid in steps]), hidden["to_play"])
        turns = seats_on(hidden["to_play"], after["to_play"], self.game.num_players)
        return Answers(after, rewards, *self._judged(after), turns)

    def _judged(self, states: Any) -> Any:
        logits = np.zeros((len(states), self.game.num_actions))
        values = np.zeros((len(states), self.game.num_players))
        for row, state in enumerate(states):
            if state["to_play"] >= 0:
                record = uctree.game.StateView(self.game.copy(state))
                self.judge(record, values[row], logits[row], self.game.data)
        return logits, relative(values, states["to_play"])


def relative(vectors: np.ndarray, players: np.ndarray) -> np.ndarray:
    """Vectors in the order of the players as each of these players sees them: me, next, ..."""
    return np.array([np.roll(each, -p) for each, p in zip(vectors, players, strict=True)])


def seats_on(before: np.ndarray, after: np.ndarray, num_players: int) -> np.ndarray:
    """How many seats on the next player sits, or the number of players: OVER."""
    return np.where(after < 0, num_players, (after - before) % num_players)


def root_in_model(game: uctree.Game, state: Any, judge: Any, num_simulations: int, **options: Any):
    """The root of a search in the exact model of a game, and the search."""
    evaluator = evaluators.model(ExactModel(game, judge), number=np.float64)
    batch = BatchedSearch(game, 1, evaluator=evaluator, check=False, **options)
    batch.reset([0], [state], num_simulations=num_simulations)
    batch.run()
    return batch.root(0), batch
