"""What the root looked like while a search went on, at a few moments of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from uctree.tree import NONE, Tree

MOST_SAMPLES = 64
MOST_BYTES = 1 << 20  # of the samples of one tree, but for the fewest there are
FEWEST_SAMPLES = 8


class Sample(NamedTuple):
    """The records of the root's edges at one moment, as bytes: they are read when asked for."""

    simulations: int
    clock: float  # of time.perf_counter
    edges: bytes
    nodes: bytes  # where nodes are shared, the records of those that the edges lead to


class Samples:
    """The samples of one tree while it is searched: bounded in number, evenly spread."""

    def __init__(self) -> None:
        self.kept: list[Sample] = []
        self._every = 1  # so many moments are met for one that is kept
        self._met = 0

    def note(self, tree: Tree, simulations: int, clock: float) -> None:
        """Keep this moment, or let it pass; the tree is only read.

        It costs about a microsecond: a copy of the root's edges.
        """
        self._met += 1
        if self._met % self._every:
            return
        edges = tree.edges
        first, count = edges["first"][0], edges["num_edges"][0]
        if first == NONE:
            return
        records, nodes = edges[first : first + count], b""
        if tree.layout.shared:
            nodes = edges[np.maximum(0, records["node"])].tobytes()
        self.kept.append(Sample(simulations, clock, records.tobytes(), nodes))
        if len(self.kept) > FEWEST_SAMPLES:
            self._thin_out()

    def _thin_out(self) -> None:
        """Give up every second sample where there are too many."""
        last = self.kept[-1]
        most = MOST_BYTES // max(1, len(last.edges) + len(last.nodes))
        if len(self.kept) > max(FEWEST_SAMPLES, min(MOST_SAMPLES, most)):
            del self.kept[::2]
            self._every *= 2


def history_dtype(num_edges: int, num_players: int) -> np.dtype:
    """One moment of a search: what `SearchResult.history` has rows of."""
    return np.dtype(
        [
            ("simulations", np.int64),
            ("seconds", np.float64),
            ("visits", np.int64, (num_edges,)),
            ("q", np.float64, (num_edges, num_players)),
        ]
    )


def added_up(
    samples: Sequence[Samples], trees: Sequence[Tree], actions: np.ndarray
) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
    """Simulations, clock, visits and q of `actions`, at each moment kept of the first tree.

    Of the other trees the last moment before counts. Actions that a root had not yet have no
    visits.
    """
    if not samples:
        return
    for moment in samples[0].kept:
        simulations, visits = 0, np.zeros(len(actions), np.int64)
        sums = np.zeros((len(actions), trees[0].game.num_players))
        for each, tree in zip(samples, trees, strict=True):
            before = [sample for sample in each.kept if sample.clock <= moment.clock]
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
    if taken.ndim > 1:  # a number for each vector
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
