"""Edges that are taken away from a node."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import games, selection

pytestmark = pytest.mark.quick


def favourites(state, values, logits):
    for action in range(logits.shape[0]):
        logits[action] = -0.3 * action


def hopeful(state, values, logits):
    """Only the first three actions have a prior."""
    for action in range(logits.shape[0]):
        logits[action] = 0.0 if action < 3 else -np.inf


KINDS = {
    "playouts": (games.connect_four, {}),
    "many actions": (lambda: games.n_in_a_row(6, 6, 4, 2), {}),
    "priors": (games.connect_four, {"evaluator": favourites}),
    "random ties": (games.connect_four, {"ties": "random"}),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def searched(kind, num_simulations=2_000, **more):
    make, options = KINDS[kind]
    game = make()
    return game, uctree.search(
        game, game.start(), num_simulations=num_simulations, seed=1, **options, **more
    )


def table(node):
    tree, span = node.tree, node.edges
    rows = zip(tree.edge_visits(span), tree.mean_values(span).tolist(), strict=True)
    actions = tree.edges["action"][span.start : span.stop]
    return {int(action): row for action, row in zip(actions, rows, strict=True)}


@each_kind
def test_what_is_left_keeps_its_statistics_and_its_order(kind):
    _, result = searched(kind)
    root = result.tree.root
    before, visits, value = table(root), root.visits, result.tree.mean_values(range(1))
    gone = [int(result.tree.edges["action"][edge]) for edge in (root.edges[1], root.edges[4])]
    result.tree.drop(root, [root.edges[1], root.edges[4]])
    after = table(root)
    assert list(after) == [action for action in before if action not in gone]
    assert all(after[action] == before[action] for action in after)
    assert root.visits == visits
    assert np.array_equal(result.tree.mean_values(range(1)), value)


@each_kind
def test_a_search_goes_on_without_the_edges_that_were_dropped(kind):
    game, result = searched(kind)
    tree, options = result.tree, KINDS[kind][1]
    for node in (tree.root, tree.root.child(tree.root.edges[0])):
        tree.drop(node, node.edges[3:])
    kept = set(table(tree.root))
    before = sum(visits for visits, _ in table(tree.root).values())
    more = uctree.search(game, game.start(), num_simulations=500, tree=tree, **options)
    assert set(more.edges["action"].tolist()) == kept
    assert more.edges["visits"].sum() == before + 500
    assert more.tree.root.visits == tree.simulations + int(tree.has_priors)
    assert more.action in kept
    assert set(np.flatnonzero(more.policy())) <= kept
    assert more.edges["prior"].sum() == pytest.approx(1.0)


def test_bounds_of_the_root_stay_with_their_edges():
    _, result = searched("playouts")
    before = {int(row["action"]): (row["lcb"], row["ucb"]) for row in result.edges}
    tree = result.tree
    tree.drop(tree.root, [tree.root.edges[0], tree.root.edges[2]])
    game = tree.game
    more = uctree.search(game, game.start(), num_simulations=1, tree=tree)
    same = [tuple(row)[-2:] == before[int(row["action"])] for row in more.edges]
    assert sum(same) == len(more.edges) - 1  # all but the one that was just taken


def test_priors_of_what_is_left_are_scaled():
    _, result = searched("priors")
    tree = result.tree
    prior = tree.priors(tree.root.edges)
    tree.drop(tree.root, tree.root.edges[:2])
    assert tree.priors(tree.root.edges) == pytest.approx(prior[2:] / prior[2:].sum(), rel=1e-6)


def test_priors_are_uniform_where_only_those_of_zero_are_left():
    game = games.connect_four()
    tree = uctree.search(game, game.start(), num_simulations=50, evaluator=hopeful).tree
    tree.drop(tree.root, tree.root.edges[:3])
    assert tree.priors(tree.root.edges).tolist() == [0.25] * 4


def test_a_tree_without_some_edges_can_be_saved_and_copied(tmp_path):
    _, result = searched("many actions")
    tree = result.tree
    tree.drop(tree.root, tree.root.edges[5:])
    tree.save(tmp_path / "tree")
    loaded = uctree.Tree.load(tmp_path / "tree")
    assert table(loaded.root) == table(tree.root)
    small = tree.copy(0, len(tree.edges))
    assert table(small.root) == table(tree.root)
    assert small.num_edges < tree.num_edges  # what hung below is not copied
    more = uctree.search(loaded.game, loaded.state, num_simulations=300, tree=loaded)
    assert len(more.edges) == 5


def test_what_was_dropped_below_an_action_stays_away_when_that_is_taken():
    game, result = searched("playouts")
    tree = result.tree
    tree.drop(tree.root.child(tree.root.edges[3]), tree.root.child(tree.root.edges[3]).edges[2:])
    below = tree.below(3)
    more = uctree.search(game, below.state, num_simulations=300, tree=below)
    assert more.edges["action"].tolist() == [0, 1]


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_tree_that_is_larger_than_memory_goes_on_as_a_smaller_one(is_cut):
    game, result = searched("many actions", selection=selection.ucb1(c=2**0.5))
    tree = result.tree
    if is_cut:
        tree.drop(tree.root, tree.root.edges[5:])
    assert 2 * tree.num_bytes > 200_000  # where a tree is copied there are two
    more = uctree.search(game, game.start(), num_simulations=20_000, tree=tree, max_memory="200kB")
    assert int(tree.head["capacity"][0]) == len(tree.edges)
    assert len(more.edges) == (5 if is_cut else 36)
    assert more.tree.num_bytes <= 100_000
    assert more.tree.root.visits == 22_000


def test_dropping_nothing_changes_nothing():
    _, result = searched("playouts")
    before = result.tree.edges.copy()
    result.tree.drop(result.tree.root, [])
    assert np.array_equal(result.tree.edges, before)


def test_one_edge_has_to_stay():
    _, result = searched("playouts")
    with pytest.raises(ValueError, match="needs at least one edge"):
        result.tree.drop(result.tree.root, result.tree.root.edges)


def test_edges_of_another_node_are_refused():
    _, result = searched("playouts")
    root = result.tree.root
    with pytest.raises(ValueError, match=r"\[9\] are not all edges of the node; it has 1 to 7"):
        result.tree.drop(root, [9])
    with pytest.raises(ValueError, match="belongs to another tree"):
        searched("playouts")[1].tree.drop(root, [1])


def test_a_node_with_untried_actions_is_refused():
    _, result = searched("many actions", num_simulations=20)
    with pytest.raises(ValueError, match="16 actions of the node were never tried"):
        result.tree.drop(result.tree.root, result.tree.root.edges[:1])


@pytest.mark.parametrize("option", ["transpositions", "solver"])
def test_trees_whose_values_depend_on_all_edges_are_refused(option):
    _, result = searched("playouts", num_simulations=50, **{option: True})
    with pytest.raises(ValueError, match="only be dropped from a plain tree"):
        result.tree.drop(result.tree.root, [1])


def test_chance_keeps_all_its_outcomes():
    game = games.pig()
    state = game.play([0])
    tree = uctree.search(game, state, num_simulations=50, selection=selection.ucb1()).tree
    with pytest.raises(ValueError, match="outcomes of chance cannot be dropped"):
        tree.drop(tree.root, [1])
