"""Commands that search: `search`, `solve` and `diff`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

import uctree
from uctree import specs
from uctree.cli import app as shared
from uctree.cli.app import (
    NO_BUDGET,
    NO_METHOD,
    Budget,
    Flag,
    Method,
    app,
    checked_budget,
    file_errors,
    load_tree,
    option_errors,
    search_options,
    search_with_progress,
)
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError
from uctree.game import Game


@app.command
def search(
    game: str | None = None,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(consume_multiple=True, negative_iterable="")
    ] = None,
    budget: Budget = NO_BUDGET,
    method: Method = NO_METHOD,
    seed: int = 0,
    tree: Path | None = None,
    save_tree: Path | None = None,
    save_page: Path | None = None,
    json: Flag = False,
) -> None:
    """Search the start of a game, or the state after some actions. Ctrl-C ends the search early.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: the actions so far, chance outcomes included, separated by commas or spaces.
        seed: the same seed and number of simulations give the same result.
        tree: continue with the tree in this file; a built-in game need not be named then.
        save_tree: write the tree to this file.
        save_page: write an HTML page of the result to this file, as search.html.
        json: print JSON instead of a table.
    """
    options = search_options(method)
    budget = checked_budget(budget, Budget(seconds=shared.DEFAULT_SECONDS))
    if save_tree is not None:
        _check_can_save("--save-tree", save_tree)
        _check_one_tree(method)
    if save_page is not None:
        _check_can_save("--save-page", save_page)
        _check_is_page(save_page)
    chosen, state, earlier = _root(game, actions or [], tree)
    result = search_with_progress(
        chosen, state, budget, seed=seed, options=options | {"tree": earlier}
    )
    print(json_text(result.to_json(), indent=2) if json else result)
    if save_tree is not None:
        with file_errors(save_tree):
            result.tree.save(save_tree)
    if save_page is not None:
        with file_errors(save_page):
            result.save(save_page)


@app.command
def solve(
    game: str,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(consume_multiple=True, negative_iterable="")
    ] = None,
    max_states: int = 10_000_000,
    json: Flag = False,
    debug: Flag = False,
    no_check: Flag = False,
) -> None:
    """Find the exact value of a small game: of its start, or of the state after some actions.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: the actions so far, chance outcomes included, separated by commas or spaces.
        max_states: give up if more different states than this can follow.
        json: print JSON instead of a table.
        debug: compile with bounds checks, to find out why a game crashes.
        no_check: do not play a few episodes in plain Python first.
    """
    chosen = specs.read_game(game)
    state = specs.play_actions(chosen, actions or [])
    with option_errors():
        solution = uctree.solve(
            chosen, state, max_states=max_states, debug=debug, check=not no_check
        )
    print(json_text(solution.to_json(), indent=2) if json else solution)


@app.command
def diff(first: Path, second: Path, /, *, game: str | None = None, json: Flag = False) -> None:
    """Compare two searches of one state, action by action.

    Args:
        first: a file that `uctree search --save-tree` wrote, called a in the output.
        second: another such file, called b.
        game: the game of the trees, if it is not built in.
        json: print JSON instead of a table.
    """
    from uctree.comparison import compare

    chosen = None if game is None else specs.read_game(game)
    a, b = (load_tree(path, chosen) for path in (first, second))
    comparison = compare(a, b, (str(first), str(second)))
    print(json_text(comparison.to_json(), indent=2) if json else comparison)


def _root(
    game: str | None, actions: Sequence[str], tree: Path | None
) -> tuple[Game, np.record, uctree.Tree | None]:
    """The game and the state to search, and the tree to continue with."""
    chosen = None if game is None else specs.read_game(game)
    if tree is not None:
        if actions:
            raise UctreeError("--tree continues from its own root; omit --actions")
        earlier = load_tree(tree, chosen)
        return earlier.game, earlier.state, earlier
    if chosen is None:
        raise UctreeError("give a GAME, or --tree FILE; see uctree search --help")
    return chosen, specs.play_actions(chosen, actions), None


def _check_can_save(option: str, path: Path) -> None:
    """Raise UctreeError before a long search if its result could not be saved."""
    if path.is_dir():
        raise UctreeError(f"{option} {path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UctreeError(f"{option} {path}: there is no folder {path.parent}")


def _check_one_tree(method: Method) -> None:
    if (method.threads or 1) > 1 and method.parallel != "tree":
        raise UctreeError(
            "--save-tree writes one tree, but each thread has its own; add --parallel tree"
        )


def _check_is_page(path: Path) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise UctreeError(f"--save-page {path}: the name must end in .html")
