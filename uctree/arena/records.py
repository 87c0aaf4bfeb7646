"""Records of games, one JSON line each, and the file of a match that holds them.

The first line is a header: the game, the agents and the settings. A line is written as a whole when
its game has ended, so that a match can be killed at any time; an incomplete last line is removed
when the match is resumed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from uctree import specs
from uctree.engine.identity import describe_game, game_differences
from uctree.engine.jsonlines import LineFile, complete_lines
from uctree.engine.jsontext import finite, json_text, parse_json
from uctree.engine.stepping import with_machine_code
from uctree.errors import UctreeError
from uctree.game import Episode, Game
from uctree.views import whole

FORMAT = "uctree match"
VERSION = 1
BEGINNING = b'{"format": "uctree match"'  # the first bytes of every file


@dataclass(frozen=True)
class GameRecord:
    """One game of a match."""

    number: int  # of the game in its match
    opening_number: int  # games with the same one are compared with each other
    agents: tuple[str, ...]  # by seat
    opening: tuple[int, ...]  # its first actions
    seed: int
    actions: tuple[int, ...]  # all of them, opening and chance outcomes included
    returns: tuple[float, ...]  # by seat
    end: str  # "over", "cut" by max_plies, "forfeit", or "resigned" by the player to move
    decisions: tuple[int, ...]  # by seat, the number of actions its agent took
    seconds: tuple[float, ...]  # by seat, for all of them
    forfeiter: int | None = None  # the seat whose agent failed
    error: str | None = None  # of that agent
    game: Game | None = field(default=None, compare=False, repr=False)

    @functools.cached_property
    def states(self) -> list[np.record]:
        """The states of the episode, the start first; UctreeError for an illegal action."""
        return self._replayed[0]

    @functools.cached_property
    def episode(self) -> Episode:
        """The episode replayed by the rules; its returns ignore a forfeit."""
        return self._replayed[1]

    @functools.cached_property
    def _replayed(self) -> tuple[list[np.record], Episode]:
        return self._replay()

    def _replay(self) -> tuple[list[np.record], Episode]:
        """The states and the episode, by the rules."""
        if self.game is None:
            raise UctreeError(f"game {self.number} has no rules; read it by read_games")
        states, rewards = [self.game.start()], list[np.ndarray]()
        for action in self.actions:
            after, reward = self.game.step(states[-1], action)
            states.append(after)
            rewards.append(reward)
        table = np.array(rewards).reshape(-1, self.game.num_players)
        returns = (self.game.discount ** np.arange(len(table))) @ table
        over = self.game.is_over(states[-1])
        return states, Episode(list(self.actions), table, returns, states[-1], over)

    def check(self) -> None:
        """Raise UctreeError if the rules contradict the record."""
        # Without the cached states: those of all records of a file may not fit into memory.
        episode = self._replay()[1]
        if self.end == "forfeit":
            return
        if self.end == "resigned":
            if self._resigner(episode.state) < 0:
                raise UctreeError("no player is to move at the end, but 'resigned' was stored")
            return
        if not np.allclose(episode.returns, self.returns, rtol=1e-9, atol=1e-9):
            raise UctreeError(
                f"the rules pay {episode.returns.tolist()}, but {list(self.returns)} was stored"
            )
        if episode.complete != (self.end == "over"):
            state = "is over" if episode.complete else "is not over"
            raise UctreeError(f"the episode {state} by the rules, but {self.end!r} was stored")

    def _resigner(self, last: np.record) -> int:
        """The player who resigned in the last state: the player to move."""
        assert self.game is not None, "it was replayed"
        return self.game.to_play(last)

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for `json.dumps`."""
        fields = {name: value for name, value in vars(self).items() if name in _FIELDS}
        return finite(fields | {"game": None if self.game is None else self.game.name})

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """The game ply by ply, for people."""
        game = self.game
        assert game is not None, "read by read_games"
        yield f"game {self.number} of {game.name}, seed {self.seed}"
        yield from (f"player {seat}: {name}" for seat, name in enumerate(self.agents))
        for ply, action in enumerate(self.actions):
            state = self.states[ply]
            to_play = game.to_play(state)
            who = f"player {to_play}" if to_play >= 0 else "chance"
            opening = ", opening" if ply < len(self.opening) else ""
            yield f"\n{game.show(state)}\n"
            yield f"ply {ply}{opening}: {who} plays {game.show_action(state, action)}"
        yield f"\n{game.show(self.states[-1])}\n"
        if self.forfeiter is not None:
            yield f"player {self.forfeiter} ({self.agents[self.forfeiter]}) forfeits: {self.error}"
        elif self.end == "resigned":
            resigner = self._resigner(self.states[-1])
            yield f"player {resigner} ({self.agents[resigner]}) resigns"
        else:
            yield f"The episode is {self.end}."
        yield "Returns: " + ", ".join(
            f"player {seat} {amount:+g}" for seat, amount in enumerate(self.returns)
        )


_FIELDS = tuple(name for name in GameRecord.__dataclass_fields__ if name != "game")
_REAL = (int, float)
_END = ("over", "cut", "forfeit", "resigned")


