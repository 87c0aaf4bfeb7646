"""A model that knows a game exactly: its hidden states are the game's states."""

from __future__ import annotations

from typing import Any

import numpy as np

import uctree
from uctree import evaluators
from uctree.engine.driver import BatchedSearch
from uctree.engine.latent import Answers


class ExactModel:
    """Answers by the rules of a game; `judge(state, values, logits, data)` evaluates a state.

    All actions must be legal below the root.
    """

    def __init__(self, game: uctree.Game, judge: Any) -> None:
        self.game, self.judge = game, judge

    def reserve(self, num_trees: int, num_states: int) -> None:
        self.states = np.zeros((num_trees, num_states), self.game.dtype)

    def begin(self, trees: Any, states: Any) -> Any:
        legal = np.zeros((len(states), self.game.num_actions), bool)
        for row, state in enumerate(states):
            legal[row, self.game.legal(self.game.copy(state))] = True
        self.states[trees, 0] = states
        return legal, *self._judged(states)

    def step(self, trees: Any, parents: Any, actions: Any, to_play: Any, rows: Any) -> Answers:
        steps = [
            self.game.step(self.game.copy(state), int(action))
            for state, action in zip(self.states[trees, parents], actions, strict=True)
        ]
        after = np.array([state for state, _ in steps], self.game.dtype)
        self.states[trees, rows] = after
        logits, values = self._judged(after)
        return Answers(logits, values, np.array([paid for _, paid in steps]), after["to_play"])

    def _judged(self, states: Any) -> Any:
        logits = np.zeros((len(states), self.game.num_actions))
        values = np.zeros((len(states), self.game.num_players))
        for row, state in enumerate(states):
            if state["to_play"] >= 0:
                record = uctree.game.StateView(self.game.copy(state))
                self.judge(record, values[row], logits[row], self.game.data)
        return logits, values


def root_in_model(game: uctree.Game, state: Any, judge: Any, num_simulations: int, **options: Any):
    """The root of a search in the exact model of a game, and the search."""
    evaluator = evaluators.model(ExactModel(game, judge), number=np.float64)
    batch = BatchedSearch(game, 1, evaluator=evaluator, check=False, **options)
    batch.reset([0], [state], num_simulations=num_simulations)
    batch.run()
    return batch.root(0), batch
