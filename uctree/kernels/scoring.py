"""The loop that finds the best edge of a node, and the values it reads from edges.

Rules give the formulas (`selection.py`): UCB1 of Auer, Cesa-Bianchi and Fischer, "Finite-time
analysis of the multiarmed bandit problem" (2002), in trees as UCT by Kocsis and Szepesvári, "Bandit
based Monte-Carlo planning" (2006); PUCT of Rosin, "Multi-armed bandits with episode context"
(2011), in the form of Silver et al., "Mastering the game of Go without human knowledge" (2017) and
"A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play"
(2018). This module adds what all rules share:

- Values mapped to [0, 1] by the range of returns so far: the min-max normalisation of
  Schrittwieser et al., "Mastering Atari, Go, chess and shogi by planning with a learned model"
  (2020), here with a range per player; "parent_and_siblings" is as in mctx.
- All-moves-as-first values: RAVE of Gelly and Silver, "Combining online and offline knowledge in
  UCT" (2007) and "Monte-Carlo tree search and rapid action value estimation in computer Go" (2011);
  GRAVE of Cazenave, "Generalized rapid action value estimation" (2015).
- Simulations in flight: virtual loss of Chaslot, Winands and van den Herik, "Parallel Monte-Carlo
  tree search" (2008), or visits alone, as in WU-UCT of Liu et al., "Watch the unobserved: a simple
  approach to parallelizing Monte Carlo tree search" (2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.game import random_below, random_unit
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Decision, Rule, Search
from uctree.kernels.gumbel import exp_below
from uctree.kernels.proofs import is_lost, is_won
from uctree.kernels.records import (
    CLOSED,
    HAS_ANSWERS,
    HAS_PENDING,
    HAS_PRIORS,
    HAS_PROOFS,
    IS_LAZY,
    IS_SPARSE,
    KEEPS_RAW,
    KEEPS_SQUARES,
    NONE,
    PARANOID,
    SHARES_NODES,
    node_of,
    value_for,
    visits_of_node,
)
from uctree.kernels.rules import DISCOUNT
from uctree.kernels.status import BAD_CHOICE
from uctree.selection import in_flight_value, inverse, inverse_sqrt

# Bound when a search is composed.
amaf_share = UNBOUND
OPEN_LOOP = RANDOM_TIES = HAS_NOISE = IS_UNOBSERVED = UNBOUND
HALVES_ROOT = UNBOUND  # the root considers only the edges of a list
HAS_UNVISITED_EDGES = UNBOUND  # a node may have edges without visits


# --- kernels: the scale of values -----------------------------------------------------------------

AS_IT_IS, UNIT, SIBLINGS = 0, 1, 2  # how values were scaled


def player_range(tree: Any, player: int) -> tuple[float, float]:
    """The range of `value_for` for a player."""
    if PARANOID:
        low, high = tree.low[tree.root_player], tree.high[tree.root_player]
        return (low, high) if player == tree.root_player else (-high, -low)
    return tree.low[player], tree.high[player]


def scale_none(
    search: Search, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Shift and factor for values, their span after scaling, and how they were scaled."""
    return 0.0, 1.0, 1.0, AS_IT_IS


