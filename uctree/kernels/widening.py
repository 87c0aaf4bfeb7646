"""When a node gets another edge, in kernels: by its visits, or by drawn values.

Adaptive branching is of Inoue et al., "Wider or deeper? Scaling LLM inference-time compute with
adaptive branching tree search" (2025): what another action would be worth is drawn from what its
siblings were worth when they were new, and what is known is worth from all that came after.
"""

from __future__ import annotations

import numpy as np

from uctree.game import random_unit
from uctree.kernels.context import Search
from uctree.kernels.records import (
    CLOSED,
    HAS_ANSWERS,
    HAS_PENDING,
    IS_LAZY,
    KEEPS_FIRST_RETURNS,
    NONE,
    visits_of_node,
)
from uctree.kernels.rules import IS_CONTINUOUS
from uctree.kernels.scoring import edge_value, scale_unit, scaled_square
from uctree.selection import drawn_mean, widening_limit


def widens_by_visits(search: Search, node: int, player: int, num_open: int) -> bool:
    """Whether a node has fewer edges than its visits allow [Eq. 21]."""
    edges, given = search.edges, search.work.widening
    num_counted = num_open - count_closed(edges, node, num_open)
    limit = widening_limit(visits_of_node(edges, node), given[0], given[1], given[2])
    return bool(num_counted < limit)


def widens_by_draws(search: Search, node: int, player: int, num_open: int) -> bool:
    """Whether a value drawn for another edge is above one drawn for all those there are.

    What an edge returned at its first visit tells of new edges; everything later, of known ones.
    """
    edges, rng, prior = search.edges, search.rng, search.work.widening
    first = np.int64(edges[node].first)
    shift, factor, _, _ = scale_unit(search, first, num_open, player, 0.0)
    new_count, new_sum, new_squares = np.int64(0), 0.0, 0.0
    count, total, squares = np.int64(0), 0.0, 0.0
    for edge in range(first, first + num_open):
        visits = np.int64(edges[edge].visits)
        if visits == 0 or (HAS_ANSWERS and edges[edge].mover == CLOSED):
            continue
        opening = 0.0
        if KEEPS_FIRST_RETURNS:
            opening = (edges[edge].first_return - shift) * factor
        new_count += 1
        new_sum += opening
        new_squares += opening * opening
        q = (edge_value(search, np.int64(edge), player) - shift) * factor
        count += visits - 1
        total += visits * q - opening
        mean_square = scaled_square(search, np.int64(edge), player, shift, factor)
        squares += visits * mean_square - opening * opening
    if new_count == 0:
        return True
    of_new = drawn_mean(
        new_count, new_sum / new_count, new_squares / new_count, prior,
        random_unit(rng), random_unit(rng),
    )  # fmt: skip
    mean = total / count if count > 0 else 0.0
    mean_square = squares / count if count > 0 else 0.0
    of_known = drawn_mean(count, mean, mean_square, prior, random_unit(rng), random_unit(rng))
    return of_new > of_known


def count_open(edges: np.ndarray, node: int) -> int:
    """How many of a node's edges were taken; with widening these come first."""
    if IS_LAZY or IS_CONTINUOUS:
        return np.int64(edges[node].num_edges)
    first, count = np.int64(edges[node].first), np.int64(0)
    while count < edges[node].num_edges and is_taken(edges, first + count):
        count += 1
    return count


def count_closed(edges: np.ndarray, node: int, num_open: int) -> int:
    """How many of a node's first edges cannot be taken; widening does not count them."""
    count = np.int64(0)
    if HAS_ANSWERS:
        first = np.int64(edges[node].first)
        for edge in range(first, first + num_open):
            count += 1 if edges[edge].mover == CLOSED else 0
    return count


def first_taken(search: Search, node: int) -> int:
    """The first edge of a node that can be taken; NONE if all are closed."""
    edges = search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if edges[edge].mover != CLOSED:
            return np.int64(edge)
    return NONE


def is_taken(edges: np.ndarray, edge: int) -> bool:
    if HAS_ANSWERS and edges[edge].mover == CLOSED:
        return True
    if HAS_PENDING and edges[edge].pending > 0:
        return True
    return edges[edge].visits > 0
