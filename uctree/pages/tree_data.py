"""The tree of a search as data for the browser: packed arrays, and texts of actions and states."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from uctree.game import CHANCE, Game
from uctree.kernels.records import NONE
from uctree.pages.outline import Outline
from uctree.result import SearchResult


class Boards:
    """States as text, each once, until there is enough text."""

    def __init__(self, game: Game, most_characters: int) -> None:
        self.texts: list[str] = []
        self._game, self._left = game, most_characters
        self._numbers: dict[str, int] = {}

    def number(self, state: np.record) -> int:
        """The index of a state's text in `texts`; NONE if there is enough text."""
        if self._left < 0:
            return NONE
        text = self._game.show(state)
        if text not in self._numbers:
            self._left -= len(text)
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def tree_data(
    result: SearchResult, nodes: Outline, boards: Boards, most_states: int
) -> dict[str, Any]:
    """The nodes of an outline as `outline.js` reads them, and the texts of their actions.

    Args:
        most_states: how many nodes, the most visited ones, have their state.
    """
    states = _replayed(result, nodes, most_states)
    texts, which = _texts(result, nodes, states)
    known = [
        [node, boards.number(state), player_name(result.game.to_play(state))]
        for node, state in states.items()
    ]
    data: dict[str, Any] = {
        "size": len(nodes), "parent": packed(nodes.parent, np.int32),
        "action": packed(nodes.action, np.int32), "visits": packed(nodes.visits, np.float64),
        "q": packed(nodes.q, np.float32), "text": packed(which, np.int32), "known": known,
    }  # fmt: skip
    if not np.isnan(nodes.prior).all():
        data["prior"] = packed(nodes.prior, np.float32)
    if not np.isnan(nodes.proven).all():
        data["proven"] = packed(nodes.proven, np.float32)
    if (nodes.same_as != NONE).any():
        data["sameAs"] = packed(nodes.same_as, np.int32)
    return {"tree": data, "texts": texts}


def player_name(player: int) -> str:
    """Who is to move, in words."""
    return {CHANCE: "chance"}.get(
        player, f"player {player}" if player >= 0 else "the episode is over"
    )


def encoded(raw: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(raw).decode("ascii")


def packed(array: np.ndarray, dtype: Any) -> str:
    """The bytes of an array as base64, from which the script makes a typed array."""
    little = np.dtype(dtype).newbyteorder("<")
    return encoded(np.ascontiguousarray(array, little).tobytes())


def _replayed(result: SearchResult, nodes: Outline, most_states: int) -> dict[int, np.record]:
    """The states of the most visited nodes; in an open loop up to the first chance state."""
    game = result.game
    open_loop = bool(result.options.get("open_loop"))
    states = {0: result.state}
    order = np.argsort(-nodes.visits, kind="stable")[: most_states + 1]
    for node in sorted(order.tolist()):
        parent = states.get(int(nodes.parent[node]))
        if node == 0 or parent is None:
            continue
        if open_loop and (
            game.to_play(parent) == CHANCE or nodes.action[node] not in game.legal(parent)
        ):
            continue
        states[node], _ = game.step(parent, int(nodes.action[node]))
    return states


def _texts(
    result: SearchResult, nodes: Outline, states: dict[int, np.record]
) -> tuple[list[str], np.ndarray]:
    """Texts of actions, and the index of each node's text; NONE if only the number is known.

    The texts of actions in replayed states are exact. Elsewhere an action has the text it has in
    those states, if that is always the same.
    """
    game, open_loop = result.game, bool(result.options.get("open_loop"))
    exact = {
        node: game.show_action(states[parent], action)
        for node, (parent, action) in enumerate(
            zip(nodes.parent.tolist(), nodes.action.tolist(), strict=True)
        )
        # The nodes below chance follow an outcome, which an open-loop tree lacks.
        if parent in states and not (open_loop and game.to_play(states[parent]) == CHANCE)
    }
    seen: dict[int, set[str]] = {}
    for node, text in exact.items():
        seen.setdefault(int(nodes.action[node]), set()).add(text)
    texts = sorted(set(exact.values()))
    number = {text: i for i, text in enumerate(texts)}
    always = {action: number[min(each)] for action, each in seen.items() if len(each) == 1}
    found, where = np.unique(nodes.action, return_inverse=True)
    which = np.array([always.get(action, NONE) for action in found.tolist()])[where]
    for node, text in exact.items():
        which[node] = number[text]
    return texts, which
