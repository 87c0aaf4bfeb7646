"""Evaluated leaves: the priors of their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import uctree
from uctree import games
from uctree.errors import BrokenGame
from uctree.kernels.evaluation import LEAST, num_reaching, threshold, weigh

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_weights_are_a_softmax_before_its_division():
    row, weights = np.array([0.0, math.log(3.0), -np.inf]), np.zeros(3)
    total = weigh(row, 3, math.log(3.0), weights)
    np.testing.assert_allclose(weights / total, [0.25, 0.75, 0.0], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_a_threshold_lets_pass_what_is_wanted_and_few_more(scale):
    row = (scale * np.random.default_rng(0).normal(size=400)).astype(np.float32)
    for wanted in (1, 10, 100, 399):
        reached = num_reaching(row, 400, threshold(row, 400, float(row.max()), wanted))
        assert wanted <= reached <= wanted + wanted // 4 + 8
    assert num_reaching(row, 400, threshold(row, 400, float(row.max()), 0)) == 0


def test_a_threshold_keeps_all_if_few_cannot_be_told_apart():
    row = np.array([0.0, 0.0, 0.0, LEAST, LEAST])
    assert num_reaching(row, 5, threshold(row, 5, 0.0, 2)) == 3  # equal ones stay together
    assert num_reaching(row, 5, threshold(row, 5, 0.0, 4)) == 5


def leaning(state, values, logits):
    logits[4] = math.log(2.0)


def test_priors_of_illegal_actions_are_left_out():
    game = games.tic_tac_toe()
    edges = uctree.search(
        game, game.play([0, 1]), num_simulations=1, evaluator=leaning, check=False
    ).edges
    assert edges["action"].tolist() == [2, 3, 4, 5, 6, 7, 8]
    np.testing.assert_allclose(edges["prior"], [0.125, 0.125, 0.25, 0.125, 0.125, 0.125, 0.125])


def lost(state, values, logits):
    logits[3] = math.nan


def test_a_log_prior_that_is_no_number_is_refused():
    with pytest.raises(BrokenGame, match="not a finite number"):
        uctree.search(games.tic_tac_toe(), num_simulations=1, evaluator=lost, check=False)
