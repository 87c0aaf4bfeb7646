"""Our games in OpenSpiel: registered, played by its bots, equal to its own."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import adapters, games

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
import pyspiel
from open_spiel.python.algorithms import mcts

pytestmark = pytest.mark.peer

SMALL = {"go": {"size": 5}, "hex": {"size": 4}, "n_in_a_row": {"rows": 5, "cols": 5, "length": 4}}
FITTING = [
    name
    for name in games.__all__
    if name not in ("leap", "loss_game", "point_mass", "twenty48")
]  # fmt: skip
BUILT = {name: getattr(games, name)(**SMALL.get(name, {})) for name in FITTING}


@pytest.mark.parametrize("name", FITTING)
def test_a_random_episode_in_openspiel_is_one_of_the_game(name):
    game = BUILT[name]
    theirs = adapters.to_openspiel(game, f"uctree_test_{name}")
    assert str(pyspiel.load_game(f"uctree_test_{name}")) == str(theirs)
    state, rng = theirs.new_initial_state(), np.random.default_rng(1)
    ours, returns = game.start(), np.zeros(game.num_players)
    while not state.is_terminal() and len(state.history()) < 300:
        if state.is_chance_node():
            outcomes, shares = zip(*state.chance_outcomes(), strict=True)
            action = int(rng.choice(outcomes, p=shares))
        else:
            assert state.legal_actions() == sorted(game.legal(ours))
            action = int(rng.choice(state.legal_actions()))
        twin = state.clone()
        state.apply_action(action)
        assert str(twin) == game.show(ours)  # a copy is not moved
        ours, reward = game.step(ours, action)
        returns += reward
        assert str(state) == game.show(ours)
        assert state.rewards() == list(reward)
    assert state.returns() == list(returns)


def test_a_bot_of_openspiel_finds_the_winning_action():
    theirs = adapters.to_openspiel(BUILT["tic_tac_toe"], "uctree_test_ends", pays_at_end=True)
    state = theirs.new_initial_state()
    for action in (0, 3, 1, 4):
        state.apply_action(action)
    evaluator = mcts.RandomRolloutEvaluator(1, np.random.RandomState(1))
    bot = mcts.MCTSBot(
        state.get_game(), 2, 50, evaluator, solve=True, random_state=np.random.RandomState(1)
    )
    assert bot.step(state) == 2


def test_a_reward_before_the_end_is_not_hidden():
    theirs = adapters.to_openspiel(BUILT["dots_and_boxes"], "uctree_test_boxes", pays_at_end=True)
    state = theirs.new_initial_state()
    with pytest.raises(uctree.BrokenGame, match="before the end; register it without pays_at_end"):
        play_first_actions(state)


def play_first_actions(state):
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])


def test_what_openspiel_cannot_take_is_refused():
    with pytest.raises(ValueError, match="states no payoff_range"):
        adapters.to_openspiel(games.twenty48())
    adapters.to_openspiel(BUILT["nim"], "uctree_test_nim")
    with pytest.raises(ValueError, match="another game is registered as 'uctree_test_nim'"):
        adapters.to_openspiel(games.nim(), "uctree_test_nim")
    with pytest.raises(ValueError, match="OpenSpiel has a game 'chess' already"):
        adapters.to_openspiel(BUILT["nim"], "chess")
    with pytest.raises(ValueError, match="are vectors"):
        adapters.to_openspiel(games.leap())
