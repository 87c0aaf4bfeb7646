"""A tree as a file: a header, the bytes of its arrays, a checksum. Nothing in it is ever executed.

    8 bytes    MAGIC
    8 bytes    VERSION, and the length of the header, as two little-endian uint32
    header     JSON: {"header": {...}, "arrays": [{"name", "dtype", "shape"}, ...]}
    arrays     their bytes, one after the other
    32 bytes   SHA-256 of all that comes before

Whatever a file asks for is held against its own size first, so that reading a damaged or a foreign
one takes no more memory than it has bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import itertools
import json
import math
import os
import re
import secrets
import struct
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from uctree import specs
from uctree.errors import UctreeError
from uctree.game import Game

MAGIC = b"\x93uctree\n"  # no text file begins like this
VERSION = 1
DIGEST_BYTES = 32
LARGEST_HEADER = 1 << 24  # bytes; read as JSON they become several times as many
PIECE = 1 << 20  # bytes that are hashed and written, or read, at a time
NUMBERS = "biufc"  # kinds of dtypes that a file may hold, alone or in records
MOST_GUESSES = 1000  # of a factory's arguments

Name = str | os.PathLike[str]  # of a file

_PREFIX = struct.Struct(f"<{len(MAGIC)}sII")


# --- writing -------------------------------------------------------------------------------------


def write(path: Name, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file in one go: it is there completely, or what was there before still is.

    Args:
        header: what JSON can hold; NumPy numbers and arrays become plain ones.
        arrays: of numbers, or of records of numbers.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    described = [
        {"name": name, "dtype": describe_dtype(array.dtype), "shape": array.shape}
        for name, array in arrays.items()
    ]
    text = json.dumps({"header": header, "arrays": described}, default=_plain).encode()
    if len(text) > LARGEST_HEADER:
        raise UctreeError(
            f"the header of a tree file has at most {LARGEST_HEADER:,} bytes; got {len(text):,}. "
            "Store what is large as an array"
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
    """A file under another name in the same folder, which takes the place of `path` at the end."""
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
    """An array as bytes; not a copy where it lies in one piece."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(
        f"the header of a tree file holds what JSON can; got {type(value).__name__} {value!r}"
    )


# --- reading -------------------------------------------------------------------------------------


def read(path: Name) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file that `write` made; ValueError for any other."""
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
            f"{path} has version {version} of the format of trees, this uctree reads version "
            f"{VERSION}; load it with the uctree that wrote it, or update this one"
        )
    least = _PREFIX.size + header_bytes + DIGEST_BYTES
    if header_bytes > LARGEST_HEADER:
        raise _damaged(path, f"a header of {header_bytes:,} bytes is larger than any")
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
        content = json.loads(text.decode())
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
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise TypeError(f"{shape!r} is not a shape")
    return tuple(shape)


def _check_sizes(path: Name, described: _Described, left: int) -> None:
    """What the arrays ask for has to be what the file has left."""
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
    """Read as many bytes as `target` has, in pieces that are hashed while they are at hand."""
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
    """A dtype as JSON holds it: what it is, where its fields are, and how large it is.

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
            f"a tree file holds numbers and records of numbers; got the dtype {dtype}. Store what "
            "is not a number in the header"
        )
    return dtype.str


