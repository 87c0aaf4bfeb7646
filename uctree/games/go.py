"""Go: surround points and stones; area scoring, simple ko, no suicide, a repeated board draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.game import OVER, Game, board_symmetries, make_rng, random_below, random_bits

EMPTY, BORDER = 0, 3  # of a point; a stone is player + 1
COLUMNS = "ABCDEFGHJKLMNOPQRST"  # go skips the letter I
MIX = 0x2545F4914F6CDD1D


def go(size: int = 9, komi: float = 7.5, playouts: str = "uniform") -> Game:
    """Go on boards from 2 x 2 to 19 x 19; action `row * size + col` from A1, the last one passes.

    Two passes in a row or `2 * size * size` plies end the game: the player with more area, `komi`
    added for white, gets 1 and the other -1. A stone that repeats an earlier board ends it too, as
    a draw. Simple ko and suicide are illegal.

    Args:
        playouts: "uniform", any legal action is as likely as any other; "heuristic", playouts know
            captures, shapes and eyes, and pass only if no sensible point is left.
    """
    if playouts not in ("uniform", "heuristic"):
        hint = ', which is now called "heuristic"' if playouts == "wise" else ""
        raise ValueError(f'playouts must be "uniform" or "heuristic"; got {playouts!r}{hint}')
    if not 2 <= size <= 19:
        raise ValueError(f"size must be from 2 to 19; got {size}")
    if not math.isfinite(komi):
        raise ValueError(f"komi must be a finite number; got {komi}")
    cells = size * size
    border = cells  # the one point around the board, and as an action the pass
    max_plies = 2 * cells
    neighbours = neighbour_table(size)
    stone_hash = hash_table(cells)
    filter_bits = 1 << (16 * max_plies).bit_length()
    position = np.dtype(
        [
            ("board", np.int8, cells + 1),  # EMPTY, player + 1, and at the end BORDER
            ("to_play", np.int8),
            ("passes", np.int8),  # in a row
            ("ply", np.int16),
            ("ko", np.int16),  # the point that ko forbids; `border` for none
            ("past", np.int64),  # a hash of the set of boards so far
            ("last", np.int16),  # where the last stone was put; `border` after a pass
            # The rest is derived from the moves, for speed. Stones that touch are a
            # chain, and an empty point is a chain of its own. A chain is identified by its head.
            ("head", np.uint16, cells + 1),
            ("next", np.uint16, cells + 1),  # the stones of a chain in a circle
            ("length", np.int16, cells + 1),  # of the chain with this head
            # Pairs of a point of the chain with this head and an empty point beside it.
            ("liberties", np.int16, cells + 1),
            ("empty", np.uint16, cells),  # the first `num_empty` are the empty points
            ("where", np.uint16, cells),  # the index of an empty point in `empty`
            ("num_empty", np.int16),
            ("hash", np.int64),  # of the board, and those of all boards so far
            ("history", np.int64, max_plies),
            ("num_boards", np.int16),
            ("filter", np.uint32, filter_bits // 32),  # a board whose bit is not set here is new
            ("area", np.int8, cells + 1),  # at the end: 1 black, 2 white, 3 both
        ]
    )

    def start(state):
        state.ko = state.last = border
        state.num_empty = cells
        for cell in range(cells + 1):
            state.head[cell] = cell
        for cell in range(cells):
            state.empty[cell] = cell
            state.where[cell] = cell
            for i in range(4):
                state.liberties[cell] += neighbours[cell, i] != border
        state.board[border] = BORDER
        state.liberties[border] = 1000  # so that it is never captured

    def legal(state, actions):
        count = 0
        for i in range(state.num_empty):
            cell = state.empty[i]
            actions[count] = cell
            count += may_place(state, cell)
        actions[count] = border
        return count + 1

    def may_place(state, cell):
        """Whether the player to move may put a stone on an empty point."""
        board, head, liberties = state.board, state.head, state.liberties
        if liberties[cell] > 0:
            return cell != state.ko
        stone = state.to_play + 1
        breathes = False
        for i in range(4):
            near = neighbours[cell, i]
            chain = head[near]
            pairs = 0
            for j in range(4):
                pairs += head[neighbours[cell, j]] == chain
            # If the point is the last liberty of a chain, a chain of the opponent is captured;
            # if not, an own chain has another one.
            breathes |= (board[near] == stone) != (liberties[chain] == pairs)
        return breathes and cell != state.ko

    def random_action(state, rng):
        while True:
            drawn = random_below(rng, state.num_empty + 1)
            if drawn == state.num_empty:
                return border
            cell = state.empty[drawn]
            if may_place(state, cell):
                return np.int64(cell)

    def step(state, action, reward):
        player = state.to_play
        state.ply += 1
        state.last = action
        repeated = False
        if action == border:
            state.passes += 1
            state.ko = border
        else:
            state.passes = 0
            place(state, action, player + 1)
            repeated = was_repeated(state)
        if repeated:
            state.to_play = OVER
        elif state.passes == 2 or state.ply == max_plies:
            lead = count_area(state) - komi
            if lead != 0.0:
                reward[0] = 1.0 if lead > 0.0 else -1.0
                reward[1] = -reward[0]
            state.to_play = OVER
        else:
            state.to_play = 1 - player

    def place(state, cell, stone):
        """Put a stone on a point, join the chains beside it and capture those without liberties."""
        board, head, liberties = state.board, state.head, state.liberties
        in_eye = liberties[cell] == 0  # and no own stone beside it
        board[cell] = stone
        state.next[cell] = cell
        state.length[cell] = 1
        state.hash ^= stone_hash[stone - 1, cell]
        # The last empty point moves to the index of the one that is filled.
        state.num_empty -= 1
        last = state.empty[state.num_empty]
        state.empty[state.where[cell]] = last
        state.where[last] = state.where[cell]
        for i in range(4):
            liberties[head[neighbours[cell, i]]] -= 1
        num_captured = 0
        captured = border
        for i in range(4):
            near = neighbours[cell, i]
            if board[near] == stone:
                in_eye = False
                if head[near] != head[cell]:
                    join(state, head[near], head[cell])
            elif board[near] == 3 - stone and liberties[head[near]] == 0:
                num_captured += capture(state, near, 3 - stone)
                captured = near
        state.ko = captured if in_eye and num_captured == 1 else border

    def join(state, one, other):
        """Make one chain of two, given by their heads; the longer one keeps its head."""
        if state.length[one] < state.length[other]:
            one, other = other, one
        state.length[one] += state.length[other]
        state.liberties[one] += state.liberties[other]
        cell = other
        while True:
            state.head[cell] = one
            following = state.next[cell]
            if following == other:
                break
            cell = following
        state.next[cell] = state.next[one]
        state.next[one] = other

    def capture(state, first, stone):
        """The number of stones of a chain, which is taken off the board."""
        count = 0
        cell = first
        while True:
            state.board[cell] = EMPTY
            state.head[cell] = cell
            state.liberties[cell] = 0
            state.hash ^= stone_hash[stone - 1, cell]
            state.empty[state.num_empty] = cell
            state.where[cell] = state.num_empty
            state.num_empty += 1
            count += 1
            cell = state.next[cell]
            if cell == first:
                break
        while True:
            for i in range(4):
                state.liberties[state.head[neighbours[cell, i]]] += 1
            cell = state.next[cell]
            if cell == first:
                break
        return count

    def was_repeated(state):
        """Whether the board occurred before; it is added to the history."""
        board_hash = state.hash
        mixed = np.int64(board_hash ^ (board_hash >> 29)) * MIX
        state.past ^= mixed ^ (mixed >> 32)
        word = (board_hash >> 5) & (filter_bits // 32 - 1)
        bit = 1 << (board_hash & 31)
        found = False
        if state.filter[word] & bit != 0:
            for i in range(state.num_boards):
                found |= state.history[i] == board_hash
        state.filter[word] |= bit
        state.history[state.num_boards] = board_hash
        state.num_boards += 1
        return found

    def count_area(state):
        """Black's area minus white's: stones, and empty points that reach one colour only."""
        board, area = state.board, state.area
        for cell in range(cells):
            area[cell] = board[cell]
        changed = True
        while changed:
            changed = False
            for i in range(state.num_empty):
                cell = state.empty[i]
                reached = area[cell]
                for j in range(4):
                    reached |= area[neighbours[cell, j]]
                changed |= reached != area[cell]
                area[cell] = reached
        lead = 0
        for cell in range(cells):
            lead += area[cell] == 1
            lead -= area[cell] == 2
        return lead

    def observe(state, player, planes):
        for cell in range(cells):
            row, col = cell // size, cell % size
            planes[0, row, col] = state.board[cell] == player + 1
            planes[1, row, col] = state.board[cell] == 2 - player
            planes[2, row, col] = cell == state.ko
            planes[3, row, col] = state.passes == 1
            planes[4, row, col] = player

    def show(state):
        margin = len(str(size))
        text = []
        for row in reversed(range(size)):
            stones = " ".join(".XO"[state.board[row * size + col]] for col in range(size))
            text.append(f"{row + 1:>{margin}} {stones}")
        text.append(" " * margin + " " + " ".join(COLUMNS[:size]))
        return "\n".join(text)

    def show_action(state, action):
        return "pass" if action == border else f"{COLUMNS[action % size]}{action // size + 1}"

    def read_action(state, text):
        if text.lower() == "pass":
            return border
        col, row = COLUMNS[:size].index(text[0].upper()), int(text[1:]) - 1
        if not 0 <= row < size:
            raise ValueError(f"rows are from 1 to {size}; got {row + 1}")
        return row * size + col

    heuristic_action, priors = knowledge(size, may_place)
    is_heuristic = playouts == "heuristic"
    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=cells + 1,
        name=f"go({size}x{size}, komi {komi:g}{', heuristic' if is_heuristic else ''})",
        start=start,
        random_action=heuristic_action if is_heuristic else random_action,
        priors=priors,
        observe=observe,
        observation_shape=(5, size, size),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=max_plies,
        key_fields=("board", "to_play", "passes", "ply", "ko", "past"),
        symmetries=board_symmetries(size, size, num_extra=1),
        geometry=("grid", size, size),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


# --- heuristics -----------------------------------------------------------------------------------


def knowledge(size: int, may_place: Callable[..., bool]) -> tuple[Callable[..., Any], ...]:
    """A playout rule that knows some go, and priors from the same knowledge.

    The ideas and the shapes are those of MoGo (Gelly, Wang, Munos and Teytaud 2006).
    """
    cells = size * size
    border = cells
    neighbours = neighbour_table(size)
    around = around_table(size)
    distances = distance_table(size)
    lines = line_table(size)
    shapes = shape_table()

    def heuristic_action(state, rng):
        action = border
        if state.last != border:
            action = urgent_action(state, rng)
            if action == border:
                action = shapely_action(state, rng)
        if action == border:
            action = sensible_action(state, rng)
        return np.int64(action)

    def urgent_action(state, rng):
        """Capture or rescue a chain at the last stone; `border` if there is no such chain."""
        stone = state.to_play + 1
        chosen, count = border, 0
        liberty = last_liberty(state, state.last)
        if liberty != border and may_place(state, liberty):
            chosen, count = liberty, 1
        for i in range(4):
            near = neighbours[state.last, i]
            if state.board[near] != stone:
                continue
            liberty = last_liberty(state, near)
            if liberty == border:
                continue
            counter = counter_capture(state, near, stone)
            if counter != border and may_place(state, counter):
                count += 1
                chosen = counter if random_below(rng, count) == 0 else chosen
            if count_liberties(state, liberty, stone) >= 2 and may_place(state, liberty):
                count += 1
                chosen = liberty if random_below(rng, count) == 0 else chosen
        return chosen

    def shapely_action(state, rng):
        """A point beside the last stone where a stone makes a good shape; `border` for none."""
        stone = state.to_play + 1
        chosen, count = border, 0
        for i in range(8):
            cell = around[state.last, i]
            if state.board[cell] == EMPTY and is_shapely(state, cell):
                if may_place(state, cell) and count_liberties(state, cell, stone) >= 2:
                    count += 1
                    chosen = cell if random_below(rng, count) == 0 else chosen
        return chosen

    def sensible_action(state, rng):
        """A random point but no own eye; only half as often one where the stone is in atari."""
        if state.num_empty == 0:
            return border
        stone = state.to_play + 1
        at = random_below(rng, state.num_empty)
        for _ in range(state.num_empty):
            cell = state.empty[at]
            at = at + 1 if at + 1 < state.num_empty else 0
            if may_place(state, cell) and not is_eye(state, cell, stone):
                if count_liberties(state, cell, stone) >= 2 or random_below(rng, 2) == 0:
                    return cell
        return border

    def last_liberty(state, stone_cell):
        """The only liberty of the chain of a stone; `border` if it has several."""
        # With five pairs there is a second point: a point has four neighbours.
        if state.liberties[state.head[stone_cell]] > 4:
            return border
        found = border
        cell = stone_cell
        while True:
            for i in range(4):
                near = neighbours[cell, i]
                if state.board[near] == EMPTY and near != found:
                    if found != border:
                        return border
                    found = near
            cell = state.next[cell]
            if cell == stone_cell:
                return found

    def counter_capture(state, stone_cell, stone):
        """A point that captures an enemy chain beside the chain of a stone; `border` for none."""
        cell = stone_cell
        while True:
            for i in range(4):
                near = neighbours[cell, i]
                if state.board[near] == 3 - stone:
                    liberty = last_liberty(state, near)
                    if liberty != border:
                        return liberty
            cell = state.next[cell]
            if cell == stone_cell:
                return border

    def count_liberties(state, cell, stone):
        """The liberties that a stone on an empty point would have: 0, 1, or 2 for more."""
        if state.liberties[cell] >= 2:
            return 2
        found = border
        for i in range(4):
            near = neighbours[cell, i]
            point = state.board[near]
            if point == EMPTY:
                if found != border:
                    return 2
                found = near
            elif point == stone:
                first = near
                while True:
                    for j in range(4):
                        beside = neighbours[near, j]
                        if state.board[beside] == EMPTY and beside != cell and beside != found:
                            if found != border:
                                return 2
                            found = beside
                    near = state.next[near]
                    if near == first:
                        break
            elif point == 3 - stone and last_liberty(state, near) == cell:
                # Capturing several stones counts as 2, though it may free only one liberty.
                if found != border or state.length[state.head[near]] > 1:
                    return 2
                found = near
        return 0 if found == border else 1

    def is_eye(state, cell, stone):
        """Whether an empty point is an eye: own stones around it that cannot be cut off."""
        for i in range(4):
            point = state.board[neighbours[cell, i]]
            if point != stone and point != BORDER:
                return False
        hostile, at_edge = 0, 0
        for i in range(4, 8):
            point = state.board[around[cell, i]]
            hostile += point == 3 - stone
            at_edge |= point == BORDER
        return hostile + at_edge < 2

    def is_shapely(state, cell):
        """Whether a stone on an empty point makes a good shape with the points around it."""
        code = np.int64(0)
        for i in range(8):
            code |= np.int64(state.board[around[cell, i]]) << (2 * i)
        return (shapes[code >> 5] >> (code & 31)) & 1 != 0

    def priors(state, logits):
        for i in range(state.num_empty):
            cell = np.int64(state.empty[i])
            logits[cell] = log_prior(state, cell, state.to_play + 1)
        logits[border] = PASS

    def log_prior(state, cell, stone):
        """The log-prior of a stone on an empty point."""
        if is_eye(state, cell, stone):
            return OWN_EYE
        logit = LONELY[lines[cell]] if is_lonely(state, cell) else 0.0
        for i in range(4):
            near = neighbours[cell, i]
            if is_stone(state, near) and last_liberty(state, near) == cell:
                logit += ATARI if state.length[state.head[near]] == 1 else ATARI_OF_MANY
        if count_liberties(state, cell, stone) < 2:
            logit += SELF_ATARI
        if is_shapely(state, cell):
            logit += SHAPE
        if state.last != border:
            logit += NEAR[distances[cell, state.last]]
        return logit

    def is_lonely(state, cell):
        """Whether no stone is on the eight points around a point."""
        for i in range(8):  # noqa: SIM110
            if is_stone(state, around[cell, i]):
                return False
        return True

    def is_stone(state, cell):
        return state.board[cell] != EMPTY and state.board[cell] != BORDER

    return heuristic_action, priors


# Log-priors, set by hand. A chain in atari has one liberty, where it is captured or escapes.
PASS, OWN_EYE, SELF_ATARI, SHAPE, ATARI, ATARI_OF_MANY = -4.0, -6.0, -2.0, 1.0, 1.5, 2.5
LONELY = np.array([-2.0, -1.0] + 8 * [0.0])  # by line, the edge of the board first
NEAR = np.array([0.0, 0.0, 1.5, 1.2, 0.8, 0.6, 0.4, 0.2] + 47 * [0.0])  # distance to the last

# Shapes around a point: X and O are stones of the two players, x and o anything but that stone,
# ? anything, # the border.
SHAPES = """
XOX  XO.  XO?  .O.  XO?  XO?  ?X?  OX?  X.?  OX?  ?X?  ?XO  ?OX
...  ...  X..  X..  O.o  O.X  O.O  o.O  O.?  X.O  x.O  x.x  X.O
???  ?.?  x.?  ...  ?o?  ???  ooo  ???  ###  ###  ###  ###  ###
"""


def shape_table() -> np.ndarray:
    """A bit for each content of the eight points around a point, set for a shape, uint32."""
    rows = [line.split() for line in SHAPES.split("\n") if line]
    bits = np.zeros(4**8, bool)
    for shape in zip(*rows, strict=True):
        grid = np.array([list(row) for row in shape])
        for turns in range(4):
            for turned in (np.rot90(grid, turns), np.rot90(grid, turns).T):
                points = "".join(turned[row, col] for row, col in AROUND)
                for colours in ("XOxo", "OXox"):
                    codes = [0]
                    for i, point in enumerate(points.translate(str.maketrans("XOxo", colours))):
                        codes = [code | seen << 2 * i for code in codes for seen in SEEN[point]]
                    bits[codes] = True
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


SEEN = {
    ".": (EMPTY,), "X": (1,), "O": (2,), "#": (BORDER,), "?": (0, 1, 2, 3), "x": (0, 2, 3),
    "o": (0, 1, 3),
}  # fmt: skip
AROUND = ((0, 1), (1, 0), (1, 2), (2, 1), (0, 0), (0, 2), (2, 0), (2, 2))


def around_table(size: int) -> np.ndarray:
    """The eight points around each point, direct neighbours first, then itself, [cell, 9]."""
    border = size * size
    cells = np.pad(np.arange(border).reshape(size, size), 1, constant_values=border)
    places = [cells[row : row + size, col : col + size].ravel() for row, col in (*AROUND, (1, 1))]
    return np.stack(places, axis=1).astype(np.uint16)


def distance_table(size: int) -> np.ndarray:
    """Distances between points, [cell, cell]: rows + columns + the larger of both."""
    row, col = np.divmod(np.arange(size * size), size)
    rows, cols = abs(row[:, None] - row), abs(col[:, None] - col)
    return (rows + cols + np.maximum(rows, cols)).astype(np.uint8)


def line_table(size: int) -> np.ndarray:
    """The distance of each point from the edge of the board, 0 at the edge."""
    row, col = np.divmod(np.arange(size * size), size)
    return np.minimum.reduce([row, col, size - 1 - row, size - 1 - col]).astype(np.uint8)


def neighbour_table(size: int) -> np.ndarray:
    """The four points beside each point, [cell, 4]; `size * size` beyond the board."""
    border = size * size
    cells = np.pad(np.arange(border).reshape(size, size), 1, constant_values=border)
    beside = (cells[:-2, 1:-1], cells[1:-1, :-2], cells[1:-1, 2:], cells[2:, 1:-1])
    return np.stack([points.ravel() for points in beside], axis=1).astype(np.uint16)


def hash_table(cells: int) -> np.ndarray:
    """A random number per player and point, [player, cell], int64 (Zobrist 1970)."""
    rng = make_rng(1970)
    with np.errstate(over="ignore"):
        bits = [random_bits(rng) for _ in range(2 * cells)]
    return np.array(bits, np.uint64).view(np.int64).reshape(2, cells)
