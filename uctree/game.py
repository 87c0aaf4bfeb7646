"""Game: a record dtype and its rules as plain functions, run step by step in plain Python.

A state is one NumPy record with a field `to_play`. `uctree.search` compiles the same functions into
its kernels; this module calls them with a `StateView`, which turns overflow and writes out of
bounds into exceptions, so that a mistake in a game shows up with a traceback.
"""

from __future__ import annotations

import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from uctree.errors import BrokenGame, IllegalAction

CHANCE = -1  # to_play of a state in which an outcome is drawn
OVER = -2  # to_play of a state in which the episode has ended

# Without max_plies, a playout of this many plies counts as endless.
ENDLESS = 100_000
# The largest reward or value: sums and squares of numbers up to it are finite.
LARGEST = 1e100

State = Any  # one record of the game's dtype: np.record, np.void, or a StateView inside the rules


# --- randomness --------------------------------------------------------------------------------
# xorshift64* (Vigna 2016): few instructions, and good high bits, which are the ones used. `rng` is
# a uint64 array of one element, never 0. The product wraps modulo 2^64; callers in plain Python
# silence NumPy's overflow warning with np.errstate.

_MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_11, _12, _25, _27, _30, _31, _32 = (np.uint64(k) for k in (11, 12, 25, 27, 30, 31, 32))


def random_bits(rng: np.ndarray) -> np.uint64:
    """The next 64 random bits of `rng`; the low ones are weak, so shift right to use a few."""
    x = np.uint64(rng[0])
    x ^= x >> _12
    x ^= x << _25
    x ^= x >> _27
    rng[0] = x
    return np.uint64(x * _MULTIPLIER)


def random_below(rng: np.ndarray, n: int) -> int:
    """A random integer in `[0, n)`, for n up to 2^32 (the bias is below n / 2^32)."""
    return np.int64(((random_bits(rng) >> _32) * np.uint64(n)) >> _32)  # type: ignore[return-value]


def random_unit(rng: np.ndarray) -> float:
    """A random number in `[0, 1)` with 53 bits."""
    return float(random_bits(rng) >> _11) * (1.0 / 9007199254740992.0)


def random_normal(rng: np.ndarray) -> float:
    """A random number of the standard normal distribution (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - random_unit(rng)))
    return radius * math.cos(2.0 * math.pi * random_unit(rng))


def make_rng(seed: int, stream: int = 0) -> np.ndarray:
    """The generator of a seed; streams of one seed are independent of each other."""
    words = [np.uint64(int(number) & 0xFFFFFFFFFFFFFFFF) for number in (seed, stream)]
    with np.errstate(over="ignore"):
        return np.array([seeded(*words)], np.uint64)


def seeded(seed: np.uint64, stream: np.uint64) -> np.uint64:
    """The initial state of the generator of a seed and a stream; never 0."""
    # The finalizer of splitmix64, twice: neighbouring seeds give unrelated states.
    state = _finalized(np.uint64(seed + stream * _INCREMENT + _INCREMENT))
    state = _finalized(np.uint64(state + _INCREMENT))
    return max(np.uint64(1), state)


def _finalized(state: np.uint64) -> np.uint64:
    state = np.uint64((state ^ (state >> _30)) * np.uint64(0xBF58476D1CE4E5B9))
    state = np.uint64((state ^ (state >> _27)) * np.uint64(0x94D049BB133111EB))
    return np.uint64(state ^ (state >> _31))


# --- records in plain Python --------------------------------------------------------------------


class FieldView(np.ndarray):
    """An array field of a state: elements are Python numbers, and overflow raises."""

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        return value if isinstance(value, np.ndarray) else value.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            if not np.can_cast(value.dtype, self.dtype) and np.any(
                value.astype(self.dtype) != value
            ):
                raise OverflowError(f"{value} does not fit into {self.dtype}")
            super().__setitem__(index, value)
        else:
            super().__setitem__(index, _fitting(value, self.dtype))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))


class StateView:
    """The state that rules get in plain Python: `state.field`, checked on every write."""

    __slots__ = ("_record",)

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._record[name]
        except ValueError:
            raise AttributeError(
                f"the state has no field {name!r}; it has {', '.join(self._record.dtype.names)}"
            ) from None
        return value.view(FieldView) if isinstance(value, np.ndarray) else value.item()

    def __setattr__(self, name: str, value: Any) -> None:
        current = self.__getattr__(name)
        if isinstance(current, FieldView):
            current[...] = value
        else:
            self._record[name] = _fitting(value, self._record.dtype[name], f"field {name!r}")

    def __repr__(self) -> str:
        return f"StateView({self._record})"


class StateViews:
    """An array of states, each a `StateView`; what a kernel gets if it is not compiled."""

    def __init__(self, records: np.ndarray) -> None:
        self.records = records

    def __getitem__(self, index: int) -> StateView:
        return StateView(self.records[index])

    def __setitem__(self, index: int, state: StateView) -> None:
        self.records[index] = state._record


def _fitting(value: Any, dtype: np.dtype, what: str = "an element") -> Any:
    """`value` if it fits into `dtype`, else an OverflowError."""
    if dtype.kind not in "iu":
        return value
    number = int(value)
    low, high = _limits(dtype)
    if not low <= number <= high:
        raise OverflowError(
            f"{number} does not fit into {what} of type {dtype} ({low} to {high}); use a wider type"
        )
    return number


@lru_cache(maxsize=32)
def _limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


# --- spaces of actions -------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Box:
    """Actions are the vectors between two corners.

    >>> Box(-5.0, 5.0, dim=3).project([7.0, 0.0, -9.0])
    array([ 5.,  0., -5.])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __init__(self, low: Any, high: Any, dim: int | None = None) -> None:
        """
        Args:
            dim: the number of coordinates, if `low` and `high` are one number for all of them.
        """
        lengths = {np.asarray(corner).size for corner in (low, high) if np.ndim(corner)}
        size = dim if dim is not None else max(lengths, default=1)
        if lengths - {size} or isinstance(size, bool) or size < 1:
            raise BrokenGame(
                f"the corners of a Box are numbers or {size} numbers each; got low={low}, "
                f"high={high}, dim={dim}"
            )
        corners = [np.broadcast_to(np.asarray(c, float), (size,)).tolist() for c in (low, high)]
        if not all(math.isfinite(a) and math.isfinite(b) and a < b for a, b in zip(*corners)):  # noqa: B905
            raise BrokenGame(f"a Box needs finite low < high; got low={low}, high={high}")
        object.__setattr__(self, "low", tuple(corners[0]))
        object.__setattr__(self, "high", tuple(corners[1]))

    @property
    def dim(self) -> int:
        """The number of coordinates of an action."""
        return len(self.low)

    def project(self, vector: Any) -> np.ndarray:
        """The action nearest to a vector."""
        return np.clip(np.asarray(vector, float), self.low, self.high)


