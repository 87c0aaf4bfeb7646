"""Bins of predicted values and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.learn import diagnosis


def test_the_positions_of_one_game_do_not_make_an_interval_narrower():
    rng = np.random.default_rng(0)
    outcomes, edges = rng.choice([-1.0, 1.0], 20), np.array([-1.0, 1.0])

    def width(times):
        (row,) = diagnosis.reliability(
            np.zeros(20 * times), np.repeat(outcomes, times), np.repeat(np.arange(20), times), edges
        )
        low, high = row["outcome_interval"]
        assert low < row["outcome"] < high
        return high - low

    assert width(1) == pytest.approx(width(7))


def test_of_one_game_alone_no_interval_is_known():
    rows = diagnosis.reliability(
        np.array([0.2, 0.3]), np.array([1.0, 1.0]), np.zeros(2), np.array([-1.0, 1.0])
    )
    assert rows[0]["outcome_interval"] is None


def test_values_beyond_the_range_are_in_the_last_bin():
    edges = np.array([0.0, 1.0, 2.0])
    rows = diagnosis.reliability(np.array([-5.0, 7.0]), np.zeros(2), np.arange(2), edges)
    assert [(row["low"], row["positions"]) for row in rows] == [(0.0, 1), (1.0, 1)]
