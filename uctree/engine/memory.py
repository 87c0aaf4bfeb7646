"""Amounts of memory: numbers of bytes, or text such as 500MB."""

from __future__ import annotations

import math

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}


def num_bytes(amount: int | str, what: str) -> int:
    """A number of bytes from a number or from text such as "500MB"."""
    if isinstance(amount, str):
        text = amount.strip().lower()
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            wanted = float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
        except ValueError:
            raise ValueError(f'{what} is bytes or text as "500MB"; got {amount!r}') from None
    else:
        wanted = float(amount)
    if not (math.isfinite(wanted) and wanted >= 0):
        raise ValueError(f"{what} must be a number of bytes; got {amount}")
    return int(wanted)
