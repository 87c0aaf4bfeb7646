"""Checkpoints: a network, its optimiser, counters and generators as one folder, or not at all.

    000120/
      weights.safetensors      the network
      averaged.safetensors     its averaged weights, where there are some
      optimizer.safetensors    tensors of the optimiser, named index.name
      manifest.json            all the rest, with size and SHA-256 of each of the files; sealed

A folder is complete in itself: its manifest has the game, the options and the shape of the network.
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
from uctree.errors import UctreeError
from uctree.learn import files
from uctree.learn.extras import load_module
from uctree.treefile import replacing

if TYPE_CHECKING:
    import torch

FORMAT = "uctree checkpoint"
VERSION = 1
WEIGHTS, AVERAGED, OPTIMIZER = "weights", "averaged", "optimizer"

Arrays = dict[str, np.ndarray]
Weights = Union["torch.nn.Module", Mapping[str, Any]]  # a module, or its tensors by name
Generator = Union[np.random.Generator, "torch.Generator"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What training was at the end of an iteration."""

    iteration: int
    weights: Arrays = field(repr=False)
    averaged: Arrays | None = field(repr=False)
    # The tensors of its state, named index.name; and of its settings "groups" and "numbers".
    optimizer: Arrays = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    counters: dict[str, int | float]
    generators: dict[str, Any] = field(repr=False)  # the states of generators by name
    replay_end: int  # positions of the replay that training had seen
    network: dict[str, Any]  # as `network.describe` tells it
    game: dict[str, Any]  # as `treefile.describe_game` tells it
    options: dict[str, Any]
    weights_sha256: str = ""  # of the file
    folder: Path | None = None

    def load_into(
        self, *, network: Weights | None = None, averaged: Weights | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        generators: Mapping[str, Generator] | None = None,
    ) -> None:  # fmt: skip
        """Give live objects the state they had; UctreeError where they do not fit."""
        if network is not None:
            load_weights(self.weights, network, f"the network of checkpoint {self.iteration}")
        if averaged is not None:
            told = f"the averaged network of checkpoint {self.iteration}"
            load_weights(self.best_weights, averaged, told)
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
        """The averaged weights where there are some, the last ones otherwise."""
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
                f"{type(optimizer).__name__}: {error}; go on with the one it was trained with"
            ) from error


# --- live objects to plain ones, and back --------------------------------------------------------


def arrays_of(weights: Weights) -> Arrays:
    """The tensors of a module as arrays of their own, by name."""
    tensors = weights if isinstance(weights, Mapping) else weights.state_dict()
    return {name: _array(tensor, name) for name, tensor in tensors.items()}


def optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[Arrays, dict[str, Any]]:
    """The tensors of an optimiser, and the numbers beside them."""
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
    """A tensor as an array of its own that lies in one piece."""
    if not isinstance(tensor, np.ndarray):
        tensor = tensor.detach().cpu()
        try:
            tensor = tensor.numpy()
        except TypeError as error:
            raise UctreeError(
                f"{name} cannot be stored: {error}; keep the weights that are saved as float32"
            ) from None
    # Safetensors writes the bytes as they lie, so that a view would come back scrambled.
    return np.array(tensor, order="C")


def _tensor(array: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.array(array))


def load_weights(arrays: Arrays, weights: Weights, told: str) -> None:
    """Copy arrays into a module or into tensors by name."""
    import torch

    own: Mapping[str, Any] = weights if isinstance(weights, Mapping) else weights.state_dict()
    missing, extra = sorted(set(own) - set(arrays)), sorted(set(arrays) - set(own))
    wrong = [
        f"{name} is {arrays[name].shape} in the checkpoint and {tuple(own[name].shape)} here"
        for name in own
        if name in arrays and arrays[name].shape != tuple(own[name].shape)
    ]
    wrong += [f"the checkpoint has no {name}" for name in missing]
    wrong += [f"there is no {name} here" for name in extra]
    if wrong:
        raise UctreeError(
            f"{told} does not fit: {'; '.join(wrong[:5])}"
            f"{f' and {len(wrong) - 5} more' if len(wrong) > 5 else ''}. Give the network that was "
            "trained, with the same sizes"
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(_tensor(arrays[name]))


# --- writing -------------------------------------------------------------------------------------


def write(folder: Path, checkpoint: Checkpoint) -> Checkpoint:
    """Write a checkpoint under the name `folder`, whole or not at all; it, with its hash."""
    save = load_module("safetensors.numpy").save
    contents = {WEIGHTS: save(checkpoint.weights)}
    if checkpoint.averaged is not None:
        contents[AVERAGED] = save(checkpoint.averaged)
    if checkpoint.settings:
        contents[OPTIMIZER] = save(checkpoint.optimizer)
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
    with files.told(folder, f"writing checkpoint {checkpoint.iteration}"):
        _write_folder(folder, contents, manifest)
    digest = str(written[f"{WEIGHTS}.safetensors"]["sha256"])
    return replace(checkpoint, weights_sha256=digest, folder=folder)


def _write_folder(folder: Path, contents: dict[str, bytes], manifest: dict[str, Any]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = files.temporary(folder.parent)
    temporary.mkdir()
    try:
        for name, content in contents.items():
            with replacing(temporary / f"{name}.safetensors") as file:
                file.write(content)
        files.write_sealed(temporary / "manifest.json", manifest)
        if folder.exists():  # of the same iteration, damaged or from before a fall back
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
    """The checkpoint in a folder, each file held against its hash; UctreeError where it is not."""
    try:
        manifest = _read_manifest(folder / "manifest.json")
        arrays = {
            name: _read_arrays(folder / f"{name}.safetensors", manifest.files)
            for name in (WEIGHTS, AVERAGED, OPTIMIZER)
        }
    except OSError as error:
        name = Path(error.filename or folder).name
        raise UctreeError(f"{folder} is not whole: {name}: {error.strerror or error}") from error
    weights = arrays[WEIGHTS]
    if weights is None:
        raise UctreeError(f"{folder} is not whole: its manifest names no {WEIGHTS}.safetensors")
    return Checkpoint(
        iteration=manifest.iteration, weights=weights, averaged=arrays[AVERAGED],
        optimizer=arrays[OPTIMIZER] or {}, settings=manifest.optimizer,
        counters=manifest.counters, generators=manifest.generators,
        replay_end=manifest.replay_end, network=manifest.network, game=manifest.game,
        options=manifest.options, folder=folder,
        weights_sha256=manifest.files[f"{WEIGHTS}.safetensors"].sha256,
    )  # fmt: skip


def read_replay_end(folder: Path) -> int:
    """The cursor of the replay in a checkpoint, without reading the rest of it."""
    return _read_manifest(folder / "manifest.json").replay_end


def _read_manifest(path: Path) -> _Manifest:
    content = files.read_sealed(path)
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
    """The arrays of a file; None where the manifest knows of none."""
    if path.name not in expected:
        return None
    entry = expected[path.name]
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != entry.bytes:
            raise UctreeError(
                f"{path} has {size:,} bytes, and {entry.bytes:,} were written: it was cut off or "
                "changed"
            )
        content = file.read()
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise UctreeError(f"{path} was changed or damaged after it was written")
    try:
        loaded: Arrays = load_module("safetensors.numpy").load(content)
    except (load_module("safetensors").SafetensorError, ValueError, KeyError, TypeError) as error:
        raise UctreeError(f"{path} holds no tensors: {error}") from None
    return loaded
