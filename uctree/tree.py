"""Tree: flat arrays of edges. An edge and the node it leads to share one record.

The root is the node of edge 0, which is never taken. The edges of a node are adjacent, from `first`
on. There are no parent pointers (a descent stores its path elsewhere) and no states (they are
replayed from the root's). If transpositions share a node, it is in the record of the edge that
reached it first, and the other edges hold the index of that record.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from uctree.engine import treefile
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.identity import (
    are_rules_edited,
    check_game,
    describe_game,
    game_from,
    rules_fingerprint,
)
from uctree.engine.soundness import LEAST_TABLE, fault_of
from uctree.errors import UctreeError
from uctree.game import CHANCE, Game
from uctree.kernels.copying import rehash, reroot
from uctree.kernels.records import EXACT, MOVER, NONE


@dataclass(frozen=True)
class Layout:
    """What the records of a tree hold beyond visits and values."""

    priors: bool = False  # from the evaluator
    lazy: bool = True  # edges are made when they are first taken, if a node has many
    squares: bool = False  # squared returns, for variances
    first_returns: bool = False  # what an edge returned at its first visit
    raw: bool = False  # the evaluator's value of a node
    amaf: bool = False  # all moves as first
    proofs: str = ""  # "bounds" of player 0's value, or "vectors" that are exact
    shared: bool = False  # states reached in several ways share a node
    pending: bool = False  # simulations in flight
    appends: bool = False  # edges are added one by one, so blocks have spare capacity
    dim: int = 0  # coordinates of an action that is a vector
    # Below the root, actions without visits have no edge but a log-prior beside the tree: a few
    # bytes to write instead of a record. In batched searches only.
    sparse: bool = False
    answers: bool = False  # edges keep what Python answered about the step behind them
    open_loop: bool = False  # a node stands for actions: chance has no edges, and draws its state

    def bindings(self) -> dict[str, Any]:
        """The bindings of kernels for this layout, by name."""
        return {
            "HAS_PRIORS": self.priors,
            "IS_LAZY": self.lazy,
            "KEEPS_SQUARES": self.squares,
            "KEEPS_FIRST_RETURNS": self.first_returns,
            "KEEPS_RAW": self.raw,
            "HAS_AMAF": self.amaf,
            "HAS_PROOFS": self.proofs != "",
            "HAS_BOUNDS": self.proofs == "bounds",
            "SHARES_NODES": self.shared,
            "HAS_PENDING": self.pending,
            "APPENDS": self.appends,
            "IS_CONTINUOUS": self.dim > 0,
            "DIM": self.dim,
            "IS_SPARSE": self.sparse,
            "HAS_ANSWERS": self.answers,
            "OPEN_LOOP": self.open_loop,
        }


def edge_dtype(game: Game, layout: Layout) -> np.dtype:
    """The record of an edge: 19 bytes for a zero-sum game with fewer than 128 actions."""
    return _edge_dtype(game.num_actions, game.max_outcomes, num_values(game), layout)


@cache
def _edge_dtype(num_actions: int, max_outcomes: int, num_values: int, layout: Layout) -> np.dtype:
    largest = max(num_actions, max_outcomes)
    small: Any = next(t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max)
    if layout.dim:
        small = np.int32
    vector = (np.float64, (num_values,))
    fields: list[Any] = [
        ("value_sum", *vector),  # W(s,a); V(s) if nodes are shared
        ("visits", np.int32),  # N(s,a); for edge 0 the visits of the root, N(s)
        ("first", np.int32),  # the first edge of the node this leads to; NONE before it has any
        # Outcomes may be any numbers; actions are below num_actions; vectors are numbered.
        ("action", np.int32 if max_outcomes else small),
        ("num_edges", small),  # of the node this leads to, from `first` on
    ]
    if layout.lazy:
        fields.append(("num_legal", small))  # how many edges the node can have
    if layout.priors:
        exact = max_outcomes or layout.raw
        fields.append(("prior", np.float64 if exact else np.float32))
    elif max_outcomes:
        fields.append(("prior", np.float64))  # of an outcome: its probability
    if layout.squares:
        fields.append(("square_sum", np.float64))  # of the returns of the player who takes it
    if layout.first_returns:
        fields.append(("first_return", np.float64))  # of that player
    if layout.raw:
        fields.append(("raw", *vector))
    if layout.amaf:
        fields += [("amaf_sum", np.float64), ("amaf_visits", np.int32)]
    if layout.proofs == "bounds":
        fields += [("low", np.float64), ("high", np.float64)]  # of player 0's value
    elif layout.proofs == "vectors":
        fields += [("proven", *vector), ("proof", np.int8)]  # nothing, MOVER or EXACT
    if layout.answers:
        fields += [
            *([] if layout.shared else [("reward", *vector)]),  # of the edge
            ("row", np.int32),  # the number of the state behind the edge; NONE: not known yet
            ("count", np.int32),  # how many actions or outcomes that state has
            ("mover", np.int8),  # its `to_play`
        ]
    if layout.shared:
        fields += [
            ("own_sum", *vector),  # of the node's own evaluations
            ("reward", *vector),  # of the edge
            ("node", np.int32),  # the record of the node this leads to; NONE before it is taken
            ("node_visits", np.int32),  # N(s), if this record holds the node
            ("cycles", np.int32),  # how many of the edge's visits ended in a repetition
        ]
    if layout.pending:
        fields.append(("pending", np.int32))
    if layout.dim:
        fields.append(("vector", np.float64, (layout.dim,)))  # the action
    if layout.sparse:  # set when the node is evaluated
        fields += [
            ("largest", np.float64),  # log-prior of the node's actions
            ("sum_weights", np.float64),  # of e^(log-prior - largest)
            ("best_prior", np.float64),  # the largest prior of actions without an edge
            ("untried", np.int32),  # where the log-priors of the node's actions begin
            ("best", small),  # the index of the largest of them, NONE if it is not known
            ("num_kept", small),  # how many log-priors there are, those that may be needed
        ]
    # Packed: outside the CPU caches, small records are faster than aligned ones (10 % at 1M edges).
    return np.dtype(fields)


def num_values(game: Game) -> int:
    """How many components of a vector over the players are stored."""
    return 1 if game.zero_sum else game.num_players


@cache
def head_dtype(num_players: int) -> np.dtype:
    """The record of a tree's own data, besides its edges."""
    return np.dtype(
        [
            ("used", np.int64),  # edges in use
            ("capacity", np.int64),
            ("reserve", np.int64),  # edges that must be free before a simulation
            ("may_grow", np.int8),  # whether the capacity may grow
            ("remaining", np.int64),  # simulations left in the current piece
            ("simulations", np.int64),
            ("since_root", np.int64),  # simulations since the root was chosen
            ("depth_sum", np.int64),
            ("evaluations", np.int64),  # payoffs computed to refine actions
            ("num_nodes", np.int64),  # in the table of shared nodes
            ("num_untried", np.int64),  # log-priors beside the tree
            ("root_player", np.int64),
            ("low", np.float64, (num_players,)),  # range of returns, given or seen so far
            ("high", np.float64, (num_players,)),
            ("factor", np.float64, (num_players,)),  # 1 / (high - low)
            ("least", np.float64, (num_players,)),  # the certain range of returns
            ("most", np.float64, (num_players,)),
            ("repetition", np.float64, (num_players,)),  # the value of a repeated state
        ]
    )


