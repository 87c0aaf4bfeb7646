"""Learned models: how strong they get in a given time. Trains in a folder, resumes, prints JSON.

    python benchmarks/muzero.py PART [--folder runs] [--seeds 0,1,2] [--cpu-minutes M] [--workers W]

The budget is processor time, of all processes of a run, so that it is the same on a busy machine:
40 CPU minutes are at most 20 minutes on two idle cores.

tic_tac_toe: every reply of an opponent is tried, with 50 simulations and by the policy alone.
cartpole: the mean return of 100 episodes of the real environment. three: three players, 4 in a row
on 7x7, from episodes of playouts first, against two playout searches of 1,000 and of 200
simulations, seats rotated. scratch: the same without these episodes. connect_four: Gumbel's search
against MuZero's PUCT at 4 simulations, and AlphaZero beside both, each trained as long. breakout:
MinAtar. ablate: tic-tac-toe with one setting changed at a time, for short. Always the last
checkpoint; every seed is reported.
"""

from __future__ import annotations

import argparse
import functools
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
from uctree.learn.agents import network_agent
from uctree.learn.batched_play import NetworkSearch, PolicyAlone
from uctree.learn.environments import environment, play_environment
from uctree.learn.run import Run

SHARED = {"algorithm": "muzero", "ladder_games": 0, "checkpoint_interval": 10, "workers": 2}
SMALL = {  # of a board of 9 cells
    "num_simulations": 25, "opening_plies": 4, "average_decay": 0.998, "learning_rate_end": 0.02,
    "value_mix": 0.25, "reanalyse_share": 0.25,
}  # fmt: skip
CARTPOLE = {
    "num_simulations": 16, "value_plies": 20, "draws": 8.0, "batch_size": 128,
    "replay_window": 30_000, "learning_rate": 2e-3, "learning_rate_end": 0.05,
    "average_decay": 0.998, "gradient_clip": 5.0, "value_weight": 0.25, "consistency_weight": 2.0,
    "network_width": 128, "network_depth": 64, "episodes_per_iteration": 8, "num_trees": 8,
    "replay_start": 1000, "rescale": False, "c_scale": 0.01,
}  # fmt: skip
SEEDED = {"playout_iterations": 24, "playout_simulations": 1000}
THREE = {"num_simulations": 25, "opening_plies": 4, "draws": 8.0, "temperature_cutover": 49}


def trained(game: uctree.Game | str, folder: Path, cpu_minutes: float, **options: Any) -> Run:
    """The run of a folder after so much training, however often it was interrupted."""
    last = [0.0]

    def show(now: learn.Progress) -> None:
        if time.monotonic() - last[0] > 30:
            last[0] = time.monotonic()
            print(f"{folder.name}: iteration {now.iteration}, {now.positions:,} positions, "
                  f"{now.seconds / 60:.1f} minutes", file=sys.stderr)  # fmt: skip

    limit = {"max_cpu_hours": cpu_minutes / 60}
    return learn.train(game, folder, progress=show, **SHARED | limit | options)


def described(run: Run) -> dict[str, Any]:
    """What a run took, and how fast its self-play by the model was."""
    saved, learned = run.metrics("checkpoint")[-1], run.metrics("learning")
    played, seeded = run.metrics("self-play"), run.options.playout_iterations or 0
    before = played[seeded - 1]["positions"] if seeded else 0
    seconds = sum(row["seconds"] for row in played[seeded:])
    return {
        "cpu_minutes": round(saved["cpu_seconds"] / 60, 1),
        "minutes": round(saved["seconds"] / 60, 1), "iterations": saved["iteration"],
        "positions": played[-1]["positions"], "steps": learned[-1]["steps"],
        "positions_per_second": round((played[-1]["positions"] - before) / max(seconds, 1e-9)),
        "losses": {k: round(v, 4) for k, v in learned[-1].items() if k.endswith("_loss")},
    }  # fmt: skip


def tic_tac_toe(folder: Path, seed: int, cpu_minutes: float, **more: Any) -> dict[str, Any]:
    game = games.tic_tac_toe()
    run = trained(game, folder, cpu_minutes, seed=seed, **SMALL | more)
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


def cartpole(folder: Path, seed: int, cpu_minutes: float) -> dict[str, Any]:
    return _in_environment("gymnasium:CartPole-v1", folder, seed, cpu_minutes, CARTPOLE)


def breakout(folder: Path, seed: int, cpu_minutes: float) -> dict[str, Any]:
    options = {"num_simulations": 16, "value_plies": 5, "draws": 4.0, "network": "tower"}
    return _in_environment("gymnasium:MinAtar/Breakout-v1", folder, seed, cpu_minutes, options)


