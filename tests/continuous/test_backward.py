"""Backward induction: equilibria and plans without a tree."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.continuous.vector_games import LOSS, LOSS_3D, MASS, SPHERE
from uctree import continuous, games
from uctree.games.loss_game import equilibrium


def test_low_discrepancy_fills_a_box_evenly():
    steps = np.array(continuous.generators(2))
    points = (np.arange(1, 257)[:, None] * steps) % 1.0
    counts, *_ = np.histogram2d(*points.T, bins=8, range=[(0, 1), (0, 1)])
    assert counts.min() >= 2
    assert counts.max() <= 6


@pytest.mark.parametrize("game", [LOSS, LOSS_3D], ids=["1d", "3d"])
def test_backward_induction_finds_the_equilibrium_of_the_loss_game(game):
    found = continuous.solve_backward(game)
    sums = [float(action.sum()) for action in found.actions]
    np.testing.assert_allclose(sums, equilibrium(), atol=1e-9)
    paid = LOSS.replay(equilibrium()).returns
    np.testing.assert_allclose(found.returns, paid, atol=1e-9)
    assert found.tolerance < 1e-8


def test_backward_induction_plans_for_one_player_as_the_riccati_equation_does():
    """The best pushes of a linear system with quadratic costs are linear in the state."""
    a, b = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[0.25], [0.5]])
    cost, effort = np.diag([1.0, 0.0]), np.array([[0.1]])
    value, gains = np.diag([1.0, 1.0]), []
    for _ in range(6):
        gain = np.linalg.solve(effort + b.T @ value @ b, b.T @ value @ a)
        gains.append(gain)
        value = a.T @ value @ a - a.T @ value @ b @ gain + cost
    state, pushes = np.array([[1.0], [0.0]]), []
    for gain in reversed(gains):
        pushes.append(float(-(gain @ state)[0, 0]))
        state = a @ state + b * pushes[-1]
    found = continuous.solve_backward(MASS)
    assert max(map(abs, pushes)) < 2.0
    np.testing.assert_allclose(np.concatenate(found.actions), pushes, atol=1e-5)


def test_backward_induction_sees_a_best_reply_that_jumps():
    found = continuous.solve_backward(games.leap())
    x, y = (float(action[0]) for action in found.actions)
    assert y == 1.0
    assert -64 * x * (x * x - 0.25) == pytest.approx(0.3, abs=1e-6)
    assert x > 0.4


def test_backward_induction_refuses_what_is_hopeless():
    long = games.point_mass(stages=30)
    assert continuous.solve_backward(long).returns[0] < 0  # one player: one decision

    def step(state, action, reward):
        state.ply += 1
        state.to_play = state.ply % 2
        if state.ply == 12:
            state.to_play = uctree.OVER

    game = uctree.Game(
        SPHERE.dtype, None, step, num_players=2, action_space=uctree.Box(0, 1), max_plies=12
    )
    with pytest.raises(uctree.UctreeError, match="payoffs here"):
        continuous.solve_backward(game)
    with pytest.raises(TypeError, match=r"uctree\.solve"):
        continuous.solve_backward(games.nim())
