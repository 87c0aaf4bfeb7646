"""What a tab is shown: a position, the candidates of a search, a variation, a tree."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree import specs
from uctree.comparison import compare
from uctree.engine.history import Sample
from uctree.engine.options import resolve
from uctree.engine.scores import Decision, EdgeScore, decisions, earlier_decision
from uctree.errors import UctreeError
from uctree.game import CHANCE, Game
from uctree.pages.board import Cell, Spot, cells_of, draw, read_board, shading, spots_of
from uctree.pages.outline import outline
from uctree.pages.result_page import page
from uctree.pages.tree_data import Boards, encoded, player_name, tree_data
from uctree.result import SearchResult
from uctree.studio.episode import StudioEpisode
from uctree.studio.thinking import names_of, turns
from uctree.variation import shown_steps

MOST_ACTIONS = 500  # that are listed
MOST_ROWS = 60  # candidates of a frame
MOST_CURVES = 8
MOST_PLIES_SHOWN = 16  # of a variation
MOST_BYTES_SAVED = 50_000_000  # of a tree that is sent as a file
MOST_BOARD_CHARACTERS = 200_000  # of the states in a tree


class Pace:
    """How often something expensive is done: at most so often, and for a share of the time."""

    def __init__(self, seconds: float, share: float) -> None:
        self._seconds, self._share = seconds, share
        self._next = self._began = self._spent = 0.0

    def is_due(self) -> bool:
        """Whether it is time to do it; then `done` is to be called afterwards."""
        self._began, self._spent = time.perf_counter(), time.thread_time()
        return self._began >= self._next

    def done(self) -> None:
        """Note how long it took this thread; on busy cores others may have run meanwhile.

        If many tabs search, each of them gets its share of a core only.
        """
        spent = (time.thread_time() - self._spent) * turns.crowd
        self._next = self._began + max(self._seconds, spent / self._share)

    def hurry(self) -> None:
        """Let it be due at once."""
        self._next = 0.0


@dataclass(frozen=True)
class View:
    """The position that a tab is shown: its drawing, and the texts of its actions."""

    game: Game
    state: np.record
    actions: dict[int, str]  # their texts, those of outcomes at chance; empty for vectors
    drawing: str | None  # an SVG; None if the text has no form that can be drawn
    spots: dict[Cell, Spot]
    fault: str = ""  # why the rules of the game fail in this state

    def content(self) -> dict[str, Any]:
        """The fields of the message."""
        game, state = self.game, self.state
        if self.fault:
            fields = "\n".join(f"{name}: {state[name]}" for name in game.dtype.names or ())
            return {"text": fields, "board": None, "actions": [], "more": 0, "cells": [],
                    "fault": self.fault}  # fmt: skip
        found: dict[str, Any] = {
            "fault": "",
            "text": game.show(state),
            "board": self.drawing,
            "actions": list(self.actions.items())[:MOST_ACTIONS],
            "more": max(0, len(self.actions) - MOST_ACTIONS),
            "cells": [[spot.action, list(spot.actions)] for spot in self.spots.values()],
        }
        if game.is_continuous and not game.is_over(state):
            low, high = game.box(state)
            found["box"] = [low.tolist(), high.tolist()]
        if game.to_play(state) == CHANCE:
            found["chances"] = game.outcomes(state)
        return found


def view_of(game: Game, state: np.record) -> View:
    """The view of a state; its cells can be clicked to act.

    If the rules of a game fail in the state, the view says why.
    """
    try:
        view = _view_of(game, state)
        view.content()
    except Exception as error:  # rules of a user may fail in any way
        return View(game, state, {}, None, {}, f"{specs.place(error)}{specs.reason(error)}")
    return view


def _view_of(game: Game, state: np.record) -> View:
    actions: dict[int, str] = {}
    if not game.is_continuous:
        actions = {action: game.show_action(state, action) for action in game.legal(state)}
    board = read_board(game, state)
    if board is None:
        return View(game, state, actions, None, {})
    cells = {} if game.to_play(state) == CHANCE else cells_of(game, state, actions, board)
    spots = spots_of(cells, lambda action: actions[action])
    return View(game, state, actions, draw(board, spots, "the board"), spots)


def episode_content(episode: StudioEpisode) -> dict[str, Any]:
    """The fields of a position that tell of the episode."""
    return {
        "players": episode.game.num_players,
        "ply": episode.ply,
        "toPlay": episode.to_play,
        "who": player_name(episode.to_play),
        "over": episode.is_over,
        "resigned": episode.resigned,
        "returns": episode.returns(),
        "words": episode.words,
        "values": episode.values,
    }


def candidates(result: SearchResult, view: View) -> dict[str, Any]:
    """The fields of a frame: what the search thinks of each action."""
    edges, names = result.edges, names_of(result)
    visits = edges["visits"]
    total = max(1, int(visits.sum()))
    order = np.lexsort((np.arange(len(edges)), -visits))[:MOST_ROWS].tolist()
    return {
        "value": result.value.tolist(),
        "solved": result.solved is not None,
        "chosen": None if result.action is None else name_of(result, result.action),
        "more": max(0, len(edges) - MOST_ROWS),
        "rows": [
            {
                "action": names[row],
                "text": text_of(result, view, row),
                "visits": int(visits[row]),
                "share": float(visits[row] / total),
                "q": edges["q"][row].tolist(),
                "low": float(edges["lcb"][row]),
                "high": float(edges["ucb"][row]),
                "prior": float(edges["prior"][row]),
                "proven": _proven(result, row),
            }
            for row in order
        ],
        "shades": _shades(view, dict(zip(names, (visits / total).tolist(), strict=True))),
    }


def name_of(result: SearchResult, action: Any) -> int:
    """The number by which a tab knows an action of the root."""
    same = result.edges["action"] == action
    row = np.flatnonzero(same if same.ndim == 1 else same.all(axis=1))[0]
    return names_of(result)[int(row)]


def text_of(result: SearchResult, view: View, row: int) -> str:
    """The text of the action of a row of the root's edges."""
    action = result.edges["action"][row]
    known = None if result.game.is_continuous else view.actions.get(int(action))
    return result.game.show_action(result.state, action) if known is None else known


