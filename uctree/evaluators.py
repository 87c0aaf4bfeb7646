"""Evaluators of leaves: random playouts, or a user's function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from uctree.engine.compile import adapt
from uctree.engine.memory import num_bytes
from uctree.engine.threaded_calls import ThreadedCalls
from uctree.errors import BrokenGame
from uctree.kernels.answers import list_imagined, list_numbers, no_outcomes, no_step
from uctree.kernels.playouts import (
    value_by_batch,
    value_by_function,
    value_by_function_with_priors,
    value_by_playouts,
    value_by_playouts_with_priors,
)

# --- relative frames, for networks ---------------------------------------------------------------


def to_absolute(relative: np.ndarray, player: int) -> np.ndarray:
    """A vector seen by `player` (me, next, ..., previous) in the order of the players.

        abs[(p + j) mod n] = rel[j]                                                    [Eq. 13]

    >>> to_absolute(np.array([1.0, 2.0, 3.0]), player=1)
    array([3., 1., 2.])
    """
    return np.roll(relative, player)


# --- kinds of evaluator --------------------------------------------------------------------------


@dataclass(eq=False)
class BatchEvaluator:
    """Evaluates batches of leaves in Python."""

    value: Callable[[np.ndarray], tuple[np.ndarray | None, np.ndarray]]
    observes: bool  # it gets observations, and its values are relative to `to_play`
    leaves: int
    cache_bytes: int
    version: Callable[[], int] | None = None
    num_resets: int = 0

    def close(self) -> None:
        """Let the threads of the function end, if it has any; a search does so at its end."""
        if isinstance(self.value, ThreadedCalls):
            self.value.close()

    @property
    def generation(self) -> tuple[int, int]:
        """Numbers that change when cached results become invalid."""
        return self.num_resets, 0 if self.version is None else self.version()


@dataclass(frozen=True)
class Evaluator:
    """How leaves are evaluated: a kernel, the functions it is bound to, and its parameters."""

    name: str
    value_leaf: Callable[..., int]
    functions: tuple[tuple[str, Any], ...] = ()
    gives_priors: bool = False
    num_playouts: int = 1
    max_plies: int | None = None
    plays_out: bool = False  # whether it plays from a leaf to the end
    batch: BatchEvaluator | None = None  # evaluates batches of leaves in Python
    answers: bool = False  # Python knows what is behind edges, too; see `answering`
    model: Any = None  # a learned model, which answers for many trees at once; see `model`
    number: type = np.float32  # of the log-priors and values that Python gives

    def forget(self) -> None:
        """Drop cached results, for instance after the weights of a network changed."""
        if self.batch is not None:
            self.batch.num_resets += 1


def playout(
    num_playouts: int = 1, max_plies: int | None = None, *, priors: bool = False
) -> Evaluator:
    """The mean return of random playouts, cut after `max_plies`.

    A cut playout ends with the value of the game's `heuristic`, or 0 without one.

    Args:
        priors: whether actions get priors from the game's own function `priors`.
    """
    if num_playouts < 1:
        raise ValueError(f"num_playouts must be at least 1; got {num_playouts}")
    if max_plies is not None and max_plies < 0:
        raise ValueError(f"max_plies must be at least 0; got {max_plies}")
    return Evaluator(
        "playout", value_by_playouts_with_priors if priors else value_by_playouts,
        gives_priors=priors, num_playouts=num_playouts, max_plies=max_plies, plays_out=True,
    )  # fmt: skip


_EVALUATOR_ARGUMENTS = ("state", "values", "logits", "priors", "rng", "data")


@lru_cache(maxsize=64)  # the same function is the same evaluator, and compiled once
def compiled(function: Callable[..., None]) -> Evaluator:
    """A plain function that writes the values of a state, compiled into the search.

    It takes `state` and `values` and, by name, any of `logits` or `priors` (one float64 per action,
    zero before the call; those of illegal actions are not read), `rng` (for `uctree.random_below`)
    and `data`. `values[player]` is the expected return from `state` on. With `logits` or `priors`
    the default rule is PUCT.
    """
    names = tuple(inspect.signature(function).parameters)
    unknown = [name for name in names if name not in _EVALUATOR_ARGUMENTS]
    if names[:2] != ("state", "values") or unknown or {"logits", "priors"} <= set(names):
        raise BrokenGame(
            f"an evaluator takes state, values and then any of logits (or priors), rng, data; "
            f"{function.__name__} takes {', '.join(names)}"
        )
    gives_priors = bool({"logits", "priors"} & set(names))
    inner = ["logits" if name == "priors" else name for name in names]
    adapted = adapt(function, ("state", "values", "logits", "rng", "data"), inner)
    kernel = value_by_function_with_priors if gives_priors else value_by_function
    functions = (("evaluate_state", adapted), ("TAKES_PRIORS", "priors" in names))
    return Evaluator(function.__name__, kernel, functions, gives_priors)


def network(
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    *,
    name: str = "network",
    leaves: int = 1,
    cache: int | str = "64MB",
    version: Callable[[], int] | None = None,
) -> Evaluator:
    """A Python function that evaluates a batch of observations: log-priors and values.

    `function(observations)` gets float32 [n, *observation_shape], what `observe` shows to the
    player to move, and returns logits [n, num_actions] and values [n, num_players]. Values are
    relative: first that of the player to move, then that of the next one.

    Args:
        leaves: how many leaves of one tree are evaluated at once.
        cache: size of the evaluation cache, in bytes or as text such as "64MB"; 0: no cache.
        version: returns a number that changes when the results do; the cache is then emptied.
    """
    return _batch_evaluator(name, function, True, leaves, cache, gives_priors=True, version=version)


def python(
    function: Callable[[np.ndarray], Any],
    *,
    priors: bool = False,
    name: str | None = None,
    leaves: int = 1,
    concurrency: int = 1,
    timeout: float | None = None,
    cache: int | str = "64MB",
) -> Evaluator:
    """Any Python function of a batch of states: a simulator, a language model, a service.

    `function(states)` gets records [n] of the game's dtype and returns values [n, num_players],
    the expected return of each player; with `priors` a pair of logits [n, num_actions] and values.

    Args:
        leaves: how many leaves of one tree are evaluated at once.
        concurrency: how many threads evaluate parts of a batch at the same time.
        timeout: seconds after which a call fails, and the search with it.
        cache: size of the evaluation cache, in bytes or as text such as "64MB"; 0: no cache, for
            functions that are random.
    """
    _check_counts(leaves=leaves, concurrency=concurrency)
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be above 0 seconds; got {timeout}")
    asked = ThreadedCalls(function, priors, concurrency, timeout)
    label = name or str(getattr(function, "__name__", "python"))
    return _batch_evaluator(label, asked, False, leaves, cache, priors)


def answering(gives_priors: bool, leaves: int) -> Evaluator:
    """Python says what is behind edges: rewards, players to move, actions, priors and values.

    The states of such a search are records of `kernels.answers.STATE`.
    """
    functions = (("OBSERVES", False), ("legal", list_numbers))
    return _answering("answers", functions, gives_priors, leaves, np.float64)


def model(
    model: Any, *, name: str = "model", leaves: int = 1, number: type = np.float32
) -> Evaluator:
    """A learned model says what is behind edges; for `BatchedSearch`, whose roots are its states.

    Args:
        model: has the methods of `uctree.engine.latent.Model`.
        leaves: how many questions of one tree are answered at once.
        number: the type of log-priors and values in the search.
    """
    _check_counts(leaves=leaves)
    functions = (("OBSERVES", True), ("IMAGINES", True), ("legal", list_imagined))
    return replace(_answering(name, functions, True, leaves, number), model=model)


def _answering(
    name: str, functions: tuple[tuple[str, Any], ...], gives_priors: bool, leaves: int, number: type
) -> Evaluator:
    functions += (("step", no_step), ("chance", no_outcomes))
    batch = BatchEvaluator(_not_a_batch, observes=False, leaves=leaves, cache_bytes=0)
    return Evaluator(
        name, value_by_batch, functions, gives_priors, batch=batch, answers=True, number=number
    )


def _not_a_batch(states: np.ndarray) -> tuple[None, np.ndarray]:
    raise AssertionError("answers come one by one")


def _batch_evaluator(
    name: str, value: Callable[..., Any], observes: bool, leaves: int, cache: int | str,
    gives_priors: bool, version: Callable[[], int] | None = None,
) -> Evaluator:  # fmt: skip
    _check_counts(leaves=leaves)
    batch = BatchEvaluator(value, observes, leaves, num_bytes(cache, "cache"), version)
    functions = (("OBSERVES", observes),)
    return Evaluator(name, value_by_batch, functions, gives_priors, batch=batch)


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {count!r}")