# The hash table of shared nodes, with open addressing: 128 bits of a state's key, and the record.
TABLE = np.dtype([("key", np.uint64, (2,)), ("node", np.int32)])


# --- for people ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A read-only view of one node of a tree."""

    tree: Tree
    edge: int  # the record that holds it, 0 for the root
    state: np.record

    @property
    def visits(self) -> int:
        name = "node_visits" if self.tree.layout.shared else "visits"
        return int(self.tree.edges[name][self.edge])

    @property
    def to_play(self) -> int:
        return int(self.state["to_play"])

    @property
    def edges(self) -> range:
        """The edges that exist below this node."""
        record = self.tree.edges[self.edge]
        first, count = int(record["first"]), int(record["num_edges"])
        if self.tree.game.num_listed is not None:
            count = min(count, self.tree.game.num_listed(self.state))
        return range(0) if first == NONE else range(first, first + count)

    def child(self, edge: int) -> Node:
        """The node that one of `edges` leads to; below chance, an open-loop tree has no states."""
        tree = self.tree
        if tree.layout.open_loop and self.to_play == CHANCE:
            raise ValueError(
                "the node comes after chance in an open-loop tree, where nodes stand for actions "
                "and have no states; got child() or walk() below it, expected a node at which a "
                "player moves: search without open_loop=True, or read "
                "result.principal_variation(), which takes the most probable outcomes"
            )
        state, _ = tree.game.step(self.state, tree.action(edge))
        node = int(tree.edges["node"][edge]) if tree.layout.shared else edge
        return Node(tree, edge if node == NONE else node, state)

    def walk(self) -> Iterator[Node]:
        """This node and all visited nodes below it, depth first, shared nodes once."""
        seen: set[int] = set()
        places = [self]
        while places:
            node = places.pop()
            if node.edge in seen:
                continue
            seen.add(node.edge)
            yield node
            taken = [e for e in reversed(node.edges) if self.tree.edges["visits"][e]]
            places.extend(node.child(edge) for edge in taken)


