"""Two searches side by side: figures worked out by hand, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import uctree
from uctree.choice import robust_choice
from uctree.comparison import Comparison, compare, total_variation

GAME = uctree.games.connect_four()
STATE = GAME.play([3, 3])


@pytest.fixture(scope="module")
def results():
    return [
        uctree.search(GAME, STATE, num_simulations=number, seed=seed)
        for number, seed in ((300, 1), (2000, 2))
    ]


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ([1.0], [1.0], 0.0),
        ([1.0, 0.0], [0.0, 1.0], 1.0),
        ([0.7, 0.3], [0.4, 0.6], 0.3),
        ([], [], 0),
    ],
)
def test_total_variation_is_what_has_to_move(p, q, expected):
    assert total_variation(np.array(p), np.array(q)) == pytest.approx(expected)


def test_a_search_does_not_differ_from_itself(results):
    comparison = compare(results[0], results[0])
    assert comparison.total_variation == 0
    assert (comparison.value_difference == 0).all()
    assert comparison.common_line == results[0].principal_variation().actions


def test_edges_stand_side_by_side_most_visited_first(results):
    edges = compare(*results).edges
    for i, result in enumerate(results):
        rows = {row["action"]: row for row in result.edges}
        assert edges["visits"][:, i].sum() == result.edges["visits"].sum()
        for row in edges:
            assert row["visits"][i] == rows[row["action"]]["visits"]
            assert row["q"][i].tolist() == rows[row["action"]]["q"].tolist()
    assert edges["visits"][:, 0].tolist() == sorted(results[0].edges["visits"], reverse=True)
    assert edges["share"].sum(axis=0) == pytest.approx([1, 1])


def test_the_headline_has_the_figures_of_both(results):
    a, b = results
    comparison = compare(a, b, ("early", "late"))
    policies = [result.policy() for result in results]
    assert comparison.total_variation == pytest.approx(np.abs(policies[0] - policies[1]).sum() / 2)
    assert comparison.value_difference == pytest.approx(b.value - a.value)
    text = str(comparison)
    assert "connect_four, player 0 to move\n" in text
    for letter, name, result in (("a", "early", a), ("b", "late", b)):
        shown = GAME.show_action(STATE, result.action)
        assert (
            f"{letter}  {name}, {result.simulations:,} simulations: {shown}   "
            f"value {result.value[0]:+.3f}\n"
        ) in text
    assert f"visits differ by {comparison.total_variation:.3f} (total variation)" in text
    assert text.count("\n") == GAME.show(STATE).count("\n") + 2 + 4 + 1 + 7


def test_the_common_line_ends_where_the_two_part(results):
    lines = [result.principal_variation().actions for result in results]
    common = compare(*results).common_line
    depth = len(common)
    assert lines[0][:depth] == lines[1][:depth] == common
    assert lines[0][depth : depth + 1] != lines[1][depth : depth + 1]


def test_the_text_says_how_many_plies_are_the_same(results):
    for depth, text in (
        (0, "the first 0 plies expected are the same"),
        (1, "the first ply expected is the same"),
        (2, "the first 2 plies expected are the same"),
    ):
        comparison = compare(*results)
        vars(comparison)["common_line"] = [0] * depth
        assert text in str(comparison)


def test_all_of_it_is_plain_json(results):
    comparison = compare(*results, ("a.tree", "b.tree"))
    content = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert content["names"] == ["a.tree", "b.tree"]
    assert content["action"] == [result.action for result in results]
    assert content["to_play"] == 0
    assert [edge["visits"] for edge in content["edges"]] == comparison.edges["visits"].tolist()
    assert content["edges"][0]["prior"] == [None, None]


def test_trees_can_be_compared_as_they_are_loaded(results, tmp_path):
    trees = []
    for i, result in enumerate(results):
        result.tree.save(tmp_path / f"{i}.tree")
        trees.append(uctree.Tree.load(tmp_path / f"{i}.tree"))
    assert compare(*trees).to_json() == compare(*results).to_json()


def test_priors_are_shown_where_both_have_them():
    def prefers_the_middle(state, values, logits):
        values[0], values[1] = 0.0, 0.0
        for column in range(7):
            logits[column] = -abs(column - 3)

    searches = [
        uctree.search(GAME, STATE, num_simulations=50, seed=1, evaluator=evaluator)
        for evaluator in (prefers_the_middle, prefers_the_middle, None)
    ]
    both, one = compare(*searches[:2]), compare(*searches[1:])
    assert "prior a  prior b\n" in str(both)
    assert "prior" not in str(one)
    assert np.isnan(one.edges["prior"][:, 1]).all()
    assert both.edges["prior"].sum(axis=0) == pytest.approx([1, 1])


def test_actions_that_one_search_never_tried_have_no_value_there():
    game = uctree.games.n_in_a_row(rows=6, cols=7, length=4)  # more actions than simulations
    a, b = (uctree.search(game, game.start(), num_simulations=n, seed=1) for n in (10, 100))
    comparison = compare(a, b)
    untried = comparison.edges["visits"][:, 0] == 0
    assert untried.sum() == 32
    assert np.isnan(comparison.edges["q"][untried, 0]).all()
    assert "... and 30 more" in str(comparison)
    assert comparison.to_json()["edges"][-1]["q"][0] == [None, None]


def test_values_at_a_chance_root_are_those_of_all_players():
    game = uctree.games.pig(target=20)
    state = game.play([0])
    assert game.to_play(state) == uctree.CHANCE
    searches = [uctree.search(game, state, num_simulations=200, seed=seed) for seed in (1, 2)]
    text = str(compare(*searches))
    assert "chance to move\n" in text
    assert f"value {searches[0].value[0]:+.3f} {searches[0].value[1]:+.3f}\n" in text


def test_an_episode_that_is_over_has_nothing_to_compare():
    state = GAME.play([0, 1, 0, 1, 0, 1, 0])
    searches = [uctree.search(GAME, state, num_simulations=10, seed=seed) for seed in (1, 2)]
    comparison = compare(*searches)
    assert comparison.total_variation == 0
    assert comparison.to_json()["action"] == [None, None]


def test_other_games_and_other_states_are_refused_with_what_differs(results):
    small = uctree.games.connect_four(rows=5)
    other = uctree.search(small, small.play([3, 3]), num_simulations=10)
    with pytest.raises(ValueError, match=r"one and two are .* different games: .*spec is .*rows=5"):
        compare(results[0], other, ("one", "two"))
    elsewhere = uctree.search(GAME, GAME.play([3, 3, 3]), num_simulations=10)
    with pytest.raises(ValueError, match=r"different states of connect_four: .*to_play is 0 and 1"):
        compare(results[0], elsewhere)


def test_a_field_that_is_an_array_is_told_by_its_first_difference():
    game = uctree.games.nim(heaps=(3, 4))
    a, b = (uctree.search(game, game.play(actions), num_simulations=10) for actions in ([], [1, 0]))
    with pytest.raises(ValueError, match=r"heaps\[0\] is 3 and 2\. Compare searches of one state"):
        compare(a, b)


def test_the_same_game_made_twice_is_the_same_game(results):
    again = uctree.games.connect_four()
    result = uctree.search(again, again.play([3, 3]), num_simulations=300, seed=1)
    comparison = compare(results[0], result)
    assert isinstance(comparison, Comparison)
    assert comparison.total_variation == 0
    assert math.isclose(*comparison.to_json()["value"][0][:1], result.value[0])
    assert robust_choice(comparison.edges["visits"][:, 0], comparison.edges["q"][:, 0, 0]) == 0
