"""Commands about networks: `train`, `report`, `export`; and networks as agents of the others."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from uctree import specs
from uctree.cli.app import INTERRUPTED, app
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn import Options, describe_options, kept

if TYPE_CHECKING:
    from uctree.arena.agents import AgentSource
    from uctree.evaluators import Evaluator
    from uctree.learn import Run
    from uctree.learn.training import Progress

PHASES = {"self-play": "games", "learning": "steps", "ladder": "ladder games"}


# --- options -------------------------------------------------------------------------------------


class _NotGiven:
    """Stands for an option that nobody gave; `none` can be given."""


NOT_GIVEN: Any = _NotGiven()


def _flags() -> type:
    """A record with every field of `Options`, for the command line."""
    kinds: dict[str, Any] = typing.get_type_hints(Options)
    fields = []
    for row in describe_options():
        shown = Parameter(help=row.description, show_default=_constant(str(row.default)))
        kind: Any = kinds[row.name]
        fields.append((row.name, Annotated[kind, shown], dataclasses.field(default=NOT_GIVEN)))
    # The module is stated because cyclopts takes records of `types`, the default, for built-in.
    record = dataclasses.make_dataclass(
        "Flags", fields, frozen=True, namespace={"__module__": __name__}
    )
    return Parameter(name="*")(record)


def _constant(text: str) -> Callable[[Any], str]:
    return lambda _: text


Flags: Any = _flags()
NO_FLAGS = Flags()


@contextlib.contextmanager
def needing_extras() -> Iterator[None]:
    """What is not installed, as a mistake of the user's that says what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "uctree").split(".")[0] == "uctree":
            raise
        raise UctreeError(str(error)) from error


# --- commands ------------------------------------------------------------------------------------


@app.command
def train(game: str, /, *, folder: Path, options: Flags = NO_FLAGS) -> int:
    """Train a network by self-play; Ctrl-C ends it, and the same command goes on.

    The folder keeps all of the run. Options that are not given are those it was begun with; only
    limits, workers and what is kept may be changed later. None, also written none, lets the game
    decide.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        folder: of the run; a new one, or one to go on with.
    """
    chosen = specs.read_game(game)
    given = {name: value for name, value in vars(options).items() if value is not NOT_GIVEN}
    with needing_extras():
        from uctree.learn import train as train_run

        try:
            with _display(chosen.name) as show:
                run = train_run(chosen, folder, progress=show, **given)
        except KeyboardInterrupt:
            print(f"uctree: interrupted; {_how_to_go_on(folder, chosen)}", file=sys.stderr)
            return INTERRUPTED
    print(_summary(run, game))
    return 0


def _how_to_go_on(folder: Path, game: Game) -> str:
    from uctree.learn import Run

    try:
        saved = Run.open(folder, game).iterations()
    except UctreeError:  # before anything was written
        saved = []
    last = f"the last checkpoint is of iteration {saved[-1]}; " if saved else ""
    return f"{last}the same command goes on with {folder}"


def _summary(run: Run, game: str) -> str:
    lines = [f"{run.folder}: iteration {run.iterations()[-1]}"]
    measured = run.metrics("ladder")
    for name, numbers in measured[-1]["games"].items() if measured else ():
        if "score" in numbers:
            low, high = numbers["score_interval"]
            lines.append(f"  score {numbers['score']:.3f} against {name} ({low:.3f} to {high:.3f})")
        else:
            mine, theirs = numbers["mean_return"], numbers["opponent_return"]
            lines.append(f"  mean return {mine:.4g}; {name} {theirs:.4g}")
    lines.append(f"look at it: uctree report {run.folder}")
    lines.append(f"play it: uctree play {game} --run {run.folder}")
    return "\n".join(lines)


@app.command
def report(
    run: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    game: str | None = None,
) -> None:
    """Write one HTML page about a run: whether it learned, how fast, and with which options.

    Args:
        run: its folder.
        output: the file; report.html in the folder by default.
        game: needed where it is not a built-in one, as file.py:name.
    """
    path = output or run / "report.html"
    with needing_extras():
        from uctree.learn.report import write_report

        write_report(_opened(run, game), path)
    print(f"uctree: wrote {path}", file=sys.stderr)


