"""What flows back along the path of a simulation: formulas, then kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.game import CHANCE
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Search
from uctree.kernels.playouts import note_played, was_played
from uctree.kernels.proofs import mark_end, prove, read_exact
from uctree.kernels.records import (
    HAS_AMAF,
    HAS_PROOFS,
    KEEPS_FIRST_RETURNS,
    KEEPS_SQUARES,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    component,
    is_exact,
    value_for,
)
from uctree.kernels.rules import DISCOUNT, HAS_CHANCE, IS_CONTINUOUS, NUM_PLAYERS

# Bound when a search is composed.
gather = UNBOUND  # how a node's value is computed from its edges
SEES_RANGE = UNBOUND  # the game states no payoff_range, so the tree records the one it has seen
GATHERS = UNBOUND  # values of nodes are computed from their edges, not added up
KNOWS_OUTCOMES = UNBOUND  # chance nodes have an edge for every outcome, with its probability

ROOT = np.int64(0)

# Where a simulation ended.
LEAF, AT_END, KNOWN, REPEATED, FOUND = 0, 1, 2, 3, 4


def step_return(reward: float, discount: float, after: float) -> float:
    """The return of an action, for one player.

        G(s) = r(s,a) + γ · G(s')                                                      [Eq. 6]

    >>> step_return(reward=0.5, discount=0.5, after=-0.5)
    0.25
    """
    return reward + discount * after


def add_outcome(total: float, probability: float, value: float) -> float:
    """The value of a chance node with one more outcome, for one player.

        V(s) = Σ p(o) · V(o)                                                           [Eq. 7]

    >>> add_outcome(total=0.25, probability=0.5, value=0.5)
    0.5
    """
    return total + probability * value


def best_reply(values: np.ndarray, player: int) -> int:
    """The row of `values` that is best for `player`, the first in a tie: max^n [Eq. 8].

    >>> best_reply(np.array([[1.0, 2.0], [3.0, 0.0], [3.0, 1.0]]), 0)
    1
    """
    best = 0
    for i in range(1, values.shape[0]):
        if values[i, player] > values[best, player]:
            best = i
    return best


def soft_weight(value: float, best: float, temperature: float) -> float:
    """The weight of an edge in a soft maximum: exp((Q - max Q) / T) [Eq. 25].

        V(s) = Σ w(a) Q(s,a) / Σ w(a)

    >>> soft_weight(value=0.5, best=0.5, temperature=0.1)
    1.0
    """
    return math.exp((value - best) / temperature)


# --- kernels: a node's value from its edges ------------------------------------------------------


def edge_part(search: Search, edge: int, j: int) -> float:
    """Q(s,a), component j of those that are stored."""
    tree, edges = search.tree, search.edges
    record = edges[edge]
    if SHARES_NODES:
        node = edges[np.int64(record.node)]
        after = node.value_sum[j]
        if record.cycles > 0:
            after += record.cycles / record.visits * (tree.repetition[j] - after)
        return step_return(record.reward[j], DISCOUNT, after)
    return record.value_sum[j] / record.visits


def read_edge(search: Search, edge: int, values: np.ndarray) -> None:
    """Write Q(s,a) to `values`, in the components that are stored."""
    for j in range(NUM_VALUES):
        values[j] = edge_part(search, edge, np.int64(j))


def gather_nothing(
    search: Search, node: int, player: int, returns: np.ndarray, values: np.ndarray
) -> bool:
    """False: V(s) is not computed from the edges alone. Other rules write it to `returns`."""
    return False


def gather_best(
    search: Search, node: int, player: int, returns: np.ndarray, values: np.ndarray
) -> bool:
    """Write the best edge's value to `returns`; False if no edge has enough visits."""
    tree, edges = search.tree, search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    best_value = -math.inf
    for edge in range(first, first + num_edges):
        if edges[edge].visits >= search.work.backup_parameter:
            read_edge(search, np.int64(edge), values)
            value = value_for(tree, values, player)
            if value > best_value:
                best_value = value
                for j in range(NUM_VALUES):
                    returns[j] = values[j]
    return best_value > -math.inf


def gather_softly(
    search: Search, node: int, player: int, returns: np.ndarray, values: np.ndarray
) -> bool:
    """Write the soft maximum over the edges to `returns`; False if no edge was visited."""
    tree, edges = search.tree, search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    best = -math.inf
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            read_edge(search, np.int64(edge), values)
            best = max(best, value_for(tree, values, player))
    if best == -math.inf:
        return False
    total = 0.0
    for j in range(NUM_VALUES):
        returns[j] = 0.0
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            read_edge(search, np.int64(edge), values)
            weight = soft_weight(
                value_for(tree, values, player), best, search.work.backup_parameter
            )
            total += weight
            for j in range(NUM_VALUES):
                returns[j] += weight * values[j]
    for j in range(NUM_VALUES):
        returns[j] /= total
    return True


def expect(search: Search, node: int, values: np.ndarray) -> bool:
    """Write the expected value of a chance node; False until all its outcomes were seen."""
    edges = search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if edges[edge].visits == 0:
            return False
    for j in range(NUM_VALUES):
        value = 0.0
        for edge in range(first, first + num_edges):
            part = edge_part(search, np.int64(edge), np.int64(j))
            value = add_outcome(value, float(edges[edge].prior), part)
        values[j] = value
    return True


# --- kernels: along the path ---------------------------------------------------------------------


def back_up(search: Search) -> None:
    """Add one simulation to every edge of its path, from the leaf up."""
    edges, path, work = search.edges, search.path, search.work
    if SHARES_NODES:
        back_up_shared(search)
        return
    returns, depth = work.returns, np.int64(work.depth)
    begin_sample(search)
    proof_changed = HAS_PROOFS and (work.ending == FOUND or has_ended(search))
    for i in range(depth - 1, -1, -1):
        taken = path[np.uint64(i)]  # unsigned: no index from the end
        edge = np.int64(taken.edge)
        above = np.int64(path[np.uint64(i - 1)].edge) if i > 0 else ROOT
        if i + 1 < depth:
            below = np.int64(path[np.uint64(i + 1)].player)
            proof_changed = update_interior(
                search, edge, below, taken.reward, DISCOUNT, proof_changed
            )
        else:
            is_set = HAS_PROOFS and is_exact(edges, edge)
            count_visit(search, edge, taken.reward, DISCOUNT, is_set)
        step_sample(search, i)
        if SEES_RANGE:
            widen_range(search, edge, returns)
        note_return(search, i, above)
    note_square(search)
    for j in range(NUM_VALUES):
        work.reward[j] = 0.0  # no reward leads to the root
    if depth > 0:
        update_interior(search, ROOT, np.int64(path[0].player), work.reward, 1.0, proof_changed)
    else:
        count_visit(search, ROOT, work.reward, 1.0, False)


def update_interior(
    search: Search, edge: int, player: int, reward: np.ndarray, discount: float, proof_changed: bool
) -> bool:
    """Count a visit of an edge that is not the last of the path; whether a proof changed."""
    edges, work = search.edges, search.work
    if HAS_PROOFS and proof_changed:
        proof_changed = prove(search, edge, player)
    is_set = exact_or_gathered_value(search, edge, player)
    if HAS_CHANCE and player == CHANCE and KNOWS_OUTCOMES and not is_set:
        if expect(search, edge, work.values):
            if GATHERS:
                for j in range(NUM_VALUES):
                    work.returns[j] = work.values[j]
                is_set = True
            else:
                # The edge's value is the expected one; the sampled return is backed up further.
                count_visit(search, edge, reward, discount, False)
                for j in range(NUM_VALUES):
                    value = step_return(reward[j], discount, work.values[j])
                    edges[edge].value_sum[j] = edges[edge].visits * value
                return proof_changed
    count_visit(search, edge, reward, discount, is_set)
    return proof_changed


def has_ended(search: Search) -> bool:
    """Whether the simulation reached an end of the episode for the first time."""
    edges, path, work = search.edges, search.path, search.work
    if work.ending != AT_END or work.depth == 0:
        return False
    edge = np.int64(path[work.depth - 1].edge)
    if edges[edge].visits > 0:
        return False
    mark_end(edges, edge, path[work.depth - 1].reward)
    return True


def exact_or_gathered_value(search: Search, node: int, player: int) -> bool:
    """Write a node's value by proof or from its edges to `returns`; False if it is the mean."""
    edges, work = search.edges, search.work
    if HAS_PROOFS and is_exact(edges, node):
        read_exact(edges, node, work.returns)
        return True
    if GATHERS and player != CHANCE:
        return gather(search, node, player, work.returns, work.values)
    return False


def count_visit(
    search: Search, edge: int, reward: np.ndarray, discount: float, is_set: bool
) -> None:
    """Count one visit of an edge, whose value becomes its node's, or the mean with this return.

    `returns` then holds what the parent adds to its sum. If values are gathered from edges, that is
    the change of this edge's sum.
    """
    edges, work = search.edges, search.work
    record, returns = edges[np.uint64(edge)], work.returns
    record.visits += 1
    for j in range(NUM_VALUES):
        returns[j] = step_return(reward[j], discount, returns[j])
        if GATHERS:
            before = record.value_sum[j]
            if is_set:
                record.value_sum[j] = record.visits * returns[j]
            else:
                record.value_sum[j] += returns[j]
            returns[j] = record.value_sum[j] - before
        elif HAS_PROOFS and is_set:
            record.value_sum[j] = record.visits * returns[j]
        else:
            record.value_sum[j] += returns[j]


def begin_sample(search: Search) -> None:
    """Store what this simulation returned, if the values of nodes are computed otherwise."""
    work = search.work
    if GATHERS or SHARES_NODES:
        for j in range(NUM_VALUES):
            work.sample[j] = work.returns[j]


def step_sample(search: Search, i: int) -> None:
    path, work = search.path, search.work
    if GATHERS or SHARES_NODES:
        for j in range(NUM_VALUES):
            work.sample[j] = step_return(path[i].reward[j], DISCOUNT, work.sample[j])


def sampled(search: Search, player: int) -> float:
    """What this simulation returned to a player from the current edge on."""
    tree, work = search.tree, search.work
    if GATHERS or SHARES_NODES:
        return value_for(tree, work.sample, player)
    return value_for(tree, work.returns, player)


def note_return(search: Search, i: int, node: int) -> None:
    """Add the return of edge i of the path, which leaves `node`, to squares and AMAF counts."""
    edges, path, work = search.edges, search.path, search.work
    player = np.int64(path[np.uint64(i)].player)
    if player == CHANCE:
        return
    if KEEPS_SQUARES:
        value = sampled(search, player)
        record = edges[np.int64(path[i].edge)]
        record.square_sum += value * value
        if KEEPS_FIRST_RETURNS and record.visits == 1:
            record.first_return = value
    if HAS_AMAF:
        value = sampled(search, player)
        note_played(work.played, player, np.int64(edges[np.int64(path[i].edge)].action))
        turn = np.int64(work.played[0])
        first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
        for edge in range(first, first + num_edges):
            # Added in any case, without a branch: processors cannot predict which were played.
            hit = was_played(work.played, turn, player, np.int64(edges[edge].action))
            edges[edge].amaf_visits += 1 if hit else 0
            edges[edge].amaf_sum += value if hit else 0.0


def note_square(search: Search) -> None:
    """Add the squared return of the root's edge, for confidence bounds."""
    edges, path = search.edges, search.path
    work, root_squares = search.work, search.root_squares
    if work.depth > 0 and not IS_CONTINUOUS:
        row = np.int64(path[0].edge) - edges[0].first
        for j in range(NUM_VALUES):
            part = work.sample[j] if GATHERS or SHARES_NODES else work.returns[j]
            root_squares[row, j] += part * part


NARROWEST = 1e-300  # a range below this counts as empty: its inverse could be infinite


def widen_range(search: Search, edge: int, returns: np.ndarray) -> None:
    """Widen the range of returns seen so far by the return of an edge."""
    tree, edges = search.tree, search.edges
    for player in range(NUM_PLAYERS):
        value = component(returns, player)
        if GATHERS and not SHARES_NODES:
            value = component(edges[edge].value_sum, player) / edges[edge].visits
        if value < tree.low[player] or value > tree.high[player]:
            tree.low[player] = min(tree.low[player], value)
            tree.high[player] = max(tree.high[player], value)
            span = max(tree.high[player] - tree.low[player], search.work.smallest_range)
            tree.factor[player] = 1.0 / span if span > NARROWEST else 0.0


# --- kernels: shared nodes -----------------------------------------------------------------------


def back_up_shared(search: Search) -> None:
    """Count the edges of the path, and recompute the value of every node on it."""
    edges, path, work = search.edges, search.path, search.work
    returns, depth = work.returns, np.int64(work.depth)
    begin_sample(search)
    # A node may have been proven on another path; the nodes above it here are not updated yet.
    is_proven = work.ending == KNOWN or work.ending == FOUND
    proof_changed = HAS_PROOFS and (is_proven or has_ended(search))
    if work.ending != REPEATED:
        last = np.int64(edges[np.int64(path[depth - 1].edge)].node) if depth > 0 else np.int64(0)
        for j in range(NUM_VALUES):
            edges[last].own_sum[j] += returns[j]
        edges[last].node_visits += 1
        if work.ending != AT_END:
            renew(search, last, np.int64(work.leaf_player))
    for i in range(depth - 1, -1, -1):
        edge, node, player = np.int64(path[i].edge), np.int64(path[i].node), path[i].player
        edges[edge].visits += 1
        if work.ending == REPEATED and i == depth - 1:
            edges[edge].cycles += 1
        else:
            child = edges[np.int64(edges[edge].node)]
            for j in range(NUM_VALUES):
                returns[j] = child.value_sum[j]
        for j in range(NUM_VALUES):
            returns[j] = step_return(path[i].reward[j], DISCOUNT, returns[j])
        step_sample(search, i)
        if SEES_RANGE:
            widen_range(search, edge, returns)
        note_return(search, i, node)
        if i == 0:
            note_square(search)
        edges[node].node_visits += 1
        if HAS_PROOFS and proof_changed:
            proof_changed = prove(search, node, np.int64(player))
        renew(search, node, np.int64(player))
    edges[0].visits += 1


def renew(search: Search, node: int, player: int) -> None:
    """Recompute V(s) of a shared node from its own evaluations and its edges.

    V(s) = (E U + Σ N(s,a) Q(s,a)) / N(s)                                          [Eq. 26]
    """
    edges, work = search.edges, search.work
    record = edges[node]
    is_set = False
    if HAS_PROOFS and is_exact(edges, node):
        read_exact(edges, node, work.values)
        is_set = True
    elif record.first != NONE:
        if HAS_CHANCE and player == CHANCE:
            is_set = expect(search, node, work.values)
        elif GATHERS:
            is_set = gather(search, node, player, work.values, work.more_values)
    if is_set:
        for j in range(NUM_VALUES):
            record.value_sum[j] = work.values[j]
        return
    first, num_edges = np.int64(record.first), np.int64(record.num_edges)
    for j in range(NUM_VALUES):
        total = record.own_sum[j]
        if first != NONE:
            for edge in range(first, first + num_edges):
                if edges[edge].visits > 0:
                    part = edge_part(search, np.int64(edge), np.int64(j))
                    total = add_edge(total, np.int64(edges[edge].visits), part)
        record.value_sum[j] = total / record.node_visits


def add_edge(total: float, visits: int, value: float) -> float:
    """N(s) · V(s) of a shared node with one more edge [Eq. 26].

    >>> add_edge(total=0.5, visits=3, value=0.5)
    2.0
    """
    return total + visits * value


def spread(values: Any) -> dict[str, float | None]:
    """Mean and variance of returns, updated value by value for precision (Welford).

        d = x - mean,   mean += d / n,   m2 += d · (x - mean)                          [Eq. 12]

    The population variance is max(0, m2 / n), the sample variance m2 / (n - 1). Undefined
    numbers are None: the sample variance of one value, and all of them without values.

    >>> spread([1.0, 2.0, 6.0])["mean"], spread([1.0, 2.0, 6.0])["sample_variance"]
    (3.0, 7.0)
    """
    count, mean, m2, mean_square = 0, 0.0, 0.0, 0.0
    low = high = None
    for value in values:
        count += 1
        difference = value - mean
        mean += difference / count
        m2 += difference * (value - mean)
        mean_square += (value * value - mean_square) / count
        low = value if low is None else min(low, value)
        high = value if high is None else max(high, value)
    return {
        "mean": mean if count else None,
        "population_variance": max(0.0, m2 / count) if count else None,
        "sample_variance": max(0.0, m2 / (count - 1)) if count > 1 else None,
        "mean_square": mean_square if count else None,
        "min": low,
        "max": high,
    }
