"""One simulation: descend, expand, evaluate, back up."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.kernels.in_python import bound, given_to
from tests.small_games import dice_game, heap_game
from uctree import games
from uctree.kernels import simulation
from uctree.kernels.status import DONE, NEED_CAPACITY

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_every_simulation_adds_one_visit_to_every_edge_of_its_path():
    tree = uctree.search(heap_game(), num_simulations=100, seed=1).tree
    for node in tree.root.walk():
        if node.edges:
            own = 0 if node.edge == 0 else 1
            assert node.visits == own + tree.edge_visits(node.edges).sum()


def test_no_simulation_begins_without_a_budget_or_room():
    tree = uctree.search(heap_game(), num_simulations=5).tree
    begin, search = bound(simulation.begin, tree), given_to(tree)
    search.tree.remaining = 0
    assert begin(search) == DONE
    search.tree.remaining, search.tree.may_grow, search.tree.reserve = 1, True, 10**6
    assert begin(search) == NEED_CAPACITY
    assert search.tree.remaining == 1


def test_equal_keys_give_equal_hashes_and_others_different_ones():
    game = games.tic_tac_toe()
    tree = uctree.search(game, num_simulations=1, transpositions=True).tree
    search = given_to(tree, transpositions=True)
    key_hash = bound(simulation.key_hash, tree, transpositions=True)
    hashes = []
    for actions in ([0, 1, 4], [4, 1, 0], [0, 4, 1]):
        search.states.records[1] = game.play(actions)
        hashes.append(tuple(map(int, key_hash(search, np.int64(1)))))
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_undone_simulation_leaves_no_virtual_visit():
    tree = uctree.search(dice_game(), num_simulations=20, threads=2, parallel="tree").tree
    assert not tree.edges["pending"].any()
