"""Rules called one at a time as machine code."""

from __future__ import annotations

import pytest

from tests.small_games import heap_game
from uctree import BrokenGame, Game, IllegalAction
from uctree.engine.stepping import with_machine_code
from uctree.games import n_in_a_row


@pytest.fixture(scope="module")
def large():
    return n_in_a_row(30, 30, 4, 3)


def test_machine_code_steps_as_plain_python_does(large):
    quick = with_machine_code(large)
    assert large.stepper is None
    assert quick.stepper is not None
    slow = large.random_episode(seed=5)
    fast = quick.random_episode(seed=5)
    assert fast.actions == slow.actions
    assert (fast.rewards == slow.rewards).all()
    assert fast.state == slow.state
    assert quick.legal(fast.state) == large.legal(slow.state) == []
    state = quick.play(fast.actions[:10])
    assert quick.legal(state) == large.legal(state)


def test_machine_code_refuses_illegal_actions(large):
    quick = with_machine_code(large)
    state, _ = quick.step(quick.start(), 7)
    with pytest.raises(IllegalAction, match="action 7 is not legal at ply 1"):
        quick.step(state, 7)


@pytest.mark.quick
def test_small_states_step_in_plain_python():
    game = heap_game()
    assert with_machine_code(game) is game


def writes_too_much(state, actions):
    for i in range(901):
        actions[i] = 0
    return 1


def test_a_legal_that_writes_too_much_is_reported(large):
    broken = Game(large.dtype, writes_too_much, large.rules.step, num_players=3, num_actions=900)
    with pytest.raises(BrokenGame, match="wrote more than 900 actions"):
        with_machine_code(broken).legal(large.start())
