"""The formulas of the action principle behind one-loop PUCT.

They take arrays over the edges of one node, for the player to move: `visits` n, `prior` P, `q` Q. κ
is `kappa`, b `value_weight`, ħ `hbar`. `parent_visits` is N; if it is omitted, N is the sum of the
visits and changes with them. `docs/principle.md` derives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from uctree.kernels.gumbel import regularised_policy
from uctree.selection import (
    ONE_LOOP_MODES,
    curvature,
    fluctuation_share,
    puct_width,
    validity,
)  # fmt: skip

# --- the action ----------------------------------------------------------------------------------


def action(
    visits: ArrayLike, prior: ArrayLike, q: ArrayLike, kappa: float, value_weight: float = 1.0,
    parent_visits: float | None = None,
) -> float:  # fmt: skip
    """The action of the visits of a node: small if they follow priors and values.

        S = κ N Σ (√(n/N) - P)² - b Σ n Q = κ Σ (√n - P √N)² - b Σ n Q                 [Eq. 48]

    >>> action(visits=[9, 16], prior=[0.5, 0.5], q=[0.5, 0.25], kappa=1.0)
    -6.0
    """
    n, p, values = _arrays(visits, prior, q)
    total = _total(n, parent_visits)
    distance = np.sum((np.sqrt(n) - p * math.sqrt(total)) ** 2)
    return float(kappa * distance - value_weight * np.sum(n * values))


def sibling_shift(visits: ArrayLike, prior: ArrayLike, kappa: float) -> float:
    """The term that N = Σ n adds to every component of -∂S/∂n: the same for all.

        κ (Σ P √(n/N) - Σ P²)                                                          [Eq. 49]

    >>> round(sibling_shift(visits=[9, 16], prior=[0.5, 0.5], kappa=1.0), 12)
    0.2
    """
    n, p = _arrays(visits, prior)
    return float(kappa * (np.sum(p * np.sqrt(n / np.sum(n))) - np.sum(p * p)))


def negative_gradient(
    visits: ArrayLike, prior: ArrayLike, q: ArrayLike, kappa: float, value_weight: float = 1.0,
    parent_visits: float | None = None,
) -> np.ndarray:  # fmt: skip
    """The decrease of the action by one more visit of each edge, for fixed values.

        -∂S/∂n = b Q + κ P √(N/n) - κ,  and [Eq. 49] where N = Σ n                     [Eq. 50]

    Infinite for an edge without visits and with a prior above 0.

    >>> negative_gradient([4, 16], [0.5, 0.5], q=[0.5, 0.25], kappa=1.0, parent_visits=64)
    array([1.5 , 0.25])
    """
    n, p, values = _arrays(visits, prior, q)
    total = _total(n, parent_visits)
    roots = np.sqrt(np.divide(total, n, out=np.full(len(n), np.inf), where=n > 0))
    pull = np.where(p > 0, p * np.where(p > 0, roots, 0.0), 0.0)
    shift = sibling_shift(n, p, kappa) if parent_visits is None else 0.0
    return value_weight * values + kappa * pull - kappa + shift


def curvatures(
    visits: ArrayLike, prior: ArrayLike, kappa: float, parent_visits: float | None = None
) -> np.ndarray:
    """h of every edge [Eq. 16]; an edge without visits counts as one visit.

    >>> curvatures([4, 4], [0.5, 0.5], kappa=1.0, parent_visits=16)
    array([0.125, 0.125])
    """
    n, p = _arrays(visits, prior)
    total = max(1.0, _total(n, parent_visits))
    pairs = zip(p, np.maximum(1.0, n), strict=True)
    return np.array([curvature(each, count, total, kappa) for each, count in pairs])


def hessian(
    visits: ArrayLike, prior: ArrayLike, kappa: float, parent_visits: float | None = None
) -> np.ndarray:
    """The second derivatives of the action in the visits.

    With N held fixed it is diagonal, h [Eq. 16]; with N = Σ n

        H_ij = δ_ij h_i - κ/2 (P_i/√(N n_i) + P_j/√(N n_j)) + κ B / (2 N^(3/2)),
        B = Σ P √n                                                                     [Eq. 51]

    and H n = 0, because the action of twice the visits is twice the action: the determinant is 0.

    >>> h = hessian(visits=[9, 16], prior=[0.5, 0.5], kappa=2.0)
    >>> h.round(4).tolist()
    [[0.0539, -0.0303], [-0.0303, 0.0171]]
    >>> bool(abs(h @ [9, 16]).max() < 1e-15)
    True
    """
    n, p = _arrays(visits, prior)
    if not np.all(n > 0):
        raise ValueError(f"the Hessian needs visits above 0; got the visits {n.tolist()}")
    diagonal = np.diag(curvatures(n, p, kappa, parent_visits))
    if parent_visits is not None:
        return diagonal
    total = float(np.sum(n))
    slope = p / np.sqrt(total * n)
    spread = kappa * float(np.sum(p * np.sqrt(n))) / (2.0 * total**1.5)
    return diagonal - kappa / 2.0 * (slope[:, None] + slope[None, :]) + spread


def simplex_determinant(bends: ArrayLike) -> float:
    """The determinant of the Hessian along changes that keep the sum of the visits.

        det = Π h · Σ h⁻¹ / K                                                          [Eq. 52]

    There both Hessians agree. K is the number of edges, `bends` their h.

    >>> simplex_determinant([2.0, 2.0])
    2.0
    """
    (h,) = _arrays(bends)
    if not np.all(h > 0):
        raise ValueError(f"an edge without curvature has no fluctuations; got h = {h.tolist()}")
    return float(np.prod(h) * np.sum(1.0 / h) / len(h))


# --- the one-loop term ---------------------------------------------------------------------------


def one_loop_term(bends: ArrayLike, hbar: float, mode: str = "kernel") -> float:
    """The contribution of Gaussian fluctuations to the action.

        kernel, saddle: (ħ/2) Σ ln h;  simplex: (ħ/2) ln det [Eq. 52];  off: 0         [Eq. 53]

    Edges without curvature, of prior 0, have no fluctuations and do not contribute.

    Args:
        bends: h of the edges; in mode "saddle" κ/(2n), its value at the classical solution.

    >>> one_loop_term([1.0, math.e], hbar=2.0)
    1.0
    """
    _check_mode(mode)
    (h,) = _arrays(bends)
    h = h[h > 0]
    if mode == "off" or len(h) == 0:
        return 0.0
    total = float(np.sum(np.log(h)))
    if mode == "simplex":
        total += math.log(float(np.sum(1.0 / h)) / len(h))
    return hbar / 2.0 * total


def one_loop_bonus(
    visits: ArrayLike, prior: ArrayLike, kappa: float, hbar: float, *, mode: str = "kernel",
    coefficient: float | None = None, parent_visits: float | None = None,
) -> np.ndarray:  # fmt: skip
    """The contribution of the one-loop term to each score: minus its derivative, for fixed N.

        kernel: 3ħ/(4n);  simplex: 3ħ/(4n) · (1 - w), w by [Eq. 47];
        saddle: ħ/(2n);   off: 0                                                       [Eq. 54]

    n counts at least 1. An edge of prior 0 has no curvature and no bonus, nor has a single edge
    along the simplex.

    >>> [
    ...     float(one_loop_bonus([4, 4], [0.5, 0.5], kappa=1.0, hbar=1.0, mode=mode)[0].round(12))
    ...     for mode in ("kernel", "simplex", "saddle", "off")
    ... ]
    [0.1875, 0.09375, 0.125, 0.0]
    """
    _check_mode(mode)
    n, p = _arrays(visits, prior)
    given = ONE_LOOP_MODES[mode] if coefficient is None or mode == "off" else coefficient
    bonus = np.where(p > 0, given * hbar / np.maximum(1.0, n), 0.0)
    if mode == "simplex":
        bonus *= 1.0 - fluctuation_shares(curvatures(n, p, kappa, parent_visits))
    return bonus


def fluctuation_shares(bends: ArrayLike) -> np.ndarray:
    """w of every edge [Eq. 47]; 0 for one without curvature.

    >>> fluctuation_shares([0.25, 0.125, 0.125, 0.0]).tolist()
    [0.2, 0.4, 0.4, 0.0]
    """
    (h,) = _arrays(bends)
    sum_inverse = float(np.sum(1.0 / h[h > 0]))
    return np.array([fluctuation_share(each, sum_inverse) if each > 0 else 0.0 for each in h])


def validities(
    visits: ArrayLike, prior: ArrayLike, kappa: float, hbar: float,
    parent_visits: float | None = None,
) -> np.ndarray:  # fmt: skip
    """ε of every edge [Eq. 18], n and N at least 1; infinite if κ P is 0.

    >>> validities([4, 4], [0.5, 0.0], kappa=1.0, hbar=1.0, parent_visits=16).tolist()
    [0.5, inf]
    """
    n, p = _arrays(visits, prior)
    total = max(1.0, _total(n, parent_visits))
    return np.array([
        validity(each, count, total, kappa, hbar) if kappa * each > 0 else math.inf
        for each, count in zip(p, np.maximum(1.0, n), strict=True)
    ])  # fmt: skip


def partition_function(prior: float, parent_visits: float, kappa: float, hbar: float) -> float:
    """The exact sum over all numbers of visits of one edge, each with its weight.

        Z = ∫₀^∞ exp(-κ (√n - m)²/ħ) dn
          = (ħ/κ) e^(-κm²/ħ) + m √(πħ/κ) (1 + erf(m √(κ/ħ))),  m = P √N                [Eq. 55]

    The Gaussian at the classical solution n = m² gives 2m √(πħ/κ): its error is exponentially
    small, without corrections of any power of ħ.

    >>> partition_function(prior=0.0, parent_visits=16, kappa=2.0, hbar=1.0)
    0.5
    >>> round(partition_function(prior=0.25, parent_visits=16, kappa=1.0, hbar=1.0), 6)
    3.633982
    """
    _check_above_zero(kappa=kappa, hbar=hbar)
    m = prior * math.sqrt(parent_visits)
    edge = hbar / kappa * math.exp(-kappa * m * m / hbar)
    bulk = m * math.sqrt(math.pi * hbar / kappa) * (1.0 + math.erf(m * math.sqrt(kappa / hbar)))
    return edge + bulk


# --- where visits go -----------------------------------------------------------------------------


def classical_shares(
    prior: ArrayLike, q: ArrayLike | None = None, kappa: float = 1.0, value_weight: float = 1.0
) -> np.ndarray:
    """The shares of the visits at which one more visit of any edge lowers the action equally.

        n/N = (κ P / (λ - b Q))²,  Σ n/N = 1;  at equal values P² / Σ P²               [Eq. 56]

    >>> classical_shares(prior=[0.4, 0.6], q=[0.5, 0.0])
    array([0.64, 0.36])
    >>> classical_shares(prior=[0.75, 0.25])
    array([0.9, 0.1])
    """
    (p,) = _arrays(prior)
    likely = p > 0
    if not np.any(likely):
        raise ValueError(f"the classical solution needs a prior above 0; got {p.tolist()}")
    shares = np.zeros(len(p))
    if q is None:
        shares[likely] = p[likely] ** 2 / np.sum(p**2)
        return shares
    _check_above_zero(kappa=kappa)
    pull = kappa * p[likely]
    values = value_weight * _arrays(prior, q)[1][likely]
    low, high = np.max(values + pull), np.max(values) + math.sqrt(np.sum(pull**2))
    # The sum falls as λ grows; bisect until no float lies inside the interval.
    while low < (middle := (low + high) / 2) < high:
        if np.sum((pull / (middle - values)) ** 2) > 1:
            low = middle
        else:
            high = middle
    shares[likely] = (pull / (high - values)) ** 2
    return shares


def puct_action(
    visits: ArrayLike, prior: ArrayLike, q: ArrayLike, c: float, value_weight: float = 1.0,
    parent_visits: float | None = None,
) -> float:  # fmt: skip
    """The action of PUCT itself: for fixed N, minus its gradient is the score [Eq. 4].

        S = -c √N Σ P ln(1 + n) - b Σ n Q                                              [Eq. 57]

    >>> round(puct_action([0, 1], [0.5, 0.5], q=[0.0, 0.5], c=2.0, parent_visits=4), 6)
    -1.886294
    """
    n, p, values = _arrays(visits, prior, q)
    width = c * math.sqrt(_total(n, parent_visits))
    return float(-width * np.sum(p * np.log1p(n)) - value_weight * np.sum(n * values))


def puct_weight(num_actions: int, parent_visits: int, c: float) -> float:
    """The weight of the priors in the policy that PUCT follows [Eq. 34].

        λ = c √N / (|A| + N)                                                           [Eq. 58]

    With the shares (1 + n) / (|A| + N) as the policy, λ P divided by the share is PUCT's bonus.

    >>> puct_weight(num_actions=4, parent_visits=16, c=1.25)
    0.25
    """
    if num_actions < 1:
        raise ValueError(f"num_actions must be at least 1; got {num_actions}")
    return puct_width(parent_visits, c, math.inf) / (num_actions + parent_visits)


def puct_shares(q: ArrayLike, prior: ArrayLike, parent_visits: int, c: float) -> np.ndarray:
    """The policy that the visits of PUCT follow after `parent_visits` of them [Eq. 34, 58].

    >>> puct_shares(q=[0.0, 0.0], prior=[0.75, 0.25], parent_visits=16, c=1.25)
    array([0.75, 0.25])
    """
    values, p = _arrays(q, prior)
    return regularised_policy(values, p, puct_weight(len(p), parent_visits, c))[0]


# --- pruning -------------------------------------------------------------------------------------


def pruning_term(num_pruned: int, hbar: float) -> float:
    """The cost of `num_pruned` pruned children of a node, by their number alone.

        ħ ln(1 + b)                                                                    [Eq. 59]

    Exact if one child was kept and all weights are equal; [Eq. 61] holds in general. It counts once
    per node and never enters the score of a child.

    >>> round(pruning_term(num_pruned=3, hbar=0.5), 6)
    0.693147
    """
    if num_pruned < 0:
        raise ValueError(f"num_pruned must be at least 0; got {num_pruned}")
    return hbar * math.log1p(num_pruned)


def pruning_penalty(free_energy: float, visits: int) -> float:
    """The cost of pruning per visit of the node, for the edge that leads to it: F / max(1, N).

    >>> pruning_penalty(0.5, visits=10), pruning_penalty(0.5, visits=0)
    (0.05, 0.5)
    """
    return free_energy / max(1, visits)


def kept_weight(actions: ArrayLike, kept: Sequence[int], hbar: float) -> float:
    """The share of the kept children in the weights exp(-S_k/ħ) of all children.

        ⟨exp(-W/ħ)⟩ = Z_kept / Z_all = exp(-ΔF/ħ)                                      [Eq. 60]

    The mean is over all children by weight; the work W of pruning is 0 for one that is kept and
    infinite for one that is not.

    Args:
        actions: S_k of the children.
        kept: which of them are kept, by index.

    >>> round(kept_weight([0.0, 0.0, 0.0, math.log(2)], kept=[0, 3], hbar=1.0), 12)
    0.428571428571
    """
    weights, is_kept = _ensemble(actions, kept, hbar)
    return float(np.sum(weights[is_kept]) / np.sum(weights))


def pruning_free_energy(actions: ArrayLike, kept: Sequence[int], hbar: float) -> float:
    """The exact cost of pruning; at least 0.

        ΔF = ħ ln(1 + Z_pruned / Z_kept)                                               [Eq. 61]

    >>> round(pruning_free_energy([0.3] * 5, kept=[0], hbar=0.5) / math.log(5), 12)
    0.5
    """
    s, is_kept = np.asarray(actions, float), _ensemble(actions, kept, hbar)[1]
    if np.all(is_kept):
        return 0.0
    # In logarithms: the ratio of weights may exceed the range of a float.
    difference = _log_sum(-s[~is_kept] / hbar) - _log_sum(-s[is_kept] / hbar)
    return float(hbar * np.logaddexp(0.0, difference))


def measure_kept_weight(
    actions: ArrayLike, kept: Sequence[int], hbar: float, num_samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """⟨exp(-W/ħ)⟩ over children drawn by their weights, and its standard error by [Eq. 60].

    >>> mean, error = measure_kept_weight([0.3] * 4, kept=[0], hbar=0.7, num_samples=10_000)
    >>> abs(mean - 0.25) < 4 * error, round(error, 5)
    (True, 0.00433)
    """
    if num_samples < 1:
        raise ValueError(f"num_samples must be at least 1; got {num_samples}")
    weights, is_kept = _ensemble(actions, kept, hbar)
    drawn = np.random.default_rng(seed).choice(
        len(weights), size=num_samples, p=weights / weights.sum()
    )
    work = np.where(is_kept[drawn], 0.0, np.inf)
    share = kept_weight(actions, kept, hbar)
    error = math.sqrt(max(0.0, share * (1.0 - share)) / num_samples)
    return float(np.mean(np.exp(-work / hbar))), error


def _ensemble(
    actions: ArrayLike, kept: Sequence[int], hbar: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the children, the largest 1, and which are kept."""
    (s,) = _arrays(actions)
    _check_above_zero(hbar=hbar)
    if not np.all(np.isfinite(s)):
        raise ValueError(f"actions must be finite; got {s.tolist()}")
    if len(kept) == 0:
        raise ValueError("the cost of pruning is not defined if nothing is kept; keep a child")
    if not all(0 <= int(k) < len(s) for k in kept):
        raise ValueError(f"kept holds indices 0 to {len(s) - 1}; got {list(kept)}")
    is_kept = np.zeros(len(s), bool)
    is_kept[np.asarray(kept, int)] = True
    return np.exp(-(s - s.min()) / hbar), is_kept


def _log_sum(logs: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logs))


def _arrays(*given: ArrayLike) -> tuple[np.ndarray, ...]:
    """Arrays over the edges of a node, all of one length."""
    arrays = tuple(np.asarray(each, float) for each in given)
    if any(each.ndim != 1 or each.shape != arrays[0].shape for each in arrays):
        shapes = ", ".join(str(each.shape) for each in arrays)
        raise ValueError(f"expected one number per edge in every array; got the shapes {shapes}")
    if len(arrays[0]) == 0:
        raise ValueError("a node without edges has no action; pass at least one edge")
    return arrays


def _total(visits: np.ndarray, parent_visits: float | None) -> float:
    return float(np.sum(visits)) if parent_visits is None else float(parent_visits)


def _check_mode(mode: str) -> None:
    if mode not in ONE_LOOP_MODES:
        raise ValueError(f"mode must be one of {', '.join(ONE_LOOP_MODES)}; got {mode!r}")


def _check_above_zero(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a number above 0; got {value}")
