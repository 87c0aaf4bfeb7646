"""Our games as environments of PettingZoo, by its own check."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import uctree
from tests.adapters.small import built_in
from uctree import adapters, games

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PettingZoo, about how it makes its own environments
    from pettingzoo.test import api_test

pytestmark = pytest.mark.peer


def test_pettingzoos_own_check_passes(game, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hints about observations that are constant
        api_test(adapters.to_pettingzoo(game), num_cycles=60)


def played(env, seed):
    """The returns of a random episode; agents that are done step once with None."""
    env.reset(seed=seed)
    rng, returns = np.random.default_rng(seed), dict.fromkeys(env.possible_agents, 0.0)
    ended = []
    for agent in env.agent_iter(max_iter=5000):
        observation, reward, over, cut, _ = env.last()
        assert isinstance(over, bool)
        returns[agent] += reward
        if over or cut:
            ended.append(agent)
            env.step(None)
        else:
            env.step(rng.choice(np.flatnonzero(observation["action_mask"])))
    assert sorted(ended) == sorted(env.possible_agents)
    assert not env.agents
    return list(returns.values())


def test_a_random_episode_of_every_game_runs_to_the_end(game):
    env = adapters.to_pettingzoo(game)
    returns = played(env, 1)
    assert env.episode.is_over or env.episode.is_cut
    assert played(env, 1) == returns


def test_a_random_episode_ends_with_the_returns_of_the_game():
    for name in ("connect_four", "dots_and_boxes", "pig"):
        game = built_in(name)
        env = adapters.to_pettingzoo(game)
        returns = played(env, 3)
        assert sum(returns) == (4.0 if name == "dots_and_boxes" else 0.0)
        assert any(returns)
        assert played(env, 3) == returns
        assert env.episode.is_over


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="are vectors"):
        adapters.to_pettingzoo(games.leap())
    with pytest.raises(TypeError, match=r"expected a uctree\.Game or its name.*got 7"):
        adapters.to_pettingzoo(7)
    env = adapters.to_pettingzoo(games.tic_tac_toe())
    env.reset()
    env.step(4)
    with pytest.raises(uctree.IllegalAction):
        env.step(4)
