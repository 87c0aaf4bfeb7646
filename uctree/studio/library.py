"""The games of a studio: those that come with uctree, and the one it was started with."""

from __future__ import annotations

import inspect
import threading

from uctree import specs
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.studio.workshop import Workshop

# Boards of other sizes than the default, and more players. Others are given on the command line: a
# tab cannot choose arguments, because some of them need more memory than there is.
VARIANTS = (
    "connect_four:rows=5,cols=5",
    "go:size=5",
    "go:size=9,playouts='heuristic'",
    "hex:size=5",
    "hex:size=7",
    "n_in_a_row:rows=7,cols=7,length=4",
    "n_in_a_row:rows=5,cols=5,length=3,num_players=3",
    "pig:target=30",
    "pig:target=30,num_players=3",
)


class Library:
    """Makes every game once, so that sessions share what was compiled for it."""

    def __init__(self, given: str | None = None) -> None:
        """
        Args:
            given: the text of the game that the studio was started with.
        """
        self._lock = threading.Lock()
        self.workshop: Workshop | None = None  # if the given game is a file
        self._made: dict[str, Game] = {}
        self.texts = sorted([*specs.built_in(), *VARIANTS])
        self.first = "tic_tac_toe"
        if given is not None:
            self.first = given
            self.texts = [given, *(text for text in self.texts if text != given)]
            if specs.is_file(given):
                self.workshop = Workshop(given)
            else:
                self.game(given)

    def game(self, text: str) -> Game:
        """The game of one of `texts`."""
        if text not in self.texts:
            raise UctreeError(
                f"this studio has no game {text[:100]!r}; {specs.meant(text[:100], self.texts)}"
                "start another one with: uctree studio GAME"
            )
        if self.workshop is not None and text == self.workshop.text:
            return self.workshop.game()
        with self._lock:
            if text not in self._made:
                self._made[text] = specs.read_game(text)
            return self._made[text]

    def about(self) -> list[dict[str, str]]:
        """The text of every game and a line about it, for the menu."""
        return [{"game": text, "about": _about(text)} for text in self.texts]


def _about(text: str) -> str:
    name, _ = specs.split_call(text)
    factory = None if specs.is_file(text) else specs.built_in().get(name)
    return "" if factory is None else (inspect.getdoc(factory) or "").partition("\n")[0]
