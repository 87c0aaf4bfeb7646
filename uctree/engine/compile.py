"""Compiles plain functions to machine code, and caches it on disk.

`compile_kernel` takes a function of uctree and its bindings (a game's rules, a selection rule,
constants), follows everything it can reach, compiles all of it as one piece, and caches the machine
code in a folder named after a fingerprint of all that was reached. So editing any helper in any
file gives another folder, and old machine code is never loaded.
"""

from __future__ import annotations

import dis
import os
import re
import shutil
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree.engine.disk_cache import drop_oldest, entry_folder
from uctree.engine.inlining import one_piece
from uctree.engine.reach import (
    HERE,
    is_own_module,
    members_read,
    module_name,
    place_in_source,
    reached,
    reached_functions,
)
from uctree.errors import BrokenGame


@dataclass(frozen=True)
class Kernel:
    """A compiled function, and where it came from."""

    call: Callable[..., Any]
    cached: bool  # whether the machine code came from the disk
    interpreted: bool = False  # NUMBA_DISABLE_JIT=1: plain Python


def interpreted() -> bool:
    """Whether NUMBA_DISABLE_JIT selects plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def compile_kernel(
    function: Callable[..., Any],
    bindings: dict[str, Any],
    arguments: tuple[Any, ...],
    *,
    label: str,
    debug: bool = False,
) -> Kernel:
    """`function` with its unbound names bound, compiled for arguments of these types.

    Args:
        arguments: an example call; only the types matter.
        label: the name of the cache entry.
        debug: build with bounds checks.
    """
    if interpreted():
        plain = bind(function, bindings)
        return Kernel(plain, cached=False, interpreted=True)
    import numba

    signature = tuple(numba.typeof(argument) for argument in arguments)
    entry = entry_folder(function, bindings, signature, label, debug)
    try:
        dispatcher = _compiled(function, bindings, signature, entry, debug)
    except numba.core.errors.NumbaError as error:
        raise BrokenGame(_explain(error, label)) from None
    except KeyError as error:  # Numba raises this if a record has no such field
        place = _place_of_attribute(function, bindings, str(error.args[0]))
        raise BrokenGame(
            f"{label} does not compile\n  {place}\n  the state has no field {error}\n"
            "  Add the field to the dtype, or fix the name."
        ) from None
    cached = bool(dispatcher.stats.cache_hits)
    if entry is not None and not cached:
        drop_oldest()
    return Kernel(dispatcher, cached)


def _compiled(
    function: Callable[..., Any], bindings: dict[str, Any], signature: tuple[Any, ...],
    entry: Path | None, debug: bool,
) -> Any:  # fmt: skip
    """The dispatcher of `function`, compiled for `signature` or loaded from `entry`."""
    import numba

    allocates = False
    while True:
        dispatcher = _dispatcher(function, bindings, entry, debug, allocates)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", numba.core.errors.NumbaWarning)
                with one_piece(dispatcher.py_func.__qualname__):
                    dispatcher.compile(signature)
            dispatcher.disable_compile()
            return dispatcher
        except numba.core.errors.NumbaError as error:
            if allocates or "NRT required" not in str(error):
                raise
            allocates = True
        except Exception as error:
            if entry is None or isinstance(error, KeyError):
                raise
            # A damaged cache entry: delete it and compile in memory.
            shutil.rmtree(entry, ignore_errors=True)
            entry = None


def bind(function: Callable[..., Any], bindings: dict[str, Any]) -> Callable[..., Any]:
    """`function` with its unbound names bound, as plain Python."""
    return _Translator(bindings, lambda plain, _: plain).translate(function)


def adapt(
    function: Callable[..., Any], given: Sequence[str], taken: Sequence[str]
) -> Callable[..., Any]:
    """`function` as one that takes the arguments `given` and passes on those in `taken`."""
    if tuple(given) == tuple(taken):
        return function
    space = {"function": function, "__name__": module_name(function)}
    source = f"lambda {', '.join(given)}: function({', '.join(taken)})"
    return eval(source, space)


def _dispatcher(
    function: Callable[..., Any], bindings: dict[str, Any], entry: Path | None, debug: bool,
    allocates: bool,
) -> Any:  # fmt: skip
    """The Numba dispatcher of `function`, cached in `entry` if it is not None."""
    import numba

    def jit(inner: types.FunctionType, module: str) -> Any:
        kernel = module.startswith("uctree.") and not module.startswith("uctree.games.")
        # Divisions by zero in a game raise, as in plain Python; kernels do not divide by zero.
        model = "numpy" if kernel else "python"
        if entry is not None:
            # Machine code calls by name, and Numba numbers names anew in every process: code of two
            # processes would call each other's. The entry's name makes names unique.
            inner.__qualname__ = f"{inner.__name__}_{entry.name}"
        options: dict[str, Any] = {"error_model": model, "boundscheck": debug, "nogil": True}
        if inner.__code__ is function.__code__:
            if entry is not None:
                # Numba caches machine code beside a function's file, and reads only its path.
                code = inner.__code__.replace(co_filename=str(entry / "entry.json"))
                name = inner.__qualname__
                inner = types.FunctionType(code, inner.__globals__, inner.__name__)
                inner.__qualname__ = name
            return numba.njit(**options, cache=entry is not None)(inner)
        # Counting references to arrays took half the time of a search (atomic instructions in every
        # call). No kernel owns an array, and only rules that make arrays do. A call with ten arrays
        # takes longer than its work, so kernels are inlined.
        options |= {"_nrt": allocates and not kernel}
        options["forceinline"] = kernel and not hasattr(inner, "is_never_inlined")
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(**options)(inner)

    return _Translator(bindings, jit).translate(function)


def _place_of_attribute(function: Any, bindings: dict[str, Any], name: str) -> str:
    """The file, line and source that read or write an attribute."""
    for each in reached_functions(function, bindings, set()):
        for instruction in dis.get_instructions(each.__code__):
            if instruction.opname.endswith("_ATTR") and instruction.argval == name:
                line = instruction.positions.lineno if instruction.positions else None
                return place_in_source(each.__code__.co_filename, line or 0)
    return "in code without a file"


class _Translator:
    """Rebuilds a function so that every plain function it reaches is compiled as well."""

    def __init__(
        self, bindings: dict[str, Any], jit: Callable[[types.FunctionType, str], Any]
    ) -> None:
        self.bindings = bindings
        self.jit = jit
        self.done: dict[int, Any] = {}
        self.alive: list[Any] = []  # ids in `done` are valid while their objects are alive

    def translate(self, value: Any, code: types.CodeType | None = None) -> Any:
        value = getattr(value, "py_func", value)  # of a function decorated by its author
        if isinstance(value, types.FunctionType):
            if not is_own_module(sys.modules.get(module_name(value), HERE)):
                return value
            if id(value) not in self.done:
                self._rebuild(value)
            return self.done[id(value)]
        if isinstance(value, types.ModuleType) and code is not None and is_own_module(value):
            shadow = types.ModuleType(value.__name__)
            for name, member in members_read(value, code):
                setattr(shadow, name, self.translate(member, code))
            return shadow
        if isinstance(value, tuple) and any(isinstance(v, types.FunctionType) for v in value):
            parts = [self.translate(v, code) for v in value]
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
        if isinstance(value, list):
            return _constant_list(value)
        return value

    def _rebuild(self, function: types.FunctionType) -> None:
        code = function.__code__
        space: dict[str, Any] = {"__name__": "uctree", "__builtins__": __builtins__}
        cells = {name: types.CellType() for name in code.co_freevars}
        closure = tuple(cells.values()) or None
        copy = types.FunctionType(code, space, function.__name__, function.__defaults__, closure)
        copy.__kwdefaults__ = function.__kwdefaults__
        vars(copy).update(vars(function))
        self.alive.append(function)
        # Numba reads the globals later, when it compiles; so a function may reach itself.
        self.done[id(function)] = self.jit(copy, module_name(function))
        for name, value in reached(function, self.bindings):
            translated = self.translate(value, code)
            if name in cells:
                cells[name].cell_contents = translated
            else:
                space[name] = translated


def _constant_list(value: list[Any]) -> Any:
    """A global list of numbers as a constant array; any other list unchanged."""
    try:
        array = np.array(value)
    except ValueError:
        return value
    return array if array.dtype.kind in "iufb" and array.size else value


# --- errors --------------------------------------------------------------------------------------

_GLOBALS_HINT = "Globals may be numbers, tuples, NumPy arrays and plain functions."
_TYPE_HINT = "Give the variable one type everywhere, say 0.0 instead of 0."
_HINTS = (
    ("Untyped global name", _GLOBALS_HINT),
    ("no known way to compile", _GLOBALS_HINT),
    ("Unknown attribute", "A state has the fields of its dtype, and arrays what NumPy gives them."),
    ("annot unify", _TYPE_HINT),
    ("No conversion", _TYPE_HINT),
    ("is not defined", "Assign the variable on every way that leads here."),
    (
        "No implementation of function",
        "Compiled code has no such operation for these types; write it with loops over numbers.",
    ),
    (
        "nsupported",
        "Compiled code has no classes, dicts of objects, generators or try; use numbers and loops.",
    ),
)
_DEFAULT_HINT = "Rules are compiled by Numba: numbers, arrays, loops and plain functions."


def _explain(error: Exception, label: str) -> str:
    """The message for code that does not compile: where, why, and what to do."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    here = str(Path(__file__).parents[1])
    place = "in code without a file"
    for match in re.finditer(r'File "([^"]+)", line (\d+)', text):
        path = os.path.abspath(match[1])
        if not (path.startswith(here) and os.sep + "games" + os.sep not in path):
            place = place_in_source(match[1], int(match[2]))
            break
    reasons = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not re.match(r"\s*(Failed in|During|File|def |Overload|- |>>>)", line)
    ]
    reason = reasons[0] if reasons else text
    if "No implementation of function" in text and "No implementation" not in reason:
        reason = next(line for line in reasons if "No implementation" in line)
    hint = next((advice for sign, advice in _HINTS if sign in text), _DEFAULT_HINT)
    return f"{label} does not compile\n  {place}\n  {reason}\n  {hint}"