def _proven(result: SearchResult, row: int) -> list[float] | None:
    if "proven" not in (result.edges.dtype.names or ()):
        return None
    values = result.edges["proven"][row]
    return None if np.isnan(values).any() else values.tolist()


def _shades(view: View, share: dict[int, float]) -> list[tuple[int, float, str]]:
    """For each cell with actions: its action, the opacity of its shade, and the share as text."""
    shares = [sum(share.get(a, 0.0) for a in spot.actions) for spot in view.spots.values()]
    most = max(shares, default=0.0)
    return [
        (spot.action, *shading(each, most))
        for spot, each in zip(view.spots.values(), shares, strict=True)
    ]


def curves(result: SearchResult) -> list[int]:
    """The rows of the root's edges whose history is drawn, the most visited first."""
    order = np.lexsort((np.arange(len(result.edges)), -result.edges["visits"]))
    rows: list[int] = order[:MOST_CURVES].tolist()
    return rows


def variation(result: SearchResult, view: View, name: int) -> dict[str, Any] | None:
    """The variation that begins with an action, with the board after every ply; None if unknown."""
    names = names_of(result)
    if name not in names or result.edges["visits"][names.index(name)] == 0:
        return None
    row = names.index(name)
    line = result._line(begin=result.edges["action"][row])
    actions = line.actions[:MOST_PLIES_SHOWN]
    steps = list(shown_steps(result.game, result.state, actions))
    more = line.depth - len(actions)
    end = f"; {more} more are not shown" if more else ""
    return {
        "action": name,
        "words": [word for word, _ in steps],
        "treeDepth": len(steps),
        "note": f"{text_of(result, view, row)}: {line.depth} plies from the tree{end}.",
        "boards": list(range(len(steps))),
        "drawings": [drawing_of(result.game, state) for _, state in steps],
        "texts": [result.game.show(state) for _, state in steps],
    }


def drawing_of(game: Game, state: np.record) -> str | None:
    """The board of a state as an SVG; None if its text has no form that can be drawn."""
    board = read_board(game, state)
    return None if board is None else draw(board, {}, "the board")


