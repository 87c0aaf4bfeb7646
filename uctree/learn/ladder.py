"""The strength of a checkpoint: games against fixed opponents, ratings, diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree import specs
from uctree.arena import ratings as arena_ratings
from uctree.arena.agents import AgentSource
from uctree.arena.episodes import Task, named
from uctree.arena.matches import schedule
from uctree.arena.ratings import REGULARISATION, mean_interval, rate
from uctree.arena.standings import MatchResult
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game
from uctree.learn.batched_play import (
    BatchedGame,
    NetworkSearch,
    PolicyAlone,
    Searches,
    network_seat,
    play_batched,
)
from uctree.learn.diagnosis import diagnose, finite_interval
from uctree.learn.environments import Played, play_environment
from uctree.learn.exact import agreement
from uctree.learn.latent import network_with_rules
from uctree.learn.metrics import (
    ANCHOR,
    NETWORK,
    OPPONENTS,
    PAST,
    POLICY,
    RULES,
    RatedLadder,
    sound_rows,
)
from uctree.learn.model_error import Decisions, decisions_of, model_errors
from uctree.learn.options import Options
from uctree.learn.targets import n_step_returns
from uctree.views import whole

if TYPE_CHECKING:
    from uctree.learn.run import Run

OPENINGS = (2, 1, 0)  # random plies that games begin with; fewer if the game is over by then
MOST_CELLS = 2**24  # of the tables of one fit
MOST_RATED = 100  # measurements in one fit, whose memory grows with their square

OnProgress = Callable[[int, int], None]


def measure(
    game: Game | str, evaluator: Evaluator, options: Options, *, past: Evaluator | None = None,
    seed: int = 0, progress: OnProgress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The strength of a network's search and the accuracy of the network, as numbers for JSON.

    The search has the simulations of self-play, no noise, and takes the best action. It plays
    `options.ladder_games` games against every opponent, each opening in all seatings; with more
    than two players the opponent has all other seats. In a game of one player, opponents play the
    same openings with the same chance outcomes, and returns are compared. The diagnosis takes as
    many games of the network against itself. Exact play is measured if exact results are known.

    Args:
        past: the evaluator of an earlier checkpoint, one more opponent.
        seed: decides openings, chance outcomes and searches.
        progress: called with the number of finished games and the total; exact play counts as one.
    """
    game = specs.as_game(game)
    if options.ladder_games < 1:
        raise UctreeError("ladder_games=0: a measurement needs at least 1 game per opponent")
    if game.environment is not None:
        return measure_environment(game, evaluator, options, seed=seed, progress=progress)
    began = time.monotonic()
    network = NetworkSearch(game, evaluator, options)
    opponents: dict[str, AgentSource | Searches] = {**OPPONENTS}
    if past is not None:
        opponents[PAST] = NetworkSearch(game, past, options)
    if evaluator.model is not None:
        by_rules = network_with_rules(evaluator.model.functions)
        opponents[RULES] = NetworkSearch(game, by_rules, options)
        opponents[POLICY] = PolicyAlone(game, evaluator)
    plan = _plan(game, network, opponents, options.ladder_games, seed)
    own_games = plan.pop(NETWORK)
    games = [each for against in plan.values() for each in against] + own_games
    counter = _Counter(len(games) + 1, progress)
    play_batched(games, options.num_trees, counter.count)
    found = {
        "seed": seed,
        "simulations": network.num_simulations,
        "games": {name: _compare(game, each, own_games) for name, each in plan.items()},
        "diagnosis": diagnose(network, own_games),
        "exact": agreement(game, evaluator, options, seed=seed),
    }
    if evaluator.model is not None:
        episodes = [decisions_of(game, each) for each in own_games]
        found["model"] = model_errors(game, evaluator.model, episodes, options.unroll_steps)
    counter.count()
    return found | {"seconds": time.monotonic() - began}


