"""ablate(): matches between the settings of a grid, as a table, a chart and a folder of games.

Settings play matches of two, all with the same openings, so that one bootstrap over openings covers
all of them. In a game of more players the first of the two has all other seats; in a game of one
player each setting plays alone, with the same chance outcomes.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree import specs
from uctree.arena import ratings
from uctree.arena.agents import make_agent
from uctree.arena.grids import Grid, Values, check_budget, number_of, read_grid
from uctree.arena.matches import MatchProgress, Openings, match, whole_number
from uctree.arena.reports import markdown_table, plain_row, write_files
from uctree.arena.standings import MatchResult, ends, span
from uctree.engine.identity import describe_game, find_spec
from uctree.engine.jsontext import finite, json_text, parse_json
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.pages.chart import Series, line_chart
from uctree.pages.columns import aligned

PAIRINGS = ("first", "neighbours", "all")
DEFAULT_SIMULATIONS = (1000,)
GRID_FILE = "grid.json"
LOG_AXIS_FACTOR = 10.0  # values that span this factor are drawn on a logarithmic axis

Budget = dict[str, float]  # {"num_simulations": 100}; empty if it varies with the settings


@dataclass(frozen=True)
class AblationProgress:
    """The progress of an ablation; passed to `progress` after every game."""

    done: int
    total: int
    settings: tuple[str, ...]  # of this match
    budget: str
    scores: dict[str, float]  # of this match so far


@dataclass(frozen=True)
class Row:
    """The results of one setting at one budget."""

    budget: str  # as "num_simulations=100"; empty if it varies with the settings
    setting: str
    agent: str  # its full text, as `uctree match` takes it
    games: int
    wins: int
    draws: int
    losses: int
    score: float | None  # the mean over its games; None in a game of one player
    score_interval: tuple[float, float] | None
    elo: float | None  # relative to the first setting
    elo_interval: tuple[float, float] | None
    gain: float | None  # in Elo, relative to the setting before; None for the first
    gain_interval: tuple[float, float] | None
    mean_return: float
    return_interval: tuple[float, float]
    more: float  # mean return minus that of the first setting
    more_interval: tuple[float, float]
    forfeits: int
    seconds_per_action: float


def ablate(
    game: Game | str,
    vary: Mapping[str, Values],
    *,
    num_simulations: Sequence[int] | int | None = None,
    seconds: Sequence[float] | float | None = None,
    num_games: int = 200,
    base: str | Mapping[str, Any] = "",
    pairing: str = "first",
    openings: Openings = 2,
    seed: int = 0,
    processes: int = 1,
    folder: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    progress: Callable[[AblationProgress], None] | None = None,
) -> Ablation:
    """The strength of each setting of a grid, at each budget, from games between them.

    Ctrl-C ends it with the result so far. The same call with a `folder` resumes, also with more
    games or other budgets.

    Args:
        game: a game, or its text, as `connect_four(rows=5)`.
        vary: the values of each option that varies, as {"selection.puct.c": [0.5, 1, 2],
            "solver": "true,false"}; also "num_simulations" and "seconds", then without a budget
            below.
        num_simulations: the budgets at which settings play each other; 1000 by default.
        seconds: budgets in seconds for each search, instead of simulations.
        num_games: for each pair of settings and each budget, rounded up to whole openings.
        base: options that are common to all settings, as "solver=True, choice=lcb".
        pairing: each setting plays the "first" one, its "neighbours", or "all" others.
        openings, seed, processes, max_seconds: as in `match`.
        folder: stores every game, in one file for each pair of settings and budget.
        progress: called with an `AblationProgress` after every game.
    """
    chosen = specs.as_game(game)
    if pairing not in PAIRINGS:
        raise UctreeError(f"pairing is {', '.join(PAIRINGS)}; got {pairing!r}")
    grid = read_grid(vary, base)
    budgets = _budgets(grid, num_simulations, seconds)
    path = None if folder is None else Path(folder)
    seed = whole_number("seed", seed)
    openings = int(openings) if isinstance(openings, np.integer) else openings
    settings = {"openings": openings, "seed": seed, "max_seconds": max_seconds}
    description = {
        "game": find_spec(chosen) or chosen.name, "vary": grid.axes, "base": grid.base,
        "pairing": pairing, **settings,
    }  # fmt: skip
    if path is not None:
        _check_folder(path, parse_json(json_text(description, default=list)))
    _prepare(chosen, grid, budgets[0])
    if path is not None:
        write_files(path, {GRID_FILE: json_text(description, indent=2, default=list) + "\n"})
    meetings = list(itertools.product(budgets, _pairs(len(grid.settings), pairing, chosen)))
    results: list[Meeting] = []
    status = "complete"
    for place, (budget, pair) in enumerate(meetings):
        agents = _agents(grid, budget, pair, chosen.num_players)
        result = match(
            game, agents, num_games=num_games, openings=openings, seed=seed, processes=processes,
            path=None if path is None else path / _file_name(budget, pair),
            max_seconds=max_seconds,
            progress=_match_progress(progress, place, len(meetings), grid, budget, pair),
        )  # fmt: skip
        results.append(Meeting(budget, pair, result))
        if result.status == "interrupted":
            status = "interrupted"
            break
    return Ablation(chosen, grid, pairing, budgets, results, status, settings)


@dataclass(frozen=True)
class Meeting:
    """The games of two settings at one budget; of one setting in a game of one player."""

    budget: Budget
    pair: tuple[int, ...]
    result: MatchResult


# --- the schedule --------------------------------------------------------------------------------


def _budgets(
    grid: Grid,
    num_simulations: Sequence[int] | int | None,
    seconds: Sequence[float] | float | None,
) -> list[Budget]:
    given = [("num_simulations", num_simulations), ("seconds", seconds)]
    named = [(name, values) for name, values in given if values is not None]
    if grid.budget is not None:
        if named:
            raise UctreeError(
                f"{grid.budget} is part of the grid; omit the budget {named[0][0]}, or remove "
                f"{grid.budget} from the grid"
            )
        return [{}]
    if len(named) > 1:
        raise UctreeError("give num_simulations or seconds as budgets, not both")
    name, values = named[0] if named else ("num_simulations", DEFAULT_SIMULATIONS)
    listed = list(values) if isinstance(values, Sequence) else [values]
    whole = name == "num_simulations"
    for value in listed:
        check_budget(name, value, repr(value))
    if not listed or len(set(listed)) < len(listed):
        raise UctreeError(f"{name}: give at least one budget, and each once; got {listed}")
    return [{name: int(value) if whole else float(value)} for value in sorted(listed)]


def _prepare(game: Game, grid: Grid, budget: Budget) -> None:
    """Compile every setting before the first game, so that a wrong one is refused at once."""
    for setting in grid.settings:
        agent: Any = make_agent(setting.agent(budget))
        try:
            agent.prepare(game)
        except Exception as error:
            reason = f"{specs.place(error)}{specs.reason(error)}"
            raise UctreeError(f"setting {setting.name}: {reason}") from error


def _pairs(num_settings: int, pairing: str, game: Game) -> list[tuple[int, ...]]:
    """The pairs of settings; each new pair has a setting of an earlier one, so that all are rated.

    >>> from uctree.games import tic_tac_toe
    >>> _pairs(4, "first", tic_tac_toe()), _pairs(3, "neighbours", tic_tac_toe())
    ([(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2)])
    """
    places = range(num_settings)
    if game.num_players == 1:
        return [(place,) for place in places]
    if pairing == "first":
        return [(0, place) for place in places[1:]]
    if pairing == "neighbours":
        return list(itertools.pairwise(places))
    return list(itertools.combinations(places, 2))


def _agents(grid: Grid, budget: Budget, pair: tuple[int, ...], num_players: int) -> dict[str, str]:
    """The agents of a match by name; the first of the pair also has the remaining seats."""
    settings = [grid.settings[place] for place in pair]
    agents = {setting.name: setting.agent(budget) for setting in settings}
    for again in range(2, num_players - len(pair) + 2):
        agents[f"{settings[0].name} ({again})"] = settings[0].agent(budget)
    return agents


def _budget_name(budget: Budget) -> str:
    return "".join(f"{name}={value}" for name, value in budget.items())


def _file_name(budget: Budget, pair: tuple[int, ...]) -> str:
    """The file name of a match; settings are numbered in the order of the grid, from 1.

    >>> _file_name({"num_simulations": 100}, (0, 3))
    'games-num_simulations=100-4-against-1.jsonl'
    """
    against = "-against-".join(str(place + 1) for place in reversed(pair))
    return "-".join(["games", *filter(None, [_budget_name(budget)]), f"{against}.jsonl"])


def _check_folder(folder: Path, description: dict[str, Any]) -> None:
    """Raise UctreeError if a folder holds another grid."""
    path = folder / GRID_FILE
    if not os.path.lexists(path):
        return
    if not path.is_file():  # reading a pipe would wait for ever
        raise UctreeError(f"{path} is not a file; give another folder")
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UctreeError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UctreeError(f"{path} is damaged: {error!s:.200}; give another folder") from error
    differing = [
        part
        for part in description
        if not isinstance(found, dict) or found.get(part) != description[part]
    ]
    if differing:
        part = differing[0]
        was = found.get(part) if isinstance(found, dict) else found
        raise UctreeError(
            f"{folder} holds the games of another grid: {part} is {was!s:.200} in the folder and "
            f"{description[part]} now; give another folder, or the grid of this folder"
        )


def _match_progress(
    progress: Callable[[AblationProgress], None] | None, place: int, num_meetings: int,
    grid: Grid, budget: Budget, pair: tuple[int, ...],
) -> Callable[[MatchProgress], None] | None:  # fmt: skip
    """A callback for one match that reports the progress of all, which have equally many games."""
    if progress is None:
        return None
    names = tuple(grid.settings[each].name for each in pair)

    def report(now: MatchProgress) -> None:
        done, total = place * now.total + now.done, num_meetings * now.total
        progress(AblationProgress(done, total, names, _budget_name(budget), now.scores))

    return report


# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ablation:
    """The games of a grid, and their statistics. Print it for a table."""

    game: Game
    grid: Grid
    pairing: str
    budgets: list[Budget]
    meetings: list[Meeting]
    status: str  # "complete" or "interrupted"
    settings: dict[str, Any]  # of the matches: openings, seed, max_seconds

    @functools.cached_property
    def table(self) -> list[Row]:
        """A row for each budget and setting that has played, in the order of the grid."""
        return [row for budget in self.budgets for row in self._rows(budget)]

    def row(self, setting: str, budget: str | None = None) -> Row:
        """The row of a setting, as "c=2", at a budget; by default the first one."""
        for row in self.table:
            if row.setting == setting and budget in (None, row.budget):
                return row
        names = ", ".join(dict.fromkeys(f"{row.setting!r}" for row in self.table))
        steps = ", ".join(dict.fromkeys(f"{row.budget!r}" for row in self.table))
        raise UctreeError(
            f"no setting {setting!r} at budget {budget!r}; settings are {names}, budgets {steps}"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it except the games, ready for `json.dumps`."""
        return finite(
            {
                "game": describe_game(self.game),
                "vary": {axis: list(values) for axis, values in self.grid.axes.items()},
                "base": self.grid.base,
                "pairing": self.pairing,
                "status": self.status,
                "settings": self.settings,
                "games": self.num_games,
                "openings": self.num_openings,
                "rows": [plain_row(row) for row in self.table],
            }
        )

    @property
    def num_games(self) -> int:
        return sum(len(meeting.result.records) for meeting in self.meetings)

    @property
    def num_openings(self) -> int:
        """The number of different openings, over which intervals are computed."""
        return len(set().union(*map(_opening_numbers, self.meetings)))

    def __str__(self) -> str:
        return "\n".join(
            [
                *self._summary(),
                "",
                *aligned(self._cells(), range(self._num_names)),
                "",
                *self._notes(),
            ]
        )

    def markdown(self) -> str:
        """The table in Markdown."""
        table = markdown_table(self._cells(), self._num_names)
        return "\n\n".join([*self._summary(), table, *self._notes()]) + "\n"

    def chart(self) -> str:
        """An SVG chart of Elo relative to the first setting, or of mean return with one player.

        The x axis is the first option whose values are numbers, else the budget.
        """
        alone = self.game.num_players == 1
        across = self._numeric_axis()
        lines: dict[str, list[tuple[float, Row]]] = {}
        for row in self.table:
            x, name = self._point(row, across)
            lines.setdefault(name, []).append((x, row))
        xs = [x for points in lines.values() for x, _ in points]
        return line_chart(
            [_series(name, points, alone) for name, points in lines.items()],
            title=f"{self.game.name}: {self._measure} above {self.grid.settings[0].name}",
            x_label=across or next(iter(self.budgets[0]), "setting"),
            y_label=self._measure,
            log_x=min(xs, default=1) > 0
            and max(xs, default=1) >= LOG_AXIS_FACTOR * min(xs, default=1),
        )

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The files written: table.md, chart.svg and ablation.json."""
        texts = {
            "table.md": self.markdown(),
            "chart.svg": self.chart(),
            "ablation.json": json_text(self.to_json(), indent=2) + "\n",
        }
        return write_files(folder, texts)

    # Parts of the above.

    @property
    def _measure(self) -> str:
        return "mean return" if self.game.num_players == 1 else "Elo"

    @property
    def _num_names(self) -> int:
        """The number of columns that name a row: the setting, and the budget if it is shared."""
        return 1 if self.budgets == [{}] else 2

    def _rows(self, budget: Budget) -> Iterator[Row]:
        meetings = [each for each in self.meetings if each.budget == budget and each.result.records]
        played = sorted({place for meeting in meetings for place in meeting.pair})
        if not played:
            return
        tables = _Tables(meetings, played, self.game.num_players)
        rated = tables.rated() if self.game.num_players > 1 else None
        for index, place in enumerate(played):
            setting = self.grid.settings[place]
            counts = tables.counts(place)
            before = None if rated is None or index == 0 else rated.difference(index, index - 1)
            score = None if rated is None else tables.score(index)
            yield Row(
                _budget_name(budget), setting.name, setting.agent(budget), *counts[:4], score,
                None if rated is None else ends(rated.score_intervals[index]),
                None if rated is None else float(rated.elo[index]),
                None if rated is None else ends(rated.intervals[index]),
                None if before is None else before[0],
                None if before is None else before[1:],
                *_mean(tables.returns[:, index]),
                *_mean(tables.returns[:, index] - tables.returns[:, 0]), *counts[4:],
            )  # fmt: skip

    def _summary(self) -> list[str]:
        base = ", ".join(f"{name}={value}" for name, value in self.grid.base.items())
        return [
            f"{self.game.name}: {self.num_games:,} games, {self.num_openings:,} openings, "
            f"pairing {self.pairing}, seed {self.settings['seed']}, {self.status}"
            f"{f'; all settings: {base}' if base else ''}"
        ]

    def _cells(self) -> list[list[str]]:
        """The cells of the table, titles first."""
        alone, chain = self.game.num_players == 1, self.pairing == "neighbours"
        titles = [*["budget", "setting"][-self._num_names :], "games"]
        if alone:
            titles += ["mean return", "95 %", "above first", "95 %"]
        else:
            titles += ["won", "drawn", "lost", "score", "95 %", "Elo", "95 %"]
            titles += ["above previous", "95 %"] if chain else []
        rows = [[*titles, "ms/action"]]
        for row in self.table:
            cells = [*[row.budget, row.setting][-self._num_names :], f"{row.games:,}"]
            first = row.setting == self.grid.settings[0].name
            if alone:
                cells += [f"{row.mean_return:.4g}", span(row.return_interval, ".4g")]
                cells += (
                    ["0", "-"] if first else [f"{row.more:+.4g}", span(row.more_interval, "+.4g")]
                )
            else:
                cells += [f"{row.wins:,}", f"{row.draws:,}", f"{row.losses:,}"]
                cells += [_number(row.score, ".3f"), _span(row.score_interval, ".3f")]
                elo = [_number(row.elo, "+.0f"), _span(row.elo_interval, "+.0f")]
                cells += ["0", "-"] if first else elo
                if chain:
                    cells += [_number(row.gain, "+.0f"), _span(row.gain_interval, "+.0f")]
            rows.append([*cells, f"{1e3 * row.seconds_per_action:.3g}"])
        return rows

    def _notes(self) -> list[str]:
        """Which settings differ from the first one at 95 %."""
        alone = self.game.num_players == 1
        lines = []
        for budget, rows in itertools.groupby(self.table, key=lambda row: row.budget):
            first, *others = list(rows)
            intervals = [row.more_interval if alone else row.elo_interval for row in others]
            sure = [row.setting for row, each in zip(others, intervals, strict=True)
                    if each is not None and (each[0] > 0 or each[1] < 0)]  # fmt: skip
            unsure = [row.setting for row in others if row.setting not in sure]
            where = f"{budget}: " if budget else ""
            if sure:
                lines.append(f"{where}differs from {first.setting}: {'; '.join(sure)}")
            if unsure:
                lines.append(f"{where}within noise of {first.setting}: {'; '.join(unsure)}")
        forfeits = sum(row.forfeits for row in self.table)
        return [*lines, f"games that were forfeited: {forfeits}"] if forfeits else lines

    def _numeric_axis(self) -> str | None:
        """The first option whose values are several numbers."""
        for axis, values in self.grid.axes.items():
            if len(values) > 1 and all(number_of(value) is not None for value in values):
                return axis
        return None

    def _point(self, row: Row, across: str | None) -> tuple[float, str]:
        """The x coordinate of a row, and the name of its curve."""
        names = [setting.name for setting in self.grid.settings]
        place = names.index(row.setting)
        if across is None:
            budget = next((b for b in self.budgets if _budget_name(b) == row.budget), {})
            several = len(self.budgets) > 1
            return (next(iter(budget.values())) if several else place + 1.0), row.setting
        values = dict(zip(self.grid.axes, self.grid.settings[place].values, strict=True))
        others = [f"{axis}={value}" for axis, value in values.items() if axis != across]
        name = ", ".join([*filter(None, [row.budget]), *others]) or self._measure
        return number_of(values[across]) or 0.0, name


class _Tables:
    """The games of one budget as arrays over openings and settings."""

    def __init__(self, meetings: list[Meeting], played: list[int], num_players: int) -> None:
        self.meetings, self.num_players = meetings, num_players
        numbers = sorted(set().union(*map(_opening_numbers, meetings)))
        unit = {number: place for place, number in enumerate(numbers)}
        n = len(played)
        self.points = np.zeros((len(numbers), n, n))
        sums, counts = np.zeros((len(numbers), n)), np.zeros((len(numbers), n))
        for meeting in meetings:
            who = [played.index(place) for place in _places(meeting, num_players)]
            result = meeting.result
            rows = [unit[number] for number in sorted(_opening_numbers(meeting))]
            for i, j in itertools.permutations(range(len(who)), 2):
                if who[i] != who[j]:  # a setting with several seats is not rated against itself
                    self.points[rows, who[i], who[j]] += result.points[:, i, j]
            for record in result.records:
                for name, paid in zip(record.agents, record.returns, strict=True):
                    place = who[result.agents.index(name)]
                    sums[unit[record.opening_number], place] += paid
                    counts[unit[record.opening_number], place] += 1
        with np.errstate(invalid="ignore"):
            self.returns = sums / counts  # NaN if a setting has not played an opening

    def rated(self) -> ratings.Ratings:
        """Elo relative to the first setting; only pairs that played are regularised."""
        met = (self.points.sum(axis=0) + self.points.sum(axis=0).T) > 0
        return ratings.rate(self.points, regularisation=ratings.REGULARISATION * met, anchor=0)

    def score(self, index: int) -> float:
        won, lost = self.points[:, index].sum(), self.points[:, :, index].sum()
        return float(won / (won + lost))

    def counts(self, place: int) -> tuple[int, int, int, int, int, float]:
        """Games, wins, draws, losses, forfeits and seconds per action of a setting."""
        found, seconds, decisions = [], 0.0, 0
        for meeting in self.meetings:
            names = zip(meeting.result.agents, _places(meeting, self.num_players), strict=True)
            own = {name for name, other in names if other == place}
            found += [each for each in meeting.result.standings if each.agent in own]
            for record in meeting.result.records:
                for seat, name in enumerate(record.agents):
                    if name in own:
                        seconds += record.seconds[seat]
                        decisions += record.decisions[seat]
        return (
            sum(each.games for each in found), sum(each.wins for each in found),
            sum(each.draws for each in found), sum(each.losses for each in found),
            sum(each.forfeits for each in found), seconds / max(1, decisions),
        )  # fmt: skip


def _opening_numbers(meeting: Meeting) -> set[int]:
    return {record.opening_number for record in meeting.result.records}


def _places(meeting: Meeting, num_players: int) -> list[int]:
    """The setting of each agent of a match, in the order of `_agents`."""
    more = max(0, num_players - len(meeting.pair))
    return [*meeting.pair, *[meeting.pair[0]] * more]


def _mean(values: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The mean over openings that were played, and its interval."""
    # Never empty: settings play in order, and the first one has played every opening of the others.
    known = values[~np.isnan(values)]
    return float(known.mean()), ratings.mean_interval(known)


def _series(name: str, points: list[tuple[float, Row]], alone: bool) -> Series:
    ordered = sorted(points, key=lambda point: point[0])
    values = [row.more if alone else row.elo or 0.0 for _, row in ordered]
    intervals = [row.more_interval if alone else row.elo_interval for _, row in ordered]
    bounds = [interval or (value, value) for interval, value in zip(intervals, values, strict=True)]
    return Series(
        name,
        [x for x, _ in ordered],
        values,
        [low for low, _ in bounds],
        [high for _, high in bounds],
    )


def _number(value: float | None, style: str) -> str:
    return "-" if value is None else f"{value:{style}}"


def _span(bounds: tuple[float, float] | None, style: str) -> str:
    return "-" if bounds is None else span(bounds, style)
