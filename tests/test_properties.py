"""What holds for every search of every game, tried on random ones."""

from __future__ import annotations

import math
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uctree
from tests import exact, random_games
from tests.random_games import SHAPES, game_of, random_game, random_tables, renamed, roots
from uctree import CHANCE, OVER, Game, backup, evaluators, selection
from uctree.engine.options import resolve
from uctree.tree import Tree

pytestmark = pytest.mark.quick

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


# --- any search of any game ----------------------------------------------------------------------
# A number stands for a random game and random options that fit it. Most run as plain Python, which
# takes no compilation. `python -m tests.test_properties 17` tries one of them.


def leaf_values(states: np.ndarray) -> np.ndarray:
    """What the tables of `any_game` could say, in Python: values that add up to zero for two."""
    values = np.sin(states["place"][:, None] + np.arange(4.0))
    values[:, 1] = -values[:, 0]
    return values


def python_evaluator(num_players: int, leaves: int, priors: bool) -> uctree.Evaluator:
    def evaluate(states: np.ndarray) -> Any:
        values = leaf_values(states)[:, :num_players]
        return (np.zeros((len(states), 64)), values) if priors else values

    return evaluators.python(evaluate, leaves=leaves, priors=priors)


def any_options(game: Game, seed: int) -> dict[str, Any]:
    """Random options of a search, those that do not fit left out."""
    rng = np.random.default_rng(seed)
    pays_late = not game.data[5][game.data[0][game.data[4]] != OVER].any()
    leaves = int(rng.integers(1, 5))
    widenings: list[Any] = [None, None]
    if game.zero_sum or not pays_late:
        # They sort edges by prior, so that other players may get another one of equal payoffs.
        widenings += [selection.widening(), selection.widening(1.0, 0.3, most=2)]
        widenings += [selection.adaptive_widening(), selection.adaptive_widening(0.5, most=2)]
    every: dict[str, list[Any]] = {
        "evaluator": [
            None, evaluators.playout(2, max_plies=3),
            evaluators.compiled(random_games.table_values),
            evaluators.compiled(random_games.table_logits),
            evaluators.compiled(random_games.table_priors),
            python_evaluator(game.num_players, leaves, False),
        ],
        "selection": [
            None, selection.ucb1(), selection.ucb1_tuned(), selection.puct(),
            selection.puct(normalise="minmax", fpu="constant"), selection.one_loop(),
            selection.rave(), selection.grave(ref=3), selection.gumbel_interior(),
            selection.thompson(),
        ],
        "root_selection": [None, None, selection.ucb1(2.0), selection.gumbel(4)],
        "root_noise": [None, selection.dirichlet()],
        "backup": [None, None, backup.maximum(), backup.maximum(3), backup.soft_maximum(0.1)],
        "widening": widenings,
        "chance": ["sample", "proportional", selection.outcome_widening()],
        "open_loop": [False, False, True],
        "transpositions": [False, True],
        "solver": [pays_late],
        "opponents": ["maxn", "maxn", "paranoid"],
        "ties": ["first", "random"],
        "in_flight": ["virtual", "unobserved"],
        "parallel": ["root", "tree"],
        "threads": [1, 1, 2],
        "max_memory": [None, None, 40_000],
    }  # fmt: skip
    if not game.zero_sum:
        every["evaluator"].append(evaluators.compiled(random_games.noisy_values))
    options = {name: values[rng.integers(len(values))] for name, values in every.items()}
    for name in rng.permutation(list(every)):
        try:
            resolve(game, **options)
        except ValueError:
            del options[name]
    asked, root = resolve(game, **options).evaluator, options.get("root_selection")
    if asked.batch is not None or (root is not None and root.at_root):
        options["threads"] = 1  # more are refused
    return options


def try_search(seed: int, *, compiled: bool = False) -> uctree.SearchResult:
    """Run the search of a number, go on below its action, and check what holds for all of them."""
    game, state = random_games.any_game(seed)
    options = any_options(game, seed)
    num_simulations = int(np.random.default_rng(seed).integers(1, 300))
    with mock.patch.dict(os.environ, {"NUMBA_DISABLE_JIT": str(int(not compiled))}):
        result = uctree.search(game, state, num_simulations=num_simulations, seed=seed, **options)
        check_counts(result, num_simulations)
        for tree in result.trees:
            check_tree(tree, options, num_evaluations=int(tree.has_priors))
            if tree.layout.shared:
                check_shared_nodes(tree)
            if len(result.trees) == 1 and not resolve(game, **options).is_gumbel:
                go_on_below(tree, result.action, options, seed)
    return result


