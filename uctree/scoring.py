"""The loop that takes the best edge of a node, and what it reads of edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree._compile import UNBOUND, apart
from uctree.evaluators import BAD_CHOICE
from uctree.game import random_below, random_unit
from uctree.gumbel import exp_below
from uctree.proofs import is_lost, is_won
from uctree.selection import in_flight_value, inverse, inverse_sqrt
from uctree.tree import (
    DISCOUNT,
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
    visits_of_node,
    worth_to,
)  # fmt: skip

# Bound when a search is composed.
amaf_share = UNBOUND
OPEN_LOOP = RANDOM_TIES = HAS_NOISE = IS_UNOBSERVED = UNBOUND
LISTS = UNBOUND  # the root considers the edges of a list alone
MADE_BEFORE_TAKEN = UNBOUND  # a node may have edges that nobody has taken


# --- kernels: what values are measured in ---------------------------------------------------------

AS_IT_IS, UNIT, SIBLINGS = 0, 1, 2  # what became of values


def player_range(tree: Any, player: int) -> tuple[float, float]:
    """The range of what `worth_to` gives for a player."""
    if PARANOID:
        low, high = tree.low[tree.root_player], tree.high[tree.root_player]
        return (low, high) if player == tree.root_player else (-high, -low)
    return tree.low[player], tree.high[player]


def scale_none(
    tree: Any, edges: np.ndarray, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Shift and factor for values, the span that is left after them, and what they became."""
    return 0.0, 1.0, 1.0, AS_IT_IS


