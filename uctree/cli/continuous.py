"""The command `continuous`: the regret of each solver of a continuous game by budget."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from uctree import specs
from uctree.arena.reports import write_files
from uctree.cli.app import Flag, app, counting_bar, file_errors, print_table
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError

if TYPE_CHECKING:
    from uctree.continuous.budgets import Summary


@app.command
def continuous(
    game: str,
    /,
    *,
    solvers: str = "all",
    num_simulations: str = "100,1000,10000",
    seeds: int = 5,
    first_seed: int = 0,
    output: Path | None = None,
    json: Flag = False,
) -> None:
    """Compare the solvers of a continuous game at several budgets.

    Every payoff and every gradient counts as a simulation. The stage regret of a path is what a
    player would gain by another action, if best replies follow.

    Args:
        game: a game whose actions are vectors, as loss_game or loss_game:dim=3.
        solvers: "all", or names separated by commas.
        num_simulations: budgets, separated by commas.
        seeds: the number of runs of each solver and budget.
        first_seed: the seed of the first run.
        output: a folder for runs.jsonl, table.json and regret.svg; an interrupted study is resumed
            from there.
        json: print JSON.
    """
    from uctree.continuous import budgets

    made = specs.read_game(game)
    if not made.is_continuous:
        raise UctreeError(
            f"{game} has {made.num_actions} numbered actions; give a game of vectors, as loss_game"
        )
    if seeds < 1:
        raise UctreeError(f"--seeds must be at least 1; got {seeds}")
    chosen, wanted = budgets.chosen_solvers(solvers), _numbers(num_simulations)
    if output is not None:
        with file_errors(output):
            output.mkdir(parents=True, exist_ok=True)
    with counting_bar() as show:
        runs = budgets.study(
            made, chosen, wanted, range(first_seed, first_seed + seeds),
            file=None if output is None else output / "runs.jsonl",
            progress=show and (lambda done, total: show(done, total, f"{done} of {total} runs")),
        )  # fmt: skip
    found = budgets.summaries(runs)
    first = budgets.first_budgets(found)
    report = {
        "game": game, "seeds": seeds, "goals": list(budgets.GOALS),
        "summaries": [_finite(asdict(each)) for each in found], "first_budgets": first,
    }  # fmt: skip
    if output is not None:
        table, picture = (
            json_text(report, indent=1) + "\n",
            budgets.draw(found, f"{game}: stage regret"),
        )
        write_files(output, {"table.json": table, "regret.svg": picture})
    if json:
        print(json_text(report))
        return
    _print(found, first)


def _print(found: list[Summary], first: dict[str, list[int | None]]) -> None:
    header = ["solver", "simulations", "median", "quartiles", "below 1", "0.1", "0.01", "seeds"]
    rows = [header]
    for each in found:
        rows.append([
            each.solver, f"{each.budget:,}", f"{each.median:.3g}",
            f"{each.low:.3g} to {each.high:.3g}", *map(str, each.reached), str(each.seeds),
        ])  # fmt: skip
    print_table(rows, left=(0,))
    print("\nthe smallest budget with a stage regret below 1, 0.1, 0.01 on 95 % of the seeds:")
    wanted = [[name, *("-" if b is None else f"{b:,}" for b in row)] for name, row in first.items()]
    print_table(wanted, left=(0,))


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word.replace("_", "")) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UctreeError(
            f"--num-simulations must be whole numbers separated by commas; got {text!r}"
        )
    return numbers


def _finite(row: dict[str, object]) -> dict[str, object]:
    """A row for JSON, with None for infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
