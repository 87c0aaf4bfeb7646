"""Planning for one player: mean against maximum backups, at equal simulations. Prints JSON.

    python benchmarks/planning.py [tsp12] [tsp20] [twenty48] [point_mass] [--seeds 24] [--first 0]
        [--settings mean maximum default ...] [--once N ...]

Returns of whole episodes that are played by `result.action`, with one search for each action, and
of `result.best_episode()` after one search. Every setting has the same seeds; a seed is another map
of cities, or other tiles. Differences are paired by seed, with bootstrap intervals. Budgets are
simulations, so the load of the machine does not change the results. tspN has N cities; the
shortest trip is known for up to 20. With --once only plans of one search each are compared, at
these budgets, and not with the shortest trip.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import uctree
from uctree import backup, selection
from uctree.arena.ratings import mean_interval

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from tsp import shortest, tsp

SETTINGS: dict[str, dict[str, Any]] = {
    "mean": {"backup": backup.mean()},
    "maximum": {"backup": backup.maximum()},
    "maximum(32)": {"backup": backup.maximum(32)},
    "default": {},
    "mean, c=0.2": {"backup": backup.mean(), "selection": selection.ucb1(0.2)},
    "maximum, c=0.2": {"backup": backup.maximum(), "selection": selection.ucb1(0.2)},
}
# Simulations of each search: by action, and for one plan (None with chance).
OF_TRIPS = (500, 10_000)
BUDGETS = {
    "tsp12": OF_TRIPS,
    "tsp20": OF_TRIPS,
    "twenty48": (50, None),
    "point_mass": (300, 2_000),
}

MOST_CITIES = 20  # whose shortest trip is found in a minute


def game_of(name: str, seed: int) -> uctree.Game:
    if name.startswith("tsp"):
        return tsp(int(name[3:]), seed)
    return uctree.games.twenty48() if name == "twenty48" else uctree.games.point_mass()


def optimum(name: str, game: uctree.Game) -> float | None:
    """The largest possible return; None if it is not known."""
    if name.startswith("tsp"):
        return -shortest(game) if game.num_actions <= MOST_CITIES else None
    return None if name == "twenty48" else best_pushes()


def best_pushes(stages: int = 6) -> float:
    """The return of the best pushes of the point mass: a problem of least squares."""
    speeds = np.tril(np.full((stages, stages), 0.5))
    places = np.cumsum(0.5 * speeds, axis=0)
    rows = np.vstack([places, np.sqrt(0.1) * np.eye(stages), speeds[-1:]])
    target = np.concatenate([-np.ones(stages), np.zeros(stages + 1)])
    pushes, residual, *_ = np.linalg.lstsq(rows, target, rcond=None)
    assert np.abs(pushes).max() <= 2.0, "the bounds do not matter"
    return -float(residual[0])


def played(game: uctree.Game, num_simulations: int, seed: int, options: dict[str, Any]) -> float:
    """The return of an episode in which each action is searched for."""
    rng, state, total, ply = np.random.default_rng(seed), game.start(), 0.0, 0
    while not game.is_over(state):
        if game.to_play(state) == uctree.CHANCE:
            outcomes, shares = zip(*game.outcomes(state), strict=True)
            action = int(rng.choice(outcomes, p=shares))
        else:
            result = uctree.search(
                game, state, num_simulations=num_simulations, seed=1_000_000 * seed + ply, **options
            )
            action = result.action
        state, reward = game.step(state, action)
        total, ply = total + float(reward[0]), ply + 1
    return total


def planned(game: uctree.Game, num_simulations: int, seed: int, options: dict[str, Any]) -> float:
    """The return of the best episode that one search saw."""
    result = uctree.search(game, num_simulations=num_simulations, seed=seed, **options)
    best = result.best_episode()
    assert best is not None, "playouts reach the end"
    return best.returns


def compared(
    name: str, how: Callable[..., float], num_simulations: int, seeds: range, settings: list[str],
    *, is_rated: bool = True,
) -> list[dict[str, Any]]:  # fmt: skip
    """A row for each setting: mean return, and its differences to mean and maximum backups."""
    games = {seed: game_of(name, seed) for seed in seeds}
    best = [optimum(name, game) if is_rated else None for game in games.values()]
    rows: list[dict[str, Any]] = []
    returns: dict[str, np.ndarray] = {}
    for setting in settings:
        options = SETTINGS[setting]
        found = np.array([how(games[seed], num_simulations, seed, options) for seed in seeds])
        returns[setting] = found
        row = {
            "game": name, "measure": how.__name__, "simulations": num_simulations,
            "setting": setting, "seeds": len(seeds), "return": float(found.mean()),
            "interval": mean_interval(found),
        }  # fmt: skip
        for other in ("mean", "maximum"):
            if other in returns:
                more = found - returns[other]
                row[f"above_{other}"] = more.mean()
                row[f"above_{other}_interval"] = mean_interval(more)
        if best[0] is not None:
            worse = found / np.array(best, float) - 1.0  # returns are costs
            row |= {"above_optimum": float(worse.mean()), "worse_interval": mean_interval(worse)}
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(BUDGETS))
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--once", type=int, nargs="+", help="simulations of searches for one plan")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    rows = []
    for name in given.games:
        by_action, once = BUDGETS.get(name, OF_TRIPS)
        if given.once is not None:
            for budget in given.once:
                rows += compared(name, planned, budget, seeds, given.settings, is_rated=False)
            continue
        rows += compared(name, played, by_action, seeds, given.settings)
        if once is not None:
            rows += compared(name, planned, once, seeds, given.settings)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
