"""A walk through a game in plain Python, where mistakes raise.

It tries every short sequence of actions and plays many random episodes. It records each breach of
the contract with the shortest sequence of actions that leads to it, and every call of a rule for
compiled code to repeat.
"""

from __future__ import annotations

import hashlib
import math
import operator
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from uctree.doctor.contract import ERROR, RULES, WARNING, Finding, shortened
from uctree.engine.reach import place_of_error
from uctree.errors import BrokenGame, UctreeError
from uctree.game import CHANCE, LARGEST, OVER, Box, FieldView, Game, Sphere, StateView, make_rng

NUM_VECTORS = 4  # random actions per position of a continuous game
NOT_WRITTEN = -7  # the content of an array before a rule writes into it
LONGEST = 2_000  # plies of one plain episode
ENOUGH = 20  # episodes that must have ended before anything is said about all of them


@dataclass(frozen=True)
class Limits:
    """How far a walk goes."""

    steps: int = 600  # of the breadth-first part
    plies: int = 10_000  # of all random episodes
    inspected: int = 200  # positions at which the other functions of the game are called
    seconds: float = math.inf  # of each part; a call that has begun is not cut


# --- the record of a walk ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Position:
    """A state and the actions that led to it."""

    record: np.record
    returns: np.ndarray
    parent: Position | None = None
    action: Any = -1
    ply: int = 0
    reward: np.ndarray | None = None  # of the step that led here
    mover: int = CHANCE  # the last player who acted

    @property
    def actions(self) -> tuple[Any, ...]:
        position: Position | None = self
        actions = []
        while position is not None and position.parent is not None:
            actions.append(position.action)
            position = position.parent
        return tuple(reversed(actions))


class Case:
    """A game under examination: the findings, and the calls for compiled code to repeat."""

    def __init__(self, game: Game, seed: int, limits: Limits | None = None) -> None:
        self.game = game
        self.limits = limits or Limits()
        self.looks = LOOKS  # at the other functions of the game
        self.random = np.random.default_rng(seed)
        self.findings: dict[str, Finding] = {}
        self.checked: set[str] = set()
        self.plies = 0
        self.inspected: dict[bytes, Position] = {}  # by the content of the record
        self.ends: list[Position] = []  # of random episodes
        self.listed: list[tuple[Position, list[Any], list[float]]] = []
        self.taken: list[Position] = []
        self.observed: list[tuple[Position, int, np.ndarray]] = []
        self.heuristics: list[tuple[Position, np.ndarray]] = []
        self.priors: list[tuple[Position, np.ndarray]] = []  # logarithms
        self.exact: list[tuple[Position, bool, np.ndarray]] = []
        self.behaviour: dict[Any, tuple[Any, Position]] = {}

    def found(
        self, rule: str, message: str, where: Position | None = None, *more: Any,
        severity: str | None = None,
    ) -> None:  # fmt: skip
        """Add a finding, unless there is one of the same rule with fewer actions."""
        actions = (() if where is None else where.actions) + more
        known = self.findings.get(rule)
        if known is None or len(actions) < len(known.actions):
            usual, _, cure = RULES[rule]
            self.findings[rule] = Finding(rule, severity or usual, message, actions, cure)

    @property
    def has_errors(self) -> bool:
        return any(finding.severity == ERROR for finding in self.findings.values())

    @contextmanager
    def errors_of(self, name: str, where: Position, *more: Any) -> Iterator[None]:
        """Turn an exception of the rule `name` into a finding and a Stop."""
        try:
            yield
        except Exception as error:
            rule = rule_of(error, name)
            place = place_of_error(error)
            text = f"{name} raised {type(error).__name__}: {error}"
            self.found(rule, f"{text}\n{place}" if place else text, where, *more)
            raise Stop from error


class Stop(Exception):
    """The current check cannot continue; the finding is recorded."""


def rule_of(error: Exception, name: str) -> str:
    """The rule of the contract that an exception of the function `name` breaks."""
    if name in ("show", "show_action", "read_action"):
        return "show-fails"
    if name == "invariant":
        return "invariant"
    if name == "observe" and isinstance(error, (IndexError, ValueError)):
        return "observe-shape"
    if isinstance(error, OverflowError):
        return "overflow"
    return "out-of-bounds" if isinstance(error, IndexError) else "raises"