_blanks: weakref.WeakKeyDictionary[Game, dict[Layout, tuple[np.void, bytes, np.dtype]]]
_blanks = weakref.WeakKeyDictionary()


def _blank_arrays(game: Game, layout: Layout) -> tuple[np.void, np.ndarray]:
    """The record of a root without edges, and the head of a tree that has nothing else."""
    known = _blanks.setdefault(game, {})
    if layout not in known:
        root = np.zeros(1, edge_dtype(game, layout))
        root["first"] = NONE
        if layout.proofs == "bounds":
            root["low"], root["high"] = -np.inf, np.inf
        head = np.zeros(1, head_dtype(game.num_players))
        head["used"] = 1
        payoffs = game.payoff_range
        head["least"] = -np.inf if payoffs is None else payoffs[:, 0]
        head["most"] = np.inf if payoffs is None else payoffs[:, 1]
        head["repetition"] = game.repetition_value
        _write_range(head, payoffs)
        known[layout] = root[0], head.tobytes(), head.dtype
    record, content, dtype = known[layout]
    # From bytes: NumPy copies records field by field, which takes five times as long.
    return record, np.frombuffer(bytearray(content), dtype)


def _write_range(head: np.ndarray, payoffs: np.ndarray | None) -> None:
    """Let returns have this range, low and high per player; None: no return was seen yet."""
    head["low"] = np.inf if payoffs is None else payoffs[:, 0]
    head["high"] = -np.inf if payoffs is None else payoffs[:, 1]
    head["factor"] = 0.0 if payoffs is None else 1.0 / (payoffs[:, 1] - payoffs[:, 0])


