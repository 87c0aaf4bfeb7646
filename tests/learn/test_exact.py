"""Positions with exact results, and how often an action is optimal there."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.exact import action_values, maxn
from tests.learn.fixed_evaluators import constant
from uctree import OVER, Game, games, solve
from uctree.learn import exact
from uctree.learn.options import make_options

BEST = 0  # an action


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


def test_exact_positions_of_a_small_game_equal_brute_force(game):
    positions, memo, expected = exact.exact_positions(game), {}, {}
    maxn(game, game.start(), memo)
    states = {game.key(game.start()): game.start()}
    for key in memo:  # the keys of all states, those that are over included
        state = game.copy(game.start())
        for name in game.key_fields:
            size = np.asarray(state[name]).nbytes
            state[name], key = np.frombuffer(key[:size], state[name].dtype)[0], key[size:]
        states[game.key(state)] = state
    for key, state in states.items():
        player = game.to_play(state)
        if player < 0:
            continue
        values = action_values(game, state, lambda after: memo[game.key(after)])
        best = max(value[player] for value in values)
        pairs = zip(game.legal(state), values, strict=True)
        optimal = [action for action, value in pairs if value[player] == best]
        if len(optimal) < len(values):
            expected[key] = optimal
    found = zip(positions.states, positions.optimal, strict=True)
    assert {game.key(state): np.flatnonzero(row).tolist() for state, row in found} == expected


def test_exact_positions_follow_a_changed_global(monkeypatch):
    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        reward[0] = 1.0 if action == BEST else 0.0
        state.to_play = OVER

    dtype = np.dtype([("to_play", np.int8)])
    game = Game(dtype, legal, step, num_players=1, num_actions=2)
    for best in (0, 1, 1):
        monkeypatch.setitem(globals(), "BEST", best)
        assert np.flatnonzero(exact.exact_positions(game).optimal[0]).tolist() == [best]
    assert exact.exact_positions(game) is exact.exact_positions(game)


def test_large_games_have_no_exact_positions():
    assert exact.exact_positions(games.othello(size=6)) is None
    assert exact.exact_positions(games.connect_four(rows=5, cols=5)) is None


@pytest.mark.peer
def test_positions_of_connect_four_are_distinct_and_their_optimal_actions_equal_the_solvers():
    pytest.importorskip("bitbully", reason="bitbully is not installed")
    game = games.connect_four()
    positions = exact.exact_positions(game, num_positions=30, seed=2)
    assert positions.source == "bitbully"
    assert len({game.key(state) for state in positions.states}) == 30
    late = 0
    for state, row in zip(positions.states, positions.optimal, strict=True):
        plies = bin(int(state["taken"])).count("1")
        assert 4 <= plies <= 30
        if plies < 24:
            continue
        late += 1
        player = game.to_play(state)
        values = {a: v[player] for a, v in solve(game, state).action_values.items()}
        assert set(np.flatnonzero(row)) == {a for a in values if values[a] == max(values.values())}
    assert late >= 3


def test_if_bitbully_is_missing_the_numbers_say_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    game = games.connect_four()
    found = exact.agreement(game, constant(game), make_options(game))
    assert set(found) == {"missing"}
    assert "pip install bitbully" in found["missing"]


def test_the_interval_of_a_sample_is_around_its_share():
    optimal = np.array([[True, False]] * 8 + [[False, True]] * 2)
    sample = exact.ExactPositions([None] * 10, optimal, "bitbully")
    assert sample.share_optimal([0] * 10) == 0.8
    low, high = sample.interval([0] * 10)
    assert 0.3 < low < 0.8 < high <= 1.0
    assert exact.ExactPositions([None] * 10, optimal, "solved").interval([0] * 10) is None
