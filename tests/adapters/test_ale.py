"""Atari games by ALE: emulators that hold their generator where Python cannot reach it."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import adapters

gym = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
ale_py = pytest.importorskip("ale_py", reason="ALE is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]


@pytest.fixture(scope="module")
def ale():
    gym.register_envs(ale_py)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


def made(sticky=0.25, num_steps=5):
    env = gym.make("ALE/Breakout-v5", obs_type="ram", repeat_action_probability=sticky)
    env.reset(seed=1)
    for _ in range(num_steps):
        env.step(1)
    return env


def walked(env, num_steps=30):
    """What is seen in steps whose outcome depends on a sticky action's dice."""
    return [env.step(2 + number % 2)[0].tobytes() for number in range(num_steps)]


@pytest.mark.usefixtures("ale")
def test_a_plan_leaves_the_emulator_and_its_dice_alone():
    env, twin = made(), made()
    result = uctree.plan(adapters.from_gymnasium(env, horizon=3), num_simulations=3, seed=1)
    assert "clone_state and restore_state" in result.note
    assert "it is random: 8 outcomes" in result.note
    assert walked(env) == walked(twin)


@pytest.mark.usefixtures("ale")
def test_sticky_actions_have_dice_of_the_plans_own():
    env = made()
    world = adapters.from_gymnasium(env)
    step, start = world.problem.step, world.start
    outcomes = [step(start, 2), step(start, 2)]
    assert [each.to_play for each in outcomes] == [uctree.CHANCE] * 2
    shares = [world.problem.chance(each.state) for each in outcomes]
    assert shares[0] == shares[1]  # seeds decide, in whatever order steps are made
    assert 2 <= len(shares[0]) < 8
    seen = [[step(each.state, n).state.observation for n, _ in shares[0]] for each in outcomes]
    assert np.array_equal(*seen)


@pytest.mark.usefixtures("ale")
def test_without_sticky_actions_a_plan_foresees_what_happens():
    env = made(sticky=0.0)
    world = adapters.from_gymnasium(env)
    assert "random" not in world.note
    state, seen = world.start, []
    for number in range(10):
        step = world.problem.step(state, 2 + number % 2)
        state = step.state
        seen.append(state.observation.tobytes())
    assert seen == walked(env, 10)
