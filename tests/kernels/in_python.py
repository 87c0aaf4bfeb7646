"""Kernels as plain Python, and what they are given in a search of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.engine import compose, workspace
from uctree.engine.compile import bind
from uctree.engine.options import resolve
from uctree.game import StateViews, make_rng
from uctree.kernels.context import Search
from uctree.tree import Tree


def bound(kernel, tree, **options):
    """A kernel of a search of this tree with these options."""
    resolved = resolve(tree.game, **options)
    return bind(kernel, compose.bindings(tree.game, resolved, tree.layout))


def given_to(tree: Tree, **options: Any) -> Search:
    """What the kernels of a search of this tree are given; its queue and lock are missing."""
    game, resolved = tree.game, resolve(tree.game, **options)
    arrays = workspace.arrays_of(game, resolved, tree.layout)
    work = workspace.Workspace(game, resolved, arrays, tree.state)
    key_bytes, key_words = work.key_views
    return Search(
        tree=tree.head.view(np.recarray)[0], edges=tree.edges.view(np.recarray),
        root_squares=tree.root_squares, table=tree.table, untried=None, untried_actions=None,
        queue=None,
        path=np.zeros(work.max_depth, arrays.path).view(np.recarray),
        work=work.work.view(np.recarray)[0], states=StateViews(work.states), key_bytes=key_bytes,
        key_words=key_words, key_ranges=work.key_ranges, rng=make_rng(1), lock=None,
        data=game.data,
    )  # fmt: skip
