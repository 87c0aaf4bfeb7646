"""Nim: take any number of objects from one heap; the player of the last object loses, or wins."""

from __future__ import annotations

import re

import numpy as np

from uctree.game import OVER, Game


def nim(heaps: tuple[int, ...] = (1, 3, 5, 7), misere: bool = True) -> Game:
    """Nim on heaps of these sizes; action `(number taken - 1) * len(heaps) + heap`.

    The player who takes the last object loses, or wins with `misere=False`.
    """
    sizes = np.array(heaps, np.int64)
    if sizes.ndim != 1 or len(sizes) == 0 or min(sizes) < 1 or max(sizes) > 1000:
        raise ValueError(f"heaps must be sizes from 1 to 1000, at least one; got {heaps!r}")
    num_heaps, largest = len(sizes), int(max(sizes))
    position = np.dtype([("heaps", np.int16, num_heaps), ("to_play", np.int8)])
    last_pays = -1.0 if misere else 1.0

    def start(state):
        for heap in range(num_heaps):
            state.heaps[heap] = sizes[heap]

    def legal(state, actions):
        count = 0
        for taken in range(1, largest + 1):
            for heap in range(num_heaps):
                actions[count] = (taken - 1) * num_heaps + heap
                count += state.heaps[heap] >= taken
        return count

    def step(state, action, reward):
        player = state.to_play
        state.heaps[action % num_heaps] -= action // num_heaps + 1
        if state.heaps.sum() == 0:
            reward[player] = last_pays
            reward[1 - player] = -last_pays
            state.to_play = OVER
        else:
            state.to_play = 1 - player

    def observe(state, player, planes):
        # The same for both players: the objects that are left.
        for heap in range(num_heaps):
            for i in range(largest):
                planes[heap, i] = i < state.heaps[heap]

    def show(state):
        objects = [f"heap {i + 1}: {'|' * size} {size}" for i, size in enumerate(state.heaps)]
        return "\n".join(objects)

    def show_action(state, action):
        return f"heap {action % num_heaps + 1}, take {action // num_heaps + 1}"

    def read_action(state, text):
        heap, taken = (int(number) for number in re.findall(r"\d+", text))
        if not (1 <= heap <= num_heaps and taken >= 1):
            raise ValueError(f"expected a heap from 1 to {num_heaps} and a number; got {text!r}")
        return (taken - 1) * num_heaps + heap - 1

    kind = "" if misere else ", misere=False"
    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=num_heaps * largest,
        name=f"nim({', '.join(map(str, sizes))}{kind})",
        start=start,
        observe=observe,
        observation_shape=(num_heaps, largest),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=int(sum(sizes)),
        symmetric_seats=True,
        show=show,
        show_action=show_action,
        read_action=read_action,
    )
