"""Checkpoints: a network, its optimiser, counters and generators in one folder, written atomically.

    000120/
      weights.safetensors      the network
      averaged.safetensors     its averaged weights, if weights are averaged
      optimizer.safetensors    tensors of the optimiser, named index.name
      learning.safetensors     other arrays of the training, as priorities, if it has any
      manifest.json            all the rest, with size and SHA-256 of each file, and a checksum

A folder is self-contained: its manifest has the game, the options and the network's description.
Everything in it is numbers and text, and nothing is ever unpickled.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import msgspec
import numpy as np

import uctree
from uctree.engine.treefile import replacing
from uctree.errors import UctreeError
from uctree.learn import files
from uctree.learn.extras import load_module

if TYPE_CHECKING:
    import torch

FORMAT = "uctree checkpoint"
VERSION = 1
WEIGHTS, AVERAGED, OPTIMIZER, LEARNING = "weights", "averaged", "optimizer", "learning"

Arrays = dict[str, np.ndarray]
Weights = Union["torch.nn.Module", Mapping[str, Any]]  # a module, or its tensors by name
Generator = Union[np.random.Generator, "torch.Generator"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of training at the end of an iteration."""

    iteration: int
    weights: Arrays = field(repr=False)
    averaged: Arrays | None = field(repr=False)
    # The tensors of the optimiser's state, named index.name; `settings` has its groups and numbers.
    optimizer: Arrays = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    counters: dict[str, int | float]
    generators: dict[str, Any] = field(repr=False)  # the states of generators by name
    replay_end: int  # positions of the replay that training had seen
    network: dict[str, Any]  # from `network.describe`
    game: dict[str, Any]  # from `describe_game`
    options: dict[str, Any]
    learning: Arrays = field(default_factory=dict, repr=False)  # other arrays of the training
    weights_sha256: str = ""  # of the file
    folder: Path | None = None

    def load_into(
        self, *, network: Weights | None = None, averaged: Weights | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        generators: Mapping[str, Generator] | None = None,
    ) -> None:  # fmt: skip
        """Load the checkpoint into these objects; UctreeError if one does not fit."""
        if network is not None:
            load_weights(self.weights, network, f"the network of checkpoint {self.iteration}")
        if averaged is not None:
            name = f"the averaged network of checkpoint {self.iteration}"
            load_weights(self.best_weights, averaged, name)
        if optimizer is not None:
            self._load_optimizer(optimizer)
        for name, generator in (generators or {}).items():
            if name not in self.generators:
                raise UctreeError(
                    f"checkpoint {self.iteration} has the generators "
                    f"{', '.join(self.generators) or 'none'}; {name!r} is not one of them"
                )
            _set_generator(generator, self.generators[name], name)

    @property
    def best_weights(self) -> Arrays:
        """The averaged weights; the last ones if weights are not averaged."""
        return self.weights if self.averaged is None else self.averaged

    def _load_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        state: dict[int, dict[str, Any]] = {}
        tensors = {key: _tensor(array) for key, array in self.optimizer.items()}
        try:
            for key, value in [*tensors.items(), *self.settings["numbers"].items()]:
                index, _, name = key.partition(".")
                state.setdefault(int(index), {})[name] = value
            groups = [
                {
                    name: tuple(value) if isinstance(value, list) and name != "params" else value
                    for name, value in group.items()
                }
                for group in self.settings["groups"]
            ]
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise UctreeError(
                f"checkpoint {self.iteration} is of another optimiser than "
                f"{type(optimizer).__name__}: {error}; resume with the optimiser of the training"
            ) from error


# --- torch objects to arrays and JSON, and back --------------------------------------------------


def to_arrays(weights: Weights) -> Arrays:
    """Copies of a module's tensors as arrays, by name."""
    tensors = weights if isinstance(weights, Mapping) else weights.state_dict()
    return {name: _array(tensor, name) for name, tensor in tensors.items()}


def optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[Arrays, dict[str, Any]]:
    """The tensors of an optimiser's state, and its other settings for JSON."""
    import torch

    content = optimizer.state_dict()
    tensors: Arrays = {}
    numbers: dict[str, Any] = {}
    for index, parts in content["state"].items():
        for name, value in parts.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{index}.{name}"] = _array(value, name)
            else:
                numbers[f"{index}.{name}"] = value
    return tensors, {"groups": content["param_groups"], "numbers": numbers}


