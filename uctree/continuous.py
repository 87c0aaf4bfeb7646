"""Actions that are vectors: where a search looks for them, and solvers that need no tree."""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from uctree import evaluators
from uctree import refine as refinements
from uctree._compile import UNBOUND, Kernel, adapt, compile_kernel, interpreted
from uctree.backward import BackwardSolution, generators, solve_backward
from uctree.errors import BrokenGame
from uctree.evaluators import draw_action, find_bounds, project
from uctree.game import (
    Box,
    Game,
    State,
    StateViews,
    make_rng,
    random_normal,
    random_unit,
)  # fmt: skip
from uctree.refine import Refinement, fitted, stages_of
from uctree.scoring import edge_value, incumbent
from uctree.tree import NONE

__all__ = [
    "BackwardSolution", "LineSolution", "Proposal", "compiled", "gaussian", "generators",
    "gradient_step", "local_maxn", "low_discrepancy", "own_gradient_ascent", "quadratic",
    "solve_backward", "uniform",
]  # fmt: skip

proposed = UNBOUND  # the user's function, bound when a search is composed
GENERATORS = UNBOUND  # of the additive recurrence, one per coordinate

# --- kinds of proposal ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """Where a search looks for actions that are vectors: a kernel and its numbers."""

    name: str
    propose: Callable[..., int]
    parameters: tuple[float, ...] = ()
    function: Callable[..., None] | None = None  # the user's
    needs_box: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells apart kernels that are bound to a proposal."""
        return self.propose, self.function

    def bindings(self, game: Game) -> dict[str, Any]:
        """What the kernels of this module are bound to."""
        bound: dict[str, Any] = {"propose": self.propose, "GENERATORS": generators(game.dim)}
        if self.function is not None:
            bound["proposed"] = self.function
        return bound


def uniform() -> Proposal:
    """Alike everywhere in the box or on the sphere, or as the game's `random_action` draws."""
    return Proposal("uniform", propose_drawn)


def gaussian(scale: float = 0.25, decay: float = 0.5, explore: float = 0.25) -> Proposal:
    """Around the best action of the node so far, ever closer.

    Args:
        scale: the standard deviation at first, as a share of the box.
        decay: it falls with the number of edges n as n to the power of minus `decay`.
        explore: the share of proposals that are drawn as in `uniform`.
    """
    for name, number, most in (("scale", scale, math.inf), ("decay", decay, math.inf),
                               ("explore", explore, 1.0)):  # fmt: skip
        if not 0 <= number <= most:
            raise ValueError(f"{name} must be from 0 to {most}; got {number}")
    return Proposal("gaussian", propose_gaussian, (scale, decay, explore))


def quadratic(
    scale: float = 0.25, decay: float = 0.5, explore: float = 0.2, apart: float = 0.01
) -> Proposal:
    """Where a parabola through what was seen around the best action so far has its peak.

    The parabola is fitted to the values of the node's edges, those near the best one weighed more,
    along the direction in which values rise most. Edges of few visits, whose subtrees tell little
    yet, do not count. Without enough edges nearby the action is drawn as in `gaussian`.

    Args:
        scale, decay, explore: as in `gaussian`; the standard deviation is that of the weights, too.
        apart: a peak closer to an edge than this share of the standard deviation is no news; then
            the action is drawn as in `gaussian`, too.
    """
    given = gaussian(scale, decay, explore)
    if not 0 <= apart <= 1:
        raise ValueError(f"apart must be from 0 to 1; got {apart}")
    return Proposal("quadratic", propose_at_peak, (*given.parameters, apart))


def low_discrepancy() -> Proposal:
    """One after the other so that they fill the box evenly: an additive recurrence [Eq. 62]."""
    return Proposal("low_discrepancy", propose_evenly, needs_box=True)


_PROPOSAL_ARGUMENTS = ("state", "action", "low", "high", "count", "rng", "data")


