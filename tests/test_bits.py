"""Bit tricks agree with plain arithmetic, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.bits import lowest_bit, nth_bit, popcount
from uctree.engine.compile import compile_kernel

WORDS = [0, 1, 2, 3, 0b101100, 2**31, 2**62 - 1, 2**62 + 12345]
UNSIGNED = [*WORDS, 2**63, 2**64 - 1, 0xDEADBEEFDEADBEEF, 0xFF00FF00FF00FF00, 2**63 + 1]


@pytest.fixture(params=["plain", "compiled int64", "compiled uint64"])
def tricks(request):
    """The functions, and the words that their argument type holds."""
    functions = (popcount, lowest_bit, nth_bit)
    if request.param == "plain":
        return [*functions, UNSIGNED]
    kind = np.int64 if "int64" in request.param and "u" not in request.param[9:] else np.uint64
    one, two, three = (
        compile_kernel(f, {}, (kind(1), 1) if f is nth_bit else (kind(1),), label=f.__name__).call
        for f in functions
    )
    words = WORDS if kind is np.int64 else UNSIGNED
    return [
        lambda w: one(kind(w)), lambda w: two(kind(w)), lambda w, n: three(kind(w), n), words
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_bits_are_counted_and_found(tricks):
    count, lowest, nth, words = tricks
    for word in words:
        indices = [i for i in range(64) if word >> i & 1]
        assert count(word) == len(indices)
        assert lowest(word) == (indices[0] if indices else 64)
        assert [nth(word, n) for n in range(len(indices))] == indices


def test_a_negative_word_is_refused_in_plain_python():
    with pytest.raises(OverflowError):
        popcount(-1)