def generator_state(generator: Generator) -> dict[str, Any]:
    """The state of a generator, ready for JSON."""
    if isinstance(generator, np.random.Generator):
        return {"kind": "numpy", "state": generator.bit_generator.state}
    text = base64.b64encode(generator.get_state().numpy().tobytes()).decode()
    return {"kind": "torch", "state": text}


def _set_generator(generator: Generator, content: Any, name: str) -> None:
    is_numpy = isinstance(generator, np.random.Generator)
    try:
        if content["kind"] != ("numpy" if is_numpy else "torch"):
            raise ValueError(f"it is one of {content['kind']}")
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = content["state"]
        else:
            state = np.frombuffer(base64.b64decode(content["state"], validate=True), np.uint8)
            generator.set_state(_tensor(state))
    except (
        ValueError, TypeError, KeyError, IndexError, OverflowError, RuntimeError, binascii.Error,
    ) as error:  # fmt: skip
        raise UctreeError(
            f"the state of the generator {name!r} in the checkpoint does not fit a "
            f"{type(generator).__name__}: {error}"
        ) from error


def _array(tensor: Any, name: str) -> np.ndarray:
    """A contiguous copy of a tensor as an array."""
    if not isinstance(tensor, np.ndarray):
        tensor = tensor.detach().cpu()
        try:
            tensor = tensor.numpy()
        except TypeError as error:
            raise UctreeError(
                f"{name} cannot be stored: {error}; convert the weights to float32 to save them"
            ) from None
    # Safetensors writes the bytes in memory order, so a view would come back scrambled.
    return np.array(tensor, order="C")


def _tensor(array: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.array(array))


def check_fit(arrays: Arrays, weights: Weights, name: str) -> None:
    """Raise UctreeError unless arrays have the names and shapes of a module's tensors."""
    own: Mapping[str, Any] = weights if isinstance(weights, Mapping) else weights.state_dict()
    missing, extra = sorted(set(own) - set(arrays)), sorted(set(arrays) - set(own))
    wrong = [
        f"{key} is {arrays[key].shape} in the checkpoint and {tuple(own[key].shape)} here"
        for key in own
        if key in arrays and arrays[key].shape != tuple(own[key].shape)
    ]
    wrong += [f"the checkpoint has no {key}" for key in missing]
    wrong += [f"there is no {key} here" for key in extra]
    if wrong:
        raise UctreeError(
            f"{name} does not fit: {'; '.join(wrong[:5])}"
            f"{f' and {len(wrong) - 5} more' if len(wrong) > 5 else ''}. Pass a network of the "
            "architecture that was trained"
        )


def load_weights(arrays: Arrays, weights: Weights, name: str) -> None:
    """Copy arrays into a module or into tensors by name; `name` is for the message."""
    import torch

    check_fit(arrays, weights, name)
    own: Mapping[str, Any] = weights if isinstance(weights, Mapping) else weights.state_dict()
    with torch.no_grad():
        for key, tensor in own.items():
            tensor.copy_(_tensor(arrays[key]))


# --- writing -------------------------------------------------------------------------------------


