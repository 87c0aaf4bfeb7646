"""Networks as evaluators of a search, by torch or by ONNX Runtime.

Both use one thread by default: searches run in several processes at the same time, and two threads
of one process beside another busy process are many times slower than one.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree import evaluators
from uctree.engine.treefile import replacing
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.learn.extras import load_module
from uctree.learn.files import explain_os_errors
from uctree.learn.onnx_format import check_self_contained
from uctree.learn.replay import observe_states
from uctree.learn.targets import symmetries_of

if TYPE_CHECKING:
    from torch import nn

# Observations [n, *shape], float32, to logits [n, num_actions] and values [n, num_players].
Predictor = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def evaluator(
    model: nn.Module, game: Game | None = None, *, backend: str = "torch",
    symmetries: bool = False, threads: int = 1, precision: str = "float32", leaves: int = 1,
    cache: str | int = "64MB",
) -> evaluators.Evaluator:  # fmt: skip
    """A network as an evaluator of a search; other arguments as in `predictor`.

    Args:
        leaves: the number of leaves of one tree in a batch.
        cache: the memory of the evaluation cache.
    """
    function = predictor(
        model, game, backend=backend, symmetries=symmetries, threads=threads, precision=precision
    )
    version = _version_of(model) if backend == "torch" else None
    return evaluators.network(
        function, name=type(model).__name__, leaves=leaves, cache=cache, version=version
    )


def _version_of(model: nn.Module) -> Callable[[], int]:
    """A function whose number grows whenever weights change in place, as optimisers change them."""
    tensors = [
        tensor for tensor in (*model.parameters(), *model.buffers()) if not tensor.is_inference()
    ]
    return lambda: sum(tensor._version for tensor in tensors)


def predictor(
    model: nn.Module, game: Game | None = None, *, backend: str = "torch",
    symmetries: bool = False, threads: int = 1, precision: str = "float32",
) -> Predictor:  # fmt: skip
    """A network as a function of NumPy arrays, from observations to logits and values.

    Args:
        game: the network is checked against it. Needed for `symmetries`, for "int8", and for ONNX
            with a custom module.
        backend: "torch" runs the module itself, so that training changes the results; "onnx" copies
            the current weights, and is faster; "int8" is ONNX with 8 bits, less exact, and faster
            still on processors with instructions for it.
        symmetries: whether results are averaged over all symmetries of the game.
        threads: the number that compute a batch; beside other busy processes 1 is best.
        precision: of matrix products by torch, "float32" or "bfloat16".
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
        predict = _torch_predictor(model, threads, precision)
    elif backend == "onnx":
        predict = _onnx_predictor(onnx_bytes(model, game), threads=threads)
    elif game is None:
        raise ValueError('backend="int8" needs the game, for typical observations: pass game=')
    else:
        content = int8_bytes(model, game, random_observations(game))
        predict = _onnx_predictor(content, threads=threads)
    return _averaged_over_symmetries(predict, game) if symmetries else predict


def _torch_predictor(model: nn.Module, threads: int = 1, precision: str = "float32") -> Predictor:
    torch, evaluating = load_module("torch"), load_module("uctree.learn.network").evaluating
    where = load_module("uctree.learn.devices").of(model)

    def predict(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if torch.get_num_threads() != threads:  # a setting of the calling thread
            torch.set_num_threads(threads)
        with evaluating(model), torch.inference_mode(), where.autocast(precision):
            found = model(where.put(observations))
        logits, values = where.get_all(found)
        return logits, values

    return predict


def _averaged_over_symmetries(predict: Predictor, game: Game | None) -> Predictor:
    """A predictor that averages the results of an observation and its images.

    Logits, not probabilities, are averaged: which actions are legal is not known here, and so the
    probabilities of the legal ones do not depend on the others.
    """
    if game is None:
        raise ValueError("symmetries=True needs the game, for its symmetries: pass game=")
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
    with explain_os_errors(Path(path), "writing the network"), replacing(Path(path)) as file:
        file.write(content)


def load_onnx(
    path: str | os.PathLike[str], game: Game, *, symmetries: bool = False, leaves: int = 1,
    cache: str | int = "64MB",
) -> evaluators.Evaluator:  # fmt: skip
    """The network of an ONNX file as an evaluator, without torch; options as in `evaluator`."""
    path = Path(path)
    return onnx_evaluator(
        path.read_bytes(), game, symmetries=symmetries, leaves=leaves, cache=cache, name=str(path)
    )


def onnx_evaluator(
    content: bytes, game: Game, *, symmetries: bool = False, leaves: int = 1,
    cache: str | int = "64MB", name: str = "network",
) -> evaluators.Evaluator:  # fmt: skip
    """The network of the bytes of an ONNX file as an evaluator; options as in `evaluator`."""
    check_self_contained(content, name)
    predict = _onnx_predictor(content, name)
    _check_shapes(predict, game, name)
    function = _averaged_over_symmetries(predict, game) if symmetries else predict
    return evaluators.network(function, name=name, leaves=leaves, cache=cache)


def onnx_bytes(model: nn.Module, game: Game | None) -> bytes:
    """The bytes of an ONNX file of a network."""
    torch, network = load_module("torch"), load_module("uctree.learn.network")
    shape: Any
    if game is not None:
        shape = game.observation_shape
    elif isinstance(model, network.Network):
        shape = model.description["observation_shape"]
    else:
        raise ValueError('backend="onnx" needs the game, for the observation shape: pass game=')
    model = load_module("uctree.learn.devices").on_cpu(model)
    content = export_bytes(
        model, (torch.zeros(2, *shape),), ("observations",), ("logits", "values")
    )
    _check_export(model, content, shape)
    return content


def export_bytes(
    module: nn.Module, inputs: tuple[Any, ...], names: Sequence[str], outputs: Sequence[str]
) -> bytes:
    """The bytes of an ONNX file of a module, whose inputs and outputs have n rows."""
    torch, network = load_module("torch"), load_module("uctree.learn.network")
    buffer: Any = io.BytesIO()
    with network.evaluating(module), warnings.catch_warnings():
        # The newer exporter, which the warning recommends, needs one more package.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            module, inputs, buffer, dynamo=False, input_names=list(names),
            output_names=list(outputs),
            dynamic_axes={name: {0: "n"} for name in (*names, *outputs)},
        )  # fmt: skip
    return bytes(buffer.getvalue())


