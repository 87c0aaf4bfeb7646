"""A game file that is saved while the studio runs."""

from __future__ import annotations

import pytest

from uctree import specs
from uctree.errors import UctreeError
from uctree.studio import workshop as module
from uctree.studio.workshop import Workshop

pytestmark = pytest.mark.quick

GAME = """
import numpy as np
import uctree

Position = np.dtype([("total", np.int8), ("to_play", np.int8)])


def legal(state, actions):
    actions[0], actions[1] = 0, 1
    return 2


def step(state, action, reward):
    player = state.to_play
    state.total += action + 1
    state.to_play = 1 - player
    if state.total >= 5:
        reward[player], reward[1 - player] = PAID
        state.to_play = uctree.OVER


def show_action(state, action):
    return f"+{action + 1}"


race = uctree.Game(
    Position, legal, step, num_players=2, num_actions=2, name="race", payoff_range=(-1, 1),
    show_action=show_action,
)
"""
GOOD, BAD = GAME.replace("PAID", "1, -1"), GAME.replace("PAID", "3, -1")
BROKEN = GAME.replace("return 2", "return (")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch, imports_are_undone):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr(module, "EPISODES", 5)


def test_a_saved_file_is_loaded_and_examined(tmp_path):
    file = tmp_path / "race_of_a_workshop.py"
    file.write_text(GOOD)
    told = []
    workshop = Workshop(f"{file}:race")
    workshop.changed = lambda: told.append(workshop.version)
    workshop.examine()
    assert workshop.version.content()["findings"] == []
    first = workshop.game()
    assert not workshop.look()
    file.write_text(BAD)
    assert workshop.look()
    assert workshop.game() is not first
    assert first.replay([1, 1, 0]).returns.tolist() == [1, -1]
    assert workshop.game().replay([1, 1, 0]).returns.tolist() == [3, -1]
    content = workshop.version.content()
    assert [each["rule"] for each in content["findings"]] == ["payoff-range"]
    assert content["findings"][0]["actions"]
    assert [version.number for version in told] == [1, 2, 2]
    assert told[1].content()["checking"]


def test_a_file_that_cannot_be_loaded_says_where_and_comes_back(tmp_path):
    file = tmp_path / "race_that_breaks.py"
    file.write_text(GOOD)
    workshop = Workshop(f"{file}:race")
    file.write_text(BROKEN)
    assert workshop.look()
    assert "line" in workshop.version.content()["fault"]
    with pytest.raises(UctreeError, match="cannot be loaded"):
        workshop.game()
    file.unlink()
    assert workshop.look()
    assert "there is no file" in workshop.version.fault
    file.write_text(GOOD)
    assert workshop.look()
    assert workshop.game().name == "race"


def test_only_a_file_can_be_watched():
    with pytest.raises(UctreeError, match="names no file"):
        specs.file_of("connect_four")
