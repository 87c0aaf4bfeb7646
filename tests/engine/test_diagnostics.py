"""Why a kernel stopped: the message names the state, the line and what helps."""

from __future__ import annotations

import re

import numpy as np
import pytest

import uctree
from tests.broken_games import heap_game, legal, start, step
from uctree import BrokenGame
from uctree.engine.compile import interpreted

HINT = "Run with debug=True"


def message_of(game, num_simulations=200, **options):
    """The message of a search that a broken game stops."""
    with pytest.raises(BrokenGame) as caught:
        uctree.search(game, num_simulations=num_simulations, check=False, **options)
    return str(caught.value)


def lone_player(state, action, reward):
    """To 2, who does not exist, in the middle of a playout."""
    step(state, action, reward)
    if state.left == 2:
        state.to_play = 2


def test_the_state_is_the_one_after_the_actions(both_ways):
    message = message_of(heap_game(step=lone_player))
    (taken,) = re.findall(r"after the actions \[([01, ]*)\] from the root", message)
    left = 7 - sum(1 + int(action) for action in taken.split(",") if action)
    assert f"in or below the state\n    left: {left}\n" in message
    assert "step set to_play to 2" in message


def test_an_action_that_raises_is_named_with_its_line(both_ways):
    def dividing(state, action, reward):
        reward[0] = 6 // (state.left - 7)
        step(state, action, reward)

    message = message_of(heap_game(step=dividing))
    assert "ZeroDivisionError" in message
    assert "reward[0] = 6 // (state.left - 7)" in message
    assert HINT not in message


def test_debug_is_advised_only_if_it_can_help(both_ways, monkeypatch):
    """No look in plain Python shows anything; the rules are right, the evaluator is not."""

    def judge(state, values):
        values[0] = np.nan if state.left < 4 else 0.0

    message = message_of(heap_game(), evaluator=judge)
    assert "judge gave a value or prior that is not a finite number" in message
    assert (HINT in message) == (not interpreted())
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    assert HINT not in message_of(heap_game(), evaluator=judge, debug=True)


def test_rules_that_break_no_memory_need_no_bounds_checks(both_ways):
    def unequal(state, action, reward):
        step(state, action, reward)
        reward[0] = max(0.0, reward[0])

    message = message_of(heap_game(step=unequal, zero_sum=True))
    assert "zero_sum=True, but a reward or value does not add up" in message
    assert HINT not in message


def test_with_debug_the_index_and_the_line_are_named():
    def writing(state, action, reward):
        state.board[state.ply] = 1
        step(state, action, reward)

    message = message_of(heap_game(step=writing, more=[("board", "i1", (3,))]), debug=True)
    assert "raised IndexError" in message
    assert "index 3 is out of bounds for axis 0 with size 3" in message
    assert re.search(r"test_diagnostics.py, line \d+:  state.board\[state.ply\] = 1", message)
    assert HINT not in message


def test_open_loop_has_no_state_for_its_path(both_ways):
    """The outcomes of chance are not in the path, so that no state is known."""

    def tossing(state, action, reward):
        if state.to_play == uctree.CHANCE:
            state.to_play = action
        else:
            lone_player(state, action, reward)
            if state.to_play in (0, 1):
                state.to_play = uctree.CHANCE

    def coin(state, outcomes, probabilities):
        for i in range(2):
            outcomes[i], probabilities[i] = i, 0.5
        return 2

    game = heap_game(step=tossing, chance=coin, max_outcomes=2, legal=legal, start=start)
    message = message_of(game, open_loop=True)
    assert "step set to_play to 2" in message