@dataclass(frozen=True)
class Sphere:
    """Actions are the vectors of length 1 with `dim` coordinates.

    >>> Sphere(2).project([3.0, 4.0])
    array([0.6, 0.8])
    """

    dim: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.dim, (int, np.integer)) and not isinstance(self.dim, bool)
        if not is_whole or self.dim < 2:
            raise BrokenGame(f"a Sphere has at least 2 coordinates; got dim={self.dim!r}")
        object.__setattr__(self, "dim", int(self.dim))

    def project(self, vector: Any) -> np.ndarray:
        """The action nearest to a vector; the first axis for the zero vector."""
        vector = np.asarray(vector, float)
        length = float(np.linalg.norm(vector))
        return vector / length if length > 0 else np.eye(self.dim)[0]


# --- the game ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Episode:
    """One play of a game from start to end."""

    actions: list[Any]  # numbers, or vectors in a continuous game; chance outcomes included
    rewards: np.ndarray  # [num_plies, num_players]
    returns: np.ndarray  # [num_players], discounted
    state: np.record  # the last one
    complete: bool  # False if max_plies cut the episode


@dataclass(frozen=True)
class Rules:
    """The functions of a game, as its author wrote them; None for those it does not have."""

    legal: Callable[..., int] | None
    step: Callable[..., None]
    start: Callable[..., None] | None = None
    chance: Callable[..., int] | None = None
    observe: Callable[..., None] | None = None
    random_action: Callable[..., int] | None = None
    playout: Callable[..., None] | None = None
    heuristic: Callable[..., None] | None = None
    priors: Callable[..., None] | None = None
    exact: Callable[..., bool] | None = None
    show: Callable[..., str] | None = None
    show_action: Callable[..., str] | None = None
    read_action: Callable[..., Any] | None = None
    bounds: Callable[..., int] | None = None
    invariant: Callable[..., bool | None] | None = None


# The arguments of the functions that are compiled; each may take `data` as one more argument.
SIGNATURES = {
    "legal": ("state", "actions"),
    "step": ("state", "action", "reward"),
    "start": ("state",),
    "chance": ("state", "outcomes", "probabilities"),
    "observe": ("state", "player", "planes"),
    "random_action": ("state", "rng"),
    "playout": ("state", "rng", "reward"),
    "heuristic": ("state", "values"),
    "priors": ("state", "logits"),
    "exact": ("state", "values"),
    "bounds": ("state", "low", "high"),
}
# As well, of those that only plain Python calls.
PLAIN_SIGNATURES = {"invariant": ("state",)}
# If actions are vectors, `random_action` writes one.
VECTOR_SIGNATURES = SIGNATURES | {"random_action": ("state", "action", "rng")}


