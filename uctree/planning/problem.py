"""Problem: a world of Python objects, described by plain functions."""

from __future__ import annotations

import contextvars
import hashlib
import inspect
import math
import numbers
import operator
import random
from collections.abc import Awaitable, Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from uctree.errors import BrokenGame
from uctree.game import CHANCE, LARGEST, OVER
from uctree.planning.playouts import SeededPlayout, draws, one_of, weighed


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
    """What a planner wants to know.

    Either what is behind an action, or all about the start, or, if `wanted` is above 0, which
    further actions a state has.
    """

    number: int
    row: int  # the number of the state
    edge: int  # the number of the action in that state; NONE for the state itself
    state: Any
    action: Any = None  # None if actions are to be proposed
    tried: tuple[Any, ...] = ()  # if so, the actions that the state has so far
    to_play: int = 0  # the player who acts, or uctree.CHANCE
    wanted: int = 0  # how many actions are to be proposed
    seed: int = 0  # of random numbers for the answer: it depends on the path to the state alone


class Answer(NamedTuple):
    """What is behind an action: a state, what it pays, and what can be done there."""

    state: Any
    reward: Any = 0.0  # a number for the player who acted, or one per player
    to_play: int = 0
    over: bool = False
    actions: Sequence[Any] = ()  # or outcomes, if chance is to move
    weights: Sequence[float] | None = None  # priors of the actions, or probabilities of outcomes
    value: Any = 0.0  # the expected return from here on, per player
    proposed: Sequence[Any] | None = None  # if actions were wanted: these, and nothing else
    costs: dict[str, float] | None = None  # booked by `spent`


class Checked(Answer):
    """An answer whose parts were checked: vectors are tuples of floats, one number per player."""

    __slots__ = ()


# A call that is to be made: the function, its arguments, and what makes of its result, with the
# question, what is used of it, or raises. A failure of either is one of the call.
Call = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any, Question], Any]]
Calls = Generator[Call, Any, Checked]


_costs: contextvars.ContextVar[dict[str, float] | None]
_costs = contextvars.ContextVar("costs", default=None)


def spent(**costs: float) -> None:
    """Book costs of the call that is running, for instance `spent(usd=0.002, tokens=310)`.

    Call it inside a function of a `Problem`; `plan(budget={"usd": 2.0})` ends the search when the
    sum reaches the budget. Elsewhere it does nothing.
    """
    costs_so_far = _costs.get()
    if costs_so_far is None:
        return
    for name, cost in costs.items():
        if not math.isfinite(cost) or cost < 0:
            raise ValueError(f"spent({name}=) takes a number of at least 0; got {cost!r}")
    add_costs(costs_so_far, costs)


class booking:
    """A context in which `spent` adds to a dict."""

    __slots__ = ("_costs", "_token")

    def __init__(self, costs: dict[str, float]) -> None:
        self._costs = costs

    def __enter__(self) -> None:
        self._token = _costs.set(self._costs)

    def __exit__(self, *error: object) -> None:
        _costs.reset(self._token)


def booked() -> dict[str, float]:
    """What `spent` adds to here; a dict of its own if it adds to nothing."""
    found = _costs.get()
    return {} if found is None else found


