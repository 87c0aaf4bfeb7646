"""Train a network on tic-tac-toe from scratch, then play it against every reply.

    python examples/learn_tic_tac_toe.py [FOLDER]

Called again with the same folder, it resumes. Needs `pip install 'uctree[learn]'`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import uctree
from uctree.learn import exact, replies, report, training

ITERATIONS = 40


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "tic_tac_toe"
    console = Console()
    game = uctree.games.tic_tac_toe()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("training", total=ITERATIONS, status="compiling")

        def show(now: training.Progress) -> None:
            losses = "" if now.policy_loss is None else f", losses {now.policy_loss:.2f} + "
            losses += "" if now.value_loss is None else f"{now.value_loss:.2f}"
            speed = f"{now.simulations_per_second:,.0f} simulations/s"
            bar.update(
                task, completed=now.iteration - 1 + now.done / now.total / 2,
                status=f"{now.games} games, {speed}{losses}",
            )  # fmt: skip

        run = uctree.learn.train(
            game, folder, max_iterations=ITERATIONS, checkpoint_interval=ITERATIONS, progress=show
        )
        bar.update(task, completed=ITERATIONS)
    evaluator = run.evaluator()
    players = {
        "the network without search": lambda state: int(
            exact.raw_actions(game, evaluator, [state])[0]
        ),
        "the network with 50 simulations": lambda state: (
            uctree.search(game, state, num_simulations=50, evaluator=evaluator).action
        ),
    }
    for name, act in players.items():
        found = replies.try_all(game, act)
        console.print(
            f"{name}: {found.positions} positions against all replies, "
            f"{found.gave_away} actions not optimal, {found.lost} lines lost",
            highlight=False,
        )
    page = folder / "report.html"
    report.write_report(run, page)
    console.print(f"Report of the training: {page}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
