"""The result of a match: a table of its agents."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from uctree.arena import ratings
from uctree.arena.records import GameRecord
from uctree.arena.reports import plain_row
from uctree.engine.jsontext import finite
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.pages.columns import aligned
from uctree.pages.document import paragraph, table


@dataclass(frozen=True)
class Standing:
    """The results of one agent."""

    agent: str
    games: int
    placements: tuple[int, ...]  # how often it was first, second, ...; ties share the better place
    wins: int  # games in which it beat all others
    draws: int  # games in which it shared the first place
    losses: int
    score: float | None  # the mean placement score; None in a game of one player
    score_interval: tuple[float, float] | None
    elo: float | None
    elo_interval: tuple[float, float] | None
    mean_return: float
    return_interval: tuple[float, float]
    forfeits: int
    seconds_per_action: float


@dataclass(frozen=True)
class MatchResult:
    """The games of a match, and their statistics. Print it for a table."""

    game: Game
    agents: list[str]
    records: list[GameRecord]  # by number
    status: str  # "complete", "decided" by the sequential test, "interrupted", "stored" in a file
    header: dict[str, Any]  # game, agents and settings, as in a file
    sprt: ratings.SprtState | None = None
    anchor: str | None = None  # the agent whose rating is 0; None: the mean is 0

    @property
    def forfeits(self) -> list[GameRecord]:
        """The games that an agent forfeited."""
        return [record for record in self.records if record.forfeiter is not None]

    @functools.cached_property
    def points(self) -> np.ndarray:
        """[num_openings, n, n], wins of agent i against agent j with each opening."""
        numbers = sorted({record.opening_number for record in self.records})
        unit = {number: place for place, number in enumerate(numbers)}
        table = np.zeros((len(numbers), len(self.agents), len(self.agents)))
        for record in self.records:
            seats = [self.agents.index(name) for name in record.agents]
            place = unit[record.opening_number]
            table[place][np.ix_(seats, seats)] += ratings.pairwise_points(record.returns)
        return table

    @functools.cached_property
    def ratings(self) -> ratings.Ratings:
        """Ratings of the agents, in the order of `agents`."""
        if self.game.num_players == 1:
            raise UctreeError(f"{self.game.name} has one player; ratings need at least two")
        if not self.records:
            raise UctreeError("there are no games yet, so there are no ratings")
        index = None if self.anchor is None else self._index(self.anchor)
        return ratings.rate(self.points, anchor=index)

    def anchored(self, anchor: str | None) -> MatchResult:
        """The same result with the rating of this agent at 0; with None the mean is 0."""
        if anchor is not None:
            self._index(anchor)
        return replace(self, anchor=anchor)

    def difference(self, a: str, b: str) -> tuple[float, float, float]:
        """The rating of a minus that of b in Elo, with the bounds of the interval."""
        return self.ratings.difference(self._index(a), self._index(b))

    def superiority(self, a: str, b: str) -> float:
        """The probability that a is stronger than b."""
        return float(self.ratings.superiority[self._index(a), self._index(b)])

    @functools.cached_property
    def standings(self) -> list[Standing]:
        """A row per agent, the best first."""
        found = [self._standing(index) for index in range(len(self.agents)) if self._of(index)]
        return sorted(found, key=lambda each: (each.score or 0.0, each.mean_return), reverse=True)

    def to_json(self) -> dict[str, Any]:
        """All of it except the games, ready for `json.dumps`."""
        rated = self.game.num_players > 1 and bool(self.records)
        return finite(
            {
                "game": self.header["game"],
                "settings": self.header["settings"],
                "agents": self.header["agents"],
                "status": self.status,
                "games": len(self.records),
                "openings": len(self.points),
                "standings": [plain_row(each) for each in self.standings],
                "superiority": self.ratings.superiority.tolist() if rated else None,
                "sprt": None if self.sprt is None else asdict(self.sprt),
                "forfeits": [
                    {"number": each.number, "agent": _forfeiter(each), "error": each.error}
                    for each in self.forfeits
                ],
            }
        )

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.records:
            lines += ["", *aligned(self._rows())]
        for block in self._remarks():
            lines += ["", *block]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table and what follows from it as HTML for a notebook."""
        parts = [paragraph(self._headline())]
        if self.records:
            parts.append(table(self._rows()))
        return "".join(parts + [paragraph(line) for block in self._remarks() for line in block])

    # Parts of the above.

    def _headline(self) -> str:
        total = len(self.records)
        return (
            f"{self.game.name}: {total:,} game{'' if total == 1 else 's'}, "
            f"{len(self.points):,} opening{'' if len(self.points) == 1 else 's'}, {self.status}"
        )

    def _remarks(self) -> list[list[str]]:
        """Comparisons of agents, the sequential test, and forfeits, each as lines."""
        is_rated = self.game.num_players > 1 and bool(self.records)
        comparisons = self._comparisons() if is_rated else []
        test = [] if self.sprt is None else [self._test_line()]
        return [block for block in (comparisons, test, self._forfeit_lines()) if block]

    def _index(self, name: str) -> int:
        if name not in self.agents:
            raise UctreeError(f"no agent {name!r} in this match; it has {', '.join(self.agents)}")
        return self.agents.index(name)

    def _of(self, index: int) -> list[tuple[GameRecord, int]]:
        """The games of an agent, each with its seat."""
        name = self.agents[index]
        return [
            (record, record.agents.index(name)) for record in self.records if name in record.agents
        ]

    def _standing(self, index: int) -> Standing:
        games = self._of(index)
        places = [_place(record, seat) for record, seat in games]
        firsts = [_is_shared(record) for (record, _), place in zip(games, places, strict=True)
                  if place == 0]  # fmt: skip
        placements = tuple(places.count(place) for place in range(self.game.num_players))
        rated = self.ratings if self.game.num_players > 1 else None
        own = self.points[:, index, :].sum(), self.points[:, :, index].sum()
        units: dict[int, list[float]] = {}
        for record, seat in games:
            units.setdefault(record.opening_number, []).append(record.returns[seat])
        decisions = sum(record.decisions[seat] for record, seat in games)
        return Standing(
            agent=self.agents[index],
            games=len(games),
            placements=placements,
            wins=firsts.count(False),
            draws=firsts.count(True),
            losses=len(games) - len(firsts),
            score=None if rated is None else float(own[0] / sum(own)),
            score_interval=None if rated is None else ends(rated.score_intervals[index]),
            elo=None if rated is None else float(rated.elo[index]),
            elo_interval=None if rated is None else ends(rated.intervals[index]),
            mean_return=float(np.mean([record.returns[seat] for record, seat in games])),
            return_interval=ratings.mean_interval(np.array([np.mean(x) for x in units.values()])),
            forfeits=sum(record.forfeiter == seat for record, seat in games),
            seconds_per_action=sum(r.seconds[seat] for r, seat in games) / max(1, decisions),
        )

    def _rows(self) -> list[list[str]]:
        """The cells of the table, titles first."""
        num_players = self.game.num_players
        titles = ["agent", "games"]
        if num_players == 2:
            titles += ["won", "drawn", "lost"]
        elif num_players > 2:
            titles += [f"#{place + 1}" for place in range(num_players)]
        if num_players > 1:
            titles += ["score", "95 %", "Elo", "95 %"]
        else:
            titles += ["mean return", "95 %"]
        rows = [[*titles, "ms/action"]]
        for each in self.standings:
            row = [each.agent, f"{each.games:,}"]
            if num_players == 2:
                row += [str(each.wins), str(each.draws), str(each.losses)]
            elif num_players > 2:
                row += map(str, each.placements)
            if each.score is None or each.score_interval is None or each.elo_interval is None:
                row += [f"{each.mean_return:.4g}", span(each.return_interval, ".4g")]
            else:
                row += [f"{each.score:.3f}", span(each.score_interval, ".3f")]
                row += [f"{each.elo:+.0f}", span(each.elo_interval, "+.0f")]
            rows.append([*row, f"{1e3 * each.seconds_per_action:.3g}"])
        return rows

    def _comparisons(self) -> list[str]:
        """Each agent compared with the next one in the table."""
        lines = []
        for better, worse in zip(self.standings, self.standings[1:], strict=False):
            elo, low, high = self.difference(better.agent, worse.agent)
            sure = self.superiority(better.agent, worse.agent)
            lines.append(
                f"{better.agent} - {worse.agent}: {elo:+.0f} Elo (95 %: {low:+.0f} to {high:+.0f})"
                f", likelihood of superiority {100 * sure:.1f} %"
            )
        return lines

    def _test_line(self) -> str:
        test = self.sprt
        assert test is not None, "called for matches with a test"
        outcome = {
            "elo1": "the larger difference is accepted",
            "elo0": "the smaller difference is accepted",
            None: "not decided",
        }[test.decision]
        return (
            f"sequential test of {self.agents[0]} - {self.agents[1]}: {outcome} after "
            f"{test.num_pairs:,} pairs, LLR {test.llr:.2f} ({test.lower:.2f} to {test.upper:.2f})"
        )

    def _forfeit_lines(self) -> list[str]:
        lines = [f"game {each.number}: {_forfeiter(each)} forfeits: {each.error}"
                 for each in self.forfeits[:10]]  # fmt: skip
        more = len(self.forfeits) - len(lines)
        return [*lines, f"and {more} more"] if more else lines


def _forfeiter(record: GameRecord) -> str:
    assert record.forfeiter is not None, "a forfeit"
    return record.agents[record.forfeiter]


def _place(record: GameRecord, seat: int) -> int:
    """The place of a seat in its game, from 0: how many others were paid more."""
    return sum(paid > record.returns[seat] for paid in record.returns)


def _is_shared(record: GameRecord) -> bool:
    """Whether several players share the first place."""
    return record.returns.count(max(record.returns)) > 1


def ends(bounds: np.ndarray) -> tuple[float, float]:
    """The two ends of an interval as plain numbers."""
    return float(bounds[0]), float(bounds[1])


def span(bounds: tuple[float, float], style: str) -> str:
    """An interval for people.

    >>> span((0.25, 0.5), ".2f"), span((-np.inf, np.inf), ".2f")
    ('0.25 to 0.50', 'unknown')
    """
    if not np.isfinite(bounds).all():
        return "unknown"
    return f"{bounds[0]:{style}} to {bounds[1]:{style}}"
