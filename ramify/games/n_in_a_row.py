"""N in a row: gomoku and its kin, two to four players, boards up to 100 x 100."""

from __future__ import annotations

import numpy as np

from ramify.game import OVER, Game, random_below

WORD = 63  # usable bits of an int64, so that no sign gets in the way
STONES = "XOAB"


def n_in_a_row(rows: int = 15, cols: int = 15, length: int = 5, num_players: int = 2) -> Game:
    """Place stones in turn; `length` or more in a row, column or diagonal win.

    Action `row * cols + col`. The winner gets 1 and each of the others -1 / (num_players - 1); a
    full board without a winner is a draw and pays nothing.
    """
    _check(rows, cols, length, num_players)
    cells = rows * cols
    places, num_words = line_places(rows, cols, length)
    num_places = places.shape[1]
    loss = -1.0 / (num_players - 1)
    position = np.dtype(
        [
            ("lines", np.int64, (num_players, num_words)),  # the stones of each player, by line
            ("empty", np.int16, cells),  # the empty cells: the first `cells - ply` of these
            ("where", np.int16, cells),  # where in `empty` a cell is
            ("board", np.int8, (rows, cols)),  # 0 or player + 1
            ("ply", np.int16),
            ("to_play", np.int8),
        ]
    )

    def start(state):
        for cell in range(cells):
            state.empty[cell] = cell
            state.where[cell] = cell

    def legal(state, actions):
        count = cells - state.ply
        for i in range(count):
            actions[i] = state.empty[i]
        return count

    def random_action(state, rng):
        return state.empty[random_below(rng, cells - state.ply)]

    def step(state, action, reward):
        player = state.to_play
        state.ply += 1
        state.board[action // cols, action % cols] = player + 1
        # The last of the empty cells moves to where the action was.
        hole = state.where[action]
        last = state.empty[cells - state.ply]
        state.empty[hole] = last
        state.where[last] = hole
        if completes_run(state, player, action):
            for other in range(num_players):
                reward[other] = loss
            reward[player] = 1.0
            state.to_play = OVER
        elif state.ply == cells:
            state.to_play = OVER
        else:
            state.to_play = player + 1 if player + 1 < num_players else 0

    def completes_run(state, player, cell):
        """Add a stone to its lines; whether that makes a run of `length`."""
        runs = 0
        for i in range(num_places):
            place = places[cell, i]
            word = state.lines[player, place >> 6] | (1 << (place & 63))
            state.lines[player, place >> 6] = word
            # Each bit that is left says that a run of `have` begins there. Runs elsewhere in the
            # word do no harm: they would have ended the episode before.
            have = 1
            while have < length:
                shift = min(have, length - have)
                word &= word >> shift
                have += shift
            runs |= word
        return runs != 0

    return Game(
        position,
        legal,
        step,
        num_players=num_players,
        num_actions=cells,
        name="n_in_a_row",
        start=start,
        random_action=random_action,
        payoff_range=(loss, 1),
        zero_sum=num_players == 2,
        max_plies=cells,
        key_fields=("board", "to_play"),
    )


def _check(*a):
    pass


def line_places(rows: int, cols: int, length: int) -> tuple[np.ndarray, int]:
    """Bits for the cells of a board, [cell, direction], and the number of words that hold them.

    Bit `place & 63` of word `place >> 6`. The cells of a line are bits side by side and an unused bit follows, so that
    runs end where lines end. A line that is longer than a word is cut into two that share `length - 1` cells, so that
    every run is whole in one of them.
    """
    segments = []
    num_parts = 1 if max(rows, cols) <= WORD else 2
    for direction, line in _lines(rows, cols):
        if len(line) <= WORD:
            parts = [line] * num_parts
            segments.append((direction * num_parts, line))
            if num_parts == 2:
                segments.append((direction * num_parts + 1, line))
        else:
            segments.append((direction * num_parts, line[:WORD]))
            segments.append((direction * num_parts + 1, line[WORD - length + 1 :]))
    places = np.zeros((rows * cols, 4 * num_parts), np.int64)
    used = []
    for column, line in sorted(segments, key=lambda s: -len(s[1])):
        word = next((w for w, bits in enumerate(used) if bits + len(line) <= WORD), len(used))
        if word == len(used):
            used.append(0)
        for i, cell in enumerate(line):
            places[cell, column] = 64 * word + used[word] + i
        used[word] += len(line) + 1
    if num_parts == 2:
        pass
    return places, len(used)


def _lines(rows, cols):
    grid = np.arange(rows * cols).reshape(rows, cols)
    for row in grid:
        yield 0, row.tolist()
    for col in grid.T:
        yield 1, col.tolist()
    for k in range(1 - rows, cols):
        yield 2, grid.diagonal(k).tolist()
        yield 3, grid[:, ::-1].diagonal(k).tolist()
