"""Games that are wrong on purpose, each in one way, named after it.

The first line of a docstring says what is wrong and ends with the rule that the doctor must name.
Most of them are one game with one mistake: a heap of seven, take one or two, the player who takes
the last one wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.small_games import Heap
from tests.small_games import heap_step as step
from uctree import CHANCE, OVER, Game, random_below
from uctree.doctor.checkup import check
from uctree.doctor.contract import Report

BROKEN: dict[str, Callable[[], Game]] = {}


def broken(factory: Callable[[], Game]) -> Callable[[], Game]:
    BROKEN[factory.__name__] = factory
    return factory


def rule_of(factory: Callable[[], Game]) -> str:
    """The rule named at the end of the first line of a docstring."""
    return str(factory.__doc__).splitlines()[0].rsplit("`", 2)[1]


# What plain Python cannot see of a game: these checks need its compiled rules.
NEED_MACHINE_CODE = {
    "does-not-compile", "compiled-anew", "diverges", "endless", "random-action-support",
    "random-action-uniform", "playout-agrees",
}  # fmt: skip


@cache
def report_of(name: str, compiled: bool = True) -> Report:
    """The report on a broken game; without a search, whose compilation takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setenv("NUMBA_DISABLE_JIT", "1")
        return check(BROKEN[name](), num_simulations=0)


# --- the game that is right ----------------------------------------------------------------------


def start(state):
    state.left = 7


def legal(state, actions):
    count = min(2, state.left)
    for i in range(count):
        actions[i] = i
    return count


def heap_game(**changes: Any) -> Game:
    """The right game with some of it replaced; `more` are further fields."""
    fields = Heap.descr + changes.pop("more", [])
    arguments: dict[str, Any] = {
        "dtype": np.dtype(fields), "legal": legal, "step": step, "start": start,
        "num_players": 2, "num_actions": 2, "name": "heap",
    }  # fmt: skip
    return Game(**arguments | changes)


# --- numbers and memory --------------------------------------------------------------------------


@broken
def counter_overflows() -> Game:
    """An int8 counts in steps of 40. `overflow`"""

    def counting(state, action, reward):
        state.score += 40
        step(state, action, reward)

    return heap_game(step=counting, more=[("score", "i1")])


@broken
def reads_out_of_bounds() -> Game:
    """The table of seven is asked for its eighth element. `out-of-bounds`"""
    worth = np.arange(7)

    def reading(state, action, reward):
        state.seen = worth[state.left]
        step(state, action, reward)

    return heap_game(step=reading, more=[("seen", "i8")])


@broken
def writes_out_of_bounds() -> Game:
    """The board has three cells, and the fourth ply writes a fourth one. `out-of-bounds`"""

    def writing(state, action, reward):
        state.board[state.ply] = 1
        step(state, action, reward)

    return heap_game(step=writing, more=[("board", "i1", (3,))])


@broken
def wraps_around_the_board() -> Game:
    """A neighbour to the left of the first cell is the last cell. `negative-index`"""

    def looking_left(state, action, reward):
        cell = state.ply
        if state.board[cell - 1] == 0:
            state.board[cell] = 1
        step(state, action, reward)

    return heap_game(step=looking_left, more=[("board", "i1", (7,))])


@broken
def legal_writes_too_many() -> Game:
    """Legal writes three actions where there are two. `out-of-bounds`"""

    def too_many(state, actions):
        for i in range(3):
            actions[i] = i
        return 2

    return heap_game(legal=too_many)


@broken
def mixes_signed_and_unsigned() -> Game:
    """uint64 and int64 together are an int64 for Numba, which has a sign. `diverges`"""

    def begin(state):
        start(state)
        state.bits = (1 << 63) + 1

    def mixing(state, action, reward):
        state.low = (state.bits + action) >> 60
        step(state, action, reward)

    more = [("bits", "u8"), ("low", "i8")]
    return heap_game(start=begin, step=mixing, more=more)


@broken
def small_integers_wrap() -> Game:
    """NumPy adds two int8 as int8, Numba as int64. `diverges`"""
    weights = np.array([100, 100, 3], np.int8)

    def adding(state, action, reward):
        state.total = weights[0] + weights[1]
        step(state, action, reward)

    return heap_game(step=adding, more=[("total", "i4")])