# --- plain Python: watched views -----------------------------------------------------------------


class WatchedField(FieldView):
    """A field that notes negative indices, and views of it that are used after a change."""

    noted: dict[str, str] | None
    parent: WatchedField | None
    before: bytes | None  # the content when this view was taken, or last written through it

    def __array_finalize__(self, source: Any) -> None:
        self.noted = getattr(source, "noted", None)
        self.parent = self.before = None

    def __getitem__(self, index: Any) -> Any:
        self._note_negative(index)
        value = super().__getitem__(index)
        if isinstance(value, WatchedField):
            value.parent, value.before = self, value.tobytes()
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note_negative(index)
        if isinstance(value, WatchedField) and value.before not in (None, value.tobytes()):
            target = super().__getitem__(index)
            # `field[i] += 1` puts back what it has changed in place.
            if not (isinstance(target, np.ndarray) and target.ctypes.data == value.ctypes.data):
                self._note(
                    "stale-view", "a view of a field is copied that has changed since it was taken"
                )
        super().__setitem__(index, value)
        part: WatchedField | None = self
        while part is not None:
            part.before = part.tobytes()
            part = part.parent

    def _note_negative(self, index: Any) -> None:
        indices = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, (int, np.integer)) and i < 0 for i in indices):
            self._note("negative-index", f"a field of shape {self.shape} is indexed with [{index}]")

    def _note(self, rule: str, text: str) -> None:
        if self.noted is not None:
            self.noted.setdefault(rule, text)


class WatchedView(StateView):
    """A record whose fields are watched."""

    __slots__ = ("noted",)

    def __init__(self, record: np.void) -> None:
        super().__init__(record)
        object.__setattr__(self, "noted", {})

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if isinstance(value, FieldView):
            watched: Any = value.view(WatchedField)
            watched.noted, watched.before = self.noted, watched.tobytes()
            return watched
        return value


# --- plain Python: one position ------------------------------------------------------------------


def _choices(case: Case, position: Position, twice: bool) -> tuple[list[Any], list[float]]:
    """The legal actions, or the outcomes with their probabilities; none if it is over."""
    game, record = case.game, position.record
    to_play = int(record["to_play"])
    if to_play == OVER:
        return [], []
    if not CHANCE <= to_play < game.num_players or (to_play == CHANCE and not game.rules.chance):
        case.found("to-play-range", f"to_play is {to_play}; {game.num_players} players", position)
        raise Stop
    if game.is_continuous:
        return _vectors(case, position, twice), []
    first = _list_once(case, position, StateView)
    if twice and _list_once(case, position, WatchedView) != first:
        name = "chance" if to_play == CHANCE else "legal"
        case.found("hidden-randomness", f"{name} gave two results for one state", position)
    return first


def _vectors(case: Case, position: Position, twice: bool) -> list[Any]:
    """Some actions of a continuous game: both corners of the position's box, and random ones."""
    game = case.game
    kinds = (StateView, WatchedView) if twice else (StateView,)
    corners = [_box_once(case, position, kind) for kind in kinds]
    if any(not np.array_equal(corners[0], other) for other in corners[1:]):
        case.found("hidden-randomness", "bounds gave two results for one state", position)
    low, high = corners[0]
    shares = [*((0.0, 1.0) if twice else ()), *case.random.random((NUM_VECTORS, len(low)))]
    if isinstance(game.action_space, Sphere):
        return [tuple(game.action_space.project(case.random.normal(size=game.dim)).tolist())
                for _ in shares]  # fmt: skip
    return [tuple(np.clip(low + share * (high - low), low, high).tolist()) for share in shares]


def _box_once(
    case: Case, position: Position, kind: type[StateView]
) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a position's box."""
    game, record = case.game, case.game.copy(position.record)
    space = game.action_space
    if not isinstance(space, Box) or game.rules.bounds is None:
        return game.box(position.record)
    low, high = np.array(space.low), np.array(space.high)
    with case.errors_of("bounds", position):
        view = kind(record)
        dim = game._call("bounds", view, low.view(FieldView), high.view(FieldView))
    _add_notes(case, "bounds", view, position)
    if record.tobytes() != position.record.tobytes():
        fields = ", ".join(_differing(game, position.record, record))
        case.found("changes-state", f"bounds changed {fields}", position)
    try:
        return game.box(position.record)
    except BrokenGame as error:
        case.found("bounds-range", f"{error} (it returned {dim})", position)
        raise Stop from error


