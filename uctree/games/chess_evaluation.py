"""The value of a chess position: material, where the pieces stand, how far they reach; exchanges.

A playout of `chess(playouts="heuristic")` makes captures that win material until there is none,
and is paid the value of that position. `priors` orders actions by the same knowledge.
"""

from __future__ import annotations

import math

import numpy as np

from uctree.bits import lowest_bit, popcount
from uctree.game import OVER, random_below
from uctree.games.chess_rules import (
    ACTIONS,
    BISHOP,
    KING,
    KINGS,
    KNIGHT,
    KNIGHTS,
    NOT_A,
    NOT_H,
    PAWN,
    PAWNS,
    PLANES,
    QUEEN,
    ROOK,
    allowed_squares,
    bishop_attacks,
    bit_of,
    castles,
    castling_action,
    kind_at,
    king_reached,
    own_king,
    piece_attacks,
    pieces,
    reached,
    rook_attacks,
    step,
)

_0, _1, _7, _8, _9 = (np.uint64(n) for n in (0, 1, 7, 8, 9))

SCALE = 350.0  # the lead in centipawns that is worth 0.71
PRIOR_SCALE = 120.0  # the gain in centipawns that makes a prior e times as large
LARGEST_PRIOR = 4.0  # of its logarithm
CASTLING = 60.0  # centipawns, for priors
LONGEST = 40  # plies of a playout
NONE = -1

# Centipawns; a king is never exchanged for anything.
VALUES = np.array([100, 320, 330, 500, 950, 20_000], np.int64)
WEIGHTS = np.array([0, 1, 1, 2, 4, 0], np.int64)  # of each kind in the phase
FULL = 24  # the phase with all pieces on the board
TEMPO = 10
# Centipawns for a square that a piece reaches, in the middlegame and in the endgame.
MOBILITY = np.array([[0, 4, 4, 2, 1, 0], [0, 3, 4, 4, 3, 0]], np.int64)

# How the places of each kind are valued: per step of its file and of its rank from the edge to the
# middle, and per rank and rank squared from the own side.
_MIDDLEGAME = {
    PAWN: (7, 2, 1, 0.3),
    KNIGHT: (7, 6, 2, 0),
    BISHOP: (4, 4, 0, 0),
    ROOK: (4, 0, 0, 0.4),
    QUEEN: (1, 2, -1, 0),
    KING: (-14, 0, -22, 0),
}
_ENDGAME = {
    PAWN: (-2, 0, 2, 2.4),
    KNIGHT: (6, 6, 0, 0),
    BISHOP: (4, 4, 0, 0),
    ROOK: (0, 0, 2, 0),
    QUEEN: (4, 4, 3, 0),
    KING: (8, 10, 3, 0),
}


def place_values() -> np.ndarray:
    """Centipawns of a piece and its place, [middlegame or endgame, kind, square]."""
    table = np.zeros((2, 6, 64), np.int64)
    rank, file = np.divmod(np.arange(64), 8)
    inwards = np.minimum(np.arange(8), 7 - np.arange(8))
    for phase, weights in enumerate((_MIDDLEGAME, _ENDGAME)):
        for kind, (by_file, by_rank, forward, squared) in weights.items():
            places = by_file * inwards[file] + by_rank * inwards[rank]
            places = places + forward * rank + squared * rank**2
            worth = VALUES[kind] if kind != KING else 0
            table[phase, kind] = worth + np.rint(places - places.mean())
    return table


PLACES = place_values()

# --- the value of a position ---------------------------------------------------------------------


def phase_of(state):
    """How much of the middlegame is left, from `FULL` at the start to 0 without pieces."""
    phase = 0
    for kind in range(KNIGHT, KING):
        phase += WEIGHTS[kind] * popcount(pieces(state, kind))
    return min(phase, FULL)


