"""2048: slide and merge tiles; chance adds a new one after every move."""

from __future__ import annotations

import numpy as np

from uctree.game import CHANCE, OVER, Game, random_below

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
NAMES = ("up", "right", "down", "left")
SHIFTS = np.array([0, 4, 8, 12])  # of the tiles in a line

# Sets of actions, as bits: along rows, along columns; towards the first tile of a line, towards its
# last.
FLAT, UPRIGHT = 1 << RIGHT | 1 << LEFT, 1 << UP | 1 << DOWN
TO_FIRST, TO_LAST = 1 << UP | 1 << LEFT, 1 << RIGHT | 1 << DOWN
HAS_LARGEST = 1 << 4  # one more bit beside those of actions

# A tile is its exponent, 0 for an empty cell; a line is four tiles of four bits each, the first one
# lowest. Both rows and columns are stored, so that a move is four table look-ups.
Position = np.dtype(
    [
        ("lines", np.uint16, (2, 4)),  # the rows, and the same tiles as columns
        ("moves", np.int8),  # bit `action` if it is legal
        ("to_play", np.int8),
    ]
)


def twenty48(max_tile: int = 2048) -> Game:
    """2048 until no move is left or the tile `max_tile` is made; a merged tile pays its number.

    Actions UP, RIGHT, DOWN, LEFT; outcome `2 * (4 * row + col)` for a new 2, one more for a 4.
    """
    if max_tile not in [1 << exponent for exponent in range(3, 16)]:
        raise ValueError(f"max_tile must be a power of two from 8 to 32768; got {max_tile!r}")
    largest = int(max_tile).bit_length() - 1

    def observe(state, player, planes):
        for row in range(4):
            for col in range(4):
                tile = tile_at(state, 4 * row + col)
                for exponent in range(largest + 1):
                    planes[exponent, row, col] = tile == exponent

    return Game(
        Position,
        legal,
        step,
        num_players=1,
        num_actions=4,
        name="twenty48" if max_tile == 2048 else f"twenty48({max_tile})",
        start=start,
        data=line_tables(largest),
        chance=chance,
        max_outcomes=32,
        playout=playout,
        observe=observe,
        observation_shape=(largest + 1, 4, 4),
        # No payoff_range: the bounds are far above what play reaches, and a search that scales by
        # them would hardly tell actions apart. Plies are bounded: before the last move 16 tiles add
        # up to at most 8 * max_tile, and every second ply adds at least 2.
        max_plies=8 * max_tile,
        key_fields=("lines", "to_play"),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def line_tables(largest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The result of a move for each line, its reward, and the set of actions that change the line.

    The first is [towards the last tile, line], the others are [line]. The set is for rows and
    columns; it has HAS_LARGEST if a tile is `largest`.
    """
    lines = np.arange(1 << 16)
    tiles = (lines[:, None] >> SHIFTS) & 15
    to_first, pays = _merged(tiles)
    to_last, _ = _merged(tiles[:, ::-1])
    moved = np.array([_packed(to_first), _packed(to_last[:, ::-1])])
    able = TO_FIRST * (moved[0] != lines) + TO_LAST * (moved[1] != lines)
    able += HAS_LARGEST * (tiles == largest).any(axis=1)
    return moved.astype(np.uint16), pays.astype(np.float32), able.astype(np.uint8)


def _packed(tiles: np.ndarray) -> np.ndarray:
    return (tiles << SHIFTS).sum(axis=1)


def _merged(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines, [line, tile], after a move towards their first tile, and its reward."""
    tiles, pays = _slid(tiles), np.zeros(len(tiles))
    for i in range(3):
        # Two tiles of 32768 do not fit; an episode ends before there are two.
        equal = (tiles[:, i] == tiles[:, i + 1]) & (tiles[:, i] > 0) & (tiles[:, i] < 15)
        tiles[equal, i] += 1
        tiles[equal, i + 1] = 0
        pays += np.where(equal, 2.0 ** tiles[:, i], 0.0)
    return _slid(tiles), pays


def _slid(tiles: np.ndarray) -> np.ndarray:
    """Lines whose empty cells are moved to the end."""
    return np.take_along_axis(tiles, np.argsort(tiles == 0, axis=1, kind="stable"), axis=1)


def start(state):
    state.to_play = CHANCE


def legal(state, actions):
    count = 0
    for action in range(4):
        actions[count] = action
        count += (state.moves >> action) & 1
    return count


def tile_at(state, cell):
    return (state.lines[0, cell // 4] >> (4 * (cell % 4))) & 15


def chance(state, outcomes, probabilities):
    count = 0
    for cell in range(16):
        if tile_at(state, cell) == 0:
            outcomes[count] = 2 * cell
            outcomes[count + 1] = 2 * cell + 1
            count += 2
    for i in range(0, count, 2):
        probabilities[i] = 0.9 * 2 / count
        probabilities[i + 1] = 0.1 * 2 / count
    return count


def step(state, action, reward, data):
    if state.to_play == CHANCE:
        add_tile(state, action // 2, 1 + action % 2, data)
    else:
        slide(state, action, reward, data)


def add_tile(state, cell, tile, data):
    _, _, able = data
    row, col = cell // 4, cell % 4
    rows, cols = state.lines[0], state.lines[1]
    is_first = rows[0] | rows[1] | rows[2] | rows[3] == 0
    rows[row] |= tile << (4 * col)
    cols[col] |= tile << (4 * row)
    flat, upright = 0, 0
    for i in range(4):
        flat |= able[rows[i]]
        upright |= able[cols[i]]
    state.moves = (flat & FLAT) | (upright & UPRIGHT)
    if is_first:
        state.to_play = CHANCE  # an episode begins with two tiles
    else:
        state.to_play = 0 if state.moves != 0 else OVER


def slide(state, action, reward, data):
    moved, pays, able = data
    axis = (UPRIGHT >> action) & 1
    lines, crossing = state.lines[axis], state.lines[1 - axis]
    to_last = (TO_LAST >> action) & 1
    seen = 0
    for i in range(4):
        reward[0] += pays[lines[i]]
        lines[i] = moved[to_last, lines[i]]
        seen |= able[lines[i]]
    for i in range(4):
        line = 0
        for j in range(4):
            line |= ((lines[j] >> (4 * i)) & 15) << (4 * j)
        crossing[i] = line
    state.to_play = OVER if seen & HAS_LARGEST else CHANCE


def playout(state, rng, reward, data):
    # Cells and moves are drawn until one is legal, which is faster than listing the legal ones.
    while state.to_play != OVER:
        if state.to_play == CHANCE:
            cell = random_below(rng, 16)
            if tile_at(state, cell) == 0:
                add_tile(state, cell, 1 if random_below(rng, 10) > 0 else 2, data)
        else:
            action = random_below(rng, 4)
            if (state.moves >> action) & 1:
                slide(state, action, reward, data)


def show(state):
    text = []
    for row in range(4):
        tiles = [tile_at(state, 4 * row + col) for col in range(4)]
        text.append("".join(f"{1 << tile if tile else '.':>6}" for tile in tiles))
    return "\n".join(text)


def show_action(state, action):
    if state.to_play == CHANCE:
        return f"{2 + 2 * (action % 2)} in row {action // 8 + 1}, column {action // 2 % 4 + 1}"
    return NAMES[action]


def read_action(state, text):
    if state.to_play == CHANCE:
        return int(text)
    return "urdl".index(text[0].lower())