def dtype_from(description: Any) -> np.dtype:
    """The dtype that was described; ValueError or TypeError where nothing was.

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


# --- games ---------------------------------------------------------------------------------------


def describe_game(game: Game) -> dict[str, Any]:
    """What is to be known of a game, ready for JSON.

    `spec` is text that makes the game again, as `connect_four(rows=6, cols=7)`, where it is one
    that a function of `uctree.games` makes, and None for others.
    """
    payoffs = game.payoff_range
    space = {} if game.action_space is None else {"action_space": str(game.action_space)}
    return space | {
        "name": game.name,
        "spec": find_spec(game),
        "dtype": describe_dtype(game.dtype),
        "num_players": game.num_players,
        "num_actions": game.num_actions,
        "max_outcomes": game.max_outcomes,
        "discount": game.discount,
        "zero_sum": game.zero_sum,
        "payoff_range": None if payoffs is None else payoffs.tolist(),
    }


def game_from(description: dict[str, Any]) -> Game:
    """The game that was described, made again; ValueError where it is not a built-in one."""
    spec, name = description.get("spec"), description.get("name")
    told = f"the tree is of the game {name!r}"
    do = "pass game=, the one it was grown with (on the command line: name it as file.py:name)"
    if not isinstance(spec, str):
        raise UctreeError(f"{told}, which is not one of uctree.games; {do}")
    try:
        game = specs.read_built_in(spec)
    except Exception as error:  # arguments from a file can be anything
        raise UctreeError(
            f"{told}, and this uctree does not make it from {spec!r} ({error}); {do}"
        ) from error
    check_game(description, game)
    return game


def check_game(description: dict[str, Any], game: Game) -> None:
    """Raise ValueError, with what differs, where `game` is not the one that was described."""
    differences = game_differences(description, game, "in the file", "in the game")
    if differences:
        raise UctreeError(
            f"the tree is of the game {description.get('name')!r}, and {game.name} differs: "
            f"{'; '.join(differences)}. Pass the game that the tree was grown with"
        )


def game_differences(description: dict[str, Any], game: Game, here: str, there: str) -> list[str]:
    """In words, how `game` (there) differs from the one that was described (here)."""
    unnamed = game.name == game.rules.step.__module__  # and so is called after where it is defined
    return [
        f"{key} is {_short(description.get(key))} {here} and {_short(value)} {there}"
        for key, value in describe_game(game).items()
        if description.get(key) != value
        and not (key == "name" and unnamed)
        and not (key == "spec" and None in (value, description.get(key)))
    ]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def find_spec(game: Game) -> str | None:
    """The call of a function of `uctree.games` that makes this very game; None where none does.

    A guess, proven by making the game again: functions of a game close over most arguments of the
    function that made it, and its name tells of the others.

    >>> from uctree import games
    >>> find_spec(games.nim(heaps=(2, 3), misere=False))
    'nim(heaps=(2, 3), misere=False)'
    """
    module = game.rules.step.__module__
    reduced = None
    for name, factory in specs.built_in().items():
        if factory.__module__ != module:
            continue
        for arguments in itertools.islice(_guesses(game, factory), MOST_GUESSES):
            try:
                reduced = reduced or game.__reduce__()
                same = _same(reduced, factory(**arguments).__reduce__())
            except (ValueError, TypeError):  # arguments that it refuses, rules without a name
                continue
            if same:
                listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
                return f"{name}({listed})"
    return None


def _guesses(game: Game, factory: Callable[..., Game]) -> Iterator[dict[str, Any]]:
    """Arguments that `factory` may have been called with."""
    closed: dict[str, Any] = {}
    for function in vars(game.rules).values():
        _collect_closed(function, closed)
    sequences = [tuple(v.tolist()) for v in closed.values() if getattr(v, "ndim", 0) == 1]
    told: list[Any] = re.findall(r"[A-Za-z_]\w*", game.name)
    for number in re.findall(r"\d+(?:\.\d+)?", game.name):
        told.append(float(number) if "." in number else int(number))
    defaults = {name: each.default for name, each in inspect.signature(factory).parameters.items()}
    choices = []
    for name, default in defaults.items():
        if name in closed:
            value = closed[name]
            choices.append([value.item() if isinstance(value, np.generic) else value])
            continue
        others = [True, False, *sequences, *told]
        choices.append([default, *(other for other in others if type(other) is type(default))])
    for values in itertools.product(*choices):
        yield dict(zip(defaults, values, strict=True))


def _collect_closed(function: Any, closed: dict[str, Any]) -> None:
    """The values that a function and those it calls close over, by name."""
    if not isinstance(function, types.FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name not in closed:
            closed[name] = cell.cell_contents
            _collect_closed(cell.cell_contents, closed)


def _same(one: Any, other: Any) -> bool:
    """Whether two reductions of games have the same content, arrays included."""
    one, other = (each.item() if isinstance(each, np.generic) else each for each in (one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one):
        return _same(vars(one), vars(other))
    return bool(one == other)
