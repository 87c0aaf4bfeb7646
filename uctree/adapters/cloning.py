"""How the state of a Gymnasium environment is taken and put back, and the check that it works."""

from __future__ import annotations

import collections
import copy
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

NUM_WALKS, NUM_CHECKED = 3, 12  # walks, and steps of each, over which copies are compared
_COPIED = (list, dict, set, bytearray, collections.deque, np.ndarray)


class Cloner:
    """Copies of an environment, each of which can be stepped on its own.

    `take(env)` returns something that stands for the state of `env`, `put(taken)` an environment in
    that state: another one each time, or always the same if `shares_env`.
    """

    def __init__(
        self, how: str, take: Callable[[Any], Any], put: Callable[[Any], Any],
        shares_env: bool = False,
    ) -> None:  # fmt: skip
        self.how, self.take, self.put, self.shares_env = how, take, put, shares_env
        self.seconds = 0.0  # of one take and put
        self.is_random = False  # whether steps draw from the generator

    def keep(self, env: Any) -> Any:
        """What stands for the state of an environment that `put` returned."""
        return self.take(env) if self.shares_env else env

    @contextmanager
    def borrowed(self, env: Any) -> Iterator[None]:
        """Leave `env` as it is now, whatever happens to it meanwhile."""
        if not self.shares_env:
            yield
            return
        kept, generator = self.take(env), env.unwrapped.np_random
        try:
            yield
        finally:
            self.put(kept)
            env.unwrapped.np_random = generator


Choose = Callable[[Any, random.Random], Any]  # a random action that an environment can take


def make_cloner(env: Any, clone: Callable[[Any], Any] | None, choose: Choose | None) -> Cloner:
    """The first way to copy an environment that stands the check; `choose` is None for no check."""
    candidates = _candidates(env) if clone is None else [Cloner("clone=", clone, clone)]
    failures = []
    for cloner in candidates:
        try:
            if choose is not None:
                check_cloner(_spare(env, cloner), cloner, choose)
            cloner.seconds = _seconds(env, cloner)
        except Exception as error:
            failures.append(f"{cloner.how}: {type(error).__name__}: {error}")
            continue
        if cloner.how == "copy.deepcopy":
            warnings.warn(
                f"{_name(env)} is copied by copy.deepcopy, {1e6 * cloner.seconds:.0f} µs each time;"
                " a function clone=f that copies what a step changes is usually much faster",
                stacklevel=4,
            )
        return cloner
    raise ValueError(
        f"no way was found to copy {_name(env)} so that the copy does what the original does ("
        + "; ".join(failures)
        + "). Give clone=f, where f(env) returns such a copy. If the environment draws random "
        "numbers from elsewhere than env.np_random, a copy cannot be checked: check=False"
    )


def _candidates(env: Any) -> list[Cloner]:
    base, found = env.unwrapped, []
    for get, put in (("get_state", "set_state"), ("clone_state", "restore_state")):
        if callable(getattr(base, get, None)) and callable(getattr(base, put, None)):
            found.append(_by_state(env, get, put))
    found.append(Cloner("a shallow copy", shallow_copy, shallow_copy))
    found.append(Cloner("copy.deepcopy", copy.deepcopy, copy.deepcopy))
    return found


def layers_of(env: Any) -> list[Any]:
    """The wrappers of an environment from the outside in, and itself."""
    layers = [env]
    while layers[-1] is not env.unwrapped:
        layers.append(layers[-1].env)
    return layers


def shallow_copy(env: Any) -> Any:
    """A copy of each layer; containers and arrays that are attributes are copied, too."""
    below = None
    for layer in reversed(layers_of(env)):
        twin = object.__new__(type(layer))
        attributes = twin.__dict__
        attributes.update(layer.__dict__)
        for name, value in layer.__dict__.items():
            if isinstance(value, _COPIED):
                attributes[name] = copy.copy(value)
        if below is not None:
            attributes["env"] = below
        below = twin
    return below


