"""Which edge to take: rules that score edges, and the loop that takes the best one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.game import random_unit
from ramify.tree import HAS_PRIORS, NONE, component

# A root and a logarithm per node and a root and two divisions per edge took a third of the time of
# a search of connect four; small counts, the bulk, come from tables.
_TABLE = 4096
_SQRT_LOG = np.sqrt(np.log(np.maximum(1, np.arange(_TABLE))))
_INVERSE_SQRT = 1.0 / np.sqrt(np.maximum(1, np.arange(_TABLE)))


def sqrt_log(n: int) -> float:
    """√(ln n)."""
    return float(_SQRT_LOG[n]) if n < _TABLE else math.sqrt(math.log(n))


def inverse_sqrt(n: int) -> float:
    """1 / √n."""
    return float(_INVERSE_SQRT[n]) if n < _TABLE else 1.0 / math.sqrt(n)


# --- formulas ------------------------------------------------------------------------------------


def ucb1_width(parent_visits: int, c: float, span: float) -> float:
    """What the bonus of UCB1 is for an edge taken once.

        c · (hi - lo) · √(ln N(s))                                                     [Eq. 1]

    `span` is hi - lo, the range of the mover's payoffs.

    >>> round(ucb1_width(parent_visits=100, c=math.sqrt(2), span=1.0), 6)
    3.034854
    """
    return c * span * sqrt_log(max(1, parent_visits))


def ucb1_score(q: float, visits: int, width: float) -> float:
    """Score of an edge: its mean value plus a bonus for what was tried little.

        Q(s,a) + width / √N(s,a)                                                       [Eq. 2]

    Infinite for an edge never taken.

    >>> ucb1_score(q=0.5, visits=16, width=3.0)
    1.25
    """
    if visits == 0:
        return math.inf
    return q + width * inverse_sqrt(visits)


def puct_width(parent_visits: int, c: float, c_base: float) -> float:
    """What the bonus of PUCT is for a new edge of prior 1; the constant grows with the visits.

        (c + ln((1 + N(s) + c_base) / c_base)) · √N(s)                                 [Eq. 3]

    N(s) counts at least 1, so that a fresh node follows its priors. With an infinite `c_base` the
    constant stays c.

    >>> puct_width(parent_visits=16, c=1.25, c_base=math.inf)
    5.0
    """
    visits = max(1, parent_visits)
    return growing_c(visits, c, c_base) * math.sqrt(visits)


def growing_c(parent_visits: int, c: float, c_base: float) -> float:
    """The constant of PUCT: c + ln((1 + N(s) + c_base) / c_base), c for an infinite c_base.

    >>> round(growing_c(parent_visits=100, c=1.25, c_base=19652.0), 6)
    1.255126
    """
    if math.isinf(c_base):
        return c
    return c + math.log((1 + parent_visits + c_base) / c_base)


def puct_score(q: float, prior: float, visits: int, width: float) -> float:
    """Score of an edge: its mean value plus a bonus steered by the prior.

        Q(s,a) + P(s,a) · width / (1 + N(s,a))                                         [Eq. 4]

    >>> puct_score(q=0.5, prior=0.2, visits=3, width=5.0)
    0.75
    """
    return q + prior * width / (1 + visits)


def reduced_parent(value: float, reduction: float, visited_prior: float) -> float:
    """What an edge never taken is taken to be worth: a little less than its node.

        V(s) - f · √(Σ P(s,b) over b taken)                                            [Eq. 5]

    >>> reduced_parent(value=-0.4, reduction=0.2, visited_prior=0.64)
    -0.56
    """
    return value - reduction * math.sqrt(visited_prior)


# --- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """How edges are scored: plain functions that are compiled into the search, and their numbers.

    Args:
        width: `width(parent_visits, span, parameters) -> float`, computed once for all edges of a
            node.
        score: `score(q, prior, visits, width, parameters) -> float` of an edge; the largest wins.
        unvisited: `unvisited(value, visited_prior, parameters) -> q` of an edge never taken, from
            the value of its node for the mover; infinite means such edges come first.
        parameters: handed to both as a float64 array; other numbers need no new compilation.
        scale: "span" leaves values as they are and gives `span` as the range of payoffs, where the
            game states one; "unit" maps the range, stated or seen so far, to [0, 1], span 1 (so
            does "span" where the game states none); "none" leaves all as it is, span 1.
    """

    name: str
    width: Callable[..., float]
    score: Callable[..., float]
    unvisited: Callable[..., float]
    parameters: tuple[float, ...]
    scale: str = "unit"


def ucb1(c: float = math.sqrt(2)) -> Rule:
    """UCB1 [Eq. 1, 2]: edges never taken first, then mean value plus a bonus."""
    _check_number("c", c)
    return Rule("ucb1", _ucb1_width, _ucb1_score, _first_of_all, (c,), "span")


def puct(
    c: float = 1.25,
    c_base: float = 19652.0,
    *,
    fpu: str = "parent_sqrt",
    fpu_value: float = 0.2,
    normalise: bool = True,
) -> Rule:
    """PUCT [Eq. 3, 4] with a constant that grows from `c`; `c_base=math.inf` keeps it constant.

    Args:
        fpu: what an edge never taken is worth: "parent_sqrt" [Eq. 5] or "parent", the value of its
            node less `fpu_value`; "constant", `fpu_value` itself.
        normalise: whether values are mapped to [0, 1] by the range of payoffs, given or seen.
    """
    _check_number("c", c)
    if not c_base > 0:
        raise ValueError(f"c_base must be above 0; got {c_base}")
    kinds = {
        "parent_sqrt": _worth_less_by_prior,
        "parent": _worth_less,
        "constant": _worth_constant,
    }
    if fpu not in kinds:
        raise ValueError(f"fpu must be one of {', '.join(kinds)}; got {fpu!r}")
    parameters = (c, c_base, fpu_value)
    scale = "unit" if normalise else "none"
    return Rule("puct", _puct_width, _puct_score, kinds[fpu], parameters, scale)


def _check_number(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a number of at least 0; got {value}")


def _ucb1_width(parent_visits: int, span: float, parameters: np.ndarray) -> float:
    return ucb1_width(parent_visits, parameters[0], span)


def _ucb1_score(q: float, prior: float, visits: int, width: float, parameters: Any) -> float:
    return ucb1_score(q, visits, width)


def _puct_width(parent_visits: int, span: float, parameters: np.ndarray) -> float:
    return puct_width(parent_visits, parameters[0], parameters[1])


def _puct_score(q: float, prior: float, visits: int, width: float, parameters: Any) -> float:
    return puct_score(q, prior, visits, width)


def _first_of_all(value: float, visited_prior: float, parameters: np.ndarray) -> float:
    return math.inf


def _worth_less_by_prior(value: float, visited_prior: float, parameters: np.ndarray) -> float:
    return reduced_parent(value, parameters[2], visited_prior)


def _worth_less(value: float, visited_prior: float, parameters: np.ndarray) -> float:
    return value - parameters[2]


def _worth_constant(value: float, visited_prior: float, parameters: np.ndarray) -> float:
    return parameters[2]


# --- kernels -------------------------------------------------------------------------------------


def scale_none(tree: Any, player: int) -> tuple[float, float, float, bool]:
    """Shift and factor for values, and the span that is left after them."""
    return 0.0, 1.0, 1.0, False


def scale_span(tree: Any, player: int) -> tuple[float, float, float, bool]:
    return 0.0, 1.0, tree.high[player] - tree.low[player], False


def scale_unit(tree: Any, player: int) -> tuple[float, float, float, bool]:
    """Values to [0, 1] by the range of this player's payoffs; all to 0 while it is empty."""
    low, high = tree.low[player], tree.high[player]
    if high > low:
        return low, 1.0 / (high - low), 1.0, True
    return 0.0, 0.0, 1.0, True


