"""Matches of uctree against GNU Go on 9x9. Prints JSON.

    python benchmarks/gnugo.py [--games 40] [--seconds 2] [--level 10] [--processes 1] [--path FILE]
    python benchmarks/gnugo.py --steps --num-simulations 2000 --path FOLDER

Chinese rules, komi 7.5, one thread, no opening book; both colours in turn, with the same seed for
each pair of games. Afterwards GNU Go scores the end of every game, as a check of uctree's count.
With --path an interrupted match can be resumed. --steps plays a match with each setting on the way
from plain UCT to that of docs/games/go.md, each in its own file in the folder --path; `--steps
priors lcb` plays only these.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from uctree.arena import GameRecord, MatchProgress, match
from uctree.arena.external import gnugo

PRIORS = "selection=puct(c=2), evaluator=playout(priors=True)"
# The playouts, and the options of the search.
STEPS = {
    "uct": ("uniform", "selection=ucb1(0.1)"),
    "rave": ("uniform", "selection=rave()"),
    "heuristic": ("heuristic", "selection=ucb1(0.1)"),
    "heuristic-rave": ("heuristic", "selection=rave()"),
    "priors": ("heuristic", PRIORS),
    "priors-rave": ("heuristic", "selection=rave(puct(c=2)), evaluator=playout(priors=True)"),
    "reuse": ("heuristic", f"{PRIORS}, reuse=True"),
    "lcb": ("heuristic", f"{PRIORS}, reuse=True, choice='lcb'"),
}
CHOSEN = "reuse"  # the setting of docs/games/go.md, and of the match without --steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--num-simulations", type=int, help="instead of seconds")
    parser.add_argument("--level", type=int, default=10)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--steps", nargs="*", choices=STEPS, help="a match for each of these steps, or for all"
    )
    parser.add_argument("--path", type=Path, help="a file, or with --steps a folder")
    given = parser.parse_args()
    if given.steps is not None:
        names = given.steps or STEPS
        report = {name: against_gnugo(given, name, path_of(given, name)) for name in names}
    else:
        report = against_gnugo(given, CHOSEN, given.path)
    print(json.dumps(report, indent=1))


def path_of(given: argparse.Namespace, name: str) -> Path | None:
    if given.path is None:
        return None
    given.path.mkdir(parents=True, exist_ok=True)
    return given.path / f"{name}.jsonl"


def against_gnugo(given: argparse.Namespace, name: str, path: Path | None) -> dict[str, Any]:
    """The match of one setting."""
    playouts, setting = STEPS[name]
    game = f'go(size=9, komi=7.5, playouts="{playouts}")'
    budget = f"seconds={given.seconds:g}"
    if given.num_simulations is not None:
        budget = f"num_simulations={given.num_simulations}"
    agents = {"uctree": f"search({budget}, {setting})", "gnugo": f"gnugo(level={given.level})"}
    print(f"{name}: {agents['uctree']}", file=sys.stderr, flush=True)
    played = match(
        game, agents, num_games=given.games, openings=0, seed=given.seed,
        processes=given.processes, path=path, progress=report_progress,
    )  # fmt: skip
    if played.status == "interrupted":
        sys.exit("gnugo.py: interrupted; with --path the same command resumes")
    games = [described(record) for record in played.records]
    wins = sum(game["result"] == 1 for game in games)
    return {
        "game": game,
        "agents": agents,
        "seed": given.seed,
        "games": len(games),
        "wins": wins,
        "draws": sum(game["result"] == 0 for game in games),
        "share": wins / len(games),
        "wilson_95": wilson(wins, len(games)),
        "as_black": sum(game["result"] == 1 for game in games if game["colour"] == "black"),
        "as_white": sum(game["result"] == 1 for game in games if game["colour"] == "white"),
        "winner_in_dispute": [game["number"] for game in games if game["disputed"]],
        "each": games,
    }


def report_progress(progress: MatchProgress) -> None:
    print(f"{progress.done} of {progress.total}: {progress.scores}", file=sys.stderr, flush=True)


def described(record: GameRecord) -> dict[str, Any]:
    """One game in figures, with GNU Go's score of its end."""
    seat = record.agents.index("uctree")
    score = gnugo_score(record)
    winner = "B" if record.returns[0] > 0 else "W" if record.returns[1] > 0 else "0"
    return {
        "number": record.number,
        "seed": record.seed,
        "colour": ("black", "white")[seat],
        "result": int(record.returns[seat]),
        "plies": len(record.actions),
        "end": record.end,
        "error": record.error,
        "lead": None if record.end != "over" else lead(record),
        "gnugo_score": score,
        "disputed": record.end == "over" and score[0] != winner,
        "seconds_per_action": record.seconds[seat] / max(1, record.decisions[seat]),
        "actions": " ".join(shown(record)),
    }


def lead(record: GameRecord) -> float:
    """Black's area minus white's area and komi."""
    area = record.states[-1]["area"]
    return float((area[:81] == 1).sum() - (area[:81] == 2).sum() - 7.5)


def shown(record: GameRecord) -> list[str]:
    assert record.game is not None
    pairs = zip(record.states, record.actions, strict=False)
    return [record.game.show_action(state, action) for state, action in pairs]


def gnugo_score(record: GameRecord) -> str:
    """The score that GNU Go gives the end of a game, as B+3.5."""
    agent = gnugo(level=10)
    assert record.game is not None
    agent.begin(record.game, 0, record.seed)
    for state, action in zip(record.states, record.actions, strict=False):
        agent.watch(state, action)
    score = agent.ask("final_score")
    agent.close()
    return score


def wilson(wins: int, games: int, z: float = 1.959964) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927)."""
    share, square = wins / games, z * z / games
    centre = (share + square / 2) / (1 + square)
    half = z * math.sqrt(share * (1 - share) / games + square / (4 * games)) / (1 + square)
    return round(centre - half, 4), round(centre + half, 4)


if __name__ == "__main__":
    main()
