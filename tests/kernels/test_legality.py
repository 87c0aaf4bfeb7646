"""Replaying a tree by the rules, record by record."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.kernels.in_python import bound
from uctree import games
from uctree.engine.legality import _walk
from uctree.game import StateViews
from uctree.kernels.legality import ALL_LEGAL, NEED_DEPTH, find_illegal
from uctree.kernels.records import NONE

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def found_in(tree, depth=20):
    walk = _walk(tree, depth)
    views = walk._replace(edges=walk.edges.view(np.recarray), states=StateViews(walk.states))
    return bound(find_illegal, tree)(views), walk


def tree_of(game):
    return uctree.search(game, num_simulations=200, seed=1).tree


@pytest.mark.parametrize("game", [games.tic_tac_toe(), games.pig(target=10)], ids=lambda g: g.name)
def test_a_tree_of_a_search_has_legal_actions_alone(game):
    tree = tree_of(game)
    found, walk = found_in(tree)
    assert found == ALL_LEGAL
    inner = np.flatnonzero(tree.edges["first"][: tree.num_edges] != NONE)
    assert walk.is_done[inner].all()


def test_the_record_of_a_node_with_an_illegal_action_is_returned():
    tree = tree_of(games.tic_tac_toe())
    edges = tree.edges
    node = int(edges["first"][0])
    first = int(edges["first"][node])
    edges["action"][first] = edges["action"][node]  # the cell that was just taken
    assert found_in(tree)[0] == node


def test_a_deeper_tree_than_the_walk_asks_for_depth():
    assert found_in(tree_of(games.tic_tac_toe()), depth=2)[0] == NEED_DEPTH
