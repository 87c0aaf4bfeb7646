"""The rules of chess on bitboards: attacked squares, legal actions, and what actions do.

`chess.py` makes the game of them, `chess_text.py` reads and writes positions and moves, and
`chess_evaluation.py` values positions. A square is `8 * rank + file`, seen by the player to move:
rank 0 is the one on that player's side of the board. So all pawns go up, and the board is mirrored
after every action. A set of squares is a uint64. Compiled code turns a uint64 with a signed number
into a float, so every number that is combined with one is a uint64 too.
"""

from __future__ import annotations

import numpy as np

from uctree.bits import lowest_bit
from uctree.game import OVER

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = (np.int64(kind) for kind in range(6))
MOST_QUIET = 100  # plies without capture or pawn: the draw of fifty moves
NUM_BOARDS = 8  # the board and those before it that a network sees

_0, _1, _2, _6, _7, _8, _9, _16, _32 = (np.uint64(n) for n in (0, 1, 2, 6, 7, 8, 9, 16, 32))
_63 = np.uint64(63)
_BYTES, _PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
NOT_A, NOT_H = np.uint64(0xFEFEFEFEFEFEFEFE), np.uint64(0x7F7F7F7F7F7F7F7F)  # files
FIRST_RANK = np.uint64(0x00000000000000FF)
THIRD_RANK = np.uint64(0x0000000000FF0000)
DARK = np.uint64(0xAA55AA55AA55AA55)

Position = np.dtype(
    [
        ("own", np.uint64),  # the pieces of the player to move
        ("other", np.uint64),  # those of the other player
        ("pawns", np.uint64),  # of both
        ("knights", np.uint64),
        ("bishops", np.uint64),
        ("rooks", np.uint64),
        ("queens", np.uint64),
        ("kings", np.uint64),
        ("castling", np.uint64),  # the rooks that may still castle
        ("passant", np.uint64),  # where a pawn can be captured in passing
        ("to_play", np.int8),
        ("clock", np.int16),  # plies since the last capture or action of a pawn
        ("ply", np.int16),  # even if white is to move
        ("past", np.uint64),  # a hash of the positions since then, as often as they occurred
        ("repeats", np.int8),  # how often this position occurred before
        # The rest is derived, for speed, or for networks.
        ("checkers", np.uint64),  # the pieces that give check
        ("pinned", np.uint64),  # own pieces in front of the king
        ("hash", np.uint64),  # of this position
        ("history", np.uint64, MOST_QUIET + 1),  # hashes of those since `clock` was 0
        ("boards", np.uint64, (NUM_BOARDS, 4)),  # earlier boards by ply; see `remember`
        ("repeated", np.int8, NUM_BOARDS),
    ]
)
KEY = (
    "own", "pawns", "knights", "bishops", "rooks", "queens", "kings", "castling", "passant",
    "to_play", "clock", "ply", "past", "repeats",
)  # fmt: skip

# --- tables --------------------------------------------------------------------------------------


def squares_reached(steps: tuple[tuple[int, int], ...], longest: int) -> np.ndarray:
    """The squares that these steps reach from each square of an empty board, as bits."""
    table = np.zeros(64, np.uint64)
    for square in range(64):
        for up, right in steps:
            for distance in range(1, longest + 1):
                rank, file = square // 8 + up * distance, square % 8 + right * distance
                if 0 <= rank < 8 and 0 <= file < 8:
                    table[square] |= np.uint64(1 << (8 * rank + file))
    return table


COMPASS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
JUMPS = ((2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1))
KNIGHTS = squares_reached(JUMPS, 1)
KINGS = squares_reached(COMPASS, 1)
PAWNS = squares_reached(((1, -1), (1, 1)), 1)  # captures
FILES = squares_reached(((1, 0), (-1, 0)), 7)
RANKS = squares_reached(((0, 1), (0, -1)), 7)
RISING = squares_reached(((1, 1), (-1, -1)), 7)
FALLING = squares_reached(((1, -1), (-1, 1)), 7)
STRAIGHT, SLANTED = FILES | RANKS, RISING | FALLING


def rank_attacks() -> np.ndarray:
    """What a rook attacks on its rank, by its file and the six inner squares that are taken."""
    table = np.zeros((8, 64), np.uint64)
    for file in range(8):
        for inner in range(64):
            for right in (1, -1):
                place = file + right
                while 0 <= place < 8:
                    table[file, inner] |= np.uint64(1 << place)
                    if inner << 1 >> place & 1:
                        break
                    place += right
    return table


