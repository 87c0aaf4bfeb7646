"""A study of the action principle as text and as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from uctree.game import Game, State
from uctree.pages.chart import Series, line_chart
from uctree.pages.columns import aligned
from uctree.pages.document import document, heading, paragraph, table
from uctree.principle.records import NodeStudy, Pruning
from uctree.result import SearchResult

MOST_ROWS = 20  # edges of a node that are shown
Rows = list[list[str]]


class Study(Protocol):
    """What this module reads of a `measurements.Study`, which imports it."""

    @property
    def result(self) -> SearchResult: ...
    @property
    def nodes(self) -> tuple[NodeStudy, ...]: ...
    @property
    def prunings(self) -> tuple[Pruning, ...]: ...
    @property
    def hbars(self) -> tuple[tuple[int, float], ...]: ...
    @property
    def options(self) -> dict[str, Any]: ...


def shown_line(game: Game, state: State, line: Sequence[int]) -> str:
    """The text of the actions from a state on; "root" for none."""
    names = []
    for each in line:
        names.append(game.show_action(state, each))
        state, _ = game.step(state, each)
    return " ".join(names) or "root"


def text(study: Study) -> str:
    """All tables of a study."""
    lines = [_headline(study)]
    for title, rows in _tables(study):
        lines += ["", title, *aligned(rows, left=())]
    return "\n".join(lines)


def _headline(study: Study) -> str:
    result, options = study.result, study.options
    chosen = result.action
    best = "" if chosen is None else f": {result.game.show_action(result.state, chosen)}"
    ended = ", interrupted" if result.status == "interrupted" else ""
    return (
        f"{result.game.name}{best}, {result.tree.simulations:,} simulations in "
        f"{len(study.hbars)} rounds{ended}; kappa {options['kappa']:g}, hbar {options['hbar']:g} "
        f"falling from {options['visit_scale']:g} visits on, mode {options['mode']}, "
        f"seed {options['seed']}"
    )


def _tables(study: Study) -> list[tuple[str, Rows]]:
    """The tables of a study with their titles: edges of the root, nodes, prunings."""
    game, state = study.result.game, study.result.state
    tables = []
    if study.nodes:
        place = study.nodes[0]
        name = shown_line(game, state, place.line)
        hidden = len(place.edges) - MOST_ROWS
        more = f", without the {hidden} least visited" if hidden > 0 else ""
        tables.append((f"edges of {name}{more}", _edge_rows(game, state, place)))
        tables.append(("nodes", [NODE_COLUMNS] + [_node_row(game, state, n) for n in study.nodes]))
    if study.prunings:
        rows = [PRUNING_COLUMNS] + [_pruning_row(game, state, each) for each in study.prunings]
        tables.append(("prunings", rows))
    return tables


EDGE_COLUMNS = [
    "action", "visits", "share", "classical", "squares", "q", "prior", "exploration", "bonus",
    "ratio", "validity",
]  # fmt: skip
NODE_COLUMNS = [
    "node", "visits", "hbar", "action S", "one-loop", "effective", "ratio", "validity", "pruned",
    "free energy", "hbar ln(1+b)", "per visit",
]  # fmt: skip
PRUNING_COLUMNS = [
    "node", "after", "dropped", "kept", "hbar", "free energy", "hbar ln(1+b)", "predicted",
    "measured", "error",
]  # fmt: skip


def _edge_rows(game: Game, state: State, node: NodeStudy) -> Rows:
    at = game.play(node.line, state)
    rows = [EDGE_COLUMNS]
    for row in _by_visits(node):
        rows.append([
            game.show_action(at, int(row["action"])), f"{row['visits']:,}", f"{row['share']:.1%}",
            f"{row['classical']:.1%}", f"{row['squares']:.1%}", f"{row['q']:.3f}",
            f"{row['prior']:.3f}", f"{row['exploration']:.4f}", f"{row['bonus']:.1e}",
            f"{_ratio(row):.1e}", f"{row['validity']:.1e}",
        ])  # fmt: skip
    return rows


def _by_visits(node: NodeStudy) -> np.ndarray:
    """The edges of a node that are shown, the most visited first."""
    return node.edges[np.argsort(-node.edges["visits"], kind="stable")][:MOST_ROWS]


def _ratio(row: np.void) -> float:
    """The bonus of an edge divided by its classical exploration term."""
    return float(row["bonus"] / row["exploration"]) if row["exploration"] > 0 else 0.0


def _node_row(game: Game, state: State, node: NodeStudy) -> list[str]:
    ratios = [_ratio(row) for row in node.edges]
    return [
        shown_line(game, state, node.line), f"{node.visits:,}", f"{node.hbar:.4f}",
        f"{node.action:.3f}", f"{node.one_loop:.3f}", f"{node.effective_action:.3f}",
        f"{max(ratios):.1e}", f"{max(node.edges['validity']):.1e}", str(node.num_pruned),
        f"{node.free_energy:.5f}", f"{node.special_case:.5f}", f"{node.penalty:.1e}",
    ]  # fmt: skip


def _pruning_row(game: Game, state: State, pruning: Pruning) -> list[str]:
    at = game.play(pruning.line, state)
    dropped = " ".join(game.show_action(at, each) for each in pruning.actions)
    return [
        shown_line(game, state, pruning.line), f"{pruning.simulations:,}", dropped,
        str(pruning.num_kept), f"{pruning.hbar:.4f}", f"{pruning.free_energy:.5f}",
        f"{pruning.special_case:.5f}", f"{pruning.predicted:.5f}", f"{pruning.measured:.5f}",
        f"{pruning.error:.5f}",
    ]  # fmt: skip


def page(study: Study) -> str:
    """One HTML page with the tables and plots of a study."""
    parts = [paragraph(_headline(study)), _shares_chart(study), _hbar_chart(study)]
    for name, rows in _tables(study):
        parts += [heading(name), table(rows)]
    return document(f"{study.result.game.name} and the action principle", parts)


def _shares_chart(study: Study) -> str:
    """The visits of all edges of all nodes against the classical solution."""
    seen, classical, squares = (
        [float(share) for node in study.nodes for share in node.edges[name]]
        for name in ("share", "classical", "squares")
    )
    top = max(seen, default=1.0)
    series = [
        Series("classical solution", classical, seen, line=False),
        Series("at equal values, P²/ΣP²", squares, seen, line=False),
        Series("equal", [0.0, top], [0.0, top]),
    ]
    title = "Visits against the classical solution, edges of all nodes"
    return line_chart(series, title=title, x_label="share in theory", y_label="share of the visits")


def _hbar_chart(study: Study) -> str:
    simulations, hbar = zip(*study.hbars, strict=True)
    title = "The constant of the one-loop term at the root"
    series = [Series("hbar", simulations, hbar)]
    return line_chart(series, title=title, x_label="simulations", y_label="hbar")