@broken
def python_integers_are_longer() -> Game:
    """A product beyond 64 bits is cut in compiled code before it is shifted. `diverges`"""

    def hashing(state, action, reward):
        state.hash = ((state.hash + action + 1) * 6364136223846793005 >> 56) & 0xFFFF
        step(state, action, reward)

    return heap_game(step=hashing, more=[("hash", "i8")])


@broken
def sums_in_single_precision() -> Game:
    """Compiled code adds float32 as float32, plain Python as float64. `diverges`"""

    def begin(state):
        start(state)
        state.parts[0], state.parts[1], state.parts[2] = 1e8, 1.0, -1e8

    def adding(state, action, reward):
        state.sum = state.parts[0] + state.parts[1] + state.parts[2]
        step(state, action, reward)

    return heap_game(start=begin, step=adding, more=[("parts", "f4", (3,)), ("sum", "f4")])


@broken
def rows_are_swapped_by_reference() -> Game:
    """The row kept aside is a view and has changed when it is put back. `stale-view`"""

    def swapping(state, action, reward):
        aside = state.rows[0]
        state.rows[0] = state.rows[1]
        state.rows[1] = aside
        step(state, action, reward)

    def begin(state):
        start(state)
        state.rows[0, 0], state.rows[1, 0] = 1, 2

    return heap_game(start=begin, step=swapping, more=[("rows", "i1", (2, 3))])


# --- what does not compile -----------------------------------------------------------------------


@broken
def uses_a_dict() -> Game:
    """A dict of lists in step. `does-not-compile`"""
    follows = {0: [1], 1: [0]}

    def looking_up(state, action, reward):
        player = state.to_play
        step(state, action, reward)
        if state.to_play != OVER:
            state.to_play = follows[player][0]

    return heap_game(step=looking_up)


@broken
def uses_a_class() -> Game:
    """An object with methods in legal. `does-not-compile`"""

    class Limits:
        most = 2

        def count(self, left: int) -> int:
            return min(self.most, left)

    limits = Limits()

    def asking(state, actions):
        count = limits.count(state.left)
        for i in range(count):
            actions[i] = i
        return count

    return heap_game(legal=asking)


# --- legal ---------------------------------------------------------------------------------------


@broken
def legal_lists_one_twice() -> Game:
    """The same action is listed twice. `legal-duplicate`"""

    def twice(state, actions):
        actions[0] = actions[1] = 0
        return 2

    return heap_game(legal=twice)


@broken
def legal_counts_from_one() -> Game:
    """Actions are 1 and 2 instead of 0 and 1. `legal-range`"""

    def from_one(state, actions):
        actions[0], actions[1] = 1, 2
        return min(2, state.left)

    return heap_game(legal=from_one)


@broken
def legal_leaves_gaps() -> Game:
    """The count covers actions that were never written. `legal-range`"""

    def gaps(state, actions):
        actions[0] = 0
        return 2

    return heap_game(legal=gaps)


@broken
def nothing_is_legal() -> Game:
    """With one object left nothing is legal, and the episode is not over. `legal-count`"""

    def none_at_one(state, actions):
        if state.left == 1:
            return 0
        return legal(state, actions)

    return heap_game(legal=none_at_one)


@broken
def legal_returns_nothing() -> Game:
    """The return is forgotten. `legal-count`"""

    def forgetful(state, actions):
        legal(state, actions)

    return heap_game(legal=forgetful)


@broken
def legal_counts_by_halves() -> Game:
    """Compiled code cuts 1.5 to 1. `legal-count`"""

    def half(state, actions):
        return legal(state, actions) - 0.5

    return heap_game(legal=half)


@broken
def legal_counts_its_calls() -> Game:
    """Legal changes a field. `legal-changes-state`"""

    def counting(state, actions):
        state.calls += 1
        return legal(state, actions)

    return heap_game(legal=counting, more=[("calls", "i4")])


# --- randomness and memory outside the record ----------------------------------------------------


@broken
def step_rolls_dice() -> Game:
    """Step draws from NumPy's generator. `hidden-randomness`"""

    def rolling(state, action, reward):
        state.luck = np.random.randint(0, 1000)
        step(state, action, reward)

    return heap_game(step=rolling, more=[("luck", "i4")])


@broken
def start_rolls_dice() -> Game:
    """Every episode starts with another heap. `hidden-randomness`"""

    def rolling(state):
        state.left = np.random.randint(5, 30)

    return heap_game(start=rolling)


