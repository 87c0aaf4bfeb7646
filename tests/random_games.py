"""Random games as tables: any number of players, any turn order, chance, rewards at every step.

One Game holds many random games side by side, and the state a search starts from says which one is
played. So one compilation serves them all. An action always leads to a later place, so that every
episode ends.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from uctree import CHANCE, OVER, Game, random_unit

PLACES = 30  # of one random game, the last ones of which are over
REACH = 6  # an action leads at most this many places on

Place = np.dtype([("place", np.int32), ("ply", np.int16), ("to_play", np.int8)])


# --- rules ---------------------------------------------------------------------------------------
# `data` holds, per place: the player to move, the number of choices, the choices in the order of
# `legal`, their probabilities at chance places; per place and action: where it leads, what it pays
# each player; then per place what an evaluator says: a value per player, a logit per action.


def legal(state, actions, data):
    count = data[1][state.place]
    for i in range(count):
        actions[i] = data[2][state.place, i]
    return count


def chance(state, outcomes, probabilities, data):
    count = data[1][state.place]
    for i in range(count):
        outcomes[i] = data[2][state.place, i]
        probabilities[i] = data[3][state.place, i]
    return count


def step(state, action, reward, data):
    place = state.place
    for player in range(reward.shape[0]):
        reward[player] += data[5][place, action, player]
    state.place = data[4][place, action]
    state.ply += 1
    state.to_play = data[0][state.place]


def start(state, data):
    state.to_play = data[0][0]


# --- what a leaf is worth ------------------------------------------------------------------------


def table_values(state, values, data):
    for player in range(values.shape[0]):
        values[player] = data[6][state.place, player]


def noisy_values(state, values, rng, data):
    for player in range(values.shape[0]):
        values[player] = data[6][state.place, player] + random_unit(rng)


def table_logits(state, values, logits, data):
    for player in range(values.shape[0]):
        values[player] = data[6][state.place, player]
    for action in range(logits.shape[0]):
        logits[action] = data[7][state.place, action]


def table_priors(state, values, priors, data):
    """Priors that are no distribution, zeros among them; all of them zero at some places."""
    for player in range(values.shape[0]):
        values[player] = data[6][state.place, player]
    for action in range(priors.shape[0]):
        priors[action] = max(0.0, data[7][state.place, action] + 0.5)
        if state.place % 7 == 6:
            priors[action] = 0.0


# --- games ---------------------------------------------------------------------------------------


def random_tables(
    *,
    num_players: int = 2,
    num_actions: int = 4,
    num_games: int = 12,
    seed: int = 0,
    has_chance: bool = False,
    zero_sum: bool = False,
) -> tuple[np.ndarray, ...]:
    """The `data` of `num_games` random games.

    Args:
        zero_sum: whether what one of two players gets the other one pays.
    """
    rng = np.random.default_rng(seed)
    games = [
        _tables(rng, i * PLACES, num_players, num_actions, has_chance, zero_sum)
        for i in range(num_games)
    ]
    return tuple(np.concatenate(tables) for tables in zip(*games, strict=True))


def _tables(
    rng: np.random.Generator, offset: int, num_players: int, num_actions: int, has_chance: bool,
    zero_sum: bool,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """The tables of one random game whose places begin at `offset`."""
    shape = (PLACES, num_actions)
    mover = rng.integers(num_players, size=PLACES)
    if has_chance:
        mover[rng.random(PLACES) < 0.3] = CHANCE
    mover[-3:] = OVER
    count = rng.integers(1, num_actions + 1, size=PLACES)
    count[0] = num_actions
    choices = np.array([rng.permutation(num_actions) for _ in range(PLACES)])
    weight = rng.exponential(size=shape) + 1e-3
    weight[:, 1::3] *= rng.random(PLACES)[:, None] < 0.7  # outcomes that cannot happen
    weight *= np.arange(num_actions) < count[:, None]
    after = np.arange(PLACES)[:, None] + rng.integers(1, REACH + 1, size=shape)
    reward = rng.normal(size=(*shape, num_players)) * (rng.random((*shape, num_players)) < 0.4)
    worth = rng.normal(size=(PLACES, num_players))
    if rng.random() < 0.5:  # coarse rewards, so that many scores tie
        reward, worth = np.round(2 * reward) / 2, np.round(2 * worth) / 2
    if zero_sum:
        reward[..., 1], worth[..., 1] = -reward[..., 0], -worth[..., 0]
    return (
        mover.astype(np.int8),
        count.astype(np.int32),
        choices.astype(np.int32),
        weight / weight.sum(1, keepdims=True),
        (np.minimum(after, PLACES - 1) + offset).astype(np.int32),
        reward + 0.0,
        worth + 0.0,
        rng.normal(size=shape),
    )


def game_of(
    tables: tuple[np.ndarray, ...],
    *,
    has_chance: bool = False,
    has_heuristic: bool = False,
    known_range: bool = False,
    discount: float = 1.0,
    **options: Any,
) -> Game:
    """A Game of these tables; `roots` tells where each of its random games begins.

    Args:
        known_range: whether the Game states its payoff_range.
        options: as in `Game`.
    """
    num_actions, num_players = tables[5].shape[1:]
    if has_chance:
        options |= {"chance": chance, "max_outcomes": num_actions}
    if has_heuristic:
        options["heuristic"] = table_values
    if known_range:
        low, high = (bound[::PLACES] for bound in return_bounds(tables, discount))
        options["payoff_range"] = np.stack([low.min(0) - 0.25, high.max(0) + 0.25], axis=1)
    return Game(
        Place, legal, step, start=start, data=tables, num_players=num_players,
        num_actions=num_actions, name="random", discount=discount, **options,
    )  # fmt: skip


def roots(game: Game) -> list[np.record]:
    """The states in which the random games of a Game begin."""
    states = []
    for place in range(0, len(game.data[0]), PLACES):
        state = game.start()
        state["place"], state["to_play"] = place, game.data[0][place]
        states.append(state)
    return states


def renamed(tables: tuple[np.ndarray, ...], names: list[int]) -> tuple[np.ndarray, ...]:
    """The same games where player i is called names[i]."""
    mover, *middle, reward, worth, logit = tables
    mover = np.where(mover >= 0, np.array(names)[mover], mover).astype(mover.dtype)
    back = np.argsort(names)
    return (mover, *middle, reward[..., back].copy(), worth[..., back].copy(), logit)


def return_bounds(tables: tuple[np.ndarray, ...], discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest return from each place on, per player, whatever is played."""
    mover, count, choices, _, after, reward, worth, _ = tables
    low, high = np.zeros_like(worth), np.zeros_like(worth)
    for place in reversed(range(len(mover))):
        if mover[place] != OVER:
            actions = choices[place, : count[place]]
            paid, then = reward[place, actions], after[place, actions]
            low[place] = (paid + discount * low[then]).min(0)
            high[place] = (paid + discount * high[then]).max(0)
    return low, high


