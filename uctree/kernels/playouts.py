"""The value of a leaf: by playouts, or by the user's functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.game import CHANCE, ENDLESS, LARGEST, OVER, random_below, random_unit
from uctree.kernels.context import Play, Search
from uctree.kernels.episodes import KEEPS_PLAYOUTS, note_episode
from uctree.kernels.records import NUM_VALUES, ZERO_SUM
from uctree.kernels.rules import (
    DISCOUNT,
    GUARD_AT,
    HAS_CHANCE,
    HAS_HEURISTIC,
    IS_CONTINUOUS,
    IS_ENDLESS_BAD,
    MAX_OUTCOMES,
    NOTES_ACTIONS,
    NUM_ACTIONS,
    NUM_PLAYERS,
    TAKES_PRIORS,
    chance,
    draw_action,
    evaluate_state,
    give_priors,
    heuristic,
    legal,
    play_on,
    playout_to_end,
    random_action,
    step,
)
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_COUNT,
    BAD_TO_PLAY,
    BAD_VALUE,
    DONE,
    ENDLESS_CHANCE,
    ENDLESS_PLAYOUT,
    GUARD,
    NOT_ZERO_SUM,
    WAITING,
)

ROUNDING = 1e-9  # how far a sum of probabilities may be from 1

# --- kernels: one playout ------------------------------------------------------------------------


def draw_legal(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """A random legal action; negative if `legal` returned a bad count."""
    count = np.int64(legal(state, actions, data))
    if count < 1 or count > NUM_ACTIONS:
        return -1
    return np.int64(actions[random_below(rng, count)])


def draw_shortcut(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    return np.int64(random_action(state, rng, data))


def draw_chance(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, rng: np.ndarray, data: Any
) -> int:
    """A random outcome of a chance state; negative if `chance` is seen to give no distribution.

    For playouts: it reads probabilities up to the outcome that it draws, and no further.
    """
    count = np.int64(chance(state, actions, probabilities, data))
    if count < 1 or count > MAX_OUTCOMES:
        return -1
    return draw_listed(count, actions, probabilities, rng)


def draw_checked(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, rng: np.ndarray, data: Any
) -> int:
    """A random outcome of a chance state; negative if `chance` gives no distribution."""
    count = np.int64(chance(state, actions, probabilities, data))
    if not is_distribution(count, actions, probabilities):
        return -1
    return draw_listed(count, actions, probabilities, rng)


def draw_listed(count: int, actions: np.ndarray, probabilities: np.ndarray, rng: np.ndarray) -> int:
    """One of the first `count` outcomes by their probabilities; negative if these are wrong."""
    rest = random_unit(rng)
    for i in range(count):
        if not probabilities[i] >= 0.0:
            return -1
        rest -= probabilities[i]
        if rest < 0.0:
            return np.int64(actions[i])
    return np.int64(actions[count - 1]) if rest < ROUNDING else np.int64(-1)


def is_distribution(count: int, actions: np.ndarray, probabilities: np.ndarray) -> bool:
    """Whether `chance` gave outcomes of at least 0, with probabilities that add up to 1."""
    if count < 1 or count > MAX_OUTCOMES:
        return False
    total = 0.0
    for i in range(count):
        if actions[i] < 0 or not probabilities[i] >= 0.0:
            return False
        total += probabilities[i]
    return abs(total - 1.0) < ROUNDING


def play_steps(play: Play, state: Any, limit: int) -> int:
    """Play at random to the end or for `limit` plies; add the rewards to `play.returns`."""
    actions, reward, returns = play.actions, play.reward, play.returns
    rng, data = play.rng, play.data
    discount = 1.0
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    for _ in range(limit):
        player = state.to_play
        if HAS_CHANCE and player == CHANCE:
            action = draw_chance(state, actions, play.probabilities, rng, data)
            if action < 0:
                return BAD_CHANCE
        elif player < 0 or player >= NUM_PLAYERS:  # the compiler makes this one comparison
            if player == OVER:
                break
            return BAD_TO_PLAY
        else:
            action = draw_action(state, actions, rng, data)
            if action < 0 or action >= NUM_ACTIONS:
                return BAD_ACTION
            if NOTES_ACTIONS:
                note_played(play.played, np.int64(player), action)
        if IS_CONTINUOUS:
            step(state, actions[0], reward, data)
        else:
            step(state, action, reward, data)
        if pays(reward):
            collect(reward, returns, discount)
        discount *= DISCOUNT
    # Adds zeros, unless a game that is declared zero-sum is not.
    collect(reward, returns, discount)
    if not IS_CONTINUOUS and actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if state.to_play == OVER:
        return DONE
    if IS_ENDLESS_BAD:
        return ENDLESS_PLAYOUT
    if HAS_HEURISTIC:
        heuristic(state, reward, data)
        collect(reward, returns, discount)
    return DONE


def note_played(played: np.ndarray, player: int, action: int) -> None:
    """Note that a player played an action in the current simulation, number `played[0]`."""
    played[1 + player * NUM_ACTIONS + action] = played[0]


def was_played(played: np.ndarray, turn: int, player: int, action: int) -> bool:
    """Whether a player played an action in the simulation number `turn`."""
    return played[1 + player * NUM_ACTIONS + action] == turn


def pays(reward: np.ndarray) -> bool:
    """Whether a step paid anything; in a zero-sum game player 0's reward decides."""
    for player in range(NUM_VALUES):  # noqa: SIM110
        if reward[player] != 0.0:
            return True
    return False


