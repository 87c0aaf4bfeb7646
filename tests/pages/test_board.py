"""Boards that are read from text: what stands where, and which cell an action is about."""

from __future__ import annotations

import re

import pytest

import uctree
from uctree import games
from uctree.pages.board import Board, Spot, cells_of, draw, read_board

pytestmark = pytest.mark.quick

DRAWN = ["breakthrough", "connect_four", "go", "hex", "n_in_a_row", "othello", "tic_tac_toe"]


def middle_of_an_episode(game):
    actions = game.random_episode(seed=1).actions
    return game.play(actions[: len(actions) // 3])


@pytest.mark.parametrize("name", DRAWN)
def test_every_action_of_a_board_game_but_passing_has_a_cell(name):
    game = getattr(games, name)()
    state = middle_of_an_episode(game)
    board = read_board(game, state)
    assert board is not None
    assert (board.kind, len(board.marks), len(board.marks[0])) == game.geometry
    cells = cells_of(game, state, game.legal(state), board)
    without = {game.show_action(state, a) for a in game.legal(state) if a not in cells}
    assert without <= {"pass"}


@pytest.mark.parametrize("name", ["go", "hex", "n_in_a_row", "othello"])
def test_the_cell_of_an_action_is_where_its_name_says(name):
    game = getattr(games, name)()
    state = middle_of_an_episode(game)
    board = read_board(game, state)
    for action, (row, col) in cells_of(game, state, game.legal(state), board).items():
        assert board.col_names == () or game.show_action(state, action).startswith(
            board.col_names[col]
        )
        assert game.show_action(state, action).endswith(board.row_names[row])


def test_a_stone_that_falls_is_shown_where_it_lands():
    game = games.connect_four()
    state = game.play([3, 3])
    cells = cells_of(game, state, [3, 0], read_board(game, state))
    assert cells == {3: (3, 3), 0: (5, 0)}


def test_marks_are_those_of_the_text():
    game = games.tic_tac_toe()
    board = read_board(game, game.play([0, 4, 8]))
    assert board.marks == (("X", "", ""), ("", "O", ""), ("", "", "X"))


@pytest.mark.parametrize("name", ["nim", "pig", "twenty48", "dots_and_boxes"])
def test_a_game_without_geometry_has_no_board(name):
    game = getattr(games, name)()
    assert read_board(game, game.start()) is None


@pytest.mark.parametrize(
    "text", ["", "X", "one two three", ". . .\n. . .", "long. . .\n. . .\n. . ."]
)
def test_a_text_that_does_not_tell_gives_no_board(text):
    source = games.tic_tac_toe()
    rules = source.rules
    game = uctree.Game(
        source.dtype, rules.legal, rules.step, num_players=2, num_actions=9,
        geometry=("grid", 3, 3), show=lambda state: text,
    )  # fmt: skip
    assert read_board(game, game.start()) is None


def test_a_board_too_large_to_draw_stays_text():
    game = games.n_in_a_row(rows=60, cols=60)
    assert read_board(game, game.start()) is None


def test_large_boards_are_not_tried_action_by_action(monkeypatch):
    game = games.n_in_a_row()
    monkeypatch.setattr("uctree.pages.board.MOST_CELLS_READ", 5 * 225)
    state = game.start()
    assert len(cells_of(game, state, game.legal(state), read_board(game, state))) == 5


@pytest.mark.parametrize("kind", ["grid", "hex"])
def test_a_drawing_has_a_button_per_cell_with_actions_and_a_stone_per_mark(kind):
    board = Board(kind, (("X", "<"), ("", "")))
    spots = {(1, 0): Spot(7, 0.25, 'a "b"', is_chosen=True), (1, 1): Spot(9, 0.75, "c")}
    drawing = draw(board, spots, "a <board>")
    assert re.findall(r'data-action="(\d+)"', drawing) == ["9", "7"]  # the chosen one on top
    assert drawing.count("<circle") == 2
    assert "&lt;</text>" in drawing
    assert "a &quot;b&quot;" in drawing
    assert 'aria-label="a &lt;board&gt;"' in drawing
