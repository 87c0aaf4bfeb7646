"""Compiles plain functions to machine code, and caches it in memory and on disk.

`compile_kernel` takes a function of uctree and its bindings (a game's rules, a selection rule,
constants), follows everything it can reach, compiles all of it as one piece, and caches the machine
code under a fingerprint of all that was reached. So editing any helper in any file gives another
entry, and old machine code is never loaded. `Kernel.is_stale` says whether something that was
reached has changed since, in the same process.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import linecache
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.engine.disk_cache import load_entry, save_entry, versions
from uctree.engine.fields import teach_numba
from uctree.engine.fingerprint import Contents, fingerprint
from uctree.engine.inlining import Unresolved, one_piece
from uctree.engine.interrupts import armed, never_lost
from uctree.engine.notices import compiling
from uctree.engine.passes import kernel_passes
from uctree.engine.reach import (
    HERE,
    is_own_module,
    is_users_file,
    members_read,
    module_name,
    nested_code,
    place_in_source,
    reached,
    reached_functions,
)
from uctree.engine.recent import Recent
from uctree.engine.shortcuts import shortcuts
from uctree.engine.watch import Watch
from uctree.errors import BrokenGame

RULES = ("uctree.games.", "uctree.views.")  # whose functions are rules, as those of users


@dataclass(frozen=True)
class Kernel:
    """A compiled function, and where it came from."""

    call: Callable[..., Any]
    cached: bool  # whether the machine code was there already, in memory or on disk
    watch: Watch  # of what it was made from
    interpreted: bool = False  # NUMBA_DISABLE_JIT=1: plain Python

    @property
    def entry(self) -> Callable[..., Any]:
        """As `call`, but types are not looked at: for arguments of exactly those it is made for.

        A call takes 0.3 to 0.5 µs less, of 0.7 to 1.2, which counts if it is a single simulation.
        """
        made = getattr(self.call, "overloads", None)
        return next(iter(made.values())).entry_point if made else self.call

    @property
    def is_stale(self) -> bool:
        """Whether a name, function or array that it was made from has changed since."""
        return self.watch.has_changed()

    def run(self, *arguments: Any) -> Any:
        """What a call returns; a second Ctrl-C ends the process if a rule in it never returns."""
        with armed():
            return self.call(*arguments)


def interpreted() -> bool:
    """Whether NUMBA_DISABLE_JIT selects plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def always_checks_bounds() -> bool:
    """Whether UCTREE_DEBUG selects bounds checks in every kernel that is compiled."""
    return os.environ.get("UCTREE_DEBUG", "0") not in ("", "0")


MOST_IN_MEMORY = 128  # kernels

_in_memory: Recent[str, Callable[..., Any]] = Recent(MOST_IN_MEMORY)

MOST_FUNCTIONS = 512

# Dispatchers of functions that kernels reached, by content: what several kernels have in common
# (the rules of a game, most of a simulation) is compiled once in a process.
_functions: Recent[tuple[str, bool, bool], Any] = Recent(MOST_FUNCTIONS)


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
        watch = fingerprint(function, bindings).watch
        return Kernel(bind(function, bindings), False, watch, interpreted=True)
    import numba

    debug = debug or always_checks_bounds()
    signature = tuple(numba.typeof(argument) for argument in arguments)
    types_given = tuple(map(str, signature))
    found = fingerprint(function, bindings, versions(), types_given, debug)
    if found.watch.left_out:
        warnings.warn(
            f"{label} reads {found.watch.left_out}, too large to be compared before every search: "
            "a later search does not notice a change in place. Assign another array instead; make "
            "the array read-only (array.flags.writeable = False), or pass it as data",
            stacklevel=2,
        )
    if found.unknown:
        warnings.warn(
            f"{label} is compiled anew in every process: it uses {found.unknown}, whose content "
            "cannot be hashed; use numbers, strings, tuples, NumPy arrays and plain functions as "
            "globals",
            stacklevel=2,
        )
        with compiling(label), never_lost(), _collected_once():
            call, _ = _compiled(function, bindings, signature, None, label, debug)
        return Kernel(call, False, found.watch)
    known = _in_memory.get(found.name)
    if known is None:
        known = _loaded(function, found.name)
    if known is not None:
        _in_memory.put(found.name, known)
        return Kernel(known, True, found.watch)
    with never_lost(), _collected_once():
        with compiling(label):
            call, is_whole = _compiled(function, bindings, signature, found.name, label, debug)
        if is_whole:
            call = _stored(function, found.name, label, call, signature)
        else:
            _in_memory.put(found.name, call)
    return Kernel(call, False, found.watch)