def add_costs(total: dict[str, float], costs: dict[str, float]) -> None:
    """Add costs to others, by name."""
    for name, cost in costs.items():
        total[name] = total.get(name, 0.0) + cost


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A world to plan in: plain functions over states that can be any Python objects.

    All functions that are called while a plan waits may be `async`: all but `key`, `show`,
    `show_action`, `dump` and `load`. A state must not change after it was returned: `step` returns
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
            states with too many actions to list; more than `k` are kept for later. If none is new,
            there are no more. One call at a time is made for a state.
        value: `value(state)` is the expected return from there on: a number for one player, else
            one number per player. Without it, random playouts estimate it.
        values: the same for a list of states at once: all that are in flight.
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
        priors: whether `actions` lists pairs `(action, prior)`. If omitted, pairs of something that
            is no number and a float are taken as such if the floats add up to 1; other pairs with
            floats are refused, since they could be actions.
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
        """Whether one of the functions is known to be `async`; a lambda may turn out to be."""
        names = ("actions", "step", "propose", "value", "values", "playout", "chance")
        return any(is_async(getattr(self, name)) for name in names)

    def answer(self, question: Question, seed: int = 0) -> Answer:
        """The answer to a question, by calling the functions one after another.

        Args:
            seed: of random playouts, beside the question's own.
        """
        costs: dict[str, float] = {}
        with booking(costs):
            return driven(self.calls(question, seed, costs), question, call_now)

    async def answer_async(self, question: Question, seed: int = 0) -> Answer:
        """As `answer`, for functions that are `async`."""
        costs: dict[str, float] = {}
        with booking(costs):
            return await driven_async(self.calls(question, seed, costs), question, call_async)

    def calls(
        self, question: Question, seed: int, costs: dict[str, float],
        knows: Callable[[Hashable], bool] | None = None,
    ) -> Calls:  # fmt: skip
        """Yield the calls that answer a question; returns the answer.

        Args:
            costs: what is booked meanwhile; a part of the answer.
            knows: whether all is known about the states of a key, so that it need not be asked.
        """
        if question.wanted:
            proposed = yield (
                self.propose, (question.state, question.tried, question.wanted), fresh_proposals
            )  # type: ignore[misc]  # fmt: skip
            return Checked(None, proposed=proposed, costs=costs)
        if question.edge < 0:
            state, reward = question.state, (0.0,) * self.num_players
            to_play, over = question.to_play, False
        else:
            state, reward, to_play, over = yield (
                self.step, (question.state, question.action), self.checked_step
            )  # fmt: skip
        if over:
            return Checked(state, reward, OVER, True, (), None, None, None, costs)
        source = question.seed
        if self.key is not None:
            key = self.key_of(state)
            if knows is not None and knows(key):
                return Checked(state, reward, to_play, False, (), None, None, None, costs)
            source = stable_hash(key)
        actions: tuple[Any, ...] = ()
        weights: tuple[float, ...] | None = None
        if to_play == CHANCE:
            actions, weights = yield self.outcomes_of, (state,), _checked_outcomes
            return Checked(state, reward, CHANCE, False, actions, weights, None, None, costs)
        if self.actions is not None:
            actions, weights = yield self.actions, (state,), self._checked_actions
            if not actions:
                return Checked(state, reward, OVER, True, (), None, None, None, costs)
        if self.value is not None:
            value = yield self.value, (state,), self.checked_value
        elif self.values is not None:
            value = yield self.values, ([state],), self._checked_only_value
        else:
            number = playout_seed(seed, source)
            if type(self.playout) is SeededPlayout:
                value = yield self.playout.play, (state, number), self.checked_value
            elif self.playout is not None:
                value = yield self.playout, (state, random.Random(number)), self.checked_value
            else:
                value = yield from self.played_out(state, to_play, actions, number)
        return Checked(state, reward, to_play, False, actions, weights, value, None, costs)

    def played_out(
        self, state: Any, to_play: int, actions: Sequence[Any], seed: int
    ) -> Generator[Call, Any, tuple[float, ...]]:
        """The return of a random playout, per player."""
        returns, factor, numbers = [0.0] * self.num_players, 1.0, draws(seed)
        for ply in range(self.horizon):
            if to_play == CHANCE:
                outcomes, weights = yield self.outcomes_of, (state,), _checked_outcomes
                action = weighed(outcomes, weights, next(numbers))
            elif self.actions is not None:
                if ply > 0:
                    actions, _ = yield self.actions, (state,), self._checked_actions
                if not actions:
                    break
                action = one_of(actions, next(numbers))
            else:
                found = yield self.propose, (state, (), 1), fresh_proposals  # type: ignore[misc]
                if not found:
                    break
                action = found[0]
            mover = to_play
            state, reward, to_play, over = yield (
                self.step, (state, action),
                partial(self._as_playout_step, action, mover),
            )  # fmt: skip
            for player, part in enumerate(reward):
                returns[player] += factor * part
            factor *= self.discount
            if over:
                break
        return as_value(returns, self.num_players)

    def key_of(self, state: Any) -> Hashable:
        """The key of a state."""
        assert self.key is not None
        key = self.key(state)
        if is_awaitable(key):
            key.close() if hasattr(key, "close") else None
            raise TypeError("key= is async; a key must be there at once: compute it in step")
        return key

    def outcomes_of(self, state: Any) -> Any:
        """What `chance` lists."""
        if self.chance is None:
            raise BrokenGame(
                "step returned to_play=CHANCE, and the Problem has no chance=: give it "
                "chance=f, where f(state) lists pairs (outcome, probability)"
            )
        return self.chance(state)

    # What functions return, and what callers of `Planner.tell` give.

    def checked(
        self, question: Question, answer: Answer, knows: Callable[[Hashable], bool] | None = None
    ) -> Checked:
        """An answer by whoever asked, with all its parts checked; BrokenGame if one is wrong.

        Args:
            knows: whether all is known about the states of a key; the rest is then not used.
        """
        if type(answer) is Checked:
            return answer
        if question.wanted:
            if answer.proposed is None:
                raise BrokenGame(
                    f"question {question.number} wants {question.wanted} more actions of "
                    f"{self.show(question.state)}; expected Answer(None, proposed=[...])"
                )
            return Checked(
                None, proposed=fresh_proposals(answer.proposed, question), costs=answer.costs
            )
        given = (answer.state, answer.reward, answer.to_play, answer.over)
        state, reward, to_play, over = self.checked_step(given, question)
        if over:
            return Checked(state, reward, OVER, True, (), None, None, None, answer.costs)
        if knows is not None and self.key is not None and knows(self.key_of(state)):
            return Checked(state, reward, to_play, False, (), None, None, None, answer.costs)
        actions, weights = answer.actions, answer.weights
        if to_play == CHANCE:
            actions, weights = as_outcomes(list(zip(actions, weights or (), strict=False)))
            return Checked(state, reward, to_play, over, actions, weights, None, None, answer.costs)
        if weights is None:
            actions, _ = as_actions(actions, False)
        else:
            actions, weights = as_actions(list(zip(actions, weights, strict=True)), True)
        if not actions and self.actions is not None:
            return Checked(state, reward, OVER, True, (), None, None, None, answer.costs)
        value = as_value(answer.value, self.num_players)
        return Checked(state, reward, to_play, over, actions, weights, value, None, answer.costs)

    def checked_step(self, given: Any, question: Question) -> tuple[Any, ...]:
        """State, reward per player, player to move, and whether the episode is over."""
        return step_parts(given, question.action, question.to_play, self.num_players)

    def _as_playout_step(
        self, action: Any, mover: int, given: Any, question: Question
    ) -> tuple[Any, ...]:
        return step_parts(given, action, mover, self.num_players)

    def _checked_actions(self, given: Any, question: Question) -> tuple[Any, ...]:
        return as_actions(given, self.priors)

    def checked_value(self, given: Any, question: Question) -> tuple[float, ...]:
        """A value as one number per player."""
        return as_value(given, self.num_players)

    def _checked_only_value(self, given: Any, question: Question) -> tuple[float, ...]:
        return as_value(values_of(given, 1)[0], self.num_players)


