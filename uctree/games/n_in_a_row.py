"""N in a row, as gomoku: players place stones in turn, the first row of `length` wins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uctree.game import OVER, Game, board_symmetries, random_below

STONES = ".XOAB"
WORD = 63  # the cells of a line that fit into one int64; its sign bit stays unused


def n_in_a_row(rows: int = 15, cols: int = 15, length: int = 5, num_players: int = 2) -> Game:
    """N in a row for two to four players, on boards up to 100 x 100; action `row * cols + col`.

    `length` or more stones in a row, column or diagonal win: the winner gets 1, each of the others
    -1 / (num_players - 1). A full board without them is a draw and pays nothing.
    """
    _check(rows, cols, length, num_players)
    cells = rows * cols
    loss = -1.0 / (num_players - 1)
    line_of, mask_of, num_lines = line_tables(rows, cols)
    places = line_of.shape[1]  # lines through a cell
    bits = next(bits for bits in (16, 32, 64) if bits > min(WORD, max(rows, cols)))
    lanes = 64 // bits  # lines that are tested in one word
    position = np.dtype(
        [
            ("board", np.int8, (rows, cols)),  # 0 empty, player + 1 otherwise
            ("ply", np.int16),
            ("to_play", np.int8),
            # The rest is derived from the board, for speed.
            ("lines", f"i{bits // 8}", (num_players, num_lines)),  # bit i: a stone on cell i of it
            ("empty", np.uint16, cells),  # the empty cells are the first `cells - ply` of these
            ("where", np.uint16, cells),  # the index of an empty cell in `empty`
        ]
    )

    def start(state):
        empty, where = state.empty, state.where
        for cell in range(cells):
            empty[cell] = cell
            where[cell] = cell

    def legal(state, actions):
        count, empty = cells - state.ply, state.empty
        for i in range(count):
            actions[i] = empty[i]
        return count

    def step(state, action, reward):
        player = state.to_play
        state.board[action // cols, action % cols] = player + 1
        state.ply += 1
        # The last empty cell moves to the index of the one that is filled.
        last = state.empty[cells - state.ply]
        state.empty[state.where[action]] = last
        state.where[last] = state.where[action]
        if completes_run(state, player, action):
            pay(player, reward)
            state.to_play = OVER
        elif state.ply == cells:
            state.to_play = OVER
        else:
            state.to_play = following(player)

    def following(player):
        return player + 1 if player + 1 < num_players else 0

    def pay(winner, reward):
        for player in range(num_players):
            reward[player] += 1.0 if player == winner else loss

    def completes_run(state, player, cell):
        """Whether a stone, which is added to the lines through its cell, completes a run."""
        runs = 0
        for first in range(0, places, lanes):
            # Lines side by side in one word, with an unused bit after each.
            word = 0
            for i in range(lanes):
                line = line_of[cell, first + i]
                stones = state.lines[player, line] | mask_of[cell, first + i]
                state.lines[player, line] = stones
                word |= stones << (i * bits)
            runs |= run_starts(word)
        return runs != 0

    def run_starts(stones):
        """The bits at which a run of `length` starts."""
        have = 1
        while have < length:
            shift = min(have, length - have)
            stones &= stones >> shift
            have += shift
        return stones

    def random_action(state, rng):
        return state.empty[random_below(rng, cells - state.ply)]

    def playout(state, rng, reward):
        # As `random_action` and `step`, without the fields that are not read after the end.
        player = state.to_play
        state.to_play = OVER
        for count in range(cells - state.ply, 0, -1):
            i = random_below(rng, count)
            cell = state.empty[i]
            state.empty[i] = state.empty[count - 1]
            if completes_run(state, player, cell):
                pay(player, reward)
                break
            player = following(player)

    def observe(state, player, planes):
        for seat in range(num_players):
            stone = (player + seat) % num_players + 1
            for row in range(rows):
                for col in range(cols):
                    planes[seat, row, col] = state.board[row, col] == stone

    def show(state):
        names = [column_name(col) for col in range(cols)]
        width, margin = len(names[-1]), len(str(rows))
        text = [" " * margin + "".join(f" {name:>{width}}" for name in names)]
        for row in range(rows):
            stones = "".join(f" {STONES[stone]:>{width}}" for stone in state.board[row])
            text.append(f"{rows - row:>{margin}}{stones}")
        return "\n".join(text)

    def show_action(state, action):
        return f"{column_name(action % cols)}{rows - action // cols}"

    def read_action(state, text):
        letters = text.rstrip("0123456789")
        col = [column_name(col) for col in range(cols)].index(letters.lower())
        return (rows - int(text[len(letters) :])) * cols + col

    return Game(
        position,
        legal,
        step,
        num_players=num_players,
        num_actions=cells,
        name=f"n_in_a_row({rows}x{cols}, {length}, {num_players} players)",
        start=start,
        random_action=random_action,
        playout=playout,
        observe=observe,
        observation_shape=(num_players, rows, cols),
        payoff_range=(loss, 1),
        zero_sum=num_players == 2,
        max_plies=cells,
        symmetric_seats=True,
        key_fields=("board", "to_play"),
        symmetries=board_symmetries(rows, cols),
        geometry=("grid", rows, cols),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def longest_run(board: np.ndarray, row: int, col: int) -> int:
    """The longest run of equal stones through a cell of a board; 0 for an empty cell."""
    if board[row, col] == 0:
        return 0
    longest = 1
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        run = 1
        for sign in (1, -1):
            r, c = row + sign * down, col + sign * right
            while (
                0 <= r < board.shape[0]
                and 0 <= c < board.shape[1]
                and board[r, c] == board[row, col]
            ):
                run += 1
                r, c = r + sign * down, c + sign * right
        longest = max(longest, run)
    return longest


def line_tables(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The lines through each cell, its bit in each, both [cell, place], and the number of lines.

    A cell has one place for each of the four directions, and two on boards over 63: a line is then
    stored as its first 63 and as its last 63 cells, so that at least one of them has a whole run.
    """
    pieces = 1 if max(rows, cols) <= WORD else 2
    line_of = np.zeros((rows * cols, 4 * pieces), np.uint16)
    mask_of = np.zeros((rows * cols, 4 * pieces), np.int64)
    num_lines = 0
    for direction, cells in _lines(rows, cols):
        for piece in range(pieces if len(cells) > WORD else 1):
            place = pieces * direction + piece
            part = cells[:WORD] if piece == 0 else cells[-WORD:]
            line_of[part, place] = num_lines
            mask_of[part, place] = 1 << np.arange(len(part))
            num_lines += 1
    if pieces == 2:
        # A cell that is in only one piece gets that piece twice.
        other = np.arange(4 * pieces) ^ 1
        line_of = np.where(mask_of == 0, line_of[:, other], line_of)
        mask_of = np.where(mask_of == 0, mask_of[:, other], mask_of)
    return line_of, mask_of, num_lines


