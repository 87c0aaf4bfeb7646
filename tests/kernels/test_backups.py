"""A node's value from its edges, and what flows back along a path."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.hand_made_trees import DIVIDED, grown
from tests.kernels.in_python import bound, given_to
from tests.small_games import dice_game, heap_game
from uctree import backup
from uctree.kernels import backups
from uctree.tree import Layout

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def gathered(rule, player=0, lines=DIVIDED):
    """Whether a backup writes a value of the root, and what it writes."""
    tree = grown(heap_game(zero_sum=True), lines, layout=Layout(lazy=False))
    search = given_to(tree, backup=rule)
    returns, values = np.zeros(2), np.zeros(2)
    found = bound(rule.gather, tree, backup=rule)(search, 0, player, returns, values)
    return found, returns[0]


def test_the_mean_is_not_gathered_from_edges():
    assert gathered(backup.mean()) == (False, 0.0)


@pytest.mark.parametrize(
    ("min_visits", "player", "expected"),
    [(1, 0, (True, 1.0)), (4, 0, (True, 0.25)), (61, 0, (False, 0.0)), (1, 1, (True, 0.0))],
)
def test_the_maximum_is_that_of_the_mover_over_edges_with_enough_visits(
    min_visits, player, expected
):
    assert gathered(backup.maximum(min_visits), player) == expected


def test_the_soft_maximum_weighs_edges_by_their_values():
    found, value = gathered(backup.soft_maximum(0.5))
    q = [0.0, 0.25, 1.0]
    weights = [math.exp(each / 0.5) for each in q]
    expected = sum(w * each for w, each in zip(weights, q, strict=True)) / sum(weights)
    assert found
    assert value == pytest.approx(expected)


def test_a_chance_node_has_an_expected_value_once_all_outcomes_were_seen():
    tree = grown(dice_game(), {(0,): [1.0]}, layout=Layout(lazy=False))
    tree.edges["num_edges"][0] = 2
    tree.edges["visits"][1:3], tree.edges["value_sum"][1:3, 0] = (5, 1), (5.0, 3.0)
    tree.edges["prior"][1:3] = 5 / 6, 1 / 6
    search, values = given_to(tree), np.zeros(1)
    expect = bound(backups.expect, tree)
    assert expect(search, 0, values)
    assert values[0] == pytest.approx(5 / 6 * 1.0 + 1 / 6 * 3.0)
    tree.edges["visits"][2] = 0
    assert not expect(search, 0, values)


def test_a_simulation_counts_once_on_every_edge_of_its_path():
    lines = {(0,): 0.5, (0, 1): -1.0}
    tree = grown(heap_game(zero_sum=True), lines, layout=Layout(lazy=False))
    before = tree.edges["visits"].copy()
    search = given_to(tree)
    for depth, (edge, player) in enumerate(((1, 0), (2, 1))):
        search.path[depth].edge, search.path[depth].player = edge, player
    search.work.depth = 2
    search.work.returns[:] = 1.0, -1.0
    bound(backups.back_up, tree)(search)
    assert (tree.edges["visits"] - before)[:3].tolist() == [1, 1, 1]
    assert tree.edges["value_sum"][:3, 0].tolist() == [0.5, 0.5, 0.0]
