"""Selection of an edge: formulas, and the rules made of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from uctree.engine.compile import adapt
from uctree.game import random_unit
from uctree.kernels import gumbel as gumbels

# A square root and a logarithm per node and a square root and two divisions per edge took a third
# of the time of a search of connect four; small counts, the most frequent, come from tables.
_TABLE = 4096
_SQRT_LOG = np.sqrt(np.log(np.maximum(1, np.arange(_TABLE))))
_INVERSE_SQRT = 1.0 / np.sqrt(np.maximum(1, np.arange(_TABLE)))
_INVERSE = 1.0 / np.maximum(1, np.arange(_TABLE))

_MEAN, _WEIGHT, _FREEDOM, _VARIANCE = range(4)  # of a prior: see `posterior`


def sqrt_log(n: int) -> float:
    """√(ln n)."""
    return float(_SQRT_LOG[np.uint64(n)]) if n < _TABLE else math.sqrt(math.log(n))


def inverse_sqrt(n: int) -> float:
    """1 / √n."""
    return float(_INVERSE_SQRT[np.uint64(n)]) if n < _TABLE else 1.0 / math.sqrt(n)


def inverse(n: int) -> float:
    """1 / n."""
    return float(_INVERSE[np.uint64(n)]) if n < _TABLE else 1.0 / n


# --- formulas ------------------------------------------------------------------------------------


def ucb1_width(parent_visits: int, c: float, span: float) -> float:
    """The bonus of UCB1 for an edge with one visit.

        c · (hi - lo) · √(ln N(s))                                                     [Eq. 1]

    `span` is hi - lo, the payoff range of the player to move.

    >>> round(ucb1_width(parent_visits=100, c=math.sqrt(2), span=1.0), 6)
    3.034854
    """
    return c * span * sqrt_log(max(1, parent_visits))


def ucb1_score(q: float, visits: int, width: float) -> float:
    """Score of an edge: its mean value plus a bonus for few visits.

        Q(s,a) + width / √N(s,a)                                                       [Eq. 2]

    Infinite for an edge without visits.

    >>> ucb1_score(q=0.5, visits=16, width=3.0)
    1.25
    """
    if visits == 0:
        return math.inf
    return q + width * inverse_sqrt(visits)


def ucb1_tuned_score(q: float, mean_square: float, visits: int, width: float) -> float:
    """UCB1 with the variance of the returns seen instead of the largest possible one.

        Q + √(ln N(s) / n · min(1/4, max(0, m2 - Q²) + √(2 ln N(s) / n)))              [Eq. 14]

    m2 is the mean of the squared returns, n = N(s,a), values lie in [0, 1]; `width` is √(ln N(s)).
    Infinite for n = 0.

    >>> ucb1_tuned_score(q=0.5, mean_square=0.25, visits=16, width=2.0)
    0.75
    """
    if visits == 0:
        return math.inf
    root = width * inverse_sqrt(visits)
    spread = max(0.0, mean_square - q * q) + math.sqrt(2.0) * root
    return q + root * (0.5 if spread >= 0.25 else math.sqrt(spread))  # saves a square root


def puct_width(parent_visits: int, c: float, c_base: float) -> float:
    """The bonus of PUCT for a new edge of prior 1; the constant grows with the visits.

        (c + ln((1 + N(s) + c_base) / c_base)) · √N(s)                                 [Eq. 3]

    N(s) counts at least 1, so that a fresh node follows its priors. With an infinite `c_base` the
    constant stays c.

    >>> puct_width(parent_visits=16, c=1.25, c_base=math.inf)
    5.0
    """
    visits = max(1, parent_visits)
    return growing_c(visits, c, c_base) * visits * inverse_sqrt(visits)


def growing_c(parent_visits: int, c: float, c_base: float) -> float:
    """The constant of PUCT: c + ln((1 + N(s) + c_base) / c_base), c for an infinite c_base.

    >>> round(growing_c(parent_visits=100, c=1.25, c_base=19652.0), 6)
    1.255126
    """
    more = 1.0 + parent_visits
    if more > 0.05 * c_base:
        return c + math.log((more + c_base) / c_base)
    # ln(1 + x) = 2 artanh(x / (2 + x)), to the last digit for small x and faster than a logarithm.
    z = more / (2.0 * c_base + more)
    square = z * z
    series = 1.0 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9)))
    return c + 2.0 * z * series


def puct_score(q: float, prior: float, visits: int, width: float) -> float:
    """Score of an edge: its mean value plus a bonus steered by the prior.

        Q(s,a) + P(s,a) · width / (1 + N(s,a))                                         [Eq. 4]

    >>> puct_score(q=0.5, prior=0.2, visits=3, width=5.0)
    0.75
    """
    return q + prior * width * inverse(1 + visits)


def reduced_parent(value: float, reduction: float, visited_prior: float) -> float:
    """The value of an edge without visits: a little less than that of its node.

        V(s) - f · √(Σ P(s,b) over b taken)                                            [Eq. 5]

    >>> reduced_parent(value=-0.4, reduction=0.2, visited_prior=0.64)
    -0.56
    """
    return value - reduction * math.sqrt(visited_prior)


def falling_hbar(parent_visits: float, hbar: float, visit_scale: float) -> float:
    """The constant of the one-loop term, which falls as a node is visited.

        ħ(N) = ħ₀ / √(1 + N / N_s)                                                     [Eq. 15]

    With an infinite `visit_scale` it stays constant.

    >>> falling_hbar(parent_visits=300, hbar=1.0, visit_scale=100.0)
    0.5
    """
    if math.isinf(visit_scale):
        return hbar
    return hbar * math.sqrt(visit_scale / (visit_scale + parent_visits))


def curvature(prior: float, visits: float, parent_visits: float, kappa: float) -> float:
    """The second derivative of PUCT's action in the visits of an edge.

        h = (κ P / 2) · √(N / n³)                                                      [Eq. 16]

    >>> curvature(prior=0.5, visits=4, parent_visits=16, kappa=1.0)
    0.125
    """
    return kappa * prior / 2.0 * math.sqrt(parent_visits / visits**3)


def fluctuation_share(curvature: float, sum_inverse: float) -> float:
    """The share of an edge in the fluctuations that keep the sum of the visits.

        w = h⁻¹ / Σ h⁻¹                                                                [Eq. 47]

    >>> fluctuation_share(curvature=0.125, sum_inverse=32.0)
    0.25
    """
    return 1.0 / (curvature * sum_inverse)


def one_loop_score(
    q: float, prior: float, visits: int, width: float, value_weight: float, bonus: float
) -> float:
    """Score of an edge by the action principle: PUCT's terms and the one-loop correction.

        b Q + κ P √(max(1,N) / n) + bonus / n,   n = max(1, N(s,a))                    [Eq. 17]

    `width` is κ √max(1,N); `bonus` the coefficient times ħ(N) [Eq. 15], 3/4 · ħ for the plain
    Hessian.

    >>> one_loop_score(q=0.5, prior=0.5, visits=4, width=4.0, value_weight=1.0, bonus=0.75)
    1.6875
    """
    root = inverse_sqrt(max(1, visits))
    return value_weight * q + prior * width * root + bonus * root * root


def validity(prior: float, visits: float, parent_visits: float, kappa: float, hbar: float) -> float:
    """A measure of the error of the Gaussian approximation in the one-loop term: small is good.

        ε = ħ / (h n²) = 2 ħ / (κ P √(N n))                                            [Eq. 18]

    >>> validity(prior=0.5, visits=4, parent_visits=16, kappa=1.0, hbar=1.0)
    0.5
    """
    return 2.0 * hbar / (kappa * prior * math.sqrt(parent_visits * visits))


def rave_weight(visits: float, amaf_visits: float, bias: float) -> float:
    """The weight of all-moves-as-first against an edge's own mean.

        β = ñ / (n + ñ + 4 n ñ b²), 0 where ñ = 0                                      [Eq. 19]

    It minimises the squared error of the mixture if a return has variance 1/4 and
    all-moves-as-first has the error `bias`, both for values in [0, 1].

    >>> round(rave_weight(visits=25, amaf_visits=25, bias=0.1), 12)
    0.333333333333
    """
    return amaf_visits * rave_share(visits, amaf_visits, bias) if amaf_visits > 0 else 0.0


def rave_share(visits: float, amaf_visits: float, bias: float) -> float:
    """The weight of all-moves-as-first per count: β / ñ.

    >>> rave_share(visits=25, amaf_visits=25, bias=0.1)
    0.013333333333333334
    """
    return 1.0 / (visits + amaf_visits + 4.0 * visits * amaf_visits * bias * bias)


def rave_schedule(visits: float, equivalence: float) -> float:
    """The weight of all-moves-as-first by a schedule: 1/2 after `equivalence` visits.

        β = √(k / (3 n + k))                                                           [Eq. 20]

    >>> rave_schedule(visits=100, equivalence=100)
    0.5
    """
    return math.sqrt(equivalence / (3.0 * visits + equivalence))


def widening_limit(visits: int, k: float, alpha: float, rounding: float = 0.0) -> int:
    """The number of edges a node may have.

        max(1, ⌊k · N(s)^α⌋), or ⌈ ⌉ with rounding = 1                                  [Eq. 21]

    >>> widening_limit(49, k=2.0, alpha=0.5), widening_limit(2, k=1.0, alpha=0.5, rounding=1.0)
    (14, 2)
    """
    limit = k * float(visits) ** alpha
    return max(1, math.ceil(limit) if rounding > 0.0 else math.floor(limit))


def posterior(
    count: int, mean: float, mean_square: float, prior: np.ndarray
) -> tuple[float, float, float, float]:
    """What `count` values say of the mean that they are drawn around: m, κ, ν, τ².

    They are taken as normal, of unknown mean and variance, with a normal-inverse-gamma prior; n is
    their number, x their mean, s² their variance.

        κₙ = κ + n,  νₙ = ν + n,  mₙ = (κ m + n x) / κₙ
        τ²ₙ = (ν τ² + n s² + n κ (m - x)² / κₙ) / νₙ                                   [Eq. 79]

    >>> posterior(3, mean=1.0, mean_square=1.0, prior=np.array([0.0, 1.0, 1.0, 0.25]))
    (0.75, 4.0, 4.0, 0.25)
    """
    weight, freedom = prior[_WEIGHT] + count, prior[_FREEDOM] + count
    gap = prior[_MEAN] - mean
    squares = prior[_FREEDOM] * prior[_VARIANCE]
    squares += count * max(0.0, mean_square - mean * mean)
    squares += count * prior[_WEIGHT] * gap * gap / weight
    centre = (prior[_WEIGHT] * prior[_MEAN] + count * mean) / weight
    return float(centre), float(weight), float(freedom), float(squares / freedom)


def student(u: float, v: float, freedom: float) -> float:
    """A number of Student's t distribution, from two random numbers u and v of [0, 1).

        √(ν ((1 - u)^(-2/ν) - 1)) · cos 2πv                                            [Eq. 80]

    >>> student(u=0.75, v=0.5, freedom=2.0)
    -2.449489742783178
    """
    spread = (1.0 - u) ** (-2.0 / freedom) - 1.0
    return math.sqrt(freedom * spread) * math.cos(2.0 * math.pi * v)


def drawn_mean(
    count: int, mean: float, mean_square: float, prior: np.ndarray, u: float, v: float
) -> float:
    """A mean drawn from its posterior [Eq. 79]: m + √(τ² / κ) · t, t by [Eq. 80].

    >>> drawn_mean(3, 1.0, 1.0, np.array([0.0, 1.0, 1.0, 0.25]), u=0.0, v=0.0)
    0.75
    """
    centre, weight, freedom, variance = posterior(count, mean, mean_square, prior)
    return centre + math.sqrt(variance / weight) * student(u, v, freedom)


def mixed_priors(prior: np.ndarray, noise: np.ndarray, fraction: float) -> np.ndarray:
    """Priors with noise for the root: (1 - ε) P + ε η [Eq. 22].

    >>> mixed_priors(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 0.25)
    array([0.625, 0.375])
    """
    return (1.0 - fraction) * np.asarray(prior, float) + fraction * np.asarray(noise, float)


def annealed(start: float, end: float, step: float, total: float) -> float:
    """The linear interpolation from `start` to `end` as `step` goes from 0 to `total`.

    >>> annealed(0.25, 0.05, step=250, total=1000), annealed(0.25, 0.05, step=1, total=0)
    (0.2, 0.05)
    """
    share = min(1.0, max(0.0, step / total)) if total > 0 else 1.0
    return start * (1.0 - share) + end * share


def in_flight_value(value_sum: float, visits: int, in_flight: int, worst: float) -> float:
    """Q of an edge with simulations in flight, each counted as a loss so far.

        (W + m · worst) / (N + m)                                                      [Eq. 24]

    >>> in_flight_value(value_sum=1.5, visits=3, in_flight=2, worst=-1.0)
    -0.1
    """
    return (value_sum + in_flight * worst) / (visits + in_flight)


# --- rules ---------------------------------------------------------------------------------------

# The arguments that the functions of a rule may take, by name.
SCORE_ARGUMENTS = ("q", "prior", "visits", "width", "mean_square", "total", "parameters", "rng")
WIDTH_ARGUMENTS = ("parent_visits", "span", "parameters")
UNVISITED_ARGUMENTS = ("value", "visited_prior", "parameters")
TOTAL_ARGUMENTS = ("prior", "visits", "parent_visits", "parameters")
CHOOSE_ARGUMENTS = (
    "count", "q", "prior", "visits", "value", "raw_value", "node_visits", "parameters", "scratch",
    "draws", "considered", "rest_prior",
)  # fmt: skip

SCALES = ("span", "auto", "bounds", "minmax", "parent_and_siblings", "none")


@dataclass(frozen=True)
class Amaf:
    """All-moves-as-first in a score: its weight [Eq. 19, 20], and whose counts are used."""

    share: Callable[..., float]  # share(visits, amaf_visits, parameter): weight by amaf_visits
    parameter: float
    ref: int  # counts are those of the nearest ancestor with at least `ref` visits


@dataclass(frozen=True)
class Rule:
    """How a search selects edges: plain functions that are compiled into it, and their parameters.

    Every function takes the arguments it needs, by name, in any order.

    Args:
        score: of an edge, the largest wins; from `q` (its value for the player to move), `prior`,
            `visits`, `mean_square` (of its returns), `width` and `total` of its node, `parameters`,
            `rng` (for `random_unit` and the like).
        width: a number computed once per node, from `parent_visits`, `span`, `parameters`.
        unvisited: the q of an edge without visits, from the node's `value` for the player to move,
            `visited_prior` (of the edges with visits), `parameters`. Without this function, or if
            it returns infinity, such edges come first and `score` is not called for them.
        total: a term that is summed over the edges of a node, from `prior`, `visits`,
            `parent_visits`, `parameters`.
        choose: instead of all of these, a function of all edges of a node that returns the index of
            one: from `count`, arrays `q`, `prior`, `visits`, the node's `value`, `raw_value` (by
            the evaluator) and `node_visits`, `parameters`, and `scratch`, an array to write to. A
            function that takes `rest_prior` may get only the edges with visits and the likeliest of
            the others; `rest_prior` is the sum of the priors of the rest.
        parameters: a float64 array; other numbers need no new compilation.
        scale: the unit of `q` and `mean_square`. "auto" maps the payoff range of the player to
            move, stated by the game or else seen so far, to [0, 1]; "bounds" requires a stated one,
            "minmax" uses the one seen; "parent_and_siblings" maps the values of a node and its
            edges; "none" leaves values unchanged. "span" leaves them unchanged too and passes the
            range to `width` as `span`, which is 1 otherwise; if the game states none it is "auto".
        amaf: all-moves-as-first, from `rave` and `grave`.
        at_root: whether the rule is for the root only.
        unvisited_first: whether an edge without visits wins ties.
        smallest_range: of the returns seen so far; a narrower one is stretched to less than [0, 1].
    """

    name: str
    score: Callable[..., float] | None = None
    width: Callable[..., float] | None = None
    unvisited: Callable[..., float] | None = None
    total: Callable[..., float] | None = None
    choose: Callable[..., int] | None = None
    parameters: tuple[float, ...] = ()
    scale: str = "auto"
    amaf: Amaf | None = None
    at_root: bool = False
    unvisited_first: bool = False
    noise: tuple[float, ...] | None = None  # Gumbel noise per action instead of drawn noise
    smallest_range: float = 0.0

    def __post_init__(self) -> None:
        if (self.score is None) == (self.choose is None):
            raise ValueError(f"the rule {self.name} needs either score= or choose=")
        if self.scale not in SCALES:
            raise ValueError(f"a rule's scale is one of {', '.join(SCALES)}; got {self.scale!r}")
        for kind, possible in _ARGUMENTS.items():
            function = getattr(self, kind)
            for name in () if function is None else _names(function):
                if name not in possible:
                    raise ValueError(
                        f"{kind} of the rule {self.name} has an argument {name!r}; possible are "
                        f"{', '.join(possible)}"
                    )

    def asks_for(self, argument: str) -> bool:
        """Whether any of the functions takes an argument of this name."""
        functions = (getattr(self, kind) for kind in _ARGUMENTS)
        return any(f is not None and argument in _names(f) for f in functions)

    @property
    def sees_taken(self) -> bool:
        """Whether `choose` needs only the edges with visits and the likeliest of the others."""
        return self.choose is not None and "rest_prior" in _names(self.choose)

    def functions(self) -> tuple[Any, ...]:
        """Everything that is compiled into a search: all but the parameters."""
        share = None if self.amaf is None else self.amaf.share
        kinds = tuple(getattr(self, kind) for kind in _ARGUMENTS)
        return (
            *kinds, share, self.scale, len(self.parameters), self.unvisited_first, self.at_root,
        )  # fmt: skip

    def bound(self, kind: str) -> Callable[..., Any]:
        """One of the functions with the signature that kernels call: all arguments in order."""
        return _adapted(getattr(self, kind) or _DEFAULTS[kind], _ARGUMENTS[kind])


_ARGUMENTS = {
    "score": SCORE_ARGUMENTS,
    "width": WIDTH_ARGUMENTS,
    "unvisited": UNVISITED_ARGUMENTS,
    "total": TOTAL_ARGUMENTS,
    "choose": CHOOSE_ARGUMENTS,
}


@lru_cache(maxsize=1024)
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@lru_cache(maxsize=256)  # one adapter per function, so that it is compiled once
def _adapted(function: Callable[..., Any], given: tuple[str, ...]) -> Callable[..., Any]:
    return adapt(function, given, _names(function))


def _first_of_all() -> float:
    return math.inf


def _no_number() -> float:
    return 0.0


def _no_choice() -> int:
    return 0


_DEFAULTS: dict[str, Callable[..., Any]] = {
    "score": _no_number,
    "width": _no_number,
    "unvisited": _first_of_all,
    "total": _no_number,
    "choose": _no_choice,
}


def ucb1(c: float = 0.5) -> Rule:
    """UCB1 [Eq. 1, 2]: edges without visits first, then mean value plus a bonus.

    The default was chosen by matches in all built-in games; the bound of UCB1 is proved for √2.
    """
    _check_number("c", c)
    return Rule("ucb1", ucb1_score, _ucb1_width, parameters=(c,), scale="span")


def ucb1_tuned(c: float = 1.0) -> Rule:
    """UCB1-Tuned [Eq. 14]: the bonus, times `c`, follows the spread of the returns."""
    _check_number("c", c)
    return Rule("ucb1_tuned", _ucb1_tuned_score, _log_width, parameters=(c,))


def thompson(
    mean: float = 0.0, weight: float = 1.0, freedom: float = 1.0, variance: float = 0.1
) -> Rule:
    """Thompson sampling: the value of every edge is drawn from its posterior [Eq. 79, 80].

    Edges without visits come first. Values are scaled to [0, 1] by the payoff range.

    Args:
        mean, weight: of the prior of an edge's value: what it is expected to be, and as how many
            visits that counts.
        variance, freedom: the variance of returns expected, and as how many visits that counts.
    """
    prior = _checked_prior(mean, weight, freedom, variance)
    return Rule("thompson", _thompson_score, parameters=prior)


def puct(
    c: float = 1.25,
    c_base: float = 19652.0,
    *,
    fpu: str = "parent_sqrt",
    fpu_value: float = 0.2,
    normalise: str = "auto",
    smallest_range: float = 0.0,
) -> Rule:
    """PUCT [Eq. 3, 4] with a constant that grows from `c`; `c_base=math.inf` keeps it constant.

    Args:
        fpu: the value of an edge without visits: "parent_sqrt" [Eq. 5]; "parent", the value of its
            node minus `fpu_value`; "constant", `fpu_value` itself; "infinite", such edges come
            first.
        normalise: how values are scaled, as `scale` of `Rule`.
        smallest_range: as in `Rule`; keeps the first, nearly equal values of a learned model from
            being stretched.
    """
    _check_number("c", c)
    _check_number("smallest_range", smallest_range)
    if not c_base > 0:
        raise ValueError(f"c_base must be above 0; got {c_base}")
    return Rule(
        "puct", puct_score, _puct_width, _first_play(fpu), parameters=(c, c_base, fpu_value),
        scale=_normalising(normalise), smallest_range=smallest_range,
    )  # fmt: skip


# Indices of the parameters of UCB1 and PUCT, then of one-loop PUCT.
_C, _C_BASE, _FPU_VALUE = range(3)
(_KAPPA, _IS_SIMPLEX, _FPU_VALUE, _VALUE_WEIGHT, _HBAR, _VISIT_SCALE, _COEFFICIENT, _MAX_VALIDITY,
 _MIN_VISITS, _ZERO_PRIOR_BONUS) = range(10)  # fmt: skip

ONE_LOOP_MODES = {"kernel": 0.75, "simplex": 0.75, "saddle": 0.5, "off": 0.0}


def one_loop(
    kappa: float = 1.25,
    *,
    value_weight: float = 1.0,
    hbar: float = 1.0,
    visit_scale: float = 100.0,
    mode: str = "kernel",
    coefficient: float | None = None,
    max_validity: float = math.inf,
    min_visits: int = 0,
    zero_prior_bonus: bool = False,
    fpu: str = "parent_sqrt",
    fpu_value: float = 0.2,
    normalise: str = "auto",
) -> Rule:
    """One-loop ("quantum") PUCT [Eq. 15 to 18].

    Args:
        kappa: weight of the priors.
        value_weight: weight of the values.
        hbar, visit_scale: the constant of the correction and how fast it falls [Eq. 15].
        mode: the point of the Hessian: "kernel" at the visits, "simplex" along changes that keep
            their sum, "saddle" at the classical solution; "off" omits the correction.
        coefficient: of the correction; none: 3/4, in mode "saddle" 1/2.
        max_validity, min_visits: edges beyond [Eq. 18], or of fewer visits, get no correction.
        zero_prior_bonus: whether edges of prior 0 get one.
        fpu, fpu_value, normalise: as in `puct`.
    """
    if mode not in ONE_LOOP_MODES:
        raise ValueError(f"mode must be one of {', '.join(ONE_LOOP_MODES)}; got {mode!r}")
    if kappa == 0 and mode != "off":
        raise ValueError('kappa=0 leaves no curvature to correct for; use mode="off" with it')
    for name, value in (("kappa", kappa), ("value_weight", value_weight), ("hbar", hbar)):
        _check_number(name, value)
    if not visit_scale > 0:
        raise ValueError(f"visit_scale must be above 0; got {visit_scale}")
    given = ONE_LOOP_MODES[mode] if coefficient is None else coefficient
    plain = mode != "simplex" and max_validity == math.inf and min_visits == 0
    return Rule(
        "one_loop", _one_loop_score if plain else _checked_one_loop_score, _one_loop_width,
        _first_play(fpu), total=_inverse_curvature if mode == "simplex" else None,
        parameters=(
            kappa, float(mode == "simplex"), fpu_value, value_weight, hbar, visit_scale,
            0.0 if mode == "off" else given, max_validity, min_visits, zero_prior_bonus,
        ),
        scale=_normalising(normalise), unvisited_first=True,
    )  # fmt: skip


def without_reduction(rule: Rule) -> Rule:
    """The rule for a root with noise: an edge without visits has the value of its node."""
    if rule.unvisited not in (_reduced, _reduced_by_prior):
        return rule
    numbers = list(rule.parameters)
    numbers[_FPU_VALUE] = 0.0
    return replace(rule, parameters=tuple(numbers))


def rave(base: Rule | None = None, *, bias: float = 0.1, equivalence: float | None = None) -> Rule:
    """`base` (UCB1 with c = 0.1) on values mixed with all-moves-as-first [Eq. 19].

    Args:
        bias: the error of all-moves-as-first, for values in [0, 1].
        equivalence: use the schedule [Eq. 20] instead.
    """
    return grave(base, ref=0, bias=bias, equivalence=equivalence)


def grave(
    base: Rule | None = None, *, ref: int = 50, bias: float = 0.1, equivalence: float | None = None
) -> Rule:
    """`rave` with the counts of the nearest ancestor that has at least `ref` visits."""
    if base is None:
        base = ucb1(0.1)
    if base.choose is not None:
        raise ValueError(
            f"{base.name} has no score to mix with all-moves-as-first; pass ucb1() or puct()"
        )
    if ref < 0:
        raise ValueError(f"ref must be at least 0; got {ref}")
    _check_number("bias", bias)
    if equivalence is not None and not equivalence > 0:
        raise ValueError(f"equivalence must be above 0; got {equivalence}")
    amaf = Amaf(rave_share, bias, ref)
    if equivalence is not None:
        amaf = Amaf(_share_by_schedule, equivalence, ref)
    return replace(base, name=f"{'grave' if ref else 'rave'}({base.name})", amaf=amaf)


def gumbel(
    num_considered: int = 16,
    *,
    c_visit: float = 50.0,
    c_scale: float = 0.1,
    rescale: bool = True,
    scale: float = 1.0,
    noise: tuple[float, ...] | None = None,
) -> Rule:
    """Gumbel search at the root: sequential halving among `num_considered` drawn actions.

    It needs a budget of simulations and an evaluator that gives priors.

    Args:
        c_visit, c_scale, rescale: how values weigh against log-priors.
        scale: of the Gumbel noise; 0 makes the choice deterministic.
        noise: numbers to use as noise, one per action of the game.
    """
    if num_considered < 1:
        raise ValueError(f"num_considered must be at least 1; got {num_considered}")
    parameters = (c_visit, c_scale, float(rescale), float(num_considered), scale)
    return Rule(
        "gumbel", choose=gumbels.choose_root, parameters=parameters, at_root=True, noise=noise
    )


def gumbel_interior(*, c_visit: float = 50.0, c_scale: float = 0.1, rescale: bool = True) -> Rule:
    """Gumbel search below the root: visits follow the improved policy."""
    parameters = (c_visit, c_scale, float(rescale))
    return Rule("gumbel_interior", choose=gumbels.choose_interior, parameters=parameters)


@dataclass(frozen=True)
class Noise:
    """Dirichlet noise for the root's priors."""

    alpha: float | None
    fraction: float

    def draw(self, prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Priors with fresh noise."""
        alpha = 10.0 / len(prior) if self.alpha is None else self.alpha
        noise = rng.dirichlet(np.full(len(prior), alpha)) if len(prior) > 1 else np.ones(1)
        return mixed_priors(prior, noise, self.fraction)


def dirichlet(
    alpha: float | None = None,
    fraction: float = 0.25,
    *,
    end: float | None = None,
    step: float = 0.0,
    total: float = 0.0,
) -> Noise:
    """Dirichlet noise for the root's priors [Eq. 22]; it needs an evaluator that gives priors.

    Args:
        alpha: of the distribution; none: 10 / number of legal actions.
        fraction: the share of the noise.
        end, step, total: with `end`, the fraction falls linearly from `fraction` to `end` while
            `step` goes from 0 to `total`.
    """
    if alpha is not None and not alpha > 0:
        raise ValueError(f"alpha must be above 0; got {alpha}")
    if end is not None:
        fraction = annealed(fraction, end, step, total)
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be between 0 and 1; got {fraction}")
    return Noise(alpha, fraction)


@dataclass(frozen=True)
class Widening:
    """How many edges a node may have.

    Args:
        parameters: k, alpha and whether to round up [Eq. 21]; of adaptive widening, the prior.
        most: the largest number of edges of a node.
        adapts: whether a draw decides [Eq. 79, 80], not the visits.
        of_outcomes: whether it is for outcomes of chance.
    """

    parameters: tuple[float, ...]
    most: int | None = None
    adapts: bool = False
    of_outcomes: bool = False


def widening(
    k: float = 2.0, alpha: float = 0.5, *, rounding: str = "floor", most: int | None = None
) -> Widening:
    """Progressive widening [Eq. 21]: edges are opened one by one, those of larger prior first.

    Without priors they are opened in the order of `legal`.

    Args:
        rounding: "floor" or "ceil".
        most: the largest number of edges of a node; those of the largest priors are used.
    """
    if rounding not in ("floor", "ceil"):
        raise ValueError(f'rounding must be "floor" or "ceil"; got {rounding!r}')
    _check_most(most)
    return Widening((*_checked_growth(k, alpha), float(rounding == "ceil")), most)


def adaptive_widening(
    mean: float = 0.0,
    weight: float = 1.0,
    freedom: float = 1.0,
    variance: float = 0.1,
    *,
    most: int | None = None,
) -> Widening:
    """Adaptive branching: a node gets another edge if a draw promises more of it than of the rest.

    The value of a new edge is drawn from the posterior of what the node's edges returned at their
    first visits, that of the existing ones from all they returned later [Eq. 79, 80]. With
    `thompson()` as `selection` this is AB-MCTS-A.

    Args:
        mean, weight, freedom, variance: the prior of both, as in `thompson`.
        most: as in `widening`.
    """
    _check_most(most)
    return Widening(_checked_prior(mean, weight, freedom, variance), most, adapts=True)


def outcome_widening(k: float = 1.0, alpha: float = 0.5) -> Widening:
    """Double progressive widening, for `chance=`: new outcomes are drawn while [Eq. 21] allows.

    After that, outcomes are drawn among those so far, in proportion to their visits.
    """
    return Widening(_checked_growth(k, alpha), of_outcomes=True)


def _checked_growth(k: float, alpha: float) -> tuple[float, float]:
    if not (k > 0 and 0 <= alpha <= 1):
        raise ValueError(
            f"widening needs k above 0 and alpha between 0 and 1; got k={k}, alpha={alpha}"
        )
    return k, alpha


def _check_most(most: int | None) -> None:
    if most is None:
        return
    if isinstance(most, bool) or not isinstance(most, (int, np.integer)):
        raise TypeError(f"most must be a whole number; got {most!r}")
    if most < 1:
        raise ValueError(f"most must be at least 1; got {most}")


def _checked_prior(
    mean: float, weight: float, freedom: float, variance: float
) -> tuple[float, float, float, float]:
    """The prior of `posterior`, for values in [0, 1]."""
    if not math.isfinite(mean):
        raise ValueError(f"mean must be a number; got {mean}")
    for name, value in (("weight", weight), ("freedom", freedom), ("variance", variance)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a number above 0; got {value}")
    return mean, weight, freedom, variance


def _check_number(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a number of at least 0; got {value}")


def _first_play(fpu: str) -> Callable[..., float] | None:
    kinds = {
        "parent_sqrt": _reduced_by_prior,
        "parent": _reduced,
        "constant": _constant_value,
        "infinite": None,
    }
    if fpu not in kinds:
        raise ValueError(f"fpu must be one of {', '.join(kinds)}; got {fpu!r}")
    return kinds[fpu]


def _normalising(normalise: str) -> str:
    possible = [scale for scale in SCALES if scale != "span"]
    if normalise not in possible:
        raise ValueError(f"normalise must be one of {', '.join(possible)}; got {normalise!r}")
    return normalise


def _ucb1_width(parent_visits: int, span: float, parameters: np.ndarray) -> float:
    return ucb1_width(parent_visits, parameters[_C], span)


def _log_width(parent_visits: int) -> float:
    return sqrt_log(max(1, parent_visits))


def _ucb1_tuned_score(
    q: float, mean_square: float, visits: int, width: float, parameters: np.ndarray
) -> float:
    return q + parameters[_C] * (ucb1_tuned_score(q, mean_square, visits, width) - q)


def _thompson_score(
    q: float, mean_square: float, visits: int, parameters: np.ndarray, rng: np.ndarray
) -> float:
    return drawn_mean(visits, q, mean_square, parameters, random_unit(rng), random_unit(rng))


def _puct_width(parent_visits: int, parameters: np.ndarray) -> float:
    return puct_width(parent_visits, parameters[_C], parameters[_C_BASE])


def _one_loop_width(parent_visits: int, parameters: np.ndarray) -> tuple[float, float, float]:
    """κ √N, the bonus of an edge taken once, and N."""
    visits = max(1, parent_visits)
    hbar = falling_hbar(parent_visits, parameters[_HBAR], parameters[_VISIT_SCALE])
    bonus = parameters[_COEFFICIENT] * hbar
    return parameters[_KAPPA] * visits * inverse_sqrt(visits), bonus, float(visits)


def _one_loop_score(
    q: float, prior: float, visits: int, width: tuple[float, float, float], parameters: np.ndarray
) -> float:
    root_width, bonus, _ = width
    if prior <= 0.0:
        bonus *= parameters[_ZERO_PRIOR_BONUS]
    return one_loop_score(q, prior, visits, root_width, parameters[_VALUE_WEIGHT], bonus)


def _checked_one_loop_score(
    q: float, prior: float, visits: int, width: tuple[float, float, float], total: float,
    parameters: np.ndarray,
) -> float:  # fmt: skip
    """The score in mode "simplex", or if some edges get no correction."""
    root_width, bonus, parent_visits = width
    kappa, n, coefficient = parameters[_KAPPA], max(1, visits), parameters[_COEFFICIENT]
    if prior == 0.0:
        bonus *= parameters[_ZERO_PRIOR_BONUS]
    else:
        hbar = bonus / coefficient if coefficient > 0.0 else 0.0
        if parameters[_IS_SIMPLEX] > 0.0:
            bonus *= 1.0 - fluctuation_share(curvature(prior, n, parent_visits, kappa), total)
        error = validity(prior, n, parent_visits, kappa, hbar)
        if visits < parameters[_MIN_VISITS] or error > parameters[_MAX_VALIDITY]:
            bonus = 0.0
    return one_loop_score(q, prior, visits, root_width, parameters[_VALUE_WEIGHT], bonus)


def _inverse_curvature(
    prior: float, visits: int, parent_visits: int, parameters: np.ndarray
) -> float:
    if prior == 0.0:
        return 0.0
    return 1.0 / curvature(prior, max(1, visits), max(1, parent_visits), parameters[_KAPPA])


def _share_by_schedule(visits: float, amaf_visits: float, equivalence: float) -> float:
    return rave_schedule(visits, equivalence) / amaf_visits


def _reduced_by_prior(value: float, visited_prior: float, parameters: np.ndarray) -> float:
    return reduced_parent(value, parameters[_FPU_VALUE], visited_prior)


def _reduced(value: float, parameters: np.ndarray) -> float:
    return value - parameters[_FPU_VALUE]


def _constant_value(parameters: np.ndarray) -> float:
    return parameters[_FPU_VALUE]
