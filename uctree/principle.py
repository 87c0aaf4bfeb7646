"""The action principle behind one-loop PUCT: its formulas, and a search that is held against them.

Formulas take arrays over the edges of one node, for the player who moves there: `visits` n, `prior`
P, `q` Q. κ is `kappa`, b `value_weight`, ħ `hbar`. `parent_visits` is N; where it is left out, N is
the sum of the visits and changes with them. `docs/principle.md` derives them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from uctree import studypage
from uctree.evaluators import Evaluator
from uctree.game import CHANCE, Game, State
from uctree.gumbel import regularised_policy
from uctree.mcts import search
from uctree.result import SearchResult
from uctree.selection import (
    ONE_LOOP_MODES,
    curvature,
    falling_hbar,
    fluctuation_share,
    one_loop,
    puct_width,
    validity,
)  # fmt: skip
from uctree.tree import Node, Tree

# --- the action ----------------------------------------------------------------------------------


def action(
    visits: ArrayLike, prior: ArrayLike, q: ArrayLike, kappa: float, value_weight: float = 1.0,
    parent_visits: float | None = None,
) -> float:  # fmt: skip
    """What the visits of a node cost: small where they follow priors and values.

        S = κ N Σ (√(n/N) - P)² - b Σ n Q = κ Σ (√n - P √N)² - b Σ n Q                 [Eq. 48]

    >>> action(visits=[9, 16], prior=[0.5, 0.5], q=[0.5, 0.25], kappa=1.0)
    -6.0
    """
    n, p, values = _arrays(visits, prior, q)
    total = _total(n, parent_visits)
    distance = np.sum((np.sqrt(n) - p * math.sqrt(total)) ** 2)
    return float(kappa * distance - value_weight * np.sum(n * values))


def sibling_shift(visits: ArrayLike, prior: ArrayLike, kappa: float) -> float:
    """What every component of -∂S/∂n gains where N is the sum of the visits: the same for all.

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
    """How much one more visit of each edge lowers the action, values held as they are.

        -∂S/∂n = b Q + κ P √(N/n) - κ,  and [Eq. 49] where N = Σ n                     [Eq. 50]

    Infinite for an edge that was never taken and has a prior.

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
    """h of every edge [Eq. 16], edges never taken counted as taken once.

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
        raise ValueError(f"the action bends at n > 0 alone; got the visits {n.tolist()}")
    diagonal = np.diag(curvatures(n, p, kappa, parent_visits))
    if parent_visits is not None:
        return diagonal
    total = float(np.sum(n))
    slope = p / np.sqrt(total * n)
    spread = kappa * float(np.sum(p * np.sqrt(n))) / (2.0 * total**1.5)
    return diagonal - kappa / 2.0 * (slope[:, None] + slope[None, :]) + spread


def simplex_determinant(bends: ArrayLike) -> float:
    """The determinant of the Hessian along changes that leave the sum of the visits as it is.

        det = Π h · Σ h⁻¹ / K                                                          [Eq. 52]

    There both Hessians are the same. K is the number of edges, `bends` their h.

    >>> simplex_determinant([2.0, 2.0])
    2.0
    """
    (h,) = _arrays(bends)
    if not np.all(h > 0):
        raise ValueError(f"an edge without curvature has no fluctuations; got h = {h.tolist()}")
    return float(np.prod(h) * np.sum(1.0 / h) / len(h))


# --- the one-loop term ---------------------------------------------------------------------------


