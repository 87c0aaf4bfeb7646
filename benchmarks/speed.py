"""The speed of uctree, compared with OpenSpiel's C++ bot in the same run. Prints JSON.

    python benchmarks/speed.py [rollout] [later] [rules] [growth] [startup] [huge]

Ratios are medians of process CPU time over runs that alternate in one process. Absolute speeds are
those of the median turn; they depend on the machine and its load.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import naive_connect_four
import numpy as np
import pyspiel

import uctree
from uctree import games

UCT_C = 1.414  # OpenSpiel adds c * sqrt(ln N / n) on payoffs in [-1, 1]; ours is times hi - lo = 2
TURNS = 9


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def uctree_search(game: uctree.Game, num_simulations: int) -> Callable[[int], Any]:
    rule = uctree.selection.ucb1(UCT_C / 2)
    state = game.start()
    return lambda seed: uctree.search(
        game, state, num_simulations=num_simulations, selection=rule, seed=seed
    )


def spiel_search(name: str, num_simulations: int, solve: bool) -> Callable[[int], Any]:
    game = pyspiel.load_game(name)
    state = game.new_initial_state()

    def search(seed: int) -> None:
        evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
        bot = pyspiel.MCTSBot(game, evaluator, UCT_C, num_simulations, 10_000, solve, seed, False)
        bot.mcts_search(state)

    return search


def compare(
    ours: Callable[[int], Any], theirs: Callable[[int], Any], num_simulations: int, turns: int
) -> dict[str, Any]:
    """Simulations per second of both and the median ratio over turns."""
    ours(0)  # compiles before the measurement
    pairs = []
    for seed in range(turns):
        # The peer runs in the middle of each turn, so that a drift of the clock speed cancels.
        before = cpu_seconds(lambda seed=seed: ours(seed))
        peer = cpu_seconds(lambda seed=seed: theirs(seed))
        after = cpu_seconds(lambda seed=seed: ours(seed + turns))
        pairs.append(((before + after) / 2, peer))
    ratios = sorted(peer / own for own, peer in pairs)
    return {
        "uctree_per_second": round(num_simulations / statistics.median(own for own, _ in pairs)),
        "openspiel_per_second": round(num_simulations / statistics.median(p for _, p in pairs)),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


ROLLOUT = {
    "tic_tac_toe": (games.tic_tac_toe, "tic_tac_toe", 3.0),
    "connect_four": (games.connect_four, "connect_four", 22.0),
    "naive connect_four (docs)": (lambda: naive_connect_four.game, "connect_four", 5.0),
    "five in a row 15x15": (games.n_in_a_row, "gomoku", 45.0),
    "go 9x9": (games.go, "go(board_size=9,komi=7.5)", 10.0),
    "hex 11": (games.hex, "hex", 20.0),
    "othello": (games.othello, "othello", 60.0),
    "breakthrough": (games.breakthrough, "breakthrough", 20.0),
    "dots and boxes 5x5": (
        lambda: games.dots_and_boxes(rows=5, cols=5),
        "dots_and_boxes(num_rows=5,num_cols=5)",
        3.0,
    ),
}
# Games that came later; they do not enter the mean.
LATER = {
    "ultimate tic-tac-toe": (games.ultimate_tic_tac_toe, "ultimate_tic_tac_toe"),
    "kalah": (games.kalah, "mancala"),
    "chess": (games.chess, "chess"),
    "checkers": (games.checkers, "checkers"),
    "backgammon": (games.backgammon, "backgammon(scoring_type=full_scoring)"),
}
IN_THE_MEAN = (
    "tic_tac_toe", "connect_four", "five in a row 15x15", "go 9x9", "hex 11", "othello",
    "breakthrough",
)  # fmt: skip


def rollout() -> dict[str, Any]:
    """One playout per simulation from the start position, against the C++ MCTSBot."""
    table: dict[str, Any] = {}
    for label, (factory, peer, bound) in ROLLOUT.items():
        game = factory()
        table[label] = {"bound at 10,000": bound}
        for num_simulations in (1_000, 10_000, 100_000):
            slow_peer = label in ("go 9x9", "hex 11", "othello", "breakthrough")
            if slow_peer and num_simulations == 100_000:
                continue  # would take the peer minutes
            turns = TURNS if num_simulations < 10_000 or not slow_peer else 5
            turns = turns if num_simulations < 100_000 else 3
            table[label][f"{num_simulations:,}"] = compare(
                uctree_search(game, num_simulations),
                spiel_search(peer, num_simulations, solve=False),
                num_simulations,
                turns,
            )
    ratios = [table[label]["10,000"]["ratio"] for label in IN_THE_MEAN]
    table["geometric mean of seven at 10,000"] = round(statistics.geometric_mean(ratios), 2)
    return table


def later() -> dict[str, Any]:
    """As `rollout`, at 1,000 simulations, for the games of `LATER`."""
    table: dict[str, Any] = {}
    for label, (factory, peer) in LATER.items():
        ours, theirs = uctree_search(factory(), 1_000), spiel_search(peer, 1_000, solve=False)
        table[label] = compare(ours, theirs, 1_000, turns=3)
    return table


def rules() -> dict[str, Any]:
    """Random playouts per second of every built-in game, and nanoseconds per call of its rules."""
    table: dict[str, Any] = {}
    for name in games.__all__:
        game = getattr(games, name)()
        figures = asdict(uctree.rule_speed(game))
        table[game.name] = {k: v and round(v, 1) for k, v in figures.items()}
    return table


def growth() -> dict[str, Any]:
    """Connect four from a thousand to five million simulations: speed and bytes per edge."""
    game = games.connect_four()
    table: dict[str, Any] = {}
    for num_simulations in (1_000, 10_000, 100_000, 1_000_000, 5_000_000):
        search = uctree_search(game, num_simulations)
        search(0)
        turns = [cpu_seconds(lambda search=search, seed=seed: search(seed)) for seed in range(3)]
        tree = search(0).tree
        table[f"{num_simulations:,}"] = {
            "uctree_per_second": round(num_simulations / statistics.median(turns)),
            "edges": tree.num_edges,
            "bytes_per_edge": round(tree.edges.nbytes / tree.num_edges, 4),
        }
    million = 1_000_000
    table["1,000,000"] |= compare(
        uctree_search(game, million), spiel_search("connect_four", million, False), million, turns=3
    )
    return table


SEARCH_ONCE = """
import time
began = time.perf_counter()
import uctree
{game}
uctree.search(game, game.start(), num_simulations=1000)
print(time.perf_counter() - began)
"""


def startup() -> dict[str, Any]:
    """Wall seconds from the start of a new process to its first result."""
    builtin = "game = uctree.games.connect_four()"
    path = Path(__file__).parent
    own = f"import sys; sys.path.insert(0, {str(path)!r}); from naive_connect_four import game"

    def first_result(source: str, cache: str) -> float:
        environment = {"UCTREE_CACHE_DIR": cache}
        command = [sys.executable, "-c", SEARCH_ONCE.format(game=source)]
        began = time.perf_counter()
        subprocess.run(command, check=True, env=environment, capture_output=True)
        return time.perf_counter() - began

    def command_line() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "uctree", "games"], check=True, capture_output=True)
        return time.perf_counter() - began

    table: dict[str, Any] = {"uctree games": statistics.median(command_line() for _ in range(5))}
    for label, source in (("connect_four", builtin), ("own game", own)):
        with tempfile.TemporaryDirectory() as cache:
            table[f"{label}, compiled"] = first_result(source, cache)
            table[f"{label}, cached"] = statistics.median(
                first_result(source, cache) for _ in range(5)
            )
    return {label: round(seconds, 3) for label, seconds in table.items()}


def huge() -> dict[str, Any]:
    """Three players, five in a row on 100x100: memory grows with simulations, not with actions."""
    game = games.n_in_a_row(rows=100, cols=100, length=5, num_players=3)
    table: dict[str, Any] = {"actions": game.num_actions, "state_bytes": game.dtype.itemsize}
    uctree.search(game, game.start(), num_simulations=1)
    for num_simulations in (1_000, 10_000, 40_000):
        began = time.process_time()
        tree = uctree.search(game, game.start(), num_simulations=num_simulations, seed=1).tree
        seconds = time.process_time() - began
        table[f"{num_simulations:,}"] = {
            "uctree_per_second": round(num_simulations / seconds),
            "edges": tree.num_edges,
            "tree_bytes": tree.num_bytes,
            "bytes_per_simulation": round(tree.edges.nbytes / num_simulations, 1),
        }
    return table


SECTIONS = {
    "rollout": rollout,
    "later": later,
    "rules": rules,
    "growth": growth,
    "startup": startup,
    "huge": huge,
}


def main() -> None:
    names = sys.argv[1:] or list(SECTIONS)
    unknown = set(names) - set(SECTIONS)
    if unknown:
        sys.exit(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    report: dict[str, Any] = {
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "numpy": np.__version__,
        "open_spiel": getattr(pyspiel, "__version__", "from PyPI"),
    }
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        report[name] = SECTIONS[name]()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
