"""One game between agents: who acts when, what it takes to lose by a mistake, and its record."""

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
from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, ENDLESS, Game


@dataclass(frozen=True)
class Task:
    """A game that is to be played."""

    number: int
    opening_number: int
    seats: tuple[int, ...]  # which agent of the match sits where
    opening: tuple[int, ...]
    seed: int


# Told before an agent is asked for anything: its seat, the actions taken since the last time, and
# whether it has to be quick (it has not while it is made or begins, which may compile).
Report = Callable[[int, Sequence[int], bool], None]


def refuse_vectors(game: Game) -> None:
    """Raise an error where the actions of a game are vectors, which agents do not play."""
    if game.is_continuous:
        raise UctreeError(
            f"the actions of {game.name} are vectors, and agents play games whose actions are "
            "numbers; `uctree continuous` compares ways to solve such a game"
        )


class Squad:
    """The agents of a match in one process, made when they are first needed."""

    def __init__(self, game: Game | str, sources: dict[str, AgentSource]) -> None:
        self.game_source = game  # another process makes it from text where there is one
        self.game = specs.read_game(game) if isinstance(game, str) else game
        refuse_vectors(self.game)
        _check_own(sources)
        self.names = list(sources)
        self.sources = list(sources.values())
        self.made: dict[int, Agent] = {}

    def agent(self, index: int) -> Agent:
        """The agent of this index, ready to play."""
        if index not in self.made:
            agent = make_agent(self.sources[index])
            prepare = getattr(agent, "prepare", None)
            if prepare is not None:
                prepare(self.game)
            self.made[index] = agent
        return self.made[index]

    def drop(self, index: int) -> None:
        """Forget an agent that failed; the next game has a new one."""
        agent = self.made.pop(index, None)
        with contextlib.suppress(Exception):  # it has failed before
            getattr(agent, "close", lambda: None)()

    def close(self) -> None:
        """End what the agents began."""
        for index in list(self.made):
            self.drop(index)