class _Counter:
    """Counts finished games, and reports them."""

    def __init__(self, total: int, progress: OnProgress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def count(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def strength(row: Mapping[str, Any]) -> float:
    """How strong a measured checkpoint was: its mean score, or the mean return of one player."""
    games = [each for name, each in row["games"].items() if name in OPPONENTS]
    numbers = [each["mean_return"] if "mean_return" in each else each["score"] for each in games]
    return float(np.mean(numbers))


MUCH = 0.3  # of what was gained since the first measurement


@dataclass(frozen=True)
class Fall:
    """A newest checkpoint that has lost much of what was learned; strengths by iteration."""

    first: tuple[int, float]
    best: tuple[int, float]
    last: tuple[int, float]

    def __str__(self) -> str:
        return (
            f"The newest checkpoint, of iteration {self.last[0]}, has lost a good part of what was "
            f"learned: its strength is {self.last[1]:.3g}, that of iteration {self.best[0]} was "
            f"{self.best[1]:.3g} and that of iteration {self.first[0]} {self.first[1]:.3g}. Both "
            f"are kept: run.learned({self.best[0]}) is the stronger one."
        )


def fall(run: Run) -> Fall | None:
    """The fall of the newest checkpoint that was measured; None if it is as good as the best.

    It is a fall if at least `MUCH` of the strength gained from the first measurement to the best
    is lost.
    """
    rows = [row for row in sound_rows(run, "ladder") if row["strength"] is not None]
    best = run.best_iteration()
    if not rows or best is None:
        return None
    first, last = ((row["iteration"], row["strength"]) for row in (rows[0], rows[-1]))
    top = next(((best, row["strength"]) for row in rows[::-1] if row["iteration"] == best), last)
    has_fallen = top[0] != last[0] and top[1] - last[1] >= MUCH * (top[1] - first[1])
    return Fall(first, top, last) if has_fallen and top[1] > last[1] else None


def returns_against(
    game: Game, evaluator: Evaluator, options: Options, opponent: AgentSource, num_games: int, *,
    num_simulations: int | None = None, seed: int = 0,
) -> np.ndarray:  # fmt: skip
    """The returns of a network's search in games in which the opponent has all other seats.

    Each opening is played in all seatings.

    Args:
        num_simulations: of the network's search; those of the options if omitted.
    """
    network = NetworkSearch(game, evaluator, options, num_simulations)
    games = _plan(game, network, {"opponent": opponent}, num_games, seed)["opponent"]
    play_batched(games, options.num_trees, lambda: None)
    return np.array([
        each.record.returns[each.record.agents.index(NETWORK)] for each in games
    ])  # fmt: skip


def measure_environment(
    game: Game, evaluator: Evaluator, options: Options, *, seed: int = 0,
    progress: OnProgress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The returns of a model in its environment: by search, by its policy alone, and at random."""
    began, count = time.monotonic(), options.ladder_games
    counter = _Counter(3 * count, progress)
    seeds = [seed * 1_000_003 + i for i in range(count)]
    search, policy = NetworkSearch(game, evaluator, options), PolicyAlone(game, evaluator)

    def by(agent: Searches) -> list[Played]:
        def choose(states: list[np.record], at: list[int]) -> list[int]:
            return [agent.action(root) for root in agent.roots(states, at)]

        return play_environment(game, choose, seeds, counter.count)

    def at_random(states: list[np.record], at: list[int]) -> list[int]:
        return [int(np.random.default_rng(each).integers(game.num_actions)) for each in at]

    own = by(search)
    others = {POLICY: by(policy), ANCHOR: play_environment(game, at_random, seeds, counter.count)}
    games = {
        name: _compare_numbers([each.total for each in own], [each.total for each in played])
        for name, played in others.items()
    }
    episodes = [
        Decisions(each.states, each.actions, np.array(each.rewards),
                  n_step_returns(each.rewards, discount=game.discount))
        for each in own
    ]  # fmt: skip
    return {
        "seed": seed,
        "simulations": search.num_simulations,
        "games": games,
        "model": model_errors(game, evaluator.model, episodes, options.unroll_steps),
        "seconds": time.monotonic() - began,
    }


# --- games to play -------------------------------------------------------------------------------


def _plan(
    game: Game, network: NetworkSearch, opponents: Mapping[str, AgentSource | Searches],
    num_games: int, seed: int,
) -> dict[str, list[BatchedGame]]:  # fmt: skip
    """The games against each opponent by its name, and those of the network against itself."""
    game = whole(game)  # opponents see all of it
    tasks = _tasks(game, num_games, seed)
    if game.num_players == 1:
        tasks = [task for task in tasks if task.seats == (0,)]
    own = _one_of_each_opening(tasks)
    rounds = len(tasks) // len(own)  # seatings per opening
    if rounds > 1:
        own = _one_of_each_opening(_tasks(game, rounds * num_games, seed))[:num_games]
    plan = {NETWORK: [_batched_game(game, task, [network] * game.num_players) for task in own]}
    for name, opponent in opponents.items():
        sides = [network] + [opponent] * (game.num_players - 1)
        if game.num_players == 1:
            sides = [opponent]
        plan[name] = [_batched_game(game, task, sides) for task in tasks]
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


def _batched_game(game: Game, task: Task, sides: Sequence[AgentSource | Searches]) -> BatchedGame:
    """A game between these sides; the first is named `network`, the others `opponent`."""
    made = BatchedGame(game, task, {})
    sources = [
        network_seat(side, made.searched)
        if isinstance(side, (NetworkSearch, PolicyAlone))
        else side
        for side in sides
    ]
    names = [NETWORK] + ["opponent"] * (len(sides) - 1)
    made.sources.update(named(sources, names))
    return made


# --- results -------------------------------------------------------------------------------------


def _compare(
    game: Game, games: Sequence[BatchedGame], own_games: Sequence[BatchedGame]
) -> dict[str, Any]:
    """Scores against one opponent; in a game of one player, returns."""
    if game.num_players == 1:
        return _compare_returns(own_games, games)
    records = [each.record for each in games]
    for record in records:
        if record.forfeiter is not None:
            raise UctreeError(f"a game of the ladder was forfeited: {record.error}")
    result = MatchResult(game, list(games[0].sources), records, "complete", {})
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
        "score_interval": finite_interval(tuple(rated.score_intervals[0])),
        "elo": elo,
        "elo_interval": finite_interval((low, high)),
        "points": points.tolist(),
    }


def _table(points: np.ndarray) -> np.ndarray:
    """Points won and lost with each opening, [n, 2], as the [n, 2, 2] table that `rate` takes."""
    table = np.zeros((len(points), 2, 2))
    table[:, 0, 1], table[:, 1, 0] = points[:, 0], points[:, 1]
    return table


def _compare_returns(own: Sequence[BatchedGame], others: Sequence[BatchedGame]) -> dict[str, Any]:
    """Returns of the network and of an opponent, with the same openings and chance outcomes."""
    return _compare_numbers(
        [each.record.returns[0] for each in own], [each.record.returns[0] for each in others]
    )


def _compare_numbers(own: Sequence[float], others: Sequence[float]) -> dict[str, Any]:
    """Returns of the network and of an opponent in the same episodes."""
    mine, theirs = np.array(own, float), np.array(others, float)
    return {
        "games": len(mine),
        "mean_return": float(mine.mean()),
        "return_interval": finite_interval(mean_interval(mine)),
        "opponent_return": float(theirs.mean()),
        "opponent_interval": finite_interval(mean_interval(theirs)),
        "difference": float((mine - theirs).mean()),
        "difference_interval": finite_interval(mean_interval(mine - theirs)),
    }


# --- ratings over a run --------------------------------------------------------------------------


@dataclass(frozen=True)
class LadderRatings:
    """Ratings of all measured checkpoints and of their opponents, on one scale."""

    agents: list[str]  # opponents by name, checkpoints as "iteration 10"
    iterations: list[int | None]  # of each agent; None for a fixed opponent
    ratings: arena_ratings.Ratings

    def rows(self) -> list[dict[str, Any]]:
        """A row per agent: agent, iteration, elo, low, high."""
        return [
            {"agent": agent, "iteration": iteration, "elo": float(elo), "low": float(ends[0]),
             "high": float(ends[1])}
            for agent, iteration, elo, ends in zip(
                self.agents, self.iterations, self.ratings.elo, self.ratings.intervals, strict=True
            )
        ]  # fmt: skip

    def difference(self, a: str, b: str) -> tuple[float, float, float]:
        """The Elo difference of a over b, and the ends of its interval."""
        return self.ratings.difference(self.agents.index(a), self.agents.index(b))


def ratings(run: Run) -> LadderRatings | None:
    """The ratings of one fit over all ladder games of a run; random play has 0.

    Of more than `MOST_RATED` measurements, as many of them, from the first to the last. None if
    there are no games yet, and for a game of one player.
    """
    if run.game.num_players == 1:
        return None
    rows = _thinned(sound_rows(run, "ladder", RatedLadder))
    if not rows:
        return None
    pairings = [
        (row, name, _opponent_name(row, name))
        for row in rows
        for name in row["games"]
        if name not in (RULES, POLICY)  # which differ from checkpoint to checkpoint
    ]
    steps = {row["iteration"] for row in rows} | {
        row["past"] for row, name, _ in pairings if name == PAST
    }
    fixed = [name for name in OPPONENTS if any(name == each for _, each, _ in pairings)]
    agents = [*fixed, *(_checkpoint_name(step) for step in sorted(steps))]
    iterations = [None] * len(fixed) + sorted(steps)
    index = {agent: number for number, agent in enumerate(agents)}
    tables: dict[tuple[int, int], np.ndarray] = {}  # by iteration and opening
    for row, name, opponent in pairings:
        own, other = index[_checkpoint_name(row["iteration"])], index[opponent]
        for number, (won, lost) in enumerate(row["games"][name]["points"]):
            key = row["iteration"], number
            table = tables.setdefault(key, np.zeros((len(agents), len(agents))))
            table[own, other] += won
            table[other, own] += lost
    points = np.array(list(tables.values()))
    played = points.sum(axis=0)
    rated = rate(
        points, regularisation=REGULARISATION * ((played + played.T) > 0), anchor=index[ANCHOR]
    )
    return LadderRatings(agents, iterations, rated)


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most `MOST_RATED` rows, evenly spaced, the first and the last among them.

    Fewer if they have very many openings: a fit needs a table of all agents for each of them.
    """
    most = MOST_RATED
    while True:
        chosen = sorted({round(place) for place in np.linspace(0, len(rows) - 1, most)})
        kept = [rows[place] for place in chosen] if len(rows) > most else rows
        openings = sum(max(len(each["points"]) for each in row["games"].values()) for row in kept)
        steps = {step for row in kept for step in (row["iteration"], row["past"])}
        if most == 2 or openings * (len(steps) + len(OPPONENTS)) ** 2 <= MOST_CELLS:
            return kept
        most = max(2, most // 2)


def _opponent_name(row: Mapping[str, Any], name: str) -> str:
    return _checkpoint_name(row["past"]) if name == PAST else name


def _checkpoint_name(iteration: int) -> str:
    return f"iteration {iteration}"
