"""A search compared with the formulas of the action principle, edge by edge."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree import specs
from uctree.engine.jsontext import finite
from uctree.evaluators import Evaluator
from uctree.game import CHANCE, Game, State
from uctree.mcts import search
from uctree.principle import page as study_page
from uctree.principle.formulas import (
    action,
    classical_shares,
    curvatures,
    kept_weight,
    measure_kept_weight,
    negative_gradient,
    one_loop_bonus,
    one_loop_term,
    pruning_free_energy,
    pruning_term,
    validities,
)
from uctree.principle.records import NodeStudy, Pruning
from uctree.result import SearchResult
from uctree.selection import falling_hbar, one_loop
from uctree.tree import Node, Tree

# A rule for pruning: the edges of a node to keep, as booleans, from visits, values and priors.
Keep = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def by_share(least: float = 0.5) -> Keep:
    """A rule for pruning: keep the edges with at least this share of the most visits.

    >>> by_share(0.1)(np.array([85, 10, 5]), np.zeros(3), np.ones(3) / 3)
    array([ True,  True, False])
    """
    if not 0 <= least <= 1:
        raise ValueError(f"least must be a share from 0 to 1; got {least}")

    def keep(visits: np.ndarray, q: np.ndarray, prior: np.ndarray) -> np.ndarray:
        return visits >= least * visits.max()

    return keep


def by_value(gap: float = 0.25) -> Keep:
    """A rule for pruning: keep the edges whose value is at most `gap` below the best.

    Values are scaled as in the selection rule, from 0 to 1.

    >>> by_value(0.25)(np.array([85, 10, 5]), np.array([0.7, 0.5, 0.3]), np.ones(3) / 3)
    array([ True,  True, False])
    """
    if not gap >= 0:
        raise ValueError(f"gap must be at least 0; got {gap}")

    def keep(visits: np.ndarray, q: np.ndarray, prior: np.ndarray) -> np.ndarray:
        return q >= q.max() - gap

    return keep


BY_SHARE = by_share()


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """A search by one-loop PUCT with pruning, compared with the principle; print it for tables."""

    result: SearchResult
    nodes: tuple[NodeStudy, ...]  # the root first, then the most visited
    prunings: tuple[Pruning, ...]
    hbars: tuple[tuple[int, float], ...]  # after each round: simulations, and ħ at the root
    options: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The whole study as plain numbers, lists and strings, ready for `json.dumps`."""
        game, state = self.result.game, self.result.state
        return finite(
            {
                "game": game.name,
                "simulations": self.hbars[-1][0],
                "action": self.result.action,
                "options": {
                    name: value if isinstance(value, str) else _plain(value)
                    for name, value in self.options.items()
                },
                "hbar": [{"simulations": n, "hbar": hbar} for n, hbar in self.hbars],
                "nodes": [_node_json(game, state, node) for node in self.nodes],
                "prunings": [
                    asdict(each) | {"shown": study_page.shown_line(game, state, each.line)}
                    for each in self.prunings
                ],
            }
        )

    def save(self, path: str | Path) -> None:
        """Write one HTML file with all tables and plots."""
        Path(path).write_text(study_page.page(self), encoding="utf-8")

    def __repr__(self) -> str:
        game, count = self.result.game.name, len(self.prunings)
        return f"<Study of {game}: {len(self.nodes)} nodes, {count} prunings>"

    def __str__(self) -> str:
        return study_page.text(self)