def scale_span(
    search: Search, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    tree = search.tree
    low, high = player_range(tree, player)
    return 0.0, 1.0, high - low, AS_IT_IS


def scale_unit(
    search: Search, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Map values to [0, 1] by the range of this player's returns; to 0 while it is empty."""
    tree = search.tree
    low, high = player_range(tree, player)
    if high > low:
        return low, tree.factor[tree.root_player if PARANOID else player], 1.0, UNIT
    return 0.0, 0.0, 1.0, UNIT


def scale_siblings(
    search: Search, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Map values to [0, 1] by the range of the node's value and those of its edges."""
    edges = search.edges
    low = high = value
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            q = edge_value(search, np.int64(edge), player)
            low, high = min(low, q), max(high, q)
    return low, 1.0 / sibling_span(low, high), 1.0, SIBLINGS


def sibling_span(low: float, high: float) -> float:
    """The divisor of the values of a node and its edges: max(hi - lo, 1e-8)."""
    return max(high - low, 1e-8)


_KERNELS_OF_SCALES = {
    "none": scale_none,
    "span": scale_span,
    "auto": scale_unit,
    "bounds": scale_unit,
    "minmax": scale_unit,
    "parent_and_siblings": scale_siblings,
}


def scale_kernel(scale: str, has_range: bool) -> Callable[..., Any]:
    """The kernel of a rule's scale; `has_range`: the game states the range, it is not seen."""
    return _KERNELS_OF_SCALES["auto" if scale == "span" and not has_range else scale]


# --- kernels: the value of an edge ---------------------------------------------------------------


def edge_value(search: Search, edge: int, player: int) -> float:
    """Q(s,a) of an edge with visits, for the player to move."""
    tree, edges = search.tree, search.edges
    record = edges[np.uint64(edge)]
    if SHARES_NODES:
        node = edges[np.uint64(record.node)]
        after = value_for(tree, node.value_sum, player)
        if record.cycles > 0:
            share = record.cycles / record.visits
            after += share * (value_for(tree, tree.repetition, player) - after)
        return value_for(tree, record.reward, player) + DISCOUNT * after
    root = inverse_sqrt(np.int64(record.visits))
    return value_for(tree, record.value_sum, player) * root * root


def value_in_flight(
    search: Search, edge: int, player: int, visits: int, in_flight: int, node_value: float
) -> float:
    """Q(s,a) of an edge with simulations in flight."""
    tree = search.tree
    q = edge_value(search, edge, player) if visits > 0 else node_value
    if IS_UNOBSERVED:
        return q
    worst = player_range(tree, player)[0]
    return in_flight_value(q * visits, visits, in_flight, worst if worst < math.inf else 0.0)


def blend_nothing(
    search: Search, decision: Decision, edge: int, visits: int, q: float
) -> tuple[float, bool]:
    """The value of an edge, and whether it has an all-moves-as-first value."""
    return q, False


def blend_amaf(
    search: Search, decision: Decision, edge: int, visits: int, q: float
) -> tuple[float, bool]:
    """The value of an edge mixed with its all-moves-as-first value, and whether it has one."""
    edges, work = search.edges, search.work
    source = edge
    if decision.amaf_node != decision.node:
        source = amaf_edge(search, edge, decision.amaf_node)
    if source == NONE:
        return q, False
    counts = np.int64(edges[source].amaf_visits)
    if counts == 0:
        return q, False
    if visits == 0:
        return edges[source].amaf_sum * inverse(counts), True
    # One division; a weight and a mean would need two.
    share = amaf_share(np.int64(visits), counts, work.amaf_parameter)
    return (1.0 - share * counts) * q + share * edges[source].amaf_sum, True


def amaf_edge(search: Search, edge: int, node: int) -> int:
    """The edge of `node` that has the same action as `edge`; NONE if there is none."""
    edges = search.edges
    found = np.int64(search.work.amaf_edges[edges[edge].action])
    first = np.int64(edges[node].first)
    if found < first or found >= first + edges[node].num_edges:
        return NONE
    return found if edges[found].action == edges[edge].action else NONE


def index_amaf_edges(search: Search, node: int) -> None:
    """Let `amaf_edge` find the edges of a node by their actions."""
    edges, work = search.edges, search.work
    first = np.int64(edges[node].first)
    if work.amaf_first != first:
        work.amaf_first = first
        for edge in range(first, first + edges[node].num_edges):
            work.amaf_edges[edges[edge].action] = edge


# --- kernels: the best edge ----------------------------------------------------------------------


def best_edge(search: Search, decision: Decision, rule: Rule, parameters: np.ndarray) -> int:
    """The edge of a node with the largest score, the first in a tie; NONE for an untried action.

    Untried actions, which have no edge yet, have the same prior and value, so one score serves all.
    In a tie edges win.
    """
    edges, work, rng = search.edges, search.work, search.rng
    node, player, node_value = decision.node, decision.player, decision.value
    num_edges, num_untried = decision.num_edges, decision.num_untried
    first, num_legal = np.int64(edges[np.uint64(node)].first), decision.num_legal
    shift, factor, span, became = rule.scale(search, first, num_edges, player, node_value)
    unvisited_q = 0.0
    untried_comes_first = False
    if HAS_UNVISITED_EDGES or num_untried > 0:  # else all edges have visits
        mass = taken_prior(edges, first, num_edges, num_legal)
        unvisited_q = rule.unvisited(node_value, mass, parameters)
        untried_comes_first = unvisited_q == math.inf
    if became == SIBLINGS:
        unvisited_q = 0.0
    elif became == UNIT and not untried_comes_first:
        unvisited_q = min(1.0, max(0.0, (unvisited_q - shift) * factor))
    parent_visits = visits_of_node(edges, node)
    if HAS_PENDING:
        parent_visits += edges[node].pending
    node_width = rule.width(parent_visits, span, parameters)
    prior: float = inverse(num_legal)
    sum_total = num_untried * rule.total(prior, np.int64(0), parent_visits, parameters)
    for edge in range(first, first + num_edges):
        if HAS_PRIORS:
            prior = prior_of(search, node, first, edge)
        sum_total += rule.total(prior, np.int64(edges[edge].visits), parent_visits, parameters)
    untried_score = -math.inf
    if num_untried > 0:
        if untried_comes_first:
            return NONE
        untried_score = rule.score(
            unvisited_q, prior, np.int64(0), node_width, 0.0, sum_total, parameters, rng
        )
    best = NONE
    best_score = -math.inf
    best_visits = num_ties = np.int64(1)
    for edge in range(first, first + num_edges):
        if OPEN_LOOP and work.legal_stamp[edges[edge].action] != work.stamp:
            continue
        if HAS_PROOFS and is_lost(search, node_of(edges, np.int64(edge)), player):
            continue
        if HAS_ANSWERS and edges[edge].mover == CLOSED:
            continue
        taken = visits = np.int64(edges[np.uint64(edge)].visits)
        if HAS_PRIORS:
            prior = prior_of(search, node, first, edge)
        q = unvisited_q
        mean_square = 0.0
        is_known = False
        if not HAS_UNVISITED_EDGES or visits > 0:
            q = edge_value(search, np.int64(edge), player)
        if HAS_PENDING:
            in_flight = np.int64(edges[edge].pending)
            if in_flight > 0 and (visits > 0 or untried_comes_first or not IS_UNOBSERVED):
                q = value_in_flight(search, np.int64(edge), player, visits, in_flight, node_value)
                is_known = True
            visits += in_flight
        q, has_amaf = rule.blend(search, decision, np.int64(edge), visits, q)
        if not HAS_UNVISITED_EDGES or taken > 0 or is_known or has_amaf:
            q = (q - shift) * factor
            if has_amaf and untried_comes_first:
                visits = max(np.int64(1), visits)  # rules do not score edges without visits here
        if KEEPS_SQUARES and taken > 0:
            mean_square = scaled_square(search, edge, player, shift, factor)
        if HAS_UNVISITED_EDGES and visits == 0 and untried_comes_first and not has_amaf:
            if not RANDOM_TIES:
                return edge  # no score is larger
            edge_score = math.inf
        else:
            edge_score = rule.score(
                q, prior, visits, node_width, mean_square, sum_total, parameters, rng
            )
        better = edge_score > best_score
        if HAS_UNVISITED_EDGES and rule.unvisited_first():
            better |= edge_score == best_score and taken == 0 and best_visits > 0
        if RANDOM_TIES and edge_score == best_score and best != NONE:
            num_ties += 1
            better = random_below(rng, num_ties) == 0
        elif RANDOM_TIES and better:
            num_ties = np.int64(1)
        # Selections instead of a branch, which would be mispredicted.
        best = edge if better else best
        best_score = edge_score if better else best_score
        if HAS_UNVISITED_EDGES and rule.unvisited_first():
            best_visits = taken if better else best_visits
    if rule.unvisited_first() and num_untried > 0 and untried_score == best_score:
        return NONE if best_visits > 0 else best
    return NONE if untried_score > best_score else best


def incumbent(search: Search, node: int, player: int) -> int:
    """The edge of a node with the highest value for its mover; NONE if no edge has visits."""
    edges = search.edges
    first, best, best_value = np.int64(edges[node].first), NONE, -math.inf
    for edge in range(first, first + edges[node].num_edges):
        if edges[edge].visits > 0:
            value = edge_value(search, np.int64(edge), player)
            if value > best_value:
                best, best_value = np.int64(edge), value
    return best


def won_edge(search: Search, node: int, player: int) -> int:
    """An edge that is proven to give its player the maximum payoff; NONE if there is none."""
    edges = search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if is_won(search, node_of(edges, np.int64(edge)), player):
            return np.int64(edge)
    return NONE


def prior_of(search: Search, node: int, first: int, edge: int) -> float:
    """P(s,a); at the root with its noise, if there is any."""
    edges, work = search.edges, search.work
    if HAS_NOISE and node == 0:
        return work.noise[edge - first]
    return float(edges[edge].prior)


def scaled_square(search: Search, edge: int, player: int, shift: float, factor: float) -> float:
    """The mean of an edge's squared returns, after the scaling of values."""
    edges = search.edges
    mean = edge_value(search, np.int64(edge), player)
    square = edges[edge].square_sum / edges[edge].visits
    return (square - 2.0 * shift * mean + shift * shift) * factor * factor


def yes() -> bool:
    return True


def no() -> bool:
    return False


def taken_prior(edges: np.ndarray, first: int, num_edges: int, num_legal: int) -> float:
    """The sum of the priors of edges with visits."""
    if not HAS_PRIORS and IS_LAZY:
        return num_edges * inverse(num_legal)
    total = 0.0
    count = np.int64(0)
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            if HAS_PRIORS:
                total += float(edges[edge].prior)
            count += 1
    return total if HAS_PRIORS else count * inverse(num_legal)


def chosen_edge(
    search: Search, node: int, player: int, node_value: float, considered: int,
    parameters: np.ndarray, rule: Rule,
) -> int:  # fmt: skip
    """The edge of `node` chosen by a rule that looks at all edges at once.

    NONE for the likeliest action that has no edge yet; minus a status on an error.
    """
    tree, edges, work = search.tree, search.edges, search.work
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    is_halving = HALVES_ROOT and node == 0
    if is_halving:
        count = np.int64(work.num_considered)
    for i in range(count):
        edge = first + (np.int64(work.considered[i]) if is_halving else np.int64(i))
        read_choice(search, node, player, node_value, np.int64(i), edge, first)
    num_shown, rest_prior = count, 0.0
    if IS_SPARSE and not is_halving and count < edges[node].num_kept:
        work.q[count], work.visits[count] = 0.0, 0
        work.prior[count] = best_untried(search, node)
        num_shown += 1
        if num_shown < edges[node].num_legal:
            rest_prior = max(0.0, 1.0 - sum_of(work.prior, num_shown))
    raw = value_for(tree, edges[node].raw, player) if KEEPS_RAW else node_value
    chosen = np.int64(
        rule.choose(
            num_shown, work.q, work.prior, work.visits, node_value, raw,
            visits_of_node(edges, node), parameters, work.scratch, work.draws, considered,
            rest_prior,
        )
    )  # fmt: skip
    if chosen < 0 or chosen >= num_shown:
        return -np.int64(BAD_CHOICE)
    if is_halving:
        chosen = np.int64(work.considered[chosen])
    elif IS_SPARSE and chosen == count:
        return NONE
    return first + chosen


def read_choice(
    search: Search, node: int, player: int, node_value: float, i: int, edge: int, first: int
) -> None:
    """Write value, visits and prior of an edge for a rule that looks at all edges."""
    edges, work = search.edges, search.work
    visits = np.int64(edges[edge].visits)
    work.q[i] = edge_value(search, edge, player) if visits > 0 else 0.0
    work.visits[i] = visits
    if HAS_PRIORS:
        work.prior[i] = prior_of(search, node, first, edge)
    else:
        work.prior[i] = 1.0 / edges[node].num_edges
    if HAS_PENDING:
        in_flight = np.int64(edges[edge].pending)
        if in_flight > 0:
            work.q[i] = value_in_flight(search, edge, player, visits, in_flight, node_value)
            work.visits[i] = visits + in_flight


@noinline
def best_untried(search: Search, node: int) -> float:
    """The largest prior of a node's actions that have no edge."""
    edges, untried = search.edges, search.untried
    record = edges[node]
    if record.best == NONE:
        first = np.int64(record.untried)
        row = untried[first : first + record.num_kept]
        largest = record.largest
        if record.num_edges > 0:
            largest = largest_of(row, np.int64(row.shape[0]))
        best = np.int64(0)
        while row[best] != largest:
            best += 1
        record.best = best
        record.best_prior = exp_below(largest - record.largest) / record.sum_weights
    return float(record.best_prior)


def largest_of(row: np.ndarray, count: int) -> float:
    """The largest of the first `count` numbers of a row, at least one.

    Eight independent maxima: in a single one, every step would wait for the last.
    """
    a = b = c = d = e = f = g = h = row[0]
    for i in range(0, count - 7, 8):
        a, b, c, d = max(a, row[i]), max(b, row[i + 1]), max(c, row[i + 2]), max(d, row[i + 3])
        e, f, g, h = max(e, row[i + 4]), max(f, row[i + 5]), max(g, row[i + 6]), max(h, row[i + 7])
    for i in range(count - count % 8, count):
        a = max(a, row[i])
    return np.float64(max(max(a, b, c, d), max(e, f, g, h)))


def sum_of(row: np.ndarray, count: int) -> float:
    """The sum of the first `count` numbers of a row, as eight independent sums for speed."""
    a = b = c = d = e = f = g = h = 0.0
    for i in range(0, count - 7, 8):
        a, b, c, d = a + row[i], b + row[i + 1], c + row[i + 2], d + row[i + 3]
        e, f, g, h = e + row[i + 4], f + row[i + 5], g + row[i + 6], h + row[i + 7]
    for i in range(count - count % 8, count):
        a += row[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


# --- kernels: chance -----------------------------------------------------------------------------


def draw_outcome(search: Search, node: int) -> int:
    """An edge of a chance node, drawn by its probability."""
    edges, rng = search.edges, search.rng
    first, num_edges = edges[node].first, edges[node].num_edges
    rest = random_unit(rng)
    for edge in range(first, first + num_edges - 1):
        rest -= float(edges[edge].prior)
        if rest < 0.0:
            return edge
    return first + num_edges - 1


def due_outcome(search: Search, node: int) -> int:
    """The edge of a chance node that is most overdue: argmax p(o) / (N(o) + 1)."""
    edges = search.edges
    first, num_edges = edges[node].first, edges[node].num_edges
    best = first
    best_score = -math.inf
    for edge in range(first, first + num_edges):
        score = float(edges[edge].prior) / (edges[edge].visits + 1)
        if score > best_score:
            best, best_score = edge, score
    return best


def drawn_again(search: Search, node: int) -> int:
    """An edge of a chance node, drawn in proportion to how often its outcome came up."""
    edges, rng = search.edges, search.rng
    first, num_edges = edges[node].first, edges[node].num_edges
    total = 0.0
    for edge in range(first, first + num_edges):
        total += float(edges[edge].prior)
    rest = random_unit(rng)
    for edge in range(first, first + num_edges - 1):
        rest -= drawn_share(float(edges[edge].prior), total)
        if rest < 0.0:
            return edge
    return first + num_edges - 1


def drawn_share(count: float, total: float) -> float:
    """The probability of an outcome that came up `count` times out of `total`.

    >>> drawn_share(3, 8)
    0.375
    """
    return count / total
