"""Why an edge is taken: what is said of the next simulation, against that simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import uctree
from uctree import games, selection
from uctree.engine.options import resolve
from uctree.engine.scores import decisions, earlier_decision
from uctree.kernels.records import NONE

pytestmark = pytest.mark.quick

SEARCHES = {
    "ucb1": ("connect_four", {}),
    "ucb1_tuned": ("connect_four", {"selection": selection.ucb1_tuned()}),
    "puct": ("tic_tac_toe", {"selection": selection.puct(), "solver": True}),
    "one-loop": ("tic_tac_toe", {"selection": selection.one_loop()}),
    "rave": ("tic_tac_toe", {"selection": selection.rave()}),
    "grave": ("tic_tac_toe", {"selection": selection.grave(ref=20)}),
    "transpositions": ("tic_tac_toe", {"transpositions": True}),
    "many actions": ("hex", {}),
    "chance": ("pig", {}),
    "three players": ("loss_game", {}),
    "another rule at the root": ("tic_tac_toe", {"root_selection": selection.puct(c=3.0)}),
}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def visits_of(node):
    return node.tree.edge_visits(node.edges)


def along(tree, places):
    """The nodes at which edges with these places are taken, up to a new edge or to chance."""
    node = tree.root
    for place in places:
        yield node
        if place == NONE or node.to_play < 0:
            return
        node = node.child(node.edges[place])


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("num_simulations", [40, 71])
def test_the_edge_with_the_largest_score_is_taken_by_the_next_simulation(kind, num_simulations):
    name, options = SEARCHES[kind]
    game = getattr(games, name)()
    result = uctree.search(game, num_simulations=num_simulations, seed=1, **options)
    tree, resolved = result.tree, resolve(game, **options)
    before = tree.edges["visits"].copy()
    (root,) = decisions(tree, resolved, [])
    places = [root.taken]
    if root.taken != NONE and not game.is_continuous:
        path = [root.edges[root.taken].action]
        places += [each.taken for each in decisions(tree, resolved, path)[1:]]
    assert (tree.edges["visits"] == before).all()  # nothing has changed
    earlier = [visits_of(node) for node in along(tree, places)]
    uctree.search(game, num_simulations=1, seed=1, tree=tree, **options)
    for node, visits, place in zip(along(tree, places), earlier, places, strict=False):
        if node.to_play >= 0:
            now = visits_of(node)
            grown = np.flatnonzero(now[: len(visits)] > visits).tolist()
            assert grown == ([] if place == NONE else [place])
            assert (len(now) > len(visits)) == (place == NONE)


def test_terms_add_up_to_ucb1():
    game = games.connect_four()
    result = uctree.search(game, num_simulations=60, seed=1)
    (decision,) = decisions(result.tree, resolve(game), [])
    for edge, row in zip(decision.edges, result.edges, strict=True):
        q = row["q"][0]
        bonus = 0.5 * 2 * math.sqrt(math.log(60) / row["visits"])
        assert edge.score == pytest.approx(q + bonus)
        assert (edge.q, edge.value) == pytest.approx((q, q))
        assert edge.bonus == pytest.approx(bonus)


def test_what_an_edge_needs_is_enough_and_less_is_not():
    game = games.connect_four()
    result = uctree.search(game, num_simulations=60, seed=1)
    (decision,) = decisions(result.tree, resolve(game), [])
    best = decision.edges[decision.taken]

    def score(value, visits, parent):
        return value + math.sqrt(math.log(parent) / visits)

    for edge in decision.edges:
        if edge is best:
            continue
        assert score(edge.needed_value, edge.visits, 60) == pytest.approx(best.score)
        for passed, is_taken in (
            (edge.needed_simulations, True),
            (edge.needed_simulations - 1, False),
        ):
            own = score(edge.value, edge.visits, 60 + passed)
            other = score(best.value, best.visits + passed, 60 + passed)
            assert (own > other) == is_taken


def test_an_earlier_moment_is_explained_as_it_was():
    game = games.tic_tac_toe()
    result = uctree.search(game, num_simulations=300, seed=1)
    moment = next(each for each in result.samples[0].moments if each.simulations > 50)
    then = uctree.search(game, num_simulations=moment.simulations, seed=1)
    now = decisions(then.tree, resolve(game), [])[0]
    earlier = earlier_decision(result.tree, resolve(game), moment, 0)
    assert earlier.visits == now.visits == moment.simulations
    assert earlier.taken == now.taken
    assert [edge.score for edge in earlier.edges] == pytest.approx([e.score for e in now.edges])


def test_chance_and_rules_that_look_at_all_edges_have_no_scores():
    pig = games.pig()
    result = uctree.search(pig, pig.play([0]), num_simulations=30, seed=1)
    (decision,) = decisions(result.tree, resolve(pig), [])
    assert "probabilities" in decision.note

    def rising(state, values, priors):
        for action in range(9):
            priors[action] = 1.0 + action

    options = {"evaluator": rising, "root_selection": selection.gumbel(num_considered=4)}
    game = games.tic_tac_toe()
    result = uctree.search(game, num_simulations=30, seed=1, **options)
    (decision,) = decisions(result.tree, resolve(game, **options), [])
    assert "looks at all edges" in decision.note
    assert all(math.isnan(edge.score) for edge in decision.edges)


def test_a_path_ends_where_the_tree_does():
    game = games.tic_tac_toe()
    result = uctree.search(game, num_simulations=30, seed=1)
    assert len(decisions(result.tree, resolve(game), [99])) == 1
    found = decisions(result.tree, resolve(game), [result.action, 99, 3])
    assert len(found) == 2
    assert game.key(found[1].state) == game.key(game.play([result.action]))
