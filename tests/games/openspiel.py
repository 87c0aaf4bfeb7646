"""Games of OpenSpiel beside ours: sequences counted, and recorded episodes played again."""

from __future__ import annotations

from collections.abc import Sequence
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


class SpielBreakthrough:
    """A state of OpenSpiel's breakthrough whose actions are ours."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def actions(self) -> dict[int, int]:
        """Ours to theirs: `12 * cell + 2 * direction + capture`, player 1 has directions 3 to 5."""
        return {
            3 * (theirs // 12) + theirs // 2 % 3: theirs for theirs in self.state.legal_actions()
        }

    def legal_actions(self) -> list[int]:
        return sorted(self.actions())

    def apply_action(self, action: int) -> None:
        self.state.apply_action(self.actions()[action])
