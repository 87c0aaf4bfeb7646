"""Gymnasium in: an environment after reset() as a world."""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from uctree.adapters.cloning import Cloner, alike, layers_of, make_cloner, same_observation
from uctree.adapters.objects import library
from uctree.adapters.tables import from_table, has_table
from uctree.game import CHANCE
from uctree.planning.problem import Problem, Step
from uctree.planning.world import World

MOST_ACTIONS = 65536
NUM_SAMPLES = 8  # outcomes of an action, if the environment is random


class EnvState(NamedTuple):
    """A state of an environment: what stands for it, and what the last step returned."""

    taken: Any
    observation: Any
    seed: int  # from the actions that led here
    legal: Any = None  # the actions, if the environment said which ones are legal
    drawn: Any = None  # the outcomes of an action with their probabilities, if one is to be drawn


def from_gymnasium(
    env: Any,
    *,
    clone: Callable[[Any], Any] | None = None,
    legal: Callable[[Any], Any] | None = None,
    reseed: bool = True,
    num_samples: int | None = None,
    num_playouts: int = 1,
    horizon: int = 100,
    discount: float = 1.0,
    truncation: str = "ignore",
    check: bool = True,
    seed: int = 0,
    **options: Any,
) -> World:
    """The world of a Gymnasium environment after `reset()`, which stays as it is.

    The note of the world says how states are copied, and what a copy costs.

    Args:
        clone: `clone(env)` returns a copy that can be stepped on its own. Without it, the first of
            these that stands a check: `get_state` and `set_state`, `clone_state` and
            `restore_state`, a shallow copy of the environment and its wrappers, `copy.deepcopy`.
        legal: `legal(env)` lists the legal actions. Without it all, or those of `action_masks()`,
            or of the `action_mask` in the `info` of the last step.
        reseed: copies draw other random numbers than the environment will. If not, the plan knows
            the dice before they fall.
        num_samples: how many outcomes of an action are drawn, if the environment is random; each
            has the same probability, and equal ones count as one.
        num_playouts: how many playouts the value of a state is the mean of.
        horizon: the most steps of a playout.
        truncation: "ignore" it, since it is not a part of the world, or let it "end" the episode.
        check: whether copies are compared with their originals over a few steps.
        seed: of the outcomes that are drawn.
        options: more arguments of `Problem`, such as `value`, a function of an `EnvState`.
    """
    _check_env(env)
    if truncation not in ("ignore", "end"):
        raise ValueError(f'truncation is "ignore" or "end"; got {truncation!r}')
    own = clone is not None or legal is not None or num_samples is not None or not reseed
    if has_table(env) and not own and truncation == "ignore":
        return from_table(env, horizon, discount, options)
    actions = _Actions(env.action_space, legal)
    cloner = make_cloner(env, clone, actions.choose if check else None)
    if num_samples is None:
        num_samples = NUM_SAMPLES if cloner.is_random and reseed else 1
    walker = _Walker(
        env, cloner, actions, reseed, num_samples, num_playouts, horizon, discount,
        truncation == "end",
    )  # fmt: skip
    functions: dict[str, Any] = {"step": walker.step}
    if num_samples > 1:
        functions = {"step": walker.draw, "chance": _outcomes}
    if actions.all is None:
        functions["propose"] = actions.propose
    else:
        functions["actions"] = actions.of
    if not any(options.get(name) for name in ("value", "values", "playout")):
        functions["playout"] = walker.playout
    spec = getattr(env, "spec", None)
    functions |= {"discount": discount, "horizon": horizon, "show": lambda s: str(s.observation),
                  "name": type(env.unwrapped).__name__ if spec is None else spec.id}  # fmt: skip
    note = f"states are copied by {cloner.how}, {1e6 * cloner.seconds:.1f} µs each"
    if cloner.is_random:
        what = "it is random" if check else "it was not checked and may be random"
        note += f"; {what}: {num_samples} outcomes of each action are drawn"
    return World(Problem(**(functions | options)), walker.start(env, seed), note=note)


def _outcomes(state: EnvState) -> list[tuple[int, float]]:
    return [(number, probability) for number, (_, probability) in enumerate(state.drawn)]


def _check_env(env: Any) -> None:
    library("gymnasium", "gym")
    import gymnasium

    if isinstance(env, gymnasium.vector.VectorEnv):
        raise TypeError(
            f"{type(env).__name__} is many environments in one, which step together: plan in one "
            "environment at a time, as gymnasium.make returns it"
        )
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"from_gymnasium takes a gymnasium.Env; got {type(env).__name__}")
    if not all(getattr(layer, "has_reset", True) for layer in layers_of(env)):
        raise ValueError("call env.reset() first: a plan begins in the state of the environment")
    _actions_of(env.action_space)