def record_from(line: Any, game: Game) -> GameRecord:
    """The record of a line of a file; UctreeError if the line is not one."""
    if not isinstance(line, dict) or not set(_FIELDS) <= set(line):
        raise UctreeError(f"expected a game with {', '.join(_FIELDS)}")
    values: dict[str, Any] = {name: line[name] for name in _FIELDS}
    try:
        for name, kind in (("opening", int), ("actions", int), ("agents", str)):
            if not all(type(each) is kind for each in values[name]):
                raise ValueError(f"{name} are {values[name]}")
            values[name] = tuple(values[name])
        for name, kinds in (("returns", _REAL), ("seconds", _REAL), ("decisions", (int,))):
            are_numbers = all(type(each) in kinds for each in values[name])
            if not are_numbers or len(values[name]) != game.num_players:
                raise ValueError(f"{name} are {values[name]}")
            values[name] = tuple(map(kinds[-1], values[name]))
        for name in ("number", "opening_number", "seed"):
            if type(values[name]) is not int:
                raise ValueError(f"{name} is {values[name]!r}")
        if values["end"] not in _END or len(values["agents"]) != game.num_players:
            raise ValueError(f"end is {values['end']!r}, agents are {values['agents']}")
        if values["forfeiter"] not in (None, *range(game.num_players)):
            raise ValueError(f"forfeiter is {values['forfeiter']!r}")
    except (TypeError, ValueError) as error:
        raise UctreeError(f"not a game of {game.name}: {error}") from error
    return GameRecord(**values, game=game)


# --- files ---------------------------------------------------------------------------------------


def read_games(path: str | os.PathLike[str], game: Game | None = None) -> list[GameRecord]:
    """The games in the file of a match by number, each replayed and checked against the rules.

    Args:
        game: the game that was played; a built-in game need not be given.
    """
    return read_file(path, game)[1]


def read_file(
    path: str | os.PathLike[str], game: Game | None = None
) -> tuple[dict[str, Any], list[GameRecord]]:
    """The header and the games in the file of a match, as in `read_games`."""
    path = Path(path)
    try:
        lines = complete_lines(path.read_bytes())
    except OSError as error:
        raise UctreeError(f"{path}: {error.strerror}") from error
    header = _header(path, lines)
    if game is None:
        game = _game_from(path, header["game"])
    game = with_machine_code(whole(game))
    _check_game(path, header["game"], game)
    records = _records(path, lines, game)
    names = {name for record in records.values() for name in record.agents}
    if unknown := names - set(header["agents"]):
        raise UctreeError(f"{path}: its header does not name {', '.join(sorted(unknown))}")
    for line, record in records.items():
        try:
            record.check()
        except ValueError as error:
            raise UctreeError(f"{path}, line {line}, game {record.number}: {error}") from error
    return header, sorted(records.values(), key=lambda record: record.number)


def make_header(game: Game, agents: dict[str, str], settings: dict[str, Any]) -> dict[str, Any]:
    """The first line of the file of a match."""
    described = describe_game(game)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "game": described,
        "agents": agents,
        "settings": settings,
    }
    return parse_json(json_text(header))  # tuples become lists, as when read from a file


class Journal:
    """The file of a match, open for more games; `records` has the games of earlier runs."""

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any], game: Game) -> None:
        self.path, self._file = Path(path), LineFile(path, "match", BEGINNING)
        try:
            self.records = self._resume(header, game)
        except BaseException:
            self.close()
            raise

    def _resume(self, header: dict[str, Any], game: Game) -> dict[int, GameRecord]:
        path, lines = self._file.path, self._file.lines
        if not lines:
            self._file.append(json_text(header))
            return {}
        found = _header(path, lines)
        _check_game(path, found["game"], game)
        for part in ("agents", "settings"):
            if found.get(part) != header[part]:
                raise UctreeError(
                    f"{path} holds a match with other {part}: {found.get(part)} in the file, "
                    f"{header[part]} now; give another path, or the {part} of the file"
                )
        return {each.number: each for each in _records(path, lines, game).values()}

    def append(self, record: GameRecord) -> None:
        """Store a game."""
        self._file.append(json_text(record.to_json()))

    def close(self) -> None:
        """Close the file, so that another match can use it."""
        self._file.close()


def _header(path: Path, lines: list[bytes]) -> dict[str, Any]:
    try:
        header = parse_json(lines[0])
    except (IndexError, ValueError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _not_a_match(path)
    if header.get("version") != VERSION:
        raise UctreeError(
            f"{path} has version {header.get('version')!r} of the format, but this uctree reads "
            f"{VERSION}; use the uctree that wrote it"
        )
    for part in ("game", "agents", "settings"):
        if not isinstance(header.get(part), dict):
            raise UctreeError(f"{path}: its header is damaged: it has no {part!r}")
    return header


def _not_a_match(path: Path) -> UctreeError:
    return UctreeError(f"{path} is not the file of a match, as `uctree match` writes it")


def _records(path: Path, lines: list[bytes], game: Game) -> dict[int, GameRecord]:
    """The games of a file by line number."""
    records, seen = dict[int, GameRecord](), set[int]()
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = record_from(parse_json(line), game)
        except ValueError as error:
            raise UctreeError(f"{path}, line {number} is damaged: {error}") from error
        if record.number in seen:
            raise UctreeError(f"{path}, line {number}: game {record.number} occurs twice")
        seen.add(record.number)
        records[number] = record
    return records


def _game_from(path: Path, description: dict[str, Any]) -> Game:
    """The built-in game that was played; a file never names code of a user to run."""
    spec = description.get("spec")
    hint = "pass game= (on the command line: name the game as file.py:name)"
    if not isinstance(spec, str):
        raise UctreeError(f"{path} was played in your game {description.get('name')!r}; {hint}")
    try:
        return specs.read_built_in(spec)
    except Exception as error:  # arguments from a file can be anything
        raise UctreeError(f"{path}: cannot make the game {spec!r} ({error}); {hint}") from error


def _check_game(path: Path, description: dict[str, Any], game: Game) -> None:
    differences = game_differences(description, game, "in the file", "in the game")
    if differences:
        raise UctreeError(
            f"{path} was played in another game than {game.name}: {'; '.join(differences)}. "
            "Give another path, or the game of the file"
        )
