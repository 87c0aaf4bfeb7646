"""PettingZoo environments as worlds: masks, agents that leave, and what is refused."""

from __future__ import annotations

import copy
import importlib
import warnings

import pytest

import uctree
from uctree import adapters, games

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import parallel_to_aec, wrappers

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]


class Take(AECEnv):
    """Three agents take one or two of the rest in turn; who takes the last one wins."""

    def __init__(self, left=5, name="take_v0"):
        super().__init__()
        self.metadata = {"name": name}
        self.possible_agents = ["a", "b", "c"]
        self.first = left

    def observation_space(self, agent):
        return spaces.Discrete(99)

    def action_space(self, agent):
        return spaces.Discrete(2, start=1)

    def reset(self, seed=None, options=None):
        self.left, self.agents = self.first, list(self.possible_agents)
        self.agent_selection = "a"
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._tell()

    def _tell(self):
        self.infos = {agent: {"action_mask": [1, self.left >= 2]} for agent in self.agents}

    def observe(self, agent):
        return self.left

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self.left -= action
        over = self.left == 0
        self.rewards = {each: float(over and each == agent) for each in self.agents}
        self.terminations = dict.fromkeys(self.agents, over)
        self.agent_selection = self.agents[(self.agents.index(agent) + 1) % 3]
        self._tell()
        self._accumulate_rewards()


def made(env, *actions):
    env.reset(seed=1)
    for action in actions:
        env.step(action)
    return env


def test_a_mask_in_the_info_and_three_agents():
    env = made(Take(4), 1, 1)
    world = adapters.from_pettingzoo(env)
    assert world.to_play == 2
    result = uctree.plan(world, num_simulations=60, seed=1)
    assert result.action == 2
    assert result.value.argmax() == 2
    assert (env.left, env.agent_selection) == (2, "c")
    assert world.problem.actions(made(Take(1))) == [1]


def test_a_mask_in_the_observation_and_agents_that_leave():
    env = made(adapters.to_pettingzoo(games.tic_tac_toe()), 0, 3, 1, 4)
    result = uctree.plan(env, num_simulations=60, seed=1)
    assert result.action == 2
    world = adapters.from_pettingzoo(env)
    end = world.problem.step(world.start, 2)
    assert (end.reward, end.over) == ([1.0, -1.0], True)
    assert env.agents == ["player_0", "player_1"]


def test_a_wrapped_environment_and_a_clone_of_ones_own():
    env = made(wrappers.OrderEnforcingWrapper(Take(2)))
    assert uctree.plan(env, num_simulations=30, seed=1).action == 2
    copies = []

    def clone(env):
        copies.append(env)
        return copy.deepcopy(env)

    assert uctree.plan(adapters.from_pettingzoo(env, clone=clone), num_simulations=5).action
    assert copies
    env = made(Take(9))
    with pytest.raises(ValueError, match="two copies of the environment differ"):
        adapters.from_pettingzoo(env, clone=lambda env: env)
    assert env.left == 9


@pytest.mark.parametrize(
    ("name", "actions", "best"),
    # X completes its row; O blocks the fourth in a row.
    [("tictactoe_v3", (0, 3, 1, 4), 2), ("connect_four_v3", (3, 0, 3, 0, 3), 3)],
)
def test_a_classic_environment_is_searched(name, actions, best):
    pytest.importorskip("pygame", reason="pygame, which PettingZoo's classics need, is missing")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pygame, about packages of its own
        module = importlib.import_module(f"pettingzoo.classic.{name}")
    env = made(module.env(), *actions)
    before = env.observe(env.agent_selection)["observation"].copy()
    assert uctree.plan(env, num_simulations=150, seed=1).action == best
    assert (env.observe(env.agent_selection)["observation"] == before).all()


class AtOnce(ParallelEnv):
    metadata = {"name": "at_once_v0"}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012
    render_mode = None

    def observation_space(self, agent):
        return spaces.Discrete(2)

    action_space = observation_space


def test_what_a_tree_does_not_describe_is_refused_by_name():
    for env in (AtOnce(), parallel_to_aec(AtOnce())):
        with pytest.raises(TypeError, match="all agents act at the same time"):
            uctree.plan(env, num_simulations=1)
    with pytest.raises(ValueError, match="leduc_holdem_v4 cannot be searched: it has hidden"):
        uctree.plan(made(Take(name="leduc_holdem_v4")), num_simulations=1)
    with pytest.raises(ValueError, match="draws its chance inside a step"):
        uctree.plan(made(adapters.to_pettingzoo(games.pig())), num_simulations=1)
    with pytest.raises(ValueError, match=r"call env\.reset\(\) first"):
        uctree.plan(Take(), num_simulations=1)
    with pytest.raises(TypeError, match=r"takes a pettingzoo\.AECEnv; got int"):
        adapters.from_pettingzoo(3)