@app.command
def export(
    run: Path, path: Path, /, *, iteration: int | None = None, game: str | None = None
) -> None:
    """Write the network of a run as an ONNX file, for `uctree.learn.load_onnx` and others.

    Args:
        run: its folder.
        path: the file.
        iteration: of the checkpoint; the newest by default.
        game: needed where it is not a built-in one, as file.py:name.
    """
    with needing_extras():
        _opened(run, game).export_onnx(path, iteration)
    print(f"uctree: wrote {path}", file=sys.stderr)


def _opened(run: Path, game: str | None) -> Run:
    from uctree.learn import Run

    return Run.open(run, None if game is None else specs.read_game(game))


# --- the progress of a training ------------------------------------------------------------------


@contextlib.contextmanager
def _display(name: str) -> Iterator[Callable[[Progress], None]]:
    """What shows how far a training is: two bars in a terminal, else a line per iteration."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = BarColumn(bar_width=20), TextColumn("{task.description}", markup=False)
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    whole = bars.add_task(f"{name}: compiling", total=None)
    part = bars.add_task("", total=None)

    def show(now: Progress) -> None:
        bars.update(
            whole, total=now.max_iterations, description=_whole(now),
            completed=now.iteration - 1 if now.max_iterations else None,
        )  # fmt: skip
        bars.update(part, total=now.total, completed=now.done, description=_part(now))

    with bars:
        yield show


class _Lines:
    """Prints a line when an iteration has been learned from, and when it has been measured."""

    def __call__(self, now: Progress) -> None:
        if now.phase != "self-play" and now.done == now.total:
            print(f"{_whole(now)}; {_part(now)}", file=sys.stderr, flush=True)


def _whole(now: Progress) -> str:
    of = f" of {now.max_iterations:,}" if now.max_iterations else ""
    left = "" if now.seconds_left is None else f", {_duration(now.seconds_left)} left"
    return f"iteration {now.iteration:,}{of}, {_duration(now.seconds)}{left}; {now.games:,} games"


def _part(now: Progress) -> str:
    losses = ""
    if now.policy_loss is not None and now.value_loss is not None:
        losses = f"; losses: policy {now.policy_loss:.3f}, value {now.value_loss:.3f}"
    return (
        f"{now.done:,} of {now.total:,} {PHASES[now.phase]}; {now.games_per_second:.1f} games/s, "
        f"{now.simulations_per_second:,.0f} simulations/s{losses}"
    )


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds, for people.

    >>> _duration(75), _duration(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# --- networks elsewhere --------------------------------------------------------------------------


def load_network(run: Path, game: Game) -> tuple[Evaluator, int]:
    """What a run has learned, for a search of this game, and the iteration it is of."""
    with needing_extras():
        from uctree.learn import load

        learned = load(run, game)
        return learned.evaluator(), learned.checkpoint.iteration


def kept_network(game: Game) -> tuple[Evaluator, int] | None:
    """The network that comes with a game; None where there is none, or, with a hint, no extra."""
    folder = kept.kept_network(game)
    if folder is None:
        return None
    try:
        return load_network(folder, game)
    except UctreeError as error:
        print(f"A network comes with {game.name}, and cannot be used: {error}")
        return None


def agent_source(text: str, game: Game) -> AgentSource:
    """What an agent is made of; `network(run="RUN", simulations=200)` is one of a run.

    The newest checkpoint is the newest of now: a match that goes on later has the same opponents.
    """
    if ".py:" in text or specs.split_call(text)[0] != "network":
        return text
    with needing_extras():
        from uctree.learn.agents import network_agent, newest_iteration

        agent = network_agent(text)
        iteration = agent.iteration
        if iteration is None:
            iteration = newest_iteration(agent.run, game)
        return functools.partial(network_agent, text.strip(), iteration)
