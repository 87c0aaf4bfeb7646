"""N in a row, as gomoku: players place stones in turn, the first row of `length` wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uctree.bits import lowest_bit
from uctree.game import OVER, Game, board_symmetries, random_below
from uctree.views import NOWHERE, rank, windowed

STONES = ".XOAB"
WORD = 63  # the cells of a line that fit into one int64; its sign bit stays unused
NOBODY = -1  # the winner of a draw
PLACES = {2: (1.0, -1.0), 3: (1.0, -0.2, -1.0)}  # what each place pays, by the number of players
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def n_in_a_row(
    rows: int = 15,
    cols: int = 15,
    length: int = 5,
    num_players: int = 2,
    *,
    view: int | None = None,
    focus: bool = True,
    rewards: str = "win",
) -> Game:
    """N in a row for two to four players, on boards up to 100 x 100; action `row * cols + col`.

    `length` or more stones in a row, column or diagonal win: the winner gets 1, each of the others
    -1 / (num_players - 1). A full board without them is a draw and pays nothing.

    Args:
        view: an odd number: actions are the cells of a window of so many rows and columns, which
            follows the stones; see `uctree.views.windowed`.
        focus: whether the window moves to a cell in which a player could win.
        rewards: "placement" pays all places: 1, -0.2 and -1 with three players, 1 and -1 with two.
            The winner is first; the others, and all after a draw, are ranked by their runs.
    """
    _check(rows, cols, length, num_players, rewards)
    cells = rows * cols
    side = max(rows, cols)
    ranks = rewards == "placement"
    loss = -1.0 / (num_players - 1)
    places_pay = PLACES.get(num_players, ())
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
            # At the end: how many runs of each length a player has.
            *([("runs", np.int16, (num_players, side + 1))] if ranks else []),
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
            pay(state, player, reward)
            state.to_play = OVER
        elif state.ply == cells:
            pay(state, NOBODY, reward)
            state.to_play = OVER
        else:
            state.to_play = following(player)

    def following(player):
        return player + 1 if player + 1 < num_players else 0

    def pay_winner(state, winner, reward):
        if winner != NOBODY:
            for player in range(num_players):
                reward[player] += 1.0 if player == winner else loss

    def pay_places(state, winner, reward):
        count_runs(state)
        for player in range(num_players):
            better, equal = 0, 0
            for other in range(num_players):
                order = compare(state, winner, other, player)
                better += order > 0
                equal += order == 0
            reward[player] += mean_place(better, equal, places_pay)

    def compare(state, winner, one, other):
        """Above 0 if a player is placed before another, below 0 if behind, 0 in the same place."""
        if one == other:
            return 0
        if winner in (one, other):
            return 1 if winner == one else -1
        for run in range(side, 0, -1):
            difference = state.runs[one, run] - state.runs[other, run]
            if difference != 0:
                return difference
        return 0

    def count_runs(state):
        """Count the runs of each player in all directions; a single stone is a run of 1 in each."""
        for player in range(num_players):
            for run in range(side + 1):
                state.runs[player, run] = 0
        for row in range(rows):
            for col in range(cols):
                stone = state.board[row, col]
                if stone != 0:
                    for direction in range(4):
                        down, right = DIRECTIONS[direction]
                        if not is_stone(state, stone, row - down, col - right):
                            run = 1
                            while is_stone(state, stone, row + run * down, col + run * right):
                                run += 1
                            state.runs[stone - 1, run] += 1

    def is_stone(state, stone, row, col):
        return 0 <= row < rows and 0 <= col < cols and state.board[row, col] == stone

    pay = pay_places if ranks else pay_winner

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
        player, winner = state.to_play, NOBODY
        state.to_play = OVER
        for count in range(cells - state.ply, 0, -1):
            i = random_below(rng, count)
            cell = state.empty[i]
            state.empty[i] = state.empty[count - 1]
            put_stone(state, player, cell)
            if completes_run(state, player, cell):
                winner = player
                break
            player = following(player)
        pay(state, winner, reward)

    def put_on_board(state, player, cell):
        state.board[cell // cols, cell % cols] = player + 1

    def put_nowhere(state, player, cell):
        """Nothing: who wins is seen from the lines alone."""

    put_stone = put_on_board if ranks else put_nowhere

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

    def is_legal(state, action):
        return state.board[action // cols, action % cols] == 0

    window = view if view is not None else 1

    def threat(state, player, row, col):
        """The empty cell with which a player completes a run; that nearest to the window."""
        best, nearest = -1, NOWHERE
        for line in range(num_lines):
            if state.lines[player, line] != 0 or length == 1:
                first, stride, size = shapes[line, 0], shapes[line, 1], shapes[line, 2]
                gaps = run_gaps(state.lines[player, line])
                for other in range(num_players):
                    gaps &= ~state.lines[other, line]
                gaps &= (1 << size) - 1
                while gaps != 0:
                    cell = first + lowest_bit(gaps) * stride
                    gaps &= gaps - 1
                    key = rank(cell, row, col, rows, cols, window)
                    if best < 0 or key < best:
                        best, nearest = key, cell
        return nearest

    def run_gaps(stones):
        """The bits at which one more stone makes a run of `length`."""
        gaps = 0
        for gap in range(length):
            starts = -1
            for i in range(length):
                if i != gap:
                    starts &= stones >> i
            gaps |= starts << gap
        return gaps

    name = f"n_in_a_row({rows}x{cols}, {length}, {num_players} players"
    name += (", placement" if ranks else "") + (", no focus" if view and not focus else "")
    game = Game(
        position,
        legal,
        step,
        num_players=num_players,
        num_actions=cells,
        name=f"{name})",
        start=start,
        random_action=random_action,
        playout=playout,
        observe=observe,
        observation_shape=(num_players, rows, cols),
        payoff_range=(-1, 1) if ranks else (loss, 1),
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
    if view is None:
        return game
    shapes = line_shapes(rows, cols)
    return windowed(game, view, is_legal=is_legal, threat=threat if focus else None)


def placement_rewards(keys: Sequence[Any], rewards: Sequence[float]) -> list[float]:
    """What each player gets by its place: the largest key is first; equal keys share their places.

    >>> placement_rewards([2, 2, 1], rewards=(1.0, -0.2, -1.0))
    [0.4, 0.4, -1.0]
    """
    return [mean_place(sum(key < each for each in keys), keys.count(key), rewards) for key in keys]


def mean_place(num_better: int, num_equal: int, rewards: Sequence[float]) -> float:
    """The mean of the places that so many equal players share, behind those who are better."""
    total = 0.0
    for place in range(num_better, num_better + num_equal):
        total += rewards[place]
    return total / num_equal


def longest_run(board: np.ndarray, row: int, col: int) -> int:
    """The longest run of equal stones through a cell of a board; 0 for an empty cell."""
    if board[row, col] == 0:
        return 0
    longest = 1
    for down, right in DIRECTIONS:
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


def line_shapes(rows: int, cols: int) -> np.ndarray:
    """The first cell, the distance of neighbours and the number of cells of each line."""
    shapes = []
    for _, cells in _lines(rows, cols):
        parts = [cells] if len(cells) <= WORD else [cells[:WORD], cells[-WORD:]]
        shapes += [
            (part[0], part[1] - part[0] if len(part) > 1 else 0, len(part)) for part in parts
        ]
    table = np.array(shapes, np.int64)
    table.flags.writeable = False
    return table


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


def _check(rows: int, cols: int, length: int, num_players: int, rewards: str) -> None:
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
    if rewards not in ("win", "placement"):
        raise ValueError(f'rewards is "win" or "placement"; got {rewards!r}')
    if rewards == "placement" and num_players not in PLACES:
        raise ValueError(
            f'rewards="placement" is for 2 or 3 players; got num_players={num_players}'
        )
