"""Small trees of every layout, and files of them that were changed behind the checksum."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import uctree
from uctree import games, selection
from uctree.engine import treefile


def favourites(state: Any, values: Any, logits: Any) -> None:
    logits[:] = 0.0
    logits[1] = 1.0


WIDE = selection.ucb1(c=2**0.5)  # trees that are broad

# A game and options for each layout of a tree.
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (games.tic_tac_toe, {}),
    "lazy": (lambda: games.n_in_a_row(6, 6, 4, 2), {"selection": WIDE}),
    "priors": (games.tic_tac_toe, {"evaluator": favourites}),
    "bounds": (games.tic_tac_toe, {"solver": True}),
    "vectors": (lambda: games.n_in_a_row(3, 3, 3, 3), {"solver": True}),
    "amaf": (games.tic_tac_toe, {"selection": selection.rave()}),
    "shared": (games.tic_tac_toe, {"transpositions": True}),
    "chance": (lambda: games.pig(target=12), {}),
    "shared chance": (lambda: games.pig(target=12), {"transpositions": True}),
    "outcome widening": (lambda: games.pig(target=12), {"chance": selection.outcome_widening()}),
    "open loop": (lambda: games.pig(target=12), {"open_loop": True}),
    "vector actions": (lambda: games.loss_game(dim=2), {}),
}

EXTREMES = (-(2**31), -9, -2, -1, 0, 1, 2, 3, 7, 100, 2**15, 2**31 - 2, 2**31 - 1)
NOT_NUMBERS = (float("nan"), float("inf"), -float("inf"), -1.0, 1e38)


def grow(kind: str, num_simulations: int = 120) -> uctree.Tree:
    """The tree of a search of this kind."""
    make, options = KINDS[kind]
    game = make()
    return uctree.search(game, game.start(), num_simulations=num_simulations, **options).tree


def rewrite(path: Path, change: Any) -> None:
    """Change the header and arrays of a file; the checksum is right again."""
    header, arrays = treefile.read(path)
    change(header, arrays)
    treefile.write(path, header, arrays)


def forge(arrays: dict[str, np.ndarray], chance: random.Random) -> None:
    """Set some numbers of the arrays to extremes, or to other numbers of the same array."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        name = chance.choice(("edges", "edges", "edges", "edges", "head", "table", "root_squares"))
        array = arrays[name]
        if name == "root_squares":
            arrays[name] = array[: chance.randrange(len(array) + 1)]
            continue
        field = chance.choice(array.dtype.names)
        row = chance.randrange(max(1, len(array)))
        values = array[field]
        if chance.random() < 0.4:
            row_values = values[chance.randrange(len(array))]
        elif values.dtype.kind == "f":
            row_values = chance.choice(NOT_NUMBERS)
        else:
            limits = np.iinfo(values.dtype)
            wanted = chance.choice((*EXTREMES, len(arrays["edges"]), chance.randrange(len(array))))
            row_values = min(max(wanted, limits.min), limits.max)
        values[row] = row_values  # a view
