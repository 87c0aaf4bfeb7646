"""Every option of a search: kernels against the reference, and what holds whatever is chosen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

import uctree
from tests import exact, reference
from tests import random_games as rg
from tests.reference import Backup, Node, Search, Widening
from uctree import CHANCE, OVER, Game, backup, evaluators, games, selection
from uctree.engine.compile import interpreted
from uctree.engine.options import resolve

# --- games ---------------------------------------------------------------------------------------

SHARED = {"key_fields": ("place", "to_play")}  # many ways lead to the same place
LATE = 12  # solvers begin this many places before the end


@cache
def game(name: str) -> Game:
    """A Game of many random games; one name is one compilation per composition of options."""
    if name in rg.SHAPES:
        return rg.random_game(name)
    dice = {"has_chance": True}
    return {
        "dice, no discount": lambda: rg.game_of(
            rg.random_tables(num_players=3, seed=8, **dice), known_range=True, **dice
        ),
        "shared": lambda: rg.game_of(rg.random_tables(seed=9), discount=0.9, **SHARED),
        "shared, dice": lambda: rg.game_of(
            rg.random_tables(seed=10, **dice), discount=0.9, **dice, **SHARED
        ),
        "cyclic": lambda: exact.cyclic_game(40, seed=11),
        "two, at the end": lambda: exact.paying_at_the_end(
            exact.RESULTS, num_games=250, seed=1, zero_sum=True, **SHARED
        ),
        "two, at the end, dice": lambda: exact.paying_at_the_end(
            exact.RESULTS, num_games=250, seed=2, zero_sum=True, **dice, **SHARED
        ),
        "three, at the end": lambda: exact.paying_at_the_end(
            exact.PLACEMENTS, num_games=250, seed=3, **SHARED
        ),
        "three, at the end, dice": lambda: exact.paying_at_the_end(
            exact.PLACEMENTS, num_games=250, seed=4, **dice, **SHARED
        ),
    }[name]()


def roots(name: str) -> list[np.record]:
    """States to search from: a player is to move, and it is not far to where proofs begin."""
    states = rg.roots(game(name))
    if "at the end" in name:
        states = exact.late_roots(game(name), LATE)
    return [state for state in states if game(name).to_play(state) != CHANCE]


# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is searched, the options of `uctree.search`, and the same for the reference."""

    game: str
    options: dict[str, Any] = field(default_factory=dict)
    mirrored: dict[str, Any] = field(default_factory=dict)
    evaluate: Callable[..., None] | None = None  # playouts without

    def search(self, state: np.record, **more: Any) -> uctree.SearchResult:
        options = dict(self.options)
        if self.evaluate is not None:
            options["evaluator"] = evaluators.compiled(self.evaluate)
        return uctree.search(game(self.game), state, **options, **more)

    def reference(self, state: np.record, **more: Any) -> Search:
        options = {"evaluate": self.evaluate} | self.mirrored | more
        return Search(game(self.game), state, **options)


def ruled(selection_rule: Any, reference_rule: Any, **more: Any) -> tuple[dict, dict]:
    return {"selection": selection_rule} | more, {"rule": reference_rule}


UCB1, PUCT = reference.Ucb1, reference.Puct
LOGITS, VALUES = rg.table_logits, rg.table_values

