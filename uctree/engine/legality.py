"""Whether a tree from a file has only actions that the rules allow, found by replaying it."""

from __future__ import annotations

import numpy as np

from uctree.engine.bindings import action_array, bound_rule
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.recent import MOST_KERNELS, table_of
from uctree.engine.workspace import key_ranges, key_views
from uctree.errors import UctreeError
from uctree.game import Game, StateViews
from uctree.kernels.legality import ALL_LEGAL, NEED_DEPTH, Walk, find_illegal
from uctree.kernels.records import NONE
from uctree.tree import Layout, Tree

FIRST_DEPTH = 256


def check_actions(tree: Tree) -> None:
    """Raise a UctreeError if an edge of the tree has an action that is not legal.

    Rules that are given an illegal action may do anything, so they are compiled with bounds checks.
    """
    if tree.layout.dim:
        return  # vectors were compared with the space on loading
    if tree.layout.open_loop:  # every visit of a node compares its edges with the legal actions
        wrong = int(tree.edges["action"].max())
        if wrong >= tree.game.num_actions:
            raise _forged(tree, f"the action {wrong} of {tree.game.num_actions}")
        return
    walk, found = _walked(tree)
    if found != ALL_LEGAL:
        action = int(tree.edges["action"][found])
        raise _forged(tree, f"a node (record {found}, after action {action}) that the rules do not "
                            "allow")  # fmt: skip
    nodes = tree.table["node"]
    entered = nodes[nodes != NONE] if tree.layout.shared else nodes[:0]
    keys = tree.table["key"][nodes != NONE][: len(entered)]
    is_same = (walk.keys[entered] == keys).all(axis=1) if len(entered) else np.ones(0, bool)
    bare = tree.edges["first"][entered] == NONE
    if not (is_same | (bare & ~walk.is_done[entered])).all():
        raise _forged(tree, "a node under the key of another state")


def _forged(tree: Tree, what: str) -> UctreeError:
    return UctreeError(
        f"the tree from the file has {what}: it was not grown by the rules of {tree.game.name}. "
        "Search without tree="
    )


def _walked(tree: Tree) -> tuple[Walk, int]:
    """The walk through a tree, and what `find_illegal` returned."""
    depth = FIRST_DEPTH
    while True:
        walk = _walk(tree, min(depth, len(tree.edges)) + 1)
        kernel = _kernel(tree.game, tree.layout, walk)
        if kernel.interpreted:
            call = walk._replace(edges=walk.edges.view(np.recarray), states=StateViews(walk.states))
        else:
            call = walk
        try:
            with np.errstate(over="ignore"):
                found = int(kernel.run(call))
        except Exception as error:  # rules may fail in any way on a forged state
            raise _forged(tree, f"a state on which the rules fail ({error})") from error
        if found != NEED_DEPTH:
            return walk, found
        depth *= 4


def _walk(tree: Tree, depth: int) -> Walk:
    """The memory of a walk along paths of this many nodes."""
    game, size = tree.game, len(tree.edges)
    states = np.zeros(depth, game.dtype)
    states[0] = tree.state
    key_bytes, key_words = key_views(states)
    return Walk(
        edges=tree.edges, states=states, path=np.zeros((depth, 2), np.int64),
        is_done=np.zeros(size, bool),
        keys=np.zeros((size if tree.layout.shared else 0, 2), np.uint64),
        actions=action_array(game), probabilities=np.zeros(game.max_outcomes + 1024),
        reward=np.zeros(game.num_players), stamps=np.zeros(game.num_actions, np.int64),
        num_nodes=np.zeros(1, np.int64), key_bytes=key_bytes, key_words=key_words,
        key_ranges=key_ranges(game), data=game.data,
    )  # fmt: skip


def _kernel(game: Game, layout: Layout, walk: Walk) -> Kernel:
    """The kernel of `find_illegal` for trees of this layout, with bounds checks."""
    known, key = table_of(game, "legality", MOST_KERNELS), (layout, interpreted())
    kernel: Kernel | None = known.get(key)
    if kernel is None or kernel.is_stale:
        bound = layout.bindings() | {
            "NUM_PLAYERS": game.num_players,
            "NUM_ACTIONS": game.num_actions,
            "MAX_OUTCOMES": game.max_outcomes,
            "GUARD_AT": max(game.num_actions, game.max_outcomes),
            "HAS_CHANCE": game.rules.chance is not None,
        }
        for name in ("legal", "step", "chance"):
            bound[name] = bound_rule(game, name)
        label = f"{game.name}: legality of trees"
        kernel = compile_kernel(find_illegal, bound, (walk,), label=label, debug=True)
        known.put(key, kernel)
    return kernel
