"""Tic-tac-toe: known counts of sequences and episodes, and how cells are written."""

from __future__ import annotations

import pytest

from tests.games.variants import compiled
from uctree import IllegalAction
from uctree.games import tic_tac_toe

pytestmark = pytest.mark.quick


def test_tic_tac_toe_has_255168_episodes() -> None:
    game = compiled(tic_tac_toe)
    sequences = [game.perft(depth) for depth in range(1, 10)]
    assert sequences == [9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]
    # An episode ends where its sequence is not continued.
    going_on = [count // (9 - ply) for ply, count in enumerate(sequences[1:], start=1)]
    ended = [made - on for made, on in zip(sequences, going_on, strict=False)]
    assert sum(ended) + sequences[-1] == 255168


def test_tic_tac_toe_cells_are_counted_from_one() -> None:
    game = tic_tac_toe()
    state = game.play([4, 0, 8])
    assert game.show(state) == "O . .\n. X .\n. . X"
    assert game.read_action(state, "2 ") == 1
    with pytest.raises(IllegalAction, match="legal: 2, 3, 4, 6, 7, 8"):
        game.read_action(state, "9")
