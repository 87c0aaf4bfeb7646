"""Ultimate tic-tac-toe: boards, targets and ends by hand, and against slow, obvious rules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.games.variants import compiled
from uctree.games import ultimate_tic_tac_toe

pytestmark = pytest.mark.quick

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def has_line(marks: list[str], player: str) -> bool:
    return any(all(marks[cell] == player for cell in line) for line in LINES)


def test_episodes_are_as_lists_of_boards_play_them() -> None:
    game = compiled(ultimate_tic_tac_toe)
    draws = 0
    for seed in range(100):
        recorded = game.episode(seed)
        boards = [["."] * 9 for _ in range(9)]
        owners = ["."] * 9
        target = None
        for ply, action in enumerate(recorded.actions):
            is_open = [owners[b] == "." and "." in boards[b] for b in range(9)]
            expected = [
                9 * (b // 3 * 3 + cell // 3) + b % 3 * 3 + cell % 3
                for b in range(9)
                for cell in range(9)
                if is_open[b] and boards[b][cell] == "." and target in (None, b)
            ]
            assert sorted(recorded.choices[ply]) == sorted(expected)
            player = "XO"[ply % 2]
            board = action // 27 * 3 + action % 9 // 3
            cell = action // 9 % 3 * 3 + action % 3
            boards[board][cell] = player
            if has_line(boards[board], player):
                owners[board] = player
            target = cell if owners[cell] == "." and "." in boards[cell] else None
        won = [has_line(owners, player) for player in "XO"]
        expected_pay = [won[0] - won[1], won[1] - won[0]]
        assert recorded.rewards[-1].tolist() == expected_pay
        draws += not any(won)
    assert draws > 0


def test_a_stone_sends_the_other_player_to_the_board_of_its_cell() -> None:
    game = ultimate_tic_tac_toe()
    state = game.start()
    assert len(game.legal(state)) == 81
    state, _ = game.step(state, game.read_action(state, "c1"))  # the cell in the top right
    assert {game.show_action(state, action) for action in game.legal(state)} == {
        f"{col}{row}" for col in "ghi" for row in (1, 2, 3)
    }
    assert "next: g1-i3" in game.show(state)


def test_planes_show_stones_boards_and_where_to_play() -> None:
    game = ultimate_tic_tac_toe()
    state = game.start()
    for action in ("a1", "b1", "d1", "b2", "d4", "c3"):
        state, _ = game.step(state, game.read_action(state, action))
    planes = game.observation(state, 0)
    assert planes[0].sum() == planes[1].sum() == 3
    assert planes[0][0, 0] == 1
    assert planes[1][0, 1] == 1
    own = game.observation(state, 1)
    assert (own[:2] == planes[1::-1]).all()
    allowed = np.zeros((9, 9))
    for action in game.legal(state):
        allowed[divmod(action, 9)] = 1
    assert (planes[4] == allowed).all()


def test_a_won_board_is_closed_and_shown() -> None:
    game = ultimate_tic_tac_toe()
    state = game.start()
    rng = np.random.default_rng(5)
    while not state["won"].any():
        state, _ = game.step(state, int(rng.choice(game.legal(state))))
    winner = int(state["won"][1] > 0)
    board = int(state["won"][winner]).bit_length() - 1
    assert f"{'XO'[winner]} won: " in game.show(state)
    rows = slice(board // 3 * 3, board // 3 * 3 + 3)
    cols = slice(board % 3 * 3, board % 3 * 3 + 3)
    planes = game.observation(state, winner)
    assert planes[2][rows, cols].all()
    assert planes[2].sum() == 9
    assert not planes[4][rows, cols].any()
