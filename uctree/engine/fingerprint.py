"""A hash of everything that a function can reach, so that machine code is never stale."""

from __future__ import annotations

import enum
import hashlib
import sys
import types
from collections.abc import Callable
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


class NotFingerprintable(Exception):
    """A kernel reaches an object whose content cannot be hashed."""


# --- fingerprints --------------------------------------------------------------------------------


def fingerprint(function: Callable[..., Any], bindings: dict[str, Any], *extra: Any) -> str:
    """A hash of everything `function` can reach; NotFingerprintable if some cannot be hashed."""
    writer = _FingerprintWriter(bindings)
    writer.write(function)
    writer.write(extra)
    return writer.digest.hexdigest()


class _FingerprintWriter:
    def __init__(self, bindings: dict[str, Any]) -> None:
        self.bindings = bindings
        self.digest = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []

    def text(self, *parts: object) -> None:
        for part in parts:
            self.digest.update(f"{part}\0".encode())

    def write(self, value: Any, code: types.CodeType | None = None) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self.text(type(value).__name__, repr(value))
        elif isinstance(value, (tuple, list, frozenset)):
            items = sorted(value, key=repr) if isinstance(value, frozenset) else value
            self.text(type(value).__name__, len(value), getattr(value, "_fields", ""))
            for item in items:
                self.write(item, code)
        elif isinstance(value, np.dtype):
            self.text("dtype", value, value.fields, value.itemsize)
        elif isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.hasobject:
                raise NotFingerprintable(f"an array of objects, {value!r:.80}")
            self.text("array", value.dtype, value.shape)
            self.digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, types.CodeType):
            self._write_code(value)
        elif hasattr(value, "py_func") and hasattr(value, "targetoptions"):  # decorated by a user
            self.text("dispatcher", sorted(value.targetoptions.items()))
            self.write(value.py_func)
        elif isinstance(value, types.FunctionType):
            self._write_function(value)
        elif isinstance(value, types.ModuleType):
            self.text("module", value.__name__, getattr(value, "__version__", ""))
            if code is not None and is_own_module(value):
                for name, member in members_read(value, code):
                    self.text(name)
                    self.write(member, code)
        elif hasattr(value, "uctree_primitive"):
            self.text("primitive", value.uctree_primitive)
        elif isinstance(value, enum.EnumMeta):
            self.text("enum", value, list(value.__members__.items()))
        elif isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)) or _is_known(value):
            self.text("name", type(value).__name__, getattr(value, "__module__", ""), value)
            self.text(getattr(value, "_fields", ""))  # of a named tuple
        else:
            raise NotFingerprintable(f"{value!r:.80} of type {type(value).__name__}")

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
        self.text("function", module_name(function).startswith("uctree."))
        self._write_code(function.__code__)
        self.write(function.__defaults__)
        self.write(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, value in reached(function, self.bindings):
            self.text(name)
            self.write(value, function.__code__)


def _is_known(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return callable(value) and str(module).partition(".")[0] in KNOWN_TO_NUMBA
