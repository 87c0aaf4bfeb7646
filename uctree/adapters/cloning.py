"""How the state of a Gymnasium environment is taken and put back, and the check that it works."""

from __future__ import annotations

import collections
import copy
import random
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

NUM_WALKS, NUM_CHECKED = 3, 12  # walks, and steps of each, over which copies are compared
NUM_DICE = 64  # generators of an emulator, from which `seed` picks
_COPIED = (list, dict, set, bytearray, collections.deque, np.ndarray)
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


class Cloner:
    """Copies of an environment, each of which can be stepped on its own.

    `take(env)` returns something that stands for the state of `env`, `put(taken)` an environment in
    that state: another one each time, or always the same if `shares_env`. `reseed(env, seed)` gives
    an environment dice of its own.
    """

    def __init__(
        self, how: str, take: Callable[[Any], Any], put: Callable[[Any], Any],
        shares_env: bool = False, reseed: Callable[[Any, int], None] | None = None,
    ) -> None:  # fmt: skip
        self.how, self.take, self.put, self.shares_env = how, take, put, shares_env
        self.reseed = _reseed if reseed is None else reseed
        self.env: Any = None  # another environment that is used instead of the user's
        self.is_trusted = False  # whether copies need no check
        self.seconds = 0.0  # of one take and put
        self.is_random = False  # whether steps draw random numbers, as far as was seen

    def keep(self, env: Any) -> Any:
        """What stands for the state of an environment that `put` returned."""
        return self.take(env) if self.shares_env else env

    @contextmanager
    def borrowed(self, env: Any) -> Iterator[None]:
        """Leave `env` as it is now, whatever happens to it meanwhile."""
        if not self.shares_env:
            yield
            return
        kept, dice = self.take(env), _dice_of(env)
        try:
            yield
        finally:
            self.put(kept)
            _put_dice(env, dice)


Choose = Callable[[Any, random.Random], Any]  # a random action that an environment can take


def make_cloner(env: Any, clone: Callable[[Any], Any] | None, choose: Choose | None) -> Cloner:
    """The first way to copy an environment that stands the check; `choose` is None for no check.

    Without a check the environment counts as random, since nothing is known about it.
    """
    candidates = _candidates(env) if clone is None else [Cloner("clone=", clone, clone)]
    failures = []
    for cloner in candidates:
        try:
            if choose is None:
                cloner.is_random |= not cloner.is_trusted
            elif not cloner.is_trusted:
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
        "numbers from elsewhere than a generator that it holds, a copy cannot be checked: pass "
        "check=False"
    )


def _candidates(env: Any) -> list[Cloner]:
    base, found = env.unwrapped, []
    if _is_emulator(base):
        found.append(_by_emulator(env))
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

    def take(current: Any) -> Any:
        kept = [_kept(layer) for layer in layers_of(current)[:-1]]
        return getattr(current.unwrapped, get)(), kept

    def back(taken: Any) -> Any:
        state, kept = taken
        getattr(env.unwrapped, put)(state)
        for layer, attributes in zip(layers_of(env)[:-1], kept, strict=True):
            for name, value in attributes.items():
                layer.__dict__[name] = copy.copy(value) if isinstance(value, _COPIED) else value
        return env

    return Cloner(f"{get} and {put}", take, back, shares_env=True)


def _kept(wrapper: Any) -> dict[str, Any]:
    """The attributes of a wrapper that steps may change."""
    return {
        name: copy.copy(value) if isinstance(value, _COPIED) else value
        for name, value in wrapper.__dict__.items()
        if name != "env"
    }


# --- dice ----------------------------------------------------------------------------------------


def _generators_of(env: Any) -> list[tuple[dict[str, Any], str]]:
    """Where the generators of an environment and its wrappers are: attributes, and a name."""
    assert env.unwrapped.np_random is not None, "makes it, if it is not there yet"
    return [
        (layer.__dict__, name)
        for layer in reversed(layers_of(env))
        for name, value in layer.__dict__.items()
        if isinstance(value, _GENERATORS)
    ]


def _reseed(env: Any, seed: int) -> None:
    """Give an environment and its wrappers generators of their own.

    They are new ones: a shallow copy has those of its original.
    """
    for number, (attributes, name) in enumerate(_generators_of(env)):
        own = (seed + number) & 0xFFFFFFFF
        if isinstance(attributes[name], np.random.Generator):
            attributes[name] = np.random.default_rng(own)
        elif isinstance(attributes[name], random.Random):
            attributes[name] = random.Random(own)
        else:
            attributes[name] = np.random.RandomState(own)