@lru_cache(maxsize=64)
def compiled(function: Callable[..., None]) -> Proposal:
    """A plain function that writes where to look, compiled into the search.

    It takes `state` and `action`, which it writes to, and by name any of `low` and `high` (the
    corners of the box), `count` (how many edges the node has), `rng` (for `uctree.random_unit`) and
    `data`. What it writes is moved into the box or onto the sphere.
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
    """A proposal from what was given as `proposal=`."""
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
# Each writes a vector to the first row of `actions` and returns 0, or -1 where there is none.


def propose_nothing(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Stands for a proposal where actions are numbers."""
    return 0


def propose_drawn(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """As a playout draws."""
    return np.int64(draw_action(state, actions, rng, data))


def propose_evenly(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """The next point of the additive recurrence [Eq. 62]."""
    dim = find_bounds(state, actions, data)
    count = 1 + edges[node].num_edges
    for j in range(dim):
        share = count * GENERATORS[j]
        share -= math.floor(share)
        actions[0, j] = actions[1, j] + (actions[2, j] - actions[1, j]) * share
    return min(0, dim)


def propose_gaussian(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Around the best edge so far, for its mover."""
    best = incumbent(tree, edges, node, player)
    if best == NONE or random_unit(rng) < parameters[2]:
        return np.int64(draw_action(state, actions, rng, data))
    dim = find_bounds(state, actions, data)
    scale = parameters[0] * float(edges[node].num_edges) ** -parameters[1]
    for j in range(dim):
        spread = scale * (actions[2, j] - actions[1, j])
        actions[0, j] = edges[best].vector[j] + spread * random_normal(rng)
    return project(actions, dim)


def propose_at_peak(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """At the peak of a parabola around the best edge so far, where there are enough to fit one."""
    best = mature_incumbent(tree, edges, node, player)
    if best == NONE or edges[node].num_edges < 4 or random_unit(rng) < parameters[2]:
        return np.int64(draw_action(state, actions, rng, data))
    dim = find_bounds(state, actions, data)
    scale = parameters[0] * float(edges[node].num_edges) ** -parameters[1]
    if move_to_peak(tree, edges, node, player, best, dim, scale, actions):
        status = project(actions, dim)
        if status < 0 or is_new_place(edges, node, dim, parameters[3] * scale, actions):
            return status
    for j in range(dim):
        width = scale * (actions[2, j] - actions[1, j])
        actions[0, j] = edges[best].vector[j] + width * random_normal(rng)
    return project(actions, dim)


def is_new_place(edges: np.ndarray, node: int, dim: int, least: float, actions: np.ndarray) -> bool:
    """Whether no edge of a node is closer to the vector than a share `least` of the box."""
    first = np.int64(edges[node].first)
    for edge in range(first, first + edges[node].num_edges):
        apart = 0.0
        for j in range(dim):
            width = max(actions[2, j] - actions[1, j], 1e-300)
            apart = max(apart, abs(edges[edge].vector[j] - actions[0, j]) / width)
        if apart < least:
            return False
    return True


def is_mature(edges: np.ndarray, node: int, edge: int) -> bool:
    """Whether an edge has half of the visits that the edges of its node have on average."""
    return 2 * edges[edge].visits * edges[node].num_edges >= edges[node].visits


def mature_incumbent(tree: Any, edges: np.ndarray, node: int, player: int) -> int:
    """The edge worth most to its mover of those that are not new; NONE where there is none."""
    first, best, best_value = np.int64(edges[node].first), NONE, -math.inf
    for edge in range(first, first + edges[node].num_edges):
        if edges[edge].visits > 0 and is_mature(edges, node, edge):
            value = edge_value(tree, edges, np.int64(edge), player)
            if value > best_value:
                best, best_value = np.int64(edge), value
    return best


def weight_of(
    edges: np.ndarray, node: int, edge: int, best: int, dim: int, scale: float, actions: np.ndarray
) -> float:
    """How much an edge counts for a fit around the best one: a bell curve over the box."""
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
    tree: Any, edges: np.ndarray, node: int, player: int, best: int, dim: int, scale: float,
    actions: np.ndarray,
) -> bool:  # fmt: skip
    """Write where a parabola along the slope around the best edge peaks; False where it has none.

    The slope is the covariance of vectors and values, and the parabola a weighted least-squares
    fit, with t the distance along the slope.
    """
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    total = mean = square_sum = 0.0
    for edge in range(first, first + count):
        weight = weight_of(edges, node, edge, best, dim, scale, actions)
        total += weight
        square_sum += weight * weight
        mean += weight * edge_value(tree, edges, np.int64(edge), player) if weight > 0.0 else 0.0
    if total * total < 3.5 * square_sum:
        return False  # less than so many edges count
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
                value = edge_value(tree, edges, np.int64(edge), player)
                actions[0, j] += weight * (value - mean) * (edges[edge].vector[j] - centre)
    length = 0.0
    for j in range(dim):
        length += actions[0, j] * actions[0, j]
    length = math.sqrt(length)
    if not length > 0.0:
        return False
    for j in range(dim):
        actions[0, j] /= length
    t = peak_along(tree, edges, node, player, best, dim, scale, actions)
    if math.isnan(t):
        return False
    for j in range(dim):
        actions[0, j] = edges[best].vector[j] + t * actions[0, j]
    return True


def peak_along(
    tree: Any, edges: np.ndarray, node: int, player: int, best: int, dim: int, scale: float,
    actions: np.ndarray,
) -> float:  # fmt: skip
    """How far along a direction a fitted parabola peaks, within two scales; NaN for nowhere."""
    first, count = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    origin = edge_value(tree, edges, best, player)
    s0 = s1 = s2 = s3 = s4 = r0 = r1 = r2 = 0.0
    reach = 0.0
    for j in range(dim):
        reach += abs(actions[0, j]) * (actions[2, j] - actions[1, j])
    unit = max(reach * scale, 1e-300)  # so that sums of powers are of one size
    for edge in range(first, first + count):
        w = weight_of(edges, node, edge, best, dim, scale, actions)
        if w > 0.0:
            t = 0.0
            for j in range(dim):
                t += actions[0, j] * (edges[edge].vector[j] - edges[best].vector[j])
            t /= unit
            f = edge_value(tree, edges, np.int64(edge), player) - origin
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
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    rng: np.ndarray, parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """What the user's function writes."""
    dim = find_bounds(state, actions, data)
    count = np.int64(edges[node].num_edges)
    proposed(state, actions[0], actions[1], actions[2], count, rng, data)
    return project(actions, dim)


# --- solvers without a tree ----------------------------------------------------------------------


def gradient_step(
    vector: np.ndarray, gradient: np.ndarray, rate: float, clip: float | None, project: Any
) -> np.ndarray:
    """A vector one step uphill: the gradient, cut to a length of `clip`, times `rate`.

        x ← P(x + η · g · min(1, clip / |g|))                                          [Eq. 64]

    P moves a vector to the nearest action.

    >>> gradient_step(np.array([4.0]), np.array([30.0]), 0.5, 1.0, lambda x: np.clip(x, -5, 5))
    array([4.5])
    """
    length = float(np.linalg.norm(gradient))
    if clip is not None and length > clip:
        gradient = gradient * (clip / length)
    return np.asarray(project(vector + rate * gradient))


@dataclass(frozen=True)
class LineSolution:
    """Where a solver without a tree came to."""

    actions: list[np.ndarray]
    returns: np.ndarray  # [num_players], from the state on
    evaluations: int  # payoffs and gradients computed


def own_gradient_ascent(
    game: Game,
    start: Any = None,
    *,
    state: State | None = None,
    rate: float = 0.01,
    clip: float | None = None,
    num_steps: int = 1000,
    gradient: Callable[..., None] | None = None,
    seed: int = 0,
) -> LineSolution:
    """Every stage climbs its mover's payoff, the others held for given, all at once [Eq. 64].

    Where it stops nobody gains by a small change that the others do not react to. With players who
    move in turns that is not where everyone foresees the replies.

    Args:
        start: one action per stage; drawn by `seed` without them.
        state: where the line begins; the start of the game without one.
        rate, clip, gradient: as in `refine.gradient`.
    """
    kind = refinements.gradient(rate, clip=clip, gradient=gradient)
    return improved_line(game, kind, start, state=state, num_times=num_steps, seed=seed)


def local_maxn(
    game: Game,
    start: Any = None,
    *,
    state: State | None = None,
    step: float = 0.05,
    decay: float = 0.99,
    axes: bool = False,
    peaks: bool = False,
    uphill: float = 0.0,
    num_steps: int = 200,
    seed: int = 0,
) -> LineSolution:
    """Max^n among steps both ways at every stage, again and again by steps that grow shorter.

    Args:
        decay: how much of a step's length is left from one time to the next.
        step, axes, peaks, uphill: as in `refine.local_minimax`.
        start, state, seed: as in `own_gradient_ascent`.
    """
    kind = refinements.local_minimax(
        step, axes=axes, peaks=peaks, uphill=uphill, levels=stages_of(game)
    )
    return improved_line(
        game, kind, start, state=state, num_times=num_steps, decay=decay, seed=seed
    )


_improvers: weakref.WeakKeyDictionary[Game, dict[Any, Kernel]] = weakref.WeakKeyDictionary()


def improved_line(
    game: Game,
    kind: Refinement,
    start: Any = None,
    *,
    state: State | None = None,
    num_times: int,
    decay: float = 1.0,
    seed: int = 0,
) -> LineSolution:
    """A line that a refinement improved so many times, without a tree."""
    kind = fitted(kind, game)
    begin = game.start() if state is None else game.copy(state)
    line = _drawn_line(game, begin, seed) if start is None else game.replay(start, begin).actions
    work = np.zeros(1, _line_fields(game, kind))
    work["actions"] = evaluators.action_room(game)
    work["refine"][0, : len(kind.parameters)] = kind.parameters
    for row, action in zip(work["line"][0], line, strict=False):
        row[: len(action)] = action
    states = np.zeros(3, game.dtype)
    states[0] = begin
    arguments: list[Any] = [work, states, make_rng(seed, stream=1), num_times, decay, game.data]
    kernel = _improver(game, kind, tuple(arguments))
    if kernel.interpreted:
        arguments[:2] = work.view(np.recarray), StateViews(states)
    with np.errstate(over="ignore"):
        status = int(kernel.call(*arguments))
    if status != evaluators.DONE:
        raise BrokenGame(
            f"{game.name}: a line of vectors does not come to an end within max_plies="
            f"{game.max_plies}, or bounds gives no box; uctree.check(game) says more"
        )
    actions = _fitting_actions(game, begin, work["line"][0])
    returns = game.replay(actions, begin).returns
    return LineSolution(actions, returns, int(work["evaluations"][0]))


def _improver(game: Game, kind: Refinement, arguments: tuple[Any, ...]) -> Kernel:
    known = _improvers.setdefault(game, {})
    key = kind.key, work_shape(arguments[0]), interpreted()
    if key not in known:
        bound = evaluators.bindings(game, evaluators.playout()) | kind.bindings()
        label = f"{game.name}: {kind.name}"
        known[key] = compile_kernel(refinements.improve_line, bound, arguments, label=label)
    return known[key]


def work_shape(work: np.ndarray) -> str:
    """What tells workspaces of different fields apart."""
    return str(work.dtype)


def _line_fields(game: Game, kind: Refinement) -> np.dtype:
    room = evaluators.action_room(game)
    reward = ("reward", float, (game.num_players,))
    return np.dtype([("actions", room.dtype, room.shape), reward, *kind.fields(game)])


def _drawn_line(game: Game, state: State, seed: int) -> list[np.ndarray]:
    """The actions of a random episode from a state on."""
    rng, actions = make_rng(seed), []
    while not game.is_over(state):
        actions.append(game.random_vector(state, rng))
        state, _ = game.step(state, actions[-1])
    return actions


def _fitting_actions(game: Game, state: State, line: np.ndarray) -> list[np.ndarray]:
    """The vectors of a line, each with as many coordinates as count where it stands."""
    actions = []
    for row in line:
        if game.is_over(state):
            break
        low, high = game.box(state)
        action = row[: len(low)].copy()
        if isinstance(game.action_space, Box):
            action = np.clip(action, low, high)
        actions.append(action)
        state, _ = game.step(state, action)
    return actions