def _list_once(
    case: Case, position: Position, kind: type[StateView]
) -> tuple[list[int], list[float]]:
    game, record = case.game, case.game.copy(position.record)
    is_chance = int(record["to_play"]) == CHANCE
    name = "chance" if is_chance else "legal"
    most = game.max_outcomes if is_chance else game.num_actions
    actions = np.full(most, NOT_WRITTEN, np.int32)
    probabilities = np.zeros(most)
    with case.errors_of(name, position):
        arguments = (actions, probabilities) if is_chance else (actions,)
        view = kind(record)
        count = game._call(name, view, *arguments)
    _add_notes(case, name, view, position)
    if record.tobytes() != position.record.tobytes():
        rule = "changes-state" if is_chance else "legal-changes-state"
        fields = ", ".join(_differing(game, position.record, record))
        case.found(rule, f"{name} changed {fields}", position)
    try:
        count = operator.index(count)
    except TypeError:
        count = -1 if count is None else count
    if not isinstance(count, int) or not 1 <= count <= most:
        rule = "chance-count" if is_chance else "legal-count"
        returned = "nothing" if count == -1 else count
        case.found(rule, f"{name} returned {returned}; expected 1 to {most}", position)
        raise Stop
    listed = [int(action) for action in actions[:count]]
    weights = [float(p) for p in probabilities[:count]] if is_chance else []
    _check_listed(case, position, listed, weights)
    return listed, weights


def _check_listed(case: Case, position: Position, listed: list[int], weights: list[float]) -> None:
    """Check the legal actions or outcomes of a position."""
    is_chance = bool(weights)
    if not is_chance and not all(0 <= action < case.game.num_actions for action in listed):
        written = ["nothing" if action == NOT_WRITTEN else action for action in listed]
        case.found("legal-range", f"legal wrote {written}", position)
        raise Stop
    if len(set(listed)) != len(listed):
        rule = "chance-count" if is_chance else "legal-duplicate"
        case.found(rule, f"an action or outcome is listed twice: {listed}", position)
    if is_chance and min(listed) < 0:
        written = ["nothing" if outcome == NOT_WRITTEN else outcome for outcome in listed]
        case.found("chance-range", f"chance wrote the outcomes {written}", position)
        raise Stop
    if is_chance and not (min(weights) >= 0 and abs(sum(weights) - 1) < 1e-9):
        text = f"the probabilities are {weights} and add up to {sum(weights)}"
        case.found("chance-probabilities", text, position)
        raise Stop


def _step(case: Case, position: Position, action: Any, twice: bool) -> Position:
    """The position after an action."""
    game = case.game
    record, reward = _step_once(case, position, action, StateView)
    if twice:
        again, paid = _step_once(case, position, action, WatchedView)
        if again.tobytes() != record.tobytes() or paid.tobytes() != reward.tobytes():
            fields = ", ".join(_differing(game, record, again)) or "the reward"
            text = f"step gave two results for one state and action: {fields} differ"
            case.found("hidden-randomness", text, position, action)
    if not (abs(reward) <= LARGEST).all():
        case.found("reward-finite", f"step paid {reward.tolist()}", position, action)
        raise Stop
    if game.zero_sum and reward.sum() != 0:
        text = f"step paid {reward.tolist()}, which adds up to {reward.sum()}"
        case.found("zero-sum", text, position, action)
    mover = int(position.record["to_play"])
    after = Position(
        record,
        position.returns + game.discount**position.ply * reward,
        position,
        action,
        position.ply + 1,
        reward,
        position.mover if mover == CHANCE else mover,
    )
    case.taken.append(after)
    _check_length(case, after)
    return after


def _step_once(
    case: Case, position: Position, action: Any, kind: type[StateView]
) -> tuple[np.record, np.ndarray]:
    record = case.game.copy(position.record)
    reward = np.zeros(case.game.num_players)
    with case.errors_of("step", position, action):
        view = kind(record)
        given = case.game.vector(record, action).view(FieldView) if np.ndim(action) else action
        case.game._call("step", view, given, reward)
    _add_notes(case, "step", view, position, action)
    return record, reward


