"""The games that are tested, by the call that makes each, and their compiled rules."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import uctree.games
from tests.perft import CompiledGame
from uctree import Game
from uctree.games import backgammon, breakthrough, checkers, chess, dots_and_boxes, go, hex, othello


@dataclass(frozen=True)
class Variant:
    """A game with its parameters, and the number of episodes that its rules are compared on."""

    factory: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    num_episodes: int = 20

    def make(self) -> Game:
        return self.factory(**self.parameters)

    def compiled(self) -> CompiledGame:
        return compiled(self.factory, **self.parameters)


@functools.cache
def compiled(factory: Any, **parameters: Any) -> CompiledGame:
    """A game whose rules are compiled once for all tests of a process."""
    return CompiledGame(factory(**parameters))


# Games whose actions are vectors are tested in tests/continuous.
DISCRETE = [
    name for name in uctree.games.__all__ if not getattr(uctree.games, name)().is_continuous
]

BOARDS = {
    "othello": Variant(othello),
    "othello_6x6": Variant(othello, {"size": 6}),
    "othello_4x4": Variant(othello, {"size": 4}),
    "breakthrough": Variant(breakthrough),
    "breakthrough_5x4": Variant(breakthrough, {"rows": 5, "cols": 4}),
    "breakthrough_6x10": Variant(breakthrough, {"rows": 6, "cols": 10}),
    "hex": Variant(hex),
    "hex_3x3": Variant(hex, {"size": 3}),
    "hex_19x19": Variant(hex, {"size": 19}, num_episodes=3),
}

VARIANTS = {
    **{name: Variant(getattr(uctree.games, name)) for name in DISCRETE},
    # Long episodes, and plain Python is slow on bits.
    "backgammon": Variant(backgammon, num_episodes=2),
    "checkers": Variant(checkers, num_episodes=6),
    "chess": Variant(chess, num_episodes=1),
    **BOARDS,
    "dots_and_boxes": Variant(dots_and_boxes, num_episodes=30),
    "dots_and_boxes_win": Variant(dots_and_boxes, {"pays": "win"}, num_episodes=30),
    "dots_and_boxes_5x5": Variant(
        dots_and_boxes, {"rows": 5, "cols": 5, "pays": "win"}, num_episodes=30
    ),
    "go_3x3": Variant(go, {"size": 3}, num_episodes=40),
}
