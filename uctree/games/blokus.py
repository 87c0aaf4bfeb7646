"""Blokus: pieces of one to five squares that touch own ones at corners, never along edges."""

from __future__ import annotations

import numpy as np

from uctree.bits import nth_bit, popcount
from uctree.game import OVER, Game, random_below

# The 21 pieces, small ones first, each row as text.
PIECES = (
    "#", "##", "###", "##/#.", "####", "###/#..", "###/.#.", "##/##", "##./.##",
    "#####", "####/#...", "####/.#..", "###./..##", "###/##.", "###/#.#", "###/.#./.#.",
    "###/#../#..", "##./.##/..#", "##./.#./.##", "##./.##/.#.", ".#./###/.#.",
)  # fmt: skip
NUM_PIECES = len(PIECES)
LETTERS = "abcdefghijklmnopqrst"
NAMES = "BYRG"  # of the players: blue, yellow, red, green
ALL_PLACED, LAST_IS_SMALLEST = 15, 5  # points, beside -1 for each square that is left

Cells = tuple[tuple[int, int], ...]  # rows and columns, in order, from 0 on


def normal(cells: list[tuple[int, int]]) -> Cells:
    """Cells that are moved to the top left, in order."""
    top, left = min(row for row, _ in cells), min(col for _, col in cells)
    return tuple(sorted((row - top, col - left) for row, col in cells))


