"""Tree: flat arrays of edges. An edge and the node it leads to share one record.

The root is the node of edge 0, which nobody takes. The edges of a node stand side by side from
`first` on. There are no parent pointers (the path of a descent is kept on the side) and no states
(they are replayed from the root's).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify._compile import UNBOUND
from ramify.game import Game

NONE = -1  # no edge

# Above so many legal actions a node's edges are made when they are first taken, in blocks that
# double; up to it all at once. Making 225 edges at once costs gomoku a third of its speed.
LAZY_ABOVE = 32
FIRST_BLOCK = 4

# Bound when a search is composed.
ZERO_SUM = UNBOUND  # vectors are kept as player 0's component alone
NUM_VALUES = UNBOUND  # how many components are kept
HAS_PRIORS = UNBOUND  # edges are made all at once, with priors from the evaluator


def edge_dtype(game: Game, has_priors: bool) -> np.dtype:
    """The record of an edge: 19 bytes for a zero-sum game of less than 128 actions."""
    largest = max(game.num_actions, game.max_outcomes)
    small = next(t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max)
    fields: list[Any] = [
        ("value_sum", np.float64, (num_values(game),)),  # W(s,a)
        ("visits", np.int32),  # N(s,a); for edge 0 the visits of the root, N(s)
        ("first", np.int32),  # the first edge of the node this leads to; NONE before it has any
        ("action", small),
        ("num_edges", small),  # of the node this leads to, from `first` on
    ]
    if has_priors:
        fields.append(("prior", np.float64 if game.max_outcomes else np.float32))
    else:
        fields.append(("num_legal", small))  # how many edges the node will have in the end
        if game.max_outcomes:
            fields.append(("prior", np.float64))  # of an outcome: its probability
    # Packed: beyond the caches, small records bring more than aligned ones (a tenth at 1M edges).
    return np.dtype(fields)


def num_values(game: Game) -> int:
    """How many components of a vector over the players are kept."""
    return 1 if game.zero_sum else game.num_players


def head_dtype(num_players: int) -> np.dtype:
    """What a tree knows beyond its edges."""
    return np.dtype(
        [
            ("used", np.int64),  # edges in use
            ("capacity", np.int64),
            ("may_grow", np.int8),  # whether more capacity can be had
            ("simulations", np.int64),
            ("depth_sum", np.int64),
            ("depth", np.int64),  # of the latest simulation
            ("low", np.float64, (num_players,)),  # range of returns, given or seen so far
            ("high", np.float64, (num_players,)),
        ]
    )


def component(kept: np.ndarray, player: int) -> float:
    """One player's part of a vector, from the components that are kept of it."""
    if ZERO_SUM:
        return kept[0] if player == 0 else -kept[0]
    return kept[player]


def write_edge(edges: np.ndarray, edge: int, action: int) -> None:
    """Make a new edge that nobody has taken."""
    record = edges[edge]
    for i in range(NUM_VALUES):
        record.value_sum[i] = 0.0
    record.visits = 0
    record.first = NONE
    record.action = action
    record.num_edges = 0
    if not HAS_PRIORS:
        record.num_legal = 0


@dataclass(frozen=True)
class Node:
    """A read-only view of one node of a tree."""

    tree: Tree
    edge: int  # the edge that leads to it, 0 for the root
    state: np.record

    @property
    def visits(self) -> int:
        return int(self.tree.edges["visits"][self.edge])

    @property
    def to_play(self) -> int:
        return int(self.state["to_play"])

    @property
    def edges(self) -> range:
        """The edges that exist below this node."""
        record = self.tree.edges[self.edge]
        first = int(record["first"])
        return range(0) if first == NONE else range(first, first + int(record["num_edges"]))

    def child(self, edge: int) -> Node:
        """The node that one of `edges` leads to."""
        state, _ = self.tree.game.step(self.state, int(self.tree.edges["action"][edge]))
        return Node(self.tree, edge, state)

    def walk(self) -> Iterator[Node]:
        """This node and all below it that were visited, depth first."""
        yield self
        for edge in self.edges:
            if self.tree.edges["visits"][edge]:
                yield from self.child(edge).walk()


class Tree:
    """The statistics of a search; hand it to `ramify.search` again to go on from it."""

    def __init__(
        self, game: Game, state: np.record, has_priors: bool, num_root_edges: int, capacity: int
    ) -> None:
        self.game = game
        self.state = state
        self.has_priors = has_priors
        self.edges = np.empty(capacity, edge_dtype(game, has_priors))
        self.edges[0] = 0
        self.edges["first"][0] = NONE
        self.head = np.zeros(1, head_dtype(game.num_players))
        self.head["used"] = 1
        self.head["capacity"] = capacity
        known = game.payoff_range
        self.head["low"] = np.inf if known is None else known[:, 0]
        self.head["high"] = -np.inf if known is None else known[:, 1]
        # Sum of squared returns per edge of the root, for confidence bounds.
        self.root_squares = np.zeros((max(1, num_root_edges), num_values(game)))

    @property
    def root(self) -> Node:
        return Node(self, 0, self.state)

    @property
    def num_edges(self) -> int:
        """Edges in use, room set aside for siblings included."""
        return int(self.head["used"][0]) - 1

    @property
    def num_bytes(self) -> int:
        """All memory of the tree."""
        return self.edges.nbytes + self.head.nbytes + self.root_squares.nbytes

    @property
    def mean_depth(self) -> float:
        """Edges taken per simulation."""
        return float(self.head["depth_sum"][0] / max(1, self.head["simulations"][0]))

    def resize(self, capacity: int) -> None:
        """Give the tree room for `capacity` edges, at least for those in use."""
        used = int(self.head["used"][0])
        capacity = max(capacity, used)
        if capacity <= len(self.edges):
            # In place, unless someone else looks at the array.
            with contextlib.suppress(ValueError):
                self.edges.resize(capacity)
        if capacity == len(self.edges):
            self.head["capacity"] = capacity
            return
        edges = np.empty(capacity, self.edges.dtype)
        num_bytes = used * edges.dtype.itemsize
        # As bytes: NumPy copies records field by field, ten times slower.
        edges.view(np.uint8)[:num_bytes] = self.edges.view(np.uint8)[:num_bytes]
        self.edges = edges
        self.head["capacity"] = len(edges)

    def values(self, edges: range) -> np.ndarray:
        """W of these edges as vectors over the players."""
        sums = self.edges["value_sum"][edges.start : edges.stop]
        return np.hstack([sums, -sums]) if self.game.zero_sum else sums

    def mean_values(self, edges: range) -> np.ndarray:
        """Q of these edges per player; 0 where an edge was never taken."""
        visits = np.maximum(1, self.edges["visits"][edges.start : edges.stop])
        return self.values(edges) / visits[:, None] + 0.0
