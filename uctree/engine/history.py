"""Samples of the root's edges during a search, and the history made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from uctree.kernels.records import NONE
from uctree.tree import Tree

MOST_SAMPLES = 64
MOST_BYTES = 1 << 20  # of the samples of one tree, once there are more than FEWEST_SAMPLES
FEWEST_SAMPLES = 8


class Sample(NamedTuple):
    """The records of the root's edges at one moment, as bytes that are decoded on demand."""

    simulations: int
    clock: float  # of time.perf_counter
    edges: bytes
    nodes: bytes  # with transpositions, the records of the nodes that the edges lead to


class BestSeen(NamedTuple):
    """The simulation of the largest return, in a game of one player without chance."""

    total: float  # from the root to the end of the episode
    path: np.ndarray  # actions in the tree
    drawn: int  # the state of the rng before the playout, which draws the other actions


class Samples:
    """The samples of one tree during a search: bounded in number, evenly spread."""

    def __init__(self) -> None:
        self.moments: list[Sample] = []
        self._stride = 1  # one call of `note` in `_stride` takes a sample
        self._num_calls = 0

    def note(self, tree: Tree, simulations: int, clock: float) -> None:
        """Add a sample of the root's edges, unless this call is one of those that are skipped.

        It costs about a microsecond: a copy of the root's edges.
        """
        self._num_calls += 1
        if self._num_calls % self._stride:
            return
        edges = tree.edges
        first, count = edges["first"][0], edges["num_edges"][0]
        if first == NONE:
            return
        records, nodes = edges[first : first + count], b""
        if tree.layout.shared:
            nodes = edges[np.maximum(0, records["node"])].tobytes()
        self.moments.append(Sample(simulations, clock, records.tobytes(), nodes))
        if len(self.moments) > FEWEST_SAMPLES:
            self._thin_out()

    def _thin_out(self) -> None:
        """Delete every second sample if there are too many."""
        last = self.moments[-1]
        most = MOST_BYTES // max(1, len(last.edges) + len(last.nodes))
        if len(self.moments) > max(FEWEST_SAMPLES, min(MOST_SAMPLES, most)):
            del self.moments[::2]
            self._stride *= 2


def history_dtype(num_edges: int, num_players: int) -> np.dtype:
    """The dtype of a row of `SearchResult.history`, one moment of a search."""
    return np.dtype(
        [
            ("simulations", np.int64),
            ("seconds", np.float64),
            ("visits", np.int64, (num_edges,)),
            ("q", np.float64, (num_edges, num_players)),
        ]
    )


def summed_samples(
    samples: Sequence[Samples], trees: Sequence[Tree], actions: np.ndarray
) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
    """Simulations, clock, visits and q of `actions` over all trees, per sample of the first tree.

    The other trees contribute their latest sample before it. An action that a root did not have yet
    has no visits.
    """
    if not samples:
        return
    for moment in samples[0].moments:
        simulations, visits = 0, np.zeros(len(actions), np.int64)
        sums = np.zeros((len(actions), trees[0].game.num_players))
        for each, tree in zip(samples, trees, strict=True):
            before = [sample for sample in each.moments if sample.clock <= moment.clock]
            if before:
                simulations += before[-1].simulations
                more_visits, more_sums = _read(before[-1], tree, actions)
                visits += more_visits
                sums += more_sums
        yield simulations, moment.clock, visits, sums / np.maximum(1, visits)[:, None]


def _read(sample: Sample, tree: Tree, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Visits, and sums of values per player, of `actions` in a sample."""
    records: Any = np.frombuffer(sample.edges, tree.edges.dtype)
    nodes = np.frombuffer(sample.nodes, tree.edges.dtype) if sample.nodes else records
    taken = records["vector" if tree.layout.dim else "action"]
    if taken.ndim > 1:  # replace each vector by a number
        both = np.unique(np.concatenate([actions, taken]), axis=0, return_inverse=True)[1].ravel()
        actions, taken = both[: len(actions)], both[len(actions) :]
    order = np.argsort(actions)
    places = np.minimum(np.searchsorted(actions[order], taken), len(actions) - 1)
    rows = order[places]
    found = actions[rows] == taken
    visits = np.zeros(len(actions), np.int64)
    sums = np.zeros((len(actions), tree.game.num_players))
    visits[rows[found]] = records["visits"][found]
    sums[rows[found]] = (tree.means(records, nodes) * records["visits"][:, None])[found]
    return visits, sums