CASES: dict[str, Case] = {
    "ucb1-tuned": Case(
        "three, with dice", *ruled(selection.ucb1_tuned(0.7), reference.Ucb1Tuned(0.7))
    ),
    "one loop": Case("three", *ruled(selection.one_loop(0.8), reference.OneLoop(0.8)), LOGITS),
    "one loop, saddle": Case(
        "three",
        *ruled(
            selection.one_loop(1.1, mode="saddle", hbar=2.0, visit_scale=10.0, value_weight=2.0),
            reference.OneLoop(1.1, 2.0, 2.0, 10.0, "saddle"),
        ),
        LOGITS,
    ),
    "one loop, suppressed": Case(
        "three",
        *ruled(
            selection.one_loop(0.8, max_validity=1.0, min_visits=2),
            reference.OneLoop(0.8, max_validity=1.0, min_visits=2),
        ),
        LOGITS,
    ),
    "one loop, off": Case(
        "three", *ruled(selection.one_loop(mode="off"), reference.OneLoop(mode="off")), LOGITS
    ),
    "one loop, simplex, priors of 0": Case(
        "two, known range",
        *ruled(
            selection.one_loop(mode="simplex", fpu="parent"),
            reference.OneLoop(mode="simplex", fpu="parent"),
        ),
        rg.table_priors,
    ),
    "rave": Case(
        "two, zero-sum", *ruled(selection.rave(bias=0.3), reference.Rave(UCB1(0.1), bias=0.3))
    ),
    "rave, by a schedule, on puct": Case(
        "two, known range",
        *ruled(
            selection.rave(selection.puct(0.5), equivalence=20.0),
            reference.Rave(PUCT(0.5), equivalence=20.0),
        ),
    ),
    "grave": Case(
        "three",
        *ruled(selection.grave(selection.ucb1(0.4), ref=10), reference.Rave(UCB1(0.4), ref=10)),
    ),
    "gumbel": Case(
        "three",
        {
            "root_selection": selection.gumbel(3, c_visit=20.0),
            "selection": selection.gumbel_interior(c_scale=0.2),
        },
        {
            "root_rule": reference.GumbelRoot(c_visit=20.0, num_considered=3),
            "rule": reference.GumbelInterior(c_scale=0.2),
        },
        LOGITS,
    ),
    "scaled by siblings": Case(
        "three, with dice",
        *ruled(selection.puct(normalise="parent_and_siblings"), PUCT(scale="parent_and_siblings")),
        LOGITS,
    ),
    "scaled by the range seen": Case(
        "two, known range",
        *ruled(
            selection.puct(normalise="minmax", fpu="constant", fpu_value=0.1),
            PUCT(scale="minmax", fpu="constant", fpu_value=0.1),
        ),
        LOGITS,
    ),
    "noise": Case(
        "three",
        {"root_noise": selection.dirichlet(0.5, 0.4), "selection": selection.puct(fpu_value=0.6)},
        {"rule": PUCT(fpu_value=0.6)},
        LOGITS,
    ),
    "paranoid": Case("three", {"opponents": "paranoid"}, {"paranoid": True}, LOGITS),
    "widening": Case(
        "two, zero-sum",
        {"widening": selection.widening(1.0, 0.4)},
        {"widening": Widening(1.0, 0.4)},
    ),
    "widening, rounded up": Case(
        "two, zero-sum",
        {"widening": selection.widening(0.7, 0.5, rounding="ceil")},
        {"widening": Widening(0.7, 0.5, "ceil")},
    ),
    "widening by priors": Case(
        "two, many actions",
        {"widening": selection.widening(1.5, 0.5, most=9)},
        {"widening": Widening(1.5, 0.5, most=9)},
        LOGITS,
    ),
    "outcomes in proportion": Case(
        "three, with dice", {"chance": "proportional"}, {"chance": "proportional"}
    ),
    "outcome widening": Case(
        "three, with dice",
        {"chance": selection.outcome_widening(1.0, 0.3)},
        {"chance": Widening(1.0, 0.3)},
        VALUES,
    ),
    "open loop": Case("dice, no discount", {"open_loop": True}, {"open_loop": True}),
    "maximum": Case(
        "dice, no discount",
        {"backup": backup.maximum(min_visits=3)},
        {"backup": Backup("maximum", min_visits=3)},
    ),
    "soft maximum": Case(
        "two, known range",
        {"backup": backup.soft_maximum(0.3)},
        {"backup": Backup("soft_maximum", temperature=0.3)},
        LOGITS,
    ),
    "shared": Case("shared, dice", {"transpositions": True}, {"transpositions": True}, LOGITS),
    "shared, maximum": Case(
        "shared",
        {"transpositions": True, "backup": backup.maximum()},
        {"transpositions": True, "backup": Backup("maximum")},
    ),
    "cycles": Case("cyclic", {"transpositions": True}, {"transpositions": True}, VALUES),
    "solver": Case("two, at the end", {"solver": True}, {"solver": True}),
    "solver, dice, shared": Case(
        "two, at the end, dice",
        {"solver": True, "transpositions": True},
        {"solver": True, "transpositions": True},
    ),
    "solver, three": Case("three, at the end", {"solver": True}, {"solver": True}),
    "solver, three, dice": Case(
        "three, at the end, dice", {"solver": True}, {"solver": True}, LOGITS
    ),
    "random ties": Case("two, zero-sum", {"ties": "random"}, {"ties": "random"}),
}

# These differ from others in a formula alone, and their kernels have nothing that those have not.
IN_PYTHON = {
    "one loop, saddle", "one loop, suppressed", "one loop, off", "one loop, simplex, priors of 0",
    "rave, by a schedule, on puct", "scaled by the range seen", "widening, rounded up",
}  # fmt: skip