def go_on_below(tree: Tree, action: int, options: dict[str, Any], seed: int) -> None:
    """Take an action, and search on with what is known of it."""
    below = tree.below(action)
    if below is None or below.root.to_play < 0:
        return
    evaluations = below.root.visits - edge_visits(below, below.root).sum()
    check_tree(below, options, evaluations)
    more = uctree.search(
        tree.game, below.state, tree=below, num_simulations=20, seed=seed,
        **options,
    )  # fmt: skip
    assert more.simulations == 20 or more.status == "solved"
    check_tree(below, options, evaluations + (len(edge_visits(below, below.root)) == 0))


def check_tree(tree: Tree, options: dict[str, Any], num_evaluations: int) -> None:
    assert np.isfinite(tree.mean_values(range(1))).all()
    if options.get("open_loop"):
        check_nodes_of_sequences(tree)
        return
    check_nodes(tree, options, num_evaluations)
    if tree.layout.proofs:
        check_proofs(tree)
    if options.get("evaluator") is None and tree.game.max_plies is None:
        check_range(tree)


def try_episode(seed: int, folder: Path) -> None:
    """Play on with a `Searcher` of random options, and check what it says of each state."""
    game, state = random_games.any_game(seed)
    options = any_options(game, seed) | {"threads": 1}
    if resolve(game, **options).is_gumbel:
        return  # it is refused: Gumbel search halves a fresh root
    rng = np.random.default_rng(seed)
    with mock.patch.dict(os.environ, {"NUMBA_DISABLE_JIT": "1"}):
        searcher = uctree.Searcher(game, **options)
        searcher.state = game.copy(state)
        for _ in range(5):
            if game.is_over(searcher.state):
                return
            action = rng.choice(game.legal(searcher.state))
            if game.to_play(searcher.state) >= 0:
                result = searcher.search(num_simulations=int(rng.integers(1, 60)), seed=seed)
                check_report(result, folder / "one.tree")
                action = rng.choice([action, result.action])
            searcher.advance(int(action))


def check_report(result: uctree.SearchResult, path: Path) -> None:
    """What is said of a search can be played, is exact where proven, and fits into a file."""
    game, state = result.game, result.state
    if result.solved is not None:
        low, high = exact.provable(game, state)[game.key(state)]
        assert result.solved == pytest.approx(low, abs=1e-9)
        assert result.solved == pytest.approx(high, abs=1e-9)
    for action in result.principal_variation().actions:
        assert action in game.legal(state)
        state, _ = game.step(state, action)
    result.tree.save(path)
    used = 1 + result.tree.num_edges
    assert (uctree.Tree.load(path, game).edges[:used] == result.tree.edges[:used]).all()


def check_counts(result: uctree.SearchResult, num_simulations: int) -> None:
    edges, legal = result.edges, result.game.legal(result.state)
    assert edges["visits"].sum() == result.simulations
    assert result.simulations == num_simulations or result.status == "solved"
    assert result.action in legal
    assert set(edges["action"].tolist()) <= set(legal)
    assert result.policy().sum() == pytest.approx(1.0, abs=1e-12)
    assert np.isfinite(edges["q"]).all()
    assert f"{result.simulations} simulation" in str(result)


def check_nodes(tree: Tree, options: dict[str, Any], num_evaluations: int) -> None:
    """Visits add up in every node, and none of its actions is there twice."""
    evaluator = options.get("evaluator")
    in_flight = evaluator is not None and evaluator.batch is not None
    most = evaluator.batch.leaves if in_flight else 1  # simulations may wait for the same leaf
    longest = tree.game.max_plies
    for node in tree.root.walk():
        edges = slice(node.edges.start, node.edges.stop)
        evaluations = node.visits - tree.edges["visits"][edges].sum()
        actions = tree.edges["action"][edges].tolist()
        assert len(set(actions)) == len(actions)
        assert not tree.layout.pending or not tree.edges["pending"][edges].any()
        if node.to_play == OVER:
            assert not actions
            assert node.visits > 0
        elif tree.proof(node.edge) == "exact" or options.get("max_memory") is not None:
            assert evaluations >= 0  # simulations end where a value is proven, or memory
        elif longest is not None and tree.layout.shared:
            # Plies depend on the path; and a root that was not evaluated may be below another one.
            assert evaluations >= 0
        elif longest is not None and node.state["ply"] >= longest:
            assert evaluations == node.visits  # no descent goes beyond
        elif node.to_play == CHANCE:
            assert evaluations == 0
        elif node.edge == 0:
            assert evaluations == num_evaluations
        else:
            assert 1 <= evaluations <= most, node.state


