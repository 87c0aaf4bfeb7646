"""One game between agents: turns, forfeits after a mistake, and the record of the game."""

from __future__ import annotations

import contextlib
import itertools
import operator
import random
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import specs
from uctree.arena.agents import Agent, AgentSource, derived_seed, make_agent, name_of
from uctree.arena.dice import draw_outcome
from uctree.arena.external import Resigned
from uctree.arena.records import GameRecord
from uctree.engine.stepping import with_machine_code
from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, ENDLESS, Game
from uctree.views import whole


@dataclass(frozen=True)
class Task:
    """A game to play."""

    number: int
    opening_number: int
    seats: tuple[int, ...]  # the index of the agent in each seat
    opening: tuple[int, ...]
    seed: int


# Called before each method of an agent, with its seat, the actions since the last call, and whether
# `max_seconds` applies (not while an agent is made or begins, which may compile).
Report = Callable[[int, Sequence[int], bool], None]


def refuse_vectors(game: Game) -> None:
    """Raise UctreeError for a game whose actions are vectors, which agents do not play."""
    if game.is_continuous:
        raise UctreeError(
            f"the actions of {game.name} are vectors, and agents play games with numbered actions; "
            "`uctree continuous` compares solvers of such a game"
        )


class AgentPool:
    """The agents of a match in one process, made when they are first needed."""

    def __init__(self, game: Game | str, sources: dict[str, AgentSource]) -> None:
        self.game_source = game  # text, if given, from which another process makes the game
        # People and agents play all of a game with a window.
        self.game = with_machine_code(whole(specs.as_game(game)))
        refuse_vectors(self.game)
        _check_distinct(sources)
        self.names = list(sources)
        self.sources = list(sources.values())
        self.made: dict[int, Agent] = {}

    def agent(self, index: int) -> Agent:
        """The agent with this index, ready to play."""
        if index not in self.made:
            self.made[index] = agent = make_agent(self.sources[index])
            prepare = getattr(agent, "prepare", None)
            try:
                if prepare is not None:
                    prepare(self.game)
            except BaseException:
                self.drop(index)
                raise
        return self.made[index]

    def drop(self, index: int) -> None:
        """Close and discard an agent that failed; the next game gets a new one."""
        agent = self.made.pop(index, None)
        with contextlib.suppress(Exception):  # an agent that failed once may fail again
            getattr(agent, "close", lambda: None)()

    def close(self) -> None:
        """Close all agents."""
        for index in list(self.made):
            self.drop(index)


def _check_distinct(sources: dict[str, AgentSource]) -> None:
    """Raise UctreeError if one object is given for several seats."""
    objects = [(name, each) for name, each in sources.items() if not isinstance(each, str)]
    for (name, each), (other, again) in itertools.combinations(objects, 2):
        if each is again and not callable(each):
            raise UctreeError(
                f"agents {name} and {other} are the same object, which would play both seats with "
                "one memory; give its class, a function that makes one, or two objects"
            )


def play(
    game: Game | str,
    agents: Sequence[AgentSource],
    *,
    opening: Sequence[int] = (),
    seed: int = 0,
    max_seconds: float | None = None,
) -> GameRecord:
    """One game between agents, the first of them in seat 0.

    An agent that raises an error, takes an illegal action or takes too long forfeits the game. An
    agent that raises `external.Resigned` in `act` has lost it.

    Args:
        game: a game, or its text, as `connect_four(rows=5)`.
        agents: one per seat: a text as `search(num_simulations=100)`, a class, or an agent.
        opening: actions to begin with, chance outcomes included.
        seed: determines chance outcomes and the seeds of the agents.
        max_seconds: the time limit of an action; for search(seconds=T) give more than T.
    """
    pool = AgentPool(game, named(agents))
    if len(agents) != pool.game.num_players:
        raise UctreeError(
            f"{pool.game.name} has {pool.game.num_players} players; got {len(agents)} agents"
        )
    pool.game.play(opening)  # raises IllegalAction for a wrong opening
    try:
        for index in range(len(agents)):
            pool.agent(index)
        task = Task(0, 0, tuple(range(len(agents))), tuple(opening), seed)
        return play_task(pool, task, max_seconds)
    finally:
        pool.close()


