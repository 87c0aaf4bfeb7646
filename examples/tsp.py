"""Plan a round trip through cities: one player, whose best episode is the answer.

    python examples/tsp.py [CITIES] [SIMULATIONS]

The search is compared with the shortest trip, by dynamic programming (Held and Karp 1962).
"""

from __future__ import annotations

import sys

import numpy as np

import uctree

Trip = np.dtype([("visited", np.int32), ("at", np.int8), ("ply", np.int8), ("to_play", np.int8)])


def legal(state, actions, data):
    count = 0
    for city in range(1, len(data[0])):
        if (state.visited >> city) & 1 == 0:
            actions[count] = city
            count += 1
    return count


def step(state, action, reward, data):
    (lengths,) = data
    reward[0] = -lengths[state.at, action]
    state.visited |= 1 << action
    state.at = action
    state.ply += 1
    if state.ply == len(lengths) - 1:
        reward[0] -= lengths[action, 0]
        state.to_play = uctree.OVER


def tsp(num_cities: int = 12, seed: int = 0) -> uctree.Game:
    """Random cities in a square; an action is the next city, and a step costs its length."""
    points = np.random.default_rng(seed).random((num_cities, 2))
    lengths = np.linalg.norm(points[:, None] - points, axis=2)
    return uctree.Game(
        Trip, legal, step, num_players=1, num_actions=num_cities, data=(lengths,),
        max_plies=num_cities - 1, name=f"tsp({num_cities}, seed {seed})",
    )  # fmt: skip


def shortest(game: uctree.Game) -> float:
    """The length of the shortest trip; it takes n² 2ⁿ steps."""
    (lengths,) = game.data
    n = len(lengths) - 1
    masks = np.arange(1 << n)  # sets of cities, without the first
    sizes = sum((masks >> city) & 1 for city in range(n))
    best = np.full((1 << n, n), np.inf)  # the shortest way through a set that ends at a city
    best[1 << np.arange(n), np.arange(n)] = lengths[0, 1:]
    for size in range(2, n + 1):
        for last in range(n):
            sets = masks[(sizes == size) & ((masks >> last) & 1 == 1)]
            best[sets, last] = (best[sets ^ (1 << last)] + lengths[1:, last + 1]).min(axis=1)
    return float((best[-1] + lengths[1:, 0]).min())


def main(num_cities: int = 12, num_simulations: int = 50_000) -> None:
    game = tsp(num_cities)
    best = uctree.search(game, num_simulations=num_simulations, seed=1).best_episode()
    excess = max(0.0, -best.returns / shortest(game) - 1)  # rounding can make it negative
    print(f"trip: {[0, *best.actions, 0]}")
    print(f"length {-best.returns:.4f}, {excess:.2%} above the shortest trip")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