def any_game(seed: int) -> tuple[Game, np.record]:
    """Any kind of random game of 1 to 4 players, and a state near its end to search from.

    With or without chance, rewards on the way, discount, a known range of payoffs, many actions,
    and circles; circles come with a limit on playouts.
    """
    rng = np.random.default_rng(seed)
    num_players = int(rng.integers(1, 5))
    has_chance, pays_late, in_circles = rng.random(3) < (0.4, 0.6, 0.3)
    zero_sum = num_players == 2 and rng.random() < 0.6
    num_actions = int(rng.choice([2, 3, 4, 40], p=[0.3, 0.3, 0.3, 0.1]))
    tables = random_tables(
        num_players=num_players, num_actions=num_actions, num_games=1, seed=seed,
        has_chance=bool(has_chance), zero_sum=zero_sum,
    )  # fmt: skip
    mover, count, choices, chances, after, reward, worth, logit = tables
    first = int(rng.integers(PLACES - 14, PLACES - 5))
    while mover[first] == CHANCE:
        first -= 1
    if in_circles:
        back = rng.random(after.shape) < 0.2
        after = np.where(back, rng.integers(first, PLACES, size=after.shape), after)
        after = after.astype(np.int32)
    if pays_late:
        ends = rng.integers(-2, 3, size=reward.shape) / 2
        if zero_sum:
            ends[..., 1] = -ends[..., 0]
        reward = np.where((mover[after] == OVER)[..., None], ends, 0.0)
    options: dict[str, Any] = {"has_heuristic": bool(rng.random() < 0.3)}
    if in_circles:
        value = np.round(rng.normal(size=num_players), 1)
        options["repetition_value"] = [value[0], -value[0]] if zero_sum else value
        options |= {"key_fields": ("place", "to_play"), "max_plies": 30}
    elif rng.random() < 0.5:
        options["key_fields"] = ("place", "to_play")
    if pays_late and rng.random() < 0.7:
        options["payoff_range"] = (-1.0, 1.0)
    if not pays_late and rng.random() < 0.5:
        options["discount"] = 0.8
    tables = (mover, count, choices, chances, after, reward, worth, logit)
    game = game_of(tables, has_chance=bool(has_chance), zero_sum=zero_sum, **options)
    state = game.start()
    state["place"], state["to_play"] = first, mover[first]
    return game, state


# A handful of shapes, so that few searches have to be compiled: what the tables hold, and what the
# Game says of them.
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alone, with dice": (
        {"num_players": 1, "has_chance": True, "seed": 3},
        {"has_chance": True, "has_heuristic": True, "discount": 0.95, "max_plies": 9},
    ),
    "two, zero-sum": (
        {"zero_sum": True, "seed": 1},
        {"zero_sum": True, "known_range": True},
    ),
    "two, zero-sum but not declared": (
        {"zero_sum": True, "seed": 1},
        {"known_range": True},
    ),
    "two, known range": (
        {"seed": 2},
        {"known_range": True, "discount": 0.8},
    ),
    "two, range of length one": (
        {"seed": 2},
        {"payoff_range": (-0.5, 0.5), "discount": 0.8},
    ),
    "two, many actions": (
        {"num_actions": 50, "seed": 5},
        {},
    ),
    "three": (
        {"num_players": 3, "seed": 6},
        {"discount": 0.9},
    ),
    "three, with dice": (
        {"num_players": 3, "num_actions": 5, "has_chance": True, "seed": 0},
        {"has_chance": True, "discount": 0.9},
    ),
}  # fmt: skip


@cache
def random_game(shape: str) -> Game:
    """The Game of one of the SHAPES."""
    tables, options = SHAPES[shape]
    return game_of(random_tables(**tables), **options)
