"""Whether a tree from a file can be searched: all that kernels index with is checked here.

A checksum tells that a file was damaged, not that it was forged, and kernels trust a tree. Actions
that the rules do not allow below the root are found by `engine.legality`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from uctree.game import Box, Game
from uctree.kernels.records import (
    EXACT,
    FIRST_BLOCK,
    LAZY_ABOVE,
    MAX_DEPTH,
    MOST_VISITS,
    NONE,
)

LEAST_TABLE = 256  # places in the table of shared nodes


def fault_of(tree: Any, fresh_head: np.ndarray) -> str:
    """What is wrong with a tree from a file; "" if kernels can search it.

    Args:
        fresh_head: the head of an empty tree of the same game and state.
    """
    for check in (_head_faults, _range_faults, _root_faults, _table_faults, _link_faults):
        for is_wrong, fault in check(tree, fresh_head):
            if is_wrong:
                return fault
    return ""


_Faults = Iterator[tuple[Any, str]]


def _head_faults(tree: Any, fresh_head: np.ndarray) -> _Faults:
    """Faults of the tree's own data; a field is checked before another is read with it."""
    yield len(tree.head) != 1, f"it has {len(tree.head)} heads"
    head, fresh = tree.head[0], fresh_head[0]
    used = len(tree.edges)
    yield used < 1 or head["used"] != used, f"it counts {head['used']} records and has {used}"
    for name, most in (
        ("simulations", MOST_VISITS), ("since_root", head["simulations"]),
        ("depth_sum", MAX_DEPTH * head["simulations"]), ("evaluations", 2**62), ("num_untried", 0),
        ("num_nodes", used),
    ):  # fmt: skip
        yield not 0 <= head[name] <= most, f"its {name} is {head[name]}; expected 0 to {most}"
    for name in ("root_player", "least", "most", "repetition"):
        same = np.array_equal(head[name], fresh[name])
        yield not same, f"its {name} is {head[name]}; the game's is {fresh[name]}"
    ranges = [head["low"], head["high"]]
    is_range = not np.isnan(ranges).any() and np.isfinite(head["factor"]).all()
    yield not is_range, "its range of returns has no numbers"


def _range_faults(tree: Any, _: np.ndarray) -> _Faults:
    """Fields of records that are out of range."""
    game, layout, used = tree.game, tree.layout, len(tree.edges)
    num_actions = game.num_actions
    widest = used if layout.dim else max(num_actions, game.max_outcomes)
    most_action = used if layout.dim else num_actions - 1
    ranges = {
        "visits": (0, MOST_VISITS),
        "first": (NONE, used - 1),
        "action": (0, np.iinfo(np.int32).max if game.max_outcomes else most_action),
        "num_edges": (0, widest),
        "num_legal": (0, num_actions),
        "amaf_visits": (0, MOST_VISITS),
        "proof": (0, EXACT),
        "node": (NONE, used - 1),
        "node_visits": (0, MOST_VISITS),
        "cycles": (0, MOST_VISITS),
        "pending": (0, 0),
    }
    for name, (least, most) in ranges.items():
        if name in tree.edges.dtype.names:
            values = np.ascontiguousarray(tree.edges[name])
            low, high = values.min(), values.max()
            wrong = low if low < least else high
            yield (
                not least <= wrong <= most,
                f"the {name} of an edge is {wrong}; expected {least} to {most}",
            )
    yield (tree.edges["first"] == 0).any(), "the root is the edge of a node"
    if not layout.shared:
        held = int(tree.head["simulations"][0])
        most = tree.edges["visits"].max()
        yield most > held + 1, f"an edge has {most} visits, and the tree {held} simulations"


def _root_faults(tree: Any, _: np.ndarray) -> _Faults:
    """Arrays beside the edges of the root that do not fit them, and actions that are not legal."""
    layout, root, noise = tree.layout, tree.edges[0], tree.root_noise
    is_noise = noise is None or (noise.ndim == 1 and noise.dtype == np.float64)
    yield not is_noise, "its root_noise is not one row of numbers"
    values = root["value_sum"].shape[0]
    rows, columns = tree.root_squares.shape
    yield columns != values, f"its root_squares have {columns} columns; expected {values}"
    if layout.dim or tree.game.is_over(tree.state):
        yield rows < 1, "its root_squares have no rows"
        return
    choices, span = set(tree.game.legal(tree.state)), tree.root.edges
    actions = set(tree.edges["action"][span.start : span.stop].tolist())
    needed = len(choices)
    if layout.appends:  # a node may have edges of several states, and gets those of this one
        needed = len(span) + len(choices - actions)
    elif root["first"] != NONE:
        needed = int(max(root["num_edges"], root["num_legal"] if layout.lazy else 0))
    yield rows < needed, f"its root_squares have {rows} rows; expected {needed} or more"
    if not layout.appends:
        illegal = actions - choices
        yield illegal, f"its root has the actions {sorted(illegal)[:5]}, which are not legal"


def _table_faults(tree: Any, _: np.ndarray) -> _Faults:
    """Faults of the hash table of shared nodes, which is never full."""
    table, used = tree.table, len(tree.edges)
    nodes, size = table["node"], len(tree.table)
    if not tree.layout.shared:
        yield size != 1 or nodes[0] != NONE, "it has a table of nodes, and nodes are not shared"
        return
    count = np.count_nonzero(nodes != NONE)
    is_table = size >= LEAST_TABLE and size & (size - 1) == 0 and 4 * (count - 1) <= 3 * size
    yield not is_table, f"its table has {count} nodes in {size} places"
    yield count != tree.head["num_nodes"][0], "its table has another number of nodes than it counts"
    inside = (nodes >= NONE) & (nodes < used)
    yield not inside.all(), "its table has a node outside the tree"


