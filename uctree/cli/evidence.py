"""Commands that find out what is stronger: `match`."""

from __future__ import annotations

import functools
import json as json_format
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from uctree import specs
from uctree.cli.app import INTERRUPTED, Flag, app, counting_bar, told
from uctree.cli.learning import agent_source
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
    """Which agent is stronger, and how sure that is, from many games. Ctrl-C ends it early.

    AGENT is random, greedy, "search(simulations=1000, selection=puct(c=2), reuse=True)",
    "search(seconds=1)", "gnugo(level=10)", "rhino()", "gtp('program --gtp')" or
    "my_agents.py:Clever(depth=3)", or "network(run='RUN', simulations=200)" of what was trained;
    NAME=AGENT gives it a name. Every opening is played in all seatings, and all groups of agents
    play where there are more than seats.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        agents: what plays it.
        games: how many of each group of agents, rounded up to whole openings; 100 by default.
        openings: so many random plies, or a file with the actions of one opening per line.
        seed: decides openings, chance outcomes and searches.
        processes: how many games are played at once.
        backend: what plays them: processes of this machine, or actors of a Ray cluster.
        output: the file that keeps the games; the same command goes on with it.
        max_seconds: the most that an action, or watching one, may take; who takes longer forfeits
            the game. Give more than the T of search(seconds=T).
        sprt: end when a difference of 0 against one of 20 Elo points is decided, as 0,20.
        alpha: the error of --sprt in accepting the larger difference.
        beta: its error in accepting the smaller one.
        anchor: the agent whose rating is 0; by default the mean is.
        show: print what a file holds, instead of playing.
        game_number: with --show, this game ply by ply.
        json: print JSON instead of a table.
    """
    from uctree import arena

    chosen = None if game is None else specs.read_game(game)
    if show is not None:
        if agents:
            raise UctreeError("--show FILE plays nothing: leave the agents away")
        with told(show):
            result = arena.read_match(show, chosen)
        if game_number is not None:
            _print_game(result, game_number, json)
            return 0
    elif game_number is not None:
        raise UctreeError("--game-number is for --show FILE")
    elif game is None or chosen is None:
        raise UctreeError("say what to play: a GAME, or --show FILE; see uctree match --help")
    else:
        test = None if sprt is None else _read_sprt(sprt, alpha, beta)
        sources = _named(agents, chosen)
        if anchor is not None and anchor not in sources:
            raise UctreeError(f"--anchor {anchor}: no such agent; there is {', '.join(sources)}")
        with counting_bar(chosen.name) as show_bar:
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
                progress=None if show_bar is None else functools.partial(_tell, show_bar),
            )
    result = result.anchored(anchor)
    print(json_format.dumps(result.to_json(), indent=2) if json else result)
    if result.status != "interrupted":
        return 0
    if output is not None:
        print(f"uctree: interrupted; the same command goes on with {output}", file=sys.stderr)
    return INTERRUPTED


def _print_game(result: MatchResult, number: int, json: bool) -> None:
    for record in result.records:
        if record.number == number:
            print(json_format.dumps(record.to_json(), indent=2) if json else record)
            return
    last = max(record.number for record in result.records)
    raise UctreeError(f"--game-number {number}: there is no such game; they go from 0 to {last}")


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
    if re.fullmatch(r"\d+", text):
        return int(text)
    path = Path(text)
    with told(path):
        lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        opening = line.partition("#")[0].strip()
        if opening:
            option = f"--openings {path}, line {number}"
            found.append(specs.read_actions(game, [opening], option))
    return found


def _tell(show_bar: Callable[[int, int, str], None], now: MatchProgress) -> None:
    """Show how far a match is, and how it stands."""
    scores = ", ".join(f"{name} {score:.3f}" for name, score in now.scores.items())
    failed = f", {now.forfeits} forfeits" if now.forfeits else ""
    show_bar(now.done, now.total, f"{now.done:,} of {now.total:,} games: {scores}{failed}")
