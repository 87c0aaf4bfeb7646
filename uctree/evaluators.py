"""What a leaf is worth: random playouts, or a function of the user's."""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache
from queue import SimpleQueue
from typing import Any

import numpy as np

from uctree._compile import UNBOUND, adapt
from uctree.errors import BrokenGame
from uctree.game import CHANCE, OVER, Box, Game, random_below, random_normal, random_unit
from uctree.tree import NUM_VALUES, ZERO_SUM, num_values

# Bound when a search is composed: the rules, then what is known of the game.
legal = step = chance = heuristic = random_action = playout_to_end = evaluate = UNBOUND
give_priors = know_exactly = bounds = observe = UNBOUND
draw_action = find_bounds = project = play_on = UNBOUND  # one of the kernels below
IS_CONTINUOUS = DIM = UNBOUND  # whether actions are vectors, and of how many coordinates
NUM_PLAYERS = NUM_ACTIONS = MAX_OUTCOMES = GUARD_AT = DISCOUNT = UNBOUND
HAS_CHANCE = HAS_HEURISTIC = IS_ENDLESS_BAD = TAKES_PRIORS = UNBOUND
IS_OUTSIDE = UNBOUND  # leaves are valued outside the kernel
NOTES_ACTIONS = UNBOUND  # playouts note who played what, for all-moves-as-first

# What became of a kernel's work. Trouble is told in words by `uctree.mcts`.
DONE = 0
GROW = 10  # the tree needs more room; minus a status is never NONE, so none of them is 1
BAD_COUNT = 2  # legal returned a count out of range, or wrote past the end
BAD_ACTION = 3  # an action out of range
BAD_TO_PLAY = 4
BAD_CHANCE = 5  # probabilities that do not add up
BAD_REWARD = 6
BAD_VALUE = 7  # an evaluator's value
NOT_ZERO_SUM = 8
ENDLESS_PLAYOUT = 9
PAYS_EARLY = 11  # a reward before the end, where proofs need that there is none
BAD_CHOICE = 13  # a rule chose what is not there
BAD_SCORE = 14  # a rule's scores are no numbers
SETTLED = 12  # the root is proven, so that nothing is left to do
WAITING = 15  # leaves are to be valued outside the kernel

GUARD = -7  # stands behind the last action or outcome; who overwrites it wrote too many


# --- relative frames, for networks ---------------------------------------------------------------


def to_absolute(relative: np.ndarray, player: int) -> np.ndarray:
    """A vector seen by `player` (me, next, ..., previous) in the order of the players.

        abs[(p + j) mod n] = rel[j]                                                    [Eq. 13]

    >>> to_absolute(np.array([1.0, 2.0, 3.0]), player=1)
    array([3., 1., 2.])
    """
    return np.roll(relative, player)


def to_relative(absolute: np.ndarray, player: int) -> np.ndarray:
    """A vector over the players as `player` sees it: me, next, ..., previous [Eq. 13]."""
    return np.roll(absolute, -player)


# --- kinds of evaluator --------------------------------------------------------------------------


@dataclass(eq=False)
class Outside:
    """What values batches of leaves in Python."""

    value: Callable[[np.ndarray], tuple[np.ndarray | None, np.ndarray]]
    observes: bool  # it is given observations, and values as the player to play sees them
    leaves: int
    cache_bytes: int
    version: Callable[[], int] | None = None
    num_forgotten: int = 0

    @property
    def generation(self) -> tuple[int, int]:
        """What was cached in another one is forgotten."""
        return self.num_forgotten, 0 if self.version is None else self.version()


@dataclass(frozen=True)
class Evaluator:
    """What values leaves: a kernel, the functions it is bound to, and its numbers."""

    name: str
    value_leaf: Callable[..., int]
    functions: tuple[tuple[str, Any], ...] = ()
    gives_priors: bool = False
    num_playouts: int = 1
    max_plies: int | None = None
    plays_out: bool = False  # whether it plays on from a leaf
    outside: Outside | None = None  # what is asked in Python, for batches of leaves

    def forget(self) -> None:
        """Forget what was cached: a network has other weights now."""
        if self.outside is not None:
            self.outside.num_forgotten += 1


