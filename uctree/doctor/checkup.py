"""The game doctor: `check` tests whether a game keeps its contract.

It plays the game in plain Python first, where overflow and indices out of bounds raise, and checks
every rule of the contract. If that finds nothing dangerous, it compiles the rules with bounds
checks and repeats every step in compiled code. If the game is small enough, it is solved, and the
results of searches are compared with the exact values.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from uctree import evaluators, specs
from uctree.doctor.contract import ERROR, RULES, WARNING, Finding, Report, plain_rules
from uctree.doctor.problems import check_problem
from uctree.doctor.walk import (
    Case,
    Position,
    Stop,
    digest_of,
    look_at_episodes,
    look_at_pickle,
    look_at_seats,
    rule_of,
    start_of,
    walk_at_random,
    walk_breadth_first,
)  # fmt: skip
from uctree.engine.bindings import action_array, bound_rule, game_bindings
from uctree.engine.compile import compile_kernel, interpreted
from uctree.errors import BrokenGame, UctreeError
from uctree.game import ENDLESS, SIGNATURES, Game, StateView, make_rng
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Play
from uctree.kernels.playouts import play_steps
from uctree.kernels.rules import (
    IS_CONTINUOUS,
    bounds,
    chance,
    give_priors,
    heuristic,
    know_exactly,
    legal,
    playout_to_end,
    random_action,
    step,
)
from uctree.kernels.status import ENDLESS_PLAYOUT
from uctree.mcts import search
from uctree.planning.world import NOT_GIVEN, world_of
from uctree.solver import Solution, solve_within
from uctree.views import whole

__all__ = ["RULES", "Finding", "Report", "check"]

# After a breach of one of these, compiled code might write anywhere.
_DANGEROUS = {
    "raises", "overflow", "out-of-bounds", "to-play-range", "legal-count", "legal-range",
    "chance-count", "observe-shape", "bounds-range",
}  # fmt: skip

GAME_EPISODES, PROBLEM_EPISODES = 200, 20
NUM_DRAWS = 2_000  # playouts and draws that are averaged
TOLERANCE = 1e-6  # a larger relative difference of floats is more than rounding


# --- compiled code -------------------------------------------------------------------------------

observe = start = UNBOUND  # bound with the other rules
OPERATIONS = (*SIGNATURES, "play")  # "play" is step-by-step play to the end
(LEGAL, STEP, START, CHANCES, OBSERVE, RANDOM_ACTION, PLAYOUT, HEURISTIC, PRIORS, EXACT, BOUNDS,
 PLAY) = range(12)  # fmt: skip
CALLS_LEGAL = CALLS_STEP = CALLS_START = CALLS_CHANCE = CALLS_OBSERVE = UNBOUND
CALLS_RANDOM_ACTION = CALLS_PLAYOUT = CALLS_HEURISTIC = CALLS_PRIORS = UNBOUND
CALLS_EXACT = CALLS_BOUNDS = CALLS_PLAY = UNBOUND


class Call(NamedTuple):
    """What the rules read and write."""

    states: Any  # [1]
    planes: np.ndarray  # the observation
    logits: np.ndarray  # [actions]
    play: Play


def operate(operation: int, number: int, call: Call) -> int:
    """Call one rule on the state; `number` is the action, the player or the limit of plies."""
    state, play = call.states[0], call.play
    actions, reward, rng, data = play.actions, play.reward, play.rng, play.data
    result = np.int64(0)
    if CALLS_LEGAL and operation == LEGAL:
        result = np.int64(legal(state, actions, data))
    if CALLS_STEP and operation == STEP:
        if IS_CONTINUOUS:
            step(state, actions[0], reward, data)
        else:
            step(state, number, reward, data)
    if CALLS_BOUNDS and operation == BOUNDS:
        result = np.int64(bounds(state, actions[1], actions[2], data))
    if CALLS_START and operation == START:
        start(state, data)
    if CALLS_CHANCE and operation == CHANCES:
        result = np.int64(chance(state, actions, play.probabilities, data))
    if CALLS_OBSERVE and operation == OBSERVE:
        observe(state, number, call.planes, data)
    if CALLS_RANDOM_ACTION and operation == RANDOM_ACTION:
        if IS_CONTINUOUS:
            random_action(state, actions[0], rng, data)
        else:
            result = np.int64(random_action(state, rng, data))
    if CALLS_PLAYOUT and operation == PLAYOUT:
        playout_to_end(state, rng, reward, data)
    if CALLS_HEURISTIC and operation == HEURISTIC:
        heuristic(state, reward, data)
    if CALLS_PRIORS and operation == PRIORS:
        give_priors(state, call.logits, data)
    if CALLS_EXACT and operation == EXACT:
        result = np.int64(know_exactly(state, reward, data))
    if CALLS_PLAY and operation == PLAY:
        result = np.int64(play_steps(play, state, number))
    return result  # type: ignore[return-value]


class _Compiled:
    """The rules of a game as machine code with bounds checks, called one at a time."""

    def __init__(self, game: Game, names: tuple[str, ...]) -> None:
        self.game = game
        self.states = np.zeros(1, game.dtype)
        self.planes = np.zeros(game.observation_shape or (1,), np.float32)
        self.logits = np.zeros(game.num_actions)
        (self.reward, self.returns), rng = np.zeros((2, game.num_players)), make_rng(0)
        self.play = Play(
            action_array(game), np.zeros(game.max_outcomes), self.reward, self.returns, rng, rng,
            game.data,
        )  # fmt: skip
        self.call = Call(self.states, self.planes, self.logits, self.play)
        bound = game_bindings(game, evaluators.playout())
        bound |= {name: bound_rule(game, name) for name in ("observe", "start")}
        bound |= {f"CALLS_{name.upper()}": name in names for name in OPERATIONS}
        label = f"{game.name}: {names[0] if len(names) == 1 else 'rules'}"
        self.kernel = compile_kernel(operate, bound, (0, 0, self.call), label=label, debug=True)

    def run(self, name: str, record: np.record, action: Any = 0) -> int:
        """Call a rule; what it returns. What it wrote is in the arrays."""
        number = 0 if np.ndim(action) else int(action)
        self.states[0] = record
        for array in (self.reward, self.returns, self.planes, self.logits):
            array[:] = 0
        self.play.actions[:] = action_array(self.game)
        if np.ndim(action):
            self.play.actions[0] = action
        return int(self.kernel.run(OPERATIONS.index(name), number, self.call))


def _compile(case: Case) -> _Compiled | None:
    """The compiled rules; if that fails, None and a finding for each rule that fails alone."""
    rules = vars(case.game.rules)
    names = tuple(name for name in SIGNATURES if rules[name] is not None)
    case.checked |= {"does-not-compile", "compiled-anew"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compiled = _Compiled(case.game, (*names, "play"))
        except Exception as error:
            _compile_alone(case, names, error)
            return None
    for warning in caught:
        if "compiled anew" in str(warning.message):
            case.found("compiled-anew", str(warning.message))
    return compiled


def _compile_alone(case: Case, names: tuple[str, ...], first_error: Exception) -> None:
    """Add a finding with the errors of the rules that do not compile alone."""
    messages = []
    for name in names:
        try:
            _Compiled(case.game, (name,))
        except Exception as error:
            messages.append(_compile_text(error))
    case.found("does-not-compile", "\n".join(messages or [_compile_text(first_error)]))


def _compile_text(error: Exception) -> str:
    return str(error) if isinstance(error, BrokenGame) else f"{type(error).__name__}: {error}"


# --- compiled code against plain Python ----------------------------------------------------------


def _lock_step(case: Case, compiled: _Compiled) -> None:
    """Repeat every call of plain Python in compiled code."""
    case.checked.add("diverges")
    for position, listed, weights in case.listed:
        if case.game.is_continuous:
            _compare_bounds(case, compiled, position)
        elif listed:
            name = "chance" if weights else "legal"
            with _noted(case, name, position):
                count = compiled.run(name, position.record)
                _compare(case, name, listed, compiled.play.actions[:count].tolist(), position)
                if weights:
                    given = compiled.play.probabilities[:count].tolist()
                    _compare(case, "the probabilities of chance", weights, given, position)
    for after in case.taken:
        assert after.parent is not None
        with _noted(case, "step", after.parent, after.action):
            compiled.run("step", after.parent.record, after.action)
            _compare_step(case, compiled, after)
    for position, player, planes in case.observed:
        with _noted(case, "observe", position):
            compiled.run("observe", position.record, player)
            _compare(case, f"observe for player {player}", planes, compiled.planes, position)
    for position, values in case.heuristics:
        with _noted(case, "heuristic", position):
            compiled.run("heuristic", position.record)
            _compare(case, "heuristic", values, compiled.reward, position)
    for position, logits in case.priors:
        with _noted(case, "priors", position):
            compiled.run("priors", position.record)
            _compare(case, "priors", logits, compiled.logits, position)
    for position, known, values in case.exact:
        with _noted(case, "exact", position):
            result = compiled.run("exact", position.record)
            _compare(case, "whether exact knows", [int(known)], [result], position)
            _compare(case, "exact", values, compiled.reward, position)


@contextmanager
def _noted(case: Case, name: str, position: Position, *more: Any) -> Iterator[None]:
    """Turn an exception of compiled code into a finding: plain Python did not raise."""
    try:
        yield
    except Exception as error:
        text = f"compiled {name} raised {type(error).__name__}: {error}; plain Python did not"
        case.found("diverges", text, position, *more)


def _compare_bounds(case: Case, compiled: _Compiled, position: Position) -> None:
    if case.game.rules.bounds is None or int(position.record["to_play"]) < 0:
        return
    with _noted(case, "bounds", position):
        low, high = case.game.box(position.record)
        dim = compiled.run("bounds", position.record)
        _compare(case, "the dimension of bounds", len(low), dim, position)
        _compare(case, "low of bounds", low, compiled.play.actions[1, :dim], position)
        _compare(case, "high of bounds", high, compiled.play.actions[2, :dim], position)


def _compare_step(case: Case, compiled: _Compiled, after: Position) -> None:
    record = compiled.states[0]
    assert after.reward is not None
    for name in case.game.dtype.names or ():
        what = f"field {name!r} after step"
        _compare(case, what, after.record[name], record[name], after)
    _compare(case, "the reward of step", after.reward, compiled.reward, after)


def _compare(case: Case, what: str, plain: Any, compiled: Any, position: Position) -> None:
    one, other = np.asarray(plain), np.asarray(compiled)
    if one.shape == other.shape and ((one == other) | ((one != one) & (other != other))).all():
        return
    text = f"{what} is {one.tolist()} in plain Python and {other.tolist()} in compiled code"
    close = one.shape == other.shape and one.dtype.kind == "f"
    close = close and np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    case.found("diverges", text, position, severity=WARNING if close else ERROR)


# --- compiled code: random play ------------------------------------------------------------------


def _look_at_length(case: Case, compiled: _Compiled, start: Position) -> None:
    """Check that random play ends."""
    if case.game.max_plies is not None:
        return
    case.checked.add("endless")
    for _ in range(20):
        with _noted(case, "play", start):
            if compiled.run("play", start.record, ENDLESS) == ENDLESS_PLAYOUT:
                case.found("endless", f"a random episode was not over after {ENDLESS:,} plies")
                return


def _decisions(case: Case, most: int) -> list[Position]:
    """At most `most` positions at which a player moves, early and late ones."""
    positions = [p for p in case.inspected.values() if int(p.record["to_play"]) >= 0]
    positions.sort(key=lambda position: position.ply)
    return positions[:: max(1, -(-len(positions) // most))]


def _look_at_draws(case: Case, compiled: _Compiled, is_heuristic: bool) -> None:
    """Compare random_action with the legal actions."""
    if case.game.rules.random_action is None or case.game.is_continuous:
        return
    case.checked.add("random-action-support")
    case.checked |= set() if is_heuristic else {"random-action-uniform"}
    legal_of = {id(position): listed for position, listed, _ in case.listed}
    for position in _decisions(case, 20):
        with _noted(case, "random_action", position):
            listed = legal_of[id(position)]
            draws = [compiled.run("random_action", position.record) for _ in range(NUM_DRAWS)]
            _check_draws(case, position, listed, draws, is_heuristic)


def _check_draws(
    case: Case, position: Position, listed: list[int], draws: list[int], is_heuristic: bool
) -> None:
    illegal = set(draws) - set(listed)
    if illegal:
        text = f"random_action drew {sorted(illegal)[:10]}; legal actions: {listed[:50]}"
        case.found("random-action-support", text, position)
        return
    expected = len(draws) / len(listed)
    if is_heuristic or expected < 30:
        return
    counts = np.array([draws.count(action) for action in listed])
    if (counts == 0).any():
        missing = [a for a, count in zip(listed, counts, strict=True) if count == 0]
        text = f"random_action never drew {missing[:10]} in {len(draws)} draws"
        case.found("random-action-support", text, position)
        return
    # Chi-square, 8 standard deviations above what chance gives.
    excess = ((counts - expected) ** 2 / expected).sum()
    freedom = len(listed) - 1
    if excess > freedom + 8 * (2 * freedom) ** 0.5 + 8:
        shares = {a: round(c / len(draws), 3) for a, c in zip(listed, counts.tolist(), strict=True)}
        case.found("random-action-uniform", f"random_action drew {shares}", position)


def _look_at_playout(case: Case, compiled: _Compiled, is_heuristic: bool) -> None:
    """Compare the mean returns of playout with those of step-by-step play."""
    # A playout of a game with a window is played on the whole board.
    if case.game.rules.playout is None or whole(case.game) is not case.game:
        return
    case.checked.add("playout-agrees")
    for position in _decisions(case, 5):
        try:
            record, reward = case.game.copy(position.record), np.zeros(case.game.num_players)
            rng = make_rng(1)
            with case.errors_of("playout", position):
                case.game._call("playout", StateView(record), rng, reward)
            with _noted(case, "playout", position):
                compiled.play.rng[:] = make_rng(1)
                compiled.run("playout", position.record)
                _compare(case, "the return of playout", reward, compiled.reward, position)
                _check_means(case, compiled, position, is_heuristic)
        except Stop:
            continue


def _check_means(case: Case, compiled: _Compiled, position: Position, is_heuristic: bool) -> None:
    limit = case.game.max_plies or ENDLESS
    own, steps = np.zeros((2, NUM_DRAWS // 2, case.game.num_players))
    for i in range(len(own)):
        compiled.run("playout", position.record)
        own[i] = compiled.reward
        compiled.run("play", position.record, limit)
        steps[i] = compiled.returns
    if not np.isfinite(own).all():
        case.found("playout-agrees", "playout paid a reward that is not finite", position)
        return
    # Squares too: if both players win equally often, the means are 0 whatever is paid.
    both = [np.hstack([returns, returns**2]) for returns in (own, steps)]
    error = np.sqrt((both[0].var(0) + both[1].var(0)) / len(own)) + 1e-9
    if not is_heuristic and (abs(both[0].mean(0) - both[1].mean(0)) > 7 * error).any():
        text = (
            f"playout pays {np.round(own.mean(0), 3).tolist()} on average (squared "
            f"{np.round((own**2).mean(0), 3).tolist()}), play step by step "
            f"{np.round(steps.mean(0), 3).tolist()} ({np.round((steps**2).mean(0), 3).tolist()})"
        )
        case.found("playout-agrees", text, position)


# --- searches compared with exact values ---------------------------------------------------------


def _look_at_search(
    case: Case, start: Position, max_states: int, num_simulations: int, seed: int
) -> Solution | None:
    """Solve the game if it is small, and check that searches find the best actions.

    Not for more players, or rewards that do not add up to zero: there exact values depend on how
    ties are broken, and a search may rightly differ.
    """
    rewards = [after.reward.sum() for after in case.taken if after.reward is not None]
    if case.game.num_players > 2 or (case.game.num_players == 2 and np.any(rewards)):
        return None
    try:
        solution = solve_within(case.game, start.record, max_states, debug=True)
    except BrokenGame as error:
        _note_broken(case, error, start)
        return None
    except UctreeError:  # values that do not converge
        return None
    if solution is None:
        return None
    case.checked.add("search-against-exact")
    for position in _decisions(case, 5):
        try:
            _check_search(case, solution, position, num_simulations, seed)
        except BrokenGame as error:
            _note_broken(case, error, position)
    return solution


def _note_broken(case: Case, error: BrokenGame, position: Position) -> None:
    """Add a finding for an error of a search or the solver in a state that the walk missed."""
    cause = error.__cause__
    rule = rule_of(cause, "step") if isinstance(cause, Exception) else "raises"
    case.found(rule, str(error).replace("; uctree.check(game) says more", ""), position)


def _check_search(
    case: Case, solution: Solution, position: Position, num_simulations: int, seed: int
) -> None:
    game, player = case.game, int(position.record["to_play"])
    if player < 0:
        return
    values = {}
    for action in game.legal(position.record):
        after, reward = game.step(position.record, action)
        values[action] = (reward + game.discount * solution.value_of(after))[player]
    best, span = max(values.values()), max(values.values()) - min(values.values())
    if span < 1e-9:
        return
    for budget in (num_simulations, 10 * num_simulations):  # a deep trap may need the larger one
        result = search(game, position.record, num_simulations=budget, seed=seed)
        assert result.action is not None
        chosen = values[result.action]
        if best - chosen <= 0.25 * span:
            return
    text = (
        f"{budget:,} simulations chose action {result.action} of value {chosen:.4g} for "
        f"player {player}; the best value is {best:.4g}"
    )
    case.found("search-against-exact", text, position)


# --- the doctor ----------------------------------------------------------------------------------


def check(
    game: Any,
    start: Any = NOT_GIVEN,
    *,
    to_play: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
    heuristic: bool = False,
    max_states: int = 200_000,
    num_simulations: int = 20_000,
    **unknown: Any,
) -> Report:
    """A report on whether a game keeps its contract: the rules checked, and the findings.

    A mistake in the game does not raise; it becomes a finding with the shortest sequence of actions
    found that shows it.

    Args:
        game: a game, or its text, as `connect_four(rows=5)` or `my_game.py`; or what `plan` takes,
            a `Problem` with its `start` for instance. The remaining arguments but `seed` and
            `episodes` are for games.
        to_play: the player to move at the start of a `Problem`, or uctree.CHANCE.
        episodes: random episodes to play, 200 if omitted, 20 of a problem; fewer if they are long.
        heuristic: whether random_action and playout play better than at random, on purpose.
        max_states: a game with at most this many states is solved, and searches are compared with
            the exact values.
        num_simulations: of those searches; 0 for none.
    """
    for name in unknown:
        hint = ", which is now called heuristic" if name == "wise" else ""
        raise TypeError(f"check has no option {name!r}{hint}")
    began = time.perf_counter()
    is_function = inspect.isfunction(game)  # a factory that was not called, as `as_game` says
    if not (isinstance(game, (Game, str)) or is_function):
        world = world_of(game, start, to_play)
        return check_problem(world, PROBLEM_EPISODES if episodes is None else episodes, seed)
    episodes = GAME_EPISODES if episodes is None else episodes
    game = specs.as_game(game)
    case = Case(game, seed)
    case.checked |= plain_rules(game)
    played, solution = 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            before = digest_of(game.data)
            first = start_of(case)
            walk_breadth_first(case, first)
            played = walk_at_random(case, first, episodes)
            look_at_episodes(case)
            look_at_seats(case, first)
            look_at_pickle(case)
            if digest_of(game.data) != before:
                case.found("data-changed", "a rule wrote into data")
            solution = _examine_compiled(case, first, heuristic, max_states, num_simulations, seed)
        except Stop:
            pass
    order = {rule: i for i, rule in enumerate(RULES)}
    findings = sorted(case.findings.values(), key=lambda f: (f.severity != ERROR, order[f.rule]))
    return Report(
        game.name,
        tuple(findings),
        tuple(rule for rule in RULES if rule in case.checked),
        played,
        case.plies,
        None if solution is None else solution.states,
        time.perf_counter() - began,
    )


def _examine_compiled(
    case: Case,
    first: Position,
    is_heuristic: bool,
    max_states: int,
    num_simulations: int,
    seed: int,
) -> Solution | None:
    """Run the checks that need compiled code, as far as that is safe; the solution, if any."""
    if interpreted() or _DANGEROUS & set(case.findings):
        return None
    compiled = _compile(case)
    if compiled is None or "hidden-randomness" in case.findings:
        return None  # two runs of such a game differ, compiled or not
    _lock_step(case, compiled)
    if case.has_errors:
        return None
    _look_at_length(case, compiled, first)
    _look_at_draws(case, compiled, is_heuristic)
    _look_at_playout(case, compiled, is_heuristic)
    if case.has_errors or num_simulations == 0 or case.game.is_continuous:
        return None
    return _look_at_search(case, first, max_states, num_simulations, seed)
