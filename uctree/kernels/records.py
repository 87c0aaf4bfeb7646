"""Reading and writing the record of an edge, which also holds the node it leads to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.kernels.binding import UNBOUND
from uctree.kernels.rules import DIM, HAS_CHANCE, IS_CONTINUOUS

NONE = -1  # no edge
# Kernels pass int64 and never a literal: Numba would compile the callee once for each type.
NO_EDGES = np.int64(0)

# With more legal actions than this a node's edges are made when they are first taken, in blocks
# that double; else all at once. Making 225 edges at once costs gomoku a third of its speed.
LAZY_ABOVE = 32
FIRST_BLOCK = 4

MOST_VISITS = 2**31 - 2  # visits are 32 bits wide
MAX_DEPTH = 4096  # a descent ends here at the latest, and its last node is evaluated again

NO_LIMIT = np.int64(1 << 40)  # of a block that grows with its edges

UNSEEN = -3  # to_play of a state behind an edge that nobody has taken yet; see `HAS_ANSWERS`
CLOSED = -4  # the mover of an edge that cannot be taken

MOVER, EXACT = 1, 2  # what is proven of a node: its mover's component, or the whole vector

# Bound when a search is composed.
ZERO_SUM = UNBOUND  # vectors are stored as player 0's component alone
NUM_VALUES = UNBOUND  # how many components are stored
PARANOID = UNBOUND
HAS_PRIORS = IS_LAZY = KEEPS_SQUARES = KEEPS_RAW = HAS_AMAF = HAS_BOUNDS = UNBOUND
KEEPS_FIRST_RETURNS = UNBOUND
HAS_PROOFS = SHARES_NODES = HAS_PENDING = APPENDS = IS_SPARSE = UNBOUND  # see Layout
HAS_ANSWERS = UNBOUND  # steps are answered by Python, and edges keep the answers


# --- kernels: reading records --------------------------------------------------------------------


def component(stored: np.ndarray, player: int) -> float:
    """One player's component of a vector, from the components that are stored."""
    if ZERO_SUM:
        return stored[0] if player == 0 else -stored[0]
    return stored[player]


def value_for(tree: Any, stored: np.ndarray, player: int) -> float:
    """The value of a vector for the player to move.

    In paranoid search all other players choose what is worst for the root's player.
    """
    if PARANOID:
        part = component(stored, np.int64(tree.root_player))
        return part if player == tree.root_player else -part
    return component(stored, player)


def node_of(edges: np.ndarray, edge: int) -> int:
    """The record of the node of an edge; NONE if nodes are shared and the edge was never taken."""
    return np.int64(edges[edge].node) if SHARES_NODES else np.int64(edge)


def visits_of_node(edges: np.ndarray, node: int) -> int:
    """N(s)."""
    record = edges[np.uint64(node)]
    return np.int64(record.node_visits) if SHARES_NODES else np.int64(record.visits)


def is_exact(edges: np.ndarray, node: int) -> bool:
    """Whether all of a node's value is proven."""
    if HAS_BOUNDS:
        return edges[node].low == edges[node].high
    return edges[node].proof == EXACT


def write_edge(edges: np.ndarray, edge: int, action: int) -> None:
    """Write a new edge without visits."""
    record = edges[edge]
    for i in range(NUM_VALUES):
        record.value_sum[i] = 0.0
    record.visits = 0
    record.first = NONE
    record.action = action
    record.num_edges = 0
    if IS_LAZY:
        record.num_legal = 0
    if HAS_PRIORS or HAS_CHANCE:
        record.prior = 0.0
    if KEEPS_SQUARES:
        record.square_sum = 0.0
    if KEEPS_FIRST_RETURNS:
        record.first_return = 0.0
    if KEEPS_RAW:
        for i in range(NUM_VALUES):
            record.raw[i] = 0.0
    if HAS_AMAF:
        record.amaf_sum = 0.0
        record.amaf_visits = 0
    if HAS_BOUNDS:
        record.low = -math.inf
        record.high = math.inf
    elif HAS_PROOFS:
        record.proof = 0
        for i in range(NUM_VALUES):
            record.proven[i] = 0.0
    if HAS_ANSWERS:
        record.row = NONE
        record.count = 0
        record.mover = UNSEEN
    if SHARES_NODES or HAS_ANSWERS:
        for i in range(NUM_VALUES):
            record.reward[i] = 0.0
    if SHARES_NODES:
        for i in range(NUM_VALUES):
            record.own_sum[i] = 0.0
        record.node = NONE
        record.node_visits = 0
        record.cycles = 0
    if HAS_PENDING:
        record.pending = 0
    if IS_CONTINUOUS:
        for i in range(DIM):
            record.vector[i] = 0.0


def block_size(count: int, num_edges: int) -> int:
    """The size of the next block of a node with `count` legal actions and `num_edges` edges."""
    if count <= LAZY_ABOVE:
        return count
    return min(count, max(FIRST_BLOCK, 2 * num_edges))


def copy_edges(source: np.ndarray, first: int, target: np.ndarray, place: int, count: int) -> None:
    """Copy `count` records from `first` on to `target`, from `place` on."""
    for i in range(count):
        target[place + i] = source[first + i]


def block_capacity(count: int, num_edges: int) -> int:
    """The size of the block that holds `num_edges` edges now."""
    if count <= LAZY_ABOVE:
        return count
    capacity = np.int64(FIRST_BLOCK)
    while capacity < num_edges:
        capacity *= 2
    return min(count, capacity)


def capacity_of(edges: np.ndarray, node: int) -> int:
    """The size of the block of a node's edges."""
    num_edges = np.int64(edges[node].num_edges)
    if IS_LAZY and edges[node].num_legal > 0:  # chance nodes have none
        return block_capacity(np.int64(edges[node].num_legal), num_edges)
    return block_capacity(NO_LIMIT, num_edges) if APPENDS else num_edges
