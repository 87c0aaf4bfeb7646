"""What flows back along the path of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify._compile import UNBOUND
from ramify.game import CHANCE
from ramify.tree import NUM_VALUES, component

# Bound when a search is composed.
NUM_PLAYERS = UNBOUND
DISCOUNT = UNBOUND
HAS_CHANCE = UNBOUND
SEES_RANGE = UNBOUND  # the game states no payoff_range, so the tree keeps the one it has seen


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


@dataclass(frozen=True)
class Backup:
    """How a result enters the statistics of the edges on its path."""

    name: str


def mean() -> Backup:
    """Every edge keeps the mean of the returns seen through it."""
    return Backup("mean")


def back_up(
    tree: Any, edges: np.ndarray, path: np.ndarray, depth: int, returns: np.ndarray,
    root_squares: np.ndarray,
) -> None:  # fmt: skip
    """Add one simulation to every edge of its path, from the leaf up."""
    for i in range(depth - 1, -1, -1):
        edge = np.int64(path[i].edge)
        for j in range(NUM_VALUES):
            returns[j] = step_return(path[i].reward[j], DISCOUNT, returns[j])
        if SEES_RANGE:
            widen_range(tree, returns)
        add_return(edges, edge, returns)
        if HAS_CHANCE and i + 1 < depth and path[i + 1].player == CHANCE:
            weigh_outcomes(edges, edge, path[i].reward, DISCOUNT)
    if depth > 0:
        row = path[0].edge - edges[0].first
        for j in range(NUM_VALUES):
            root_squares[row, j] += returns[j] * returns[j]
    add_return(edges, np.int64(0), returns)
    if HAS_CHANCE and depth > 0 and path[0].player == CHANCE:
        returns[:] = 0.0  # nothing is paid on the way to the root
        weigh_outcomes(edges, np.int64(0), returns, 1.0)


def add_return(edges: np.ndarray, edge: int, returns: np.ndarray) -> None:
    """Count one visit of an edge."""
    record = edges[edge]
    record.visits += 1
    for j in range(NUM_VALUES):
        record.value_sum[j] += returns[j]


def widen_range(tree: Any, returns: np.ndarray) -> None:
    """Let the range of returns seen so far take in these."""
    for player in range(NUM_PLAYERS):
        value = component(returns, player)
        tree.low[player] = min(tree.low[player], value)
        tree.high[player] = max(tree.high[player], value)


def weigh_outcomes(edges: np.ndarray, node: int, reward: np.ndarray, discount: float) -> None:
    """Once all outcomes were seen, give the edge into a chance node its expected value."""
    first, num_edges = edges[node].first, edges[node].num_edges
    for edge in range(first, first + num_edges):
        if edges[edge].visits == 0:
            return
    record = edges[node]
    for j in range(NUM_VALUES):
        value = 0.0
        for edge in range(first, first + num_edges):
            mean = edges[edge].value_sum[j] / edges[edge].visits
            value = add_outcome(value, float(edges[edge].prior), mean)
        record.value_sum[j] = record.visits * step_return(reward[j], discount, value)


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
