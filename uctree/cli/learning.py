"""The commands `train`, `report` and `export`, and networks for other commands."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shlex
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
from uctree.learn import Options, describe_options, pretrained

if TYPE_CHECKING:
    from uctree.arena.agents import AgentSource
    from uctree.learn import Learned, Run
    from uctree.learn.training import Progress

PHASES = {
    "self-play": "games", "reanalysis": "positions searched again", "learning": "steps",
    "ladder": "ladder games",
}  # fmt: skip


# --- options -------------------------------------------------------------------------------------


class _NotGiven:
    """The default of every option, unlike None, which a user can give."""


NOT_GIVEN: Any = _NotGiven()


def _flags() -> type:
    """A record with every field of `Options`, for the command line."""
    kinds: dict[str, Any] = typing.get_type_hints(Options)
    fields = []
    for row in describe_options():
        shown = Parameter(help=row.description, show_default=_constant(str(row.default)))
        kind: Any = kinds[row.name]
        fields.append((row.name, Annotated[kind, shown], dataclasses.field(default=NOT_GIVEN)))
    # Without a module name, cyclopts takes the record for a built-in type.
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
    """Turn a missing package into a UctreeError that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "uctree").split(".")[0] == "uctree":
            raise
        raise UctreeError(str(error)) from error


# --- commands ------------------------------------------------------------------------------------


@app.command
def train(game: str, /, *, folder: Path, options: Flags = NO_FLAGS) -> int:
    """Train a network by self-play; Ctrl-C stops it, and the same command resumes.

    The folder holds the whole run. When a run is resumed, options that are not given are those it
    was started with; only limits, workers, checkpoint and ladder options may change. None, also
    written none, lets the game decide.

    Args:
        game: built-in name, name:arguments, or file.py:name; with --algorithm muzero also an
            environment, as gymnasium:CartPole-v1.
        folder: that of the run; a new one, or one to resume.
    """
    with needing_extras():
        from uctree.learn import environments

        named = environments.is_environment(game)
        chosen = environments.environment(game) if named else specs.read_game(game)
    given = {name: value for name, value in vars(options).items() if value is not NOT_GIVEN}
    with needing_extras():
        from uctree.learn import train as train_run

        try:
            with _display() as show:
                run = train_run(chosen, folder, progress=show, **given)
        except KeyboardInterrupt:
            print(f"uctree: interrupted; {_how_to_resume(folder, chosen)}", file=sys.stderr)
            return INTERRUPTED
    print(_summary(run, game))
    return 0


def _how_to_resume(folder: Path, game: Game) -> str:
    from uctree.learn import Run

    try:
        saved = Run.open(folder, game).iterations()
    except UctreeError:  # before anything was written
        saved = []
    last = f"the last checkpoint is of iteration {saved[-1]}; " if saved else ""
    return f"{last}the same command resumes {folder}"


def _summary(run: Run, game: str) -> str:
    from uctree.learn.metrics import sound_rows

    lines = [f"{run.folder}: iteration {run.iterations()[-1]}"]
    measured = sound_rows(run, "ladder")
    for name, numbers in measured[-1]["games"].items() if measured else ():
        if "score" in numbers:
            interval = numbers["score_interval"]
            ends = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
            lines.append(f"  score {numbers['score']:.3f} against {name}{ends}")
        else:
            mine, theirs = numbers["mean_return"], numbers["opponent_return"]
            lines.append(f"  mean return {mine:.4g}; {name} {theirs:.4g}")
    lines += _best_and_last(run, measured)
    folder, text = shlex.quote(str(run.folder)), shlex.quote(game)
    own = f" --game {text}" if specs.is_file(game) else ""
    lines.append(f"write a report: uctree report {folder}{own}")
    if run.game.environment is None:
        lines.append(f"play against it: uctree play {text} --run {folder}")
    return "\n".join(lines)