def _lines(rows: int, cols: int) -> Iterator[tuple[int, np.ndarray]]:
    """Every row, column and diagonal as its direction and its cells."""
    board = np.arange(rows * cols).reshape(rows, cols)
    for row in range(rows):
        yield 0, board[row]
    for col in range(cols):
        yield 1, board[:, col]
    for offset in range(1 - rows, cols):
        yield 2, board.diagonal(offset)
        yield 3, board[:, ::-1].diagonal(offset)


def column_name(col: int) -> str:
    """a to z, then aa, ab and so on."""
    return ("" if col < 26 else chr(ord("a") + col // 26 - 1)) + chr(ord("a") + col % 26)


def _check(rows: int, cols: int, length: int, num_players: int) -> None:
    if not (1 <= rows <= 100 and 1 <= cols <= 100):
        raise ValueError(f"rows and cols must be from 1 to 100; got rows={rows}, cols={cols}")
    side = max(rows, cols)
    # The two pieces of a line over 63 share 126 - side cells; a longer run could be cut in both.
    longest = side if side <= WORD else 2 * WORD - side + 1
    if not 1 <= length <= longest:
        raise ValueError(
            f"length must be from 1 to {longest} on a board of {rows} x {cols}; got {length}"
        )
    if not 2 <= num_players <= 4:
        raise ValueError(f"num_players must be 2, 3 or 4; got {num_players}")
