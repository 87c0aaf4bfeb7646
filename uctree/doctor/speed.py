"""The speed of each rule of a game, to find out why a search is slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from uctree import evaluators, specs
from uctree.engine.bindings import action_array, game_bindings
from uctree.engine.compile import compile_kernel
from uctree.errors import BrokenGame
from uctree.game import CHANCE, ENDLESS, OVER, Game, make_rng
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Play
from uctree.kernels.playouts import draw_chance, draw_legal
from uctree.kernels.rules import DIM, HAS_CHANCE, IS_CONTINUOUS, legal, play_on, random_action, step
from uctree.kernels.status import DONE

# Bound when a kernel is composed.
HAS_RANDOM_ACTION = draw_sample = UNBOUND

PLAYOUT, SAMPLE, LEGAL, RANDOM_ACTION, COPY, STEP = range(6)
NUM_SAMPLES = 4096


@dataclass(frozen=True)
class RuleSpeed:
    """The speed of a game's rules; nanoseconds per call, on states of random play."""

    playouts_per_second: float
    plies_per_playout: float
    legal_ns: float | None  # None if actions are vectors
    step_ns: float
    random_action_ns: float | None  # None if the game has no such function
    copy_ns: float  # of a state; a search copies one per simulation


def rule_speed(game: Game | str, *, seconds: float = 0.3, seed: int = 0) -> RuleSpeed:
    """The speed of the compiled rules of `game`, each measured for about `seconds`."""
    game = specs.as_game(game)
    bound = game_bindings(game, evaluators.playout())
    bound["HAS_RANDOM_ACTION"] = game.rules.random_action is not None
    bound["draw_sample"] = bound["draw_action"] if game.is_continuous else draw_legal
    states = np.zeros(2, game.dtype)
    states[0] = game.start()
    samples = np.zeros(NUM_SAMPLES, game.dtype)
    taken: np.ndarray = np.zeros(NUM_SAMPLES, np.int64)
    if game.is_continuous:
        taken = np.zeros((NUM_SAMPLES, game.dim))
    reward, returns = np.zeros((2, game.num_players))
    rng, probabilities = make_rng(seed), np.zeros(game.max_outcomes + 1024)
    play = Play(action_array(game), probabilities, reward, returns, rng, rng, game.data)
    bench = Bench(states, samples, taken, play, game.max_plies or ENDLESS)
    kernel = compile_kernel(time_rules, bound, (bench, 0, 1), label=f"{game.name}: rule speed")

    def run(operation: int, repeats: int) -> int:
        count = int(kernel.run(bench, operation, repeats))
        if count < 0:
            raise BrokenGame(f"the rules of {game.name} are wrong; print uctree.check(game)")
        return count

    plies = run(SAMPLE, NUM_SAMPLES)
    episodes = max(1, plies - NUM_SAMPLES)
    playout = _seconds_per_call(partial(run, PLAYOUT), seconds)
    nanoseconds = {
        operation: 1e9 * _seconds_per_call(partial(run, operation), seconds)
        for operation in (LEGAL, RANDOM_ACTION, COPY, STEP)
    }
    has_shortcut = game.rules.random_action is not None
    return RuleSpeed(
        playouts_per_second=1.0 / playout,
        plies_per_playout=NUM_SAMPLES / episodes,
        legal_ns=None if game.is_continuous else nanoseconds[LEGAL],
        step_ns=max(0.0, nanoseconds[STEP] - nanoseconds[COPY]),
        random_action_ns=nanoseconds[RANDOM_ACTION] if has_shortcut else None,
        copy_ns=nanoseconds[COPY],
    )


def _seconds_per_call(run: Callable[[int], int], seconds: float) -> float:
    """CPU seconds per call of what `run` repeats, from a run of about `seconds`."""
    repeats = 64
    while True:
        began = time.process_time()
        count = run(repeats)
        spent = time.process_time() - began
        if spent > seconds / 4 or repeats > 10**9:
            return spent / max(1, count)
        repeats *= 4


class Bench(NamedTuple):
    """What the measured operations read and write."""

    states: Any  # [2]: the start, and a copy that is played
    samples: Any  # [NUM_SAMPLES], decision states
    taken: np.ndarray  # [NUM_SAMPLES], the action that was drawn there
    play: Play
    limit: int  # plies of an episode


def time_rules(bench: Bench, operation: int, repeats: int) -> int:
    """Repeat one operation; the number of repetitions, negative if the rules are wrong."""
    states, samples, play = bench.states, bench.samples, bench.play
    if operation == PLAYOUT:
        for _ in range(repeats):
            states[1] = states[0]
            status = play_on(play, states[1], bench.limit)
            if status != DONE:
                return -1
        return repeats
    if operation == SAMPLE:
        return sample_states(bench, repeats)
    num_samples = samples.shape[0]
    total = 0
    for i in range(repeats):
        j = i % num_samples
        if operation == LEGAL:
            total += legal(samples[j], play.actions, play.data)
        elif operation == RANDOM_ACTION:
            if HAS_RANDOM_ACTION:
                if IS_CONTINUOUS:
                    random_action(samples[j], play.actions[0], play.rng, play.data)
                else:
                    total += random_action(samples[j], play.rng, play.data)
        else:
            states[1] = samples[j]
            if operation == STEP:
                step(states[1], bench.taken[j], play.reward, play.data)
            total += states[1].to_play
    # Use the result, so that the compiler does not remove its computation.
    play.reward[0] = float(total)
    return repeats


def sample_states(bench: Bench, count: int) -> int:
    """Fill `samples` with decision states of random play; the number of states plus episodes."""
    states, taken = bench.states, bench.taken
    actions, rng, data = bench.play.actions, bench.play.rng, bench.play.data
    num_taken = 0
    episodes = 0
    while num_taken < count:
        states[1] = states[0]
        episodes += 1
        for _ in range(bench.limit):
            player = states[1].to_play
            if player == OVER or num_taken == count:
                break
            if HAS_CHANCE and player == CHANCE:
                action = draw_chance(states[1], actions, bench.play.probabilities, rng, data)
            else:
                action = draw_sample(states[1], actions, rng, data)
                bench.samples[num_taken] = states[1]
                if IS_CONTINUOUS:
                    for j in range(DIM):
                        taken[num_taken, j] = actions[0, j]
                else:
                    taken[num_taken] = action
                num_taken += 1
            if action < 0:
                return -1
            if IS_CONTINUOUS:
                step(states[1], actions[0], bench.play.reward, data)
            else:
                step(states[1], action, bench.play.reward, data)
    return num_taken + episodes
