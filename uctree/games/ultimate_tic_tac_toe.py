"""Ultimate tic-tac-toe: nine boards; the cell of a stone says on which board the next one goes."""

from __future__ import annotations

import numpy as np

from uctree.bits import nth_bit, popcount
from uctree.game import OVER, Game, board_symmetries, random_below
from uctree.games.tic_tac_toe import FULL, HAS_LINE

SIZE = 9
ANY = 9  # the target if the next stone may go on any open board
LETTERS = "abcdefghi"

# An action is `9 * row + col` on the large grid. Boards and the cells of each are numbered in
# reading order, as in tic-tac-toe.
ROWS, COLS = np.divmod(np.arange(SIZE * SIZE), SIZE)
BOARDS = ROWS // 3 * 3 + COLS // 3
CELLS = ROWS % 3 * 3 + COLS % 3
ACTIONS = np.zeros((9, 9), np.int64)  # [board, cell]
ACTIONS[BOARDS, CELLS] = np.arange(SIZE * SIZE)

# Sets of cells, and of boards, are numbers as in tic-tac-toe.
Position = np.dtype(
    [
        ("stones", np.int16, (2, 9)),  # of each player on each board
        ("won", np.int16, 2),  # the boards that each player has won
        ("closed", np.int16),  # the boards that are won or full
        ("target", np.int8),  # the board for the next stone, or ANY
        ("to_play", np.int8),
    ]
)


def ultimate_tic_tac_toe() -> Game:
    """Ultimate tic-tac-toe; action `9 * row + col` on the grid of all nine boards."""
    return Game(
        Position,
        legal,
        step,
        num_players=2,
        num_actions=SIZE * SIZE,
        name="ultimate_tic_tac_toe",
        start=start,
        random_action=random_action,
        observe=observe,
        observation_shape=(5, SIZE, SIZE),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=SIZE * SIZE,
        symmetric_seats=True,
        symmetries=board_symmetries(SIZE, SIZE),
        geometry=("grid", SIZE, SIZE),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def start(state):
    state.target = ANY


def free_cells(state, board):
    """The cells of a board where the next stone may go."""
    target = state.target
    if (state.closed >> board) & 1 or (target != ANY and target != board):
        return 0
    return FULL & ~(state.stones[0, board] | state.stones[1, board])


def legal(state, actions):
    count = 0
    for board in range(9):
        free = free_cells(state, board)
        if free != 0:
            for cell in range(9):
                # Always written, counted if free.
                actions[count] = ACTIONS[board, cell]
                count += (free >> cell) & 1
    return count


def random_action(state, rng):
    board = np.int64(state.target)
    if board == ANY:
        count = 0
        for other in range(9):
            count += popcount(free_cells(state, other))
        drawn = random_below(rng, count)
        board = np.int64(0)
        while drawn >= popcount(free_cells(state, board)):
            drawn -= popcount(free_cells(state, board))
            board += 1
        return ACTIONS[board, nth_bit(free_cells(state, board), drawn)]
    free = free_cells(state, board)
    return ACTIONS[board, nth_bit(free, random_below(rng, popcount(free)))]


def step(state, action, reward):
    player = state.to_play
    board, cell = BOARDS[action], CELLS[action]
    own = state.stones[player, board] | (1 << cell)
    state.stones[player, board] = own
    if HAS_LINE[own]:
        state.won[player] |= 1 << board
        state.closed |= 1 << board
    elif own | state.stones[1 - player, board] == FULL:
        state.closed |= 1 << board
    if HAS_LINE[state.won[player]]:
        reward[player] = 1.0
        reward[1 - player] = -1.0
        state.to_play = OVER
    elif state.closed == FULL:
        state.to_play = OVER
    else:
        state.to_play = 1 - player
    state.target = ANY if (state.closed >> cell) & 1 else cell


def observe(state, player, planes):
    for action in range(SIZE * SIZE):
        row, col, board, cell = ROWS[action], COLS[action], BOARDS[action], CELLS[action]
        for i in range(2):
            seat = player if i == 0 else 1 - player
            planes[i, row, col] = (state.stones[seat, board] >> cell) & 1
            planes[2 + i, row, col] = (state.won[seat] >> board) & 1
        planes[4, row, col] = state.to_play != OVER and (free_cells(state, board) >> cell) & 1


def corners(board):
    """The first and the last cell of a board, as people write them."""
    row, col = 3 * (board // 3), 3 * (board % 3)
    return f"{LETTERS[col]}{row + 1}-{LETTERS[col + 2]}{row + 3}"


def show(state):
    text = ["  " + "  ".join(" ".join(LETTERS[col : col + 3]) for col in (0, 3, 6))]
    for row in range(SIZE):
        marks = ""
        for col in range(SIZE):
            board, cell = BOARDS[SIZE * row + col], CELLS[SIZE * row + col]
            stones = [int(state.stones[player, board]) >> cell & 1 for player in range(2)]
            marks += (" " if col % 3 else "  ") + ("X" if stones[0] else "O" if stones[1] else ".")
        text += [""] if row in (3, 6) else []
        text.append(f"{row + 1}{marks[1:]}")
    for player in range(2):
        won = [corners(board) for board in range(9) if int(state.won[player]) >> board & 1]
        text += [f"{'XO'[player]} won: {','.join(won)}"] if won else []
    if state.to_play != OVER:
        text.append(f"next: {'any' if state.target == ANY else corners(state.target)}")
    return "\n".join(text)


def show_action(state, action):
    return f"{LETTERS[COLS[action]]}{ROWS[action] + 1}"


def read_action(state, text):
    row = int(text[1:]) - 1
    if not 0 <= row < SIZE:
        raise ValueError(f"rows are from 1 to {SIZE}; got {row + 1}")
    return SIZE * row + LETTERS.index(text[0].lower())