def ways_to_search():
    """The names of cases, and whether they are compiled; by `make slow` all of them are."""
    for name in CASES:
        if name not in IN_PYTHON:
            yield pytest.param((name, True), id=name)
            continue
        yield pytest.param((name, False), id=f"{name}, in Python")
        yield pytest.param((name, True), id=name, marks=pytest.mark.slow)


@pytest.fixture(params=list(ways_to_search()))
def name(request, monkeypatch):
    name, is_compiled = request.param
    if not is_compiled:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    return name


def some_roots(case: Case, most: int) -> list[np.record]:
    """At most so many states to search from; fewer in plain Python, which is slow."""
    return roots(case.game)[: 2 if interpreted() else most]


WIDE = selection.ucb1(c=math.sqrt(2))  # the proved constant, which looks everywhere


# --- the kernels against the reference -----------------------------------------------------------


def assert_same_tree(result: uctree.SearchResult, search: Search) -> None:
    """Every edge taken has the same action and visits, and the same value up to rounding."""
    tree = result.tree
    is_shared = search.transpositions
    seen: dict[int, Node] = {}

    def walk(mine: int, theirs: Node, path: list[int]) -> None:
        if is_shared and theirs.player == OVER:
            return  # the reference shares these, too
        if mine in seen:
            assert seen[mine] is theirs, f"another node after {path}"
            return
        seen[mine] = theirs
        record = tree.edges[mine]
        visits = record["node_visits" if is_shared else "visits"]
        assert visits == theirs.visits, f"visits after {path}"
        first = max(0, int(record["first"]))
        edges = range(first, first + int(record["num_edges"]))
        counts = zip(tree.edges["action"][edges], tree.edge_visits(edges), strict=True)
        taken = {int(action): int(visits) for action, visits in counts if visits}
        below = {edge.action: edge for edge in theirs.edges if edge.visits}
        assert taken == {a: edge.visits for a, edge in below.items()}, f"edges after {path}"
        for edge, q in zip(edges, tree.mean_values(edges), strict=True):
            if tree.edges["visits"][edge]:
                action = int(tree.edges["action"][edge])
                assert q == pytest.approx(search.q(below[action]), abs=1e-9), (*path, action)
                child = int(tree.edges["node"][edge]) if is_shared else edge
                walk(child, below[action].child, [*path, action])

    walk(0, search.root, [])


def noise_of(name: str, result: uctree.SearchResult) -> dict[str, Any]:
    """What a search drew for its root, handed to the reference."""
    given = result.tree.root_noise
    if given is None:
        return {}
    drawn = [float(number) for number in given[: len(result.tree.root.edges)]]
    return {"gumbel_noise" if "gumbel" in name else "root_priors": drawn}


@pytest.mark.quick
def test_kernels_grow_the_tree_of_the_reference(name):
    case = CASES[name]
    for seed, state in enumerate(some_roots(case, 8)):
        result = case.search(state, num_simulations=120, seed=seed)
        search = case.reference(state, seed=seed, **noise_of(name, result))
        search.run(120)
        assert result.simulations == search.simulations
        assert_same_tree(result, search)
        value = search.value_of(search.root)
        assert result.value == pytest.approx(value, abs=1e-9)


def tree_hash(result: uctree.SearchResult) -> str:
    used = result.tree.edges[: 1 + result.tree.num_edges]
    names = ("visits", "action", "value_sum")
    return hashlib.sha256(b"".join(used[name].tobytes() for name in names)).hexdigest()


def test_the_same_seed_gives_the_same_tree(name):
    case, state = CASES[name], roots(CASES[name].game)[3]
    first, second = (case.search(state, num_simulations=200, seed=5) for _ in range(2))
    assert tree_hash(first) == tree_hash(second)


# --- what holds whatever is chosen ---------------------------------------------------------------


def test_edge_visits_add_up(name):
    case = CASES[name]
    for seed, state in enumerate(some_roots(case, 6)):
        result = case.search(state, num_simulations=150, seed=seed)
        tree = result.tree
        assert tree.edge_visits(tree.root.edges).sum() == result.simulations
        if case.options.get("open_loop"):
            continue
        for node in tree.root.walk():
            evaluations = node.visits - tree.edge_visits(node.edges).sum()
            if node.to_play == OVER or tree.proof(node.edge):
                assert evaluations >= 0
            elif node.edge == 0:
                assert evaluations == (case.evaluate in (LOGITS, rg.table_priors))
            else:
                assert evaluations == (node.to_play != CHANCE)