def playout(
    num_playouts: int = 1, max_plies: int | None = None, *, priors: bool = False
) -> Evaluator:
    """The mean return of random playouts; one longer than `max_plies` is cut.

    A cut playout is worth what the game's `heuristic` says of its last state, 0 without one.

    Args:
        priors: whether actions get the priors that the game's own function `priors` gives them.
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
    """A plain function that writes what a state is worth, compiled into the search.

    It takes `state` and `values` and, by name, any of `logits` or `priors` (one float64 per action,
    zero before the call; those of illegal actions are not read), `rng` (for `uctree.random_below`)
    and `data`. `values[player]` is what is still to be won from `state` on. With `logits` or
    `priors` the search uses PUCT unless told otherwise.
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
    functions = (("evaluate", adapted), ("TAKES_PRIORS", "priors" in names))
    return Evaluator(function.__name__, kernel, functions, gives_priors)


def network(
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    *,
    name: str = "network",
    leaves: int = 1,
    cache: int | str = "64MB",
    version: Callable[[], int] | None = None,
) -> Evaluator:
    """A function of a batch of observations that gives their log-priors and values.

    `function(observations)` gets float32 [n, *observation_shape], what `observe` shows to the
    player to play, and returns logits [n, num_actions] and values [n, num_players]. Values are
    relative: first what the player to play gets, then the next one.

    Args:
        leaves: how many leaves of one tree are valued at once.
        cache: bytes, or text as "64MB", for answers that are kept; 0 keeps none.
        version: gives a number that changes as the answers do; those that were kept are forgotten
            then.
    """
    return _outside(name, function, True, leaves, cache, gives_priors=True, version=version)


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
    what is still to be won by each player; with `priors` a pair of logits [n, num_actions] and
    values.

    Args:
        leaves: how many leaves of one tree are valued at once.
        concurrency: in how many threads parts of a batch are valued at the same time.
        timeout: seconds after which a call has failed, and the search with it.
        cache: bytes, or text as "64MB", for answers that are kept; 0 keeps none, for functions
            that are random.
    """
    _check_counts(leaves=leaves, concurrency=concurrency)
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be above 0 seconds; got {timeout}")
    asked = Callers(function, priors, concurrency, timeout)
    return _outside(
        name or getattr(function, "__name__", "python"), asked, False, leaves, cache, priors
    )


def _outside(
    name: str, value: Callable[..., Any], observes: bool, leaves: int, cache: int | str,
    gives_priors: bool, version: Callable[[], int] | None = None,
) -> Evaluator:  # fmt: skip
    _check_counts(leaves=leaves)
    outside = Outside(value, observes, leaves, num_bytes(cache, "cache"), version)
    functions = (("OBSERVES", observes),)
    return Evaluator(name, value_outside, functions, gives_priors, outside=outside)


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {count!r}")


class Callers:
    """Asks a function about parts of a batch at the same time, and not for longer than allowed."""

    def __init__(
        self, function: Callable[[np.ndarray], Any], priors: bool, concurrency: int,
        timeout: float | None,
    ) -> None:  # fmt: skip
        self.function, self.priors = function, priors
        self.concurrency, self.timeout = concurrency, timeout
        self.questions: _Questions | None = None
        self.dismiss: Callable[[], Any] | None = None

    def __call__(self, states: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        if self.concurrency == 1 and self.timeout is None:
            return self._read(self.function(states))
        questions = self.questions or self._hire()
        parts = np.array_split(states, min(self.concurrency, len(states)))
        futures: list[Future[Any]] = [Future() for _ in parts]
        for question in zip(futures, parts, strict=True):
            questions.put(question)
        _, late = wait(futures, self.timeout)
        if late:
            # Python cannot end them: whoever asks next gets fresh threads.
            for future in late:
                future.cancel()  # unless a thread has begun with it
            assert self.dismiss is not None
            self.dismiss()
            self.questions = None
            raise TimeoutError(
                f"no answer within {self.timeout} seconds for {len(late)} of {len(parts)} calls"
            )
        answers = [self._read(future.result()) for future in futures]
        values = np.concatenate([values for _, values in answers])
        if not self.priors:
            return None, values
        return np.concatenate([logits for logits, _ in answers if logits is not None]), values

    def _hire(self) -> _Questions:
        """Let threads wait for questions; daemons, as one that hangs is not to keep the process."""
        self.questions = questions = _Questions()
        for number in range(self.concurrency):
            threading.Thread(
                target=_answer, args=(self.function, questions), daemon=True,
                name=f"uctree-evaluator-{number}",
            ).start()  # fmt: skip
        # They know the questions, not who asks: they end where that is gone, too.
        self.dismiss = weakref.finalize(self, _dismiss, questions, self.concurrency)
        return questions

    def _read(self, answer: Any) -> tuple[np.ndarray | None, np.ndarray]:
        if not self.priors:
            return None, np.asarray(answer, np.float32)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(
                f"with priors=True a function returns (logits, values); got {type(answer).__name__}"
            )
        return np.asarray(answer[0], np.float32), np.asarray(answer[1], np.float32)


_Questions = SimpleQueue["tuple[Future[Any], np.ndarray] | None"]


def _answer(function: Callable[[np.ndarray], Any], questions: _Questions) -> None:
    """Answer questions until there is None."""
    while (question := questions.get()) is not None:
        future, states = question
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(function(states))
        except BaseException as error:
            future.set_exception(error)


def _dismiss(questions: _Questions, count: int) -> None:
    for _ in range(count):
        questions.put(None)


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}


def num_bytes(amount: int | str, what: str) -> int:
    """A number of bytes from a number or from text as "500MB"."""
    if isinstance(amount, str):
        text = amount.strip().lower()
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            wanted = float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
        except ValueError:
            raise ValueError(f'{what} is bytes or text as "500MB"; got {amount!r}') from None
    else:
        wanted = float(amount)
    if not (math.isfinite(wanted) and wanted >= 0):
        raise ValueError(f"{what} must be a number of bytes; got {amount}")
    return int(wanted)


def bindings(game: Game, evaluator: Evaluator, notes_actions: bool = False) -> dict[str, Any]:
    """What the kernels of this module are bound to.

    Args:
        notes_actions: whether playouts note who played what; see `note`.
    """
    bound: dict[str, Any] = {
        "NUM_PLAYERS": game.num_players,
        "NUM_ACTIONS": max(1, game.num_actions),
        "IS_CONTINUOUS": game.is_continuous,
        "DIM": game.dim,
        "MAX_OUTCOMES": game.max_outcomes,
        "GUARD_AT": max(game.num_actions, game.max_outcomes),
        "DISCOUNT": game.discount,
        "ZERO_SUM": game.zero_sum,
        "NUM_VALUES": num_values(game),
        "HAS_CHANCE": game.rules.chance is not None,
        "HAS_HEURISTIC": game.rules.heuristic is not None,
        "IS_ENDLESS_BAD": game.max_plies is None and evaluator.max_plies is None,
        "TAKES_PRIORS": False,
        "IS_OUTSIDE": evaluator.outside is not None,
        "NOTES_ACTIONS": notes_actions,
        "evaluate": _no_function,
    }
    for name in ("legal", "step", "chance", "heuristic", "random_action", "bounds"):
        bound[name] = rule(game, name)
    bound["playout_to_end"], bound["give_priors"] = rule(game, "playout"), rule(game, "priors")
    bound["know_exactly"], bound["observe"] = rule(game, "exact"), rule(game, "observe")
    bound["draw_action"] = draw_legal if game.rules.random_action is None else draw_shortcut
    if game.is_continuous:
        bound |= _vector_bindings(game)
    # The game's own playout knows no limit and tells no actions; who needs those asks for steps.
    own = game.rules.playout is not None and evaluator.max_plies is None and not notes_actions
    bound["play_on"] = play_shortcut if own else play_steps
    return bound | dict(evaluator.functions)


def _vector_bindings(game: Game) -> dict[str, Any]:
    """What draws vectors of the game's space, and keeps them in it."""
    is_box = isinstance(game.action_space, Box)
    own = game.rules.random_action is not None
    return {
        "legal": _list_nothing,
        "draw_action": draw_own_vector if own else draw_in_box if is_box else draw_on_sphere,
        "find_bounds": fixed_bounds if game.rules.bounds is None else state_bounds,
        "project": into_box if is_box else onto_sphere,
    }


