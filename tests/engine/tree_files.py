"""Files of trees of every kind, and copies of them that were changed."""

from __future__ import annotations

import uctree
from tests.forged_trees import KINDS, rewrite


def search_on(kind, tree, num_simulations=3, **more):
    return uctree.search(
        tree.game, tree.state, num_simulations=num_simulations, tree=tree, **KINDS[kind][1], **more
    )


def changed(files, kind, tmp_path, change):
    """A copy of a file whose arrays were changed; its game."""
    path, game = files[kind]
    copy = tmp_path / "forged.tree"
    copy.write_bytes(path.read_bytes())
    rewrite(copy, change)
    return copy, game


def put(name, row, value, array="edges"):
    def change(header, arrays):
        arrays[array][name][row] = value

    return change
