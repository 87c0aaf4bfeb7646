"""Checkers, or English draughts: captures are compulsory, and a piece jumps as long as it can."""

from __future__ import annotations

import numpy as np

from uctree.bits import lowest_bit, nth_bit, popcount
from uctree.game import OVER, Game, random_below

_0, _1, _7, _9 = (np.uint64(number) for number in (0, 1, 7, 9))
NOT_A, NOT_H = np.uint64(0xFEFEFEFEFEFEFEFE), np.uint64(0x7F7F7F7F7F7F7F7F)  # columns
DARK = np.uint64(0x55AA55AA55AA55AA)
# The last row of each player: the top one is row 0, and player 0 moves up.
LAST_ROWS = np.array([0xFF, 0xFF << 56], np.uint64)
OFFSETS = np.array([-9, -7, 9, 7], np.int64)  # of the directions; `direction ^ 2` is the opposite
NONE = 64  # the square of the piece that must go on jumping, if there is none
COLUMNS = "abcdefgh"

Position = np.dtype(
    [
        ("pieces", np.uint64, 2),  # of each player; bit `8 * row + col`
        ("kings", np.uint64),  # of both
        ("jumper", np.int8),  # the square of the piece that must go on jumping, or NONE
        ("quiet", np.int16),  # actions since the last capture
        ("to_play", np.int8),
    ]
)


