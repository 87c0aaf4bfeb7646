"""Three players choose one vector each, one after the other; payoffs depend on all three.

Only the sums x1, x2, x3 of the coordinates matter. There is one subgame perfect equilibrium, in
which everyone foresees the later replies, and there are three other equilibria, in which everyone
takes the actions of the others as fixed. A player who ascends its payoff without foresight ends in
one of these three.
"""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Box, Game

BOUND = 5.0


def loss_game(dim: int = 1) -> Game:
    """Three players, each with one action in [-5, 5]^dim; payoffs at the end."""
    if not isinstance(dim, (int, np.integer)) or not 1 <= dim <= 1000:
        raise ValueError(f"dim must be a whole number from 1 to 1000; got {dim!r}")
    position = np.dtype([("x", np.float64, (3, dim)), ("ply", np.int8), ("to_play", np.int8)])

    def step(state, action, reward):
        for j in range(dim):
            state.x[state.ply, j] = action[j]
        state.ply += 1
        state.to_play = state.ply
        if state.ply == 3:
            state.to_play = OVER
            x1 = x2 = x3 = 0.0
            for j in range(dim):
                x1 += state.x[0, j]
                x2 += state.x[1, j]
                x3 += state.x[2, j]
            payoffs(x1, x2, x3, reward)

    def show(state):
        named = [", ".join(f"{number:.6g}" for number in row) for row in state.x]
        return "\n".join(f"x{i + 1}: {named[i] if i < state.ply else '-'}" for i in range(3))

    return Game(
        position,
        None,
        step,
        num_players=3,
        action_space=Box(-BOUND, BOUND, dim=dim),
        name="loss_game",
        max_plies=3,
        show=show,
    )


def payoffs(x1, x2, x3, reward):
    """Add what three sums pay to `reward`."""
    reward[0] += -7 * x1**2 + 9 * x1 * x3 + x1 - x3
    reward[1] += (
        -2 * x2**2 - 4 * x2 * x3 - 10 * x1**2 + 2 * x1 * x3 - 3 * x3**2
        + 4 * x2 + 7 * x1 - 8 * x3 - 8 * x1 * x2 * x3
    )  # fmt: skip
    reward[2] += -10 * x3**2 - 9 * x2 * x3 + 9 * x2**2 - 5 * x3 - 2 * x2


def reply_3(x2):
    """The best reply of the third player."""
    return -(9 * x2 + 5) / 20


def reply_2(x1, bound=BOUND):
    """The best action of the second player, who foresees `reply_3`; sums up to `bound`."""
    if x1 >= CONCAVE_BELOW:
        return bound  # the payoff is convex in x2, and its right end is higher
    return min(bound, 5 * (44 * x1 + 317) / (323 - 1440 * x1))


CONCAVE_BELOW = 323 / 1440  # x1 up to which the second player's payoff has a peak


def equilibrium():
    """The sums x1, x2, x3 of the subgame perfect equilibrium.

    x1 is the only real root of a cubic: the derivative of the first player's payoff with the
    replies of the others inserted.
    """
    x1 = -0.2
    for _ in range(50):
        value = ((7257600 * x1 - 2928600) * x1 + 218348) * x1 + 286193
        x1 -= value / ((3 * 7257600 * x1 - 2 * 2928600) * x1 + 218348)
    x2 = reply_2(x1)
    return x1, x2, reply_3(x2)


def own_gradient(x1, x2, x3, gradient):
    """Write the derivative of each player's payoff with respect to its own sum."""
    gradient[0] = -14 * x1 + 9 * x3 + 1
    gradient[1] = -4 * x2 - 4 * x3 + 4 - 8 * x1 * x3
    gradient[2] = -20 * x3 - 9 * x2 - 5
