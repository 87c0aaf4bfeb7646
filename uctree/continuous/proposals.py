"""Proposals: how a search finds actions that are vectors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from uctree.continuous.backward import generators
from uctree.engine.compile import adapt
from uctree.errors import BrokenGame
from uctree.game import (
    Game,
    random_normal,
    random_unit,
)  # fmt: skip
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Search
from uctree.kernels.records import NONE
from uctree.kernels.rules import draw_action, find_bounds, project
from uctree.kernels.scoring import edge_value, incumbent

proposed = UNBOUND  # the user's function, bound when a search is composed
GENERATORS = UNBOUND  # of the additive recurrence, one per coordinate

# Indices of a proposal's parameters.
SCALE, DECAY, EXPLORE, MIN_DISTANCE = range(4)

# --- kinds of proposal ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """How a search finds actions that are vectors: a kernel and its parameters."""

    name: str
    propose: Callable[..., int]
    parameters: tuple[float, ...] = ()
    function: Callable[..., None] | None = None  # the user's
    needs_box: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the compiled kernel of a proposal."""
        return self.propose, self.function

    def bindings(self, game: Game) -> dict[str, Any]:
        """The bindings of the kernels of this module, by name."""
        bound: dict[str, Any] = {"propose": self.propose, "GENERATORS": generators(game.dim)}
        if self.function is not None:
            bound["proposed"] = self.function
        return bound


def uniform() -> Proposal:
    """Uniform in the box or on the sphere, or drawn by the game's `random_action`."""
    return Proposal("uniform", propose_drawn)


def gaussian(scale: float = 0.25, decay: float = 0.5, explore: float = 0.25) -> Proposal:
    """Normally distributed around the best action of the node so far, ever closer.

    Args:
        scale: the initial standard deviation, as a share of the box.
        decay: the deviation falls with the number of edges n as n to the power of minus `decay`.
        explore: the share of proposals that are drawn as in `uniform`.
    """
    for name, number, most in (("scale", scale, math.inf), ("decay", decay, math.inf),
                               ("explore", explore, 1.0)):  # fmt: skip
        if not 0 <= number <= most:
            raise ValueError(f"{name} must be from 0 to {most}; got {number}")
    return Proposal("gaussian", propose_gaussian, (scale, decay, explore))


def quadratic(
    scale: float = 0.25, decay: float = 0.5, explore: float = 0.2, min_distance: float = 0.01
) -> Proposal:
    """At the peak of a parabola that is fitted around the best action so far.

    The parabola is fitted to the values of the node's edges along the direction in which values
    rise most; edges near the best one have more weight. Edges with few visits, whose values are
    still unreliable, do not count. Without enough edges nearby `gaussian` draws the action.

    Args:
        scale, decay, explore: as in `gaussian`; the weights have the same standard deviation.
        min_distance: if the peak is closer to an edge than this share of the standard deviation,
            `gaussian` draws the action as well.
    """
    given = gaussian(scale, decay, explore)
    if not 0 <= min_distance <= 1:
        raise ValueError(f"min_distance must be from 0 to 1; got {min_distance}")
    return Proposal("quadratic", propose_at_peak, (*given.parameters, min_distance))


def low_discrepancy() -> Proposal:
    """A sequence that fills the box evenly: an additive recurrence [Eq. 62]."""
    return Proposal("low_discrepancy", propose_evenly, needs_box=True)


_PROPOSAL_ARGUMENTS = ("state", "action", "low", "high", "count", "rng", "data")


@lru_cache(maxsize=64)
def compiled(function: Callable[..., None]) -> Proposal:
    """A plain function that proposes actions, compiled into the search.

    It takes `state` and `action`, which it writes to, and by name any of `low` and `high` (the
    corners of the box), `count` (how many edges the node has), `rng` (for `uctree.random_unit`) and
    `data`. Its result is projected into the box or onto the sphere.
    """
    names = tuple(inspect.signature(function).parameters)
    unknown = [name for name in names if name not in _PROPOSAL_ARGUMENTS]
    if names[:2] != ("state", "action") or unknown:
        raise BrokenGame(
            "a proposal takes state, action and then any of low, high, count, rng, data; "
            f"{function.__name__} takes {', '.join(names)}"
        )
    adapted = adapt(function, _PROPOSAL_ARGUMENTS, names)
    return Proposal(function.__name__, propose_by_function, function=adapted)


