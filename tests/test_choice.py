"""The final choice of an action: formulas, and choices from trees made by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tests.golden_choice import FAMILIES
from tests.hand_made_trees import DIVIDED, grown, result_of
from tests.small_games import heap_game
from uctree import choice
from uctree.choice import Choice
from uctree.result import described

pytestmark = pytest.mark.quick

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
    assert choice.playable(proven, -1.0, 1.0, solved=True).tolist() == [True, False]


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
    data = described(choice.temperature(cutover=30))
    assert json.dumps(data) == ('{"name": "temperature", "parameters": [1.0, 0.98, 0.1, 30]}')