RANK_ATTACKS = rank_attacks()

# Actions are AlphaZero's: `73 * square + plane`. Planes 0 to 55 are the eight directions from north
# clockwise, up to seven squares each, 56 to 63 the jumps of a knight, 64 to 72 promotions to
# knight, bishop or rook, to the left, straight on and to the right. On any other plane a pawn
# becomes a queen. Castling is a step of the king by two squares or more; where the king would go
# no more than one square, as in some positions of Chess960, it goes to the square of the rook.
PLANES = 73
NUM_ACTIONS = 64 * PLANES
_STEPS = [(d * up, d * right) for up, right in COMPASS for d in range(1, 8)] + list(JUMPS)
OFFSETS = np.array([8 * up + right for up, right in _STEPS] + [7, 7, 7, 8, 8, 8, 9, 9, 9], np.int64)


def action_table() -> np.ndarray:
    """The action from square to square that is no promotion to a lesser piece; 0 for none."""
    table = np.zeros((64, 64), np.int32)
    for square in range(64):
        for plane, (up, right) in enumerate(_STEPS):
            rank, file = square // 8 + up, square % 8 + right
            if 0 <= rank < 8 and 0 <= file < 8:
                table[square, 8 * rank + file] = PLANES * square + plane
    return table


ACTIONS = action_table()


def random_words(count: int) -> np.ndarray:
    """Words whose bits are as good as random: splitmix64, finalized."""
    words = np.arange(1, count + 1, dtype=np.uint64) * _MIX
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# A position's hash is the exclusive or of a word for each of its parts (Zobrist 1970); squares are
# numbered from white's side here.
_WORDS = random_words(12 * 64 + 64 + 8)
PIECE_WORDS = _WORDS[:768].reshape(6, 2, 64)  # [kind, player, square]
CASTLING_WORDS, PASSANT_WORDS = _WORDS[768:832], _WORDS[832:]

# --- attacks -------------------------------------------------------------------------------------


def bit_of(square):
    """The set of one square."""
    return _1 << np.uint64(square)


def mirrored(squares):
    """A set of squares as the other player sees it; LLVM makes one instruction of it."""
    squares = ((squares >> _8) & _BYTES) | ((squares & _BYTES) << _8)
    squares = ((squares >> _16) & _PAIRS) | ((squares & _PAIRS) << _16)
    return (squares >> _32) | (squares << _32)


def along(square, line, taken):
    """The squares of a file or diagonal that are attacked from a square of it.

    Subtracting the slider from the pieces above it borrows up to the first of them; the mirrored
    board has those below (hyperbola quintessence).
    """
    above = taken & line
    below = mirrored(above)
    bit = bit_of(square)
    above -= bit
    below -= mirrored(bit)
    return (above ^ mirrored(below)) & line


def rook_attacks(square, taken):
    first = np.uint64(square & 56)
    inner = (taken >> (first + _1)) & _63
    return along(square, FILES[square], taken) | (RANK_ATTACKS[square & 7, inner] << first)


def bishop_attacks(square, taken):
    return along(square, RISING[square], taken) | along(square, FALLING[square], taken)


def piece_attacks(kind, square, taken):
    """The squares that a piece attacks, but pawns and kings."""
    if kind == KNIGHT:
        return KNIGHTS[square]
    if kind == BISHOP:
        return bishop_attacks(square, taken)
    if kind == ROOK:
        return rook_attacks(square, taken)
    return bishop_attacks(square, taken) | rook_attacks(square, taken)


def pieces(state, kind):
    """The pieces of a kind, of both players."""
    if kind == PAWN:
        return np.uint64(state.pawns)
    if kind == KNIGHT:
        return np.uint64(state.knights)
    if kind == BISHOP:
        return np.uint64(state.bishops)
    if kind == ROOK:
        return np.uint64(state.rooks)
    return np.uint64(state.queens) if kind == QUEEN else np.uint64(state.kings)


def kind_at(state, bit):
    """The kind of the piece on a square that is taken."""
    kind = np.int64((np.uint64(state.knights) & bit) != _0)
    kind += BISHOP * np.int64((np.uint64(state.bishops) & bit) != _0)
    kind += ROOK * np.int64((np.uint64(state.rooks) & bit) != _0)
    kind += QUEEN * np.int64((np.uint64(state.queens) & bit) != _0)
    return kind + KING * np.int64((np.uint64(state.kings) & bit) != _0)


