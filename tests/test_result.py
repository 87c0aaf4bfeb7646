"""What a search result says, from trees made by hand and from searches."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import uctree
from tests.hand_made_trees import DIVIDED, EVEN, grown, result_of
from tests.small_games import Heap, dice_game, heap_game, heap_legal, heap_start, heap_step
from uctree import choice, selection
from uctree.choice import Choice
from uctree.result import SearchResult, described
from uctree.tree import Layout

pytestmark = pytest.mark.quick

# --- what is proven ------------------------------------------------------------------------------


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
    assert result.action == action


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
    assert options["evaluator"] == "tests.test_result.rule_of_thumb"
    assert options["backup"] == {"name": "mean", "parameters": [1.5]}
    assert options["seconds"] == "Infinity"
    assert described([-math.inf, math.nan]) == ["-Infinity", "NaN"]
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
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["profile"] == profile
    assert data["manifest"]["game"] == "heap"
    assert data["edges"][0]["proven"] == [None, None]
    assert data["edges"][2]["proven"] == [1.0, -1.0]
    assert data["solved"] is None


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
    game = uctree.Game(Heap, heap_legal, heap_step, num_players=2, num_actions=3, start=heap_start)
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
    assert manifest["options"]["selection"]["parameters"] == [0.5]
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
