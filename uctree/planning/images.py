"""Images of states, to notice that one has changed: it must not after it was returned.

A `step` that changes the list it was given, instead of a copy, changes states that the plan has
already seen, and what is said of them is then about others.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from uctree.errors import BrokenGame

DEEPEST = 20  # of parts of parts that are compared
MOST_STATES = 8  # that a plan watches
MOST_LOOKS = 64
MOST_SECONDS = 0.05  # in all; large states are watched less long


def image(thing: Any, depth: int = 0, *, objects: bool = True) -> Any:
    """The parts of an object, and of those, as something that can be compared later.

    >>> image([1, {"a": 2}]) == image([1, {"a": 2}]), image([1]) == image([2])
    (True, False)

    Args:
        objects: whether to look into objects that are neither data nor dataclasses.
    """

    def part(each: Any) -> Any:
        return image(each, depth + 1, objects=objects)

    if thing is None or isinstance(thing, (bool, int, str, bytes)):
        return thing
    if isinstance(thing, float):
        return "nan" if math.isnan(thing) else thing
    if isinstance(thing, (np.ndarray, np.generic)):
        return str(thing.dtype), thing.shape, thing.tobytes()
    if depth > DEEPEST:
        return "..."
    if isinstance(thing, (list, tuple)):
        return type(thing).__name__, *map(part, thing)
    if isinstance(thing, (set, frozenset)):
        return "set", *sorted(repr(part(each)) for each in thing)
    if isinstance(thing, dict):
        return "dict", *((part(key), part(value)) for key, value in thing.items())
    parts = _parts_of_dataclass(thing) if not objects else parts_of_object(thing)
    if parts and not callable(thing):
        images = {name: part(each) for name, each in parts.items()}
        return _Object(type(thing).__qualname__, images)
    if not objects:
        return type(thing).__qualname__
    text = repr(thing)
    return type(thing).__qualname__ if " at 0x" in text else text


def _parts_of_dataclass(thing: Any) -> dict[str, Any]:
    """What two of a dataclass are compared by."""
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        return {}
    names = [each.name for each in dataclasses.fields(thing) if each.compare]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def parts_of_object(thing: Any) -> dict[str, Any]:
    """The attributes of an object, by name."""
    parts = dict(getattr(thing, "__dict__", {}))
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                parts[name] = getattr(thing, name)
    return parts


class _Object:
    """The image of an object with attributes; one that has more of them later did not change."""

    def __init__(self, name: str, parts: dict[str, Any]) -> None:
        self.name, self.parts = name, parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Object) or self.name != other.name:
            return False
        # What a state computes once and keeps is no change.
        both = self.parts.keys() & other.parts.keys()
        return all(self.parts[name] == other.parts[name] for name in both)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.parts.items())})"


def difference(one: Any, other: Any) -> str:
    """The first part in which two images differ."""
    if isinstance(one, _Object) and isinstance(other, _Object):
        for name in one.parts.keys() & other.parts.keys():
            if one.parts[name] != other.parts[name]:
                return f".{name}: {difference(one.parts[name], other.parts[name])}"
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for part, counterpart in zip(one, other, strict=True):
            if part != counterpart:
                return difference(part, counterpart)
    return f"{one!r:.100} became {other!r:.100}"


class Watch:
    """The first states of a plan, compared for a while with what they were.

    Objects of the user's own classes may share and keep what they like; `uctree.check` looks into
    them as well. Data and dataclasses are the same later, or the problem is wrong.
    """

    def __init__(self) -> None:
        self.is_on = True
        self._states: list[tuple[Any, Any]] = []
        self._looks = MOST_LOOKS
        self._seconds = MOST_SECONDS

    def see(self, state: Any) -> None:
        """Take a new state; raise BrokenGame if an earlier one has changed."""
        self.look()
        self.add(state)

    def add(self, state: Any) -> None:
        """Watch a state, unless there are enough."""
        if self.is_on and len(self._states) < MOST_STATES:
            began = time.perf_counter()
            self._states.append((state, image(state, objects=False)))
            self._spend(began)

    def look(self) -> None:
        """Raise BrokenGame if a state has changed."""
        if not self.is_on:
            return
        began = time.perf_counter()
        for state, before in self._states:
            now = image(state, objects=False)
            if now != before:
                raise BrokenGame(
                    f"a state changed after the plan got it: {difference(before, now)}. A step "
                    "must return another state: copy the lists, dicts and arrays that it changes. "
                    "uctree.check(problem, start) says more"
                )
        self._looks -= 1
        self._spend(began)

    def _spend(self, began: float) -> None:
        self._seconds -= time.perf_counter() - began
        if self._looks == 0 or self._seconds < 0:
            self.is_on, self._states = False, []