def driven(
    calls: Calls, question: Question, call: Callable[[Any, Any, Any, Question], Any]
) -> Checked:
    """The answer to a question, each call made by `call`."""
    result = None
    while True:
        try:
            function, arguments, check = calls.send(result)
        except StopIteration as end:
            answer: Checked = end.value
            return answer
        result = call(function, arguments, check, question)


async def driven_async(
    calls: Calls, question: Question, call: Callable[[Any, Any, Any, Question], Awaitable[Any]]
) -> Checked:
    """As `driven`, if `call` is async."""
    result = None
    while True:
        try:
            function, arguments, check = calls.send(result)
        except StopIteration as end:
            answer: Checked = end.value
            return answer
        result = await call(function, arguments, check, question)


def call_now(function: Any, arguments: Any, check: Any, question: Question) -> Any:
    """The checked result of a function that is not async."""
    given = function(*arguments)
    if hasattr(type(given), "__await__"):
        if inspect.iscoroutine(given):
            given.close()
        raise TypeError("a function of the problem is async; use await problem.answer_async()")
    return check(given, question)


async def call_async(function: Any, arguments: Any, check: Any, question: Question) -> Any:
    """The checked result of a function that may be async."""
    given = function(*arguments)
    if hasattr(type(given), "__await__"):
        given = await given
    return check(given, question)


def is_awaitable(given: Any) -> bool:
    """Whether what a function returned must be waited for."""
    return hasattr(type(given), "__await__")


def is_async(function: Any) -> bool:
    """Whether a function is known to be async."""
    call = getattr(function, "__call__", None)  # noqa: B004  (an object may have an async one)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


# --- random numbers that do not depend on the order of answers -----------------------------------

