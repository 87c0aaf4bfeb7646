"""Run: a folder with everything of a training, from which training can resume at any time.

    runs/ttt/
      options.json      game and options, with a checksum
      metrics.jsonl     one JSON object per line
      checkpoints/      one folder per checkpoint, see `uctree.learn.checkpoints`
      replay/           episodes of self-play, see `uctree.learn.replay`
      lock              held by the process that trains

All writes are atomic, so the process may be killed at any moment. Damaged files are left out and
listed in `Run.warnings`; the version before them is used.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

import uctree
from uctree import mcts, specs
from uctree.engine import interrupts
from uctree.engine.identity import describe_game, game_differences
from uctree.engine.jsontext import json_text, parse_json
from uctree.errors import UctreeError
from uctree.game import Game, State
from uctree.learn import checkpoints, files
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
from uctree.learn.replay import Replay, positions_schema
from uctree.learn.sequences import reanalysed_schema, sequence_schema
from uctree.learn.tensorboard_writer import TensorBoardWriter
from uctree.result import SearchResult
from uctree.views import local

if TYPE_CHECKING:
    import torch

    from uctree.evaluators import Evaluator

FORMAT = "uctree run"
VERSION = 1
MOST_WARNINGS = 100  # the others say nothing new


# --- trained networks ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """The network of a checkpoint, for use in searches."""

    game: Game
    options: Options
    checkpoint: Checkpoint
    module: torch.nn.Module | None = None  # for a custom module, which cannot be rebuilt

    def __repr__(self) -> str:
        return f"<Learned: {self.game.name}, iteration {self.checkpoint.iteration}>"

    def network(self) -> torch.nn.Module:
        """The network with its averaged weights, or the last ones if weights are not averaged."""
        module = self.module
        if module is None:
            modules = load_module("uctree.learn.modules")
            outline = modules.outline(self.checkpoint.network)
            # Before memory is allocated: a manifest may ask for any size.
            checkpoints.check_fit(self.checkpoint.best_weights, outline, "the network of the run")
            module = modules.build(self.checkpoint.network)
        assert module is not None
        checkpoints.load_weights(self.checkpoint.best_weights, module, "the network of the run")
        return module.eval()

    def evaluator(self, **options: Any) -> Evaluator:
        """The network as an evaluator; options as in `uctree.learn.evaluator`."""
        backend = "torch" if self.options.inference == "torch" else "onnx"
        if self.is_model:
            return self._model_evaluator(**{"backend": backend} | options)
        given = {"backend": backend, "symmetries": self.options.evaluation_symmetries} | options
        make = load_module("uctree.learn.inference").evaluator
        found: Evaluator = make(self.network(), self.game, **given)
        return found

    @property
    def is_model(self) -> bool:
        """Whether this is a learned model, which is searched instead of the game's rules."""
        return self.options.algorithm == "muzero"

    def _model_evaluator(self, *, backend: str, leaves: int = 1, device: str = "cpu") -> Evaluator:
        inference = load_module("uctree.learn.model_inference")
        cursors = self.checkpoint.learning.get("cursors")
        export = inference.export_model(
            self.network(), self.game, backend=backend, ends=self.options.learned_ends,
            rotates=cursors is None or bool(cursors[2]),
        )  # fmt: skip
        found: Evaluator = export.evaluator(self.game, leaves=leaves, device=device)
        return found

    def search(
        self, state: State | None = None, *, num_simulations: int | None = None, seed: int = 0
    ) -> SearchResult:
        """The result of a search with the network, or in the learned model, without noise.

        Args:
            state: the start of the game if omitted.
            num_simulations: the budget; that of training if omitted.
        """
        budget = num_simulations or self.options.num_simulations
        if self.is_model:
            found: SearchResult = load_module("uctree.learn.model_search").search_model(
                self.game, self.evaluator(), self.options, state, num_simulations=budget, seed=seed
            )
            return found
        return mcts.search(
            self.game, state, num_simulations=budget, seed=seed, evaluator=self.evaluator()
        )

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the network as an ONNX file, for `uctree.learn.load_onnx` and other programs.

        A learned model becomes two files, PATH.initial.onnx and PATH.recurrent.onnx.
        """
        if self.is_model:
            inference = load_module("uctree.learn.model_inference")
            inference.export_onnx_model(self.network(), self.game, path)
            return
        load_module("uctree.learn.inference").export_onnx(self.network(), self.game, path)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the network alone to a folder that `load` reads, without the state of training.

        The folder must be new, empty, or written by this method; then it is replaced.
        """
        target = Path(folder)
        if target.exists() and not (target / "manifest.json").exists() and any(target.iterdir()):
            raise UctreeError(
                f"{target} is not empty and holds no saved network; choose a new folder"
            )
        weights_only = Checkpoint(
            iteration=self.checkpoint.iteration, weights=self.checkpoint.best_weights,
            averaged=None, optimizer={}, settings={}, counters=self.checkpoint.counters,
            generators={}, replay_end=0, network=self.checkpoint.network,
            game=self.checkpoint.game, options=self.checkpoint.options,
            learning={k: v for k, v in self.checkpoint.learning.items() if k == "cursors"},
        )  # fmt: skip
        checkpoints.write(target, weights_only)


