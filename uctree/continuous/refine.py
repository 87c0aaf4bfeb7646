"""Improves the vectors of a path: by steps uphill, or by local max^n.

A line is one vector per stage, from the root to the end of the episode. `improve` writes a better
one. In a search the better line becomes new edges without visits, which the next simulation that
reaches them takes; existing edges never change their vectors, so statistics stay valid. The
same kernels, without a tree, are the solvers `own_gradient_ascent` and `local_maxn` of
`uctree.continuous`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uctree.continuous.backward import vertex
from uctree.engine.compile import adapt
from uctree.errors import BrokenGame
from uctree.game import OVER, Game, random_below, random_normal, random_unit
from uctree.kernels.binding import UNBOUND
from uctree.kernels.rules import DIM, DISCOUNT, NUM_PLAYERS, find_bounds, project, step
from uctree.kernels.status import BAD_ACTION, DONE

FAR = 30.0  # steps from the middle up to which a peak counts
END = 1e9  # steps that leave every box
MOST_LINES = 100_000  # that one improvement by max^n may play

# Bound when a search or a solver is composed.
improve = own_gradient = find_slopes = UNBOUND
AXES = PEAKS = UNBOUND

# Indices of a refinement's parameters.
RATE, CLIP, STEPS, DECAY, LEVELS, FREQUENCY, LEAPS, EXPLORE, UPHILL = range(9)


@dataclass(frozen=True)
class Refinement:
    """How vectors are improved: a kernel and its parameters."""

    name: str
    improve: Callable[..., int]
    parameters: tuple[float, ...]
    frequency: float = 1.0  # improvements per simulation
    whole: bool = True  # also paths that left the tree before the end
    function: Callable[..., None] | None = None  # the user's gradient
    num_choices: int = 1  # candidates per stage
    axes: bool = False
    peaks: bool = False
    best: bool = False  # improve the best line of the tree, not the path of a simulation

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the compiled kernel of a refinement, and its fields of a workspace."""
        return (
            self.improve,
            self.function,
            self.num_choices,
            self.axes,
            self.peaks,
            self.whole,
            self.best,
            self.times,
            self.parameters[LEVELS],
        )

    @property
    def times(self) -> int:
        """The largest number of improvements after one simulation."""
        return max(1, math.ceil(self.frequency))

    def cost(self, game: Game) -> int:
        """How many payoffs and gradients one improvement computes; a mean if 0 < uphill < 1."""
        stages, dim = stages_of(game), game.dim
        if self.improve is climb_slopes:
            slopes = 1 if self.function is not None else 2 * stages * dim
            return 1 + int(self.parameters[STEPS]) * (slopes + 1)
        choices = fitted(self, game).num_choices
        levels = min(stages, int(self.parameters[LEVELS]))
        slopes = 2 * dim * sum(choices**level for level in range(levels)) if dim > 1 else 0
        return 1 + choices**levels + math.ceil(self.parameters[UPHILL] * slopes)

    def bindings(self) -> dict[str, Any]:
        """The bindings of the kernels of this module, by name."""
        kernel = slope_by_differences if self.function is None else slope_by_function
        return {
            "improve": self.improve,
            "own_gradient": _no_gradient if self.function is None else self.function,
            "find_slopes": kernel,
            "AXES": self.axes,
            "PEAKS": self.peaks,
        }

    def fields(self, game: Game) -> list[Any]:
        """The fields of a workspace that this refinement needs."""
        stages, dim, players = stages_of(game), game.dim, game.num_players
        levels = min(stages, int(self.parameters[LEVELS]))
        wide = self.num_choices
        return [
            ("refine", float, (9,)),
            ("debt", float),
            ("evaluations", np.int64),  # payoffs computed
            ("line", float, (stages, dim)),
            ("better", float, (stages, dim)),
            ("replies", float, (stages, dim)),  # the current line, with the best later actions
            ("slopes", float, (stages, dim)),
            ("scales", float, (stages,)),  # of steps
            ("movers", np.int64, (stages,)),
            ("length", np.int64),
            ("width", float, (stages, dim)),  # of the box of each stage
            ("gains", float, (players,)),  # the returns of a line
            ("directions", float, (stages, dim)),
            ("uphill", float, (dim,)),
            ("digits", np.int64, (stages,)),
            ("payoffs", float, (levels, wide, players)),
            ("lines", float, (levels, wide, stages, dim)),
        ]


