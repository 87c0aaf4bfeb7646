"""Notices that something has changed that machine code was made from: names, functions, arrays."""

from __future__ import annotations

import types
from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np

# Every search makes the comparison: 1 µs for 50 kB, 40 µs for all of it.
MOST_BYTES = 2**20
BYTES_OF_ITEM = 2**9  # an item of a list takes as long as so many bytes


class Watch:
    """What a kernel has read outside uctree, as it was then.

    Names, closure cells and functions are compared by identity; arrays and lists by content too, as
    long as that is cheap: up to MOST_BYTES in all.
    """

    def __init__(self) -> None:
        # The comparisons are one expression: loops took five times as long, in every search.
        self._tests: dict[str, None] = {}  # a set in order
        self._objects: dict[str, Any] = {"all": all, "is_": is_, "len": len, "map": map}
        self._names: dict[int, str] = {}  # of objects, by id
        self._bytes_left = MOST_BYTES
        self.left_out = ""  # an array or list that could change in place without notice
        self._is_same: Callable[[], bool] | None = None

    def add_name(self, space: dict[str, Any], name: str) -> None:
        """Watch a global name of a module, or one that is missing there."""
        where = self._named(space)
        if name in space:
            self._test(f"{where}[{name!r}] is {self._named(space[name])}")
        else:
            self._test(f"{name!r} not in {where}")

    def add_function(self, function: types.FunctionType) -> None:
        """Watch the code, the defaults and the closure of a function."""
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            then = self._named(getattr(function, part))
            self._test(f"{self._named(function)}.{part} is {then}")
        for cell in function.__closure__ or ():
            then = self._named(cell.cell_contents)
            self._test(f"{self._named(cell)}.cell_contents is {then}")

    def add_array(self, array: np.ndarray) -> None:
        """Watch the content of an array, unless it is large."""
        if self._affords(array.nbytes):
            self._test(f"{self._named(array)}.tobytes() == {self._named(array.tobytes())}")
        elif array.flags.writeable:
            self.left_out = f"an array of {array.nbytes:,} bytes"

    def add_list(self, items: list[Any]) -> None:
        """Watch the items of a list, unless it is long."""
        if self._affords(BYTES_OF_ITEM * len(items)):
            now, then = self._named(items), self._named(items.copy())
            self._test(f"len({now}) == {len(items)} and all(map(is_, {now}, {then}))")
        else:
            self.left_out = f"a list of {len(items):,} items"

    def has_changed(self) -> bool:
        """Whether anything differs from what it was when it was added."""
        if self._is_same is None:
            self._is_same = eval(f"lambda: {' and '.join(self._tests) or True}", self._objects)
        try:
            return not self._is_same()
        except (KeyError, ValueError):  # a name or the content of a cell was deleted
            return True

    def _affords(self, num_bytes: int) -> bool:
        if num_bytes > self._bytes_left:
            return False
        self._bytes_left -= num_bytes
        return True

    def _named(self, value: Any) -> str:
        """The name of an object in the tests, which also keeps it alive."""
        name = self._names.setdefault(id(value), f"object_{len(self._names)}")
        self._objects[name] = value
        return name

    def _test(self, text: str) -> None:
        self._tests[text] = None
