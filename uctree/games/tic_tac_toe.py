"""Tic-tac-toe: three in a row win."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Game, board_symmetries

# A set of cells is a number with bit `3 * row + col` for each of them; row 0 is the top one.
LINES = (
    0b000_000_111, 0b000_111_000, 0b111_000_000,
    0b001_001_001, 0b010_010_010, 0b100_100_100,
    0b100_010_001, 0b001_010_100,
)  # fmt: skip
FULL = 0b111_111_111

# Whether a set of cells has a line. One look-up is faster than eight comparisons.
HAS_LINE = np.array([any(cells & line == line for line in LINES) for cells in range(FULL + 1)])

# `own`: stones of the player to move, `taken`: stones of both.
Position = np.dtype([("own", np.int16), ("taken", np.int16), ("to_play", np.int8)])


def tic_tac_toe() -> Game:
    """Tic-tac-toe; action `3 * row + col`."""
    return Game(
        Position,
        legal,
        step,
        num_players=2,
        num_actions=9,
        name="tic_tac_toe",
        observe=observe,
        observation_shape=(2, 3, 3),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=9,
        symmetric_seats=True,
        symmetries=board_symmetries(3, 3),
        geometry=("grid", 3, 3),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def legal(state, actions):
    taken = state.taken
    count = 0
    for cell in range(9):
        # Always written, counted if free: a branch would be mispredicted half of the time.
        actions[count] = cell
        count += (taken >> cell) & 1 == 0
    return count


def step(state, action, reward):
    player = state.to_play
    stone = 1 << action
    own = state.own | stone
    state.own ^= state.taken
    state.taken |= stone
    if HAS_LINE[own]:
        reward[player] = 1.0
        reward[1 - player] = -1.0
        state.to_play = OVER
    elif state.taken == FULL:
        state.to_play = OVER
    else:
        state.to_play = 1 - player


def owner(state, cell):
    """The player whose stone is on a cell; -1 for an empty cell."""
    if (state.taken >> cell) & 1 == 0:
        return -1
    next_player = 0  # from the number of stones, so that it also holds after the end
    for other in range(9):
        next_player ^= (state.taken >> other) & 1
    return next_player if (state.own >> cell) & 1 else 1 - next_player


def observe(state, player, planes):
    for cell in range(9):
        stone = owner(state, cell)
        planes[0, cell // 3, cell % 3] = stone == player
        planes[1, cell // 3, cell % 3] = stone == 1 - player


def show(state):
    cells = [".XO"[owner(state, cell) + 1] for cell in range(9)]
    return "\n".join(" ".join(cells[row : row + 3]) for row in (0, 3, 6))


def show_action(state, action):
    return str(action + 1)


def read_action(state, text):
    return int(text) - 1
