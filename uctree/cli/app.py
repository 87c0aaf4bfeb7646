"""Shared by all commands: the program, its options, progress lines and tables."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import Field, asdict, dataclass, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from cyclopts import App, Parameter

import uctree
from uctree import specs
from uctree.engine.options import Options
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.pages.columns import aligned

DEFAULT_SECONDS = 1.0  # of a search without a budget

app = App(
    name="uctree",
    version=f"uctree {uctree.__version__}",
    help="Monte Carlo tree search for games written in plain Python.\n\n"
    "GAME is a built-in name (connect_four), a name with arguments (nim:heaps=(3,4,5)), or a game "
    "of yours (my_game.py:name, my_game.py:factory:rows=3). A rule has its arguments as in Python: "
    "\"puct(c=2, fpu='parent')\".\n\n"
    "To begin: uctree games, uctree play connect_four, uctree search connect_four, "
    "uctree new my_game.",
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


INTERRUPTED = 130  # the exit status after Ctrl-C


def command_names() -> list[str]:
    """The names of all commands, in the order of the alphabet."""
    return sorted(name for name in app if not name.startswith("-"))


# --- options -------------------------------------------------------------------------------------

Flag = Annotated[bool, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Budget:
    """How long to search."""

    num_simulations: int | None = None
    """the number of simulations."""
    seconds: float | None = None
    """the time limit in seconds, without compilation."""


# What the command line says in place of the help of `Options`, or adds to it.
_EXAMPLES = {
    "selection": "puct(c=2)",
    "root_selection": "gumbel(num_considered=8)",
    "root_noise": "dirichlet()",
    "backup": "maximum(min_visits=2)",
    "evaluator": "playout(num_playouts=4)",
    "widening": "widening(k=2)",
    "proposal": "quadratic()",
    "refine": "best_replies()",
    "chance": "outcome_widening(k=1)",
    "stop": "decided()",
    "choice": "lcb",
    "max_memory": "500MB",
}
_HELP = {
    "evaluator": "the value of a leaf; one random playout.",
    "root_noise": "noise in the root's priors.",
    "widening": "opens edges one by one.",
    "proposal": "how actions that are vectors are proposed; at random.",
    "refine": "how such actions are improved during the search; not at all.",
    "chance": "how outcomes are taken: sample, proportional (the one most overdue), or a rule.",
    "stop": "when to end before the budget is used up; may be repeated.",
    "choice": "how the final action is chosen; the most visited.",
    "max_memory": "the memory limit of the tree; the least visited parts are pruned.",
}
_KINDS: dict[str, Any] = {
    "opponents": Literal["maxn", "paranoid"],
    "ties": Literal["first", "random"],
    "parallel": Literal["auto", "root", "tree"],
    "in_flight": Literal["virtual", "unobserved"],
    "threads": int,
    "max_memory": str,
}
# Options of `search` that the command line does not have, each for a reason.
LEFT_OUT = {
    "leaves": "for evaluators in Python, and a command takes compiled ones",
    "check": "a switch that is on; --no-check turns it off",
}


def _parameter(option: Field[Any]) -> tuple[str, Any, Any]:
    """Name, type and default of an option of `search` on the command line."""
    name = option.name
    text = _HELP.get(name, option.metadata["help"])
    if name in _EXAMPLES:
        text = f'{text} For example "{_EXAMPLES[name]}".'
    shown = Parameter(help=text)
    if isinstance(option.default, bool):
        return name, Annotated[Flag, shown], False
    if name == "stop":
        several = Parameter(help=text, negative_iterable="")
        return name, Annotated[list[str] | None, several], None
    kind = str if name in specs.RULES else _KINDS[name]
    return name, Annotated[kind | None, shown], None


def _method() -> type:
    """A record with the options of `search`, as far as they can be written in a command."""
    c = "the exploration constant of UCB1 (0.5 by default)."
    unchecked = "do not play a few episodes in plain Python first."
    found = [
        ("c", Annotated[float | None, Parameter(help=c)], None),
        *(_parameter(option) for option in fields(Options) if option.name not in LEFT_OUT),
        ("no_check", Annotated[Flag, Parameter(help=unchecked)], False),
    ]
    # Without a module name, cyclopts takes the record for a built-in type.
    record = make_dataclass("Method", found, frozen=True, namespace={"__module__": __name__})
    return Parameter(name="*")(record)


if TYPE_CHECKING:
    Method: TypeAlias = Any
else:
    Method = _method()

NO_BUDGET = Budget()
NO_METHOD = Method()


def checked_budget(budget: Budget, default: Budget) -> Budget:
    """The budget, or the default if none was given; UctreeError for a wrong one."""
    if budget.num_simulations is not None and budget.num_simulations < 1:
        raise UctreeError(f"--num-simulations must be at least 1; got {budget.num_simulations}")
    if budget.seconds is not None and not budget.seconds > 0:
        raise UctreeError(f"--seconds must be above 0; got {budget.seconds:g}")
    return default if budget == NO_BUDGET else budget


def search_options(method: Method) -> dict[str, Any]:
    """The options of `uctree.search` that were given."""
    chosen = asdict(method).items()
    given = {name: value for name, value in chosen if value is not None and value is not False}
    if given.pop("no_check", False):
        given["check"] = False
    c = given.pop("c", None)
    if c is not None and "selection" in given:
        raise UctreeError("--c is the constant of UCB1; give --c or --selection, not both")
    if c is not None and not (math.isfinite(c) and c >= 0):
        raise UctreeError(f"--c must be a number of at least 0; got {c:g}")
    for name in [name for name in specs.RULES if name in given]:
        text = given[name]
        made = [
            specs.read_option(name, each) for each in ([text] if isinstance(text, str) else text)
        ]
        given[name] = made[0] if isinstance(text, str) else made
    if c is not None:
        given["selection"] = uctree.selection.ucb1(c=c)
    return given


@contextlib.contextmanager
def option_errors() -> Iterator[None]:
    """Raise UctreeError in this block for options that conflict with each other or the game."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, UctreeError) or specs.place(error):
            raise
        raise UctreeError(str(error)) from error