def one_loop_term(bends: ArrayLike, hbar: float, mode: str = "kernel") -> float:
    """What Gaussian fluctuations add to the action.

        kernel, saddle: (ħ/2) Σ ln h;  simplex: (ħ/2) ln det [Eq. 52];  off: 0         [Eq. 53]

    Edges without curvature, of prior 0, have no fluctuations and stay out.

    Args:
        bends: h of the edges, in mode "saddle" κ/(2n), which it is on the classical solution.

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
    """What the one-loop term adds to the score of each edge: minus its derivative, for fixed N.

        kernel: 3ħ/(4n);  simplex: 3ħ/(4n) · (1 - w), w by [Eq. 47];
        saddle: ħ/(2n);   off: 0                                                       [Eq. 54]

    n counts at least 1. An edge of prior 0 has no curvature and gets nothing, nor does a single
    edge along the simplex.

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
    """ε of every edge [Eq. 18], n and N at least 1; infinite where κ P is 0.

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
    """All numbers of visits of one edge, each with its weight, added up exactly.

        Z = ∫₀^∞ exp(-κ (√n - m)²/ħ) dn
          = (ħ/κ) e^(-κm²/ħ) + m √(πħ/κ) (1 + erf(m √(κ/ħ))),  m = P √N                [Eq. 55]

    The Gaussian at the classical solution n = m² gives 2m √(πħ/κ): what it misses is exponentially
    small, there is no correction of any power of ħ.

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
    """The shares of the visits at which one more visit lowers the action alike wherever it goes.

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
    worth = value_weight * _arrays(prior, q)[1][likely]
    low, high = np.max(worth + pull), np.max(worth) + math.sqrt(np.sum(pull**2))
    # The sum falls as λ grows; halve the interval until there is no number left inside.
    while low < (middle := (low + high) / 2) < high:
        if np.sum((pull / (middle - worth)) ** 2) > 1:
            low = middle
        else:
            high = middle
    shares[likely] = (pull / (high - worth)) ** 2
    return shares


def puct_action(
    visits: ArrayLike, prior: ArrayLike, q: ArrayLike, c: float, value_weight: float = 1.0,
    parent_visits: float | None = None,
) -> float:  # fmt: skip
    """The action whose descent is PUCT itself: for fixed N minus its gradient is [Eq. 4].

        S = -c √N Σ P ln(1 + n) - b Σ n Q                                              [Eq. 57]

    >>> round(puct_action([0, 1], [0.5, 0.5], q=[0.0, 0.5], c=2.0, parent_visits=4), 6)
    -1.886294
    """
    n, p, values = _arrays(visits, prior, q)
    width = c * math.sqrt(_total(n, parent_visits))
    return float(-width * np.sum(p * np.log1p(n)) - value_weight * np.sum(n * values))


def puct_weight(num_actions: int, parent_visits: int, c: float) -> float:
    """How much the priors weigh in the policy that PUCT follows [Eq. 34].

        λ = c √N / (|A| + N)                                                           [Eq. 58]

    With the shares (1 + n) / (|A| + N) in the place of the policy, λ P over the share is PUCT's
    bonus.

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
    """What a node pays for `num_pruned` children that were taken away, by their number alone.

        ħ ln(1 + b)                                                                    [Eq. 59]

    Exact where one child was kept and all weigh the same; [Eq. 61] is what holds in general. It is
    paid once per node and never enters the score of a child.

    >>> round(pruning_term(num_pruned=3, hbar=0.5), 6)
    0.693147
    """
    if num_pruned < 0:
        raise ValueError(f"num_pruned must be at least 0; got {num_pruned}")
    return hbar * math.log1p(num_pruned)


def pruning_penalty(free_energy: float, visits: int) -> float:
    """The same per visit of the node, for the edge that leads to it: F / max(1, N).

    >>> pruning_penalty(0.5, visits=10), pruning_penalty(0.5, visits=0)
    (0.05, 0.5)
    """
    return free_energy / max(1, visits)


