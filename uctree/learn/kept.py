"""Networks that come with uctree, as `benchmarks/learn.py` trained them."""

from __future__ import annotations

from pathlib import Path

from uctree import treefile
from uctree.game import Game

FOLDER = Path(__file__).with_name("networks")


def kept_network(game: Game) -> Path | None:
    """The folder of the network that comes with a game, for `load`; None where there is none.

    >>> from uctree import games
    >>> kept_network(games.nim()) is None
    True
    """
    folder = FOLDER / game.name
    if not (folder / "manifest.json").exists() or treefile.find_spec(game) is None:
        return None
    return folder
