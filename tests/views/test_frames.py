"""Windows on boards: centres, cells and thumbnails, against lists of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.views import NOWHERE, Frame, rank
from uctree.views.frames import cell_at, index_of

pytestmark = pytest.mark.quick

FRAMES = [Frame(7, 7, 3), Frame(6, 9, 5), Frame(4, 9, 7), Frame(3, 3, 5), Frame(5, 5, 5),
          Frame(2, 1, 1)]  # fmt: skip


def listed(frame: Frame, center: tuple[int, int]) -> list[tuple[int, int] | None]:
    """The cells of a window one by one; None for padding."""
    half = frame.size // 2
    places = [
        (center[0] + i, center[1] + j)
        for i in range(-half, half + 1) for j in range(-half, half + 1)
    ]  # fmt: skip
    return [p if 0 <= p[0] < frame.rows and 0 <= p[1] < frame.cols else None for p in places]


def all_centers(frame: Frame) -> list[tuple[int, int]]:
    """The centres whose windows lie on the board, or begin at its first cell."""
    half = frame.size // 2
    rows, cols = (
        range(half, length - half) if length >= frame.size else [half]
        for length in (frame.rows, frame.cols)
    )
    return [(row, col) for row in rows for col in cols]


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_actions_and_cells_of_a_window_are_each_others_inverse(frame):
    for center in all_centers(frame):
        places = listed(frame, center)
        assert [frame.cell(action, center) for action in range(frame.size**2)] == places
        for row in range(-1, frame.rows + 1):
            for col in range(-1, frame.cols + 1):
                is_inside = (row, col) in places
                expected = places.index((row, col)) if is_inside else None
                assert frame.index((row, col), center) == expected


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_an_action_keeps_its_cell_in_another_window(frame):
    centers = all_centers(frame)
    for center in centers:
        for target in centers:
            for action, place in enumerate(listed(frame, center)):
                there = listed(frame, target)
                expected = there.index(place) if place is not None and place in there else None
                assert frame.reframed(action, center, target) == expected


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_the_centre_is_the_nearest_to_the_middle_that_is_on_the_board(frame):
    rng = np.random.default_rng(0)
    for _ in range(50):
        count = int(rng.integers(1, 6))
        stones = [(int(rng.integers(frame.rows)), int(rng.integers(frame.cols)))
                  for _ in range(count)]  # fmt: skip
        rows, cols = zip(*stones, strict=True)
        middle = (min(rows) + max(rows)) // 2, (min(cols) + max(cols)) // 2
        assert frame.middle(stones) == middle
        near = min(all_centers(frame), key=lambda c: abs(c[0] - middle[0]) + abs(c[1] - middle[1]))
        assert frame.center(stones) == near
    assert frame.middle([]) == (frame.rows // 2, frame.cols // 2)


def test_the_rank_of_a_cell_orders_by_how_far_the_window_has_to_move():
    frame = Frame(9, 8, 3)
    for center in all_centers(frame):
        for cell in range(72):
            moves = [
                ((row - center[0]) ** 2 + (col - center[1]) ** 2, row, col)
                for row, col in all_centers(frame)
                if divmod(cell, 8) in listed(frame, (row, col))
            ]
            distance, row, col = min(moves)
            assert rank(cell, *center, 9, 8, 3) == (distance * 9 + row) * 8 + col


def test_the_plain_functions_say_nowhere_where_the_frame_says_none():
    assert cell_at(0, 0, 0, 5, 5, 3) == NOWHERE
    assert index_of(24, 1, 1, 5, 3) == NOWHERE


def test_a_thumbnail_holds_the_mean_of_every_cell_once():
    rng = np.random.default_rng(1)
    for rows, cols, size in ((100, 100, 21), (15, 11, 5), (6, 6, 5)):
        plane = rng.random((rows, cols))
        frame = Frame(rows, cols, size)
        small, (tops, lefts) = frame.thumbnail(plane), frame.edges()
        areas = np.outer(np.diff(tops), np.diff(lefts))
        assert (small * areas).sum() == pytest.approx(plane.sum())
        i = size // 2
        part = plane[i * rows // size : (i + 1) * rows // size, : cols // size]
        assert small[i, 0] == pytest.approx(part.mean())


def test_a_board_smaller_than_its_thumbnail_is_copied():
    plane = np.arange(6.0).reshape(2, 3)
    small = Frame(2, 3, 5).thumbnail(plane)
    assert (small[:2, :3] == plane).all()
    assert small.sum() == plane.sum()


@pytest.mark.parametrize("size", [0, 4, -1])
def test_a_window_without_a_middle_is_refused(size):
    with pytest.raises(ValueError, match="odd number of at least 1"):
        Frame(9, 9, size)
