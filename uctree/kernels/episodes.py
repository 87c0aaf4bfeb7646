"""The episode of the largest return that a search for one player has seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.game import OVER
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Search
from uctree.kernels.rules import DIM, DISCOUNT, IS_CONTINUOUS

# Bound when a search is composed.
KEEPS_BEST = UNBOUND  # one player and no chance: the best episode is a plan
KEEPS_PLAYOUTS = UNBOUND  # and playouts can be repeated from the state of the rng


def note_episode(search: Search, state: Any, after: float, drawn: int) -> None:
    """Keep the path and the playout of a simulation if they are the best so far.

    Args:
        state: the last of the playout, which may have been cut short.
        after: the return from the leaf.
        drawn: the state of the rng before the playout, which repeats it.
    """
    if state.to_play != OVER:
        return
    path, work = search.path, search.work
    total = after
    for i in range(work.depth - 1, -1, -1):
        total = path[i].reward[0] + DISCOUNT * total
    if total > work.best_return:
        work.best_return = total
        work.best_drawn = drawn
        write_path(search)


@noinline
def write_path(search: Search) -> None:
    """Write the actions of the path to `best_actions`."""
    edges, path, work = search.edges, search.path, search.work
    work.best_depth = work.depth
    for i in range(work.depth):
        edge = np.int64(path[i].edge)
        if IS_CONTINUOUS:
            for j in range(DIM):
                work.best_actions[i, j] = edges[edge].vector[j]
        else:
            work.best_actions[i] = edges[edge].action
