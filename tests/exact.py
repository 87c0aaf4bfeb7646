"""Exact values by full recursion over the rules, and small games to try them on.

Slow and obvious: what proofs and converged searches are measured by. Play must not come back to a
state it has been in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.random_games import PLACES, game_of, random_tables
from uctree import CHANCE, OVER, Game

# --- brute force ---------------------------------------------------------------------------------


def maxn(game: Game, state: Any, memo: dict[bytes, np.ndarray] | None = None) -> np.ndarray:
    """The returns from `state` on where all do what is best for them, the first of equals."""
    memo = {} if memo is None else memo
    key = game.key(state)
    if key not in memo:
        values = action_values(game, state, lambda after: maxn(game, after, memo))
        memo[key] = _of_chance_or(game, state, values, lambda p: best_for(values, p))
    return memo[key]


def paranoid(game: Game, state: Any, player: int) -> float:
    """What `player` gets from `state` on where all others are against that player."""
    memo: dict[bytes, np.ndarray] = {}

    def solved(state: Any) -> np.ndarray:
        key = game.key(state)
        if key not in memo:
            values = action_values(game, state, solved)
            signs = [1 if p == player else -1 for p in range(game.num_players)]
            memo[key] = _of_chance_or(
                game, state, values, lambda p: best_for([signs[p] * v for v in values], player)
            )
        return memo[key]

    return float(solved(state)[player])


def bounds(
    game: Game, state: Any, is_unknown: Callable[[Any], bool], low: float, high: float
) -> tuple[float, float]:
    """The least and the largest value of player 0 of two, whatever the unknown states are worth.

    States are unfolded into a tree, so that the same state may be worth this here and that there.
    """
    ends = []
    for unknown in (low, high):

        def solved(state: Any, unknown: float = unknown) -> np.ndarray:
            if is_unknown(state):
                return np.array([unknown, -unknown])
            values = action_values(game, state, solved)
            return _of_chance_or(game, state, values, lambda p: best_for(values, p))

        ends.append(float(solved(state)[0]))
    return ends[0], ends[1]


def action_values(game: Game, state: Any, value: Callable[[Any], np.ndarray]) -> list[np.ndarray]:
    """What each action or outcome of a state returns, in the order of `legal`."""
    values = []
    for action in game.legal(state):
        after, reward = game.step(state, action)
        values.append(reward + game.discount * value(after))
    return values


def best_for(values: list[np.ndarray], player: int) -> int:
    """The index of the value that is best for a player, the first of equals."""
    return max(range(len(values)), key=lambda i: values[i][player])


def _of_chance_or(
    game: Game, state: Any, values: list[np.ndarray], choose: Callable[[int], int]
) -> np.ndarray:
    player = game.to_play(state)
    if player == OVER:
        return np.zeros(game.num_players)
    if player == CHANCE:
        chances = [p for _, p in game.outcomes(state)]
        return sum((p * v for p, v in zip(chances, values, strict=True)), np.zeros(len(values[0])))
    return values[choose(player)]


# --- random games that pay at the end ------------------------------------------------------------

PLACEMENTS = [(a, b, c) for a in (1, -0.2, -1) for b in (1, -0.2, -1) for c in (1, -0.2, -1)
              if len({a, b, c}) == 3]  # fmt: skip
RESULTS = [(1, -1), (0, 0), (-1, 1)]
UNEVEN_RESULTS = [(1, 0), (1, 1), (-1, 1), (0.5, -1)]


def paying_at_the_end(
    payoffs: list[tuple[float, ...]], *, has_chance: bool = False, num_games: int = 12,
    num_actions: int = 4, seed: int = 0, **options: Any,
) -> Game:  # fmt: skip
    """Random games of `tests.random_games` where only the last step pays, one of `payoffs`.

    Args:
        options: as in `game_of`.
    """
    num_players = len(payoffs[0])
    mover, count, choices, chances, after, reward, worth, logit = random_tables(
        num_players=num_players, num_actions=num_actions, num_games=num_games, seed=seed,
        has_chance=has_chance,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    drawn = np.array(payoffs, float)[rng.integers(len(payoffs), size=after.shape)]
    reward = np.where((mover[after] == OVER)[..., None], drawn, 0.0)
    worth = np.tanh(worth)
    if options.get("zero_sum"):
        worth[:, 1] = -worth[:, 0]
    tables = (mover, count, choices, chances, after, reward, worth, logit)
    return game_of(tables, has_chance=has_chance, payoff_range=(-1.0, 1.0), **options)


def late_roots(game: Game, num_places: int) -> list[np.record]:
    """In each random game the first state with someone to play, `num_places` before its end."""
    states = []
    for end in range(PLACES, len(game.data[0]) + 1, PLACES):
        place = end - num_places
        while game.data[0][place] == CHANCE:
            place += 1
        if game.data[0][place] == OVER:
            continue
        state = game.start()
        state["place"], state["to_play"] = place, game.data[0][place]
        states.append(state)
    return states


# --- random games that may go round in circles ---------------------------------------------------

RING = 8  # places of one such game; the next one is over


def cyclic_game(num_games: int, seed: int = 0, **options: Any) -> Game:
    """Random zero-sum games of two where any place may lead to any other, over ones aside."""
    mover, *middle, after, reward, worth, logit = random_tables(
        num_games=num_games, num_actions=3, seed=seed
    )
    rng = np.random.default_rng(seed)
    for first in range(0, len(mover), PLACES):
        there = first + rng.integers(RING + 1, size=(RING, 3))
        stays = there == np.arange(first, first + RING)[:, None]
        after[first : first + RING] = np.where(stays, first + RING, there)
        mover[first + RING] = OVER
    drawn = np.array(RESULTS, float)[rng.integers(len(RESULTS), size=after.shape)]
    reward = np.where((mover[after] == OVER)[..., None], drawn, 0.0)
    tables = (mover, *middle, after, reward, 0.0 * worth, logit)
    key_fields = ("place", "to_play")
    return game_of(
        tables, zero_sum=True, payoff_range=(-1.0, 1.0), key_fields=key_fields, **options
    )


def cyclic_value(game: Game, state: Any) -> float:
    """What player 0 gets in a `cyclic_game`: 1 or -1 where that can be forced, else 0."""
    return float(_can_win(game, state, 0)) - float(_can_win(game, state, 1))


def _can_win(game: Game, root: Any, player: int) -> bool:
    """Whether a player can force a win, found from the end backwards."""
    mover, count, choices, _, after, reward, *_ = game.data
    first = int(root["place"]) // PLACES * PLACES
    won: set[int] = set()
    for _ in range(RING):
        for place in range(first, first + RING):
            actions = choices[place, : count[place]]
            wins = [
                after[place, a] in won
                or (mover[after[place, a]] == OVER and reward[place, a, player] == 1)
                for a in actions
            ]
            if any(wins) if mover[place] == player else all(wins):
                won.add(place)
    return int(root["place"]) in won


# --- games given as trees ------------------------------------------------------------------------
# `data` holds per place who is to play, the first child and the number of children; per child its
# probability and what a step to it pays.

Spot = np.dtype([("place", np.int32), ("to_play", np.int8)])


def _legal(state, actions, data):
    for i in range(data[2][state.place]):
        actions[i] = i
    return data[2][state.place]


def _chance(state, outcomes, probabilities, data):
    for i in range(data[2][state.place]):
        outcomes[i] = i
        probabilities[i] = data[3][data[1][state.place] + i]
    return data[2][state.place]


def _step(state, action, reward, data):
    state.place = data[1][state.place] + action
    for player in range(reward.shape[0]):
        reward[player] += data[4][state.place, player]
    state.to_play = data[0][state.place]


def _start(state, data):
    state.to_play = data[0][0]


def tree_game(tree: dict[str, Any], num_players: int, **options: Any) -> tuple[Game, set[int]]:
    """A game given as nested nodes with "children" and "player" or "chance", or a "leaf".

    Also the places of nodes that are "unknown"; they pay nothing.
    """
    nodes, firsts, unknown = [tree], [], set()
    chances = [1.0]
    for place, node in enumerate(nodes):  # which grows meanwhile: breadth first
        children = node.get("children", [])
        firsts.append(len(nodes))
        nodes += children
        chances += node.get("chance", [1.0] * len(children))
        if "unknown" in node:
            unknown.add(place)
    mover = [node.get("player", CHANCE if "chance" in node else OVER) for node in nodes]
    counts = [len(node.get("children", [])) for node in nodes]
    paid = [node.get("leaf", [0.0] * num_players) for node in nodes]
    data = (
        np.array(mover, np.int8), np.array(firsts, np.int32), np.array(counts, np.int32),
        np.array(chances), np.array(paid, float),
    )  # fmt: skip
    if CHANCE in mover:
        options |= {"chance": _chance, "max_outcomes": max(counts)}
    game = Game(
        Spot, _legal, _step, start=_start, data=data, num_players=num_players,
        num_actions=max(counts), name="tree", **options,
    )  # fmt: skip
    return game, unknown
