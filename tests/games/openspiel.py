"""Games of OpenSpiel beside ours: sequences counted, and recorded episodes played again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.perft import Recorded
from uctree import CHANCE


def load_game(name: str) -> Any:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    return pyspiel.load_game(name)


def spiel_legal(state: Any) -> list[int]:
    """The legal actions or outcomes of a state of OpenSpiel."""
    if state.get_game().get_type().short_name != "2048" or state.is_chance_node():
        return state.legal_actions()
    # OpenSpiel 2.0.2 lists no move that merges into a tile the move before has merged, although it
    # makes such a move as it should. So a move is legal here if it changes the board.
    if state.is_terminal():
        return []
    return [action for action in range(4) if str(state.child(action)) != str(state)]


def spiel_perft(state: Any, depth: int) -> int:
    actions = spiel_legal(state)
    if depth == 1:
        return len(actions)
    return sum(spiel_perft(state.child(action), depth - 1) for action in actions)


def follow(recorded: Recorded, spiel: Any, rewards: np.ndarray | None = None) -> None:
    """Play a recorded episode in OpenSpiel, and compare at every ply.

    Args:
        rewards: what OpenSpiel pays at each ply; the recorded rewards by default.
    """
    # OpenSpiel's rewards after a chance ply are those of the ply before, its returns are not.
    paid = recorded.rewards if rewards is None else rewards
    returns = np.cumsum(paid, axis=0).tolist()
    for ply, action in enumerate(recorded.actions):
        assert not spiel.is_terminal()
        assert spiel.current_player() == recorded.players[ply]
        if recorded.players[ply] == CHANCE:
            outcomes, probabilities = zip(*spiel.chance_outcomes(), strict=True)
            assert recorded.choices[ply] == list(outcomes)
            assert almost_equal(recorded.probabilities[ply], probabilities)
        else:
            assert sorted(recorded.choices[ply]) == spiel_legal(spiel)
        spiel.apply_action(action)
        assert almost_equal(returns[ply], spiel.returns())
    assert spiel.is_terminal()


def almost_equal(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    # pytest.approx would take half the time of these tests.
    return all(abs(a - b) < 1e-12 for a, b in zip(ours, theirs, strict=True))


class Translated:
    """A state of OpenSpiel whose actions are ours.

    Args:
        actions: ours to theirs, of a state; several of theirs if they split one of ours.
    """

    def __init__(self, state: Any, actions: Callable[[Any], dict[int, tuple[int, ...]]]) -> None:
        self.state = state
        self.actions = actions

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def legal_actions(self) -> list[int]:
        return sorted(self.actions(self.state))

    def apply_action(self, action: int) -> None:
        for theirs in self.actions(self.state)[action]:
            self.state.apply_action(theirs)

    def child(self, action: int) -> Translated:
        child = Translated(self.state.clone(), self.actions)
        child.apply_action(action)
        return child


def breakthrough_actions(state: Any) -> dict[int, tuple[int, ...]]:
    """Theirs are `12 * cell + 2 * direction + capture`, player 1 has directions 3 to 5."""
    return {3 * (theirs // 12) + theirs // 2 % 3: (theirs,) for theirs in state.legal_actions()}


def ultimate_actions(state: Any) -> dict[int, tuple[int, ...]]:
    """Theirs are cells of one board; a board is an action of its own where the player has it."""
    found = {}
    for theirs in state.legal_actions():
        text = state.action_to_string(state.current_player(), theirs)
        board = int(re.findall(r"\d+", text)[0])
        cells = state.child(theirs).legal_actions() if text.startswith("Choose") else [theirs]
        for cell in cells:
            row, col = 3 * (board // 3) + cell // 3, 3 * (board % 3) + cell % 3
            found[9 * row + col] = (theirs, cell) if text.startswith("Choose") else (cell,)
    return found


def checkers_actions(state: Any) -> dict[int, tuple[int, ...]]:
    """Theirs are `8 * (8 * row + col) + 2 * direction + capture`."""
    return {theirs // 2: (theirs,) for theirs in state.legal_actions()}


def kalah_actions(state: Any) -> dict[int, tuple[int, ...]]:
    """Theirs are places: pits 1 to 6 of player 0, and 8 to 13 of player 1."""
    first = (1, 8)[state.current_player()] if not state.is_terminal() else 0
    return {theirs - first: (theirs,) for theirs in state.legal_actions()}