def kept_weight(actions: ArrayLike, kept: Sequence[int], hbar: float) -> float:
    """The part of the children's weights exp(-S_k/ħ) that the kept ones have.

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
    """What pruning costs, exactly; at least 0.

        ΔF = ħ ln(1 + Z_pruned / Z_kept)                                               [Eq. 61]

    >>> round(pruning_free_energy([0.3] * 5, kept=[0], hbar=0.5) / math.log(5), 12)
    0.5
    """
    s, is_kept = np.asarray(actions, float), _ensemble(actions, kept, hbar)[1]
    if np.all(is_kept):
        return 0.0
    # In logarithms: weights may differ by more than a float holds.
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
        raise ValueError("what pruning costs is not defined where nothing is kept; keep a child")
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
        raise ValueError("a node without edges has no action; give at least one edge")
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


# --- a search held against the formulas ----------------------------------------------------------

# Which edges of a node are kept, as booleans, from their visits, values and priors.
Keep = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def by_share(least: float = 0.5) -> Keep:
    """A rule for pruning: keep edges with at least this share of the most visited one's visits.

    >>> by_share(0.1)(np.array([85, 10, 5]), np.zeros(3), np.ones(3) / 3)
    array([ True,  True, False])
    """
    if not 0 <= least <= 1:
        raise ValueError(f"least must be a share from 0 to 1; got {least}")

    def keep(visits: np.ndarray, q: np.ndarray, prior: np.ndarray) -> np.ndarray:
        return visits >= least * visits.max()

    return keep


def by_value(gap: float = 0.25) -> Keep:
    """A rule for pruning: keep edges that are worth at most `gap` less than the best one.

    Values are those the rule sees, from 0 to 1.

    >>> by_value(0.25)(np.array([85, 10, 5]), np.array([0.7, 0.5, 0.3]), np.ones(3) / 3)
    array([ True,  True, False])
    """
    if not gap >= 0:
        raise ValueError(f"gap must be at least 0; got {gap}")

    def keep(visits: np.ndarray, q: np.ndarray, prior: np.ndarray) -> np.ndarray:
        return q >= q.max() - gap

    return keep


BY_SHARE = by_share()


@dataclass(frozen=True)
class Pruning:
    """Edges that were taken away from a node, and what that cost."""

    line: tuple[int, ...]  # the actions from the root to the node
    simulations: int  # of the search so far
    actions: tuple[int, ...]  # that were taken away
    num_kept: int
    hbar: float
    free_energy: float  # exact [Eq. 61]
    special_case: float  # by their number alone [Eq. 59]
    predicted: float  # the mean of exp(-W/ħ) in theory [Eq. 60]
    measured: float  # the same by draws
    error: float  # its standard error


@dataclass(frozen=True, eq=False)
class NodeStudy:
    """A node of the search in the terms of the principle.

    `edges` has a row per edge that was taken: action, visits, share, classical (the share it has
    in the classical solution [Eq. 56]), squares (the same at equal values, P²/Σ P²), q (as the rule
    sees it), prior, exploration (κ P √(N/n)), bonus [Eq. 54], validity [Eq. 18].
    """

    line: tuple[int, ...]
    to_play: int
    visits: int  # N(s), those through pruned edges included
    hbar: float
    edges: np.ndarray
    action: float  # S [Eq. 48]
    one_loop: float  # [Eq. 53]
    num_pruned: int
    free_energy: float  # of all its prunings together [Eq. 61]
    special_case: float  # the same by [Eq. 59]

    @property
    def effective_action(self) -> float:
        """S, the one-loop term and the free energy of pruning together."""
        return self.action + self.one_loop + self.free_energy

    @property
    def penalty(self) -> float:
        """What pruning costs per visit of the node."""
        return pruning_penalty(self.free_energy, self.visits)


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """A search by one-loop PUCT with pruning, held against the principle; print it for tables."""

    result: SearchResult
    nodes: tuple[NodeStudy, ...]  # the root first, then the most visited
    prunings: tuple[Pruning, ...]
    hbars: tuple[tuple[int, float], ...]  # simulations so far, and ħ at the root then
    options: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """All of it as plain numbers, lists and strings, ready for `json.dumps`."""
        game, state = self.result.game, self.result.state
        return {
            "game": game.name,
            "simulations": self.hbars[-1][0],
            "action": self.result.action,
            "options": {
                name: value if isinstance(value, str) else _plain(value)
                for name, value in self.options.items()
            },
            "hbar": [{"simulations": n, "hbar": hbar} for n, hbar in self.hbars],
            "nodes": [_node_json(game, state, node) for node in self.nodes],
            "prunings": [
                asdict(each) | {"shown": studypage.shown_line(game, state, each.line)}
                for each in self.prunings
            ],
        }

    def save(self, path: str | Path) -> None:
        """Write a page with all tables and plots; a browser needs nothing else to show it."""
        Path(path).write_text(studypage.page(self), encoding="utf-8")

    def __repr__(self) -> str:
        game, count = self.result.game.name, len(self.prunings)
        return f"<Study of {game}: {len(self.nodes)} nodes, {count} prunings>"

    def __str__(self) -> str:
        return studypage.text(self)


def study(
    game: Game,
    state: State | None = None,
    *,
    num_simulations: int = 10_000,
    num_rounds: int = 10,
    keep: Keep | None = BY_SHARE,
    min_visits: int = 100,
    num_nodes: int = 8,
    kappa: float = 1.25,
    value_weight: float = 1.0,
    hbar: float = 1.0,
    visit_scale: float = 100.0,
    mode: str = "kernel",
    evaluator: Evaluator | Callable[..., None] | None = None,
    num_samples: int = 10_000,
    seed: int = 0,
) -> Study:
    """A search by one-loop PUCT that prunes while it goes on, and what the principle says of it.

    Simulations are spent in rounds. After each but the last the most visited nodes are pruned: one
    of at least `min_visits` visits, all of whose actions were tried, loses the edges that `keep`
    does not name. The search goes on in the same tree as if those actions were not legal. Ctrl-C
    ends it with what there is.

    Args:
        state: where to search; the start of an episode.
        keep: the rule for pruning, a function of the arrays visits, q, prior over the edges of a
            node that gives booleans. None prunes nothing.
        num_nodes: how many nodes are pruned and reported, the root and the most visited.
        kappa, value_weight, hbar, visit_scale, mode: as in `selection.one_loop`.
        evaluator: as in `search`; without priors they are uniform.
        num_samples: draws per pruning for its mean of exp(-W/ħ).
        seed: of the search and of those draws.
    """
    for name, number in (("num_rounds", num_rounds), ("num_nodes", num_nodes)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}")
    if num_simulations < num_rounds:
        raise ValueError(
            f"{num_rounds} rounds need as many simulations; got num_simulations={num_simulations}"
        )
    state = game.start() if state is None else state
    if game.is_over(state):
        raise ValueError(f"the episode of {game.name} is over here, so there is nothing to study")
    if game.is_continuous:
        raise ValueError(
            f"the actions of {game.name} are vectors: a node grows edges one by one and loses "
            "edges that come back; study a game whose actions are numbers"
        )
    law = _Law(kappa, value_weight, hbar, visit_scale, mode)
    rule = one_loop(kappa, value_weight=value_weight, hbar=hbar, visit_scale=visit_scale, mode=mode)
    tree: Tree | None = None
    prunings: list[Pruning] = []
    hbars: list[tuple[int, float]] = []
    for number in range(num_rounds):
        done = num_simulations * number // num_rounds
        more = num_simulations * (number + 1) // num_rounds - done
        result = search(
            game, state, num_simulations=more, selection=rule, evaluator=evaluator, tree=tree,
            seed=seed,
        )  # fmt: skip
        tree = result.tree
        hbars.append((tree.simulations, law.hbar_at(tree.root.visits)))
        if result.status == "interrupted":
            break
        if keep is not None and number + 1 < num_rounds:
            for line, _ in _most_visited(tree, num_nodes):
                node = _node_at(tree, line)  # edges move where others are dropped
                if node is not None:
                    stream = seed + len(prunings)
                    found = _prune(law, line, node, keep, min_visits, num_samples, stream)
                    prunings += [] if found is None else [found]
    assert tree is not None
    nodes = tuple(_observe(law, *place, prunings) for place in _most_visited(tree, num_nodes))
    options = asdict(law) | {
        "num_simulations": num_simulations, "num_rounds": num_rounds, "min_visits": min_visits,
        "num_samples": num_samples, "seed": seed,
    }  # fmt: skip
    return Study(result, nodes, tuple(prunings), tuple(hbars), options)


@dataclass(frozen=True)
class _Law:
    """The numbers of the principle."""

    kappa: float
    value_weight: float
    hbar: float
    visit_scale: float
    mode: str

    def hbar_at(self, visits: int) -> float:
        return falling_hbar(visits, self.hbar, self.visit_scale)


@dataclass(frozen=True)
class _Edges:
    """What the rule sees of the edges of a node that were taken."""

    index: np.ndarray
    action: np.ndarray
    visits: np.ndarray
    q: np.ndarray
    prior: np.ndarray
    are_all: bool  # whether every legal action has been taken

    @classmethod
    def of(cls, node: Node) -> _Edges:
        tree, span, player = node.tree, node.edges, node.to_play
        count = len(span)
        if tree.layout.lazy and count:
            count = int(tree.edges["num_legal"][node.edge])
        index, visits = np.array(span, int), tree.edge_visits(span)
        taken = visits > 0
        head, priors = tree.head[0], tree.priors(span)
        # All values are 0 to the rule as long as all were the same.
        factor = head["factor"][player]
        shift = head["low"][player] if factor > 0 else 0.0
        return cls(
            index[taken],
            tree.edges["action"][span.start : span.stop].astype(int)[taken],
            visits[taken],
            (tree.mean_values(span)[taken, player] - shift) * factor,
            np.full(int(taken.sum()), 1.0 / max(1, count)) if priors is None else priors[taken],
            bool(taken.sum() == count),
        )


def _most_visited(tree: Tree, num_nodes: int) -> list[tuple[tuple[int, ...], Node]]:
    """The root and the most visited nodes below it where a player acts, and the ways to them."""
    found: list[tuple[tuple[int, ...], Node]] = []
    heap: list[tuple[int, tuple[int, ...], Node]] = [(-tree.root.visits, (), tree.root)]
    while heap and len(found) < num_nodes:
        _, line, node = heapq.heappop(heap)
        if node.to_play != CHANCE and len(_Edges.of(node).index):
            found.append((line, node))
        for edge, visits in zip(node.edges, tree.edge_visits(node.edges), strict=True):
            if visits > 0 and tree.edges["first"][edge] >= 0:
                way = (*line, int(tree.edges["action"][edge]))
                heapq.heappush(heap, (-int(visits), way, node.child(edge)))
    return found


def _node_at(tree: Tree, line: Sequence[int]) -> Node | None:
    """The node that actions lead to from the root; None where one of them was dropped."""
    node = tree.root
    for each in line:
        edge = next((e for e in node.edges if tree.edges["action"][e] == each), None)
        if edge is None:
            return None
        node = node.child(edge)
    return node


def _prune(
    law: _Law, line: tuple[int, ...], node: Node, keep: Keep, min_visits: int, num_samples: int,
    seed: int,
) -> Pruning | None:  # fmt: skip
    """Take away from a node what `keep` does not name; None where that is nothing."""
    edges = _Edges.of(node)
    if node.visits < min_visits or not edges.are_all or len(edges.index) < 2:
        return None
    is_kept = np.asarray(keep(edges.visits, edges.q, edges.prior), bool)
    if is_kept.shape != edges.visits.shape:
        raise ValueError(
            f"keep gave an array of shape {is_kept.shape} for {len(edges.visits)} edges; it gives "
            "one boolean per edge"
        )
    if np.all(is_kept):
        return None
    kept, hbar = np.flatnonzero(is_kept).tolist(), law.hbar_at(node.visits)
    costs = -negative_gradient(
        edges.visits, edges.prior, edges.q, law.kappa, law.value_weight, node.visits
    )
    free_energy = pruning_free_energy(costs, kept, hbar)  # says so where nothing is kept
    measured, error = measure_kept_weight(costs, kept, hbar, num_samples, seed)
    node.tree.drop(node, edges.index[~is_kept])
    dropped = tuple(edges.action[~is_kept].tolist())
    return Pruning(
        line, node.tree.simulations, dropped, len(kept), hbar, free_energy,
        pruning_term(len(dropped), hbar), kept_weight(costs, kept, hbar), measured, error,
    )  # fmt: skip


def _observe(
    law: _Law, line: tuple[int, ...], node: Node, prunings: Sequence[Pruning]
) -> NodeStudy:
    """A node in the terms of the principle."""
    edges, hbar = _Edges.of(node), law.hbar_at(node.visits)
    n, p, total = edges.visits, edges.prior, node.visits
    names = ("share", "classical", "squares", "q", "prior", "exploration", "bonus", "validity")
    fields: list[Any] = [("action", np.int64), ("visits", np.int64)]
    table = np.zeros(len(n), fields + [(name, float) for name in names])
    table["action"], table["visits"], table["share"] = edges.action, n, n / n.sum()
    table["q"], table["prior"] = edges.q, p
    table["classical"] = table["squares"] = np.nan
    if law.kappa > 0 and np.any(p > 0):
        table["classical"] = classical_shares(p, edges.q, law.kappa, law.value_weight)
        table["squares"] = classical_shares(p)
    table["exploration"] = law.kappa * p * np.sqrt(total / n)
    table["bonus"] = one_loop_bonus(n, p, law.kappa, hbar, mode=law.mode, parent_visits=total)
    table["validity"] = validities(n, p, law.kappa, hbar, total)
    bends = curvatures(n, p, law.kappa, total)
    if law.mode == "saddle":
        bends = np.where(p > 0, law.kappa / (2.0 * n), 0.0)
    mine = [each for each in prunings if each.line == line]
    num_pruned = sum(len(each.actions) for each in mine)
    return NodeStudy(
        line, node.to_play, total, hbar, table,
        action(n, p, edges.q, law.kappa, law.value_weight, total),
        one_loop_term(bends, hbar, law.mode), num_pruned,
        sum(each.free_energy for each in mine), sum(each.special_case for each in mine),
    )  # fmt: skip


def _node_json(game: Game, state: State, node: NodeStudy) -> dict[str, Any]:
    rows = [
        {name: _plain(row[name].item()) for name in node.edges.dtype.names or ()}
        for row in node.edges
    ]
    return {
        "line": list(node.line), "shown": studypage.shown_line(game, state, node.line),
        "to_play": node.to_play, "visits": node.visits, "hbar": node.hbar, "action": node.action,
        "one_loop": node.one_loop, "effective_action": node.effective_action,
        "num_pruned": node.num_pruned, "free_energy": node.free_energy,
        "special_case": node.special_case, "penalty": node.penalty, "edges": rows,
    }  # fmt: skip


def _plain(number: Any) -> Any:
    """The number; None where JSON has none for it."""
    return number if math.isfinite(number) else None
