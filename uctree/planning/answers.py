"""Answers that come at once: what the functions of a problem say, without a question for each."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from uctree.game import CHANCE, LARGEST, OVER
from uctree.planning.playouts import SeededPlayout
from uctree.planning.problem import (
    Problem,
    Step,
    as_actions,
    as_outcomes,
    as_value,
    is_awaitable,
    playout_seed,
    stable_hash,
    step_parts,
)

Parts = tuple[Any, ...]  # the fields of a `Checked`, as a plain tuple, which is made faster
AnswerAtOnce = Callable[[Any, Any, int, int], Parts | None]


def answers_at_once(
    problem: Problem, seed: int, knows: Callable[[Hashable], bool] | None = None,
    *, in_order: int | None = None,
) -> AnswerAtOnce:  # fmt: skip
    """A function that gives the answers of `Problem.calls`, or None where one must be waited for.

    `answer(state, action, player, source)` takes the seed of the question as `source`. Names are
    bound once for a whole plan: with questions and calls an answer that costs little takes twice as
    long.

    Args:
        seed: of the plan.
        in_order: the seed of playouts that are drawn one after another; None if each must depend on
            its state alone.
    """
    make_step, list_actions, value_of = problem.step, problem.actions, problem.value
    key_of = None if problem.key is None else problem.key_of
    num_players, priors, outcomes_of = problem.num_players, problem.priors, problem.outcomes_of
    is_single, play = num_players == 1, _playouts(problem, seed, in_order)
    assert list_actions is not None

    def answer(state: Any, action: Any, player: int, source: int) -> Parts | None:
        step = make_step(state, action)
        if step.__class__ is not Step and is_awaitable(step):
            _given_up(step)
            return None
        state, reward, to_play, over = step_parts(step, action, player, num_players)
        if over:
            return state, reward, OVER, True, (), None, None, None, None
        if key_of is not None:
            key = key_of(state)
            if knows is not None and knows(key):
                return state, reward, to_play, False, (), None, None, None, None
            source = stable_hash(key)
        if to_play == CHANCE:
            outcomes = outcomes_of(state)
            if is_awaitable(outcomes):
                _given_up(outcomes)
                return None
            return state, reward, CHANCE, False, *as_outcomes(outcomes), None, None, None
        listed = list_actions(state)
        kind = listed.__class__
        if kind is not list and kind is not tuple and is_awaitable(listed):
            _given_up(listed)
            return None
        actions, weights = as_actions(listed, priors)
        if not actions:
            return state, reward, OVER, True, (), None, None, None, None
        value = play(state, to_play, actions, source) if value_of is None else value_of(state)
        kind = value.__class__
        if kind is float and is_single and -LARGEST <= value <= LARGEST:
            value = (value,)
        elif kind is not list and kind is not tuple and is_awaitable(value):
            _given_up(value)
            return None
        else:
            value = as_value(value, num_players)
        return state, reward, to_play, False, actions, weights, value, None, None

    return answer


def _playouts(
    problem: Problem, seed: int, in_order: int | None
) -> Callable[[Any, int, Sequence[Any], int], Any]:
    """`play(state, to_play, actions, source)`, the return of a random playout from a state."""
    playout = problem.playout
    if type(playout) is SeededPlayout:
        if in_order is not None and playout.in_order is not None:
            following = playout.in_order(in_order)
            return lambda state, to_play, actions, source: following(state)
        play = playout.play
        return lambda state, to_play, actions, source: play(state, playout_seed(seed, source))
    if playout is not None:
        return lambda state, to_play, actions, source: playout(
            state, random.Random(playout_seed(seed, source))
        )

    def step_by_step(state: Any, to_play: int, actions: Sequence[Any], source: int) -> Any:
        calls = problem.played_out(state, to_play, actions, playout_seed(seed, source))
        given = None
        while True:
            try:
                function, arguments, check = calls.send(given)
            except StopIteration as end:
                return end.value
            given = function(*arguments)
            if is_awaitable(given):
                return given
            given = check(given, None)  # type: ignore[arg-type]

    return step_by_step


def _given_up(given: Any) -> None:
    """Leave an awaitable alone: what it would do is asked for again, where it can be waited for."""
    if inspect.iscoroutine(given):
        given.close()
    elif hasattr(given, "cancel"):
        given.cancel()
