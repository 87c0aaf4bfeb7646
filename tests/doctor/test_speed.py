"""The speed of rules: figures that any machine must give."""

from __future__ import annotations

import pytest

from tests.broken_games import BROKEN
from uctree import BrokenGame, games, rule_speed


def test_every_rule_of_a_game_has_a_time():
    speed = rule_speed(games.tic_tac_toe(), seconds=0.01)
    assert speed.playouts_per_second > 1_000
    assert 5 <= speed.plies_per_playout <= 9
    assert 0 < speed.legal_ns < 1e5
    assert 0 < speed.copy_ns < 1e5
    assert 0 <= speed.step_ns < 1e5


def test_rules_that_a_game_lacks_have_no_time():
    assert rule_speed(games.nim(), seconds=0.01).random_action_ns is None
    assert rule_speed(games.loss_game(2), seconds=0.01).legal_ns is None


def test_rules_that_are_wrong_are_refused():
    with pytest.raises(BrokenGame, match=r"rules of heap are wrong; print uctree\.check"):
        rule_speed(BROKEN["nothing_is_legal"](), seconds=0.01)
