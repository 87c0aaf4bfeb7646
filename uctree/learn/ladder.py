"""What a checkpoint is worth: games against opponents that stay the same, ratings, diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree.arena import ratings as arena_ratings
from uctree.arena.agents import AgentSource
from uctree.arena.episodes import Task, named
from uctree.arena.matches import schedule
from uctree.arena.ratings import REGULARISATION, mean_interval, rate
from uctree.arena.standings import MatchResult
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game
from uctree.learn.diagnosis import diagnose, finite
from uctree.learn.exact import agreement
from uctree.learn.options import Options
from uctree.learn.together import Play, Searches, network_seat, play_together

if TYPE_CHECKING:
    from uctree.learn.run import Run

NETWORK, PAST = "network", "past"
OPPONENTS: dict[str, str] = {
    "random": "random",
    "greedy": "greedy",
    "playout_100": "search(simulations=100)",
    "playout_1000": "search(simulations=1000)",
}
OPENINGS = (2, 1, 0)  # random plies that games begin with; fewer where a game is over by then
ANCHOR = "random"  # whose rating is 0

Tell = Callable[[int, int], None]


def measure(
    game: Game, evaluator: Evaluator, options: Options, *, past: Evaluator | None = None,
    seed: int = 0, progress: Tell | None = None,
) -> dict[str, Any]:  # fmt: skip
    """How strong a network's search is and how right the network, as numbers for JSON.

    The search has the simulations of self-play, no noise, and takes the best action. Every opponent
    is met in `options.ladder_games` games, each opening in all seatings; with more than two players
    it has all other seats. Alone, a player is compared with opponents that play the same openings
    with the same dice. Then as many games of the network against itself, for the diagnosis, and
    exact play where that is known.

    Args:
        past: the evaluator of an earlier checkpoint, one more opponent.
        seed: of openings, chance outcomes and searches.
        progress: called with how many games of how many are done; exact play counts as one.
    """
    if options.ladder_games < 1:
        raise UctreeError("ladder_games=0 asks for no games; give at least 1 to measure a network")
    began = time.monotonic()
    network = Searches(game, evaluator, options)
    opponents: dict[str, AgentSource | Searches] = {**OPPONENTS}
    if past is not None:
        opponents[PAST] = Searches(game, past, options)
    plan = _plan(game, network, opponents, options.ladder_games, seed)
    alone = plan.pop(NETWORK)
    plays = [play for each in plan.values() for play in each] + alone
    counter = _Counter(len(plays) + 1, progress)
    play_together(plays, options.num_trees, counter.count)
    found = {
        "seed": seed,
        "simulations": network.num_simulations,
        "games": {name: _compared(game, each, alone) for name, each in plan.items()},
        "diagnosis": diagnose(network, alone),
        "exact": agreement(game, evaluator, options, seed=seed),
    }
    counter.count()
    return found | {"seconds": time.monotonic() - began}


class _Counter:
    """Tells how many are done."""

    def __init__(self, total: int, progress: Tell | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def count(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


# --- what is played ------------------------------------------------------------------------------


def _plan(
    game: Game, network: Searches, opponents: Mapping[str, AgentSource | Searches], num_games: int,
    seed: int,
) -> dict[str, list[Play]]:  # fmt: skip
    """The games against each opponent, by its name, and those of the network with itself."""
    tasks = _tasks(game, num_games, seed)
    if game.num_players == 1:
        tasks = [task for task in tasks if task.seats == (0,)]
    own = _one_of_each_opening(tasks)
    rounds = len(tasks) // len(own)  # seatings of an opening: as many games as against others
    if rounds > 1:
        own = _one_of_each_opening(_tasks(game, rounds * num_games, seed))[:num_games]
    plan = {NETWORK: [_play(game, task, [network] * game.num_players) for task in own]}
    for name, opponent in opponents.items():
        sides = [network] + [opponent] * (game.num_players - 1)
        if game.num_players == 1:
            sides = [opponent]
        plan[name] = [_play(game, task, sides) for task in tasks]
    return plan


def _one_of_each_opening(tasks: Sequence[Task]) -> list[Task]:
    return list({task.opening_number: task for task in reversed(tasks)}.values())[::-1]


def _tasks(game: Game, num_games: int, seed: int) -> list[Task]:
    for num_plies in OPENINGS:
        try:
            return schedule(game, game.num_players, num_games, num_plies, seed)
        except UctreeError:
            if num_plies == OPENINGS[-1]:
                raise
    raise AssertionError("the last one returns or raises")


def _play(game: Game, task: Task, sides: Sequence[AgentSource | Searches]) -> Play:
    """A game of these; the first one is called `network`, and others by their numbers."""
    play = Play(game, task, {})
    sources = [
        network_seat(side, play.notes) if isinstance(side, Searches) else side for side in sides
    ]
    names = [NETWORK] + ["opponent"] * (len(sides) - 1)
    play.sources.update(named(sources, names))
    return play


# --- what came of it -----------------------------------------------------------------------------


def _compared(game: Game, plays: Sequence[Play], alone: Sequence[Play]) -> dict[str, Any]:
    if game.num_players == 1:
        return _compared_alone(alone, plays)
    records = [play.ended for play in plays]
    for record in records:
        if record.forfeiter is not None:
            raise UctreeError(f"a game of the ladder was forfeited: {record.error}")
    result = MatchResult(game, list(plays[0].sources), records, "complete", {})
    own = next(each for each in result.standings if each.agent == NETWORK)
    points = np.stack([result.points[:, 0, :].sum(-1), result.points[:, :, 0].sum(-1)], axis=-1)
    rated = rate(_table(points))
    elo, low, high = rated.difference(0, 1)
    return {
        "games": own.games,
        "wins": own.wins,
        "draws": own.draws,
        "losses": own.losses,
        "score": float(points[:, 0].sum() / points.sum()),
        "score_interval": finite(tuple(rated.score_intervals[0])),
        "elo": elo,
        "elo_interval": finite((low, high)),
        "points": points.tolist(),
    }


def _table(points: np.ndarray) -> np.ndarray:
    """What the first won and lost with each opening, [n, 2], as `rate` wants it."""
    table = np.zeros((len(points), 2, 2))
    table[:, 0, 1], table[:, 1, 0] = points[:, 0], points[:, 1]
    return table


def _compared_alone(own: Sequence[Play], others: Sequence[Play]) -> dict[str, Any]:
    """Returns of one player and of another one, with the same openings and dice."""
    mine = np.array([play.ended.returns[0] for play in own])
    theirs = np.array([play.ended.returns[0] for play in others])
    return {
        "games": len(mine),
        "mean_return": float(mine.mean()),
        "return_interval": finite(mean_interval(mine)),
        "opponent_return": float(theirs.mean()),
        "opponent_interval": finite(mean_interval(theirs)),
        "difference": float((mine - theirs).mean()),
        "difference_interval": finite(mean_interval(mine - theirs)),
    }


# --- ratings over a run --------------------------------------------------------------------------


@dataclass(frozen=True)
class LadderRatings:
    """Ratings of all checkpoints that were measured and of their opponents, on one scale."""

    agents: list[str]  # opponents by name, checkpoints as "iteration 10"
    iterations: list[int | None]  # of each; None for an opponent that stays the same
    ratings: arena_ratings.Ratings

    def rows(self) -> list[dict[str, Any]]:
        """A row for each: agent, iteration, elo, low, high."""
        return [
            {"agent": agent, "iteration": iteration, "elo": float(elo), "low": float(ends[0]),
             "high": float(ends[1])}
            for agent, iteration, elo, ends in zip(
                self.agents, self.iterations, self.ratings.elo, self.ratings.intervals, strict=True
            )
        ]  # fmt: skip

    def difference(self, a: str, b: str) -> tuple[float, float, float]:
        """By how many Elo points a is rated above b, with the bounds of the interval."""
        return self.ratings.difference(self.agents.index(a), self.agents.index(b))


def ratings(run: Run) -> LadderRatings | None:
    """One fit over all games of a run's ladder; random play is at 0.

    None where there are none yet, and in a game of one player, where nobody is rated.
    """
    rows = run.metrics("ladder")
    if not rows or run.game.num_players == 1:
        return None
    met = [(row, name, _rival(row, name)) for row in rows for name in row["games"]]
    steps = {row["iteration"] for row in rows} | {
        row["past"] for row, name, _ in met if name == PAST
    }
    fixed = [name for name in OPPONENTS if any(name == each for _, each, _ in met)]
    agents = [*fixed, *(_called(step) for step in sorted(steps))]
    iterations = [None] * len(fixed) + sorted(steps)
    place = {agent: index for index, agent in enumerate(agents)}
    units: dict[tuple[int, int], np.ndarray] = {}  # openings of one measurement
    for row, name, rival in met:
        own, other = place[_called(row["iteration"])], place[rival]
        for number, (won, lost) in enumerate(row["games"][name]["points"]):
            key = row["iteration"], number
            table = units.setdefault(key, np.zeros((len(agents), len(agents))))
            table[own, other] += won
            table[other, own] += lost
    points = np.array(list(units.values()))
    played = points.sum(axis=0)
    rated = rate(
        points, regularisation=REGULARISATION * ((played + played.T) > 0), anchor=place[ANCHOR]
    )
    return LadderRatings(agents, iterations, rated)


def _rival(row: Mapping[str, Any], name: str) -> str:
    return _called(row["past"]) if name == PAST else name


def _called(iteration: int) -> str:
    return f"iteration {iteration}"
