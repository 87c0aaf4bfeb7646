"""PettingZoo in: an environment whose agents take turns, after reset(), as a world."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.adapters.cloning import same_observation
from uctree.adapters.objects import HORIZON, cloning_problem, library
from uctree.game import OVER
from uctree.planning.world import World

NUM_WALKS, NUM_CHECKED = 3, 12  # walks, and steps of each, over which copies are compared
_UNCHANGED = ("observation_spaces", "action_spaces", "metadata", "possible_agents")  # by steps
# Their states have hidden parts, which a search would see; in rps and the like agents act at once.
HIDDEN = ("hanabi", "leduc_holdem", "texas_holdem", "gin_rummy", "rps")


def from_pettingzoo(
    env: Any,
    *,
    clone: Callable[[Any], Any] | None = None,
    check: bool = True,
    horizon: int = HORIZON,
    **options: Any,
) -> World:
    """The world of a `pettingzoo.AECEnv` after `reset()`, which stays as it is.

    Player n is `env.possible_agents[n]`. Legal actions come from the `action_mask` of the
    observation or the info; without one, all are.

    Args:
        clone: `clone(env)` returns a copy that can be stepped on its own; without it all attributes
            of the environment and its wrappers are copied, but for spaces.
        check: whether copies are compared with each other over a few steps.
        horizon: the most steps of a playout.
        options: more arguments of `Problem`, such as `value`, a function of a copy of `env`.
    """
    _check_env(env)
    clone = _deep_copy if clone is None else clone
    if check:
        _check_copies(env, clone)
    options = {"name": str(env.metadata.get("name", type(env).__name__))} | options
    problem = cloning_problem(
        actions=_legal, change=_step, clone=clone, over=_is_over, to_play=_to_play,
        num_players=len(env.possible_agents), horizon=horizon, **options,
    )  # fmt: skip
    return World(problem, clone(env), _to_play(env))


def _deep_copy(env: Any) -> Any:
    """A copy of an environment and its wrappers.

    `copy.deepcopy` would make the classic ones of PettingZoo anew from their arguments (EzPickle).
    """
    if hasattr(type(env), "__deepcopy__"):
        return copy.deepcopy(env)
    twin = object.__new__(type(env))
    for name, value in vars(env).items():
        if hasattr(value, "agent_iter"):  # the environment that a wrapper is around
            value = _deep_copy(value)
        elif name not in _UNCHANGED:
            value = copy.deepcopy(value)
        twin.__dict__[name] = value
    return twin


def _check_env(env: Any) -> None:
    library("pettingzoo", "pettingzoo")
    import pettingzoo

    name = type(env).__name__
    # An environment that parallel_to_aec made unwraps to the parallel one.
    if any(isinstance(each, pettingzoo.ParallelEnv) for each in (env, _unwrapped(env))):
        raise TypeError(
            f"in {name} all agents act at the same time, and a tree would show the second what the "
            "first did: plan in environments whose agents take turns (AECEnv)"
        )
    if not isinstance(env, pettingzoo.AECEnv):
        raise TypeError(f"from_pettingzoo takes a pettingzoo.AECEnv; got {name}")
    title = str(getattr(env, "metadata", {}).get("name", ""))
    if title.startswith(HIDDEN):
        raise ValueError(
            f"{title} cannot be searched: it has hidden information, which a search of its states "
            "would see"
        )
    if not getattr(env, "agents", None):
        raise ValueError("call env.reset() first: a plan begins in the state of the environment")


def _unwrapped(env: Any) -> Any:
    return getattr(env, "unwrapped", env)


def _to_play(env: Any) -> int:
    return int(env.possible_agents.index(env.agent_selection)) if env.agents else OVER


def _legal(env: Any) -> list[int]:
    agent = env.agent_selection
    observation = env.observe(agent)
    mask = observation.get("action_mask") if isinstance(observation, dict) else None
    if mask is None:
        mask = env.infos.get(agent, {}).get("action_mask")
    space = env.action_space(agent)
    if not hasattr(space, "n"):
        raise ValueError(f"the actions of {space} cannot be listed; expected a Discrete space")
    first = int(getattr(space, "start", 0))
    if mask is None:
        return list(range(first, first + int(space.n)))
    return [first + int(place) for place in np.flatnonzero(mask)]


def _step(env: Any, action: int) -> list[float]:
    """Make a step; the rewards of all agents."""
    env.step(action)
    rewards = [float(env.rewards.get(agent, 0.0)) for agent in env.possible_agents]
    # Agents that are done step once more, with None, and leave.
    while env.agents and _is_done(env, env.agent_selection):
        env.step(None)
    return rewards


def _is_over(env: Any) -> bool:
    return not env.agents


def _is_done(env: Any, agent: str) -> bool:
    return bool(env.terminations[agent] or env.truncations[agent])


def _check_copies(env: Any, clone: Callable[[Any], Any]) -> None:
    """Raise ValueError if copies differ, share their state, or draw random numbers in a step."""
    try:
        env = _deep_copy(env)  # since a copy that shares its state spoils its original
    except Exception:
        if clone is _deep_copy:
            raise
    for seed in range(NUM_WALKS):
        one, other = (_walk(clone(env), seed) for _ in range(2))
        if not same_observation(one, other):
            raise ValueError(
                "two copies of the environment differ after the same actions, or share their "
                "state: give clone=f, where f(env) returns a copy that can be stepped on its own"
            )


def _walk(env: Any, seed: int) -> list[Any]:
    """What is seen in random steps."""
    rng, seen = random.Random(seed), []
    generators = _generators(env)
    before = [_drawn(generator) for generator in generators]
    for _ in range(NUM_CHECKED):
        if _to_play(env) == OVER:
            break
        seen.append([env.observe(env.agent_selection), _step(env, rng.choice(_legal(env)))])
    if before != [_drawn(generator) for generator in generators]:
        raise ValueError(
            "the environment draws its chance inside a step, without saying the probabilities, and "
            "a copy would see the dice: make clone=f reseed the copy and pass check=False"
        )
    return seen


def _generators(env: Any) -> list[Any]:
    """The generators that an environment holds, one or two levels below it."""
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    found = list(getattr(env.unwrapped, "__dict__", {}).values())
    for value in list(found):
        found += getattr(value, "__dict__", {}).values()
    return [value for value in found if isinstance(value, kinds)]


def _drawn(generator: Any) -> str:
    if isinstance(generator, np.random.Generator):
        return str(generator.bit_generator.state)
    is_numpy = isinstance(generator, np.random.RandomState)
    return str(generator.get_state() if is_numpy else generator.getstate())
