"""Small games whose actions are vectors."""

from __future__ import annotations

import numpy as np

import uctree
from uctree import games


def narrow_game():
    """Two plies of one player; the second must lie within the first, and has one coordinate."""
    dtype = np.dtype([("x", np.float64), ("ply", np.int8), ("to_play", np.int8)])

    def bounds(state, low, high):
        if state.ply == 0:
            return 2
        low[0], high[0] = -abs(state.x), abs(state.x)
        return 1

    def step(state, action, reward):
        if state.ply == 0:
            state.x = action[0]
            reward[0] -= action[1] ** 2
        else:
            reward[0] += action[0]
            state.to_play = uctree.OVER
        state.ply += 1

    return uctree.Game(
        dtype, None, step, num_players=1, action_space=uctree.Box(-1.0, 1.0, dim=2), bounds=bounds,
        max_plies=2, name="narrow",
    )  # fmt: skip


def sphere_game():
    """One player is paid the first coordinate of a direction."""
    dtype = np.dtype([("ply", np.int8), ("to_play", np.int8)])

    def step(state, action, reward):
        reward[0] += action[0]
        state.ply += 1
        state.to_play = uctree.OVER

    return uctree.Game(
        dtype, None, step, num_players=1, action_space=uctree.Sphere(3), max_plies=1, name="sphere"
    )


NARROW, SPHERE = narrow_game(), sphere_game()
LOSS, LOSS_3D = games.loss_game(), games.loss_game(3)
MASS = games.point_mass()
