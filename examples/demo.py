"""Search a connect-four position whose exact answer is known, and say whether it was found.

The position after columns 6 3 7 7 7 7 3 3 1 5 has one winning action, column 5; all others lose
(so a perfect solver scores them). Small budgets are misled, the large one is not. Eight plies of
best play later the win is near enough to be proven.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

import uctree

ACTIONS = [5, 2, 6, 6, 6, 6, 2, 2, 0, 4]
WINNING = 4
BEST_PLAY = [4, 1, 3, 3, 3, 2, 4, 2]  # and then column 3 is the only one that wins


def main() -> None:
    console = Console()
    game = uctree.games.connect_four()
    state = game.play(ACTIONS)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[speed]}"))
    for budget in (1_000, 10_000, 2_000_000):
        bar = Progress(*columns, TimeRemainingColumn(), console=console)
        task = bar.add_task(f"{budget:>9,} simulations", total=budget, speed="")

        def show(progress: uctree.Progress, bar: Progress = bar, task: TaskID = task) -> None:
            bar.start()  # not before: a line says that the search is compiled
            speed = f"{progress.simulations / progress.seconds:,.0f}/s"
            bar.update(task, completed=progress.simulations, speed=speed)

        try:
            result = uctree.search(
                game, state, num_simulations=budget, seed=1, progress=show,
                selection=uctree.selection.ucb1(c=0.707),
            )  # fmt: skip
        finally:
            bar.stop()
        found = "the winning action" if result.action == WINNING else "which loses"
        console.print(
            f"  chose {game.show_action(state, result.action)}, {found}\n", highlight=False
        )
    print(result)
    verdict = "found" if result.action == WINNING else "did NOT find"
    print(f"\nThe search {verdict} the one action that wins, and expects the line above.")
    prove(game, game.play(BEST_PLAY, state))


def prove(game: uctree.Game, state: uctree.game.State) -> None:
    """Let a search end when it is certain who wins, and say so."""
    result = uctree.search(game, state, num_simulations=2_000_000, seed=1, solver=True)
    is_won = result.solved is not None and result.solved[0] == 1
    verdict = "proves that player 0 wins" if is_won else "did NOT prove that player 0 wins"
    print(
        f"Eight plies of best play later (5 2 4 4 4 3 5 3), solver=True {verdict}, with column "
        f"{game.show_action(state, result.action)}: {result.simulations:,} simulations."
    )


if __name__ == "__main__":
    main()
