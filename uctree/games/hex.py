"""Hex: players place stones in turn; the first to connect its two sides of the board wins."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Game, random_below

# The content of a cell: 0, or a stone and the sides of its player that it is connected with. The
# bits of player 1 are three bits higher.
STONE, FIRST_SIDE, LAST_SIDE = 1, 2, 4
BITS = 3
WON = FIRST_SIDE | LAST_SIDE
LAST_SIDES = LAST_SIDE | LAST_SIDE << BITS


def hex(size: int = 11) -> Game:
    """Hex on a rhombus of 2 x 2 to 19 x 19 cells, without swap rule; action `row * size + col`.

    A cell touches (row, col - 1), (row, col + 1), (row - 1, col), (row - 1, col + 1),
    (row + 1, col - 1) and (row + 1, col). Player 0 connects the first row with the last, player 1
    the first column with the last. The winner gets 1, the loser -1; there are no draws.
    """
    if not 2 <= size <= 19:
        raise ValueError(f"size must be from 2 to 19; got {size}")
    cells = size * size
    width = size + 2  # the board has a border of stones, one side each
    place = np.min_scalar_type(width * width - 1)
    position = np.dtype(
        [
            ("board", np.uint8, width * width),
            ("ply", np.int16),
            ("to_play", np.int8),
            # The rest is derived from the board, for speed.
            ("empty", place, cells),  # the empty cells are the first `cells - ply` of these
            ("where", place, cells),  # the index of an empty cell in `empty`
        ]
    )
    corner = width + 1  # the first cell inside the border
    neighbours = np.array([-width, 1 - width, -1, 1, width - 1, width])

    def start(state):
        board = state.board
        for i in range(width):
            board[i] |= STONE | FIRST_SIDE
            board[i * width] |= (STONE | FIRST_SIDE) << BITS
            board[(width - 1) * width + i] |= STONE | LAST_SIDE
            board[i * width + width - 1] |= (STONE | LAST_SIDE) << BITS
        for cell in range(cells):
            state.empty[cell] = cell
            state.where[cell] = cell

    def legal(state, actions):
        count = cells - state.ply
        for i in range(count):
            actions[i] = state.empty[i]
        return count

    def step(state, action, reward):
        player = state.to_play
        state.ply += 1
        # The last empty cell moves to the index of the one that is filled.
        last = state.empty[cells - state.ply]
        state.empty[state.where[action]] = last
        state.where[last] = state.where[action]
        if connect(state, corner + action + 2 * (action // size), player * BITS) == WON:
            reward[player] = 1.0
            reward[1 - player] = -1.0
            state.to_play = OVER
        else:
            state.to_play = 1 - player

    def connect(state, at, shift):
        """The sides that a new stone is connected with; it is placed and its group updated."""
        board = state.board
        around = 0
        for i in range(6):
            around |= board[at + neighbours[i]]
        sides = (around >> shift) & WON
        board[at] = (STONE | sides) << shift
        if sides == 0 or sides == WON or (around >> shift) & STONE == 0:
            return sides
        # `empty` has as many unused entries behind the empty cells as the board has stones.
        bottom = top = cells - state.ply
        state.empty[top] = at
        while top >= bottom:
            at = np.int64(state.empty[top])
            top -= 1
            for i in range(6):
                near = at + neighbours[i]
                if (board[near] >> shift) & (STONE | WON) == STONE:
                    board[near] = (STONE | sides) << shift
                    top += 1
                    state.empty[top] = near
        return sides

    def random_action(state, rng):
        return state.empty[random_below(rng, cells - state.ply)]

    def playout(state, rng, reward):
        """Fill the empty cells at random, half of them by each player, and pay the winner.

        On a full board a line separates the stones of both players, starting at the corner of row 0
        and column 0. On one side it has stones of player 0 that are connected with the first row,
        on the other side stones of player 1 that are connected with the first column. It ends at
        the last row, then player 0 has won, or at the last column, then player 1 has. Only the
        cells that the line meets are filled.
        """
        board = state.board
        num_empty = cells - state.ply
        stones_0 = (num_empty + 1 - state.to_play) // 2  # that player 0 still places
        behind, on_0, on_1 = 0, 1, width
        met = 0
        while met & LAST_SIDES == 0:
            ahead = on_0 + on_1 - behind  # touches both, as `behind` does
            met = board[ahead]
            if met == 0:
                is_0 = random_below(rng, num_empty) < stones_0
                met = STONE if is_0 else STONE << BITS
                board[ahead] = met
                stones_0 -= is_0
                num_empty -= 1
            if met & STONE != 0:
                behind = on_0
                on_0 = ahead
            else:
                behind = on_1
                on_1 = ahead
        winner = 0 if met & LAST_SIDE != 0 else 1
        reward[winner] = 1.0
        reward[1 - winner] = -1.0
        state.to_play = OVER

    def owner(state, row, col):
        """The player whose stone is on a cell; -1 for an empty cell."""
        stone = state.board[corner + row * width + col]
        if stone == 0:
            return -1
        return 0 if stone & STONE != 0 else 1

    def observe(state, player, planes):
        for row in range(size):
            for col in range(size):
                stone = owner(state, row, col)
                planes[0, row, col] = stone == player
                planes[1, row, col] = stone == 1 - player
                planes[2, row, col] = player  # whose sides are to be connected

    def show(state):
        text = ["   " + " ".join("abcdefghijklmnopqrs"[:size])]
        for row in range(size):
            stones = " ".join(".XO"[owner(state, row, col) + 1] for col in range(size))
            text.append(f"{' ' * row}{row + 1:2} {stones}")
        return "\n".join(text)

    def show_action(state, action):
        return f"{'abcdefghijklmnopqrs'[action % size]}{action // size + 1}"

    def read_action(state, text):
        col = "abcdefghijklmnopqrs"[:size].index(text[0].lower())
        return (int(text[1:]) - 1) * size + col

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=cells,
        name=f"hex({size}x{size})",
        start=start,
        random_action=random_action,
        playout=playout,
        observe=observe,
        observation_shape=(3, size, size),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=cells,
        key_fields=("board", "to_play"),
        symmetries=half_turn(size),
        geometry=("hex", size, size),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def half_turn(size):
    """The identity and the half turn, which maps each player's sides onto themselves."""
    cells = np.arange(size * size)
    both = np.array([cells, cells[::-1]])
    return both, both
