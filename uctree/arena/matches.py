"""match(): many games between agents: paired, stored, resumable and parallel."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import os
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import specs
from uctree.arena import ratings
from uctree.arena.agents import AgentSource, derived_seed, name_of
from uctree.arena.dice import random_walk
from uctree.arena.episodes import AgentPool, Task, named, play_task
from uctree.arena.records import GameRecord, Journal, make_header, read_file
from uctree.arena.standings import MatchResult
from uctree.arena.workers import play_in_workers
from uctree.engine import interrupts
from uctree.engine.options import whole
from uctree.errors import IllegalAction, UctreeError
from uctree.game import Game
from uctree.workers.processes import BACKENDS

DEFAULT_GAMES = 100  # per group of agents
MAX_SEATINGS = 6  # per opening: all orders for up to three players, else the rotations of one
PAIR = 2  # games of an opening between two agents
MAX_DRAWS = 1000  # of an opening without a new one before openings repeat

Openings = int | Sequence[Sequence[int]]


@dataclass(frozen=True)
class MatchProgress:
    """The progress of a match; passed to `progress` after every game."""

    done: int
    total: int
    scores: dict[str, float]  # the mean score of each agent so far; 0.5 without games
    forfeits: int
    record: GameRecord | None  # the game that ended last; None for games from a file


def match(
    game: Game | str,
    agents: Sequence[AgentSource] | Mapping[str, AgentSource],
    *,
    num_games: int | None = None,
    openings: Openings = 2,
    seed: int = 0,
    processes: int = 1,
    backend: str = "process",
    path: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    sprt: ratings.Sprt | None = None,
    progress: Callable[[MatchProgress], None] | None = None,
) -> MatchResult:
    """The result of many games between agents: scores, ratings, intervals.

    Every opening is played in all seatings, with the same chance outcomes. With more than three
    players an opening is played in all rotations of one order, which changes from opening to
    opening. With more agents than seats every group of agents plays. The games depend on the
    settings alone, not on the number of processes. Ctrl-C ends the match with the result so far,
    and the same call with a `path` resumes it, also with more games.

    Args:
        game: a game, or its text, as `connect_four(rows=5)`.
        agents: texts as `search(num_simulations=100)`, or classes and functions that make an agent;
            a mapping gives them names.
        num_games: the games of each group of agents, rounded up to whole openings; 100 by default,
            or each opening of a list once.
        openings: the number of random plies of an opening, all different until none is left; or a
            list of openings, each a list of actions with chance outcomes.
        processes: the number of games at once, each in its own process; 1 plays in this process.
        backend: "ray" plays them as actors of a Ray cluster, even one at a time.
        path: the file that stores the games, one JSON line each.
        max_seconds: the time limit of an action, and of watching one; must be above the T of
            search(seconds=T). The games are then played in worker processes, so that an agent that
            hangs can be ended.
        sprt: end as soon as this test of two agents has decided.
        progress: called with a `MatchProgress` after every game.
    """
    sources = dict(agents) if isinstance(agents, Mapping) else named(agents)
    pool = AgentPool(game, sources)
    chosen = pool.game
    seed, processes = whole_number("seed", seed), whole_number("processes", processes, 1)
    num_games = None if num_games is None else whole_number("num_games", num_games, 1)
    openings = int(openings) if isinstance(openings, np.integer) else openings
    _check(chosen, sources, openings, max_seconds, sprt)
    if backend not in BACKENDS:
        raise UctreeError(f"backend is {' or '.join(map(repr, BACKENDS))}; got {backend!r}")
    with contextlib.closing(pool):
        _prepare(pool)
        tasks = schedule(chosen, len(sources), num_games, openings, seed)
        settings = {"openings": _plain(openings), "seed": seed, "max_seconds": max_seconds}
        texts = {name: name_of(source) for name, source in sources.items()}
        header = make_header(chosen, texts, settings)
        with contextlib.ExitStack() as stack:
            journal = None
            if path is not None:
                with interrupts.postponed():
                    opened = contextlib.closing(Journal(path, header, chosen))
                    journal = stack.enter_context(opened)
            run = _Run(pool, tasks, journal, sprt, progress)
            status = run.play(processes, max_seconds, backend)
    return MatchResult(chosen, list(sources), run.counted(), status, header, run.test)


def read_match(path: str | os.PathLike[str], game: Game | None = None) -> MatchResult:
    """The result of the games in the file of a match, without playing.

    Args:
        game: as in `read_games`.
    """
    header, records = read_file(path, game)
    if not records:
        raise UctreeError(f"{path} holds no games yet")
    played = records[0].game
    assert played is not None, "records from a file have a game"
    return MatchResult(played, list(header["agents"]), records, "stored", header)


class _Run:
    """A match in progress."""

    def __init__(
        self, pool: AgentPool, tasks: list[Task], journal: Journal | None,
        sprt: ratings.Sprt | None, progress: Callable[[MatchProgress], None] | None,
    ) -> None:  # fmt: skip
        self.pool, self.tasks, self.journal, self.progress = pool, tasks, journal, progress
        self.sprt = sprt
        self.test = None if sprt is None else sprt.test([])
        self.tested = 0  # games that the test has used
        self.units: list[float] = []  # mean scores of the first agent by opening
        self.records: dict[int, GameRecord] = {}
        self.sums = dict.fromkeys(pool.names, 0.0)
        self.games = dict.fromkeys(pool.names, 0)
        self.forfeits = 0
        if journal is not None:
            for task in tasks:
                if task.number in journal.records:
                    self._count(_checked(journal, task, pool))

    def play(self, processes: int, max_seconds: float | None, backend: str) -> str:
        """Play the rest; "complete", "decided" by the test, or "interrupted" by Ctrl-C."""
        self._report(None)
        if self._is_decided():
            return "decided"
        left = [task for task in self.tasks if task.number not in self.records]
        games: Generator[GameRecord]
        if processes > 1 or max_seconds is not None or backend != "process":
            self.pool.close()  # workers make their own agents
            games = play_in_workers(self.pool, left, processes, max_seconds, backend)
        else:
            games = (play_task(self.pool, task) for task in left)
        with interrupts.sent_again(), contextlib.closing(games):
            try:
                for record in games:
                    if self.journal is not None:
                        self.journal.append(record)
                    self._count(record)
                    decided = self._is_decided()
                    self._report(record)
                    if decided:
                        return "decided"
            except KeyboardInterrupt:
                return "interrupted"
        return "complete"

    def counted(self) -> list[GameRecord]:
        """The games by number; after a decision of the test only those that it used."""
        numbers = sorted(self.records)
        if self.test is not None and self.test.decision is not None:
            numbers = [number for number in numbers if number < self.tested]
        return [self.records[number] for number in numbers]

    def _count(self, record: GameRecord) -> None:
        self.records[record.number] = record
        self.forfeits += record.forfeiter is not None
        scores = ratings.placement_scores(record.returns)
        for name, score in zip(record.agents, scores, strict=True):
            self.sums[name] += float(score)
            self.games[name] += 1

    def _is_decided(self) -> bool:
        """Whether the test has decided; openings count in order, so that fast games add no bias."""
        if self.sprt is None or self.test is None:
            return False
        while self.test.decision is None:
            numbers = range(self.tested, self.tested + PAIR)
            if not all(number in self.records for number in numbers):
                break
            scores = [self._score(self.records[number]) for number in numbers]
            self.units.append(sum(scores) / PAIR)
            self.tested += PAIR
            self.test = self.sprt.test(self.units)
        return self.test.decision is not None

    def _score(self, record: GameRecord) -> float:
        """The score of the first agent."""
        seat = record.agents.index(self.pool.names[0])
        return float(ratings.placement_scores(record.returns)[seat])

    def _report(self, record: GameRecord | None) -> None:
        if self.progress is None:
            return
        scores = {
            name: self.sums[name] / games if games else 0.5 for name, games in self.games.items()
        }
        done, total = len(self.records), len(self.tasks)
        self.progress(MatchProgress(done, total, scores, self.forfeits, record))


# --- the schedule --------------------------------------------------------------------------------


def schedule(
    game: Game, num_agents: int, num_games: int | None, openings: Openings, seed: int
) -> list[Task]:
    """The games of a match; a larger `num_games` only adds games at the end."""
    groups = list(itertools.combinations(range(num_agents), game.num_players))
    if num_games is None and not isinstance(openings, int):
        num_openings = len(openings)
    else:
        each = len(_seatings(game.num_players, 0))
        num_openings = math.ceil((num_games or DEFAULT_GAMES) / each)
    tasks: list[Task] = []
    drawn = itertools.islice(_openings(game, openings, seed), num_openings)
    for number, opening in enumerate(drawn):
        episode_seed = derived_seed(seed, "episode", number)
        for group, seating in itertools.product(groups, _seatings(game.num_players, number)):
            seats = tuple(group[place] for place in seating)
            tasks.append(Task(len(tasks), number, seats, opening, episode_seed))
    return tasks


def _seatings(num_players: int, opening: int) -> list[tuple[int, ...]]:
    """The seat orders of a group of agents, in which each agent has each seat equally often.

    With more than three players an opening has the rotations of one order, which changes from
    opening to opening.

    >>> _seatings(2, 5), len(_seatings(3, 5)), _seatings(4, 0)[1], _seatings(4, 1)[1]
    ([(0, 1), (1, 0)], 6, (1, 2, 3, 0), (1, 3, 2, 0))
    """
    if math.factorial(num_players) <= MAX_SEATINGS:
        return list(itertools.permutations(range(num_players)))
    place = opening % math.factorial(num_players - 1)
    others = next(itertools.islice(itertools.permutations(range(1, num_players)), place, None))
    order = (0, *others)
    return [order[turn:] + order[:turn] for turn in range(num_players)]


def _openings(game: Game, openings: Openings, seed: int) -> Iterator[tuple[int, ...]]:
    """An endless stream of openings; none repeats before all have occurred."""
    if not isinstance(openings, int):
        yield from itertools.cycle([_checked_opening(game, opening) for opening in openings])
        return
    if openings == 0 and not game.is_over(game.start()):
        yield from itertools.repeat(())
    rng, misses = random.Random(derived_seed(seed, "openings")), 0
    known: dict[bytes, tuple[int, ...]] = {}
    while misses < MAX_DRAWS:
        actions, states = random_walk(game, game.start(), openings, rng)
        key = game.key(states[-1])
        if game.is_over(states[-1]) or key in known:
            misses += 1
            continue
        known[key], misses = tuple(actions), 0
        yield known[key]
    if not known:
        raise UctreeError(
            f"{game.name} was over within {openings} random plies in {MAX_DRAWS} attempts; "
            "choose shorter openings"
        )
    again = list(known.values())
    while True:  # all were used; repeat them with other seeds
        rng.shuffle(again)
        yield from again


def _checked_opening(game: Game, opening: Sequence[int]) -> tuple[int, ...]:
    actions = tuple(map(operator.index, opening))
    try:
        state = game.play(actions)
    except IllegalAction as error:
        raise UctreeError(f"opening {list(actions)}: {error}") from error
    if game.is_over(state):
        raise UctreeError(f"opening {list(actions)}: the episode is over; give a shorter one")
    return actions


def _plain(openings: Openings) -> int | list[list[int]]:
    if isinstance(openings, int):
        return openings
    return [[operator.index(action) for action in opening] for opening in openings]


# --- checks --------------------------------------------------------------------------------------


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """A whole number, from NumPy or not, as an int; UctreeError for anything else."""
    bound = "" if least is None else f" of at least {least}"
    try:
        number = whole(name, value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise UctreeError(f"{name} must be a whole number{bound}; got {value!r}")
    return number


def _check(
    game: Game, sources: Mapping[str, AgentSource], openings: Openings, max_seconds: float | None,
    sprt: ratings.Sprt | None,
) -> None:  # fmt: skip
    if len(sources) < game.num_players:
        raise UctreeError(
            f"{game.name} has {game.num_players} players; got {len(sources)} agents. Give an agent "
            "several times if it plays several seats"
        )
    if isinstance(openings, int) and openings < 0:
        raise UctreeError(f"openings must be a number of random plies, at least 0; got {openings}")
    if not isinstance(openings, int):
        _check_list(openings)
    if max_seconds is not None and not max_seconds > 0:
        raise UctreeError(f"max_seconds must be above 0; got {max_seconds}")
    if sprt is not None and (len(sources) != 2 or game.num_players != 2):
        raise UctreeError(
            f"sprt tests two agents in a game of two players; got {len(sources)} agents and "
            f"{game.num_players} players"
        )


def _check_list(openings: Any) -> None:
    """Raise UctreeError if openings are not lists of actions."""
    expected = "openings must be a number of random plies, or a list of lists of actions"
    if isinstance(openings, str) or not isinstance(openings, Sequence):
        raise UctreeError(f"{expected}; got {openings!r}")
    if not openings:
        raise UctreeError("openings is an empty list; give 0 to begin at the start")
    for opening in openings:
        try:
            list(map(operator.index, opening))
        except TypeError:
            raise UctreeError(f"{expected}; got {opening!r} as one of them") from None


def _prepare(pool: AgentPool) -> None:
    """Make every agent once, so that a mistake is reported before the first game."""
    for index, name in enumerate(pool.names):
        try:
            pool.agent(index)
        except Exception as error:
            reason = f"{specs.place(error)}{specs.reason(error)}"
            raise UctreeError(reason if name in reason else f"agent {name}: {reason}") from error


def _checked(journal: Journal, task: Task, pool: AgentPool) -> GameRecord:
    """The stored record of a game; UctreeError if it is not the scheduled one."""
    record = journal.records[task.number]
    names = tuple(pool.names[index] for index in task.seats)
    if (record.agents, record.opening, record.seed) != (names, task.opening, task.seed):
        raise UctreeError(
            f"{journal.path}: game {record.number} is not one of this match: {record.agents} with "
            f"opening {record.opening} in the file, {names} with {task.opening} now; give another "
            "path"
        )
    return record
