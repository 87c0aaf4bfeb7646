"""Reanalysis: positions of the replay that are searched again with the newest weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.game import Game
from uctree.learn.batched_play import NetworkSearch
from uctree.learn.options import Options
from uctree.learn.replay import Window
from uctree.learn.selfplay import Episode, network_evaluator
from uctree.learn.sequences import make_reanalysed

CHUNKS_PER_ITERATION = 1 << 20  # more than there are ever; their numbers tell iterations apart


@dataclass(frozen=True)
class Reanalysis:
    """What workers do in a reanalysis, in place of `selfplay.Setup`: search these positions."""

    game: Game
    options: Options
    network: Any  # as in `Setup`
    seed: int
    chunks: Mapping[int, tuple[np.ndarray, np.ndarray]]  # by number: positions and their states

    def play(self, numbers: Sequence[int]) -> Iterator[Episode]:
        """The results of these chunks, as `Reanalysed` takes them."""
        evaluator = network_evaluator(self.network, self.game, self.options)
        for number in numbers:
            positions, states = self.chunks[number]
            search = NetworkSearch(self.game, evaluator, self.options)
            roots = search.roots(list(states), [self.seed + int(each) for each in positions])
            policies = [(root.actions, search.policy(root)) for root in roots]
            values = [root.value for root in roots]
            found = make_reanalysed(self.game, positions, states, policies, values)
            simulations = sum(int(root.visits.sum()) for root in roots)
            yield Episode(number, found, np.zeros(self.game.num_players), 0, simulations)


def choose_chunks(
    window: Window, options: Options, iteration: int, count: int
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Positions to search again in an iteration, drawn by their weights, each at most once.

    The same iteration has the same chunks after every interruption.
    """
    rng = np.random.default_rng([options.seed, iteration, 3])
    drawn = np.unique(window.draw_numbers(rng, count)) if count else np.zeros(0, np.int64)
    chunks = {}
    for first in range(0, len(drawn), options.num_trees):
        numbers = drawn[first : first + options.num_trees]
        states = window.replay.states(window.entries, numbers)
        chunk = iteration * CHUNKS_PER_ITERATION + first // options.num_trees
        chunks[chunk] = numbers, states
    return chunks
