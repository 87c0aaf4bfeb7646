"""Random worlds as tables: all actions are legal everywhere, so a model of them is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

import uctree
from uctree.engine.latent import Answers

PLACE = [("place", np.int32), ("to_play", np.int8)]


class TableWorld:
    """A world of places: where each action leads, what it pays, who moves there, what it is worth.

    It is a game for compiled searches, an evaluator of it, and a model for searches in a learned
    one. All numbers are multiples of 1/16, so that sums do not depend on their order.
    """

    def __init__(
        self, seed: int, num_players: int, num_actions: int = 4, num_places: int = 40, *,
        discount: float = 1.0, rotates: bool = False, zero_sum: bool = False, ends: float = 0.2,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        shape = num_places, num_actions
        self.next = rng.integers(num_places, size=shape).astype(np.int32)
        self.rewards = rng.integers(-8, 9, size=(*shape, num_players)) / 16
        self.values = rng.integers(-16, 17, size=(num_places, num_players)) / 16
        self.logits = rng.normal(size=shape)
        if zero_sum:
            self.rewards[..., 1], self.values[..., 1] = -self.rewards[..., 0], -self.values[..., 0]
        self.to_play = rng.integers(num_players, size=num_places).astype(np.int8)
        self.over = rng.random(num_places) < ends
        self.over[0] = False
        self.rotates, self.num_players = rotates, num_players
        self.allowed = np.ones(num_actions, bool)
        self.game = uctree.Game(
            PLACE, _legal, _step, num_players=num_players, num_actions=num_actions,
            discount=discount, zero_sum=zero_sum, name="table world",
            data=(self.next, self.rewards, self.to_play, self.over, np.array([rotates])),
            observe=_observe, observation_shape=(1,),
        )  # fmt: skip

    def judge(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log-priors and values of places, for `evaluators.python`."""
        places = states["place"]
        return self.logits[places], self.values[places]

    # The same as a learned model, whose hidden state is the place.

    def reserve(self, num_trees: int, num_states: int) -> None:
        self.places = np.zeros((num_trees, num_states), np.int64)

    def begin(self, trees: Any, states: np.ndarray) -> Any:
        self.places[trees, 0] = states["place"]
        legal = np.tile(self.allowed, (len(states), 1))
        return legal, self.logits[states["place"]], self.values[states["place"]]

    def step(self, trees: Any, parents: Any, actions: Any, to_play: Any, rows: Any) -> Answers:
        before = self.places[trees, parents]
        after = self.places[trees, rows] = self.next[before, actions]
        movers = (to_play + 1) % self.num_players if self.rotates else self.to_play[after]
        movers = np.where(self.over[after], uctree.OVER, movers)
        return Answers(
            self.logits[after], self.values[after], self.rewards[before, actions], movers
        )


def _legal(state, actions, data):
    for action in range(data[0].shape[1]):
        actions[action] = action
    return data[0].shape[1]


def _step(state, action, reward, data):
    for player in range(reward.shape[0]):
        reward[player] += data[1][state.place, action, player]
    state.place = data[0][state.place, action]
    state.to_play = (state.to_play + 1) % reward.shape[0] if data[4][0] else data[2][state.place]
    if data[3][state.place]:
        state.to_play = uctree.OVER


def _observe(state, player, planes):
    planes[0] = state.place
