"""Planning with Python objects: our share of the time, and other libraries. Prints JSON.

    python benchmarks/objects.py [share] [peers] [openspiel] [latency] [memory]

share: our time per simulation in worlds whose functions do next to nothing. peers, openspiel:
mctspy 0.1.1, mcts 1.0.4 and OpenSpiel's C++ bot take turns with uctree in one process, on the same
states; ratios are by CPU time, the median over the turns. latency: throughput beside that of bare
workers that only wait. memory: bytes of a tree and of its states.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import threading
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


def as_world(state: TicTacToe, **options: Any) -> uctree.World:
    """The same class, for uctree."""
    return adapters.from_object(
        state, legal="moves", step="after", clone=None,
        to_play=lambda state: 0 if state.next_to_move == 1 else 1,
        returns=lambda state: (state.winner, -state.winner), num_players=2, payoff_range=(-1, 1),
        **options,
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
    """Our microseconds per simulation, in worlds whose functions do next to nothing."""
    rows, num = [], 50_000
    for name, (world, functions) in LIGHT.items():
        for in_flight in (1, 64):
            options = {"num_simulations": num, "in_flight": in_flight, "seed": 1}
            calls = {"whole": partial(uctree.plan, world, **options),
                     "functions": partial(functions, num)}  # fmt: skip
            seconds = turns(calls)
            ours = [1e6 * (a - b) / num for a, b in zip(*seconds.values(), strict=True)]
            rows.append(
                {"measure": "our share", "world": name, "in_flight": in_flight, "simulations": num,
                 "microseconds": statistics.median(ours), "smallest": min(ours),
                 "largest": max(ours), "wanted": 5}
            )  # fmt: skip
    return rows


def four_actions(state: Any) -> tuple[int, ...]:
    return (0, 1, 2, 3)


def next_state(state: int, action: int) -> Step:
    return Step(4 * state + action + 1)


def any_value(state: int) -> float:
    return (state * 2654435761 % 1000) / 1000


class Place:
    """A state of two players, as an object that is copied and changed."""

    def __init__(self, number: int, to_play: int) -> None:
        self.number, self.to_play = number, to_play

    def legal(self) -> tuple[int, ...]:
        return (0, 1, 2, 3)

    def step(self, action: int) -> None:
        self.number = 4 * self.number + action + 1
        self.to_play = 1 - self.to_play

    def clone(self) -> Place:
        return Place(self.number, self.to_play)


def next_place(place: Place, action: int) -> Step:
    after = Place(4 * place.number + action + 1, 1 - place.to_play)
    return Step(after, (0.0, 0.0), after.to_play)


def both_values(place: Place) -> tuple[float, float]:
    value = (place.number * 2654435761 % 1000) / 500 - 1
    return value, -value


def ask_numbers(num: int) -> None:
    """The calls of a problem's functions alone."""
    for state in range(num):
        made = next_state(state, 1)
        four_actions(made.state)
        any_value(made.state)


def ask_places(num: int) -> None:
    for number in range(num):
        made = next_place(Place(number, 0), 1)
        four_actions(made.state)
        both_values(made.state)


def ask_objects(num: int) -> None:
    for number in range(num):
        place = Place(number, 0).clone()
        place.step(1)
        place.legal()
        both_values(place)


def light_worlds() -> dict[str, tuple[uctree.World, Callable[[int], None]]]:
    """Worlds of which nearly all of the time is ours, and their functions alone."""
    numbers = Problem(
        actions=four_actions, step=next_state, value=any_value, payoff_range=(0, 1)
    )  # fmt: skip
    places = Problem(
        actions=four_actions, step=next_place, value=both_values, num_players=2,
        payoff_range=(-1, 1),
    )  # fmt: skip
    objects = adapters.from_object(
        Place(0, 0), to_play="to_play", num_players=2, value=both_values, payoff_range=(-1, 1)
    )
    return {
        "numbers, one player": (uctree.World(numbers, 0), ask_numbers),
        "objects, two players": (uctree.World(places, Place(0, 0)), ask_places),
        "from_object(value=), two players": (objects, ask_objects),
    }


LIGHT = light_worlds()


def peers() -> list[dict[str, Any]]:
    """Simulations per CPU second beside mctspy and mcts.

    With one random playout each, nearly all of the time on every side is that of the game's class,
    whose functions all three call about equally often. With the same cheap evaluation of leaves on
    all sides what is left is the time of the searches.
    """
    rows = []
    for kind, num in ((TicTacToe, 2000), (ConnectFour, 500)):
        world = as_world(kind.start())
        calls = {
            "uctree": partial(uctree.plan, world, num_simulations=num, seed=1),
            "mctspy": partial(by_mctspy, kind, num),
            "mcts": partial(by_mcts, kind, num),
        }
        rows += ratios(calls, num, game=kind.__name__, leaves="playouts")
    for kind, num in itertools.product((TicTacToe, ConnectFour), (500, 2000, 10_000)):
        world = as_world(kind.start(), value=lambda state: (judged(state), -judged(state)))
        calls = {
            "uctree": partial(uctree.plan, world, num_simulations=num, seed=1),
            "mctspy": partial(by_mctspy, kind, num, lambda node: judged(node.state)),
            "mcts": partial(by_mcts, kind, num, rolloutPolicy=judged),
        }
        rows += ratios(calls, num, game=kind.__name__, leaves="evaluated")
    return rows