def study(
    game: Game | str,
    state: State | None = None,
    *,
    num_simulations: int = 10_000,
    num_rounds: int = 10,
    keep: Keep | None = BY_SHARE,
    min_visits: int = 100,
    num_nodes: int = 8,
    kappa: float = 1.25,
    value_weight: float = 1.0,
    hbar: float = 1.0,
    visit_scale: float = 100.0,
    mode: str = "kernel",
    evaluator: Evaluator | Callable[..., None] | None = None,
    num_samples: int = 10_000,
    seed: int = 0,
) -> Study:
    """A search by one-loop PUCT with pruning, and the quantities of the principle.

    The simulations run in rounds. After every round but the last the most visited nodes are pruned:
    a node with at least `min_visits` visits, all of whose actions have visits, loses the edges that
    `keep` rejects. The search continues in the same tree as if those actions were not legal. Ctrl-C
    ends it with the result so far.

    Args:
        state: the root; the start of an episode by default.
        keep: the rule for pruning, a function of the arrays visits, q, prior over the edges of a
            node that returns booleans. None prunes nothing.
        num_nodes: the number of nodes that are pruned and reported, the root and the most visited.
        kappa, value_weight, hbar, visit_scale, mode: as in `selection.one_loop`.
        evaluator: as in `search`; without priors they are uniform.
        num_samples: draws per pruning for the mean of exp(-W/ħ).
        seed: of the search and of those draws.
    """
    game = specs.as_game(game)
    for name, number in (("num_rounds", num_rounds), ("num_nodes", num_nodes)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}")
    if num_simulations < num_rounds:
        raise ValueError(
            f"{num_rounds} rounds need at least {num_rounds} simulations; got "
            f"num_simulations={num_simulations}"
        )
    state = game.start() if state is None else state
    if game.is_over(state):
        raise ValueError(f"the episode of {game.name} is over; pass a state that is not over")
    if game.is_continuous:
        raise ValueError(
            f"the actions of {game.name} are vectors, and edges dropped there would be opened "
            "again; study a game whose actions are integers"
        )
    law = _Law(kappa, value_weight, hbar, visit_scale, mode)
    rule = one_loop(kappa, value_weight=value_weight, hbar=hbar, visit_scale=visit_scale, mode=mode)
    tree: Tree | None = None
    prunings: list[Pruning] = []
    hbars: list[tuple[int, float]] = []
    for number in range(num_rounds):
        done = num_simulations * number // num_rounds
        more = num_simulations * (number + 1) // num_rounds - done
        result = search(
            game, state, num_simulations=more, selection=rule, evaluator=evaluator, tree=tree,
            seed=seed,
        )  # fmt: skip
        tree = result.tree
        hbars.append((tree.simulations, law.hbar_at(tree.root.visits)))
        if result.status == "interrupted":
            break
        if keep is not None and number + 1 < num_rounds:
            for line, _ in _most_visited(tree, num_nodes):
                node = _node_at(tree, line)  # dropping edges moves others
                if node is not None:
                    stream = seed + len(prunings)
                    found = _prune(law, line, node, keep, min_visits, num_samples, stream)
                    prunings += [] if found is None else [found]
    assert tree is not None
    nodes = tuple(_observe(law, *place, prunings) for place in _most_visited(tree, num_nodes))
    options = asdict(law) | {
        "num_simulations": num_simulations, "num_rounds": num_rounds, "min_visits": min_visits,
        "num_samples": num_samples, "seed": seed,
    }  # fmt: skip
    return Study(result, nodes, tuple(prunings), tuple(hbars), options)


@dataclass(frozen=True)
class _Law:
    """The parameters of the principle."""

    kappa: float
    value_weight: float
    hbar: float
    visit_scale: float
    mode: str

    def hbar_at(self, visits: int) -> float:
        return falling_hbar(visits, self.hbar, self.visit_scale)


@dataclass(frozen=True)
class _Edges:
    """The edges of a node with visits, with values scaled as in the selection rule."""

    index: np.ndarray
    action: np.ndarray
    visits: np.ndarray
    q: np.ndarray
    prior: np.ndarray
    are_all: bool  # whether every legal action has visits

    @classmethod
    def of(cls, node: Node) -> _Edges:
        tree, span, player = node.tree, node.edges, node.to_play
        count = len(span)
        if tree.layout.lazy and count:
            count = int(tree.edges["num_legal"][node.edge])
        index, visits = np.array(span, int), tree.edge_visits(span)
        taken = visits > 0
        head, priors = tree.head[0], tree.priors(span)
        # The rule takes all values as 0 while they are equal.
        factor = head["factor"][player]
        shift = head["low"][player] if factor > 0 else 0.0
        return cls(
            index[taken],
            tree.edges["action"][span.start : span.stop].astype(int)[taken],
            visits[taken],
            (tree.mean_values(span)[taken, player] - shift) * factor,
            np.full(int(taken.sum()), 1.0 / max(1, count)) if priors is None else priors[taken],
            bool(taken.sum() == count),
        )


def _most_visited(tree: Tree, num_nodes: int) -> list[tuple[tuple[int, ...], Node]]:
    """The root and the most visited nodes at which a player moves, with the actions to them."""
    found: list[tuple[tuple[int, ...], Node]] = []
    heap: list[tuple[int, tuple[int, ...], Node]] = [(-tree.root.visits, (), tree.root)]
    while heap and len(found) < num_nodes:
        _, line, node = heapq.heappop(heap)
        if node.to_play != CHANCE and len(_Edges.of(node).index):
            found.append((line, node))
        for edge, visits in zip(node.edges, tree.edge_visits(node.edges), strict=True):
            if visits > 0 and tree.edges["first"][edge] >= 0:
                below = (*line, int(tree.edges["action"][edge]))
                heapq.heappush(heap, (-int(visits), below, node.child(edge)))
    return found


