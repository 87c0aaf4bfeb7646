"""Networks as evaluators of a search, by torch or by ONNX Runtime.

Both compute with one thread unless told otherwise: searches run side by side in processes, and two
threads of one beside a busy other are many times slower than one.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree import evaluators
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.learn.extras import load_module
from uctree.learn.files import told
from uctree.learn.replay import observed
from uctree.learn.targets import symmetries_of
from uctree.treefile import replacing

if TYPE_CHECKING:
    from torch import nn

# Observations [n, *shape], float32, to logits [n, num_actions] and values [n, num_players].
Predictor = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def evaluator(
    model: nn.Module, game: Game | None = None, *, backend: str = "torch",
    symmetries: bool = False, threads: int = 1, leaves: int = 1, cache: str | int = "64MB",
) -> evaluators.Evaluator:  # fmt: skip
    """A network as what values the leaves of a search; arguments as in `predictor`.

    Args:
        leaves: how many leaves of one tree are valued together.
        cache: how much memory may hold what the network said of states.
    """
    function = predictor(model, game, backend=backend, symmetries=symmetries, threads=threads)
    version = _version_of(model) if backend == "torch" else None
    return evaluators.network(
        function, name=type(model).__name__, leaves=leaves, cache=cache, version=version
    )


def _version_of(model: nn.Module) -> Callable[[], int]:
    """A number that grows whenever weights change where they are, as optimisers change them."""
    tensors = [
        tensor for tensor in (*model.parameters(), *model.buffers()) if not tensor.is_inference()
    ]
    return lambda: sum(tensor._version for tensor in tensors)


def predictor(
    model: nn.Module, game: Game | None = None, *, backend: str = "torch",
    symmetries: bool = False, threads: int = 1,
) -> Predictor:  # fmt: skip
    """What a network says of observations, as a function of NumPy arrays.

    Args:
        game: what the network is checked against. Needed for `symmetries`, for 8 bits, and for ONNX
            with a module of one's own.
        backend: "torch" asks the module itself, so that training it changes the answers; "onnx"
            keeps the weights as they are now, and is faster; "int8" is that with 8 bits, less exact
            and still faster on processors that have instructions for it.
        symmetries: whether the answer is the mean over all symmetries of the game.
        threads: that compute a batch; beside other busy processes one is best.
    """
    if backend not in ("torch", "onnx", "int8"):
        raise ValueError(f'backend is "torch", "onnx" or "int8"; got {backend!r}')
    if threads < 1:
        raise ValueError(f"threads must be at least 1; got {threads}")
    network = load_module("uctree.learn.network")
    if game is None:
        network.check_module(model)
    else:
        network.check_network(model, game)
    if backend == "torch":
        predict = _by_torch(model, threads)
    elif backend == "onnx":
        predict = _by_onnx(onnx_bytes(model, game), threads=threads)
    elif game is None:
        raise ValueError(
            'backend="int8" needs the game, for what observations are like: give game='
        )
    else:
        predict = _by_onnx(int8_bytes(model, game, random_observations(game)), threads=threads)
    return _over_symmetries(predict, game) if symmetries else predict


def _by_torch(model: nn.Module, threads: int = 1) -> Predictor:
    torch, evaluating = load_module("torch"), load_module("uctree.learn.network").evaluating

    def predict(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if torch.get_num_threads() != threads:  # each thread that calls has a number of its own
            torch.set_num_threads(threads)
        with evaluating(model), torch.inference_mode():
            logits, values = model(torch.from_numpy(observations))
        return logits.numpy(), values.numpy()

    return predict


def _over_symmetries(predict: Predictor, game: Game | None) -> Predictor:
    """The mean of the answers to an observation and its images.

    Logits are averaged as they are: which actions are legal is not known here, and the shares of
    the legal ones do not depend on the others then.
    """
    if game is None:
        raise ValueError("symmetries=True needs the game whose symmetries are meant: give game=")
    actions, cells = symmetries_of(game)
    came_from = np.argsort(cells, axis=1)

    def mean(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(observations)
        planes = observations.reshape(n, -1, cells.shape[1])
        images = np.stack([planes[:, :, order] for order in came_from])
        logits, values = predict(images.reshape(-1, *observations.shape[1:]))
        logits = logits.reshape(len(actions), n, -1)
        # Action a of the observation is action goes_to[a] of its image.
        back = [image[:, goes_to] for image, goes_to in zip(logits, actions, strict=True)]
        return np.mean(back, axis=0), values.reshape(len(actions), n, -1).mean(axis=0)

    return mean


# --- ONNX ----------------------------------------------------------------------------------------


def export_onnx(model: nn.Module, game: Game, path: str | os.PathLike[str]) -> None:
    """Write a network as an ONNX file: input `observations`, outputs `logits` and `values`."""
    load_module("uctree.learn.network").check_network(model, game)
    content = onnx_bytes(model, game)
    with told(Path(path), "writing the network"), replacing(Path(path)) as file:
        file.write(content)


def load_onnx(
    path: str | os.PathLike[str], game: Game, *, symmetries: bool = False, leaves: int = 1,
    cache: str | int = "64MB",
) -> evaluators.Evaluator:  # fmt: skip
    """The network of an ONNX file as an evaluator, without torch; arguments as in `evaluator`."""
    path = Path(path)
    return onnx_evaluator(
        path.read_bytes(), game, symmetries=symmetries, leaves=leaves, cache=cache, name=str(path)
    )


def onnx_evaluator(
    content: bytes, game: Game, *, symmetries: bool = False, leaves: int = 1,
    cache: str | int = "64MB", name: str = "network",
) -> evaluators.Evaluator:  # fmt: skip
    """The network of an ONNX file's bytes as an evaluator; arguments as in `evaluator`."""
    predict = _by_onnx(content, name)
    _check_answer(predict, game, name)
    function = _over_symmetries(predict, game) if symmetries else predict
    return evaluators.network(function, name=name, leaves=leaves, cache=cache)


