"""Gymnasium environments as worlds: how they are copied, dice, truncation, actions."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

import uctree
from uctree import adapters

gym = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]


class Corridor(gym.Env):
    """One walks from 0 to 3; the place is kept in a list, which shallow copies would share."""

    observation_space = gym.spaces.Box(-99, 99, (1,))
    action_space = gym.spaces.Discrete(2)
    is_random = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.inside = {"place": [0]}
        return self._observation(), {}

    def _observation(self):
        return np.array(self.inside["place"], np.float32)

    def step(self, action):
        stays = self.is_random and self.np_random.random() < 0.5
        self.inside["place"][0] += 0 if stays else 2 * int(action) - 1
        place = self.inside["place"][0]
        return self._observation(), float(place == 3), abs(place) >= 3, False, {}


class WithStates(Corridor):
    def get_state(self):
        return self.inside["place"][0]

    def set_state(self, state):
        self.inside = {"place": [state]}


class LikeALE(Corridor):
    def clone_state(self, include_rng=False):
        return self.inside["place"][0]

    def restore_state(self, state):
        self.inside = {"place": [state]}


class Rebuilt(Corridor):
    """A copy begins anew, as those of environments that are copied through their arguments."""

    def __deepcopy__(self, memo):
        twin = Rebuilt()
        twin.reset()
        return twin


def made(kind=Corridor, steps=(), limit=20):
    env = gym.wrappers.TimeLimit(kind(), limit)
    env.reset(seed=1)
    for action in steps:
        env.step(action)
    return env


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Acrobot-v1", "Blackjack-v1"])
def test_an_environment_of_gymnasium_is_left_alone(name):
    env, twin = gym.make(name), gym.make(name)
    for each in (env, twin):
        each.reset(seed=3)
    world = adapters.from_gymnasium(env)
    assert "a shallow copy" in world.note
    uctree.plan(world, num_simulations=4, seed=1)
    for action in (0, 1, 0, 0, 1):
        mine, other = env.step(action), twin.step(action)
        assert np.array_equal(mine[0], other[0])
        assert mine[1:4] == other[1:4]
        if mine[2]:
            break


def test_a_cart_is_balanced_for_a_while():
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    for ply in range(40):
        _, _, over, _, _ = env.step(uctree.plan(env, num_simulations=12, seed=ply).action)
        assert not over


@pytest.mark.slow
def test_a_cart_is_balanced_to_the_end_with_a_value_of_ones_own():
    def value(state):
        x, speed, angle, turn = state.observation if state.observation is not None else (0,) * 4
        return float(50 - 10 * abs(x + speed) - 50 * abs(angle + 0.2 * turn))

    env = gym.make("CartPole-v1")
    for seed in range(2):
        env.reset(seed=seed)
        is_truncated = over = False
        ply = 0
        while not (over or is_truncated):
            world = adapters.from_gymnasium(env, value=value)
            action = uctree.plan(world, num_simulations=100, seed=ply).action
            _, _, over, is_truncated, _ = env.step(action)
            ply += 1
        assert (ply, over) == (500, False)


def test_a_state_inside_a_container_is_copied_by_deepcopy_with_a_warning():
    env = made(steps=(1,))
    with pytest.warns(UserWarning, match=r"Corridor is copied by copy\.deepcopy, \d+ µs"):
        world = adapters.from_gymnasium(env)
    assert "copy.deepcopy" in world.note
    assert uctree.plan(world, num_simulations=60, seed=1).action == 1
    assert env.unwrapped.inside == {"place": [1]}


@pytest.mark.parametrize(
    ("kind", "how"),
    [(WithStates, "get_state and set_state"), (LikeALE, "clone_state and restore_state")],
)
def test_states_that_can_be_put_back_are(kind, how):
    env = made(kind, steps=(1,))
    world = adapters.from_gymnasium(env)
    assert how in world.note
    assert uctree.plan(world, num_simulations=60, seed=1).action == 1
    assert env.unwrapped.inside == {"place": [1]}
    assert env._elapsed_steps == 1


def test_a_function_of_the_user_comes_first_and_is_checked():
    def right(env):
        return copy.deepcopy(env)

    assert "clone=" in adapters.from_gymnasium(made(WithStates), clone=right).note
    env = made()
    with pytest.raises(ValueError, match="no way was found to copy Corridor"):
        adapters.from_gymnasium(env, clone=lambda env: env)
    assert env.unwrapped.inside == {"place": [0]}


def test_copies_that_begin_anew_are_refused():
    with pytest.raises(ValueError, match=r"a copy differs from its original.*Give clone=f"):
        adapters.from_gymnasium(made(Rebuilt, steps=(1,)))


def test_wrappers_keep_their_state_and_truncation_is_not_an_end():
    env = made(WithStates, limit=2)
    for truncation, over in (("ignore", False), ("end", True)):
        problem = adapters.from_gymnasium(env, truncation=truncation).problem
        world = adapters.from_gymnasium(env, truncation=truncation)
        first = world.problem.step(world.start, 1)
        second = world.problem.step(first.state, 1)
        assert (first.over, second.over) == (False, over)
        assert problem.step(world.start, 1).over is False
    third = adapters.from_gymnasium(env).problem
    assert third.playout(world.start, random.Random(1)) in (0.0, 1.0)


class Slippery(WithStates):
    is_random = True


def test_a_plan_does_not_see_the_dice():
    """Eight outcomes per action are drawn, by another generator than the environment's."""
    env = made(Slippery)
    before = env.unwrapped.np_random.bit_generator.state
    world = adapters.from_gymnasium(env)
    assert "8 outcomes" in world.note
    drawn = world.problem.step(world.start, 1)
    assert drawn.to_play == uctree.CHANCE
    places = [
        world.problem.step(drawn.state, outcome).state.observation[0]
        for outcome, _ in world.problem.chance(drawn.state)
    ]
    assert sorted(set(places)) == [0.0, 1.0]
    assert env.unwrapped.np_random.bit_generator.state == before
    assert uctree.plan(world, num_simulations=150, seed=2).action == 1