def list_shapes() -> tuple[list[Cells], list[int]]:
    """Every piece in each of its orientations, and the piece that it is."""
    shapes: list[Cells] = []
    pieces: list[int] = []
    for piece, text in enumerate(PIECES):
        rows = text.split("/")
        cells = [(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "#"]
        found = set()
        for _ in range(4):
            cells = [(col, -row) for row, col in cells]
            found |= {normal(cells), normal([(row, -col) for row, col in cells])}
        shapes += sorted(found)
        pieces += [piece] * len(found)
    return shapes, pieces


SHAPES, _PIECE_OF = list_shapes()
NUM_SHAPES = len(SHAPES)
PIECE_OF = np.array(_PIECE_OF, np.int64)
SIZES = np.array([len(shape) for shape in SHAPES], np.int64)
HEIGHTS = np.array([1 + max(row for row, _ in shape) for shape in SHAPES], np.int64)
WIDTHS = np.array([1 + max(col for _, col in shape) for shape in SHAPES], np.int64)
CELLS = np.zeros((NUM_SHAPES, 5, 2), np.int64)  # row and column of each square of a shape
for _shape, _cells in enumerate(SHAPES):
    CELLS[_shape, : len(_cells)] = _cells
PIECE_SIZES = np.array([text.count("#") for text in PIECES], np.int64)


def blokus(duo: bool = False) -> Game:
    """Blokus for four players on 20 x 20, or Duo for two on 14 x 14; an action places a shape.

    A player who cannot place a piece is out. At the end every square that is left costs a point.
    The players with the most points share 1, the others share -1; nobody is paid if all are equal.

    Args:
        duo: two players, who begin on two squares of a smaller board instead of in corners.
    """
    size, num_players = (14, 2) if duo else (20, 4)
    last = size - 1
    # Where each player begins: in a corner, or in Duo on either of two squares.
    begins = [[(0, 0)], [(0, last)], [(last, last)], [(last, 0)]]
    if duo:
        begins = [[(4, 4), (9, 9)], [(4, 4), (9, 9)]]
    first_squares = np.zeros((num_players, size), np.int64)
    for player, squares in enumerate(begins):
        for row, col in squares:
            first_squares[player, row] |= 1 << col
    # The actions of a shape are its places, row by row.
    places_in_row = size - WIDTHS + 1
    counts = (size - HEIGHTS + 1) * places_in_row
    first_action = np.concatenate([[0], np.cumsum(counts)])
    num_actions = int(first_action[-1])
    full = (1 << size) - 1
    position = np.dtype(
        [
            ("taken", np.int32, (num_players, size)),  # squares of each player: bit `col` of a row
            ("used", np.int32, num_players),  # the pieces that each player has placed, as bits
            ("out", np.int8),  # the players who cannot place a piece any more, as bits
            ("small_last", np.int8),  # those whose last piece was the smallest one
            ("to_play", np.int8),
            # Derived, for the player to move.
            ("blocked", np.int32, size),  # taken, or beside an own square
            ("corners", np.int32, size),  # not blocked, and diagonally beside an own square
        ]
    )

    def start(state):
        find_corners(state, 0)

    def find_corners(state, player):
        """Write where a player may not put squares, and of which a piece must cover one."""
        above, own = np.int64(0), np.int64(state.taken[player, 0])
        for row in range(size):
            below = np.int64(state.taken[player, row + 1] if row < last else 0)
            anyone = 0
            for other in range(num_players):
                anyone |= state.taken[other, row]
            near = above | below
            blocked = (anyone | near | (own << 1) | (own >> 1)) & full
            corners = (near << 1) | (near >> 1)
            if state.used[player] == 0:
                corners = first_squares[player, row]
            state.blocked[row] = blocked
            state.corners[row] = corners & full & ~blocked
            above, own = own, below

    def columns(state, shape, row):
        """The columns in which a shape may be placed with its top in a row, as bits."""
        touches = 0
        for i in range(HEIGHTS[shape]):
            touches |= state.corners[row + i]
        if touches == 0:
            return np.int64(0)
        fits = (1 << places_in_row[shape]) - 1
        touches = 0
        for i in range(SIZES[shape]):
            r, c = row + CELLS[shape, i, 0], CELLS[shape, i, 1]
            fits &= ~(np.int64(state.blocked[r]) >> c)
            touches |= np.int64(state.corners[r]) >> c
        return np.int64(fits & touches)

    def legal(state, actions):
        used = state.used[state.to_play]
        count = 0
        for shape in range(NUM_SHAPES):
            if (used >> PIECE_OF[shape]) & 1 == 0:
                for row in range(size - HEIGHTS[shape] + 1):
                    places = columns(state, shape, row)
                    first = first_action[shape] + row * places_in_row[shape]
                    for i in range(popcount(places)):
                        actions[count] = first + nth_bit(places, i)
                        count += 1
        return count

    def random_action(state, rng):
        used = state.used[state.to_play]
        count, chosen = 0, np.int64(-1)
        for shape in range(NUM_SHAPES):
            if (used >> PIECE_OF[shape]) & 1 == 0:
                for row in range(size - HEIGHTS[shape] + 1):
                    places = columns(state, shape, row)
                    if places != 0:
                        num_places = popcount(places)
                        count += num_places
                        drawn = random_below(rng, count)
                        if drawn < num_places:
                            first = first_action[shape] + row * places_in_row[shape]
                            chosen = first + nth_bit(places, drawn)
        return chosen

    def can_place(state, player):
        """Whether a player can place a piece; its corners have been found."""
        for shape in range(NUM_SHAPES):
            if (state.used[player] >> PIECE_OF[shape]) & 1 == 0:
                for row in range(size - HEIGHTS[shape] + 1):
                    if columns(state, shape, row) != 0:
                        return True
        return False

    def shape_of(action):
        """The shape that an action places."""
        low, high = 0, NUM_SHAPES
        while high - low > 1:
            middle = (low + high) // 2
            if first_action[middle] <= action:
                low = middle
            else:
                high = middle
        return low

    def step(state, action, reward):
        player = np.int64(state.to_play)
        shape = shape_of(action)
        place = action - first_action[shape]
        row, col = place // places_in_row[shape], place % places_in_row[shape]
        for i in range(SIZES[shape]):
            bit = 1 << (col + CELLS[shape, i, 1])
            state.taken[player, row + CELLS[shape, i, 0]] |= bit
        state.used[player] |= 1 << PIECE_OF[shape]
        if PIECE_OF[shape] == 0:
            state.small_last |= 1 << player
        else:
            state.small_last &= ~(1 << player)
        for i in range(1, num_players + 1):
            candidate = (player + i) % num_players
            if (state.out >> candidate) & 1 == 0:
                find_corners(state, candidate)
                if can_place(state, candidate):
                    state.to_play = candidate
                    return
                state.out |= 1 << candidate
        pay(state, reward)
        state.to_play = OVER

    def points_of(state, player):
        points = 0
        for piece in range(NUM_PIECES):
            if (state.used[player] >> piece) & 1 == 0:
                points -= PIECE_SIZES[piece]
        if points == 0:
            points = ALL_PLACED + LAST_IS_SMALLEST * ((state.small_last >> player) & 1)
        return points

    def pay(state, reward):
        most, num_winners = -1000, 0
        for player in range(num_players):
            points = points_of(state, player)
            num_winners = 1 if points > most else num_winners + (points == most)
            most = max(most, points)
        if num_winners < num_players:
            for player in range(num_players):
                if points_of(state, player) == most:
                    reward[player] = 1.0 / num_winners
                else:
                    reward[player] = -1.0 / (num_players - num_winners)

    def observe(state, player, planes):
        for i in range(num_players):
            seat = (player + i) % num_players
            for row in range(size):
                for col in range(size):
                    planes[i, row, col] = (state.taken[seat, row] >> col) & 1
                    for piece in range(NUM_PIECES):
                        left = 1 - ((state.used[seat] >> piece) & 1)
                        planes[num_players + NUM_PIECES * i + piece, row, col] = left
        for row in range(size):
            for col in range(size):
                planes[num_players * (1 + NUM_PIECES), row, col] = (
                    first_squares[player, row] >> col
                ) & 1

    def mark_at(state, row, col):
        for player in range(num_players):
            if int(state.taken[player, row]) >> col & 1:
                return NAMES[player]
        return "."

    def show(state):
        text = []
        for row in range(size):
            marks = " ".join(mark_at(state, row, col) for col in range(size))
            text.append(f"{size - row:>2} {marks}")
        text.append("   " + " ".join(LETTERS[:size]))
        for player in range(num_players):
            out = ", out" if int(state.out) >> player & 1 else ""
            text.append(f"{NAMES[player]}: {points_of(state, player)} points{out}")
        return "\n".join(text)

    def show_action(state, action):
        shape = shape_of(action)
        row, col = divmod(int(action - first_action[shape]), int(places_in_row[shape]))
        return ",".join(f"{LETTERS[col + c]}{size - row - r}" for r, c in SHAPES[shape])

    def read_action(state, text):
        names = [name.strip() for name in text.lower().split(",")]
        cells = [(size - int(name[1:]), LETTERS.index(name[0])) for name in names]
        shape = SHAPES.index(normal(cells))
        row, col = min(r for r, _ in cells), min(c for _, c in cells)
        if not (0 <= row <= size - HEIGHTS[shape] and 0 <= col < places_in_row[shape]):
            raise ValueError(f"{text!r} is not on the board")
        return int(first_action[shape]) + row * int(places_in_row[shape]) + col

    return Game(
        position,
        legal,
        step,
        num_players=num_players,
        num_actions=num_actions,
        name="blokus(duo)" if duo else "blokus",
        start=start,
        random_action=random_action,
        observe=observe,
        observation_shape=(num_players * (1 + NUM_PIECES) + 1, size, size),
        payoff_range=(-1, 1),
        zero_sum=duo,
        max_plies=NUM_PIECES * num_players,
        key_fields=("taken", "used", "out", "small_last", "to_play"),
        symmetric_seats=duo,
        geometry=("grid", size, size),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )
