"""The file of a tree: a header, the bytes of its arrays, a checksum. Nothing in it is executed.

    8 bytes    MAGIC
    8 bytes    VERSION, and the length of the header, as two little-endian uint32
    header     JSON: {"header": {...}, "arrays": [{"name", "dtype", "shape"}, ...]}
    arrays     their bytes, one after the other
    32 bytes   SHA-256 of everything before

The sizes in the header are compared with the size of the file first, so reading a damaged or
foreign file takes no more memory than the file has bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import struct
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from uctree.engine.jsontext import parse_json
from uctree.errors import UctreeError

MAGIC = b"\x93uctree\n"  # no text file begins like this
VERSION = 1
DIGEST_BYTES = 32
LARGEST_HEADER = 1 << 24  # bytes; JSON takes several times as much memory
PIECE = 1 << 20  # bytes that are hashed and written, or read, at a time
MOST_DIMENSIONS, LARGEST_DIMENSION = 32, 2**48
NUMBERS = "biufc"  # kinds of dtypes that a file may hold, alone or in records

Name = str | os.PathLike[str]  # of a file

_PREFIX = struct.Struct(f"<{len(MAGIC)}sII")


# --- writing -------------------------------------------------------------------------------------


def write(path: Name, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file atomically: afterwards it is complete, or the old one is unchanged.

    Args:
        header: JSON data; NumPy numbers and arrays become plain ones.
        arrays: of numbers, or of records of numbers.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    described = [
        {"name": name, "dtype": describe_dtype(array.dtype), "shape": array.shape}
        for name, array in arrays.items()
    ]
    try:
        content = {"header": header, "arrays": described}
        text = json.dumps(content, default=_plain, allow_nan=False).encode()
    except ValueError as error:  # JSON has no NaN and no Infinity
        raise UctreeError(f"the header of a tree file holds JSON data: {error}") from None
    if len(text) > LARGEST_HEADER:
        raise UctreeError(
            f"the header of a tree file has at most {LARGEST_HEADER:,} bytes; got {len(text):,}. "
            "Store large data as an array"
        )
    with replacing(Path(os.path.realpath(path))) as file:
        digest = hashlib.sha256()
        prefix = _PREFIX.pack(MAGIC, VERSION, len(text))
        for part in (memoryview(prefix + text), *map(_bytes, arrays.values())):
            for start in range(0, len(part), PIECE):
                piece = part[start : start + PIECE]
                digest.update(piece)
                file.write(piece)
        file.write(digest.digest())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file in the same folder, which replaces `path` at the end."""
    temporary = path.with_name(f".uctree-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name outlives a power cut too
        finally:
            os.close(folder)


def _bytes(array: np.ndarray) -> memoryview:
    """The bytes of an array; no copy if it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(
        f"the header of a tree file holds JSON data; got {type(value).__name__} {value!r}"
    )


# --- reading -------------------------------------------------------------------------------------


def read(path: Name) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file that `write` made; UctreeError for any other."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256()
        header_bytes = _read_prefix(path, file, size, digest)
        header, described = _read_header(path, file, header_bytes, digest)
        left = size - _PREFIX.size - header_bytes - DIGEST_BYTES
        _check_sizes(path, described, left)
        arrays = {}
        for name, dtype, shape in described:
            arrays[name] = _empty(path, shape, dtype)
            _fill(path, file, _bytes(arrays[name]), digest)
        if file.read(DIGEST_BYTES) != digest.digest():
            raise _damaged(path, "its checksum is wrong")
    return header, arrays


def _read_prefix(path: Name, file: BufferedReader, size: int, digest: Any) -> int:
    """The length of the header."""
    prefix = file.read(_PREFIX.size)
    if not prefix.startswith(MAGIC):
        raise UctreeError(
            f"{path} is not a tree of uctree: it begins with {prefix[: len(MAGIC)]!r}, expected "
            f"{MAGIC!r}; give a file that Tree.save wrote"
        )
    if len(prefix) < _PREFIX.size:
        raise _cut_off(path, size, _PREFIX.size)
    _, version, header_bytes = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise UctreeError(
            f"{path} has version {version} of the tree format, and this uctree reads version "
            f"{VERSION}; load it with the uctree that wrote it, or update this one"
        )
    least = _PREFIX.size + header_bytes + DIGEST_BYTES
    if header_bytes > LARGEST_HEADER:
        raise _damaged(path, f"a header of {header_bytes:,} bytes is too large")
    if size < least:
        raise _cut_off(path, size, least)
    digest.update(prefix)
    return int(header_bytes)


_Described = list[tuple[str, np.dtype, tuple[int, ...]]]


def _read_header(
    path: Name, file: BufferedReader, header_bytes: int, digest: Any
) -> tuple[dict[str, Any], _Described]:
    """The header, and name, dtype and shape of each array."""
    text = file.read(header_bytes)
    digest.update(text)
    try:
        content = parse_json(text.decode())
        header = content["header"]
        if not isinstance(header, dict):
            raise TypeError(f"the header is {header!r}")
        described = [
            (str(each["name"]), _array_dtype(each["dtype"]), _checked_shape(each["shape"]))
            for each in content["arrays"]
        ]
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise _damaged(path, f"its header cannot be read ({error})") from None
    return header, described


def _array_dtype(description: Any) -> np.dtype:
    dtype = dtype_from(description)
    if dtype.itemsize == 0 or dtype.subdtype is not None:
        raise ValueError(f"{description!r} is not a dtype of an array")
    return dtype


def _checked_shape(shape: Any) -> tuple[int, ...]:
    is_shape = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    # Products of larger numbers take long, and longer to be printed.
    if not is_shape or not all(type(n) is int and 0 <= n <= LARGEST_DIMENSION for n in shape):
        raise TypeError(f"{shape!r:.200} is not a shape")
    return tuple(shape)


def _check_sizes(path: Name, described: _Described, left: int) -> None:
    """Raise an error unless the arrays take exactly the bytes that the file has left."""
    wanted = sum(dtype.itemsize * math.prod(shape) for _, dtype, shape in described)
    if wanted > left:
        raise UctreeError(
            f"{path} is cut off or damaged: its arrays need {wanted:,} bytes and it has "
            f"{max(0, left):,} of them; save the tree again, or take another copy of the file"
        )
    if wanted < left:
        raise _damaged(path, f"{left - wanted:,} bytes follow its last array")


def _empty(path: Name, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    try:
        return np.empty(shape, dtype)
    except ValueError as error:  # too many dimensions, or too large ones beside one of 0
        raise _damaged(path, f"it has an array of shape {shape} ({error})") from None


def _fill(path: Name, file: BufferedReader, target: memoryview, digest: Any) -> None:
    """Fill `target` from the file and hash the bytes, piece by piece."""
    for start in range(0, len(target), PIECE):
        piece = target[start : start + PIECE]
        if file.readinto(piece) != len(piece):
            raise _damaged(path, "it became shorter while it was read")
        digest.update(piece)


def _cut_off(path: Name, size: int, least: int) -> UctreeError:
    return UctreeError(
        f"{path} is cut off or damaged: it has {size:,} bytes and says it has at least {least:,}; "
        "save the tree again, or take another copy of the file"
    )


def _damaged(path: Name, how: str) -> UctreeError:
    return UctreeError(
        f"{path} was changed or damaged after it was written: {how}; save the tree again, or take "
        "another copy of the file"
    )


# --- dtypes --------------------------------------------------------------------------------------


def describe_dtype(dtype: np.dtype) -> Any:
    """A dtype as JSON data: its type, or the offsets and types of its fields and its size.

    >>> describe_dtype(np.dtype([("visits", np.int32), ("value_sum", np.float64, (2,))]))
    {'size': 20, 'fields': {'visits': [0, '<i4'], 'value_sum': [4, ['<f8', [2]]]}}
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [describe_dtype(base), list(shape)]
    if dtype.fields is not None:
        fields = {
            name: [dtype.fields[name][1], describe_dtype(dtype.fields[name][0])]
            for name in dtype.names or ()
        }
        return {"size": dtype.itemsize, "fields": fields}
    if dtype.kind not in NUMBERS:
        raise UctreeError(
            f"a tree file holds numbers and records of numbers; got the dtype {dtype}. Store "
            "everything else in the header"
        )
    return dtype.str


def dtype_from(description: Any) -> np.dtype:
    """The dtype of a description; ValueError or TypeError if that is invalid.

    >>> dtype_from({"size": 8, "fields": {"visits": [0, "<i4"], "first": [4, "<i4"]}})
    dtype([('visits', '<i4'), ('first', '<i4')])
    """
    if isinstance(description, dict):
        fields = {
            name: (dtype_from(each), offset)
            for name, (offset, each) in description["fields"].items()
        }
        return np.dtype(
            {
                "names": list(fields),
                "formats": [each for each, _ in fields.values()],
                "offsets": [offset for _, offset in fields.values()],
                "itemsize": description["size"],
            }
        )
    if isinstance(description, list):
        base, shape = description
        return np.dtype((dtype_from(base), _checked_shape(shape)))
    if isinstance(description, str) and re.fullmatch(rf"[<>|][{NUMBERS}]\d{{1,2}}", description):
        return np.dtype(description)
    raise ValueError(f"{description!r} is not a dtype of numbers")
