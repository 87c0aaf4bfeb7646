"""Breakthrough: moves, captures and wins by hand, and known counts of sequences."""

from __future__ import annotations

import pytest

from tests.games.variants import compiled
from uctree.games import breakthrough

pytestmark = pytest.mark.quick


def test_breakthrough_has_the_known_numbers_of_sequences() -> None:
    known = [22, 484, 11132, 256036, 6182818]
    assert [compiled(breakthrough).perft(depth) for depth in range(1, 6)] == known


def test_pieces_go_straight_to_empty_cells_and_diagonally_to_others_too() -> None:
    game = breakthrough(rows=5, cols=4)
    state = game.start()
    state["pieces"] = [1 << 5 | 1 << 8, 1 << 9 | 1 << 10]
    assert game.show(state) == "\n".join(
        [" 5 . . . .", " 4 . X . .", " 3 X O O .", " 2 . . . .", " 1 . . . .", "   a b c d"]
    )
    shown = sorted(game.show_action(state, action) for action in game.legal(state))
    assert shown == ["a3a2", "a3b2", "b4c3"]
    assert game.read_action(state, "b4xc3*") == 3 * 5 + 2
    state, _ = game.step(state, game.read_action(state, "B4-C3"))
    assert state["pieces"].tolist() == [1 << 8 | 1 << 10, 1 << 9]
    shown = sorted(game.show_action(state, action) for action in game.legal(state))
    assert shown == ["b3a4", "b3b4", "b3c4"]


@pytest.mark.parametrize("player", [0, 1])
def test_the_last_row_and_the_last_capture_win(player: int) -> None:
    game = breakthrough(rows=4, cols=3)
    state = game.start()
    state["to_play"] = player
    for own, other, text in (
        ([1 << 7, 1 << 3], [1 << 0, 1 << 11], ["b2b1", "a3a4"]),
        ([1 << 4, 1 << 7], [1 << 6, 1 << 5], ["b3a2", "b2c3"]),
    ):
        state["pieces"][player], state["pieces"][1 - player] = own[player], other[player]
        after, reward = game.step(state, game.read_action(state, text[player]))
        assert game.is_over(after)
        assert reward[player] == 1
        assert reward[1 - player] == -1
