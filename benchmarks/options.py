"""The time of each option of a search, relative to plain UCT in the same run. Prints JSON.

    python benchmarks/options.py [ratios] [accuracy] [threads] [reuse] [memory] [compiling]

Ratios are of CPU time at equal simulations, from runs that alternate. Exploration constants are
such that trees are about as deep as those of plain UCT, because a deeper tree takes longer with any
rule. Threads are measured in wall time relative to a control that only computes, and need idle
cores.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import uctree
from uctree import backup, games, selection

PLAIN = {"selection": selection.ucb1(0.707)}  # √2 for payoffs in [-1, 1]
OPTIONS: dict[str, dict[str, Any]] = {
    "puct": {"selection": selection.puct(4.0)},
    "puct, untried first": {"selection": selection.puct(3.0, fpu="infinite")},
    "one_loop": {"selection": selection.one_loop()},
    "one_loop, simplex": {"selection": selection.one_loop(mode="simplex")},
    "ucb1_tuned": {"selection": selection.ucb1_tuned(2.0)},
    "solver": PLAIN | {"solver": True},
    "rave": {"selection": selection.rave(selection.ucb1(0.707))},
    "grave": {"selection": selection.grave(selection.ucb1(0.707))},
    "transpositions": PLAIN | {"transpositions": True},
    "maximum": PLAIN | {"backup": backup.maximum()},
    "soft_maximum": PLAIN | {"backup": backup.soft_maximum(0.1)},
    "random ties": PLAIN | {"ties": "random"},
}
TURNS = 9


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def measure_ratios() -> dict[str, Any]:
    """Time of each option relative to plain UCT, with cheap and with expensive playouts."""
    found: dict[str, Any] = {}
    cases = (
        (games.connect_four(), 20_000), (games.go(9), 1_000), (games.hex(11), 5_000),
        (games.othello(), 2_000),
    )  # fmt: skip
    for game, num_simulations in cases:
        rows = found[game.name] = {"simulations": num_simulations}
        plain = searcher(game, num_simulations, PLAIN)
        rows["plain depth"] = round(plain(0).tree.mean_depth, 2)
        for name, options in OPTIONS.items():
            run = searcher(game, num_simulations, options)
            depth = run(0).tree.mean_depth
            ratios = []
            for seed in range(TURNS):
                before = cpu_seconds(lambda plain=plain, seed=seed: plain(seed))
                own = cpu_seconds(lambda run=run, seed=seed: run(seed))
                after = cpu_seconds(lambda plain=plain, seed=seed: plain(seed))
                ratios.append(2 * own / (before + after))
            rows[name] = {"ratio": round(statistics.median(ratios), 2), "depth": round(depth, 2)}
    return found


def searcher(
    game: uctree.Game, num_simulations: int, options: dict[str, Any]
) -> Callable[..., Any]:
    state = game.start()
    return lambda seed: uctree.search(
        game, state, num_simulations=num_simulations, seed=seed, **options
    )


def measure_accuracy() -> dict[str, Any]:
    """How often the action is right in a game with many transpositions, at equal time.

    Nim with exact values; a search is right if its action has the best value.
    """
    game, rng = games.nim((4, 5, 6, 7)), np.random.default_rng(1)
    cases: list[tuple[Any, dict[int, float]]] = []
    while len(cases) < 30:
        state = game.start()
        for _ in range(int(rng.integers(0, 3))):
            state, _ = game.step(state, int(rng.choice(game.legal(state))))
        values = after_each(game, state)
        if len(set(values.values())) > 1:
            cases.append((state, values))
    found: dict[str, Any] = {"game": game.name, "positions": len(cases), "seeds": 3}
    for seconds in (0.001, 0.003, 0.01, 0.03):
        found[f"{seconds} s"] = {
            name: round(share_right(game, cases, seconds, options), 3)
            for name, options in (("plain", PLAIN), ("shared", OPTIONS["transpositions"]))
        }
    return found


def share_right(
    game: uctree.Game, cases: list[tuple[Any, dict[int, float]]], seconds: float, options: Any
) -> float:
    uctree.search(game, game.start(), num_simulations=10, **options)
    right = 0
    for state, values in cases:
        for seed in range(3):
            result = uctree.search(game, state, seconds=seconds, seed=seed, **options)
            right += values[result.action] == max(values.values())
    return right / (3 * len(cases))


def after_each(game: uctree.Game, state: Any) -> dict[int, float]:
    """The exact value of each action for the player who takes it."""
    player = game.to_play(state)
    values = {}
    for action in game.legal(state):
        after, reward = game.step(state, action)
        rest = 0.0 if game.is_over(after) else uctree.solve(game, after).value[player]
        values[action] = float(reward[player] + rest)
    return values


@numba.njit(nogil=True)
def calculate(count: int) -> float:
    """The control: arithmetic without memory access."""
    total = 1.0
    for i in range(count):
        total = total * 1.0000001 + 1e-9 * i
    return total


def measure_threads() -> dict[str, Any]:
    """Wall time of one thread divided by that of two, for the control and for searches."""
    calculate(10)
    count = 200_000_000
    found: dict[str, Any] = {}
    controls, gains = [], {"root": [], "tree": []}
    cases = {
        "root": (games.connect_four(), 1_500_000), "tree": (games.othello(), 60_000),
    }  # fmt: skip
    runs = {}
    for kind, (game, n) in cases.items():
        one = lambda game=game, n=n: uctree.search(  # noqa: E731
            game, game.start(), num_simulations=n, **PLAIN
        )
        two = lambda game=game, n=n, kind=kind: uctree.search(  # noqa: E731
            game, game.start(), num_simulations=n, threads=2, parallel=kind, **PLAIN
        )
        uctree.search(game, game.start(), num_simulations=10, **PLAIN)
        uctree.search(game, game.start(), num_simulations=10, threads=2, parallel=kind, **PLAIN)
        runs[kind] = one, two
    for _ in range(5):
        alone = wall(lambda: calculate(count))
        shared = wall(lambda: in_two_threads(lambda: calculate(count // 2)))
        controls.append(alone / shared)
        for kind, (one, two) in runs.items():
            gains[kind].append(wall(one) / wall(two))
    control = statistics.median(controls)
    found["control"] = round(control, 3)
    for kind, (game, n) in cases.items():
        gain = statistics.median(gains[kind])
        found[kind] = {
            "game": game.name, "simulations": n, "gain": round(gain, 3),
            "of control": round(gain / control, 3), "gains": [round(g, 2) for g in gains[kind]],
        }  # fmt: skip
    return found


def wall(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_two_threads(work: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure_reuse() -> dict[str, Any]:
    """The time to reroot the tree below an action."""
    game = games.connect_four()
    result = uctree.search(game, game.start(), num_simulations=3_000_000, **PLAIN)
    tree = result.tree
    tree.below(result.action)  # compiles before the measurement
    times = [wall(lambda: tree.below(result.action)) for _ in range(7)]
    below = tree.below(result.action)
    assert below is not None
    seconds = statistics.median(times)
    return {
        "edges before": tree.num_edges, "edges kept": below.num_edges,
        "nodes kept": int(np.count_nonzero(below.edges["visits"])),
        "milliseconds": round(1e3 * seconds, 1),
        "milliseconds per million edges": round(1e9 * seconds / below.num_edges, 1),
    }  # fmt: skip


def measure_memory() -> dict[str, Any]:
    """The peak memory of a search that would need ten times its limit."""
    game = games.connect_four()
    cap = 5_000_000
    uctree.search(game, game.start(), num_simulations=300_000, max_memory=cap, **PLAIN)
    tracemalloc.start()
    result = uctree.search(game, game.start(), num_simulations=1_500_000, max_memory=cap, **PLAIN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    free = uctree.search(game, game.start(), num_simulations=1_500_000, **PLAIN)
    return {
        "cap": cap, "peak": peak, "of cap": round(peak / cap, 3),
        "without cap": free.tree.num_bytes, "simulations": result.simulations,
        "actions": [result.action, free.action],
    }  # fmt: skip


PROGRAM = """
import time; began = time.perf_counter()
import uctree
from uctree import backup, games, selection
def network(state, values, logits):
    for action in range(logits.shape[0]):
        logits[action] = 0.1 * action