def _by_state(env: Any, get: str, put: str) -> Cloner:
    """States are taken from and put back into the environment itself, those of wrappers as well."""
    base, wrappers = env.unwrapped, layers_of(env)[:-1]

    def take(current: Any) -> Any:
        kept = [
            {name: copy.copy(value) if isinstance(value, _COPIED) else value
             for name, value in layer.__dict__.items()}
            for layer in wrappers
        ]  # fmt: skip
        return getattr(base, get)(), kept

    def back(taken: Any) -> Any:
        state, kept = taken
        getattr(base, put)(state)
        for layer, attributes in zip(wrappers, kept, strict=True):
            for name, value in attributes.items():
                layer.__dict__[name] = copy.copy(value) if isinstance(value, _COPIED) else value
        return env

    return Cloner(f"{get} and {put}", take, back, shares_env=True)


def reseed(env: Any, seed: int) -> None:
    """Give an environment a generator of its own."""
    env.unwrapped.np_random = np.random.default_rng(seed & 0xFFFFFFFF)


def _spare(env: Any, cloner: Cloner) -> Any:
    """An environment to check copies of, since a copy that shares its state spoils its original."""
    if cloner.shares_env:
        return env  # and is put back
    try:
        return copy.deepcopy(env)
    except Exception:
        if cloner.how != "clone=":
            raise
        return env


def check_cloner(env: Any, cloner: Cloner, choose: Choose) -> None:
    """Raise ValueError if copies do not behave as their originals."""
    with cloner.borrowed(env):
        first = cloner.take(env)
        for seed in range(NUM_WALKS):
            # Copies of `env` anew: if the walk before moved it, the second walk shows it.
            again = (first if cloner.shares_env else cloner.take(env) for _ in range(2))
            walks = [_walk(cloner, taken, choose, seed) for taken in again]
            if len(walks[0]) != len(walks[1]) or not all(map(_equal, *walks)):
                raise ValueError("two copies differ after the same actions, or share their state")
            _compare_copies(cloner, first, choose, seed)


def _walk(cloner: Cloner, taken: Any, choose: Choose, seed: int) -> list[Any]:
    """What random steps from a state return."""
    env, rng, seen = cloner.put(taken), random.Random(seed), []
    for number in range(NUM_CHECKED):
        action = choose(env, rng)
        reseed(env, number)
        before = env.unwrapped.np_random.bit_generator.state
        seen.append(copy.deepcopy(env.step(action)))
        cloner.is_random |= env.unwrapped.np_random.bit_generator.state != before
        if seen[-1][2]:
            break
    return seen


def _compare_copies(cloner: Cloner, taken: Any, choose: Choose, seed: int) -> None:
    """Step a copy, then its original by the same action; what they share shows up there."""
    env, rng = cloner.put(taken), random.Random(seed)
    for number in range(NUM_CHECKED):
        action, here = choose(env, rng), cloner.take(env)
        twin = cloner.put(here)
        reseed(twin, number)
        expected = copy.deepcopy(twin.step(action))
        env = cloner.put(here) if cloner.shares_env else env
        reseed(env, number)
        if not _equal(env.step(action), expected):
            raise ValueError("a copy differs from its original after the same action")
        if expected[2]:
            break


def _equal(one: Any, other: Any) -> bool:
    """Whether two steps returned the same observation, reward and flags."""
    same = [float(a) == float(b) for a, b in zip(one[1:4], other[1:4], strict=True)]
    return all(same) and same_observation(one[0], other[0])


def same_observation(one: Any, other: Any) -> bool:
    """Whether two observations are equal, down to the arrays in them."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_observation(one[k], other[k]) for k in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same_observation, one, other))
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))


def _seconds(env: Any, cloner: Cloner) -> float:
    """The seconds of one copy; the median of five."""
    taken, seconds = cloner.take(env), []
    for _ in range(5):
        began = time.perf_counter()
        cloner.put(taken)
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[2]


def _name(env: Any) -> str:
    return env.spec.id if getattr(env, "spec", None) is not None else type(env.unwrapped).__name__
