"""Planning with Python objects: our share of the time, and other libraries. Prints JSON.

    python benchmarks/objects.py [share] [peers] [openspiel] [latency] [memory]

Peers (mctspy 0.1.1, mcts 1.0.4, OpenSpiel's C++ bot) take turns with uctree in one process, on the
same states; ratios are by CPU time, the median over the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import uctree
from uctree import Problem, Step, adapters

TURNS = 5


# --- two games as anybody would write them --------------------------------------------------------


def lines(rows: int, cols: int, length: int) -> list[tuple[int, ...]]:
    found = []
    for row in range(rows):
        for col in range(cols):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + n * down, col + n * right) for n in range(length)]
                if all(0 <= r < rows and 0 <= c < cols for r, c in cells):
                    found.append(tuple(r * cols + c for r, c in cells))
    return found


class TicTacToe:
    """Cells are 1, -1 or 0; `next_to_move` is 1 or -1. A step returns another state."""

    rows, cols, length, drops = 3, 3, 3, False
    lines = lines(3, 3, 3)

    def __init__(self, cells: tuple[int, ...], next_to_move: int = 1, winner: int = 0) -> None:
        self.cells, self.next_to_move, self.winner = cells, next_to_move, winner

    @classmethod
    def start(cls) -> TicTacToe:
        return cls((0,) * (cls.rows * cls.cols))

    def moves(self) -> list[int]:
        if self.winner:
            return []
        if self.drops:
            return [col for col in range(self.cols) if not self.cells[col]]
        return [cell for cell, owner in enumerate(self.cells) if not owner]

    def after(self, place: int) -> TicTacToe:
        if self.drops:
            while place + self.cols < len(self.cells) and not self.cells[place + self.cols]:
                place += self.cols
        cells = (*self.cells[:place], self.next_to_move, *self.cells[place + 1 :])
        won = any(
            place in line and all(cells[cell] == self.next_to_move for cell in line)
            for line in self.lines
        )
        return type(self)(cells, -self.next_to_move, self.next_to_move if won else 0)

    # As mctspy wants it.

    def is_game_over(self) -> bool:
        return not self.moves()

    @property
    def game_result(self) -> int | None:
        return self.winner if self.is_game_over() else None

    get_legal_actions = moves
    move = after

    # As mcts wants it: the reward is that of the first player.

    getPossibleActions = moves
    takeAction = after
    isTerminal = is_game_over

    def getReward(self) -> int:
        return self.winner


class ConnectFour(TicTacToe):
    rows, cols, length, drops = 6, 7, 4, True
    lines = lines(6, 7, 4)


def as_world(state: TicTacToe) -> uctree.World:
    """The same class, for uctree."""
    return adapters.from_object(
        state, legal="moves", step="after", clone=None,
        to_play=lambda state: 0 if state.next_to_move == 1 else 1,
        reward=lambda state: (state.winner, -state.winner), num_players=2, payoff_range=(-1, 1),
    )  # fmt: skip


# --- what is measured -----------------------------------------------------------------------------


def cpu_seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def turns(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """CPU seconds of each call, in turns; the first turn warms up."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(TURNS + 1):
        for name, call in calls.items():
            seconds = cpu_seconds(call)
            if turn:
                found[name].append(seconds)
    return found


def share() -> list[dict[str, Any]]:
    """Our microseconds per simulation: the search of a world whose functions do next to nothing."""

    rows, num = [], 50_000
    for in_flight in (1, 64):
        seconds = turns(
            {"whole": partial(planned, num, in_flight), "functions": partial(asked, num)}
        )
        ours = [(a - b) / num for a, b in zip(*seconds.values(), strict=True)]
        rows.append(
            {"measure": "our share", "in_flight": in_flight, "simulations": num,
             "microseconds": 1e6 * statistics.median(ours), "wanted": 5}
        )  # fmt: skip
    return rows


def four_actions(state: int) -> tuple[int, ...]:
    return (0, 1, 2, 3)


def next_state(state: int, action: int) -> Step:
    return Step(4 * state + action + 1)


def any_value(state: int) -> float:
    return (state * 2654435761 % 1000) / 1000


def planned(num: int, in_flight: int) -> None:
    problem = Problem(
        actions=four_actions, step=next_state, value=any_value, payoff_range=(0, 1)
    )  # fmt: skip
    uctree.plan(problem, 0, num_simulations=num, in_flight=in_flight, seed=1)


def asked(num: int) -> None:
    """The calls of the problem's functions alone."""
    for state in range(num):
        made = next_state(state, 1)
        four_actions(made.state)
        any_value(made.state)


