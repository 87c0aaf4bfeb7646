"""The final choice of an action: formulas, and the choices made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.game import Game, make_rng, random_unit

Z = 5.0  # standard errors from the mean to a confidence bound
LEAST_SHARE = 0.15  # of the most visits: edges with fewer are not chosen by their lower bound

# --- formulas ------------------------------------------------------------------------------------


def robust_choice(visits: np.ndarray, q: np.ndarray) -> int:
    """The most visited edge; of equals the one with the larger q, then the first; -1 for none.

    >>> robust_choice(np.array([4, 7, 7]), np.array([0.9, 0.1, 0.2]))
    2
    """
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    most = np.flatnonzero(visits == np.max(visits))
    return int(most[np.argmax(np.asarray(q)[most])])


def max_choice(visits: np.ndarray, q: np.ndarray) -> int:
    """The edge with the largest q among those with visits, the first of equals; -1 for none.

    >>> max_choice(np.array([4, 7, 0]), np.array([0.3, 0.1, 0.9]))
    0
    """
    visits = np.asarray(visits)
    if not (visits > 0).any():
        return -1
    return int(np.argmax(np.where(visits > 0, q, -np.inf)))


def valued_choice(visits: np.ndarray, q: np.ndarray, least_share: float = 0.1) -> int:
    """The edge with the largest q among those with enough visits, the first of equals; -1 for none.

    >>> valued_choice(np.array([40, 50, 1]), np.array([0.3, 0.1, 0.9]))
    0
    """
    visits = np.asarray(visits)
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    enough = (visits > 0) & (visits >= least_share * np.max(visits))
    return int(np.argmax(np.where(enough, q, -np.inf)))


def robust_max(visits: np.ndarray, q: np.ndarray) -> int:
    """The edge that has both the most visits and the largest q; -1 if no edge has both.

    >>> robust_max(np.array([4, 7]), np.array([0.1, 0.3]))
    1
    >>> robust_max(np.array([4, 7]), np.array([0.3, 0.1]))
    -1
    """
    best = robust_choice(visits, q)
    return best if best == max_choice(visits, q) else -1


def temperature_policy(visits: np.ndarray, temperature: float) -> np.ndarray:
    """A distribution over edges from their visits.

        π(a) = N(a)^(1/τ) / Σ N(b)^(1/τ), over edges with visits                        [Eq. 9]

    At 0 all goes to the most visited edge (the first of equals); at infinity every edge with visits
    gets the same. Without any visits the distribution is uniform.

    >>> temperature_policy(np.array([10, 5, 30, 5]), 1.0)
    array([0.2, 0.1, 0.6, 0.1])
    """
    visits = np.asarray(visits, float)
    if not temperature >= 0:
        raise ValueError(f"temperature must be at least 0; got {temperature}")
    policy = np.zeros(len(visits))
    seen = visits > 0
    if not seen.any():
        policy[:] = 1.0 / max(1, len(visits))
    elif temperature == 0:
        policy[np.argmax(visits)] = 1.0
    else:
        logs = np.log(visits[seen])
        weights = np.exp((logs - logs.max()) / temperature)
        policy[seen] = weights / weights.sum()
    return policy


def falling_temperature(
    ply: int, start: float = 1.0, decay: float = 0.98, floor: float = 0.1
) -> float:
    """The temperature at a ply of an episode: max(floor, start · decay^ply) [Eq. 10].

    >>> round(falling_temperature(30), 6)
    0.545484
    """
    return max(floor, start * decay**ply)


def confidence_radius(
    visits: Any, mean: Any, mean_square: Any, half_range: float, z: float = Z
) -> Any:
    """How far the value of an edge may be from its mean: z standard errors [Eq. 11].

    The variance is that of the returns seen, mixed with the largest possible one by a weight that
    falls with the square of the visits, as in KataGo, so that few visits give a wide interval.
    Numbers give a number, arrays over edges an array.

    >>> round(float(confidence_radius(100, 0.42, 0.25, half_range=1.0)), 6)
    0.135647
    """
    visits, mean = np.asarray(visits, float), np.asarray(mean, float)
    weight = np.maximum(1.0, visits)
    extra = weight / weight**3
    square = np.maximum(mean_square, mean * mean + 1e-8)
    square = (square * weight + (square + half_range**2) * extra) / (weight + extra)
    sample_size = (weight + extra) ** 2 / (weight + extra**2)
    radius = z * np.sqrt(np.maximum(0.0, square - mean * mean) / sample_size)
    return np.where(visits > 0, radius, 2.0 * half_range * z)[()]


def lcb_choice(visits: np.ndarray, lcb: np.ndarray, least_share: float = LEAST_SHARE) -> int:
    """The edge with the largest lower bound, among those with enough visits; -1 for none.

        argmax mean(a) - radius(a) over N(a) > 0, N(a) ≥ least_share · max N           [Eq. 35]

    The first of equals. The radius is that of [Eq. 11].

    >>> lcb_choice(np.array([400, 50, 70]), np.array([0.40, 0.53, 0.45]))
    2
    """
    visits = np.asarray(visits)
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    eligible = (visits > 0) & (visits >= least_share * np.max(visits))
    return int(np.argmax(np.where(eligible, lcb, -np.inf)))


def lcb_weights(visits: np.ndarray, lcb: np.ndarray, radius: np.ndarray, best: int) -> np.ndarray:
    """Visits as weights; the weight of the edge with the best lower bound is raised.

        w(best) = max( N(best), ((r(a) + d) / (r(a) + d/5))² · N(a) ),  d = lcb(best) - lcb(a)
                                                                                       [Eq. 36]

    The maximum is over the other edges with lcb(a) ≤ lcb(best); r is their radius.

    >>> lcb_weights(np.array([16, 9]), np.array([0.0, 0.5]), np.array([0.4, 0.1]), best=1)
    array([16.  , 51.84])
    """
    weights = np.asarray(visits, float).copy()
    if best < 0:
        return weights
    for other in range(len(weights)):
        gap = lcb[best] - lcb[other]
        if other != best and gap >= 0:
            bottom = radius[other] + 0.2 * gap
            factor = (radius[other] + gap) / bottom if bottom > 0 else 1.0
            weights[best] = max(weights[best], factor * factor * float(visits[other]))
    return weights


def playable(
    proven: np.ndarray, low: float = -math.inf, high: float = math.inf, solved: bool = False
) -> np.ndarray:
    """Which edges may be played, from their proven values for the player to move; NaN: not proven.

    An edge proven to give the maximum excludes all others. An edge proven to give the minimum, or
    less than another proven edge, is excluded unless no other edge is left.

    Args:
        low, high: the range of the player's payoffs, if it is known.
        solved: whether the value of the whole node is proven.

    >>> playable(np.array([0.0, -1.0, np.nan]), low=-1.0, high=1.0)
    array([ True, False,  True])
    >>> playable(np.array([0.0, 1.0, np.nan]), low=-1.0, high=1.0)
    array([False,  True, False])
    """
    exact = ~np.isnan(proven)
    if not exact.any():
        return ~exact
    best = np.max(proven[exact])
    if solved or best >= high or exact.all():
        return proven == best
    return ~exact | ((proven == best) & (best > low))


# --- how the action is chosen --------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """How the final action of a search is chosen: a name and its parameters."""

    name: str
    parameters: tuple[Any, ...] = ()  # numbers, or None


def temperature(
    start: float = 1.0, decay: float = 0.98, floor: float = 0.1, cutover: int | None = None
) -> Choice:
    """An action drawn by visits at a temperature that falls from ply to ply [Eq. 9, 10].

    The ply is the field `ply` of the state, 0 if it has none. The draw depends only on the seed of
    the search and the ply.

    Args:
        cutover: from this ply on the most visited action is taken.
    """
    for name, value in (("start", start), ("decay", decay), ("floor", floor)):
        if not value >= 0:
            raise ValueError(f"{name} must be at least 0; got {value}")
    if cutover is not None and cutover < 0:
        raise ValueError(f"cutover is a ply, at least 0, or None for never; got {cutover}")
    return Choice("temperature", (start, decay, floor, cutover))


def lcb(z: float = Z, least_share: float = LEAST_SHARE) -> Choice:
    """The action with the largest lower confidence bound [Eq. 35], z standard errors below."""
    if not z >= 0:
        raise ValueError(f"z must be at least 0; got {z}")
    if not 0 <= least_share <= 1:
        raise ValueError(f"least_share must be within 0 and 1; got {least_share}")
    return Choice("lcb", (z, least_share))


def as_choice(given: str | Choice | None, after_gumbel: bool = False) -> Choice:
    """The choice of this name; None gives the most visited action, or that of a Gumbel root.

    >>> as_choice("robust")
    Choice(name='robust', parameters=())
    """
    if given is None:
        given = "gumbel" if after_gumbel else "robust"
    if isinstance(given, str):
        with_defaults: dict[str, Callable[[], Choice]] = {"temperature": temperature, "lcb": lcb}
        given = with_defaults[given]() if given in with_defaults else Choice(given)
    if not isinstance(given, Choice):
        raise TypeError(
            f"choice is one of {', '.join(_CHOOSERS)} or comes from uctree.choice, as "
            f"choice.temperature(); got {given!r}"
        )
    if given.name not in _CHOOSERS:
        raise ValueError(f"choice is one of {', '.join(_CHOOSERS)}; got {given.name!r}")
    if given.name == "gumbel" and not after_gumbel:
        raise ValueError(
            'choice="gumbel" needs a Gumbel root; search with root_selection=selection.gumbel() '
            "or omit choice"
        )
    return given


@dataclass(frozen=True)
class Candidates:
    """The edges of the root that may be played, as the choices read them."""

    visits: np.ndarray  # [num_edges]
    q: np.ndarray  # [num_edges], for the player to move
    ply: int
    seed: int
    lower_bounds: Callable[[float], np.ndarray]  # [num_edges], for a number of standard errors
    gumbel_scores: Callable[[], np.ndarray]  # [num_edges], after a Gumbel search


def choose(choice: Choice, candidates: Candidates) -> int:
    """The index of the candidate to play; the most visited one if the choice has none."""
    best = _CHOOSERS[choice.name](candidates, *choice.parameters)
    return _choose_robust(candidates) if best < 0 else best


# Each returns the index of the candidate to play, -1 for none; the parameters are the choice's.


def _choose_robust(candidates: Candidates) -> int:
    return robust_choice(candidates.visits, candidates.q)


def _choose_max(candidates: Candidates) -> int:
    return max_choice(candidates.visits, candidates.q)


def _choose_robust_max(candidates: Candidates) -> int:
    return robust_max(candidates.visits, candidates.q)


def _choose_lcb(candidates: Candidates, z: float, least_share: float) -> int:
    return lcb_choice(candidates.visits, candidates.lower_bounds(z), least_share)


def _choose_temperature(
    candidates: Candidates, start: float, decay: float, floor: float, cutover: int | None
) -> int:
    ply = candidates.ply
    degree = falling_temperature(ply, start, decay, floor)
    if degree == 0 or (cutover is not None and ply >= cutover):
        return _choose_robust(candidates)
    policy = temperature_policy(candidates.visits, degree)
    with np.errstate(over="ignore"):
        drawn = random_unit(make_rng(candidates.seed, stream=_ACTION_STREAM - ply))
    return min(int(np.searchsorted(np.cumsum(policy), drawn, side="right")), len(policy) - 1)


def _choose_gumbel(candidates: Candidates) -> int:
    visits, scores = candidates.visits, candidates.gumbel_scores()
    return int(np.argmax(np.where(visits == visits.max(), scores, -np.inf)))


_CHOOSERS: dict[str, Callable[..., int]] = {
    "robust": _choose_robust,
    "max": _choose_max,
    "robust_max": _choose_robust_max,
    "lcb": _choose_lcb,
    "temperature": _choose_temperature,
    "gumbel": _choose_gumbel,
}


# Streams of the seed that no search uses: those of searches are not negative.
LINE_STREAM = -2
_ACTION_STREAM = -3  # and below, one per ply


def ply_of(game: Game, state: np.record) -> int:
    """The field `ply` of a state; 0 if it has none."""
    return int(state["ply"]) if "ply" in (game.dtype.names or ()) else 0
