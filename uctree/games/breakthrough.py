"""Breakthrough: pieces step forward and capture diagonally; the first in the last row wins."""

from __future__ import annotations

import numpy as np

from uctree.bits import nth_bit, popcount
from uctree.game import OVER, Game, mirrored_cells, random_below

# Boards are sets of cells in one uint64. Compiled code turns a uint64 with a signed number into a
# float, so every number that is combined with one is a uint64 too.
_0, _1 = (np.uint64(number) for number in (0, 1))


def breakthrough(rows: int = 8, cols: int = 8) -> Game:
    """Breakthrough on a board of at most 64 cells; action `3 * (row * cols + col) + direction`.

    Row and column are those of the piece; direction 0 is diagonally towards column 0, 1 straight on
    and 2 diagonally away from column 0. Player 0 is at the top, in row 0, and begins. Each player
    has two rows of pieces, or one if there are fewer than six rows. A player without pieces has
    lost.
    """
    if rows < 3 or cols < 2 or rows * cols > 64:
        raise ValueError(
            "rows must be at least 3, cols at least 2 and rows * cols at most 64; "
            f"got rows={rows}, cols={cols}"
        )
    cells = rows * cols
    filled = 2 if rows >= 6 else 1
    # Bit `row * cols + col`.
    position = np.dtype([("pieces", np.uint64, 2), ("to_play", np.int8)])
    start_0 = (1 << (filled * cols)) - 1
    start_1 = start_0 << (cells - filled * cols)
    first_col = sum(1 << (row * cols) for row in range(rows))
    not_first_col = np.uint64((1 << cells) - 1 - first_col)
    not_last_col = np.uint64((1 << cells) - 1 - (first_col << (cols - 1)))
    forward, forward_less, forward_more = (np.uint64(cols + by) for by in (0, -1, 1))

    def start(state):
        state.pieces[0] = np.uint64(start_0)
        state.pieces[1] = np.uint64(start_1)

    def find_movable(state):
        """The pieces that may go in direction 0, 1 and 2."""
        player = state.to_play
        own, other = np.uint64(state.pieces[player]), np.uint64(state.pieces[1 - player])
        # Shift the cell ahead onto the piece. No piece is in the last row, or it would be over.
        if player == 0:
            blocked_0, blocked_2 = own >> forward_less, own >> forward_more
            blocked_1 = (own | other) >> forward
        else:
            blocked_0, blocked_2 = own << forward_more, own << forward_less
            blocked_1 = (own | other) << forward
        return own & not_first_col & ~blocked_0, own & ~blocked_1, own & not_last_col & ~blocked_2

    def legal(state, actions):
        movable = find_movable(state)
        count = 0
        for direction in range(3):
            pieces = movable[direction]
            for _ in range(popcount(pieces)):
                lowest = pieces & (~pieces + _1)
                actions[count] = 3 * popcount(lowest - _1) + direction
                count += 1
                pieces ^= lowest
        return count

    def step(state, action, reward):
        player = state.to_play
        cell = action // 3
        aside = action % 3 - 1
        target = cell + aside + (cols if player == 0 else -cols)
        arrived = _1 << np.uint64(target)
        state.pieces[player] = np.uint64(state.pieces[player]) ^ (_1 << np.uint64(cell)) ^ arrived
        state.pieces[1 - player] = np.uint64(state.pieces[1 - player]) & ~arrived
        last_row = target >= cells - cols if player == 0 else target < cols
        if last_row or state.pieces[1 - player] == 0:
            reward[player] = 1.0
            reward[1 - player] = -1.0
            state.to_play = OVER
        else:
            state.to_play = 1 - player

    def random_action(state, rng):
        pieces_0, pieces_1, pieces_2 = find_movable(state)
        upto_0 = popcount(pieces_0)
        upto_1 = upto_0 + popcount(pieces_1)
        n = random_below(rng, upto_1 + popcount(pieces_2))
        # Selections instead of branches, which would be mispredicted half of the time.
        pieces, before, direction = pieces_0, 0, 0
        if n >= upto_0:
            pieces, before, direction = pieces_1, upto_0, 1
        if n >= upto_1:
            pieces, before, direction = pieces_2, upto_1, 2
        return 3 * nth_bit(pieces, n - before) + direction

    def owner(state, cell):
        """The player whose piece is on a cell; -1 for an empty cell."""
        bit = np.uint64(cell)
        if (np.uint64(state.pieces[0]) >> bit) & _1 != _0:
            return 0
        return 1 if (np.uint64(state.pieces[1]) >> bit) & _1 != _0 else -1

    def observe(state, player, planes):
        for cell in range(cells):
            piece = owner(state, cell)
            row, col = cell // cols, cell % cols
            planes[0, row, col] = piece == player
            planes[1, row, col] = piece == 1 - player
            planes[2, row, col] = player  # the direction of play

    def show(state):
        text = []
        for row in range(rows):
            pieces = (".XO"[owner(state, row * cols + col) + 1] for col in range(cols))
            text.append(f"{rows - row:2} " + " ".join(pieces))
        text.append("   " + " ".join(chr(ord("a") + col) for col in range(cols)))
        return "\n".join(text)

    def show_cell(row, col):
        return f"{chr(ord('a') + col)}{rows - row}"

    def show_action(state, action):
        row, col = divmod(action // 3, cols)
        ahead = row + 1 if state.to_play == 0 else row - 1
        return show_cell(row, col) + show_cell(ahead, col + action % 3 - 1)

    def read_action(state, text):
        # People also write b2-a3, b2xa3 and b2a3*.
        text = text.lower().replace("-", "").replace("x", "").rstrip("*")
        return [show_action(state, action) for action in range(3 * cells)].index(text)

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=3 * cells,
        name="breakthrough" if (rows, cols) == (8, 8) else f"breakthrough({rows}x{cols})",
        start=start,
        random_action=random_action,
        observe=observe,
        observation_shape=(3, rows, cols),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=1 + 2 * cols * sum(rows - 2 - row for row in range(filled)),
        symmetries=mirror(rows, cols),
        geometry=("grid", rows, cols),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def mirror(rows, cols):
    """The identity and the reflection of the columns, for actions and for cells of observations."""
    moves = np.arange(3 * rows * cols).reshape(rows, cols, 3)
    actions = np.array([moves.ravel(), moves[:, ::-1, ::-1].ravel()])
    return actions, mirrored_cells(rows, cols)