def reasons(
    result: SearchResult, options: dict[str, Any], actions: Sequence[int],
    sample: Sample | None = None, before: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """The terms of the scores at the node after some actions, as the kernel computes them.

    Args:
        options: of the search, as it was begun.
        sample: explain the root at this moment of the search instead.
        before: the simulations of the tree when the search began.
    """
    game, tree = result.game, result.tree
    resolved = resolve(game, **options)
    if sample is None:
        found = decisions(tree, resolved, actions)
    else:
        found = [earlier_decision(tree, resolved, sample, before)]
    if not found:
        return {"path": [], "edges": [], "note": "this node has no actions with visits yet"}
    words, state = list[str](), tree.state
    for action, decision in zip(actions, found[1:], strict=False):
        named = action if not game.is_continuous else found[len(words)].edges[action].action
        words.append(next(shown_steps(game, state, [named]))[0])
        state = decision.state
    last = found[-1]
    return {
        "path": list(zip(actions, words, strict=False)),
        "who": player_name(last.player),
        "visits": last.visits,
        "value": last.value,
        "rule": last.rule,
        "untried": last.untried,
        "taken": last.taken,
        "note": last.note,
        "edges": [_reason(game, last, edge) for edge in last.edges][:MOST_ACTIONS],
    }


def _reason(game: Game, decision: Decision, edge: EdgeScore) -> dict[str, Any]:
    """The fields of one edge; `action` is its number for a tab."""
    text = "each other action"
    if edge.action is not None:
        text = game.show_action(decision.state, edge.action)
    return {
        "action": edge.place if game.is_continuous else edge.action,
        "text": text,
        "taken": edge.place == decision.taken,
        "visits": edge.visits,
        "value": edge.value if edge.visits else None,
        "mixed": edge.mixed,
        "prior": edge.prior,
        "q": edge.q,
        "bonus": edge.bonus,
        "score": edge.score,
        "neededValue": edge.needed_value,
        "neededSimulations": edge.needed_simulations,
    }


def comparison(
    kept: SearchResult, kept_name: str, result: SearchResult, name: str
) -> dict[str, Any]:
    """The differences of two searches of a state, as `compare` finds them."""
    found = compare(kept, result, (kept_name, name))
    player = max(0, result.tree.root.to_play)
    return {
        "names": [kept_name, name],
        "simulations": [kept.tree.simulations, result.tree.simulations],
        "chosen": [_chosen_text(each) for each in (kept, result)],
        "totalVariation": found.total_variation,
        "valueDifference": found.value_difference.tolist()[player],
        "rows": [
            {
                "text": result.game.show_action(result.state, row["action"]),
                "visits": row["visits"].tolist(),
                "share": row["share"].tolist(),
                "q": row["q"][:, player].tolist(),
            }
            for row in found.edges[:MOST_ROWS]
        ],
    }


def _chosen_text(result: SearchResult) -> str:
    return "" if result.action is None else result.game.show_action(result.state, result.action)


def saved(result: SearchResult, what: str) -> tuple[str, str]:
    """The name of a file and its bytes as base64: the page of a result, or its tree."""
    if what == "page":
        return file_of(result.game, "html", page(result))
    if result.tree.num_bytes > MOST_BYTES_SAVED:
        raise UctreeError(
            f"the tree has {result.tree.num_bytes:,} bytes, and the studio sends at most "
            f"{MOST_BYTES_SAVED:,}; save it with uctree search --save-tree"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree"
        result.tree.save(path)
        return file_of(result.game, "tree", path.read_bytes())


def file_of(game: Game, suffix: str, content: str | bytes) -> tuple[str, str]:
    """The name of a file about a game, and its bytes as base64."""
    name = "".join(each if each.isalnum() else "_" for each in game.name)[:50]
    raw = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return f"{name}.{suffix}", encoded(raw)


def tree_content(
    result: SearchResult, most_nodes: int, most_states: int, least_visits: int | None = None
) -> dict[str, Any]:
    """The tree as the page of a result has it.

    Args:
        least_visits: as in `outline`.
    """
    nodes = outline(result, most_nodes, least_visits)
    boards = Boards(result.game, MOST_BOARD_CHARACTERS)
    return tree_data(result, nodes, boards, most_states) | {
        "boards": boards.texts,
        "nodes": len(nodes),
        "leastVisits": nodes.least_visits,
    }