def _dice_of(env: Any) -> list[Any]:
    """The generators of an environment, and the states in which they are."""
    found = []
    for attributes, name in _generators_of(env):
        generator = attributes[name]
        found.append((attributes, name, generator, _state_of(generator)))
    return found


def _put_dice(env: Any, dice: list[Any]) -> None:
    for attributes, name, generator, state in dice:
        attributes[name] = generator
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        elif isinstance(generator, random.Random):
            generator.setstate(state)
        else:
            generator.set_state(state)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def _drawn(env: Any) -> str:
    """A text that changes if an environment draws random numbers."""
    places = _generators_of(env)
    return str([_state_of(attributes[name]) for attributes, name in places])


# --- emulators -----------------------------------------------------------------------------------


def _is_emulator(base: Any) -> bool:
    """Whether an environment is ALE, which holds its generator where Python cannot reach it."""
    return all(hasattr(base, name) for name in ("ale", "seed_game", "clone_state", "restore_state"))


class _Emulator:
    """A second emulator of ALE, with generators that are its own.

    States of ALE leave out the generator, which only the emulator can reach, and the last action,
    which a sticky one repeats. So the user's emulator could not be put back as it was, and is only
    read. Here generators come from states that hold one, and the last action is taken again before
    a step.
    """

    def __init__(self, env: Any) -> None:
        self.twin = copy.deepcopy(env)
        self.base = self.twin.unwrapped
        self._dice = _emulator_dice(self.base)
        self._last: Any = 0  # the action before; unknown at the start
        self._by_state = _by_state(self.twin, "clone_state", "restore_state")
        self._step = self.base.step
        self.base.step = self.step

    def step(self, action: Any) -> Any:
        self._last = action
        return self._step(action)

    def take(self, current: Any) -> Any:
        return self._by_state.take(current), self._last if current is self.twin else 0

    def put(self, taken: Any) -> Any:
        state, self._last = taken
        return self._by_state.put(state)

    def reseed(self, current: Any, seed: int) -> None:
        _reseed(current, seed)
        here = self.base.clone_state()
        self.base.restore_state(self._dice[seed % NUM_DICE])
        self._step(self._last)  # for several frames, one of which takes the action
        self.base.restore_state(here)


_emulators: weakref.WeakKeyDictionary[Any, _Emulator] = weakref.WeakKeyDictionary()


def _by_emulator(env: Any) -> Cloner:
    """States of ALE are put into a second emulator, which plans."""
    if env not in _emulators:
        _emulators[env] = _Emulator(env)
    second = _emulators[env]
    cloner = Cloner("clone_state and restore_state", second.take, second.put, shares_env=True,
                    reseed=second.reseed)  # fmt: skip
    cloner.env, cloner.is_trusted = second.twin, True
    sticks = second.base.ale.getFloat("repeat_action_probability") > 0
    cloner.is_random = sticks or not isinstance(getattr(second.base, "_frameskip", 1), int)
    return cloner


def _emulator_dice(base: Any) -> list[Any]:
    """States for the generators in them, one after another in their stream."""
    base.reset(seed=NUM_DICE)
    dice = []
    for _ in range(NUM_DICE):
        for _ in range(NUM_CHECKED):
            base.ale.act(0)
        dice.append(base.clone_state(include_rng=True))
    return dice


# --- the check -----------------------------------------------------------------------------------


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
        cloner.reseed(env, number)
        before = _drawn(env)
        seen.append(copy.deepcopy(env.step(action)))
        cloner.is_random |= _drawn(env) != before
        if seen[-1][2]:
            break
    return seen


def _compare_copies(cloner: Cloner, taken: Any, choose: Choose, seed: int) -> None:
    """Step a copy, then its original by the same action; what they share shows up there."""
    env, rng = cloner.put(taken), random.Random(seed)
    for number in range(NUM_CHECKED):
        action, here = choose(env, rng), cloner.take(env)
        twin = cloner.put(here)
        cloner.reseed(twin, number)
        expected = copy.deepcopy(twin.step(action))
        env = cloner.put(here) if cloner.shares_env else env
        cloner.reseed(env, number)
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


_PLAIN = (int, float, str, bytes, np.generic, type(None))


def alike(one: Any, other: Any) -> bool:
    """Whether two states that a cloner keeps are equal, as far as they are plain data."""
    if hasattr(one, "unwrapped"):
        pairs = zip(layers_of(one), layers_of(other), strict=True)
        return all(alike(a.__dict__, b.__dict__) for a, b in pairs)
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple, collections.deque)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return not isinstance(one, _PLAIN) or bool(one == other)


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
