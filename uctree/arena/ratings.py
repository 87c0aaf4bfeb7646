"""Statistics of matches: scores, Bradley-Terry ratings, intervals, a sequential test.

The unit of all intervals is the opening: its games, in all seatings and of all agents, get one
common weight, because they are correlated. `points[u, i, j]` are the wins of agent i against j in
games of opening u; a draw counts half. In a game of several players each pair counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uctree.errors import UctreeError

PER_NAT = 400.0 / math.log(10.0)  # Elo points of one nat of log-odds
REGULARISATION = 0.5  # virtual wins of each agent against each other one
SAMPLES = 2000  # of a bootstrap
LEVEL = 0.95  # of intervals
MOST_STEPS = 100  # of Newton's method
LARGEST_STEP = 2.0  # in nats; keeps Newton's method from diverging


# --- scores --------------------------------------------------------------------------------------


def expected_score(difference: float) -> float:
    """The mean score of an agent that is rated higher by `difference`.

        P(i beats j) = 1 / (1 + 10^((r_j - r_i)/400))                                  [Eq. 40]

    >>> round(expected_score(100.0), 4)
    0.6401
    """
    return 1.0 / (1.0 + math.exp(-difference / PER_NAT))


def placement_scores(returns: Sequence[float] | np.ndarray) -> np.ndarray:
    """The score of each player in one game: the share of the other players that it beats.

        s_i = ( #{j: R_j < R_i} + #{j ≠ i: R_j = R_i}/2 ) / (n - 1)                    [Eq. 42]

    With two players that is 1 for a win, 1/2 for a draw and 0 for a loss; a single player scores
    1/2.

    >>> placement_scores([5.0, 1.0, 5.0]).tolist()
    [0.75, 0.0, 0.75]
    """
    table = pairwise_points(returns)
    if len(table) == 1:
        return np.array([0.5])
    return np.asarray(table.sum(axis=1) / (len(table) - 1))


def pairwise_points(returns: Sequence[float] | np.ndarray) -> np.ndarray:
    """The points of i against j in one game, [n, n]: 1 for a larger return, 1/2 for an equal one.

    >>> pairwise_points([2.0, 0.0]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    paid = np.asarray(returns, float)
    table = (paid[:, None] > paid) + 0.5 * (paid[:, None] == paid)
    np.fill_diagonal(table, 0.0)
    return np.asarray(table)


# --- ratings -------------------------------------------------------------------------------------


def bradley_terry(
    points: np.ndarray, *, regularisation: float | np.ndarray = REGULARISATION
) -> np.ndarray:
    """Maximum likelihood ratings in Elo, mean 0; a draw is half a win for both.

        r maximises Σ w_ij ln P(i beats j), that is Σ_j w_ij = Σ_j (w_ij + w_ji) P(i beats j)
                                                                                       [Eq. 41]

    Args:
        points: [..., n, n], wins of i against j.
        regularisation: is added to every w_ij, so that an agent that never lost has a finite
            rating; 0 for plain maximum likelihood, an array [n, n] if pairs differ.

    >>> bradley_terry(np.array([[0.0, 10.0], [1.0, 0.0]]), regularisation=0.0).round(6).tolist()
    [200.0, -200.0]
    """
    won = np.asarray(points, float)
    n = won.shape[-1] if won.ndim else 0
    if won.ndim < 2 or won.shape[-2] != n:
        raise UctreeError(
            f"points must have the shape [..., n, n], wins of i against j; got {won.shape}"
        )
    won = won + regularisation * (1.0 - np.eye(n))
    if not (np.isfinite(won).all() and (won >= 0).all()):
        raise UctreeError(
            f"points must be finite and not negative; got {np.min(points):g} to {np.max(points):g}"
        )
    if np.any(np.less_equal(regularisation, 0)):
        _check_connected(won)
    return _most_likely(won)


def _most_likely(won: np.ndarray) -> np.ndarray:
    """The ratings of [Eq. 41] by Newton's method, which exist after `_check_connected`."""
    n = won.shape[-1]
    games = won + np.swapaxes(won, -1, -2)
    nats = np.zeros(won.shape[:-1])
    for _ in range(MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(nats[..., None, :] - nats[..., :, None]))
        gradient = (won - games * p).sum(axis=-1)
        curvature = games * p * (1.0 - p)
        # The Laplacian of the curvatures; adding ones makes it regular and keeps the mean at 0.
        hessian = np.eye(n) * curvature.sum(axis=-1)[..., None] - curvature + 1.0 / n
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        largest = np.abs(step).max(axis=-1, keepdims=True)
        nats = nats + step * np.minimum(1.0, LARGEST_STEP / np.maximum(largest, 1e-300))
        if largest.max() < 1e-10:
            break
    return np.asarray((nats - nats.mean(axis=-1, keepdims=True)) * PER_NAT)


def _check_connected(won: np.ndarray) -> None:
    """Raise UctreeError if the likelihood has no maximum (Ford 1957)."""
    n = won.shape[-1]
    reach = (won > 0) | np.eye(n, dtype=bool)
    for _ in range(n.bit_length()):  # each step doubles the length of paths
        reach = reach @ reach
    if not reach.all():
        raise UctreeError(
            "some agents have only wins, or only losses, against all others, so their ratings are "
            "infinite; give regularisation= above 0"
        )


@dataclass(frozen=True)
class Ratings:
    """Ratings of agents in Elo, with bootstrap samples."""

    elo: np.ndarray  # [num_agents]
    samples: np.ndarray  # [num_samples, num_agents], ratings with resampled weights of openings
    scores: np.ndarray  # [num_samples, num_agents], mean scores of the same samples
    level: float

    @property
    def intervals(self) -> np.ndarray:
        """[num_agents, 2], the lower and the upper bound of each rating."""
        return self._bounds(self.samples)

    @property
    def score_intervals(self) -> np.ndarray:
        """[num_agents, 2], the lower and the upper bound of each mean score."""
        return self._bounds(self.scores)

    def difference(self, a: int, b: int) -> tuple[float, float, float]:
        """The rating of agent a minus that of agent b, with the bounds of the interval."""
        low, high = self._bounds((self.samples[:, a] - self.samples[:, b])[:, None])[0]
        return float(self.elo[a] - self.elo[b]), float(low), float(high)

    @property
    def superiority(self) -> np.ndarray:
        """[num_agents, num_agents], the probability that i is stronger than j."""
        return superiority(self.samples)

    def _bounds(self, samples: np.ndarray) -> np.ndarray:
        tail = 50.0 * (1.0 - self.level)
        return np.percentile(samples, [tail, 100.0 - tail], axis=0).T


def superiority(samples: np.ndarray) -> np.ndarray:
    """The probability that agent i is stronger than agent j, from B sampled ratings.

        LOS_ij = #{b: r_i^b > r_j^b} / B, equal ones counting half                     [Eq. 43]

    >>> superiority(np.array([[10.0, -10.0], [5.0, -5.0], [-1.0, 1.0], [2.0, -2.0]])).tolist()
    [[0.5, 0.75], [0.25, 0.5]]
    """
    one, other = samples[:, :, None], samples[:, None, :]
    return np.asarray(((one > other) + 0.5 * (one == other)).mean(axis=0))


def rate(
    points: np.ndarray,
    *,
    regularisation: float | np.ndarray = REGULARISATION,
    anchor: int | None = None,
    level: float = LEVEL,
    num_samples: int = SAMPLES,
    seed: int = 0,
) -> Ratings:
    """Ratings with intervals by the Bayesian bootstrap over openings (Rubin 1981).

    Each sample weights every opening by an exponential random number, and the virtual wins of
    `regularisation` by gamma ones, like a prior. So the interval of an agent that only won has a
    width, that of Jeffreys for a binomial.

    Args:
        points: [num_openings, n, n], wins of i against j.
        regularisation: as in `bradley_terry`.
        anchor: the agent whose rating is 0; without one the mean is 0.
        level: of the intervals.
    """
    table = np.asarray(points, float)
    n = table.shape[-1]
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(num_samples, len(table)))
    sampled = np.tensordot(weights, table, axes=1)
    if np.any(np.greater(regularisation, 0)):
        sampled = sampled + rng.gamma(regularisation, size=sampled.shape) * (1.0 - np.eye(n))
    stretch = small_sample_factor(len(table))
    elo = bradley_terry(table.sum(axis=0), regularisation=regularisation)
    # Weights are above 0, so samples are connected if the whole table is.
    samples = elo + stretch * (_most_likely(sampled) - elo)
    won, lost = sampled.sum(axis=-1), sampled.sum(axis=-2)
    shares = won / (won + lost)
    centre = np.median(shares, axis=0)
    scores = np.clip(centre + stretch * (shares - centre), 0.0, 1.0)
    if anchor is not None:
        elo, samples = elo - elo[anchor], samples - samples[:, [anchor]]
    return Ratings(elo, samples, scores, level)


def small_sample_factor(num_units: int) -> float:
    """The factor by which a bootstrap of few units is too narrow at 95 %.

        √((U + 1)/(U - 1)) · (1 + (z² + 1)/(4 (U - 1))),  z = 1.96                     [Eq. 46]

    The first factor corrects the variance of the weights, which has U + 1 in place of U - 1; the
    second is Student's t over the normal z, to first order.

    >>> round(small_sample_factor(51), 4)
    1.0445
    """
    rest = max(num_units - 1, 1)
    return math.sqrt((num_units + 1) / rest) * (1.0 + (1.96**2 + 1.0) / (4.0 * rest))


def mean_interval(
    values: np.ndarray, *, level: float = LEVEL, num_samples: int = SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The interval of a mean, by the bootstrap of `rate`; infinite for a single value.

    >>> mean_interval(np.array([0.5]))
    (-inf, inf)
    """
    if len(values) < 2:
        return -math.inf, math.inf
    weights = np.random.default_rng(seed).exponential(size=(num_samples, len(values)))
    tail = 50.0 * (1.0 - level)
    centre = values.mean()
    means = weights @ (values - centre) / weights.sum(axis=1)
    bounds = np.percentile(means, [tail, 100.0 - tail])
    low, high = centre + small_sample_factor(len(values)) * bounds
    return float(low), float(high)


# --- the sequential test -------------------------------------------------------------------------

SUPPORT = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # mean scores of a pair of games
RARE = 1e-3  # the count that is added to every score, so that none is 0


def log_likelihood_ratio(scores: Sequence[float], elo0: float, elo1: float) -> float:
    """The log-likelihood ratio of a difference of elo1 against elo0, from scores of pairs of games.

        LLR = Σ_u ln( (1 + x_0 (a_u - s_0)) / (1 + x_1 (a_u - s_1)) ),
        s_h = P(elo_h) [Eq. 40],  x_h: Σ_u (a_u - s_h) / (1 + x_h (a_u - s_h)) = 0     [Eq. 44]

    The ratio of the largest likelihoods over all distributions of scores with means s_1 and s_0, so
    that draws and the correlation of paired games need no model.

    Args:
        scores: mean scores of pairs of games, 0 to 1 in steps of 1/4.

    >>> round(log_likelihood_ratio([1.0] * 5 + [0.5] * 2 + [0.0], elo0=0.0, elo1=100.0), 2)
    1.13
    """
    values, counts = np.unique(np.asarray(scores, float), return_counts=True)
    if not np.isin(values, SUPPORT).all():
        raise UctreeError(f"scores of pairs must be 0, 0.25, 0.5, 0.75 or 1; got {values.tolist()}")
    often = np.full(len(SUPPORT), RARE)
    often[np.searchsorted(SUPPORT, values)] += counts
    total = 0.0
    for elo, sign in ((elo0, 1.0), (elo1, -1.0)):
        away = SUPPORT - expected_score(elo)
        total += sign * float(often @ np.log1p(_tilt(often, away) * away))
    return total


def _tilt(often: np.ndarray, away: np.ndarray) -> float:
    """The x with Σ often away / (1 + x away) = 0; the sum decreases in x."""
    pairs = list(zip(often.tolist(), away.tolist(), strict=True))  # faster than arrays
    low, high = -1.0 / max(away), -1.0 / min(away)
    for _ in range(60):
        x = 0.5 * (low + high)
        if sum(count * far / (1.0 + x * far) for count, far in pairs) > 0:
            low = x
        else:
            high = x
    return float(0.5 * (low + high))


@dataclass(frozen=True)
class SprtState:
    """The state of a sequential test."""

    llr: float
    lower: float
    upper: float
    decision: str | None  # "elo0" or "elo1" is accepted; None if undecided
    num_pairs: int


@dataclass(frozen=True)
class Sprt:
    """Wald's sequential probability ratio test of a difference of elo1 against one of elo0.

    elo1 is accepted when the ratio of [Eq. 44] reaches ln((1 - beta)/alpha), elo0 when it falls to
    ln(beta/(1 - alpha)). alpha is the probability of accepting elo1 if elo0 is true, beta that of
    accepting elo0 if elo1 is true.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise UctreeError(f"sprt needs elo0 < elo1; got {self.elo0} and {self.elo1}")
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.0 < value < 0.5:
                raise UctreeError(f"sprt needs {name} between 0 and 0.5; got {value}")

    def test(self, scores: Sequence[float]) -> SprtState:
        """The state of the test after pairs of games with these scores of the first agent."""
        lower, upper = wald_bounds(self.alpha, self.beta)
        llr = log_likelihood_ratio(scores, self.elo0, self.elo1)
        decision = "elo1" if llr >= upper else "elo0" if llr <= lower else None
        return SprtState(llr, lower, upper, decision, len(scores))


def wald_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """The log-likelihood ratios at which a sequential test ends.

        ln(β / (1 - α)),  ln((1 - β) / α)                                              [Eq. 45]

    >>> [round(bound, 4) for bound in wald_bounds(0.05, 0.05)]
    [-2.9444, 2.9444]
    """
    return math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)