def lead_of(state):
    """The lead of the player to move in centipawns."""
    own, other = np.uint64(state.own), np.uint64(state.other)
    taken, pawns = own | other, np.uint64(state.pawns)
    early, late = 0, 0
    for side in range(2):
        mine = own if side == 0 else other
        theirs = pawns & ~mine
        if side == 0:
            guarded = ((theirs & NOT_A) >> _9) | ((theirs & NOT_H) >> _7)
        else:
            guarded = ((theirs & NOT_A) << _7) | ((theirs & NOT_H) << _9)
        sign, flip = 1 - 2 * side, 56 * side
        for kind in range(KING + 1):
            rest = pieces(state, kind) & mine
            while rest != _0:
                square = lowest_bit(rest)
                early += sign * PLACES[0, kind, square ^ flip]
                late += sign * PLACES[1, kind, square ^ flip]
                if PAWN < kind < KING:
                    squares = piece_attacks(kind, square, taken) & ~mine & ~guarded
                    reach = sign * popcount(squares)
                    early += MOBILITY[0, kind] * reach
                    late += MOBILITY[1, kind] * reach
                rest &= rest - _1
    phase = phase_of(state)
    return TEMPO + (early * phase + late * (FULL - phase)) / FULL


def heuristic(state, values):
    player = state.to_play
    lead = lead_of(state)
    values[player] = lead / math.sqrt(lead * lead + SCALE * SCALE)
    values[1 - player] = -values[player]


# --- exchanges -----------------------------------------------------------------------------------


def all_attackers(state, square, taken):
    """The pieces of both players that attack a square if these squares are taken."""
    bit, pawns = bit_of(square), np.uint64(state.pawns)
    below = ((bit & NOT_A) >> _9) | ((bit & NOT_H) >> _7)
    found = below & pawns & np.uint64(state.own)
    found |= PAWNS[square] & pawns & np.uint64(state.other)
    found |= KNIGHTS[square] & np.uint64(state.knights)
    found |= KINGS[square] & np.uint64(state.kings)
    return found | sliding_attackers(state, square, taken)


def sliding_attackers(state, square, taken):
    queens = np.uint64(state.queens)
    found = bishop_attacks(square, taken) & (np.uint64(state.bishops) | queens)
    return found | (rook_attacks(square, taken) & (np.uint64(state.rooks) | queens))


def cheapest(state, among):
    """The kind of the least valuable of these pieces."""
    for kind in range(KING):
        if pieces(state, kind) & among != _0:
            return kind
    return KING


def wins_exchange(state, kind, square, goal, least):
    """Whether an action gains at least so much, if both sides then capture on its square.

    Each side captures with its cheapest piece and stops where that is better (static exchange
    evaluation). Pins are ignored.
    """
    aim = bit_of(goal)
    gain = captured_value(state, goal) - least
    if gain < 0:
        return False
    risk = VALUES[kind] - gain  # what the other side needs to win back
    if risk <= 0:
        return True
    taken = ((np.uint64(state.own) | np.uint64(state.other)) & ~bit_of(square)) | aim
    attacking = all_attackers(state, goal, taken)
    is_own, holds = False, True
    while True:
        attacking &= taken
        mine = attacking & (np.uint64(state.own) if is_own else np.uint64(state.other))
        if mine == _0:
            return holds
        holds = not holds
        kind = cheapest(state, mine)
        if kind == KING:  # it may not capture what is protected
            return not holds if attacking & ~mine != _0 else holds
        risk = VALUES[kind] - risk
        if risk < np.int64(holds):
            return holds
        first = mine & pieces(state, kind)
        taken ^= first & (~first + _1)
        attacking |= sliding_attackers(state, goal, taken)
        is_own = not is_own


# --- playouts ------------------------------------------------------------------------------------


def playout(state, rng, reward):
    for _ in range(LONGEST):
        if state.to_play == OVER:
            return
        action = forcing_action(state, rng)
        if action == NONE:
            break
        step(state, action, reward)
    if state.to_play != OVER:
        player = state.to_play
        lead = lead_of(state)
        value = lead / math.sqrt(lead * lead + SCALE * SCALE)
        reward[player] += value
        reward[1 - player] -= value
        state.to_play = OVER


