"""Edges of nodes: when they are made, and how their blocks grow."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.small_games import heap_game
from uctree import games, selection
from uctree.kernels.records import FIRST_BLOCK, LAZY_ABOVE, NONE

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_a_node_gets_edges_at_its_second_visit():
    tree = uctree.search(heap_game(), num_simulations=40, seed=1).tree
    edges = tree.edges[1 : tree.num_edges]
    over = edges["first"] == NONE
    assert (edges["visits"][~over] >= 2).all()
    assert (edges["visits"][over] <= 1).any()


def test_many_actions_get_their_edges_in_blocks_that_double():
    game = games.n_in_a_row(rows=7, cols=7, length=4)
    assert game.num_actions > LAZY_ABOVE
    tree = uctree.search(game, num_simulations=FIRST_BLOCK + 1, seed=1).tree
    root = tree.edges[0]
    assert root["num_legal"] == game.num_actions
    assert root["num_edges"] == FIRST_BLOCK + 1
    assert root["first"] == 1 + FIRST_BLOCK  # the first block was too small
    taken = tree.edges["action"][root["first"] : root["first"] + root["num_edges"]]
    assert taken.tolist() == list(range(FIRST_BLOCK + 1))


def test_widening_opens_one_edge_at_a_time():
    rule = selection.widening(k=1.0, alpha=0.5)
    result = uctree.search(heap_game(), num_simulations=9, seed=1, widening=rule)
    assert np.count_nonzero(result.edges["visits"]) <= 3