def _check_own(sources: dict[str, AgentSource]) -> None:
    """Raise UctreeError where one object is to play several seats."""
    objects = [(name, each) for name, each in sources.items() if not isinstance(each, str)]
    for (name, each), (other, again) in itertools.combinations(objects, 2):
        if each is again and not callable(each):
            raise UctreeError(
                f"agents {name} and {other} are the same object, which cannot be made anew and "
                "would play both seats with one memory; give its class, a function that makes one, "
                "or two objects"
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

    An agent that raises an error, takes an illegal action or takes too long forfeits the game;
    one that raises `external.Resigned` when it is to act has lost it.

    Args:
        game: or its text, as `connect_four(rows=5)`.
        agents: one per seat: a text as `search(simulations=100)`, a class, or an agent.
        opening: actions to begin with, chance outcomes included.
        seed: decides chance outcomes, and is handed on to the agents.
        max_seconds: the most an action may take; for search(seconds=T) give more than T.
    """
    squad = Squad(game, named(agents))
    if len(agents) != squad.game.num_players:
        raise UctreeError(
            f"{squad.game.name} has {squad.game.num_players} players; got {len(agents)} agents"
        )
    squad.game.play(opening)  # an opening that is not legal is the caller's mistake
    try:
        for index in range(len(agents)):
            squad.agent(index)
        task = Task(0, 0, tuple(range(len(agents))), tuple(opening), seed)
        return play_task(squad, task, max_seconds)
    finally:
        squad.close()


def named(
    agents: Sequence[AgentSource], names: Sequence[str] | None = None
) -> dict[str, AgentSource]:
    """Agents by name, which is their text where none is given; equal names get a number.

    >>> list(named(["random", "greedy", "random"]))
    ['random', 'greedy', 'random (2)']
    """
    found: dict[str, AgentSource] = {}
    for source, name in zip(agents, names or map(name_of, agents), strict=True):
        numbered = itertools.chain([name], (f"{name} ({again})" for again in itertools.count(2)))
        found[next(each for each in numbered if each not in found)] = source
    return found


class Clock:
    """What the agents of a game took so far, by seat."""

    def __init__(self, num_players: int) -> None:
        self.decisions = [0] * num_players
        self.seconds = [0.0] * num_players


class _Forfeit(Exception):
    """An agent made a mistake that ends the game."""

    def __init__(self, seat: int, error: str) -> None:
        super().__init__(error)
        self.seat = seat


def play_task(
    squad: Squad, task: Task, max_seconds: float | None = None, report: Report | None = None
) -> GameRecord:
    """The record of a game that was to be played."""
    game = play_in_turns(squad, task, max_seconds, report)
    while True:
        try:
            next(game)
        except StopIteration as end:
            record: GameRecord = end.value
            return record


def play_in_turns(
    squad: Squad, task: Task, max_seconds: float | None = None, report: Report | None = None
) -> Generator[tuple[Agent, np.record], None, GameRecord]:
    """Yields who is to act and in which state, before it does; returns the record in the end.

    So many games can go on at the same time, and agents that would rather decide for all of them
    together can do so before they are asked.
    """
    episode = _Episode(squad, task, max_seconds, report)
    try:
        yield from episode.run()
    except _Forfeit as forfeit:
        squad.drop(task.seats[forfeit.seat])
        return forfeited(squad, task, episode.actions, forfeit.seat, str(forfeit), episode.clock)
    except Resigned:
        seat = squad.game.to_play(episode.state)
        returns = _lost_returns(squad, task, episode.actions, seat, episode.clock)
        return _record(squad, task, episode.actions, returns, "resigned", episode.clock)
    end = "over" if squad.game.is_over(episode.state) else "cut"
    return _record(squad, task, episode.actions, episode.returns, end, episode.clock)


def forfeited(
    squad: Squad, task: Task, actions: Sequence[int], seat: int, error: str,
    clock: Clock,
) -> GameRecord:  # fmt: skip
    """The record of a game that the agent in `seat` lost by a mistake."""
    returns = _lost_returns(squad, task, actions, seat, clock)
    return _record(squad, task, actions, returns, "forfeit", clock, forfeiter=seat, error=error)


def _lost_returns(
    squad: Squad, task: Task, actions: Sequence[int], seat: int, clock: Clock
) -> np.ndarray:
    """What a game pays that `seat` has lost early: the least to it, the most to all others."""
    game = squad.game
    if game.payoff_range is not None:
        returns = game.payoff_range[:, 1].copy()
        returns[seat] = game.payoff_range[seat, 0]
    else:
        played = _record(squad, task, actions, np.zeros(game.num_players), "forfeit", clock)
        returns = played.episode.returns.copy()
        returns[seat] = returns.min() - 1.0  # the last place
    return np.asarray(returns)


def _record(
    squad: Squad, task: Task, actions: Sequence[int], returns: np.ndarray, end: str,
    clock: Clock, **more: Any,
) -> GameRecord:  # fmt: skip
    return GameRecord(
        task.number, task.opening_number, tuple(squad.names[index] for index in task.seats),
        task.opening, task.seed, tuple(actions), tuple(returns.tolist()), end,
        tuple(clock.decisions), tuple(round(each, 6) for each in clock.seconds),
        game=squad.game, **more,
    )  # fmt: skip


def checked_action(game: Game, state: np.record, answer: Any, ply: int) -> int:
    """The action that an agent answered; IllegalAction where it is none, or not legal."""
    try:
        action = operator.index(answer)
    except TypeError:
        raise IllegalAction(f"{answer!r} at ply {ply} is not an action") from None
    legal = game.legal(state)
    if action not in legal:
        raise IllegalAction(f"action {action} at ply {ply} is not legal; legal: {legal}")
    return action


class _Episode:
    """A game under way."""

    def __init__(
        self, squad: Squad, task: Task, max_seconds: float | None, report: Report | None
    ) -> None:
        self.game, self.squad, self.task = squad.game, squad, task
        self.max_seconds, self.report = max_seconds, report
        self.state = self.game.start()
        self.returns = np.zeros(self.game.num_players)
        self.actions: list[int] = []
        self.clock = Clock(self.game.num_players)
        self.told = 0  # actions that were reported
        self.rolls = 0  # chance outcomes so far

    def run(self) -> Generator[tuple[Agent, np.record]]:
        """Play to the end, and tell before each decision whose it is."""
        for seat, index in enumerate(self.task.seats):
            self._ask(seat, "made", self.squad.agent, index, quick=False)
        for seat, index in enumerate(self.task.seats):
            seed = derived_seed(self.task.seed, seat, self.squad.names[index])
            begin = self.squad.agent(index).begin
            self._ask(seat, "begin", begin, self.game, seat, seed, quick=False)
        for action in self.task.opening:
            self._take(action)
        limit = self.game.max_plies or ENDLESS
        while not self.game.is_over(self.state) and len(self.actions) < limit:
            to_play = self.game.to_play(self.state)
            if to_play == CHANCE:
                self._take(self._outcome())
                continue
            yield self.squad.agent(self.task.seats[to_play]), self.state
            self._take(self._decision(to_play))

    def _ask(
        self, seat: int, what: str, method: Callable[..., Any], *arguments: Any, quick: bool = True
    ) -> Any:
        """What a method of an agent returns; a failure of it is a forfeit, `Resigned` is not."""
        if self.report is not None:
            self.report(seat, self.actions[self.told :], quick)
            self.told = len(self.actions)
        try:
            return method(*arguments)
        except (Exception, SystemExit) as error:
            if isinstance(error, Resigned) and what == "act":
                raise
            where = f"{what} at ply {len(self.actions)}"
            raise _Forfeit(seat, f"{where}: {type(error).__name__}: {error}") from error

    def _decision(self, seat: int) -> int:
        began = time.perf_counter()
        act = self.squad.agent(self.task.seats[seat]).act
        answer = self._ask(seat, "act", act, self.game.copy(self.state))
        spent = time.perf_counter() - began
        self.clock.decisions[seat] += 1
        self.clock.seconds[seat] += spent
        ply = len(self.actions)
        if self.max_seconds is not None and spent > self.max_seconds:
            raise _Forfeit(
                seat, f"took {spent:.3g} s at ply {ply}; the limit is {self.max_seconds:g} s"
            )
        try:
            return checked_action(self.game, self.state, answer, ply)
        except IllegalAction as error:
            raise _Forfeit(seat, str(error)) from None

    def _outcome(self) -> int:
        """A chance outcome; the n-th of a seed is the same number of the same dice."""
        rng = random.Random(derived_seed(self.task.seed, "chance", self.rolls))
        return draw_outcome(self.game, self.state, rng)

    def _take(self, action: int) -> None:
        state = self.state
        self.rolls += self.game.to_play(state) == CHANCE
        self.state, reward = self.game.step(state, action)
        self.returns += self.game.discount ** len(self.actions) * reward
        self.actions.append(action)
        for seat, index in enumerate(self.task.seats):
            watch = getattr(self.squad.agent(index), "watch", None)
            if watch is not None:
                self._ask(seat, "watch", watch, self.game.copy(state), action)
