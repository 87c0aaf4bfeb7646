"""Hashes of everything that functions can reach.

`fingerprint` is for machine code: any change gives another hash, so that the cache is never stale.
`source_fingerprint` is for files: it hashes the source instead of the byte code, so that another
version of Python, NumPy or uctree and other comments, docstrings and annotations give the same.
"""

from __future__ import annotations

import ast
import enum
import functools
import hashlib
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.engine.reach import (
    HERE,
    KNOWN_TO_NUMBA,
    is_own_module,
    members_read,
    module_name,
    reached,
)
from uctree.engine.watch import Watch


class NotFingerprintable(Exception):
    """Functions reach an object that cannot be hashed."""


@dataclass(frozen=True)
class Fingerprint:
    """A hash of everything that a function can reach."""

    name: str
    unknown: str  # an object that cannot be hashed by its content; "" if there is none
    watch: Watch  # of all that was reached outside uctree


def fingerprint(function: Callable[..., Any], bindings: dict[str, Any], *extra: Any) -> Fingerprint:
    """The fingerprint of `function` with its unbound names bound, and of `extra`."""
    writer = _FingerprintWriter(bindings)
    writer.write(function)
    writer.write(extra)
    return Fingerprint(writer.digest.hexdigest()[:40], writer.unknown, writer.watch)


def source_fingerprint(functions: Iterable[Callable[..., Any] | None], *extra: Any) -> str:
    """A hash of the source of functions, and of everything they can reach.

    NotFingerprintable if some cannot be hashed, or if a source is not that of the running code.
    """
    writer = _SourceWriter({})
    writer.write((tuple(functions), extra))
    if writer.unknown:
        raise NotFingerprintable(writer.unknown)
    return writer.digest.hexdigest()


