"""An episode under way, as environments of other libraries need it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.small import built_in
from tests.small_games import dice_game, tour_game
from uctree import IllegalAction, games
from uctree.adapters.episodes import RunningEpisode, check_finite

pytestmark = pytest.mark.quick


def begun(game, seed=1):
    return RunningEpisode(game, np.random.default_rng(seed))


def test_actions_and_rewards_are_those_of_the_game():
    episode = begun(games.tic_tac_toe())
    for action in (0, 3, 1, 4, 2):
        assert not episode.is_over
        episode.act(action)
    assert episode.is_over
    assert episode.rewards.tolist() == [1.0, -1.0]
    with pytest.raises(IllegalAction):
        begun(games.tic_tac_toe()).act(9)


def test_only_the_player_to_move_has_legal_actions():
    episode = begun(games.tic_tac_toe())
    episode.act(4)
    assert episode.mask(1).tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 1]
    assert not episode.mask(0).any()


def test_outcomes_of_chance_are_drawn_and_pay_with_the_action_before():
    lengths = []
    for seed in range(200):
        episode = begun(dice_game(), seed)
        length = 0
        while not episode.is_over:
            episode.act(0)
            length += 1
            assert episode.to_play >= 0 or episode.is_over
            assert episode.rewards.tolist() == [1.0]
        lengths.append(length)
    assert np.mean(lengths) == pytest.approx(6.0, abs=1.2)


def test_an_episode_is_cut_after_as_many_plies_as_a_playout_may_have():
    game = tour_game()
    episode = begun(game)
    episode.num_plies = game.max_plies
    assert episode.is_cut


def test_observations_are_those_of_a_network_or_the_numbers_of_the_state():
    seen = begun(built_in("connect_four")).observation(0)
    assert seen.shape == built_in("connect_four").observation_shape
    assert begun(dice_game()).observation(0).tolist() == [0.0]


def test_vectors_and_other_things_are_refused():
    with pytest.raises(TypeError, match=r"show takes a uctree\.Game; got str"):
        check_finite("go", "show")
    with pytest.raises(ValueError, match="the actions of leap are vectors"):
        check_finite(games.leap(), "show")
