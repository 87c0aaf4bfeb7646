"""The kernels against the slow and obvious search of `reference.py`, over whole trees."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uctree
from tests import exact, random_games, reference
from tests.random_games import random_game, roots
from tests.reference import Node, Puct, Search, Ucb1
from uctree import evaluators, games, selection
from uctree.kernels.records import LAZY_ABOVE
from uctree.tree import Tree

pytestmark = pytest.mark.quick

# What a case searches, the options of uctree.search, and the same for the reference.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "cut playouts": (
        "alone, with dice",
        {"evaluator": evaluators.playout(num_playouts=3, max_plies=4)},
        {"num_playouts": 3, "max_plies": 4},
    ),
    "playouts": ("three, with dice", {}, {}),
    "zero-sum playouts": ("two, zero-sum", {}, {}),
    "playouts stored in full": ("two, zero-sum but not declared", {}, {}),
    "edges made one by one": (
        "two, many actions",
        {"selection": selection.ucb1(0.3)},
        {"rule": Ucb1(0.3)},
    ),
    "edges made one by one, priors alike": (
        "two, many actions",
        {"selection": selection.puct(c=0.5)},
        {"rule": Puct(0.5)},
    ),
    "values": (
        "three, with dice",
        {"evaluator": evaluators.compiled(random_games.noisy_values)},
        {"evaluate": random_games.noisy_values},
    ),
    "priors": (
        "three, with dice",
        {"evaluator": evaluators.compiled(random_games.table_priors)},
        {"evaluate": random_games.table_priors},
    ),
    "logits, values as they are": (
        "three",
        {
            "evaluator": evaluators.compiled(random_games.table_logits),
            "selection": selection.puct(2.0, 50.0, fpu="parent", fpu_value=0.3, normalise="none"),
        },
        {
            "rule": Puct(2.0, 50.0, fpu="parent", fpu_value=0.3, scale="none"),
            "evaluate": random_games.table_logits,
        },
    ),
    "constant c, constant urgency": (
        "two, known range",
        {
            "evaluator": evaluators.compiled(random_games.table_priors),
            "selection": selection.puct(0.7, math.inf, fpu="constant", fpu_value=0.1),
        },
        {
            "rule": Puct(0.7, math.inf, fpu="constant", fpu_value=0.1),
            "evaluate": random_games.table_priors,
        },
    ),
}  # fmt: skip
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


def search(case: str, state: np.record, **options: Any) -> uctree.SearchResult:
    shape, search_options, _ = CASES[case]
    # The short range is not that of the payoffs, which the look at a game would not allow.
    options["check"] = shape != "two, range of length one"
    return uctree.search(random_game(shape), state, **search_options, **options)


@pytest.mark.parametrize("case", CASES)
def test_kernels_grow_the_tree_of_the_reference(case):
    shape, _, reference_options = CASES[case]
    game = random_game(shape)
    for seed, state in enumerate(roots(game)[:5]):
        result = search(case, state, num_simulations=150, seed=seed)
        reference = Search(game, state, seed=seed, **reference_options)
        assert_same_tree(result.tree, reference.run(150))
        value = reference.value_of(reference.root)
        assert result.value == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("moves", [[], [0, 1, 0, 1], [1, 1, 1, 2, 1, 0, 2]])
def test_kernels_grow_the_tree_of_the_reference_in_connect_four(moves):
    game = games.connect_four(rows=4, cols=4)
    state = game.play(moves)
    result = uctree.search(game, state, num_simulations=200, seed=7)
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


# --- the reference itself, against values computed elsewhere --------------------------------------

VECTORS = json.loads((Path(__file__).parent / "vectors" / "golden.json").read_text())["vectors"]


def vectors_of(*families: str) -> Any:
    chosen = [v for v in VECTORS if v["id"].startswith(families)]
    return pytest.mark.parametrize("vector", chosen, ids=lambda v: v["id"])


def view_of(visits: int, counts: list[int], q: list[float], **known: Any) -> reference.View:
    known = {"value": 0.0, "raw_value": 0.0, "span": 1.0, "priors": [1.0] * len(q)} | known
    known = {"squares": [0.0] * len(q), "raw_q": q, "search": None} | known
    return reference.View(visits=visits, counts=counts, q=q, **known)


@vectors_of("ucb1tuned.")
def test_ucb1_tuned_of_the_reference(vector):
    given = vector["input"]
    view = view_of(given["N"], [given["n"]], [given["mean"]], squares=[given["mean_square"]])
    assert reference.Ucb1Tuned().scores(view) == pytest.approx([vector["expected"]["score"]])


@vectors_of("quantum.score.", "quantum.one_loop.")
def test_one_loop_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]

    def scores(mode: str, value_weight: float) -> list[float]:
        frozen = {"hbar": given["hbar"], "visit_scale": math.inf}
        rule = reference.OneLoop(given["kappa"], value_weight, mode=mode, **frozen)
        view = view_of(given["N_total"], given["N"], given["Q"], priors=given["p"])
        return np.array([score for score, _ in rule.scores(view)])

    if "score" in expected:
        assert scores("kernel", given["beta"]) == pytest.approx(expected["score"], rel=1e-12)
        return
    explored = scores("off", 0.0)
    for mode, key in {
        "kernel": "bonus",
        "simplex": "constrained_bonus",
        "saddle": "saddle_bonus",
    }.items():
        assert scores(mode, 0.0) - explored == pytest.approx(expected[key], rel=1e-9)


@vectors_of("quantum.hbar.")
def test_the_effective_constant_of_the_reference(vector):
    given = vector["input"]

    def score(mode: str) -> float:
        options = {"hbar": given["hbar_base"], "visit_scale": given["N_scale"], "mode": mode}
        rule = reference.OneLoop(1e-3, **options)
        return rule.scores(view_of(given["N_total"], [1], [0.0]))[0][0]

    bonus = 0.75 * vector["expected"]["hbar_eff"]
    assert score("kernel") - score("off") == pytest.approx(bonus, rel=1e-12)


def test_of_equal_scores_an_edge_never_taken_comes_first():
    view = view_of(1, [1, 0], [0.5, 0.5], priors=[0.5, 0.5])
    once, never = reference.OneLoop().scores(view)
    assert once[0] == never[0]
    assert never > once


@vectors_of("rave.")
def test_the_weight_of_amaf_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]
    if "k" in given:
        rule = reference.Rave(Ucb1(), equivalence=given["k"])
        assert rule.weight(given["n"], 1) == pytest.approx(expected["beta"])
    else:
        rule = reference.Rave(Ucb1(), bias=given["bias"])
        weight = rule.weight(given["n"], given["n_amaf"])
        assert weight == pytest.approx(expected["beta"])
        value = (1 - weight) * given["q"] + weight * given["q_amaf"]
        assert value == pytest.approx(expected["value"])


@vectors_of("widening.")
def test_widening_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]
    if "limit" in expected:
        rule = reference.Widening(given["k"], given["alpha"], given["rounding"])
        assert rule.limit(given["N"]) == expected["limit"]
    elif "new_outcome" in expected:
        rule = reference.Widening(given["k_outcome"], given["alpha_outcome"])
        num_outcomes, fresh = 0, []
        for visits in range(given["visits"]):
            fresh.append(int(num_outcomes < rule.limit(visits)))
            num_outcomes += fresh[-1]
        assert fresh == expected["new_outcome"]


@vectors_of("seqhalving.sequence")
def test_the_schedule_of_the_reference(vector):
    given = vector["input"]
    schedule = reference.halving_schedule(given["max_considered"], given["num_simulations"])
    assert schedule == vector["expected"]["considered_visits"]


@vectors_of("gumbel.completed_q.")
def test_completed_values_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]
    options = {"c_visit": given["c_visit"], "c_scale": given["value_scale"]}
    rule = reference.GumbelInterior(rescale=given["rescale"], **options)
    priors = reference.softmax(given["logits"])
    view = view_of(1, given["visits"], given["q"], priors=priors, raw_value=given["raw_value"])
    assert rule.sigma(view) == pytest.approx(expected["transformed_q"], rel=1e-10, abs=1e-10)
    spent = [n / (1 + sum(given["visits"])) for n in given["visits"]]
    policy = np.array(rule.scores(view)) + spent
    assert policy == pytest.approx(expected["improved_policy"], rel=1e-9, abs=1e-12)


# `data`: where an action leads, what it pays who takes it, what a place is worth for who is to
# play there, log-priors, the actions that are legal at the root, and those (by place) after which
# nothing counts any more.


def model_legal(state, actions, data):
    count = 0
    for action in range(data[0].shape[1]):
        if state.ply > 0 or data[4][action]:
            actions[count] = action
            count += 1
    return count


def model_step(state, action, reward, data):
    player = state.to_play
    reward[player] = 0.0 if state.is_dead else data[1][state.place, action]
    if reward.shape[0] == 2:
        reward[1 - player] = -reward[player]
        state.to_play = 1 - player
    state.is_dead |= data[5][state.place, action]
    state.place = data[0][state.place, action]
    state.ply += 1


def model_value(state, values, logits, data):
    values[state.to_play] = 0.0 if state.is_dead else data[2][state.place]
    if values.shape[0] == 2:
        values[1 - state.to_play] = -values[state.to_play]
    for action in range(logits.shape[0]):
        logits[action] = data[3][state.place, action]


@vectors_of("gumbel.search.", "muzero.search.")
def test_searches_of_the_reference(vector):
    given, model = vector["input"], vector["input"]["model"]
    discounts = np.array(model["discount"])
    discount = discounts[discounts != 0][0]
    legal = 1 - np.array(given.get("invalid_actions") or [0] * len(model["logits"][0]))
    data = (
        np.array(model["next_state"], np.int32), np.array(model["reward"]),
        np.array(model["value"]), np.array(model["logits"]), legal,
        (discounts == 0).astype(np.int8),
    )  # fmt: skip
    # One number that is turned at every step by a discount of -1 is what two players have.
    game = uctree.Game(
        [("place", np.int32), ("ply", np.int32), ("is_dead", np.int8), ("to_play", np.int8)],
        model_legal, model_step,
        data=data, num_players=2 if discount < 0 else 1, num_actions=len(legal),
        discount=abs(discount),
    )  # fmt: skip
    if vector["id"].startswith("gumbel"):
        numbers = given["c_visit"], given["value_scale"], given["rescale"]
        rules = {
            "rule": reference.GumbelInterior(*numbers),
            "root_rule": reference.GumbelRoot(*numbers, num_considered=given["max_considered"]),
            "gumbel_noise": [g for g, ok in zip(given["root_gumbel"], legal, strict=True) if ok],
        }
    else:
        rules = {"rule": Puct(given["c_init"], given["c_base"], scale=given["normalise"])}
    search = Search(game, game.start(), evaluate=model_value, **rules)
    root = search.run(given["num_simulations"])
    expected = vector["expected"]
    visits = dict.fromkeys(range(len(legal)), 0) | {e.action: e.visits for e in root.edges}
    assert list(visits.values()) == expected["visit_counts"]
    for edge in root.edges:
        if edge.visits:
            q = expected["q_values"][edge.action]
            assert search.q(edge)[0] == pytest.approx(q, rel=1e-8)
    assert search.value_of(root)[0] == pytest.approx(expected["root_value"], rel=1e-8)


def proven(search: Search, tree: dict[str, Any]) -> Node:
    """A node of the reference with the tree below it, after all proofs that follow."""
    node = Node(search.game, search.state)
    node.player = tree.get("player", uctree.OVER)
    node.bounds = tuple(search.known[0])
    if "leaf" in tree:
        node.exact = np.array(tree["leaf"], float)
        node.bounds = (tree["leaf"][0],) * 2
    for i, child in enumerate(tree.get("children", [])):
        zero = np.zeros(search.game.num_players)
        below = None if "unknown" in child else proven(search, child)
        node.edges.append(reference.Edge(i, 1.0, zero, zero, reward=zero, child=below))
    if node.edges:
        search.prove(node)
    return node


@vectors_of("solver2.", "solvern.")
def test_proofs_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]
    num_players = 2 if vector["id"].startswith("solver2") else 3
    game, unknown = exact.tree_game(
        given["tree"], num_players, zero_sum=num_players == 2,
        payoff_range=(given.get("u_min", -1), given["u_max"]),
    )  # fmt: skip
    node = proven(Search(game, game.start(), solver=True), given["tree"])
    if num_players == 2:
        assert list(node.bounds) == expected["bounds_player0"]
        assert (node.exact is not None) == expected["solved"]
        low, high = game.payoff_range[0]
        is_unknown = lambda state: int(state["place"]) in unknown  # noqa: E731
        assert exact.bounds(game, game.start(), is_unknown, low, high) == node.bounds
    else:
        status = "exact" if node.exact is not None else "mover" if node.mover_proven else None
        assert status == expected["status"]
        if status == "exact":
            assert node.exact.tolist() == expected["value"]


@vectors_of("maxn.", "chance.expectimax")
def test_brute_force(vector):
    given, expected = vector["input"], vector["expected"]
    game, _ = exact.tree_game(given["tree"], 3 if "maxn" in vector["id"] else 2)
    value = expected.get("maxn_value", expected.get("value"))
    assert exact.maxn(game, game.start()) == pytest.approx(value)
    if "paranoid_value_root" in expected:
        assert exact.paranoid(game, game.start(), 0) == expected["paranoid_value_root"]


@vectors_of("dag.idempotent")
def test_shared_nodes_of_the_reference(vector):
    given, expected = vector["input"], vector["expected"]
    game, _ = exact.tree_game({"player": 0, "children": [{"leaf": [0.0]}]}, 1)
    search = Search(game, game.start(), transpositions=True)
    nodes = {name: Node(game, game.start()) for name in given["own_value"]}
    zero = np.zeros(1)
    for name, node in nodes.items():
        node.evaluations, node.own_total = 1, np.array([given["own_value"][name]])
        node.edges = [
            reference.Edge(0, 1.0, zero, zero, e["visits"], reward=zero, child=nodes[e["child"]])
            for e in given["edges"][name].values()
        ]
        node.visits = 1 + sum(edge.visits for edge in node.edges)
    for name in "CBAR":  # from the leaf up
        nodes[name].value = search.recomputed(nodes[name])
    for name, node in nodes.items():
        assert search.value_of(node)[0] == pytest.approx(expected["Q"][name], rel=1e-12)
        assert node.visits == expected["N"][name]
