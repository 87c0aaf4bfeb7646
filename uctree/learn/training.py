"""train(): self-play, learning, checkpoints and the ladder, iteration by iteration."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from uctree import specs
from uctree.engine import interrupts
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn import devices, inference, modules
from uctree.learn.algorithms import make_algorithm
from uctree.learn.environments import environment, is_environment
from uctree.learn.ladder import fall, strength
from uctree.learn.reanalysis import Reanalysis, choose_chunks
from uctree.learn.run import Run, new_network
from uctree.learn.selfplay import Setup
from uctree.learn.workers import (
    EvaluationJob,
    Failed,
    InProcessWorker,
    Workers,
    make_workers,
)
from uctree.views import local


@dataclass(frozen=True)
class Progress:
    """How far a run is; `train` passes it to the function `progress`."""

    phase: str  # "self-play", "reanalysis", "learning" or "ladder"
    done: int  # episodes, steps or games of the phase
    total: int
    iteration: int
    max_iterations: int | None
    games: int
    positions: int
    simulations: int
    games_per_second: float  # in the last self-play
    simulations_per_second: float
    policy_loss: float | None  # in the last learning
    value_loss: float | None
    seconds: float  # of the run, over all calls
    seconds_left: float | None


def train(
    game: Game | str, folder: str | os.PathLike[str], *, algorithm: str | None = None,
    network: torch.nn.Module | str | None = None,
    progress: Callable[[Progress], None] | None = None, **options: Any,
) -> Run:  # fmt: skip
    """The run of a folder after training by self-play; the same call resumes an interrupted run.

    Ctrl-C stops training. It loses only the learning since the last checkpoint; episodes are saved.

    Args:
        game: a game, or its text, as `connect_four(rows=5)`, or an environment as
            `gymnasium:CartPole-v1`, for algorithm="muzero".
        algorithm: "alphazero", the default, or "muzero".
        network: a custom module, or a value of the option `network`.
        progress: called with a `Progress` after every episode, step and ladder game.
        options: as in `Options`.
    """
    module = network if isinstance(network, torch.nn.Module) else None
    if module is None and network is not None:
        options["network"] = network
    if algorithm is not None:
        options["algorithm"] = algorithm
    game = environment(str(game)) if is_environment(game) else local(specs.as_game(game))
    with interrupts.sent_again(), contextlib.ExitStack() as stack:
        with interrupts.postponed():
            begun = Run.begin(folder, game, **options)
            run = stack.enter_context(begun)
        run.custom_network = module
        _Training(run, module, progress).train()
    return run


class _Training:
    """A run in progress: its network, optimiser, generator and counters."""

    def __init__(
        self, run: Run, network: torch.nn.Module | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:  # fmt: skip
        self.run, self.options, self.progress = run, run.options, progress
        self.network = new_network(run.game, run.options) if network is None else network
        modules.check_module(self.network, run.game, self.options.algorithm)
        self.algorithm = make_algorithm(run)
        self.device = devices.choose(self.options.device)
        self.device.place(self.network)
        self.averaged = copy.deepcopy(self.network) if self.options.average_decay > 0 else None
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=self.options.learning_rate,
            weight_decay=self.options.weight_decay,
        )  # fmt: skip
        self.rng = np.random.default_rng([self.options.seed, 2**32])
        self.iteration = 0
        self.end = 0  # the end of the positions to learn from, a cursor of the replay
        self.num_new = 0  # positions that this iteration added
        self.counters: dict[str, float] = dict.fromkeys(
            ("games", "positions", "simulations", "steps", "seconds", "cpu_seconds"), 0
        )
        self.rates = {"games_per_second": 0.0, "simulations_per_second": 0.0}
        self.losses: dict[str, float] = {}
        self.began = time.monotonic()
        self.began_cpu = time.process_time()
        self.workers: Workers = InProcessWorker()

    # The loop.

    def train(self) -> None:
        """Train until a limit is reached."""
        with interrupts.postponed():
            checkpoint = self.run.resume(
                network=self.network, averaged=self.averaged, optimizer=self.optimizer,
                generators={"batches": self.rng},
            )  # fmt: skip
            replay_end = self.run.replay.end  # which opens its files
        if checkpoint is None:
            self._save()
        else:
            self.iteration = checkpoint.iteration
            # Positions may have been lost since then.
            self.end = min(checkpoint.replay_end, replay_end)
            self.counters |= checkpoint.counters
            self.algorithm.load(checkpoint.learning, self.end)
        self.began = time.monotonic() - self.counters["seconds"]
        self.began_cpu -= self.counters["cpu_seconds"]
        self.workers = make_workers(self.options)
        try:
            if self.iteration > 0 and not self._is_measured():
                self._measure()
            while not self._is_over():
                self.iteration += 1
                self._play()
                self._reanalyse()
                self._learn()
                if self.iteration % self.options.checkpoint_interval == 0 or self._is_over():
                    self._save()
                    self._measure()
        finally:
            self.workers.close()

    def _is_measured(self) -> bool:
        """Whether the checkpoint that training resumes from has been measured."""
        lines = self.run.metrics("ladder")
        return bool(lines) and lines[-1]["iteration"] == self.iteration

    def _is_over(self) -> bool:
        options, games = self.options, self.counters["games"]
        return (
            (options.max_iterations is not None and self.iteration >= options.max_iterations)
            or (options.max_games is not None and games >= options.max_games)
            or self._share_of_time >= 1
        )

    @property
    def seconds(self) -> float:
        """The time that the run has taken, over all calls."""
        return time.monotonic() - self.began

    @property
    def cpu_seconds(self) -> float:
        """The processor time of all its processes, over all calls."""
        return time.process_time() - self.began_cpu + self.workers.cpu_seconds

    @property
    def _share_of_time(self) -> float:
        """How much of its time the run has taken, by the limit that is nearer."""
        options = self.options
        pairs = (self.seconds, options.max_hours), (self.cpu_seconds, options.max_cpu_hours)
        return max([taken / (3600 * hours) for taken, hours in pairs if hours], default=0.0)

    # Self-play.

    def _play(self) -> None:
        """Play the episodes of this iteration that are not in the replay yet."""
        options, replay = self.options, self.run.replay
        numbers = self._numbers()
        setup = Setup(self.run.game, options, self._network_for_selfplay(), self.iteration)
        chunks = [
            chunk
            for chunk in self._chunks(numbers)
            if not all(number in replay for number in chunk)
        ]
        began, simulations, played, plies, moved = time.monotonic(), 0, 0, 0, 0
        # Closing the generator stops the workers if an error is raised here.
        with contextlib.closing(self.workers.play(setup, chunks)) as episodes:
            for episode in episodes:
                if isinstance(episode, Failed):
                    self._quarantine(episode)
                    continue
                if not replay.append(episode.number, episode.positions):
                    continue
                played, plies = played + 1, plies + episode.num_plies
                simulations += episode.simulations
                moved += episode.moved_windows
                seconds = max(1e-9, time.monotonic() - began)
                self.rates = {
                    "games_per_second": played / seconds,
                    "simulations_per_second": simulations / seconds,
                }
                self._report_progress("self-play", played, len(numbers))
        stored = [number for number in numbers if number in replay]
        before, self.end = self.end, max([self.end, *map(replay.end_of, stored)])
        self.num_new = self.end - before
        self.algorithm.read(self.end)
        self.counters["games"] += len(stored)
        self.counters["simulations"] += simulations
        self.counters["positions"] = self.end
        windows = {} if self.run.game.view is None else {"moved_windows": moved}
        self.run.log(
            "self-play", iteration=self.iteration, games=self.counters["games"],
            positions=self.end, simulations=self.counters["simulations"], played=played,
            plies_per_game=plies / played if played else None,
            seconds=time.monotonic() - began, **self.rates, **windows,
        )  # fmt: skip

    def _reanalyse(self) -> None:
        """Search a share of earlier positions again, by the option `reanalyse_share`."""
        options = self.options
        assert options.replay_window is not None
        assert options.playout_iterations is not None
        count = round(options.reanalyse_share * self.num_new)
        if count == 0 or self.iteration <= options.playout_iterations:
            return
        network = self._network_for_selfplay()
        began, store = time.monotonic(), self.run.reanalysis
        window = self.run.replay.window(options.replay_window, end=self.end)
        chunks = choose_chunks(window, options, self.iteration, count)
        missing = {number: each for number, each in chunks.items() if number not in store}
        job = Reanalysis(self.run.game, options, network, options.seed + self.iteration, missing)
        done, simulations = 0, 0
        numbers = [(number,) for number in missing]
        with contextlib.closing(self.workers.play(job, numbers)) as found:
            for each in found:
                if isinstance(each, Failed):
                    self._quarantine(each)
                    continue
                store.append(each.number, each.positions)
                done, simulations = done + len(each.positions), simulations + each.simulations
                self._report_progress("reanalysis", done, count)
        self.algorithm.take_reanalysed(store.end)
        self.run.log(
            "reanalysis", iteration=self.iteration, positions=done, simulations=simulations,
            seconds=time.monotonic() - began,
        )  # fmt: skip

    def _quarantine(self, failed: Failed) -> None:
        """Log an episode that failed and is left out."""
        self.run.log(
            "quarantined", iteration=self.iteration, episode=failed.number, error=failed.error
        )

    def _numbers(self) -> range:
        count = self.options.episodes_per_iteration
        assert count is not None
        return range((self.iteration - 1) * count, self.iteration * count)

    def _chunks(self, numbers: range) -> Iterator[tuple[int, ...]]:
        """Chunks of episodes to play at the same time, the same ones after every interruption."""
        options = self.options
        size = min(options.num_trees, math.ceil(len(numbers) / options.workers))
        for first in range(numbers.start, numbers.stop, size):
            yield tuple(range(first, min(first + size, numbers.stop)))

    @property
    def playing_network(self) -> torch.nn.Module:
        """The network that plays: the one with averaged weights, if weights are averaged."""
        return self.network if self.averaged is None else self.averaged

    def _network_for_selfplay(self) -> Any:
        """The network of `Setup`; None as long as playouts value leaves."""
        options = self.options
        assert options.playout_iterations is not None
        if self.iteration <= options.playout_iterations:
            return None
        assert options.replay_window is not None
        window = self.run.replay.window(options.replay_window, end=self.end)
        if options.inference != "int8" or window.num_positions < options.batch_size:
            return self.algorithm.export(self.playing_network)
        # A generator of its own, so that `inference` does not change which batches are drawn.
        batch = window.draw(np.random.default_rng(self.iteration), options.batch_size)
        return inference.int8_bytes(self.playing_network, self.run.game, batch.observations)

    # Learning.

    def _learn(self) -> None:
        """Take the optimiser steps of this iteration, on the last positions of the replay."""
        options = self.options
        assert options.replay_window is not None
        assert options.replay_start is not None
        if self.end < options.replay_start:
            return
        window = self.run.replay.window(options.replay_window, end=self.end)
        assert options.draws is not None
        began, sums = time.monotonic(), dict[str, float]()
        # Workers are idle meanwhile, so learning uses their cores.
        torch.set_num_threads(min(options.workers, os.cpu_count() or 1))
        self.network.train()
        num_steps = math.ceil(options.draws * self.num_new / options.batch_size)
        for step in range(num_steps):
            for name, loss in self._step(self.algorithm.draw(window, self.rng)).items():
                sums[name] = sums.get(name, 0.0) + loss
            self.losses = {f"{name}_loss": each / (step + 1) for name, each in sums.items()}
            self._report_progress("learning", step + 1, num_steps)
        torch.set_num_threads(1)
        self.run.log(
            "learning", iteration=self.iteration, steps=self.counters["steps"],
            learning_rate=self._learning_rate(), seconds=time.monotonic() - began, **self.losses,
        )  # fmt: skip

    def _step(self, batch: Any) -> dict[str, float]:
        """The losses on a batch by name, before one step of the optimiser."""
        options = self.options
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        found = self.algorithm.loss(self.network, batch, self.device)
        self.optimizer.zero_grad(set_to_none=True)
        found.total.backward()
        clip = math.inf if options.gradient_clip is None else options.gradient_clip
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        if not (torch.isfinite(found.total) and torch.isfinite(norm)):
            raise UctreeError(self._failure_message(found.parts, norm))
        self.optimizer.step()
        self.counters["steps"] += 1
        self._average()
        self.algorithm.after_step(batch, found)
        return {name: loss.item() for name, loss in found.parts.items()}

    def _average(self) -> None:
        """Update the averaged weights."""
        if self.averaged is None:
            return
        decay = min(self.options.average_decay, 1 - 1 / (1 + self.counters["steps"]))
        with torch.no_grad():
            averaged, newest = self.averaged.state_dict(), self.network.state_dict()
            for name, tensor in averaged.items():
                if tensor.is_floating_point():
                    tensor.lerp_(newest[name], 1 - decay)
                else:
                    tensor.copy_(newest[name])

    def _learning_rate(self) -> float:
        """The learning rate of the next step."""
        options, steps = self.options, self.counters["steps"]
        assert options.schedule_iterations is not None
        share = max((self.iteration - 1) / options.schedule_iterations, self._share_of_time)
        rate = scheduled(options.learning_rate, options.learning_rate_end, share, options.schedule)
        return rate * min(1.0, (steps + 1) / max(1, options.warmup_steps))

    def _failure_message(self, losses: dict[str, Any], norm: Any) -> str:
        """The message for losses or gradients that are not finite."""
        largest = max(float(each.detach().abs().max()) for each in self.network.parameters())
        shown = ", ".join(f"{name} loss {loss.item():g}" for name, loss in losses.items())
        return (
            f"learning failed in iteration {self.iteration}, step {self.counters['steps']:.0f}: "
            f"{shown}, gradient norm {float(norm):g}, largest weight {largest:g}, learning rate "
            f"{self._learning_rate():g}. The last checkpoint, of iteration "
            f"{self.run.iterations()[-1]}, is intact. Start again in another folder with a smaller "
            "learning_rate or gradient_clip; if the game has large returns and no payoff_range, "
            "give it one"
        )

    # Checkpoints.

    def _save(self) -> None:
        self.counters |= {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        saved = self.run.save(
            self.iteration, network=self.network, averaged=self.averaged,
            optimizer=self.optimizer, counters=self.counters,
            generators={"batches": self.rng}, replay_end=self.end,
            learning=self.algorithm.state(),
        )  # fmt: skip
        self.run.log(
            "checkpoint", iteration=self.iteration, weights_sha256=saved.weights_sha256,
            seconds=self.seconds, cpu_seconds=self.cpu_seconds,
        )  # fmt: skip

    def _measure(self) -> None:
        """Measure the strength of the checkpoint, and log it."""
        if self.options.ladder_games == 0:
            return
        earlier = [each for each in self.run.iterations() if each < self.iteration]
        past = None
        if earlier:
            # A custom module cannot be rebuilt from its description, so weights go into a copy.
            module = copy.deepcopy(self.network)
            past = self.algorithm.export(self.run.learned(earlier[-1], network=module).network())
        job = EvaluationJob(
            self.run.game, self.options, self.algorithm.export(self.playing_network), past,
            self.options.seed + self.iteration,
        )  # fmt: skip
        found = self.workers.measure(
            job, lambda done, total: self._report_progress("ladder", done, total)
        )
        self.run.log(
            "ladder", iteration=self.iteration, past=earlier[-1] if earlier else None,
            strength=strength(found), **found,
        )  # fmt: skip
        fallen = fall(self.run)
        if fallen is not None:
            self.run.log("fall", iteration=self.iteration, best=fallen.best[0], text=str(fallen))

    def _report_progress(self, phase: str, done: int, total: int) -> None:
        if self.progress is None:
            return
        counters = self.counters
        self.progress(Progress(
            phase, done, total, self.iteration, self.options.max_iterations,
            int(counters["games"]), int(counters["positions"]), int(counters["simulations"]),
            self.rates["games_per_second"], self.rates["simulations_per_second"],
            self.losses.get("policy_loss"), self.losses.get("value_loss"), self.seconds,
            self._seconds_left(),
        ))  # fmt: skip

    def _seconds_left(self) -> float | None:
        """The estimated seconds until the first limit is reached; None if not known yet."""
        options, done = self.options, self.iteration - 1
        limits = []
        if self._share_of_time > 0:
            limits.append(self.seconds / self._share_of_time - self.seconds)
        iterations = [] if options.max_iterations is None else [options.max_iterations]
        if options.max_games is not None:
            assert options.episodes_per_iteration is not None
            iterations.append(math.ceil(options.max_games / options.episodes_per_iteration))
        if iterations and done > 0:
            limits.append(self.seconds / done * (min(iterations) - done))
        return max(0.0, min(limits)) if limits else None


def scheduled(rate: float, end: float, share: float, kind: str) -> float:
    """The learning rate after a share of the run; it falls from `rate` to `end` times `rate`.

    >>> scheduled(1.0, 0.1, 0.5, "linear"), scheduled(1.0, 0.1, 0.5, "cosine")
    (0.55, 0.55)
    """
    share = min(1.0, max(0.0, share))
    if kind == "constant":
        return rate
    left = 1 - share if kind == "linear" else 0.5 * (1 + math.cos(math.pi * share))
    return rate * (end + (1 - end) * left)
