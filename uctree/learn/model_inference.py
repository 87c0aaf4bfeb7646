"""Learned models as functions of arrays, by torch or by ONNX Runtime; and their export."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree.engine.treefile import replacing
from uctree.errors import BrokenGame, UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game
from uctree.learn import latent
from uctree.learn.extras import load_module
from uctree.learn.files import explain_os_errors
from uctree.learn.inference import export_bytes, onnx_session
from uctree.learn.latent import Functions
from uctree.learn.onnx_format import check_self_contained

if TYPE_CHECKING:
    from torch import nn

OUTPUTS = {
    "initial": ("hidden", "logits", "values"),
    "recurrent": ("hidden_after", "rewards", "logits", "values", "turns"),
}


@dataclass(frozen=True)
class ModelExport:
    """A model as workers get it: two ONNX files, or the module."""

    module: Any  # a torch module; None if there are ONNX files
    initial: bytes
    recurrent: bytes
    rotates: bool
    ends: bool

    def evaluator(
        self, game: Game, *, leaves: int = 1, device: str = "cpu", precision: str = "float32"
    ) -> Evaluator:
        """The model as an evaluator for `BatchedSearch`."""
        functions = self.functions(game, device=device, precision=precision)
        return latent.evaluator(game, functions, leaves=leaves)

    def functions(
        self, game: Game, *, device: str = "cpu", precision: str = "float32"
    ) -> Functions:
        """The model as functions of arrays; device and precision are for torch."""
        if self.module is not None:
            initial, recurrent = torch_functions(self.module, device, precision=precision)
        else:
            initial, recurrent = _onnx_functions(self.initial, self.recurrent)
        return Functions(initial, recurrent, self.rotates, self.ends)


def export_model(
    module: nn.Module, game: Game, *, backend: str = "onnx", rotates: bool, ends: bool = False
) -> ModelExport:
    """A model for workers; "torch" keeps the module, "onnx" copies its weights."""
    if not rotates and not _says_turns(module, game):
        raise UctreeError(
            f"players of {game.name} do not move in turn, and {type(module).__name__}.recurrent "
            "does not say who moves next: return turns, logits [n, num_players + 1], as well"
        )
    if backend == "torch":
        on_cpu = load_module("uctree.learn.devices").on_cpu  # workers move it where they compute
        return ModelExport(on_cpu(module), b"", b"", rotates, ends)
    return ModelExport(None, *onnx_models(module, game), rotates, ends)


def _says_turns(module: Any, game: Game) -> bool:
    torch = load_module("torch")
    with load_module("uctree.learn.network").evaluating(module), torch.inference_mode():
        device = next(iter(module.parameters())).device
        hidden, *_ = module.initial(torch.zeros(1, *(game.observation_shape or ()), device=device))
        actions = torch.zeros(1, dtype=torch.int64, device=device)
        return len(module.recurrent(hidden, actions)) == 5


# --- torch ---------------------------------------------------------------------------------------


def torch_functions(
    module: nn.Module, device: Any = "cpu", threads: int = 1, precision: str = "float32"
) -> Any:
    """The two functions of a module, on NumPy arrays.

    Args:
        device: its name, or a `devices.Device`; the module is moved there.
        precision: of matrix products, "float32" or "bfloat16".
    """
    torch, devices = load_module("torch"), load_module("uctree.learn.devices")
    evaluating = load_module("uctree.learn.network").evaluating
    where = devices.choose(device) if isinstance(device, str) else device
    where.place(module)

    def run(function: Any, *given: np.ndarray) -> list[np.ndarray]:
        if where.is_cpu and torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        with evaluating(module), torch.inference_mode(), where.autocast(precision):
            found: list[np.ndarray] = where.get_all(function(*where.put_all(given)))
        return found

    def initial(observations: np.ndarray) -> Any:
        return run(module.initial, observations)

    def recurrent(hidden: np.ndarray, actions: np.ndarray) -> Any:
        return run(module.recurrent, hidden, actions)

    return initial, recurrent


# --- ONNX ----------------------------------------------------------------------------------------


def onnx_models(module: Any, game: Game) -> tuple[bytes, bytes]:
    """The bytes of two ONNX files, of `initial` and of `recurrent`."""
    torch, module = load_module("torch"), load_module("uctree.learn.devices").on_cpu(module)
    observations = torch.zeros(2, *(game.observation_shape or ()))
    with torch.no_grad(), load_module("uctree.learn.network").evaluating(module):
        hidden = module.initial(observations)[0]
        actions = torch.zeros(2, dtype=torch.int64)
        has_turns = len(module.recurrent(hidden, actions)) == 5
    outputs = OUTPUTS["recurrent"][: 4 + has_turns]
    wrap = load_module("uctree.learn.model").Function
    initial = export_bytes(
        wrap(module, "initial"), (observations,), ("observations",), OUTPUTS["initial"]
    )
    recurrent = export_bytes(
        wrap(module, "recurrent"), (hidden, actions), ("hidden", "actions"), outputs
    )
    _check_exports(module, initial, recurrent, game)
    return initial, recurrent


def _onnx_functions(initial: bytes, recurrent: bytes, name: str = "the model") -> Any:
    first, later = onnx_session(initial, name), onnx_session(recurrent, name)
    outputs = [each.name for each in later.get_outputs()]

    def begin(observations: np.ndarray) -> Any:
        return first.run(list(OUTPUTS["initial"]), {"observations": observations})

    def step(hidden: np.ndarray, actions: np.ndarray) -> Any:
        return later.run(outputs, {"hidden": hidden, "actions": actions})

    return begin, step


def _check_exports(module: nn.Module, initial: bytes, recurrent: bytes, game: Game) -> None:
    """Raise UctreeError if the exported functions give other results than the module."""
    rng = np.random.default_rng(0)
    observations = rng.random((3, *(game.observation_shape or ())), np.float32)
    actions = rng.integers(game.num_actions, size=3)
    by_torch, by_onnx = torch_functions(module), _onnx_functions(initial, recurrent)
    first, first_onnx = by_torch[0](observations), by_onnx[0](observations)
    later, later_onnx = by_torch[1](first[0], actions), by_onnx[1](first[0], actions)
    pairs = [*zip(first, first_onnx, strict=True), *zip(later, later_onnx, strict=True)]
    if not all(np.allclose(*pair, 1e-3, 1e-3) for pair in pairs):
        raise UctreeError(
            f"{type(module).__name__} gives other results as ONNX than in torch: initial or "
            "recurrent depends in Python on the number of rows or on their content; write them "
            'with tensor operations alone, or use inference="torch"'
        )


def export_onnx_model(
    module: nn.Module, game: Game, path: str | os.PathLike[str]
) -> tuple[Path, Path]:
    """Write a model as two ONNX files, PATH.initial.onnx and PATH.recurrent.onnx; returns them.

    A path that ends with .onnx loses that first.
    """
    stem = str(path).removesuffix(".onnx")
    paths = Path(f"{stem}.initial.onnx"), Path(f"{stem}.recurrent.onnx")
    for target, content in zip(paths, onnx_models(module, game), strict=True):
        with explain_os_errors(target, "writing the model"), replacing(target) as file:
            file.write(content)
    return paths


def load_onnx_model(
    path: str | os.PathLike[str], game: Game, *, rotates: bool = True, ends: bool = False,
    leaves: int = 1,
) -> Evaluator:  # fmt: skip
    """The model of two ONNX files as an evaluator for `BatchedSearch`, without torch."""
    stem = str(path).removesuffix(".onnx")
    contents: dict[str, bytes] = {}
    for part in ("initial", "recurrent"):
        name = f"{stem}.{part}.onnx"
        contents[part] = Path(name).read_bytes()
        check_self_contained(contents[part], name)
    made = ModelExport(None, contents["initial"], contents["recurrent"], rotates, ends)
    functions = made.functions(game)
    _check_functions(functions, game, stem)
    return latent.evaluator(game, functions, leaves=leaves)


def _check_functions(functions: Functions, game: Game, name: str) -> None:
    """Raise BrokenGame if a model from files does not fit the game."""
    n, players = 2, game.num_players
    observations = np.zeros((n, *(game.observation_shape or ())), np.float32)
    try:
        hidden, *first = functions.initial(observations)
        _, *later = functions.recurrent(hidden, np.zeros(n, np.int64))
        came = [part.shape for part in (*first, *later[:3])]
    except Exception as error:
        raise BrokenGame(
            f"{name} does not take observations of {game.name}, {list(observations.shape)}; "
            f"export it with uctree export: {error}"
        ) from error
    logits, vector = (n, game.num_actions), (n, players)
    wanted = [logits, vector, vector, logits, vector]
    if came != wanted:
        raise BrokenGame(f"{name} gives shapes {came} for {game.name}; expected {wanted}")
