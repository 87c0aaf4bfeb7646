"""Random playouts in Python: numbers drawn from a seed at little cost, and the loop over plies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, count
from typing import Any

_BITS = 32  # of a draw


def draws(seed: int) -> Iterator[int]:
    """Random numbers below 2**32 that depend on the seed alone.

    Seeding a `random.Random` takes as long as fifty of these, and many playouts are shorter.

    >>> numbers = draws(1)
    >>> next(numbers) == next(draws(1)), next(numbers) < 2**32
    (True, True)
    """
    for part in count():
        yield from memoryview(blake2b(b"%d %d" % (seed, part)).digest()).cast("I")


def one_of(listed: Sequence[Any], draw: int) -> Any:
    """The element that a draw picks, each with the same probability.

    >>> one_of("abcd", 2**31)
    'c'
    """
    return listed[draw * len(listed) >> _BITS]


def weighed(listed: Sequence[Any], weights: Sequence[float], draw: int) -> Any:
    """The element that a draw picks, each with its probability.

    >>> weighed("ab", (0.25, 0.75), 2**30)
    'b'
    """
    place = draw / 2**_BITS
    for element, end in zip(listed, accumulate(weights), strict=True):
        if place < end:
            return element
    return listed[-1]  # the sum was rounded down


class SeededPlayout:
    """A playout that needs only a seed: `play(state, seed)` returns what a playout returns.

    If `in_order` is given, `in_order(seed)` returns a function of a state alone, which draws from
    one generator and is faster. Plans use it if their playouts come in the same order every time.
    """

    __slots__ = ("in_order", "play")

    def __init__(
        self, play: Callable[[Any, int], Any],
        in_order: Callable[[int], Callable[[Any], Any]] | None = None,
    ) -> None:  # fmt: skip
        self.play, self.in_order = play, in_order

    def __call__(self, state: Any, rng: random.Random) -> Any:
        return self.play(state, rng.getrandbits(64))
