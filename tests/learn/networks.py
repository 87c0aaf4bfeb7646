"""Networks in torch that several tests share."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree.learn import network  # noqa: E402


class Own(torch.nn.Module):
    """A custom module for tic-tac-toe."""

    def __init__(self, num_actions=9, num_players=2):
        super().__init__()
        self.policy = torch.nn.Linear(18, num_actions)
        self.value = torch.nn.Linear(18, num_players)

    def forward(self, observations):
        flat = observations.flatten(1)
        return self.policy(flat), self.value(flat)


def shaken(module, seed=1, size=0.1):
    """The module with random numbers added to its weights: the last layers begin at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in module.parameters():
            weights += size * torch.randn(weights.shape, generator=generator)
    return module


def small(game, seed=1):
    """A network with random weights, whose batch norms have seen observations."""
    module = shaken(network.default_network(game, width=16, depth=2), seed)
    module(torch.from_numpy(random_planes(game, 32)))
    return module.eval()


def random_planes(game, count, seed=1):
    shape = (count, *game.observation_shape)
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.float32)