game = games.connect_four()
uctree.search(game, game.start(), num_simulations=100, {options})
print(time.perf_counter() - began)
"""


def measure_compiling() -> dict[str, Any]:
    """Seconds from the start of Python to the first result, compiled and from the cache."""
    cases = {
        "plain": "",
        "rave, solver, maximum": "selection=selection.rave(), solver=True, backup=backup.maximum()",
        "transpositions, solver": "transpositions=True, solver=True",
        "gumbel": "evaluator=network, root_selection=selection.gumbel()",
        "tree-parallel": "threads=2, parallel='tree'",
    }
    found = {}
    for name, options in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "first.py"
            script.write_text(PROGRAM.format(options=options))
            compiled, cached = (run_script(script, folder) for _ in range(2))
            cached = min(cached, run_script(script, folder))
        found[name] = {"compiled": round(compiled, 2), "cached": round(cached, 2)}
    return found


def run_script(script: Path, cache: str) -> float:
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True,
        env={"UCTREE_CACHE_DIR": f"{cache}/cache", "PATH": ""},
    )  # fmt: skip
    return float(done.stdout)


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "ratios": measure_ratios,
    "accuracy": measure_accuracy,
    "threads": measure_threads,
    "reuse": measure_reuse,
    "memory": measure_memory,
    "compiling": measure_compiling,
}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(PARTS)
    print(json.dumps({name: PARTS[name]() for name in wanted}, indent=1))