def named(
    agents: Sequence[AgentSource], names: Sequence[str] | None = None
) -> dict[str, AgentSource]:
    """Agents by name, by default their text; equal names get a number.

    >>> list(named(["random", "greedy", "random"]))
    ['random', 'greedy', 'random (2)']
    """
    found: dict[str, AgentSource] = {}
    for source, name in zip(agents, names or map(name_of, agents), strict=True):
        numbered = itertools.chain([name], (f"{name} ({again})" for again in itertools.count(2)))
        found[next(each for each in numbered if each not in found)] = source
    return found


class Clock:
    """Decisions and seconds of the agents of a game so far, by seat."""

    def __init__(self, num_players: int) -> None:
        self.decisions = [0] * num_players
        self.seconds = [0.0] * num_players


class _Forfeit(Exception):
    """An agent made a mistake that ends the game."""

    def __init__(self, seat: int, error: str) -> None:
        super().__init__(error)
        self.seat = seat


def play_task(
    pool: AgentPool, task: Task, max_seconds: float | None = None, report: Report | None = None
) -> GameRecord:
    """The record of a game, which is played."""
    game = play_in_turns(pool, task, max_seconds, report)
    while True:
        try:
            next(game)
        except StopIteration as end:
            record: GameRecord = end.value
            return record


def play_in_turns(
    pool: AgentPool, task: Task, max_seconds: float | None = None, report: Report | None = None
) -> Generator[tuple[Agent, np.record], None, GameRecord]:
    """Yields the agent to act and its state before each decision; returns the record at the end.

    So several games can run at the same time, and an agent can compute its decisions in all of them
    as one batch before its `act` is called.
    """
    episode = _Episode(pool, task, max_seconds, report)
    try:
        yield from episode.run()
    except _Forfeit as forfeit:
        pool.drop(task.seats[forfeit.seat])
        return forfeited(pool, task, episode.actions, forfeit.seat, str(forfeit), episode.clock)
    except Resigned:
        seat = pool.game.to_play(episode.state)
        returns = _lost_returns(pool, task, episode.actions, seat, episode.clock)
        return _record(pool, task, episode.actions, returns, "resigned", episode.clock)
    end = "over" if pool.game.is_over(episode.state) else "cut"
    return _record(pool, task, episode.actions, episode.returns, end, episode.clock)


def forfeited(
    pool: AgentPool, task: Task, actions: Sequence[int], seat: int, error: str,
    clock: Clock,
) -> GameRecord:  # fmt: skip
    """The record of a game that the agent in `seat` forfeits."""
    returns = _lost_returns(pool, task, actions, seat, clock)
    return _record(pool, task, actions, returns, "forfeit", clock, forfeiter=seat, error=error)


def _lost_returns(
    pool: AgentPool, task: Task, actions: Sequence[int], seat: int, clock: Clock
) -> np.ndarray:
    """The returns of a game that `seat` lost early: its minimum, and the maximum of all others."""
    game = pool.game
    if game.payoff_range is not None:
        returns = game.payoff_range[:, 1].copy()
        returns[seat] = game.payoff_range[seat, 0]
    else:
        played = _record(pool, task, actions, np.zeros(game.num_players), "forfeit", clock)
        returns = played.episode.returns.copy()
        returns[seat] = returns.min() - 1.0  # last place
    return np.asarray(returns)


def _record(
    pool: AgentPool, task: Task, actions: Sequence[int], returns: np.ndarray, end: str,
    clock: Clock, **more: Any,
) -> GameRecord:  # fmt: skip
    return GameRecord(
        task.number, task.opening_number, tuple(pool.names[index] for index in task.seats),
        task.opening, task.seed, tuple(actions), tuple(returns.tolist()), end,
        tuple(clock.decisions), tuple(round(each, 6) for each in clock.seconds),
        game=pool.game, **more,
    )  # fmt: skip


