"""What an ONNX file refers to: one that reads other files is refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from uctree import UctreeError, games
from uctree.learn.onnx_format import DEEPEST, check_self_contained

pytest.importorskip("torch", reason="the learn extra is not installed")
pytest.importorskip("onnxruntime", reason="the learn extra is not installed")

from tests.learn.networks import small
from uctree.learn import inference

pytestmark = pytest.mark.quick


def external(content):
    """The network with one weight in another file."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(content)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "../../etc/passwd"), ("offset", "0"), ("length", "64")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return model


def test_a_network_with_weights_in_another_file_is_refused(tmp_path):
    game = games.tic_tac_toe()
    content = inference.onnx_bytes(small(game), game)
    inference.onnx_evaluator(content, game)
    model = external(content)
    with pytest.raises(UctreeError, match="has weights in another file"):
        inference.onnx_evaluator(model.SerializeToString(), game)
    model.graph.initializer[0].ClearField("external_data")
    with pytest.raises(UctreeError, match="has weights in another file"):
        inference.onnx_evaluator(model.SerializeToString(), game)


def test_a_tensor_within_an_attribute_is_found_too():
    onnx = pytest.importorskip("onnx")
    game = games.tic_tac_toe()
    model = external(inference.onnx_bytes(small(game), game))
    tensor = model.graph.initializer.pop(0)
    inner = onnx.helper.make_graph([], "inner", [], [], initializer=[tensor])
    node = onnx.helper.make_node("If", [], [], then_branch=inner, else_branch=inner)
    model.graph.node.append(node)
    with pytest.raises(UctreeError, match="has weights in another file"):
        inference.onnx_evaluator(model.SerializeToString(), game)


def test_damaged_networks_are_refused_with_an_error_of_ours():
    game = games.tic_tac_toe()
    content = inference.onnx_bytes(small(game), game)
    rng = np.random.default_rng(1)
    for _ in range(60):
        changed = bytearray(content)
        for at in rng.integers(0, min(400, len(content)), 3):
            changed[at] ^= int(rng.integers(1, 256))
        with contextlib.suppress(ValueError):
            inference.onnx_evaluator(bytes(changed[: int(rng.integers(1, len(content) + 1))]), game)


# --- messages written by hand --------------------------------------------------------------------


def field(number, content):
    """A field of a message that holds bytes."""
    return bytes([number << 3 | 2]) + length(len(content)) + content


def length(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + length(number >> 7)


def test_tensors_are_found_by_the_numbers_of_their_fields():
    tensor = field(13, b"elsewhere")
    with pytest.raises(UctreeError, match="net has weights in another file"):
        check_self_contained(field(7, field(5, tensor)), "net")
    with pytest.raises(UctreeError, match="net has weights in another file"):
        check_self_contained(field(7, field(5, bytes([14 << 3, 1]))), "net")
    check_self_contained(field(7, field(5, bytes([14 << 3, 0]))), "net")
    check_self_contained(field(7, field(9, tensor)), "net")  # a field of something else


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\x3a\x7f", "it is cut off"), (b"\x0b", "a field of type 3"), (b"\xff" * 12, "10 bytes")],
)
def test_what_is_no_message_is_refused(content, message):
    with pytest.raises(UctreeError, match=f"is not an ONNX network that can be run: .*{message}"):
        check_self_contained(content, "net")


def test_graphs_within_graphs_have_a_bound():
    graph = b""
    for _ in range(DEEPEST):
        graph = field(1, field(5, field(6, graph)))
    with pytest.raises(UctreeError, match=f"nested more than {DEEPEST} times"):
        check_self_contained(field(7, graph), "net")
