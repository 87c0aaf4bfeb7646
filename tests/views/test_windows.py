"""Games with a window: who sees what, names, pickles, and searches of both forms."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import uctree
from tests.views.test_rules import passing
from uctree import selection
from uctree.engine.identity import find_spec
from uctree.errors import BrokenGame, IllegalAction
from uctree.evaluators import playout
from uctree.games import connect_four, go, hex, n_in_a_row, pig
from uctree.views import local, whole, windowed


@pytest.fixture(scope="module")
def game():
    return n_in_a_row(9, 9, 4, 3, view=5)


@pytest.mark.quick
def test_search_sees_the_window_and_people_see_the_board(game):
    everything = whole(game)
    assert game.num_actions == 25
    assert everything.num_actions == 81
    assert local(everything) is game
    assert whole(everything) is everything
    assert game.dtype == everything.dtype
    state = everything.play([0])  # outside the window
    assert len(everything.legal(state)) == 80
    assert everything.show_action(state, 80) == "i1"
    assert everything.read_action(state, "i1") == 80
    plain = n_in_a_row(9, 9, 4, 3)
    assert local(plain) is plain is whole(plain)


@pytest.mark.quick
def test_actions_of_the_window_have_the_names_of_the_board(game):
    state = game.start()
    assert game.view.center_of(state) == (4, 4)
    assert game.show_action(state, 0) == "c7"
    assert game.read_action(state, "c7") == 0
    assert game.read_action(state, "g3") == 24
    with pytest.raises(IllegalAction, match="not a legal action"):
        game.read_action(state, "a1")
    with pytest.raises(IllegalAction, match="none of the 25 of the window"):
        game.view.to_whole(state, 25)


@pytest.mark.quick
def test_padding_is_no_action():
    game = n_in_a_row(4, 4, 3, view=7)
    state = game.start()
    assert len(game.legal(state)) == 16
    with pytest.raises(IllegalAction, match="not on the board"):
        game.view.to_whole(state, 48)


@pytest.mark.quick
def test_a_state_without_a_window_gets_one(game):
    plain = n_in_a_row(9, 9, 4, 3)
    actions = [0, 1, 20, 5]
    assert game.view.state(plain.play(actions)) == whole(game).play(actions)


@pytest.mark.quick
def test_a_game_with_a_window_can_be_pickled_and_named(game):
    for form in (game, whole(game)):
        again = pickle.loads(pickle.dumps(form))
        assert again.num_actions == form.num_actions
        assert again.legal(form.play([5])) == form.legal(form.play([5]))
        assert find_spec(form) == "n_in_a_row(rows=9, cols=9, length=4, num_players=3, view=5)"
    other = n_in_a_row(8, 9, 4, 2, view=3, focus=False, rewards="placement")
    assert find_spec(other) == (
        "n_in_a_row(rows=8, cols=9, length=4, num_players=2, view=3, focus=False, "
        "rewards='placement')"
    )


@pytest.mark.quick
def test_symmetries_of_the_window_are_those_that_the_board_has():
    assert len(n_in_a_row(9, 9, 4, view=5).symmetries[0]) == 8
    assert len(n_in_a_row(9, 8, 4, view=5).symmetries[0]) == 4
    assert n_in_a_row(4, 4, 4, view=5).symmetries is None  # padding is on one side
    # Stones of a turned board are seen in the turned window.
    game = n_in_a_row(9, 9, 4, 3, view=5)
    stones = [22, 59, 30, 40, 50]  # around the middle, which is not rounded
    plain = game.view.game.symmetries[0]
    seen = game.observation(whole(game).play(stones), 0)[:4].reshape(4, 25)
    for turn, table in zip(plain, game.symmetries[1], strict=True):
        state = whole(game).play(turn[stones])
        turned = game.observation(state, 0)[:4].reshape(4, 25)
        assert (turned[:, table] == seen).all()


@pytest.mark.quick
def test_games_that_cannot_have_a_window_are_refused():
    for wrong, text in (
        (connect_four(), "one action for each cell"), (pig(), "a game on a grid"),
        (n_in_a_row(view=5), "has a window"), (hex(5), "no field board of 25 cells"),
    ):  # fmt: skip
        with pytest.raises(BrokenGame, match=text):
            windowed(wrong, 3)
    with pytest.raises(ValueError, match="odd number"):
        n_in_a_row(view=4)
    with pytest.raises(BrokenGame, match="expected 2"):
        windowed(passing(5), 3, is_legal=lambda state: True)


def test_a_search_acts_in_the_window_and_its_tree_has_no_other_actions(game):
    state = whole(game).play([0, 9, 80, 1, 10, 79])  # in two corners; player 0 is to move
    result = uctree.search(game, state, num_simulations=300, seed=1)
    assert result.policy().shape == (25,)
    assert game.view.to_whole(state, result.action) in whole(game).legal(state)
    assert set(result.edges["action"]) <= set(game.legal(state))


def test_a_search_takes_a_win_outside_the_middle_of_the_stones():
    game = n_in_a_row(9, 9, 4, 3, view=5)
    # Player 0 has three in the first row; others are far away.
    state = whole(game).play([0, 72, 80, 1, 63, 71, 2, 54, 62])
    result = uctree.search(game, state, num_simulations=300, seed=1)
    assert game.view.to_whole(state, result.action) == 3
    assert result.value[0] > 0.5


def test_plain_search_of_the_whole_board_can_use_the_window(game):
    """The window as priors: with widening, only actions inside are opened."""
    everything = whole(game)
    state = everything.play([0, 1, 2])
    result = uctree.search(
        everything, state, num_simulations=60, seed=1, evaluator=playout(priors=True),
        selection=selection.puct(), widening=selection.widening(),
    )  # fmt: skip
    tried = result.edges["action"][result.edges["visits"] > 0]
    assert len(tried) > 8
    assert all(game.view.to_local(state, int(action)) is not None for action in tried)


def test_the_rules_are_the_same_compiled(monkeypatch):
    """Of windows with listed actions and others than cells, and of windows with threats."""
    found = {}
    games = [windowed(passing(5), 3), n_in_a_row(6, 6, 4, 3, view=3, rewards="placement")]
    for plain in (False, True):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", str(int(plain)))
        found[plain] = [
            uctree.search(each, num_simulations=60, seed=2).edges["visits"].tolist()
            for each in games
        ]
    assert found[False] == found[True]
    assert np.sum(found[True][0]) == 60


@pytest.mark.quick
def test_a_game_of_go_can_have_a_window():
    plain = go(5)

    def stone(state, row, col):
        return state.board[5 * row + col]

    game = windowed(plain, 3, stone=stone)
    state = game.start()
    for _ in range(8):
        legal = game.legal(state)
        assert legal[-1] == 9  # the pass
        state, _ = game.step(state, legal[0])
    assert state["ply"] == 8


@pytest.mark.quick
def test_a_large_board_is_shown_as_its_window_and_a_thumbnail():
    game = n_in_a_row(60, 50, 5, 3, view=5)
    everything = whole(game)
    first, *lines = everything.show(everything.play([29 * 50 + 24, 0])).splitlines()
    assert first == "window of 5 x 5 (+), and all of 60 x 50 cells"
    # Around (14, 12), the middle of the stones; row 12 from above is the 48th from below.
    assert [line.split()[:7] for line in lines] == [
        [f"k{48 - i}", *".....", f"o{48 - i}"] for i in range(5)
    ]
    assert [line.split()[7:] for line in lines] == [
        list("O...."), list(".+..."), list("..X.."), list("....."), list("....."),
    ]  # fmt: skip
    near = everything.play([29 * 50 + 24])
    assert game.show(near).splitlines()[3] == "  w31 . . X . . aa31   . . X . ."
    assert "window" not in n_in_a_row(50, 50, view=5).show(n_in_a_row(50, 50, view=5).start())
