"""Models and games that tests of learned models share."""

from __future__ import annotations

import numpy as np
import torch

from uctree import games

THREE = games.n_in_a_row(rows=5, cols=5, length=4, num_players=3)


def observations(game, n=3):
    return np.random.default_rng(0).random((n, *game.observation_shape), np.float32)


class Own(torch.nn.Module):
    """The smallest model of three players; it may return something wrong."""

    def __init__(self, values=3, fails=False):
        super().__init__()
        self.layer, self.values, self.fails = torch.nn.Linear(75, 4), values, fails

    def initial(self, observations):
        hidden = self.layer(observations.flatten(1))
        return hidden, hidden.new_zeros(len(hidden), 25), hidden.new_zeros(len(hidden), 3)

    def recurrent(self, hidden, actions):
        if self.fails:
            raise RuntimeError("no")
        n = len(hidden)
        rewards, values = hidden.new_zeros(n, 3), hidden.new_zeros(n, self.values)
        return hidden, rewards, hidden.new_zeros(n, 25), values