@broken
def step_remembers() -> Game:
    """Step counts in a global array. `hidden-randomness`"""
    memory = np.zeros(1, np.int64)

    def remembering(state, action, reward):
        memory[0] += 1
        state.calls = memory[0]
        step(state, action, reward)

    return heap_game(step=remembering, more=[("calls", "i8")])


@broken
def data_is_written() -> Game:
    """Step writes into the tables of the game. `data-changed`"""

    def writing(state, action, reward, data):
        data[0][action] += 1
        step(state, action, reward)

    return heap_game(step=writing, data=(np.zeros(2, np.int64),))


# --- whose turn, and the end ---------------------------------------------------------------------


@broken
def there_is_no_third_player() -> Game:
    """The turn passes to player 2 of 2. `to-play-range`"""

    def passing(state, action, reward):
        player = state.to_play
        step(state, action, reward)
        if state.to_play != OVER:
            state.to_play = player + 1

    return heap_game(step=passing)


@broken
def chance_without_dice() -> Game:
    """A chance state in a game that has no chance function. `to-play-range`"""

    def gambling(state, action, reward):
        step(state, action, reward)
        if state.left == 3:
            state.to_play = CHANCE

    return heap_game(step=gambling)


@broken
def the_turn_never_passes() -> Game:
    """Player 0 makes every move. `never-to-play`"""

    def keeping(state, action, reward):
        step(state, action, reward)
        if state.to_play != OVER:
            state.to_play = 0

    return heap_game(step=keeping)


@broken
def the_end_is_missed() -> Game:
    """An empty heap is filled again. `endless`"""

    def refilling(state, action, reward):
        state.to_play = 1 - state.to_play
        state.left -= action + 1
        if state.left == 0:
            state.left = 7

    return heap_game(step=refilling)


@broken
def plies_are_too_few() -> Game:
    """Episodes take up to seven plies. `max-plies`"""
    return heap_game(max_plies=5)


@broken
def plies_are_not_counted() -> Game:
    """The field ply stays 0, so that max_plies means nothing. `ply-field`"""

    def lazy(state, action, reward):
        step(state, action, reward)
        state.ply = 0

    return heap_game(step=lazy, max_plies=7)


# --- rewards -------------------------------------------------------------------------------------


@broken
def the_loser_is_paid() -> Game:
    """The reward goes to to_play after the turn has passed. `perspective`"""

    def paying(state, action, reward):
        state.left -= action + 1
        state.to_play = 1 - state.to_play
        if state.left == 0:
            reward[state.to_play] = 1.0
            reward[1 - state.to_play] = -1.0
            state.to_play = OVER

    return heap_game(step=paying)


@broken
def the_next_of_three_is_paid() -> Game:
    """Of three players the one after the winner gets the reward. `perspective`"""

    def paying(state, action, reward):
        player = state.to_play
        state.left -= action + 1
        state.to_play = (player + 1) % 3
        if state.left == 0:
            reward[state.to_play] = 1.0
            state.to_play = OVER

    return heap_game(step=paying, num_players=3)


@broken
def player_0_is_always_paid() -> Game:
    """Whoever wins, player 0 gets the reward. `one-sided`"""

    def paying(state, action, reward):
        step(state, action, reward)
        if state.to_play == OVER:
            reward[0], reward[1] = 1.0, -1.0

    return heap_game(step=paying)


@broken
def nobody_loses() -> Game:
    """The game is declared zero-sum, and the loser pays nothing. `zero-sum`"""

    def paying(state, action, reward):
        step(state, action, reward)
        for player in range(2):
            reward[player] = max(0.0, reward[player])

    return heap_game(step=paying, zero_sum=True)


@broken
def pays_beyond_its_range() -> Game:
    """Every ply pays a bonus that payoff_range does not know. `payoff-range`"""

    def paying(state, action, reward):
        player = state.to_play
        step(state, action, reward)
        reward[player] += 0.5

    return heap_game(step=paying, payoff_range=(-1, 1))


@broken
def pays_nan() -> Game:
    """The draw that never was: inf - inf. `reward-finite`"""

    def paying(state, action, reward):
        step(state, action, reward)
        if state.left == 3:
            reward[0] = math.inf - math.inf

    return heap_game(step=paying)