_64_BITS = 2**64 - 1


def playout_seed(seed: int, source: int) -> int:
    """The seed of the playout from a state, from that of the plan and that of the state."""
    return hash((seed, source)) & _64_BITS


def stable_hash(key: Any) -> int:
    """A number for a key, the same in every process."""
    return int.from_bytes(hashlib.blake2b(_text_of(key).encode(), digest_size=8).digest(), "little")


def _text_of(key: Any) -> str:
    """A text for a key; equal keys have equal texts, in whatever process."""
    if isinstance(key, tuple):
        return f"({','.join(map(_text_of, key))})"
    if isinstance(key, frozenset):
        return f"{{{','.join(sorted(map(_text_of, key)))}}}"
    if isinstance(key, (int, np.integer, np.bool_)):
        return repr(int(key))
    if isinstance(key, (float, np.floating)):
        number = float(key)  # equal to an int, it has the text of that
        return repr(int(number)) if number.is_integer() else repr(number)
    if isinstance(key, (str, bytes)):
        return repr(key)
    text = repr(key)
    return type(key).__qualname__ if " at 0x" in text else text  # an address says nothing


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


def step_parts(
    given: Any, action: Any, mover: int, num_players: int
) -> tuple[Any, tuple[float, ...], int, bool]:
    """State, reward per player, player to move, and whether the episode is over."""
    state, reward, to_play, over = given if given.__class__ is Step else as_step(given, action)
    if to_play.__class__ is not int:
        to_play = _as_player(to_play)
    if over:
        to_play = OVER
    elif not CHANCE <= to_play < num_players:
        raise BrokenGame(
            f"step(state, {action!r}) says to_play={to_play}; expected 0 to {num_players - 1} or "
            "uctree.CHANCE, or over=True"
        )
    if reward.__class__ is float and num_players == 1 and -LARGEST <= reward <= LARGEST:
        return state, (reward,), to_play, bool(over)
    return state, as_vector(reward, num_players, mover), to_play, bool(over)


def _as_player(given: Any) -> int:
    try:
        if not isinstance(given, bool):
            return operator.index(given)
    except TypeError:
        pass
    raise BrokenGame(
        f"to_play is the number of a player or uctree.CHANCE; got {given!r}. A step returns "
        "uctree.Step(state, reward, to_play, over)"
    )


def as_actions(given: Any, priors: bool | None) -> tuple[tuple[Any, ...], tuple[float, ...] | None]:
    """Actions, and their priors if `actions` returned pairs."""
    found = tuple(given)
    if priors is None:
        priors = bool(found) and isinstance(found[0], tuple) and _are_weighted(found)
    if not priors:
        _check_distinct(found)
        return found, None
    if not all(isinstance(each, tuple) and len(each) == 2 for each in found):
        raise BrokenGame(
            f"with priors=True, actions(state) lists pairs (action, prior); got {found!r:.200}"
        )
    names = tuple(each[0] for each in found)
    weights = tuple(_as_float(each[1]) for each in found)
    _check_distinct(names)
    if not all(0 <= weight <= LARGEST for weight in weights):
        raise BrokenGame(f"priors must be numbers of at least 0; got {list(weights)}")
    return names, weights


def as_outcomes(given: Any) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """The outcomes of a chance state and their probabilities."""
    try:
        pairs = [(outcome, float(probability)) for outcome, probability in given]
    except (TypeError, ValueError):
        raise BrokenGame(
            f"chance(state) must list pairs (outcome, probability); got {given!r:.200}"
        ) from None
    pairs = [pair for pair in pairs if pair[1] != 0]
    probabilities = tuple(probability for _, probability in pairs)
    if not pairs or min(probabilities) < 0 or not abs(sum(probabilities) - 1) < 1e-9:
        raise BrokenGame(
            f"chance(state) must list pairs (outcome, probability) that add up to 1; got {given!r}"
        )
    return tuple(outcome for outcome, _ in pairs), probabilities


