"""The kernels against the slow and obvious search of `reference.py`, over whole trees."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify
from ramify import evaluators, games, selection
from ramify.tree import LAZY_ABOVE, Tree
from tests import random_games
from tests.random_games import random_game, roots
from tests.reference import Node, Search

# What a case searches, the options of ramify.search, and the same for the reference.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "cut playouts": (
        "alone, with dice",
        {"evaluator": evaluators.playout(num_playouts=3, max_plies=4)},
        {"num_playouts": 3, "max_plies": 4},
    ),
    "playouts": ("three, with dice", {}, {}),
    "zero-sum playouts": ("two, zero-sum", {}, {}),
    "playouts stored in full": ("two, zero-sum but not declared", {}, {}),
    "edges made one by one": ("two, many actions", {"selection": selection.ucb1(0.3)}, {"c": 0.3}),
    "edges made one by one, priors alike": (
        "two, many actions",
        {"selection": selection.puct(c=0.5)},
        {"rule": "puct", "c": 0.5},
    ),
    "values": (
        "three, with dice",
        {"evaluator": evaluators.compiled(random_games.noisy_values)},
        {"evaluate": random_games.noisy_values},
    ),
    "priors": (
        "three, with dice",
        {"evaluator": evaluators.compiled(random_games.table_priors)},
        {"rule": "puct", "c": 1.25, "evaluate": random_games.table_priors},
    ),
    "logits, values as they are": (
        "three",
        {
            "evaluator": evaluators.compiled(random_games.table_logits),
            "selection": selection.puct(2.0, 50.0, fpu="parent", fpu_value=0.3, normalise=False),
        },
        {
            "rule": "puct", "c": 2.0, "c_base": 50.0, "fpu": "parent", "fpu_value": 0.3,
            "normalise": False, "evaluate": random_games.table_logits,
        },
    ),
    "constant c, constant urgency": (
        "two, known range",
        {
            "evaluator": evaluators.compiled(random_games.table_priors),
            "selection": selection.puct(0.7, math.inf, fpu="constant", fpu_value=0.1),
        },
        {
            "rule": "puct", "c": 0.7, "c_base": math.inf, "fpu": "constant", "fpu_value": 0.1,
            "evaluate": random_games.table_priors,
        },
    ),
}  # fmt: skip
# Differs from the last case by numbers alone, so it needs no compilation of its own.
CASES["urgency where the range has length one"] = (
    "two, range of length one",
    *CASES["constant c, constant urgency"][1:],
)


def assert_same_tree(tree: Tree, root: Node) -> None:
    """Every edge taken has the same action and visits, and the same value up to rounding."""
    edges = tree.edges

    def walk(edge: int, node: Node, path: list[int]) -> None:
        first, num_edges = int(edges["first"][edge]), int(edges["num_edges"][edge])
        below = range(first, first + num_edges) if first >= 0 else range(0)
        taken = [child for child in below if edges["visits"][child]]
        expected = [child for child in node.edges if child.visits]
        assert edges["visits"][edge] == node.visits, f"visits after {path}"
        assert [(int(edges["action"][e]), int(edges["visits"][e])) for e in taken] == [
            (e.action, e.visits) for e in expected
        ], f"edges after {path}"
        if tree.has_priors:
            priors = [float(edges["prior"][e]) for e in below]
            assert priors == pytest.approx([e.prior for e in node.edges], rel=1e-12)
        for mine, theirs in zip(taken, expected, strict=True):
            q = tree.mean_values(range(mine, mine + 1))[0]
            assert q == pytest.approx(theirs.total / theirs.visits, rel=1e-12, abs=1e-12)
            walk(mine, theirs.child, [*path, theirs.action])

    walk(0, root, [])


def search(case: str, state: np.record, **options: Any) -> ramify.SearchResult:
    shape, search_options, _ = CASES[case]
    return ramify.search(random_game(shape), state, **search_options, **options)


@pytest.mark.parametrize("case", CASES)
def test_kernels_grow_the_tree_of_the_reference(case):
    shape, _, reference_options = CASES[case]
    game = random_game(shape)
    for seed, state in enumerate(roots(game)[:5]):
        result = search(case, state, num_simulations=150, seed=seed)
        reference = Search(game, state, seed=seed, **reference_options)
        assert_same_tree(result.tree, reference.run(150))
        root = reference.root
        assert result.value == pytest.approx(root.total / root.visits, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("moves", [[], [0, 1, 0, 1], [1, 1, 1, 2, 1, 0, 2]])
def test_kernels_grow_the_tree_of_the_reference_in_connect_four(moves):
    game = games.connect_four(rows=4, cols=4)
    state = game.play(moves)
    result = ramify.search(game, state, num_simulations=200, seed=7)
    assert_same_tree(result.tree, Search(game, state, seed=7).run(200))


def test_many_actions_are_more_than_a_node_gets_edges_for_at_once():
    game = random_game("two, many actions")
    result = search("edges made one by one", roots(game)[0], num_simulations=300)
    assert len(game.legal(result.state)) > LAZY_ABOVE
    assert len(result.edges) == len(game.legal(result.state))
    assert len(search("edges made one by one", result.state, num_simulations=7).edges) == 7


# --- the same seed -------------------------------------------------------------------------------

REPEATED = ("cut playouts", "zero-sum playouts", "edges made one by one", "values", "priors")


def tree_hashes() -> list[str]:
    """A hash of every tree of a few searches."""
    hashes = []
    for case in REPEATED:
        game = random_game(CASES[case][0])
        tree = search(case, roots(game)[2], num_simulations=100, seed=11).tree
        used = tree.edges[: 1 + tree.num_edges]
        content = b"".join(used[name].tobytes() for name in ("visits", "action", "value_sum"))
        hashes.append(hashlib.sha256(content).hexdigest())
    return hashes


def test_the_same_seed_gives_the_same_tree_again():
    assert tree_hashes() == tree_hashes()


@pytest.mark.parametrize("interpreted", ["0", "1"])
def test_the_same_seed_gives_the_same_tree_in_another_process(interpreted):
    code = "from tests.test_reference import tree_hashes; print(*tree_hashes())"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"NUMBA_DISABLE_JIT": interpreted},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert printed.split() == tree_hashes()


def test_another_seed_gives_another_tree():
    state = roots(random_game("three, with dice"))[0]
    first, second = (search("playouts", state, num_simulations=100, seed=s) for s in (0, 1))
    assert not np.array_equal(first.edges["q"], second.edges["q"])
