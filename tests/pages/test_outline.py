"""Outlines: the nodes of trees as flat arrays, against a walk node by node."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import games
from uctree.kernels.records import NONE
from uctree.pages.outline import outline
from uctree.variation import edge_table, merged


def search(name="connect_four", **options):
    game = getattr(games, name)()
    given = {"num_simulations": 1_500, "seed": 1} | options
    return uctree.search(game, game.start(), **given)


def path(nodes, node):
    actions = []
    while node:
        actions.append(int(nodes.action[node]))
        node = int(nodes.parent[node])
    return tuple(reversed(actions))


def walked(result):
    """Visits and q by the actions that lead there, from the trees node by node."""
    found = {}
    places = [((), [tree.root for tree in result.trees])]
    while places:
        actions, nodes = places.pop()
        tables = [edge_table(node) for node in nodes]
        for row in merged(tables):
            if row["visits"]:
                key = (*actions, int(row["action"]))
                found[key] = (int(row["visits"]), row["q"].tolist())
                below = [
                    node.child(node.edges[i])
                    for node, table in zip(nodes, tables, strict=True)
                    for i in np.flatnonzero((table["action"] == key[-1]) & (table["visits"] > 0))
                ]
                places.append((key, below))
    return found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("connect_four", {}),
        ("connect_four", {"threads": 2, "parallel": "root"}),
        ("pig", {"num_simulations": 500}),
        ("n_in_a_row", {"num_simulations": 300}),
    ],
    ids=str,
)
def test_an_outline_has_every_visited_node_once(name, options):
    result = search(name, **options)
    nodes = outline(result)
    expected = walked(result)
    assert len(nodes) == 1 + len(expected)
    for node in range(1, len(nodes)):
        visits, q = expected[path(nodes, node)]
        assert nodes.visits[node] == visits
        np.testing.assert_allclose(nodes.q[node], q)


@pytest.mark.parametrize("options", [{}, {"transpositions": True}, {"solver": True}], ids=str)
def test_parents_come_first_and_siblings_fall_in_visits(options):
    nodes = outline(search(**options))
    assert np.all(nodes.parent[1:] < np.arange(1, len(nodes)))
    assert np.all(np.diff(nodes.parent) >= 0)
    siblings = np.diff(nodes.parent) == 0
    assert np.all(np.diff(nodes.visits)[siblings] <= 0)


@pytest.mark.parametrize("options", [{}, {"threads": 2, "parallel": "root"}], ids=str)
def test_where_not_all_fit_those_of_few_visits_are_missing(options):
    result = search(**options)
    whole, part = outline(result), outline(result, most=100)
    assert whole.least_visits == 1 < part.least_visits
    assert len(part) == np.count_nonzero(whole.visits >= part.least_visits) <= 100
    assert np.count_nonzero(whole.visits >= part.least_visits - 1) > 100


def test_a_threshold_may_be_given_and_is_doubled_until_it_is_enough():
    result = search()
    whole = outline(result)
    for first in (3, 1):
        part = outline(result, most=100, least_visits=first)
        assert part.least_visits in (first * 2**k for k in range(12))
        assert len(part) == np.count_nonzero(whole.visits >= part.least_visits) <= 100
        assert np.count_nonzero(whole.visits >= part.least_visits / 2) > 100


def test_a_shared_node_is_expanded_once_and_pointed_at_elsewhere():
    result = search(transpositions=True)
    nodes = outline(result)
    again = np.flatnonzero(nodes.same_as != NONE)
    assert len(again) > 10
    children = np.bincount(nodes.parent[1:], minlength=len(nodes))
    assert np.all(children[again] == 0)
    game = result.game
    for node in again[:20].tolist():
        here, there = (game.play(path(nodes, n)) for n in (node, int(nodes.same_as[node])))
        assert game.key(here) == game.key(there)
    assert len(nodes) - 1 <= result.tree.num_edges


def test_a_shared_node_is_pointed_at_across_trees_too():
    nodes = outline(search(transpositions=True, threads=2, parallel="root"))
    again = nodes.same_as != NONE
    assert again.any()
    children = np.bincount(nodes.parent[1:], minlength=len(nodes))
    assert np.all(children[again] == 0)


def test_priors_are_those_of_chance_and_of_evaluators():
    dice = outline(search("pig", num_simulations=300))
    assert np.isnan(dice.prior[dice.parent == 0]).all()
    np.testing.assert_allclose(np.unique(dice.prior[~np.isnan(dice.prior)]), 1 / 6)

    def rising(state, values, priors):
        for action in range(7):
            priors[action] = 1.0 + action

    nodes = outline(search(evaluator=rising))
    first = nodes.parent == 0
    np.testing.assert_allclose(nodes.prior[first], (1 + nodes.action[first]) / 28, rtol=1e-6)


def test_what_is_proven_is_there():
    game = games.tic_tac_toe()
    result = uctree.search(
        game, game.play([0, 3, 1, 4]), num_simulations=1_000, seed=1, solver=True
    )
    nodes = outline(result)
    winning = np.flatnonzero((nodes.parent == 0) & (nodes.action == 2))
    assert nodes.proven[0].tolist() == nodes.proven[winning[0]].tolist() == [1, -1]


def test_an_open_loop_shows_the_actions_of_its_state(interpreted):
    result = search("pig", open_loop=True, num_simulations=100)
    nodes = outline(result)
    assert set(nodes.action[nodes.parent == 0].tolist()) <= set(result.edges["action"].tolist())