def onnx_bytes(model: nn.Module, game: Game | None) -> bytes:
    """A network as the content of an ONNX file."""
    torch, network = load_module("torch"), load_module("uctree.learn.network")
    if game is not None:
        shape: Any = game.observation_shape
    elif isinstance(model, network.Network):
        shape = model.description["observation_shape"]
    else:
        raise ValueError('backend="onnx" needs the game, for the shape of observations: give game=')
    names = ["observations", "logits", "values"]
    buffer: Any = io.BytesIO()
    with network.evaluating(model), warnings.catch_warnings():
        # The newer exporter, which is advertised, needs one more package.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            model, (torch.zeros(2, *shape),), buffer, dynamo=False, input_names=names[:1],
            output_names=names[1:], dynamic_axes={name: {0: "n"} for name in names},
        )  # fmt: skip
    content = buffer.getvalue()
    _check_export(model, content, shape)
    return bytes(content)


def int8_bytes(model: nn.Module, game: Game, observations: np.ndarray) -> bytes:
    """A network as the content of an ONNX file that computes with 8 bits.

    Args:
        observations: some that the network is shown, [n, ...]; they tell what numbers occur inside.
    """
    quantization = load_module("onnxruntime.quantization")
    prepare = load_module("onnxruntime.quantization.shape_inference").quant_pre_process
    batches = iter([{"observations": observations}])
    reader = SimpleNamespace(get_next=lambda: next(batches, None))
    with tempfile.TemporaryDirectory() as folder, _quiet():
        exact, ready, small = (Path(folder, name) for name in ("exact", "ready", "small"))
        exact.write_bytes(onnx_bytes(model, game))
        prepare(str(exact), str(ready), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(ready), str(small), reader, per_channel=True, op_types_to_quantize=LAYERS,
            nodes_to_exclude=_last_layers(load_module("onnx").load(str(ready))),
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
        return small.read_bytes()


LAYERS = ["Conv", "Gemm", "Add", "Relu"]  # not what makes returns of the last ones


def _last_layers(file: Any) -> list[str]:
    """The layers that no other one follows: what the heads say stays exact."""
    leads_on: set[str] = set()  # tensors that a later layer takes
    last = []
    for node in reversed(file.graph.node):
        is_layer = node.op_type in ("Conv", "Gemm")
        if is_layer and leads_on.isdisjoint(node.output):
            last.append(node.name)
        if is_layer or not leads_on.isdisjoint(node.output):
            leads_on.update(node.input)
    return last


def random_observations(game: Game, count: int = 256) -> np.ndarray:
    """What a network is shown in episodes of random play, [n, ...], n at least `count`."""
    states: list[np.record] = []
    for seed in itertools.count():
        state = game.start()
        for action in game.random_episode(seed).actions:
            if state["to_play"] >= 0:
                states.append(state)
            state, _ = game.step(state, action)
        if len(states) >= count:
            break
    return observed(game, states).observations


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the advice that ONNX Runtime gives about its own steps."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _check_export(model: nn.Module, content: bytes, shape: tuple[int, ...]) -> None:
    """Raise where the exported network answers otherwise than the module.

    An export follows one forward pass: whatever depends in Python on the size of a batch, or on
    numbers, stays as it was then.
    """
    load_module("onnxruntime")
    observations = np.random.default_rng(0).random((3, *shape), np.float32)
    asked = _by_torch(model)(observations)
    try:
        exported = _by_onnx(content)(observations)
        same = all(np.allclose(*pair, 1e-3, 1e-3) for pair in zip(exported, asked, strict=True))
    except Exception:  # of shapes that do not fit, by ONNX Runtime or by NumPy
        same = False
    if not same:
        raise UctreeError(
            f"{type(model).__name__} answers otherwise as ONNX than in torch: its forward depends "
            "in Python on the number of observations or on their content; write it with tensor "
            'operations alone, or use backend="torch"'
        )


def _by_onnx(content: bytes, told: str = "the network", threads: int = 1) -> Predictor:
    onnxruntime = load_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what is wrong is raised, not printed
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has a dozen kinds, which share no base of their own
        raise UctreeError(f"{told} is no ONNX network that can be run: {error}") from error

    def predict(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = session.run(["logits", "values"], {"observations": observations})
        return logits, values

    return predict


def _check_answer(predict: Predictor, game: Game, told: str) -> None:
    """Raise where an ONNX network does not fit the game."""
    observations = np.zeros((2, *(game.observation_shape or ())), np.float32)
    shapes = [(2, game.num_actions), (2, game.num_players)]
    try:
        came = [part.shape for part in predict(observations)]
    except Exception as error:
        raise BrokenGame(
            f"{told} does not take observations of {game.name}, {list(observations.shape)}; "
            f"export it with export_onnx(model, game, path): {error}"
        ) from error
    if came != shapes:
        raise BrokenGame(
            f"{told} answers logits and values of shapes {came} to 2 observations of {game.name}; "
            f"expected {shapes}"
        )
