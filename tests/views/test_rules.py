"""The rules of windows on random boards, against an obvious search of all centres."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.views import obvious
from tests.views.test_frames import listed
from uctree.games import hex, n_in_a_row
from uctree.views import windowed
from uctree.views.rules import AROUND_ALL, TO_STOP, TO_WIN

pytestmark = pytest.mark.quick

# rows, cols, length, players, view: windows smaller and larger than the board, and of one cell.
GAMES = [(7, 7, 4, 3, 5), (9, 6, 3, 2, 3), (5, 8, 4, 4, 7), (4, 4, 3, 3, 5), (6, 7, 4, 3, 1)]


@pytest.mark.parametrize("focus", [True, False])
@pytest.mark.parametrize(("rows", "cols", "length", "num_players", "view"), GAMES)
def test_the_window_is_where_trying_all_centres_finds_it(
    rows, cols, length, num_players, view, focus
):
    """Also where players play outside of it: actions are random on the whole board."""
    game = n_in_a_row(rows, cols, length, num_players, view=view, focus=focus)
    everything, frame = game.view.whole, game.view.frame
    rng, outside = np.random.default_rng(view), 0
    for _ in range(6):
        state = everything.start()
        while not game.is_over(state):
            center = game.view.center_of(state)
            expected = obvious.best_center(
                state["board"], state["to_play"], frame, length, num_players, focus
            )
            assert center == expected
            places = listed(frame, center)
            legal = [a for a, p in enumerate(places) if p is not None and state["board"][p] == 0]
            assert game.legal(state) == legal != []
            action = int(rng.choice(everything.legal(state)))
            found = game.view.to_local(state, action)
            assert found == (places.index(divmod(action, cols)) if found is not None else None)
            after, reward = everything.step(state, action)
            if found is None:
                outside += 1
                assert divmod(action, cols) not in places
            else:
                assert game.view.to_whole(state, found) == action
                same, paid = game.step(state, found)
                assert same == after
                assert (paid == reward).all()
            state = after
    assert outside > 0 or view >= max(rows, cols)


@pytest.mark.parametrize(("rows", "cols", "length", "num_players", "view"), GAMES)
def test_the_observation_is_the_window_and_then_the_whole_board(
    rows, cols, length, num_players, view
):
    game = n_in_a_row(rows, cols, length, num_players, view=view)
    state = game.view.whole.random_episode(seed=3).state
    assert state["ply"] > 3
    for player in range(num_players):
        expected = obvious.planes(
            state["board"], player, game.view.frame, game.view.center_of(state), num_players
        )
        assert np.abs(game.observation(state, player) - expected).max() < 1e-6


def test_a_window_without_an_empty_cell_moves_to_the_nearest_one():
    game = n_in_a_row(7, 7, 6, 3, view=3, focus=False)
    around = [r * 7 + c for r in (2, 3, 4) for c in (2, 3, 4)]
    state = game.view.whole.play(around)
    # All of rows and columns 2 to 4 is full; the box around the stones is that window.
    assert obvious.plain_center(state["board"], game.view.frame) == (3, 3)
    assert game.view.center_of(state) == (2, 3)  # of four at the same distance the smallest row
    assert [game.view.to_whole(state, action) for action in game.legal(state)] == [9, 10, 11]


def test_the_window_moves_to_a_win_and_else_to_that_of_the_next_opponent():
    game = n_in_a_row(20, 20, 3, 3, view=5)
    everything = game.view.whole

    def after(*cells):
        return everything.play([row * 20 + col for row, col in cells])

    def is_seen(state, row, col):
        return game.view.to_local(state, row * 20 + col) is not None

    far = [(0, 0), (19, 0), (10, 10), (0, 1)]  # player 0 can win at (0, 2)
    state = after(*far)
    assert state["to_play"] == 1
    assert is_seen(state, 0, 2)
    assert state["view_focus"] == TO_STOP
    state = after(*far, (19, 1))  # now player 1 can win at (19, 2), and player 0 is next
    assert state["to_play"] == 2
    assert is_seen(state, 0, 2)
    assert not is_seen(state, 19, 2)
    state = after(*far, (19, 1), (10, 11))
    assert state["to_play"] == 0
    assert state["view_focus"] == TO_WIN
    assert is_seen(state, 0, 2)
    state = after((10, 10))
    assert state["view_focus"] == AROUND_ALL


def stone_of_hex(state, row, col):
    """0 for an empty cell of hex on 6 x 6, player + 1 for a stone; the board has a border."""
    content = state.board[8 * (row + 1) + col + 1]
    return (1 if content & 1 else 0) + (2 if content & 8 else 0)


def test_without_is_legal_the_legal_actions_are_those_that_the_game_lists():
    plain = hex(6)
    game = windowed(plain, 3, stone=stone_of_hex)
    rng, state = np.random.default_rng(2), game.start()
    for _ in range(12):
        legal = [game.view.to_whole(state, action) for action in game.legal(state)]
        center = game.view.center_of(state)
        inside = [r * 6 + c for r, c in listed(game.view.frame, center)]
        listed_by_game = plain.legal(game.view.game.copy(plain.play(taken(state, plain))))
        assert sorted(legal) == sorted(set(inside) & set(listed_by_game)) != []
        state, _ = game.view.whole.step(state, int(rng.choice(game.view.whole.legal(state))))


def taken(state, plain):
    """Actions that lead to the stones of a state of hex, in turn."""
    stones = [
        [c for c in range(36) if stone_of_hex(state, *divmod(c, 6)) == player + 1]
        for player in (0, 1)
    ]
    return [stones[ply % 2][ply // 2] for ply in range(len(stones[0]) + len(stones[1]))]


def test_actions_that_are_no_cells_follow_those_of_the_window():
    size = 5
    game = windowed(passing(size), 3)
    assert game.num_actions == 10
    state = game.start()
    assert game.legal(state) == [*range(9), 9]
    after, _ = game.step(state, 9)
    assert after["passes"] == 1
    assert game.view.to_whole(state, 9) == size * size
    assert game.view.to_local(state, size * size) == 9
    everything = game.view.whole
    for _ in range(size * size):  # a board full of stones: only the pass is left
        state, _ = everything.step(state, everything.legal(state)[0])
    assert game.legal(state) == [9]


def passing(size):
    """Stones are put on a board; a pass, the last action, ends the game after two in a row."""
    cells = size * size

    def legal(state, actions):
        count = 0
        for cell in range(cells):
            if state.board[cell] == 0:
                actions[count] = cell
                count += 1
        actions[count] = cells
        return count + 1

    def step(state, action, reward):
        state.passes = state.passes + 1 if action == cells else 0
        if action < cells:
            state.board[action] = state.to_play + 1
        state.to_play = uctree.OVER if state.passes == 2 else 1 - state.to_play

    return uctree.Game(
        [("board", np.int8, cells), ("passes", np.int8), ("to_play", np.int8)], legal, step,
        num_players=2, num_actions=cells + 1, geometry=("grid", size, size), max_plies=100,
    )  # fmt: skip