def _add_notes(case: Case, name: str, view: StateView, where: Position, *more: Any) -> None:
    """Turn the notes of a watched view into findings."""
    if isinstance(view, WatchedView):
        for rule, text in view.noted.items():
            case.found(rule, f"in {name}, {text}", where, *more)


def _check_length(case: Case, after: Position) -> None:
    game = case.game
    if game.max_plies is None or int(after.record["to_play"]) == OVER:
        return
    counts = "ply" in (game.dtype.names or ())
    if after.ply >= game.max_plies:
        # With a heuristic it may be intended: a playout is cut there and evaluated.
        severity = ERROR if game.rules.heuristic is None else WARNING
        text = f"the episode is not over at ply {after.ply}; max_plies is {game.max_plies}"
        case.found("max-plies", text, after, severity=severity)
    if counts and int(after.record["ply"]) != after.ply:
        text = f"the field ply is {int(after.record['ply'])} after {after.ply} plies"
        case.found("ply-field", text, after)


def _check_end(case: Case, position: Position) -> None:
    """Check the returns of an episode that is over."""
    bounds = case.game.payoff_range
    if (
        bounds is not None
        and (
            (position.returns < bounds[:, 0] - 1e-9) | (position.returns > bounds[:, 1] + 1e-9)
        ).any()
    ):
        text = f"the returns are {position.returns.tolist()}; payoff_range is {bounds.tolist()}"
        case.found("payoff-range", text, position)


def _check_invariant(case: Case, position: Position) -> None:
    if case.game.rules.invariant is None:
        return
    try:
        holds = _call_aside(case, position, "invariant")
    except Stop:
        return
    if holds is not None and not holds:
        case.found("invariant", f"invariant returned {holds}", position)


def _check_key(case: Case, position: Position, listed: list[int], weights: list[float]) -> None:
    """Compare with another state that has the same key fields."""
    game = case.game
    if set(game.key_fields) == set(game.dtype.names or ()):
        return  # the key is the whole state
    key = game.key(position.record)
    pairs = sorted(zip(listed, weights or [0.0] * len(listed), strict=True))
    choices = (int(position.record["to_play"]), pairs)
    _same(case, key, choices, position, "the player to move or what is legal")
    if position.parent is not None:
        assert position.reward is not None
        before = (game.key(position.parent.record), position.action)
        effect = (key, position.reward.tolist())
        _same(case, before, effect, position, "the effect of the last action")


def _same(case: Case, key: Any, behaviour: Any, position: Position, what: str) -> None:
    known, other = case.behaviour.setdefault(key, (behaviour, position))
    if known != behaviour:
        text = f"{what} differs from that after the actions {shortened(other.actions)}, although "
        case.found("key-fields", f"{text}the key fields {case.game.key_fields} agree", position)


# --- plain Python: the other functions of a game -------------------------------------------------


def _inspect(case: Case, position: Position, listed: list[int]) -> None:
    """Check the optional functions of a game at a position."""
    case.inspected[position.record.tobytes()] = position
    for look in case.looks:
        try:
            look(case, position, listed)
        except Stop:
            continue


def _call_aside(case: Case, position: Position, name: str, *arguments: Any) -> Any:
    """Call a rule that must not change the state; what it returns."""
    record = case.game.copy(position.record)
    with case.errors_of(name, position):
        result = case.game._call(name, StateView(record), *arguments)
    if record.tobytes() != position.record.tobytes():
        fields = ", ".join(_differing(case.game, position.record, record))
        case.found("changes-state", f"{name} changed {fields}", position)
    return result


def _look_at_observe(case: Case, position: Position, listed: list[int]) -> None:
    if case.game.rules.observe is None:
        return
    for player in range(case.game.num_players):
        planes = np.zeros(case.game.observation_shape or (), np.float32)
        _call_aside(case, position, "observe", player, planes)
        if not np.isfinite(planes).all():
            text = f"observe wrote {planes[~np.isfinite(planes)][0]} for player {player}"
            case.found("observe-finite", text, position)
        case.observed.append((position, player, planes))


