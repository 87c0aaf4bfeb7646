"""What flows back along the path of a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree._compile import UNBOUND
from uctree.evaluators import note, was_played
from uctree.game import CHANCE
from uctree.proofs import mark_end, prove, read_exact
from uctree.tree import (
    DISCOUNT,
    HAS_AMAF,
    HAS_CHANCE,
    HAS_PROOFS,
    IS_CONTINUOUS,
    KEEPS_SQUARES,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    component,
    is_exact,
    worth_to,
)  # fmt: skip

# Bound when a search is composed.
gather = UNBOUND  # how a node's value follows from its edges
NUM_PLAYERS = UNBOUND
SEES_RANGE = UNBOUND  # the game states no payoff_range, so the tree keeps the one it has seen
GATHERS = UNBOUND  # values of nodes are computed from their edges, not added up
KNOWS_OUTCOMES = UNBOUND  # chance nodes have an edge for every outcome, with its probability

ROOT = np.int64(0)

# Where a simulation ended.
LEAF, AT_END, KNOWN, REPEATED, FOUND = 0, 1, 2, 3, 4


def step_return(reward: float, discount: float, after: float) -> float:
    """What an action pays from here on, for one player.

        G(s) = r(s,a) + γ · G(s')                                                      [Eq. 6]

    >>> step_return(reward=0.5, discount=0.5, after=-0.5)
    0.25
    """
    return reward + discount * after


def add_outcome(total: float, probability: float, value: float) -> float:
    """One more outcome in the value of a chance node, for one player.

        V(s) = Σ p(o) · V(o)                                                           [Eq. 7]

    >>> add_outcome(total=0.25, probability=0.5, value=0.5)
    0.5
    """
    return total + probability * value


def best_reply(values: np.ndarray, player: int) -> int:
    """The row of `values` that is best for `player`, the first of equals: max^n [Eq. 8].

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


@dataclass(frozen=True)
class Backup:
    """How the value of a node follows from what was seen below it."""

    name: str
    gather: Callable[..., bool]
    parameter: float = 0.0


def mean() -> Backup:
    """Every node is worth the mean of the returns seen there."""
    return Backup("mean", gather_nothing)


def maximum(min_visits: int = 1) -> Backup:
    """A node is worth what its mover's best edge is worth, of those with `min_visits`.

    Before there is one, it is worth the mean.
    """
    if min_visits < 1:
        raise ValueError(f"min_visits must be at least 1; got {min_visits}")
    return Backup("maximum", gather_best, float(min_visits))


def soft_maximum(temperature: float) -> Backup:
    """A node is worth the mean over its edges, each weighed by exp(Q / temperature) [Eq. 25].

    Q is that of the mover, in units of the game's payoffs.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be above 0; got {temperature}")
    return Backup("soft_maximum", gather_softly, temperature)


# --- kernels: a node's value from its edges ------------------------------------------------------


def edge_part(tree: Any, edges: np.ndarray, edge: int, j: int) -> float:
    """One kept component of Q(s,a)."""
    record = edges[edge]
    if SHARES_NODES:
        node = edges[np.int64(record.node)]
        after = node.value_sum[j]
        if record.cycles > 0:
            after += record.cycles / record.visits * (tree.repetition[j] - after)
        return step_return(record.reward[j], DISCOUNT, after)
    return record.value_sum[j] / record.visits


def read_edge(tree: Any, edges: np.ndarray, edge: int, values: np.ndarray) -> None:
    """Q(s,a), in the components that are kept."""
    for j in range(NUM_VALUES):
        values[j] = edge_part(tree, edges, edge, np.int64(j))


def gather_nothing(
    tree: Any, edges: np.ndarray, node: int, player: int, parameter: float, returns: np.ndarray,
    values: np.ndarray,
) -> bool:  # fmt: skip
    """Write V(s) to `returns`; False where it is no function of the edges alone."""
    return False


def gather_best(
    tree: Any, edges: np.ndarray, node: int, player: int, parameter: float, returns: np.ndarray,
    values: np.ndarray,
) -> bool:  # fmt: skip
    """The best edge's value."""
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    best_value = -math.inf
    for edge in range(first, first + num_edges):
        if edges[edge].visits >= parameter:
            read_edge(tree, edges, np.int64(edge), values)
            value = worth_to(tree, values, player)
            if value > best_value:
                best_value = value
                for j in range(NUM_VALUES):
                    returns[j] = values[j]
    return best_value > -math.inf


def gather_softly(
    tree: Any, edges: np.ndarray, node: int, player: int, parameter: float, returns: np.ndarray,
    values: np.ndarray,
) -> bool:  # fmt: skip
    """The mean over the edges, the better ones weighed more."""
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    best = -math.inf
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            read_edge(tree, edges, np.int64(edge), values)
            best = max(best, worth_to(tree, values, player))
    if best == -math.inf:
        return False
    total = 0.0
    for j in range(NUM_VALUES):
        returns[j] = 0.0
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            read_edge(tree, edges, np.int64(edge), values)
            weight = soft_weight(worth_to(tree, values, player), best, parameter)
            total += weight
            for j in range(NUM_VALUES):
                returns[j] += weight * values[j]
    for j in range(NUM_VALUES):
        returns[j] /= total
    return True


def expect(tree: Any, edges: np.ndarray, node: int, values: np.ndarray) -> bool:
    """The expected value of a chance node, once all its outcomes were seen."""
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if edges[edge].visits == 0:
            return False
    for j in range(NUM_VALUES):
        value = 0.0
        for edge in range(first, first + num_edges):
            part = edge_part(tree, edges, np.int64(edge), np.int64(j))
            value = add_outcome(value, float(edges[edge].prior), part)
        values[j] = value
    return True


# --- kernels: along the path ---------------------------------------------------------------------


def back_up(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, root_squares: np.ndarray
) -> None:
    """Add one simulation to every edge of its path, from the leaf up."""
    if SHARES_NODES:
        back_up_shared(tree, edges, path, work, root_squares)
        return
    returns, depth = work.returns, np.int64(work.depth)
    begin_sample(work)
    news = HAS_PROOFS and (work.ending == FOUND or has_ended(edges, path, work))
    for i in range(depth - 1, -1, -1):
        edge = np.int64(path[i].edge)
        above = np.int64(path[i - 1].edge) if i > 0 else ROOT
        if i + 1 < depth:
            below = np.int64(path[i + 1].player)
            news = pass_node(tree, edges, edge, below, path[i].reward, DISCOUNT, news, work)
        else:
            is_set = HAS_PROOFS and is_exact(edges, edge)
            count_visit(edges, edge, path[i].reward, DISCOUNT, is_set, work)
        step_sample(path, i, work)
        if SEES_RANGE:
            widen_range(tree, edges, edge, returns)
        note_return(tree, edges, path, i, above, work)
    note_square(edges, path, work, root_squares)
    for j in range(NUM_VALUES):
        work.reward[j] = 0.0  # nothing is paid on the way to the root
    if depth > 0:
        pass_node(tree, edges, ROOT, np.int64(path[0].player), work.reward, 1.0, news, work)
    else:
        count_visit(edges, ROOT, work.reward, 1.0, False, work)


def pass_node(
    tree: Any, edges: np.ndarray, edge: int, player: int, reward: np.ndarray, discount: float,
    news: bool, work: Any,
) -> bool:  # fmt: skip
    """Count a visit of an edge whose node the simulation went through; whether there are news."""
    if HAS_PROOFS and news:
        news = prove(tree, edges, edge, player)
    is_set = settle(tree, edges, edge, player, work)
    if HAS_CHANCE and player == CHANCE and KNOWS_OUTCOMES and not is_set:
        if expect(tree, edges, edge, work.values):
            if GATHERS:
                for j in range(NUM_VALUES):
                    work.returns[j] = work.values[j]
                is_set = True
            else:
                # The edge is worth what is expected; what flows on is what was seen.
                count_visit(edges, edge, reward, discount, False, work)
                for j in range(NUM_VALUES):
                    value = step_return(reward[j], discount, work.values[j])
                    edges[edge].value_sum[j] = edges[edge].visits * value
                return news
    count_visit(edges, edge, reward, discount, is_set, work)
    return news


def has_ended(edges: np.ndarray, path: np.ndarray, work: Any) -> bool:
    """Whether the simulation found an end of the episode that was not known."""
    if work.ending != AT_END or work.depth == 0:
        return False
    edge = np.int64(path[work.depth - 1].edge)
    if edges[edge].visits > 0:
        return False
    mark_end(edges, edge, path[work.depth - 1].reward)
    return True


def settle(tree: Any, edges: np.ndarray, node: int, player: int, work: Any) -> bool:
    """Write to `returns` what a node is worth by proof or by its edges; False for the mean."""
    if HAS_PROOFS and is_exact(edges, node):
        read_exact(edges, node, work.returns)
        return True
    if GATHERS and player != CHANCE:
        return gather(tree, edges, node, player, work.backup_parameter, work.returns, work.values)
    return False


def count_visit(
    edges: np.ndarray, edge: int, reward: np.ndarray, discount: float, is_set: bool, work: Any
) -> None:
    """Count one visit of an edge: its value is set by its node's, or the mean with this return.

    `returns` then holds what the edge adds to the sum over its siblings. Where values are gathered
    from edges that is by how much its own sum has changed.
    """
    record, returns = edges[edge], work.returns
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


def begin_sample(work: Any) -> None:
    """Keep apart what this simulation returned, where nodes are worth something else."""
    if GATHERS or SHARES_NODES:
        for j in range(NUM_VALUES):
            work.sample[j] = work.returns[j]


def step_sample(path: np.ndarray, i: int, work: Any) -> None:
    if GATHERS or SHARES_NODES:
        for j in range(NUM_VALUES):
            work.sample[j] = step_return(path[i].reward[j], DISCOUNT, work.sample[j])


def sampled(tree: Any, work: Any, player: int) -> float:
    """What this simulation returned to a player from the edge on that is being counted."""
    if GATHERS or SHARES_NODES:
        return worth_to(tree, work.sample, player)
    return worth_to(tree, work.returns, player)


def note_return(
    tree: Any, edges: np.ndarray, path: np.ndarray, i: int, node: int, work: Any
) -> None:
    """What a return from `node` on, by edge i of the path, adds to squares and to AMAF counts."""
    player = np.int64(path[i].player)
    if player == CHANCE:
        return
    if KEEPS_SQUARES:
        value = sampled(tree, work, player)
        edges[np.int64(path[i].edge)].square_sum += value * value
    if HAS_AMAF:
        value = sampled(tree, work, player)
        note(work.played, player, np.int64(edges[np.int64(path[i].edge)].action))
        turn = np.int64(work.played[0])
        first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
        for edge in range(first, first + num_edges):
            # Added either way: whether an action was played is a coin toss to a branch.
            hit = was_played(work.played, turn, player, np.int64(edges[edge].action))
            edges[edge].amaf_visits += 1 if hit else 0
            edges[edge].amaf_sum += value if hit else 0.0


def note_square(edges: np.ndarray, path: np.ndarray, work: Any, root_squares: np.ndarray) -> None:
    """Squared returns of the root's edges, for confidence bounds."""
    if work.depth > 0 and not IS_CONTINUOUS:
        row = np.int64(path[0].edge) - edges[0].first
        for j in range(NUM_VALUES):
            part = work.sample[j] if GATHERS or SHARES_NODES else work.returns[j]
            root_squares[row, j] += part * part


def widen_range(tree: Any, edges: np.ndarray, edge: int, returns: np.ndarray) -> None:
    """Let the range of returns seen so far take in what an edge was counted with."""
    for player in range(NUM_PLAYERS):
        value = component(returns, player)
        if GATHERS and not SHARES_NODES:
            value = component(edges[edge].value_sum, player) / edges[edge].visits
        if value < tree.low[player] or value > tree.high[player]:
            tree.low[player] = min(tree.low[player], value)
            tree.high[player] = max(tree.high[player], value)
            span = tree.high[player] - tree.low[player]
            tree.factor[player] = 1.0 / span if span > 0.0 else 0.0


# --- kernels: where nodes are shared -------------------------------------------------------------


def back_up_shared(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, root_squares: np.ndarray
) -> None:
    """Count the edges of the path, and compute the value of every node on it anew."""
    returns, depth = work.returns, np.int64(work.depth)
    begin_sample(work)
    # A node may have been proven on another way, and those above it here do not know yet.
    is_proven = work.ending == KNOWN or work.ending == FOUND
    news = HAS_PROOFS and (is_proven or has_ended(edges, path, work))
    if work.ending != REPEATED:
        last = np.int64(edges[np.int64(path[depth - 1].edge)].node) if depth > 0 else np.int64(0)
        for j in range(NUM_VALUES):
            edges[last].own_sum[j] += returns[j]
        edges[last].node_visits += 1
        if work.ending != AT_END:
            renew(tree, edges, last, np.int64(work.leaf_player), work)
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
        step_sample(path, i, work)
        if SEES_RANGE:
            widen_range(tree, edges, edge, returns)
        note_return(tree, edges, path, i, node, work)
        if i == 0:
            note_square(edges, path, work, root_squares)
        edges[node].node_visits += 1
        if HAS_PROOFS and news:
            news = prove(tree, edges, node, np.int64(player))
        renew(tree, edges, node, np.int64(player), work)
    edges[0].visits += 1


def renew(tree: Any, edges: np.ndarray, node: int, player: int, work: Any) -> None:
    """V(s) of a shared node from its own evaluations and its edges.

    V(s) = (E U + Σ N(s,a) Q(s,a)) / N(s)                                          [Eq. 26]
    """
    record = edges[node]
    is_set = False
    if HAS_PROOFS and is_exact(edges, node):
        read_exact(edges, node, work.values)
        is_set = True
    elif record.first != NONE:
        if HAS_CHANCE and player == CHANCE:
            is_set = expect(tree, edges, node, work.values)
        elif GATHERS:
            is_set = gather(
                tree, edges, node, player, work.backup_parameter, work.values, work.more_values
            )
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
                    part = edge_part(tree, edges, np.int64(edge), np.int64(j))
                    total = add_edge(total, np.int64(edges[edge].visits), part)
        record.value_sum[j] = total / record.node_visits


def add_edge(total: float, visits: int, value: float) -> float:
    """One more edge in N(s) · V(s) of a shared node [Eq. 26].

    >>> add_edge(total=0.5, visits=3, value=0.5)
    2.0
    """
    return total + visits * value


def spread(values: Any) -> dict[str, float | None]:
    """Mean and spread of returns, value by value, so that nothing large is subtracted (Welford).

        d = x - mean,   mean += d / n,   m2 += d · (x - mean)                          [Eq. 12]

    The population variance is max(0, m2 / n), the sample variance m2 / (n - 1). What is not defined
    is None: the sample variance of one value, and everything without values.

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
