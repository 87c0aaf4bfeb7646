"""Wider or deeper: rules for how many answers a model is asked for, on made-up tasks. Prints JSON.

    python benchmarks/branching.py [--calls 32 128] [--tasks 400] [--seed 0]

A task is a tree of answers. Every first answer has a quality and a potential, which its refinements
approach step by step, with noise. In `wide` tasks first answers differ much and gain little; in
`deep` ones it is the other way round; a `mixed` task is either. The score of a rule is the best
quality that it has seen after so many calls, the mean over the tasks with its 95 % interval. All
rules see the same tasks. TreeQuest's AB-MCTS-A runs beside, if it is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import uctree
from uctree import Problem, Step, backup, selection

State = tuple[int, ...]  # the number of the answer, of its refinement, and so on

KINDS = {
    # The spread of first answers, and that of what refinements can gain.
    "wide": (0.15, 0.05),
    "deep": (0.05, 0.3),
}
SHARE = 0.3  # of what is left to gain, that a refinement gains
NOISE = 0.03  # its spread


class Task:
    """Qualities of answers, each drawn from the seed of its place."""

    def __init__(self, kind: str, seed: int) -> None:
        name = ("wide", "deep")[seed % 2] if kind == "mixed" else kind
        self.first, self.gain = KINDS[name]
        self.seed = seed
        self.quality = lru_cache(None)(self._quality)
        self.best = 0.0
        self.calls = 0

    def _quality(self, state: State) -> float:
        start, potential = np.random.default_rng((self.seed, state[0])).normal(size=2)
        first, gain = 0.3 + self.first * start, self.gain * abs(potential)
        depth = len(state) - 1
        quality = first + gain * (1.0 - (1.0 - SHARE) ** depth)
        if depth > 0:
            quality += NOISE * np.random.default_rng((self.seed, *state)).normal()
        return float(np.clip(quality, 0.0, 1.0))

    def score(self, state: State) -> float:
        """The quality of an answer, which counts as a call."""
        self.calls += 1
        self.best = max(self.best, self.quality(state))
        return self.quality(state)


def planned(**options: Any) -> Callable[[Task, int, int], None]:
    """A search by uctree with these options."""

    def run(task: Task, calls: int, seed: int) -> None:
        problem = Problem(
            propose=lambda state, tried, k: [len(tried) + i for i in range(k)],
            step=lambda state, action: Step((*state, action)),
            value=lambda state: task.score(state) if state else 0.0,
            max_actions=256,
            payoff_range=(0.0, 1.0),
        )
        uctree.plan(problem, (), num_simulations=calls, seed=seed, **options)

    return run


def sample(task: Task, calls: int, seed: int) -> None:
    """First answers alone."""
    for number in range(calls):
        task.score((number,))


def refine(task: Task, calls: int, seed: int) -> None:
    """A first answer, then always a refinement of the best so far."""
    best, tried = (0,), dict[State, int]()
    task.score(best)
    for _ in range(calls - 1):
        number = tried.get(best, 0)
        tried[best] = number + 1
        state = (*best, number)
        if task.score(state) > task.quality(best):
            best = state


def treequest(task: Task, calls: int, seed: int) -> None:
    """AB-MCTS-A by TreeQuest."""
    from treequest import ABMCTSA

    np.random.seed(seed)
    algorithm, numbers = ABMCTSA(), dict[State, int]()
    state = algorithm.init_tree()

    def generate(parent: State | None) -> tuple[State, float]:
        above = parent or ()
        number = numbers.get(above, 0)
        numbers[above] = number + 1
        answer = (*above, number)
        return answer, task.score(answer)

    for _ in range(calls):
        state = algorithm.step(state, {"answer": generate}, inplace=True)


RULES: dict[str, Callable[[Task, int, int], None]] = {
    "first answers alone": sample,
    "refine the best": refine,
    "widening(), ucb1()": planned(),
    "widening(1, 0.5), ucb1(0.2)": planned(
        widening=selection.widening(1.0, 0.5), selection=selection.ucb1(0.2)
    ),
    "widening(), maximum()": planned(backup=backup.maximum()),
    "adaptive_widening(), ucb1()": planned(widening=selection.adaptive_widening()),
    "adaptive_widening(), thompson()": planned(
        widening=selection.adaptive_widening(), selection=selection.thompson()
    ),
}


def measure(rule: Callable[[Task, int, int], None], kind: str, calls: int, tasks: range) -> Any:
    bests = []
    began = time.process_time()
    for seed in tasks:
        task = Task(kind, seed)
        rule(task, calls, seed)
        if task.calls > calls:
            raise SystemExit(f"{task.calls} calls were made; {calls} are allowed")
        bests.append(task.best)
    error = 1.96 * statistics.stdev(bests) / math.sqrt(len(bests))
    return {
        "best": round(statistics.mean(bests), 4),
        "interval": round(error, 4),
        "cpu_ms": round(1e3 * (time.process_time() - began) / len(bests), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rules = dict(RULES)
    try:
        import treequest as _  # noqa: F401

        rules["TreeQuest, AB-MCTS-A"] = treequest
    except ImportError:
        print("treequest is not installed; it is left out", file=sys.stderr)
    tasks = range(given.seed, given.seed + given.tasks)
    found: dict[str, Any] = {"tasks": given.tasks, "seed": given.seed}
    for kind in (*KINDS, "mixed"):
        for calls in given.calls:
            for name, rule in rules.items():
                place = found.setdefault(kind, {}).setdefault(str(calls), {})
                place[name] = measure(rule, kind, calls, tasks)
                print(kind, calls, name, place[name], file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
