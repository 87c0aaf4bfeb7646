"""Chess: published counts of sequences, python-chess in lock step, draws and castling by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.games.chess_peer import count, is_drawn, move_of, python_chess
from tests.games.variants import compiled
from uctree.game import OVER
from uctree.games import chess
from uctree.games.chess_rules import MOST_QUIET
from uctree.games.chess_text import from_fen, start_960, to_fen

USUAL = start_960(518)
# Positions 1 to 6 of "Perft Results" in the Chess Programming Wiki: counts by depth from 1 on.
POSITIONS = {
    "start": (USUAL, (20, 400, 8902, 197281, 4865609, 119060324)),
    "kiwipete": (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        (48, 2039, 97862, 4085603, 193690690),
    ),
    "third": (
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        (14, 191, 2812, 43238, 674624, 11030083, 178633661),
    ),
    "fourth": (
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        (6, 264, 9467, 422333, 15833292),
    ),
    "fourth, mirrored": (
        "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
        (6, 264, 9467, 422333, 15833292),
    ),
    "fifth": (
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        (44, 1486, 62379, 2103487, 89941194),
    ),
    "sixth": (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        (46, 2079, 89890, 3894594, 164075551),
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", POSITIONS)
def test_sequences_are_as_many_as_published(name: str) -> None:
    fen, known = POSITIONS[name]
    for depth, sequences in enumerate([n for n in known if n < 5 * 10**6], start=1):
        assert compiled(chess).perft(depth, from_fen(fen)) == sequences


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIONS)
def test_long_sequences_are_as_many_as_published(name: str) -> None:
    fen, known = POSITIONS[name]
    for depth, sequences in enumerate(known, start=1):
        assert compiled(chess).perft(depth, from_fen(fen)) == sequences


# --- python-chess --------------------------------------------------------------------------------


def follow(recorded: Any, board: Any) -> None:
    """Play a recorded episode in python-chess, and compare at every ply."""
    for choices, action in zip(recorded.choices, recorded.actions, strict=True):
        assert not is_drawn(board)
        moves = {choice: move_of(board, choice) for choice in choices}
        assert set(moves.values()) == set(board.legal_moves)
        assert len(choices) == len(set(choices))
        board.push(moves[action])
    paid = recorded.rewards.sum(axis=0).tolist()
    if board.is_checkmate():
        assert paid == ([-1, 1] if board.turn else [1, -1])
    else:
        assert board.is_stalemate() or is_drawn(board)
        assert paid == [0, 0]
    assert to_fen(compiled(chess).game.copy(recorded.state)) == board.fen()


@pytest.mark.peer
def test_random_episodes_are_as_python_chess_plays_them() -> None:
    for seed in range(6):
        follow(compiled(chess).episode(seed), python_chess().Board())


@pytest.mark.peer
@pytest.mark.slow
def test_500_random_episodes_are_as_python_chess_plays_them() -> None:
    for seed in range(6, 506):
        number = seed * 7 % 960
        board = python_chess().Board.from_chess960_pos(number)
        follow(compiled(chess).episode(seed, from_fen(start_960(number))), board)


@pytest.mark.peer
def test_chess960_is_as_python_chess_plays_it() -> None:
    for number in range(0, 960, 160):
        board = python_chess().Board.from_chess960_pos(number)
        state = from_fen(start_960(number))
        assert compiled(chess).perft(3, state) == count(board, 3)
        follow(compiled(chess).episode(number, state), board)


# Where a king castles next to its goal, from its goal, or over pinned rooks.
CASTLING = [
    "1r2k1r1/8/8/8/8/8/8/R4KR1 w GAgb - 0 1",
    "5rkr/8/8/8/8/8/8/1RK4R w HBhf - 0 1",
    "4k3/8/8/8/8/8/8/qR2K3 w B - 0 1",
    "rk2r3/8/8/8/8/8/8/RK5R b HAea - 0 1",
    "r2k3r/8/8/3q4/8/8/8/2RK3R w HCha - 0 1",
    "bqnbrkrn/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKRN w GEge - 0 1",
]


@pytest.mark.peer
@pytest.mark.parametrize("fen", CASTLING)
def test_castling_in_chess960_is_as_in_python_chess(fen: str) -> None:
    for depth in (1, 2, 3):
        board = python_chess().Board(fen, chess960=True)
        assert compiled(chess).perft(depth, from_fen(fen)) == count(board, depth)
    for seed in range(3):
        follow(
            compiled(chess).episode(seed, from_fen(fen)), python_chess().Board(fen, chess960=True)
        )


# --- ends of episodes ----------------------------------------------------------------------------


def played(fen: str, moves: str) -> tuple[np.record, np.ndarray]:
    """The state after these moves, and what the last one paid."""
    game = chess()
    state, reward = from_fen(fen), np.zeros(2)
    for move in moves.split():
        assert not game.is_over(state)
        state, reward = game.step(state, game.read_action(state, move))
    return state, reward


def test_mate_pays_the_player_who_gives_it() -> None:
    state, reward = played(USUAL, "f3 e5 g4 Qh4#")
    assert (state["to_play"], reward.tolist()) == (OVER, [-1, 1])
    state, reward = played(USUAL, "e4 e5 Bc4 Nc6 Qh5 Nf6 Qxf7")
    assert (state["to_play"], reward.tolist()) == (OVER, [1, -1])


def test_stalemate_is_a_draw() -> None:
    state, reward = played("7k/8/6K1/8/8/8/8/5Q2 w - - 0 1", "Qf7")
    assert (state["to_play"], reward.tolist()) == (OVER, [0, 0])


def test_the_third_occurrence_of_a_position_is_a_draw() -> None:
    state, reward = played(USUAL, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1")
    assert state["to_play"] == 1
    assert state["repeats"] == 1
    state, reward = played(USUAL, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8")
    assert (state["to_play"], state["repeats"], reward.tolist()) == (OVER, 2, [0, 0])


def test_positions_with_other_rights_are_others() -> None:
    # The first time both kings may still castle, so a second return is no third occurrence.
    moves = "Ke2 Ke7 Ke1 Ke8 " * 2
    fen = "r3k2r/8/8/8/8/8/8/R3K2R w {rights} - 0 1"
    assert played(fen.format(rights="-"), moves)[0]["to_play"] == OVER
    assert played(fen.format(rights="KQkq"), moves)[0]["to_play"] == 0
    assert played(fen.format(rights="KQkq"), moves + "Ke2 Ke7")[0]["to_play"] == OVER
    # So does a pawn that could be captured in passing; where it could not, nothing is different.
    fen = "4k3/8/8/8/{pawn}/8/4P3/4K3 w - - 0 1"
    moves = "e4 " + "Ke7 Ke2 Ke8 Ke1 " * 2
    assert played(fen.format(pawn="3p4"), moves)[0]["to_play"] == 1
    assert played(fen.format(pawn="1p6"), moves)[0]["to_play"] == OVER


def test_fifty_moves_without_progress_are_a_draw_unless_the_last_one_mates() -> None:
    state, reward = played("7k/8/8/8/8/8/R7/1R5K w - - 99 80", "Ra3")
    assert (state["to_play"], state["clock"], reward.tolist()) == (OVER, MOST_QUIET, [0, 0])
    _, reward = played("7k/R7/8/8/8/8/8/1R5K w - - 99 80", "Rb8")
    assert reward.tolist() == [1, -1]
    state, _ = played("7k/8/8/8/8/8/R6p/1R5K w - - 99 80", "Rxh2")
    assert (state["to_play"], state["clock"]) == (1, 0)


@pytest.mark.parametrize(
    ("pieces", "is_over"),
    [("K", True), ("KN", True), ("KB", True), ("KNN", False), ("KR", False), ("KP", False)],
)
def test_too_few_pieces_are_a_draw(pieces: str, is_over: bool) -> None:
    placed = pieces[1:] + str(8 - len(pieces[1:])) if pieces[1:] else "8"
    state = from_fen(f"4k3/8/8/8/8/{placed}/8/4K3 w - - 0 1")
    assert (state["to_play"] == OVER) == is_over


def test_bishops_of_one_colour_cannot_mate() -> None:
    assert from_fen("4kb2/8/8/8/8/8/8/2B1K3 w - - 0 1")["to_play"] == OVER
    assert from_fen("2b1k3/8/8/8/8/8/8/2B1K3 w - - 0 1")["to_play"] == 0
