"""Finds what a function can reach: globals, closure cells, plain functions in other files."""

from __future__ import annotations

import dis
import importlib.util
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from uctree.errors import BrokenGame
from uctree.kernels.binding import UNBOUND

# Modules whose functions Numba itself compiles; only their version enters fingerprints.
KNOWN_TO_NUMBA = {"numpy", "math", "cmath", "numba", "operator", "builtins", "random"}


# --- following a function to all it reaches ------------------------------------------------------


def reached(function: types.FunctionType, bindings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names a function reads from outside, with their values; closure cells come first."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    builtins = function.__globals__.get("__builtins__", {})
    builtins = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
    for name, line in sorted(global_names(code).items()):
        value = function.__globals__.get(name, builtins.get(name, _MISSING))
        if value is UNBOUND:
            value = bindings[name]
        elif value is _MISSING:
            raise BrokenGame(
                f"{function.__name__} uses the name {name!r}, which is not defined\n"
                f"  {place_in_source(code.co_filename, line)}"
            )
        yield name, value


_MISSING = object()


def reached_functions(
    function: types.FunctionType, bindings: dict[str, Any], seen: set[int]
) -> Iterator[types.FunctionType]:
    """A function and every plain function it reaches, each once."""
    if id(function) in seen:
        return
    seen.add(id(function))
    yield function
    for _, value in reached(function, bindings):
        members = [value]
        if isinstance(value, types.ModuleType) and is_own_module(value):
            members = [member for _, member in members_read(value, function.__code__)]
        elif isinstance(value, tuple):
            members = list(value)
        for member in members:
            plain = getattr(member, "py_func", member)
            if isinstance(plain, types.FunctionType):
                yield from reached_functions(plain, bindings, seen)


def nested_code(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the comprehensions and functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested_code(constant)


def place_in_source(path: str, line: int) -> str:
    return f"{path}, line {line}:  {linecache.getline(path, line).strip()}"


def place_of_error(error: BaseException) -> str:
    """The line of a user's file, or of a built-in game, that raised an error; empty if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_users_file(frame.filename)]
    return place_in_source(own[-1].filename, own[-1].lineno or 0) if own else ""


def is_users_file(path: str) -> bool:
    """Whether a file is neither uctree's nor of a library that compiles or computes for it."""
    if path == "<string>":  # an adapter
        return False
    path = os.path.abspath(path)
    if path.startswith(_PACKAGE) and os.sep + "games" + os.sep not in path:
        return False
    return not any(path.startswith(folder) for folder in _LIBRARIES)


_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = [
    str(Path(spec.origin).parent) + os.sep
    for spec in map(importlib.util.find_spec, ("numpy", "numba", "llvmlite"))
    if spec is not None and spec.origin is not None
]


@lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> dict[str, int]:
    """Global names read by a code object or one nested in it, each with a line that reads it."""
    names: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.setdefault(str(instruction.argval), line)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names = global_names(constant) | names
    return names


def module_name(function: Callable[..., Any]) -> str:
    """The module of a function; code run by `exec` may have none."""
    return function.__module__ or "__main__"


def is_own_module(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] not in KNOWN_TO_NUMBA


def members_read(module: types.ModuleType, code: types.CodeType) -> list[tuple[str, Any]]:
    """The attributes that a function may read from a module: all whose names it mentions."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(constant.co_names)
    return [(name, getattr(module, name)) for name in sorted(names) if hasattr(module, name)]


HERE = sys.modules[__name__]