def scale_span(
    tree: Any, edges: np.ndarray, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    low, high = player_range(tree, player)
    return 0.0, 1.0, high - low, AS_IT_IS


def scale_unit(
    tree: Any, edges: np.ndarray, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Values to [0, 1] by the range of this player's payoffs; all to 0 while it is empty."""
    low, high = player_range(tree, player)
    if high > low:
        return low, tree.factor[tree.root_player if PARANOID else player], 1.0, UNIT
    return 0.0, 0.0, 1.0, UNIT


def scale_siblings(
    tree: Any, edges: np.ndarray, first: int, num_edges: int, player: int, value: float
) -> tuple[float, float, float, int]:
    """Values to [0, 1] by the range of a node's value and those of its edges."""
    low = high = value
    for edge in range(first, first + num_edges):
        if edges[edge].visits > 0:
            q = edge_value(tree, edges, np.int64(edge), player)
            low, high = min(low, q), max(high, q)
    return low, 1.0 / sibling_span(low, high), 1.0, SIBLINGS


def sibling_span(low: float, high: float) -> float:
    """What the values of a node and its edges are divided by: max(hi - lo, 1e-8)."""
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
    """The kernel of a rule's scale, for a game that states its range of payoffs or does not."""
    return _KERNELS_OF_SCALES["auto" if scale == "span" and not has_range else scale]


# --- kernels: the value of an edge ---------------------------------------------------------------


def edge_value(tree: Any, edges: np.ndarray, edge: int, player: int) -> float:
    """Q(s,a) of an edge that was taken, for the player who chooses."""
    record = edges[edge]
    if SHARES_NODES:
        node = edges[np.int64(record.node)]
        after = worth_to(tree, node.value_sum, player)
        if record.cycles > 0:
            share = record.cycles / record.visits
            after += share * (worth_to(tree, tree.repetition, player) - after)
        return worth_to(tree, record.reward, player) + DISCOUNT * after
    root = inverse_sqrt(np.int64(record.visits))
    return worth_to(tree, record.value_sum, player) * root * root


def value_in_flight(
    tree: Any, edges: np.ndarray, edge: int, player: int, visits: int, in_flight: int,
    node_value: float,
) -> float:  # fmt: skip
    """Q(s,a) while simulations are under way through the edge."""
    q = edge_value(tree, edges, edge, player) if visits > 0 else node_value
    if IS_UNOBSERVED:
        return q
    worst = player_range(tree, player)[0]
    return in_flight_value(q * visits, visits, in_flight, worst if worst < math.inf else 0.0)


def blend_nothing(
    edges: np.ndarray, work: Any, edge: int, node: int, ref: int, player: int, visits: int, q: float
) -> tuple[float, bool]:
    """The value of an edge, and whether all-moves-as-first says anything of it."""
    return q, False


def blend_amaf(
    edges: np.ndarray, work: Any, edge: int, node: int, ref: int, player: int, visits: int, q: float
) -> tuple[float, bool]:
    """The same mixed with all-moves-as-first."""
    source = np.int64(edge) if ref == node else ref_edge(edges, work, edge, ref)
    if source == NONE:
        return q, False
    counts = np.int64(edges[source].amaf_visits)
    if counts == 0:
        return q, False
    if visits == 0:
        return edges[source].amaf_sum * inverse(counts), True
    # One division where a weight and a mean would need two.
    share = amaf_share(np.int64(visits), counts, work.amaf_parameter)
    return (1.0 - share * counts) * q + share * edges[source].amaf_sum, True


def ref_edge(edges: np.ndarray, work: Any, edge: int, ref: int) -> int:
    """The edge of the node `ref` that has the same action; NONE without one."""
    found = np.int64(work.ref_edges[edges[edge].action])
    first = np.int64(edges[ref].first)
    if found < first or found >= first + edges[ref].num_edges:
        return NONE
    return found if edges[found].action == edges[edge].action else NONE


def note_ref(edges: np.ndarray, work: Any, ref: int) -> None:
    """Let `ref_edge` find the edges of this node."""
    first = np.int64(edges[ref].first)
    if work.ref_first != first:
        work.ref_first = first
        for edge in range(first, first + edges[ref].num_edges):
            work.ref_edges[edges[edge].action] = edge


# --- kernels: the best edge ----------------------------------------------------------------------


def best_edge(
    tree: Any, edges: np.ndarray, work: Any, rng: np.ndarray, node: int, first: int,
    num_edges: int, player: int, node_value: float, num_untried: int, num_legal: int, ref: int,
    parameters: np.ndarray, width: Any, score: Any, unvisited: Any, total: Any, scale: Any,
    blend: Any, unvisited_first: Any,
) -> int:  # fmt: skip
    """The edge of `node` with the largest score, the first of equals; NONE for one not yet made.

    `num_legal` is the number of actions among which priors are shared out where nobody gives any.
    Edges not yet made are alike (same prior, same worth), so one of them stands for all. They come
    after their siblings, so those win a tie.
    """
    shift, factor, span, became = scale(tree, edges, first, num_edges, player, node_value)
    worth = 0.0
    untried_comes_first = False
    if MADE_BEFORE_TAKEN or num_untried > 0:  # else all edges have been taken
        mass = taken_prior(edges, first, num_edges, num_legal)
        worth = unvisited(node_value, mass, parameters)
        untried_comes_first = worth == math.inf
    if became == SIBLINGS:
        worth = 0.0
    elif became == UNIT and not untried_comes_first:
        worth = min(1.0, max(0.0, (worth - shift) * factor))
    parent_visits = visits_of_node(edges, node)
    if HAS_PENDING:
        parent_visits += edges[node].pending
    node_width = width(parent_visits, span, parameters)
    prior: float = inverse(num_legal)
    sum_total = num_untried * total(prior, np.int64(0), parent_visits, parameters)
    for edge in range(first, first + num_edges):
        if HAS_PRIORS:
            prior = prior_of(edges, work, node, first, edge)
        sum_total += total(prior, np.int64(edges[edge].visits), parent_visits, parameters)
    untried_score = -math.inf
    if num_untried > 0:
        if untried_comes_first:
            return NONE
        untried_score = score(worth, prior, np.int64(0), node_width, 0.0, sum_total, parameters)
    best = NONE
    best_score = -math.inf
    best_visits = num_ties = np.int64(1)
    for edge in range(first, first + num_edges):
        if OPEN_LOOP and work.legal_stamp[edges[edge].action] != work.stamp:
            continue
        if HAS_PROOFS and is_lost(tree, edges, node_of(edges, np.int64(edge)), player):
            continue
        taken = visits = np.int64(edges[edge].visits)
        if HAS_PRIORS:
            prior = prior_of(edges, work, node, first, edge)
        q = worth
        mean_square = 0.0
        is_known = False
        if not MADE_BEFORE_TAKEN or visits > 0:
            q = edge_value(tree, edges, np.int64(edge), player)
        if HAS_PENDING:
            in_flight = np.int64(edges[edge].pending)
            if in_flight > 0 and (visits > 0 or untried_comes_first or not IS_UNOBSERVED):
                q = value_in_flight(
                    tree, edges, np.int64(edge), player, visits, in_flight, node_value
                )
                is_known = True
            visits += in_flight
        q, has_amaf = blend(edges, work, np.int64(edge), node, ref, player, visits, q)
        if not MADE_BEFORE_TAKEN or taken > 0 or is_known or has_amaf:
            q = (q - shift) * factor
            if has_amaf and untried_comes_first:
                visits = max(np.int64(1), visits)  # no rule scores what comes first anyway
        if KEEPS_SQUARES and taken > 0:
            mean_square = scaled_square(tree, edges, edge, player, shift, factor)
        if MADE_BEFORE_TAKEN and visits == 0 and untried_comes_first and not has_amaf:
            if not RANDOM_TIES:
                return edge  # nothing is larger
            edge_score = math.inf
        else:
            edge_score = score(q, prior, visits, node_width, mean_square, sum_total, parameters)
        better = edge_score > best_score
        if MADE_BEFORE_TAKEN and unvisited_first():
            better |= edge_score == best_score and taken == 0 and best_visits > 0
        if RANDOM_TIES and edge_score == best_score and best != NONE:
            num_ties += 1
            better = random_below(rng, num_ties) == 0
        elif RANDOM_TIES and better:
            num_ties = np.int64(1)
        # Selections instead of a branch, which would be a coin toss.
        best = edge if better else best
        best_score = edge_score if better else best_score
        if MADE_BEFORE_TAKEN and unvisited_first():
            best_visits = taken if better else best_visits
    if unvisited_first() and num_untried > 0 and untried_score == best_score:
        return NONE if best_visits > 0 else best
    return NONE if untried_score > best_score else best


def incumbent(tree: Any, edges: np.ndarray, node: int, player: int) -> int:
    """The edge of a node that is worth most to its mover so far; NONE where none was taken."""
    first, best, best_value = np.int64(edges[node].first), NONE, -math.inf
    for edge in range(first, first + edges[node].num_edges):
        if edges[edge].visits > 0:
            value = edge_value(tree, edges, np.int64(edge), player)
            if value > best_value:
                best, best_value = np.int64(edge), value
    return best


def won_edge(tree: Any, edges: np.ndarray, node: int, player: int) -> int:
    """An edge that is proven to give its player the most there is; NONE without one."""
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if is_won(tree, edges, node_of(edges, np.int64(edge)), player):
            return np.int64(edge)
    return NONE


def prior_of(edges: np.ndarray, work: Any, node: int, first: int, edge: int) -> float:
    """P(s,a); at the root with noise, where there is any."""
    if HAS_NOISE and node == 0:
        return work.noise[edge - first]
    return float(edges[edge].prior)


def scaled_square(
    tree: Any, edges: np.ndarray, edge: int, player: int, shift: float, factor: float
) -> float:
    """The mean of an edge's squared returns, after the scaling of values."""
    mean = edge_value(tree, edges, np.int64(edge), player)
    square = edges[edge].square_sum / edges[edge].visits
    return (square - 2.0 * shift * mean + shift * shift) * factor * factor


def yes() -> bool:
    return True


def no() -> bool:
    return False


def taken_prior(edges: np.ndarray, first: int, num_edges: int, num_legal: int) -> float:
    """The prior of all edges that were taken, added up."""
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
    tree: Any, edges: np.ndarray, untried: np.ndarray, work: Any, node: int, player: int,
    node_value: float, considered: int, parameters: np.ndarray, choose: Any,
) -> int:  # fmt: skip
    """The edge of `node` that a rule takes which looks at all of them at once.

    NONE for the likeliest of those not yet made.
    """
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    has_list = LISTS and node == 0
    if has_list:
        count = np.int64(work.num_listed)
    for i in range(count):
        edge = first + (np.int64(work.listed[i]) if has_list else np.int64(i))
        read_choice(tree, edges, work, node, player, node_value, np.int64(i), edge, first)
    num_shown, rest_prior = count, 0.0
    if IS_SPARSE and not has_list and count < edges[node].num_legal:
        work.q[count], work.visits[count] = 0.0, 0
        work.prior[count] = best_untried(edges, untried, node)
        num_shown += 1
        if num_shown < edges[node].num_legal:
            rest_prior = max(0.0, 1.0 - sum_of(work.prior, num_shown))
    raw = worth_to(tree, edges[node].raw, player) if KEEPS_RAW else node_value
    chosen = np.int64(
        choose(
            num_shown, work.q, work.prior, work.visits, node_value, raw,
            visits_of_node(edges, node), parameters, work.scratch, work.draws, considered,
            rest_prior,
        )
    )  # fmt: skip
    if chosen < 0 or chosen >= num_shown:
        return -np.int64(BAD_CHOICE)
    if has_list:
        chosen = np.int64(work.listed[chosen])
    elif IS_SPARSE and chosen == count:
        return NONE
    return first + chosen


def read_choice(
    tree: Any, edges: np.ndarray, work: Any, node: int, player: int, node_value: float, i: int,
    edge: int, first: int,
) -> None:  # fmt: skip
    """Write what a rule that looks at all edges sees of one."""
    visits = np.int64(edges[edge].visits)
    work.q[i] = edge_value(tree, edges, edge, player) if visits > 0 else 0.0
    work.visits[i] = visits
    if HAS_PRIORS:
        work.prior[i] = prior_of(edges, work, node, first, edge)
    else:
        work.prior[i] = 1.0 / edges[node].num_edges
    if HAS_PENDING:
        in_flight = np.int64(edges[edge].pending)
        if in_flight > 0:
            work.q[i] = value_in_flight(tree, edges, edge, player, visits, in_flight, node_value)
            work.visits[i] = visits + in_flight


@apart
def best_untried(edges: np.ndarray, untried: np.ndarray, node: int) -> float:
    """The largest prior of the actions of a node that have no edge."""
    record = edges[node]
    if record.best == NONE:
        first = np.int64(record.untried)
        row = untried[first : first + record.num_legal]
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
    """The largest of the first numbers of a row, at least one.

    Eight chains of maxima: a single one would wait for each.
    """
    a = b = c = d = e = f = g = h = row[0]
    for i in range(0, count - 7, 8):
        a, b, c, d = max(a, row[i]), max(b, row[i + 1]), max(c, row[i + 2]), max(d, row[i + 3])
        e, f, g, h = max(e, row[i + 4]), max(f, row[i + 5]), max(g, row[i + 6]), max(h, row[i + 7])
    for i in range(count - count % 8, count):
        a = max(a, row[i])
    return np.float64(max(max(a, b, c, d), max(e, f, g, h)))


def sum_of(row: np.ndarray, count: int) -> float:
    """The sum of the first numbers of a row, in eight chains for the same reason."""
    a = b = c = d = e = f = g = h = 0.0
    for i in range(0, count - 7, 8):
        a, b, c, d = a + row[i], b + row[i + 1], c + row[i + 2], d + row[i + 3]
        e, f, g, h = e + row[i + 4], f + row[i + 5], g + row[i + 6], h + row[i + 7]
    for i in range(count - count % 8, count):
        a += row[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


# --- kernels: chance -----------------------------------------------------------------------------


def draw_outcome(edges: np.ndarray, node: int, rng: np.ndarray) -> int:
    """An edge of a chance node, drawn by its probability."""
    first, num_edges = edges[node].first, edges[node].num_edges
    rest = random_unit(rng)
    for edge in range(first, first + num_edges - 1):
        rest -= float(edges[edge].prior)
        if rest < 0.0:
            return edge
    return first + num_edges - 1


def due_outcome(edges: np.ndarray, node: int, rng: np.ndarray) -> int:
    """The edge of a chance node that is most overdue: argmax p(o) / (N(o) + 1)."""
    first, num_edges = edges[node].first, edges[node].num_edges
    best = first
    best_score = -math.inf
    for edge in range(first, first + num_edges):
        score = float(edges[edge].prior) / (edges[edge].visits + 1)
        if score > best_score:
            best, best_score = edge, score
    return best


def drawn_again(edges: np.ndarray, node: int, rng: np.ndarray) -> int:
    """An edge of a chance node, drawn by how often its outcome came up so far."""
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
    """The probability of an outcome that came up `count` times of `total`.

    >>> drawn_share(3, 8)
    0.375
    """
    return count / total
