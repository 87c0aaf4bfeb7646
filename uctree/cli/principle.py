"""The command `principle`: a search compared with the action principle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from uctree import principle, specs
from uctree.cli.app import Flag, app, option_errors
from uctree.engine.jsontext import json_text
from uctree.errors import UctreeError


@app.command(name="principle")
def study(
    game: str,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(consume_multiple=True, negative_iterable="")
    ] = None,
    num_simulations: int = 10_000,
    rounds: int = 10,
    least_share: float = 0.5,
    min_visits: int = 100,
    nodes: int = 8,
    kappa: float = 1.25,
    hbar: float = 1.0,
    visit_scale: float = 100.0,
    mode: Literal["kernel", "simplex", "saddle", "off"] = "kernel",
    samples: int = 10_000,
    seed: int = 0,
    page: Path | None = None,
    json: Flag = False,
) -> None:
    """Search by one-loop PUCT with pruning, and compare with the action principle.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: the actions so far, chance outcomes included, separated by commas or spaces.
        num_simulations: the number in all rounds.
        rounds: the number of rounds of the search; nodes are pruned between rounds.
        least_share: prune actions with less than this share of the most visited one's visits; 0
            prunes nothing.
        min_visits: the visits that a node needs before it is pruned.
        nodes: the number of nodes that are pruned and reported: the root and the most visited.
        kappa: weight of the priors.
        hbar: the constant of the one-loop term.
        visit_scale: the visits after which the one-loop term decreases.
        mode: where the curvature is computed.
        samples: draws per pruning for the mean of exp(-W/hbar).
        seed: the same seed gives the same result.
        page: write an HTML page with tables and plots to this file.
        json: print JSON instead of tables.
    """
    if page is not None and (page.is_dir() or not page.parent.is_dir()):
        raise UctreeError(f"--page {page}: give the name of a file in an existing folder")
    chosen = specs.read_game(game)
    state = specs.play_actions(chosen, actions or [])
    with option_errors():
        found = principle.study(
            chosen, state, num_simulations=num_simulations, num_rounds=rounds,
            keep=principle.by_share(least_share), min_visits=min_visits, num_nodes=nodes,
            kappa=kappa, hbar=hbar, visit_scale=visit_scale, mode=mode, num_samples=samples,
            seed=seed,
        )  # fmt: skip
    print(json_text(found.to_json(), indent=2) if json else found)
    if page is not None:
        try:
            found.save(page)
        except OSError as error:
            raise UctreeError(f"--page {page}: {error.strerror}") from error
