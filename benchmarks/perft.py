"""Sequences of legal moves counted by `games.chess` and by python-chess in one run. Prints JSON.

    python benchmarks/perft.py

Both list the moves of the last ply and count them. Ratios are medians of process CPU time over runs
that alternate in one process.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import chess as python_chess
import numpy as np

from uctree import games
from uctree.engine.bindings import bound_rule
from uctree.engine.compile import compile_kernel
from uctree.games.chess_text import from_fen
from uctree.kernels.binding import UNBOUND

TURNS = 5
POSITIONS = {  # position, depth for uctree, depth for python-chess
    "start": ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 5, 4),
    "kiwipete": ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 4, 3),
    "third": ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 6, 4),
    "fifth": ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 4, 3),
    "sixth": ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 4, 3),
}

legal = step = UNBOUND


def count(states: Any, lists: Any, levels: Any, reward: Any, depth: int) -> int:
    """The number of sequences of `depth` actions from `states[0]`."""
    total, level = 0, 0
    tried, counts = levels[0], levels[1]
    tried[0], counts[0] = 0, legal(states[0], lists[0], 0)
    while level >= 0:
        if level == depth - 1:
            total += counts[level]
            level -= 1
        elif tried[level] == counts[level]:
            level -= 1
        else:
            action = np.int64(lists[level, tried[level]])
            tried[level] += 1
            states[level + 1] = states[level]
            step(states[level + 1], action, reward, 0)
            level += 1
            tried[level] = 0
            counts[level] = 0
            if states[level].to_play >= 0:
                counts[level] = legal(states[level], lists[level], 0)
    return total


def ours() -> Callable[[str, int], int]:
    game = games.chess()
    work = (
        np.zeros(8, game.dtype), np.zeros((8, 256), np.int32), np.zeros((2, 8), np.int64),
        np.zeros(2),
    )  # fmt: skip
    bound = {name: bound_rule(game, name) for name in ("legal", "step")}
    kernel = compile_kernel(count, bound, (*work, 1), label="chess: sequences")

    def run(fen: str, depth: int) -> int:
        work[0][0] = from_fen(fen)
        return int(kernel.call(*work, depth))

    return run


def theirs(fen: str, depth: int) -> int:
    return count_moves(python_chess.Board(fen), depth)


def count_moves(board: Any, depth: int) -> int:
    if depth == 1:
        return board.legal_moves.count()
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += count_moves(board, depth - 1)
        board.pop()
    return total


def nodes_per_second(run: Callable[[str, int], int], fen: str, depth: int) -> float:
    began = time.process_time()
    num_nodes = run(fen, depth)
    return num_nodes / (time.process_time() - began)


def main() -> None:
    run = ours()
    table: dict[str, Any] = {}
    for name, (fen, depth, their_depth) in POSITIONS.items():
        assert run(fen, their_depth) == theirs(fen, their_depth)
        pairs = [
            (nodes_per_second(run, fen, depth), nodes_per_second(theirs, fen, their_depth))
            for _ in range(TURNS)
        ]
        ratios = sorted(own / peer for own, peer in pairs)
        table[name] = {
            "depth": depth,
            "nodes": run(fen, depth),
            "uctree_per_second": round(statistics.median(own for own, _ in pairs)),
            "python_chess_per_second": round(statistics.median(peer for _, peer in pairs)),
            "ratio": round(statistics.median(ratios), 1),
            "ratios": [round(ratio, 1) for ratio in ratios],
        }
    report = {
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "python_chess": python_chess.__version__,
        "positions": table,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