@broken
def pays_more_than_sums_can_hold() -> Game:
    """A win is worth 1e308, and two of them are infinite. `reward-finite`"""

    def paying(state, action, reward):
        step(state, action, reward)
        reward[0] *= 1e308

    return heap_game(step=paying)


@broken
def divides_by_zero() -> Game:
    """A share of nothing. `raises`"""

    def sharing(state, action, reward):
        step(state, action, reward)
        reward[0] += 1 // state.left

    return heap_game(step=sharing)


# --- chance --------------------------------------------------------------------------------------


def coin_game(probabilities_of: tuple[float, ...], outcomes_of: tuple[int, ...], **changes) -> Game:
    """After every move a coin decides who is next."""

    def tossing(state, action, reward):
        if state.to_play == CHANCE:
            state.to_play = action
        else:
            step(state, action, reward)
            if state.to_play != OVER:
                state.to_play = CHANCE

    def coin(state, outcomes, probabilities):
        for i in range(len(outcomes_of)):
            outcomes[i] = outcomes_of[i]
            probabilities[i] = probabilities_of[i]
        return len(outcomes_of)

    return heap_game(**{"step": tossing, "chance": coin, "max_outcomes": 2} | changes)


@broken
def probabilities_are_short() -> Game:
    """Heads 0.5, tails 0.4. `chance-probabilities`"""
    return coin_game((0.5, 0.4), (0, 1))


@broken
def a_probability_is_negative() -> Game:
    """Heads 1.2, tails -0.2, which adds up to one. `chance-probabilities`"""
    return coin_game((1.2, -0.2), (0, 1))


@broken
def an_outcome_comes_twice() -> Game:
    """Heads and heads. `chance-count`"""
    return coin_game((0.5, 0.5), (0, 0))


@broken
def an_outcome_is_negative() -> Game:
    """Heads is 0, tails is -3. `chance-range`"""
    return coin_game((0.5, 0.5), (0, -3))


@broken
def a_probability_is_nan() -> Game:
    """A share of nothing. `chance-probabilities`"""
    return coin_game((0.5, math.nan), (0, 1))


@broken
def chance_changes_the_state() -> Game:
    """The coin is counted where it is only looked at. `changes-state`"""

    def counting(state, outcomes, probabilities):
        state.tosses += 1
        outcomes[0], probabilities[0] = 0, 1.0
        return 1

    return coin_game((), (), chance=counting, more=[("tosses", "i4")])


# --- keys, observations, playouts ----------------------------------------------------------------


@broken
def keys_forget_the_bonus() -> Game:
    """Who took two first gets a bonus, but the key does not know who did. `key-fields`"""

    def paying(state, action, reward):
        player = state.to_play
        if action == 1 and state.bonus == 0:
            state.bonus = player + 1
        step(state, action, reward)
        if state.to_play == OVER and state.bonus > 0:
            reward[state.bonus - 1] += 1.0

    fields = ("left", "ply", "to_play")
    return heap_game(step=paying, more=[("bonus", "i1")], key_fields=fields)


@broken
def observes_beyond_its_shape() -> Game:
    """Seven objects, six planes. `observe-shape`"""

    def observe(state, player, planes):
        for i in range(state.left):
            planes[i] = 1

    return heap_game(observe=observe, observation_shape=(6,))


@broken
def observes_nan() -> Game:
    """A ratio of what may be nothing. `observe-finite`"""

    def observe(state, player, planes):
        planes[0] = math.nan if state.left == 0 else 1 / state.left

    return heap_game(observe=observe, observation_shape=(1,))


@broken
def draws_what_is_illegal() -> Game:
    """random_action takes two where one is left. `random-action-support`"""

    def draw(state, rng):
        return random_below(rng, 2)

    return heap_game(random_action=draw)


@broken
def never_draws_an_action() -> Game:
    """random_action always takes one. `random-action-support`"""

    def draw(state, rng):
        return 0

    return heap_game(random_action=draw)


@broken
def draws_one_more_often() -> Game:
    """random_action takes one three times out of four. `random-action-uniform`"""

    def draw(state, rng):
        return 1 if random_below(rng, 4) == 0 and state.left > 1 else 0

    return heap_game(random_action=draw)