def collect(reward: np.ndarray, returns: np.ndarray, discount: float) -> None:
    """Move a reward to the returns."""
    for player in range(NUM_PLAYERS):
        returns[player] += discount * reward[player]
        reward[player] = 0.0


def play_shortcut(play: Play, state: Any, limit: int) -> int:
    """Play to the end with the game's own `playout`; add the rewards to `play.returns`."""
    reward = play.reward
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    if state.to_play != OVER:
        playout_to_end(state, play.rng, reward, play.data)
    collect(reward, play.returns, 1.0)
    return DONE


# --- kernels: the value of a leaf ----------------------------------------------------------------
# Each adds the returns from the leaf, `states[1]`, to `work.returns` and returns a status.


def play_of(search: Search) -> Play:
    """The arguments of a playout from the leaf; the leaf's list of actions is not overwritten."""
    work = search.work
    return Play(
        work.drawn, work.probabilities, work.reward, work.returns, search.rng, work.played,
        search.data,
    )  # fmt: skip


def value_by_playouts(search: Search) -> int:
    """The mean of playouts from the leaf; the last one plays the leaf's state to its end."""
    states, work, play = search.states, search.work, play_of(search)
    num_playouts = work.num_playouts
    limit = min(work.longest_playout, work.plies_left - work.depth)
    for _ in range(num_playouts - 1):
        states[2] = states[1]
        drawn, before = search.rng[0], work.returns[0]
        status = play_on(play, states[2], limit)
        if status != DONE:
            return status
        if KEEPS_PLAYOUTS:
            note_episode(search, states[2], work.returns[0] - before, drawn)
    drawn, before = search.rng[0], work.returns[0]
    status = play_on(play, states[1], limit)
    if KEEPS_PLAYOUTS and status == DONE:
        note_episode(search, states[1], work.returns[0] - before, drawn)
    for player in range(NUM_PLAYERS):
        work.returns[player] /= num_playouts
    return check_values(work.returns, status)


def value_by_playouts_with_priors(search: Search) -> int:
    """As `value_by_playouts`, with the game's log-priors in `logits`."""
    state, logits = search.states[1], search.work.logits
    if state.to_play >= 0:
        for action in range(NUM_ACTIONS):
            logits[action] = 0.0
        give_priors(state, logits, search.data)
    return value_by_playouts(search)


def value_by_function(search: Search) -> int:
    """The value by the user's function; at a chance state, that of a drawn state after it."""
    state, work = search.states[1], search.work
    discount = pass_chance(play_of(search), state)
    if discount < 0.0:
        return np.int64(-discount)
    if state.to_play != OVER:
        evaluate_state(state, work.reward, work.logits, search.rng, search.data)
        collect(work.reward, work.returns, discount)
    return check_values(work.returns, DONE)


def value_by_function_with_priors(search: Search) -> int:
    """As `value_by_function`, with its log-priors in `logits`."""
    logits = search.work.logits
    for action in range(NUM_ACTIONS):
        logits[action] = 0.0
    status = value_by_function(search)
    if TAKES_PRIORS:
        for action in range(NUM_ACTIONS):
            prior = logits[action]
            if prior > 0.0:
                logits[action] = math.log(prior)
            else:
                logits[action] = -math.inf if prior == 0.0 else math.nan
    return status


def value_by_batch(search: Search) -> int:
    """WAITING, with the discount of the leaf's value in `reward[0]`."""
    state, work = search.states[1], search.work
    discount = pass_chance(play_of(search), state)
    if discount < 0.0:
        return np.int64(-discount)
    if state.to_play == OVER:
        return check_values(work.returns, DONE)
    work.reward[0] = discount
    return WAITING


def pass_chance(play: Play, state: Any) -> float:
    """Draw outcomes until a player acts; the discount of later rewards, or minus a status."""
    reward, discount = play.reward, 1.0
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    if HAS_CHANCE:
        for _ in range(ENDLESS):
            if state.to_play != CHANCE:
                return discount
            action = draw_chance(state, play.actions, play.probabilities, play.rng, play.data)
            if action < 0:
                return -float(BAD_CHANCE)
            step(state, action, reward, play.data)
            collect(reward, play.returns, discount)
            discount *= DISCOUNT
        return -float(ENDLESS_CHANCE)
    return discount


def check_values(returns: np.ndarray, status: int) -> int:
    """`status`, or an error if the leaf's values are too large, NaN or not zero-sum."""
    if not are_bounded(returns):
        return BAD_VALUE
    if ZERO_SUM and returns[0] + returns[1] != 0.0:
        return NOT_ZERO_SUM
    return status


def are_bounded(values: np.ndarray) -> bool:
    """Whether the players' numbers are so small that sums and squares of them are finite.

    In zero-sum games the first player's number decides; the sum is checked beside it.
    """
    for player in range(NUM_VALUES):  # noqa: SIM110
        if not abs(values[player]) <= LARGEST:  # true for NaN as well
            return False
    return True
