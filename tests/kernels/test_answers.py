"""States that Python knows, as kernels see them."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.kernels.answers import STATE, list_numbers, no_outcomes

pytestmark = pytest.mark.quick


def test_actions_are_the_numbers_below_the_count_of_the_state():
    state = np.zeros(1, STATE).view(np.recarray)[0]
    state.count = 3
    actions = np.full(5, -1)
    assert list_numbers(state, actions, None) == 3
    assert actions.tolist() == [0, 1, 2, -1, -1]


def test_outcomes_are_left_to_the_answers():
    outcomes, probabilities = np.full(2, -1), np.full(2, -1.0)
    assert no_outcomes(None, outcomes, probabilities, None) == 0
    assert (outcomes.tolist(), probabilities.tolist()) == ([-1, -1], [-1.0, -1.0])
