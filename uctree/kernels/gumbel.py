"""Gumbel search: the root considers a few actions, and every simulation improves the policy.

The formulas are those of Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning
with Gumbel" (2022), as implemented in mctx. Kernels take arrays of at least `count` elements, one
per edge of a node, for the player to move: `q` (read for edges with visits only), `prior`,
`visits`. Log-priors are used as logits: only their differences matter.

Edges without visits differ by their priors alone, so kernels are given the likeliest of them only:
`rest_prior` is the sum of the priors of the others.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from uctree.game import random_unit

TINY = sys.float_info.min  # the least prior that counts; in v_mix, smaller ones are raised to it
LOWEST = -sys.float_info.max  # the logarithm of prior 0, finite so that sums are numbers
NARROWEST = 1e-8  # the least range of values that is stretched to 1
LOW_SCORE = -1e9  # the least score of an edge that the root may take
SMALLEST = 2.0**-54  # replaces a random number of 0, which has no logarithm

# Indices of a rule's parameters.
C_VISIT, C_SCALE, RESCALE, NUM_CONSIDERED, NOISE_SCALE = range(5)


class Completed(NamedTuple):
    """The edges of a node with values for all: edges without visits have the value `completion`."""

    count: int
    q: np.ndarray
    prior: np.ndarray
    visits: np.ndarray
    completion: float


# --- which edges the root considers --------------------------------------------------------------


def gumbel_noise(unit: float, scale: float = 1.0) -> float:
    """Gumbel noise of an edge, made from a uniform random number.

        g(a) = -scale · ln(-ln u(a)), u(a) uniform in (0, 1)                           [Eq. 27]

    The edges with the m largest g(a) + ln P(a) are a draw of m edges from the priors without
    replacement (for scale 1).

    >>> round(gumbel_noise(unit=0.5), 4)
    0.3665
    """
    return -scale * math.log(-math.log(max(SMALLEST, unit)))


def write_noise(rng: np.ndarray, count: int, scale: float, noise: np.ndarray) -> None:
    """Write independent noise for `count` edges; `scale=0` writes zeros."""
    for i in range(count):
        noise[i] = gumbel_noise(random_unit(rng), scale) if scale > 0.0 else 0.0


def write_draws(count: int, noise: np.ndarray, prior: np.ndarray, draws: np.ndarray) -> None:
    """Write g(a) + ln P(a) of every edge, minus the largest ln P."""
    top_prior = 0.0
    for i in range(count):
        top_prior = max(top_prior, prior[i])
    top = log_prior(top_prior)
    for i in range(count):
        draws[i] = noise[i] + (log_prior(prior[i]) - top)


def considered_edges(noise: np.ndarray, prior: np.ndarray, num_considered: int) -> np.ndarray:
    """The edges that the root considers, best first: the m largest g(a) + ln P(a).

    >>> considered_edges(np.array([0.0, 0.0, 2.0]), np.array([0.5, 0.3, 0.2]), num_considered=2)
    array([2, 0])
    """
    draws, listed = np.zeros(len(prior)), np.zeros(num_considered, np.int64)
    write_draws(len(prior), noise, prior, draws)
    return listed[: list_considered(len(prior), draws, listed)]


def list_considered(count: int, draws: np.ndarray, listed: np.ndarray) -> int:
    """How many edges are considered: all `count`, or the length of `listed` if that is less.

    They are written to `listed`, best first; ties keep their order.
    """
    num_listed, most = 0, listed.shape[0]
    for i in range(count):
        place = num_listed
        if num_listed == most:
            if most == 0 or root_score(draws[i], 0.0) <= root_score(draws[listed[most - 1]], 0.0):
                continue
            place -= 1
        while place > 0 and root_score(draws[listed[place - 1]], 0.0) < root_score(draws[i], 0.0):
            listed[place] = listed[place - 1]
            place -= 1
        listed[place] = i
        num_listed = min(most, num_listed + 1)
    return num_listed


def consider(
    rng: np.ndarray, scale: float, is_given: bool, count: int, noise: np.ndarray,
    prior: np.ndarray, scratch: np.ndarray, listed: np.ndarray, draws: np.ndarray,
) -> int:  # fmt: skip
    """How many edges are considered; writes them, as `list_considered` does, and their draws.

    Args:
        is_given: whether `noise` is given; else it is drawn and written.
    """
    if not is_given:
        write_noise(rng, count, scale, noise)
    write_draws(count, noise, prior, scratch)
    num_listed = list_considered(count, scratch, listed)
    for i in range(num_listed):
        draws[i] = scratch[listed[i]]
    return num_listed


# The current phase of sequential halving, as fields of a record.
HALVING_FIELDS = (
    ("halving_m", np.int64),  # edges in the first phase
    ("halving_n", np.int64),  # simulations in all
    ("phase_edges", np.int64),
    ("phase_visits", np.int64),  # of each of these edges when the phase begins
    ("phase_begin", np.int64),  # the number of its first simulation
    ("phase_end", np.int64),  # the number of the first simulation after it
)


def begin_halving(halving: Any, num_considered: int, num_simulations: int) -> None:
    """Set `halving` to the first phase of sequential halving."""
    halving.halving_m = num_considered
    halving.halving_n = num_simulations
    halving.phase_edges = max(1, num_considered)
    halving.phase_visits = halving.phase_begin = 0
    halving.phase_end = phase_length(num_considered, num_simulations, num_considered)


def phase_length(num_considered: int, num_simulations: int, num_edges: int) -> int:
    """How many simulations the phase of sequential halving with `num_edges` edges has.

    Sequential halving (Karnin, Koren and Somekh 2013): in every phase c edges get e more visits
    each, then the better half of them remains. m edges share n simulations.

        e = max(1, ⌊n / (⌈log2 m⌉ · c)⌋),  c = m, then max(2, ⌊c/2⌋)                   [Eq. 28]

    A single edge gets all simulations.

    >>> phase_length(num_considered=4, num_simulations=16, num_edges=4)
    8
    """
    if num_considered <= 1:
        return num_simulations
    num_phases = 0
    while (1 << num_phases) < num_considered:
        num_phases += 1
    return num_edges * max(1, num_simulations // (num_phases * num_edges))


def considered_visits(halving: Any, simulation: int) -> int:
    """The number of visits of the edge that sequential halving takes in a simulation.

    Halving ends after exactly n simulations, even in the middle of a phase.
    """
    number = min(simulation, halving.halving_n - 1)
    if number < halving.phase_begin:  # an unfinished simulation was undone
        begin_halving(halving, halving.halving_m, halving.halving_n)
    while number >= halving.phase_end:
        length = halving.phase_end - halving.phase_begin
        halving.phase_visits += length // halving.phase_edges
        halving.phase_edges = max(2, halving.phase_edges // 2)
        halving.phase_begin = halving.phase_end
        halving.phase_end += phase_length(halving.halving_m, halving.halving_n, halving.phase_edges)
    return halving.phase_visits + (number - halving.phase_begin) // halving.phase_edges


def halving_schedule(num_considered: int, num_simulations: int) -> np.ndarray:
    """How many visits the edge to take has, for each simulation in turn [Eq. 28].

    >>> halving_schedule(num_considered=4, num_simulations=16)
    array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    """
    halving = np.zeros(1, np.dtype(list(HALVING_FIELDS))).view(np.recarray)[0]
    begin_halving(halving, num_considered, num_simulations)
    return np.array([considered_visits(halving, i) for i in range(num_simulations)], np.int64)


# --- completed values and the improved policy ----------------------------------------------------


def mixed_value(
    count: int, q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw_value: float
) -> float:
    """The value assumed for edges without visits: a mix of the node's evaluation and its edges.

        v_mix = (v0 + T · Σ P(b) Q(b) / Σ P(b)) / (1 + T), over edges b that were taken [Eq. 29]

    v0 is the evaluator's value of the node, T the number of visits of its edges.

    >>> quarters = np.array([0.25, 0.25, 0.5])
    >>> q, visits = np.array([1.0, 0.0, 0.0]), np.array([2, 1, 0])
    >>> mixed_value(3, q, quarters, visits, raw_value=0.0)
    0.375
    """
    total = 0
    sum_prior = 0.0
    sum_q = 0.0
    for i in range(count):
        if visits[i] > 0:
            weight = max(TINY, prior[i])
            total += visits[i]
            sum_prior += weight
            sum_q += weight * q[i]
    if total == 0:
        return raw_value
    return float((raw_value + total * (sum_q / sum_prior)) / (1 + total))


def stretched(completed: float, low: float, factor: float) -> float:
    """The weight of a value beside a log-prior; `low` and `factor` are those of `stretch`.

        σ(a) = (c_visit + max N(s,b)) · c_scale · (cq(a) - min cq) / (max cq - min cq) [Eq. 30]

    The completed values cq(a) are Q(s,a) if N(s,a) > 0, else v_mix [Eq. 29].

    >>> stretched(completed=0.375, low=0.0, factor=(8 + 2) * 0.5 / (1.0 - 0.0))
    1.875
    """
    return factor * (completed - low)


def stretch(edges: Completed, parameters: Any) -> tuple[float, float, float]:
    """The least completed value, the factor of values above it, and the largest σ.

    With `rescale` 0 values are not shifted or divided by their range. The range is at least 1e-8.
    The largest σ ignores edges of prior 0.
    """
    q, prior, visits, completion = edges.q, edges.prior, edges.visits, edges.completion
    most = 0
    low = math.inf
    high = -math.inf
    top = -math.inf
    is_completed = is_likely = False  # whether an edge has no visits, and one of these a prior
    for i in range(edges.count):
        if visits[i] > 0:
            most = max(most, visits[i])
            low = min(low, q[i])
            high = max(high, q[i])
            if prior[i] >= TINY:
                top = max(top, q[i])
        else:
            is_completed = True
            is_likely = is_likely or prior[i] >= TINY
    if is_completed:
        low = min(low, completion)
        high = max(high, completion)
    if is_likely:
        top = max(top, completion)
    factor = (parameters[C_VISIT] + most) * parameters[C_SCALE]
    if parameters[RESCALE] == 0.0:
        low = 0.0
    else:
        factor /= max(high - low, NARROWEST)
    return low, factor, stretched(top, low, factor)


def write_sigma(edges: Completed, parameters: Any, out: np.ndarray) -> None:
    """Write σ of every edge [Eq. 30]."""
    low, factor, _ = stretch(edges, parameters)
    for i in range(edges.count):
        value = edges.q[i] if edges.visits[i] > 0 else edges.completion
        out[i] = stretched(value, low, factor)


def improve(edges: Completed, parameters: Any, out: np.ndarray, rest_prior: float = 0.0) -> float:
    """Write the improved policy to `out`, not yet normalised; returns the sum to divide it by.

        π'(a) = softmax(ln P(s,a) + σ(a)) = P(s,a) e^σ(a) / Σ P(s,b) e^σ(b)            [Eq. 31]

    If edges without visits have the value of the prior policy, π' is worth no less than P.

    >>> halves, out = np.array([0.5, 0.5]), np.zeros(2)
    >>> edges = Completed(2, np.array([1.0, 0.0]), halves, np.array([1, 1]), completion=0.0)
    >>> total = improve(edges, (0.0, math.log(3), 1.0), out)  # C_VISIT, C_SCALE, RESCALE
    >>> (out / total).round(12)
    array([0.75, 0.25])
    """
    low, factor, top = stretch(edges, parameters)
    # All edges without visits have the same weight, so exponentials are few. Only edges of prior
    # 0 could have one above 1, and their policy stays 0.
    unvisited = math.exp(min(0.0, stretched(edges.completion, low, factor) - top))
    total = rest_prior * unvisited
    for i in range(edges.count):
        weight = unvisited
        if edges.visits[i] > 0:
            weight = math.exp(min(0.0, stretched(edges.q[i], low, factor) - top))
        out[i] = edges.prior[i] * weight
        total += out[i]
    return total


# --- which edge to take --------------------------------------------------------------------------


def interior_score(policy: float, visits: int, share: float) -> float:
    """The improved policy of an edge, minus its share of the visits.

        π'(a) - N(s,a) · share,  share = 1 / (1 + Σ N(s,b))                            [Eq. 32]

    >>> interior_score(policy=0.5, visits=1, share=1 / (1 + 3))
    0.25
    """
    return policy - visits * share


def root_score(draw: float, sigma: float) -> float:
    """Score of an edge that the root considers.

        max(-1e9, g(a) + ln P(s,a) - max ln P(s,b) + σ(a))                             [Eq. 33]

    Args:
        draw: g(a) + ln P(s,a), minus the largest ln P; see `write_draws`.

    >>> root_score(draw=-0.5, sigma=2.0)
    1.5
    """
    return max(LOW_SCORE, draw + sigma)


def log_prior(prior: float) -> float:
    """ln P; the lowest finite number for prior 0."""
    return math.log(prior) if prior > 0.0 else LOWEST


def least_served(count: int, weights: np.ndarray, sum_weights: float, visits: np.ndarray) -> int:
    """The edge with the largest interior score [Eq. 32], the first in a tie.

    The improved policy is `weights` divided by their sum.
    """
    total = 0
    for i in range(count):
        total += visits[i]
    share, factor = 1.0 / (1 + total), 1.0 / sum_weights  # faster than a division per edge
    best = 0
    best_score = -math.inf
    for i in range(count):
        score = interior_score(weights[i] * factor, visits[i], share)
        if score > best_score:
            best = i
            best_score = score
    return best


def best_considered(
    count: int, visits: np.ndarray, draws: np.ndarray, considered: int, sigma: np.ndarray
) -> int:
    """Of the edges with `considered` visits, the one with the largest root score [Eq. 33].

    The first wins a tie. If no edge has that many visits, as in a reused tree, the edges with the
    nearest number are used.
    """
    nearest = abs(visits[0] - considered)
    for i in range(count):
        nearest = min(nearest, abs(visits[i] - considered))
    best = 0
    best_score = -math.inf
    for i in range(count):
        if abs(visits[i] - considered) == nearest:
            score = root_score(draws[i], sigma[i])
            if score > best_score:
                best = i
                best_score = score
    return best


def choose_interior(
    count: int, q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw_value: float,
    parameters: Any, scratch: np.ndarray, rest_prior: float,
) -> int:  # fmt: skip
    """The edge to take below the root, so that visits follow the improved policy.

    `parameters` are indexed by C_VISIT, C_SCALE and RESCALE; the last is 1 or 0.
    """
    completion = mixed_value(count, q, prior, visits, raw_value)
    edges = Completed(count, q, prior, visits, completion)
    total = improve(edges, parameters, scratch, rest_prior)
    return least_served(count, scratch, total, visits)


def choose_root(
    count: int, q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw_value: float,
    draws: np.ndarray, considered: int, parameters: Any, scratch: np.ndarray,
) -> int:  # fmt: skip
    """The edge to take at the root: the best of those with `considered` visits.

    `draws` are those of `write_draws`, `considered` is the schedule's entry for this simulation
    [Eq. 28]; the rest is as in `choose_interior`.
    """
    completion = mixed_value(count, q, prior, visits, raw_value)
    write_sigma(Completed(count, q, prior, visits, completion), parameters, scratch)
    return best_considered(count, visits, draws, considered, scratch)


# --- after the search ----------------------------------------------------------------------------


def transformed_q(
    q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw_value: float,
    c_visit: float = 50.0, c_scale: float = 0.1, rescale: bool = True,
) -> np.ndarray:  # fmt: skip
    """σ(a) of every edge [Eq. 30]; edges without visits have the value v_mix [Eq. 29]."""
    out = np.zeros(len(visits))
    completion = mixed_value(len(out), q, prior, visits, raw_value)
    edges = Completed(len(out), q, prior, visits, completion)
    write_sigma(edges, (c_visit, c_scale, float(rescale)), out)
    return out


def improved_policy(
    q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw_value: float,
    c_visit: float = 50.0, c_scale: float = 0.1, rescale: bool = True,
) -> np.ndarray:  # fmt: skip
    """The policy target after a search [Eq. 31], completed by v_mix [Eq. 29]."""
    out = np.zeros(len(visits))
    completion = mixed_value(len(out), q, prior, visits, raw_value)
    edges = Completed(len(out), q, prior, visits, completion)
    return out / improve(edges, (c_visit, c_scale, float(rescale)), out)


# --- fast exponentials ---------------------------------------------------------------------------

_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH = 0.693147180369123816490  # ln 2 in two parts, so that k · ln 2 is precise
_LN2_LOW = 1.90821492927058770002e-10
_SHIFT = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer in the lowest bits
_C = tuple(1.0 / math.factorial(k) for k in range(13))


def exp_below(x: float) -> float:
    """e^x for x up to 0, with a relative error below 6e-16; 0 below -708.

    It is a polynomial, which compilers vectorise, unlike `math.exp`.

    >>> exp_below(0.0), round(exp_below(-1.0), 15), exp_below(-1000.0)
    (1.0, 0.367879441171442, 0.0)
    """
    is_none = x < -708.0
    x = -708.0 if is_none else x
    shifted = np.float64(x * _LOG2_E + _SHIFT)
    k = shifted - _SHIFT
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (_C[0] + _C[1] * r + (_C[2] + _C[3] * r) * r2) + (
        _C[4] + _C[5] * r + (_C[6] + _C[7] * r) * r2
    ) * r4
    high = (_C[8] + _C[9] * r + (_C[10] + _C[11] * r) * r2) + _C[12] * r4
    power = np.int64((shifted.view(np.int64) + 1023) << 52).view(np.float64)  # 2^k
    return 0.0 if is_none else float((low + high * (r4 * r4)) * power)


# --- the policy that PUCT follows ----------------------------------------------------------------


def regularised_policy(q: np.ndarray, prior: np.ndarray, weight: float) -> tuple[np.ndarray, float]:
    """The policy y that maximises Σ q y - λ KL(P‖y), and the α that makes it add up to 1.

        y(a) = λ P(a) / (α - Q(a)),  Σ y(a) = 1                                        [Eq. 34]

    With λ = c √N / (|A| + N) the visits of PUCT follow it (Grill et al. 2020): if y is the shares
    (1 + N(a)) / (|A| + N), then λ P / y is the bonus of PUCT. Actions of prior 0 keep 0.

    >>> policy, alpha = regularised_policy(np.array([0.75, 0.0]), np.array([0.5, 0.5]), weight=0.4)
    >>> policy, alpha
    (array([0.8, 0.2]), 1.0)
    """
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"weight must be a number above 0; got {weight}")
    likely = np.asarray(prior) > 0
    values, priors = np.asarray(q, float)[likely], np.asarray(prior, float)[likely]
    low, high = np.max(values + weight * priors), np.max(values) + weight
    # The sum falls as α grows; halve the interval until it contains no further number.
    while low < (middle := (low + high) / 2) < high:
        if np.sum(weight * priors / (middle - values)) > 1:
            low = middle
        else:
            high = middle
    policy = np.zeros(len(likely))
    policy[likely] = weight * priors / (high - values)
    return policy, float(high)