def _look_at_heuristic(case: Case, position: Position, listed: list[int]) -> None:
    game = case.game
    if game.rules.heuristic is None or not listed:
        return
    values = np.zeros(game.num_players)
    _call_aside(case, position, "heuristic", values)
    bounds = game.payoff_range
    if not np.isfinite(values).all():
        text = f"the heuristic is {values.tolist()}"
        case.found("heuristic-range", text, position, severity=ERROR)
    elif bounds is not None and ((values < bounds[:, 0]) | (values > bounds[:, 1])).any():
        text = f"the heuristic is {values.tolist()}; payoff_range is {bounds.tolist()}"
        case.found("heuristic-range", text, position)
    case.heuristics.append((position, values))


def _look_at_priors(case: Case, position: Position, listed: list[int]) -> None:
    game = case.game
    if game.rules.priors is None or not listed or int(position.record["to_play"]) == CHANCE:
        return
    logits = np.zeros(game.num_actions)
    _call_aside(case, position, "priors", logits)
    if not (logits[listed] < np.inf).all():  # minus infinity is a prior of 0
        text = f"priors wrote {logits[listed].tolist()} for the legal actions"
        case.found("priors-range", text, position)
    case.priors.append((position, logits))


def _look_at_exact(case: Case, position: Position, listed: list[int]) -> None:
    game, player = case.game, int(position.record["to_play"])
    if game.rules.exact is None or not listed or player == CHANCE:
        return
    known, values = _exactly(case, position, position.record)
    case.exact.append((position, known, values))
    if not known:
        return
    best = -np.inf
    for action in listed:
        after, reward = game.step(position.record, action)
        is_known, more = (True, 0.0) if game.is_over(after) else _exactly(case, position, after)
        if not is_known:
            return
        best = max(best, float((reward + game.discount * more)[player]))
    if not np.isclose(best, values[player]):
        text = f"exact is {values.tolist()}, but the best action of player {player} gives {best}"
        case.found("exact-holds", text, position)


def _exactly(case: Case, position: Position, record: np.record) -> tuple[bool, np.ndarray]:
    """Whether `exact` knows the value of a state, and the value; never at chance states."""
    values = np.zeros(case.game.num_players)
    if int(record["to_play"]) == CHANCE:
        return False, values
    copy = case.game.copy(record)
    with case.errors_of("exact", position):
        known = bool(case.game._call("exact", StateView(copy), values))
    if case.game.key(copy) != case.game.key(record):
        case.found("changes-state", "exact changed fields of the key", position)
    return known, values


def _look_at_text(case: Case, position: Position, listed: list[int]) -> None:
    game = case.game
    with case.errors_of("show", position):
        game.show(position.record)
    if not listed or int(position.record["to_play"]) == CHANCE:
        return
    if game.is_continuous:
        _look_at_vector_text(case, position, listed)
        return
    actions: dict[str, int] = {}
    for action in listed[:20]:
        with case.errors_of("show_action", position):
            text = game.show_action(position.record, action)
        if actions.setdefault(text, action) != action:
            message = f"actions {actions[text]} and {action} are both shown as {text!r}"
            case.found("read-action-roundtrip", message, position)
        reader = game.rules.read_action
        if reader is None:
            continue
        try:
            read = int(reader(StateView(game.copy(position.record)), text))
        except (ValueError, IndexError, KeyError):
            continue  # the game then compares the texts of the legal actions
        if read != action:
            message = f"action {action} is shown as {text!r}, which is read as {read}"
            case.found("read-action-roundtrip", message, position)


def _look_at_vector_text(case: Case, position: Position, listed: list[Any]) -> None:
    """Whether an action that is a vector can be shown and read."""
    game = case.game
    for action in listed[:3]:
        with case.errors_of("show_action", position):
            text = game.show_action(position.record, action)
        if game.rules.read_action is None:
            continue
        with case.errors_of("read_action", position):
            read = game.read_action(position.record, text)
        if not np.allclose(read, game.vector(position.record, action), rtol=1e-4, atol=1e-6):
            message = f"action {action} is shown as {text!r}, which is read as {read.tolist()}"
            case.found("read-action-roundtrip", message, position)