def load(
    path: str | os.PathLike[str], game: Game | None = None, network: torch.nn.Module | None = None
) -> Learned:
    """The network of a run's newest checkpoint, or of the checkpoint in this folder.

    Args:
        game: needed if it is not a built-in game.
        network: for a custom module, one of the same architecture; its weights are loaded.
    """
    folder = Path(path)
    if not (folder / "manifest.json").exists():
        return Run.open(folder, game).learned(network=network)
    checkpoint = checkpoints.read(folder)
    return _learned(folder, checkpoint, game, network)


def _learned(
    folder: Path, checkpoint: Checkpoint, game: Game | None, network: torch.nn.Module | None
) -> Learned:
    game = _resolve_game(folder, checkpoint.game, game)
    return Learned(game, read_options(checkpoint.options), checkpoint, network)


def _resolve_game(folder: Path, description: dict[str, Any], game: Game | None) -> Game:
    """The game of a run, rebuilt if none is given; UctreeError if the given one differs.

    Of a game with a window it is the one whose actions are those of the window.
    """
    text = description.get("environment")
    if game is None and isinstance(text, str):
        game = load_module("uctree.learn.environments").environment(text)
    if game is None:
        spec, name = description.get("spec"), description.get("name")
        do = "in Python pass game="
        if not isinstance(spec, str):
            raise UctreeError(
                f"{folder} was trained on your game {name!r}; add --game FILE.py:NAME, or {do}"
            )
        try:
            game = specs.read_built_in(spec)
        except Exception as error:  # arguments from a file can be anything
            raise UctreeError(
                f"{folder}: cannot make the game {spec!r:.200} ({error!s:.200}); add --game, or "
                f"{do}"
            ) from error
    game = local(game)
    differences = game_differences(description, game, "in the folder", "in the game")
    if differences:
        raise UctreeError(
            f"{folder} is a run of another game than {game.name}: {'; '.join(differences)}. Choose "
            "another folder, or pass the game it was started with"
        )
    return game


# --- the run -------------------------------------------------------------------------------------