class Tree:
    """The statistics of a search; pass it to `uctree.search` to continue it."""

    is_from_file = False  # and `engine.legality` has not yet seen its actions
    rules: str | None = None  # `rules_fingerprint` when it was last searched, by byte code

    def __init__(
        self, game: Game, state: np.record, layout: Layout, num_root_edges: int, capacity: int
    ) -> None:
        self.game = game
        self.state = state
        self.layout = layout
        blank, self.head = _blank_arrays(game, layout)
        self.edges = np.empty(capacity, blank.dtype)
        self.edges[0] = blank
        self.head["capacity"] = capacity
        self.head["root_player"] = state["to_play"]
        # Sum of squared returns per edge of the root, for confidence bounds.
        self.root_squares = np.zeros((max(1, num_root_edges), num_values(game)))
        # The noise of the root: Gumbel noise, or priors with Dirichlet noise.
        self.root_noise: np.ndarray | None = None
        self.table = empty_table(LEAST_TABLE if layout.shared else 0)

    def action(self, edge: int) -> Any:
        """The action of an edge: a number, or a vector."""
        if self.layout.dim:
            return self.edges["vector"][edge].copy()
        return int(self.edges["action"][edge])

    def forget_range(self, seen: bool = False) -> None:
        """Reset the range of returns to the game's; to none if it is to be `seen` in the search."""
        _write_range(self.head, None if seen else self.game.payoff_range)

    @property
    def root(self) -> Node:
        return Node(self, 0, self.state)

    @property
    def simulations(self) -> int:
        """How many simulations the tree holds, from all searches."""
        return int(self.head["simulations"][0])

    @property
    def most_visits(self) -> int:
        """The largest count of a search in the tree; a shared node may have more than the root."""
        if not self.layout.shared:
            return self.simulations
        used = int(self.head["used"][0])
        return max(self.simulations, int(self.edges["node_visits"][:used].max()))

    @property
    def num_edges(self) -> int:
        """Edges in use, including capacity reserved for siblings."""
        return int(self.head["used"][0]) - 1

    @property
    def num_bytes(self) -> int:
        """All memory of the tree."""
        arrays = (self.edges, self.head, self.root_squares, self.table)
        return sum(array.nbytes for array in arrays)

    @property
    def evaluations(self) -> int:
        """Simulations, plus payoffs that were computed to refine actions."""
        return self.simulations + int(self.head["evaluations"][0])

    @property
    def mean_depth(self) -> float:
        """Edges taken per simulation."""
        return float(self.head["depth_sum"][0] / max(1, self.head["simulations"][0]))

    def resize(self, capacity: int) -> None:
        """Give the tree capacity for `capacity` edges, at least for those in use."""
        used = int(self.head["used"][0])
        capacity = max(capacity, used)
        if capacity <= len(self.edges):
            # In place, unless the array has other references.
            with contextlib.suppress(ValueError):
                self.edges.resize(capacity)
        if capacity == len(self.edges):
            self.head["capacity"] = capacity
            return
        edges = np.empty(capacity, self.edges.dtype)
        num_bytes = used * edges.dtype.itemsize
        # As bytes: NumPy copies records field by field, ten times slower.
        edges.view(np.uint8)[:num_bytes] = self.edges.view(np.uint8)[:num_bytes]
        self.edges = edges
        self.head["capacity"] = len(edges)

    @property
    def has_priors(self) -> bool:
        return self.layout.priors

    def move_table(self, table: np.ndarray) -> None:
        """Move the shared nodes to another table."""
        kernel = _rehasher(interpreted())
        old, new = self.table, table
        if kernel.interpreted:
            old, new = old.view(np.recarray), new.view(np.recarray)
        kernel.call(old, new, np.zeros(0, np.int32))
        self.table = table

    # Copies.

    def _edge_of(self, action: Any) -> int | None:
        """The root's edge of an action; None if there is none."""
        span = self.root.edges
        if self.layout.dim:
            wanted = self.game.vector(self.state, action)
            same = (self.edges["vector"][span.start : span.stop] == wanted).all(axis=1)
        else:
            same = self.edges["action"][span.start : span.stop] == action
        found = np.flatnonzero(same)
        return int(span[int(found[0])]) if len(found) else None

    def below(self, action: Any) -> Tree | None:
        """The subtree of an action or outcome at the root, as a new tree.

        None if the action has no visits. The range of returns stays as it is.
        """
        edge = self._edge_of(action)
        if edge is None or not self.edges["visits"][edge]:
            return None
        state, reward = self.game.step(self.state, action)
        record = int(self.edges["node"][edge]) if self.layout.shared else edge
        value = (self.mean_values(range(edge, edge + 1))[0] - reward) / self.game.discount
        tree = self.copy(record, len(self.edges))
        tree.state = state
        visits = tree.root.visits
        tree.edges["visits"][0] = visits
        if not self.layout.shared:  # V(s) from Q(s,a)
            tree.edges["value_sum"][0] = visits * value[: num_values(self.game)]
        depth = max(0.0, self.mean_depth - 1)
        tree.head["depth_sum"], tree.head["simulations"] = round(depth * visits), visits
        tree.head["since_root"] = 0
        tree.head["root_player"] = state["to_play"]
        if not self.game.is_over(state) and not self.layout.dim:
            options = self.game.outcomes if tree.root.to_play < 0 else self.game.legal
            rows = len(options(state))
            # An open loop has the edges of many states in one node.
            tree._assume_squares(max(rows, self.game.num_actions if self.layout.appends else 0))
        tree._forget_bare_proof()
        tree.resize(0)
        return tree

    def _forget_bare_proof(self) -> None:
        """Forget the root's proof if its edges are gone, because it gives no action."""
        if self.layout.proofs and self.edges["first"][0] == NONE:
            if self.layout.proofs == "bounds":
                self.edges["low"][0], self.edges["high"][0] = -np.inf, np.inf
            else:
                self.edges["proof"][0] = 0

    def _assume_squares(self, num_root_edges: int) -> None:
        """Set the squared returns of the root's edges, which are unknown, to their upper bound.

        For returns in [lo, hi] the variance is at most (hi - Q) (Q - lo), and equal to it if
        episodes are only won or lost.
        """
        width = num_values(self.game)
        edges, visits = self.root.edges, self.edge_visits(self.root.edges)
        self.root_squares = np.zeros((max(1, num_root_edges), width))
        q = self.mean_values(edges)[:, :width]
        low, high = self.head["low"][0, :width], self.head["high"][0, :width]
        squares = q * q + np.maximum(0.0, (high - q) * (q - low))
        self.root_squares[: len(q)] = np.where(visits[:, None] > 0, visits[:, None] * squares, 0.0)

    def copy(self, root: int, capacity: int, budget: int = 0) -> Tree:
        """The subtree of the record `root`, as a new tree with the same state.

        Args:
            capacity: of the new tree.
            budget: how many edges it may hold; nodes with the fewest visits lose theirs; 0: all.
        """
        layout = self.layout
        new = Tree(self.game, self.state, layout, 1, capacity)
        new.table = empty_table(len(self.table))
        used = int(self.head["used"][0])
        arguments = (
            self.edges, used, new.edges, root, budget, np.zeros(1 << 12, np.int64),
            np.full(used if layout.shared else 0, NONE, np.int32), self.table, new.table,
        )  # fmt: skip
        new.head[0] = self.head[0]
        new.head["used"] = _call_copier(self.game, layout, arguments)
        new.head["capacity"] = capacity
        new.head["num_nodes"] = np.count_nonzero(new.table["node"] != NONE)
        new.is_from_file, new.rules = self.is_from_file, self.rules
        return new

    # Dropping edges.

    def drop(self, node: Node, edges: Iterable[int]) -> None:
        """Remove edges from a node: searches continue as if their actions were not legal there.

        Their visits and returns stay in the statistics of the node and of those above. The priors
        of the remaining edges are scaled to add up to 1. These edges move to the front of
        `node.edges`, in their order, so a `Node` below that was found earlier is no longer valid.
        """
        gone = {int(edge) for edge in edges}
        left = [edge for edge in node.edges if edge not in gone]
        self._check_can_drop(node, gone, left)
        if not gone:
            return
        first, order = node.edges.start, [*left, *sorted(gone)]
        self.edges[first : first + len(order)] = self.edges[order]
        self.edges["num_edges"][node.edge] = len(left)
        if self.layout.lazy:
            self.edges["num_legal"][node.edge] = len(left)
        if self.layout.priors:
            priors = self.edges["prior"][first : first + len(left)]
            total = priors.sum(dtype=float)
            priors[:] = priors / total if total > 0 else 1.0 / len(left)
        if node.edge == 0:
            self.root_squares = self.root_squares[[edge - first for edge in left]]
            self.root_noise = None

    def _check_can_drop(self, node: Node, gone: set[int], left: list[int]) -> None:
        layout, count = self.layout, len(node.edges)
        if node.tree is not self:
            raise ValueError("the node belongs to another tree; take it from this tree's root")
        if len(left) + len(gone) != count:
            here = f"{node.edges.start} to {node.edges.stop - 1}" if count else "none"
            raise ValueError(f"{sorted(gone)} are not all edges of the node; it has {here}")
        if node.to_play < 0:
            raise ValueError("outcomes of chance cannot be dropped; drop edges of a player's node")
        if layout.proofs or layout.shared or layout.appends:
            raise ValueError(
                "edges can only be dropped from a plain tree: if nodes are shared, proven or grow "
                "edges one by one, edges would come back or values would be wrong; search without "
                "transpositions=, solver=, open_loop= and outcome_widening"
            )
        if not left:
            raise ValueError("a node needs at least one edge; got all of them to drop")
        if layout.lazy and self.edges["num_legal"][node.edge] != count:
            raise ValueError(
                f"{self.edges['num_legal'][node.edge] - count} actions of the node were never "
                "tried and have no edge yet; drop edges after all were tried"
            )

    # Statistics of edges, for reports.

    def edge_visits(self, edges: range) -> np.ndarray:
        """N(s,a) of these edges."""
        return self.edges["visits"][edges.start : edges.stop].astype(np.int64)

    def mean_values(self, edges: range) -> np.ndarray:
        """Q of these edges per player; 0 for edges without visits."""
        records = nodes = self.edges[edges.start : edges.stop]
        if self.layout.shared:
            if edges == range(1):  # the root
                return self._vectors(records["value_sum"]) + 0.0
            nodes = self.edges[np.maximum(0, records["node"])]
        return self.means(records, nodes)

    def means(self, records: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Q per player from the records of edges and, if nodes are shared, of nodes."""
        visits = np.maximum(1, records["visits"])[:, None]
        if not self.layout.shared:
            return self._vectors(records["value_sum"] / visits) + 0.0
        game = self.game
        share = records["cycles"][:, None] / visits
        after = (1 - share) * self._vectors(nodes["value_sum"]) + share * game.repetition_value
        values = self._vectors(records["reward"]) + game.discount * after
        return np.where(records["visits"][:, None] > 0, values, 0.0) + 0.0

    def _vectors(self, stored: np.ndarray) -> np.ndarray:
        """Vectors over the players from the components that are stored."""
        return np.concatenate((stored, -stored), axis=-1) if self.game.zero_sum else stored

    def priors(self, edges: range) -> np.ndarray | None:
        """P(s,a) of these edges as the evaluator gave it; None in a tree without priors."""
        if not self.layout.priors:
            return None
        return self.edges["prior"][edges.start : edges.stop].astype(float)

    def proven_values(self, edges: range) -> np.ndarray:
        """The proven values of these edges per player; NaN if not proven."""
        records = self.edges[edges.start : edges.stop]
        if self.layout.proofs and self.layout.shared and edges != range(1):
            records = np.where(records["node"] == NONE, records, self.edges[records["node"]])
        return self.proofs(records)

    def proofs(self, records: np.ndarray) -> np.ndarray:
        """The proven values of the nodes of these records per player; NaN if not proven."""
        unknown = np.full((len(records), self.game.num_players), np.nan)
        if not self.layout.proofs:
            return unknown
        if self.layout.proofs == "bounds":
            exact, stored = records["low"] == records["high"], records["low"][:, None]
        else:
            exact, stored = records["proof"] == EXACT, records["proven"]
        return np.where(exact[:, None], self._vectors(stored), unknown)

    def proof(self, edge: int) -> str:
        """The proof of a record's node: "exact", "mover" for its mover's component only, or ""."""
        if self.layout.proofs == "vectors" and self.edges["proof"][edge] == MOVER:
            return "mover"
        return "" if np.isnan(self.proven_values(range(edge, edge + 1))[0, 0]) else "exact"

    @property
    def raw_value(self) -> np.ndarray:
        """The evaluator's value of the root, per player."""
        return self._vectors(self.edges["raw"][:1])[0]

    # Files.

    def save(self, path: str | Path) -> None:
        """Write the tree to a file; `Tree.load` reads it back."""
        used = int(self.head["used"][0])
        arrays = {
            "edges": self.edges[:used],
            "head": self.head,
            "root_squares": self.root_squares,
            "state": np.array([self.state], self.game.dtype),
            "table": self.table,
        }
        if self.root_noise is not None:
            arrays["root_noise"] = self.root_noise
        if self.game.answers is not None:
            arrays["answers"] = self.game.answers(path)
        header = {
            "game": describe_game(self.game),
            "rules": rules_fingerprint(self.game),
            "layout": asdict(self.layout),
        }
        treefile.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path, game: Game | None = None, *, check_rules: bool = True) -> Tree:
        """The tree of a file.

        Args:
            game: the game of the tree; built-in games can be omitted.
            check_rules: refuse the tree if the source of the rules was edited since. With False,
                only what differs in the legal actions is found, when a search continues the tree.
        """
        header, arrays = treefile.read(path)
        described, state = header.get("game"), arrays.get("state")
        if not isinstance(described, dict) or state is None or state.shape != (1,):
            raise UctreeError(
                f"{path} is not a tree of uctree: it has no game or no state; give a file that "
                "Tree.save wrote"
            )
        if "answers" in arrays and (game is None or game.answers is None):
            raise UctreeError(
                f"{path} is the tree of a plan: continue it with plan(problem, start, "
                f"tree={str(path)!r})"
            )
        if game is None:
            game = game_from(described)
        else:
            check_game(described, game)
        if check_rules and are_rules_edited(header.get("rules"), game):
            raise UctreeError(
                f"{path} was grown by other rules of {game.name}: their source was edited since. "
                "Search again; or, if the edit changes neither legal actions nor states nor "
                "rewards, load it with check_rules=False"
            )
        layout = _checked_layout(path, game, header.get("layout"))
        tree = cls(game, _checked_state(path, game, state[0]), layout, 1, 1)
        fresh_head = tree.head
        for name in ("edges", "head", "root_squares", "table"):
            stored, own = arrays.get(name), getattr(tree, name)
            if stored is None or stored.dtype != own.dtype or stored.ndim != own.ndim:
                raise UctreeError(
                    f"{path} holds {name} in the format of another version of uctree; search again "
                    "and save the new tree"
                )
            setattr(tree, name, stored)
        tree.root_noise = arrays.get("root_noise")
        fault = fault_of(tree, fresh_head)
        if fault:
            raise UctreeError(
                f"{path} holds a tree that no search made: {fault}. Search again and save the new "
                "tree"
            )
        # A search sets these when it begins.
        tree.head["capacity"] = len(tree.edges)
        tree.head["reserve"] = tree.head["remaining"] = tree.head["may_grow"] = 0
        tree.is_from_file, tree.rules = True, rules_fingerprint(game, by_source=False)
        return tree


