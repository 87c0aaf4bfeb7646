"""Commands about the rules of games: `games`, `check`, `new`, `bench`, and `cache`."""

from __future__ import annotations

import importlib.resources
import importlib.util
import inspect
import keyword
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import uctree
from uctree import specs
from uctree.cli.app import (
    NO_BUDGET,
    Budget,
    Flag,
    app,
    checked_budget,
    count,
    print_table,
    search_with_progress,
    size,
)
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError
from uctree.game import Game

BENCH_SIMULATIONS = 10_000
BENCH_REPEATS = 3
BENCH_RULE_SECONDS = 0.1
BENCH_RULES = ("legal_ns", "step_ns", "random_action_ns", "copy_ns")


@app.command
def games() -> None:
    """List the built-in games."""
    rows = [["game", "players", "actions", "chance", ""]]
    for name, factory in specs.built_in().items():
        text = (inspect.getdoc(factory) or "").partition("\n")[0]
        rows.append([specs.signature(name, factory), *_facts(factory), text])
    print_table(rows, left=(0, 4))


def _facts(factory: Callable[..., Game]) -> list[str]:
    """Players, actions and chance of a factory's default game; dashes if it needs arguments."""
    if not specs.needs_nothing(factory):
        return ["-", "-", "-"]
    made = factory()
    chance = "yes" if made.max_outcomes else "no"
    actions = f"R^{made.dim}" if made.is_continuous else f"{made.num_actions:,}"
    return [str(made.num_players), actions, chance]


@app.command
def check(
    game: str,
    /,
    *,
    episodes: int = 200,
    seed: int = 0,
    heuristic: Flag = False,
    json: Flag = False,
) -> int:
    """Check whether a game follows its contract; exit status 1 if it does not.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        episodes: the number of random episodes.
        seed: the seed of the episodes.
        heuristic: random_action and playout play better than at random, on purpose.
        json: print JSON instead of a report.
    """
    report = uctree.check(game, episodes=episodes, seed=seed, heuristic=heuristic)
    print(json_text(report.to_json(), indent=2) if json else report)
    return 0 if report.ok else 1


@app.command
def new(name: str, /) -> None:
    """Write a commented game to change, NAME.py, and a test for it, test_NAME.py.

    Args:
        name: the name of the game, a Python identifier.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UctreeError(f"the name must be a Python identifier, like my_game; got {name!r}")
    if importlib.util.find_spec(name) is not None and not Path(f"{name}.py").exists():
        raise UctreeError(
            f"{name}.py would hide the module {name}, which Python has already; choose another name"
        )
    for source, path in (("game.txt", Path(f"{name}.py")), ("test.txt", Path(f"test_{name}.py"))):
        if path.exists():
            raise UctreeError(f"{path} exists already; choose another name or remove it")
        text = (
            importlib.resources.files("uctree.cli").joinpath("skeleton", source).read_text("utf-8")
        )
        path.write_text(text.replace("NAME", name), encoding="utf-8")
        print(f"wrote {path}")
    print(f"next: uctree check {name}.py, uctree play {name}.py, python -m pytest test_{name}.py")


@app.command
def bench(game: str | None = None, /, *, budget: Budget = NO_BUDGET, json: Flag = False) -> None:
    """Measure the speed of a search and of the rules of a game, or of every built-in game.

    Three searches with different seeds start at the start of the game; the table has the median of
    their speeds, and tree figures of the last one. Then single rules are timed on states of random
    play: the slowest of them slows down the search most.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        json: print JSON instead of a table.
    """
    budget = checked_budget(budget, Budget(num_simulations=BENCH_SIMULATIONS))
    if game is not None:
        names = [game]
    else:
        built_in = specs.built_in().items()
        names = [name for name, factory in built_in if specs.needs_nothing(factory)]
    figures = [_measure(name, specs.read_game(name), budget) for name in names]
    if json:
        print(json_text(figures, indent=2))
        return
    rows = [
        ["game", "compile s", "machine code", "simulations/s", "bytes/edge", "depth", "playouts/s",
         "steps/s", "legal ns", "step ns", "random_action ns", "copy ns"]
    ]  # fmt: skip
    for row in figures:
        rows.append([
            row["game"], f"{row['compile_seconds']:.2f}", row["machine_code"],
            f"{row['simulations_per_second']:,.0f}", f"{row['bytes_per_edge']:.1f}",
            f"{row['mean_depth']:.1f}", f"{row['playouts_per_second']:,.0f}",
            f"{row['playouts_per_second'] * row['plies_per_playout']:,.0f}",
            *("-" if row[name] is None else f"{row[name]:.1f}" for name in BENCH_RULES),
        ])  # fmt: skip
    print_table(rows, left=(0, 2))


def _measure(spec: str, game: Game, budget: Budget) -> dict[str, Any]:
    """The figures of `bench` for one game."""
    results = [
        search_with_progress(game, game.start(), budget, seed=seed, options={})
        for seed in range(BENCH_REPEATS)
    ]
    last = results[-1]
    tree = last.tree
    speeds = [result.simulations / max(result.seconds, 1e-9) for result in results]
    return {
        "game": spec,
        "machine_code": "from the cache" if last.cached else "compiled",
        "compile_seconds": results[0].compile_seconds,
        "simulations": last.simulations,
        "simulations_per_second": float(np.median(speeds)),
        "bytes_per_edge": tree.num_bytes / max(1, tree.num_edges),
        "mean_depth": tree.mean_depth,
        **asdict(uctree.rule_speed(game, seconds=BENCH_RULE_SECONDS)),
    }


@app.command
def cache(*, clear: Flag = False) -> None:
    """List the machine code on disk.

    Args:
        clear: delete all of it; the next search of a game compiles again.
    """
    if clear:
        deleted = count(uctree.clear_cache(), "entry", "entries")
        print(f"{deleted} deleted from {uctree.cache_folder()}")
        return
    entries = uctree.cache_entries()
    if entries:
        rows = [["entry", "size", "last used"]]
        print_table(rows + [_cache_row(entry) for entry in entries], left=(0, 2))
    total = sum(entry.num_bytes for entry in entries)
    print(f"{count(len(entries), 'entry', 'entries')}, {size(total)}, in {uctree.cache_folder()}")


def _cache_row(entry: uctree.CacheEntry) -> list[str]:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
    return [entry.label, size(entry.num_bytes), used]
