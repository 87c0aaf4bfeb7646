"""Nim: Bouton's theorem, and how heaps are written."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from uctree.games import nim

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("misere", [True, False])
def test_nim_is_won_as_bouton_says(misere: bool) -> None:
    game = nim((3, 4, 2), misere)

    @functools.cache
    def wins(heaps: tuple[int, ...]) -> bool:
        """Whether the player to move can win, by trying everything."""
        state = game.start()
        state["heaps"] = heaps
        for action in game.legal(state):
            after, reward = game.step(state, action)
            if game.is_over(after):
                won = reward[0] == 1
            else:
                won = not wins(tuple(after["heaps"].tolist()))
            if won:
                return True
        return False

    for heaps in itertools.product(range(4), range(5), range(3)):
        if max(heaps) > 1 or (max(heaps) == 1 and not misere):
            assert wins(heaps) == (np.bitwise_xor.reduce(heaps) != 0)
        elif max(heaps) == 1:
            assert wins(heaps) == (sum(heaps) % 2 == 0)


def test_nim_shows_and_reads_heaps() -> None:
    game = nim((1, 3))
    state = game.start()
    assert game.show(state) == "heap 1: | 1\nheap 2: ||| 3"
    assert game.show_action(state, 5) == "heap 2, take 3"
    assert game.read_action(state, "2 3") == 5
    assert (game.observation(state, 0) == [[1, 0, 0], [1, 1, 1]]).all()
