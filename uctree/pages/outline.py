"""The visited nodes of a search as flat arrays, for the tree on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.kernels.records import NONE
from uctree.result import SearchResult
from uctree.tree import Tree

MOST_NODES = 100_000


@dataclass(frozen=True)
class Outline:
    """Nodes in breadth-first order, the root first; siblings are adjacent, most visited first.

    If several threads grew a tree each, nodes with the same actions from the root are summed.
    """

    parent: np.ndarray  # [num_nodes], NONE for the root
    action: np.ndarray  # [num_nodes], of the edge to the node, NONE for the root
    visits: np.ndarray  # [num_nodes], of the edge to the node
    q: np.ndarray  # [num_nodes, num_players]
    prior: np.ndarray  # [num_nodes], NaN if there is none
    proven: np.ndarray  # [num_nodes, num_players], NaN if not proven
    # [num_nodes], for a transposition the node that has the children; else NONE
    same_as: np.ndarray
    least_visits: int  # all nodes with at least this many visits are included

    def __len__(self) -> int:
        return len(self.parent)


def outline(
    result: SearchResult, most: int = MOST_NODES, least_visits: int | None = None
) -> Outline:
    """The nodes of a search; the most visited ones if there are more than `most`.

    Nodes are omitted by a threshold of visits, so that the page can name it.

    Args:
        least_visits: the first threshold to try, as that of an earlier outline of the tree. It is
            doubled until it is high enough, which is faster than to find the lowest one.
    """
    too_low, enough = 0, least_visits or 1
    found = _outline(result, enough, most)
    while found is None:
        too_low, enough = enough, 2 * enough
        found = _outline(result, enough, most)
    if least_visits is not None:
        return found
    while enough - too_low > 1:
        middle = (too_low + enough) // 2
        tried = _outline(result, middle, most)
        if tried is None:
            too_low = middle
        else:
            found, enough = tried, middle
    return found


def _outline(result: SearchResult, least: int, most: int) -> Outline | None:
    """The nodes with at least `least` visits; None if there are more than `most`."""
    walks = [_Walk(tree) for tree in result.trees]
    levels = [_root_level(result)]
    count = 1
    while any(len(walk.nodes) for walk in walks):
        for walk in walks:
            walk.go_down()
        if count == 1 and result.options.get("open_loop"):
            for walk in walks:  # the root has edges of other states too
                walk.filter(np.isin(walk.table["action"], result.edges["action"]))
        level, places = _merged([walk.table for walk in walks], least)
        if count + len(level) > most:
            return None
        for walk, place in zip(walks, places, strict=True):
            walk.assign(place, count)
        levels.append(level)
        count += len(level)
    table = np.concatenate(levels)
    same_as = np.full(count, NONE, np.int64)
    for walk in walks:
        for nodes, known in walk.repeated:
            same_as[nodes] = known
    for walk in walks:  # trees may have expanded a shared node at different places
        same_as[np.concatenate(walk.expanded)] = NONE
    columns = {name: np.ascontiguousarray(table[name]) for name in table.dtype.names or ()}
    return Outline(**columns, same_as=same_as, least_visits=least)


def _level_dtype(num_players: int) -> np.dtype:
    vector = (float, (num_players,))
    names = [("parent", np.int64), ("action", np.int64), ("visits", np.int64), ("q", *vector),
             ("prior", float), ("proven", *vector)]  # fmt: skip
    return np.dtype(names)


def _root_level(result: SearchResult) -> np.ndarray:
    level = np.zeros(1, _level_dtype(result.game.num_players))
    level["parent"] = level["action"] = NONE
    level["visits"] = sum(tree.root.visits for tree in result.trees)
    level["q"] = result.value
    level["prior"] = np.nan
    level["proven"] = np.nan if result.solved is None else result.solved
    return level


class _Walk:
    """One tree, level by level: the records of its nodes and their numbers in the outline."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.records = np.zeros(1, np.int64)  # of the nodes of a level
        self.nodes = np.zeros(1, np.int64)  # in the outline
        self.edges = np.zeros(0, np.int64)  # below them
        self.table: Any = np.zeros(0, _level_dtype(tree.game.num_players))
        self.expanded = [self.nodes]
        self.repeated: list[tuple[np.ndarray, np.ndarray]] = []
        # With transpositions, the number in the outline by record.
        self.known = np.full(len(tree.edges) if tree.layout.shared else 0, NONE, np.int64)
        self.known[:1] = 0

    def go_down(self) -> None:
        """Set `edges` and `table` to those below the current nodes."""
        tree = self.tree
        heads = tree.edges[self.records]
        counts = np.where(heads["first"] == NONE, 0, heads["num_edges"]).astype(np.int64)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = np.repeat(heads["first"].astype(np.int64), counts) + within
        parents = np.repeat(self.nodes, counts)
        taken = tree.edges["visits"][edges] > 0
        self.edges = edges[taken]
        records = tree.edges[self.edges]
        below = tree.edges[self._node_records(records)]
        self.table = np.zeros(len(records), self.table.dtype)
        self.table["parent"] = parents[taken]
        self.table["action"], self.table["visits"] = records["action"], records["visits"]
        self.table["q"] = tree.means(records, below)
        self.table["proven"] = tree.proofs(below)
        self.table["prior"] = np.nan
        if "prior" in (records.dtype.names or ()):
            # Without priors from an evaluator only outcomes of chance have one.
            has_one = tree.layout.priors | (records["prior"] > 0)
            self.table["prior"] = np.where(has_one, records["prior"], np.nan)

    def filter(self, rows: np.ndarray) -> None:
        """Remove all edges but those of `rows`."""
        self.edges, self.table = self.edges[rows], self.table[rows]

    def assign(self, place: np.ndarray, count: int) -> None:
        """Go to the nodes below; `place` is their index in a level that begins at `count`."""
        order = np.argsort(place, kind="stable")
        order = order[place[order] != NONE]
        nodes = place[order] + count
        records = self._node_records(self.tree.edges[self.edges[order]], self.edges[order])
        if self.tree.layout.shared:
            _, first = np.unique(records, return_index=True)
            is_new = np.zeros(len(records), bool)
            is_new[first] = True
            is_new &= self.known[records] == NONE
            self.known[records[is_new]] = nodes[is_new]
            self.repeated.append((nodes[~is_new], self.known[records[~is_new]]))
            nodes, records = nodes[is_new], records[is_new]
        self.nodes, self.records = nodes, records
        self.expanded.append(nodes)

    def _node_records(self, records: np.ndarray, edges: np.ndarray | None = None) -> np.ndarray:
        """The records of the nodes that edges lead to."""
        edges = self.edges if edges is None else edges
        if not self.tree.layout.shared:
            return edges
        return np.where(records["node"] == NONE, edges, records["node"]).astype(np.int64)


def _merged(tables: list[np.ndarray], least: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """One level of the outline, and per tree the index of each row in it, NONE if omitted."""
    keys = np.concatenate([table["parent"] << 32 | table["action"] for table in tables])
    unique, inverse = np.unique(keys, return_inverse=True)
    total = np.zeros(len(unique), tables[0].dtype)
    total["parent"], total["action"] = unique >> 32, unique & 0xFFFFFFFF
    total["prior"] = total["proven"] = np.nan
    rows = np.split(inverse, np.cumsum([len(table) for table in tables])[:-1])
    for table, row in zip(tables, rows, strict=True):
        total["visits"][row] += table["visits"]
        total["q"][row] += table["q"] * table["visits"][:, None]
        for name in ("prior", "proven"):
            total[name][row] = np.where(np.isnan(table[name]), total[name][row], table[name])
    total["q"] /= np.maximum(1, total["visits"])[:, None]
    order = np.lexsort((total["action"], -total["visits"], total["parent"]))
    order = order[total["visits"][order] >= least]
    place = np.full(len(unique), NONE, np.int64)
    place[order] = np.arange(len(order))
    return total[order], [place[row] for row in rows]
