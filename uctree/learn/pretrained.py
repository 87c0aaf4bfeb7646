"""Pretrained networks that come with uctree; `benchmarks/learn.py` trained them."""

from __future__ import annotations

from pathlib import Path

from uctree.engine.identity import find_spec
from uctree.game import Game

FOLDER = Path(__file__).with_name("networks")


def pretrained_network(game: Game) -> Path | None:
    """The folder of the pretrained network of a game, for `load`; None if uctree has none.

    >>> from uctree import games
    >>> pretrained_network(games.nim()) is None
    True
    """
    folder = FOLDER / game.name
    if not (folder / "manifest.json").exists() or find_spec(game) is None:
        return None
    return folder
