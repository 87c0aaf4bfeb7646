"""Our games as environments of Gymnasium and PettingZoo, by their own checks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import uctree
from uctree import adapters, games

pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
from gymnasium.utils.env_checker import check_env

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PettingZoo, about how it makes its own environments
    from pettingzoo.test import api_test

pytestmark = pytest.mark.peer

SMALL = {"go": {"size": 5}, "hex": {"size": 4}, "n_in_a_row": {"rows": 5, "cols": 5, "length": 4},
         "pig": {"target": 20}}  # fmt: skip
VECTORS = ("leap", "loss_game", "point_mass")


def built_in(name):
    return getattr(games, name)(**SMALL.get(name, {}))


@pytest.fixture(params=[name for name in games.__all__ if name not in VECTORS])
def game(request):
    return built_in(request.param)


@pytest.mark.parametrize("illegal", ["end", "noop"])
def test_gymnasiums_own_check_passes(game, illegal):
    env = adapters.to_gymnasium(game, illegal=illegal)
    with warnings.catch_warnings():
        # Hints about unbounded boxes and missing names.
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


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


def last_legal(game, state, rng):
    return game.legal(state)[-1]


def test_a_step_ends_when_the_player_is_to_move_again():
    env = adapters.to_gymnasium(games.tic_tac_toe(), player=1, opponent=last_legal)
    _, info = env.reset(seed=1)
    assert info["action_mask"].tolist() == [1] * 8 + [0]
    _, reward, over, _, info = env.step(0)
    assert (reward, over) == (0.0, False)
    assert info["action_mask"].tolist() == [0] + [1] * 6 + [0, 0]
    _, reward, over, _, _ = env.step(1)  # the opponent completes 6, 7, 8
    assert (reward, over) == (-1.0, True)
    assert "X" in env.render().upper()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        env.step(2)


@pytest.mark.parametrize(("illegal", "expected"), [("end", (-5.0, True)), ("noop", (0.0, False))])
def test_an_illegal_action_ends_the_episode_or_does_nothing(illegal, expected):
    env = adapters.to_gymnasium(
        games.tic_tac_toe(), opponent=last_legal, illegal=illegal, illegal_reward=-5.0
    )
    env.reset(seed=1)
    before, *_ = env.step(0)
    after, reward, over, _, info = env.step(0)
    assert (reward, over) == expected
    assert info["illegal"]
    assert (before == after).all()


def test_an_environment_out_can_be_planned_in_again():
    env = adapters.to_gymnasium(games.tic_tac_toe(), opponent=last_legal)
    env.reset(seed=1)
    for action in (0, 1):
        env.step(action)  # the opponent has 8 and 7, and threatens 6; 2 wins
    with pytest.warns(UserWarning, match="copy.deepcopy"):
        result = uctree.plan(env, num_simulations=40, seed=1)
    assert result.action == 2


def test_what_does_not_fit_is_refused():
    for function in (adapters.to_gymnasium, adapters.to_pettingzoo):
        with pytest.raises(ValueError, match="are vectors"):
            function(games.leap())
        with pytest.raises(TypeError, match=r"takes a uctree\.Game; got str"):
            function("go")
    with pytest.raises(ValueError, match='illegal is "end" or "noop"'):
        adapters.to_gymnasium(games.nim(), illegal="raise")
    with pytest.raises(ValueError, match="player must be 0 to 1; got 2"):
        adapters.to_gymnasium(games.nim(), player=2)
    env = adapters.to_pettingzoo(games.tic_tac_toe())
    env.reset()
    env.step(4)
    with pytest.raises(uctree.IllegalAction):
        env.step(4)