def int8_bytes(model: nn.Module, game: Game, observations: np.ndarray) -> bytes:
    """The bytes of an ONNX file of a network, quantized to 8 bits.

    Args:
        observations: typical ones, [n, ...], to calibrate the ranges of activations.
    """
    quantization = load_module("onnxruntime.quantization")
    prepare = load_module("onnxruntime.quantization.shape_inference").quant_pre_process
    batches = iter([{"observations": observations}])
    reader = SimpleNamespace(get_next=lambda: next(batches, None))
    with tempfile.TemporaryDirectory() as folder, _without_warnings():
        exact, ready, small = (Path(folder, name) for name in ("exact", "ready", "small"))
        exact.write_bytes(onnx_bytes(model, game))
        prepare(str(exact), str(ready), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(ready), str(small), reader, per_channel=True, op_types_to_quantize=QUANTIZED_LAYERS,
            nodes_to_exclude=_last_layers(load_module("onnx").load(str(ready))),
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
        return small.read_bytes()


QUANTIZED_LAYERS = ["Conv", "Gemm", "Add", "Relu"]  # the value heads' last functions stay exact


def _last_layers(file: Any) -> list[str]:
    """The last layers of the heads, which are not quantized."""
    leads_on: set[str] = set()  # tensors that a later layer uses
    last = []
    for node in reversed(file.graph.node):
        is_layer = node.op_type in ("Conv", "Gemm")
        if is_layer and leads_on.isdisjoint(node.output):
            last.append(node.name)
        if is_layer or not leads_on.isdisjoint(node.output):
            leads_on.update(node.input)
    return last


def random_observations(game: Game, count: int = 256) -> np.ndarray:
    """The observations of episodes of random play, [n, ...], n at least `count`."""
    states: list[np.record] = []
    for seed in itertools.count():
        state = game.start()
        for action in game.random_episode(seed).actions:
            if state["to_play"] >= 0:
                states.append(state)
            state, _ = game.step(state, action)
        if len(states) >= count:
            break
    return observe_states(game, states).observations


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence the log messages of ONNX Runtime's quantization."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _check_export(model: nn.Module, content: bytes, shape: tuple[int, ...]) -> None:
    """Raise UctreeError if the exported network gives other results than the module.

    An export traces one forward pass: Python code that depends on the size of a batch or on its
    numbers is frozen as it was in that pass.
    """
    load_module("onnxruntime")
    observations = np.random.default_rng(0).random((3, *shape), np.float32)
    by_torch = _torch_predictor(model)(observations)
    try:
        exported = _onnx_predictor(content)(observations)
        same = all(np.allclose(*pair, 1e-3, 1e-3) for pair in zip(exported, by_torch, strict=True))
    except Exception:  # shapes that do not fit, raised by ONNX Runtime or NumPy
        same = False
    if not same:
        raise UctreeError(
            f"{type(model).__name__} gives other results as ONNX than in torch: its forward "
            "depends in Python on the number of observations or on their content; write it with "
            'tensor operations alone, or use backend="torch"'
        )


def onnx_session(content: bytes, name: str = "the network", threads: int = 1) -> Any:
    """A session of ONNX Runtime; UctreeError if the bytes are no network."""
    onnxruntime = load_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors are raised, not printed
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has a dozen classes without a common base
        raise UctreeError(f"{name} is not an ONNX network that can be run: {error}") from error


def _onnx_predictor(content: bytes, name: str = "the network", threads: int = 1) -> Predictor:
    session = onnx_session(content, name, threads)

    def predict(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = session.run(["logits", "values"], {"observations": observations})
        return logits, values

    return predict


def _check_shapes(predict: Predictor, game: Game, name: str) -> None:
    """Raise BrokenGame if an ONNX network does not fit the game."""
    observations = np.zeros((2, *(game.observation_shape or ())), np.float32)
    shapes = [(2, game.num_actions), (2, game.num_players)]
    try:
        came = [part.shape for part in predict(observations)]
    except Exception as error:
        raise BrokenGame(
            f"{name} does not take observations of {game.name}, {list(observations.shape)}; "
            f"export it with export_onnx(model, game, path): {error}"
        ) from error
    if came != shapes:
        raise BrokenGame(
            f"{name} gives logits and values of shapes {came} for 2 observations of {game.name}; "
            f"expected {shapes}"
        )
