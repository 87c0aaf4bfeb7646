"""What an ONNX file refers to: one that reads other files is refused.

A tensor of an ONNX file may be stored in another file, named by any path, and ONNX Runtime would
read it. The messages of the format are walked here as protocol buffers, so that neither ONNX nor
its compiler is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from uctree.errors import UctreeError

# Messages of the format, and their fields that hold messages: onnx.proto3.
_MESSAGES = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Training": {1: "Graph", 2: "Graph"},
    "Function": {7: "Node", 11: "Attribute"},
    "Graph": {1: "Node", 5: "Tensor", 15: "Sparse"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "Sparse", 23: "Sparse"},
    "Sparse": {1: "Tensor", 2: "Tensor"},
    "Tensor": {},
}
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14  # fields of a tensor
DEEPEST = 50  # graphs within graphs


def check_self_contained(content: bytes, name: str) -> None:
    """Raise UctreeError if an ONNX file has tensors in other files, or cannot be read."""
    try:
        is_external = _has_external(memoryview(content), "Model", DEEPEST)
    except (IndexError, ValueError) as error:
        raise UctreeError(f"{name} is not an ONNX network that can be run: {error}") from None
    if is_external:
        raise UctreeError(
            f"{name} has weights in another file, which a file from somebody else could choose "
            "freely; save it with all its weights inside (onnx.save(model, path))"
        )


def _has_external(message: memoryview, kind: str, depth: int) -> bool:
    """Whether a tensor within a message is stored in another file."""
    if depth == 0:
        raise ValueError(f"it is nested more than {DEEPEST} times")
    for field, value in _fields(message):
        if kind == "Tensor" and field == _EXTERNAL_DATA:
            return True
        if kind == "Tensor" and field == _DATA_LOCATION and value != 0:
            return True
        inner = _MESSAGES[kind].get(field)
        if inner is not None and isinstance(value, memoryview):
            if _has_external(value, inner, depth - 1):
                return True
    return False


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number and the value of each field of a message; ValueError if it is none."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        wire = tag & 7
        if wire == 0:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, at = _number(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"it has a field of type {wire}")
        if at + size > len(message):
            raise ValueError("it is cut off")
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number of variable length, and the place after it."""
    value = 0
    for place in range(10):
        byte = message[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    raise ValueError("it has a number of more than 10 bytes")