def judged(state: TicTacToe) -> int:
    """What a leaf is worth to the first player: who has won, else a number made of the cells."""
    return state.winner or hash(state.cells) % 3 - 1


def by_mctspy(kind: type[TicTacToe], num: int, rollout: Callable[[Any], int] | None = None) -> None:
    from mctspy.tree.nodes import TwoPlayersGameMonteCarloTreeSearchNode as Node
    from mctspy.tree.search import MonteCarloTreeSearch

    before = Node.rollout
    Node.rollout = before if rollout is None else rollout  # it makes nodes of this class alone
    try:
        MonteCarloTreeSearch(Node(kind.start())).best_action(num)
    finally:
        Node.rollout = before


def by_mcts(kind: type[TicTacToe], num: int, **options: Any) -> None:
    from mcts import mcts

    mcts(iterationLimit=num, **options).search(kind.start())


def ratios(calls: dict[str, Callable[[], Any]], num: int, **which: Any) -> list[dict[str, Any]]:
    """Rows of peers beside uctree, the first of the calls."""
    seconds = turns(calls)
    ours, rows = seconds.pop("uctree"), []
    for name, theirs in seconds.items():
        found = [b / a for a, b in zip(ours, theirs, strict=True)]
        rows.append(
            {"measure": "peers", **which, "peer": name, "simulations": num,
             "ratio": statistics.median(found), "smallest": min(found), "largest": max(found),
             "wanted": 4, "uctree_per_second": num / statistics.median(ours),
             "peer_per_second": num / statistics.median(theirs)}
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
    """Throughput beside that of bare workers: 20 ms a call, 16 in flight; wall time, in turns."""
    call, in_flight, num = 0.02, 16, 1600
    values = {"async": partial(slow_value, call), "threads": partial(slow_value_here, call)}
    ideals = {"async": wait_in_tasks, "threads": wait_in_threads}
    rows = []
    for kind, value in values.items():
        problem = Problem(
            actions=lambda state: range(8), step=lambda state, a: Step(8 * state + a + 1),
            value=value, payoff_range=(0, 1),
        )  # fmt: skip
        whole = partial(uctree.plan, problem, 0, in_flight=in_flight, seed=1)
        whole(num_simulations=32)
        shares = []
        for _ in range(TURNS):
            # The start is valued first, alone.
            ideal = call + wall_seconds(partial(ideals[kind], call, in_flight, num // in_flight))
            shares.append(ideal / wall_seconds(partial(whole, num_simulations=num)))
        rows.append(
            {"measure": "latency", "calls": kind, "in_flight": in_flight, "simulations": num,
             "share_of_ideal": statistics.median(shares), "smallest": min(shares),
             "largest": max(shares), "wanted": 0.9}
        )  # fmt: skip
    return rows


def wall_seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def wait_in_tasks(seconds: float, num_workers: int, num_calls: int) -> None:
    async def worker() -> None:
        for state in range(num_calls):
            await slow_value(seconds, state)

    async def workers() -> None:
        await asyncio.gather(*(worker() for _ in range(num_workers)))

    asyncio.run(workers())


def wait_in_threads(seconds: float, num_workers: int, num_calls: int) -> None:
    def worker() -> None:
        for state in range(num_calls):
            slow_value_here(seconds, state)

    threads = [threading.Thread(target=worker) for _ in range(num_workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def memory(num: int = 1_000_000) -> list[dict[str, Any]]:
    """Bytes of a tree of small objects: of its arrays, and of what Python holds of the states."""
    problem = Problem(
        actions=lambda state: (0, 1, 2, 3), step=lambda state, a: Step((state[1], a)),
        value=lambda state: 0.5, payoff_range=(0, 1),
    )  # fmt: skip
    uctree.plan(problem, (0, 0), num_simulations=10, seed=1)  # what is made only once
    tracemalloc.start()
    result = uctree.plan(problem, (0, 0), num_simulations=num, seed=1)
    held, peak = tracemalloc.get_traced_memory()  # NumPy's arrays are traced, too
    tracemalloc.stop()
    tree = result.tree.num_bytes
    return [
        {"measure": "memory", "simulations": num, "edges": int(result.tree.num_edges),
         "tree_bytes": tree, "state_bytes": held - tree, "peak_bytes": peak}
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
