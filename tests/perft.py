"""Compiled ways through a game: every action sequence of a length, and random episodes.

The rules are bound as a search binds them, so that what is tested here is what is searched there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.engine.bindings import bound_rule
from uctree.engine.compile import compile_kernel
from uctree.game import CHANCE, OVER, Game, make_rng, random_below, random_unit
from uctree.kernels.binding import UNBOUND

legal = step = chance = observe = start = playout = UNBOUND
HAS_CHANCE = HAS_START = HAS_PLAYOUT = UNBOUND

PERFT, EPISODE, PLAYOUT = 0, 1, 2

MAX_DEPTH = 20


@dataclass(frozen=True)
class Recorded:
    """An episode as compiled rules played it; one entry per ply, and the state at the end."""

    players: list[int]
    choices: list[list[int]]  # legal actions, or outcomes
    probabilities: list[list[float]]  # of outcomes; empty where a player chose
    actions: list[int]
    rewards: np.ndarray  # [num_plies, num_players]
    planes: np.ndarray  # [num_players, *observation_shape], at the end
    state: np.void


class CompiledGame:
    """A game whose rules are compiled, without a search."""

    def __init__(self, game: Game) -> None:
        self.game = game
        max_plies = 5000 if game.max_plies is None else min(5000, game.max_plies + 1)
        largest = max(game.num_actions, game.max_outcomes)
        names = ("legal", "step", "chance", "observe", "start", "playout")
        bound: dict[str, Any] = {name: bound_rule(game, name) for name in names}
        for name in ("chance", "start", "playout"):
            bound[f"HAS_{name.upper()}"] = getattr(game.rules, name) is not None
        # One more than the longest sequence of `perft` needs; the last one stays all zeros.
        self.states = np.zeros(MAX_DEPTH + 2, game.dtype)
        self.levels = np.zeros((2, MAX_DEPTH + 1), np.int64)  # choices tried and choices there are
        self.lists = np.zeros((MAX_DEPTH, largest), np.int32)
        self.probabilities = np.zeros(largest)
        self.reward = np.zeros(game.num_players)
        self.log = (
            np.zeros(max_plies, np.int32),  # players
            np.zeros(max_plies, np.int32),  # counts
            np.zeros(max_plies, np.int32),  # actions
            np.zeros((max_plies, game.num_players)),  # rewards
            np.zeros((max_plies, largest), np.int32),  # lists
            np.zeros((max_plies, largest)),  # probabilities
        )
        self.planes = np.zeros((game.num_players, *(game.observation_shape or ())), np.float32)
        kernel = compile_kernel(
            run, bound, (0, *self._arguments(0, 0)), label=f"{game.name}: perft and episodes"
        )
        self._call = kernel.call

    def perft(self, depth: int, state: Any = None) -> int:
        """The number of action sequences of length `depth`, chance outcomes included.

        Args:
            state: where they begin; the start of the game by default.
        """
        return int(self._call(PERFT, *self._arguments(depth, 0, state)))

    def episode(self, seed: int, state: Any = None) -> Recorded:
        """A random episode: actions drawn uniformly, outcomes by their probabilities."""
        self.planes[:] = 0.0
        num_plies = int(self._call(EPISODE, *self._arguments(0, seed, state)))
        assert num_plies < len(self.log[0]), "an episode is longer than there is room for"
        players, counts, actions, rewards, lists, probabilities = (
            array[:num_plies] for array in self.log
        )
        weights = [
            row[:count].tolist() if player == CHANCE else []
            for row, count, player in zip(probabilities, counts, players, strict=True)
        ]
        choices = [row[:count].tolist() for row, count in zip(lists, counts, strict=True)]
        return Recorded(
            players.tolist(), choices, weights, actions.tolist(), rewards.copy(),
            self.planes.copy(), self.states[0].copy(),
        )  # fmt: skip

    def playout(self, seed: int, state: Any = None) -> np.ndarray:
        """The returns of the game's own playout."""
        self._call(PLAYOUT, *self._arguments(0, seed, state))
        return self.reward.copy()

    def _arguments(self, depth: int, seed: int, state: Any = None) -> tuple[Any, ...]:
        work = (self.states, self.levels, self.lists, self.probabilities, self.reward)
        if state is not None:
            self.states[0] = state
        rest = (make_rng(seed), depth, state is None, self.game.data)
        return (*work, self.log, self.planes, *rest)


def run(
    what: int, states: Any, levels: Any, lists: Any, probabilities: Any, reward: Any, log: Any,
    planes: Any, rng: Any, depth: int, from_start: bool, data: Any,
) -> int:  # fmt: skip
    """One kernel for all, because most of the time of a test goes into compiling."""
    if from_start:
        states[0] = states[-1]
        if HAS_START:
            start(states[0], data)
    if what == PERFT:
        return count_sequences(states, levels, lists, probabilities, reward, depth, data)
    if HAS_PLAYOUT and what == PLAYOUT:
        return play_to_end(states[0], reward, rng, data)
    return play_episode(states[0], log, planes, reward, rng, data)


def list_choices(state: Any, actions: Any, probabilities: Any, data: Any) -> int:
    """Write the legal actions or outcomes of a state; how many, 0 where it is over."""
    if state.to_play == OVER:
        return np.int64(0)
    if HAS_CHANCE and state.to_play == CHANCE:
        return np.int64(chance(state, actions, probabilities, data))
    return np.int64(legal(state, actions, data))


def count_sequences(
    states: Any, levels: Any, lists: Any, probabilities: Any, reward: Any, depth: int, data: Any
) -> int:
    total = 0
    tried, counts = levels[0], levels[1]
    tried[0] = 0
    counts[0] = list_choices(states[0], lists[0], probabilities, data)
    level = 0
    while level >= 0:
        if level == depth or tried[level] == counts[level]:
            total += level == depth
            level -= 1
            continue
        action = np.int64(lists[level, tried[level]])
        tried[level] += 1
        states[level + 1] = states[level]
        step(states[level + 1], action, reward, data)
        level += 1
        tried[level] = 0
        if level < depth:
            counts[level] = list_choices(states[level], lists[level], probabilities, data)
    return total


def play_episode(state: Any, log: Any, planes: Any, reward: Any, rng: Any, data: Any) -> int:
    players, counts, actions, rewards, lists, probabilities = log
    for ply in range(len(players)):
        if state.to_play == OVER:
            for player in range(len(reward)):
                observe(state, player, planes[player], data)
            return ply
        for player in range(len(reward)):
            reward[player] = 0.0
        players[ply] = state.to_play
        counts[ply] = list_choices(state, lists[ply], probabilities[ply], data)
        if state.to_play == CHANCE:
            drawn = draw(probabilities[ply], counts[ply], rng)
        else:
            drawn = random_below(rng, counts[ply])
        actions[ply] = lists[ply, drawn]
        step(state, np.int64(actions[ply]), reward, data)
        for player in range(len(reward)):
            rewards[ply, player] = reward[player]
    return len(players)


def draw(probabilities: Any, count: int, rng: Any) -> int:
    rest = random_unit(rng)
    for i in range(count - 1):
        rest -= probabilities[i]
        if rest < 0.0:
            return i
    return count - 1


def play_to_end(state: Any, reward: Any, rng: Any, data: Any) -> int:
    """What the game's own playout pays, in `reward`."""
    for player in range(len(reward)):
        reward[player] = 0.0
    playout(state, rng, reward, data)
    return 0
