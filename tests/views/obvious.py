"""Where a window belongs, found by trying all centres: the slow, obvious way."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.views.test_frames import all_centers, listed
from uctree.games.n_in_a_row import longest_run
from uctree.views import Frame


def best_center(
    board: np.ndarray, to_play: int, frame: Frame, length: int, num_players: int, focus: bool
) -> tuple[int, int]:
    """The centre of the window of n in a row."""
    center = plain_center(board, frame)
    if to_play < 0:
        return center
    empty = [tuple(map(int, place)) for place in np.argwhere(board == 0)]
    for turn in range(num_players if focus else 0):
        player = (to_play + turn) % num_players
        wins = [place for place in empty if would_win(board, player, place, length)]
        if wins:
            return nearest(frame, center, wins)
    return nearest(frame, center, empty)


def plain_center(board: np.ndarray, frame: Frame) -> tuple[int, int]:
    """The centre that is nearest to the middle of the box around all stones."""
    stones = np.argwhere(board != 0)
    middle = np.array([frame.rows // 2, frame.cols // 2])
    if len(stones):
        middle = (stones.min(axis=0) + stones.max(axis=0)) // 2
    return min(all_centers(frame), key=lambda center: np.abs(center - middle).sum())


def nearest(frame: Frame, center: tuple[int, int], cells: list[Any]) -> tuple[int, int]:
    """The centre nearest to `center` whose window contains one of these cells."""
    fitting = [each for each in all_centers(frame) if set(listed(frame, each)) & set(cells)]
    return min(fitting, key=lambda c: ((c[0] - center[0]) ** 2 + (c[1] - center[1]) ** 2, *c))


def would_win(board: np.ndarray, player: int, place: tuple[int, int], length: int) -> bool:
    after = board.copy()
    after[place] = player + 1
    return longest_run(after, *place) >= length


def planes(
    board: np.ndarray, player: int, frame: Frame, center: tuple[int, int], num_players: int
) -> np.ndarray:
    """The observation: stones of each player and empty cells, in the window and as means."""
    codes = [(player + seat) % num_players + 1 for seat in range(num_players)] + [0]
    found = np.zeros((2 * len(codes), frame.size**2))
    for plane, code in enumerate(codes):
        for action, place in enumerate(listed(frame, center)):
            found[plane, action] = place is not None and board[place] == code
        found[len(codes) + plane] = frame.thumbnail(board == code).ravel()
    return found.reshape(-1, frame.size, frame.size)