def gradient(
    rate: float = 0.01,
    *,
    clip: float | None = 1.0,
    num_steps: int = 1,
    gradient: Callable[..., None] | None = None,
    frequency: float = 0.1,
    whole: bool = True,
) -> Refinement:
    """Every stage moves along the gradient of its mover's payoff, all at once [Eq. 64].

    The gradient keeps the other stages fixed. So it leads to a line at which no player gains by a
    change to which the others do not react; players who foresee replies may act differently.

    Args:
        rate: the length of a step, as a multiple of the gradient.
        clip: the maximum length of a gradient; None: no limit.
        num_steps: steps of one improvement.
        gradient: `gradient(line, slopes)` writes the gradient of each stage's mover, for a line of
            vectors from the root on, [num_stages, dim]; central differences if omitted.
        frequency: improvements per simulation, below or above 1.
        whole: improve the whole path of a simulation, including the playout; otherwise only paths
            that reached the end of the episode within the tree.
    """
    _check(rate=rate, frequency=frequency, num_steps=num_steps)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be above 0, or None; got {clip}")
    function = None
    if gradient is not None:
        names = tuple(inspect.signature(gradient).parameters)
        if names not in (("line", "slopes"), ("line", "slopes", "data")):
            raise BrokenGame(f"a gradient takes line, slopes and perhaps data; got {names}")
        function = adapt(gradient, ("line", "slopes", "data"), names)
    limit = math.inf if clip is None else clip
    parameters = (rate, limit, float(num_steps), 0.0, 1.0, frequency, 0.0)
    return Refinement("gradient", climb_slopes, parameters, frequency, whole, function)


