"""Checkers: jumps, crowns and draws by hand, and published counts of moves."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import Game, IllegalAction
from uctree.game import OVER
from uctree.games import checkers
from uctree.games.checkers import COLUMNS, NONE

pytestmark = pytest.mark.quick


def position(pieces: str, to_play: int = 0) -> np.record:
    """A state with pieces such as `xc3 Xa1 od4 Ob6`: kings are capital letters."""
    state = checkers().start()
    state["pieces"], state["kings"], state["to_play"] = 0, 0, to_play
    for name in pieces.split():
        bit = np.uint64(1 << (8 * (8 - int(name[2])) + COLUMNS.index(name[1])))
        state["pieces"][int(name[0] in "oO")] |= bit
        if name[0] in "XO":
            state["kings"] |= bit
    return state


def shown(state: np.record) -> set[str]:
    game = checkers()
    return {game.show_action(state, action) for action in game.legal(state)}


def after(state: np.record, *moves: str) -> np.record:
    game = checkers()
    for move in moves:
        state, _ = game.step(state, game.read_action(state, move))
    return state


def count(game: Game, state: np.record, depth: int) -> int:
    """The number of sequences of moves, where a chain of jumps is one move."""
    if depth == 0:
        return 1
    total = 0
    for action in game.legal(state):
        following, _ = game.step(state, action)
        goes_on = following["jumper"] != NONE
        if goes_on or not game.is_over(following):
            total += count(game, following, depth if goes_on else depth - 1)
        else:
            total += depth == 1
    return total


def test_moves_are_as_many_as_published() -> None:
    # Aart Bik, "Computing Deep Perft and Divide Numbers for Checkers" (2012).
    game = checkers()
    assert [count(game, game.start(), depth) for depth in range(1, 6)] == [7, 49, 302, 1469, 7361]


def test_a_capture_is_compulsory_and_goes_on_as_long_as_it_can() -> None:
    state = position("xc3 xg1 od4 od6 of6 oh8")
    assert shown(state) == {"c3xe5"}
    state = after(state, "c3xe5")
    assert state["to_play"] == 0
    assert shown(state) == {"e5xc7", "e5xg7"}  # the other man may not act
    state = after(state, "e5xg7")
    assert (state["to_play"], state["jumper"]) == (1, NONE)
    assert shown(state) == {"h8xf6"}


def test_men_go_forward_and_kings_go_both_ways() -> None:
    assert shown(position("xc3 ob8")) == {"c3-b4", "c3-d4"}
    assert shown(position("Xc3 ob8")) == {"c3-b4", "c3-d4", "c3-b2", "c3-d2"}
    assert shown(position("xc3 of6", to_play=1)) == {"f6-e5", "f6-g5"}
    assert shown(position("xd4 oc5 oc3 oa7")) == {"d4xb6"}  # not backwards


def test_a_man_on_the_last_row_is_crowned_and_its_turn_ends() -> None:
    state = after(position("xb6 oc7 oe7 oh2"), "b6xd8")
    assert state["kings"] == state["pieces"][0]
    assert state["to_play"] == 1  # though the new king could capture e7
    state = after(position("oa3 xh6", to_play=1), "a3-b2", "h6-g7", "b2-a1")
    assert state["kings"] == state["pieces"][1]
    # A king that is captured leaves nothing behind.
    state = after(position("xb2 Oc3 oh8"), "b2xd4")
    assert state["kings"] == 0


def test_a_player_who_cannot_act_loses() -> None:
    game = checkers()
    state, reward = game.step(position("xc3 od4"), game.read_action(position("xc3 od4"), "c3xe5"))
    assert (state["to_play"], reward.tolist()) == (OVER, [1, -1])
    blocked = position("xb2 xc1 xg1 oa3")
    state, reward = game.step(blocked, game.read_action(blocked, "g1-h2"))
    assert (state["to_play"], reward.tolist()) == (OVER, [1, -1])


def test_forty_actions_without_a_capture_are_a_draw() -> None:
    game = checkers(quiet=3)
    state = position("Xa1 Oh8")
    for move in ("a1-b2", "h8-g7"):
        state, _ = game.step(state, game.read_action(state, move))
    state, reward = game.step(state, game.read_action(state, "b2-a1"))
    assert (state["to_play"], reward.tolist()) == (OVER, [0, 0])
    with pytest.raises(ValueError, match="quiet must be from 1 to 1000 actions; got 0"):
        checkers(quiet=0)


def test_planes_show_men_and_kings_of_both() -> None:
    state = position("xc3 Xa1 od6 Ob8")
    planes = checkers().observation(state, 1)
    assert [np.argwhere(plane).tolist() for plane in planes[:4]] == [
        [[2, 3]], [[0, 1]], [[5, 2]], [[7, 0]],
    ]  # fmt: skip
    assert planes[6].all()
    assert checkers().show(state).splitlines()[0] == "8 . O . . . . . ."


def test_moves_are_read_as_people_write_them() -> None:
    state = checkers().start()
    assert after(state, "C3-D4")["to_play"] == 1
    for text in ("c3", "c3-c4", "c3xe5", "", "c3-d9", "3-4"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            checkers().read_action(state, text)