class Run:
    """A training and its folder: `begin` opens it to train, `open` to read and use it."""

    def __init__(
        self, folder: Path, game: Game, options: Options, warnings: list[str],
        lock: IO[bytes] | None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.game = game
        self.options = options
        self.warnings = warnings  # messages about damaged files that were left out
        self.custom_network: torch.nn.Module | None = None  # a custom module that was trained
        self._lock = lock
        self._first_reanalysed = 0  # results of searches made again before it are not needed

    @classmethod
    def open(cls, folder: str | os.PathLike[str], game: Game | None = None) -> Run:
        """The run of a folder, read only; another process may train in it.

        Args:
            game: needed if it is not a built-in game.
        """
        folder = Path(folder)
        found, warnings = _read_header(folder)
        if found is None:
            raise UctreeError(
                f"{folder} is not the folder of a run: it has no options.json; pass a folder that "
                "`uctree train` or uctree.learn.train wrote"
            )
        game = _resolve_game(folder, found["game"], game)
        return cls(folder, game, read_options(found["options"]), warnings, None)

    @classmethod
    def begin(cls, folder: str | os.PathLike[str], game: Game, **given: Any) -> Run:
        """The run of a folder, to train in: a new one, or an existing one to resume.

        Options that are not given are those that the run was started with. Given options must equal
        them, except those in `CHANGEABLE`.
        """
        folder, game = Path(folder), local(game)
        wanted = read_options(given)
        check_learnable(game)
        if not (folder / "options.json").exists():
            fill_in(wanted, game)  # raises before anything is written
        with files.explain_os_errors(folder, "opening the run"):
            folder.mkdir(parents=True, exist_ok=True)
            _check_folder(folder)
            for name in ("checkpoints", "tensorboard"):
                files.check_own_folder(folder / name)
            lock = files.lock(folder)
        try:
            with files.explain_os_errors(folder, "opening the run"):
                found, warnings = _read_header(folder)
                files.delete_temporaries(folder)
                files.delete_temporaries(folder / "checkpoints")
                if found is None:
                    options = fill_in(wanted, game)
                else:
                    _resolve_game(folder, found["game"], game)
                    saved = read_options(found["options"])
                    options = _merged_options(folder, game, saved, wanted, given)
                run = cls(folder, game, options, warnings, lock)
                if found is None or warnings or found["options"] != msgspec.to_builtins(options):
                    run._write_header()
                run._trim_metrics()
            for text in warnings:
                run.log("damaged", text=text)
        except BaseException:
            lock.close()
            raise
        return run

    def _write_header(self) -> None:
        files.write_json(self.folder / "options.json", {
            "format": FORMAT, "version": VERSION, "uctree": uctree.__version__,
            "game": describe_game(self.game),
            "options": msgspec.to_builtins(self.options),
        })  # fmt: skip

    def close(self) -> None:
        """Release the folder, so that another process can train; networks can still be used."""
        with interrupts.postponed():
            for name in ("replay", "reanalysis"):
                if name in self.__dict__:
                    getattr(self, name).close()
            tensorboard = self.__dict__.get("tensorboard")  # None before the first line is logged
            if tensorboard is not None:
                tensorboard.close()
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
            raise UctreeError(f"{self.folder} was opened read only; to train, open it by Run.begin")

    @functools.cached_property
    def replay(self) -> Replay:
        """The episodes of the run."""
        schema = sequence_schema if self.options.algorithm == "muzero" else positions_schema
        return Replay(
            self.folder / "replay", self.game, schema=schema(self.game),
            read_only=not self.is_training, report=self.warn,
        )  # fmt: skip

    @functools.cached_property
    def reanalysis(self) -> Replay:
        """Positions of the replay that were searched again, for learned models."""
        return Replay(
            self.folder / "reanalysis", self.game, schema=reanalysed_schema(self.game),
            read_only=not self.is_training, report=self.warn,
        )  # fmt: skip

    # Metrics.

    @functools.cached_property
    def tensorboard(self) -> TensorBoardWriter | None:
        """The writer of metrics for TensorBoard; None without the option `tensorboard`."""
        return TensorBoardWriter(self.folder / "tensorboard") if self.options.tensorboard else None

    @property
    def _metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    def _trim_metrics(self) -> None:
        """Cut off an incomplete last line, which a killed process leaves."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        with files.open_own(self._metrics_path, flags, "a+b") as file:
            file.seek(0)
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)

    def log(self, kind: str, **numbers: Any) -> None:
        """Add a line to metrics.jsonl: its kind, the time in seconds since 1970, and numbers.

        Args:
            numbers: anything that JSON can hold; `iteration` is that of the line.
        """
        self._check_training()
        row = {"kind": kind, "time": time.time()} | numbers
        line = json_text(row, default=files.to_builtin).encode() + b"\n"
        path = self._metrics_path
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with interrupts.postponed():
            with (
                files.explain_os_errors(path, "adding a line"),
                files.open_own(path, flags, "ab") as file,
            ):
                files.write_at(file, file.seek(0, os.SEEK_END), line)
            if self.tensorboard is not None:
                self.tensorboard.write(row)

    def metrics(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, without those that a later resume made invalid.

        A run that resumes from the checkpoint of iteration k repeats the iterations after k.
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
            with interrupts.postponed():
                content = files.read_own(self._metrics_path)
        except FileNotFoundError:
            return
        complete = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), start=1):
            try:
                yield _row(line)
            except ValueError as error:
                self.warn(f"{self._metrics_path}, line {number} is damaged and left out: {error}")

    def warn(self, text: str) -> None:
        """Add a warning about damage, and log it if this process trains."""
        if text in self.warnings or len(self.warnings) >= MOST_WARNINGS:
            return
        self.warnings.append(text)
        if self.is_training:
            self.log("damaged", text=text)

    # Checkpoints.

    def iterations(self) -> list[int]:
        """The iterations of all checkpoints, oldest first."""
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
        learning: Mapping[str, np.ndarray] | None = None,
    ) -> Checkpoint:  # fmt: skip
        """The checkpoint that was written; checkpoints that are too old are deleted.

        Args:
            network: a module, or its tensors by name.
            counters: numbers over the whole run.
            learning: other arrays of the training, by name.
            replay_end: the replay cursor up to which training has learned.
        """
        self._check_training()
        for name in ("replay", "reanalysis"):
            if name in self.__dict__:  # first, so that no checkpoint counts what is not on disk
                getattr(self, name).sync()
        tensors, settings = (
            ({}, {}) if optimizer is None else checkpoints.optimizer_state(optimizer)
        )
        states = {
            name: checkpoints.generator_state(each) for name, each in (generators or {}).items()
        }
        checkpoint = Checkpoint(
            iteration=iteration, weights=checkpoints.to_arrays(network),
            averaged=None if averaged is None else checkpoints.to_arrays(averaged),
            optimizer=tensors, settings=settings, counters=dict(counters or {}),
            generators=states, replay_end=replay_end, network=_network_description(network),
            game=describe_game(self.game), options=msgspec.to_builtins(self.options),
            learning=dict(learning or {}),
        )  # fmt: skip
        with interrupts.postponed():
            written = checkpoints.write(self._checkpoint_path(iteration), checkpoint)
            self._drop_old()
        return written

    def best_iteration(self) -> int | None:
        """The strongest checkpoint that the ladder has measured; None if it measured none."""
        rows = [row for row in self.metrics("ladder") if _is_number(row.get("strength"))]
        kept = set(self.iterations())
        rows = [row for row in rows if row["iteration"] in kept]
        if not rows:
            return None
        return int(max(rows, key=lambda row: (row["strength"], row["iteration"]))["iteration"])

    def _drop_old(self) -> None:
        """Delete old checkpoints by `keep_checkpoints` and `keep_every`, and unneeded episodes."""
        options, iterations = self.options, self.iterations()
        newest, best = iterations[-options.keep_checkpoints :], self.best_iteration()
        with contextlib.suppress(OSError, UctreeError):  # the next call tries again
            for iteration in iterations[: -len(newest)]:
                if iteration % options.keep_every and iteration != best:
                    files.delete_folder(self._checkpoint_path(iteration))
            if "replay" in self.__dict__:
                paths = map(self._checkpoint_path, newest)
                end = min(map(checkpoints.read_replay_end, paths))
                self.replay.drop_before(end - (options.replay_window or end))
                self._drop_reanalysed(end - (options.replay_window or end))

    def _drop_reanalysed(self, before: int) -> None:
        """Delete the results of searches that were made again of positions before this one."""
        if "reanalysis" not in self.__dict__:
            return
        store = self.reanalysis
        for entry in store.entries_between(self._first_reanalysed, store.end):
            found = store.intact_positions(entry)
            if found is not None and found["number"].max() >= before:
                break
            self._first_reanalysed = int(entry["first"]) + int(entry["count"])
        store.drop_before(self._first_reanalysed)

    def checkpoint(self, iteration: int | None = None) -> Checkpoint | None:
        """The checkpoint of an iteration, or the newest intact one; None if there is none.

        A damaged checkpoint adds a warning, and the one before it is used.
        """
        if iteration is not None:
            return checkpoints.read(self._checkpoint_path(iteration))
        for each in reversed(self.iterations()):
            try:
                return checkpoints.read(self._checkpoint_path(each))
            except UctreeError as error:
                self.warn(f"checkpoint {each} is damaged and left out: {error}")
        return None

    def resume(
        self, *, network: Weights, averaged: Weights | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        generators: Mapping[str, Generator] | None = None,
    ) -> Checkpoint | None:  # fmt: skip
        """The newest intact checkpoint, loaded into these objects; None if there is none yet.

        Damaged checkpoints after it are renamed to `NNNNNN.damaged`. UctreeError if all are
        damaged.
        """
        self._check_training()
        checkpoint = self.checkpoint()
        if checkpoint is None and self.iterations():
            raise UctreeError(
                f"no checkpoint of {self.folder} is intact: {'; '.join(self.warnings)}. Restore "
                "one from another copy, or choose another folder to start again"
            )
        iteration = 0 if checkpoint is None else checkpoint.iteration
        if checkpoint is not None:
            checkpoint.load_into(
                network=network, averaged=averaged, optimizer=optimizer, generators=generators
            )
            if checkpoint.replay_end > self.replay.end:
                self.warn(
                    f"{self.replay.folder} has {self.replay.end} positions, and training had "
                    f"{checkpoint.replay_end}: the last ones are lost"
                )
            with files.explain_os_errors(self.folder, "renaming damaged checkpoints"):
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

    # Networks.

    def learned(
        self, iteration: int | None = None, network: torch.nn.Module | None = None
    ) -> Learned:
        """The network of the newest checkpoint, or of an earlier iteration.

        Args:
            network: for a custom module, one of the same architecture; its weights are loaded. The
                run that `train` returns has a copy of the trained module.
        """
        if network is None and self.custom_network is not None:
            network = copy.deepcopy(self.custom_network)
        checkpoint = self.checkpoint(iteration)
        if checkpoint is None:
            why = f" that is intact: {'; '.join(self.warnings)}" if self.warnings else " yet"
            raise UctreeError(f"{self.folder} has no checkpoint{why}; train until there is one")
        return _learned(self.folder, checkpoint, self.game, network)

    def network(
        self, iteration: int | None = None, network: torch.nn.Module | None = None
    ) -> torch.nn.Module:
        """The network of a checkpoint as a torch module; arguments as in `learned`."""
        return self.learned(iteration, network).network()

    def evaluator(
        self, iteration: int | None = None, network: torch.nn.Module | None = None, **options: Any
    ) -> Evaluator:
        """The network of a checkpoint as an evaluator; options as in `uctree.learn.evaluator`."""
        return self.learned(iteration, network).evaluator(**options)

    def search(
        self, state: State | None = None, *, num_simulations: int | None = None, seed: int = 0
    ) -> SearchResult:
        """The result of a search with the newest checkpoint; arguments as in `Learned.search`."""
        return self.learned().search(state, num_simulations=num_simulations, seed=seed)

    def export_onnx(
        self, path: str | os.PathLike[str], iteration: int | None = None,
        network: torch.nn.Module | None = None,
    ) -> None:  # fmt: skip
        """Write the network of a checkpoint as an ONNX file."""
        self.learned(iteration, network).export_onnx(path)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _row(line: bytes) -> dict[str, Any]:
    """The object of a line of metrics.jsonl; ValueError if it is not a line of metrics."""
    row = parse_json(line)
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        raise ValueError("it has no kind")
    if not isinstance(row.get("iteration", 0), int):
        raise ValueError(f"its iteration is {row['iteration']!r}")
    return row


def new_network(game: Game, options: Options) -> torch.nn.Module:
    """The untrained network of a new run."""
    made: torch.nn.Module = load_module("uctree.learn.modules").new_module(game, options)
    return made


def _network_description(network: Weights) -> dict[str, Any]:
    if isinstance(network, Mapping):
        return {"kind": "own", "name": "tensors by name"}
    description: dict[str, Any] = load_module("uctree.learn.modules").describe(network)
    return description


def _read_header(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Game and options of a run, and warnings about damage; None if the folder holds no run.

    If options.json is damaged, they are read from the newest intact checkpoint.
    """
    path = folder / "options.json"
    has_checkpoints = any((folder / "checkpoints").glob("[0-9]*"))
    try:
        found = files.read_json(path)
    except OSError as error:
        if not has_checkpoints:
            return None, []
        problem = f"{path}: {error.strerror}"
    except UctreeError as error:
        problem = str(error)
    else:
        if found.get("format") != FORMAT or found.get("version") != VERSION:
            raise UctreeError(
                f"{path} has the format {found.get('format')!r}, version "
                f"{found.get('version')!r}; this uctree reads {FORMAT!r}, version {VERSION}. Use "
                "the uctree that wrote it"
            )
        if isinstance(found.get("game"), dict) and isinstance(found.get("options"), dict):
            return found, []
        problem = f"{path} has no game or no options"
    for each in sorted((folder / "checkpoints").glob("[0-9]*"), reverse=True):
        with contextlib.suppress(UctreeError):
            checkpoint = checkpoints.read(each)
            text = f"{problem}; game and options are those of checkpoint {checkpoint.iteration}"
            return {"game": checkpoint.game, "options": checkpoint.options}, [text]
    raise UctreeError(
        f"{problem}, and no intact checkpoint has a copy; restore it, or choose another folder"
    )


def _check_folder(folder: Path) -> None:
    """Raise UctreeError if a folder holds files that are not those of a run."""
    if (folder / "options.json").exists():
        return
    own = {
        "lock", "metrics.jsonl", "replay", "reanalysis", "checkpoints", "report.html",
        "tensorboard",
    }  # fmt: skip
    others = [
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in own and not path.name.startswith(files.TEMPORARY)
    ]
    if others:
        raise UctreeError(
            f"{folder} holds no run, and is not empty: {', '.join(others[:5])}; choose a new "
            "folder, or that of a run to resume"
        )


def _merged_options(
    folder: Path, game: Game, saved: Options, wanted: Options, given: dict[str, Any]
) -> Options:
    """The saved options with the given changes; UctreeError if one of these must not change."""
    differences, changes = [], {}
    for name in given:
        before, now = getattr(saved, name), getattr(wanted, name)
        if name in CHANGEABLE:
            changes[name] = now
        elif now != before and not (now is None and name in DECIDED_BY_GAME):
            differences.append(f"{name} is {before!r} in the folder and {now!r} now")
    if differences:
        raise UctreeError(
            f"{folder} was started with other options: {'; '.join(differences)}. Omit them to "
            "resume with those of the folder, or choose another folder"
        )
    return fill_in(msgspec.structs.replace(saved, **changes), game)
