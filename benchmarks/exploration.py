"""The constant of UCB1: matches of several constants in games for several players. Prints JSON.

    python benchmarks/exploration.py [--folder exploration] [--games 100] [--seed 0]
        [--simulations 1000 10000] [GAME ...]

Each constant plays against the first one, at 1,000 and at 10,000 simulations an action, with random
playouts and openings of two random plies, each played in all seatings. The games of every study are
kept in the folder, and the same command resumes. Budgets are simulations, so the load of the
machine does not change the results.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from uctree import arena

CONSTANTS = [0.7, 0.2, 0.35, 0.5, 1.0, 1.4142]  # all play against the first
GAMES = [
    "tic_tac_toe", "nim", "connect_four", "dots_and_boxes:rows=3,cols=3", "hex:size=6",
    "n_in_a_row:rows=7,cols=7,length=4", "n_in_a_row:rows=6,cols=6,length=4,num_players=3",
    "breakthrough:rows=6,cols=6", "othello:size=6", "go:size=5", "pig:target=30",
    "pig:target=20,num_players=3",
    # Boards of full size, on which a game takes seconds.
    "hex:size=11", "n_in_a_row", "breakthrough", "othello", "go:size=7",
]  # fmt: skip


def study(
    game: str, simulations: int, folder: Path, num_games: int, seed: int
) -> list[dict[str, Any]]:
    """The rows of all constants but the first in one game at one budget."""
    name = "".join(each if each.isalnum() else "-" for each in game)
    ablation = arena.ablate(
        game, {"selection.ucb1.c": CONSTANTS}, num_simulations=simulations, num_games=num_games,
        seed=seed, folder=folder / f"{simulations}-{name}",
    )  # fmt: skip
    if ablation.status == "interrupted":
        raise KeyboardInterrupt
    rows = ablation.to_json()["rows"][1:]
    return [{"game": ablation.game.name, "simulations": simulations, **row} for row in rows]


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean score over games, each of equal weight, with its 95 % interval, and its Elo."""
    mean = sum(row["score"] for row in rows) / len(rows)
    halves = [(row["score_interval"][1] - row["score_interval"][0]) / 2 for row in rows]
    half = math.sqrt(sum(each**2 for each in halves)) / len(rows)
    low, middle, high = (elo(share) for share in (mean - half, mean, mean + half))
    return {
        "games": len(rows),
        "score": mean,
        "score_interval": [mean - half, mean + half],
        "elo": middle,
        "elo_interval": [low, high],
        "least": min((row["elo"], row["game"]) for row in rows),
    }


def elo(share: float) -> float:
    """The Elo difference of a score, within ± 1200.

    >>> round(elo(0.64))
    100
    """
    share = min(0.999, max(0.001, share))
    return 400 * math.log10(share / (1 - share))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", metavar="GAME")
    parser.add_argument("--folder", type=Path, default=Path("exploration"))
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulations", type=int, nargs="+", default=[1_000, 10_000])
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for simulations in given.simulations:
        for game in given.only or GAMES:
            rows += study(game, simulations, given.folder, given.games, given.seed)
            print(f"{simulations:,} simulations, {game}: done", file=sys.stderr)
    found = {}
    for simulations in given.simulations:
        for constant in CONSTANTS[1:]:
            chosen = [r for r in rows if r["simulations"] == simulations
                      and r["setting"] == f"c={constant}"]  # fmt: skip
            if chosen:
                found[f"c={constant}, {simulations} simulations"] = pooled(chosen)
    print(json.dumps({"against": f"c={CONSTANTS[0]}", "pooled": found, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
