"""Environments without rules as sources of episodes, for learned models.

An environment is described by a game that only says what is observed: its record is the newest
observation, and its `step` refuses. Episodes come from the environment itself.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from uctree import specs
from uctree.engine.stepping import with_machine_code
from uctree.errors import BrokenGame, UctreeError
from uctree.game import OVER, Game
from uctree.learn.extras import load_module

PREFIX = "gymnasium:"
DISCOUNT = 0.997  # of environments, whose episodes may be long


# --- descriptions --------------------------------------------------------------------------------


def is_environment(text: Any) -> bool:
    """Whether a text names an environment.

    >>> is_environment("gymnasium:CartPole-v1"), is_environment("connect_four")
    (True, False)
    """
    return isinstance(text, str) and text.startswith(PREFIX)


def environment(text: str) -> Game:
    """The game that describes an environment, as `gymnasium:CartPole-v1` or `gymnasium:ID,a=1`.

    `discount=` is that of the game; all other arguments are those of `gymnasium.make`.
    """
    if not is_environment(text):
        raise UctreeError(
            f"an environment is written as {PREFIX}ID, such as {PREFIX}CartPole-v1; got {text!r}"
        )
    return _environment(text)


@lru_cache(maxsize=16)
def _environment(text: str) -> Game:
    name, keywords = _read(text)
    discount = float(keywords.pop("discount", DISCOUNT))
    world = _make(name, keywords)
    try:
        return _described(text, name, world, discount)
    finally:
        world.close()


def _read(text: str) -> tuple[str, dict[str, Any]]:
    """The id and the arguments of the text of an environment."""
    name, _, rest = text.removeprefix(PREFIX).partition(",")
    positional, keywords = specs.read_arguments(rest, {})
    if positional or not name:
        raise UctreeError(f"{text}: write arguments by name, as {PREFIX}ID,discount=0.99")
    return name, keywords


def _make(name: str, keywords: dict[str, Any]) -> Any:
    gymnasium = load_module("gymnasium")
    try:
        if "/" in name and name not in gymnasium.registry:
            _register(name.partition("/")[0])
        return gymnasium.make(name, **keywords)
    except Exception as error:  # packages of environments raise whatever they like
        raise UctreeError(
            f"gymnasium.make({name!r}) failed with {type(error).__name__}: {error}"
        ) from error


def _register(namespace: str) -> None:
    """Let the package of a namespace, as `MinAtar`, register its environments."""
    for entry in importlib.metadata.entry_points(group="gymnasium.envs", name=namespace):
        entry.load()()


def _described(text: str, name: str, world: Any, discount: float) -> Game:
    spaces = load_module("gymnasium").spaces
    if not isinstance(world.action_space, spaces.Discrete):
        raise UctreeError(
            f"{name} has the actions {world.action_space}; a learned model needs numbered ones, "
            "Discrete"
        )
    view = _view_of(name, world.observation_space)
    limit = None if world.spec is None else world.spec.max_episode_steps
    state = np.dtype([("observation", view.dtype, view.shape), ("to_play", np.int8)])
    return Game(
        state, _all_actions(int(world.action_space.n)), _no_step, name=name, num_players=1,
        num_actions=int(world.action_space.n), discount=discount, max_plies=limit,
        observe=_observers[len(view.shape)], observation_shape=view.shape, environment=text,
        show=_show,
    )  # fmt: skip


@dataclass(frozen=True)
class View:
    """How observations of an environment become the numbers of a record."""

    shape: tuple[int, ...]
    dtype: type
    convert: Callable[[Any], np.ndarray]


def _view_of(name: str, space: Any) -> View:
    """The view of an observation space: boxes, images, and numbers as one of several."""
    spaces = load_module("gymnasium").spaces
    if isinstance(space, spaces.Discrete):
        return _one_hot(int(space.n), int(space.start))
    if not isinstance(space, spaces.Box) or not 1 <= len(space.shape) <= 3:
        raise UctreeError(
            f"{name} has the observations {space}; a learned model takes a Box of one to three "
            "dimensions, or Discrete: wrap the environment"
        )
    shape = tuple(int(size) for size in space.shape)
    is_last = len(shape) == 3 and shape[2] <= min(shape[:2])  # [rows, cols, channels]
    order = (2, 0, 1) if is_last else tuple(range(len(shape)))
    turned = tuple(shape[axis] for axis in order)
    if space.dtype == np.uint8:
        return View(turned, np.uint8, lambda given: np.transpose(given, order))
    ends = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    low, high = (np.transpose(end, order) for end in ends)
    # Bounds that mean something scale a number to -1 ... 1; others leave it as it is.
    known = (np.abs(low) < 1e6) & (np.abs(high) < 1e6) & (high > low)
    low, high = np.where(known, low, -1.0), np.where(known, high, 1.0)
    middle, reach = (low + high) / 2, (high - low) / 2
    return View(
        turned, np.float32,
        lambda given: ((np.transpose(np.asarray(given, np.float64), order) - middle) / reach),
    )  # fmt: skip


def _one_hot(count: int, start: int) -> View:
    def convert(given: Any) -> np.ndarray:
        row = np.zeros(count)
        row[int(given) - start] = 1.0
        return row

    return View((count,), np.float32, convert)


# --- the rules of such a game --------------------------------------------------------------------


def _all_actions(count: int) -> Callable[..., int]:
    def legal(state: Any, actions: Any) -> int:
        for action in range(count):
            actions[action] = action
        return count

    return legal


def _no_step(state: Any, action: Any, reward: Any) -> None:
    raise BrokenGame("an environment has no rules: its episodes come from the environment itself")


def _observe_vector(state, player, planes):  # type: ignore[no-untyped-def]
    for i in range(planes.shape[0]):
        planes[i] = state.observation[i]


def _observe_matrix(state, player, planes):  # type: ignore[no-untyped-def]
    for i in range(planes.shape[0]):
        for j in range(planes.shape[1]):
            planes[i, j] = state.observation[i, j]


def _observe_planes(state, player, planes):  # type: ignore[no-untyped-def]
    for i in range(planes.shape[0]):
        for j in range(planes.shape[1]):
            for k in range(planes.shape[2]):
                planes[i, j, k] = state.observation[i, j, k]


_observers = {1: _observe_vector, 2: _observe_matrix, 3: _observe_planes}


def _show(state: Any) -> str:
    return np.array2string(np.asarray(state.observation), precision=3, threshold=32)


# --- episodes ------------------------------------------------------------------------------------


class EnvironmentWorld:
    """An environment that plays one episode after the other."""

    def __init__(self, game: Game) -> None:
        assert game.environment is not None
        name, keywords = _read(game.environment)
        keywords.pop("discount", None)
        self.game, self._world = game, _make(name, keywords)
        self._view = _view_of(name, self._world.observation_space)
        self.is_truncated = False

    def start(self, seed: int) -> np.record:
        """The first state of an episode."""
        self.is_truncated = False
        observation, _ = self._world.reset(seed=seed)
        return self._record(observation, is_over=False)

    def step(self, state: np.record, action: int) -> tuple[np.record, np.ndarray]:
        """The state after an action, and its reward; the environment's own state counts."""
        observation, reward, terminated, truncated, _ = self._world.step(action)
        self.is_truncated = bool(truncated) and not terminated
        if not math.isfinite(float(reward)):
            raise BrokenGame(f"{self.game.name} paid {reward}; rewards must be finite numbers")
        return self._record(observation, bool(terminated)), np.array([float(reward)])

    def _record(self, observation: Any, is_over: bool) -> np.record:
        state = self.game.start()
        converted = np.asarray(self._view.convert(observation))
        if not np.isfinite(converted).all():
            raise BrokenGame(f"{self.game.name} showed a number that is not finite")
        state["observation"] = converted
        state["to_play"] = OVER if is_over else 0
        return state

    def close(self) -> None:
        self._world.close()


