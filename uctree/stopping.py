"""Stops: rules that end a search before its budget is used up.

A search checks its stops after fixed numbers of simulations, so the same seed gives the same tree;
only `deadline` reads a clock. Pass several stops as a list or joined by `|`. The first one that is
reached ends the search, and its name becomes the status of the result:

    uctree.search(game, state, num_simulations=100_000, stop=decided() | value_gap())

A stop of your own has a name and a function `begin` that is called once per search. It returns a
function that is called at every check, with the result so far and the number of simulations left
(None without such a budget). This stop ends a search once its value changes by less than 0.01 from
one check to the next:

    >>> def begin():
    ...     values = []
    ...     def reached(result, remaining):
    ...         values.append(result.value[0])
    ...         return len(values) > 1 and abs(values[-1] - values[-2]) < 0.01
    ...     return reached
    >>> Stop("steady", begin, interval=1000)
    Stop(name='steady', interval=1000, parameters=())
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from uctree.choice import Z, robust_choice, robust_max
from uctree.result import SearchResult

Reached = Callable[[SearchResult, int | None], bool]

# Simulations between two checks. A check takes as long as a hundred of the fastest simulations.
INTERVAL = 250
EARLIEST = 1e8  # seconds since the epoch, in 1973: a smaller number was meant as a duration


# --- formulas ------------------------------------------------------------------------------------


def cannot_be_overtaken(visits: np.ndarray, remaining: int) -> bool:
    """Whether the most visited edge stays so, whatever the simulations that are left do.

        N(best) - N(second) > remaining                                                [Eq. 37]

    A single edge cannot be overtaken.

    >>> cannot_be_overtaken(np.array([70, 20, 9]), remaining=49)
    True
    >>> cannot_be_overtaken(np.array([70, 20, 9]), remaining=50)
    False
    """
    if len(visits) < 2:
        return len(visits) == 1
    second, best = np.sort(visits)[-2:]
    return bool(best - second > remaining)


def is_apart(lower: np.ndarray, upper: np.ndarray, best: int) -> bool:
    """Whether an edge is better than every other one, within their confidence bounds.

        lcb(best) > ucb(a) for every other a                                           [Eq. 38]

    >>> is_apart(np.array([0.3, -0.2]), np.array([0.6, 0.2]), best=0)
    True
    """
    others = np.delete(upper, best)
    return bool((lower[best] > others).all())


def divergence_gain(latest: np.ndarray, earlier: np.ndarray) -> float:
    """How much the distribution of visits has moved, per simulation.

        KL(p ‖ p') / n,  p = N / Σ N now, p' = N' / Σ N' earlier, n = Σ N - Σ N'       [Eq. 39]

    Infinite if an edge got its first visit. (Leela Chess Zero swaps p and p', which does not detect
    that.)

    >>> divergence_gain(np.array([3, 1]), np.array([1, 1])) == math.log(27 / 16) / 8
    True
    """
    new = int(latest.sum() - earlier.sum())
    if new <= 0 or earlier.sum() == 0:
        return math.inf
    taken = latest > 0
    if (earlier[taken] == 0).any():
        return math.inf
    p, before = latest[taken] / latest.sum(), earlier[taken] / earlier.sum()
    return float(p @ np.log(p / before)) / new


# --- stops ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stop:
    """A condition that ends a search.

    Args:
        begin: `begin(*parameters)` is called once per search and returns a function
            `reached(result, remaining) -> bool`. That is called at every check, with the
            `SearchResult` so far and the number of simulations left, None without such a budget.
        interval: the number of simulations between two checks; None: a check every few hundredths
            of a second.
    """

    name: str
    begin: Callable[..., Reached]
    interval: int | None = INTERVAL
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.begin) or not _takes(self.begin, self.parameters):
            raise TypeError(
                "begin is a function without arguments (or of the parameters given) that returns a "
                f"function reached(result, remaining) -> bool; got {self.begin!r}"
            )
        if self.interval is not None and not _is_count(self.interval):
            raise ValueError(
                f"interval is a number of simulations, at least 1, or None; got {self.interval!r}"
            )

    def __or__(self, other: AnyStops) -> Stops:
        return Stops(as_stops([self, other]))

    def __ror__(self, other: AnyStops) -> Stops:
        return Stops(as_stops([other, self]))

    def __repr__(self) -> str:
        return f"Stop(name={self.name!r}, interval={self.interval}, parameters={self.parameters})"


@dataclass(frozen=True)
class Stops:
    """Several stops; the first one reached ends a search."""

    stops: tuple[Stop, ...]

    def __or__(self, other: AnyStops) -> Stops:
        return Stops(as_stops([self, other]))


AnyStops = Stop | Stops | list[Stop] | tuple[Stop, ...] | None


def as_stops(given: Any) -> tuple[Stop, ...]:
    """The stops of the option `stop`: none, one, or several as a list or joined by `|`."""
    if given is None:
        return ()
    if isinstance(given, Stop):
        return (given,)
    if isinstance(given, Stops):
        return given.stops
    if isinstance(given, (list, tuple)):
        return tuple(stop for part in given for stop in as_stops(part))
    if callable(given) and getattr(given, "__module__", None) == __name__:
        what = f"the function {given.__name__}; call it, as {given.__name__}()"
    elif callable(given):
        what = f"{given!r}; a function of your own goes into Stop(name, begin)"
    else:
        what = repr(given)
    raise TypeError(
        "stop comes from uctree.stopping, as stopping.decided(), or is a list of such; got " + what
    )


def decided(interval: int = INTERVAL) -> Stop:
    """Stop once the simulations left cannot change the most visited action [Eq. 37].

    With one legal action that is at the first check. The search needs a budget of simulations:
    with `seconds` alone it never ends by this stop.
    """
    return Stop("decided", _begin_decided, interval)


def value_gap(z: float = Z, interval: int = INTERVAL) -> Stop:
    """Stop once the most visited action is better than all others with confidence [Eq. 38].

    Its lower bound is above the upper bounds of all others, `z` standard errors from their means
    [Eq. 11]. Actions without visits count, so the search does not end while there are any.
    """
    return Stop("value_gap", _begin_value_gap, interval, (_at_least_0("z", z),))


def kl_gain(threshold: float, interval: int = INTERVAL) -> Stop:
    """Stop once the distribution of the root's visits hardly changes [Eq. 39].

    Every `interval` simulations it is compared with the one at the previous check; the search ends
    if the divergence per simulation is below `threshold`, say 1e-6.
    """
    return Stop("kl_gain", _begin_kl_gain, interval, (_at_least_0("threshold", threshold),))


def agreed(after: int, interval: int = INTERVAL) -> Stop:
    """Stop once the most visited action also has the largest value, after `after` simulations.

    With `choice="robust_max"` a search uses its whole budget only while the two differ.
    """
    if not _is_count(after):
        raise ValueError(f"after is a number of simulations, at least 1; got {after!r}")
    return Stop("agreed", _begin_agreed, interval, (after,))


def proven(interval: int = INTERVAL) -> Stop:
    """Stop once the best action is proven.

    A search with `solver=True` does so by itself, with the same status, "solved"; without it
    nothing is proven.
    """
    return Stop("solved", _begin_proven, interval)


def deadline(when: datetime | float) -> Stop:
    """Stop at a moment: a datetime (local time without a time zone) or seconds since the epoch.

    The number of simulations by then depends on the machine, and so does the tree.
    """
    moment = when.timestamp() if isinstance(when, datetime) else when
    if isinstance(moment, bool) or not isinstance(moment, (int, float, np.number)):
        raise TypeError(f"deadline takes a datetime or seconds since the epoch; got {when!r}")
    if not EARLIEST < moment < math.inf:
        raise ValueError(
            f"deadline takes a moment, as time.time() + 5; got {when!r}. To limit the duration of "
            "a search, give seconds= to it"
        )
    return Stop("deadline", _begin_deadline, None, (float(moment),))


# The `begin` functions; what they return is called at every check.


def _begin_decided() -> Reached:
    def reached(result: SearchResult, remaining: int | None) -> bool:
        if remaining is None or not _is_decision(result):
            return False
        # No lead is larger than all visits: most checks end before the edges are read.
        num_visits = sum(tree.root.visits for tree in result.trees)
        if num_visits <= remaining and _num_legal(result) > 1:
            return False
        visits = np.append(result.edges["visits"], np.zeros(_num_unvisited(result), np.int64))
        return cannot_be_overtaken(visits, remaining)

    return reached


def _begin_value_gap(z: float) -> Reached:
    def reached(result: SearchResult, remaining: int | None) -> bool:
        if not _is_decision(result) or _num_unvisited(result):
            return False
        best = robust_choice(result.edges["visits"], _q(result))
        return best >= 0 and is_apart(*result.bounds(z), best)

    return reached


def _begin_kl_gain(threshold: float) -> Reached:
    recent: list[np.ndarray] = []  # visits at the previous check, and now

    def reached(result: SearchResult, remaining: int | None) -> bool:
        visits = _visits_by_action(result)
        recent.append(visits)
        if len(recent) < 2:
            return False
        before = recent.pop(0)
        width = max(visits.shape[1], before.shape[1])
        now, then = (np.pad(v, ((0, 0), (0, width - v.shape[1]))).ravel() for v in (visits, before))
        return divergence_gain(now, then) < threshold

    return reached


def _begin_agreed(after: int) -> Reached:
    def reached(result: SearchResult, remaining: int | None) -> bool:
        if not _is_decision(result) or result.simulations < after:
            return False
        return robust_max(result.edges["visits"], _q(result)) >= 0

    return reached


def _begin_proven() -> Reached:
    return lambda result, remaining: result.is_proven


def _begin_deadline(moment: float) -> Reached:
    return lambda result, remaining: time.time() >= moment


def _is_decision(result: SearchResult) -> bool:
    """Whether a player, not chance, acts at the root."""
    return result.tree.root.to_play >= 0


def _num_legal(result: SearchResult) -> int:
    if result.game.is_continuous:  # there is always another vector
        return len(result.edges) + 1
    return len(result.tree.root_squares)


def _visits_by_action(result: SearchResult) -> np.ndarray:
    """Visits of the root's edges by action: one row, or for vectors one row per tree."""
    if not result.game.is_continuous:
        visits = np.zeros((1, max(result.game.num_actions, result.game.max_outcomes)), np.int64)
        visits[0, result.edges["action"]] = result.edges["visits"]
        return visits
    rows = [tree.edge_visits(tree.root.edges) for tree in result.trees]
    visits = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, counted in zip(visits, rows, strict=True):
        row[: len(counted)] = counted
    return visits


def _num_unvisited(result: SearchResult) -> int:
    """Legal actions that have no edge yet."""
    return max(0, _num_legal(result) - len(result.edges))


def _q(result: SearchResult) -> np.ndarray:
    return result.edges["q"][:, result.tree.root.to_play]


def _at_least_0(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number of at least 0; got {value}")
    return float(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def _takes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


# --- watching a search ---------------------------------------------------------------------------


class Watch:
    """The stops of one search, and when each is due.

    Between multiples of `interval` only stops that read a clock are checked.
    """

    def __init__(self, stops: tuple[Stop, ...]) -> None:
        counted = [stop.interval for stop in stops if stop.interval is not None]
        self.interval = min(counted, default=None)  # the search must pause at its multiples
        self.reads_clock = any(stop.interval is None for stop in stops)
        self.stops = stops
        self._reached = [_begun(stop) for stop in stops]
        self._num_checks = 0
        self._passed = dict.fromkeys(counted, 0)  # by interval: how often it has passed

    def reached(self, result: SearchResult, remaining: int | None) -> str | None:
        """The name of the first stop that is reached; None if the search continues."""
        due = self._due(result.simulations)
        for stop, reached in zip(self.stops, self._reached, strict=True):
            if (stop.interval is None or stop.interval in due) and reached(result, remaining):
                return stop.name
        return None

    def _due(self, simulations: int) -> set[int]:
        """The intervals that have passed since the last check; empty if no check is due."""
        if self.interval is None or simulations // self.interval == self._num_checks:
            return set()
        self._num_checks = simulations // self.interval
        due = {each for each, passed in self._passed.items() if simulations // each > passed}
        self._passed |= {each: simulations // each for each in due}
        return due


def watch(stop: AnyStops) -> Watch:
    """The `Watch` of one search from its option `stop`."""
    return Watch(as_stops(stop))


def _begun(stop: Stop) -> Reached:
    reached = stop.begin(*stop.parameters)
    if not callable(reached):
        raise TypeError(
            f"begin of the stop {stop.name!r} must return a function reached(result, remaining) "
            f"-> bool; it returned {reached!r}"
        )
    return reached
