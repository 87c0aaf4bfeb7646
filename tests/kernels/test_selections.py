"""Selecting an edge: what a node is worth."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.kernels.in_python import bound, given_to
from tests.small_games import heap_game
from uctree.kernels import selections

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_the_value_of_the_root_is_its_mean():
    tree = uctree.search(heap_game(), num_simulations=30, seed=1).tree
    node_value, search = bound(selections.node_value, tree), given_to(tree)
    means = tree.mean_values(range(1))[0]
    for player in range(tree.game.num_players):
        assert node_value(search, np.int64(0), player) == pytest.approx(means[player])


def test_the_value_of_a_node_leaves_out_the_reward_of_its_edge():
    tree = uctree.search(heap_game(), num_simulations=30, seed=1).tree
    node_value, search = bound(selections.node_value, tree), given_to(tree)
    edge = int(tree.edges["first"][0])
    search.work.depth = 1
    search.path[0].edge, search.path[0].reward = edge, 0.25
    means = tree.mean_values(range(edge, edge + 1))[0]
    assert node_value(search, np.int64(edge), 0) == pytest.approx(means[0] - 0.25)
