"""Pig: turns, stakes and observations by hand."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.games import pig

pytestmark = pytest.mark.quick


def test_a_one_loses_the_turn_of_pig_and_stopping_keeps_it() -> None:
    game = pig(target=10, num_players=3)
    state = game.play([0, 4, 0, 0])  # rolls a five, then a one
    assert game.show(state) == "player 0: 0, player 1: 0, player 2: 0; player 1 to play, 0 at stake"
    state = game.play([0, 4, 0, 4], state)  # five and five are enough
    assert [game.show_action(state, action) for action in game.legal(state)] == ["stop"]
    state, reward = game.step(state, 1)
    assert reward.tolist() == [-0.5, 1, -0.5]
    assert game.is_over(state)
    assert game.show(state) == "player 0: 0, player 1: 10, player 2: 0"


def test_pig_is_seen_from_the_seat_of_the_player() -> None:
    game = pig(target=20, num_players=3)
    state = game.play([0, 4, 1, 0, 3])  # player 0 has five, player 1 is at four
    expected = np.array([0, 0, 0.25, 0.2, 1], np.float32)
    assert (game.observation(state, 1) == expected).all()
    assert game.observation(state, 0)[[0, 4]].tolist() == [0.25, 0]