def _actions_of(space: Any) -> list[Any] | None:
    """All actions of a space; None if they are vectors of a bounded box."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return [int(space.start) + number for number in range(int(space.n))]
    if isinstance(space, spaces.MultiBinary):
        sizes = [2] * int(np.prod(space.shape))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = [int(n) for n in np.ravel(space.nvec)]
    elif isinstance(space, spaces.Box) and space.is_bounded():
        return None
    else:
        raise ValueError(
            f"the actions of {space} cannot be listed; expected Discrete, MultiDiscrete, "
            "MultiBinary or a bounded Box: wrap the environment in an ActionWrapper"
        )
    if math.prod(sizes) > MOST_ACTIONS:
        raise ValueError(
            f"{space} has {math.prod(sizes)} actions, and the most is {MOST_ACTIONS}: wrap the "
            "environment in an ActionWrapper with fewer"
        )
    first = np.ravel(getattr(space, "start", np.zeros(len(sizes), int)))
    return [
        tuple(int(low + n) for low, n in zip(first, each, strict=True))
        for each in itertools.product(*map(range, sizes))
    ]


class _Actions:
    """The actions of an environment, as the plan and as the environment take them."""

    def __init__(self, space: Any, legal: Callable[[Any], Any] | None) -> None:
        self.space, self.legal, self.all = space, legal, _actions_of(space)

    def of(self, state: EnvState) -> Any:
        return self.all if state.legal is None else state.legal

    def listed(self, env: Any, info: dict[str, Any]) -> Any:
        """The legal actions if the environment says which ones; else None."""
        if self.legal is not None:
            return list(self.legal(env))
        mask = info.get("action_mask")
        if mask is None and hasattr(env.unwrapped, "action_masks"):
            mask = env.unwrapped.action_masks()
        if mask is None or self.all is None:
            return None
        return [action for action, fits in zip(self.all, mask, strict=True) if fits]

    def choose(self, env: Any, rng: random.Random) -> Any:
        """A random legal action, as the environment takes it."""
        return self.as_given(self.random(self.listed(env, {}), rng))

    def propose(self, state: EnvState, tried: tuple[Any, ...], k: int) -> list[Any]:
        """Random vectors of the box."""
        rng = random.Random(hash((state.seed, len(tried))))
        return [self.random(None, rng) for _ in range(k)]

    def random(self, legal: Any, rng: random.Random) -> Any:
        if self.all is not None:
            return rng.choice(self.all if legal is None else legal)
        pairs = zip(self.space.low.flat, self.space.high.flat, strict=True)
        return tuple(rng.uniform(float(low), float(high)) for low, high in pairs)

    def as_given(self, action: Any) -> Any:
        if not isinstance(action, tuple):
            return action
        return np.array(action, self.space.dtype).reshape(self.space.shape)


class _Walker:
    """Steps and playouts of an environment, from states that are put back."""

    def __init__(
        self, env: Any, cloner: Cloner, actions: _Actions, reseeds: bool, num_samples: int,
        num_playouts: int, horizon: int, discount: float, ends_truncated: bool,
    ) -> None:  # fmt: skip
        self.env, self.cloner, self.actions = cloner.env or env, cloner, actions
        self.reseeds, self.num_samples, self.num_playouts = reseeds, num_samples, num_playouts
        self.horizon, self.discount, self.ends_truncated = horizon, discount, ends_truncated
        self._lock = threading.Lock()  # one environment may serve all states

    def start(self, env: Any, seed: int) -> EnvState:
        """The state of an environment; copies of it have a generator of their own."""
        with self.cloner.borrowed(self.env):
            env = self.cloner.put(self.cloner.take(env))
            if self.reseeds:
                self.cloner.reseed(env, seed)
            return EnvState(self.cloner.keep(env), None, seed, self.actions.listed(env, {}))

    def draw(self, state: EnvState, action: Any) -> Step:
        """A step in two: the action, then which of its outcomes, unless it has only one."""
        if state.drawn is not None:
            after: Step = state.drawn[action][0]
            return after
        drawn: list[tuple[Step, float]] = []
        for number in range(self.num_samples):
            step = self.step(state._replace(seed=hash((state.seed, number))), action)
            place = next((i for i, (each, _) in enumerate(drawn) if _equal(each, step)), None)
            share = 1.0 / self.num_samples
            if place is None:
                drawn.append((step, share))
            else:
                drawn[place] = drawn[place][0], drawn[place][1] + share
        if len(drawn) == 1:
            return drawn[0][0]
        return Step(state._replace(drawn=tuple(drawn)), to_play=CHANCE)

    def step(self, state: EnvState, action: Any) -> Step:
        seed = hash((state.seed, action))
        with self._lock, self.cloner.borrowed(self.env):
            env = self.cloner.put(state.taken)
            if self.reseeds and self.cloner.is_random:
                self.cloner.reseed(env, seed)
            observation, reward, over, truncated, info = env.step(self.actions.as_given(action))
            legal = None if over else self.actions.listed(env, info)
            after = EnvState(self.cloner.keep(env), observation, seed, legal)
        over = bool(over) or (self.ends_truncated and bool(truncated))
        return Step(after, float(reward), over=over)

    def playout(self, state: EnvState, rng: random.Random) -> float:
        """The mean return of random playouts."""
        with self._lock, self.cloner.borrowed(self.env):
            returns = [self._played_out(state, rng) for _ in range(self.num_playouts)]
        return sum(returns) / len(returns)

    def _played_out(self, state: EnvState, rng: random.Random) -> float:
        total, factor = 0.0, 1.0
        env = self.cloner.put(state.taken)
        if self.reseeds and self.cloner.is_random:
            self.cloner.reseed(env, rng.getrandbits(32))
        legal = state.legal
        for _ in range(self.horizon):
            action = self.actions.random(legal, rng)
            _, reward, over, truncated, info = env.step(self.actions.as_given(action))
            total += factor * float(reward)
            factor *= self.discount
            if over or (self.ends_truncated and truncated):
                break
            legal = self.actions.listed(env, info)
        return total


def _equal(one: Step, other: Step) -> bool:
    """Whether two steps led to the same, as far as it can be seen."""
    a, b = one.state, other.state
    return (
        (one.reward, one.over, a.legal) == (other.reward, other.over, b.legal)
        and same_observation(a.observation, b.observation)
        and alike(a.taken, b.taken)
    )
