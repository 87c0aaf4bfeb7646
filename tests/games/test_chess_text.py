"""Positions and moves as text: python-chess writes and reads the same; what is no position."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.games.chess_peer import move_of, python_chess
from tests.games.test_chess_rules import CASTLING, POSITIONS
from uctree import IllegalAction
from uctree.games import chess
from uctree.games.chess_text import from_fen, read_move, start_960, to_fen, to_san, to_uci

AMBIGUOUS = [
    "k7/8/8/1Q3Q2/8/8/1Q6/4K3 w - - 0 1",
    "4k3/R6R/8/8/8/8/R7/4K3 w - - 0 1",
    "2N1N2k/8/1N3N2/8/8/8/8/K7 w - - 0 1",
    "k7/8/8/8/1b6/8/3N4/N3K3 w - - 0 1",
    "r1bqkb1r/ppPp1pPp/8/8/8/8/PP1P1P1P/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
]


def boards() -> list[Any]:
    """Positions of random games, and some that are hard to write."""
    board_of = python_chess().Board
    found = [board_of(fen) for fen, _ in POSITIONS.values()]
    found += [board_of(fen) for fen in AMBIGUOUS]
    found += [board_of(fen, chess960=True) for fen in CASTLING]
    draw = random.Random(1)
    for _ in range(2):
        board = board_of()
        while not board.is_game_over(claim_draw=True):
            board.push(draw.choice(list(board.legal_moves)))
            if board.ply() % 23 == 0 and not board.is_game_over(claim_draw=True):
                found.append(board.copy())
    return found


@pytest.mark.peer
def test_positions_and_moves_are_written_as_python_chess_writes_them() -> None:
    game = chess()
    for board in boards():
        state = from_fen(board.fen())
        assert to_fen(state) == board.fen()
        actions = game.legal(state)
        for action in actions:
            move = move_of(board, action)
            assert to_san(state, action) == board.san(move)
            assert to_uci(state, action, chess960=board.chess960) == board.uci(move)
        for action in actions[:: 1 + len(actions) // 4]:
            move = move_of(board, action)
            for text in (board.san(move), board.lan(move), board.uci(move)):
                assert read_move(state, text) == action, (board.fen(), text)


def test_moves_are_read_as_people_write_them() -> None:
    state = from_fen("r3k2r/pPpp1ppp/8/8/3n4/2N2N2/8/R3K2R w KQkq - 0 1")
    for text, san in (
        ("0-0", "O-O"), ("o-o-o", "O-O-O"), ("e1g1", "O-O"), ("e1h1", "O-O"), ("Nb5!", "Nb5"),
        ("bxa8Q", "bxa8=Q+"), ("b7a8n", "bxa8=N"), ("Nf3xd4", "Nxd4"), ("b8=R+?", "b8=R+"),
    ):  # fmt: skip
        assert to_san(state, read_move(state, text)) == san
    for text in ("Nd5x", "e4", "Ke3", "", "O-O-O-O", "bxa8", "N", "e1e9", "nb5"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            chess().read_action(state, text)
    assert read_move(from_fen(AMBIGUOUS[0]), "Qe5") == -1  # which of the three?


def test_the_960_start_positions_are_different_and_the_usual_one_is_among_them() -> None:
    fens = [start_960(number) for number in range(960)]
    assert len(set(fens)) == 960
    assert fens[518] == "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    assert fens[0].startswith("bbqnnrkr/")
    assert fens[959].startswith("rkrnnqbb/")
    with pytest.raises(ValueError, match="numbered from 0 to 959; got 960"):
        start_960(960)


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "it has up to 6 parts; got 0"),
        ("8/8/8/8 w - - 0 1", "a board has 8 ranks; got 4"),
        ("4k3/8/8/8/8/8/8/4K4 w - - 0 1", "a rank has 8 squares; got 9 in '4K4'"),
        ("4k3/8/8/8/8/8/8/4X3 w - - 0 1", "no piece is called 'X'"),
        ("4k3/8/8/8/8/8/8/8 w - - 0 1", "each side has one king"),
        ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "no pawn stands on the first or the last rank"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", 'the side to move is "w" or "b"; got \'x\''),
        ("4k3/8/8/8/8/8/8/4K2R w Q - 0 1", "no king and rook can castle as 'Q' says"),
        ("4k3/8/8/8/8/8/8/4K2R w x - 0 1", "no right to castle is called 'x'"),
        ("4k3/8/8/8/8/8/8/4K1RR w HG - 0 1", "two rights to castle to the same side in 'HG'"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "no pawn has just passed e6"),
        ("4k3/8/8/8/8/8/8/4K3 w - e4 0 1", "no pawn can be captured in passing on 'e4'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "the clock is a whole number; got 'x'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 10001", "moves are counted up to 10,000; got 10001"),
        ("4k3/8/8/8/8/8/8/4R1K1 w - - 0 1", "the side that is not to move is in check"),
        ("4k3/3P4/8/8/8/8/8/4K3 w - - 0 1", "the side that is not to move is in check"),
    ],
)
def test_what_is_no_position_is_refused(fen: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_fen(fen)