def attackers(state, square, taken):
    """The pieces of the other player that attack a square if these squares are taken."""
    queens = np.uint64(state.queens)
    found = PAWNS[square] & np.uint64(state.pawns)
    found |= KNIGHTS[square] & np.uint64(state.knights)
    found |= KINGS[square] & np.uint64(state.kings)
    straight = np.uint64(state.rooks) | queens
    if STRAIGHT[square] & straight != _0:
        found |= rook_attacks(square, taken) & straight
    slanted = np.uint64(state.bishops) | queens
    if SLANTED[square] & slanted != _0:
        found |= bishop_attacks(square, taken) & slanted
    return found & np.uint64(state.other)


def own_king(state):
    """The square of the king of the player to move."""
    return lowest_bit(np.uint64(state.kings) & np.uint64(state.own))


def look_at_king(state):
    """Write which pieces give check, and which own pieces must stay between them and the king."""
    own, other = np.uint64(state.own), np.uint64(state.other)
    taken = own | other
    king = own_king(state)
    queens = np.uint64(state.queens)
    state.checkers = attackers(state, king, taken)
    pinned = _0
    straight = (np.uint64(state.rooks) | queens) & other
    if STRAIGHT[king] & straight != _0:
        near = rook_attacks(king, taken)
        behind = rook_attacks(king, taken ^ (near & own)) & straight & ~near
        while behind != _0:
            pinned |= rook_attacks(lowest_bit(behind), taken) & near & own
            behind &= behind - _1
    slanted = (np.uint64(state.bishops) | queens) & other
    if SLANTED[king] & slanted != _0:
        near = bishop_attacks(king, taken)
        behind = bishop_attacks(king, taken ^ (near & own)) & slanted & ~near
        while behind != _0:
            pinned |= bishop_attacks(lowest_bit(behind), taken) & near & own
            behind &= behind - _1
    state.pinned = pinned


def line_through(king, square):
    """The squares of the line from a king through a pinned piece."""
    bit = bit_of(square)
    if FILES[king] & bit != _0:
        return FILES[king]
    if RANKS[king] & bit != _0:
        return RANKS[king]
    return RISING[king] if RISING[king] & bit != _0 else FALLING[king]


# --- legal actions -------------------------------------------------------------------------------


def allowed_squares(state):
    """Where a piece but the king may go: if it is in check, only where that ends the check."""
    checkers = np.uint64(state.checkers)
    if checkers == _0:
        return ~np.uint64(state.own)
    if checkers & (checkers - _1) != _0:
        return _0
    king, checker = own_king(state), lowest_bit(checkers)
    # From both ends of a line, each attack stops at the other end.
    if STRAIGHT[king] & checkers != _0:
        return checkers | (rook_attacks(king, checkers) & rook_attacks(checker, bit_of(king)))
    if SLANTED[king] & checkers != _0:
        return checkers | (bishop_attacks(king, checkers) & bishop_attacks(checker, bit_of(king)))
    return checkers


def reached(state, kind, square, allowed):
    """The squares to which a piece may go legally, but the king; `allowed` as `allowed_squares`."""
    taken = np.uint64(state.own) | np.uint64(state.other)
    if kind == PAWN:
        pushed = (bit_of(square) << _8) & ~taken
        found = pushed | (((pushed & THIRD_RANK) << _8) & ~taken)
        found |= PAWNS[square] & np.uint64(state.other)
    else:
        found = piece_attacks(kind, square, taken)
    found &= allowed
    if np.uint64(state.pinned) & bit_of(square) != _0:
        found &= line_through(own_king(state), square)
    if kind == PAWN and PAWNS[square] & np.uint64(state.passant) != _0:
        if may_pass(state, square):
            found |= np.uint64(state.passant)
    return found


def may_pass(state, square):
    """Whether capturing in passing leaves the own king safe."""
    goal = np.uint64(state.passant)
    gone = goal >> _8
    taken = np.uint64(state.own) | np.uint64(state.other)
    after = (taken ^ bit_of(square) ^ gone) | goal
    return attackers(state, own_king(state), after) & ~gone == _0


