"""The game of chess: what a network sees, the names of variants, wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.games import chess
from uctree.games.chess_text import from_fen

pytestmark = pytest.mark.quick


def test_planes_show_eight_boards_from_the_seat_of_the_observer() -> None:
    game = chess()
    state = game.start()
    for move in ("e4", "c5", "Nf3"):
        state, _ = game.step(state, game.read_action(state, move))
    white, black = (game.observation(state, player) for player in range(2))
    assert white.shape == (119, 8, 8)
    # Own pawns, then the other's; row 0 is the far side of the board.
    assert np.argwhere(white[0])[0].tolist() == [4, 4]  # e4
    assert white[0].sum() == white[6].sum() == 8
    assert white[6][3, 2] == black[0][4, 2] == 1  # c5
    assert white[1][5, 5] == black[7][2, 5] == 1  # Nf3
    assert white[5][7, 4] == black[5][7, 4] == 1  # both kings on e
    assert (white[:6, ::-1] == black[6:12]).all()
    # A ply earlier the knight was at home, three plies earlier the pawn; before, there was nothing.
    assert white[14 + 1][7, 6] == 1
    assert white[14 * 3][6, 4] == 1
    assert white[14 * 3 : 14 * 4].sum() == 32
    assert white[14 * 4 : 14 * 8].sum() == 0
    assert white[112].sum() == 0
    assert black[112].sum() == 64
    assert [plane.mean() for plane in white[114:118]] == [1, 1, 1, 1]
    assert (white[118] == np.float32(0.01)).all()


def test_planes_show_rights_to_castle_and_repetitions() -> None:
    game = chess()
    state = from_fen("r3k2r/8/8/8/8/8/8/R3K2R b Kq - 0 1")
    for player, expected in ((0, [1, 0, 0, 1]), (1, [0, 1, 1, 0])):
        planes = game.observation(state, player)
        assert [plane.mean() for plane in planes[114:118]] == expected
    state = game.start()
    for move in ("Nf3", "Nf6", "Ng1", "Ng8"):
        state, _ = game.step(state, game.read_action(state, move))
    planes = game.observation(state, 0)
    assert planes[12].all()
    assert not planes[13].any()
    assert not planes[14 + 12].any()


def test_black_moves_in_its_own_frame() -> None:
    game = chess()
    state = game.start()
    first = game.read_action(state, "e4")
    state, _ = game.step(state, first)
    assert game.read_action(state, "e5") == first == 73 * 12 + 1


def test_variants_have_names_and_starts_of_their_own() -> None:
    assert chess().name == "chess"
    assert chess(playouts="heuristic").name == "chess(heuristic)"
    assert chess(0).name == "chess(0)"
    assert chess(17, playouts="heuristic").name == "chess(17, heuristic)"
    assert chess(0).show(chess(0).start()).splitlines()[0] == "8 b b q n n r k r"
    fen = "8/8/8/4k3/8/8/4P3/4K3 b - - 7 40"
    game = chess(fen=fen)
    assert game.to_play(game.start()) == 1
    assert game.show(game.start()).splitlines()[-1] == fen


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match='must be "uniform" or "heuristic"; got \'clever\''):
        chess(playouts="clever")
    with pytest.raises(ValueError, match="numbered from 0 to 959; got 960"):
        chess(960)
    with pytest.raises(ValueError, match="the episode is over in the position"):
        chess(fen="7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
