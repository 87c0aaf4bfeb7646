"""The commands `ablate` and `advise`: which settings of a search are stronger."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from uctree import specs
from uctree.cli.app import INTERRUPTED, Flag, app, counting_bar
from uctree.cli.evidence import read_openings
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError

if TYPE_CHECKING:
    from uctree.arena import AblationProgress, AdviceProgress


@app.command
def ablate(
    game: str,
    /,
    *,
    vary: Annotated[list[str], Parameter(negative_iterable="")],
    num_simulations: str | None = None,
    seconds: str | None = None,
    games: int = 200,
    base: str = "",
    pairing: Literal["first", "neighbours", "all"] = "first",
    openings: str = "2",
    seed: int = 0,
    processes: int = 1,
    folder: Path | None = None,
    max_seconds: float | None = None,
    json: Flag = False,
) -> int:
    """Measure the strength of each setting of a grid, from games. Ctrl-C ends it early.

    --vary selection.puct.c=0.5,1,2 varies a parameter of a rule, --vary "selection=ucb1(),rave()"
    the rule, --vary solver=true,false any option of search(...) agents; several --vary make the
    full product. The folder gets a table, a chart, JSON and every game; the same command resumes.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        vary: an option and its values; may be repeated.
        num_simulations: the budgets of the searches that play each other, as 100,1000; 1000 by
            default.
        seconds: budgets in seconds for each search, instead of simulations.
        games: the games of each pair of settings at each budget, rounded up to whole openings.
        base: options that all settings share, as "solver=True, choice=lcb".
        pairing: each setting against the first one, against its neighbours, or all.
        openings: a number of random plies, or a file with one opening per line.
        seed: determines openings, chance outcomes and searches.
        processes: the number of games at once.
        folder: where to write; ablation-GAME by default.
        max_seconds: the time limit of an action, and of watching one; an agent that takes longer
            forfeits the game. Give more than the T of search(seconds=T).
        json: print JSON instead of a table.
    """
    from uctree import arena
    from uctree.arena.grids import read_vary

    chosen = specs.read_game(game)
    place = folder or Path(f"ablation-{_slug(game)}")
    with counting_bar() as show:

        def progress(now: AblationProgress) -> None:
            if show is not None:
                who = " - ".join(now.settings)
                show(now.done, now.total, f"{now.done:,}/{now.total:,} games; {now.budget} {who}")

        result = arena.ablate(
            game,
            read_vary(vary),
            num_simulations=_numbers("--num-simulations", num_simulations),
            seconds=_numbers("--seconds", seconds, float),
            num_games=games,
            base=base,
            pairing=pairing,
            openings=read_openings(chosen, openings),
            seed=seed,
            processes=processes,
            folder=place,
            max_seconds=max_seconds,
            progress=progress,
        )
    if result.num_games:
        result.save(place)
        print(json_text(result.to_json(), indent=2) if json else result)
    if result.status != "interrupted":
        print(f"uctree: wrote {place}", file=sys.stderr)
        return 0
    print(f"uctree: interrupted; the same command resumes {place}", file=sys.stderr)
    return INTERRUPTED


@app.command
def advise(
    game: str,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(negative_iterable="", consume_multiple=True)
    ] = None,
    positions: int = 50,
    budgets: str | None = None,
    rule: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
    seeds: int = 3,
    reference: int | None = None,
    max_states: int = 200_000,
    tolerance: float = 0.01,
    base: str = "",
    seed: int = 0,
    folder: Path | None = None,
    json: Flag = False,
) -> int:
    """Measure which rule and how many simulations a game needs, on positions of it.

    Searches are compared with exact values if a position can be solved, else with two far longer
    searches. Ctrl-C ends it with the result so far.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: measure the position after these actions, and positions that follow it.
        positions: the number of positions, drawn from random episodes.
        budgets: numbers of simulations, as 10,100,1000.
        rule: a selection rule, as "puct(c=2)", the one to beat first; may be repeated.
        seeds: searches per position, rule and budget.
        reference: simulations of each long search; ten times the largest budget by default.
        max_states: solve a position if at most this many states can follow it; 0 never does.
        tolerance: actions are equally good within this share of the range of returns.
        base: options that all searches share, as "solver=True, choice=lcb".
        seed: determines positions and searches.
        folder: write a table, a chart and JSON to this folder.
        json: print JSON instead of a table.
    """
    from uctree import arena

    chosen = specs.read_game(game)
    root = None if actions is None else specs.play_actions(chosen, actions)
    states = arena.random_states(chosen, positions, seed, root)
    given: dict[str, Any] = {} if budgets is None else {"budgets": _numbers("--budgets", budgets)}
    with counting_bar() as show:

        def progress(now: AdviceProgress) -> None:
            if show is not None:
                show(now.done, now.total, now.text)

        result = arena.advise(
            chosen,
            states,
            rules=rule,
            num_seeds=seeds,
            reference_simulations=reference,
            max_states=max_states,
            tolerance=tolerance,
            seed=seed,
            progress=progress,
            **given,
            **_options(base),
        )
    if folder is not None:
        result.save(folder)
    print(json_text(result.to_json(), indent=2) if json else result)
    return 0 if result.status == "complete" else INTERRUPTED


def _slug(game: str) -> str:
    """The name of a game as part of a file name.

    >>> _slug("nim(heaps=(3,4,5))"), _slug("games/my_game.py:race")
    ('nim-heaps-3-4-5', 'my_game-race')
    """
    text = re.sub(r"^.*/|\.py(?=:|$)", "", game)
    return re.sub(r"\W+", "-", text).strip("-")


def _numbers(option: str, text: str | None, kind: type = int) -> list[Any] | None:
    """The numbers in the text of an option; None if it was not given."""
    if text is None:
        return None
    try:
        return [kind(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        example = "100,1000" if kind is int else "0.1,1"
        raise UctreeError(f"{option} {text}: expected numbers, as {example}") from None


def _options(base: str) -> dict[str, Any]:
    """Options of a search from text."""
    if not base.strip():
        return {}
    from uctree.arena import SearchAgent, make_agent

    agent = make_agent(f"search(num_simulations=1, {base})")
    assert isinstance(agent, SearchAgent), "its text begins with search"
    if agent.reuse:
        raise UctreeError("--base: reuse is for whole games; advise searches single positions")
    return agent.options