def _look_at_random_action(case: Case, position: Position, listed: list[int]) -> None:
    if case.game.rules.random_action is None or int(position.record["to_play"]) < 0:
        return
    if case.game.is_continuous:
        for seed in range(3):
            vector = np.zeros(case.game.dim)
            _call_aside(case, position, "random_action", vector.view(FieldView), make_rng(seed))
            try:
                case.game.vector(position.record, vector)
            except UctreeError as error:
                case.found("random-action-support", f"random_action: {error}", position)
        return
    for seed in range(3):
        action = int(_call_aside(case, position, "random_action", make_rng(seed)))
        if action not in listed:
            text = f"random_action drew {action}; legal actions: {listed[:50]}"
            case.found("random-action-support", text, position)


# What is called at inspected positions besides the rules of play.
Look = Callable[[Case, Position, list[Any]], None]
COMPILED_LOOKS: tuple[Look, ...] = (
    _look_at_observe, _look_at_heuristic, _look_at_priors, _look_at_random_action,
)  # fmt: skip
LOOKS = (*COMPILED_LOOKS, _look_at_exact, _look_at_text)


# --- plain Python: the walk ----------------------------------------------------------------------


def start_of(case: Case) -> Position:
    game = case.game
    record = np.zeros(1, game._record)[0]
    position = Position(record, np.zeros(game.num_players))
    with case.errors_of("start", position):
        record = game.start()
        others = {record.tobytes()}
        deadline = time.perf_counter() + case.limits.seconds
        for _ in range(8):  # because dice can show the same number twice
            if time.perf_counter() > deadline:
                break
            others.add(game.start().tobytes())
    if others != {record.tobytes()}:
        case.found("hidden-randomness", "start gave two different states")
    return Position(record, np.zeros(game.num_players))


def _visit(case: Case, position: Position, fully: bool) -> tuple[list[Any], list[float]]:
    """The choices of a position, after checking it."""
    listed, weights = _choices(case, position, twice=fully)
    case.listed.append((position, listed, weights))
    _check_key(case, position, listed, weights)
    _check_invariant(case, position)
    if not listed:
        _check_end(case, position)
    if fully:
        _inspect(case, position, listed)
    return listed, weights