# --- searching -----------------------------------------------------------------------------------


def search_with_progress(
    game: Game, state: np.record, budget: Budget, *, seed: int, options: dict[str, Any]
) -> uctree.SearchResult:
    """The result of a search, with a progress line if stderr is a terminal."""
    with _progress_line(budget) as progress, option_errors():
        return uctree.search(
            game,
            state,
            num_simulations=budget.num_simulations,
            seconds=budget.seconds,
            seed=seed,
            progress=progress,
            **options,
        )


@contextlib.contextmanager
def _progress_line(budget: Budget) -> Iterator[Callable[[uctree.Progress], None] | None]:
    """The `progress` argument of a search; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn()
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    def show(progress: uctree.Progress) -> None:
        bar.start()  # not before: the engine may say that it compiles
        by_count = progress.simulations / (budget.num_simulations or math.inf)
        by_time = progress.seconds / (budget.seconds or math.inf)
        text = (
            f"{progress.simulations:,} simulations, "
            f"{progress.simulations / max(progress.seconds, 1e-9):,.0f}/s, "
            f"best so far {_most_visited(progress.tree)}"
        )
        bar.update(task, total=1.0, completed=max(by_count, by_time), description=text)

    try:
        yield show
    finally:
        bar.stop()


def _most_visited(tree: uctree.Tree) -> str:
    """The text of the most visited action at the root."""
    root = tree.root
    if len(root.edges) == 0:
        return "-"
    best = int(np.argmax(tree.edge_visits(root.edges)))
    return tree.game.show_action(root.state, int(tree.edges["action"][root.edges[best]]))


@contextlib.contextmanager
def counting_bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """A function that shows (done, total, text); None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False)
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    def show(done: int, total: int, text: str) -> None:
        bar.start()  # not before: the engine may say that it compiles
        bar.update(task, total=total, completed=done, description=text)

    try:
        yield show
    finally:
        bar.stop()


# --- files ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raise UctreeError for an error with a file in this block."""
    try:
        yield
    except OSError as error:
        raise UctreeError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UctreeError(f"{path} is not text in UTF-8: {error}") from error
    except ValueError as error:
        raise UctreeError(str(error)) from error


def load_tree(path: Path, game: Game | None) -> uctree.Tree:
    with file_errors(path):
        return uctree.Tree.load(path, game=game)


# --- printing ------------------------------------------------------------------------------------


def print_table(rows: list[list[str]], left: tuple[int, ...]) -> None:
    """Print rows in columns; those in `left` are left-aligned."""
    print("\n".join(aligned(rows, left)))


def size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:.0f} kB"


def count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