def checkers(quiet: int = 40) -> Game:
    """Checkers; action `4 * (8 * row + col) + direction`: up left, up right, down right, down left.

    A player who cannot act loses: the winner gets 1, the loser -1. A chain of jumps is an action
    for each jump.

    Args:
        quiet: how many actions without a capture are a draw, which pays nothing.
    """
    if not 1 <= quiet <= 1000:
        raise ValueError(f"quiet must be from 1 to 1000 actions; got {quiet}")

    def start(state):
        state.pieces[0] = DARK & ~((_1 << np.uint64(40)) - _1)
        state.pieces[1] = DARK & ((_1 << np.uint64(24)) - _1)
        state.jumper = NONE

    def step(state, action, reward):
        player = state.to_play
        captures = move(state, action)
        state.quiet = 0 if captures else state.quiet + 1
        if captures and state.jumper != NONE:
            return
        state.to_play = 1 - player
        if state.quiet >= quiet:
            state.to_play = OVER
        elif count_actions(state) == 0:
            reward[player] = 1.0
            reward[1 - player] = -1.0
            state.to_play = OVER

    def observe(state, player, planes):
        for square in range(64):
            row, col = square // 8, square % 8
            kind = kind_at(state, square)
            if kind >= 0:
                planes[kind if player == 0 else kind ^ 2, row, col] = 1.0
            planes[4, row, col] = square == state.jumper
            planes[5, row, col] = state.quiet / quiet
            planes[6, row, col] = player

    return Game(
        Position,
        legal,
        step,
        num_players=2,
        num_actions=256,
        name="checkers" if quiet == 40 else f"checkers(quiet {quiet})",
        start=start,
        random_action=random_action,
        observe=observe,
        observation_shape=(7, 8, 8),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=25 * quiet,
        geometry=("grid", 8, 8),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def shifted(squares, direction):
    """A set of squares after a step in a direction; what would leave the board is dropped."""
    if direction == 0:
        return (squares & NOT_A) >> _9
    if direction == 1:
        return (squares & NOT_H) >> _7
    return (squares & NOT_H) << _9 if direction == 2 else (squares & NOT_A) << _7


def movable(state, direction, jumps):
    """The pieces of the player to move that may jump, or else step, in a direction."""
    player = state.to_play
    own, other = np.uint64(state.pieces[player]), np.uint64(state.pieces[1 - player])
    free = ~(own | other)
    # Men go up for player 0 and down for player 1.
    able = own if direction // 2 == player else own & np.uint64(state.kings)
    if not jumps:
        return able & shifted(free, direction ^ 2)
    if state.jumper != NONE:
        able &= _1 << np.uint64(state.jumper)
    return able & shifted(other & shifted(free, direction ^ 2), direction ^ 2)


def must_jump(state):
    """Whether the player to move can capture something."""
    found = _0
    for direction in range(4):
        found |= movable(state, direction, True)
    return found != _0


def count_actions(state):
    """The number of legal actions."""
    jumps = must_jump(state)
    count = 0
    for direction in range(4):
        count += popcount(movable(state, direction, jumps))
    return count


def legal(state, actions):
    jumps = must_jump(state)
    count = 0
    for direction in range(4):
        rest = movable(state, direction, jumps)
        while rest != _0:
            actions[count] = 4 * lowest_bit(rest) + direction
            count += 1
            rest &= rest - _1
    return count


def random_action(state, rng):
    jumps = must_jump(state)
    drawn = random_below(rng, count_actions(state))
    direction = np.int64(0)
    able = movable(state, direction, jumps)
    while drawn >= popcount(able):
        drawn -= popcount(able)
        direction += 1
        able = movable(state, direction, jumps)
    return 4 * nth_bit(able, drawn) + direction


def move(state, action):
    """Whether an action captures; it moves the piece, and writes whether it must go on jumping."""
    player = state.to_play
    square, direction = action // 4, action % 4
    bit = _1 << np.uint64(square)
    near = shifted(bit, direction)
    captures = near & np.uint64(state.pieces[1 - player]) != _0
    goal = shifted(near, direction) if captures else near
    kings = np.uint64(state.kings)
    is_king = kings & bit != _0
    is_crowned = not is_king and goal & LAST_ROWS[player] != _0
    state.pieces[player] = np.uint64(state.pieces[player]) ^ (bit | goal)
    if captures:
        state.pieces[1 - player] = np.uint64(state.pieces[1 - player]) ^ near
    kings &= ~(bit | near)
    state.kings = kings | goal if is_king or is_crowned else kings
    state.jumper = NONE
    if captures and not is_crowned:
        state.jumper = square + 2 * OFFSETS[direction]
        if not must_jump(state):
            state.jumper = NONE
    return captures


def kind_at(state, square):
    """0 for a man of player 0, 1 for a king; 2 and 3 for player 1; -1 for an empty square."""
    bit = _1 << np.uint64(square)
    king = np.int64((np.uint64(state.kings) & bit) != _0)
    if np.uint64(state.pieces[0]) & bit != _0:
        return king
    return 2 + king if np.uint64(state.pieces[1]) & bit != _0 else np.int64(-1)


def show(state):
    text = []
    for row in range(8):
        marks = ("xXoO."[kind_at(state, 8 * row + col)] for col in range(8))
        text.append(f"{8 - row} " + " ".join(marks))
    return "\n".join([*text, "  " + " ".join(COLUMNS)])


def name_of(square):
    return f"{COLUMNS[square % 8]}{8 - square // 8}"


def show_action(state, action):
    square, direction = action // 4, action % 4
    near = square + int(OFFSETS[direction])
    captures = kind_at(state, near) >= 0
    goal = near + int(OFFSETS[direction]) if captures else near
    return f"{name_of(square)}{'x' if captures else '-'}{name_of(goal)}"


def read_action(state, text):
    names = text.lower().replace("x", "-").split("-")
    rows = [8 - int(name[1:]) for name in names]
    if not all(0 <= row < 8 for row in rows):
        raise ValueError(f"rows are from 1 to 8; got {text!r}")
    square, goal = (8 * row + COLUMNS.index(name[0]) for row, name in zip(rows, names, strict=True))
    steps = [int(offset) for offset in OFFSETS]
    away = goal - square
    direction = steps.index(away) if away in steps else steps.index(away // 2)
    action = 4 * square + direction
    return action if show_action(state, action)[3:] == name_of(goal) else -1