def king_reached(state):
    """The squares to which the king may go, without castling."""
    king = own_king(state)
    taken = (np.uint64(state.own) | np.uint64(state.other)) ^ bit_of(king)
    found = _0
    rest = KINGS[king] & ~np.uint64(state.own)
    while rest != _0:
        square = lowest_bit(rest)
        if attackers(state, square, taken) == _0:
            found |= bit_of(square)
        rest &= rest - _1
    return found


def span(one, other):
    """The squares of the own rank from one file to another, both included."""
    low, high = np.uint64(min(one, other)), np.uint64(max(one, other))
    return ((_2 << high) - _1) ^ ((_1 << low) - _1)


def castles(state):
    """The squares of the rooks with which the player to move may castle now."""
    rights = np.uint64(state.castling) & np.uint64(state.own) & ~np.uint64(state.pinned)
    found = _0
    if np.uint64(state.checkers) != _0:
        return found
    king = own_king(state)
    taken = np.uint64(state.own) | np.uint64(state.other)
    while rights != _0:
        rook = lowest_bit(rights)
        goal, place = (6, 5) if rook > king else (2, 3)  # of king and rook
        path = (span(king, goal) | span(rook, place)) & ~bit_of(king) & ~bit_of(rook)
        if path & taken == _0:
            passed = span(king, goal) & ~bit_of(king)
            is_safe = True
            while passed != _0:
                is_safe &= attackers(state, lowest_bit(passed), taken ^ bit_of(king)) == _0
                passed &= passed - _1
            if is_safe:
                found |= bit_of(rook)
        rights &= rights - _1
    return found


def castling_action(king, rook):
    """The action of castling with a rook."""
    goal = 6 if rook > king else 2
    return ACTIONS[king, goal if abs(goal - king) > 1 else rook]


def legal(state, actions):
    king = own_king(state)
    count = add_actions(actions, 0, king, king_reached(state), False)
    allowed = allowed_squares(state)
    if allowed == _0:
        return count  # two pieces give check
    rooks = castles(state)
    while rooks != _0:
        actions[count] = castling_action(king, lowest_bit(rooks))
        count += 1
        rooks &= rooks - _1
    own = np.uint64(state.own)
    for kind in range(KING):
        rest = pieces(state, kind) & own
        while rest != _0:
            square = lowest_bit(rest)
            count = add_actions(
                actions, count, square, reached(state, kind, square, allowed), kind == PAWN
            )
            rest &= rest - _1
    return count


def add_actions(actions, count, square, goals, is_pawn):
    """The number of listed actions after those from a square to these goals were added."""
    while goals != _0:
        goal = lowest_bit(goals)
        actions[count] = ACTIONS[square, goal]
        count += 1
        if is_pawn and goal >= 56:
            for i in range(3):
                actions[count] = PLANES * square + 64 + 3 * (goal - square - 7) + i
                count += 1
        goals &= goals - _1
    return count


def can_act(state):
    """Whether there is a legal action."""
    allowed = allowed_squares(state)
    if allowed != _0:
        own = np.uint64(state.own)
        for kind in range(KING):
            rest = pieces(state, kind) & own
            while rest != _0:
                if reached(state, kind, lowest_bit(rest), allowed) != _0:
                    return True
                rest &= rest - _1
    return king_reached(state) != _0  # castling is legal only if a step of the king is


# --- actions -------------------------------------------------------------------------------------


def step(state, action, reward):
    player = state.to_play
    make(state, action)
    if not can_act(state):
        if state.checkers != 0:
            reward[player] = 1.0
            reward[1 - player] = -1.0
        state.to_play = OVER
    elif is_drawn(state):
        state.to_play = OVER
    else:
        state.to_play = 1 - player


def is_drawn(state):
    """Whether fifty moves, a third repetition or too few pieces end the episode."""
    return state.clock >= MOST_QUIET or state.repeats >= 2 or is_dead(state)


def is_dead(state):
    """Whether no sequence of actions mates: a minor piece at most, or bishops of one colour."""
    if np.uint64(state.pawns) | np.uint64(state.rooks) | np.uint64(state.queens) != _0:
        return False
    knights, bishops = np.uint64(state.knights), np.uint64(state.bishops)
    minor = knights | bishops
    if minor & (minor - _1) == _0:
        return True
    return knights == _0 and (bishops & DARK == _0 or bishops & ~DARK == _0)


