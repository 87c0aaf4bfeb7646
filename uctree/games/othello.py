"""Othello: enclosed stones change sides; the player with more stones at the end wins."""

from __future__ import annotations

import numpy as np

from uctree.bits import nth_bit, popcount
from uctree.game import OVER, Game, board_symmetries, random_below

# Boards are sets of cells in one uint64. Compiled code turns a uint64 with a signed number into a
# float, so every number that is combined with one is a uint64 too.
_0, _1 = (np.uint64(number) for number in (0, 1))


def othello(size: int = 8) -> Game:
    """Othello on 4x4, 6x6 or 8x8; action `row * size + col`, and `size * size` to pass.

    A player who cannot turn a stone passes; the episode ends if neither player can. The winner gets
    1, the loser -1, and a draw pays nothing.
    """
    if size not in (4, 6, 8):
        raise ValueError(f"size must be 4, 6 or 8; got {size}")
    cells = size * size
    position = np.dtype(
        [
            ("stones", np.uint64, 2),  # of each player; bit `row * size + col`, row 0 at the top
            ("to_play", np.int8),
            ("moves", np.uint64),  # derived: where the player to move may place a stone
        ]
    )
    board = np.uint64((1 << cells) - 1)
    inner_columns = sum(1 << cell for cell in range(cells) if 0 < cell % size < size - 1)
    # Along a row, a column and both diagonals. A line that wraps around the edge of the board would
    # cross an outer column, so cells of outer columns are excluded from the inside of a line.
    shifts = np.array([1, size, size - 1, size + 1], np.uint64)
    insides = np.array([inner_columns, board, inner_columns, inner_columns], np.uint64)

    def start(state):
        middle = size // 2
        for row, col, player in ((-1, 0, 0), (0, -1, 0), (-1, -1, 1), (0, 0, 1)):
            cell = np.uint64((middle + row) * size + middle + col)
            state.stones[player] = np.uint64(state.stones[player]) | (_1 << cell)
        state.moves = find_moves(np.uint64(state.stones[0]), np.uint64(state.stones[1]))

    def legal(state, actions):
        moves = np.uint64(state.moves)
        if moves == _0:
            actions[0] = cells
            return 1
        count = popcount(moves)
        for i in range(count):
            lowest = moves & (~moves + _1)
            actions[i] = popcount(lowest - _1)
            moves ^= lowest
        return count

    def step(state, action, reward):
        player = state.to_play
        own, other = np.uint64(state.stones[player]), np.uint64(state.stones[1 - player])
        if action < cells:
            stone = _1 << np.uint64(action)
            turned = find_turned(own, other, stone)
            own ^= turned | stone
            other ^= turned
            state.stones[player] = own
            state.stones[1 - player] = other
        state.moves = find_moves(other, own)
        state.to_play = 1 - player
        if state.moves == 0 and find_moves(own, other) == _0:
            lead = popcount(own) - popcount(other)
            if lead != 0:
                winner = player if lead > 0 else 1 - player
                reward[winner] = 1.0
                reward[1 - winner] = -1.0
            state.to_play = OVER

    def find_moves(own, other):
        """The empty cells at the end of a line of `other` stones that starts at an `own` stone."""
        found = _0
        for i in range(4):
            shift, line = shifts[i], other & insides[i]
            found |= follow_up(own, line, shift) << shift
            found |= follow_down(own, line, shift) >> shift
        return found & board & ~(own | other)

    def find_turned(own, other, stone):
        """The `other` stones in lines between `stone` and an `own` stone."""
        turned = _0
        for i in range(4):
            shift, line = shifts[i], other & insides[i]
            up, down = follow_up(stone, line, shift), follow_down(stone, line, shift)
            turned |= up if (up << shift) & own != _0 else _0
            turned |= down if (down >> shift) & own != _0 else _0
        return turned

    def random_action(state, rng):
        moves = np.uint64(state.moves)
        if moves == _0:
            return cells
        return nth_bit(moves, random_below(rng, popcount(moves)))

    def owner(state, cell):
        """The player whose stone is on a cell; -1 for an empty cell."""
        bit = np.uint64(cell)
        if (np.uint64(state.stones[0]) >> bit) & _1 != _0:
            return 0
        return 1 if (np.uint64(state.stones[1]) >> bit) & _1 != _0 else -1

    def observe(state, player, planes):
        for cell in range(cells):
            stone = owner(state, cell)
            planes[0, cell // size, cell % size] = stone == player
            planes[1, cell // size, cell % size] = stone == 1 - player

    def show(state):
        text = ["  " + " ".join("abcdefgh"[:size])]
        for row in range(size):
            stones = (".XO"[owner(state, row * size + col) + 1] for col in range(size))
            text.append(f"{row + 1} " + " ".join(stones))
        return "\n".join(text)

    def show_action(state, action):
        return "pass" if action == cells else f"{'abcdefgh'[action % size]}{action // size + 1}"

    def read_action(state, text):
        if text.lower() == "pass":
            return cells
        return (int(text[1:]) - 1) * size + "abcdefgh"[:size].index(text[0].lower())

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=cells + 1,
        name="othello" if size == 8 else f"othello({size}x{size})",
        start=start,
        random_action=random_action,
        observe=observe,
        observation_shape=(2, size, size),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=2 * (cells - 4),  # a pass is followed by a stone
        key_fields=("stones", "to_play"),
        symmetries=board_symmetries(size, size, num_extra=1),
        geometry=("grid", size, size),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def follow_up(first, line, shift):
    """The stones of `line` that follow those of `first` without a gap, towards higher bits.

    A line has at most six stones, reached in steps of one, one, two and two (Kogge-Stone).
    """
    reached = line & (first << shift)
    reached |= line & (reached << shift)
    pairs = line & (line << shift)
    reached |= pairs & (reached << (shift + shift))
    return reached | pairs & (reached << (shift + shift))


def follow_down(first, line, shift):
    """The stones of `line` that follow those of `first` without a gap, towards lower bits."""
    reached = line & (first >> shift)
    reached |= line & (reached >> shift)
    pairs = line & (line >> shift)
    reached |= pairs & (reached >> (shift + shift))
    return reached | pairs & (reached >> (shift + shift))
