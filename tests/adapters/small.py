"""Built-in games that are small enough for the checks of other libraries."""

from __future__ import annotations

from uctree import games

SMALL = {"go": {"size": 5}, "hex": {"size": 4}, "n_in_a_row": {"rows": 5, "cols": 5, "length": 4},
         "pig": {"target": 20}}  # fmt: skip
VECTORS = ("leap", "loss_game", "point_mass")
NAMES = [name for name in games.__all__ if name not in VECTORS]


def built_in(name):
    return getattr(games, name)(**SMALL.get(name, {}))


def last_legal(game, state, rng):
    """An opponent that takes the last of its actions."""
    return game.legal(state)[-1]
