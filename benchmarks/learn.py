"""Training from scratch, one run per game, measured afterwards. Prints JSON.

    python benchmarks/learn.py tic_tac_toe | connect_four | othello | hex [--folder runs]

Each part trains in its own folder below `--folder`, and resumes when it is called again.
tic_tac_toe: five seeds of at most five minutes each, then play against every reply.
connect_four: one hour, then 1000 positions with exact values from bitbully (of the dev extra), and
200 games against playout search with 5,000 simulations. othello (6x6) and hex (5x5): half an hour,
then the Elo difference between the last checkpoint and the first.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import uctree
from uctree import arena, games
from uctree.learn import exact, inference, ladder, replies
from uctree.learn.agents import NetworkAgent
from uctree.learn.run import Run, new_network
from uctree.learn.training import Progress, train

SHARED = {"workers": 2, "root_selection": "gumbel", "policy_target": "gumbel"}


def show_progress(progress: Progress) -> None:
    """Overwrite one line on the terminal."""
    parts = [
        f"iteration {progress.iteration}",
        f"{progress.phase} {progress.done}/{progress.total}",
        f"{progress.games} games",
        f"{progress.simulations_per_second:,.0f} simulations/s",
    ]
    if progress.policy_loss is not None:
        parts.append(f"loss {progress.policy_loss:.3f} + {progress.value_loss:.3f}")
    if progress.seconds_left is not None:
        parts.append(f"{progress.seconds_left / 60:.0f} min left")
    print("\r" + ", ".join(parts).ljust(110), end="", file=sys.stderr, flush=True)


def trained(game: uctree.Game, folder: Path, **options: Any) -> tuple[Run, dict[str, Any]]:
    """The run, and the cost of its training."""
    run = train(game, folder, progress=show_progress, **options)
    print(file=sys.stderr)
    last = run.metrics("checkpoint")[-1]
    played = run.metrics("self-play")[-1]
    return run, {
        "options": options, "minutes": round(last["seconds"] / 60, 2), "games": played["games"],
        "positions": played["positions"], "simulations": played["simulations"],
        "iterations": last["iteration"], "weights_sha256": last["weights_sha256"],
    }  # fmt: skip


# --- tic-tac-toe ---------------------------------------------------------------------------------


def tic_tac_toe(given: argparse.Namespace) -> dict[str, Any]:
    """Whether play is perfect at 50 simulations, for each of the seeds."""
    game = games.tic_tac_toe()
    rows = []
    for seed in range(given.seeds):
        run, took = trained(
            game, given.folder / f"tic_tac_toe-{seed}", seed=seed, max_hours=5 / 60,
            max_iterations=40, ladder_games=0, **SHARED,
        )  # fmt: skip
        network = inference.evaluator(new_network(game, run.options), game, backend="onnx")
        rows.append(took | {
            "search_50": against_all(game, by_search(game, run.evaluator(), 50)),
            "raw_policy": against_all(game, by_policy(game, run.evaluator())),
            "untrained_50": against_all(game, by_search(game, network, 50)),
        })  # fmt: skip
    perfect = sum(row["search_50"]["gave_away"] + row["search_50"]["lost"] == 0 for row in rows)
    return {"perfect": perfect, "of": len(rows), "each": rows}


Player = Callable[[np.record], int]


def by_search(game: uctree.Game, evaluator: Any, simulations: int) -> Player:
    return lambda state: (
        uctree.search(game, state, num_simulations=simulations, evaluator=evaluator).action
    )


def by_policy(game: uctree.Game, evaluator: Any) -> Player:
    return lambda state: exact.raw_actions(game, evaluator, [state])[0]


def by_playouts(game: uctree.Game, states: list[np.record], simulations: int) -> list[int]:
    found = uctree.search_many(game, states, num_simulations=simulations)
    return [result.action for result in found]


def against_all(game: uctree.Game, act: Player) -> dict[str, int]:
    return asdict(replies.try_all(game, act))


# --- connect four --------------------------------------------------------------------------------


def connect_four(given: argparse.Namespace) -> dict[str, Any]:
    """An hour of training, then exact values and games against playout search."""
    game = games.connect_four()
    run, took = trained(
        game, given.folder / "connect_four", num_simulations=64, value_mix=0.5, solver=True,
        opening_plies=8, temperature_cutover=10, playout_iterations=30, playout_simulations=2000,
        inference="int8", episodes_per_iteration=256, draws=3, precision="bfloat16",
        learning_rate_end=0.03, average_decay=0.995, checkpoint_interval=40, keep_every=40,
        max_hours=given.hours or 0.97, seed=given.seed, **SHARED,
    )  # fmt: skip
    positions = exact.exact_positions(game, num_positions=1000, seed=given.seed)
    assert positions is not None
    untrained = inference.evaluator(new_network(game, run.options), game, backend="onnx")
    players = {
        "search_200": lambda: searched(run.evaluator()),
        "search_200_symmetries": lambda: searched(run.evaluator(symmetries=True)),
        "raw_policy": lambda: exact.raw_actions(game, run.evaluator(), positions.states),
        "untrained_200": lambda: searched(untrained),
        "playout_200": lambda: by_playouts(game, positions.states, 200),
    }

    def searched(evaluator: Any) -> list[int]:
        return exact.searched_actions(
            game, evaluator, positions.states, run.options, num_simulations=200
        )

    optimal = {name: round(positions.share_optimal(act()), 4) for name, act in players.items()}
    print(f"optimal: {optimal}", file=sys.stderr)
    against = arena.match(
        "connect_four",
        {
            "network_200": functools.partial(NetworkAgent, str(run.folder), num_simulations=200),
            "playout_5000": "search(num_simulations=5000)",
        },
        num_games=200, openings=4, seed=given.seed, processes=2,
        path=given.folder / "connect_four-match.jsonl",
    )  # fmt: skip
    return {"took": took, "positions": len(positions.states), "optimal": optimal,
            "match": against.to_json(), "ladder": list(rated(run))}  # fmt: skip


def rated(run: Run) -> Iterator[dict[str, Any]]:
    """The ratings of the checkpoints with their intervals."""
    found = ladder.ratings(run)
    yield from [] if found is None else found.rows()


# --- progress ------------------------------------------------------------------------------------


def progress_of(name: str, game: uctree.Game) -> Callable[[argparse.Namespace], dict[str, Any]]:
    def part(given: argparse.Namespace) -> dict[str, Any]:
        """Half an hour of training, then the Elo difference of the last checkpoint to the first."""
        run, took = trained(
            game, given.folder / name, max_hours=given.hours or 0.5, keep_every=10,
            ladder_games=40, seed=given.seed, **SHARED,
        )  # fmt: skip
        found = ladder.ratings(run)
        assert found is not None
        untrained, first, *_, last = [step for step in found.iterations if step is not None]
        gains = {
            f"iteration {last} above {earlier}": found.difference(
                f"iteration {last}", f"iteration {earlier}"
            )
            for earlier in (untrained, first)
        }
        return {"took": took, "elo": gains, "against_playouts": list(against_playouts(run)),
                "ladder": found.rows()}  # fmt: skip

    return part


def against_playouts(run: Run) -> Iterator[dict[str, Any]]:
    """The scores of each checkpoint against playout searches, with their intervals."""
    for row in run.metrics("ladder"):
        scores = {
            name: [round(share, 3) for share in (games["score"], *games["score_interval"])]
            for name, games in row["games"].items()
            if name.startswith("playout")
        }
        yield {"iteration": row["iteration"], **scores}


PARTS = {
    "tic_tac_toe": tic_tac_toe,
    "connect_four": connect_four,
    "othello": progress_of("othello", games.othello(size=6)),
    "hex": progress_of("hex", games.hex(size=5)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, for tic_tac_toe")
    parser.add_argument("--hours", type=float, help="hours of training, except for tic_tac_toe")
    given = parser.parse_args()
    began = time.monotonic()
    found = PARTS[given.part](given)
    print(json.dumps({given.part: found, "seconds": round(time.monotonic() - began, 1)}, indent=1))


if __name__ == "__main__":
    main()