class Game:
    """A game or planning problem: a record dtype and its rules as plain functions.

    `legal(state, actions) -> count` writes the legal actions. `step(state, action, reward)` changes
    the state in place, adds to `reward[player]` (zero before each step) and sets `state.to_play` to
    the next player, CHANCE or OVER. If actions are vectors, `action_space` says which ones, and
    `legal` is None. The rest is optional:

    Args:
        start: sets up a zeroed record; without it the start is all zeros.
        data: a tuple of arrays passed to every function that takes one more argument.
        chance: `chance(state, outcomes, probabilities) -> count`, at most `max_outcomes` of them,
            called if `to_play` is CHANCE; `step` then gets one of the outcomes.
        action_space: `Box(low, high)` or `Sphere(dim)`: the action that `step` gets is a float64
            vector of it. Omit `num_actions` then.
        bounds: `bounds(state, low, high) -> dim` writes the corners of the box of a state, which
            lies within `action_space`; only the first `dim` coordinates are used.
        random_action: `random_action(state, rng) -> action`, a faster or stronger playout policy;
            with an action space `random_action(state, action, rng)`, which writes the vector.
        playout: `playout(state, rng, reward)` plays to the end and adds the returns to `reward`.
        heuristic: `heuristic(state, values)` writes the value of a state at which a playout is cut.
        priors: `priors(state, logits)` writes one log-prior per action, 0 before the call; for
            `evaluators.playout(priors=True)`.
        exact: `exact(state, values) -> known` writes the value of a state for each player under
            perfect play, if the game knows it, as in an endgame; `solver=True` takes it as proven.
            It may use fields that are not in the key as scratch.
        observe: `observe(state, player, planes)` fills a float32 array of `observation_shape`,
            which is zero before the call.
        payoff_range: the range of the return from the start, one pair or one pair per player;
            None means unknown, and the search uses running minima and maxima.
        zero_sum: every reward vector of a two-player game adds up to zero. A search then stores one
            number per edge instead of two, and raises an error if a reward vector does not.
        max_plies: a playout that reaches it is cut; counted by the field `ply` if there is one.
        repetition_value: the value of an episode that returns to an earlier state, one number or
            one per player; used by a search with `transpositions=True`, and by `solve`.
        key_fields: the fields that identify a state (all by default).
        symmetric_seats: whether all seats are alike: if another player begins, from the start with
            another `to_play`, and the same actions follow, then the same actions are legal, and
            turns and rewards move on with the seats. The doctor checks it.
        environment: the environment that episodes come from, such as "gymnasium:CartPole-v1". Such
            a game says what is observed, and has no rules; see `uctree.learn.environments`.
        invariant: `invariant(state)` returns False, or raises, if a state cannot be right, as one
            with more stones than plies; the doctor calls it in every state of its episodes.
        symmetries: permutations under which the rules do not change, the identity first:
            `actions[k, a]` is the image of action a, `cells[k, i]` that of cell i of each
            observation plane. `board_symmetries` makes them for boards whose actions are cells.
        geometry: how to draw the state: ("grid", rows, cols) or ("hex", rows, cols).
        show, show_action, read_action: `show(state) -> str`, `show_action(state, action) -> str`,
            `read_action(state, text) -> action`, for people.
    """

    def __init__(
        self,
        dtype: Any,
        legal: Callable[..., int] | None,
        step: Callable[..., None],
        *,
        num_players: int,
        num_actions: int = 0,
        name: str | None = None,
        start: Callable[..., None] | None = None,
        data: tuple[np.ndarray, ...] | None = None,
        chance: Callable[..., int] | None = None,
        max_outcomes: int = 0,
        action_space: Box | Sphere | None = None,
        bounds: Callable[..., int] | None = None,
        observe: Callable[..., None] | None = None,
        observation_shape: tuple[int, ...] | None = None,
        random_action: Callable[..., int] | None = None,
        playout: Callable[..., None] | None = None,
        heuristic: Callable[..., None] | None = None,
        priors: Callable[..., None] | None = None,
        exact: Callable[..., bool] | None = None,
        payoff_range: Any = None,
        zero_sum: bool = False,
        discount: float = 1.0,
        max_plies: int | None = None,
        repetition_value: Any = 0.0,
        key_fields: Sequence[str] | None = None,
        symmetric_seats: bool = False,
        environment: str | None = None,
        invariant: Callable[..., bool | None] | None = None,
        symmetries: tuple[np.ndarray, np.ndarray] | None = None,
        geometry: tuple[str, int, int] | None = None,
        show: Callable[..., str] | None = None,
        show_action: Callable[..., str] | None = None,
        read_action: Callable[..., Any] | None = None,
    ) -> None:
        self.dtype = _checked_dtype(dtype)
        self.rules = Rules(
            legal, step, start, chance, observe, random_action, playout, heuristic, priors, exact,
            show, show_action, read_action, bounds, invariant,
        )  # fmt: skip
        self.num_players = _positive("num_players", num_players)
        self.action_space = action_space
        self.num_actions = 0 if self.is_continuous else _positive("num_actions", num_actions)
        if self.is_continuous and num_actions != 0:
            raise BrokenGame(f"a game with an action_space has no num_actions; got {num_actions}")
        self.name = name if name is not None else getattr(step, "__module__", "game")
        self.data = _checked_data(data)
        # For worlds whose actions are Python objects; actions of records are numbers.
        self.labels: Callable[[State, Any], Any] | None = None
        # How many of a state's edges have an action yet, if actions are proposed one by one.
        self.num_listed: Callable[[State], int] | None = None
        # What a tree file needs beside the tree: all that is known of such a world, as bytes.
        self.answers: Callable[[Any], np.ndarray] | None = None
        self.max_outcomes = max_outcomes
        self.observation_shape = observation_shape
        self.payoff_range = _checked_range(payoff_range, num_players)
        self.zero_sum = zero_sum
        self.discount = float(discount)
        self.max_plies = None if max_plies is None else _positive("max_plies", max_plies)
        self.repetition_value = _checked_repetition(repetition_value, num_players)
        self.key_fields = tuple(self.dtype.names or ()) if key_fields is None else tuple(key_fields)
        self.symmetric_seats = symmetric_seats
        self.environment = environment
        self.symmetries = None if symmetries is None else tuple(map(np.asarray, symmetries))
        self.geometry = geometry
        # The window whose cells are its actions, or that follows its stones; see `uctree.views`.
        self.view: Any = None
        # `legal` and `step` as machine code, for large states; see `uctree.engine.stepping`.
        self.stepper: Any = None
        self._record = np.dtype((np.record, self.dtype))  # states let users write state.field
        self._takes_data: dict[str, bool] = {}
        # What the engine has compiled for this game; here, so that it is dropped with the game.
        self.tables: dict[str, Any] = {}
        self._check()

    def _check(self) -> None:
        needed = ("step",) if self.is_continuous else ("legal", "step")
        for function_name, arguments in (self.signatures | PLAIN_SIGNATURES).items():
            function = getattr(self.rules, function_name)
            _check_signature(function_name, function, arguments, function_name in needed)
            self._takes_data[function_name] = function is not None and takes_data(
                function, arguments
            )
        self._check_space()
        if self.num_players > np.iinfo(self.dtype["to_play"]).max + 1:
            raise BrokenGame(f"{self.num_players} players do not fit into the field to_play")
        if (self.rules.chance is None) != (self.max_outcomes == 0) or self.max_outcomes < 0:
            raise BrokenGame(
                "a game of chance needs both chance= and max_outcomes= (the largest number of "
                "outcomes of a state); got "
                f"chance={self.rules.chance}, max_outcomes={self.max_outcomes}"
            )
        if (self.rules.observe is None) != (self.observation_shape is None):
            raise BrokenGame("observe= and observation_shape= go together; only one was given")
        if not 0.0 < self.discount <= 1.0:
            raise BrokenGame(f"discount must be above 0 and at most 1; got {self.discount}")
        if self.zero_sum and self.num_players != 2:
            raise BrokenGame(f"zero_sum=True is for two players; this game has {self.num_players}")
        if self.zero_sum and self.repetition_value.sum() != 0:
            raise BrokenGame(
                "zero_sum=True, but repetition_value does not add up to zero: "
                f"{self.repetition_value.tolist()}"
            )
        if self.symmetries is not None:
            _check_symmetries(self.symmetries, self.num_actions)
        if self.geometry is not None and self.geometry[0] not in ("grid", "hex"):
            raise BrokenGame(f'geometry is ("grid" or "hex", rows, cols); got {self.geometry}')
        unknown = set(self.key_fields) - set(self.dtype.names or ())
        if unknown:
            raise BrokenGame(f"key_fields names {sorted(unknown)}; fields are {self.dtype.names}")

    def _check_space(self) -> None:
        space, rules = self.action_space, self.rules
        if space is None:
            if rules.bounds is not None:
                raise BrokenGame("bounds= needs action_space=Box(low, high), which contains them")
            return
        if not isinstance(space, (Box, Sphere)):
            raise BrokenGame(f"action_space is a uctree.Box or a uctree.Sphere; got {space!r}")
        if rules.legal is not None:
            raise BrokenGame(
                "a game with an action_space cannot list its actions: pass None for legal, and "
                "bounds= if the box depends on the state"
            )
        if rules.bounds is not None and isinstance(space, Sphere):
            raise BrokenGame("bounds= is for a Box; a Sphere has none")
        if rules.chance is not None:
            raise BrokenGame(
                "chance= and action_space= cannot be combined yet: step would get an outcome or a "
                "vector; draw from a fixed list of numbers in the state instead"
            )
        if self.symmetries is not None:
            raise BrokenGame("symmetries permute numbered actions; a game with an action_space has "
                             "none")  # fmt: skip

    @property
    def is_continuous(self) -> bool:
        """Whether actions are vectors."""
        return self.action_space is not None

    @property
    def dim(self) -> int:
        """The number of coordinates of an action; 0 if actions are integers."""
        return 0 if self.action_space is None else self.action_space.dim

    @property
    def signatures(self) -> dict[str, tuple[str, ...]]:
        """The arguments of each function of the game, by its name."""
        return VECTOR_SIGNATURES if self.is_continuous else SIGNATURES

    def takes_data(self, name: str) -> bool:
        """Whether a function of the game takes `data` as its last argument."""
        return self._takes_data[name]

    def __repr__(self) -> str:
        actions = f"{self.num_actions} actions" if not self.is_continuous else self.action_space
        return (
            f"<Game {self.name}: {self.num_players} players, {actions}, "
            f"{self.dtype.itemsize} bytes a state>"
        )

    # Single steps, in plain Python.

    def start(self) -> np.record:
        """The state in which every episode begins."""
        state = np.zeros(1, self._record)[0]
        self._call("start", StateView(state))
        return state

    def to_play(self, state: State) -> int:
        """The player who acts in `state`, CHANCE, or OVER."""
        return int(self.copy(state)["to_play"])

    def is_over(self, state: State) -> bool:
        """Whether the episode has ended."""
        return self.to_play(state) == OVER

    def legal(self, state: State) -> list[int]:
        """The actions allowed in `state`; the outcomes of a chance state; none if it is over."""
        state = self.copy(state)
        to_play = self._checked_to_play(state)
        if to_play == OVER:
            return []
        if self.is_continuous:
            raise TypeError(
                f"the actions of {self.name} are the vectors of {self.action_space}, too many to "
                "list; game.box(state) gives the corners of the box they lie in"
            )
        if to_play == CHANCE:
            return [outcome for outcome, _ in self.outcomes(state)]
        if self.stepper is not None:
            return self._checked_legal(state, *self.stepper.legal(state))
        actions = np.zeros(self.num_actions, np.int32)
        count = self._call("legal", StateView(state), actions)
        return self._checked_legal(state, actions, count)

    def box(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The corners of the box that holds the actions of a state of a continuous game."""
        space = self.action_space
        if space is None:
            raise TypeError(f"the actions of {self.name} are numbers; game.legal(state) lists them")
        if isinstance(space, Sphere):
            return -np.ones(space.dim), np.ones(space.dim)
        low, high = np.array(space.low), np.array(space.high)
        if self.rules.bounds is None:
            return low, high
        dim = self._call("bounds", StateView(self.copy(state)), low, high)
        if not _is_count(dim, space.dim):
            raise BrokenGame(f"bounds returned {dim}; expected the number of coordinates that "
                             f"count, 1 to {space.dim}")  # fmt: skip
        low, high = low[:dim], high[:dim]
        inside = (low >= space.low[:dim]) & (high <= space.high[:dim]) & (low <= high)
        if not inside.all():
            raise BrokenGame(
                f"bounds wrote {low.tolist()} to {high.tolist()}; expected low <= high within "
                f"{space}"
            )
        return low, high

    def vector(self, state: State, action: Any) -> np.ndarray:
        """An action of a continuous game as a vector; IllegalAction if it is not legal.

        A number counts as a vector of one coordinate.
        """
        vector = np.atleast_1d(np.asarray(action, float))
        low, high = self.box(state)
        if vector.shape == (self.dim,) and not vector[len(low) :].any():
            vector = vector[: len(low)]
        if vector.shape != low.shape or not np.isfinite(vector).all():
            raise IllegalAction(f"action {action} is not legal; expected {len(low)} finite numbers")
        if isinstance(self.action_space, Sphere):
            if abs(np.linalg.norm(vector) - 1.0) > 1e-9:
                raise IllegalAction(
                    f"action {vector.tolist()} is not legal: its length is "
                    f"{np.linalg.norm(vector)}; expected 1"
                )
        elif ((vector < low) | (vector > high)).any():
            raise IllegalAction(
                f"action {vector.tolist()} is not legal; expected {low.tolist()} to {high.tolist()}"
            )
        full = np.zeros(self.dim)
        full[: len(vector)] = vector
        return full

    def outcomes(self, state: State) -> list[tuple[int, float]]:
        """The outcomes of a chance state with their probabilities, without impossible ones."""
        state = self.copy(state)
        outcomes = np.zeros(self.max_outcomes, np.int32)
        probabilities = np.zeros(self.max_outcomes)
        count = self._call("chance", StateView(state), outcomes, probabilities)
        if not _is_count(count, self.max_outcomes):
            raise BrokenGame(
                f"chance returned {count} outcomes; expected a whole number from 1 to "
                f"{self.max_outcomes}, how many it wrote"
            )
        given, total = probabilities[:count], probabilities[:count].sum()
        if not abs(total - 1.0) < 1e-9 or (given < 0).any():
            raise BrokenGame(
                f"the probabilities of chance are {given.tolist()}, which add up to {total}; "
                "expected numbers of at least 0 that add up to 1"
            )
        if (outcomes[:count] < 0).any():
            raise BrokenGame(
                f"chance wrote the outcomes {outcomes[:count].tolist()}; expected whole numbers of "
                "at least 0"
            )
        return [
            (int(outcome), float(p))
            for outcome, p in zip(outcomes[:count], probabilities[:count], strict=True)
            if p > 0
        ]

    def step(self, state: State, action: Any) -> tuple[np.record, np.ndarray]:
        """The state after `action` and the reward vector it pays; `state` does not change."""
        action = self._checked_action(state, action)
        reward = np.zeros(self.num_players)
        if self.stepper is not None:
            after = self.stepper.step(state, action, reward)
        else:
            after = self.copy(state)
            self._call("step", StateView(after), action, reward)
        if not (abs(reward) <= LARGEST).all():
            raise BrokenGame(
                f"step paid {reward} for action {action}; rewards must be finite, and at most "
                f"{LARGEST:g}"
            )
        self._checked_to_play(after)
        return after, reward

    def _checked_action(self, state: State, action: Any) -> Any:
        """A legal action, converted to what `step` takes; IllegalAction if it is not legal."""
        ply = f" at ply {int(state['ply'])}" if "ply" in (self.dtype.names or ()) else ""
        if self.is_continuous:
            if self.is_over(state):
                raise IllegalAction(f"action {action} is not legal{ply}; the episode is over")
            return self.vector(state, action).view(FieldView)
        action = operator.index(action)
        legal = self.legal(state)
        if action not in legal:
            where = "the episode is over" if not legal else f"legal actions: {legal}"
            raise IllegalAction(f"action {action} is not legal{ply}; {where}")
        return action

    def play(self, actions: Iterable[Any], state: State | None = None) -> np.record:
        """The state after these actions (chance outcomes included), from the start or `state`."""
        return self.replay(actions, state).state

    def replay(self, actions: Iterable[Any], state: State | None = None) -> Episode:
        """The episode of these actions (chance outcomes included), from the start or `state`."""
        state = self.start() if state is None else self.copy(state)
        taken: list[Any] = []
        rewards: list[np.ndarray] = []
        for action in actions:
            state, reward = self.step(state, action)
            taken.append(self.plain_action(action))
            rewards.append(reward)
        return self._episode(taken, rewards, state)

    def label(self, state: State, action: Any) -> Any:
        """What an action is called outside the search: itself, unless the game has `labels`."""
        return action if self.labels is None else self.labels(state, action)

    def plain_action(self, action: Any) -> Any:
        """An action as an `Episode` holds it: an int, or a float64 vector."""
        return np.atleast_1d(np.array(action, float)) if self.is_continuous else int(action)

    def _episode(self, actions: list[Any], rewards: list[np.ndarray], state: np.record) -> Episode:
        table = np.array(rewards).reshape(-1, self.num_players)
        returns = (self.discount ** np.arange(len(table))) @ table
        return Episode(actions, table, returns, state, self.is_over(state))

    def random_episode(self, seed: int = 0) -> Episode:
        """An episode of uniformly random actions; the same seed gives the same episode."""
        rng = make_rng(seed)
        state = self.start()
        actions: list[Any] = []
        rewards: list[np.ndarray] = []
        limit = ENDLESS if self.max_plies is None else self.max_plies
        while not self.is_over(state) and len(actions) < limit:
            with np.errstate(over="ignore"):
                action = self._random_legal(state, rng)
            state, reward = self.step(state, action)
            actions.append(action)
            rewards.append(reward)
        complete = self.is_over(state)
        if not complete and self.max_plies is None:
            raise BrokenGame(
                f"a random episode of {self.name} was still going after {limit} plies; "
                "set max_plies= if episodes may be that long"
            )
        return self._episode(actions, rewards, state)

    def observation(self, state: State, player: int) -> np.ndarray:
        """The observation of `state` for `player`: float32 of `observation_shape`."""
        if self.rules.observe is None:
            raise BrokenGame(f"{self.name} has no observe= function; give one to use a network")
        planes = np.zeros(self.observation_shape or (), np.float32)
        self._call("observe", StateView(self.copy(state)), player, planes)
        return planes

    def estimate(self, state: State) -> np.ndarray:
        """The value of `state` for each player by `heuristic`; 0 without one."""
        values = np.zeros(self.num_players)
        self._call("heuristic", StateView(self.copy(state)), values)
        if not (abs(values) <= LARGEST).all():
            raise BrokenGame(
                f"the heuristic gave {values}; values must be finite, and at most {LARGEST:g}"
            )
        return values

    def key(self, state: State) -> bytes:
        """The bytes of the key fields: equal for states that are the same position."""
        record = self.copy(state)
        return b"".join(np.asarray(record[name]).tobytes() for name in self.key_fields)

    def show(self, state: State) -> str:
        """The state as text for people."""
        state = self.copy(state)
        if self.rules.show is not None:
            return str(self.rules.show(StateView(state)))
        return "\n".join(f"{name}: {state[name]}" for name in self.dtype.names or ())

    def show_action(self, state: State, action: Any) -> str:
        """The action as text for people."""
        if self.rules.show_action is not None:
            given = self.vector(state, action) if self.is_continuous else action
            return str(self.rules.show_action(StateView(self.copy(state)), given))
        if not self.is_continuous:
            return str(action)
        shown = ", ".join(f"{number:.6g}" for number in np.atleast_1d(action))
        return shown if np.size(action) == 1 else f"({shown})"

    def read_action(self, state: State, text: str) -> Any:
        """The action that `text` stands for; IllegalAction if it stands for none."""
        if self.is_continuous:
            return self._read_vector(state, text)
        legal = self.legal(state)
        view = StateView(self.copy(state))
        shown = self.rules.show_action
        for action in legal:
            if (str(action) if shown is None else shown(view, action)) == text.strip():
                return action
        try:
            reader = self.rules.read_action
            action = int(text) if reader is None else int(reader(view, text.strip()))
        except (ValueError, IndexError, KeyError):
            action = -1
        if action not in legal:
            choices = ", ".join(self.show_action(state, a) for a in legal[:50])
            raise IllegalAction(f"{text.strip()!r} is not a legal action here; legal: {choices}")
        return action

    def _read_vector(self, state: State, text: str) -> np.ndarray:
        reader = self.rules.read_action
        try:
            if reader is not None:
                numbers = reader(StateView(self.copy(state)), text.strip())
            else:
                numbers = [float(word) for word in text.strip("() \n\t").replace(",", " ").split()]
        except (ValueError, IndexError, KeyError):
            numbers = []
        if np.size(numbers) == 0:
            raise IllegalAction(
                f"{text.strip()!r} is no action; write {len(self.box(state)[0])} numbers, as "
                f"{self.show_action(state, self.box(state)[0])}"
            )
        return self.vector(state, numbers)

    def copy(self, state: State) -> np.record:
        """A new record with the content of `state`; BrokenGame for another dtype."""
        dtype = getattr(state, "dtype", None)
        if dtype != self.dtype or getattr(state, "shape", ()) != ():
            raise BrokenGame(
                f"expected one record of {self.name} with fields {self.dtype.names}; "
                f"got {type(state).__name__} of dtype {dtype}; "
                "states come from game.start(), game.step() and game.play()"
            )
        records = np.zeros(1, self._record)
        records[0] = state
        return records[0]

    def _call(self, function_name: str, *arguments: Any) -> Any:
        function = getattr(self.rules, function_name)
        if function is None:
            return None
        with np.errstate(over="ignore"):
            if self._takes_data[function_name]:
                return function(*arguments, self.data)
            return function(*arguments)

    def random_vector(self, state: State, rng: np.ndarray) -> np.ndarray:
        """A random action of a continuous game, uniform in the box or on the sphere."""
        low, high = self.box(state)
        with np.errstate(over="ignore"):
            if isinstance(self.action_space, Sphere):
                return self.action_space.project([random_normal(rng) for _ in low])
            return np.array([
                a + (b - a) * random_unit(rng) for a, b in zip(low, high, strict=True)
            ])  # fmt: skip

    def _random_legal(self, state: State, rng: np.ndarray) -> Any:
        if self.is_continuous:
            return self.random_vector(state, rng)
        if self.to_play(state) != CHANCE:
            legal = self.legal(state)
            return legal[random_below(rng, len(legal))]
        rest = random_unit(rng)
        outcomes = self.outcomes(state)
        for outcome, probability in outcomes:
            rest -= probability
            if rest < 0:
                return outcome
        return outcomes[-1][0]

    def _checked_to_play(self, state: np.record) -> int:
        to_play = int(state["to_play"])
        allowed = OVER <= to_play < self.num_players
        if not allowed or (to_play == CHANCE and self.rules.chance is None):
            raise BrokenGame(
                f"to_play is {to_play}; expected 0 to {self.num_players - 1}, uctree.OVER, "
                "or uctree.CHANCE in a game that has chance="
            )
        return to_play

    def _checked_legal(self, state: np.record, actions: np.ndarray, count: Any) -> list[int]:
        if not _is_count(count, self.num_actions):
            raise BrokenGame(
                f"legal returned {count} in a state that is not over; expected the number of "
                f"actions that it wrote, a whole number from 1 to {self.num_actions}. If the "
                "episode has ended, step must set to_play = uctree.OVER"
            )
        legal: list[int] = actions[:count].tolist()
        if min(legal) < 0 or max(legal) >= self.num_actions:
            raise BrokenGame(f"legal wrote {legal}; actions must be in [0, {self.num_actions})")
        if len(set(legal)) != len(legal):
            raise BrokenGame(f"legal wrote an action twice: {legal}")
        return legal

    # Pickling, for worker processes: a function by module, name and closure values, never its code.

    def __reduce__(self) -> tuple[Any, ...]:
        if self.view is not None:
            reduced: tuple[Any, ...] = self.view.reduced(self)
            return reduced
        arguments = {
            key: value
            for key, value in self.__dict__.items()
            if key
            not in (
                "rules",
                "dtype",
                "payoff_range",
                "_record",
                "_takes_data",
                "tables",
                "labels",
                "num_listed",
                "answers",
                "view",
                "stepper",
            )
        }
        arguments["payoff_range"] = (
            None if self.payoff_range is None else self.payoff_range.tolist()
        )
        rules = {key: portable(value) for key, value in vars(self.rules).items()}
        return _rebuild_game, (self.dtype, rules, arguments)


def _rebuild_game(dtype: np.dtype, rules: dict[str, Any], arguments: dict[str, Any]) -> Game:
    functions = {key: from_portable(value) for key, value in rules.items()}
    return Game(dtype, functions.pop("legal"), functions.pop("step"), **functions, **arguments)


@dataclass(frozen=True)
class _FunctionName:
    """What a pickle holds of a function."""

    module: str
    qualname: str
    line: int  # distinguishes lambdas of one function
    cells: tuple[Any, ...]


def portable(value: Any) -> Any:
    """A function by its name and what it closes over, to be pickled; anything else as it is."""
    if not isinstance(value, types.FunctionType):
        return value
    cells = tuple(portable(cell.cell_contents) for cell in value.__closure__ or ())
    name = _FunctionName(value.__module__, value.__qualname__, value.__code__.co_firstlineno, cells)
    try:
        found = _find_code(name)
    except (ImportError, AttributeError, StopIteration):
        found = None
    if found != value.__code__:
        raise BrokenGame(
            f"{value.__qualname__} of module {value.__module__} cannot be sent to another process, "
            "because it cannot be found there by name; move the game into a module (a .py file)"
        )
    return name


def from_portable(value: Any) -> Any:
    """What `portable` was given."""
    if not isinstance(value, _FunctionName):
        return value
    cells = tuple(types.CellType(from_portable(cell)) for cell in value.cells)
    code = _find_code(value)
    module = sys.modules[value.module]
    return types.FunctionType(code, vars(module), code.co_name, None, cells)


def _find_code(name: _FunctionName) -> types.CodeType:
    """The code of a function, found among the constants of the functions that enclose it."""
    __import__(name.module)
    outer, *inner = name.qualname.split(".<locals>.")
    found: Any = operator.attrgetter(outer)(sys.modules[name.module])
    code = found.__code__
    for part in inner:
        constants = [c for c in code.co_consts if isinstance(c, types.CodeType)]
        alike = [c for c in constants if c.co_name == part]
        code = next((c for c in alike if c.co_firstlineno == name.line), next(iter(alike)))
    return code


# --- checks at construction --------------------------------------------------------------------


def takes_data(function: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Whether a function of the rules takes `data` after these arguments."""
    return len(inspect.signature(function).parameters) == len(arguments) + 1


def _check_signature(name: str, function: Any, arguments: tuple[str, ...], is_needed: bool) -> None:
    if function is None and not is_needed:
        return
    if not callable(function):
        raise BrokenGame(
            f"{name} must be a function {name}({', '.join(arguments)}); got {function!r}"
        )
    got = len(inspect.signature(function).parameters)
    if got not in (len(arguments), len(arguments) + 1):
        raise BrokenGame(
            f"{name} takes {got} arguments; expected {name}({', '.join(arguments)}) "
            f"or {name}({', '.join(arguments)}, data)"
        )


def _checked_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.names is None or "to_play" not in dtype.names:
        raise BrokenGame(f"the state needs a structured dtype with a field to_play; got {dtype}")
    for name in dtype.names:
        if dtype[name].base.kind not in "iufb":
            raise BrokenGame(
                f"field {name!r} has type {dtype[name]}; a field of a state is a number or an "
                "array of numbers of fixed shape"
            )
        _check_field(name, dtype[name].base)
    if dtype["to_play"].kind != "i":
        raise BrokenGame(f"field to_play must be a signed integer; got {dtype['to_play']}")
    return dtype


def _check_field(name: str, kind: np.dtype) -> None:
    """Raise BrokenGame for a type of numbers that compiled code does not have."""
    if not kind.isnative:
        raise BrokenGame(
            f"field {name!r} has type {kind!r}, whose bytes are in another order than this "
            f"machine's; use np.{kind.name}"
        )
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        raise BrokenGame(
            f"field {name!r} has type {kind}; floats of a state are np.float32 or np.float64"
        )


def _checked_data(data: Any) -> tuple[np.ndarray, ...]:
    if data is None:
        return ()
    if not isinstance(data, tuple) or not all(isinstance(a, np.ndarray) for a in data):
        raise BrokenGame("data must be a tuple of NumPy arrays")
    return data


def _checked_repetition(value: Any, num_players: int) -> np.ndarray:
    values = np.asarray(value, float)
    if values.shape not in ((), (1,), (num_players,)) or not np.isfinite(values).all():
        raise BrokenGame(
            f"repetition_value must be a number or one per player ({num_players}); got {value}"
        )
    return np.broadcast_to(values, (num_players,)).copy()


def _checked_range(payoff_range: Any, num_players: int) -> np.ndarray | None:
    if payoff_range is None:
        return None
    table = np.asarray(payoff_range, float)
    if table.shape == (2,):
        table = np.tile(table, (num_players, 1))
    if table.shape != (num_players, 2) or not (np.isfinite(table).all()):
        raise BrokenGame(
            f"payoff_range must be (low, high) or one such pair per player; got {payoff_range}"
        )
    if not (table[:, 0] < table[:, 1]).all():
        raise BrokenGame(f"payoff_range must have low < high; got {payoff_range}")
    if not ((abs(table) <= LARGEST).all() and (np.diff(table) >= 1 / LARGEST).all()):
        raise BrokenGame(
            f"payoff_range must lie within {-LARGEST:g} and {LARGEST:g} and be at least "
            f"{1 / LARGEST:g} wide; got {payoff_range}: pay in other units"
        )
    return table


def _check_symmetries(symmetries: tuple[np.ndarray, ...], num_actions: int) -> None:
    actions, cells = symmetries
    if actions.shape[1:] != (num_actions,) or len(cells) != len(actions):
        raise BrokenGame(
            f"symmetries are two arrays, [k, {num_actions}] for actions and [k, cells] for cells; "
            f"got {actions.shape} and {cells.shape}"
        )
    for table in (actions, cells):
        if (np.sort(table, axis=1) != np.arange(table.shape[1])).any():
            raise BrokenGame("every symmetry must be a permutation")


def board_symmetries(rows: int, cols: int, num_extra: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The symmetries of a board whose action `row * cols + col` is a cell.

    Rotations and reflections: eight of a square board, four of any other. The `num_extra` actions
    after the cells map to themselves.

    >>> [len(table) for table in board_symmetries(3, 3, num_extra=1)]
    [8, 8]
    """
    board = np.arange(rows * cols).reshape(rows, cols)
    turns = range(4) if rows == cols else (0, 2)
    boards = [np.rot90(flip, turn) for turn in turns for flip in (board, board[:, ::-1])]
    # Place i of the turned board shows cell turned[i], so cell turned[i] goes to place i.
    cells = np.array([np.argsort(turned.ravel()) for turned in boards])
    extra = np.tile(rows * cols + np.arange(num_extra), (len(cells), 1))
    return np.hstack([cells, extra]).astype(np.int64), cells


def mirrored_cells(rows: int, cols: int) -> np.ndarray:
    """The cells of a board whose cell is `row * cols + col`, as they are and with columns reversed.

    >>> mirrored_cells(1, 3)
    array([[0, 1, 2],
           [2, 1, 0]])
    """
    cells = np.arange(rows * cols).reshape(rows, cols)
    return np.array([cells.ravel(), cells[:, ::-1].ravel()])


def _is_count(value: Any, most: int) -> bool:
    """Whether a rule returned a whole number from 1 to `most`."""
    return isinstance(value, (int, np.integer)) and bool(1 <= value <= most)


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise BrokenGame(f"{name} must be an integer of at least 1; got {value!r}")
    return int(value)
