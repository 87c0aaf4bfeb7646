"""JSON as uctree writes and reads it: always valid, and bounded.

A number that is not finite (NaN, Infinity) is written as null, because JSON has none. Reading
refuses what other programs may not read, and what takes more memory or time than it looks like.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

LONGEST_NUMBER = 100  # digits; the states of generators have 39


def json_text(
    content: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None
) -> str:
    """The JSON text of numbers, text, lists and tables.

    >>> json_text({"value": math.nan, "range": (0, math.inf)})
    '{"value": null, "range": [0, null]}'
    """
    try:
        return json.dumps(content, indent=indent, default=default, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(content), indent=indent, default=_chained(default))


def _chained(default: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """`default`, whose results may have numbers that are not finite as well."""
    return None if default is None else lambda value: _finite(default(value))


def finite(content: dict[str, Any]) -> dict[str, Any]:
    """A table with None for numbers that are not finite, ready for `json.dumps`.

    >>> finite({"value": -math.inf, "visits": 3})
    {'value': None, 'visits': 3}
    """
    return {key: _finite(value) for key, value in content.items()}


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return finite(content)
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return content


def parse_json(text: str | bytes) -> Any:
    """The content of a JSON text; ValueError if it is invalid, too deep, or has a huge number."""
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_float=_read_float, parse_int=_read_int
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(text: str) -> Any:
    raise ValueError(f"{text:.20} is not a number of JSON")


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _read_int(text: str) -> int:
    return int(text) if len(text) <= LONGEST_NUMBER else _refuse(text)
