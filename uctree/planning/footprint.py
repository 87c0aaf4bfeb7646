"""How much memory the states of a plan take, as far as Python knows."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterable
from typing import Any

ALL_BEFORE, EVERY = 16, 64  # the first states are all looked at, of the others every 64th
MOST_OBJECTS = 10_000  # that one look counts
# What a book keeps for a state beside its parts: places in lists and a dict, two tuples, numbers.
OWN_BYTES = 360

# What states have in common, whoever made them.
_SHARED = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType,
    types.MethodType, type(None), bool,
)  # fmt: skip


def num_bytes(parts: Iterable[Any], others: Iterable[Any] = ()) -> int:
    """The bytes of objects and of all they refer to, but for what `others` have as well.

    >>> shared = "x" * 1000
    >>> num_bytes([[shared]], [[shared]]) < 100 < 1000 < num_bytes([[shared]])
    True
    """
    seen: set[int] = set()
    _count(others, seen)
    return _count(parts, seen)


def _count(parts: Iterable[Any], seen: set[int]) -> int:
    total, left, found = 0, MOST_OBJECTS, list(parts)
    while found and left:
        part = found.pop()
        if id(part) in seen or isinstance(part, _SHARED):
            continue
        seen.add(id(part))
        left -= 1
        total += sys.getsizeof(part)
        found += gc.get_referents(part)
    return total


class Footprint:
    """The bytes of the states of a plan, estimated from some of them."""

    def __init__(self, most_bytes: int) -> None:
        self.num_bytes, self.most_bytes = 0, most_bytes
        self._num_counted = 0

    @property
    def is_full(self) -> bool:
        """Whether no further states are to come."""
        return self.num_bytes >= self.most_bytes

    def add(self, number: int, parts: Iterable[Any], parts_before: Iterable[Any]) -> None:
        """Look at a state, if it is one of those that stand for the others.

        Args:
            number: how many there are by now.
            parts_before: of the state from which it was reached, which may share some.
        """
        if number > ALL_BEFORE and number % EVERY:
            return
        each = OWN_BYTES + num_bytes(parts, parts_before)
        self.num_bytes += each * (number - self._num_counted)
        self._num_counted = number
