"""Connect four against a perfect player, othello against Rhino. Prints JSON.

    python benchmarks/perfect.py [connect_four] [othello] [--seconds 1] [--threads 2]
                                 [--playouts uniform] [--network RUN] [--seed 2026]

Connect four: openings of 2 to 6 random plies that bitbully (of the dev extra) scores as won for the
side to move. uctree takes that side and has to win against bitbully, which delays the loss as long
as it can. uctree uses no opening book and nothing of bitbully. With `--network` a run
(`benchmarks/learn.py connect_four`) or a checkpoint evaluates the leaves; `--threads` are then
threads of the network. Othello: `gtp-rhino` (Debian's grhino) at its default level, random openings
of four plies, each played with both colours.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from gnugo import wilson

import uctree
from uctree import arena, learn, specs

SETTING = "selection=ucb1(0.7), solver=True, reuse=True"
NUM_OPENINGS = 20


class Perfect:
    """bitbully: takes the first of the best actions."""

    def __init__(self) -> None:
        import bitbully

        self.oracle, self.new_board = bitbully.BitBully(), bitbully.Board

    def begin(self, game: uctree.Game, player: int, seed: int) -> None:
        self.board = self.new_board()

    def watch(self, state: np.record, action: int) -> None:
        self.board.play(action)

    def act(self, state: np.record) -> int:
        scores = self.oracle.score_all_moves(self.board)
        return max(sorted(scores), key=scores.__getitem__)


def won_openings(seed: int) -> list[tuple[list[int], int]]:
    """Distinct openings that are won for the side to move, with bitbully's score of each."""
    perfect, rng = Perfect(), random.Random(seed)
    found: dict[int, tuple[list[int], int]] = {}
    while len(found) < NUM_OPENINGS:
        board, actions = perfect.new_board(), []
        for _ in range(rng.randint(2, 6)):
            actions.append(rng.choice(board.legal_moves()))
            board.play(actions[-1])
        score = max(perfect.oracle.score_all_moves(board).values())
        if score > 0 and board.uid() not in found:
            found[board.uid()] = actions, score
    return list(found.values())


def convert(given: argparse.Namespace) -> dict[str, Any]:
    """The number of won openings that uctree wins."""
    game = f'connect_four(playouts="{given.playouts}")'
    source: Any = f"search({budget(given)}, {SETTING})"
    agent = source
    if given.network is not None:
        source, agent = by_network(given, game)
    games = []
    for i, (opening, score) in enumerate(won_openings(given.seed)):
        seats: list[Any] = [source, Perfect]
        if len(opening) % 2 == 1:
            seats.reverse()
        record = arena.play(game, seats, opening=opening, seed=given.seed + i)
        result = record.returns[len(opening) % 2]
        games.append({
            "opening": opening, "score": score, "result": result, "plies": len(record.actions),
            "actions": list(record.actions), "end": record.end, "error": record.error,
        })  # fmt: skip
        print(f"{i + 1}: {opening} {result:+g}, {len(record.actions)} plies", file=sys.stderr)
    won = sum(game["result"] == 1 for game in games)
    return {
        "game": game,
        "agent": agent,
        "seed": given.seed,
        "won": won,
        "of": len(games),
        "share": wilson(won, len(games)),
        "each": games,
    }


def by_network(given: argparse.Namespace, game: str) -> tuple[Callable[[], arena.SearchAgent], str]:
    """An agent that evaluates leaves by a network and endings by the rules, and its description."""
    network = learn.load(given.network).network()
    evaluator = learn.evaluator(
        network, specs.read_game(game), backend="int8", threads=given.threads
    )
    # A second core needs larger batches, whose simulations know less of each other.
    leaves = 8 if given.threads == 1 else 32
    options = {"leaves": leaves, "solver": True, "reuse": True}
    source = functools.partial(
        arena.SearchAgent, seconds=given.seconds, evaluator=evaluator, **options
    )
    network_text = f"{given.network}, 8 bits, {given.threads} threads in the network"
    return source, f"{network_text}: {given.seconds:g} s, {options}"


def othello(given: argparse.Namespace) -> dict[str, Any]:
    """The score of uctree against Rhino."""
    agents = {"uctree": f"search({budget(given)}, reuse=True)", "rhino": "rhino()"}
    played = arena.match(
        "othello", agents, num_games=20, openings=4, seed=given.seed, progress=show_progress
    )
    return {"agents": agents, **played.to_json()}


def show_progress(progress: arena.MatchProgress) -> None:
    """Print the game that ended last."""
    if record := progress.record:
        seat = record.agents.index("uctree")
        print(
            f"{progress.done}: {list(record.opening)} seat {seat} {record.returns[seat]:+g}, "
            f"{len(record.actions)} plies",
            file=sys.stderr,
        )


def budget(given: argparse.Namespace) -> str:
    threads = f', threads={given.threads}, parallel="tree"' if given.threads > 1 else ""
    return f"seconds={given.seconds:g}{threads}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = {"connect_four": convert, "othello": othello}
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(parts)}; all by default")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--playouts", choices=("uniform", "heuristic"), default="heuristic")
    parser.add_argument("--network", help="the folder of a run, or of a checkpoint")
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args()
    for part in given.parts:
        if part not in parts:
            parser.error(f"unknown part {part!r}; parts are {', '.join(parts)}")
    print(json.dumps({part: parts[part](given) for part in given.parts or parts}, indent=1))


if __name__ == "__main__":
    main()
