"""Othello: turned stones against walks in eight directions, known counts, exact play on 4 x 4."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from tests.games.variants import compiled
from uctree import IllegalAction
from uctree.game import StateView
from uctree.games import othello

pytestmark = pytest.mark.quick


def test_othello_has_the_known_numbers_of_sequences() -> None:
    known = [4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288]
    assert [compiled(othello).perft(depth) for depth in range(1, 10)] == known


def turned_by(board: np.ndarray, player: int, row: int, col: int) -> list[tuple[int, int]]:
    """The stones that a stone of `player` on an empty cell turns; walks in eight directions."""
    turned = []
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        line = []
        r, c = row + down, col + right
        while 0 <= r < len(board) and 0 <= c < len(board) and board[r, c] == 1 - player:
            line.append((r, c))
            r, c = r + down, c + right
        if 0 <= r < len(board) and 0 <= c < len(board) and board[r, c] == player:
            turned += line
    return turned


@pytest.mark.parametrize("size", [4, 6, 8])
def test_stones_are_turned_as_walks_in_eight_directions_find_them(size: int) -> None:
    game = compiled(othello, size=size)
    middle = size // 2
    passes = 0
    for seed in range(40):
        recorded = game.episode(seed)
        board = np.full((size, size), -1)
        board[middle - 1 : middle + 1, middle - 1 : middle + 1] = [[1, 0], [0, 1]]
        player = 0
        for action, choices, seat in zip(
            recorded.actions, recorded.choices, recorded.players, strict=True
        ):
            assert seat == player
            cells = [divmod(cell, size) for cell in range(size * size)]
            open_cells = [cell for cell in cells if board[cell] == -1]
            moves = [r * size + c for r, c in open_cells if turned_by(board, player, r, c)]
            assert choices == (moves or [size * size])
            if action == size * size:
                passes += 1
            else:
                for cell in (*turned_by(board, player, *cells[action]), cells[action]):
                    board[cell] = player
            player = 1 - player
        lead = (board == 0).sum() - (board == 1).sum()
        assert recorded.rewards[-1].tolist() == [np.sign(lead), -np.sign(lead)]
    assert passes > 0


def test_the_second_player_wins_othello_on_4x4() -> None:
    game = othello(4)

    @functools.cache
    def best(key: bytes) -> float:
        """What the best play pays player 0."""
        state = states[key]
        player = game.to_play(state)
        worst = -1.0 if player == 0 else 1.0
        for action in game.legal(state):
            after, reward = game.step(state, action)
            states[game.key(after)] = after
            value = reward[0] if game.is_over(after) else best(game.key(after))
            worst = max(worst, value) if player == 0 else min(worst, value)
            if worst == (1.0 if player == 0 else -1.0):
                break
        return worst

    states = {game.key(game.start()): game.start()}
    # All four first moves are alike by symmetry.
    after, _ = game.step(game.start(), game.legal(game.start())[0])
    states[game.key(after)] = after
    assert best(game.key(after)) == -1


def test_othello_is_shown_with_its_coordinates() -> None:
    game = othello(4)
    state = game.play([game.read_action(game.start(), "B1")])
    assert game.show(state) == "  a b c d\n1 . X . .\n2 . X X .\n3 . X O .\n4 . . . ."
    assert game.rules.read_action(StateView(state), "Pass") == 16
    assert game.show_action(state, 16) == "pass"
    with pytest.raises(IllegalAction, match="'pass' is not a legal action here; legal: a1, c1, a3"):
        game.read_action(state, "pass")
