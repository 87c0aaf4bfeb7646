"""A game whose best reply jumps."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import games

pytestmark = pytest.mark.quick

GAME = games.leap()
REPLIES = np.linspace(-1, 1, 201)


@pytest.mark.parametrize(("x", "expected"), [(-0.5, -1.0), (-0.01, -1.0), (0.01, 1.0), (0.5, 1.0)])
def test_the_best_reply_jumps_where_the_sign_of_x_changes(x, expected):
    paid = [GAME.replay([[x], [y]]).returns[1] for y in REPLIES]
    assert REPLIES[int(np.argmax(paid))] == expected


def test_the_first_player_does_better_with_foresight_on_the_other_side():
    def paid(x, y):
        return float(GAME.replay([[x], [y]]).returns[0])

    assert paid(-0.5, 0.0) > paid(0.5, 0.0)
    assert paid(0.5, 1.0) > paid(-0.5, -1.0)


def test_a_state_shows_the_first_action():
    after, reward = GAME.step(GAME.start(), [0.25])
    assert GAME.show(GAME.start()) == "x: -"
    assert GAME.show(after) == "x: 0.25"
    assert reward.tolist() == [0.0, 0.0]
