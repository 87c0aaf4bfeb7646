"""Random worlds as tables: all actions are legal everywhere, so a model of them is exact."""

from __future__ import annotations

import numpy as np

import uctree
from tests.exact_model import relative, seats_on
from uctree.engine.latent import Answers, Roots

PLACE = np.dtype([("place", np.int32), ("ply", np.int32), ("to_play", np.int8)])


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
            data=(
                self.next, self.rewards, self.to_play, self.over, np.array([rotates]), self.allowed,
            ),
            observe=_observe, observation_shape=(1,),
        )  # fmt: skip

    def judge(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log-priors and values of places, for `evaluators.python`."""
        places = states["place"]
        return self.logits[places], self.values[places]

    # The same as a learned model, whose hidden state is that of the game.

    def begin(self, states: np.ndarray) -> Roots:
        places, players = states["place"], states["to_play"]
        legal = np.tile(self.allowed, (len(states), 1))
        return Roots(states, legal, self.logits[places], relative(self.values[places], players))

    def step(self, hidden: np.ndarray, actions: np.ndarray) -> Answers:
        before, players = hidden["place"], hidden["to_play"]
        after = np.zeros(len(hidden), PLACE)
        after["place"] = places = self.next[before, actions]
        movers = (players + 1) % self.num_players if self.rotates else self.to_play[places]
        after["to_play"] = np.where(self.over[places], uctree.OVER, movers)
        # Without ends and other orders it leaves the turns to the kernel.
        turns = seats_on(players, after["to_play"], self.num_players)
        return Answers(
            after, relative(self.rewards[before, actions], players), self.logits[places],
            relative(self.values[places], after["to_play"]),
            None if self.rotates and not self.over.any() else turns,
        )  # fmt: skip


def _legal(state, actions, data):
    """All actions, but in the first state of an episode only those that are allowed there."""
    count = 0
    for action in range(data[0].shape[1]):
        if state.ply > 0 or data[5][action]:
            actions[count] = action
            count += 1
    return count


def _step(state, action, reward, data):
    for player in range(reward.shape[0]):
        reward[player] += data[1][state.place, action, player]
    state.place = data[0][state.place, action]
    state.ply += 1
    state.to_play = (state.to_play + 1) % reward.shape[0] if data[4][0] else data[2][state.place]
    if data[3][state.place]:
        state.to_play = uctree.OVER


def _observe(state, player, planes):
    planes[0] = state.place
