"""Commands that find out which settings are worth it: `ablate`, `advise`."""

from __future__ import annotations

import json as json_format
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from uctree import specs
from uctree.cli.app import INTERRUPTED, Flag, app, counting_bar
from uctree.cli.evidence import read_openings
from uctree.errors import UctreeError

if TYPE_CHECKING:
    from uctree.arena import AblationProgress, AdviceProgress


@app.command
def ablate(
    game: str,
    /,
    *,
    vary: Annotated[list[str], Parameter(negative_iterable="")],
    simulations: str | None = None,
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
    """How strong each setting of a grid is, from games between them. Ctrl-C ends it early.

    --vary selection.puct.c=0.5,1,2 varies a parameter of a rule, --vary "selection=ucb1(),rave()"
    the rule, --vary solver=true,false any option of search(...) agents; several make the full
    product. The folder gets a table, a chart, JSON and every game; the same command goes on with
    it.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        vary: an option and its values; may be given several times.
        simulations: the budgets at which all settings meet, as 100,1000; 1000 by default.
        seconds: such budgets in seconds for each search.
        games: of each two settings at each budget, rounded up to whole openings.
        base: options that all settings share, as "solver=True, choice=lcb".
        pairing: each setting against the first one, against its neighbours, or all.
        openings: number of random plies, or a file with an opening on each line.
        seed: decides openings, chance outcomes and searches.
        processes: how many games are played at once.
        folder: where to write; ablation-GAME by default.
        max_seconds: the most that an action, or watching one, may take; who takes longer forfeits
            the game. Give more than the T of search(seconds=T).
        json: print JSON instead of a table.
    """
    from uctree import arena
    from uctree.arena.grids import read_vary

    chosen = specs.read_game(game)
    place = folder or Path(f"ablation-{_slug(game)}")
    with counting_bar(chosen.name) as show:

        def progress(now: AblationProgress) -> None:
            if show is not None:
                who = " - ".join(now.settings)
                show(now.done, now.total, f"{now.done:,}/{now.total:,} games; {now.budget} {who}")

        result = arena.ablate(
            game,
            read_vary(vary),
            simulations=None if simulations is None else _numbers("--simulations", simulations),
            seconds=None if seconds is None else _numbers("--seconds", seconds, float),
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
        print(json_format.dumps(result.to_json(), indent=2) if json else result)
    if result.status != "interrupted":
        print(f"uctree: wrote {place}", file=sys.stderr)
        return 0
    print(f"uctree: interrupted; the same command goes on with {place}", file=sys.stderr)
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
    """Which rule and how many simulations a game needs, measured on positions of it.

    Searches are held against exact values where what follows is small enough, and against two far
    longer searches otherwise. Ctrl-C ends it with what there is.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: measure the position after these, and positions that can follow it.
        positions: how many positions, drawn from random episodes.
        budgets: numbers of simulations, as 10,100,1000.
        rule: a selection rule, as "puct(c=2)", the one to beat first; may be given several times.
        seeds: searches of each position, rule and budget.
        reference: simulations of each long search; ten times the largest budget by default.
        max_states: solve positions that at most so many states can follow; 0 for none.
        tolerance: actions are equally good within this share of the range of returns.
        base: options that all searches share, as "solver=True, choice=lcb".
        seed: decides positions and searches.
        folder: write a table, a chart and JSON there.
        json: print JSON instead of a table.
    """
    from uctree import arena

    chosen = specs.read_game(game)
    root = None if actions is None else specs.play_actions(chosen, actions)
    states = arena.random_states(chosen, positions, seed, root)
    given: dict[str, Any] = {} if budgets is None else {"budgets": _numbers("--budgets", budgets)}
    with counting_bar(chosen.name) as show:

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
    print(json_format.dumps(result.to_json(), indent=2) if json else result)
    return 0 if result.status == "complete" else INTERRUPTED


def _slug(game: str) -> str:
    """The name of a game as a part of a file's name.

    >>> _slug("nim(heaps=(3,4,5))"), _slug("games/my_game.py:race")
    ('nim-heaps-3-4-5', 'my_game-race')
    """
    text = re.sub(r"^.*/|\.py(?=:|$)", "", game)
    return re.sub(r"\W+", "-", text).strip("-")


def _numbers(option: str, text: str, kind: type = int) -> list[Any]:
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

    agent = make_agent(f"search(simulations=1, {base})")
    assert isinstance(agent, SearchAgent), "it was named so"
    if agent.reuse:
        raise UctreeError("--base: reuse is for whole games; advise looks at single positions")
    return agent.options
