"""New edges of nodes, in kernels: of actions, outcomes and vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.game import CHANCE
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Search
from uctree.kernels.playouts import draw_checked, is_distribution
from uctree.kernels.records import (
    APPENDS,
    FIRST_BLOCK,
    IS_LAZY,
    LAZY_ABOVE,
    NO_EDGES,
    NO_LIMIT,
    NONE,
    block_capacity,
    block_size,
    copy_edges,
    visits_of_node,
    write_edge,
)
from uctree.kernels.rules import (
    DIM,
    GUARD_AT,
    HAS_CHANCE,
    IS_CONTINUOUS,
    NUM_ACTIONS,
    chance,
    legal,
)
from uctree.kernels.scoring import OPEN_LOOP, drawn_again
from uctree.kernels.status import BAD_ACTION, BAD_CHANCE, BAD_COUNT, DONE, GUARD, NEED_CAPACITY
from uctree.selection import widening_limit

# Bound when a search is composed.
pick_outcome = UNBOUND
propose = UNBOUND  # how actions that are vectors are found
WIDENS_OUTCOMES = UNBOUND
NUM_BLOCKS = UNBOUND  # how many nodes get an edge in one simulation, if actions are vectors


def expand(search: Search, node: int, state: Any) -> int:
    """Give a node its edges, or its first ones; it gets none if there is no capacity."""
    edges, work, data = search.edges, search.work, search.data
    if HAS_CHANCE and state.to_play == CHANCE:
        if WIDENS_OUTCOMES:
            move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
            return DONE
        return expand_chance(search, node, state)
    if IS_CONTINUOUS:
        move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    count = np.int64(legal(state, work.actions, data))
    if count < 1 or count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if OPEN_LOOP:
        move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    if not IS_LAZY:
        return make_edges(search, node, work.actions, NO_EDGES, count)
    status = make_edges(search, node, work.actions, NO_EDGES, block_size(count, NO_EDGES))
    edges[node].num_legal = count
    edges[node].num_edges = 0
    return status


def move_block(search: Search, node: int, num_moved: int, size: int) -> bool:
    """Move a node's `num_moved` edges to a new block, and add new ones; False without capacity."""
    tree, edges = search.tree, search.edges
    if tree.used + size > tree.capacity:
        return False
    first = np.int64(tree.used)
    copy_edges(edges, np.int64(edges[node].first), edges, first, num_moved)
    for i in range(num_moved, size):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += size
    edges[node].first = first
    edges[node].num_edges = num_moved
    if IS_CONTINUOUS and 2 * NUM_BLOCKS * size > tree.reserve:
        tree.reserve = 2 * NUM_BLOCKS * size  # the next simulation may double this block
    return True


def make_edges(search: Search, node: int, actions: np.ndarray, num_moved: int, size: int) -> int:
    """Move a node's first `num_moved` edges to a new block of `size` edges, the others new."""
    tree, edges = search.tree, search.edges
    capacity = block_capacity(NO_LIMIT, size) if APPENDS and not IS_LAZY else size
    if tree.used + capacity > tree.capacity:
        return DONE
    first = np.int64(tree.used)
    copy_edges(edges, np.int64(edges[node].first), edges, first, num_moved)
    for i in range(num_moved, size):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return BAD_ACTION
        write_edge(edges, first + i, np.int64(actions[i]))
    for i in range(size, capacity):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += capacity
    edges[node].first = first
    edges[node].num_edges = size
    return DONE


