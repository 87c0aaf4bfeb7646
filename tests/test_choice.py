"""What a search result says, from trees filled by hand."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import uctree
from tests.golden_choice import FAMILIES
from uctree import choice, evaluators, gumbel, selection
from uctree import result as results
from uctree.choice import Choice
from uctree.result import SearchResult
from uctree.tree import EXACT, MOVER, Layout, Tree

Heap = np.dtype([("left", np.int16), ("ply", np.int16), ("to_play", np.int8)])


def legal(state, actions):
    count = min(3, state.left)
    for i in range(count):
        actions[i] = i
    return count


def step(state, action, reward):
    player = state.to_play
    state.left -= action + 1
    state.ply += 1
    state.to_play = 1 - player
    if state.left == 0:
        reward[player] = 1.0
        reward[1 - player] = -1.0
        state.to_play = uctree.OVER


def start(state):
    state.left = 9


@cache
def heap_game(**options: Any) -> uctree.Game:
    """Take 1, 2 or 3 from a heap of 9; who takes the last one wins."""
    return uctree.Game(
        Heap, legal, step, num_players=2, num_actions=3, start=start, payoff_range=(-1.0, 1.0),
        name="heap", **options,
    )  # fmt: skip


# --- trees by hand -------------------------------------------------------------------------------


class Sums:
    """What a node of a tree will hold."""

    def __init__(self, num_players: int) -> None:
        self.visits = 0
        self.total = np.zeros(num_players)
        self.squares = np.zeros(num_players)
        self.children: dict[int, Sums] = {}


def grown(
    game: uctree.Game, lines: dict[tuple[int, ...], Any], state: Any = None, proofs: Any = None,
    layout: Layout | None = None, priors: Any = None,
) -> Tree:  # fmt: skip
    """A tree from what its simulations paid: the actions of each, then a return or several.

    Args:
        lines: actions to the return of player 0 in a zero-sum game, or to (number, return) where
            there were several like it; where the return is a list it is a vector.
        proofs: what each action of the root, or "root", is proven to be worth; ("mover", value)
            where only the mover's part is.
    """
    state = game.start() if state is None else state
    root = Sums(game.num_players)
    for actions, given in lines.items():
        number, paid = given if isinstance(given, tuple) else (1, given)
        returns = np.array(paid if isinstance(paid, list) else [paid, -paid], float)
        node = root
        for action in (None, *actions):
            if action is not None:
                node = node.children.setdefault(action, Sums(game.num_players))
            node.visits += number
            node.total += number * returns
            node.squares += number * returns**2
    return written(game, state, root, proofs or {}, layout, priors)


def written(game, state, root, proofs, layout, priors) -> Tree:
    layout = layout or Layout(priors=priors is not None, proofs="vectors" if proofs else "")
    tree = Tree(game, state, layout, len(game.legal(state)), 200)
    kept = 1 if game.zero_sum else game.num_players
    places, used = [(0, root)], 1
    while places:
        edge, node = places.pop(0)
        tree.edges["visits"][edge] = node.visits
        tree.edges["value_sum"][edge] = node.total[:kept]
        tree.edges["first"][edge] = used if node.children else -1
        tree.edges["num_edges"][edge] = len(node.children)
        for row, (action, child) in enumerate(node.children.items()):
            tree.edges[used] = 0
            tree.edges["action"][used] = action
            if edge == 0:
                tree.root_squares[row] = child.squares[:kept]
                if priors is not None:
                    tree.edges["prior"][used] = priors[action]
                if action in proofs:
                    prove(tree, used, proofs[action])
            places.append((used, child))
            used += 1
    if "root" in proofs:
        prove(tree, 0, proofs["root"])
    tree.head["used"] = used
    tree.head["simulations"] = root.visits
    return tree


def prove(tree: Tree, edge: int, value: Any) -> None:
    kind, value = value if isinstance(value, tuple) else ("exact", value)
    tree.edges["proof"][edge] = EXACT if kind == "exact" else MOVER
    tree.edges["proven"][edge] = value if isinstance(value, list) else [value, -value]


def result_of(*trees: Tree, chosen: Any = None, seed: int = 1, **fields: Any) -> SearchResult:
    options = fields.pop("options", {"threads": len(trees)})
    gumbel = getattr(options.get("root_selection"), "name", "") == "gumbel"
    simulations = sum(tree.simulations for tree in trees)
    given = {"status": "simulations", "simulations": simulations, "seconds": 0.5} | fields
    return SearchResult(
        trees[0].game, trees, seed=seed, options=options,
        choice=choice.as_choice(chosen, after_gumbel=gumbel), **given,
    )  # fmt: skip


# Action 0 has the most visits, 2 the largest value, 1 the best lower bound: all its returns were
# the same.
DIVIDED = {
    (0,): (30, 0.0), (0, 0): (15, 1.0), (0, 1): (15, -1.0),
    (1,): (40, 0.25),
    (2,): (3, 1.0),
}  # fmt: skip


# --- formulas ------------------------------------------------------------------------------------


def test_golden_vectors_of_lower_bounds_are_met():
    given = {
        "children": [
            {"N": 10, "mean": 0.2, "mean_square": 0.1},
            {"N": 9, "mean": 0.5, "mean_square": 0.3},
            {"N": 1, "mean": 1.0, "mean_square": 1.0},
        ],
        "utility_radius": 1.0, "z": 5.0, "min_visit_fraction": 0.15,
    }  # fmt: skip
    answer = FAMILIES["lcb.choice."](given)
    assert (answer["choice"], answer["robust_child"], answer["max_child"]) == (1, 0, 2)
    assert answer["selection_weights"] == pytest.approx([10.0, 24.115834074139812, 1.0], rel=1e-12)


def test_the_largest_value_is_taken_among_edges_with_visits_the_first_of_equals():
    assert choice.max_choice(np.array([1, 9, 2, 0]), np.array([0.5, 0.1, 0.5, 0.9])) == 0
    assert choice.max_choice(np.array([0, 0]), np.array([0.5, 0.1])) == -1


@pytest.mark.parametrize("rule", [choice.robust_choice, choice.max_choice, choice.robust_max])
def test_without_edges_nothing_is_chosen(rule):
    assert rule(np.array([], int), np.array([])) == -1
    assert choice.lcb_choice(np.array([], int), np.array([])) == -1


def test_few_visits_do_not_make_a_lower_bound_eligible():
    visits, lower = np.array([100, 14, 15, 0]), np.array([0.0, 0.9, 0.5, 1.0])
    assert choice.lcb_choice(visits, lower) == 2
    assert choice.lcb_choice(visits, lower, least_share=0.0) == 1
    assert choice.lcb_choice(visits, lower, least_share=1.0) == 0


def test_without_a_better_bound_weights_are_visits():
    visits, lower, radius = np.array([400, 50]), np.array([0.4, 0.5]), np.array([0.1, 0.2])
    assert choice.lcb_weights(visits, lower, radius, best=0).tolist() == [400.0, 50.0]
    assert choice.lcb_weights(visits, lower, radius, best=-1).tolist() == [400.0, 50.0]


def test_radii_of_arrays_are_those_of_their_numbers():
    visits, mean, square = (
        np.array([0, 1, 100]),
        np.array([0, 0.3, 0.42]),
        np.array([0, 0.09, 0.25]),
    )
    radii = choice.confidence_radius(visits, mean, square, 1.0)
    assert radii == pytest.approx([10.0, 2.500000025, 0.13564738553007658], rel=1e-12)
    alone = [
        choice.confidence_radius(*edge, 1.0) for edge in zip(visits, mean, square, strict=True)
    ]
    assert radii.tolist() == alone


def test_large_values_without_spread_have_a_radius():
    radius = choice.confidence_radius(1000, 1e9, 1e18 * (1 - 1e-15), half_range=0.0)
    assert radius == 0.0


def test_what_is_proven_best_leaves_the_rest_out():
    proven = np.array([0.0, 1.0, np.nan, 1.0])
    assert choice.playable(proven, -1.0, 1.0).tolist() == [False, True, False, True]


def test_what_is_proven_worst_is_left_out_while_something_else_is_there():
    proven = np.array([-1.0, np.nan, -1.0])
    assert choice.playable(proven, -1.0, 1.0).tolist() == [False, True, False]
    assert choice.playable(proven[[0, 2]], -1.0, 1.0).tolist() == [True, True]


def test_what_is_proven_less_than_another_is_left_out_even_where_no_range_is_known():
    proven = np.array([3.0, np.nan, 5.0])
    assert choice.playable(proven).tolist() == [False, True, True]


def test_where_all_is_proven_the_best_is_left():
    assert choice.playable(np.array([-1.0, 0.0, 0.0]), -1.0, 1.0).tolist() == [False, True, True]
    proven = np.array([0.0, np.nan])
    assert choice.playable(proven, -1.0, 1.0).tolist() == [True, True]
    assert choice.playable(proven, -1.0, 1.0, settled=True).tolist() == [True, False]


# --- which action --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "action"),
    [
        (None, 0),
        ("robust", 0),
        ("max", 2),
        ("robust_max", 0),  # no action has both
        ("lcb", 1),
        (choice.lcb(z=0.0, least_share=0.0), 2),  # no more than the mean
    ],
)
def test_the_action_is_chosen_as_asked(chosen, action):
    assert result_of(grown(heap_game(), DIVIDED), chosen=chosen).action == action


def test_an_unknown_choice_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="one of robust, max, robust_max, lcb, temperature, gumbe"):
        choice.as_choice("best")
    with pytest.raises(TypeError, match=r"comes from uctree.choice.*got 3"):
        choice.as_choice(3)
    with pytest.raises(ValueError, match=r"root_selection=selection.gumbel\(\)"):
        choice.as_choice("gumbel")
    assert choice.as_choice(None, after_gumbel=True) == Choice("gumbel")
    assert choice.as_choice("temperature") == choice.temperature()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: choice.temperature(start=-1.0),
        lambda: choice.temperature(floor=math.nan),
        lambda: choice.temperature(cutover=-3),
        lambda: choice.lcb(z=-1.0),
        lambda: choice.lcb(least_share=1.5),
    ],
)
def test_numbers_of_a_choice_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="got"):
        wrong()


def test_at_a_temperature_the_seed_draws_the_action_by_visits():
    tree = grown(heap_game(), {(0,): (60, 0.0), (1,): (30, 0.0), (2,): (10, 0.0)})
    drawn = [result_of(tree, chosen="temperature", seed=s).action for s in range(500)]
    again = [result_of(tree, chosen="temperature", seed=s).action for s in range(500)]
    assert drawn == again
    # 300, 150 and 50 are expected; 45 is four standard deviations of the first.
    assert np.bincount(drawn).tolist() == pytest.approx([300, 150, 50], abs=45)


def test_the_temperature_falls_with_the_ply_and_ends_at_the_cutover():
    game = heap_game()
    later = game.play([0, 0, 0])
    lines = {(0,): (60, 0.0), (1,): (30, 0.0), (2,): (10, 0.0)}

    def actions(state, chosen):
        tree = grown(game, lines, state)
        return [result_of(tree, chosen=chosen, seed=s).action for s in range(60)]

    assert set(actions(game.start(), choice.temperature(cutover=3))) == {0, 1, 2}
    assert set(actions(later, choice.temperature(cutover=3))) == {0}
    assert set(actions(later, choice.temperature(decay=0.1, floor=0.0))) == {0}
    assert set(actions(game.start(), choice.temperature(start=0.0, floor=0.0))) == {0}
    # Another ply draws another action with the same seed.
    assert actions(later, choice.temperature()) != actions(game.start(), choice.temperature())


def test_without_any_visits_the_highest_prior_is_taken():
    lines = {(0,): (0, 0.0), (1,): (0, 0.0), (2,): (0, 0.0)}
    tree = grown(heap_game(), lines, priors=[0.2, 0.5, 0.3])
    assert result_of(tree).action == 1
    assert result_of(tree, chosen="lcb").action == 1


def test_a_temperature_is_data_that_goes_into_json():
    described = results.described(choice.temperature(cutover=30))
    assert json.dumps(described) == ('{"name": "temperature", "parameters": [1.0, 0.98, 0.1, 30]}')


# --- what is proven ------------------------------------------------------------------------------

EVEN = {(0,): (50, 0.5), (1,): (30, 0.25), (2,): (20, 0.0)}


def test_a_proven_win_is_played_however_few_its_visits():
    tree = grown(heap_game(), EVEN, proofs={2: 1.0})
    for chosen in ("robust", "max", "lcb", "temperature"):
        assert result_of(tree, chosen=chosen).action == 2


def test_a_proven_loss_is_not_played_while_there_is_another_action():
    tree = grown(heap_game(), EVEN, proofs={0: -1.0})
    assert result_of(tree).action == 1
    drawn = {result_of(tree, chosen="temperature", seed=s).action for s in range(60)}
    assert drawn == {1, 2}


def test_a_proven_draw_is_played_instead_of_a_proven_loss():
    tree = grown(heap_game(), EVEN, proofs={0: -1.0, 1: -1.0, 2: 0.0, "root": 0.0})
    result = result_of(tree)
    assert result.action == 2
    assert result.solved.tolist() == [0.0, 0.0]
    assert result.value.tolist() == [0.0, 0.0]


def test_at_a_proven_loss_the_most_visited_action_is_played():
    tree = grown(heap_game(), EVEN, proofs={0: -1.0, 1: -1.0, 2: -1.0, "root": -1.0})
    result = result_of(tree, chosen="max", status="solved")
    assert (result.action, result.solved.tolist()) == (0, [-1.0, 1.0])
    assert "value -1.000 +1.000 (lost)" in str(result)
    assert "(200/s), solved" in str(result)


def test_for_the_second_player_a_win_of_the_first_is_a_loss():
    game = heap_game()
    tree = grown(game, EVEN, game.play([0]), proofs={0: 1.0, 1: -1.0})
    result = result_of(tree)
    assert result.action == 1
    rows = {line.split()[0]: line.split()[-1] for line in str(result).splitlines()[-3:]}
    assert (rows["0"], rows["1"]) == ("lost", "won")


def test_where_only_the_movers_part_is_proven_it_is_played_and_the_root_is_not_solved():
    tree = grown(heap_game(), EVEN, proofs={2: 1.0, "root": ("mover", 1.0)})
    result = result_of(tree)
    assert (result.action, result.solved, result.is_proven) == (2, None, True)


def test_bounds_that_meet_are_a_proof():
    layout = Layout(proofs="bounds")
    tree = grown(heap_game(zero_sum=True), EVEN, layout=layout)
    tree.edges["low"], tree.edges["high"] = -1.0, 1.0
    assert result_of(tree).solved is None
    tree.edges["high"][1] = -1.0
    assert result_of(tree).action == 1
    assert result_of(tree).edges["proven"][0].tolist() == [-1.0, 1.0]


def test_the_expected_line_follows_what_is_proven():
    lines = {(0, 0): (50, 0.5), (1, 2): (30, 0.25)}
    assert result_of(grown(heap_game(), lines)).principal_variation().actions == [0, 0]
    tree = grown(heap_game(), lines, proofs={0: -1.0})
    assert result_of(tree).principal_variation().actions == [1, 2]


def test_without_proofs_nothing_is_said_of_any():
    result = result_of(grown(heap_game(), EVEN))
    assert "proven" not in result.edges.dtype.names
    assert "proven" not in str(result)
    assert (result.solved, result.is_proven) == (None, False)


# --- the root ------------------------------------------------------------------------------------


def test_edges_tell_visits_values_and_bounds():
    edges = result_of(grown(heap_game(), DIVIDED)).edges
    assert edges["action"].tolist() == [0, 1, 2]
    assert edges["visits"].tolist() == [60, 40, 3]
    assert edges["q"].tolist() == [[0.0, 0.0], [0.25, -0.25], [1.0, -1.0]]
    assert edges["prior"] == pytest.approx(1 / 3)
    radius = choice.confidence_radius(60, 0.0, 0.5, half_range=1.0)
    assert (edges["lcb"][0], edges["ucb"][0]) == (-radius, radius)


def test_bounds_are_as_many_standard_errors_wide_as_asked():
    result = result_of(grown(heap_game(), DIVIDED))
    narrow, wide = result.bounds(1.0), result.bounds(5.0)
    assert wide[1] - wide[0] == pytest.approx(5 * (narrow[1] - narrow[0]))


def test_the_policy_is_dense_over_all_actions():
    state = heap_game().play([2, 2, 0])  # two are left: two actions
    result = result_of(grown(heap_game(), {(1,): (30, 0.0), (0,): (10, 0.0)}, state))
    assert result.policy() == pytest.approx([0.25, 0.75, 0.0])
    assert result.policy(temperature=0).tolist() == [0.0, 1.0, 0.0]
    assert result.policy(temperature=math.inf).tolist() == [0.5, 0.5, 0.0]


def test_a_policy_by_bounds_gives_the_best_bound_what_it_deserves():
    result = result_of(grown(heap_game(), DIVIDED))
    lower, upper = result.bounds()
    radius, gap = upper - result.edges["q"][:, 0], lower[1] - lower
    weight = max(40, ((radius[0] + gap[0]) / (radius[0] + 0.2 * gap[0])) ** 2 * 60)
    assert weight > 60
    expected = np.array([60, weight, 3]) / (63 + weight)
    assert result.policy(by_bounds=True) == pytest.approx(expected)
    assert result.policy() == pytest.approx(np.array([60, 40, 3]) / 103)


# --- after a Gumbel search -----------------------------------------------------------------------


def gumbel_result(noise, proofs=None) -> SearchResult:
    """Visits tell actions 0 and 2 apart from 1; the noise decides between those two."""
    layout = Layout(priors=True, raw=True, proofs="vectors" if proofs else "")
    lines = {(0,): (4, 0.5), (1,): (2, 0.75), (2,): (4, 0.25)}
    tree = grown(heap_game(), lines, layout=layout, priors=[0.5, 0.25, 0.25], proofs=proofs)
    tree.edges["raw"][0] = [0.125, -0.125]
    tree.root_noise = np.array(noise)
    rule = selection.gumbel(3, c_visit=1.0, c_scale=0.5)
    return result_of(tree, options={"root_selection": rule})


@pytest.mark.parametrize(("noise", "action"), [([0, 9, 0], 0), ([0, 9, 1.9], 0), ([0, 9, 2], 2)])
def test_of_the_most_visited_the_one_with_the_best_gumbel_score_is_played(noise, action):
    # σ = (1 + 4) · 0.5 · (q - 0.25) / 0.5 is 1.25 and 0 for actions 0 and 2, ln P differs by ln 2:
    # the noise must be larger than 1.94.
    result = gumbel_result(noise)
    assert result.choice == Choice("gumbel")
    rows = result.edges
    q, visits = rows["q"][:, 0], rows["visits"]
    played = gumbel.final_choice(
        q, rows["prior"], visits, 0.125, np.array(noise, float), c_visit=1.0, c_scale=0.5
    )
    assert result.action == played == action


def test_an_improved_policy_is_dense_and_adds_up():
    policy = gumbel_result([0.0, 0.0, 0.0]).improved_policy()
    weights = np.array([0.5 * math.exp(1.25), 0.25 * math.exp(2.5), 0.25])
    assert policy == pytest.approx(weights / weights.sum())


def test_a_proof_comes_before_the_gumbel_score():
    assert gumbel_result([9.0, 0.0, 0.0], proofs={0: -1.0}).action == 2
    assert gumbel_result([9.0, 0.0, 0.0], proofs={1: 1.0}).action == 1


def test_an_improved_policy_needs_a_gumbel_search():
    with pytest.raises(ValueError, match=r"root_selection=selection.gumbel\(\)"):
        result_of(grown(heap_game(), DIVIDED)).improved_policy()


# --- several trees -------------------------------------------------------------------------------


def test_trees_of_one_root_are_summed_by_action():
    game = heap_game()
    first = grown(game, {(0,): (10, 1.0), (1,): (20, 0.0)})
    second = grown(game, {(2,): (5, -1.0), (1,): (20, 0.5), (0,): (10, 0.0)})
    result = result_of(first, second)
    assert result.edges["action"].tolist() == [0, 1, 2]
    assert result.edges["visits"].tolist() == [20, 40, 5]
    assert result.edges["q"][:, 0].tolist() == [0.5, 0.25, -1.0]
    assert result.action == 1
    assert result.value[0] == pytest.approx((10 + 0 - 5 + 10 + 0) / 65)
    radius = choice.confidence_radius(40, 0.25, 0.125, half_range=1.0)
    assert result.edges["lcb"][1] == pytest.approx(0.25 - radius)
    assert result.tree is first


def test_two_halves_say_what_the_whole_says():
    game = heap_game()
    lines = {(0, 1): (12, 0.5), (1, 0, 2): (20, 0.25), (1, 1): (8, -1.0)}
    whole = result_of(grown(game, {key: (2 * n, v) for key, (n, v) in lines.items()}))
    halves = result_of(grown(game, lines), grown(game, dict(reversed(lines.items()))))
    for name in ("action", "visits", "q", "prior", "lcb", "ucb"):
        assert whole.edges[name] == pytest.approx(halves.edges[name])
    assert whole.value == pytest.approx(halves.value)
    assert whole.principal_variation().actions == halves.principal_variation().actions


def test_the_expected_line_of_several_trees_is_that_of_their_sum():
    game = heap_game()
    first = grown(game, {(0, 0): (10, 0.0), (1, 2): (9, 0.0)})
    second = grown(game, {(0, 1): (3, 0.0), (1, 2, 0): (9, 0.0)})
    line = result_of(first, second).principal_variation()
    assert line.actions == [1, 2, 0]
    assert (line.depth, line.tree_depth, line.complete) == (3, 3, False)
    assert result_of(first).principal_variation().actions == [0, 0]


def test_what_one_tree_has_proven_holds_for_all():
    game = heap_game()
    first = grown(game, EVEN, proofs={2: 1.0})
    second = grown(game, EVEN, proofs={0: -1.0})
    assert result_of(second, first).action == 2


# --- the expected line, played on ----------------------------------------------------------------


def test_a_shallow_tree_gives_a_short_line():
    line = result_of(grown(heap_game(), {(0, 1): (5, 0.0)})).principal_variation()
    assert (line.actions, line.complete, line.tree_depth, line.completed_by) == (
        [0, 1], False, 2, None,
    )  # fmt: skip
    assert len(line.edges) == 2


def test_a_line_is_completed_by_a_playout_of_the_results_seed():
    game = heap_game()
    tree = grown(game, {(0, 1): (5, 0.0)})
    lines = [result_of(tree, seed=s).principal_variation("playout") for s in range(20)]
    for line in lines:
        assert line.actions[:2] == [0, 1]
        assert game.is_over(game.play(line.actions))
        assert (line.complete, line.tree_depth, line.completed_by) == (True, 2, "playout")
    assert len({tuple(line.actions) for line in lines}) > 5
    again = result_of(tree, seed=3).principal_variation("playout")
    assert again == lines[3]


def perfect(state, values):
    """Who is to play loses where the heap can be divided by 4."""
    wins = 1.0 if state.left % 4 else -1.0
    values[state.to_play] = wins
    values[1 - state.to_play] = -wins


def test_a_line_is_completed_by_what_an_evaluator_likes():
    tree = grown(heap_game(), {(1,): (5, 0.0)})  # 7 are left for player 1
    for evaluator in (perfect, evaluators.compiled(perfect)):
        line = result_of(tree).principal_variation(evaluator)
        # To 4, then any (the first), to 0.
        assert line.actions == [1, 2, 0, 2]
        assert (line.complete, line.tree_depth, line.completed_by) == (True, 1, "perfect")


def test_a_line_is_completed_by_playouts_of_every_action():
    tree = grown(heap_game(), {(0, 1, 2): (5, 0.0)})  # 3 are left for player 1, who takes them
    line = result_of(tree).principal_variation(evaluators.playout(num_playouts=20))
    assert line.actions == [0, 1, 2, 2]
    assert line.completed_by == "playout"


def test_a_line_is_completed_by_a_function_of_the_state():
    def take_one(state):
        return 0

    line = result_of(grown(heap_game(), {(2,): (5, 0.0)})).principal_variation(take_one)
    assert line.actions == [2, *6 * [0]]
    assert line.complete
    assert line.completed_by.endswith("take_one")


def test_a_line_to_the_end_is_not_completed():
    game = heap_game()
    tree = grown(game, {(1,): (5, 1.0)}, game.play([2, 2, 0]))
    line = result_of(tree).principal_variation("playout")
    assert (line.actions, line.complete, line.completed_by) == ([1], True, None)


def test_what_cannot_complete_a_line_is_refused():
    result = result_of(grown(heap_game(), {(2,): (5, 0.0)}))
    with pytest.raises(TypeError, match=r'"best_reply", an evaluator, or a function.*got 3'):
        result.principal_variation(3)
    with pytest.raises(uctree.BrokenGame, match="an evaluator takes state, values"):
        result.principal_variation(lambda state, action: 0)


def test_a_completion_ends_at_max_plies():
    def idle(state, action, reward):
        state.ply += 1
        state.to_play = 1 - state.to_play

    game = uctree.Game(Heap, legal, idle, num_players=2, num_actions=3, start=start, max_plies=7)
    tree = grown(game, {(0,): (5, 0.0)}, game.play([0, 0]))
    line = result_of(tree).principal_variation("playout")
    assert (line.depth, line.complete) == (5, False)


def dice_game() -> uctree.Game:
    """Roll until a six comes, and get one for every roll."""

    def one(state, actions):
        actions[0] = 0
        return 1

    def roll(state, outcomes, probabilities):
        for i in range(2):
            outcomes[i] = i
        probabilities[0], probabilities[1] = 5 / 6, 1 / 6
        return 2

    def move(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] = 1.0
            state.to_play = uctree.OVER if action == 1 else 0
        else:
            state.to_play = uctree.CHANCE

    return uctree.Game(
        [("to_play", np.int8)], one, move, num_players=1, num_actions=1, chance=roll, max_outcomes=2
    )


def test_outcomes_of_a_completion_are_drawn_by_their_probability():
    tree = grown(dice_game(), {(0,): (5, [2.0])})

    def rolls(seed):
        return result_of(tree, seed=seed).principal_variation(lambda state: 0).actions[1::2]

    outcomes = [outcome for seed in range(60) for outcome in rolls(seed)]
    # 60 sixes end 60 lines; 300 other rolls are expected, give or take 42.
    assert outcomes.count(1) == 60
    assert 300 - 170 < outcomes.count(0) < 300 + 170


def test_in_an_open_loop_the_likeliest_outcomes_stand_between_the_actions():
    tree = grown(dice_game(), {(0, 0, 0): (5, [2.0])})
    line = result_of(tree, options={"open_loop": True}).principal_variation()
    assert line.actions == [0, 0, 0, 0, 0, 0]  # roll, no six, roll, ...
    assert [edge >= 0 for edge in line.edges] == [True, False] * 3
    assert (line.tree_depth, line.complete) == (6, False)


def test_in_an_open_loop_only_what_is_legal_after_those_outcomes_is_expected():
    state = heap_game().play([2, 2])  # three are left
    tree = grown(heap_game(), {(1, 2): (5, 0.0), (1, 0): (2, 0.0)}, state)
    line = result_of(tree, options={"open_loop": True}).principal_variation()
    assert (line.actions, line.complete) == ([1, 0], True)


def test_at_a_chance_root_priors_are_probabilities():
    game = dice_game()
    tree = grown(game, {(1,): (5, [1.0]), (0,): (2, [3.0])}, game.play([0]))
    assert result_of(tree).edges["prior"].tolist() == [1 / 6, 5 / 6]
    assert result_of(tree).action is None


def test_a_shared_node_met_again_ends_the_line():
    def turn(state, action, reward):
        state.left = 8 - state.left  # 8, 0, 8, ...

    def two(state, actions):
        actions[0] = 0
        return 1

    game = uctree.Game([("left", np.int16), ("to_play", np.int8)], two, turn, num_players=1,
                       num_actions=1, max_plies=50)  # fmt: skip
    tree = Tree(game, game.start(), Layout(shared=True), 1, 10)
    tree.edges[:3] = 0
    tree.edges["first"][:2] = [1, 2]
    tree.edges["num_edges"][:2] = 1
    tree.edges["visits"][:3] = tree.edges["node_visits"][:3] = 4
    tree.edges["node"][:3] = [0, 1, 0]
    tree.head["used"] = 3
    line = result_of(tree).principal_variation()
    assert (line.actions, line.complete) == ([0, 0], False)


def test_players_around_a_paranoid_one_break_ties_against_it():
    game = uctree.Game(Heap, legal, step, num_players=3, num_actions=3, start=start)
    tree = grown(game, {(0, 0): (5, [0.5, 0.9, 0.0]), (0, 1): (5, [0.1, 0.2, 0.0])})
    assert result_of(tree).principal_variation().actions == [0, 0]
    paranoid = result_of(tree, options={"opponents": "paranoid"})
    assert paranoid.principal_variation().actions == [0, 1]


# --- as data and as text -------------------------------------------------------------------------


def rule_of_thumb(q, visits):
    return q


def manifest_options() -> dict[str, Any]:
    return {
        "threads": 2, "stop": None, "seconds": math.inf, "chance": "sample",
        "evaluator": rule_of_thumb, "backup": Choice("mean", (np.float64(1.5),)),
        "table": np.arange(3),
    }  # fmt: skip


def test_the_manifest_names_what_a_search_depends_on():
    result = result_of(grown(heap_game(), DIVIDED), options=manifest_options(), seed=5)
    manifest = result.manifest()
    assert json.loads(json.dumps(manifest, allow_nan=False)) == manifest
    assert {"uctree", "numba", "numpy", "python"} <= manifest.keys()
    assert manifest["game"] == "heap"
    assert (manifest["seed"], manifest["simulations"], manifest["threads"]) == (5, 103, 2)
    assert manifest["status"] == "simulations"
    assert manifest["choice"] == {"name": "robust", "parameters": []}
    options = manifest["options"]
    assert options["evaluator"] == "tests.test_choice.rule_of_thumb"
    assert options["backup"] == {"name": "mean", "parameters": [1.5]}
    assert options["seconds"] == "Infinity"
    assert results.described([-math.inf, math.nan]) == ["-Infinity", "NaN"]
    assert options["table"]["shape"] == [3]


def test_the_manifest_tells_states_apart():
    game = heap_game()
    here, there = (
        result_of(grown(game, {(0,): (5, 0.0)}, state)).manifest()["state"]
        for state in (game.start(), game.play([0]))
    )
    assert len(here) == 64
    assert here != there


def test_a_result_goes_into_strict_json():
    profile = {"selection": 0.1, "game": 0.2}
    result = result_of(grown(heap_game(), EVEN, proofs={2: 1.0}), profile=profile)
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert told["profile"] == profile
    assert told["manifest"]["game"] == "heap"
    assert told["edges"][0]["proven"] == [None, None]
    assert told["edges"][2]["proven"] == [1.0, -1.0]
    assert told["solved"] is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("simulations", "(206/s)\n"),
        ("seconds", "(206/s), time is up\n"),
        ("interrupted", "(206/s), interrupted\n"),
        ("solved", "(206/s), solved\n"),
        ("value_gap", "(206/s), stopped: value_gap\n"),
    ],
)
def test_printing_tells_why_the_search_ended(status, words):
    assert words in str(result_of(grown(heap_game(), DIVIDED), status=status))


def test_the_profile_line_tells_where_the_time_went():
    profile = {"selection": 3.1, "game": 2.2, "evaluation": 4.0, "backup": 0.7}
    tree = grown(heap_game(), DIVIDED)
    options = {"threads": 2}
    result = result_of(tree, tree, profile=profile, options=options, compile_seconds=2.507, seed=7)
    line = result.profile_line
    assert line.startswith(
        "time: selection 31 %, game 22 %, evaluation 40 %, backup 7 %; compiled in 2.51 s; "
    )
    assert line.endswith("2 threads (root); seed 7")
    assert f"{2 * tree.num_edges} edges" in line
    assert line in str(result)
    plain = result_of(tree, compile_seconds=0.2, cached=True).profile_line
    assert plain.startswith("cached in 0.20 s; mean depth")
    assert "threads" not in plain


def test_a_thread_pool_on_one_tree_is_told_as_such():
    result = result_of(grown(heap_game(), DIVIDED), options={"threads": 4})
    assert "4 threads (tree)" in result.profile_line


def test_values_that_do_not_add_up_to_zero_are_told_as_exact():
    game = uctree.Game(Heap, legal, step, num_players=2, num_actions=3, start=start)
    tree = grown(game, {(0,): (5, [1.0, 0.5]), (1,): (4, [0.5, 0.5])}, proofs={0: [1.0, 0.5]})
    assert "exact" in str(result_of(tree))


# --- searches ------------------------------------------------------------------------------------


def search(game: uctree.Game, **options: Any) -> SearchResult:
    options = {"num_simulations": 2000, "seed": 1} | options
    return uctree.search(game, game.start(), **options)


def test_a_search_chooses_as_asked():
    game = heap_game()
    assert search(game, choice="max").choice == Choice("max")
    drawn = [search(game, num_simulations=20, choice="temperature", seed=s) for s in range(9)]
    again = [search(game, num_simulations=20, choice="temperature", seed=s) for s in range(9)]
    assert [result.action for result in drawn] == [result.action for result in again]
    assert len({result.action for result in drawn}) > 1
    with pytest.raises(ValueError, match="choice is one of robust"):
        search(game, choice="best")


def test_the_manifest_of_a_search_holds_its_options_by_name():
    manifest = json.loads(json.dumps(search(heap_game()).manifest(), allow_nan=False))
    assert manifest["options"]["selection"]["name"] == "ucb1"
    assert manifest["options"]["selection"]["parameters"] == [math.sqrt(2)]
    assert manifest["options"]["evaluator"]["name"] == "playout"
    assert manifest["options"]["solver"] is False
    assert manifest["simulations"] == 2000


def test_a_search_that_solves_the_root_says_so():
    result = search(heap_game(zero_sum=True), solver=True)
    assert result.status == "solved"
    assert (result.action, result.solved.tolist()) == (0, [1.0, -1.0])
    assert "value +1.000 -1.000 (won)" in str(result)
    assert result.principal_variation("playout").actions[0] == 0
    assert json.dumps(result.to_json(), allow_nan=False)


def test_searches_of_several_threads_are_one_result():
    game = heap_game()
    result = search(game, threads=2, parallel="root")
    assert len(result.trees) == 2
    assert result.edges["visits"].sum() == result.simulations == 2000
    shares = [tree.edge_visits(tree.root.edges) for tree in result.trees]
    assert result.edges["visits"].tolist() == sum(shares).tolist()
    assert "2 threads (root)" in result.profile_line
    assert game.is_over(game.play(result.principal_variation("playout").actions))


def test_a_line_of_an_open_loop_search_can_be_played():
    result = search(dice_game(), open_loop=True, num_simulations=500)
    line = result.principal_variation("playout")
    assert result.game.is_over(result.game.play(line.actions))
    assert line.complete


def guess(state, values, priors):
    for action in range(3):
        priors[action] = 1.0 + action


def test_a_gumbel_search_plays_what_its_root_decides():
    result = search(
        heap_game(), num_simulations=16, evaluator=guess, root_selection=selection.gumbel(2)
    )
    assert result.choice == Choice("gumbel")
    policy = result.improved_policy()
    assert policy.shape == (3,)
    assert policy.sum() == pytest.approx(1.0)
    most = result.edges["action"][result.edges["visits"] == result.edges["visits"].max()]
    assert result.action in most
