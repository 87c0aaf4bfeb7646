"""The command `match`: which agent is stronger."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from uctree import specs
from uctree.cli.app import INTERRUPTED, Flag, app, counting_bar, file_errors
from uctree.cli.learning import agent_source
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError
from uctree.game import Game

if TYPE_CHECKING:
    from uctree.arena import MatchProgress, MatchResult, Sprt
    from uctree.arena.agents import AgentSource


@app.command
def match(
    game: str | None = None,
    /,
    *agents: str,
    games: int | None = None,
    openings: str = "2",
    seed: int = 0,
    processes: int = 1,
    backend: Literal["process", "ray"] = "process",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    max_seconds: float | None = None,
    sprt: str | None = None,
    alpha: float = 0.05,
    beta: float = 0.05,
    anchor: str | None = None,
    show: Path | None = None,
    game_number: int | None = None,
    json: Flag = False,
) -> int:
    """Find out which agent is stronger, from many games. Ctrl-C ends it early.

    AGENT is random, greedy, "search(num_simulations=1000, selection=puct(c=2), reuse=True)",
    "search(seconds=1)", "gnugo(level=10)", "rhino()", "gtp('program --gtp')" or
    "my_agents.py:Clever(depth=3)", or "network(run='RUN', num_simulations=200)" of a trained run;
    NAME=AGENT gives it a name. Every opening is played in all seatings. With more agents than
    seats all groups of agents play.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        agents: the agents that play.
        games: the games of each group of agents, rounded up to whole openings; 100 by default.
        openings: a number of random plies, or a file with the actions of one opening per line.
        seed: determines openings, chance outcomes and searches.
        processes: the number of games at once.
        backend: play in processes of this machine, or in actors of a Ray cluster.
        output: the file that stores the games; the same command resumes the match.
        max_seconds: the time limit of an action, and of watching one; an agent that takes longer
            forfeits the game. Give more than the T of search(seconds=T).
        sprt: two Elo differences, as 0,20; end when one of them is accepted.
        alpha: the error probability of accepting the larger difference of --sprt.
        beta: the error probability of accepting the smaller difference.
        anchor: the agent whose rating is 0; by default the mean is 0.
        show: print the games of a file instead of playing.
        game_number: with --show, print this game ply by ply.
        json: print JSON instead of a table.
    """
    from uctree import arena

    chosen = None if game is None else specs.read_game(game)
    if show is not None:
        if agents:
            raise UctreeError("--show FILE plays nothing; omit the agents")
        with file_errors(show):
            result = arena.read_match(show, chosen)
        if game_number is not None:
            _print_game(result, game_number, json)
            return 0
    elif game_number is not None:
        raise UctreeError("--game-number needs --show FILE")
    elif game is None or chosen is None:
        raise UctreeError("give a GAME, or --show FILE; see uctree match --help")
    else:
        test = None if sprt is None else _read_sprt(sprt, alpha, beta)
        sources = _named(agents, chosen)
        if anchor is not None and anchor not in sources:
            raise UctreeError(f"--anchor {anchor}: no such agent; agents are {', '.join(sources)}")
        with counting_bar() as show_bar:
            result = arena.match(
                game,
                sources,
                num_games=games,
                openings=read_openings(chosen, openings),
                seed=seed,
                processes=processes,
                backend=backend,
                path=output,
                max_seconds=max_seconds,
                sprt=test,
                progress=None if show_bar is None else functools.partial(_show_progress, show_bar),
            )
    result = result.anchored(anchor)
    print(json_text(result.to_json(), indent=2) if json else result)
    if result.status != "interrupted":
        return 0
    if output is not None:
        print(f"uctree: interrupted; the same command resumes {output}", file=sys.stderr)
    return INTERRUPTED


def _print_game(result: MatchResult, number: int, json: bool) -> None:
    for record in result.records:
        if record.number == number:
            print(json_text(record.to_json(), indent=2) if json else record)
            return
    last = max(record.number for record in result.records)
    raise UctreeError(f"--game-number {number}: no such game; numbers are 0 to {last}")


_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.+)", re.DOTALL)


def _named(agents: tuple[str, ...], game: Game) -> dict[str, AgentSource]:
    """Agents by name: the one before "=", or the text itself."""
    from uctree.arena.episodes import named

    pairs = [_NAMED.fullmatch(text) for text in agents]
    names = [pair[1] if pair else text.strip() for pair, text in zip(pairs, agents, strict=True)]
    sources = [pair[2] if pair else text for pair, text in zip(pairs, agents, strict=True)]
    return named([agent_source(source, game) for source in sources], names)


def _read_sprt(text: str, alpha: float, beta: float) -> Sprt:
    from uctree.arena import Sprt

    try:
        elo0, elo1 = (float(part) for part in text.split(","))
    except ValueError:
        raise UctreeError(f"--sprt {text}: expected two Elo differences, as 0,20") from None
    return Sprt(elo0, elo1, alpha, beta)


def read_openings(game: Game, text: str) -> int | list[list[int]]:
    """A number of plies, or the openings in a file."""
    if re.fullmatch(r"\d{1,18}", text):
        return int(text)
    path = Path(text)
    with file_errors(path):
        lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        opening = line.partition("#")[0].strip()
        if opening:
            option = f"--openings {path}, line {number}"
            found.append(specs.read_actions(game, [opening], option))
    return found


def _show_progress(show_bar: Callable[[int, int, str], None], now: MatchProgress) -> None:
    """Show the number of games and the scores so far."""
    scores = ", ".join(f"{name} {score:.3f}" for name, score in now.scores.items())
    failed = f", {now.forfeits} forfeits" if now.forfeits else ""
    show_bar(now.done, now.total, f"{now.done:,} of {now.total:,} games: {scores}{failed}")