def next_untried(search: Search, node: int, state: Any) -> int:
    """The next edge of a node in the order of `legal`; NONE without capacity."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    if not IS_LAZY:
        return NONE  # all were made at once
    count, num_edges = np.int64(edges[node].num_legal), np.int64(edges[node].num_edges)
    if count > LAZY_ABOVE and num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if legal(state, work.actions, data) != count or work.actions[GUARD_AT] != GUARD:
            return -BAD_COUNT
        first = edges[node].first
        size = block_size(count, num_edges)
        status = make_edges(search, node, work.actions, num_edges, size)
        if status != DONE:
            return -status
        if edges[node].first == first:
            return -NEED_CAPACITY if HAS_CHANCE and tree.may_grow else NONE
    edges[node].num_edges = num_edges + 1
    return np.int64(edges[node].first) + num_edges


def append_edge(search: Search, node: int, action: int) -> int:
    """A new edge of a node, whose block doubles when it is full; NONE without capacity."""
    edges = search.edges
    num_edges = np.int64(edges[node].num_edges)
    if num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if not move_block(search, node, num_edges, 2 * num_edges):
            return NONE
    edge = np.int64(edges[node].first) + num_edges
    write_edge(edges, edge, action)
    edges[node].num_edges = num_edges + 1
    return edge


@noinline
def likeliest_edge(search: Search, node: int) -> int:
    """A new edge for the likeliest action without one, which `best_untried` has found."""
    tree, record = search.tree, search.edges[node]
    best = np.int64(record.untried + record.best)
    if record.num_edges == 0:  # most nodes never get an edge, and need no block
        record.first = tree.used
        tree.used += FIRST_BLOCK
    edge = append_edge(search, node, np.int64(search.untried_actions[best]))
    if edge == NONE:
        return -np.int64(NEED_CAPACITY)
    search.edges[edge].prior = record.best_prior
    search.untried[best] = -math.inf  # it has an edge now
    record.best = NONE
    return edge


def new_action(search: Search, node: int, player: int, state: Any) -> int:
    """A new edge of a node, for a vector of the proposal; NONE without capacity."""
    work = search.work
    status = propose(search, node, player, state, work.actions, work.proposal)
    if status < 0:
        return -np.int64(BAD_ACTION)
    return append_vector(search, node, work.actions)


def append_vector(search: Search, node: int, actions: np.ndarray) -> int:
    """A new edge of a node, for the vector in `actions`; NONE without capacity."""
    edges = search.edges
    edge = append_edge(search, node, np.int64(edges[node].num_edges))
    if edge != NONE:
        for j in range(DIM):
            edges[edge].vector[j] = actions[0, j]
    return edge


def open_actions(search: Search, node: int, state: Any) -> int:
    """Mark the actions that are legal in this state of a node, and make edges for new ones."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    count = np.int64(legal(state, work.actions, data))
    if count < 1 or count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    work.count = count
    work.stamp += 1
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        work.legal_stamp[edges[edge].action] = -work.stamp  # has an edge
    for i in range(count):
        action = np.int64(work.actions[i])
        if action < 0 or action >= NUM_ACTIONS:
            return BAD_ACTION
        if abs(work.legal_stamp[action]) != work.stamp:
            if append_edge(search, node, action) == NONE:
                if tree.may_grow:
                    return NEED_CAPACITY
                continue
        work.legal_stamp[action] = work.stamp
    return DONE


def expand_chance(search: Search, node: int, state: Any) -> int:
    """Give a chance node one edge for every outcome that can happen."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    actions, probabilities = work.actions, work.probabilities
    count = np.int64(chance(state, actions, probabilities, data))
    if not is_distribution(count, actions, probabilities):
        return BAD_CHANCE
    if tree.used + count > tree.capacity:
        return DONE
    first = np.int64(tree.used)
    for i in range(count):
        if probabilities[i] > 0.0:
            write_edge(edges, np.int64(tree.used), np.int64(actions[i]))
            edges[tree.used].prior = probabilities[i]
            tree.used += 1
    edges[node].first = first
    edges[node].num_edges = tree.used - first
    return DONE


def outcome(search: Search, node: int, state: Any) -> int:
    """The edge of a chance node to take."""
    tree, edges, work = search.tree, search.edges, search.work
    rng, data = search.rng, search.data
    if not WIDENS_OUTCOMES:
        return np.int64(pick_outcome(search, node))
    num_edges = np.int64(edges[node].num_edges)
    visits = visits_of_node(edges, node)
    limit = widening_limit(visits, work.outcome_k, work.outcome_alpha, 0.0)
    if num_edges >= limit:
        return np.int64(drawn_again(search, node))
    action = draw_checked(state, work.actions, work.probabilities, rng, data)
    if action < 0:
        return -BAD_CHANCE
    first = np.int64(edges[node].first)
    for edge in range(first, first + num_edges):
        if edges[edge].action == action:
            edges[edge].prior += 1.0
            return np.int64(edge)
    edge = append_edge(search, node, action)
    if edge == NONE:
        return -NEED_CAPACITY if tree.may_grow else np.int64(drawn_again(search, node))
    edges[edge].prior = 1.0
    return edge
