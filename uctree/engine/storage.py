"""The memory of a batch of trees: one tree that grows and is pruned, or many of one size."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from uctree.engine.options import Options
from uctree.game import Game
from uctree.kernels import gumbel
from uctree.kernels.records import NONE
from uctree.tree import TABLE, Tree, edge_dtype, empty_table, head_dtype, num_values

MOST_EDGES = 2**31 - 1  # of a tree: indices are 32 bits wide


class Storage(Protocol):
    """The arrays of trees, as kernels see them."""

    num_trees: int
    version: int  # increases when `tree_arrays` are replaced
    root_arrays: dict[str, np.ndarray]  # fields of a `Batch` that are never replaced

    @property
    def moves_edges(self) -> bool:
        """Whether growing moves edges, so that no simulation may be in flight."""

    def tree_arrays(self) -> dict[str, np.ndarray]:
        """The other fields of a `Batch` that belong to the trees; a row belongs to a tree."""

    def view(self, number: int) -> Tree:
        """One of the trees, on these arrays."""

    def grow(self, number: int) -> None:
        """Add capacity, because this tree needs it."""


def out_of_memory(game: Game) -> MemoryError:
    """The error for a tree that does not fit into the memory of the machine."""
    return MemoryError(
        f"there is not enough memory for a tree of {game.name}; bound it with max_memory=, as "
        '"500MB", and the least visited parts are pruned; or search with fewer simulations. A tree '
        "given as tree= is sound, with all simulations until now"
    )


def root_arrays(game: Game, options: Options, num_trees: int) -> dict[str, np.ndarray]:
    """Arrays for the preparation of roots: states, noise, considered edges, draws."""
    wide = max(1, game.num_actions, game.max_outcomes)
    # One more edge, which is never taken, represents all that are not considered.
    considered = 1
    if options.is_gumbel:
        most = int(options.root_selection.parameters[gumbel.NUM_CONSIDERED])
        considered = min(wide, most + 1)
    given = options.root_selection.noise
    return {
        "roots": np.zeros(num_trees, game.dtype),
        "noises": np.zeros((num_trees, wide)),
        "given_noise": np.zeros(0) if given is None else np.array(given, float),
        "considered": np.zeros((num_trees, considered), np.int64),
        "draws": np.zeros((num_trees, considered)),
    }


def untried_arrays(
    game: Game, options: Options, num_trees: int, size: int
) -> dict[str, np.ndarray]:
    """The log-priors of actions without an edge, and these actions."""
    action = edge_dtype(game, options.layout(game))["action"]
    return {
        "untried": np.empty((num_trees, size), options.log_prior_dtype),
        "untried_actions": np.empty((num_trees, size), action),
    }


def one_tree_arrays(game: Game, options: Options) -> dict[str, np.ndarray]:
    """The root arrays of one tree, with fields that kernels read only if there are many trees."""
    return (
        root_arrays(game, options, 1)
        | untried_arrays(game, options, 1, 0)
        | {
            "blank_head": np.zeros(1, head_dtype(game.num_players)),
            "tables": empty_table(0)[None],
        }
    )


class OneTree:
    """One tree that grows up to a number of bytes, and is pruned beyond it."""

    num_trees = 1

    def __init__(
        self, tree: Tree, root_arrays: dict[str, np.ndarray], max_bytes: int | None = None,
        reserve: int = 0,
    ) -> None:  # fmt: skip
        """
        Args:
            root_arrays: see `one_tree_arrays`; no other search may use them at the same time.
            reserve: how many free edges the tree must have before a simulation.
        """
        self.tree, self.max_bytes = tree, max_bytes
        self.version, self._pruned_at = 0, -1
        self.root_arrays = root_arrays
        root_arrays["roots"][0] = tree.state
        if reserve:
            tree.head["reserve"] = reserve
            self._resize(len(tree.edges))

    @property
    def moves_edges(self) -> bool:
        # Answers may take long, so the others go on while a tree grows; only pruning moves edges.
        return self.max_bytes is not None or not self.tree.layout.answers

    def tree_arrays(self) -> dict[str, np.ndarray]:
        tree = self.tree
        found = {
            "heads": tree.head[None],
            "edges": tree.edges[None],
            "root_squares": tree.root_squares[None],
        }
        return found | {"tables": tree.table[None]} if tree.layout.shared else found

    def view(self, number: int) -> Tree:
        return self.tree

    def grow(self, number: int = 0) -> None:
        self.version += 1
        tree = self.tree
        is_full = int(tree.head["used"][0] + tree.head["reserve"][0]) > len(tree.edges)
        self._resize((2 if is_full else 1) * len(tree.edges))

    def _resize(self, wanted: int) -> None:
        """Give the tree capacity for `wanted` edges as memory allows; else prune it."""
        tree = self.tree
        reserve = int(tree.head["reserve"][0]) + 2 * tree.game.max_outcomes + 64
        used = int(tree.head["used"][0])
        wanted = max(wanted, used + reserve)
        most = self._most_edges()
        if wanted <= most or used + reserve <= most:
            tree.resize(min(wanted, most))
            tree.head["may_grow"] = 1
        else:
            self._prune(most, reserve)
        if tree.layout.shared and 2 * int(tree.head["num_nodes"][0]) > len(tree.table):
            tree.move_table(empty_table(2 * len(tree.table)))

    def _most_edges(self) -> int:
        """How many edges the tree may have; copying it needs memory for two trees."""
        tree = self.tree
        most = MOST_EDGES
        if self.max_bytes is None:
            return most
        overhead = tree.head.nbytes + tree.root_squares.nbytes
        each = tree.edges.dtype.itemsize
        if tree.layout.shared:  # the table has at most four times as many places as nodes
            each += 4 * TABLE.itemsize + 4
        most = min(most, (self.max_bytes // 2 - overhead) // each)
        least = 1 + len(tree.root_squares)
        if most < least:
            needed = 2 * (overhead + least * each)
            raise ValueError(
                f"{self.max_bytes} bytes of max_memory are for a tree, and the root alone needs "
                f"{needed}"
            )
        return most

    def _prune(self, most: int, reserve: int) -> None:
        """Drop the least visited half of the tree, or stop growing if that is not enough."""
        tree = self.tree
        tree.resize(most)
        tree.head["may_grow"] = 0
        # If one simulation needs more than pruning frees, pruning again does not help.
        if most < 4 * reserve or self._pruned_at == tree.simulations:
            return
        self._pruned_at = tree.simulations
        pruned = tree.copy(0, most, budget=most // 2)
        if int(pruned.head["used"][0]) + reserve <= most:
            tree.edges, tree.table = pruned.edges, pruned.table
            tree.head["capacity"] = len(pruned.edges)  # a tree passed in may have been larger
            for name in ("used", "num_nodes"):
                tree.head[name] = pruned.head[name]
            tree.head["may_grow"] = 1


class ManyTrees:
    """Many trees of the same capacity, which doubles for all at once."""

    moves_edges = False

    def __init__(self, example: Tree, options: Options, num_trees: int, reserve: int) -> None:
        """
        Args:
            example: an empty tree of the same layout.
        """
        game, layout = example.game, example.layout
        self.game, self.layout, self.num_trees = game, layout, num_trees
        self.version = 0
        capacity = 1024 + reserve
        blank = example.head.copy()
        blank["capacity"], blank["reserve"], blank["may_grow"] = capacity, reserve, 1
        wide = max(1, game.num_actions, game.max_outcomes)
        table = empty_table(256 if layout.shared else 0)
        num_untried = 8 * game.num_actions if layout.sparse else 0
        edges: np.ndarray = np.empty((num_trees, capacity), example.edges.dtype)
        edges["first"][:, 0], edges["num_edges"][:, 0] = NONE, 0  # no tree has a root yet
        self._arrays = {
            "heads": np.repeat(blank[None], num_trees, axis=0),
            "blank_head": blank,
            "edges": edges,
            **untried_arrays(game, options, num_trees, num_untried),
            "root_squares": np.zeros((num_trees, wide, num_values(game))),
            "tables": np.repeat(table[None], num_trees, axis=0),
        }
        self.root_arrays = root_arrays(game, options, num_trees)

    def tree_arrays(self) -> dict[str, np.ndarray]:
        return self._arrays

    def view(self, number: int) -> Tree:
        """One of the trees, on these arrays; it is valid until the next reset."""
        given = self._arrays
        view = Tree.__new__(Tree)
        view.game, view.layout = self.game, self.layout
        view.state = self.root_arrays["roots"][number]
        view.edges, view.head = given["edges"][number], given["heads"][number]
        view.root_squares, view.table = given["root_squares"][number], given["tables"][number]
        view.root_noise = None
        return view

    def set_roots(self, numbers: np.ndarray, states: np.ndarray) -> None:
        """Set the root states of these trees."""
        self.root_arrays["roots"][numbers] = states

    def grow(self, number: int) -> None:
        """Double the array that this tree has used up, for every tree."""
        self.version += 1
        old, layout = self._arrays, self.layout
        head = old["heads"][number, 0]
        has_edges = head["used"] + head["reserve"] <= head["capacity"]
        num_places = old["tables"].shape[1]
        most_untried = old["untried"].shape[1] - self.game.num_actions
        if has_edges and layout.sparse and head["num_untried"] > most_untried:
            used = int(old["heads"]["num_untried"].max())
            names = ("untried", "untried_actions")
            self._arrays = old | {name: _doubled(old[name], used) for name in names}
        elif has_edges and layout.shared and 4 * head["num_nodes"] > 3 * num_places:
            tables = np.repeat(empty_table(2 * num_places)[None], self.num_trees, axis=0)
            for each in range(self.num_trees):
                self.view(each).move_table(tables[each])
            self._arrays = old | {"tables": tables}
        else:  # a chance node may need more edges than the reserve
            edges = _doubled(old["edges"], int(old["heads"]["used"].max()))
            old["heads"]["capacity"] = old["blank_head"]["capacity"] = edges.shape[1]
            self._arrays = old | {"edges": edges}

    def untried(self, number: int) -> np.ndarray:
        """The log-priors of a tree's actions without an edge."""
        return self._arrays["untried"][number]


def _doubled(array: np.ndarray, used: int) -> np.ndarray:
    """An array with twice as many columns, of which the first `used` are copied."""
    wide = np.empty((len(array), 2 * array.shape[1]), array.dtype)
    size = used * array.dtype.itemsize
    # As bytes: NumPy copies records field by field, ten times slower.
    wide.view(np.uint8)[:, :size] = array.view(np.uint8)[:, :size]
    return wide
