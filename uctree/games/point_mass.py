"""Bring a mass on a line to rest at the origin by a few pushes: planning for one player."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Box, Game

EFFORT = 0.1  # what a push of 1 costs
STRONGEST = 2.0
MOST_STAGES = 127  # the largest number that the field `ply` holds


def point_mass(stages: int = 6) -> Game:
    """One player; a stage costs position² and the push, the last one also the speed squared.

    The best pushes are a linear function of position and speed as long as none of them exceeds 2,
    so they are known exactly.
    """
    if not isinstance(stages, (int, np.integer)) or not 1 <= stages <= MOST_STAGES:
        raise ValueError(f"stages must be a whole number from 1 to {MOST_STAGES}; got {stages!r}")
    position = np.dtype(
        [("x", np.float64), ("v", np.float64), ("ply", np.int8), ("to_play", np.int8)]
    )

    def start(state):
        state.x = 1.0

    def step(state, action, reward):
        force = action[0]
        state.v += 0.5 * force
        state.x += 0.5 * state.v
        state.ply += 1
        reward[0] -= state.x**2 + EFFORT * force**2
        if state.ply == stages:
            reward[0] -= state.v**2
            state.to_play = OVER

    def show(state):
        return f"position {state.x:.4g}, speed {state.v:.4g}, {stages - state.ply} pushes left"

    return Game(
        position,
        None,
        step,
        num_players=1,
        action_space=Box(-STRONGEST, STRONGEST),
        name="point_mass",
        start=start,
        max_plies=stages,
        show=show,
    )