class RulesWorld:
    """A game whose rules play the episodes."""

    is_truncated = False

    def __init__(self, game: Game) -> None:
        self.game = with_machine_code(game)

    def start(self, seed: int) -> np.record:
        return self.game.start()

    def step(self, state: np.record, action: int) -> tuple[np.record, np.ndarray]:
        return self.game.step(state, action)

    def close(self) -> None:
        pass


World = EnvironmentWorld | RulesWorld


class Worlds:
    """Worlds of a game, reused from episode to episode."""

    def __init__(self, game: Game) -> None:
        self.game, self._idle = game, list[World]()

    def take(self) -> World:
        if self._idle:
            return self._idle.pop()
        if self.game.environment is None:
            return RulesWorld(self.game)
        return EnvironmentWorld(self.game)

    def give_back(self, world: World) -> None:
        self._idle.append(world)

    def close(self) -> None:
        for world in self._idle:
            world.close()


@dataclass(frozen=True)
class Played:
    """An episode of an environment."""

    states: list[np.record]  # without the last one
    actions: list[int]
    rewards: list[np.ndarray]

    @property
    def total(self) -> float:
        """The sum of rewards, not discounted, as environments are compared."""
        return float(np.sum(self.rewards))


def play_environment(
    game: Game, choose: Callable[[list[np.record], list[int]], Sequence[int]],
    seeds: Sequence[int], on_end: Callable[[], None] = lambda: None,
) -> list[Played]:  # fmt: skip
    """Episodes with these seeds, all at the same time.

    `choose(states, seeds)` gives the actions in the states of all episodes that go on.
    """
    worlds = [EnvironmentWorld(game) for _ in seeds]
    found = [Played([], [], []) for _ in seeds]
    try:
        states = [world.start(seed) for world, seed in zip(worlds, seeds, strict=True)]
        going = list(range(len(seeds)))
        while going:
            at = [hash((seeds[i], len(found[i].actions))) % 2**62 for i in going]
            actions = choose([states[i] for i in going], at)
            still = []
            for i, action in zip(going, actions, strict=True):
                after, reward = worlds[i].step(states[i], int(action))
                found[i].states.append(states[i])
                found[i].actions.append(int(action))
                found[i].rewards.append(reward)
                states[i] = after
                if game.is_over(after) or worlds[i].is_truncated:
                    on_end()
                else:
                    still.append(i)
            going = still
    finally:
        for world in worlds:
            world.close()
    return found
