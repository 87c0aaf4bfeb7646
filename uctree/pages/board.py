"""A drawing of a state, read from the text that `Game.show` returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np

from uctree.game import Game

EMPTY = {".", "-", "_", "·", "+"}  # texts of an empty cell
LONGEST_MARK = 3
MOST_CELLS = 2_500  # of a drawing; larger boards are shown as text
# Finding the cell of an action takes a step and a text, which is slow on large boards.
MOST_CELLS_READ = 200_000

Cell = tuple[int, int]  # row from the top, column from the left, as shown


@dataclass(frozen=True)
class Board:
    """The marks on the cells of a board, by row and column as shown."""

    kind: str  # "grid" or "hex"
    marks: tuple[tuple[str, ...], ...]  # by row and column; "" if empty
    row_names: tuple[str, ...] = ()
    col_names: tuple[str, ...] = ()


def read_board(game: Game, state: np.record) -> Board | None:
    """The board of `state`; None if its text has another form, or if it is too large.

    The text needs a line per row with a mark per column, separated by blanks or of one character
    each. A name may stand before each row, and a line of column names above or below.
    """
    if game.geometry is None or game.geometry[1] * game.geometry[2] > MOST_CELLS:
        return None
    kind, num_rows, num_cols = game.geometry
    found = _rows(game.show(state), num_rows, num_cols)
    if found is None:
        return None
    rows, row_names, col_names = found
    if any(len(mark) > LONGEST_MARK for row in rows for mark in row):
        return None
    marks = tuple(tuple("" if mark in EMPTY else mark for mark in row) for row in rows)
    return Board(kind, marks, row_names, col_names)


_Rows = tuple[list[list[str]], tuple[str, ...], tuple[str, ...]]


def _rows(text: str, num_rows: int, num_cols: int) -> _Rows | None:
    """The marks of a text by row, and the names of rows and columns if it has any.

    >>> _rows("2 X .\\n1 . O\\n  a b", 2, 2)
    ([['X', '.'], ['.', 'O']], ('2', '1'), ('a', 'b'))
    >>> _rows("X.\\n.O", 2, 2)
    ([['X', '.'], ['.', 'O']], (), ())
    >>> _rows("nothing like it", 2, 2)
    """
    lines = [line.split() for line in text.splitlines()]
    named = [line for line in lines if len(line) == num_cols + 1]
    plain = [line for line in lines if len(line) == num_cols]
    if len(named) == num_rows:
        names = tuple(line[0] for line in named)
        return [line[1:] for line in named], names, tuple(plain[0]) if len(plain) == 1 else ()
    if len(plain) == num_rows:
        return plain, (), ()
    if len(plain) == num_rows + 1:
        for header, rest in ((plain[-1], plain[:-1]), (plain[0], plain[1:])):
            if _are_names(header):
                return rest, (), tuple(header)
    dense = [list(line[0]) for line in lines if len(line) == 1 and len(line[0]) == num_cols]
    return (dense, (), ()) if len(dense) == num_rows else None


def _are_names(words: list[str]) -> bool:
    return len(set(words)) == len(words) and all(word.isalnum() for word in words)


def cells_of(game: Game, state: np.record, actions: Iterable[int], board: Board) -> dict[int, Cell]:
    """The cell of each action: the one on which a mark appears after the action.

    If the marks of several cells change, it is the one that was empty. Actions with no cell or more
    than one are omitted, and on large boards all but the first few.
    """
    found: dict[int, Cell] = {}
    size = max(1, sum(map(len, board.marks)))
    for _, action in zip(range(max(1, MOST_CELLS_READ // size)), actions, strict=False):
        after = read_board(game, game.step(state, action)[0])
        if after is None:
            continue
        changed = [
            ((row, col), before)
            for row, (old, new) in enumerate(zip(board.marks, after.marks, strict=True))
            for col, (before, now) in enumerate(zip(old, new, strict=True))
            if now not in ("", before)
        ]
        cells = [cell for cell, before in changed if before == ""] or [cell for cell, _ in changed]
        if len(cells) == 1:
            found[action] = cells[0]
    return found


# --- drawing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spot:
    """The actions of one cell, for the drawing."""

    action: int  # the most visited of them
    share: float  # of the visits, of all of them
    label: str  # for people who cannot see the drawing
    is_chosen: bool = False
    actions: tuple[int, ...] = ()  # all of them


STEP = 40.0  # from cell to cell
MARGIN = 26.0
# Black and white would be invisible on a dark or a light page.
STONES = ("#c2410c", "#1d4ed8", "#15803d", "#a21caf", "#0e7490", "#a16207")


def spots_of(
    cells: Mapping[int, Cell],
    word: Callable[[int], str],
    share: Mapping[int, float] | None = None,
    chosen: int | None = None,
) -> dict[Cell, Spot]:
    """The spot of each cell; the shares of several actions of one cell are summed.

    Args:
        cells: the cell of each action.
        word: the text of an action.
        share: of the visits, by action; 0 if there was no search yet.
        chosen: the action that the search chose.
    """
    by_cell: dict[Cell, list[int]] = {}
    for action, cell in cells.items():
        by_cell.setdefault(cell, []).append(action)
    shares = share or dict.fromkeys(cells, 0.0)
    return {
        cell: Spot(
            max(actions, key=lambda action: (action == chosen, shares[action])),
            sum(shares[action] for action in actions),
            ", ".join(map(word, actions)),
            chosen in actions,
            tuple(actions),
        )
        for cell, actions in by_cell.items()
    }


def shading(share: float, most: float) -> tuple[float, str]:
    """The opacity of a cell's shade, and the share of the visits as text.

    >>> shading(0.25, 0.5), shading(0.0, 0.5)
    ((0.44, '25%'), (0.08, ''))
    """
    percent = f"{share:.0%}" if share >= 0.1 else f"{share:.1%}" if share >= 0.001 else ""
    return round(0.08 + 0.72 * share / (most or 1.0), 3), percent


def draw(board: Board, spots: Mapping[Cell, Spot], label: str, style: str = "") -> str:
    """The board as an SVG; cells of actions are shaded by visits and have `data-action`.

    Args:
        style: of the SVG element, for a page without a style sheet.
    """
    width, height = _extent(board)
    most = max((spot.share for spot in spots.values()), default=0.0)
    given = f'style="{escape(style)}" ' if style else ""
    order = _stone_order(board)
    parts = [_names(board)]
    chosen = ""
    for row, marks in enumerate(board.marks):
        for col, mark in enumerate(marks):
            spot = spots.get((row, col))
            drawn = _cell(board, (row, col), mark, order, spot, most)
            if spot is not None and spot.is_chosen:
                chosen = drawn  # drawn last: outlines of neighbours would cover its own
            else:
                parts.append(drawn)
    return (
        f'<svg class="board" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'{given}role="group" aria-label="{escape(label)}" '
        f'font-family="system-ui,sans-serif" text-anchor="middle">{"".join(parts)}{chosen}</svg>'
    )


def _extent(board: Board) -> tuple[float, float]:
    num_rows, num_cols = len(board.marks), len(board.marks[0])
    if board.kind == "hex":
        side = STEP / math.sqrt(3)
        width = (num_cols + (num_rows - 1) / 2) * STEP
        return width + 2 * MARGIN, (1.5 * num_rows + 0.5) * side + 2 * MARGIN
    return num_cols * STEP + 2 * MARGIN, num_rows * STEP + 2 * MARGIN


def _center(board: Board, cell: Cell) -> tuple[float, float]:
    row, col = cell
    if board.kind == "hex":
        side = STEP / math.sqrt(3)
        return MARGIN + (col + row / 2 + 0.5) * STEP, MARGIN + (1.5 * row + 1) * side
    return MARGIN + (col + 0.5) * STEP, MARGIN + (row + 0.5) * STEP


def _outline(board: Board, x: float, y: float) -> str:
    if board.kind == "hex":
        side = STEP / math.sqrt(3)
        corners = [
            (x + side * math.sin(math.radians(60 * i)), y - side * math.cos(math.radians(60 * i)))
            for i in range(6)
        ]
        return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"'
    half = STEP / 2
    return f'<rect x="{x - half:g}" y="{y - half:g}" width="{STEP:g}" height="{STEP:g}"'


def _stone_order(board: Board) -> dict[str, int]:
    """A number per mark: X and O first, whether or not they are on the board."""
    marks = {mark for row in board.marks for mark in row if mark}
    return {mark: i for i, mark in enumerate(["X", "O", *sorted(marks - {"X", "O"})])}


def _cell(
    board: Board, cell: Cell, mark: str, order: dict[str, int], spot: Spot | None, most: float
) -> str:
    x, y = _center(board, cell)
    line = 'stroke="#8884" stroke-width="1"'
    parts = [f'{_outline(board, x, y)} class="field" fill="#8881" {line}/>']
    if mark:
        color = STONES[order[mark] % len(STONES)]
        size = {1: 16, 2: 13}.get(len(mark), 10)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14.5" fill="{color}"/><text x="{x:.1f}" '
            f'y="{y:.1f}" dy=".36em" font-size="{size}" fill="#fff">{escape(mark)}</text>'
        )
    if spot is None:
        return "".join(parts)
    opacity, percent = shading(spot.share, most)
    edge = 'stroke="#b45309" stroke-width="3"' if spot.is_chosen else line
    shade = f'class="shade" fill="#f59e0b" fill-opacity="{opacity:.3f}"'
    parts.append(f"{_outline(board, x, y)} {shade} {edge}/>")
    parts.append(
        f'<text class="percent" x="{x:.1f}" y="{y:.1f}" dy=".36em" font-size="11" '
        f'fill="currentColor">{percent}</text>'
    )
    label = escape(spot.label)
    return (
        f'<g class="spot" data-action="{spot.action}" role="button" aria-label="{label}">'
        f"<title>{label}</title>{''.join(parts)}</g>"
    )


def _names(board: Board) -> str:
    """The names of the columns above the board, and of the rows to its left."""
    words = []
    for col, name in enumerate(board.col_names):
        x, _ = _center(board, (0, col))
        words.append((x, MARGIN / 2, name))
    for row, name in enumerate(board.row_names):
        x, y = _center(board, (row, 0))
        words.append((x - STEP / 2 - MARGIN / 2, y, name))
    return "".join(
        f'<text class="name" x="{x:.1f}" y="{y:.1f}" dy=".36em" font-size="12" '
        f'fill="currentColor" opacity=".65">{escape(name)}</text>'
        for x, y, name in words
    )