def check_nodes_of_sequences(tree: Tree) -> None:
    """Visits add up in an open loop, whose nodes stand for actions and not for states."""
    nodes = [0]
    for node in nodes:  # which grows meanwhile
        first, count = tree.edges["first"][node], tree.edges["num_edges"][node]
        edges = range(first, first + count) if first >= 0 else range(0)
        below = tree.edge_visits(edges)
        assert tree.edges["visits"][node] - below.sum() >= (node > 0)
        nodes += [edge for edge in edges if tree.edges["visits"][edge] > 0]


def check_shared_nodes(tree: Tree) -> None:
    """A shared node has the visits of the edges that lead to it, those that close circles aside."""
    arrived: dict[int, int] = {}
    nodes = list(tree.root.walk())
    for edge in (edge for node in nodes for edge in node.edges if tree.edges["visits"][edge]):
        record = tree.edges[edge]
        arrived.setdefault(int(record["node"]), 0)
        arrived[int(record["node"])] += int(record["visits"] - record["cycles"])
    for node in nodes[1:]:
        assert node.visits == arrived[node.edge], node.state


def check_range(tree: Tree) -> None:
    """Playouts never return more or less than the game can pay."""
    low, high = random_games.return_bounds(tree.game.data, tree.game.discount)
    for node in tree.root.walk():
        for edge in node.edges:
            if tree.edges["visits"][edge] > 0:
                paid = tree.game.data[5][node.state["place"], tree.edges["action"][edge]]
                after = node.child(edge).state["place"]
                q = tree.mean_values(range(edge, edge + 1))[0]
                assert (q >= paid + tree.game.discount * low[after] - 1e-9).all()
                assert (q <= paid + tree.game.discount * high[after] + 1e-9).all()


def check_proofs(tree: Tree) -> None:
    """What is proven of a node follows from the ends of episodes."""
    known = exact.provable(tree.game, tree.state)
    for node in tree.root.walk():
        if node.to_play == OVER:
            continue
        low, high = known[tree.game.key(node.state)]
        if tree.layout.proofs == "bounds":
            assert tree.edges["low"][node.edge] <= low[0] + 1e-9
            assert tree.edges["high"][node.edge] >= high[0] - 1e-9
        value = tree.proofs(tree.edges[node.edge : node.edge + 1])[0]
        if not np.isnan(value).any():
            assert value == pytest.approx(low, abs=1e-9)
            assert value == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_any_search_of_any_game_keeps_its_counts_and_proofs(seed):
    try_search(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 50))
def test_many_searches_keep_their_counts_and_proofs(first):
    for seed in range(first, first + 50):
        try_search(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(500, 536, 4))
def test_compiled_searches_keep_their_counts_and_proofs_and_are_those_of_plain_python(first):
    for seed in range(first, first + 4):
        compiled, plain = try_search(seed, compiled=True), try_search(seed)
        if compiled.options["threads"] == 1:
            assert compiled.edges.tobytes() == plain.edges.tobytes(), seed


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_any_searcher_plays_on_and_says_what_is_so(seed, tmp_path):
    try_episode(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 50))
def test_many_searchers_play_on_and_say_what_is_so(first, tmp_path):
    for seed in range(first, first + 50):
        try_episode(seed, tmp_path)


def error_after(num_simulations: int, seed: int) -> float:
    """How far the best edge of a search is from its exact value, for the player to move."""
    game, state = random_games.any_game(seed)
    options = {"transpositions": seed % 2 == 0, "backup": backup.maximum(5) if seed % 3 else None}
    with mock.patch.dict(os.environ, {"NUMBA_DISABLE_JIT": "1"}):
        result = uctree.search(game, state, num_simulations=num_simulations, seed=seed, **options)
    best = result.edges[np.argmax(result.edges["visits"])]
    player = game.to_play(state)
    return abs(float(best["q"][player] - exact.maxn(game, state)[player]))


@pytest.mark.slow
def test_values_converge_to_exact_ones():
    seeds = [seed for seed in range(40) if random_games.any_game(seed)[0].max_plies is None]
    early, late = (np.mean([error_after(n, seed) for seed in seeds]) for n in (30, 1000))
    assert late < 0.5 * early
    assert late < 0.1


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(try_search(int(argument)))
