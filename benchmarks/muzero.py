"""Learned models: how strong they get in a given time. Trains in a folder, resumes, prints JSON.

    python benchmarks/muzero.py PART [--folder runs] [--seeds 0,1,2] [--minutes M]

tic_tac_toe: every reply of an opponent is tried, with 50 simulations and by the policy alone.
cartpole: the mean return of 100 episodes of the real environment. three: three players, 4 in a row
on 7x7, from episodes of playouts first, against two playout searches of 1,000 and of 200
simulations, seats rotated. scratch: the same without these episodes. connect_four: Gumbel's search
against MuZero's PUCT at 4 simulations, and AlphaZero beside both, each trained as long. breakout:
MinAtar (pip install minatar). Always the last checkpoint; every seed is reported.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import uctree
from uctree import arena, games, learn
from uctree.arena.ratings import mean_interval
from uctree.learn import ladder, replies
from uctree.learn.batched_play import NetworkSearch, PolicyAlone
from uctree.learn.environments import environment, play_environment
from uctree.learn.run import Run

SHARED = {"algorithm": "muzero", "ladder_games": 0, "checkpoint_interval": 10, "workers": 2}
SMALL = {"num_simulations": 25, "opening_plies": 4}  # of a board of 9 cells
CARTPOLE = {
    "num_simulations": 16, "value_plies": 20, "draws": 8.0, "batch_size": 128,
    "replay_window": 30_000, "learning_rate": 2e-3, "learning_rate_end": 0.3,
    "episodes_per_iteration": 32, "num_trees": 32,
}  # fmt: skip
THREE = {"num_simulations": 25, "opening_plies": 4, "draws": 8.0}


def trained(game: uctree.Game | str, folder: Path, minutes: float, **options: Any) -> Run:
    """The run of a folder after so many minutes of training, however often it was interrupted."""
    last = [0.0]

    def show(now: learn.Progress) -> None:
        if time.monotonic() - last[0] > 30:
            last[0] = time.monotonic()
            print(f"{folder.name}: iteration {now.iteration}, {now.positions:,} positions, "
                  f"{now.seconds / 60:.1f} minutes", file=sys.stderr)  # fmt: skip

    return learn.train(game, folder, max_hours=minutes / 60, progress=show, **SHARED | options)


def described(run: Run) -> dict[str, Any]:
    saved, learned = run.metrics("checkpoint")[-1], run.metrics("learning")
    return {
        "minutes": round(saved["seconds"] / 60, 1), "iterations": saved["iteration"],
        "positions": run.metrics("self-play")[-1]["positions"],
        "losses": {k: round(v, 4) for k, v in learned[-1].items() if k.endswith("_loss")},
    }  # fmt: skip


def tic_tac_toe(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    game = games.tic_tac_toe()
    run = trained(game, folder, minutes, seed=seed, **SMALL)
    evaluator, found = run.evaluator(), described(run)
    players = {
        "search_50": NetworkSearch(game, evaluator, run.options, 50),
        "policy": PolicyAlone(game, evaluator),
    }
    for name, player in players.items():
        tried = replies.try_all(game, lambda state, by=player: by.action(by.roots([state], [0])[0]))
        found[name] = {"gave_away": tried.gave_away, "lost": tried.lost,
                       "positions": tried.positions}  # fmt: skip
    return found


def cartpole(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    return _in_environment("gymnasium:CartPole-v1", folder, seed, minutes, CARTPOLE)


def breakout(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    import minatar.gym  # type: ignore[import-not-found]

    minatar.gym.register_envs()
    options = {"num_simulations": 16, "value_plies": 5, "draws": 4.0, "network": "tower"}
    return _in_environment("gymnasium:MinAtar/Breakout-v1", folder, seed, minutes, options)


def _in_environment(
    text: str, folder: Path, seed: int, minutes: float, options: dict[str, Any]
) -> dict[str, Any]:
    run = trained(text, folder, minutes, seed=seed, **options)
    search = NetworkSearch(environment(text), run.evaluator(), run.options)

    def choose(states: list[np.record], seeds: list[int]) -> list[int]:
        return [search.action(root) for root in search.roots(states, seeds)]

    played = play_environment(environment(text), choose, range(10**6, 10**6 + 100))
    totals = np.array([each.total for each in played])
    return described(run) | {
        "mean_return": round(float(totals.mean()), 1), "least": float(totals.min()),
        "interval": [round(end, 1) for end in mean_interval(totals)],
    }  # fmt: skip


def three(folder: Path, seed: int, minutes: float, **more: Any) -> dict[str, Any]:
    game = games.n_in_a_row(rows=7, cols=7, length=4, num_players=3)
    run = trained(game, folder, minutes, seed=seed, **THREE | more)
    evaluator, found = run.evaluator(), described(run)
    for budget in (1000, 200):
        returns = ladder.returns_against(
            game, evaluator, run.options, f"search(num_simulations={budget})", 120,
            num_simulations=50, seed=seed,
        )  # fmt: skip
        found[f"against_{budget}"] = {
            "games": len(returns), "mean": round(float(returns.mean()), 3),
            "interval": [round(end, 3) for end in mean_interval(returns)],
        }  # fmt: skip
    return found


def scratch(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    return three(folder, seed, minutes, playout_iterations=0)


def connect_four(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    game = games.connect_four()
    kinds: dict[str, dict[str, Any]] = {
        "gumbel": {},
        "puct": {"root_selection": "puct"},
        "alphazero": {"algorithm": "alphazero"},
    }
    runs = {
        name: trained(
            game, folder.with_name(f"{folder.name}-{name}"), minutes, seed=seed,
            num_simulations=4, **options,
        )
        for name, options in kinds.items()
    }  # fmt: skip
    agents = {
        name: learn.NetworkAgent(str(run.folder), num_simulations=4) for name, run in runs.items()
    }
    match = arena.match(game, {name: (lambda a=a: a) for name, a in agents.items()}, num_games=400)
    return {name: described(run) for name, run in runs.items()} | {"match": match.to_json()}


PARTS: dict[str, tuple[Callable[..., dict[str, Any]], float, str]] = {
    "tic_tac_toe": (tic_tac_toe, 20, "0,1,2"),
    "cartpole": (cartpole, 15, "0,1,2,3,4"),
    "three": (three, 20, "0"),
    "scratch": (scratch, 60, "0"),
    "connect_four": (connect_four, 30, "0"),
    "breakout": (breakout, 30, "0"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", help="separated by commas")
    parser.add_argument("--minutes", type=float, help="of training, for each seed")
    given = parser.parse_args()
    part, minutes, seeds = PARTS[given.part]
    found = {}
    for seed in map(int, (given.seeds or seeds).split(",")):
        folder = given.folder / f"muzero-{given.part}-{seed}"
        found[str(seed)] = part(folder, seed, given.minutes or minutes)
        print(f"seed {seed}: {json.dumps(found[str(seed)])}", file=sys.stderr)
    print(json.dumps({given.part: found}, indent=1))


if __name__ == "__main__":
    main()
