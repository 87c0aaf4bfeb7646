"""Amounts of memory as numbers and as text."""

from __future__ import annotations

import math

import pytest

from uctree.engine.memory import num_bytes

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, 0),
        (1e6, 1_000_000),
        ("500MB", 500_000_000),
        (" 1.5 kib ", 1536),
        ("2GiB", 2**31),
        ("64b", 64),
        ("1000", 1000),
    ],
)
def test_amounts_are_bytes(amount, expected):
    assert num_bytes(amount, "max_memory") == expected


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ("much", "max_memory is bytes or text as \"500MB\"; got 'much'"),
        ("5 MBit", 'max_memory is bytes or text as "500MB"'),
        (-1, "max_memory must be a number of bytes; got -1"),
        (math.inf, "max_memory must be a number of bytes; got inf"),
        ("nan", "max_memory must be a number of bytes; got nan"),
    ],
)
def test_what_is_no_amount_is_refused(amount, message):
    with pytest.raises(ValueError, match=message):
        num_bytes(amount, "max_memory")
