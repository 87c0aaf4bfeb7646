"""Lets Numba skip work whose result no kernel needs, while it compiles.

Numba asks LLVM hundreds of times for the size of the same type, compares and hashes all options of
a compilation although few are set, measures how long it waits for its own locks, and walks through
instructions by long chains of `isinstance`. Inside `shortcuts` it does the same faster. This
replaces private functions of Numba; those that are missing are not replaced, and compiling takes
longer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def shortcuts() -> Iterator[None]:
    """A context in which Numba compiles the same machine code in less time."""
    with contextlib.ExitStack() as stack:
        for owner, name, make in _replacements():
            usual = vars(owner).get(name)
            if usual is not None:
                setattr(owner, name, make(usual))
                stack.callback(setattr, owner, name, usual)
        yield


def _replacements() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """What is replaced: the class or module, the name, and a function from the old to the new."""
    from numba.core import event, ir
    from numba.core.base import BaseContext
    from numba.core.targetconfig import TargetConfig

    yield BaseContext, "get_abi_sizeof", _sizes_remembered
    yield TargetConfig, "__eq__", _compared_by_what_is_set
    yield TargetConfig, "values", _values_from_defaults
    yield event, "start_event", _without_locks
    yield event, "end_event", _without_locks
    yield ir.Inst, "_rec_list_vars", _variables_by_type


def _sizes_remembered(usual: Any) -> Any:
    sizes: dict[Any, int] = {}

    def get_abi_sizeof(self: Any, kind: Any) -> int:
        if kind not in sizes:
            sizes[kind] = usual(self, kind)
        return sizes[kind]

    return get_abi_sizeof


def _compared_by_what_is_set(usual: Any) -> Any:
    def compare(self: Any, other: Any) -> bool:
        return (type(self) is type(other) and self._values == other._values) or usual(self, other)

    return compare


def _values_from_defaults(usual: Any) -> Any:
    defaults: dict[type, dict[str, Any]] = {}

    def values(self: Any) -> dict[str, Any]:
        kind = type(self)
        if kind not in defaults:
            defaults[kind] = {name: option.default for name, option in self.options.items()}
        return defaults[kind] | self._values

    return values


def _without_locks(usual: Any) -> Any:
    def report(kind: str, *given: Any, **named: Any) -> None:
        if not kind.endswith("_lock"):
            usual(kind, *given, **named)

    return report


_NONE, _ONE, _INSTRUCTION, _SEQUENCE, _MAPPING = range(5)


def _variables_by_type(usual: Any) -> Any:
    from numba.core import ir

    kinds: dict[type, int] = {}

    def look_up(kind: type) -> int:
        bases: dict[Any, int] = {
            ir.Var: _ONE,
            ir.Inst: _INSTRUCTION,
            (list, tuple): _SEQUENCE,
            dict: _MAPPING,
        }
        found = next((number for base, number in bases.items() if issubclass(kind, base)), _NONE)
        return kinds.setdefault(kind, found)

    def add(values: Any, found: list[Any]) -> None:
        for value in values:
            kind = kinds.get(type(value))
            if kind is None:
                kind = look_up(type(value))
            if kind == _NONE:
                continue
            if kind == _ONE:
                found.append(value)
            elif kind == _INSTRUCTION:
                found += value.list_vars()
            else:
                add(value.values() if kind == _MAPPING else value, found)

    def list_variables(self: Any, value: Any) -> list[Any]:
        found: list[Any] = []
        add(value.values() if type(value) is dict else (value,), found)
        return found

    return list_variables