def test_actions_come_from_masks_products_and_boxes():
    class Masked(WithStates):
        def action_masks(self):
            return np.array([True, False])

    assert uctree.plan(made(Masked), num_simulations=5).action == 0
    world = adapters.from_gymnasium(made(WithStates), legal=lambda env: [1])
    assert world.problem.actions(world.start) == [1]

    class Pair(WithStates):
        action_space = gym.spaces.MultiDiscrete([2, 3])

        def step(self, action):
            return super().step(action[0] * (action[1] == 2))

    result = uctree.plan(made(Pair), num_simulations=150, seed=1)
    assert result.action == (1, 2)

    class Pushed(WithStates):
        action_space = gym.spaces.Box(-1, 1, (1,))

        def step(self, action):
            assert self.action_space.contains(action)
            return super().step(action[0] > 0)

    result = uctree.plan(made(Pushed), num_simulations=60, seed=1)
    assert -1 <= result.action[0] <= 1


def test_what_cannot_be_planned_in_is_refused():
    with pytest.raises(TypeError, match="many environments in one"):
        uctree.plan(gym.make_vec("CartPole-v1", num_envs=2), num_simulations=1)
    with pytest.raises(ValueError, match=r"call env\.reset\(\) first"):
        uctree.plan(gym.make("CartPole-v1"), num_simulations=1)
    with pytest.raises(ValueError, match='truncation is "ignore" or "end"'):
        adapters.from_gymnasium(made(WithStates), truncation="stop")

    class Unbounded(WithStates):
        action_space = gym.spaces.Box(-np.inf, np.inf, (1,))

    with pytest.raises(ValueError, match=r"the actions of Box.* cannot be listed"):
        adapters.from_gymnasium(made(Unbounded))