def make(state, action):
    """Move the pieces and turn the board; everything but the end of the episode."""
    square = action // PLANES
    goal = square + OFFSETS[action % PLANES]
    bit, aim = bit_of(square), bit_of(goal)
    kind = kind_at(state, bit)
    remember(state)
    lift_passant(state)
    state.clock += 1
    is_castling = kind == KING and (
        aim & np.uint64(state.own) != _0 or 2 <= abs(goal - square) <= 6
    )
    if is_castling:
        castle(state, square, goal)
    else:
        gone = aim >> _8 if kind == PAWN and aim == np.uint64(state.passant) else aim
        capture(state, gone & np.uint64(state.other))
        move(state, kind, square, goal)
        if kind == PAWN:
            state.clock = 0
            if goal >= 56:
                promote(state, goal, action % PLANES)
    lose_castling(state, bit | aim | (FIRST_RANK if kind == KING else _0))
    state.passant = _0
    turn(state)
    if kind == PAWN and goal - square == 16:
        offer_passant(state, 40 + (square & 7))
    look_at_king(state)
    note_position(state)


def remember(state):
    """Keep the board for networks: own pieces, and three words that number the kind of each."""
    slot = state.ply & (NUM_BOARDS - 1)
    bishops, queens = np.uint64(state.bishops), np.uint64(state.queens)
    kings, rooks = np.uint64(state.kings), np.uint64(state.rooks)
    state.boards[slot, 0] = state.own
    state.boards[slot, 1] = np.uint64(state.pawns) | bishops | queens
    state.boards[slot, 2] = np.uint64(state.knights) | bishops | kings
    state.boards[slot, 3] = rooks | queens | kings
    state.repeated[slot] = state.repeats


def piece_word(state, kind, is_own, square):
    """The part of the hash that a piece is; squares are those of the player to move."""
    black = np.int64(state.ply) & 1
    return PIECE_WORDS[kind, black if is_own else 1 - black, square ^ (56 * black)]


def lift_passant(state):
    """Take the square of a capture in passing out of the hash."""
    passant = np.uint64(state.passant)
    if passant != _0:
        state.hash = np.uint64(state.hash) ^ PASSANT_WORDS[lowest_bit(passant) & 7]


def capture(state, gone):
    """Take a piece of the other player off the board; `gone` is the set of its square, or empty."""
    if gone == _0:
        return
    word = piece_word(state, kind_at(state, gone), False, lowest_bit(gone))
    state.hash = np.uint64(state.hash) ^ word
    state.clock = 0
    rest = ~gone
    state.other = np.uint64(state.other) & rest
    state.pawns = np.uint64(state.pawns) & rest
    state.knights = np.uint64(state.knights) & rest
    state.bishops = np.uint64(state.bishops) & rest
    state.rooks = np.uint64(state.rooks) & rest
    state.queens = np.uint64(state.queens) & rest


def move(state, kind, square, goal):
    """Move an own piece to an empty square."""
    bit = bit_of(square)
    both = bit | bit_of(goal)
    words = piece_word(state, kind, True, square) ^ piece_word(state, kind, True, goal)
    state.hash = np.uint64(state.hash) ^ words
    state.own = np.uint64(state.own) ^ both
    # Of each kind without a branch on the kind, which would be mispredicted.
    state.pawns = moved(np.uint64(state.pawns), bit, both)
    state.knights = moved(np.uint64(state.knights), bit, both)
    state.bishops = moved(np.uint64(state.bishops), bit, both)
    state.rooks = moved(np.uint64(state.rooks), bit, both)
    state.queens = moved(np.uint64(state.queens), bit, both)
    state.kings = moved(np.uint64(state.kings), bit, both)


def moved(squares, bit, both):
    return squares ^ both if squares & bit != _0 else squares


def promote(state, goal, plane):
    """Replace a pawn on the last rank."""
    bit = bit_of(goal)
    kind = QUEEN if plane < 64 else KNIGHT + (plane - 64) % 3
    words = piece_word(state, PAWN, True, goal) ^ piece_word(state, kind, True, goal)
    state.hash = np.uint64(state.hash) ^ words
    state.pawns = np.uint64(state.pawns) ^ bit
    if kind == KNIGHT:
        state.knights = np.uint64(state.knights) | bit
    elif kind == BISHOP:
        state.bishops = np.uint64(state.bishops) | bit
    elif kind == ROOK:
        state.rooks = np.uint64(state.rooks) | bit
    else:
        state.queens = np.uint64(state.queens) | bit


