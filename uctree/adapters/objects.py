"""Objects that are copied and then changed: `from_object`, and what adapters share."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from operator import attrgetter, methodcaller
from typing import Any

from uctree.errors import BrokenGame
from uctree.game import CHANCE
from uctree.planning.images import difference, image, parts_of_object
from uctree.planning.playouts import SeededPlayout, draws, weighed
from uctree.planning.problem import Problem, Step, as_outcomes, as_vector
from uctree.planning.world import World

HORIZON = 1000  # the most actions of a playout
_new = tuple.__new__  # faster than calling the class of a named tuple


def library(name: str, extra: str) -> Any:
    """Another library, imported on first use; ImportError says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is missing: pip install 'uctree[{extra}]'") from error


def cloning_problem(
    *,
    actions: Callable[[Any], Iterable[Any]],
    change: Callable[[Any, Any], Any],
    clone: Callable[[Any], Any] | None,
    to_play: Callable[[Any], int],
    over: Callable[[Any], Any] | None = None,
    reward: Callable[[Any], Any] | None = None,
    returns: Callable[[Any], Any] | None = None,
    pays_at_end: bool = False,
    chance: Callable[[Any], Any] | None = None,
    num_players: int = 1,
    discount: float = 1.0,
    horizon: int = HORIZON,
    **functions: Any,
) -> Problem:
    """A problem whose steps change a copy of the state; a playout copies once.

    Args:
        change: `change(state, action)` changes the state and returns the reward; if `clone` is
            None it returns another state.
        over: whether the episode has ended; without it, whether there are no actions.
        reward: what the last step paid, if `change` does not say it.
        returns: what was paid since the episode began, one number per player, instead of rewards.
        pays_at_end: whether `returns` are 0 until the episode is over.
        functions: more arguments of `Problem`; `value` or `playout` replace the playouts.
    """
    has_turns = num_players > 1 or chance is not None
    nothing = (0.0,) * num_players

    def totals(state: Any) -> tuple[float, ...]:
        assert returns is not None
        return _numbers(returns(state))

    def step(state: Any, action: Any) -> Step:
        if clone is not None:
            state = clone(state)
        before = nothing if returns is None or pays_at_end else totals(state)
        paid = change(state, action)
        if clone is None:
            state, paid = paid, None
        is_over = over is not None and bool(over(state))
        if reward is not None:
            paid = reward(state)
        elif returns is not None:
            paid = nothing if pays_at_end and not is_over else _less(totals(state), before)
        elif paid is None:
            paid = nothing
        if paid is not nothing and paid.__class__ is not float:
            _check_reward(paid, num_players, action)
        player = to_play(state) if has_turns and not is_over else 0
        if player.__class__ is not int:
            player = int(player)
        return _new(Step, (state, paid, player, is_over))

    # With `returns` and no discount, what a playout pays is the difference of two of them.
    is_summed = returns is not None and discount == 1.0
    reads_mover = chance is not None or (num_players > 1 and not is_summed)

    def playout(state: Any, seed: int) -> Any:
        mover = to_play(state) if reads_mover else 0
        if clone is not None:
            state = clone(state)
        before = nothing if returns is None or pays_at_end else totals(state)
        total, factor = [0.0] * num_players, 1.0
        for draw in islice(draws(seed), horizon):
            if mover == CHANCE:
                assert chance is not None
                action = weighed(*as_outcomes(chance(state)), draw)
            else:
                legal = actions(state)
                if legal.__class__ is not list and legal.__class__ is not tuple:
                    legal = list(legal)
                if not legal:
                    break
                action = legal[draw * len(legal) >> 32]  # as `one_of`, without the call
            paid = change(state, action)
            if clone is None:
                state, paid = paid, None
            if not is_summed:
                if reward is not None:
                    paid = reward(state)
                elif returns is not None:
                    now = totals(state)
                    paid, before = _less(now, before), now
                if paid is not None and not _is_nothing(paid):
                    for player, part in enumerate(as_vector(paid, num_players, mover)):
                        total[player] += factor * part
                factor *= discount
            if over is not None and over(state):
                break
            if reads_mover:
                mover = to_play(state)
        return _less(totals(state), before) if is_summed else total

    if not any(functions.get(name) for name in ("value", "values", "playout")):
        functions["playout"] = SeededPlayout(playout)
    return Problem(
        actions=actions, step=step, chance=chance, num_players=num_players, discount=discount,
        horizon=horizon, **functions,
    )  # fmt: skip


def _less(now: tuple[float, ...], before: tuple[float, ...]) -> list[float]:
    return [one - other for one, other in zip(now, before, strict=True)]


def _is_nothing(reward: Any) -> bool:
    """Whether a reward is 0 for all, as most are."""
    if reward.__class__ is tuple or reward.__class__ is list:
        return not any(reward)
    return (reward.__class__ is float or reward.__class__ is int) and reward == 0


Part = str | Callable[..., Any]  # the name of a method or attribute, or a function of the object


