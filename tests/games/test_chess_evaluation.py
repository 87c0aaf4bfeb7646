"""Values of chess positions: mirrored ones, exchanges against a recursion, playouts, priors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.games.chess_peer import python_chess
from tests.games.variants import compiled
from uctree.game import StateView, make_rng
from uctree.games import chess
from uctree.games.chess_evaluation import TEMPO, VALUES, lead_of, priors, wins_exchange
from uctree.games.chess_rules import kind_at
from uctree.games.chess_text import from_fen, read_move

HANGING = "rnb1kbnr/pppp1ppp/8/4p3/4P2q/2N2N2/PPPP1PPP/R1BQKB1R w KQkq - 0 4"


def lead(fen: str) -> float:
    with np.errstate(over="ignore"):
        return float(lead_of(StateView(from_fen(fen))))


def random_boards(seed: int, count: int) -> list[Any]:
    draw = random.Random(seed)
    boards = []
    while len(boards) < count:
        board = python_chess().Board()
        for _ in range(draw.randrange(8, 90)):
            if board.is_game_over():
                break
            board.push(draw.choice(list(board.legal_moves)))
        if not board.is_game_over():
            boards.append(board)
    return boards


@pytest.mark.quick
def test_the_start_is_worth_the_move_and_material_counts() -> None:
    assert lead("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1") == TEMPO
    assert lead("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1") > 800
    assert lead("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1") < -800
    # A knight in the middle is better than one in a corner, and kings come out at the end.
    assert lead("4k3/8/8/8/3N4/8/8/4K2R w - - 0 1") > lead("4k3/8/8/8/8/8/8/N3K2R w - - 0 1")
    assert lead("4k3/7p/8/8/3K4/8/P7/8 w - - 0 1") > lead("4k3/7p/8/8/8/8/P7/K7 w - - 0 1")


@pytest.mark.peer
def test_a_mirrored_position_has_the_same_value() -> None:
    for board in random_boards(1, 20):
        assert lead(board.fen()) == lead(board.mirror().fen())


def exchange(board: Any, square: int, attacker: int | None = None) -> int:
    """What the side to move wins by captures on a square: a recursion, cheapest pieces first."""
    module = python_chess()
    order = {kind: VALUES[kind - 1] for kind in range(1, 7)}
    if attacker is None:
        candidates = board.attackers(board.turn, square)
        if not candidates:
            return 0
        attacker = min(candidates, key=lambda place: (order[board.piece_type_at(place)], place))
        # A king may not capture what is protected.
        is_king = board.piece_type_at(attacker) == module.KING
        if is_king and board.attackers(not board.turn, square):
            return 0
        is_free = False
    else:
        is_free = True
    victim = order[board.piece_type_at(square)] if board.piece_at(square) else 0
    after = board.copy(stack=False)
    after.set_piece_at(square, after.remove_piece_at(attacker))
    after.turn = not board.turn
    won = int(victim) - exchange(after, square)
    return won if is_free else max(0, won)


@pytest.mark.peer
def test_exchanges_are_won_as_a_recursion_finds() -> None:
    outcomes = set()
    for board in random_boards(2, 40):
        state = StateView(from_fen(board.fen()))
        flip = 0 if board.turn else 56
        for move in board.legal_moves:
            is_special = board.is_en_passant(move) or board.is_castling(move) or move.promotion
            if is_special or not (
                board.is_capture(move) or board.is_attacked_by(not board.turn, move.to_square)
            ):
                continue
            won = exchange(board, move.to_square, move.from_square)
            square, goal = move.from_square ^ flip, move.to_square ^ flip
            with np.errstate(over="ignore"):
                kind = kind_at(state, np.uint64(1 << square))
                for least in (won - 1, won, won + 1):
                    holds = bool(wins_exchange(state, kind, square, goal, least))
                    assert holds == (won >= least), (board.fen(), move.uci(), won)
            outcomes.add(np.sign(won))
    assert outcomes == {-1, 0, 1}


def test_playouts_capture_what_hangs_and_value_what_is_left() -> None:
    game = compiled(chess, playouts="heuristic")
    quiet = from_fen("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1")
    assert game.playout(1, quiet).tolist() == chess().estimate(quiet).tolist()
    assert game.playout(1, from_fen(HANGING))[0] > 0.85
    assert game.playout(1, from_fen(HANGING.replace(" w ", " b ")))[0] < 0.5
    mate = from_fen("6k1/5ppp/8/8/8/8/8/r5K1 w - - 0 1")
    assert game.playout(1, mate).tolist()[0] < 0


@pytest.mark.parametrize("seed", range(3))
def test_compiled_playouts_are_those_of_plain_python(seed: int) -> None:
    game = chess(playouts="heuristic")
    state = game.play(chess().random_episode(seed).actions[: 20 + 15 * seed])
    plain, reward = StateView(state.copy()), np.zeros(2)
    with np.errstate(over="ignore"):
        game.rules.playout(plain, make_rng(seed), reward)
    assert compiled(chess, playouts="heuristic").playout(seed, state).tolist() == reward.tolist()


def test_priors_prefer_what_wins_material() -> None:
    state = from_fen(HANGING)
    logits = np.zeros(4672)
    with np.errstate(over="ignore"):
        priors(StateView(state), logits)
    legal = chess().legal(state)
    best = max(legal, key=lambda action: logits[action])
    assert best == read_move(state, "Nxh4")
    assert logits[read_move(state, "Ng5")] < logits[read_move(state, "d3")]
    assert np.isfinite(logits).all()
    assert set(np.flatnonzero(logits)) <= set(legal)
