"""Ways to deal with chance: outcomes of any number, open loops, few outcomes at a time."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import Searcher, games, selection

# --- outcomes ------------------------------------------------------------------------------------


def _legal(state, actions):
    actions[0], actions[1] = 0, 1
    return 2


def _step(state, action, reward):
    if state.to_play == uctree.CHANCE:
        reward[0] = 1.0 if action == 300 else -1.0
        state.to_play = uctree.OVER
    elif action == 0:
        state.to_play = uctree.CHANCE
    else:
        state.to_play = uctree.OVER


def _chance(state, outcomes, probabilities):
    outcomes[0], outcomes[1] = 200, 300
    probabilities[0], probabilities[1] = 0.25, 0.75
    return 2


COIN = uctree.Game(
    [("to_play", np.int8)], _legal, _step, num_players=1, num_actions=2, chance=_chance,
    max_outcomes=2, payoff_range=(-1, 1), name="coin",
)  # fmt: skip


@pytest.mark.parametrize("chance", ["sample", "proportional", selection.outcome_widening(2.0)])
def test_outcomes_may_be_any_numbers(chance):
    result = uctree.search(COIN, COIN.start(), num_simulations=4_000, chance=chance)
    assert result.action == 0
    assert result.edges["q"][0, 0] == pytest.approx(0.5, abs=0.05)
    tossed, _ = COIN.step(COIN.start(), 0)
    root = uctree.search(COIN, tossed, num_simulations=100, chance=chance)
    assert sorted(root.edges["action"].tolist()) == [200, 300]


# --- open loops ----------------------------------------------------------------------------------
# After an outcome o only the actions 2 o and 2 o + 1 are legal; the second of them pays.

NUM_OUTCOMES = 20
Place = np.dtype([("outcome", np.int16), ("turn", np.int16), ("to_play", np.int8)])


def _open_legal(state, actions):
    actions[0], actions[1] = 2 * state.outcome, 2 * state.outcome + 1
    return 2


def _open_step(state, action, reward):
    if state.to_play == uctree.CHANCE:
        state.outcome = action
        state.to_play = 0
        return
    if action // 2 != state.outcome:
        reward[0] = 1e9  # an action that is not legal here
    reward[0] += action % 2
    state.turn += 1
    state.to_play = uctree.OVER if state.turn == 3 else uctree.CHANCE


def _open_chance(state, outcomes, probabilities):
    for i in range(NUM_OUTCOMES):
        outcomes[i] = i
        probabilities[i] = 1.0 / NUM_OUTCOMES
    return NUM_OUTCOMES


def open_game():
    return uctree.Game(
        Place, _open_legal, _open_step, num_players=1, num_actions=2 * NUM_OUTCOMES,
        chance=_open_chance, max_outcomes=NUM_OUTCOMES, payoff_range=(0, 3), name="open",
    )  # fmt: skip


@pytest.mark.parametrize("max_memory", [None, "30kB"])
def test_an_open_loop_takes_only_what_is_legal(max_memory):
    game = open_game()
    result = uctree.search(
        game, game.start(), num_simulations=20_000, open_loop=True, max_memory=max_memory
    )
    assert result.action == 1
    assert 0 <= result.value[0] <= 3


def test_an_open_loop_is_kept_over_actions_and_outcomes():
    searcher = Searcher(open_game(), open_loop=True)
    total = 0.0
    rng = np.random.default_rng(1)
    while not searcher.game.is_over(searcher.state):
        if searcher.game.to_play(searcher.state) == uctree.CHANCE:
            action = int(rng.integers(NUM_OUTCOMES))
        else:
            action = searcher.search(num_simulations=3_000).action
            total += action % 2
        searcher.advance(action)
    assert total == 3


def test_an_open_loop_needs_no_chance_at_all():
    game = games.tic_tac_toe()
    result = uctree.search(game, game.start(), num_simulations=2_000, open_loop=True)
    assert result.edges["visits"].sum() == 2_000


# --- roots ---------------------------------------------------------------------------------------


def test_roots_where_nobody_moves_are_refused_where_somebody_must():
    tossed, _ = COIN.step(COIN.start(), 0)
    with pytest.raises(ValueError, match="take an outcome first"):
        uctree.search(COIN, tossed, num_simulations=10, open_loop=True)
    with pytest.raises(ValueError, match="take an outcome first"):
        uctree.search(COIN, tossed, num_simulations=10, opponents="paranoid")
