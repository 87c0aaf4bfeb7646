"""Three players, one vector each: payoffs, replies and the equilibrium of foresight."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import games
from uctree.games.loss_game import (
    BOUND,
    CONCAVE_BELOW,
    equilibrium,
    own_gradient,
    payoffs,
    reply_2,
    reply_3,
)

pytestmark = pytest.mark.quick

GRID = np.linspace(-BOUND, BOUND, 20_001)


def paid(x1, x2, x3):
    reward = np.zeros((3, *np.shape(x1 + x2 + x3)))
    payoffs(x1, x2, x3, reward)
    return reward


def foreseen(x1, x2):
    """What all are paid if the third player replies best."""
    return paid(x1, x2, reply_3(x2))


@pytest.mark.parametrize("x2", [-4.0, 0.0, 1.5])
def test_the_reply_of_the_third_player_is_the_best_of_a_grid(x2):
    best = GRID[paid(0.0, x2, GRID)[2].argmax()]
    assert reply_3(x2) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("x1", [-3.0, -0.2, 0.1, CONCAVE_BELOW + 0.1, 4.0])
def test_the_reply_of_the_second_player_is_the_best_of_a_grid(x1):
    best = GRID[foreseen(x1, GRID)[1].argmax()]
    assert reply_2(x1) == pytest.approx(best, abs=1e-3)


def test_from_the_saturation_on_the_second_player_goes_to_its_bound():
    saturation = 3 / 742  # where the vertex of its payoff reaches the bound
    assert reply_2(saturation + 1e-6) == BOUND
    assert reply_2(saturation - 1e-3) < BOUND


def test_at_the_equilibrium_nobody_gains_if_the_others_reply():
    x1, x2, x3 = equilibrium()
    assert (x2, x3) == (reply_2(x1), reply_3(x2))
    replies = np.array([reply_2(each) for each in GRID])
    first = paid(GRID, replies, reply_3(replies))[0]
    assert first.max() <= paid(x1, x2, x3)[0] + 1e-6


def test_the_gradient_is_that_of_the_payoffs():
    x, step, found = np.array([0.3, -1.2, 2.0]), 1e-6, np.zeros(3)
    own_gradient(*x, found)
    for player in range(3):
        shift = step * np.eye(3)[player]
        slope = (paid(*(x + shift))[player] - paid(*(x - shift))[player]) / (2 * step)
        assert found[player] == pytest.approx(slope, rel=1e-6)


def test_only_the_sums_of_coordinates_count():
    plane, line = games.loss_game(3), games.loss_game()
    actions = [[1.0, -2.0, 0.5], [0.25, 0.0, 0.0], [2.0, 1.0, -1.0]]
    sums = [[sum(action)] for action in actions]
    assert plane.replay(actions).returns == pytest.approx(line.replay(sums).returns)


@pytest.mark.parametrize("dim", [0, 1001, 1.5])
def test_a_wrong_dimension_is_refused(dim):
    with pytest.raises(ValueError, match="dim must be a whole number from 1 to 1000; got"):
        games.loss_game(dim)
