"""Plain functions to machine code, and the disk cache.

`compile_kernel` takes an ordinary function of uctree together with what it is bound to (a game's
rules, a selection rule, constants), follows everything it can reach, compiles all of it as one
piece, and keeps the machine code in a folder named after a fingerprint of all that was reached. So
editing any helper in any file gives another folder, and old machine code is never served.
"""

from __future__ import annotations

import contextlib
import dis
import enum
import hashlib
import json
import linecache
import os
import re
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from uctree.errors import BrokenGame

MAX_ENTRIES = 200

# Modules whose functions Numba knows itself; they are told apart by their version only.
_KNOWN_TO_NUMBA = {"numpy", "math", "cmath", "numba", "operator", "builtins", "random"}


class _Unbound:
    """The value, in a kernel's module, of a name that `compile_kernel` binds."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND: Any = _Unbound()

_Function = TypeVar("_Function", bound=Callable[..., Any])


class NotFingerprintable(Exception):
    """Something a kernel reaches whose content cannot be told by its bytes."""


@dataclass(frozen=True)
class Kernel:
    """A compiled function, and where it came from."""

    call: Callable[..., Any]
    cached: bool  # whether the machine code came from the disk
    interpreted: bool = False  # NUMBA_DISABLE_JIT=1: plain Python


def interpreted() -> bool:
    """Whether NUMBA_DISABLE_JIT asks for plain Python."""
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
        label: what the cache calls the entry.
        debug: build with bounds checks.
    """
    if interpreted():
        plain = bind(function, bindings)
        return Kernel(plain, cached=False, interpreted=True)
    import numba

    signature = tuple(numba.typeof(argument) for argument in arguments)
    entry = _entry_folder(function, bindings, signature, label, debug)
    try:
        dispatcher = _compiled(function, bindings, signature, entry, debug)
    except numba.core.errors.NumbaError as error:
        raise BrokenGame(_explain(error, label)) from None
    except KeyError as error:  # Numba's way to say that a record has no such field
        place = _place_of_attribute(function, bindings, str(error.args[0]))
        raise BrokenGame(
            f"{label} does not compile\n  {place}\n  the state has no field {error}\n"
            "  Add the field to the dtype, or mend the name."
        ) from None
    cached = bool(dispatcher.stats.cache_hits)
    if entry is not None and not cached:
        _drop_oldest()
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
            # A damaged cache entry: throw it away and compile in memory.
            shutil.rmtree(entry, ignore_errors=True)
            entry = None


def apart(function: _Function) -> _Function:
    """`function`, to be called and not inlined: for what is large and not called in a hurry."""
    vars(function)["stays_apart"] = True
    return function


def bind(function: Callable[..., Any], bindings: dict[str, Any]) -> Callable[..., Any]:
    """`function` with its unbound names bound, as plain Python."""
    return _Translator(bindings, lambda plain, _: plain).translate(function)


def adapt(
    function: Callable[..., Any], given: Sequence[str], taken: Sequence[str]
) -> Callable[..., Any]:
    """`function` as one that is given some arguments by name and passes on those it takes."""
    if tuple(given) == tuple(taken):
        return function
    space = {"function": function, "__name__": _module_name(function)}
    source = f"lambda {', '.join(given)}: function({', '.join(taken)})"
    return eval(source, space)


def _dispatcher(
    function: Callable[..., Any], bindings: dict[str, Any], entry: Path | None, debug: bool,
    allocates: bool,
) -> Any:  # fmt: skip
    """The Numba dispatcher of `function`, cached in `entry` where there is one."""
    import numba

    def jit(inner: types.FunctionType, module: str) -> Any:
        kernel = module.startswith("uctree.") and not module.startswith("uctree.games.")
        # Divisions by zero in a game raise, as in plain Python; kernels do not divide by zero.
        model = "numpy" if kernel else "python"
        if entry is not None:
            # Machine code calls by name, and Numba numbers names anew in every process: what two
            # processes stored would call into each other. So names tell the entry, too.
            inner.__qualname__ = f"{inner.__name__}_{entry.name}"
        options: dict[str, Any] = {"error_model": model, "boundscheck": debug, "nogil": True}
        if inner.__code__ is function.__code__:
            if entry is not None:
                # Numba keeps machine code beside a function's file; it reads nothing else of it.
                code = inner.__code__.replace(co_filename=str(entry / "entry.json"))
                name = inner.__qualname__
                inner = types.FunctionType(code, inner.__globals__, inner.__name__)
                inner.__qualname__ = name
            return numba.njit(**options, cache=entry is not None)(inner)
        # Counting references to arrays took half the time of a search (atomic instructions in every
        # call); nothing in a kernel owns an array, and in rules only those that make one do. A call
        # with ten arrays takes longer than what it does, so kernels are inlined.
        options |= {"_nrt": allocates and not kernel}
        options["forceinline"] = kernel and not hasattr(inner, "stays_apart")
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(**options)(inner)

    return _Translator(bindings, jit).translate(function)