def _checked_layout(path: str | Path, game: Game, described: Any) -> Layout:
    """The layout of a file's tree, if trees of this game can have it."""
    expected = asdict(Layout())
    layout = described if isinstance(described, dict) else {}
    types = {name: type(value) for name, value in layout.items()}
    if types != {name: type(value) for name, value in expected.items()}:
        raise UctreeError(
            f"{path} has the layout {_short(described)}, expected values for "
            f"{', '.join(expected)}; load it with the uctree that wrote it, or search again"
        )
    bounded = game.zero_sum and game.num_players == 2
    proofs = ("", "bounds" if bounded else "vectors")
    if layout["dim"] != game.dim or layout["proofs"] not in proofs or layout["sparse"]:
        raise UctreeError(
            f"{path} has the layout {_short(described)}, which no tree of {game.name} has (dim is "
            f"{game.dim}, proofs one of {proofs}, sparse False); search again"
        )
    return Layout(**layout)


def _checked_state(path: str | Path, game: Game, state: Any) -> np.record:
    """The root's state, if the rules take it."""
    try:
        root = game.copy(state)
        if game.is_continuous:
            game.to_play(root)
            game.box(root)
        else:
            game.legal(root)
    except Exception as error:  # rules may fail in any way on a state that they never reach
        raise UctreeError(
            f"{path} has a root that the rules of {game.name} do not take ({error}); search again "
            "and save the new tree"
        ) from error
    return root