# --- links ---------------------------------------------------------------------------------------


def _link_faults(tree: Any, _: np.ndarray) -> _Faults:
    """Faults of the blocks of edges: outside the tree, shared by nodes, or in a cycle."""
    edges, layout = tree.edges, tree.layout
    first, num_edges = (np.ascontiguousarray(edges[n]).astype(int) for n in ("first", "num_edges"))
    num_legal = edges["num_legal"].astype(int) if layout.lazy else np.zeros_like(first)
    has_edges = first != NONE
    capacity = np.where(has_edges, block_capacities(num_edges, num_legal, layout.appends), 0)
    yield (first + capacity > len(edges)).any(), "a node has edges outside the tree"
    may_be_bare = num_legal > 0 if not layout.appends else True
    yield (has_edges & (num_edges == 0) & ~may_be_bare).any(), "a node has a block without edges"
    yield (~has_edges & (num_edges > 0)).any(), "a node without a block has edges"
    crowded = (num_legal > 0) & (num_edges > num_legal)
    yield crowded.any(), "a node has more edges than legal actions"
    is_live = np.zeros(len(edges), bool)
    yield from _walk_faults(tree, first, capacity, is_live)
    yield from _number_faults(edges[is_live])
    if layout.dim:
        nodes = np.flatnonzero(is_live & has_edges)
        taken = _spans(first[nodes], num_edges[nodes])
        inside = _are_in_space(tree.game, edges["vector"][taken])
        yield not inside.all(), f"an edge has a vector outside of {tree.game.action_space}"


def block_capacities(num_edges: np.ndarray, num_legal: np.ndarray, appends: bool) -> np.ndarray:
    """The sizes of the blocks that hold these numbers of edges, as `records.capacity_of`.

    >>> block_capacities(np.array([2, 5, 5]), np.array([3, 40, 0]), False)
    array([3, 8, 5])
    """
    doubled = 1 << np.ceil(np.log2(np.maximum(FIRST_BLOCK, num_edges))).astype(int)
    lazy = np.where(num_legal > LAZY_ABOVE, np.minimum(num_legal, doubled), num_legal)
    rooms: np.ndarray = np.where(num_legal > 0, lazy, doubled if appends else num_edges)
    return rooms


def _walk_faults(
    tree: Any, first: np.ndarray, capacity: np.ndarray, is_live: np.ndarray
) -> _Faults:
    """Faults of the links, found by a walk from the root; sets `is_live` of the records it meets.

    Blocks that are adjacent and disjoint hold no record twice, so that links have no cycle. If
    nodes are shared, only the links from a node to its block are without cycles.
    """
    shared, used = tree.layout.shared, len(first)
    owner = tree.edges["node"].astype(int) if shared else np.arange(used)
    yield shared and owner[0] not in (0, NONE), "the root is the node of another record"
    nodes = np.zeros(1, int)
    if shared:
        nodes = np.union1d(nodes, tree.table["node"][tree.table["node"] != NONE])
        yield (owner[nodes[1:]] != nodes[1:]).any(), "a node of the table is in another record"
    is_node = np.zeros(used, bool)
    starts, sizes, num_members = [], [], 0
    for _ in range(MAX_DEPTH + 2):
        is_node[nodes] = is_live[nodes] = True
        nodes = nodes[first[nodes] != NONE]
        starts.append(first[nodes])
        sizes.append(capacity[nodes])
        num_members += int(capacity[nodes].sum())
        yield num_members >= used, "two nodes have the same edges, or edges lead in a cycle"
        members = _spans(first[nodes], capacity[nodes])
        is_live[members] = True
        nodes = members
        if shared:
            is_new = owner[members] == NONE
            yield (is_new & (first[members] != NONE)).any(), "an edge without a node has edges"
            nodes = np.unique(owner[members[owner[members] != NONE]])
            yield (owner[nodes] != nodes).any(), "an edge leads to a record that holds no node"
            nodes = nodes[~is_node[nodes]]
        if not len(nodes):
            break
    yield len(nodes) > 0, f"it is deeper than {MAX_DEPTH} edges"
    begins, lengths = np.concatenate(starts), np.concatenate(sizes)
    order = np.argsort(begins)
    ends = (begins + lengths)[order]
    yield (ends[:-1] > begins[order][1:]).any(), "two nodes have the same edges"


def _are_in_space(game: Game, vectors: np.ndarray) -> np.ndarray:
    """Which of these vectors are actions of a continuous game; the bounds of states may be less."""
    space = game.action_space
    if isinstance(space, Box):
        # Coordinates that do not count in a state are zero.
        is_inside = (vectors >= space.low) & (vectors <= space.high) | (vectors == 0.0)
        return np.asarray(is_inside.all(axis=1))
    lengths: np.ndarray = np.linalg.norm(vectors, axis=1)
    return np.abs(lengths - 1.0) < 1e-6


def _spans(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All indices of these spans.

    >>> _spans(np.array([7, 1]), np.array([2, 3]))
    array([7, 8, 1, 2, 3])
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _number_faults(records: np.ndarray) -> _Faults:
    """Statistics that are not numbers."""
    names = records.dtype.names or ()
    finite = ("value_sum", "prior", "square_sum", "first_return", "raw", "amaf_sum", "proven",
              "own_sum", "reward", "vector")  # fmt: skip
    for name in finite:
        if name in names:
            yield not np.isfinite(records[name]).all(), f"the {name} of an edge is not a number"
    if "prior" in names:
        yield (records["prior"] < 0).any(), "the prior of an edge is negative"
    if "low" in names:
        bounds = (records["low"], records["high"])
        yield np.isnan(bounds).any(), "the bounds of a node are not numbers"
