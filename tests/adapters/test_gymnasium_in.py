"""Gymnasium environments as worlds: dice, truncation, actions."""

from __future__ import annotations

import copy
import random
import warnings

import numpy as np
import pytest

import uctree
from uctree import adapters, selection
from uctree.engine.compile import interpreted

gym = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
from tests.adapters.corridors import Corridor, WithStates, made  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]


@pytest.mark.parametrize(
    ("name", "how"),
    [("CartPole-v1", "shallow"), ("FrozenLake-v1", "table P"), ("Acrobot-v1", "shallow"),
     ("Blackjack-v1", "shallow")],
)  # fmt: skip
def test_an_environment_of_gymnasium_is_left_alone(name, how):
    env, twin = gym.make(name), gym.make(name)
    for each in (env, twin):
        each.reset(seed=3)
    world = adapters.from_gymnasium(env)
    assert how in world.note
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_cart_is_balanced_to_the_end_by_a_planner_that_keeps_its_tree(seed):
    if interpreted():
        pytest.skip("its paths are long: it takes minutes as plain Python")
    env = gym.make("CartPole-v1")
    env.reset(seed=seed)
    planner = uctree.Planner(
        adapters.from_gymnasium(env, num_playouts=4), num_simulations=100,
        selection=selection.ucb1(c=0.1), seed=seed,
    )  # fmt: skip
    is_truncated = over = False
    while not (over or is_truncated):
        action = uctree.plan(planner).action
        _, _, over, is_truncated, _ = env.step(action)
        planner.advance(action)
    assert not over


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
    assert "it is random: 8 outcomes" in world.note
    assert places(world) == [0.0, 1.0]
    assert env.unwrapped.np_random.bit_generator.state == before
    result = uctree.plan(world, num_simulations=400, seed=1)
    assert result.action == 1
    assert "world: states are copied by get_state and set_state" in str(result)


def places(world):
    """Where an action may lead to; equal samples are one outcome."""
    drawn = world.problem.step(world.start, 1)
    assert drawn.to_play == uctree.CHANCE
    outcomes, shares = zip(*world.problem.chance(drawn.state), strict=True)
    assert sum(shares) == 1.0
    return sorted(float(world.problem.step(drawn.state, each).state.observation[0])
                  for each in outcomes)  # fmt: skip


@pytest.mark.parametrize("reseed", [True, False])
def test_an_environment_that_is_not_checked_does_not_see_the_dice_either(reseed):
    env = made(Slippery)
    generator = env.unwrapped.np_random
    before = generator.bit_generator.state
    world = adapters.from_gymnasium(env, check=False, reseed=reseed)
    if reseed:
        assert "was not checked and may be random: 8 outcomes" in world.note
        assert places(world) == [0.0, 1.0]
        # A step is a function of its seed, in whatever order steps are made.
        steps = [places(world) for _ in range(2)]
        assert steps[0] == steps[1]
    uctree.plan(world, num_simulations=20, seed=1)
    assert env.unwrapped.np_random is generator
    assert generator.bit_generator.state == before


class Slips(gym.Wrapper):
    """A wrapper with dice of its own."""

    def __init__(self, env, rng):
        super().__init__(env)
        self.rng = rng

    def step(self, action):
        return self.env.step(action if self.rng.random() < 0.5 else 1 - action)


@pytest.mark.parametrize(
    "rng", [np.random.default_rng(5), np.random.RandomState(5), random.Random(5)]
)
@pytest.mark.parametrize("kind", [WithStates, Corridor])
def test_the_dice_of_wrappers_are_reseeded_too(kind, rng):
    env = Slips(made(kind), rng)
    twin = copy.deepcopy(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        world = adapters.from_gymnasium(env)
    assert "it is random" in world.note
    assert places(world) == [-1.0, 1.0]
    uctree.plan(world, num_simulations=10, seed=1)
    assert env.rng is rng
    assert rng.random() == twin.random()


def test_samples_that_are_all_equal_need_no_dice():
    class DrawsForNothing(WithStates):
        def step(self, action):
            self.np_random.random()
            return super().step(action)

    world = adapters.from_gymnasium(made(DrawsForNothing))
    assert "it is random" in world.note
    assert world.problem.step(world.start, 1).to_play == 0


def test_a_table_of_transitions_gives_exact_chance():
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    env.reset(seed=1)
    problem, start = adapters.from_gymnasium(env).problem, adapters.from_gymnasium(env).start
    chance = problem.step(start, 0)
    assert chance.to_play == uctree.CHANCE
    # From the corner to the left: two of three outcomes are the corner itself, which are one.
    shares = {outcome[0]: p for outcome, p in problem.chance(chance.state)}
    assert shares == {0: pytest.approx(2 / 3), 8: pytest.approx(1 / 3)}
    after = problem.step(chance.state, next(iter(problem.chance(chance.state)))[0])
    assert (after.state.observation, after.reward, after.over, after.to_play) == (0, 0.0, False, 0)
    # A wrapper that changes rewards makes the table untrue.
    changed = gym.wrappers.TransformReward(env, lambda reward: 2 * reward)
    assert "table" not in adapters.from_gymnasium(changed).note


def test_a_passenger_is_taken_to_the_right_place():
    env = gym.make("Taxi-v4")
    env.reset(seed=1)
    rewards, over = [], False
    while not over:
        result = uctree.plan(env, num_simulations=300, seed=1)
        _, reward, over, is_cut, _ = env.step(result.action)
        rewards.append(reward)
        assert not is_cut
    assert rewards[-1] == 20
    assert -10 not in rewards


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