def checked_action(game: Game, state: np.record, returned: Any, ply: int) -> int:
    """The action that an agent returned; IllegalAction if it is no action, or not legal."""
    try:
        action = operator.index(returned)
    except TypeError:
        raise IllegalAction(f"{returned!r} at ply {ply} is not an action") from None
    legal = game.legal(state)
    if action not in legal:
        raise IllegalAction(f"action {action} at ply {ply} is not legal; legal: {legal}")
    return action


class _Episode:
    """A game in progress."""

    def __init__(
        self, pool: AgentPool, task: Task, max_seconds: float | None, report: Report | None
    ) -> None:
        self.game, self.pool, self.task = pool.game, pool, task
        self.max_seconds, self.report = max_seconds, report
        self.state = self.game.start()
        self.returns = np.zeros(self.game.num_players)
        self.actions: list[int] = []
        self.clock = Clock(self.game.num_players)
        self.num_reported = 0  # actions passed to `report`
        self.num_outcomes = 0  # of chance so far

    def run(self) -> Generator[tuple[Agent, np.record]]:
        """Play to the end; yields the agent to act and its state before each decision."""
        for seat, index in enumerate(self.task.seats):
            self._call(seat, "made", self.pool.agent, index, limited=False)
        for seat, index in enumerate(self.task.seats):
            seed = derived_seed(self.task.seed, seat, self.pool.names[index])
            begin = self.pool.agent(index).begin
            self._call(seat, "begin", begin, self.game, seat, seed, limited=False)
        for action in self.task.opening:
            self._take(action)
        limit = self.game.max_plies or ENDLESS
        while not self.game.is_over(self.state) and len(self.actions) < limit:
            to_play = self.game.to_play(self.state)
            if to_play == CHANCE:
                self._take(self._outcome())
                continue
            yield self.pool.agent(self.task.seats[to_play]), self.state
            self._take(self._decision(to_play))

    def _call(
        self,
        seat: int,
        what: str,
        method: Callable[..., Any],
        *given: Any,
        limited: bool = True,
    ) -> Any:
        """The result of an agent's method; an error is a forfeit, except `Resigned` in `act`."""
        if self.report is not None:
            self.report(seat, self.actions[self.num_reported :], limited)
            self.num_reported = len(self.actions)
        try:
            return method(*given)
        except (Exception, SystemExit) as error:
            if isinstance(error, Resigned) and what == "act":
                raise
            where = f"{what} at ply {len(self.actions)}"
            raise _Forfeit(seat, f"{where}: {type(error).__name__}: {error}") from error

    def _decision(self, seat: int) -> int:
        began = time.perf_counter()
        act = self.pool.agent(self.task.seats[seat]).act
        returned = self._call(seat, "act", act, self.game.copy(self.state))
        spent = time.perf_counter() - began
        self.clock.decisions[seat] += 1
        self.clock.seconds[seat] += spent
        ply = len(self.actions)
        if self.max_seconds is not None and spent > self.max_seconds:
            raise _Forfeit(
                seat, f"took {spent:.3g} s at ply {ply}; the limit is {self.max_seconds:g} s"
            )
        try:
            return checked_action(self.game, self.state, returned, ply)
        except IllegalAction as error:
            raise _Forfeit(seat, str(error)) from None

    def _outcome(self) -> int:
        """A chance outcome; the n-th one of an episode depends on the seed and n alone."""
        rng = random.Random(derived_seed(self.task.seed, "chance", self.num_outcomes))
        return draw_outcome(self.game, self.state, rng)

    def _take(self, action: int) -> None:
        state = self.state
        self.num_outcomes += self.game.to_play(state) == CHANCE
        self.state, reward = self.game.step(state, action)
        self.returns += self.game.discount ** len(self.actions) * reward
        self.actions.append(action)
        for seat, index in enumerate(self.task.seats):
            watch = getattr(self.pool.agent(index), "watch", None)
            if watch is not None:
                self._call(seat, "watch", watch, self.game.copy(state), action)
