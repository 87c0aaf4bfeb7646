"""Replaying a tree, to find edges that the rules do not allow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from uctree.game import CHANCE, OVER
from uctree.kernels.records import APPENDS, IS_LAZY, NONE, SHARES_NODES, capacity_of, node_of
from uctree.kernels.rules import (
    GUARD_AT,
    HAS_CHANCE,
    MAX_OUTCOMES,
    NUM_ACTIONS,
    NUM_PLAYERS,
    chance,
    legal,
    step,
)
from uctree.kernels.simulation import key_hash
from uctree.kernels.status import GUARD

ALL_LEGAL, NEED_DEPTH = -1, -2  # else the record of a node that the rules do not allow


class Walk(NamedTuple):
    """A tree, and the memory of a walk through it, depth first."""

    edges: np.ndarray  # [records]
    states: Any  # [depth], of the nodes on the path
    path: np.ndarray  # [depth, 2]: the record of a node, and how many of its edges are done
    is_done: np.ndarray  # [records], bool: the node was reached
    keys: np.ndarray  # [records, 2], of reached nodes, if nodes are shared
    actions: np.ndarray  # see `bindings.action_array`
    probabilities: np.ndarray  # [outcomes]
    reward: np.ndarray  # [players]
    stamps: np.ndarray  # [actions], the number of the last node at which an action was legal
    num_nodes: np.ndarray  # [1]
    key_bytes: np.ndarray  # as in `context.Search`
    key_words: np.ndarray
    key_ranges: np.ndarray
    data: Any  # of the game


def find_illegal(walk: Walk) -> int:
    """ALL_LEGAL, NEED_DEPTH, or the record of the first node that the rules do not allow."""
    edges, states, path = walk.edges, walk.states, walk.path
    depth = np.int64(0)
    path[0, 0], path[0, 1] = 0, 0
    if not reaches(walk, np.int64(0), depth) or not allows(walk, np.int64(0), states[0]):
        return 0
    while depth >= 0:
        node = path[depth, 0]
        if edges[node].first == NONE or path[depth, 1] >= num_members(edges, node):
            depth -= 1
            continue
        edge = np.int64(edges[node].first) + path[depth, 1]
        path[depth, 1] += 1
        child = node_of(edges, edge)
        if child == NONE or (not SHARES_NODES and edges[child].first == NONE):
            continue  # its action is legal, and nothing is below
        if depth + 1 >= path.shape[0]:
            return NEED_DEPTH
        states[depth + 1] = states[depth]
        step(states[depth + 1], np.int64(edges[edge].action), walk.reward, walk.data)
        is_known = walk.is_done[child]
        if not reaches(walk, child, depth + 1):
            return edge
        if is_known:
            continue
        if not allows(walk, child, states[depth + 1]):
            return child
        depth += 1
        path[depth, 0], path[depth, 1] = child, 0
    return ALL_LEGAL


def num_members(edges: np.ndarray, node: int) -> int:
    """How many edges of a node a search may take; lazy ones are written before they are taken."""
    return capacity_of(edges, node) if IS_LAZY else np.int64(edges[node].num_edges)


def reaches(walk: Walk, node: int, depth: int) -> bool:
    """Whether a node can be that of the state at this depth; the first state decides."""
    if SHARES_NODES:
        low, high = key_hash(walk, depth)
        if walk.is_done[node]:
            return walk.keys[node, 0] == low and walk.keys[node, 1] == high
        walk.keys[node, 0], walk.keys[node, 1] = low, high
    walk.is_done[node] = True
    return True


def allows(walk: Walk, node: int, state: Any) -> bool:
    """Whether the rules allow all edges of a node in this state."""
    edges = walk.edges
    player = np.int64(state.to_play)
    if edges[node].first == NONE:
        return player >= CHANCE or player == OVER
    if HAS_CHANCE and player == CHANCE:
        return allows_outcomes(walk, node, state)
    if player < 0 or player >= NUM_PLAYERS:
        return False
    count = np.int64(legal(state, walk.actions, walk.data))
    if count < 1 or count > NUM_ACTIONS or walk.actions[GUARD_AT] != GUARD:
        return False
    if IS_LAZY and edges[node].num_edges < edges[node].num_legal != count:
        return False  # the other actions are still to come
    walk.num_nodes[0] += 1
    for i in range(count):
        if walk.actions[i] < 0 or walk.actions[i] >= NUM_ACTIONS:
            return False
        walk.stamps[walk.actions[i]] = walk.num_nodes[0]
    first = np.int64(edges[node].first)
    for edge in range(first, first + num_members(edges, node)):
        action = np.int64(edges[edge].action)
        if action >= NUM_ACTIONS or walk.stamps[action] != walk.num_nodes[0]:
            return False
    return True


def allows_outcomes(walk: Walk, node: int, state: Any) -> bool:
    """Whether all edges of a chance node are possible outcomes."""
    edges = walk.edges
    if IS_LAZY and edges[node].num_legal != 0:
        return False
    count = np.int64(chance(state, walk.actions, walk.probabilities, walk.data))
    if count < 1 or count > MAX_OUTCOMES:
        return False
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    at = np.int64(0)  # edges are usually in the order of the outcomes
    for edge in range(first, first + num_edges):
        num_tried = np.int64(0)
        while walk.actions[at] != edges[edge].action or walk.probabilities[at] <= 0.0:
            at = (at + 1) % count
            num_tried += 1
            if num_tried > count:
                return False
    return num_edges > 0 or APPENDS
