"""Environments without rules: what is observed, episodes, and learned models of them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the gym extra is not installed")
torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree import learn  # noqa: E402
from uctree.errors import BrokenGame, UctreeError  # noqa: E402
from uctree.learn import environments  # noqa: E402
from uctree.learn.environments import EnvironmentWorld, environment, play_environment  # noqa: E402
from uctree.learn.replay import observe_states  # noqa: E402

torch.set_num_threads(1)

CARTPOLE = "gymnasium:CartPole-v1"


def test_cartpole_is_described_by_what_is_observed():
    game = environment(CARTPOLE)
    assert (game.num_players, game.num_actions, game.observation_shape) == (1, 2, (4,))
    assert game.max_plies == 500
    assert game.discount == environments.DISCOUNT
    assert environment(CARTPOLE + ",discount=0.9").discount == 0.9
    world = EnvironmentWorld(game)
    state = world.start(seed=3)
    raw, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    # Position and angle have bounds, 4.8 and 0.41887903; the velocities have none.
    expected = raw / np.array([4.8, 1.0, 0.41887903, 1.0])
    np.testing.assert_allclose(state["observation"], expected, rtol=1e-5)
    observed = observe_states(game, [state]).observations[0]
    np.testing.assert_array_equal(observed, state["observation"])
    world.close()


def test_the_environment_has_no_rules_and_says_so():
    game = environment(CARTPOLE)
    with pytest.raises(BrokenGame, match="has no rules"):
        game.step(game.start(), 0)
    with pytest.raises(UctreeError, match="is an environment without rules"):
        learn.make_options(game)
    options = learn.make_options(game, algorithm="muzero")
    assert options.playout_iterations == 0
    assert options.temperature_cutover > game.max_plies  # exploration never ends
    with pytest.raises(UctreeError, match="playout_iterations=2: CartPole-v1 is an environment"):
        learn.make_options(game, algorithm="muzero", playout_iterations=2)


def test_a_described_environment_can_be_sent_to_a_worker():
    game = pickle.loads(pickle.dumps(environment(CARTPOLE)))
    assert game.environment == CARTPOLE
    assert EnvironmentWorld(game).start(0)["to_play"] == 0


def test_truncation_is_not_an_end():
    game = environment("gymnasium:CartPole-v1,max_episode_steps=5")
    world = EnvironmentWorld(game)
    state = world.start(seed=0)
    for _ in range(5):
        state, reward = world.step(state, 0)
        assert reward.tolist() == [1.0]
    assert world.is_truncated
    assert not game.is_over(state)
    world.close()


def test_places_become_one_of_several_numbers():
    game = environment("gymnasium:FrozenLake-v1,is_slippery=False")
    assert game.observation_shape == (16,)
    world = EnvironmentWorld(game)
    state, _ = world.step(world.start(0), 2)  # right
    assert np.flatnonzero(state["observation"]).tolist() == [1]
    world.close()


class Images(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 6, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full((8, 6, 3), 7, np.uint8), {}

    def step(self, action):
        return np.zeros((8, 6, 3), np.uint8), math.inf if action else 1.0, True, False, {}


@pytest.mark.filterwarnings("ignore:.*The reward is an inf value:UserWarning")
def test_images_become_planes_and_bad_rewards_are_refused():
    gymnasium.register("uctree/Images-v0", Images)
    game = environment("gymnasium:uctree/Images-v0")
    assert game.observation_shape == (3, 8, 6)
    world = EnvironmentWorld(game)
    state = world.start(0)
    assert state["observation"].shape == (3, 8, 6)
    assert (state["observation"] == 7).all()
    with pytest.raises(BrokenGame, match="paid inf"):
        world.step(state, 1)


class Planes(gymnasium.Env):
    """Planes of yes and no, as MinAtar shows them."""

    observation_space = gymnasium.spaces.Box(0, 1, (10, 9, 4), bool)
    action_space = gymnasium.spaces.Discrete(6)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random((10, 9, 4)) < 0.3, {}

    def step(self, action):
        return self.np_random.random((10, 9, 4)) < 0.3, 1.0, False, False, {}


def test_planes_of_yes_and_no_become_planes_of_1_and_minus_1():
    gymnasium.register("uctree/Planes-v0", Planes, max_episode_steps=20)
    game = environment("gymnasium:uctree/Planes-v0")
    assert (game.observation_shape, game.num_actions) == ((4, 10, 9), 6)
    world = EnvironmentWorld(game)
    state, raw = world.start(5), gymnasium.make("uctree/Planes-v0").reset(seed=5)[0]
    shown = observe_states(game, [state]).observations[0]
    np.testing.assert_array_equal(shown, np.where(np.transpose(raw, (2, 0, 1)), 1.0, -1.0))
    assert learn.make_options(game, algorithm="muzero").network is None  # a tower
    world.close()


@pytest.mark.peer
def test_minatar_is_played_by_its_name():
    pytest.importorskip("minatar", reason="minatar is not installed")
    game = environment("gymnasium:MinAtar/Breakout-v1")
    assert (game.observation_shape, game.num_actions, game.max_plies) == ((4, 10, 10), 3, None)
    played = play_environment(game, lambda states, seeds: [0] * len(states), [1, 2])
    for each in played:  # without a paddle that moves, the ball is lost soon
        assert len(each.actions) < 100
        assert set(np.unique(each.states[0]["observation"])) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gymnasium:Pendulum-v1", "needs numbered ones"),
        ("gymnasium:NoSuch-v0", "failed with"),
        ("gymnasium:CartPole-v1,1", "write arguments by name"),
        ("cartpole", "is written as gymnasium:ID"),
    ],
)
def test_what_cannot_be_learned_is_refused(text, message):
    with pytest.raises(UctreeError, match=message):
        environment(text)


def test_episodes_depend_on_their_seeds_alone():
    game = environment(CARTPOLE)

    def alternate(states, seeds):
        return [seed % 2 for seed in seeds]

    one = play_environment(game, alternate, [5, 6])
    other = play_environment(game, alternate, [6])
    assert one[1].actions == other[0].actions
    assert one[1].total == other[0].total == len(one[1].actions)


def test_a_model_of_an_environment_is_trained_measured_and_resumed(tmp_path):
    options = {
        "algorithm": "muzero", "num_simulations": 4, "episodes_per_iteration": 4, "num_trees": 4,
        "draws": 1, "batch_size": 16, "network_width": 16, "network_depth": 8, "value_plies": 5,
        "ladder_games": 2, "inference": "torch",
    }  # fmt: skip
    learn.train(CARTPOLE, tmp_path, max_iterations=1, **options)
    run = learn.train(CARTPOLE, tmp_path, max_iterations=2)
    row = run.metrics("ladder")[-1]
    assert row["iteration"] == 2
    assert row["games"]["random"]["mean_return"] > 5
    assert row["model"][1]["reward"] is not None
    learn.write_report(run, tmp_path / "report.html")
    assert "CartPole" in (tmp_path / "report.html").read_text()
    opened = learn.Run.open(tmp_path)
    assert opened.game.environment == CARTPOLE
    assert opened.search(opened.game.start(), num_simulations=4).action in (0, 1)