def castle(state, square, goal):
    """Castle towards a goal, which is left or right of the king."""
    bit = bit_of(square)
    rights = np.uint64(state.castling) & np.uint64(state.own)
    rook = lowest_bit(rights & ~(bit - _1)) if goal > square else lowest_bit(rights & (bit - _1))
    to_king, to_rook = (6, 5) if goal > square else (2, 3)
    gone, come = bit | bit_of(rook), bit_of(to_king) | bit_of(to_rook)
    words = piece_word(state, KING, True, square) ^ piece_word(state, KING, True, to_king)
    words ^= piece_word(state, ROOK, True, rook) ^ piece_word(state, ROOK, True, to_rook)
    state.hash = np.uint64(state.hash) ^ words
    state.own = (np.uint64(state.own) & ~gone) | come
    state.kings = (np.uint64(state.kings) & ~bit) | bit_of(to_king)
    state.rooks = (np.uint64(state.rooks) & ~bit_of(rook)) | bit_of(to_rook)


def lose_castling(state, touched):
    """End the rights of rooks on these squares."""
    castling = np.uint64(state.castling)
    lost = castling & touched
    if lost == _0:
        return
    state.castling = castling ^ lost
    while lost != _0:
        square = lowest_bit(lost) ^ (56 * (np.int64(state.ply) & 1))
        state.hash = np.uint64(state.hash) ^ CASTLING_WORDS[square]
        lost &= lost - _1


def turn(state):
    """Let the other player be the one to move."""
    own = np.uint64(state.own)
    state.own = mirrored(np.uint64(state.other))
    state.other = mirrored(own)
    state.pawns = mirrored(np.uint64(state.pawns))
    state.knights = mirrored(np.uint64(state.knights))
    state.bishops = mirrored(np.uint64(state.bishops))
    state.rooks = mirrored(np.uint64(state.rooks))
    state.queens = mirrored(np.uint64(state.queens))
    state.kings = mirrored(np.uint64(state.kings))
    state.castling = mirrored(np.uint64(state.castling))
    state.ply += 1


def offer_passant(state, square):
    """Let a pawn be captured in passing on a square of the sixth rank, if that is legal.

    So positions are equal if the same actions are legal, which is what counts for repetitions.
    """
    bit = bit_of(square)
    near = (((bit & NOT_A) >> _9) | ((bit & NOT_H) >> _7)) & np.uint64(state.pawns)
    near &= np.uint64(state.own)
    state.passant = bit
    while near != _0:
        if may_pass(state, lowest_bit(near)):
            state.hash = np.uint64(state.hash) ^ PASSANT_WORDS[square & 7]
            return
        near &= near - _1
    state.passant = _0


def note_position(state):
    """Count how often the position has occurred since the last capture or action of a pawn."""
    word = np.uint64(state.hash)
    mixed = word * _MIX
    mixed ^= mixed >> _32
    clock = np.int64(state.clock)
    state.past = mixed if clock == 0 else np.uint64(state.past) + mixed
    repeats = 0
    earlier = clock - 4
    while earlier >= 0:
        repeats += np.uint64(state.history[earlier]) == word
        earlier -= 2
    state.repeats = repeats
    if clock <= MOST_QUIET:
        state.history[clock] = word


def set_up(state, words, clock, ply):
    """Write a position into a record of zeros.

    Args:
        words: the fields `own` to `passant`, as the player to move sees them.
    """
    state.own, state.other, state.pawns = words[0], words[1], words[2]
    state.knights, state.bishops, state.rooks = words[3], words[4], words[5]
    state.queens, state.kings, state.castling = words[6], words[7], words[8]
    state.clock, state.ply = clock, ply
    black = ply & 1
    word = _0
    for kind in range(KING + 1):
        for square in range(64):
            if pieces(state, kind) & bit_of(square) != _0:
                is_own = np.uint64(state.own) & bit_of(square) != _0
                word ^= piece_word(state, kind, is_own, square)
    for square in range(64):
        if np.uint64(state.castling) & bit_of(square) != _0:
            word ^= CASTLING_WORDS[square ^ (56 * black)]
    state.hash = word
    if words[9] != _0:
        offer_passant(state, lowest_bit(words[9]))
    look_at_king(state)
    note_position(state)
    state.to_play = black if can_act(state) and not is_drawn(state) else OVER