def as_vector(given: Any, num_players: int, player: int) -> tuple[float, ...]:
    """A reward as one number per player; a single number belongs to the player who acted."""
    plain = _plain_vector(given, num_players)
    if plain is not None:
        return plain
    if given.__class__ is float and given == 0.0:
        return (0.0,) * num_players
    number = _as_float(given)
    if number == number:
        vector = [0.0] * num_players
        vector[max(0, player)] = number
        if player < 0 and number and num_players > 1:
            raise BrokenGame(
                f"the step after chance paid {given}, and no player acted: return one reward per "
                "player"
            )
    else:
        vector = _as_floats(given)
    if len(vector) != num_players or not all(-LARGEST <= each <= LARGEST for each in vector):
        raise BrokenGame(
            f"a reward is a finite number, or one per player ({num_players}); got {given!r}"
        )
    return tuple(vector)


def as_value(given: Any, num_players: int) -> tuple[float, ...]:
    """A value as one number per player; a single number is enough for one player alone."""
    if num_players == 1:
        number = given if given.__class__ is float else _as_float(given)
        if -LARGEST <= number <= LARGEST:
            return (number,)
    plain = _plain_vector(given, num_players)
    if plain is not None:
        return plain
    vector = _as_floats(given)
    if len(vector) != num_players or not all(-LARGEST <= each <= LARGEST for each in vector):
        raise BrokenGame(
            f"a value is one finite number per player, {num_players} in all (in the order of the "
            f"players, not from the view of the player to move); got {given!r}"
        )
    return tuple(vector)


def _plain_vector(given: Any, num_players: int) -> tuple[float, ...] | None:
    """What most functions return, a list or tuple of finite numbers, as a tuple; else None."""
    kind, is_ready = given.__class__, True
    if (kind is not tuple and kind is not list) or len(given) != num_players:
        return None
    for each in given:
        if each.__class__ is not float:
            if each.__class__ is not int:
                return None
            is_ready = False
        if not -LARGEST <= each <= LARGEST:
            return None
    if not is_ready:
        return tuple(map(float, given))
    return given if kind is tuple else tuple(given)


def values_of(given: Any, count: int) -> list[Any]:
    """What `values` returned for `count` states, one by one."""
    try:
        found = list(given)
    except TypeError:
        found = []
    if len(found) != count:
        raise BrokenGame(
            f"values(states) returns one value for each state, {count} in all; got {given!r:.200}"
        )
    return found


def fresh_proposals(given: Any, question: Question) -> tuple[Any, ...]:
    """The proposed actions that were not tried yet, each once."""
    if isinstance(given, (str, bytes)):
        raise BrokenGame(f"propose returns a list of actions; got the text {given!r:.200}")
    seen = set(question.tried)
    return tuple(dict.fromkeys(each for each in given if _hashed(each) not in seen))


def _as_float(given: Any) -> float:
    """A single number of any kind as a float, NaN for anything else."""
    if isinstance(given, (int, float, numbers.Real)) or getattr(given, "ndim", None) == 0:
        try:
            return float(given)
        except (TypeError, ValueError, OverflowError):
            return math.nan
    return math.nan


def _as_floats(given: Any) -> list[float]:
    """A sequence of numbers as floats; an empty list for anything else."""
    try:
        return [_as_float(each) for each in given]
    except TypeError:
        return []


def _are_weighted(found: tuple[Any, ...]) -> bool:
    """Whether a list of actions has priors; BrokenGame if it could be either."""
    floats = (float, np.floating)
    if not all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], floats)
        for each in found
    ):  # fmt: skip
        return False
    weights = [float(weight) for _, weight in found]
    has_names = not any(isinstance(action, numbers.Real) for action, _ in found)
    if has_names and min(weights) >= 0 and abs(sum(weights) - 1) < 1e-6:
        return True
    raise BrokenGame(
        f"actions(state) lists pairs with a float, as {found[0]!r}: these may be actions, or "
        "actions with their priors. Say which: Problem(priors=False) or Problem(priors=True)"
    )


def _checked_outcomes(given: Any, question: Question) -> tuple[Any, ...]:
    return as_outcomes(given)


def _hashed(action: Any) -> Any:
    try:
        hash(action)
    except TypeError:
        raise BrokenGame(
            f"actions must be hashable, such as numbers, strings and tuples; got {action!r} of "
            f"type {type(action).__name__}"
        ) from None
    return action


def _check_distinct(actions: tuple[Any, ...]) -> None:
    try:
        num_distinct = len(set(actions))
    except TypeError:
        for action in actions:
            _hashed(action)
        raise
    if num_distinct != len(actions):
        twice = next(action for action in actions if actions.count(action) > 1)
        raise BrokenGame(f"actions(state) lists {twice!r} twice")
