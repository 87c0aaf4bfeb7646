"""The kernels of batches, on what no batch shows by itself."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.engine.compile import bind
from uctree.learn import filling
from uctree.learn.filling import NONE, fill_policy

pytestmark = pytest.mark.quick


def filled(listed, shares, legal, moved=0):
    """The policy of one row over 6 actions in a window that is `moved` actions further on."""

    def reframed(action, windows, row, root):
        return action - moved if action >= moved else NONE

    policy, mask = np.zeros((1, 6)), np.zeros((1, 6), bool)
    taken = bind(fill_policy, {"reframed": reframed})(
        0, 0, 0, len(legal), np.array([listed]), np.array([shares]), np.arange(6)[None], policy,
        mask, np.zeros((1, 2)), np.zeros(6), np.array(legal),
    )  # fmt: skip
    return policy[0].tolist(), np.flatnonzero(mask[0]).tolist(), taken


def test_what_a_policy_leaves_out_is_spread_over_the_other_legal_actions():
    policy, legal, taken = filled([2, 5], [0.5, 0.3], legal=[0, 2, 3, 5])
    assert policy == pytest.approx([0.1, 0, 0.5, 0.1, 0, 0.3])
    assert (legal, taken) == ([0, 2, 3, 5], pytest.approx(1.0))


def test_rounding_is_not_spread():
    policy, _, _ = filled([2, NONE], [0.9995, 0.0], legal=[0, 2])
    assert policy == [0, 0, 1, 0, 0, 0]


def test_what_is_outside_the_window_is_left_out_and_the_rest_adds_up_to_one():
    policy, legal, taken = filled([1, 4], [0.5, 0.25], legal=[1, 2, 4], moved=2)
    assert policy == pytest.approx([0.5, 0, 0.5, 0, 0, 0])
    assert (legal, taken) == ([0, 2], pytest.approx(0.5))


def test_a_position_without_a_policy_has_none():
    policy, legal, taken = filled([NONE, NONE], [0.0, 0.0], legal=[1, 2])
    assert (policy, legal, taken) == ([0.0] * 6, [1, 2], 0.0)


def test_the_first_move_that_is_not_legal_is_found():
    state = np.zeros(1, [("left", int), ("to_play", int)]).view(np.recarray)

    def step(state, action, reward, data):
        state.left -= action
        state.to_play = 1 - state.to_play

    def legal(state, actions, data):
        count = min(2, state.left)
        actions[:count] = range(1, count + 1)
        return count

    find = bind(filling.first_wrong, {
        "step": step, "legal": legal, "NUM_ACTIONS": 3, "GUARD_AT": 3,
    })  # fmt: skip

    def first_wrong(moves, players):
        state.left, state.to_play = 4, 0
        actions = np.full(8, filling.GUARD)
        return find(state, np.array(moves), np.array(players), actions, np.zeros(2), ())

    assert first_wrong([1, 2, 1], [0, 1, 0]) == -1
    assert first_wrong([1, 2, 2], [0, 1, 0]) == 2
    assert first_wrong([1, 2, 1], [0, 0, 1]) == 1
    assert first_wrong([1, 2, NONE], [0, 1, 0]) == -1
    assert first_wrong([1, NONE, 1], [0, 1, 1]) == 1  # only behind the last action
    assert first_wrong([2, 2, 1], [0, 1, 0]) == 2  # nothing is legal any more