def as_proposal(given: Any) -> Proposal:
    """The proposal for a value of `proposal=`."""
    if given is None:
        return uniform()
    if isinstance(given, Proposal):
        return given
    if not callable(given):
        raise TypeError(
            "proposal must come from uctree.continuous, for instance continuous.gaussian(), or be "
            f"a function of state and action; got {given!r}"
        )
    return compiled(given)


# --- kernels: proposals --------------------------------------------------------------------------
# Each writes a vector to the first row of `actions` and returns 0, or -1 if there is none.


def propose_nothing(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Replaces a proposal if actions are numbers."""
    return 0


def propose_drawn(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Write an action drawn as in a playout."""
    rng, data = search.rng, search.data
    return np.int64(draw_action(state, actions, rng, data))


def propose_evenly(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Write the next point of the additive recurrence [Eq. 62]."""
    edges, data = search.edges, search.data
    dim = find_bounds(state, actions, data)
    count = 1 + edges[node].num_edges
    for j in range(dim):
        share = count * GENERATORS[j]
        share -= math.floor(share)
        actions[0, j] = actions[1, j] + (actions[2, j] - actions[1, j]) * share
    return min(0, dim)


def propose_gaussian(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Write a random vector around the mover's best edge so far."""
    edges, rng, data = search.edges, search.rng, search.data
    best = incumbent(search, node, player)
    if best == NONE or random_unit(rng) < parameters[EXPLORE]:
        return np.int64(draw_action(state, actions, rng, data))
    dim = find_bounds(state, actions, data)
    scale = parameters[SCALE] * float(edges[node].num_edges) ** -parameters[DECAY]
    for j in range(dim):
        spread = scale * (actions[2, j] - actions[1, j])
        actions[0, j] = edges[best].vector[j] + spread * random_normal(rng)
    return project(actions, dim)


def propose_at_peak(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Write the peak of a parabola around the best edge so far, if there are enough edges."""
    edges, rng, data = search.edges, search.rng, search.data
    best = mature_incumbent(search, node, player)
    if best == NONE or edges[node].num_edges < 4 or random_unit(rng) < parameters[EXPLORE]:
        return np.int64(draw_action(state, actions, rng, data))
    dim = find_bounds(state, actions, data)
    scale = parameters[SCALE] * float(edges[node].num_edges) ** -parameters[DECAY]
    if move_to_peak(search, node, player, best, dim, scale, actions):
        status = project(actions, dim)
        if status < 0 or is_new_place(edges, node, dim, parameters[MIN_DISTANCE] * scale, actions):
            return status
    for j in range(dim):
        width = scale * (actions[2, j] - actions[1, j])
        actions[0, j] = edges[best].vector[j] + width * random_normal(rng)
    return project(actions, dim)


def is_new_place(edges: np.ndarray, node: int, dim: int, least: float, actions: np.ndarray) -> bool:
    """Whether no edge of a node is closer to the vector than a share `least` of the box."""
    first = np.int64(edges[node].first)
    for edge in range(first, first + edges[node].num_edges):
        distance = 0.0
        for j in range(dim):
            width = max(actions[2, j] - actions[1, j], 1e-300)
            distance = max(distance, abs(edges[edge].vector[j] - actions[0, j]) / width)
        if distance < least:
            return False
    return True


def is_mature(edges: np.ndarray, node: int, edge: int) -> bool:
    """Whether an edge has at least half of the mean visits of its node's edges."""
    return 2 * edges[edge].visits * edges[node].num_edges >= edges[node].visits


def mature_incumbent(search: Search, node: int, player: int) -> int:
    """The mature edge with the highest value for its mover; NONE if there is none."""
    edges = search.edges
    first, best, best_value = np.int64(edges[node].first), NONE, -math.inf
    for edge in range(first, first + edges[node].num_edges):
        if edges[edge].visits > 0 and is_mature(edges, node, edge):
            value = edge_value(search, np.int64(edge), player)
            if value > best_value:
                best, best_value = np.int64(edge), value
    return best


def weight_of(
    edges: np.ndarray, node: int, edge: int, best: int, dim: int, scale: float, actions: np.ndarray
) -> float:
    """The weight of an edge in a fit around the best one: a bell curve over the box."""
    if edges[edge].visits == 0 or not is_mature(edges, node, edge):
        return 0.0
    square = 0.0
    for j in range(dim):
        width = actions[2, j] - actions[1, j]
        if width > 0.0:
            share = (edges[edge].vector[j] - edges[best].vector[j]) / (width * scale)
            square += share * share
    return math.exp(-0.5 * square / dim)


def move_to_peak(
    search: Search, node: int, player: int, best: int, dim: int, scale: float, actions: np.ndarray
) -> bool:
    """Write the peak of a parabola along the slope around the best edge; False if there is none.

    The slope is the covariance of vectors and values. The parabola is a weighted least-squares fit
    over the distance t along the slope.
    """
    edges = search.edges
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    total = mean = square_sum = 0.0
    for edge in range(first, first + count):
        weight = weight_of(edges, node, edge, best, dim, scale, actions)
        total += weight
        square_sum += weight * weight
        mean += weight * edge_value(search, np.int64(edge), player) if weight > 0.0 else 0.0
    if total * total < 3.5 * square_sum:
        return False  # too few edges have weight
    mean /= total
    for j in range(dim):
        centre = 0.0
        for edge in range(first, first + count):
            weight = weight_of(edges, node, edge, best, dim, scale, actions)
            centre += weight * edges[edge].vector[j]
        centre /= total
        actions[0, j] = 0.0
        for edge in range(first, first + count):
            weight = weight_of(edges, node, edge, best, dim, scale, actions)
            if weight > 0.0:
                value = edge_value(search, np.int64(edge), player)
                actions[0, j] += weight * (value - mean) * (edges[edge].vector[j] - centre)
    length = 0.0
    for j in range(dim):
        length += actions[0, j] * actions[0, j]
    length = math.sqrt(length)
    if not length > 0.0:
        return False
    for j in range(dim):
        actions[0, j] /= length
    t = peak_along(search, node, player, best, dim, scale, actions)
    if math.isnan(t):
        return False
    for j in range(dim):
        actions[0, j] = edges[best].vector[j] + t * actions[0, j]
    return True


def peak_along(
    search: Search, node: int, player: int, best: int, dim: int, scale: float, actions: np.ndarray
) -> float:
    """The distance to a fitted parabola's peak along a direction, within two scales; or NaN."""
    edges = search.edges
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    origin = edge_value(search, best, player)
    s0 = s1 = s2 = s3 = s4 = r0 = r1 = r2 = 0.0
    reach = 0.0
    for j in range(dim):
        reach += abs(actions[0, j]) * (actions[2, j] - actions[1, j])
    unit = max(reach * scale, 1e-300)  # so that sums of powers have similar sizes
    for edge in range(first, first + count):
        w = weight_of(edges, node, edge, best, dim, scale, actions)
        if w > 0.0:
            t = 0.0
            for j in range(dim):
                t += actions[0, j] * (edges[edge].vector[j] - edges[best].vector[j])
            t /= unit
            f = edge_value(search, np.int64(edge), player) - origin
            s0 += w
            s1 += w * t
            s2 += w * t * t
            s3 += w * t * t * t
            s4 += w * t * t * t * t
            r0 += w * f
            r1 += w * f * t
            r2 += w * f * t * t
    # Cramer's rule for f = a + b t + c t².
    bottom = s0 * (s2 * s4 - s3 * s3) - s1 * (s1 * s4 - s2 * s3) + s2 * (s1 * s3 - s2 * s2)
    if not abs(bottom) > 1e-12 * s0 * s2 * s4:
        return math.nan
    b = s0 * (r1 * s4 - r2 * s3) - r0 * (s1 * s4 - s2 * s3) + s2 * (s1 * r2 - s2 * r1)
    c = s0 * (s2 * r2 - s3 * r1) - s1 * (s1 * r2 - s2 * r1) + r0 * (s1 * s3 - s2 * s2)
    b, c = b / bottom, c / bottom
    if not c < 0.0:
        return math.copysign(2.0 * unit, b) if math.isfinite(b) else math.nan
    return min(2.0, max(-2.0, -b / (2.0 * c))) * unit


def propose_by_function(
    search: Search, node: int, player: int, state: Any, actions: np.ndarray, parameters: np.ndarray
) -> int:
    """Write the vector of the user's function."""
    edges, rng, data = search.edges, search.rng, search.data
    dim = find_bounds(state, actions, data)
    count = np.int64(edges[node].num_edges)
    proposed(state, actions[0], actions[1], actions[2], count, rng, data)
    return project(actions, dim)