def _best_and_last(run: Run, measured: list[dict[str, Any]]) -> list[str]:
    """A line that names the strongest checkpoint, if a later one is weaker."""
    strengths = {row["iteration"]: row["strength"] for row in measured if row["strength"]}
    best, last = run.best_iteration(), max(strengths, default=None)
    if best is None or last is None or best == last or best not in strengths:
        return []
    return [
        f"  the strongest checkpoint is of iteration {best} (strength {strengths[best]:.4g}), the "
        f"last one of iteration {last} ({strengths[last]:.4g}); both are kept"
    ]


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
        run: the folder of the run.
        output: the file; report.html in the folder by default.
        game: file.py:name; needed if the game is not a built-in one.
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
    """Write the network of a run as an ONNX file, for `learn.load_onnx` and other programs.

    Args:
        run: the folder of the run.
        path: the file.
        iteration: that of the checkpoint; by default the newest.
        game: file.py:name; needed if the game is not a built-in one.
    """
    with needing_extras():
        _opened(run, game).export_onnx(path, iteration)
    print(f"uctree: wrote {path}", file=sys.stderr)


def _opened(run: Path, game: str | None) -> Run:
    from uctree.learn import Run

    return Run.open(run, None if game is None else specs.read_game(game))


# --- the progress of a training ------------------------------------------------------------------


@contextlib.contextmanager
def _display() -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: two bars in a terminal, otherwise a line per iteration."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = BarColumn(bar_width=20), TextColumn("{task.description}", markup=False)
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    run_bar = bars.add_task("", total=None)
    phase_bar = bars.add_task("", total=None)

    def show(now: Progress) -> None:
        bars.start()  # not before: the engine may say that it compiles
        bars.update(
            run_bar, total=now.max_iterations, description=_run_line(now),
            completed=now.iteration - 1 if now.max_iterations else None,
        )  # fmt: skip
        bars.update(phase_bar, total=now.total, completed=now.done, description=_phase_line(now))

    try:
        yield show
    finally:
        bars.stop()


class _Lines:
    """Prints a line after the learning of an iteration, and after its measurement."""

    def __call__(self, now: Progress) -> None:
        if now.phase != "self-play" and now.done == now.total:
            print(f"{_run_line(now)}; {_phase_line(now)}", file=sys.stderr, flush=True)


def _run_line(now: Progress) -> str:
    of = f" of {now.max_iterations:,}" if now.max_iterations else ""
    left = "" if now.seconds_left is None else f", {_duration(now.seconds_left)} left"
    return f"iteration {now.iteration:,}{of}, {_duration(now.seconds)}{left}; {now.games:,} games"


def _phase_line(now: Progress) -> str:
    losses = ""
    if now.policy_loss is not None and now.value_loss is not None:
        losses = f"; losses: policy {now.policy_loss:.3f}, value {now.value_loss:.3f}"
    return (
        f"{now.done:,} of {now.total:,} {PHASES[now.phase]}; {now.games_per_second:.1f} games/s, "
        f"{now.simulations_per_second:,.0f} simulations/s{losses}"
    )


def _duration(seconds: float) -> str:
    """A duration as hours, minutes and seconds.

    >>> _duration(75), _duration(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# --- networks for other commands -----------------------------------------------------------------


def load_network(run: Path, game: Game) -> Learned:
    """The network of a run's newest checkpoint; an error if it cannot be used."""
    with needing_extras():
        from uctree.learn import load

        learned = load(run, game)
        learned.evaluator()
        return learned


def load_pretrained(game: Game) -> Learned | None:
    """The pretrained network of a game; None if there is none.

    If the extra `learn` is not installed, it prints how to install it, and returns None.
    """
    folder = pretrained.pretrained_network(game)
    if folder is None:
        return None
    try:
        return load_network(folder, game)
    except UctreeError as error:
        print(f"The pretrained network of {game.name} cannot be used: {error}")
        return None


def agent_source(text: str, game: Game) -> AgentSource:
    """The source of an agent; `network(run="RUN", num_simulations=200)` plays with a run's network.

    The newest checkpoint is looked up now, so that a match that is resumed has the same agents.
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