def local_minimax(
    step: float = 0.05,
    *,
    decay: float = 0.5,
    axes: bool = False,
    peaks: bool = False,
    uphill: float = 0.0,
    leaps: float = 0.0,
    levels: int = 3,
    best: bool = False,
    explore: float = 0.0,
    frequency: float = 0.02,
    whole: bool = True,
) -> Refinement:
    """Max^n over a few candidates per stage: the path's action, and steps in both directions.

    Every mover takes its best candidate, given that later movers take the best of theirs. The
    current line wins ties.

    Args:
        step: the length of a step, as a share of the box.
        decay: the step falls with the number of edges n of a stage's node as n to minus this power.
        axes: steps along every axis; otherwise along one random direction.
        peaks: one more candidate, at the peak of the parabola through the three. If payoffs are
            quadratic, this finds best replies.
        uphill: if actions have several coordinates, the share of steps that follow the slope of
            the mover's payoff, found by differences, instead of a random direction.
        leaps: the share of steps that go anywhere in the box, whatever `step` is.
        levels: how many stages have candidates at most; in a longer line, a random window of them.
        best: improve the line on which every mover takes its edge of the highest value, instead of
            the path of the simulation.
        explore: the share of those lines that begin with a random edge of the root.
        frequency, whole: as in `gradient`.
    """
    _check(step=step, frequency=frequency, levels=levels)
    if not 0 <= decay <= 1:
        raise ValueError(f"decay must be from 0 to 1; got {decay}")
    if axes and (peaks or uphill):
        raise ValueError("peaks= and uphill= need one direction; use axes=False with them")
    for name, share in (("uphill", uphill), ("leaps", leaps), ("explore", explore)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be from 0 to 1; got {share}")
    parameters = (step, 0.0, 1.0, decay, float(levels), frequency, leaps, explore, uphill)
    wide = 4 if peaks else 3
    return Refinement(
        "local_minimax", play_locally, parameters, frequency, whole, None, wide, axes, peaks, best
    )


def best_replies(
    step: float = 0.2,
    *,
    decay: float = 0.7,
    uphill: float = 1.0,
    explore: float = 0.5,
    levels: int = 3,
    frequency: float = 0.0005,
) -> Refinement:
    """Local max^n around the best line: every mover foresees the replies of later movers.

    As `local_minimax` with peaks=True and best=True. This finds subgame-perfect equilibria: an
    action that looks good only because the best reply is not found yet is on the best line, where
    replies are improved; an action that looks bad only because of untypical replies is reached by
    `explore`.
    """
    return local_minimax(
        step,
        decay=decay,
        peaks=True,
        uphill=uphill,
        levels=levels,
        best=True,
        explore=explore,
        frequency=frequency,
    )


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be above 0; got {number}")


def _no_gradient(line: np.ndarray, slopes: np.ndarray, data: Any) -> None:
    """Replaces a gradient if differences are used."""


def stages_of(game: Game) -> int:
    """The largest number of stages of a line."""
    if game.max_plies is None:
        raise BrokenGame(
            f"to improve a line of {game.name}, its largest length must be known: give the game "
            "max_plies="
        )
    return game.max_plies


def fitted(refinement: Refinement, game: Game) -> Refinement:
    """A refinement with the number of candidates that a game needs; an error if too many."""
    if refinement.axes:
        refinement = replace(refinement, num_choices=1 + 2 * game.dim)
    levels = min(stages_of(game), int(refinement.parameters[LEVELS]))
    if refinement.num_choices**levels > MOST_LINES:
        raise ValueError(
            f"{refinement.name} would play {refinement.num_choices}^{levels} lines; use fewer "
            "levels="
        )
    return refinement


# --- kernels: lines ------------------------------------------------------------------------------


def play_line(line: np.ndarray, work: Any, states: Any, data: Any) -> int:
    """Play a line from the root to the end, and write its returns to `gains`; a status.

    Vectors of the line are moved into their boxes.
    """
    states[2] = states[0]
    for player in range(NUM_PLAYERS):
        work.gains[player] = 0.0
    discount, stage = 1.0, np.int64(0)
    work.evaluations += 1
    while states[2].to_play != OVER:
        if stage >= line.shape[0]:
            return BAD_ACTION
        dim = np.int64(find_bounds(states[2], work.actions, data))
        for j in range(DIM):
            work.actions[0, j] = line[stage, j]
        if dim < 1 or project(work.actions, dim) < 0:
            return BAD_ACTION
        for j in range(DIM):
            line[stage, j] = work.actions[0, j] if j < dim else 0.0
            work.width[stage, j] = work.actions[2, j] - work.actions[1, j] if j < dim else 0.0
        work.movers[stage] = states[2].to_play
        for player in range(NUM_PLAYERS):
            work.reward[player] = 0.0
        step(states[2], work.actions[0], work.reward, data)
        for player in range(NUM_PLAYERS):
            work.gains[player] += discount * work.reward[player]
        discount *= DISCOUNT
        stage += 1
    work.length = stage
    return DONE


def copy_line(source: np.ndarray, target: np.ndarray) -> None:
    for k in range(source.shape[0]):
        for j in range(DIM):
            target[k, j] = source[k, j]


# --- kernels: slopes -----------------------------------------------------------------------------


def slope_by_function(work: Any, states: Any, data: Any) -> int:
    """Write the gradient of every mover's payoff by its vector, by the user's function."""
    own_gradient(work.better, work.slopes, data)
    work.evaluations += 1
    return DONE


def slope_by_differences(work: Any, states: Any, data: Any) -> int:
    """Write the gradient of every mover's payoff by its vector, by central differences."""
    for k in range(work.length):
        status = difference(work, k, work.slopes[k], states, data)
        if status != DONE:
            return status
    return DONE


def difference(work: Any, stage: int, slope: np.ndarray, states: Any, data: Any) -> int:
    """Write the gradient of one stage's payoff for its mover, the other vectors fixed."""
    mover = np.int64(work.movers[stage])
    for j in range(DIM):
        h = 1e-5 * work.width[stage, j]
        slope[j] = 0.0
        if h > 0.0:
            x = work.better[stage, j]
            work.better[stage, j] = x + h
            status = play_line(work.better, work, states, data)
            right, at_right = work.gains[mover], work.better[stage, j]
            work.better[stage, j] = x - h
            status = max(status, play_line(work.better, work, states, data))
            left, at_left = work.gains[mover], work.better[stage, j]
            work.better[stage, j] = x
            if status != DONE:
                return status
            if at_right > at_left:  # at the border of the box one of the two is moved back
                slope[j] = (right - left) / (at_right - at_left)
    return DONE


def climb_slopes(work: Any, states: Any, rng: np.ndarray, data: Any) -> int:
    """Move every stage of a line uphill for its mover, all at once [Eq. 64]."""
    copy_line(work.line, work.better)
    status = play_line(work.better, work, states, data)
    for _ in range(np.int64(work.refine[STEPS])):
        if status == DONE:
            status = find_slopes(work, states, data)
        if status != DONE:
            return status
        for k in range(work.length):
            length = 0.0
            for j in range(DIM):
                length += work.slopes[k, j] * work.slopes[k, j]
            length = math.sqrt(length)
            rate = work.refine[RATE]
            if length > work.refine[CLIP]:
                rate *= work.refine[CLIP] / length
            for j in range(DIM):
                work.better[k, j] += rate * work.slopes[k, j]
        status = play_line(work.better, work, states, data)  # moves vectors into their boxes
    return status


# --- kernels: local max^n ------------------------------------------------------------------------


def play_locally(work: Any, states: Any, rng: np.ndarray, data: Any) -> int:
    """Max^n over a few candidates per stage around a line; a status.

    The product of all candidates is enumerated like the digits of a number; the digit of the last
    stage changes fastest. After all candidates of a stage, the best one for its mover is known, and
    its returns are those of the current candidate of the stage before.
    """
    copy_line(work.line, work.better)
    status = play_line(work.better, work, states, data)
    if status != DONE:
        return status
    num_levels, num_choices = min(work.payoffs.shape[0], work.length), work.payoffs.shape[1]
    first = np.int64(0)
    if work.length > num_levels:
        first = random_below(rng, work.length - num_levels + 1)
    point_directions(work, first, num_levels, rng)
    for i in range(num_levels):
        work.digits[i] = 0
    while True:
        level = num_levels - 1
        set_candidate(work, first + level, level, np.int64(work.digits[level]), rng)
        status = play_line(work.better, work, states, data)
        if status != DONE:
            return status
        keep(work, level)
        while work.digits[level] == num_choices - 1:  # all candidates of this stage are known
            take_best(work, first + level, level)
            work.digits[level] = 0
            if level == 0:
                return DONE
            level -= 1
            keep(work, level)
        if DIM > 1 and work.digits[level] == 0 and work.refine[UPHILL] > 0.0:
            status = turn_uphill(work, first + level, level, states, rng, data)
            if status != DONE:
                return status
        work.digits[level] += 1
        if level < num_levels - 1:
            set_candidate(work, first + level, level, np.int64(work.digits[level]), rng)


def point_directions(work: Any, first: int, num_levels: int, rng: np.ndarray) -> None:
    """Choose a direction and the length of a step for every stage that has candidates."""
    for i in range(num_levels):
        length = 0.0
        for j in range(DIM):
            along = 1.0 if AXES else random_normal(rng)
            work.directions[i, j] = along
            length += along * along
        norm = 1.0 if AXES else 1.0 / math.sqrt(max(length, 1e-300))
        if random_unit(rng) < work.refine[LEAPS]:
            norm *= random_unit(rng)  # anywhere in the box, to leave a local peak
        else:
            norm *= work.scales[first + i] * work.refine[RATE]
        for j in range(DIM):
            work.directions[i, j] *= norm * work.width[first + i, j]
            work.slopes[first + i, j] = work.better[first + i, j]  # the middle of the candidates


def turn_uphill(work: Any, stage: int, level: int, states: Any, rng: np.ndarray, data: Any) -> int:
    """Turn the steps of a stage along its mover's slope, at random; their length stays the same.

    If a random direction leads out of the box in one coordinate, steps are cut off, and the
    parabola does not lead to the best reply. The slope does.
    """
    if random_unit(rng) >= work.refine[UPHILL]:
        return DONE
    status = difference(work, stage, work.uphill, states, data)
    length = steepness = 0.0  # both as shares of the box
    for j in range(DIM):
        work.uphill[j] *= work.width[stage, j]
        steepness += work.uphill[j] * work.uphill[j]
        if work.width[stage, j] > 0.0:
            length += (work.directions[level, j] / work.width[stage, j]) ** 2
    if steepness > 0.0:
        factor = math.sqrt(length / steepness)
        for j in range(DIM):
            work.directions[level, j] = factor * work.uphill[j] * work.width[stage, j]
    return status


def set_candidate(work: Any, stage: int, level: int, digit: int, rng: np.ndarray) -> None:
    """Write the candidate of a digit: the middle, a step, or the peak of a parabola."""
    shift = 0.0
    if PEAKS and digit == 3:
        shift = peak_shift(work, stage, level, rng)
    elif digit > 0:
        shift = 1.0 if digit % 2 == 1 else -1.0
    for j in range(DIM):
        move = shift * work.directions[level, j]
        if AXES and (digit - 1) // 2 != j:
            move = 0.0
        work.better[stage, j] = work.slopes[stage, j] + move


def peak_shift(work: Any, stage: int, level: int, rng: np.ndarray) -> float:
    """The peak of the parabola through three candidates, in steps from the middle [Eq. 63].

    A reply may have to move much farther than the action before it, so a peak counts up to `FAR`
    steps away. If there is none, or the box cut off a step, the best may be at the border of the
    box, so one of its ends is tried.
    """
    mover = np.int64(work.movers[stage])
    right, left = offset(work, stage, level, 1), offset(work, stage, level, 2)
    middle = work.payoffs[level, 0, mover]
    if right > 0.5 and left < -0.5:
        peak = vertex(
            left, work.payoffs[level, 2, mover], 0.0, middle, right, work.payoffs[level, 1, mover]
        )
        if peak != 0.0:
            return min(FAR, max(-FAR, peak))
    return END if random_unit(rng) < 0.5 else -END


def offset(work: Any, stage: int, level: int, digit: int) -> float:
    """The distance of a candidate from the middle in steps, after it was moved into the box."""
    square = along = 0.0
    for j in range(DIM):
        direction = work.directions[level, j]
        square += direction * direction
        away = work.lines[level, digit, stage, j] - work.lines[level, 0, stage, j]
        along += away * direction
    return along / square if square > 0.0 else 0.0


def keep(work: Any, level: int) -> None:
    """Store the returns of the current candidate, and its line."""
    digit = np.int64(work.digits[level])
    for player in range(NUM_PLAYERS):
        work.payoffs[level, digit, player] = work.gains[player]
    for k in range(work.length):
        for j in range(DIM):
            work.lines[level, digit, k, j] = work.better[k, j]


def take_best(work: Any, stage: int, level: int) -> None:
    """Continue with the candidate that is best for its mover, the first in a tie."""
    mover, best = np.int64(work.movers[stage]), np.int64(0)
    for digit in range(1, work.payoffs.shape[1]):
        if work.payoffs[level, digit, mover] > work.payoffs[level, best, mover]:
            best = np.int64(digit)
    for player in range(NUM_PLAYERS):
        work.gains[player] = work.payoffs[level, best, player]
    for k in range(work.length):
        for j in range(DIM):
            work.better[k, j] = work.lines[level, best, k, j]
    # For the next candidate of the stage before, the candidates are around this one.
    for j in range(DIM):
        work.slopes[stage, j] = work.better[stage, j]


# --- without a tree ------------------------------------------------------------------------------


def improve_line(
    works: np.ndarray, states: Any, rng: np.ndarray, num_times: int, decay: float, data: Any
) -> int:
    """Improve the line of a workspace `num_times` times, with ever shorter steps; a status."""
    work = works[0]
    for k in range(work.scales.shape[0]):
        work.scales[k] = 1.0
    for _ in range(num_times):
        status = improve(work, states, rng, data)
        if status != DONE:
            return status
        copy_line(work.better, work.line)
        for k in range(work.scales.shape[0]):
            work.scales[k] *= decay
    return DONE
