"""What holds for every search of every game, tried on random ones."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uctree
from tests import random_games
from tests.random_games import SHAPES, game_of, random_game, random_tables, renamed, roots
from uctree import CHANCE, Game, evaluators, selection
from uctree.tree import Tree

tried = settings(max_examples=12, deadline=None, derandomize=True, database=None)
root_indices = st.integers(0, 11)
seeds = st.integers(0, 2**32)
budgets = st.integers(1, 250)

DICE = "three, with dice"
KINDS: dict[str, dict[str, Any]] = {
    "playouts": {},
    "priors": {"evaluator": evaluators.compiled(random_games.table_priors)},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def search(kind: str, index: int, num_simulations: int, seed: int) -> uctree.SearchResult:
    game = random_game(DICE)
    return uctree.search(
        game, roots(game)[index], num_simulations=num_simulations, seed=seed, **KINDS[kind]
    )


def edge_visits(tree: Tree, node: uctree.Node) -> np.ndarray:
    return tree.edges["visits"][node.edges.start : node.edges.stop]


def assert_visits_add_up(tree: Tree, *, full: bool = False) -> None:
    """N(s) is the number of evaluations of s and the visits of its edges, at every node.

    Args:
        full: whether memory was used up, so that nodes without edges are valued again and again.
    """
    for node in tree.root.walk():
        evaluations = node.visits - edge_visits(tree, node).sum()
        if node.to_play == uctree.OVER or (full and len(node.edges) == 0):
            assert evaluations == node.visits > 0
        elif node.to_play == CHANCE:
            assert evaluations == 0, f"the chance node {node.state} was valued itself"
        elif node.edge == 0:
            assert evaluations == tree.has_priors
        else:
            assert evaluations == 1, f"the node {node.state} was valued again"


# --- counts --------------------------------------------------------------------------------------


@each_kind
@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_edge_visits_add_up_to_node_visits(kind, index, seed, num_simulations):
    assert_visits_add_up(search(kind, index, num_simulations, seed).tree)


@each_kind
@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_root_edge_visits_add_up_to_the_simulations(kind, index, seed, num_simulations):
    result = search(kind, index, num_simulations, seed)
    assert result.edges["visits"].sum() == num_simulations == result.simulations


@each_kind
@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_edges_are_legal_actions(kind, index, seed, num_simulations):
    tree = search(kind, index, num_simulations, seed).tree
    for node in tree.root.walk():
        actions = tree.edges["action"][node.edges.start : node.edges.stop].tolist()
        assert actions == tree.game.legal(node.state)[: len(actions)]


# --- values --------------------------------------------------------------------------------------


@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_values_stay_within_the_range_of_returns(index, seed, num_simulations):
    tree = search("playouts", index, num_simulations, seed).tree
    discount, reward = tree.game.discount, tree.game.data[5]
    low, high = random_games.return_bounds(tree.game.data, discount)
    for node in tree.root.walk():
        for edge in node.edges:
            if tree.edges["visits"][edge] == 0:
                continue
            paid = reward[node.state["place"], tree.edges["action"][edge]]
            after = node.child(edge).state["place"]
            q = tree.mean_values(range(edge, edge + 1))[0]
            assert (q >= paid + discount * low[after] - 1e-12).all()
            assert (q <= paid + discount * high[after] + 1e-12).all()


@cache
def game_with_names(names: tuple[int, ...]) -> Game:
    tables, options = SHAPES[DICE]
    return game_of(renamed(random_tables(**tables), list(names)), **options)


@each_kind
@tried
@given(
    index=root_indices,
    seed=seeds,
    num_simulations=budgets,
    names=st.sampled_from([(1, 2, 0), (0, 2, 1)]),
)
def test_renaming_players_renames_values(kind, index, seed, num_simulations, names):
    result = search(kind, index, num_simulations, seed)
    game = game_with_names(names)
    other = uctree.search(
        game, roots(game)[index], num_simulations=num_simulations, seed=seed, **KINDS[kind]
    )
    assert other.value[list(names)].tolist() == result.value.tolist()
    used = range(1, 1 + result.tree.num_edges)
    for name in ("visits", "action"):
        assert (result.tree.edges[name] == other.tree.edges[name]).all()
    assert (other.tree.mean_values(used)[:, names] == result.tree.mean_values(used)).all()


@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_one_value_per_edge_of_a_zero_sum_game_tells_as_much_as_two(index, seed, num_simulations):
    one, two = (
        uctree.search(game, roots(game)[index], num_simulations=num_simulations, seed=seed).tree
        for game in map(random_game, ("two, zero-sum", "two, zero-sum but not declared"))
    )
    assert one.edges.dtype.itemsize < two.edges.dtype.itemsize
    used = range(1 + one.num_edges)
    for name in ("visits", "action", "first", "num_edges"):
        assert (one.edges[name] == two.edges[name]).all()
    assert (one.mean_values(used) == two.mean_values(used)).all()


@each_kind
@tried
@given(index=root_indices, seed=seeds, num_simulations=budgets)
def test_policies_are_distributions_over_legal_actions(kind, index, seed, num_simulations):
    result = search(kind, index, num_simulations, seed)
    illegal = np.ones(result.game.num_actions, bool)
    illegal[result.game.legal(result.state)] = False
    for temperature in (0.0, 0.25, 1.0, math.inf):
        policy = result.policy(temperature)
        assert policy.sum() == pytest.approx(1.0, abs=1e-12)
        assert (policy >= 0).all()
        assert (policy[illegal] == 0).all()


# --- what a search keeps -------------------------------------------------------------------------


@each_kind
@tried
@given(index=root_indices, seed=seeds, first=budgets, second=budgets)
def test_more_simulations_go_on_from_a_tree(kind, index, seed, first, second):
    result = search(kind, index, first, seed)
    before = result.edges["visits"].copy()
    more = uctree.search(
        result.game, result.state, tree=result.tree, num_simulations=second, seed=seed,
        **KINDS[kind],
    )  # fmt: skip
    assert more.tree is result.tree
    assert more.simulations == second
    assert (more.edges["visits"][: len(before)] >= before).all()
    assert more.edges["visits"].sum() == first + second
    assert_visits_add_up(more.tree)


@tried
@given(index=root_indices, first=budgets, second=budgets)
def test_two_short_searches_are_a_long_one_where_nothing_is_random(index, first, second):
    game = random_game("three")
    options = {
        "evaluator": evaluators.compiled(random_games.table_logits),
        "selection": selection.puct(2.0, 50.0, fpu="parent", fpu_value=0.3, normalise="none"),
    }
    state = roots(game)[index]
    tree = uctree.search(game, state, num_simulations=first, **options).tree
    in_two = uctree.search(game, state, num_simulations=second, tree=tree, **options)
    at_once = uctree.search(game, state, num_simulations=first + second, **options)
    assert (in_two.edges == at_once.edges).all()
    for name in ("visits", "action", "value_sum"):
        assert (in_two.tree.edges[name] == at_once.tree.edges[name]).all()


@each_kind
@tried
@given(index=root_indices, seed=seeds, memory=st.integers(2_000, 20_000))
def test_memory_is_kept_to_and_the_search_goes_on(kind, index, seed, memory):
    game = random_game(DICE)
    sizes = []
    result = uctree.search(
        game, roots(game)[index], num_simulations=600, seed=seed, max_memory=memory,
        progress=lambda progress: sizes.append(progress.tree.num_bytes), **KINDS[kind],
    )  # fmt: skip
    assert max(sizes) <= memory
    assert result.edges["visits"].sum() == 600
    assert_visits_add_up(result.tree, full=True)


@each_kind
@tried
@given(index=root_indices, seed=seeds)
def test_the_state_handed_in_stays_as_it_is(kind, index, seed):
    game = random_game(DICE)
    state = roots(game)[index]
    before = state.tobytes()
    uctree.search(game, state, num_simulations=50, seed=seed, **KINDS[kind])
    assert state.tobytes() == before