def write(folder: Path, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with its hash, after it was written to `folder` atomically."""
    save = load_module("safetensors.numpy").save
    contents = {WEIGHTS: save(checkpoint.weights)}
    if checkpoint.averaged is not None:
        contents[AVERAGED] = save(checkpoint.averaged)
    if checkpoint.settings:
        contents[OPTIMIZER] = save(checkpoint.optimizer)
    if checkpoint.learning:
        contents[LEARNING] = save(checkpoint.learning)
    written = {
        f"{name}.safetensors": {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in contents.items()
    }
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "uctree": uctree.__version__,
        "iteration": checkpoint.iteration,
        "counters": checkpoint.counters,
        "replay_end": checkpoint.replay_end,
        "files": written,
        "network": checkpoint.network,
        "game": checkpoint.game,
        "options": checkpoint.options,
        "optimizer": checkpoint.settings,
        "generators": checkpoint.generators,
    }
    with files.explain_os_errors(folder, f"writing checkpoint {checkpoint.iteration}"):
        _write_folder(folder, contents, manifest)
    digest = str(written[f"{WEIGHTS}.safetensors"]["sha256"])
    return replace(checkpoint, weights_sha256=digest, folder=folder)


def _write_folder(folder: Path, contents: dict[str, bytes], manifest: dict[str, Any]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = files.temporary_path(folder.parent)
    temporary.mkdir()
    try:
        for name, content in contents.items():
            with replacing(temporary / f"{name}.safetensors") as file:
                file.write(content)
        files.write_json(temporary / "manifest.json", manifest)
        if folder.exists():  # of the same iteration: damaged, or from before the run went back
            files.delete_folder(folder)
        os.replace(temporary, folder)
    except BaseException:
        with contextlib.suppress(OSError):
            files.delete_folder(temporary)
        raise
    files.sync_folder(folder.parent)


# --- reading -------------------------------------------------------------------------------------


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bytes: int
    sha256: str


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    uctree: str
    iteration: int
    counters: dict[str, int | float]
    replay_end: int
    files: dict[str, _File]
    network: dict[str, Any]
    game: dict[str, Any]
    options: dict[str, Any]
    optimizer: dict[str, Any]
    generators: dict[str, Any]


def read(folder: Path) -> Checkpoint:
    """The checkpoint of a folder; UctreeError if a file is missing or does not match its hash."""
    try:
        manifest = _read_manifest(folder / "manifest.json")
        arrays = {
            name: _read_arrays(folder / f"{name}.safetensors", manifest.files)
            for name in (WEIGHTS, AVERAGED, OPTIMIZER, LEARNING)
        }
    except OSError as error:
        name = Path(error.filename or folder).name
        raise UctreeError(f"{folder} is incomplete: {name}: {error.strerror or error}") from error
    known = {f"{name}.safetensors" for name in arrays}
    if unknown := sorted(set(manifest.files) - known):
        raise UctreeError(f"{folder} is not a checkpoint: its manifest names {unknown[:3]}")
    weights = arrays[WEIGHTS]
    if weights is None:
        raise UctreeError(f"{folder} is incomplete: its manifest names no {WEIGHTS}.safetensors")
    return Checkpoint(
        iteration=manifest.iteration, weights=weights, averaged=arrays[AVERAGED],
        optimizer=arrays[OPTIMIZER] or {}, settings=manifest.optimizer,
        counters=manifest.counters, generators=manifest.generators,
        replay_end=manifest.replay_end, network=manifest.network, game=manifest.game,
        options=manifest.options, learning=arrays[LEARNING] or {}, folder=folder,
        weights_sha256=manifest.files[f"{WEIGHTS}.safetensors"].sha256,
    )  # fmt: skip


def read_replay_end(folder: Path) -> int:
    """The replay cursor of a checkpoint, without reading its tensors."""
    return _read_manifest(folder / "manifest.json").replay_end


def _read_manifest(path: Path) -> _Manifest:
    content = files.read_json(path)
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise UctreeError(
            f"{path} has the format {content.get('format')!r}, version "
            f"{content.get('version')!r}; this uctree reads {FORMAT!r}, version {VERSION}. Use the "
            "uctree that wrote it"
        )
    try:
        return msgspec.convert(content, _Manifest)
    except msgspec.ValidationError as error:
        raise UctreeError(f"{path} is not a manifest: {error}") from None


def _read_arrays(path: Path, expected: dict[str, _File]) -> Arrays | None:
    """The arrays of a file; None if the manifest does not list it."""
    if path.name not in expected:
        return None
    entry = expected[path.name]
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != entry.bytes:
            raise UctreeError(
                f"{path} has {size:,} bytes, expected {entry.bytes:,}: it was truncated or changed"
            )
        content = file.read()
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise UctreeError(f"{path} was changed or damaged after it was written")
    try:
        loaded: Arrays = load_module("safetensors.numpy").load(content)
    except (load_module("safetensors").SafetensorError, ValueError, KeyError, TypeError) as error:
        raise UctreeError(f"{path} holds no tensors: {error}") from None
    return loaded