def _in_environment(
    text: str, folder: Path, seed: int, cpu_minutes: float, options: dict[str, Any]
) -> dict[str, Any]:
    run = trained(text, folder, cpu_minutes, seed=seed, **options)
    search = NetworkSearch(environment(text), run.evaluator(), run.options)

    def choose(states: list[np.record], seeds: list[int]) -> list[int]:
        return [search.action(root) for root in search.roots(states, seeds)]

    played = play_environment(environment(text), choose, range(10**6, 10**6 + 100))
    totals = np.array([each.total for each in played])
    return described(run) | {
        "mean_return": round(float(totals.mean()), 1), "least": float(totals.min()),
        "interval": [round(end, 1) for end in mean_interval(totals)],
    }  # fmt: skip


def three(folder: Path, seed: int, cpu_minutes: float, **more: Any) -> dict[str, Any]:
    game = games.n_in_a_row(rows=7, cols=7, length=4, num_players=3)
    run = trained(game, folder, cpu_minutes, seed=seed, **THREE | SEEDED | more)
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


def scratch(folder: Path, seed: int, cpu_minutes: float) -> dict[str, Any]:
    return three(folder, seed, cpu_minutes, playout_iterations=0)


def connect_four(folder: Path, seed: int, cpu_minutes: float) -> dict[str, Any]:
    game = games.connect_four()
    kinds: dict[str, dict[str, Any]] = {
        "gumbel": {},
        "puct": {"root_selection": "puct"},
        "alphazero": {"algorithm": "alphazero"},
    }
    runs = {
        name: trained(
            game, folder.with_name(f"{folder.name}-{name}"), cpu_minutes, seed=seed,
            num_simulations=4, draws=8.0, opening_plies=4, **SEEDED | options,
        )
        for name, options in kinds.items()
    }  # fmt: skip
    agents = {
        name: functools.partial(
            network_agent, f"network(run={str(run.folder)!r}, num_simulations=4)",
            run.iterations()[-1],
        )
        for name, run in runs.items()
    }  # fmt: skip
    path = folder.with_name(f"{folder.name}-match.jsonl")
    match = arena.match(game, agents, num_games=400, openings=4, path=path)
    return {name: described(run) for name, run in runs.items()} | {"match": match.to_json()}


ABLATED: dict[str, dict[str, Any]] = {
    "as it is": {},
    "4 draws per position": {"draws": 4.0},
    "no playouts at first": {"playout_iterations": 0},
    "no reanalysis": {"reanalyse_share": 0.0},
    "no average": {"average_decay": 0.0},
    "no consistency loss": {"consistency_weight": 0.0},
}


def ablate(folder: Path, seed: int, cpu_minutes: float) -> dict[str, Any]:
    return {
        name: tic_tac_toe(
            folder.with_name(f"{folder.name}-{name.replace(' ', '-')}"), seed, cpu_minutes, **change
        )
        for name, change in ABLATED.items()
    }


def mistakes(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each ablation over its seeds: how many positions its search gave away, and its policy."""
    rows = {}
    for name in ABLATED:
        rows[name] = {}
        for player in ("search_50", "policy"):
            counts = np.array([each[name][player]["gave_away"] for each in found.values()])
            low, high = mean_interval(counts) if len(counts) > 1 else (None, None)
            rows[name][player] = {"mean": float(counts.mean()), "interval": [low, high]}
    return rows


# Of each part: what it does, the CPU minutes of a run, and seeds.
PARTS: dict[str, tuple[Callable[..., dict[str, Any]], float, str]] = {
    "tic_tac_toe": (tic_tac_toe, 40, "0,1,2"),
    "cartpole": (cartpole, 30, "0,1,2,3,4"),
    "three": (three, 40, "0"),
    "scratch": (scratch, 120, "0"),
    "connect_four": (connect_four, 60, "0"),
    "breakout": (breakout, 60, "0"),
    "ablate": (ablate, 4, "0,1,2,3"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", help="separated by commas")
    parser.add_argument("--cpu-minutes", type=float, help="of training, for each seed")
    parser.add_argument("--workers", type=int, help="processes that play")
    given = parser.parse_args()
    SHARED["workers"] = given.workers or SHARED["workers"]
    part, cpu_minutes, seeds = PARTS[given.part]
    found = {}
    for seed in map(int, (given.seeds or seeds).split(",")):
        folder = given.folder / f"muzero-{given.part}-{seed}"
        found[str(seed)] = part(folder, seed, given.cpu_minutes or cpu_minutes)
        print(f"seed {seed}: {json.dumps(found[str(seed)])}", file=sys.stderr)
    more = {"mistakes": mistakes(found)} if given.part == "ablate" else {}
    print(json.dumps({given.part: found} | more, indent=1))


if __name__ == "__main__":
    main()
