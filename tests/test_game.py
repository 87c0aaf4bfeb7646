"""The contract of a game in plain Python: what `Game` and its single steps refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.broken_games import coin_game, heap_game
from uctree import BrokenGame
from uctree.game import LARGEST, make_rng

pytestmark = pytest.mark.quick

# --- fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (">i4", "field 'more' has type .*bytes are in another order.*use np.int32"),
        (">f8", "bytes are in another order than this machine's; use np.float64"),
        ("f2", "field 'more' has type float16; floats of a state are np.float32 or np.float64"),
        (np.longdouble, "floats of a state are np.float32 or np.float64"),
        ((">i2", (3,)), "use np.int16"),
    ],
)
def test_fields_that_compiled_code_does_not_have_are_refused(kind, message):
    with pytest.raises(BrokenGame, match=message):
        heap_game(more=[("more", *kind) if isinstance(kind, tuple) else ("more", kind)])


# --- counts and outcomes -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1.5, None, 2.0, 0, 3])
def test_a_count_of_actions_is_a_whole_number_in_range(count):
    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return count

    game = heap_game(legal=legal)
    with pytest.raises(BrokenGame, match=rf"legal returned {count} .*whole number from 1 to 2"):
        game.legal(game.start())


def tossed(probabilities, outcomes, **changes):
    """The outcomes of the coin, as the game gives them."""
    game = coin_game(probabilities, outcomes, **changes)
    return game.outcomes(game.play([0]))


def test_outcomes_are_at_least_0():
    assert tossed((0.5, 0.5), (7, 1)) == [(7, 0.5), (1, 0.5)]
    with pytest.raises(BrokenGame, match=r"chance wrote the outcomes \[0, -3\]; expected whole"):
        tossed((0.5, 0.5), (0, -3))


@pytest.mark.parametrize("wrong", [(math.nan, 0.5), (1.5, -0.5), (0.5, 0.4), (math.inf, 0.0)])
def test_probabilities_are_a_distribution(wrong):
    with pytest.raises(BrokenGame, match="expected numbers of at least 0 that add up to 1"):
        tossed(wrong, (0, 1))


def test_a_count_of_outcomes_is_a_whole_number():
    with pytest.raises(BrokenGame, match="chance returned None outcomes; expected a whole number"):
        tossed((), (), chance=lambda state, outcomes, probabilities: None)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [1e308, -1e308, math.inf, math.nan, 1.1 * LARGEST])
def test_a_reward_whose_sums_would_overflow_is_refused(reward):
    def step(state, action, paid):
        paid[0] = reward

    game = heap_game(step=step)
    with pytest.raises(BrokenGame, match=r"rewards must be finite, and at most 1e\+100"):
        game.step(game.start(), 0)


def test_a_heuristic_is_finite():
    def heuristic(state, values):
        values[1] = math.inf

    game = heap_game(heuristic=heuristic)
    with pytest.raises(BrokenGame, match=r"the heuristic gave .*values must be finite"):
        game.estimate(game.start())


@pytest.mark.parametrize("payoffs", [(-1e308, 1e308), (0, 5e-324), (0, 1e-200)])
def test_a_range_of_payoffs_that_cannot_be_scaled_is_refused(payoffs):
    with pytest.raises(BrokenGame, match="pay in other units"):
        heap_game(payoff_range=payoffs)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64])
def test_numpy_integers_are_seeds(kind):
    assert make_rng(kind(5), kind(3)) == make_rng(5, 3)
    game = heap_game()
    assert game.random_episode(kind(5)).actions == game.random_episode(5).actions


# --- what only the doctor calls ------------------------------------------------------------------


def test_an_invariant_takes_the_state():
    with pytest.raises(BrokenGame, match=r"invariant takes 3 arguments; expected invariant\(state"):
        heap_game(invariant=lambda state, action, reward: True)
