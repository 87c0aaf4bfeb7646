"""Playouts from a leaf to the end, and the values of leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.broken_games import heap_game as broken_heap
from tests.small_games import dice_game, heap_game
from uctree import evaluators
from uctree.engine.bindings import action_array, game_bindings
from uctree.engine.compile import bind
from uctree.game import ENDLESS, OVER, StateViews, make_rng
from uctree.kernels import playouts
from uctree.kernels.context import Play
from uctree.kernels.status import BAD_ACTION, BAD_VALUE, DONE, ENDLESS_PLAYOUT, NOT_ZERO_SUM

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def played(game, limit=ENDLESS, seed=1, max_plies=None):
    """The status of a playout from the start, its returns, and the state it ends in."""
    bindings = game_bindings(game, evaluators.playout(max_plies=max_plies))
    state = np.array([game.start()], game.dtype)
    play = Play(
        action_array(game), np.zeros(game.max_outcomes + 1024), np.zeros(game.num_players),
        np.zeros(game.num_players), make_rng(seed), np.zeros(1, np.int64), game.data,
    )  # fmt: skip
    status = bind(playouts.play_steps, bindings)(play, StateViews(state)[0], limit)
    return status, play.returns.tolist(), state[0]


def test_a_playout_pays_what_its_episode_pays():
    for seed in range(20):
        status, returns, state = played(heap_game(), seed=seed)
        assert status == DONE
        assert state["to_play"] == OVER
        winner = (state["ply"] - 1) % 2
        assert returns[winner] == -returns[1 - winner] == 1.0


def test_a_playout_draws_the_outcomes_of_chance():
    lengths = [played(dice_game(), seed=seed)[1][0] for seed in range(300)]
    assert np.mean(lengths) == pytest.approx(6.0, abs=1.0)  # until a six comes


def test_a_playout_ends_at_its_limit_and_without_one_it_must_end():
    assert played(heap_game(), limit=2, max_plies=2)[2]["ply"] == 2
    assert played(heap_game(), limit=2)[0] == ENDLESS_PLAYOUT


def test_a_legal_that_counts_no_action_stops_the_playout():
    game = broken_heap(legal=lambda state, actions: 0)
    assert played(game)[0] == BAD_ACTION


@pytest.mark.parametrize(
    ("outcomes", "probabilities", "expected"),
    [
        ((0, 1), (0.5, 0.5), True),
        ((0, 1), (0.5, 0.4), False),
        ((0, -1), (0.5, 0.5), False),
        ((0, 1), (1.5, -0.5), False),
        ((0, 1), (0.5, math.nan), False),
        ((), (), False),
        ((0, 1, 2), (0.5, 0.25, 0.25), False),
    ],
)
def test_a_distribution_has_outcomes_of_at_least_0_and_adds_up_to_1(
    outcomes, probabilities, expected
):
    check = bind(playouts.is_distribution, {"MAX_OUTCOMES": 2})
    assert check(len(outcomes), np.array(outcomes), np.array(probabilities)) == expected


def test_listed_outcomes_are_drawn_by_their_probabilities():
    rng, outcomes = make_rng(1), np.array([7, 8])
    drawn = [playouts.draw_listed(2, outcomes, np.array([0.25, 0.75]), rng) for _ in range(400)]
    assert drawn.count(7) == pytest.approx(100, abs=30)
    assert drawn.count(8) == 400 - drawn.count(7)
    assert playouts.draw_listed(2, outcomes, np.array([math.nan, 1.0]), rng) == -1


def test_what_was_played_holds_for_one_simulation():
    note, was = (bind(k, {"NUM_ACTIONS": 3}) for k in (playouts.note_played, playouts.was_played))
    noted = np.zeros(1 + 2 * 3, np.int64)
    noted[0] = 5
    note(noted, 1, 2)
    assert was(noted, 5, 1, 2)
    assert not was(noted, 5, 0, 2)
    assert not was(noted, 6, 1, 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.5, -0.5], DONE), ([math.nan, 0.0], BAD_VALUE), ([1e200, -1e200], BAD_VALUE),
     ([0.5, -0.25], NOT_ZERO_SUM)],
)  # fmt: skip
def test_values_of_a_leaf_are_checked(values, expected):
    check = bind(playouts.check_values, {"ZERO_SUM": True, "NUM_VALUES": 1})
    assert check(np.array(values), DONE) == expected