def forcing_action(state, rng):
    """The best capture or promotion that wins material, in check any action; NONE if quiet."""
    allowed = allowed_squares(state)
    own, other = np.uint64(state.own), np.uint64(state.other)
    best, highest = NONE, 0
    for kind in range(KING + 1):
        rest = pieces(state, kind) & own
        while rest != _0:
            square = lowest_bit(rest)
            rest &= rest - _1
            if kind == KING and KINGS[square] & other == _0:
                continue
            last = bit_of(square) << _8 if kind == PAWN and square >= 48 else _0
            goals = goals_of(state, kind, square, allowed) & (other | last)
            while goals != _0:
                goal = lowest_bit(goals)
                goals &= goals - _1
                becomes_queen = kind == PAWN and goal >= 56
                won = captured_value(state, goal) + (VALUES[QUEEN] if becomes_queen else 0)
                urgency = 8 * won - kind  # the largest gain, with the cheapest piece
                least = 0 if becomes_queen else 1
                if urgency > highest and wins_exchange(state, kind, square, goal, least):
                    best, highest = ACTIONS[square, goal], urgency
    if best == NONE and state.checkers != 0:
        return any_action(state, allowed, rng)
    return np.int64(best)


def goals_of(state, kind, square, allowed):
    """The squares to which a piece may go, without castling."""
    return king_reached(state) if kind == KING else reached(state, kind, square, allowed)


def captured_value(state, goal):
    """The value of the piece of the other player on a square; 0 if there is none."""
    aim = bit_of(goal)
    return VALUES[kind_at(state, aim)] if np.uint64(state.other) & aim != _0 else np.int64(0)


def any_action(state, allowed, rng):
    """A random legal action of a player in check, no promotion to a lesser piece."""
    chosen, count = NONE, 0
    for kind in range(KING + 1):
        rest = pieces(state, kind) & np.uint64(state.own)
        while rest != _0:
            square = lowest_bit(rest)
            rest &= rest - _1
            goals = goals_of(state, kind, square, allowed)
            num_goals = popcount(goals)
            count += num_goals
            if num_goals > 0 and random_below(rng, count) < num_goals:
                for _ in range(random_below(rng, num_goals)):
                    goals &= goals - _1
                chosen = ACTIONS[square, lowest_bit(goals)]
    return np.int64(chosen)


# --- priors --------------------------------------------------------------------------------------


def priors(state, logits):
    phase, allowed = phase_of(state), allowed_squares(state)
    own = np.uint64(state.own)
    for kind in range(KING + 1):
        rest = pieces(state, kind) & own
        while rest != _0:
            square = lowest_bit(rest)
            rest &= rest - _1
            goals = goals_of(state, kind, square, allowed)
            before = place_value(kind, square, phase)
            while goals != _0:
                goal = lowest_bit(goals)
                goals &= goals - _1
                gain = place_value(kind, goal, phase) - before
                if wins_exchange(state, kind, square, goal, 0):
                    gain += captured_value(state, goal)
                else:
                    gain -= VALUES[kind] / 2
                if kind == PAWN and goal >= 56:
                    gain = VALUES[QUEEN] + captured_value(state, goal)
                    for i in range(3):
                        lesser = PLANES * square + 64 + 3 * (goal - square - 7) + i
                        logits[lesser] = -LARGEST_PRIOR
                logits[ACTIONS[square, goal]] = log_prior(gain)
    king, rooks = own_king(state), castles(state)
    while rooks != _0:
        logits[castling_action(king, lowest_bit(rooks))] = log_prior(CASTLING)
        rooks &= rooks - _1


def place_value(kind, square, phase):
    """Centipawns of an own piece on a square."""
    early, late = PLACES[0, kind, square], PLACES[1, kind, square]
    return (early * phase + late * (FULL - phase)) / FULL


def log_prior(gain):
    return min(LARGEST_PRIOR, max(-LARGEST_PRIOR, gain / PRIOR_SCALE))
