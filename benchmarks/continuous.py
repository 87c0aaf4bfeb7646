"""Games of vectors: simulations per second, and how often the equilibrium is found. Prints JSON.

    python benchmarks/continuous.py [speed] [equilibrium] [--seeds 20] [--dim 1]

`speed`: progressive widening with UCB1 and random proposals in loss_game(dim=1), one thread, the
best of five runs. `equilibrium`: the number of seeds with a stage regret below 0.01 of every player
within 100,000 simulations, where every payoff counts.
"""

from __future__ import annotations

import argparse
import json

import uctree
from uctree import games
from uctree.continuous import budgets


def speed() -> dict[str, float]:
    """Simulations per second by number of simulations."""
    game = games.loss_game()
    found = {}
    for number in (10_000, 100_000, 1_000_000):
        runs = [
            uctree.search(game, game.start(), num_simulations=number, seed=seed)
            for seed in range(5)
        ]
        found[f"{number}"] = round(max(run.simulations / run.seconds for run in runs))
    return found


def equilibrium(dim: int, seeds: int) -> dict[str, object]:
    """Seeds below each regret, and the worst one of each player."""
    game = games.loss_game(dim)
    runs = [budgets.run(game, "foresight-search", 100_000, seed) for seed in range(seeds)]
    summary = budgets.summaries(runs)[0]
    return {
        "seeds": seeds,
        "below": dict(zip(map(str, budgets.GOALS), summary.reached, strict=True)),
        "median": summary.median,
        "most_evaluations": max(run.evaluations for run in runs),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "equilibrium"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--dim", type=int, default=1)
    given = parser.parse_args()
    report: dict[str, object] = {"uctree": uctree.__version__}
    if "speed" in given.parts:
        report["simulations_per_second"] = speed()
    if "equilibrium" in given.parts:
        report["equilibrium"] = equilibrium(given.dim, given.seeds)
    print(json.dumps(report, indent=1))