SCALES = {"none": scale_none, "span": scale_span, "unit": scale_unit}


def best_edge(
    tree: Any, edges: np.ndarray, node: int, player: int, node_value: float, num_untried: int,
    parameters: np.ndarray, width: Any, score: Any, unvisited: Any, scale: Any,
) -> int:  # fmt: skip
    """The edge of `node` with the largest score, the first of equals; NONE for one not yet made.

    Edges not yet made are alike (same prior, same worth), so one of them stands for all. They come
    after their siblings, so those win a tie.
    """
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    shift, factor, span, is_unit = scale(tree, player)
    worth = unvisited(node_value, taken_prior(edges, first, num_edges, num_untried), parameters)
    if is_unit and worth != math.inf:
        worth = min(1.0, max(0.0, (worth - shift) * factor))
    node_width = width(np.int64(edges[node].visits), span, parameters)
    prior: float = 1.0 / (num_edges + num_untried)
    untried_score = -math.inf
    if num_untried > 0:
        untried_score = score(worth, prior, np.int64(0), node_width, parameters)
        if untried_score == math.inf:
            return NONE
    best = NONE
    best_score = -math.inf
    for edge in range(first, first + num_edges):
        visits = np.int64(edges[edge].visits)
        if HAS_PRIORS:
            prior = float(edges[edge].prior)
        q = worth
        if visits > 0:
            root = inverse_sqrt(visits)
            q = (component(edges[edge].value_sum, player) * root * root - shift) * factor
        edge_score = score(q, prior, visits, node_width, parameters)
        # Two selections instead of one branch, which would be a coin toss.
        better = edge_score > best_score
        best = edge if better else best
        best_score = edge_score if better else best_score
    return NONE if untried_score > best_score else best


def taken_prior(edges: np.ndarray, first: int, num_edges: int, num_untried: int) -> float:
    """The prior of all edges that were taken, added up."""
    if not HAS_PRIORS:
        return num_edges / (num_edges + num_untried)
    total = 0.0
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            total += float(edges[edge].prior)
    return total


def draw_outcome(edges: np.ndarray, node: int, rng: np.ndarray) -> int:
    """An edge of a chance node, drawn by its probability."""
    first, num_edges = edges[node].first, edges[node].num_edges
    rest = random_unit(rng)
    for edge in range(first, first + num_edges - 1):
        rest -= float(edges[edge].prior)
        if rest < 0.0:
            return edge
    return first + num_edges - 1
