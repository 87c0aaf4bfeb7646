"""Connect four as one writes it the first time: an array board and loops, nothing clever.

The page docs/tutorial.md shows this file; the benchmark measures what one gets without trying.
"""

import numpy as np

import uctree

ROWS, COLS = 6, 7
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
Position = np.dtype([("board", np.int8, (ROWS, COLS)), ("ply", np.int8), ("to_play", np.int8)])


def legal(state, actions):
    count = 0
    for col in range(COLS):
        if state.board[ROWS - 1, col] == 0:
            actions[count] = col
            count += 1
    return count


def run_length(board, row, col, down, right):
    """Stones of one colour in a row, from a cell on in one direction."""
    stone = board[row, col]
    length = 0
    while 0 <= row < ROWS and 0 <= col < COLS and board[row, col] == stone:
        length += 1
        row += down
        col += right
    return length


def step(state, action, reward):
    player = state.to_play
    row = 0
    while state.board[row, action] != 0:
        row += 1
    state.board[row, action] = player + 1
    state.ply += 1
    state.to_play = uctree.OVER if state.ply == ROWS * COLS else 1 - player
    for down, right in DIRECTIONS:
        ahead = run_length(state.board, row, action, down, right)
        behind = run_length(state.board, row, action, -down, -right)
        if ahead + behind - 1 >= 4:
            reward[player], reward[1 - player] = 1, -1
            state.to_play = uctree.OVER


game = uctree.Game(
    Position, legal, step, num_players=2, num_actions=COLS, payoff_range=(-1, 1), name="my game"
)
