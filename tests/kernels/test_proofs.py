"""Proofs: exact values that follow from the ends of episodes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hand_made_trees import grown
from tests.kernels.in_python import bound, given_to
from tests.small_games import heap_game
from uctree.kernels import proofs
from uctree.kernels.records import EXACT, MOVER, NONE
from uctree.tree import Layout

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]

LINES = {(0,): 0.5, (1,): 0.5, (2,): 0.5}


def searched(kind):
    """A root with three edges, of which nothing is proven."""
    game = heap_game(zero_sum=True)
    tree = grown(game, LINES, layout=Layout(lazy=False, proofs=kind))
    tree.head["least"], tree.head["most"] = [-1.0, -1.0], [1.0, 1.0]
    if kind == "bounds":
        tree.edges["low"], tree.edges["high"] = -np.inf, np.inf
    return tree, given_to(tree, solver=True)


def test_bounds_close_in_as_children_are_proven():
    tree, search = searched("bounds")
    mark, prove = (bound(k, tree, solver=True) for k in (proofs.mark_end, proofs.prove))
    mark(search.edges, 1, np.array([0.25, -0.25]))
    assert prove(search, 0, 0)
    assert (tree.edges["low"][0], tree.edges["high"][0]) == (0.25, 1.0)
    assert not prove(search, 0, 0)
    mark(search.edges, 2, np.array([1.0, -1.0]))
    assert prove(search, 0, 0)
    assert bound(proofs.is_root_solved, tree, solver=True)(search.edges)


def test_the_other_player_is_bounded_from_above():
    tree, search = searched("bounds")
    bound(proofs.mark_end, tree, solver=True)(search.edges, 1, np.array([0.25, -0.25]))
    bound(proofs.prove, tree, solver=True)(search, 0, 1)
    assert (tree.edges["low"][0], tree.edges["high"][0]) == (-1.0, 0.25)


def test_an_edge_that_pays_the_most_proves_the_part_of_its_mover():
    tree, search = searched("vectors")
    mark, prove = (bound(k, tree, solver=True) for k in (proofs.mark_end, proofs.prove))
    mark(search.edges, 1, np.array([0.25, -0.25]))
    assert not prove(search, 0, 0)
    mark(search.edges, 2, np.array([1.0, -1.0]))
    assert prove(search, 0, 0)
    assert tree.edges["proof"][0] == MOVER
    mark(search.edges, 3, np.array([0.0, 0.0]))
    assert prove(search, 0, 0)
    assert tree.edges["proof"][0] == EXACT
    assert tree.edges["proven"][0].tolist()[0] == 1.0


def test_a_node_is_lost_if_it_is_proven_to_pay_the_least():
    for kind in ("bounds", "vectors"):
        tree, search = searched(kind)
        is_lost = bound(proofs.is_lost, tree, solver=True)
        assert not is_lost(search, NONE, 0)
        assert not is_lost(search, 1, 0)
        bound(proofs.mark_end, tree, solver=True)(search.edges, 1, np.array([-1.0, 1.0]))
        assert is_lost(search, 1, 0)
        assert not is_lost(search, 1, 1)
