"""python-chess beside ours: its moves for our actions, its counts."""

from __future__ import annotations

from typing import Any

import pytest

STEPS = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
JUMPS = [(2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1)]


def python_chess() -> Any:
    return pytest.importorskip("chess", reason="python-chess is not installed")


def move_of(board: Any, action: int) -> Any:
    """The move of python-chess for an action, read off the planes of AlphaZero."""
    chess = python_chess()
    square, plane = divmod(action, 73)
    becomes = None
    if plane < 56:
        up, right = (part * (plane % 7 + 1) for part in STEPS[plane // 7])
    elif plane < 64:
        up, right = JUMPS[plane - 56]
    else:
        up, right = 1, (plane - 64) // 3 - 1
        becomes = (chess.KNIGHT, chess.BISHOP, chess.ROOK)[(plane - 64) % 3]
    goal = square + 8 * up + right
    if board.turn == chess.BLACK:
        square, goal = square ^ 56, goal ^ 56
    if becomes is None and board.piece_type_at(square) == chess.PAWN and goal // 8 in (0, 7):
        becomes = chess.QUEEN
    is_king = board.piece_type_at(square) == chess.KING
    if board.chess960 and is_king and abs(right) > 1 and board.color_at(goal) != board.turn:
        rooks = [rook for rook in chess.SquareSet(board.castling_rights) if rook // 8 == goal // 8]
        goal = next(rook for rook in rooks if (rook > square) == (right > 0))
    return chess.Move(square, goal, becomes)


def count(board: Any, depth: int) -> int:
    """The number of sequences of legal moves."""
    if depth == 1:
        return board.legal_moves.count()
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += count(board, depth - 1)
        board.pop()
    return total


def is_drawn(board: Any) -> bool:
    """Whether a draw ends the episode by our rules, if there is a legal move."""
    return board.is_insufficient_material() or board.halfmove_clock >= 100 or board.is_repetition(3)