class _FingerprintWriter:
    def __init__(self, bindings: dict[str, Any]) -> None:
        self.bindings = bindings
        self.digest = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []
        self.unknown = ""
        self.watch = Watch()
        self.is_outside = False  # whether the function being written is outside uctree

    def text(self, *parts: object) -> None:
        for part in parts:
            self.digest.update(f"{part}\0".encode())

    def write(self, value: Any, code: types.CodeType | None = None) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self.text(type(value).__name__, repr(value))
        elif isinstance(value, (tuple, list, frozenset)):
            items = sorted(value, key=repr) if isinstance(value, frozenset) else value
            self.text(type(value).__name__, len(value), getattr(value, "_fields", ""))
            if isinstance(value, list) and self.is_outside:
                self.watch.add_list(value)
            for item in items:
                self.write(item, code)
        elif isinstance(value, np.dtype):
            self._write_dtype(value)
        elif isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.hasobject:
                self.unknown = self.unknown or f"an array of objects, {value!r:.80}"
                return
            self._write_array_type(value)
            self.digest.update(value.tobytes())
            if isinstance(value, np.ndarray) and self.is_outside:
                self.watch.add_array(value)
        elif isinstance(value, types.CodeType):
            self._write_code(value)
        elif hasattr(value, "py_func") and hasattr(value, "targetoptions"):  # decorated by a user
            self._write_dispatcher(value)
        elif isinstance(value, types.FunctionType):
            self._write_function(value)
        elif isinstance(value, types.ModuleType):
            self.text("module", value.__name__, self._version(value))
            if code is not None and is_own_module(value):
                for name, member in members_read(value, code):
                    self.text(name)
                    self.write(member, code)
                    if self.is_outside:
                        self.watch.add_name(vars(value), name)
        elif hasattr(value, "uctree_primitive"):
            self.text("primitive", value.uctree_primitive)
        elif isinstance(value, enum.EnumMeta):
            self.text("enum", value, list(value.__members__.items()))
        elif isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)) or _is_known(value):
            self.text("name", type(value).__name__, getattr(value, "__module__", ""))
            self._write_name(value)
            self.text(getattr(value, "_fields", ""))  # of a named tuple
        else:
            self.unknown = self.unknown or f"{value!r:.80} of type {type(value).__name__}"

    # What another version of Python or NumPy changes.

    def _version(self, module: types.ModuleType) -> str:
        return str(getattr(module, "__version__", ""))

    def _write_dtype(self, dtype: np.dtype) -> None:
        self.text("dtype", dtype, dtype.fields, dtype.itemsize)

    def _write_array_type(self, array: np.ndarray | np.generic) -> None:
        self.text("array", array.dtype, array.shape)

    def _write_dispatcher(self, value: Any) -> None:
        self.text("dispatcher", sorted(value.targetoptions.items()))
        self.write(value.py_func)

    def _write_name(self, value: Any) -> None:
        self.text(value)

    def _write_body(self, function: types.FunctionType) -> None:
        self._write_code(function.__code__)

    def _reached(self, function: types.FunctionType) -> Iterable[tuple[str, Any]]:
        return reached(function, self.bindings)

    def _write_code(self, code: types.CodeType) -> None:
        self.text("code", code.co_name, code.co_argcount, code.co_flags, code.co_names)
        self.text(code.co_varnames, code.co_freevars, code.co_cellvars, code.co_code.hex())
        self.write(code.co_consts)

    def _write_function(self, function: types.FunctionType) -> None:
        if id(function) in self.seen:
            self.text("seen", self.seen[id(function)])
            return
        self.seen[id(function)] = len(self.seen)
        self.alive.append(function)
        if not is_own_module(sys.modules.get(module_name(function), HERE)):
            self.text("name", module_name(function), function.__qualname__)
            return
        is_ours = module_name(function).startswith("uctree.")
        self.text("function", is_ours)
        around = self.is_outside
        self.is_outside = not (is_ours or hasattr(function, "is_adapter"))
        if self.is_outside:
            self.watch.add_function(function)
        self._write_body(function)
        self.write(function.__defaults__)
        self.write(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, value in self._reached(function):
            self.text(name)
            self.write(value, function.__code__)
            if self.is_outside and name not in function.__code__.co_freevars:
                self.watch.add_name(function.__globals__, name)
        self.is_outside = around


class Contents:
    """The fingerprints of functions that reach each other, each computed from those it reaches."""

    def __init__(self, bindings: dict[str, Any]) -> None:
        self.bindings = bindings
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []  # ids in `_known` are valid while their objects are alive
        self._path: list[int] = []  # of the functions being written
        self._in_circles: set[int] = set()  # those that reach themselves

    def of(self, function: types.FunctionType) -> str:
        """The fingerprint of a function with its unbound names bound."""
        key = id(function)
        if key in self._known:
            return self._known[key]
        if key in self._path:
            self._in_circles.update(self._path[self._path.index(key) :])
            return ""
        self._path.append(key)
        writer = _PartWriter(self)
        writer.write(function)
        self._path.pop()
        name = writer.digest.hexdigest()
        if key in self._in_circles:  # what it was made of is not complete
            name = fingerprint(function, self.bindings).name
        self._alive.append(function)
        self._known[key] = name
        return name


class _PartWriter(_FingerprintWriter):
    """Writes one function, and those it reaches as their fingerprints."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents.bindings)
        self._contents, self._is_inside = contents, False

    def _write_function(self, function: types.FunctionType) -> None:
        if self._is_inside:
            self.text("function", self._contents.of(function))
            return
        self._is_inside = True
        super()._write_function(function)


class _SourceWriter(_FingerprintWriter):
    def _version(self, module: types.ModuleType) -> str:
        return ""

    def _write_dtype(self, dtype: np.dtype) -> None:
        self.text("dtype", dtype.str, dtype.itemsize)
        for name in dtype.names or ():
            self.text(name, dtype.fields[name][1])  # type: ignore[index]
            self._write_dtype(dtype.fields[name][0])  # type: ignore[index]
        if dtype.subdtype is not None:
            self.text(dtype.subdtype[1])
            self._write_dtype(dtype.subdtype[0])

    def _write_array_type(self, array: np.ndarray | np.generic) -> None:
        self.text("array", array.shape)
        self._write_dtype(array.dtype)

    def _write_dispatcher(self, value: Any) -> None:
        self.write(value.py_func)

    def _write_name(self, value: Any) -> None:
        self.text(getattr(value, "__qualname__", getattr(value, "__name__", value)))

    def _write_body(self, function: types.FunctionType) -> None:
        self._write_syntax(_definition(function))

    def _reached(self, function: types.FunctionType) -> Iterable[tuple[str, Any]]:
        return sorted(reached(function, self.bindings), key=lambda pair: pair[0])

    def _write_syntax(self, node: Any) -> None:
        """Write a syntax tree without docstrings, annotations and what some versions leave out."""
        if isinstance(node, list):
            self.text("[", len(node))
            for each in node:
                self._write_syntax(each)
        elif isinstance(node, ast.AST):
            self.text(type(node).__name__)
            for name, value in ast.iter_fields(node):
                if name in _NOT_CODE or value is None or value == []:
                    continue
                if name == "body" and isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                    value = value[1:]
                self.text(name)
                self._write_syntax(value)
        else:
            self.text(type(node).__name__, repr(node))


_NOT_CODE = {"annotation", "returns", "type_comment", "type_params", "kind", "ctx"}


def _definition(function: types.FunctionType) -> ast.AST:
    """The syntax tree of a function; NotFingerprintable if its source is missing or was edited."""
    code = function.__code__
    for _ in range(2):
        lines = linecache.getlines(code.co_filename, function.__globals__)
        found = _definitions("".join(lines)).get((code.co_name, code.co_firstlineno), [])
        if len(found) == 1 and found[0][1] == code:
            return found[0][0]
        linecache.checkcache(code.co_filename)  # it may have been edited, and loaded again
    raise NotFingerprintable(f"{function.__name__}, whose source is not at hand")


_Place = tuple[str, int]  # the name of a code object and its first line


@functools.lru_cache(maxsize=32)
def _definitions(source: str) -> dict[_Place, list[tuple[ast.AST, types.CodeType]]]:
    """The functions of a file: syntax trees and code objects, by name and first line."""
    try:
        tree = ast.parse(source)
        module = compile(source, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return {}
    codes: dict[_Place, list[types.CodeType]] = {}
    for each in _nested(module):
        codes.setdefault((each.co_name, each.co_firstlineno), []).append(each)
    found: dict[_Place, list[tuple[ast.AST, types.CodeType]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            place = name, min([node.lineno, *(each.lineno for each in decorators)])
            found.setdefault(place, []).extend((node, code) for code in codes.get(place, []))
    return found


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _is_known(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return callable(value) and str(module).partition(".")[0] in KNOWN_TO_NUMBA