def action_room(game: Game) -> np.ndarray:
    """Where kernels write legal actions or outcomes; where actions are vectors, one of them.

    Behind the last action stand guards, so that a `legal` that writes too much is caught. A vector
    is the first of three rows; the others are the corners of its box.
    """
    if game.action_space is None:
        return np.full(2 * max(game.num_actions, game.max_outcomes) + 1024, GUARD, np.int32)
    room = np.zeros((3, game.dim))
    if isinstance(game.action_space, Box):
        room[1], room[2] = game.action_space.low, game.action_space.high
    return room


def rule(game: Game, name: str) -> Callable[..., Any]:
    """A function of the game's as kernels call it, with `data` as last argument."""
    function = getattr(game.rules, name)
    if function is None:
        return _no_function
    given = [f"argument_{i}" for i in range(len(game.signatures[name]))] + ["data"]
    return adapt(function, given, given if game.takes_data(name) else given[:-1])


def _no_function() -> None:
    """Stands for what a game does not have; kernels bound to it never call it."""


def _list_nothing(state: Any, actions: np.ndarray, data: Any) -> int:
    """Stands for `legal` where actions are vectors."""
    return 0


# --- kernels: vectors ----------------------------------------------------------------------------
# `actions` has three rows: the vector, and the corners of the box it must be in.