def _short(value: Any) -> str:
    return f"{value!r:.300}"


_copiers: weakref.WeakKeyDictionary[Game, dict[Any, Kernel]] = weakref.WeakKeyDictionary()


def _call_copier(game: Game, layout: Layout, arguments: tuple[Any, ...]) -> int:
    """Run `reroot` for trees of this layout."""
    known, key = _copiers.setdefault(game, {}), (layout, interpreted())
    if key not in known:
        bound = layout.bindings() | {"NUM_VALUES": num_values(game)}
        label = f"{game.name}: copying trees"
        known[key] = compile_kernel(reroot, bound, arguments, label=label)
    if known[key].interpreted:
        arguments = tuple(
            a.view(np.recarray) if isinstance(a, np.ndarray) and a.dtype.names else a
            for a in arguments
        )
    return int(known[key].call(*arguments))


@cache
def _rehasher(is_interpreted: bool) -> Kernel:
    """The kernel of `rehash`, the same for all games."""
    arguments = (empty_table(0), empty_table(0), np.zeros(0, np.int32))
    return compile_kernel(rehash, {}, arguments, label="tables of nodes")


def empty_table(capacity: int) -> np.ndarray:
    """An empty hash table for the nodes of a tree of `capacity` edges; the smallest for 0."""
    table = np.zeros(1 << max(0, math.ceil(math.log2(max(1, capacity)))), TABLE)
    table["node"] = NONE
    return table
