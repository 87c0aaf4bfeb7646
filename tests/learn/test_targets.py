"""Policies, values and weights that a network is taught, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uctree import games
from uctree.learn import targets

pytestmark = pytest.mark.quick


def test_visits_become_shares_of_all_actions():
    policy = targets.visit_policy(np.array([4, 1]), np.array([3, 1]), num_actions=6)
    assert policy.dtype == np.float32
    assert policy.tolist() == [0, 0.25, 0, 0, 0.75, 0]


def test_a_low_temperature_sharpens_a_policy():
    policy = targets.visit_policy([0, 1], [3, 1], num_actions=2, temperature=0.5)
    assert policy.tolist() == pytest.approx([0.9, 0.1])


def test_the_policy_of_a_root_without_visits_is_uniform_over_its_edges():
    assert targets.visit_policy([0, 2], [0, 0], num_actions=3).tolist() == [0.5, 0, 0.5]


def test_returns_add_up_discounted_rewards_of_every_player():
    rewards = [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 4, -8]]
    returns = targets.n_step_returns(rewards, discount=0.5)
    assert returns.tolist() == [[0.5, 0.5, -1], [1, 1, -2], [0, 2, -4], [0, 4, -8]]


def test_a_value_stands_for_what_is_paid_after_the_window():
    rewards, values = [[1.0], [2.0], [4.0]], [[50.0], [60.0], [70.0]]
    returns = targets.n_step_returns(rewards, discount=0.5, values=values, num_steps=1)
    assert returns.tolist() == [[1 + 30], [2 + 35], [4]]


def test_a_window_of_no_steps_is_the_value_itself():
    values = [[0.25, -0.25], [0.5, -0.5]]
    returns = targets.n_step_returns(np.ones((2, 2)), values=values, num_steps=0)
    assert returns.tolist() == values


def test_what_followed_stands_for_the_value_of_a_chance_ply():
    values = [[3.0], [math.nan], [8.0]]
    returns = targets.n_step_returns([[1.0], [2.0], [0.0]], values=values, num_steps=1)
    assert returns.tolist() == [[1 + 2 + 8], [2 + 8], [0]]


def test_an_episode_that_was_cut_ends_with_the_value_of_its_last_state():
    returns = targets.n_step_returns([[1.0], [1.0]], discount=0.5, final_value=[8.0])
    assert returns.tolist() == [[1 + 0.5 + 2], [1 + 4]]


def test_the_returns_of_an_episode_are_those_that_the_game_tells():
    game = games.pig(target=20)
    episode = game.random_episode(seed=3)
    assert np.array_equal(targets.n_step_returns(episode.rewards)[0], episode.returns)


@pytest.mark.parametrize("given", [{"num_steps": 1}, {"num_steps": -1, "values": [[0.0]] * 2}])
def test_a_window_needs_values(given):
    with pytest.raises(ValueError, match="needs values= of the shape of rewards"):
        targets.n_step_returns([[1.0], [1.0]], **given)


def test_a_share_of_the_search_value_is_mixed_in():
    assert targets.mixed_values([[1.0, -1.0]], [[0.0, 0.5]], 0.5).tolist() == [[0.5, -0.25]]
    with pytest.raises(ValueError, match=r"share must be within 0 and 1; got 1\.5"):
        targets.mixed_values([1.0], [1.0], 1.5)


def test_frames_begin_with_the_player_to_play():
    vectors, players = np.arange(12).reshape(4, 3), np.array([0, 1, 2, 1])
    rows = [np.roll(v, -p).tolist() for v, p in zip(vectors, players, strict=True)]
    assert targets.to_frames(vectors, players).tolist() == rows
    assert rows[1] == [4, 5, 3]


def test_divergence_is_zero_between_equals_and_finite_where_the_prior_is_zero():
    policies = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    priors = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 1.0, 0.0]])
    same, by_hand, impossible = targets.divergence(policies, priors)
    assert same == 0
    assert by_hand == pytest.approx(math.log(4))
    assert 50 < impossible < 100


def test_half_of_the_weight_goes_by_surprise():
    weights = targets.surprise_weights([0.0, 2.0])
    assert weights.tolist() == [0.5, 1.5]
    assert targets.surprise_weights([0.0, 2.0], share=1.0).tolist() == [0, 2]


@pytest.mark.parametrize("divergences", [[], [0.0, 0.0]])
def test_without_surprise_all_count_the_same(divergences):
    assert targets.surprise_weights(divergences).tolist() == [1.0] * len(divergences)


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.5, -1.0, 255.0, -20_000.0, 1e9])
def test_squash_is_the_published_formula_and_unsquash_its_inverse(x):
    published = math.copysign(math.sqrt(abs(x) + 1) - 1, x) + 0.001 * x
    assert targets.squash(x) == pytest.approx(published, rel=1e-6, abs=1e-15)
    assert targets.unsquash(targets.squash(x)) == pytest.approx(x, rel=1e-12)


def test_single_precision_is_enough_to_squash_and_back():
    returns = np.array([-60_000, -1, -0.001, 0, 0.001, 1, 2048, 60_000], np.float32)
    assert targets.unsquash(targets.squash(returns)) == pytest.approx(returns, rel=1e-5)


def mirrored(game):
    """The mirror image among the symmetries of a board whose actions are its cells."""
    cells = np.arange(9).reshape(3, 3)[:, ::-1].ravel()
    return [table.tolist() for table in game.symmetries[1]].index(cells.tolist())


def test_a_symmetry_moves_stones_and_actions_alike():
    game = games.tic_tac_toe()
    observations = game.observation(game.play([0, 4]), 0)[None]
    policies = np.eye(9, dtype=np.float32)[[3]]
    turned, policy = targets.transform(game, [mirrored(game)], observations, policies)
    assert turned[0, 0].tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert turned[0, 1].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert policy.argmax() == 5


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "go", "hex", "breakthrough"])
def test_an_episode_of_images_is_the_image_of_the_episode(name):
    game = getattr(games, name)()
    episode = game.random_episode(seed=1)
    num_symmetries = len(game.symmetries[0])
    for k in range(num_symmetries):
        actions = game.symmetries[0][k][episode.actions[:6]]
        state, image = game.start(), game.start()
        for action, moved in zip(episode.actions[:6], actions, strict=True):
            player = game.to_play(state)
            policy = np.eye(game.num_actions, dtype=np.float32)[[action]]
            got, turned = targets.transform(
                game, [k], game.observation(state, player)[None], policy
            )
            assert np.array_equal(got[0], game.observation(image, player))
            assert turned.argmax() == moved
            state, image = game.step(state, action)[0], game.step(image, moved)[0]


def test_each_sample_has_its_own_symmetry():
    game = games.tic_tac_toe()
    rng = np.random.default_rng(1)
    observations = rng.random((8, 2, 3, 3), np.float32)
    policies = rng.random((8, 9), np.float32)
    together = targets.transform(game, np.arange(8), observations, policies)
    for k in range(8):
        alone = targets.transform(game, [k], observations[[k]], policies[[k]])
        assert np.array_equal(together[0][[k]], alone[0])
        assert np.array_equal(together[1][[k]], alone[1])


def test_a_game_without_symmetries_is_refused():
    game = games.nim()
    with pytest.raises(ValueError, match="has no symmetries; give Game"):
        targets.transform(game, [0], np.zeros((1, 4, 7), np.float32), np.zeros((1, 20)))
