"""Copying a subtree to another tree, and the hash table of shared nodes."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.kernels.in_python import bound
from uctree import games
from uctree.kernels import copying
from uctree.kernels.records import NONE

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]

SLOT = np.dtype([("key", np.uint64, (2,)), ("node", np.int32)])
NOTHING = np.zeros(0, np.int64)


def blank_table(places):
    table = np.zeros(places, SLOT).view(np.recarray)
    table.node = NONE
    return table


def test_a_key_is_found_where_it_was_entered_also_beyond_the_end_of_the_table():
    table = blank_table(4)
    keys = [(np.uint64(3), np.uint64(high)) for high in range(3)]
    places = []
    for node, (low, high) in enumerate(keys):
        place = copying.find_slot(table, low, high)
        assert table[place].node == NONE
        table[place].key[0], table[place].key[1] = low, high
        table[place].node = node
        places.append(place)
    assert places == [3, 0, 1]
    assert [copying.find_slot(table, *key) for key in keys] == places


def test_nodes_that_were_not_copied_are_left_out_of_the_new_table():
    old, table = blank_table(4), blank_table(8)
    for node, low in enumerate((1, 2)):
        place = copying.find_slot(old, np.uint64(low), np.uint64(0))
        old[place].key[0], old[place].node = low, node
    forward = np.array([5, NONE])
    assert copying.rehash(old, table, forward) == 1
    assert table[copying.find_slot(table, np.uint64(1), np.uint64(0))].node == 5
    assert (table.node == NONE).sum() == 7


def copied(budget=0, num_simulations=300):
    """A tree, and the copy of its part below the first edge, with what that returned."""
    game = games.tic_tac_toe()
    tree = uctree.search(game, num_simulations=num_simulations, seed=1).tree
    edges, target = tree.edges.view(np.recarray), np.zeros_like(tree.edges).view(np.recarray)
    reroot = bound(copying.reroot, tree)
    root = int(tree.edges["first"][0])
    sizes = np.zeros(num_simulations + 2, np.int64)
    used = reroot(edges, tree.num_edges, target, root, budget, sizes, NOTHING, NOTHING, NOTHING)
    return tree, root, target, used


def nodes_below(edges, edge):
    """Visits and values of a node and of all below, by actions."""
    record = edges[edge]
    below = range(record["first"], record["first"] + record["num_edges"])
    if record["first"] == NONE:
        below = ()
    return {
        "visits": int(record["visits"]), "value": record["value_sum"].tolist(),
        "below": {int(edges["action"][each]): nodes_below(edges, each) for each in below},
    }  # fmt: skip


def test_a_copy_holds_all_that_is_below_the_edge():
    tree, root, target, used = copied()
    assert 1 < used < tree.num_edges
    assert nodes_below(target, 0) == nodes_below(tree.edges, root)


def test_a_copy_within_a_budget_drops_the_nodes_of_few_visits():
    tree, root, target, used = copied(budget=30)
    assert used <= 30
    whole, part = nodes_below(tree.edges, root), nodes_below(target, 0)
    assert part["visits"] == whole["visits"]
    kept = [each["visits"] for each in part["below"].values() if each["below"]]
    lost = [
        each["visits"] for action, each in whole["below"].items()
        if each["below"] and not part["below"][action]["below"]
    ]  # fmt: skip
    assert lost
    assert min(kept, default=10**9) > max(lost)
