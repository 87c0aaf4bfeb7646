"""The rules of a game with a window, which close over the rules of the game without one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.errors import BrokenGame
from uctree.game import Game
from uctree.views.frames import (
    NOWHERE,
    Frame,
    bin_edge,
    cell_at,
    clamped,
    containing,
    index_of,
    rank,
)

# Why the window is not around all stones (the field `view_focus`): the player to move can win in
# it, or has to stop another one.
AROUND_ALL, TO_WIN, TO_STOP = 0, 1, 2
OUTSIDE = -12.0  # the log-prior of an action outside the window, for searches of the whole game
FARTHEST = 1 << 62  # above every `rank`

Hook = Callable[..., Any]


class Rules:
    """The rules of both games, which close over those of the game without a window."""

    def __init__(
        self, game: Game, frame: Frame, stone: Hook | None, is_legal: Hook | None,
        threat: Hook | None,
    ) -> None:  # fmt: skip
        num_cells = frame.rows * frame.cols
        added: list[Any] = [("view_row", np.int16), ("view_col", np.int16), ("view_focus", np.int8)]
        if is_legal is None:
            added += [
                ("view_actions", np.int32, game.num_actions),  # scratch: the legal ones, listed
                ("view_legal", np.int8, game.num_actions),
            ]
        fields: Any = game.dtype.fields
        self.dtype = np.dtype([(name, fields[name][0]) for name in game.dtype.names or ()] + added)
        self.stone = stone = _taking_data(_board_of(game, num_cells) if stone is None else stone, 3)
        self.legal, legal_in = _make_legal(game, frame, is_legal)
        self.center = _make_center(game, frame, stone, legal_in, threat, is_legal is None)
        self.step, self.step_anywhere, self.start = _make_steps(game, frame, self.center)
        self.observe = _make_observe(game, frame, stone)
        self.priors = _make_priors(game, frame)


def _make_legal(game: Game, frame: Frame, is_legal: Hook | None) -> tuple[Hook, Hook]:
    """The rule `legal` of the window, and whether an action of the whole game is legal."""
    rows, cols, size = frame.rows, frame.cols, frame.size
    num_cells, num_local = rows * cols, size * size
    num_extra = game.num_actions - num_cells

    def listed(state, action):
        return state.view_legal[action] != 0

    legal_in = _taking_data(listed if is_legal is None else is_legal, 2)

    def legal(state, actions, data):
        count = 0
        for action in range(num_local):
            cell = cell_at(action, state.view_row, state.view_col, rows, cols, size)
            if cell != NOWHERE and legal_in(state, cell, data):
                actions[count] = action
                count += 1
        for extra in range(num_extra):
            if legal_in(state, num_cells + extra, data):
                actions[count] = num_local + extra
                count += 1
        return count

    return legal, legal_in


def _make_center(
    game: Game, frame: Frame, stone: Hook, legal_in: Hook, threat: Hook | None, lists_legal: bool
) -> Hook:
    """The rule that moves the window of a state to where it belongs."""
    rows, cols, size, half = frame.rows, frame.cols, frame.size, (frame.size - 1) // 2
    num_players, num_cells, num_actions = game.num_players, rows * cols, game.num_actions
    list_all = _taking_data(game.rules.legal, 2)
    threat_of = _taking_data(_no_threat if threat is None else threat, 4)

    def center(state, data):
        low_row, high_row, low_col, high_col = rows, -1, cols, -1
        for row in range(rows):
            for col in range(cols):
                if stone(state, row, col, data) != 0:
                    low_row, high_row = min(low_row, row), row
                    low_col, high_col = min(low_col, col), max(high_col, col)
        row, col = rows // 2, cols // 2
        if high_row >= 0:
            row, col = (low_row + high_row) // 2, (low_col + high_col) // 2
        state.view_row = clamped(row, rows, size)
        state.view_col = clamped(col, cols, size)
        state.view_focus = AROUND_ALL
        if state.to_play < 0:
            return
        prepare(state, data)
        if not find_threat(state, data) and not has_legal(state, data):
            move_to_legal(state, data)

    def mark_legal(state, data):
        for action in range(num_actions):
            state.view_legal[action] = 0
        count = list_all(state, state.view_actions, data)
        for i in range(count):
            state.view_legal[state.view_actions[i]] = 1

    def find_threat(state, data):
        """Whether a player could win now; the window then contains a cell to do so."""
        for turn in range(num_players):
            player = (state.to_play + turn) % num_players
            cell = threat_of(state, player, state.view_row, state.view_col, data)
            if cell != NOWHERE:
                before_row, before_col = state.view_row, state.view_col
                move_to(state, cell)
                if state.view_row != before_row or state.view_col != before_col:
                    state.view_focus = TO_WIN if turn == 0 else TO_STOP
                return True
        return False

    def move_to(state, cell):
        state.view_row = containing(state.view_row, cell // cols, rows, size)
        state.view_col = containing(state.view_col, cell % cols, cols, size)

    def has_legal(state, data):
        """Whether a cell of the window is legal."""
        first_row, first_col = state.view_row - half, state.view_col - half
        for row in range(first_row, min(rows, first_row + size)):
            for col in range(first_col, min(cols, first_col + size)):
                if legal_in(state, row * cols + col, data):
                    return True
        return False

    def move_to_legal(state, data):
        """Move the window as little as possible, so that a cell in it is legal."""
        best, nearest = FARTHEST, NOWHERE
        for cell in range(num_cells):
            if legal_in(state, cell, data):
                key = rank(cell, state.view_row, state.view_col, rows, cols, size)
                if key < best:
                    best, nearest = key, cell
        if nearest != NOWHERE:
            move_to(state, nearest)

    prepare = mark_legal if lists_legal else _taking_data(_nothing, 1)
    return center


def _make_steps(game: Game, frame: Frame, center: Hook) -> tuple[Hook, Hook, Hook]:
    """The rule `step` with actions of the window, with all actions, and `start`."""
    rows, cols, size = frame.rows, frame.cols, frame.size
    num_cells, num_local = rows * cols, size * size
    step_inside = _taking_data(game.rules.step, 3)
    begin = _taking_data(_nothing if game.rules.start is None else game.rules.start, 1)

    def step_anywhere(state, action, reward, data):
        step_inside(state, action, reward, data)
        center(state, data)

    def step(state, action, reward, data):
        taken = num_cells + action - num_local
        if action < num_local:
            taken = cell_at(action, state.view_row, state.view_col, rows, cols, size)
        step_inside(state, taken, reward, data)
        center(state, data)

    def start(state, data):
        begin(state, data)
        center(state, data)

    return step, step_anywhere, start


def _make_observe(game: Game, frame: Frame, stone: Hook) -> Hook:
    """The rule `observe`: the planes of the window, then those of the board in as many cells."""
    rows, cols, size, half = frame.rows, frame.cols, frame.size, (frame.size - 1) // 2
    num_players = game.num_players

    def plane_of(content, player):
        """0 for own stones, 1 for those of the next player, ...; then the empty cells."""
        return num_players if content == 0 else (content - 1 - player) % num_players

    def observe(state, player, planes, data):
        first_row, first_col = state.view_row - half, state.view_col - half
        for row in range(first_row, min(rows, first_row + size)):
            for col in range(first_col, min(cols, first_col + size)):
                plane = plane_of(stone(state, row, col, data), player)
                planes[plane, row - first_row, col - first_col] = 1.0
        for i in range(size):
            top, bottom = bin_edge(i, rows, size), bin_edge(i + 1, rows, size)
            for j in range(size):
                left, right = bin_edge(j, cols, size), bin_edge(j + 1, cols, size)
                for row in range(top, bottom):
                    for col in range(left, right):
                        plane = plane_of(stone(state, row, col, data), player)
                        planes[num_players + 1 + plane, i, j] += 1.0
                area = (bottom - top) * (right - left)
                for plane in range(num_players + 1 if area > 1 else 0):
                    planes[num_players + 1 + plane, i, j] /= area

    return observe


def _make_priors(game: Game, frame: Frame) -> Hook:
    """The rule `priors` of the whole game: those of the game, and less outside the window."""
    rows, cols, size = frame.rows, frame.cols, frame.size
    num_cells = rows * cols
    own = _taking_data(_no_priors if game.rules.priors is None else game.rules.priors, 2)

    def priors(state, logits, data):
        own(state, logits, data)
        for cell in range(num_cells):
            if index_of(cell, state.view_row, state.view_col, cols, size) == NOWHERE:
                logits[cell] += OUTSIDE

    return priors


# --- what a game brings along ---


def _board_of(game: Game, num_cells: int) -> Hook:
    """What is on a cell, by the field `board` of a game."""
    cols = game.geometry[2] if game.geometry is not None else 0
    field = dict(game.dtype.fields or {}).get("board")
    shape = () if field is None else field[0].shape

    def on_grid(state, row, col):
        return state.board[row, col]

    def on_line(state, row, col):
        return state.board[row * cols + col]

    if len(shape) == 2 and shape[1] == cols and shape[0] * cols == num_cells:
        return on_grid
    if shape == (num_cells,):
        return on_line
    raise BrokenGame(
        f"a window needs to know what is on a cell: {game.name} has no field board of {num_cells} "
        "cells; pass stone=, a function stone(state, row, col) that returns 0 for an empty cell "
        "and player + 1 for a stone"
    )


def _taking_data(function: Any, num_arguments: int) -> Hook:
    """A rule as one that takes `data` as well."""
    count = len(inspect.signature(function).parameters)
    if count == num_arguments + 1:
        same: Hook = function
        return same
    if count != num_arguments:
        raise BrokenGame(
            f"{function.__name__} takes {count} arguments; expected {num_arguments}, or data as "
            "one more"
        )

    def of_one(state, data):
        return function(state)

    def of_two(state, second, data):
        return function(state, second)

    def of_three(state, second, third, data):
        return function(state, second, third)

    def of_four(state, second, third, fourth, data):
        return function(state, second, third, fourth)

    made: Hook = (of_one, of_two, of_three, of_four)[num_arguments - 1]
    return made


def _nothing(state):
    """The start of a game that begins with zeros."""


def _no_threat(state, player, row, col):
    return NOWHERE


def _no_priors(state, logits):
    """The priors of a game that has none."""
