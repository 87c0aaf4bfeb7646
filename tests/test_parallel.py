"""Several threads: no visit lost, nothing left under way, and the same for the same seed."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import uctree
from tests.test_combinations import COMBINATIONS
from tests.test_mcts import counting_game
from uctree import backup, evaluators, games, selection
from uctree.kernels.records import NONE


def favourites(state, values, logits):
    for action in range(logits.shape[0]):
        logits[action] = -0.3 * action


def expensive(state, values):
    total = 0.0
    for i in range(200_000):
        total += 1.0 / (1.0 + i)
    values[0] = 1e-9 * total
    values[1] = -values[0]


# --- trees of their own --------------------------------------------------------------------------


def root_parallel(num_simulations, threads, seed=1, **options):
    game = games.connect_four()
    return uctree.search(
        game, game.start(), num_simulations=num_simulations, threads=threads, parallel="root",
        seed=seed, **options,
    )  # fmt: skip


@pytest.mark.parametrize("threads", [2, 3])
def test_trees_are_added_up_and_the_same_for_the_same_seed(threads):
    result, again = (root_parallel(10_001, threads) for _ in range(2))
    assert result.simulations == 10_001 == result.edges["visits"].sum()
    assert result.edges["visits"].tolist() == again.edges["visits"].tolist()
    assert result.value.tolist() == again.value.tolist()
    shares = [tree.simulations for tree in result.trees]
    assert max(shares) - min(shares) <= 1
    visits = [tuple(tree.edge_visits(tree.root.edges)) for tree in result.trees]
    assert len(set(visits)) == threads
    assert root_parallel(10_001, threads, seed=2).edges["visits"].tolist() != visits


def test_trees_of_their_own_keep_time_limits_and_show_progress():
    game, seen = games.connect_four(), []
    began = time.perf_counter()
    result = uctree.search(
        game, game.start(), seconds=0.3, threads=2, parallel="root", progress=seen.append
    )
    assert time.perf_counter() - began < 5
    assert result.status == "seconds"
    assert seen
    assert seen[-1].simulations <= result.simulations == result.edges["visits"].sum()


# --- one tree ------------------------------------------------------------------------------------

SHARED = {
    "playouts": {},
    "unobserved": {"in_flight": "unobserved"},
    "priors": {"evaluator": favourites},
    "amaf": {"selection": selection.rave()},
    "shared nodes, proofs": {"transpositions": True, "solver": True},
    "maximum": {"backup": backup.maximum()},
}


@pytest.mark.parametrize("kind", SHARED)
def test_no_visit_is_lost_in_a_shared_tree(kind):
    game = games.connect_four()
    for seed in range(5):
        result = uctree.search(
            game, game.start(), num_simulations=4_003, threads=2, parallel="tree", seed=seed,
            **SHARED[kind],
        )  # fmt: skip
        edges = result.tree.edges
        assert result.simulations == 4_003 == result.edges["visits"].sum()
        assert not edges["pending"].any()
        if kind in ("playouts", "unobserved", "amaf"):
            nodes = [n for n in np.flatnonzero(edges["first"] != NONE) if edges["visits"][n]]
            for node in nodes[1:]:
                first, count = edges["first"][node], edges["num_edges"][node]
                below = int(edges["visits"][first : first + count].sum())
                # A node is valued once; twice where both threads came to it at once.
                assert 1 <= edges["visits"][node] - below <= 2


def test_edges_stay_where_they_are_while_leaves_are_valued():
    game = games.hex(11)
    for seed in range(3):
        result = uctree.search(
            game, game.start(), num_simulations=400, threads=4, parallel="tree", seed=seed,
            evaluator=evaluators.playout(50), selection=selection.puct(0.3),
        )  # fmt: skip
        assert result.edges["visits"].sum() == 400
        assert not result.tree.edges["pending"].any()


def test_an_error_in_one_thread_ends_the_others():
    def step(state, action, reward):
        state.left -= 1
        if state.left < 3:
            reward[0] = 1 // (state.left - state.left)
        state.to_play = uctree.OVER if state.left == 0 else 1 - state.to_play

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def start(state):
        state.left = 8

    fields = [("left", np.int16), ("to_play", np.int8)]
    game = uctree.Game(fields, legal, step, start=start, num_players=2, num_actions=2)
    for parallel in ("tree", "root"):
        with pytest.raises(uctree.BrokenGame, match="ZeroDivisionError"):
            uctree.search(
                game, game.start(), seconds=30, threads=2, parallel=parallel, check=False,
                evaluator=evaluators.playout(max_plies=1),
            )  # fmt: skip


def test_a_chance_root_is_measured_without_harm():
    game = games.pig()
    rolling, _ = game.step(game.start(), 0)
    result = uctree.search(game, rolling, num_simulations=600, threads=2, debug=True)
    assert result.edges["visits"].sum() == 600


def test_chance_is_searched_in_a_shared_tree():
    game = games.pig()
    result = uctree.search(game, game.start(), num_simulations=3_000, threads=2, parallel="tree")
    assert result.edges["visits"].sum() == 3_000
    assert not result.tree.edges["pending"].any()


def test_a_shared_tree_grows_while_it_is_searched():
    game = games.connect_four()
    result = uctree.search(game, game.start(), seconds=0.5, threads=2, parallel="tree")
    assert result.tree.num_edges > 3 * 4096
    assert result.edges["visits"].sum() == result.simulations


SHARING = {name: row for name, row in COMBINATIONS.items() if row.shares_tree}


@pytest.mark.parametrize("name", SHARING)
@pytest.mark.parametrize("threads", [2, 3])
def test_no_visit_is_lost_whatever_else_is_chosen(name, threads):
    for seed in range(8):
        result = SHARING[name].search(num_simulations=700 + seed, threads=threads, seed=seed)
        tree = result.tree
        assert result.simulations == result.edges["visits"].sum()
        assert result.simulations == 700 + seed or result.status == "solved"
        assert not tree.edges["pending"].any()
        for node in tree.root.walk():
            if node.edge and node.to_play >= 0 and not tree.proof(node.edge):
                valued = node.visits - tree.edge_visits(node.edges).sum()
                assert 1 <= valued <= threads


def test_a_search_goes_on_in_the_tree_that_threads_shared():
    game, options = games.connect_four(), {"threads": 2, "parallel": "tree"}
    first = uctree.search(game, game.start(), num_simulations=1_000, **options)
    second = uctree.search(
        game, game.start(), num_simulations=501, threads=3, parallel="tree", tree=first.tree
    )
    assert second.simulations == 501
    assert second.edges["visits"].sum() == 1_501
    third = uctree.search(game, game.start(), num_simulations=99, threads=2, tree=second.tree)
    assert third.options["parallel"] == "tree"
    assert third.edges["visits"].sum() == 1_600


def test_a_shared_tree_keeps_time_limits_and_shows_progress():
    game, seen = games.connect_four(), []
    result = uctree.search(
        game, game.start(), seconds=0.3, threads=2, parallel="tree", progress=seen.append
    )
    assert result.status == "seconds"
    assert result.seconds < 3
    counts = [progress.simulations for progress in seen]
    assert counts == sorted(counts)
    assert counts[-1] == result.simulations == result.edges["visits"].sum()


# What is wrong below the root's edges, where both threads are busy: the first two simulations pass.


def raising(state, values):
    total = 0.0
    for i in range(2_000):
        total += i
    values[0] = total / (state.left - 1) if state.left < 3 else 0.0


def nothing(state, values):
    values[0] = 0.0


def raising_step(state, action, reward):
    reward[0] = 10 // (state.left - 2)
    state.left -= action + 1
    state.to_play = uctree.OVER if state.left == 0 else 1 - state.to_play


def paying_step(state, action, reward):
    reward[0] = math.inf if state.left == 2 else 0.0
    state.left -= action + 1
    state.to_play = uctree.OVER if state.left == 0 else 1 - state.to_play


BROKEN = {
    "the evaluator raises": ({}, raising, "ZeroDivisionError"),
    "step raises": ({"step": raising_step}, nothing, "ZeroDivisionError"),
    "step pays no number": ({"step": paying_step}, nothing, "rewards must be finite"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_nothing_stays_under_way_in_a_tree_where_something_went_wrong(what):
    rules, evaluator, message = BROKEN[what]
    game = counting_game(**rules)
    options = {"threads": 2, "parallel": "tree", "evaluator": evaluator, "check": False}
    tree = uctree.search(game, game.start(), num_simulations=2, **options).tree
    with pytest.raises(uctree.BrokenGame, match=message):
        uctree.search(game, game.start(), num_simulations=2_000, tree=tree, **options)
    assert not tree.edges["pending"][: 1 + tree.num_edges].any()
    assert tree.edge_visits(tree.root.edges).sum() == tree.simulations == tree.root.visits


# --- which of them -------------------------------------------------------------------------------


def test_cheap_simulations_get_trees_of_their_own_and_dear_ones_share():
    game = games.tic_tac_toe()
    cheap = uctree.search(game, game.start(), num_simulations=200, threads=2)
    assert len(cheap.trees) == 2
    shared = uctree.search(game, game.start(), num_simulations=50, threads=2, evaluator=expensive)
    assert len(shared.trees) == 1
    assert shared.options["parallel"] == "tree"


def test_wrong_ways_to_be_parallel_are_told():
    game = games.tic_tac_toe()
    for options, message in (
        ({"threads": 0}, "threads must be at least 1"),
        ({"threads": 2, "parallel": "leaf"}, "parallel must be"),
        ({"threads": 2, "in_flight": "lost"}, "in_flight must be"),
        (
            {"threads": 2, "parallel": "root", "evaluator": favourites,
             "root_selection": selection.gumbel()},
            "halves one root",
        ),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            uctree.search(game, game.start(), num_simulations=10, **options)
