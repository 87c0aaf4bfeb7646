"""Marks for the compiler in kernels: names to be bound, functions not to be inlined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Unbound:
    """The value, in a kernel's module, of a name that `compile_kernel` binds."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND: Any = _Unbound()


def noinline(function: _Function) -> _Function:
    """`function`, marked not to be inlined: for large functions that are called rarely."""
    vars(function)["is_never_inlined"] = True
    return function