def test_values_stay_within_the_range_of_returns(name):
    """Those of leaves included, which an evaluator takes from a table."""
    case = CASES[name]
    low, high = value_bounds(case.game)
    for seed, state in enumerate(some_roots(case, 6)):
        result = case.search(state, num_simulations=150, seed=seed)
        for edge in result.edges:
            if edge["visits"]:
                assert (edge["q"] >= low - 1e-9).all()
                assert (edge["q"] <= high + 1e-9).all()


@cache
def value_bounds(name: str) -> tuple[np.ndarray, np.ndarray]:
    """More than what any path pays and any leaf is said to be worth."""
    reward, worth = game(name).data[5:7]
    most = rg.PLACES * np.abs(reward).max((0, 1)) + np.abs(worth).max(0)
    return -most, most


# --- proofs --------------------------------------------------------------------------------------

SOLVERS = [name for name, case in CASES.items() if case.options.get("solver")]


@pytest.mark.parametrize("name", SOLVERS)
def test_what_a_search_proves_is_so(name):
    """The root, its edges and the nodes below, in 250 random games of each kind."""
    case, memo, num_solved = CASES[name], {}, 0
    states = roots(case.game)
    assert len(states) >= 240
    for seed, state in enumerate(states):
        result = case.search(state, num_simulations=600, seed=seed)
        num_solved += result.status == "solved"
        assert (result.status == "solved") == (result.tree.proof(0) != "")
        assert (result.simulations < 600) <= (result.status == "solved")
        if result.status == "solved":
            truth, mover = exact.maxn(game(case.game), state, memo), int(state["to_play"])
            after, reward = game(case.game).step(state, result.action)
            value = reward + exact.maxn(game(case.game), after, memo)
            assert value[mover] == pytest.approx(truth[mover], abs=1e-12)
            if result.tree.proof(0) == "exact":
                assert result.value == pytest.approx(truth, abs=1e-12)
        check_proofs(result, memo)
    assert num_solved > len(states) / 10


def check_proofs(result: uctree.SearchResult, memo: dict[bytes, np.ndarray]) -> None:
    tree = result.tree
    for node in tree.root.walk():
        proof = tree.proof(node.edge)
        truth = exact.maxn(tree.game, node.state, memo)
        if node.to_play == OVER:
            assert proof == "exact"
        elif proof == "exact":
            proven = tree.proven_values(range(node.edge, node.edge + 1))[0]
            assert proven == pytest.approx(truth, abs=1e-12)
        elif proof == "mover":
            assert truth[node.to_play] == tree.game.payoff_range[node.to_play, 1]


@pytest.mark.parametrize("name", SOLVERS)
def test_an_edge_that_is_proven_is_worth_what_is_proven(name):
    case = CASES[name]
    for seed, state in enumerate(roots(case.game)[:40]):
        result = case.search(state, num_simulations=60, seed=seed)
        tree = result.tree
        proven = tree.proven_values(tree.root.edges)
        known = ~np.isnan(proven[:, 0]) & (tree.edge_visits(tree.root.edges) > 0)
        values = tree.mean_values(tree.root.edges)
        assert values[known] == pytest.approx(proven[known], abs=1e-12)


def test_two_players_solve_every_small_game():
    states = roots("two, at the end")
    results = [
        CASES["solver"].search(state, num_simulations=5000, seed=seed, selection=WIDE)
        for seed, state in enumerate(states)
    ]
    assert all(result.status == "solved" for result in results)


# --- defaults ------------------------------------------------------------------------------------


def test_one_player_who_chooses_vectors_takes_the_best_by_default():
    assert resolve(games.point_mass()).backup == backup.maximum()
    for other in (games.leap(), games.twenty48(), games.tic_tac_toe()):
        assert resolve(other).backup == backup.mean()
    assert resolve(games.point_mass(), backup=backup.mean()).backup == backup.mean()


def test_one_player_of_long_episodes_takes_the_best_of_what_was_tried_by_default():
    alone = rg.random_tables(num_players=1)
    long = rg.game_of(alone, max_plies=50)
    assert resolve(long).backup == backup.maximum(32)
    assert resolve(long, evaluator=evaluators.compiled(rg.table_priors)).backup == backup.mean()
    several = rg.game_of(rg.random_tables(), max_plies=50)
    dice = rg.game_of(
        rg.random_tables(num_players=1, has_chance=True), has_chance=True, max_plies=50
    )
    for other in (rg.game_of(alone, max_plies=30), rg.game_of(alone), several, dice):
        assert resolve(other).backup == backup.mean()


