"""Networks in torch that several tests share."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")


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
