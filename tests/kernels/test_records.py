"""The record of an edge: components of values, and blocks of edges."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.engine.compile import bind
from uctree.kernels import records

pytestmark = pytest.mark.quick


def test_a_zero_sum_game_keeps_one_component():
    component = bind(records.component, {"ZERO_SUM": True})
    assert [component(np.array([0.5]), player) for player in (0, 1)] == [0.5, -0.5]
    component = bind(records.component, {"ZERO_SUM": False})
    assert component(np.array([0.5, 2.0, 3.0]), 2) == 3.0


def test_in_paranoid_search_the_others_want_what_is_worst_for_the_root():
    head = np.zeros(1, [("root_player", int)]).view(np.recarray)[0]
    head.root_player = 1
    value_for = bind(records.value_for, {"PARANOID": True, "ZERO_SUM": False})
    kept = np.array([0.5, 2.0, 3.0])
    assert [value_for(head, kept, player) for player in range(3)] == [-2.0, 2.0, -2.0]


@pytest.mark.parametrize("count", [1, records.LAZY_ABOVE, records.LAZY_ABOVE + 1, 100, 361])
def test_blocks_double_until_they_hold_all_actions(count):
    sizes, num_edges = [], 0
    while num_edges < count:
        size = records.block_size(count, num_edges)
        assert size > num_edges
        assert records.block_capacity(count, num_edges + 1) == size
        sizes.append(size)
        num_edges = size
    assert num_edges == count
    assert len(sizes) == 1 if count <= records.LAZY_ABOVE else sizes[0] == records.FIRST_BLOCK