def peers() -> list[dict[str, Any]]:
    """Simulations per CPU second beside mctspy and mcts, with one random playout each."""
    from mcts import mcts
    from mctspy.tree.nodes import TwoPlayersGameMonteCarloTreeSearchNode as Node
    from mctspy.tree.search import MonteCarloTreeSearch

    rows = []
    for kind, num in ((TicTacToe, 2000), (ConnectFour, 500)):
        start = kind.start()
        calls = {
            "uctree": lambda s=start, n=num: uctree.plan(as_world(s), num_simulations=n, seed=1),
            "mctspy": lambda s=start, n=num: MonteCarloTreeSearch(Node(s)).best_action(n),
            "mcts": lambda s=start, n=num: mcts(iterationLimit=n).search(s),
        }
        seconds = turns(calls)
        for name in ("mctspy", "mcts"):
            ratios = [b / a for a, b in zip(seconds["uctree"], seconds[name], strict=True)]
            rows.append(
                {"measure": "peers", "game": kind.__name__, "peer": name, "simulations": num,
                 "ratio": statistics.median(ratios), "smallest": min(ratios),
                 "largest": max(ratios), "wanted": 4,
                 "uctree_per_second": num / statistics.median(seconds["uctree"]),
                 "peer_per_second": num / statistics.median(seconds[name])}
            )  # fmt: skip
    return rows


def openspiel() -> list[dict[str, Any]]:
    """Beside OpenSpiel's C++ bot on connect four; we hold its states in Python."""
    import pyspiel

    game, num = pyspiel.load_game("connect_four"), 5000
    state = game.new_initial_state()

    def theirs() -> None:
        evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
        pyspiel.MCTSBot(game, evaluator, 2**0.5, num, 1000, False, 1, False).mcts_search(state)

    def ours() -> None:
        uctree.plan(adapters.from_openspiel(state), num_simulations=num, seed=1)

    seconds = turns({"uctree": ours, "openspiel": theirs})
    ratios = [b / a for a, b in zip(seconds["uctree"], seconds["openspiel"], strict=True)]
    return [
        {"measure": "openspiel", "game": "connect_four", "simulations": num,
         "ratio": statistics.median(ratios), "smallest": min(ratios), "largest": max(ratios),
         "wanted": 0.5}
    ]  # fmt: skip


async def slow_value(seconds: float, state: int) -> float:
    await asyncio.sleep(seconds)
    return random.Random(state).random()


def slow_value_here(seconds: float, state: int) -> float:
    time.sleep(seconds)
    return random.Random(state).random()


def latency() -> list[dict[str, Any]]:
    """Share of the ideal throughput: 20 ms a call, 16 in flight."""
    call, in_flight, num = 0.02, 16, 1600
    rows = []
    values = {"async": partial(slow_value, call), "threads": partial(slow_value_here, call)}
    for kind, value in values.items():
        problem = Problem(
            actions=lambda state: range(8), step=lambda state, a: Step(8 * state + a + 1),
            value=value, payoff_range=(0, 1),
        )  # fmt: skip
        uctree.plan(problem, 0, num_simulations=32, in_flight=in_flight, seed=1)
        began = time.perf_counter()
        uctree.plan(problem, 0, num_simulations=num, in_flight=in_flight, seed=1)
        seconds = time.perf_counter() - began
        # The start is valued first, alone.
        ideal = call + call * math.ceil(num / in_flight)
        rows.append(
            {"measure": "latency", "calls": kind, "in_flight": in_flight, "simulations": num,
             "share_of_ideal": ideal / seconds, "wanted": 0.9}
        )  # fmt: skip
    return rows


def memory(num: int = 1_000_000) -> list[dict[str, Any]]:
    """Bytes of a tree of small objects, those of Python and ours."""
    problem = Problem(
        actions=lambda state: (0, 1, 2, 3), step=lambda state, a: Step((state[1], a)),
        value=lambda state: 0.5, payoff_range=(0, 1),
    )  # fmt: skip
    tracemalloc.start()
    result = uctree.plan(problem, (0, 0), num_simulations=num, seed=1)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [
        {"measure": "memory", "simulations": num, "edges": int(result.tree.num_edges),
         "bytes_per_simulation": held / num, "peak_bytes": peak}
    ]  # fmt: skip


MEASURES = {"share": share, "peers": peers, "openspiel": openspiel, "latency": latency,
            "memory": memory}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measures", nargs="*", default=list(MEASURES))
    rows = []
    for name in parser.parse_args().measures:
        for row in MEASURES[name]():
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
