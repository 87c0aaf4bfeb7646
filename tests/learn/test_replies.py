"""Every reply to a player, tried."""

from __future__ import annotations

import functools

import pytest

from uctree import UctreeError, games, solve
from uctree.learn import replies
from uctree.learn.replies import try_all

GAME = games.tic_tac_toe()


def test_exact_play_is_perfect():
    solution = solve(GAME)

    def act(state):
        player = GAME.to_play(state)

        def worth(action):
            after, reward = GAME.step(state, action)
            return reward[player] + solution.value_of(after)[player]

        return max(GAME.legal(state), key=worth)

    found = try_all(GAME, act)
    assert found.is_perfect
    assert found.positions > 100


def test_who_takes_the_first_cell_gives_results_away_and_loses():
    found = try_all(GAME, lambda state: GAME.legal(state)[0])
    assert found.gave_away > 0
    assert found.lost > 0
    assert not found.is_perfect


def test_a_game_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(replies, "solve", functools.partial(solve, max_states=1000))
    with pytest.raises(UctreeError, match="has more than 1,000 states"):
        try_all(GAME, lambda state: 0)