def from_object(
    thing: Any,
    *,
    legal: Part = "legal",
    step: Part = "step",
    clone: Part | None = "clone",
    over: Part | None = None,
    to_play: Part | None = None,
    reward: Part | None = None,
    returns: Part | None = None,
    chance: Part | None = None,
    num_players: int = 1,
    **options: Any,
) -> World:
    """The world of an object that lists its actions, makes a step and can be copied.

    Each part is the name of a method or attribute, or a function that takes the object first.

    >>> class Count:
    ...     def __init__(self, n): self.n = n
    ...     def moves(self): return [1, 2] if self.n < 9 else []
    ...     def add(self, m): self.n += m; return float(self.n == 9)
    ...     def copy(self): return Count(self.n)
    >>> from_object(Count(0), legal="moves", step="add", clone="copy").to_play
    0

    Args:
        legal: the actions; none at the end of an episode.
        step: `step(action)` changes the object and returns the reward, or None. With `clone=None`
            it leaves the object alone and returns another one.
        clone: a copy that shares nothing which `step` changes.
        over: whether the episode has ended; without it, whether there are no actions.
        to_play: the player to move, from 0, or uctree.CHANCE; for more than one player.
        reward: what the last step paid: a number for the player who acted, or one per player.
        returns: what was paid since the episode began, one number per player; the reward is the
            difference.
        chance: pairs `(outcome, probability)`, if `to_play` can be uctree.CHANCE.
        options: more arguments of `Problem`, such as `value`, `discount`, `key`, `name`.
    """
    parts = {"legal": legal, "step": step, "clone": clone, "over": over, "to_play": to_play,
             "reward": reward, "returns": returns, "chance": chance}  # fmt: skip
    given = {name: _reader(thing, name, part) for name, part in parts.items() if part is not None}
    if num_players > 1 and to_play is None:
        raise TypeError(f"with num_players={num_players}, give to_play=, the player to move")
    if reward is not None and returns is not None:
        raise TypeError("give reward= or returns=, not both")

    list_legal, has_ended = given["legal"], given.get("over")
    to_move = given.get("to_play", lambda state: 0)
    if (has_ended is not None and has_ended(thing)) or (
        to_move(thing) != CHANCE and not list(list_legal(thing))
    ):
        raise ValueError(f"the episode of this {type(thing).__name__} has ended: nothing to plan")
    problem = cloning_problem(
        actions=list_legal, change=given["step"], clone=given.get("clone"), over=has_ended,
        to_play=to_move, reward=given.get("reward"), returns=given.get("returns"),
        chance=given.get("chance"), num_players=num_players,
        **({"name": type(thing).__name__} | options),
    )  # fmt: skip
    start = thing if clone is None else given["clone"](thing)
    mover = int(to_move(thing))
    look = None if mover == CHANCE else partial(_refuse_sharing, problem, start)
    return World(problem, start, mover, first_look=look)


def _refuse_sharing(problem: Problem, state: Any) -> None:
    """Raise BrokenGame if a step from a state changes the data among that state's attributes."""
    assert problem.actions is not None
    action = next(iter(problem.actions(state)))
    before = image(parts_of_object(state) or state, objects=False)
    with suppress(Exception):  # it will fail again, where `plan` can say what happens then
        problem.step(state, action)
    after = image(parts_of_object(state) or state, objects=False)
    if before != after:
        raise BrokenGame(
            f"the step {action!r} of a copy changed the {type(state).__name__} that was copied: "
            f"{difference(before, after)}. clone= must copy all that step= changes, lists, dicts "
            "and arrays included: copy.deepcopy does"
        )


def _reader(thing: Any, name: str, part: Part) -> Callable[..., Any]:
    """A function that takes an object first, from the name of its method or attribute."""
    if callable(part):
        return part
    if not hasattr(thing, part):
        raise TypeError(
            f"{type(thing).__name__} has no {part!r}: name its method with {name}=, or give a "
            "function that takes the object"
        )

    if not callable(getattr(thing, part)):
        return attrgetter(part)
    if name == "step":
        return lambda state, action: getattr(state, part)(action)
    return methodcaller(part)


def _numbers(given: Any) -> tuple[float, ...]:
    """One number per player, or a single one; a copy, since steps may change a list."""
    if given.__class__ is tuple or given.__class__ is list:
        return tuple(given)
    return tuple(map(float, given)) if isinstance(given, Iterable) else (float(given),)


def _check_reward(reward: Any, num_players: int, action: Any) -> None:
    kind = reward.__class__
    if kind is float or kind is int:
        return
    if (kind is tuple or kind is list) and len(reward) == num_players:
        return
    try:
        count = len(reward) if kind is tuple or kind is list else len(_numbers(reward))
    except (TypeError, ValueError):
        count = 0
    if count not in (1, num_players):
        raise BrokenGame(
            f"the step {action!r} returned {reward!r}; expected a reward: None, a number, or one "
            f"per player ({num_players}). If it is something else, give step= a function that "
            "makes the step and returns the reward"
        )
