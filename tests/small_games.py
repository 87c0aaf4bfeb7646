"""Small games that several test files search."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from uctree import CHANCE, OVER, Game

Heap = np.dtype([("left", np.int16), ("ply", np.int16), ("to_play", np.int8)])


def heap_legal(state, actions):
    count = min(3, state.left)
    for i in range(count):
        actions[i] = i
    return count


def heap_step(state, action, reward):
    player = state.to_play
    state.left -= action + 1
    state.ply += 1
    state.to_play = 1 - player
    if state.left == 0:
        reward[player] = 1.0
        reward[1 - player] = -1.0
        state.to_play = OVER


def heap_start(state):
    state.left = 9


@cache
def heap_game(**options: Any) -> Game:
    """Take 1, 2 or 3 from a heap of 9; the player who takes the last one wins."""
    return Game(
        Heap, heap_legal, heap_step, num_players=2, num_actions=3, start=heap_start,
        payoff_range=(-1.0, 1.0), name="heap", **options,
    )  # fmt: skip


def dice_game() -> Game:
    """Roll until a six comes; every roll pays 1."""

    def one(state, actions):
        actions[0] = 0
        return 1

    def roll(state, outcomes, probabilities):
        for i in range(2):
            outcomes[i] = i
        probabilities[0], probabilities[1] = 5 / 6, 1 / 6
        return 2

    def move(state, action, reward):
        if state.to_play == CHANCE:
            reward[0] = 1.0
            state.to_play = OVER if action == 1 else 0
        else:
            state.to_play = CHANCE

    return Game(
        [("to_play", np.int8)], one, move, num_players=1, num_actions=1, chance=roll, max_outcomes=2
    )


Tour = np.dtype([("at", np.int8), ("visited", np.int32), ("ply", np.int8), ("to_play", np.int8)])


def tour_game(num_cities: int = 6, seed: int = 0, **options: Any) -> Game:
    """One player visits all cities and returns to the first; a step costs its length."""
    points = np.random.default_rng(seed).random((num_cities, 2))
    lengths = np.linalg.norm(points[:, None] - points, axis=2)

    def legal(state, actions):
        count = 0
        for city in range(1, num_cities):
            if (state.visited >> city) & 1 == 0:
                actions[count] = city
                count += 1
        return count

    def step(state, action, reward, data):
        reward[0] = -data[0][state.at, action]
        state.at = action
        state.visited |= 1 << action
        state.ply += 1
        if state.ply == num_cities - 1:
            reward[0] -= data[0][action, 0]
            state.to_play = OVER

    return Game(
        Tour, legal, step, num_players=1, num_actions=num_cities, data=(lengths,), name="tour",
        max_plies=num_cities - 1, **options,
    )  # fmt: skip
