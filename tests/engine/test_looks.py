"""Which games were looked at: the same one once, and again with other data or another start."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree.engine import looks
from uctree.engine.recent import Recent

RECORD = [("place", np.int8), ("to_play", np.int8)]


def legal(state, actions, data):
    actions[0] = 0
    return 1


def step(state, action, reward, data):
    reward[0] += data[0][state.place]
    state.to_play = uctree.OVER


def made(payments=(1.0,), place=0):
    def start(state):
        state.place = place

    return uctree.Game(
        RECORD, legal, step, num_players=1, num_actions=1, start=start,
        data=(np.array(payments, float),), name="looked at",
    )  # fmt: skip


@pytest.fixture
def looked(monkeypatch, tmp_path):
    """The games that were looked at, with nothing remembered on disk."""
    found = []
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))
    monkeypatch.setattr(looks, "refuse_broken", lambda game, state=None: found.append(game))
    return found


def test_a_game_is_looked_at_once(looked):
    game = made()
    for _ in range(3):
        looks.look_at(game)
    looks.look_at(made())  # the same one again
    assert looked == [game]


def test_other_data_and_another_start_are_looked_at(looked):
    games = [made(), made((1.0, 2.0)), made((1.0, 2.0), place=1)]
    for game in games:
        looks.look_at(game)
    assert looked == games


def test_data_that_changed_is_looked_at_again(looked):
    game = made()
    looks.look_at(game)
    game.data[0][0] = 5.0
    looks.look_at(game)
    assert looked == [game, game]


def test_a_mark_on_disk_is_enough(looked, monkeypatch):
    looks.look_at(made())
    monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))  # as another process
    looks.look_at(made())
    assert len(looked) == 1


def test_the_first_state_that_is_not_the_start_is_looked_at(looked):
    game = made((1.0, 2.0, 3.0))
    states = [game.start() for _ in range(3)]
    states[1]["place"], states[2]["place"] = 1, 2
    for state in (*states, *states):
        looks.look_at(game, state)
    assert looked == [game, game]
    game.data[0][0] = 5.0
    looks.look_at(game, states[2])
    assert len(looked) == 4


def test_a_look_from_a_state_is_made_once_in_all_processes(looked, monkeypatch):
    for _ in range(2):
        game = made((1.0, 2.0))
        state = game.start()
        state["place"] = 1
        looks.look_at(game, state)
        monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))  # as another process
    assert len(looked) == 2
