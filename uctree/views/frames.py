"""Where a window is on a board, and which of its cells is which cell of the board.

A window has `size` rows and columns, an odd number, and a centre. Its cell `size * i + j` is cell
`(row - half + i, col - half + j)` of the board. On a board with fewer rows than the window, the
window begins at row 0, and the rest of it is padding; the same for columns.

The functions take and return plain numbers, so that rules can call them; `Frame` is for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

NOWHERE = -1  # the action of a cell outside the window, and the cell of padding

Place = tuple[int, int]  # a row and a column


def clamped(middle: int, length: int, size: int) -> int:
    """The coordinate nearest to `middle` that the centre can have on a board of this length.

    >>> clamped(3, 100, 21), clamped(97, 100, 21), clamped(7, 15, 21)
    (10, 89, 10)
    """
    half = (size - 1) // 2
    if length < size:
        return half
    return min(max(middle, half), length - 1 - half)


def containing(center: int, place: int, length: int, size: int) -> int:
    """The coordinate of the centre nearest to `center` whose window contains `place`.

    >>> containing(50, 70, 100, 21), containing(50, 55, 100, 21), containing(50, 99, 100, 21)
    (60, 50, 89)
    """
    half = (size - 1) // 2
    return clamped(min(max(center, place - half), place + half), length, size)


def rank(cell: int, row: int, col: int, rows: int, cols: int, size: int) -> int:
    """A number that is least for the cell which the window at this centre moves least to contain.

    Of equal distances the smaller row of the new centre counts, then its smaller column.

    >>> rank(7, 5, 5, 11, 11, 3) < rank(8, 5, 5, 11, 11, 3)  # one row above, columns 7 and 8
    True
    """
    new_row = containing(row, cell // cols, rows, size)
    new_col = containing(col, cell % cols, cols, size)
    distance = (new_row - row) ** 2 + (new_col - col) ** 2
    return (distance * rows + new_row) * cols + new_col


def cell_at(action: int, row: int, col: int, rows: int, cols: int, size: int) -> int:
    """The cell of the board at an action of the window with this centre; NOWHERE for padding."""
    half = (size - 1) // 2
    r, c = row - half + action // size, col - half + action % size
    return r * cols + c if 0 <= r < rows and 0 <= c < cols else NOWHERE


def index_of(cell: int, row: int, col: int, cols: int, size: int) -> int:
    """The action of the window at this centre on a cell of the board; NOWHERE if it is outside."""
    half = (size - 1) // 2
    i, j = cell // cols - row + half, cell % cols - col + half
    return i * size + j if 0 <= i < size and 0 <= j < size else NOWHERE


def bin_edge(index: int, length: int, size: int) -> int:
    """The first row of bin `index` of a thumbnail; a small board is copied, not stretched.

    >>> [bin_edge(i, 100, 21) for i in (0, 1, 2, 21)], [bin_edge(i, 3, 5) for i in range(6)]
    ([0, 4, 9, 100], [0, 1, 2, 3, 3, 3])
    """
    return min(index, length) if length < size else index * length // size


@dataclass(frozen=True)
class Frame:
    """Windows of `size` x `size` cells on a board of `rows` x `cols`.

    >>> frame = Frame(100, 100, 21)
    >>> frame.center([(5, 60)]), frame.cell(105, (10, 60)), frame.index((39, 60), (50, 50))
    ((10, 60), (5, 50), None)
    """

    rows: int
    cols: int
    size: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.size % 2 == 0:
            raise ValueError(
                f"the size of a window is an odd number of at least 1, so that it has a middle; "
                f"got {self.size}"
            )

    def middle(self, stones: Iterable[Place]) -> Place:
        """The middle of the box around all stones, rounded down; that of the board without any."""
        places = list(stones)
        if not places:
            return self.rows // 2, self.cols // 2
        found_rows, found_cols = zip(*places, strict=True)
        return (
            (min(found_rows) + max(found_rows)) // 2,
            (min(found_cols) + max(found_cols)) // 2,
        )

    def clamped(self, place: Place) -> Place:
        """The centre nearest to a place whose window lies on the board."""
        return clamped(place[0], self.rows, self.size), clamped(place[1], self.cols, self.size)

    def center(self, stones: Iterable[Place]) -> Place:
        """The centre of the window around these stones."""
        return self.clamped(self.middle(stones))

    def cell(self, action: int, center: Place) -> Place | None:
        """The row and column of an action of the window; None for padding."""
        found = cell_at(action, *center, self.rows, self.cols, self.size)
        return None if found == NOWHERE else divmod(found, self.cols)

    def index(self, place: Place, center: Place) -> int | None:
        """The action of the window on a cell; None if the cell is outside the window."""
        row, col = place
        if not (0 <= row < self.rows and 0 <= col < self.cols):
            return None
        found = index_of(row * self.cols + col, *center, self.cols, self.size)
        return None if found == NOWHERE else found

    def reframed(self, action: int, center: Place, target: Place) -> int | None:
        """The action on the same cell in the window around `target`; None if it is outside."""
        place = self.cell(action, center)
        return None if place is None else self.index(place, target)

    def edges(self) -> tuple[list[int], list[int]]:
        """The first rows of the bins of a thumbnail, and their first columns; then the ends."""
        return (
            [bin_edge(i, self.rows, self.size) for i in range(self.size + 1)],
            [bin_edge(i, self.cols, self.size) for i in range(self.size + 1)],
        )

    def thumbnail(self, plane: np.ndarray) -> np.ndarray:
        """The mean of a plane [rows, cols] over each bin, [size, size]; 0 for empty bins."""
        rows, cols = self.edges()
        small = np.zeros((self.size, self.size))
        for i, (top, bottom) in enumerate(pairwise(rows)):
            for j, (left, right) in enumerate(pairwise(cols)):
                if top < bottom and left < right:
                    small[i, j] = plane[top:bottom, left:right].mean()
        return small
