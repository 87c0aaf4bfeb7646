"""Chess, also from the start positions of Chess960 and from any other position."""

from __future__ import annotations

import numpy as np

from uctree.bits import lowest_bit
from uctree.game import OVER, Game
from uctree.games.chess_evaluation import heuristic, playout, priors
from uctree.games.chess_rules import (
    KEY,
    KING,
    NUM_ACTIONS,
    NUM_BOARDS,
    Position,
    bit_of,
    kind_at,
    legal,
    mirrored,
    own_king,
    set_up,
    step,
)
from uctree.games.chess_text import from_fen, read_move, show, start_960, to_san

__all__ = ["chess"]

USUAL = 518  # of the start positions of Chess960
MOST_PLIES = 11_797  # of an episode from the usual start, by the draw of fifty moves
PLANES_A_BOARD = 14
WORDS = (
    "own", "other", "pawns", "knights", "bishops", "rooks", "queens", "kings", "castling",
    "passant",
)  # fmt: skip

_0, _1 = np.uint64(0), np.uint64(1)


def chess(start: int = USUAL, fen: str = "", playouts: str = "uniform") -> Game:
    """Chess; the 4,672 actions are those of AlphaZero, seen by the player to move.

    Mate pays 1 to the winner and -1 to the loser. Stalemate, a position that occurs the third time,
    fifty moves without capture or pawn, and too few pieces to mate are draws, which pay nothing.

    Args:
        start: the number of a start position of Chess960, which is 518 for the usual one.
        fen: another position to start from.
        playouts: "uniform", any legal action is as likely as any other; "heuristic", captures that
            win material are made until there is none, and the position is valued.
    """
    if playouts not in ("uniform", "heuristic"):
        raise ValueError(f'playouts must be "uniform" or "heuristic"; got {playouts!r}')
    is_heuristic = playouts == "heuristic"
    first = from_fen(fen or start_960(start))
    if first.to_play < 0:
        raise ValueError(f"the episode is over in the position {fen!r}; start from another one")
    words = np.array([first[field] for field in WORDS], np.uint64)
    clock, ply = int(first.clock), int(first.ply)

    def begin(state):
        set_up(state, words, clock, ply)

    position = fen or ("" if start == USUAL else str(start))
    variant = ", ".join(word for word in (position, "heuristic" if is_heuristic else "") if word)
    return Game(
        Position,
        legal,
        step,
        num_players=2,
        num_actions=NUM_ACTIONS,
        name=f"chess({variant})" if variant else "chess",
        start=begin,
        playout=playout if is_heuristic else None,
        heuristic=heuristic,
        priors=priors,
        observe=observe,
        observation_shape=(PLANES_A_BOARD * NUM_BOARDS + 7, 8, 8),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=ply + MOST_PLIES,
        symmetric_seats=True,
        key_fields=KEY,
        geometry=("grid", 8, 8),
        show=show,
        show_action=to_san,
        read_action=read_move,
    )


def observe(state, player, planes):
    colour = colour_of(state, player)
    for earlier in range(NUM_BOARDS):
        observe_board(state, colour, planes, earlier)
    first = PLANES_A_BOARD * NUM_BOARDS
    fill(planes, first, float(colour))
    fill(planes, first + 1, (state.ply // 2) / 100.0)
    black = np.int64(state.ply) & 1
    castling, own = np.uint64(state.castling), np.uint64(state.own)
    king = own_king(state)
    other_king = lowest_bit(mirrored(np.uint64(state.kings) & ~own))
    for side in range(2):  # towards the h file first
        mine = has_right(castling & own, king, side)
        theirs = has_right(mirrored(castling & ~own), other_king, side)
        fill(planes, first + 2 + side, mine if black == colour else theirs)
        fill(planes, first + 4 + side, theirs if black == colour else mine)
    fill(planes, first + 6, state.clock / 100.0)


def colour_of(state, player):
    """0 if a player is white, 1 if black: player 1, unless that player has moved first."""
    is_swapped = state.to_play != OVER and state.to_play != state.ply & 1
    return 1 - player if is_swapped else player


def observe_board(state, colour, planes, earlier):
    """Show the board of some plies ago: own pieces by kind, the other's, and repetitions."""
    ply = np.int64(state.ply) - earlier
    if ply < 0:
        return
    slot, first = ply & (NUM_BOARDS - 1), PLANES_A_BOARD * earlier
    is_mirrored = ply & 1 != colour
    repeats = np.int64(state.repeats if earlier == 0 else state.repeated[slot])
    pieces = 0
    for square in range(64):
        bit = bit_of(square)
        if earlier == 0:
            is_own = np.uint64(state.own) & bit != _0
            is_taken = is_own or np.uint64(state.other) & bit != _0
            kind = kind_at(state, bit) if is_taken else np.int64(-1)
        else:
            is_own = np.uint64(state.boards[slot, 0]) & bit != _0
            kind = np.int64(-1)
            for i in range(3):
                kind += np.int64((np.uint64(state.boards[slot, 1 + i]) & bit) != _0) << i
        if kind >= 0:
            plane = first + kind + (0 if is_own != is_mirrored else KING + 1)
            rank = square // 8 if is_mirrored else 7 - square // 8
            planes[plane, rank, square % 8] = 1.0
            pieces += 1
    if pieces > 0:
        fill(planes, first + 12, 1.0 if repeats >= 1 else 0.0)
        fill(planes, first + 13, 1.0 if repeats >= 2 else 0.0)


def fill(planes, plane, value):
    for row in range(8):
        for col in range(8):
            planes[plane, row, col] = value


def has_right(rooks, king, side):
    """1 if there is a rook to the right of the king, or for `side` 1 to the left."""
    below = bit_of(king) - _1
    return 1.0 if (rooks & below if side == 1 else rooks & ~below) != _0 else 0.0
