"""Bit operations for boards that fit into one word; for rules, compiled or in plain Python.

A word is a uint64, or an int64 that is not negative (boards of up to 63 cells, without the pitfalls
of mixed types). LLVM turns counting bits into one instruction; `nth_bit` has no branch and no loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_1, _2, _4, _7, _8, _56, _64, _255 = (np.uint64(n) for n in (1, 2, 4, 7, 8, 56, 64, 255))
_ONES = np.uint64(0x0101010101010101)  # a one in every byte
_TOPS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x5555555555555555)
_NIBBLES = np.uint64(0x3333333333333333)
_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)

# [byte, n]: the index of its n-th set bit; 0 if there is none.
_NTH_OF_BYTE = np.zeros((256, 8), np.uint8)
for _byte in range(256):
    _places = [place for place in range(8) if _byte >> place & 1]
    _NTH_OF_BYTE[_byte, : len(_places)] = _places


def count_by_byte(word: Any) -> np.uint64:
    """The number of set bits of each byte, in that byte."""
    x = np.uint64(word)
    x = x - ((x >> _1) & _PAIRS)
    x = (x & _NIBBLES) + ((x >> _2) & _NIBBLES)
    return (x + (x >> _4)) & _HALVES


def popcount(word: Any) -> int:
    """The number of set bits.

    >>> int(popcount(0b1011))
    3
    """
    return np.int64((count_by_byte(word) * _ONES) >> _56)  # type: ignore[return-value]


def lowest_bit(word: Any) -> int:
    """The index of the lowest set bit; 64 if there is none.

    >>> int(lowest_bit(0b1000))
    3
    """
    x = np.uint64(word)
    return popcount(~x & (x - _1))


def nth_bit(word: Any, n: int) -> int:
    """The index of the n-th set bit, counted from 0 at the lowest.

    >>> with np.errstate(over="ignore"):  # rules are called this way
    ...     int(nth_bit(0b10110, 1))
    2
    """
    x, below = np.uint64(word), np.uint64(n)
    sums = count_by_byte(x) * _ONES  # byte i: the bits set in bytes 0 to i
    # A byte keeps its top bit if its sum is above n; the first such byte has the n-th bit.
    above = ((sums | _TOPS) - (below + _1) * _ONES) & _TOPS
    first = _64 - (((above >> _7) * _ONES) >> _56) * _8
    before = ((sums << _8) >> first) & _255
    place = _NTH_OF_BYTE[(x >> first) & _255, below - before]
    return np.int64(first) + np.int64(place)  # type: ignore[return-value]
