"""Problem: a world of Python objects, described by plain functions."""

from __future__ import annotations

import contextvars
import inspect
import math
import random
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from uctree.errors import BrokenGame
from uctree.game import CHANCE, OVER


class Step(NamedTuple):
    """What an action leads to.

    >>> Step("checkmate", reward=1.0, over=True).over
    True
    """

    state: Any
    reward: Any = 0.0  # a number for the player who acted, or one per player
    to_play: int = 0  # the player to move, or uctree.CHANCE
    over: bool = False  # whether the episode has ended


class Question(NamedTuple):
    """What a planner wants to know: what is behind an action, or all about the start."""

    number: int
    row: int  # the number of the state
    edge: int  # the number of the action in that state; NONE for the state itself
    state: Any
    action: Any = None  # None if it is to be proposed
    tried: tuple[Any, ...] = ()  # the actions that the state has so far
    to_play: int = 0  # the player who acts, or uctree.CHANCE


class Answer(NamedTuple):
    """What is behind an action: a state, what it pays, and what can be done there."""

    state: Any
    reward: Any = 0.0  # a number for the player who acted, or one per player
    to_play: int = 0
    over: bool = False
    actions: Sequence[Any] = ()  # or outcomes, if chance is to move
    weights: Sequence[float] | None = None  # priors of the actions, or probabilities of outcomes
    value: Any = 0.0  # the expected return from here on, per player
    proposed: Sequence[Any] | None = None  # more actions of the state that the question is about
    costs: dict[str, float] | None = None  # booked by `spent`


_costs: contextvars.ContextVar[dict[str, float] | None]
_costs = contextvars.ContextVar("costs", default=None)


