"""Run: a folder that holds all of a training, and is always in a state to go on from.

    runs/ttt/
      options.json      game and options; sealed
      metrics.jsonl     one JSON object per line, as training goes on
      checkpoints/      one folder per checkpoint, see `uctree.learn.checkpoints`
      replay/           episodes of self-play, see `uctree.learn.replay`
      lock              held by the process that trains

Whatever is written comes into being whole, so that the process may be killed at any moment. What is
found damaged is left out, told in `Run.warnings`, and replaced by what was there before it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import msgspec

import uctree
from uctree import specs, treefile
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn import checkpoints, files
from uctree.learn.board import TensorBoard
from uctree.learn.checkpoints import Checkpoint, Generator, Weights
from uctree.learn.extras import load_module
from uctree.learn.options import (
    CHANGEABLE,
    DECIDED_BY_GAME,
    Options,
    check_learnable,
    fill_in,
    read_options,
)
from uctree.learn.replay import Replay

if TYPE_CHECKING:
    import torch

    from uctree.evaluators import Evaluator

FORMAT = "uctree run"
VERSION = 1


# --- what was learned ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """A network as it was at a checkpoint, for use in searches."""

    game: Game
    options: Options
    checkpoint: Checkpoint
    module: torch.nn.Module | None = None  # a network of one's own, which cannot be built from here

    def __repr__(self) -> str:
        return f"<Learned: {self.game.name}, iteration {self.checkpoint.iteration}>"

    def network(self) -> torch.nn.Module:
        """The network with the averaged weights, where there are some, else with the last."""
        module = self.module
        if module is None:
            module = load_module("uctree.learn.network").build(self.checkpoint.network)
        assert module is not None
        checkpoints.load_weights(self.checkpoint.best_weights, module, "the network of the run")
        return module.eval()

    def evaluator(self, **options: Any) -> Evaluator:
        """The network as what values leaves; options as in `uctree.learn.evaluator`."""
        given = {
            "backend": "torch" if self.options.inference == "torch" else "onnx",
            "symmetries": self.options.evaluation_symmetries,
        } | options
        make = load_module("uctree.learn.inference").evaluator
        found: Evaluator = make(self.network(), self.game, **given)
        return found

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the network as an ONNX file, for `uctree.learn.load_onnx` and other programs."""
        load_module("uctree.learn.inference").export_onnx(self.network(), self.game, path)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the network alone as a folder that `load` reads, without what training needs.

        The folder is new, empty, or one that this has written before, which is replaced.
        """
        there = Path(folder)
        if there.exists() and not (there / "manifest.json").exists() and any(there.iterdir()):
            raise UctreeError(
                f"{there} is not empty, and holds no network that could be replaced; give a new "
                "folder"
            )
        kept = Checkpoint(
            iteration=self.checkpoint.iteration, weights=self.checkpoint.best_weights,
            averaged=None, optimizer={}, settings={}, counters=self.checkpoint.counters,
            generators={}, replay_end=0, network=self.checkpoint.network,
            game=self.checkpoint.game, options=self.checkpoint.options,
        )  # fmt: skip
        checkpoints.write(there, kept)


def load(
    path: str | os.PathLike[str], game: Game | None = None, network: torch.nn.Module | None = None
) -> Learned:
    """What was learned: of a run's folder the newest checkpoint, or the one of this folder.

    Args:
        game: needed where it is not a built-in one.
        network: needed where it is a module of one's own; its weights are replaced.
    """
    folder = Path(path)
    if not (folder / "manifest.json").exists():
        return Run.open(folder, game).learned(network=network)
    checkpoint = checkpoints.read(folder)
    return _learned(folder, checkpoint, game, network)


def _learned(
    folder: Path, checkpoint: Checkpoint, game: Game | None, network: torch.nn.Module | None
) -> Learned:
    game = _game_of(folder, checkpoint.game, game)
    return Learned(game, read_options(checkpoint.options), checkpoint, network)


def _game_of(folder: Path, description: dict[str, Any], game: Game | None) -> Game:
    """The game of a run, made again where none is given; UctreeError where it is another one."""
    if game is None:
        spec = description.get("spec")
        do = "pass game= (on the command line: name it as file.py:name)"
        if not isinstance(spec, str):
            raise UctreeError(f"{folder} is of {description.get('name')!r}, not one of ours; {do}")
        try:
            game = specs.read_built_in(spec)
        except Exception as error:  # arguments from a file can be anything
            raise UctreeError(f"{folder}: cannot make the game {spec!r} ({error}); {do}") from error
    differences = treefile.game_differences(description, game, "in the folder", "in the game")
    if differences:
        raise UctreeError(
            f"{folder} is a run of another game than {game.name}: {'; '.join(differences)}. Give "
            "another folder, or the game it was begun with"
        )
    return game


# --- the run -------------------------------------------------------------------------------------


class Run:
    """A training and its folder; `begin` it to train, `open` it to look and to use."""

    def __init__(
        self, folder: Path, game: Game, options: Options, warnings: list[str],
        lock: IO[bytes] | None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.game = game
        self.options = options
        self.warnings = warnings  # what is damaged and left out, in words
        self.own_network: torch.nn.Module | None = None  # that it was trained with, if not ours
        self._lock = lock

    @classmethod
    def open(cls, folder: str | os.PathLike[str], game: Game | None = None) -> Run:
        """The run of a folder, to look at; nothing is written, and another process may train.

        Args:
            game: needed where it is not a built-in one.
        """
        folder = Path(folder)
        found, warnings = _read_header(folder)
        if found is None:
            raise UctreeError(
                f"{folder} is not the folder of a run: it has no options.json; those are written "
                "by uctree train and uctree.learn.train"
            )
        game = _game_of(folder, found["game"], game)
        return cls(folder, game, read_options(found["options"]), warnings, None)

    @classmethod
    def begin(cls, folder: str | os.PathLike[str], game: Game, **given: Any) -> Run:
        """The run of a folder, to train in: a new one, or the one that is there to go on with.

        Options that are not given are those that the run was begun with. Given ones have to agree
        with them, but for those that `CHANGEABLE` names.
        """
        folder = Path(folder)
        wanted = read_options(given)
        check_learnable(game)
        if not (folder / "options.json").exists():
            fill_in(wanted, game)  # before anything is written: do they go together?
        with files.told(folder, "opening the run"):
            folder.mkdir(parents=True, exist_ok=True)
            _check_ours(folder)
            lock = files.lock(folder)
        try:
            with files.told(folder, "opening the run"):
                found, warnings = _read_header(folder)
                files.sweep(folder)
                files.sweep(folder / "checkpoints")
                if found is None:
                    options = fill_in(wanted, game)
                else:
                    _game_of(folder, found["game"], game)
                    options = _agreed(folder, game, read_options(found["options"]), wanted, given)
                run = cls(folder, game, options, warnings, lock)
                if found is None or warnings or found["options"] != msgspec.to_builtins(options):
                    run._write_header()
                run._mend_metrics()
            for text in warnings:
                run.log("damaged", text=text)
        except BaseException:
            lock.close()
            raise
        return run

    def _write_header(self) -> None:
        files.write_sealed(self.folder / "options.json", {
            "format": FORMAT, "version": VERSION, "uctree": uctree.__version__,
            "game": treefile.describe_game(self.game),
            "options": msgspec.to_builtins(self.options),
        })  # fmt: skip

    def close(self) -> None:
        """Let another process train in the folder; what was learned can still be used."""
        if "replay" in self.__dict__:
            self.replay.close()
        board = self.__dict__.get("board")  # it is opened by the first line that is logged
        if board is not None:
            board.close()
        if self._lock is not None:
            self._lock.close()
        self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {self.game.name}, {len(self.iterations())} checkpoints>"

    @property
    def is_training(self) -> bool:
        """Whether this process may write to the folder."""
        return self._lock is not None

    def _check_training(self) -> None:
        if not self.is_training:
            raise UctreeError(f"{self.folder} was opened to look at; Run.begin opens it to train")

    @functools.cached_property
    def replay(self) -> Replay:
        """The episodes of the run."""
        return Replay(
            self.folder / "replay", self.game, read_only=not self.is_training, report=self._report
        )

    # Metrics.

    @functools.cached_property
    def board(self) -> TensorBoard | None:
        """What shows metrics to TensorBoard, where the options ask for it."""
        return TensorBoard(self.folder / "tensorboard") if self.options.tensorboard else None

    @property
    def _metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    def _mend_metrics(self) -> None:
        """Cut off what a killed process left of a line."""
        with open(self._metrics_path, "a+b") as file:
            file.seek(0)
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)

    def log(self, kind: str, **numbers: Any) -> None:
        """Add a line to metrics.jsonl: its kind, the time in seconds since 1970, and numbers.

        Args:
            numbers: what JSON can hold; `iteration` says what the line is about.
        """
        self._check_training()
        row = {"kind": kind, "time": time.time()} | numbers
        line = json.dumps(row, default=files.plain).encode() + b"\n"
        path = self._metrics_path
        with files.told(path, "adding a line"), open(path, "ab", buffering=0) as file:
            files.write_at(file, file.tell(), line)
        if self.board is not None:
            self.board.write(row)

    def metrics(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, without those that were made void by going back.

        A run that goes on from the checkpoint of iteration k does the iterations after k again.
        """
        rows: list[dict[str, Any]] = []
        for row in self._read_metrics():
            if row["kind"] == "resumed":
                last = row.get("iteration", 0)
                rows = [each for each in rows if each.get("iteration", 0) <= last]
            rows.append(row)
        return [row for row in rows if kind in (None, row["kind"])]

    def _read_metrics(self) -> Iterator[dict[str, Any]]:
        try:
            content = self._metrics_path.read_bytes()
        except FileNotFoundError:
            return
        complete = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), start=1):
            try:
                yield _row(line)
            except (ValueError, RecursionError) as error:
                self._report(
                    f"{self._metrics_path}, line {number} is damaged and left out: {error}"
                )

    def _report(self, text: str) -> None:
        """Note what is damaged, in the metrics too."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        if self.is_training:
            self.log("damaged", text=text)

    # Checkpoints.

    def iterations(self) -> list[int]:
        """The iterations there are checkpoints of, oldest first."""
        return sorted(
            int(path.name)
            for path in (self.folder / "checkpoints").glob("*")
            if path.name.isdecimal() and path.name.isascii()
        )

    def _checkpoint_path(self, iteration: int) -> Path:
        return self.folder / "checkpoints" / f"{iteration:06}"

    def save(
        self, iteration: int, *, network: Weights, averaged: Weights | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        counters: Mapping[str, int | float] | None = None,
        generators: Mapping[str, Generator] | None = None, replay_end: int = 0,
    ) -> Checkpoint:  # fmt: skip
        """Write a checkpoint, and delete those that are not to be kept any longer.

        Args:
            network: a module, or its tensors by name.
            counters: what is counted from the beginning of the run.
            replay_end: the cursor of the replay that training has come to.
        """
        self._check_training()
        if "replay" in self.__dict__:
            self.replay.sync()  # first, so that no checkpoint counts an episode that is not there
        tensors, settings = (
            ({}, {}) if optimizer is None else checkpoints.optimizer_state(optimizer)
        )
        states = {
            name: checkpoints.generator_state(each) for name, each in (generators or {}).items()
        }
        checkpoint = Checkpoint(
            iteration=iteration, weights=checkpoints.arrays_of(network),
            averaged=None if averaged is None else checkpoints.arrays_of(averaged),
            optimizer=tensors, settings=settings, counters=dict(counters or {}),
            generators=states, replay_end=replay_end, network=_described(network),
            game=treefile.describe_game(self.game), options=msgspec.to_builtins(self.options),
        )  # fmt: skip
        written = checkpoints.write(self._checkpoint_path(iteration), checkpoint)
        self._drop_old()
        return written

    def _drop_old(self) -> None:
        """Keep the newest checkpoints, those of every so many iterations, and what they need."""
        options, iterations = self.options, self.iterations()
        newest = iterations[-options.keep_checkpoints :]
        with contextlib.suppress(OSError, UctreeError):  # it will be tried again
            for iteration in iterations[: -len(newest)]:
                if iteration % options.keep_every:
                    files.delete_folder(self._checkpoint_path(iteration))
            if "replay" in self.__dict__:
                paths = map(self._checkpoint_path, newest)
                end = min(map(checkpoints.read_replay_end, paths))
                self.replay.drop_before(end - (options.replay_window or end))

    def checkpoint(self, iteration: int | None = None) -> Checkpoint | None:
        """The checkpoint of an iteration; None for the newest one that is whole, if there is one.

        One that is damaged is told in `warnings`, and the one before it is taken.
        """
        if iteration is not None:
            return checkpoints.read(self._checkpoint_path(iteration))
        for each in reversed(self.iterations()):
            try:
                return checkpoints.read(self._checkpoint_path(each))
            except UctreeError as error:
                self._report(f"checkpoint {each} is damaged and left out: {error}")
        return None

    def resume(
        self, *, network: Weights, averaged: Weights | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        generators: Mapping[str, Generator] | None = None,
    ) -> Checkpoint | None:  # fmt: skip
        """Give all this the state of the newest whole checkpoint; None where there are none yet.

        Checkpoints after it are damaged; they are set aside as `NNNNNN.damaged`. UctreeError where
        all are damaged.
        """
        self._check_training()
        checkpoint = self.checkpoint()
        if checkpoint is None and self.iterations():
            raise UctreeError(
                f"no checkpoint of {self.folder} is whole: {'; '.join(self.warnings)}. Restore one "
                "from another copy, or give another folder to begin anew"
            )
        iteration = 0 if checkpoint is None else checkpoint.iteration
        if checkpoint is not None:
            checkpoint.load_into(
                network=network, averaged=averaged, optimizer=optimizer, generators=generators
            )
            if checkpoint.replay_end > self.replay.end:
                self._report(
                    f"{self.replay.folder} has {self.replay.end} positions, and training had seen "
                    f"{checkpoint.replay_end}: those at the end are lost"
                )
            with files.told(self.folder, "setting damaged checkpoints aside"):
                self._set_aside(after=iteration)
        if checkpoint is not None or self._metrics_path.stat().st_size:
            self.log("resumed", iteration=iteration)
        return checkpoint

    def _set_aside(self, after: int) -> None:
        for iteration in self.iterations():
            if iteration > after:
                path = self._checkpoint_path(iteration)
                aside = path.with_name(f"{path.name}.damaged")
                if aside.exists():
                    files.delete_folder(aside)
                os.replace(path, aside)

    # What was learned.

    def learned(
        self, iteration: int | None = None, network: torch.nn.Module | None = None
    ) -> Learned:
        """What was learned up to an iteration, or up to now.

        Args:
            network: where it is a module of one's own, one like it, whose weights are replaced.
                What `train` returns has a copy of that which was trained.
        """
        if network is None and self.own_network is not None:
            network = copy.deepcopy(self.own_network)
        checkpoint = self.checkpoint(iteration)
        if checkpoint is None:
            why = f" that is whole: {'; '.join(self.warnings)}" if self.warnings else " yet"
            raise UctreeError(f"{self.folder} has no checkpoint{why}; train on until there is one")
        return _learned(self.folder, checkpoint, self.game, network)

    def network(
        self, iteration: int | None = None, network: torch.nn.Module | None = None
    ) -> torch.nn.Module:
        """The network of the newest checkpoint, or of one of before; arguments as in `learned`."""
        return self.learned(iteration, network).network()

    def evaluator(
        self, iteration: int | None = None, network: torch.nn.Module | None = None, **options: Any
    ) -> Evaluator:
        """That network as what values leaves; options as in `uctree.learn.evaluator`."""
        return self.learned(iteration, network).evaluator(**options)

    def export_onnx(
        self, path: str | os.PathLike[str], iteration: int | None = None,
        network: torch.nn.Module | None = None,
    ) -> None:  # fmt: skip
        """Write that network as an ONNX file."""
        self.learned(iteration, network).export_onnx(path)


def _row(line: bytes) -> dict[str, Any]:
    """A line of metrics.jsonl; ValueError where it is not one."""
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        raise ValueError("it has no kind")
    if not isinstance(row.get("iteration", 0), int):
        raise ValueError(f"its iteration is {row['iteration']!r}")
    return row


def new_network(game: Game, options: Options) -> torch.nn.Module:
    """The untrained network that a run begins with."""
    module = load_module("uctree.learn.network")
    sizes = {"width": options.network_width, "depth": options.network_depth}
    make = getattr(module, options.network or "default_network")
    given = {name: size for name, size in sizes.items() if size is not None}
    network: torch.nn.Module = make(game, seed=options.seed, **given)
    return network


def _described(network: Weights) -> dict[str, Any]:
    if isinstance(network, Mapping):
        return {"kind": "own", "name": "tensors by name"}
    description: dict[str, Any] = load_module("uctree.learn.network").describe(network)
    return description


def _read_header(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Game and options of a run, and what is damaged; None where the folder holds no run.

    A checkpoint has them, too: the newest that is whole takes the place of a damaged options.json.
    """
    path = folder / "options.json"
    has_checkpoints = any((folder / "checkpoints").glob("[0-9]*"))
    try:
        found = files.read_sealed(path)
    except OSError as error:
        if not has_checkpoints:
            return None, []
        told = f"{path}: {error.strerror}"
    except UctreeError as error:
        told = str(error)
    else:
        if found.get("format") != FORMAT or found.get("version") != VERSION:
            raise UctreeError(
                f"{path} has the format {found.get('format')!r}, version "
                f"{found.get('version')!r}; this uctree reads {FORMAT!r}, version {VERSION}. Use "
                "the uctree that wrote it"
            )
        return found, []
    for each in sorted((folder / "checkpoints").glob("[0-9]*"), reverse=True):
        with contextlib.suppress(UctreeError):
            checkpoint = checkpoints.read(each)
            text = f"{told}; game and options are those of checkpoint {checkpoint.iteration}"
            return {"game": checkpoint.game, "options": checkpoint.options}, [text]
    raise UctreeError(
        f"{told}, and no checkpoint tells what it said; restore it, or give another folder"
    )


def _check_ours(folder: Path) -> None:
    """Refuse to begin a run in a folder that holds something else."""
    if (folder / "options.json").exists():
        return
    own = {"lock", "metrics.jsonl", "replay", "checkpoints", "report.html", "tensorboard"}
    others = [
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in own and not path.name.startswith(files.TEMPORARY)
    ]
    if others:
        raise UctreeError(
            f"{folder} holds no run, and is not empty: {', '.join(others[:5])}; give a new folder, "
            "or that of a run to go on with"
        )


def _agreed(
    folder: Path, game: Game, saved: Options, wanted: Options, given: dict[str, Any]
) -> Options:
    """The options to go on with; UctreeError where given ones are not those of the folder."""
    differences, changes = [], {}
    for name in given:
        before, now = getattr(saved, name), getattr(wanted, name)
        if name in CHANGEABLE:
            changes[name] = now
        elif now != before and not (now is None and name in DECIDED_BY_GAME):
            differences.append(f"{name} is {before!r} in the folder and {now!r} now")
    if differences:
        raise UctreeError(
            f"{folder} was begun with other options: {'; '.join(differences)}. Leave them out to "
            "go on with those of the folder, or give another folder"
        )
    return fill_in(msgspec.structs.replace(saved, **changes), game)
