"""How a game and an evaluator reach the names of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.small_games import dice_game, heap_game, tour_game
from uctree import evaluators, games
from uctree.engine.bindings import action_array, bound_rule, game_bindings
from uctree.kernels import playouts, vectors
from uctree.kernels.status import GUARD

pytestmark = pytest.mark.quick


def test_rules_are_called_with_data_whether_they_take_it_or_not():
    with_data, without = tour_game(), heap_game()
    for game, data in ((with_data, with_data.data), (without, None)):
        state, reward = game.start().copy(), np.zeros(game.num_players)
        actions = np.zeros(10, np.int64)
        assert bound_rule(game, "legal")(state, actions, data) == len(game.legal(game.start()))
        bound_rule(game, "step")(state, actions[0], reward, data)
        expected = game.step(game.start(), int(actions[0]))
        assert state == expected[0]
        assert reward.tolist() == expected[1].tolist()


def test_guards_follow_the_last_action():
    game = heap_game()
    room = action_array(game)
    assert (room == GUARD).all()
    assert len(room) > game_bindings(game, evaluators.playout())["GUARD_AT"] == game.num_actions
    assert game_bindings(dice_game(), evaluators.playout())["GUARD_AT"] == 2  # outcomes


def test_a_vector_is_in_the_first_row_and_its_box_in_the_others():
    room = action_array(games.loss_game(2))
    assert room.tolist() == [[0.0, 0.0], [-5.0, -5.0], [5.0, 5.0]]


def test_playouts_of_the_game_are_used_unless_they_are_cut_or_noted():
    game = games.hex(size=3)
    assert game.rules.playout is not None
    own = game_bindings(game, evaluators.playout())
    cut = game_bindings(game, evaluators.playout(max_plies=3))
    noted = game_bindings(game, evaluators.playout(), notes_actions=True)
    assert own["play_on"] is playouts.play_shortcut
    assert cut["play_on"] is noted["play_on"] is playouts.play_steps


def test_vectors_are_drawn_in_boxes_and_on_spheres():
    bound = game_bindings(games.loss_game(), evaluators.playout())
    assert bound["draw_action"] is vectors.draw_in_box
    assert bound["project"] is vectors.into_box
    assert bound["find_bounds"] is vectors.fixed_bounds
