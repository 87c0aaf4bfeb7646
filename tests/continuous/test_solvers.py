"""Solvers without a tree: where own gradients and local max^n end."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.continuous.vector_games import LOSS, LOSS_3D
from uctree import continuous, refine
from uctree.games.loss_game import equilibrium, own_gradient

pytestmark = pytest.mark.quick


def test_own_gradient_ascent_leaves_the_equilibrium_of_foresight():
    found = continuous.own_gradient_ascent(LOSS, equilibrium(), rate=0.01, num_steps=5000)
    ended = np.concatenate(found.actions)
    np.testing.assert_allclose(ended, (-0.4155751302, 1.1279140305, -0.7575613137), atol=1e-6)
    assert np.abs(ended - equilibrium()).max() > 0.5


def test_a_gradient_that_is_given_does_what_differences_do():
    def gradient(line, slopes):
        own_gradient(line[0, 0], line[1, 0], line[2, 0], slopes[:, 0])

    start = [0.5, -1.0, 2.0]
    by_differences = continuous.own_gradient_ascent(LOSS, start, rate=0.001, num_steps=50)
    given = continuous.own_gradient_ascent(LOSS, start, rate=0.001, num_steps=50, gradient=gradient)
    np.testing.assert_allclose(given.actions, by_differences.actions, atol=1e-7)
    assert given.evaluations < by_differences.evaluations


def test_local_max_n_by_steps_alone_leaves_the_equilibrium_of_foresight():
    """A reply to a step is less than half a candidate's step, so nobody sees it coming."""
    found = continuous.local_maxn(
        LOSS, equilibrium(), step=1e-4, decay=1.0, axes=True, num_steps=3000
    )
    assert np.abs(np.concatenate(found.actions) - equilibrium()).max() > 0.1


def test_local_max_n_with_peaks_comes_to_the_equilibrium_of_foresight():
    stuck = (-0.4155751302, 1.1279140305, -0.7575613137)  # where own gradients end
    found = continuous.local_maxn(LOSS, stuck, peaks=True, decay=0.9, num_steps=80)
    np.testing.assert_allclose(np.concatenate(found.actions), equilibrium(), atol=1e-3)


def test_directions_uphill_lead_to_the_equilibrium_of_foresight_in_three_dimensions():
    """Steps along a random direction are often cut off by a box, those along a slope seldom."""
    for seed in range(4):
        found = continuous.local_maxn(
            LOSS_3D, step=0.1, decay=0.95, peaks=True, uphill=1.0, num_steps=150, seed=seed
        )
        np.testing.assert_allclose([a.sum() for a in found.actions], equilibrium(), atol=1e-4)


def test_solvers_without_a_tree_run_as_plain_python(monkeypatch):
    start = [0.5, -1.0, 2.0]
    compiled = continuous.local_maxn(LOSS, start, peaks=True, num_steps=3)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plain = continuous.local_maxn(LOSS, start, peaks=True, num_steps=3)
    np.testing.assert_allclose(plain.actions, compiled.actions, rtol=1e-9)


def test_a_line_needs_to_know_how_long_it_may_be():
    game = uctree.Game(
        LOSS.dtype, None, LOSS.rules.step, num_players=3, action_space=LOSS.action_space
    )
    with pytest.raises(uctree.BrokenGame, match="max_plies"):
        continuous.own_gradient_ascent(game)
    with pytest.raises(uctree.UctreeError, match="max_plies"):
        continuous.solve_backward(game)
    assert refine.best_replies().peaks
