"""Proofs: exact values of nodes that follow from the ends of episodes.

Two players whose payoffs add up to zero have bounds on player 0's value: Cazenave and Saffidine,
"Score bounded Monte-Carlo tree search" (2010), which extends the wins and losses of Winands,
Björnsson and Saito, "Monte-Carlo tree search solver" (2008). With more players, or payoffs that are
not zero-sum, a node has an exact vector once all its edges have one: that of its mover's best edge,
max^n of Luckhardt and Irani, "An algorithmic solution of N-person games" (1986). One exact edge
that pays the mover the maximum proves the mover's component alone. Proofs need a game that pays
only at the end of an episode, without discount.
"""

from __future__ import annotations

import math

import numpy as np

from uctree.game import CHANCE
from uctree.kernels.context import Search
from uctree.kernels.records import (
    EXACT,
    HAS_BOUNDS,
    IS_LAZY,
    MOVER,
    NONE,
    NUM_VALUES,
    component,
    is_exact,
    node_of,
)
from uctree.kernels.rules import HAS_CHANCE

# --- formulas ------------------------------------------------------------------------------------


def better_bounds(
    player: int, low: float, high: float, child_low: float, child_high: float
) -> tuple[float, float]:
    """Bounds on player 0's value at a node of `player` that has this child as well [Eq. 23].

        L = max L(a), U = max U(a) for player 0;  min for player 1

    >>> better_bounds(0, 0.0, 0.5, -1.0, 1.0), better_bounds(1, 0.0, 0.5, -1.0, 1.0)
    ((0.0, 1.0), (-1.0, 0.5))
    """
    if player == 0:
        return max(low, child_low), max(high, child_high)
    return min(low, child_low), min(high, child_high)


# --- kernels -------------------------------------------------------------------------------------


def mark_end(edges: np.ndarray, edge: int, reward: np.ndarray) -> None:
    """Mark an edge that ends the episode as exact: its value is its reward."""
    record = edges[edge]
    if HAS_BOUNDS:
        record.low = reward[0]
        record.high = reward[0]
    else:
        record.proof = EXACT
        for j in range(NUM_VALUES):
            record.proven[j] = reward[j]


def prove(search: Search, node: int, player: int) -> bool:
    """Update the proof of a node from its edges; whether it changed."""
    edges = search.edges
    if HAS_BOUNDS:
        return tighten(search, node, player)
    if edges[node].proof == EXACT:
        return False
    if HAS_CHANCE and player == CHANCE:
        return expect_vector(edges, node)
    return prove_vector(search, node, player)


def tighten(search: Search, node: int, player: int) -> bool:
    """Tighten the bounds of a node from its edges; whether they changed."""
    tree, edges = search.tree, search.edges
    record = edges[node]
    least, most = tree.least[0], tree.most[0]
    first, num_edges = np.int64(record.first), np.int64(record.num_edges)
    if HAS_CHANCE and player == CHANCE:
        low = high = 0.0
        for edge in range(first, first + num_edges):
            child = node_of(edges, np.int64(edge))
            p = float(edges[edge].prior)
            low += p * (least if child == NONE else max(least, edges[child].low))
            high += p * (most if child == NONE else min(most, edges[child].high))
    else:
        low = high = -math.inf if player == 0 else math.inf
        if IS_LAZY and num_edges < record.num_legal:
            low, high = better_bounds(player, low, high, least, most)
        for edge in range(first, first + num_edges):
            child = node_of(edges, np.int64(edge))
            child_low, child_high = least, most
            if child != NONE:
                child_low, child_high = max(least, edges[child].low), min(most, edges[child].high)
            low, high = better_bounds(player, low, high, child_low, child_high)
    is_new = low > record.low or high < record.high
    if low > record.low:
        record.low = low
    if high < record.high:
        record.high = high
    return is_new


def prove_vector(search: Search, node: int, player: int) -> bool:
    """Prove a player's node by exact edges, or its mover's part by a win; whether it changed."""
    tree, edges = search.tree, search.edges
    record = edges[node]
    first, num_edges = np.int64(record.first), np.int64(record.num_edges)
    best = np.int64(NONE)
    best_value = -math.inf
    are_all_exact = not (IS_LAZY and num_edges < record.num_legal)
    for edge in range(first, first + num_edges):
        child = node_of(edges, np.int64(edge))
        if child == NONE or not is_exact(edges, child):
            are_all_exact = False
            continue
        value = component(edges[child].proven, player)
        if value > best_value:
            best, best_value = child, value
    if best == NONE:
        return False
    proof = np.int64(0)
    if are_all_exact:
        proof = np.int64(EXACT)
    elif best_value >= tree.most[player]:
        proof = np.int64(MOVER)
    if proof <= record.proof:
        return False
    record.proof = proof
    for j in range(NUM_VALUES):
        record.proven[j] = edges[best].proven[j]
    return True


def expect_vector(edges: np.ndarray, node: int) -> bool:
    """Prove a chance node if all its outcomes are exact; whether it was proven."""
    record = edges[node]
    first, num_edges = np.int64(record.first), np.int64(record.num_edges)
    for edge in range(first, first + num_edges):
        child = node_of(edges, np.int64(edge))
        if child == NONE or not is_exact(edges, child):
            return False
    for j in range(NUM_VALUES):
        value = 0.0
        for edge in range(first, first + num_edges):
            value += float(edges[edge].prior) * edges[node_of(edges, np.int64(edge))].proven[j]
        record.proven[j] = value
    record.proof = EXACT
    return True


def read_exact(edges: np.ndarray, node: int, values: np.ndarray) -> None:
    """Write the exact value of a node to `values`, in the components that are stored."""
    if HAS_BOUNDS:
        values[0] = edges[node].low
    else:
        for j in range(NUM_VALUES):
            values[j] = edges[node].proven[j]


def is_won(search: Search, node: int, player: int) -> bool:
    """Whether a node is exact and has the maximum payoff for a player; for vectors."""
    tree, edges = search.tree, search.edges
    if node == NONE or not is_exact(edges, node):
        return False
    return component(edges[node].proven, player) >= tree.most[player]


def is_lost(search: Search, node: int, player: int) -> bool:
    """Whether a node is proven to have the minimum payoff for a player."""
    tree, edges = search.tree, search.edges
    if node == NONE:
        return False
    if HAS_BOUNDS:
        record = edges[node]
        return record.high <= tree.least[0] if player == 0 else record.low >= tree.most[0]
    return is_exact(edges, node) and component(edges[node].proven, player) <= tree.least[player]


def is_root_solved(edges: np.ndarray) -> bool:
    """Whether the root is solved."""
    if HAS_BOUNDS:
        return edges[0].low == edges[0].high
    return edges[0].proof != 0
