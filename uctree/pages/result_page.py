"""A search result as one HTML file, and as an HTML fragment for notebooks."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from uctree.engine.jsontext import json_text
from uctree.engine.treefile import replacing
from uctree.game import CHANCE
from uctree.kernels.records import NONE
from uctree.pages.board import Board, Spot, cells_of, draw, read_board, spots_of
from uctree.pages.modules import bundled, source
from uctree.pages.outline import Outline, outline
from uctree.pages.tree_data import Boards, encoded, player_name, tree_data
from uctree.result import SearchResult
from uctree.variation import Variation, shown_steps

MOST_ROWS = 200  # of the table
MOST_LINES = 24  # variations
MOST_COMPLETED = 12  # variations that are continued to the end of the episode
MOST_CURVES = 8  # of a chart
MOST_STATES = 300  # nodes whose state is replayed
MOST_BOARD_CHARACTERS = 1_000_000  # of all states
# Of a game whose variations are completed by default: with more a step in plain Python is slow.
MOST_ACTIONS_COMPLETED = 1_000


def save(result: SearchResult, path: str | os.PathLike[str], complete: Any = "auto") -> None:
    """Write a result to a file, in the format of its suffix; see `SearchResult.save`."""
    target = Path(os.path.realpath(path))
    suffix = Path(path).suffix.lower()
    if suffix not in (".html", ".htm", ".json"):
        raise ValueError(
            f"save writes a page (.html) or numbers (.json); got {os.fspath(path)!r}. The tree "
            "itself is written by result.tree.save(path)"
        )
    if target.is_dir():
        what = "that is a folder; give the name of a file"
        raise IsADirectoryError(errno.EISDIR, what, os.fspath(path))
    if not target.parent.is_dir():
        what = f"there is no folder {target.parent}; make it first"
        raise FileNotFoundError(errno.ENOENT, what, os.fspath(path))
    is_page = suffix != ".json"
    text = page(result, complete) if is_page else json_text(result.to_json(), indent=1)
    try:
        with replacing(target) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        what = f"the page could not be written, and nothing was changed: {error.strerror}"
        raise type(error)(error.errno, what, os.fspath(path)) from error


def page(result: SearchResult, complete: Any = "auto") -> str:
    """The HTML of the whole page: board, table, charts, variations and tree.

    Args:
        complete: as in `SearchResult.save`.
    """
    if result.game.is_continuous:
        raise ValueError(
            f"the actions of {result.game.name} are vectors, and a page shows only integers; print "
            "the result for the table, or save it to a path that ends in .json"
        )
    report = _Report(result, complete)
    template, style, script = source("page.html"), source("page.css"), bundled("page.js")
    import uctree

    parts = {
        "script_hash": "sha256-" + encoded(hashlib.sha256(script.encode()).digest()),
        "version": escape(uctree.__version__),
        "title": escape(f"A search of {result.game.name}"),
        "style": style,
        "headline": report.headline(),
        "facts": report.facts(),
        "board": report.board(),
        "table": report.table(),
        "tree_note": report.tree_note(),
        "notes": report.notes(),
        "manifest": escape(json_text(result.manifest(), indent=1)),
        "data": _script_json(report.data()),
        "script": script,
    }
    # In one pass, so that texts of a game are never taken for placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def fragment(result: SearchResult, most: int = 12) -> str:
    """The HTML of board and table for a notebook: no scripts, no ids that could clash."""
    if result.game.is_continuous:
        return f"<pre>{escape(str(result))}</pre>"
    report = _Report(result, complete=None)
    return (
        '<div class="uctree-result" style="display:flex;flex-wrap:wrap;gap:1.5em;'
        f'align-items:flex-start"><div style="max-width:24em">{report.board(is_live=False)}</div>'
        f'<div style="overflow:auto"><p style="margin:0 0 .3em">{report.headline()}</p>'
        f'<p style="margin:0 0 .6em;opacity:.7">{report.facts()}</p>'
        f"{report.plain_table(most)}</div></div>"
    )


def visits_needed(result: SearchResult) -> np.ndarray:
    """The further visits each edge of the root needs to become the choice, all else unchanged.

    0 for the chosen action. If the most visited action is chosen, the gap plus 1. Infinite if
    proofs exclude an action. NaN for other choices, which depend on later values or on a draw.
    """
    edges = result.edges
    needed = np.full(len(edges), np.nan)
    if result._action is None:
        return needed
    allowed = result._playable(result._root, result._player, result.is_proven)
    is_open = np.isnan(result._root["proven"][allowed, result._player])
    best = int(np.flatnonzero(edges["action"] == result._action)[0])
    if result.choice.name == "robust" or not is_open.any():
        needed = (edges["visits"][best] - edges["visits"] + 1).astype(float)
    needed[~allowed] = np.inf
    needed[best] = 0
    return needed


@dataclass(frozen=True)
class _Line:
    """A variation with the texts of its actions, and the states along it."""

    words: list[str]
    variation: Variation
    states: list[np.record]

    def note(self) -> str:
        line = self.variation
        text = f"{line.tree_depth} from the tree"
        if line.completed_by == "playout":
            text += f", then {line.depth - line.tree_depth} at random (one playout, by the seed)"
        elif line.completed_by is not None:
            text += f", then {line.depth - line.tree_depth} by {line.completed_by}"
        return text + (", to the end of the episode" if line.complete else ", where it stops")

    def html(self, most: int = 24) -> str:
        words = [escape(word) for word in self.words[:most]]
        depth = min(self.variation.tree_depth, most)
        tail = " ".join(words[depth:])
        text = " ".join(words[:depth]) + (f' <span class="tail">{tail}</span>' if tail else "")
        return text + (" …" if len(self.words) > most else "")


class _Report:
    """The parts of a page."""

    def __init__(self, result: SearchResult, complete: Any) -> None:
        self.result = result
        if isinstance(complete, str) and complete == "auto":
            is_known = result.game.labels is None  # a plan knows only what was asked
            is_small = result.game.num_actions <= MOST_ACTIONS_COMPLETED
            complete = "playout" if is_known and is_small else None
        self.complete = complete
        edges = result.edges
        order = np.lexsort((np.arange(len(edges)), -result._q, -edges["visits"]))
        is_chosen = edges["action"][order] == (NONE if result._action is None else result._action)
        self.order = np.concatenate([order[is_chosen], order[~is_chosen]])  # of the table's rows
        self.total = max(1, int(edges["visits"].sum()))
        self.boards = Boards(result.game, MOST_BOARD_CHARACTERS)

    # Text.

    def text(self, action: int) -> str:
        return self.result.game.show_action(self.result.state, action)

    def headline(self) -> str:
        """The player to move, the chosen action and its value."""
        result = self.result
        if result.status == "terminal":
            return "The episode is over: there is nothing to search."
        who = player_name(result._player)
        values = ", ".join(f"{_signed(v)} for player {i}" for i, v in enumerate(result.value))
        exact = "" if result.solved is None else f" ({result._verdict(result.solved)}, proven)"
        best = "" if result._action is None else f": <strong>{escape(self.text(result._action))}"
        return f"{who} to move{best}{'</strong>' if best else ''}; value {values}{exact}"

    def facts(self) -> str:
        """The simulations, the time, and why the search ended."""
        result = self.result
        if result.status == "terminal":
            return ""
        speed = result.simulations / max(result.seconds, 1e-9)
        return escape(
            f"{result.simulations:,} simulations in {result.seconds:.2f} s ({speed:,.0f}/s)"
            f"{result._ending()}; {result.profile_line}"
        )

    # The board.

    @cached_property
    def _board(self) -> Board | None:
        return read_board(self.result.game, self.result.state)

    def board(self, is_live: bool = True) -> str:
        """The root's state: drawn if its text has the form of a board, and as text."""
        result = self.result
        shown = escape(result.game.show(result.state))
        text = f'<pre class="state" style="overflow:auto;line-height:1.3">{shown}</pre>'
        if self._board is None:
            return text
        style = "" if is_live else "max-width:100%;height:auto"
        drawing = draw(self._board, self._spots(), "the state, with shares of visits", style)
        if not is_live:
            return drawing
        beyond = len(result.edges) - len(self._cells)
        note = f" {beyond:,} of {len(result.edges):,} actions have no cell." if beyond else ""
        return (
            f'{drawing}<p class="quiet">Shades and numbers are shares of the visits; click to '
            f"select an action.{note}</p><details><summary>as text</summary>{text}</details>"
        )

    @cached_property
    def _cells(self) -> dict[int, tuple[int, int]]:
        result = self.result
        if self._board is None or result._player == CHANCE:
            return {}
        actions = result.edges["action"][self.order].tolist()
        return cells_of(result.game, result.state, actions, self._board)

    def _spots(self) -> dict[tuple[int, int], Spot]:
        share = dict(zip(self.result.edges["action"].tolist(), self._shares.tolist(), strict=True))

        def word(action: int) -> str:
            return f"{self.text(action)}: {share[action]:.1%} of the visits"

        return spots_of(self._cells, word, share, self.result._action)

    @property
    def _shares(self) -> np.ndarray:
        return self.result.edges["visits"] / self.total

    # The table.

    @cached_property
    def lines(self) -> dict[int, _Line]:
        """Variations of the most visited actions, by action."""
        result = self.result
        found = {}
        for rank, row in enumerate(self.order[:MOST_LINES]):
            action = int(result.edges["action"][row])
            if result.edges["visits"][row] == 0:
                continue
            complete = self.complete if rank < MOST_COMPLETED else None
            line = result._line(complete, begin=action)
            steps = list(shown_steps(result.game, result.state, line.actions))
            found[action] = _Line([text for text, _ in steps], line, [state for _, state in steps])
        return found

    def _columns(self) -> list[tuple[str, str]]:
        """Names and explanations of the table's columns."""
        players = range(self.result.game.num_players)
        outcome = self.result._player == CHANCE
        columns = [("outcome" if outcome else "action", ""), ("visits", ""),
                   ("share", "of all visits")]  # fmt: skip
        columns += [(f"value {i}", f"mean return for player {i}") for i in players]
        columns += [("bound", "confidence interval of the value for the player to move"),
                    ("prior", "probability before the search"),
                    ("vs prior", "share minus prior: the change by the search"),
                    ("needed", "further visits needed to be chosen instead")]  # fmt: skip
        if self._has_proofs:
            columns.append(("proven", ""))
        return columns

    @cached_property
    def _has_proofs(self) -> bool:
        return bool((~np.isnan(self.result._root["proven"])).any())

    @cached_property
    def _needed(self) -> np.ndarray:
        return visits_needed(self.result)

    def _cells_of_row(self, row: int) -> list[tuple[str, float | None, str]]:
        """Text, sort key and attributes of the cells of one row."""
        result, edge = self.result, self.result.edges[row]
        share, needed = float(self._shares[row]), float(self._needed[row])
        prior = float(edge["prior"])
        cells: list[tuple[str, float | None, str]] = [
            (escape(self.text(int(edge["action"]))), None, ""),
            (f"{edge['visits']:,}", int(edge["visits"]), ""),
            (f"{share:.1%}", share, f' class="share" style="--share:{share:.1%}"'),
        ]
        cells += [(_signed(value), float(value), "") for value in edge["q"]]
        lower, upper = float(edge["lcb"]), float(edge["ucb"])
        cells += [
            (f"{_signed(lower)} to {_signed(upper)}", lower, ""),
            (f"{prior:.3f}", prior, ""),
            (_signed(share - prior), share - prior, ""),
            (_needed_text(needed), float(np.nan_to_num(needed, nan=-1.0)), ""),
        ]  # fmt: skip
        if self._has_proofs:
            proven = result._root["proven"][row]
            values = " ".join(map(_signed, proven)) if not np.isnan(proven).any() else ""
            verdict = result._verdict(proven)
            key = 0.0 if not values else float(proven[max(0, result._player)])
            cells.append((verdict if verdict != "exact" else values, key, f' title="{values}"'))
        return cells

    def table(self) -> str:
        """The table of the actions with all their numbers, in the order of their visits."""
        if len(self.result.edges) == 0:
            return '<p class="quiet">There are no actions to choose from.</p>'
        heads = [
            f'<th scope="col"{f""" title="{note}" """ if note else ""}>'
            f'<button type="button">{name}</button></th>'
            for name, note in self._columns()
        ]
        heads[1] = heads[1].replace('scope="col"', 'scope="col" aria-sort="descending"')
        body = []
        for row in self.order[:MOST_ROWS].tolist():
            action = int(self.result.edges["action"][row])
            (name, _, _), *cells = self._cells_of_row(row)
            chosen = ' class="chosen"' if action == self.result._action else ""
            line = self.lines.get(action)
            text = "" if line is None else f"<span>{line.html()}</span>"
            title = "" if line is None else f' title="{escape(line.note())}"'
            body.append(
                f'<tr data-action="{action}"{chosen}><th scope="row">{name}</th>'
                + "".join(
                    f'<td data-key="{_key(key)}"{more}>{cell}</td>' for cell, key, more in cells
                )
                + f'<td class="line-cell"{title}>{text}</td></tr>'
            )
        hidden = len(self.result.edges) - MOST_ROWS
        more = f'<p class="quiet">… and {hidden:,} less visited ones</p>' if hidden > 0 else ""
        return (
            f'<div class="scroll"><table><thead><tr>{"".join(heads)}'
            '<th scope="col" style="text-align:left">variation</th></tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>{more}"
        )

    def plain_table(self, most: int) -> str:
        """The table for a page without a script."""
        if len(self.result.edges) == 0:
            return ""
        heads = "".join(f"<th>{name}</th>" for name, _ in self._columns())
        body = []
        for row in self.order[:most].tolist():
            cells = self._cells_of_row(row)
            weight = "bold" if self.result.edges["action"][row] == self.result._action else "normal"
            body.append(
                f'<tr style="font-weight:{weight}">'
                + "".join(f'<td style="text-align:right">{text}</td>' for text, _, _ in cells)
                + "</tr>"
            )
        hidden = len(self.result.edges) - most
        more = f"<p>… and {hidden:,} more</p>" if hidden > 0 else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"

    # The tree.

    @cached_property
    def outline(self) -> Outline:
        return outline(self.result)

    def tree_note(self) -> str:
        """Which nodes the page shows."""
        nodes = self.outline
        least = (
            f"visited at least {nodes.least_visits:,} times"
            if nodes.least_visits > 1
            else "visited"
        )
        several = len(self.result.trees)
        added = f" The {several} trees of the threads are summed." if several > 1 else ""
        shared = (nodes.same_as != NONE).any()
        cut = (
            " A state reached in several ways is expanded once; elsewhere a button leads to it."
            if shared
            else ""
        )
        loop = (
            " A node is a sequence of actions, whatever the outcomes of chance."
            if self.result.options.get("open_loop")
            else ""
        )
        return (
            f"All {len(nodes):,} nodes that were {least}. The most visited ones have their state."
            f"{added}{cut}{loop}"
        )  # fmt: skip

    # Data and notes.

    def _history(self) -> dict[str, Any]:
        """Curves of the most visited actions."""
        history, rows = self.result.history, self.order[:MOST_CURVES]
        actions = self.result.edges["action"][rows].tolist()
        return {
            "simulations": history["simulations"].tolist(),
            "actions": actions,
            "texts": [self.text(action) for action in actions],
            "visits": history["visits"][:, rows].tolist(),
            "q": np.round(history["q"][:, rows], 6).tolist(),
        }

    def data(self) -> dict[str, Any]:
        """The data of the script."""
        result = self.result
        lines = {
            action: {
                "words": line.words,
                "treeDepth": line.variation.tree_depth,
                "note": f"{self.text(action)}: {line.note()}.",
                "boards": [self.boards.number(state) for state in line.states],
            }
            for action, line in self.lines.items()
        }
        tree: dict[str, Any] = {"tree": None, "texts": []}
        if len(result.edges):
            tree = tree_data(result, self.outline, self.boards, MOST_STATES)
        return {
            "players": result.game.num_players, "toPlay": result._player, "chosen": result._action,
            "history": self._history(), "lines": lines, **tree, "boards": self.boards.texts,
        }  # fmt: skip

    def notes(self) -> str:
        """The explanations of the numbers on the page."""
        result = self.result
        needed = (
            "the further visits an action needs to be chosen instead, if it gets all of them: the "
            "gap in visits plus 1"
            if result.choice.name == "robust"
            else f"unknown with choice {result.choice.name!r}: the action depends on later values "
            "or on a draw, not on visits alone"
        )  # fmt: skip
        ending = (
            f"the {MOST_COMPLETED} most visited continue in italics to the end of the episode"
            if self.complete is not None
            else "they end where the tree ends"
        )
        notes = [
            ("value", "the mean of the returns for each player; exact if it is proven"),
            ("bound", "five standard errors below and above the value for the player to move"),
            ("prior", "the probability before the search: by the evaluator, or uniform; for an "
             "outcome of chance its probability"),
            ("needed", needed + ("; “never” if proofs exclude it" if self._has_proofs else "")),
            ("variation", "the line of the most visited actions, P0 for player 0, chance for an "
             f"outcome of chance; {ending}"),
            ("charts", f"the {min(MOST_CURVES, len(result.edges))} most visited actions at "
             f"{len(result.history)} moments of the search"),
        ]  # fmt: skip
        items = "".join(f"<dt>{name}</dt><dd>{escape(text)}.</dd>" for name, text in notes)
        return f"<dl>{items}</dl>"


def _key(value: float | None) -> str:
    """A sort key as JavaScript reads it; unknown numbers come below all others.

    >>> _key(0.25), _key(float("inf")), _key(float("nan"))
    ('0.25', 'Infinity', '-Infinity')
    """
    if value is None or math.isnan(value):
        return "-Infinity"
    return repr(float(value)) if math.isfinite(value) else f"{'-' * (value < 0)}Infinity"


def _needed_text(needed: float) -> str:
    if math.isnan(needed):
        return "unknown"
    if needed == 0:
        return "chosen"
    return "never" if math.isinf(needed) else f"{needed:,.0f}"


def _signed(number: float) -> str:
    return f"{number:+.3f}".replace("-", "\u2212")


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