@contextlib.contextmanager
def _collected_once() -> Iterator[None]:
    """A context in which garbage is collected at the end only.

    A compilation makes a million objects that live until its end: looking for garbage among them
    takes a tenth of the time. What Numba keeps of one takes 50 to 90 MB, so it is collected then.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        gc.collect(0)  # all objects made since then are in the youngest generation


def _stored(
    function: Callable[..., Any], name: str, label: str, call: Any, signature: tuple[Any, ...]
) -> Any:
    """The dispatcher of a kernel after its machine code was stored and loaded again.

    Machine code that was loaded takes 3 MB of memory.
    """
    result = call.overloads[signature]
    if result.library.has_dynamic_globals:  # it holds addresses of this process
        return call
    save_entry(name, label, result)
    loaded = _loaded(function, name)
    call = call if loaded is None else loaded
    _in_memory.put(name, call)
    return call


def _loaded(function: Callable[..., Any], name: str) -> Any | None:
    """The dispatcher of a kernel from the disk; None if it is not there."""
    import numba

    dispatcher = numba.njit(function)
    result = load_entry(name, dispatcher.targetctx)
    if result is None:
        return None
    dispatcher.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
    dispatcher.add_overload(result)
    dispatcher.disable_compile()
    return dispatcher


# Numba's complaints about functions that make arrays or lists but may not count references to them.
_ALLOCATES = ("NRT required", "Only accept returning of array passed into the function")


def _compiled(
    function: Callable[..., Any], bindings: dict[str, Any], signature: tuple[Any, ...],
    name: str | None, label: str, debug: bool,
) -> tuple[Any, bool]:  # fmt: skip
    """The dispatcher of `function`, compiled for `signature`, and whether it is of one piece.

    BrokenGame if it does not compile. Only code of one piece can be stored.

    Args:
        name: the fingerprint; None if there is none.
    """
    import numba

    allocates, is_whole = False, True
    while True:
        known = name if is_whole else None
        dispatcher, made = _dispatcher(function, bindings, known, debug, allocates)
        pieces = one_piece(dispatcher.py_func.__qualname__) if is_whole else nullcontext()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", numba.core.errors.NumbaWarning)
                with shortcuts(), pieces:
                    dispatcher.compile(signature)
            dispatcher.disable_compile()
            for content, inner in made.items():
                _functions.put(content, inner)
            return dispatcher, is_whole
        except Unresolved:
            is_whole = False
        except numba.core.errors.NumbaError as error:
            if allocates or not any(sign in str(error) for sign in _ALLOCATES):
                raise BrokenGame(_explain(error, bindings, label)) from None
            allocates = True
        except numba.core.errors.UnsupportedBytecodeError as error:  # no NumbaError
            raise BrokenGame(_explain(error, bindings, label)) from None
        except KeyError as error:  # Numba raises this if a record has no such field
            place = _place_of_attribute(function, bindings, str(error.args[0]))
            raise BrokenGame(
                f"{label} does not compile\n  {place}\n  the state has no field {error}\n"
                "  Add the field to the dtype, or fix the name."
            ) from None


def bind(function: Callable[..., Any], bindings: dict[str, Any]) -> Callable[..., Any]:
    """`function` with its unbound names bound, as plain Python."""
    return _Translator(bindings, lambda plain, _: plain, lambda _: None).translate(function)


def adapt(
    function: Callable[..., Any], given: Sequence[str], taken: Sequence[str]
) -> Callable[..., Any]:
    """`function` as one that takes the arguments `given` and passes on those in `taken`."""
    if tuple(given) == tuple(taken):
        return function
    space = {"function": function, "__name__": module_name(function)}
    adapter = eval(f"lambda {', '.join(given)}: function({', '.join(taken)})", space)
    adapter.is_adapter = True  # it never changes, unlike `function`
    return adapter


def _dispatcher(
    function: Callable[..., Any], bindings: dict[str, Any], name: str | None, debug: bool,
    allocates: bool,
) -> tuple[Any, dict[Any, Any]]:  # fmt: skip
    """The Numba dispatcher of `function`, not compiled yet, and new ones that it calls by content.

    Args:
        name: the fingerprint; None if there is none.
    """
    import numba

    teach_numba()
    contents, found = Contents(bindings), {}
    made: dict[Any, Any] = {}

    def known(inner: types.FunctionType) -> Any | None:
        if name is None or inner is function:
            return None
        content = found[id(inner)] = contents.of(inner), debug, allocates
        return _functions.get(content)

    def jit(inner: types.FunctionType, original: types.FunctionType) -> Any:
        module = module_name(original)
        kernel = module.startswith("uctree.") and not module.startswith(RULES)
        # Divisions by zero in a game raise, as in plain Python; kernels do not divide by zero.
        model = "numpy" if kernel else "python"
        options: dict[str, Any] = {"error_model": model, "boundscheck": debug, "nogil": True}
        if kernel:
            options["pipeline_class"] = kernel_passes()
        if original is function:
            if name is not None:
                # Machine code is found by its name, and Numba numbers names anew in every process.
                inner.__qualname__ = f"{inner.__name__}_{name}"
            return numba.njit(**options)(inner)
        # Counting references to arrays took half the time of a search (atomic instructions in every
        # call). No kernel owns an array, and only rules that make arrays do. A call with ten arrays
        # takes longer than its work, so kernels are inlined.
        options |= {"_nrt": allocates and not kernel}
        options["forceinline"] = kernel and not hasattr(inner, "is_never_inlined")
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        dispatcher = numba.njit(**options)(inner)
        if id(original) in found:
            made[found[id(original)]] = dispatcher
        return dispatcher

    return _Translator(bindings, jit, known).translate(function), made


def _place_of_attribute(function: Any, bindings: dict[str, Any], name: str) -> str:
    """The file, line and source of the user that read or write an attribute."""
    for each in reached_functions(function, bindings, set()):
        for code in nested_code(each.__code__):
            for instruction in dis.get_instructions(code):
                reads = instruction.opname.endswith(("_ATTR", "_METHOD"))
                if reads and instruction.argval == name and is_users_file(code.co_filename):
                    line = instruction.positions.lineno if instruction.positions else None
                    return place_in_source(code.co_filename, line or 0)
    return NOWHERE


class _Translator:
    """Rebuilds a function so that every plain function it reaches is compiled as well."""

    def __init__(
        self,
        bindings: dict[str, Any],
        jit: Callable[[types.FunctionType, types.FunctionType], Any],
        known: Callable[[types.FunctionType], Any | None],
    ) -> None:
        self.bindings = bindings
        self.jit = jit  # of a copy and the function it was copied from
        self.known = known  # the result for a function that was translated before, if there is one
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
        self.alive.append(function)
        known = self.known(function)
        if known is not None:
            self.done[id(function)] = known
            return
        code = function.__code__
        space: dict[str, Any] = {"__name__": "uctree", "__builtins__": __builtins__}
        cells = {name: types.CellType() for name in code.co_freevars}
        closure = tuple(cells.values()) or None
        copy = types.FunctionType(code, space, function.__name__, function.__defaults__, closure)
        copy.__kwdefaults__ = function.__kwdefaults__
        vars(copy).update(vars(function))
        # Numba reads the globals later, when it compiles; so a function may reach itself.
        self.done[id(function)] = self.jit(copy, function)
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
    ("STORE_GLOBAL", "Rules cannot assign globals: put what changes into the record."),
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


_RETURN_HINTS = {
    "legal": "Return the number of actions that legal wrote.",
    "chance": "Return the number of outcomes that chance wrote.",
    "bounds": "Return the number of coordinates that count.",
    "random_action": "Return the action.",
}
NOWHERE = "in code without a file"


def _explain(error: Exception, bindings: dict[str, Any], label: str) -> str:
    """The message for code that does not compile: where, why, and what to do."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    mentions = [
        *re.finditer(r'File "([^"]+)", line (\d+)', text),
        *re.finditer(r"Raised from (.+) \((\d+)\)", text),
    ]
    lines = [(each[1], int(each[2])) for each in mentions]
    own = [(file, line) for file, line in lines if is_users_file(file)]
    if not own:
        name, place = _rule_of_result(lines, bindings)
        if name:
            return (
                f"{label} does not compile\n  {place}\n  {name} does not return a number on every "
                f"way through it\n  {_RETURN_HINTS[name]}"
            )
    place = place_in_source(os.path.abspath(own[0][0]), own[0][1]) if own else NOWHERE
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


def _rule_of_result(lines: list[tuple[str, int]], bindings: dict[str, Any]) -> tuple[str, str]:
    """The rule whose result a kernel cannot use, and its place; empty if it is another error."""
    for file, line in lines:
        source = linecache.getline(os.path.abspath(file), line)
        name = next((name for name in _RETURN_HINTS if re.search(rf"\b{name}\(", source)), "")
        if name in bindings:
            functions = reached_functions(bindings[name], bindings, set())
            own = [each.__code__ for each in functions if is_users_file(each.__code__.co_filename)]
            if own:
                return name, place_in_source(own[0].co_filename, own[0].co_firstlineno)
    return "", ""