# --- following a function to all it reaches ------------------------------------------------------


def _reached(function: types.FunctionType, bindings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names a function reads from outside, with their values; closure cells come first."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    builtins = function.__globals__.get("__builtins__", {})
    builtins = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
    for name, line in sorted(_global_names(code).items()):
        value = function.__globals__.get(name, builtins.get(name, _MISSING))
        if value is UNBOUND:
            value = bindings[name]
        elif value is _MISSING:
            raise BrokenGame(
                f"{function.__name__} uses the name {name!r}, which is not defined\n"
                f"  {_place(code.co_filename, line)}"
            )
        yield name, value


_MISSING = object()


def _functions(
    function: types.FunctionType, bindings: dict[str, Any], seen: set[int]
) -> Iterator[types.FunctionType]:
    """A function and every plain function it reaches, each once."""
    if id(function) in seen:
        return
    seen.add(id(function))
    yield function
    for _, value in _reached(function, bindings):
        if isinstance(value, types.FunctionType):
            yield from _functions(value, bindings, seen)


def _place_of_attribute(function: Any, bindings: dict[str, Any], name: str) -> str:
    """Where an attribute is read or written, as file, line and source."""
    for reached in _functions(function, bindings, set()):
        for instruction in dis.get_instructions(reached.__code__):
            if instruction.opname.endswith("_ATTR") and instruction.argval == name:
                line = instruction.positions.lineno if instruction.positions else None
                return _place(reached.__code__.co_filename, line or 0)
    return "in code without a file"


def _place(path: str, line: int) -> str:
    return f"{path}, line {line}:  {linecache.getline(path, line).strip()}"


def _global_names(code: types.CodeType) -> dict[str, int]:
    """Global names read by a code object or by one inside it, each with a line that reads it."""
    names: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.setdefault(str(instruction.argval), line)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names = _global_names(constant) | names
    return names


def _module_name(function: Callable[..., Any]) -> str:
    """The module of a function; code run by `exec` may have none."""
    return function.__module__ or "__main__"


def _is_own_module(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] not in _KNOWN_TO_NUMBA


def _members(module: types.ModuleType, code: types.CodeType) -> list[tuple[str, Any]]:
    """What a function may read from a module it names: every attribute whose name it mentions."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(constant.co_names)
    return [(name, getattr(module, name)) for name in sorted(names) if hasattr(module, name)]


class _Translator:
    """Rebuilds a function so that every plain function it reaches is compiled as well."""

    def __init__(
        self, bindings: dict[str, Any], jit: Callable[[types.FunctionType, str], Any]
    ) -> None:
        self.bindings = bindings
        self.jit = jit
        self.done: dict[int, Any] = {}
        self.alive: list[Any] = []  # ids in `done` stay valid while what they name is alive

    def translate(self, value: Any, code: types.CodeType | None = None) -> Any:
        value = getattr(value, "py_func", value)  # a function its author has decorated already
        if isinstance(value, types.FunctionType):
            if not _is_own_module(sys.modules.get(_module_name(value), _HERE)):
                return value
            if id(value) not in self.done:
                self._rebuild(value)
            return self.done[id(value)]
        if isinstance(value, types.ModuleType) and code is not None and _is_own_module(value):
            shadow = types.ModuleType(value.__name__)
            for name, member in _members(value, code):
                setattr(shadow, name, self.translate(member, code))
            return shadow
        if isinstance(value, tuple) and any(isinstance(v, types.FunctionType) for v in value):
            return tuple(self.translate(v, code) for v in value)
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
        # Numba reads the globals when it compiles, later; so a function may reach itself.
        self.done[id(function)] = self.jit(copy, _module_name(function))
        for name, value in _reached(function, self.bindings):
            translated = self.translate(value, code)
            if name in cells:
                cells[name].cell_contents = translated
            else:
                space[name] = translated


_HERE = sys.modules[__name__]


def _constant_list(value: list[Any]) -> Any:
    """A global list of numbers as the constant array it is; anything else as it came."""
    try:
        array = np.array(value)
    except ValueError:
        return value
    return array if array.dtype.kind in "iufb" and array.size else value


# --- fingerprints --------------------------------------------------------------------------------


def fingerprint(function: Callable[..., Any], bindings: dict[str, Any], *extra: Any) -> str:
    """A hash of all that `function` can reach; NotFingerprintable where that cannot be told."""
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
            self.text(type(value).__name__, len(value))
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
            if code is not None and _is_own_module(value):
                for name, member in _members(value, code):
                    self.text(name)
                    self.write(member, code)
        elif hasattr(value, "uctree_primitive"):
            self.text("primitive", value.uctree_primitive)
        elif isinstance(value, enum.EnumMeta):
            self.text("enum", value, list(value.__members__.items()))
        elif isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)) or _is_known(value):
            self.text("name", type(value).__name__, getattr(value, "__module__", ""), value)
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
        if not _is_own_module(sys.modules.get(_module_name(function), _HERE)):
            self.text("name", _module_name(function), function.__qualname__)
            return
        self.text("function", _module_name(function).startswith("uctree."))
        self._write_code(function.__code__)
        self.write(function.__defaults__)
        self.write(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, value in _reached(function, self.bindings):
            self.text(name)
            self.write(value, function.__code__)


def _is_known(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return callable(value) and str(module).partition(".")[0] in _KNOWN_TO_NUMBA


# --- the cache on disk ---------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where machine code is kept: UCTREE_CACHE_DIR, or the platform's folder for caches."""
    explicit = os.environ.get("UCTREE_CACHE_DIR")
    if explicit:
        return Path(explicit)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "uctree/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/uctree"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uctree"


@dataclass(frozen=True)
class CacheEntry:
    """One compiled kernel on disk."""

    label: str
    path: Path
    num_bytes: int
    used: float  # seconds since the epoch


def cache_entries() -> list[CacheEntry]:
    """What the cache holds, the most recently used first."""
    entries = []
    with contextlib.suppress(OSError):
        for path in cache_folder().iterdir():
            with contextlib.suppress(OSError, ValueError, KeyError):
                label = json.loads((path / "entry.json").read_text())["label"]
                size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
                entries.append(CacheEntry(label, path, size, path.stat().st_mtime))
    return sorted(entries, key=lambda entry: -entry.used)


def clear_cache() -> int:
    """Delete every entry; the number deleted."""
    entries = cache_entries()
    for entry in entries:
        shutil.rmtree(entry.path, ignore_errors=True)
    return len(entries)


def _entry_folder(
    function: Callable[..., Any],
    bindings: dict[str, Any],
    signature: tuple[Any, ...],
    label: str,
    debug: bool,
) -> Path | None:
    """The folder that holds this kernel's machine code; None where it must stay in memory."""
    import llvmlite
    import numba

    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    try:
        name = fingerprint(function, bindings, versions, tuple(map(str, signature)), debug)
    except NotFingerprintable as reason:
        warnings.warn(
            f"{label} is compiled anew in every process: it uses {reason}, whose content cannot be "
            "told; use numbers, strings, tuples, NumPy arrays and plain functions as globals",
            stacklevel=2,
        )
        return None
    folder = cache_folder() / name[:40]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_entry(folder / "entry.json", json.dumps({"label": label}))
        (folder / "__pycache__").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder / "__pycache__"):
            pass
        os.utime(folder)
    except OSError:
        return None  # an unwritable cache only costs time
    return folder


def _write_entry(path: Path, text: str) -> None:
    """Write an entry's label. Numba compares size and time of this file, so both are constant."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.utime(temporary, (0, 0))
    os.replace(temporary, path)


def _drop_oldest() -> None:
    """Keep the MAX_ENTRIES most recently used entries."""
    for entry in cache_entries()[MAX_ENTRIES:]:
        shutil.rmtree(entry.path, ignore_errors=True)


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
    """One message for code that does not compile: where, what, and what to do."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    here = str(Path(__file__).parent)
    place = "in code without a file"
    for match in re.finditer(r'File "([^"]+)", line (\d+)', text):
        path = os.path.abspath(match[1])
        if not (path.startswith(here) and os.sep + "games" + os.sep not in path):
            place = _place(match[1], int(match[2]))
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
