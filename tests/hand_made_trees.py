"""Trees and results with chosen visits and values, without a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree import Game, choice
from uctree.kernels.records import EXACT, MOVER
from uctree.result import SearchResult
from uctree.tree import Layout, Tree


class Sums:
    """The numbers of a node of a tree."""

    def __init__(self, num_players: int) -> None:
        self.visits = 0
        self.total = np.zeros(num_players)
        self.squares = np.zeros(num_players)
        self.children: dict[int, Sums] = {}


def grown(
    game: Game, lines: dict[tuple[int, ...], Any], state: Any = None, proofs: Any = None,
    layout: Layout | None = None, priors: Any = None,
) -> Tree:  # fmt: skip
    """A tree from the actions and returns of its simulations.

    Args:
        lines: by the actions of a simulation, the return of player 0 in a zero-sum game, or a
            list with the returns of all players, or (number of simulations, return).
        proofs: the proven value by action of the root, or of "root"; ("mover", value) if only the
            value for the player to move is proven.
    """
    state = game.start() if state is None else state
    root = Sums(game.num_players)
    for actions, given in lines.items():
        number, paid = given if isinstance(given, tuple) else (1, given)
        returns = np.array(paid if isinstance(paid, list) else [paid, -paid], float)
        node = root
        for action in (None, *actions):
            if action is not None:
                node = node.children.setdefault(action, Sums(game.num_players))
            node.visits += number
            node.total += number * returns
            node.squares += number * returns**2
    return written(game, state, root, proofs or {}, layout, priors)


def written(game, state, root, proofs, layout, priors) -> Tree:
    layout = layout or Layout(priors=priors is not None, proofs="vectors" if proofs else "")
    tree = Tree(game, state, layout, len(game.legal(state)), 200)
    num_values = 1 if game.zero_sum else game.num_players
    places, used = [(0, root)], 1
    while places:
        edge, node = places.pop(0)
        tree.edges["visits"][edge] = node.visits
        tree.edges["value_sum"][edge] = node.total[:num_values]
        tree.edges["first"][edge] = used if node.children else -1
        tree.edges["num_edges"][edge] = len(node.children)
        for row, (action, child) in enumerate(node.children.items()):
            tree.edges[used] = 0
            tree.edges["action"][used] = action
            if edge == 0:
                tree.root_squares[row] = child.squares[:num_values]
                if priors is not None:
                    tree.edges["prior"][used] = priors[action]
                if action in proofs:
                    prove(tree, used, proofs[action])
            places.append((used, child))
            used += 1
    if "root" in proofs:
        prove(tree, 0, proofs["root"])
    tree.head["used"] = used
    tree.head["simulations"] = root.visits
    return tree


def prove(tree: Tree, edge: int, value: Any) -> None:
    kind, value = value if isinstance(value, tuple) else ("exact", value)
    tree.edges["proof"][edge] = EXACT if kind == "exact" else MOVER
    tree.edges["proven"][edge] = value if isinstance(value, list) else [value, -value]


def result_of(*trees: Tree, chosen: Any = None, seed: int = 1, **fields: Any) -> SearchResult:
    options = fields.pop("options", {"threads": len(trees)})
    gumbel = getattr(options.get("root_selection"), "name", "") == "gumbel"
    simulations = sum(tree.simulations for tree in trees)
    given = {"status": "simulations", "simulations": simulations, "seconds": 0.5} | fields
    return SearchResult(
        trees[0].game, trees, seed=seed, options=options,
        choice=choice.as_choice(chosen, after_gumbel=gumbel), **given,
    )  # fmt: skip


# Action 0 has the most visits, 2 the largest value, 1 the best lower bound: all its returns were
# the same.
DIVIDED = {
    (0,): (30, 0.0), (0, 0): (15, 1.0), (0, 1): (15, -1.0),
    (1,): (40, 0.25),
    (2,): (3, 1.0),
}  # fmt: skip
EVEN = {(0,): (50, 0.5), (1,): (30, 0.25), (2,): (20, 0.0)}
