"""Solvers of continuous games that need no tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import evaluators, specs
from uctree.continuous import refine as refinements
from uctree.continuous.refine import Refinement, fitted, stages_of
from uctree.engine.bindings import action_array, game_bindings
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.looks import look_at
from uctree.engine.recent import MOST_KERNELS, table_of
from uctree.errors import BrokenGame
from uctree.game import (
    Box,
    Game,
    State,
    StateViews,
    make_rng,
)  # fmt: skip
from uctree.kernels.status import DONE

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
    """The result of a solver without a tree."""

    actions: list[np.ndarray]
    returns: np.ndarray  # [num_players], from the state on
    evaluations: int  # payoffs and gradients computed


def own_gradient_ascent(
    game: Game | str,
    start: Any = None,
    *,
    state: State | None = None,
    rate: float = 0.01,
    clip: float | None = None,
    num_steps: int = 1000,
    gradient: Callable[..., None] | None = None,
    seed: int = 0,
) -> LineSolution:
    """Every stage climbs its mover's payoff with the others fixed, all at once [Eq. 64].

    At its end no player gains by a small change to which the others do not react. If players move
    in turns, players who foresee the replies would act differently.

    Args:
        start: one action per stage; drawn by `seed` if omitted.
        state: where the line begins; the start of the game if omitted.
        rate, clip, gradient: as in `refine.gradient`.
    """
    kind = refinements.gradient(rate, clip=clip, gradient=gradient)
    return improved_line(game, kind, start, state=state, num_times=num_steps, seed=seed)


def local_maxn(
    game: Game | str,
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
    """Max^n over steps in both directions at every stage, repeated with ever shorter steps.

    Args:
        decay: the factor of the step's length from one repetition to the next.
        step, axes, peaks, uphill: as in `refine.local_minimax`.
        start, state, seed: as in `own_gradient_ascent`.
    """
    game = specs.as_game(game)
    kind = refinements.local_minimax(
        step, axes=axes, peaks=peaks, uphill=uphill, levels=stages_of(game)
    )
    return improved_line(
        game, kind, start, state=state, num_times=num_steps, decay=decay, seed=seed
    )


def improved_line(
    game: Game | str,
    kind: Refinement,
    start: Any = None,
    *,
    state: State | None = None,
    num_times: int,
    decay: float = 1.0,
    seed: int = 0,
) -> LineSolution:
    """A line that a refinement improved `num_times` times, without a tree."""
    game = specs.as_game(game)
    kind = fitted(kind, game)
    begin = game.start() if state is None else game.copy(state)
    line = _drawn_line(game, begin, seed) if start is None else game.replay(start, begin).actions
    work = np.zeros(1, _line_fields(game, kind))
    work["actions"] = action_array(game)
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
        status = int(kernel.run(*arguments))
    if status != DONE:
        raise BrokenGame(
            f"{game.name}: a line of vectors does not end within max_plies="
            f"{game.max_plies}, or bounds gives no box; run uctree.check(game) for details"
        )
    actions = _fitting_actions(game, begin, work["line"][0])
    returns = game.replay(actions, begin).returns
    return LineSolution(actions, returns, int(work["evaluations"][0]))


def _improver(game: Game, kind: Refinement, arguments: tuple[Any, ...]) -> Kernel:
    known = table_of(game, "improvers", MOST_KERNELS)
    key = kind.key, work_shape(arguments[0]), interpreted()
    kernel: Kernel | None = known.get(key)
    look_at(game, arguments[1][0])
    if kernel is None or kernel.is_stale:
        bound = game_bindings(game, evaluators.playout()) | kind.bindings()
        label = f"{game.name}: {kind.name}"
        kernel = compile_kernel(refinements.improve_line, bound, arguments, label=label)
        known.put(key, kernel)
    return kernel


def work_shape(work: np.ndarray) -> str:
    """A text that is the same for workspaces with the same fields."""
    return str(work.dtype)


def _line_fields(game: Game, kind: Refinement) -> np.dtype:
    array = action_array(game)
    reward = ("reward", float, (game.num_players,))
    return np.dtype([("actions", array.dtype, array.shape), reward, *kind.fields(game)])


def _drawn_line(game: Game, state: State, seed: int) -> list[np.ndarray]:
    """The actions of a random episode from a state on."""
    rng, actions = make_rng(seed), []
    while not game.is_over(state):
        actions.append(game.random_vector(state, rng))
        state, _ = game.step(state, actions[-1])
    return actions


def _fitting_actions(game: Game, state: State, line: np.ndarray) -> list[np.ndarray]:
    """The actions of a line: each vector with the number of coordinates its state has."""
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
