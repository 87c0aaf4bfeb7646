"""Exact values by full recursion over the rules, and small games to try them on.

Slow and obvious: what proofs and converged searches are measured by. Play must not come back to a
state it has been in.
"""

from __future__ import annotations

import itertools
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


def provable(game: Game, root: Any) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
    """What follows from the ends, also where play goes in circles: by key, a pair of values.

    If payoffs add up to zero, they are the least and the largest for player 0. Else they are the
    same, and infinite while something that follows is not known.
    """
    states, after = {game.key(root): root}, {}
    for key in (found := list(states)):  # which grows meanwhile
        after[key] = []
        for action in game.legal(states[key]):
            following, reward = game.step(states[key], action)
            after[key].append((game.key(following), reward))
            if game.key(following) not in states:
                states[game.key(following)] = following
                found.append(game.key(following))
    low, high = np.full((2, game.num_players), np.inf)
    if game.zero_sum:
        least, most = (-np.inf, np.inf) if game.payoff_range is None else game.payoff_range[0]
        low, high = np.array([least, -least]), np.array([most, -most])
    end = np.zeros(game.num_players)
    pairs = {key: (end, end) if game.is_over(states[key]) else (low, high) for key in found}
    for _ in range(500):  # chance in a circle gets ever closer, and never there
        before = dict(pairs)
        for key in reversed(found):
            pairs[key] = tuple(
                _settled(game, states[key], [reward + pairs[k][i] for k, reward in after[key]])
                for i in (0, 1)
            )
        if all(np.array_equal(pairs[key], before[key]) for key in found):
            break
    return pairs


def _settled(game: Game, state: Any, values: list[np.ndarray]) -> np.ndarray:
    """The value of a state by those of its choices; infinite where one is not known."""
    if not game.zero_sum and any(np.isinf(value).any() for value in values):
        return np.full(game.num_players, np.inf)
    return _of_chance_or(game, state, values, lambda player: best_for(values, player))


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


# --- random games that may go on for ever, with chance -------------------------------------------
# `data` holds per place the player to move and its first choice; per choice where it leads, -1 if
# the episode ends there, what it pays, and its probability. Place 0 leads to all of the games.

Stop = np.dtype([("place", np.int32), ("to_play", np.int8)])


def _loop_legal(state, actions, data):
    count = data[1][state.place + 1] - data[1][state.place]
    for i in range(count):
        actions[i] = i
    return count


def _loop_chance(state, outcomes, probabilities, data):
    count = _loop_legal(state, outcomes, data)
    for i in range(count):
        probabilities[i] = data[4][data[1][state.place] + i]
    return count


def _loop_step(state, action, reward, data):
    choice = data[1][state.place] + action
    for player in range(reward.shape[0]):
        reward[player] += data[3][choice, player]
    state.to_play = OVER
    if data[2][choice] >= 0:
        state.place = data[2][choice]
        state.to_play = data[0][state.place]


def looping_game(
    num_games: int, num_places: int = 6, *, num_players: int = 2, seed: int = 0, pays: float = 0.0,
    share_of_chance: float = 0.3, **options: Any,
) -> Game:  # fmt: skip
    """Random games of `num_places` places in which any place may lead to any other, in one Game.

    The payoffs of two players add up to zero, those of more are independent.

    Args:
        pays: what half of the steps that do not end the episode pay player 0, at the places of the
            one who loses by it; who can end the episode there, so that values are finite.
        options: as in `Game`.
    """
    rng = np.random.default_rng(seed)
    size = num_games * num_places
    mover = rng.integers(num_players, size=1 + size)
    mover[1:][rng.random(size) < share_of_chance] = CHANCE
    mover[0] = 0
    counts = np.append(num_games, rng.integers(1, 4, size=size))
    first = np.append(0, np.cumsum(counts))
    owner = np.repeat(np.arange(1 + size), counts)
    begin = (owner - 1) // num_places * num_places + 1
    after = begin + rng.integers(num_places, size=len(owner))
    after[rng.random(len(owner)) < 0.25] = -1
    is_payer = mover == (0 if pays < 0 else 1)
    if pays != 0.0:
        after[first[:-1][is_payer]] = -1
    after[:num_games] = 1 + num_places * np.arange(num_games)
    ends = rng.integers(-2, 3, size=(len(owner), num_players)) / 2
    paid = np.where((after < 0)[:, None], ends, 0.0)
    paid[:, 0] += pays * (is_payer[owner] & (after >= 0) & (rng.random(len(owner)) < 0.5))
    if num_players == 2:
        paid[:, 1] = -paid[:, 0]
    paid[:num_games] = 0.0
    weight = rng.exponential(size=len(owner)) + 0.05
    weight /= np.bincount(owner, weight)[owner]
    data = (mover.astype(np.int8), first, after.astype(np.int32), paid + 0.0, weight)
    return Game(
        Stop, _loop_legal, _loop_step, data=data, num_players=num_players,
        num_actions=max(num_games, 3), chance=_loop_chance, max_outcomes=3, name="looping",
        **options,
    )  # fmt: skip