def spent(**costs: float) -> None:
    """Book costs of the call that is running, for instance `spent(usd=0.002, tokens=310)`.

    Call it inside a function of a `Problem`; `plan(budget={"usd": 2.0})` ends the search when the
    sum reaches the budget. Elsewhere it does nothing.
    """
    booked = _costs.get()
    if booked is None:
        return
    for name, cost in costs.items():
        if not math.isfinite(cost) or cost < 0:
            raise ValueError(f"spent({name}=) takes a number of at least 0; got {cost!r}")
        booked[name] = booked.get(name, 0.0) + cost


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A world to plan in: plain functions over states that can be any Python objects.

    All functions may be `async`. A state must not change after it was returned: `step` returns
    another one.

    >>> count = Problem(actions=lambda n: ["add", "double"],
    ...                 step=lambda n, a: Step(n + 1 if a == "add" else 2 * n, over=n > 8))
    >>> count.num_players
    1

    Args:
        actions: `actions(state)` lists the legal actions, any hashable things, or pairs
            `(action, prior)`. An empty list ends the episode.
        step: `step(state, action)` returns a `Step`.
        propose: `propose(state, tried, k)` returns up to `k` actions that are not in `tried`; for
            states with too many actions to list. Fewer than `k` means that there are no more.
        value: `value(state)` is the expected return from there on: a number for one player, else
            one number per player. Without it, random playouts estimate it.
        values: the same for a list of states at once.
        playout: `playout(state, rng)` plays from a state to the end and returns the return, as
            `value` does, with random numbers of `rng`, a `random.Random`. Give it if something is
            faster or stronger than random steps from state to state.
        chance: `chance(state)` lists pairs `(outcome, probability)`, if `to_play` can be CHANCE.
        payoff_range: the range of the return from the start, one pair or one pair per player;
            without it the search uses the range that it has seen.
        key: `key(state)` is equal for states that are the same; what is known of one then holds for
            the other. Pass `transpositions=True` to `plan` to share their statistics as well.
        show: the text of a state.
        show_action: `show_action(state, action)` is the text of an action or outcome.
        dump: a state as JSON data, for journals and files; needed if it is not JSON data itself.
        load: the state of such data.
        priors: whether `actions` lists pairs `(action, prior)`; if omitted, pairs whose second part
            is a float are taken as such.
        max_actions: the largest number of actions that `propose` gives a state.
        horizon: the largest number of actions of a random playout.
    """

    actions: Callable[[Any], Any] | None = None
    step: Callable[[Any, Any], Any]
    propose: Callable[[Any, tuple[Any, ...], int], Any] | None = None
    value: Callable[[Any], Any] | None = None
    values: Callable[[list[Any]], Any] | None = None
    playout: Callable[[Any, random.Random], Any] | None = None
    chance: Callable[[Any], Any] | None = None
    num_players: int = 1
    payoff_range: Any = None
    discount: float = 1.0
    key: Callable[[Any], Hashable] | None = None
    show: Callable[[Any], str] = str
    show_action: Callable[[Any, Any], str] | None = None
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None
    name: str = "problem"
    priors: bool | None = None
    max_actions: int = 64
    horizon: int = 1000

    def __post_init__(self) -> None:
        if (self.actions is None) == (self.propose is None):
            raise TypeError(
                "a Problem lists its actions with actions=, or proposes them with propose=; give "
                "one of the two"
            )
        if sum(f is not None for f in (self.value, self.values, self.playout)) > 1:
            raise TypeError(
                "give one of value= for one state, values= for many, playout= for random returns"
            )
        if (self.dump is None) != (self.load is None):
            raise TypeError("dump= and load= belong together: give both or none")
        for name in ("num_players", "max_actions", "horizon"):
            count = getattr(self, name)
            is_whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
            if not is_whole or count < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {count!r}")
            object.__setattr__(self, name, int(count))

    @property
    def is_async(self) -> bool:
        """Whether one of the functions is `async`."""
        names = ("actions", "step", "propose", "value", "values", "playout", "chance")
        return any(inspect.iscoroutinefunction(getattr(self, name)) for name in names)

    def answer(self, question: Question, seed: int = 0) -> Answer:
        """The answer to a question, by calling the functions one after another."""
        answering = self.answer_async(question, seed)
        try:
            answering.send(None)
        except StopIteration as end:
            return end.value
        answering.close()
        raise TypeError("a function of the problem is async; use await problem.answer_async()")

    async def answer_async(self, question: Question, seed: int = 0) -> Answer:
        """As `answer`, for functions that are `async`."""
        costs: dict[str, float] = {}
        token = _costs.set(costs)
        calls = self._calls(question, seed, costs)
        result = None
        try:
            while True:
                function, arguments = calls.send(result)
                result = function(*arguments)
                if hasattr(type(result), "__await__"):
                    result = await result
        except StopIteration as end:
            return end.value
        finally:
            _costs.reset(token)

    def _calls(
        self, question: Question, seed: int, costs: dict[str, float]
    ) -> Generator[Any, Any, Answer]:
        """Yield the calls `(function, arguments)` that answer a question; returns the answer."""
        proposed = None
        if question.edge < 0:
            step = Step(question.state, to_play=question.to_play)
        else:
            action = question.action
            if action is None:
                proposed = yield from self._proposed(question)
                if not proposed:
                    return Answer(None, proposed=(), costs=costs)
                action = proposed[0]
            step = as_step((yield self.step, (question.state, action)), action)
        return (yield from self._described(step, question, seed, proposed, costs))

    def _proposed(self, question: Question) -> Generator[Any, Any, list[Any]]:
        assert self.propose is not None
        wanted = min(1 + question.edge - len(question.tried), self.max_actions)
        given = yield self.propose, (question.state, question.tried, wanted)
        seen = set(question.tried)
        fresh = []
        for action in given:
            if _hashed(action) not in seen:
                seen.add(action)
                fresh.append(action)
        return fresh

    def _described(
        self, step: Step, question: Question, seed: int, proposed: Any, costs: dict[str, float]
    ) -> Generator[Any, Any, Answer]:
        """The answer for a state: its actions or outcomes, and its value."""
        state, reward, to_play, over = step
        actions: Sequence[Any] = ()
        weights: list[float] | None = None
        if not over and to_play == CHANCE:
            if self.chance is None:
                raise BrokenGame(
                    "step returned to_play=CHANCE, and the Problem has no chance=: give it "
                    "chance=f, where f(state) lists pairs (outcome, probability)"
                )
            actions, weights = as_outcomes((yield self.chance, (state,)))
            return Answer(state, reward, CHANCE, False, actions, weights, 0.0, proposed, costs)
        if not over and self.actions is not None:
            actions, weights = as_actions((yield self.actions, (state,)), self.priors)
            over = len(actions) == 0
        if over:
            return Answer(state, reward, OVER, True, (), None, 0.0, proposed, costs)
        if self.value is not None:
            value = yield self.value, (state,)
        elif self.values is not None:
            value = yield self._value_of_one, (state,)
        else:
            rng = random.Random(hash((seed, question.row, question.edge)))
            if self.playout is not None:
                value = yield self.playout, (state, rng)
            else:
                value = yield from self._played_out(state, to_play, rng)
        return Answer(state, reward, to_play, False, actions, weights, value, proposed, costs)

    def _value_of_one(self, state: Any) -> Any:
        assert self.values is not None
        return self.values([state])[0]

    def _played_out(
        self, state: Any, to_play: int, rng: random.Random
    ) -> Generator[Any, Any, list[float]]:
        """The return of a random playout, per player."""
        returns, factor = [0.0] * self.num_players, 1.0
        for _ in range(self.horizon):
            if to_play == CHANCE:
                assert self.chance is not None
                outcomes, weights = as_outcomes((yield self.chance, (state,)))
                action = rng.choices(outcomes, weights)[0]
            elif self.actions is not None:
                found, _ = as_actions((yield self.actions, (state,)), self.priors)
                if not found:
                    break
                action = rng.choice(found)
            else:
                assert self.propose is not None
                proposed = yield self.propose, (state, (), 1)
                if not proposed:
                    break
                action = proposed[0]
            step = as_step((yield self.step, (state, action)), action)
            for player, reward in enumerate(as_vector(step.reward, self.num_players, to_play)):
                returns[player] += factor * reward
            factor *= self.discount
            state, to_play = step.state, step.to_play
            if step.over:
                break
        return returns


# --- what users' functions return ----------------------------------------------------------------


def as_step(given: Any, action: Any) -> Step:
    """What `step` returned as a `Step`; plain tuples of the same order are accepted."""
    if type(given) is Step:
        return given
    if isinstance(given, tuple) and 1 <= len(given) <= 4:
        return Step(*given)
    raise BrokenGame(
        f"step(state, {action!r}) must return uctree.Step(state, reward, to_play, over); got "
        f"{type(given).__name__}"
    )


def as_actions(given: Any, priors: bool | None) -> tuple[list[Any], list[float] | None]:
    """Actions, and their priors if `actions` returned pairs."""
    found = list(given)
    if priors is None:
        priors = bool(found) and isinstance(found[0], tuple) and all(map(_is_weighted, found))
    if not priors:
        _check_distinct(found)
        return found, None
    names, weights = [each[0] for each in found], [float(each[1]) for each in found]
    _check_distinct(names)
    if any(not math.isfinite(weight) or weight < 0 for weight in weights):
        raise BrokenGame(f"priors must be numbers of at least 0; got {weights}")
    return names, weights


def as_outcomes(given: Any) -> tuple[list[Any], list[float]]:
    """The outcomes of a chance state and their probabilities."""
    pairs = [pair for pair in given if pair[1] != 0]
    probabilities = [float(probability) for _, probability in pairs]
    if not pairs or min(probabilities) < 0 or not abs(sum(probabilities) - 1) < 1e-9:
        raise BrokenGame(
            f"chance(state) must list pairs (outcome, probability) that add up to 1; got {given!r}"
        )
    return [outcome for outcome, _ in pairs], probabilities


def as_vector(given: Any, num_players: int, player: int) -> list[float]:
    """A reward as one number per player; a single number belongs to the player who acted."""
    if isinstance(given, (int, float)):
        vector = [0.0] * num_players
        vector[max(0, player)] = float(given)
        if player < 0 and given and num_players > 1:
            raise BrokenGame(
                f"the step after chance paid {given}, and no player acted: return one reward per "
                "player"
            )
    else:
        vector = [float(each) for each in given]
    if len(vector) != num_players or not all(map(math.isfinite, vector)):
        raise BrokenGame(
            f"a reward is a finite number, or one per player ({num_players}); got {given!r}"
        )
    return vector


def as_value(given: Any, num_players: int) -> list[float]:
    """A value as one number per player; a single number is enough for one player alone."""
    if isinstance(given, (int, float)) and num_players == 1:
        vector = [float(given)]
    else:
        try:
            vector = [float(each) for each in given]
        except TypeError:
            vector = []
    if len(vector) != num_players or not all(map(math.isfinite, vector)):
        raise BrokenGame(
            f"a value is one finite number per player, {num_players} in all (in the order of the "
            f"players, not from the view of the player to move); got {given!r}"
        )
    return vector


def _is_weighted(action: Any) -> bool:
    return isinstance(action, tuple) and len(action) == 2 and isinstance(action[1], float)


def _hashed(action: Any) -> Any:
    try:
        hash(action)
    except TypeError:
        raise BrokenGame(
            f"actions must be hashable, such as numbers, strings and tuples; got {action!r} of "
            f"type {type(action).__name__}"
        ) from None
    return action


def _check_distinct(actions: list[Any]) -> None:
    try:
        num_distinct = len(set(actions))
    except TypeError:
        for action in actions:
            _hashed(action)
        raise
    if num_distinct != len(actions):
        twice = next(action for action in actions if actions.count(action) > 1)
        raise BrokenGame(f"actions(state) lists {twice!r} twice")
