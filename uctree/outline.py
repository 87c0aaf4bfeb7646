"""The visited nodes of a search as flat arrays: what a page shows of its tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.result import SearchResult
from uctree.tree import NONE, Tree

MOST_NODES = 100_000


@dataclass(frozen=True)
class Outline:
    """Nodes in breadth-first order, the root first; siblings side by side, most visited first.

    Where several threads grew a tree each, their nodes are added up by the actions that lead there.
    """

    parent: np.ndarray  # [num_nodes], NONE for the root
    action: np.ndarray  # [num_nodes], what leads there, NONE for the root
    visits: np.ndarray  # [num_nodes], of the edge that leads there
    q: np.ndarray  # [num_nodes, num_players]
    prior: np.ndarray  # [num_nodes], NaN where there is none
    proven: np.ndarray  # [num_nodes, num_players], NaN where open
    # [num_nodes], the node that has what is below, where a shared one is met again; else NONE
    same_as: np.ndarray
    least_visits: int  # all nodes of at least so many visits are here

    def __len__(self) -> int:
        return len(self.parent)


def outline(result: SearchResult, most: int = MOST_NODES) -> Outline:
    """The nodes of a search; the most visited ones where there are more than `most`.

    All nodes of equal visits are there or none, so that it can be said which are missing.
    """
    too_low, enough = 0, 1
    found = _outline(result, enough, most)
    while found is None:
        too_low, enough = enough, 2 * enough
        found = _outline(result, enough, most)
    while enough - too_low > 1:
        middle = (too_low + enough) // 2
        tried = _outline(result, middle, most)
        if tried is None:
            too_low = middle
        else:
            found, enough = tried, middle
    return found


def _outline(result: SearchResult, least: int, most: int) -> Outline | None:
    """The nodes of at least so many visits; None where there are more than `most`."""
    walks = [_Walk(tree) for tree in result.trees]
    levels = [_root_level(result)]
    count = 1
    while any(len(walk.nodes) for walk in walks):
        for walk in walks:
            walk.go_down()
        if count == 1 and result.options.get("open_loop"):
            for walk in walks:  # the root has edges of other states too
                walk.keep(np.isin(walk.table["action"], result.edges["action"]))
        level, places = _merged([walk.table for walk in walks], least)
        if count + len(level) > most:
            return None
        for walk, place in zip(walks, places, strict=True):
            walk.settle(place, count)
        levels.append(level)
        count += len(level)
    table = np.concatenate(levels)
    same_as = np.full(count, NONE, np.int64)
    for walk in walks:
        for nodes, known in walk.repeated:
            same_as[nodes] = known
    for walk in walks:  # one tree met it first here, another one elsewhere
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
    """One tree, level by level: the records of its nodes and what the outline calls them."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.records = np.zeros(1, np.int64)  # of the nodes of a level
        self.nodes = np.zeros(1, np.int64)  # in the outline
        self.edges = np.zeros(0, np.int64)  # below them
        self.table: Any = np.zeros(0, _level_dtype(tree.game.num_players))
        self.expanded = [self.nodes]
        self.repeated: list[tuple[np.ndarray, np.ndarray]] = []
        # What the outline calls the node of a record, where nodes are shared.
        self.known = np.full(len(tree.edges) if tree.layout.shared else 0, NONE, np.int64)
        self.known[:1] = 0

    def go_down(self) -> None:
        """Let `edges` and `table` be those below the nodes that were taken."""
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
            # Without priors from an evaluator only the outcomes of chance have one.
            has_one = tree.layout.priors | (records["prior"] > 0)
            self.table["prior"] = np.where(has_one, records["prior"], np.nan)

    def keep(self, rows: np.ndarray) -> None:
        """Leave out the other edges."""
        self.edges, self.table = self.edges[rows], self.table[rows]

    def settle(self, place: np.ndarray, count: int) -> None:
        """Take the nodes at `place` in a level (NONE: left out) that begins at node `count`."""
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
        """Where the nodes are that edges lead to."""
        edges = self.edges if edges is None else edges
        if not self.tree.layout.shared:
            return edges
        return np.where(records["node"] == NONE, edges, records["node"]).astype(np.int64)


def _merged(tables: list[np.ndarray], least: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """One level of the outline, and where in it each row of each tree's table went, or NONE."""
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