def looping_state(game: Game, place: int) -> np.record:
    """The state at a place of a `looping_game`."""
    state = game.start()
    state["place"], state["to_play"] = place, game.data[0][place]
    return state


def values_by_enumeration(game: Game, first_place: int, num_places: int) -> np.ndarray:
    """The values of player 0 at the places of one random game of a `looping_game`.

    Every pair of strategies that always do the same at a place is a Markov chain, whose values are
    linear equations. There are such strategies that are best (Liggett and Lippman 1969).
    """
    mover, first, after, paid, weight = game.data
    places = range(first_place, first_place + num_places)
    rows = []  # per place: for each choice, or for all outcomes, where it leads and what it pays
    for place in places:
        choices = np.arange(first[place], first[place + 1])
        leads = np.zeros((len(choices), num_places))
        stays = after[choices] >= 0
        leads[np.flatnonzero(stays), after[choices][stays] - first_place] = 1.0
        pays = paid[choices, 0]
        if mover[place] == CHANCE:
            chances = weight[choices][:, None]
            leads, pays = (chances * leads).sum(0)[None], (chances[:, 0] * pays).sum()[None]
        rows.append((leads, pays))
    kinds = [[i for i in range(num_places) if mover[places[i]] == p] for p in (0, 1, CHANCE)]
    grids = [_products([len(rows[i][1]) for i in kind]) for kind in kinds]
    found = np.zeros((len(grids[0]), len(grids[1]), num_places))
    for i, own in enumerate(grids[0]):
        leads = np.zeros((len(grids[1]), num_places, num_places))
        pays = np.zeros((len(grids[1]), num_places))
        for place, choice in zip(kinds[0], own, strict=True):
            leads[:, place], pays[:, place] = rows[place][0][choice], rows[place][1][choice]
        for k, place in enumerate(kinds[1]):
            leads[:, place] = rows[place][0][grids[1][:, k]]
            pays[:, place] = rows[place][1][grids[1][:, k]]
        for place in kinds[2]:
            leads[:, place], pays[:, place] = rows[place][0][0], rows[place][1][0]
        found[i] = _chain_values(leads, pays, game.discount, float(game.repetition_value[0]))
    value = found.min(1).max(0)
    np.testing.assert_allclose(value, found.max(0).min(0), atol=1e-9, rtol=1e-9)
    return value


def _products(sizes: list[int]) -> np.ndarray:
    """All combinations of one number below each size, one per row."""
    rows = list(itertools.product(*map(range, sizes)))
    return np.array(rows, int).reshape(len(rows), len(sizes))


def _chain_values(
    leads: np.ndarray, pays: np.ndarray, discount: float, repetition_value: float
) -> np.ndarray:
    """The returns of Markov chains, [num_chains, num_places], that pay on average in each place.

    Where a chain stays for ever it pays `repetition_value`; +-1e9 if it goes on paying.
    """
    size = leads.shape[1]
    one = np.eye(size)
    if discount < 1.0:
        return np.linalg.solve(one - discount * leads, pays[..., None])[..., 0]
    reaches = (leads > 0) | one.astype(bool)
    for _ in range(size.bit_length()):
        reaches = (reaches[..., None] & reaches[:, None]).any(2)
    leaves = leads.sum(2) < 1 - 1e-9
    returns = (~reaches | reaches.swapaxes(1, 2)).all(2)  # from wherever it can go
    stays = returns & ~(reaches & leaves[:, None]).any(2)
    paying = (reaches * pays[:, None]).sum(2)  # rewards of one game have one sign
    worth = np.where(paying != 0.0, np.sign(paying) * 1e9, repetition_value)
    matrix = np.where(stays[..., None], one, one - leads)
    return np.linalg.solve(matrix, np.where(stays, worth, pays)[..., None])[..., 0]


# --- games given as trees ------------------------------------------------------------------------
# `data` holds per place the player to move, the first child and the number of children; per child
# its probability and what a step to it pays.

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