def _node_at(tree: Tree, line: Sequence[int]) -> Node | None:
    """The node after these actions from the root; None if one of them was dropped."""
    node = tree.root
    for each in line:
        edge = next((e for e in node.edges if tree.edges["action"][e] == each), None)
        if edge is None:
            return None
        node = node.child(edge)
    return node


def _prune(
    law: _Law, line: tuple[int, ...], node: Node, keep: Keep, min_visits: int, num_samples: int,
    seed: int,
) -> Pruning | None:  # fmt: skip
    """Drop the edges of a node that `keep` rejects; None if there are none."""
    edges = _Edges.of(node)
    if node.visits < min_visits or not edges.are_all or len(edges.index) < 2:
        return None
    is_kept = np.asarray(keep(edges.visits, edges.q, edges.prior), bool)
    if is_kept.shape != edges.visits.shape:
        raise ValueError(
            f"keep returned an array of shape {is_kept.shape} for {len(edges.visits)} edges; it "
            "must return one boolean per edge"
        )
    if np.all(is_kept):
        return None
    kept, hbar = np.flatnonzero(is_kept).tolist(), law.hbar_at(node.visits)
    costs = -negative_gradient(
        edges.visits, edges.prior, edges.q, law.kappa, law.value_weight, node.visits
    )
    free_energy = pruning_free_energy(costs, kept, hbar)  # raises if nothing is kept
    measured, error = measure_kept_weight(costs, kept, hbar, num_samples, seed)
    node.tree.drop(node, edges.index[~is_kept])
    dropped = tuple(edges.action[~is_kept].tolist())
    return Pruning(
        line, node.tree.simulations, dropped, len(kept), hbar, free_energy,
        pruning_term(len(dropped), hbar), kept_weight(costs, kept, hbar), measured, error,
    )  # fmt: skip


def _observe(
    law: _Law, line: tuple[int, ...], node: Node, prunings: Sequence[Pruning]
) -> NodeStudy:
    """A node in the terms of the principle."""
    edges, hbar = _Edges.of(node), law.hbar_at(node.visits)
    n, p, total = edges.visits, edges.prior, node.visits
    names = ("share", "classical", "squares", "q", "prior", "exploration", "bonus", "validity")
    fields: list[Any] = [("action", np.int64), ("visits", np.int64)]
    table = np.zeros(len(n), fields + [(name, float) for name in names])
    table["action"], table["visits"], table["share"] = edges.action, n, n / n.sum()
    table["q"], table["prior"] = edges.q, p
    table["classical"] = table["squares"] = np.nan
    if law.kappa > 0 and np.any(p > 0):
        table["classical"] = classical_shares(p, edges.q, law.kappa, law.value_weight)
        table["squares"] = classical_shares(p)
    table["exploration"] = law.kappa * p * np.sqrt(total / n)
    table["bonus"] = one_loop_bonus(n, p, law.kappa, hbar, mode=law.mode, parent_visits=total)
    table["validity"] = validities(n, p, law.kappa, hbar, total)
    bends = curvatures(n, p, law.kappa, total)
    if law.mode == "saddle":
        bends = np.where(p > 0, law.kappa / (2.0 * n), 0.0)
    mine = [each for each in prunings if each.line == line]
    num_pruned = sum(len(each.actions) for each in mine)
    return NodeStudy(
        line, node.to_play, total, hbar, table,
        action(n, p, edges.q, law.kappa, law.value_weight, total),
        one_loop_term(bends, hbar, law.mode), num_pruned,
        sum(each.free_energy for each in mine), sum(each.special_case for each in mine),
    )  # fmt: skip


def _node_json(game: Game, state: State, node: NodeStudy) -> dict[str, Any]:
    rows = [
        {name: _plain(row[name].item()) for name in node.edges.dtype.names or ()}
        for row in node.edges
    ]
    return {
        "line": list(node.line), "shown": study_page.shown_line(game, state, node.line),
        "to_play": node.to_play, "visits": node.visits, "hbar": node.hbar, "action": node.action,
        "one_loop": node.one_loop, "effective_action": node.effective_action,
        "num_pruned": node.num_pruned, "free_energy": node.free_energy,
        "special_case": node.special_case, "penalty": node.penalty, "edges": rows,
    }  # fmt: skip


def _plain(number: Any) -> Any:
    """The number; None for NaN and infinity, which JSON lacks."""
    return number if math.isfinite(number) else None
