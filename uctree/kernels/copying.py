"""Copying a subtree to another tree, and the hash table of shared nodes."""

from __future__ import annotations

import numpy as np

from uctree.kernels.records import (
    HAS_BOUNDS,
    HAS_PROOFS,
    IS_LAZY,
    KEEPS_RAW,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    capacity_of,
    copy_edges,
    node_of,
    visits_of_node,
)

# --- kernels: copying trees ----------------------------------------------------------------------


def reroot(
    source: np.ndarray, used: int, target: np.ndarray, root: int, budget: int, sizes: np.ndarray,
    forward: np.ndarray, old_table: np.ndarray, table: np.ndarray,
) -> int:  # fmt: skip
    """Copy the subtree of the edge `root` to `target`; returns how many edges `target` holds.

    Args:
        used: how many edges `source` holds.
        budget: how many edges the copy may hold; nodes with few visits lose theirs. 0: no limit.
    """
    least = np.int64(0)
    if budget > 0:
        count_capacity(source, used, sizes)
        least = np.int64(sizes.shape[0])
        total = sizes[least - 1] + np.int64(1)
        while least > 1 and total <= budget:
            least -= 1
            total += sizes[least - 1]
    return copy_subtree(source, target, root, least, forward, old_table, table)


def copy_subtree(
    source: np.ndarray, target: np.ndarray, root: int, least: int, forward: np.ndarray,
    old_table: np.ndarray, table: np.ndarray,
) -> int:  # fmt: skip
    """Copy the subtree of the edge `root` to `target`, breadth first; returns the number of edges.

    Nodes with fewer than `least` visits lose their edges but keep their value. The copy is its own
    queue: a record holds indices of `source` until it is processed.
    """
    used = np.int64(1)
    edge = np.int64(0)
    target[0] = source[root]
    if SHARES_NODES:
        target[0].node = node_of(source, root)
    while edge < used:
        record = target[edge]
        owns = True
        if SHARES_NODES:
            node = np.int64(record.node)
            owns = node != NONE and forward[node] == NONE
            if owns:
                forward[node] = edge
                move_node(source, node, target, edge)
            if node != NONE:
                record.node = forward[node]
                if not owns:  # the node was moved to another record
                    record.first = NONE
                    record.num_edges = 0
                    record.node_visits = 0
        if owns and record.first != NONE:
            first, capacity = np.int64(record.first), capacity_of(target, edge)
            keeps = edge == 0 or visits_of_node(target, edge) >= least
            if keeps and used + capacity <= target.shape[0]:
                copy_edges(source, first, target, used, capacity)
                record.first = used
                used += capacity
            else:
                forget_edges(target, edge)
        edge += 1
    if SHARES_NODES:
        rehash(old_table, table, forward)
    return used


def move_node(source: np.ndarray, node: int, target: np.ndarray, edge: int) -> None:
    """Copy the fields of a shared node from its old record to that of an edge."""
    old, record = source[node], target[edge]
    for j in range(NUM_VALUES):
        record.value_sum[j] = old.value_sum[j]
        record.own_sum[j] = old.own_sum[j]
    record.node_visits = old.node_visits
    record.first = old.first
    record.num_edges = old.num_edges
    if KEEPS_RAW:
        for j in range(NUM_VALUES):
            record.raw[j] = old.raw[j]
    if HAS_BOUNDS:
        record.low = old.low
        record.high = old.high
    elif HAS_PROOFS:
        record.proof = old.proof
        for j in range(NUM_VALUES):
            record.proven[j] = old.proven[j]


def forget_edges(edges: np.ndarray, node: int) -> None:
    """Make a node a leaf again; its value stays."""
    record = edges[node]
    record.first = NONE
    record.num_edges = 0
    if IS_LAZY:
        record.num_legal = 0
    if SHARES_NODES:
        for j in range(NUM_VALUES):
            record.own_sum[j] = record.node_visits * record.value_sum[j]


def count_capacity(edges: np.ndarray, used: int, sizes: np.ndarray) -> None:
    """Add up the capacity of nodes by their number of visits; the last entry is for all above."""
    most = sizes.shape[0] - 1
    for edge in range(1, used):
        if edges[edge].first != NONE:
            node = np.int64(edge)
            sizes[min(most, visits_of_node(edges, node))] += capacity_of(edges, node)


def rehash(old: np.ndarray, table: np.ndarray, forward: np.ndarray) -> int:
    """Copy the nodes of one table to another, except nodes that were not copied; how many."""
    entered = np.int64(0)
    for i in range(old.shape[0]):
        if old[i].node != NONE:
            node = np.int64(old[i].node)
            if forward.shape[0] > 0:
                node = np.int64(forward[node])
            if node != NONE:
                slot = find_slot(table, old[i].key[0], old[i].key[1])
                table[slot].key[0] = old[i].key[0]
                table[slot].key[1] = old[i].key[1]
                table[slot].node = node
                entered += 1
    return entered


def find_slot(table: np.ndarray, low: int, high: int) -> int:
    """The place of a key in a table, or the free place for it."""
    mask = table.shape[0] - 1
    slot = np.int64(low & np.uint64(0x7FFFFFFF)) & mask
    while table[slot].node != NONE and (table[slot].key[0] != low or table[slot].key[1] != high):
        slot = (slot + 1) & mask
    return slot
