"""A game whose best reply jumps: the second player's reply flips when x crosses zero."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Box, Game


def leap() -> Game:
    """Two players choose x and y in [-1, 1], one after the other.

    The second player gets x·y + y²/4, which is largest at y = 1 for x > 0 and at y = -1 for x < 0.
    The payoff of the first player has peaks near x = -1/2 and x = 1/2. The first peak is higher for
    a fixed y, the second one is better after the best reply.
    """
    position = np.dtype([("x", np.float64), ("ply", np.int8), ("to_play", np.int8)])

    def step(state, action, reward):
        if state.ply == 0:
            state.x = action[0]
            state.to_play = 1
        else:
            x, y = state.x, action[0]
            dip = x * x - 0.25
            reward[0] += 1 - 16 * dip * dip - 0.3 * x + 0.5 * y
            reward[1] += x * y + 0.25 * y * y
            state.to_play = OVER
        state.ply += 1

    def show(state):
        return f"x: {state.x:.6g}" if state.ply else "x: -"

    return Game(
        position,
        None,
        step,
        num_players=2,
        action_space=Box(-1.0, 1.0),
        name="leap",
        max_plies=2,
        show=show,
    )