@broken
def playout_pays_the_other() -> Game:
    """The playout's reward goes to the wrong player. `playout-agrees`"""

    def playout(state, rng, reward):
        player = state.to_play
        while state.left > 0:
            state.left -= 1 + random_below(rng, min(2, state.left))
            player = 1 - player
        reward[player], reward[1 - player] = 1.0, -1.0

    return heap_game(playout=playout)


@broken
def playout_forgets_the_discount() -> Game:
    """A playout pays in full what steps would discount. `playout-agrees`"""

    def playout(state, rng, reward):
        player = state.to_play
        while state.left > 0:
            state.left -= 1 + random_below(rng, min(2, state.left))
            player = 1 - player
        reward[1 - player], reward[player] = 1.0, -1.0

    return heap_game(playout=playout, discount=0.8)


@broken
def heuristic_is_nan() -> Game:
    """A heuristic divides nothing by nothing. `heuristic-range`"""

    def heuristic(state, values):
        values[0] = math.nan if state.left == 4 else 0.0

    return heap_game(heuristic=heuristic)


@broken
def heuristic_counts_objects() -> Game:
    """A heuristic of seven in a game that pays one. `heuristic-range`"""

    def heuristic(state, values):
        values[state.to_play] = state.left

    return heap_game(heuristic=heuristic, payoff_range=(-1, 1))


@broken
def priors_are_nan() -> Game:
    """The logarithm of nothing less nothing. `priors-range`"""

    def priors(state, logits):
        logits[0] = math.nan if state.left == 4 else -math.inf

    return heap_game(priors=priors)


@broken
def priors_change_the_state() -> Game:
    """Priors count down on the way. `changes-state`"""

    def priors(state, logits):
        state.left -= 1
        logits[0] = state.left

    return heap_game(priors=priors)


# --- for people ----------------------------------------------------------------------------------


@broken
def show_raises() -> Game:
    """The text knows six heaps. `show-fails`"""

    def show(state):
        return ("none", "one", "two", "three", "four", "five", "six")[state.left]

    return heap_game(show=show)


@broken
def reads_another_action() -> Game:
    """Shown from one, read from zero. `read-action-roundtrip`"""

    def show_action(state, action):
        return str(action + 1)

    def read_action(state, text):
        return int(text)

    return heap_game(show_action=show_action, read_action=read_action)


@broken
def actions_look_alike() -> Game:
    """Every action is shown as the same word. `read-action-roundtrip`"""

    def show_action(state, action):
        return "take"

    return heap_game(show_action=show_action)


# --- what the author states ----------------------------------------------------------------------


@broken
def pays_nobody() -> Game:
    """The reward is forgotten. `never-pays`"""

    def forgetful(state, action, reward):
        step(state, action, reward)
        reward[0] = reward[1] = 0.0

    return heap_game(step=forgetful)


@broken
def loses_an_object() -> Game:
    """What is left and what was taken are not seven. `invariant`"""

    def counting(state, action, reward):
        if state.ply != 2:
            state.taken += action + 1
        step(state, action, reward)

    def invariant(state):
        return state.left + state.taken == 7

    return heap_game(step=counting, invariant=invariant, more=[("taken", "i2")])


@broken
def the_invariant_raises() -> Game:
    """The same by an assertion. `invariant`"""

    def invariant(state):
        assert state.left != 3, "three are left"

    return heap_game(invariant=invariant)


@broken
def player_0_takes_more() -> Game:
    """Seats are said to be alike, and player 1 may take one only. `seat-symmetry`"""

    def unfair(state, actions):
        count = min(2 if state.to_play == 0 else 1, state.left)
        for i in range(count):
            actions[i] = i
        return count

    return heap_game(legal=unfair, symmetric_seats=True)


@broken
def player_0_is_paid_double() -> Game:
    """Seats are said to be alike, and player 0 wins more. `seat-symmetry`"""

    def unfair(state, action, reward):
        player = state.to_play
        step(state, action, reward)
        if player == 0:
            reward[0] *= 2.0

    return heap_game(step=unfair, symmetric_seats=True)


@broken
def player_0_moves_twice() -> Game:
    """Seats are said to be alike, and player 0 goes on after it took one. `seat-symmetry`"""

    def unfair(state, action, reward):
        player = state.to_play
        step(state, action, reward)
        if state.to_play != OVER and player == 0 and action == 0:
            state.to_play = 0

    return heap_game(step=unfair, symmetric_seats=True)