def test_the_default_backup_of_one_player_depends_on_the_budget(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = rg.game_of(rg.random_tables(num_players=1), max_plies=6)  # 4 actions: 88 simulations
    few, many = (uctree.search(game, num_simulations=n) for n in (80, 90))
    assert few.options["backup"] == backup.maximum(32)
    assert many.options["backup"] == backup.mean()
    more = uctree.search(game, num_simulations=20, tree=few.tree)
    assert more.options["backup"] == backup.mean()
    given = uctree.search(game, num_simulations=80, backup=backup.mean())
    assert given.options["backup"] == backup.mean()
    assert given.edges["visits"].tolist() != few.edges["visits"].tolist()
    assert uctree.search(game, seconds=0.01).options["backup"] == backup.mean()


def test_the_constant_of_ucb1_by_default():
    assert resolve(games.tic_tac_toe()).selection == selection.ucb1(c=0.5)


# --- shared nodes --------------------------------------------------------------------------------


def test_shared_nodes_and_maximum_find_exact_values():
    case, memo = CASES["shared, maximum"], {}
    late = exact.late_roots(game(case.game), 14)
    for seed, state in enumerate(late):
        result = case.search(state, num_simulations=20_000, seed=seed, selection=WIDE)
        truth = exact.maxn(game(case.game), state, memo)
        mover = int(state["to_play"])
        assert result.value[mover] == pytest.approx(truth[mover], abs=1e-9)


def test_shared_nodes_are_worth_about_what_is_exact():
    case = CASES["shared"]
    errors = []
    for seed, state in enumerate(exact.late_roots(game(case.game), 10)):
        result = case.search(state, num_simulations=20_000, seed=seed)
        mover = int(state["to_play"])
        truth = exact.maxn(game(case.game), state)[mover]
        best = result.edges[np.argmax(result.edges["visits"])]
        errors.append(abs(best["q"][mover] - truth))
    assert np.mean(errors) < 0.05


def test_shared_nodes_are_fewer():
    case = CASES["shared, maximum"]
    state = roots(case.game)[0]
    result = case.search(state, num_simulations=2000)
    nodes = [node for node in result.tree.root.walk() if node.to_play != OVER]
    keys = {result.game.key(node.state) for node in nodes}
    assert len(keys) == len(nodes) <= rg.PLACES


def test_games_with_cycles_are_worth_what_can_be_forced():
    case = CASES["cycles"]
    errors = []
    for seed, state in enumerate(rg.roots(game("cyclic"))):
        result = case.search(state, num_simulations=20_000, seed=seed)
        errors.append(abs(result.value[0] - exact.cyclic_value(game("cyclic"), state)))
    assert np.mean(errors) < 0.05
    assert max(errors) < 0.4


# --- single options ------------------------------------------------------------------------------


def test_paranoid_search_finds_the_value_against_all_others():
    case = CASES["paranoid"]
    for seed, state in enumerate(exact.late_roots(game(case.game), 6)):
        result = case.search(state, num_simulations=20_000, seed=seed)
        player = int(state["to_play"])
        truth = exact.paranoid(game(case.game), state, player)
        best = result.edges[np.argmax(result.edges["visits"])]
        assert best["q"][player] == pytest.approx(truth, abs=0.15)


def test_widening_opens_as_many_edges_as_it_says():
    for name in ("widening", "widening, rounded up", "widening by priors"):
        case = CASES[name]
        rule = case.mirrored["widening"]
        for seed, state in enumerate(roots(case.game)[:4]):
            tree = case.search(state, num_simulations=150, seed=seed).tree
            for node in tree.root.walk():
                num_taken = int((tree.edge_visits(node.edges) > 0).sum())
                assert num_taken <= rule.limit(max(0, node.visits - 1))
                if rule.most is not None:
                    assert num_taken <= rule.most


def test_an_open_loop_without_chance_is_a_closed_one():
    state = roots("two, zero-sum")[0]
    one, other = (
        Search(game("two, zero-sum"), state, seed=1, open_loop=opened) for opened in (False, True)
    )
    one.run(200)
    other.run(200)
    assert [e.visits for e in one.root.edges] == [e.visits for e in other.root.edges]


def test_outcomes_in_proportion_come_up_in_proportion():
    case = CASES["outcomes in proportion"]
    tree = case.search(roots(case.game)[0], num_simulations=2000).tree
    compared = 0
    for node in tree.root.walk():
        if node.to_play == CHANCE and node.visits > 50:
            chances = dict(tree.game.outcomes(node.state))
            visits = tree.edge_visits(node.edges)
            expected = [chances[int(a)] * node.visits for a in tree.edges["action"][node.edges]]
            assert np.abs(visits - expected).max() <= len(visits)
            compared += 1
    assert compared > 3