def walk_breadth_first(case: Case, start: Position) -> None:
    """Try every short sequence of actions, so that early breaches have the shortest sequence."""
    seen = {start.record.tobytes()}
    queue = deque([start])
    steps, limits = 0, case.limits
    deadline = time.perf_counter() + limits.seconds
    while queue and steps < limits.steps:
        position = queue.popleft()
        try:
            listed, weights = _visit(case, position, len(case.inspected) < limits.inspected // 2)
        except Stop:
            continue
        for i, action in enumerate(listed):
            if time.perf_counter() > deadline:
                return
            if weights and weights[i] == 0:
                continue
            steps += 1
            try:
                after = _step(case, position, action, twice=True)
            except Stop:
                continue
            if after.record.tobytes() not in seen:
                seen.add(after.record.tobytes())
                queue.append(after)


def walk_at_random(case: Case, start: Position, episodes: int) -> int:
    """Play random episodes; the number of those that were started."""
    longest, limits = case.game.max_plies or LONGEST, case.limits
    deadline = time.perf_counter() + limits.seconds
    for episode in range(episodes):
        if case.plies >= limits.plies:
            return episode
        position = start
        try:
            while True:
                is_over = int(position.record["to_play"]) == OVER
                wanted = is_over or case.random.random() < 0.1
                fully = wanted and len(case.inspected) < limits.inspected
                fully = fully and position.record.tobytes() not in case.inspected
                listed, weights = _visit(case, position, fully)
                if not listed:
                    case.ends.append(position)
                    break
                if position.ply >= longest or case.plies >= limits.plies:
                    break
                if time.perf_counter() > deadline:
                    return episode + 1
                chosen = case.random.choice(len(listed), p=weights or None)
                position = _step(case, position, listed[chosen], twice=fully)
                case.plies += 1
        except Stop:
            continue
    return episodes


def look_at_episodes(case: Case) -> None:
    """Check which players move and win, over all episodes."""
    game = case.game
    movers = {int(p.record["to_play"]) for p, _, _ in case.listed} - {OVER, CHANCE}
    idle = set(range(game.num_players)) - movers
    if idle and any(end.ply > 2 * game.num_players for end in case.ends):
        names = ", ".join(map(str, sorted(idle)))
        case.found("never-to-play", f"player {names} never moved in {len(case.ends)} episodes")
    if len(case.ends) >= ENOUGH and not any(np.any(after.reward) for after in case.taken):
        text = f"nobody was paid anything in {len(case.ends)} episodes"
        case.found("never-pays", text, min(case.ends, key=lambda end: end.ply))
    decided = [end for end in case.ends if np.ptp(end.returns) > 1e-9 and end.mover >= 0]
    if game.num_players < 2 or len(decided) < ENOUGH:
        return
    case.checked |= {"perspective", "one-sided"}
    if all(end.returns[end.mover] < end.returns.max() for end in decided):
        text = f"who moved last got less than another in all {len(decided)} decided episodes"
        case.found("perspective", text, min(decided, key=lambda end: end.ply))
    winners = {int(end.returns.argmax()) for end in decided}
    if len(winners) == 1:
        text = f"player {winners.pop()} got the most in all {len(decided)} decided episodes"
        case.found("one-sided", text, min(decided, key=lambda end: end.ply))


def look_at_seats(case: Case, start: Position) -> None:
    """Check that an episode is the same, seats moved on, if another player begins it."""
    game = case.game
    if not game.symmetric_seats:
        return
    if int(start.record["to_play"]) < 0:
        text = "no player moves in the start, so that no other player can begin"
        case.found("seat-symmetry", text, severity=WARNING)
        return
    for end in case.ends[:ENOUGH]:
        for shift in range(1, game.num_players):
            try:
                _replay_from_another_seat(case, start, end, shift)
            except Stop:
                return


def _replay_from_another_seat(case: Case, start: Position, end: Position, shift: int) -> None:
    """Repeat an episode with every seat moved on by `shift`; Stop at the first difference."""
    game, line = case.game, [end]
    while line[-1].parent is not None:
        line.append(line[-1].parent)
    other = game.copy(start.record)
    other["to_play"] = (int(other["to_play"]) + shift) % game.num_players
    for before, after in zip(line[:0:-1], line[-2::-1], strict=True):
        assert after.reward is not None
        expected = np.roll(after.reward, shift)
        try:
            _same_seat(case, before, other, shift)
            here, there = (_choices_of(game, record) for record in (before.record, other))
            other, reward = game.step(other, after.action)
        except UctreeError as error:
            _not_symmetric(case, before, shift, str(error))
        if here != there:
            _not_symmetric(case, before, shift, f"the choices are {there}, not {here}")
        if not np.allclose(reward, expected, rtol=1e-9, atol=1e-12):
            text = f"step pays {reward.tolist()}, not {expected.tolist()}"
            _not_symmetric(case, after, shift, text)
    _same_seat(case, end, other, shift)


def _choices_of(game: Game, record: np.record) -> list[Any]:
    """What can be done in a state, in an order that does not depend on its rules."""
    if game.is_continuous:
        return [corner.tolist() for corner in game.box(record)]
    if game.to_play(record) == CHANCE:
        return sorted(game.outcomes(record))
    return sorted(game.legal(record))


def _same_seat(case: Case, position: Position, other: np.record, shift: int) -> None:
    to_play, moved = int(position.record["to_play"]), int(other["to_play"])
    expected = to_play if to_play < 0 else (to_play + shift) % case.game.num_players
    if moved != expected:
        _not_symmetric(case, position, shift, f"to_play is {moved}, not {expected}")


def _not_symmetric(case: Case, position: Position, shift: int, text: str) -> NoReturn:
    case.found("seat-symmetry", f"if the seats are moved on by {shift}, {text}", position)
    raise Stop


def look_at_pickle(case: Case) -> None:
    """Check whether the game can be pickled."""
    functions = [f for f in vars(case.game.rules).values() if f is not None]
    if any(getattr(sys.modules.get(f.__module__ or ""), "__file__", None) is None
           for f in functions):  # fmt: skip
        return  # defined in a notebook or at a prompt
    if any(f.__module__ == "__main__" for f in functions):
        return
    case.checked.add("pickle")
    try:
        pickle.loads(pickle.dumps(case.game))
    except Exception as error:
        case.found("pickle", f"{type(error).__name__}: {error}")


def _differing(game: Game, one: np.record, other: np.record) -> list[str]:
    names = game.dtype.names or ()
    return [name for name in names if one[name].tobytes() != other[name].tobytes()]


def digest_of(data: tuple[np.ndarray, ...]) -> str:
    digest = hashlib.sha256()
    for array in data:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
