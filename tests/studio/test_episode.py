"""Episodes of the studio: looked back at, undone, cut."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import games
from uctree.errors import IllegalAction, UctreeError
from uctree.studio import episode as module
from uctree.studio.episode import StudioEpisode

pytestmark = pytest.mark.quick


def played(game, actions):
    episode = StudioEpisode(game)
    for action in actions:
        episode.take(action)
    return episode


def test_the_state_is_that_of_the_ply_that_is_looked_at():
    game = games.tic_tac_toe()
    episode = played(game, [4, 0, 8])
    episode.jump(1)
    assert game.key(episode.state) == game.key(game.play([4]))
    assert not episode.is_at_end
    episode.jump(3)
    assert episode.is_at_end
    with pytest.raises(UctreeError, match="the episode has 3 plies; got 4"):
        episode.jump(4)


def test_an_action_in_an_earlier_state_cuts_what_followed():
    episode = played(games.tic_tac_toe(), [4, 0, 8])
    episode.jump(1)
    episode.take(2)
    assert episode.numbers() == [4, 2]
    assert episode.words == ["P0:5", "P1:3"]
    assert len(episode.states) == len(episode.values) == 3


def test_an_illegal_action_changes_nothing():
    episode = played(games.tic_tac_toe(), [4, 0, 8])
    episode.jump(1)
    with pytest.raises(IllegalAction):
        episode.take(4)
    assert episode.numbers() == [4, 0, 8]


@pytest.mark.parametrize(("persons", "left"), [([0], 2), ([1], 1), ([0, 1], 2), ([], 2)])
def test_undo_goes_back_to_the_last_decision_of_a_person(persons, left):
    episode = played(games.tic_tac_toe(), [4, 0, 8])
    episode.undo(persons)
    assert len(episode.actions) == left


def test_undo_passes_outcomes_of_chance():
    episode = played(games.pig(), [0, 4])
    episode.undo([])
    assert episode.numbers() == []


def test_returns_are_discounted_sums_of_rewards():
    game = games.twenty48()
    actions = game.random_episode(seed=3).actions[:40]
    np.testing.assert_allclose(played(game, actions).returns(), game.replay(actions).returns)


def test_an_episode_has_a_largest_length(monkeypatch):
    monkeypatch.setattr(module, "MOST_PLIES", 2)
    episode = played(games.tic_tac_toe(), [0, 1])
    with pytest.raises(UctreeError, match="keeps 2 plies"):
        episode.take(2)