def fixed_bounds(state: Any, actions: np.ndarray, data: Any) -> int:
    """How many coordinates count; the corners stand there already."""
    return DIM


def state_bounds(state: Any, actions: np.ndarray, data: Any) -> int:
    """The same where the box depends on the state; negative where `bounds` is wrong."""
    dim = np.int64(bounds(state, actions[1], actions[2], data))
    if dim < 1 or dim > DIM:
        return -1
    for j in range(dim):
        if not actions[1, j] <= actions[2, j] or math.isinf(actions[1, j] + actions[2, j]):
            return -1
    for j in range(dim, DIM):
        actions[0, j] = 0.0
    return dim


def draw_in_box(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """Write a random vector of the box; negative where there is none."""
    dim = find_bounds(state, actions, data)
    for j in range(dim):
        actions[0, j] = actions[1, j] + (actions[2, j] - actions[1, j]) * random_unit(rng)
    return min(0, dim)


def draw_on_sphere(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """Write a random vector of length 1."""
    for j in range(DIM):
        actions[0, j] = random_normal(rng)
    return onto_sphere(actions, DIM)


def draw_own_vector(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """The vector of the game's own `random_action`."""
    dim = find_bounds(state, actions, data)
    random_action(state, actions[0], rng, data)
    return project(actions, dim)


def into_box(actions: np.ndarray, dim: int) -> int:
    """Move the vector into its box; negative where it is no number."""
    for j in range(dim):
        x = actions[0, j]
        if x < actions[1, j]:
            actions[0, j] = actions[1, j]
        elif x > actions[2, j]:
            actions[0, j] = actions[2, j]
        elif math.isnan(x):
            return -1
    return min(0, dim)


def onto_sphere(actions: np.ndarray, dim: int) -> int:
    """Give the vector the length 1; the first axis for one that has no direction."""
    square = 0.0
    for j in range(DIM):
        square += actions[0, j] * actions[0, j]
    if not math.isfinite(square):
        return -1
    if square == 0.0:
        actions[0, 0] = square = 1.0
    for j in range(DIM):
        actions[0, j] /= math.sqrt(square)
    return 0


# --- kernels: one playout ------------------------------------------------------------------------


def draw_legal(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """A random legal action; negative where `legal` is wrong."""
    count = np.int64(legal(state, actions, data))
    if count < 1 or count > NUM_ACTIONS:
        return -1
    return np.int64(actions[random_below(rng, count)])


def draw_shortcut(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    return np.int64(random_action(state, rng, data))


def draw_chance(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, rng: np.ndarray, data: Any
) -> int:
    """A random outcome of a chance state; negative where `chance` is wrong."""
    count = chance(state, actions, probabilities, data)
    if count < 1 or count > MAX_OUTCOMES:
        return -1
    rest = random_unit(rng)
    for i in range(count - 1):
        rest -= probabilities[i]
        if rest < 0.0:
            return np.int64(actions[i])
    return np.int64(actions[count - 1])


def play_steps(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, reward: np.ndarray,
    returns: np.ndarray, rng: np.ndarray, played: np.ndarray, limit: int, data: Any,
) -> int:  # fmt: skip
    """Play at random until the end or for `limit` plies, and add what that pays to `returns`."""
    discount = 1.0
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    for _ in range(limit):
        player = state.to_play
        if HAS_CHANCE and player == CHANCE:
            action = draw_chance(state, actions, probabilities, rng, data)
            if action < 0:
                return BAD_CHANCE
        elif player < 0 or player >= NUM_PLAYERS:  # one comparison, of which machines know
            if player == OVER:
                break
            return BAD_TO_PLAY
        else:
            action = draw_action(state, actions, rng, data)
            if action < 0 or action >= NUM_ACTIONS:
                return BAD_ACTION
            if NOTES_ACTIONS:
                note(played, np.int64(player), action)
        if IS_CONTINUOUS:
            step(state, actions[0], reward, data)
        else:
            step(state, action, reward, data)
        if pays(reward):
            collect(reward, returns, discount)
        discount *= DISCOUNT
    # Nothing is left to collect, unless a game that is declared zero-sum is not.
    collect(reward, returns, discount)
    if not IS_CONTINUOUS and actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if state.to_play == OVER:
        return DONE
    if IS_ENDLESS_BAD:
        return ENDLESS_PLAYOUT
    if HAS_HEURISTIC:
        heuristic(state, reward, data)
        collect(reward, returns, discount)
    return DONE


def note(played: np.ndarray, player: int, action: int) -> None:
    """Remember that a player played an action in this turn, the number in front."""
    played[1 + player * NUM_ACTIONS + action] = played[0]


def was_played(played: np.ndarray, turn: int, player: int, action: int) -> bool:
    """Whether a player played an action in a turn."""
    return played[1 + player * NUM_ACTIONS + action] == turn


def pays(reward: np.ndarray) -> bool:
    """Whether a step paid anything; in a zero-sum game player 0's part tells."""
    for player in range(NUM_VALUES):  # noqa: SIM110
        if reward[player] != 0.0:
            return True
    return False


def collect(reward: np.ndarray, returns: np.ndarray, discount: float) -> None:
    """Move a reward to the returns."""
    for player in range(NUM_PLAYERS):
        returns[player] += discount * reward[player]
        reward[player] = 0.0


def play_shortcut(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, reward: np.ndarray,
    returns: np.ndarray, rng: np.ndarray, played: np.ndarray, limit: int, data: Any,
) -> int:  # fmt: skip
    """The same by the game's own function."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    if state.to_play != OVER:
        playout_to_end(state, rng, reward, data)
    collect(reward, returns, 1.0)
    return DONE


# --- kernels: the value of a leaf ----------------------------------------------------------------


def value_by_playouts(
    states: Any, actions: np.ndarray, probabilities: np.ndarray, logits: np.ndarray,
    reward: np.ndarray, returns: np.ndarray, rng: np.ndarray, played: np.ndarray,
    num_playouts: int, limit: int, data: Any,
) -> int:  # fmt: skip
    """The mean of playouts from the leaf, `states[1]`, which the last one plays to its end."""
    for _ in range(num_playouts - 1):
        states[2] = states[1]
        status = play_on(
            states[2], actions, probabilities, reward, returns, rng, played, limit, data
        )
        if status != DONE:
            return status
    status = play_on(states[1], actions, probabilities, reward, returns, rng, played, limit, data)
    for player in range(NUM_PLAYERS):
        returns[player] /= num_playouts
    return check_values(returns, status)


def value_by_playouts_with_priors(
    states: Any, actions: np.ndarray, probabilities: np.ndarray, logits: np.ndarray,
    reward: np.ndarray, returns: np.ndarray, rng: np.ndarray, played: np.ndarray,
    num_playouts: int, limit: int, data: Any,
) -> int:  # fmt: skip
    """The same, and the game's log-priors in `logits`."""
    if states[1].to_play >= 0:
        for action in range(NUM_ACTIONS):
            logits[action] = 0.0
        give_priors(states[1], logits, data)
    return value_by_playouts(
        states, actions, probabilities, logits, reward, returns, rng, played, num_playouts, limit,
        data,
    )  # fmt: skip


def value_by_function(
    states: Any, actions: np.ndarray, probabilities: np.ndarray, logits: np.ndarray,
    reward: np.ndarray, returns: np.ndarray, rng: np.ndarray, played: np.ndarray,
    num_playouts: int, limit: int, data: Any,
) -> int:  # fmt: skip
    """What the user's function says of the leaf; of a chance state, what it says after it."""
    discount = pass_chance(states[1], actions, probabilities, reward, returns, rng, data)
    if discount < 0.0:
        return BAD_CHANCE
    if states[1].to_play != OVER:
        evaluate(states[1], reward, logits, rng, data)
        collect(reward, returns, discount)
    return check_values(returns, DONE)


def pass_chance(
    state: Any, actions: np.ndarray, probabilities: np.ndarray, reward: np.ndarray,
    returns: np.ndarray, rng: np.ndarray, data: Any,
) -> float:  # fmt: skip
    """Draw outcomes until a player acts; what comes then counts so much, negative: wrong chance."""
    discount = 1.0
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    while HAS_CHANCE and state.to_play == CHANCE:
        action = draw_chance(state, actions, probabilities, rng, data)
        if action < 0:
            return -1.0
        step(state, action, reward, data)
        collect(reward, returns, discount)
        discount *= DISCOUNT
    return discount


def value_outside(
    states: Any, actions: np.ndarray, probabilities: np.ndarray, logits: np.ndarray,
    reward: np.ndarray, returns: np.ndarray, rng: np.ndarray, played: np.ndarray,
    num_playouts: int, limit: int, data: Any,
) -> int:  # fmt: skip
    """WAITING, and in `reward[0]` how much the answer for `states[1]` will count."""
    discount = pass_chance(states[1], actions, probabilities, reward, returns, rng, data)
    if discount < 0.0:
        return BAD_CHANCE
    if states[1].to_play == OVER:
        return check_values(returns, DONE)
    reward[0] = discount
    return WAITING


def value_by_function_with_priors(
    states: Any, actions: np.ndarray, probabilities: np.ndarray, logits: np.ndarray,
    reward: np.ndarray, returns: np.ndarray, rng: np.ndarray, played: np.ndarray,
    num_playouts: int, limit: int, data: Any,
) -> int:  # fmt: skip
    """The same, and its log-priors in `logits`."""
    for action in range(NUM_ACTIONS):
        logits[action] = 0.0
    status = value_by_function(
        states, actions, probabilities, logits, reward, returns, rng, played, num_playouts, limit,
        data,
    )  # fmt: skip
    if TAKES_PRIORS:
        for action in range(NUM_ACTIONS):
            prior = logits[action]
            if prior > 0.0:
                logits[action] = math.log(prior)
            else:
                logits[action] = -math.inf if prior == 0.0 else math.nan
    return status


def check_values(returns: np.ndarray, status: int) -> int:
    """The status of a leaf's value: as it was, unless the value cannot be used."""
    total = 0.0
    for player in range(NUM_PLAYERS):
        total += returns[player]
    if not math.isfinite(total):
        return BAD_VALUE
    if ZERO_SUM and total != 0.0:
        return NOT_ZERO_SUM
    return status
