"""The loop over the edges of a node, and the values that it reads from edges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hand_made_trees import DIVIDED, grown
from tests.kernels.in_python import bound, given_to
from tests.small_games import dice_game, heap_game
from uctree import selection
from uctree.kernels import scoring
from uctree.kernels.context import Decision
from uctree.kernels.records import NONE
from uctree.kernels.scoring import best_edge
from uctree.kernels.selections import RULE
from uctree.tree import Layout

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]

GAME = heap_game(zero_sum=True)


def divided(proofs=None):
    layout = Layout(lazy=False, proofs="vectors" if proofs else "")
    return grown(GAME, DIVIDED, layout=layout, proofs=proofs)


def best_of_all(search, decision):
    return best_edge(search, decision, RULE, search.work.parameters)


@pytest.mark.parametrize(("c", "expected"), [(0.0, 2), (0.5, 2), (20.0, 2)])
def test_the_best_edge_has_the_largest_score(c, expected):
    tree, rule = divided(), selection.ucb1(c=c)
    search = given_to(tree, selection=rule)
    decision = Decision(node=0, player=0, value=0.0, num_edges=3, num_untried=0, num_legal=3,
                        amaf_node=0)  # fmt: skip
    found = bound(best_of_all, tree, selection=rule)(search, decision)
    width = selection.ucb1_width(103, c, 2.0)
    edges = tree.edges[1:4]
    q = edges["value_sum"][:, 0] / edges["visits"]
    pairs = zip(q, edges["visits"], strict=True)
    scores = [selection.ucb1_score(float(mean), int(visits), width) for mean, visits in pairs]
    assert found == 1 + int(np.argmax(scores)) == 1 + expected


def test_an_action_without_an_edge_comes_before_edges_of_ucb1():
    tree = divided()
    decision = Decision(0, 0, 0.0, 3, num_untried=1, num_legal=4, amaf_node=0)
    assert bound(best_of_all, tree)(given_to(tree), decision) == NONE


def test_values_are_mapped_to_the_range_of_the_player():
    tree = divided()
    tree.head["low"], tree.head["high"], tree.head["factor"] = [-1, -3], [1, 1], [0.5, 0.25]
    scale = bound(scoring.scale_unit, tree)
    assert scale(given_to(tree), 0, 0, 1, 0.0) == (-3.0, 0.25, 1.0, scoring.UNIT)
    tree.head["high"] = tree.head["low"]
    assert scale(given_to(tree), 0, 0, 1, 0.0) == (0.0, 0.0, 1.0, scoring.UNIT)


def test_the_incumbent_is_the_best_edge_of_its_mover():
    tree = divided()
    search = given_to(tree)
    find = bound(scoring.incumbent, tree)
    assert find(search, 0, 0) == 3
    assert find(search, 0, 1) == 1
    assert find(search, 3, 0) == NONE


def test_a_won_edge_is_one_that_is_proven_to_pay_the_most():
    tree = divided(proofs={1: [1.0], 2: [0.5]})
    tree.head["most"] = [1.0, 1.0]
    search = given_to(tree, solver=True)
    find = bound(scoring.won_edge, tree, solver=True)
    assert find(search, 0, 0) == 2
    assert find(search, 0, 1) == NONE


def test_outcomes_that_are_overdue_come_first():
    tree = grown(dice_game(), {(0,): [1.0]}, layout=Layout(lazy=False))
    tree.edges["num_edges"][0] = 2
    tree.edges["prior"][1:3], tree.edges["visits"][1:3] = (5 / 6, 1 / 6), 0
    search, find = given_to(tree), bound(scoring.due_outcome, tree)
    for number in range(1, 40):
        tree.edges["visits"][find(search, 0)] += 1
        shares = tree.edges["visits"][1:3] - number * tree.edges["prior"][1:3]
        assert np.abs(shares).max() <= 1.0


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 21])
def test_sums_and_largest_numbers_are_those_of_the_first_entries(count):
    row = np.random.default_rng(count).normal(size=30)
    assert scoring.sum_of(row, count) == pytest.approx(row[:count].sum())
    assert scoring.largest_of(row, count) == row[:count].max()
