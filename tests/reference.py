"""Search with objects and recursion: slow, obvious, and what the kernels are measured by.

It draws the same random numbers in the same order, so that the tree of a kernel must equal this one
visit for visit. Where scores may tie, it multiplies in the same order as well.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ramify.game import CHANCE, ENDLESS, OVER, Game, make_rng, random_below, random_unit


class Node:
    """A state with what was seen of it."""

    def __init__(self, game: Game, state: Any) -> None:
        self.state = state
        self.player = game.to_play(state)
        self.visits = 0
        self.total = np.zeros(game.num_players)  # of the returns from here on
        self.edges: list[Edge] = []


@dataclass
class Edge:
    """An action or outcome at a node; its child is made when it is first taken."""

    action: int
    prior: float
    total: np.ndarray  # of the returns, the reward of this edge included
    visits: int = 0
    reward: np.ndarray | None = None
    child: Node | None = None


class Search:
    """One search of `state`; `run` grows the tree below `root`."""

    def __init__(
        self,
        game: Game,
        state: Any,
        *,
        rule: str = "ucb1",
        c: float = math.sqrt(2),
        c_base: float = 19652.0,
        fpu: str = "parent_sqrt",
        fpu_value: float = 0.2,
        normalise: bool = True,
        evaluate: Callable[..., None] | None = None,
        num_playouts: int = 1,
        max_plies: int | None = None,
        seed: int = 0,
    ) -> None:
        self.game, self.root = game, Node(game, state)
        self.rule, self.c, self.c_base = rule, c, c_base
        self.fpu, self.fpu_value = fpu, fpu_value
        self.evaluate = evaluate
        asked = inspect.signature(evaluate).parameters if evaluate is not None else ()
        self.prior_kind = next((kind for kind in ("priors", "logits") if kind in asked), None)
        self.num_playouts = num_playouts
        self.rng = make_rng(seed)
        known = game.payoff_range
        self.low = np.full(game.num_players, np.inf) if known is None else known[:, 0].copy()
        self.high = -self.low if known is None else known[:, 1].copy()
        self.sees_range = known is None
        self.to_unit = normalise if rule == "puct" else self.sees_range
        ply = int(state["ply"]) if "ply" in game.dtype.names else 0
        self.max_depth = ENDLESS if game.max_plies is None else game.max_plies - ply
        self.longest = ENDLESS if max_plies is None else max_plies

    def run(self, num_simulations: int) -> Node:
        with np.errstate(over="ignore"):
            if self.prior_kind and not self.root.edges and self.root.player != CHANCE:
                self.visit(self.root, 0)  # outside the budget
            for _ in range(num_simulations):
                self.visit(self.root, 0)
        return self.root

    # --- one simulation --------------------------------------------------------------------------

    def visit(self, node: Node, depth: int) -> np.ndarray:
        """One simulation from `node` on; what it returned there."""
        if node.player == OVER:
            returns = np.zeros(self.game.num_players)
        elif depth == self.max_depth or self.is_leaf(node, depth):
            returns = self.value(node, depth)
        else:
            returns = self.take(self.choose(node), node, depth)
        node.visits += 1
        node.total = node.total + returns
        if all_seen(node):
            node.total = node.visits * expected(node)
        return returns

    def is_leaf(self, node: Node, depth: int) -> bool:
        if node.player == CHANCE:
            return False
        return not node.edges if self.prior_kind else depth > 0 and node.visits == 0

    def choose(self, node: Node) -> Edge:
        if not node.edges:
            node.edges = self.new_edges(node)
        return self.draw(node.edges) if node.player == CHANCE else self.best(node)

    def take(self, edge: Edge, node: Node, depth: int) -> np.ndarray:
        """Go on below `edge`; what was returned from `node` on."""
        if edge.child is None:
            state, edge.reward = self.game.step(node.state, edge.action)
            edge.child = Node(self.game, state)
        child, discount = edge.child, self.game.discount
        returns = edge.reward + discount * self.visit(child, depth + 1)
        edge.visits += 1
        edge.total = edge.total + returns
        if child.player == CHANCE and child.edges and all(e.visits for e in child.edges):
            expected = sum(
                outcome.prior * (outcome.total / outcome.visits) for outcome in child.edges
            )
            edge.total = edge.visits * (edge.reward + discount * expected)
        if self.sees_range:
            self.low, self.high = np.minimum(self.low, returns), np.maximum(self.high, returns)
        return returns

    # --- edges -----------------------------------------------------------------------------------

    def new_edges(self, node: Node, priors: list[float] | None = None) -> list[Edge]:
        if node.player == CHANCE:
            actions, priors = zip(*self.game.outcomes(node.state), strict=True)
        else:
            actions = self.game.legal(node.state)
            priors = [1.0 / len(actions)] * len(actions) if priors is None else priors
        zero = np.zeros(self.game.num_players)
        return [Edge(action, p, zero) for action, p in zip(actions, priors, strict=True)]

    def draw(self, edges: list[Edge]) -> Edge:
        rest = random_unit(self.rng)
        for edge in edges[:-1]:
            rest -= edge.prior
            if rest < 0:
                return edge
        return edges[-1]

    def best(self, node: Node) -> Edge:
        """The edge with the largest score; the first of equals."""
        n, p = max(1, node.visits), node.player
        if self.rule == "ucb1":
            width = self.c * self.span(p) * math.sqrt(math.log(n))
        else:
            growth = math.log((1 + n + self.c_base) / self.c_base) if self.c_base < math.inf else 0
            width = (self.c + growth) * math.sqrt(n)
        worth = self.worth_of_new(node)

        def score(edge: Edge) -> float:
            if self.rule == "ucb1" and edge.visits == 0:
                return math.inf
            inverse_root = 1.0 / math.sqrt(max(1, edge.visits))
            q = worth
            if edge.visits:
                q = self.scaled(float(edge.total[p]) * inverse_root * inverse_root, p)
            if self.rule == "ucb1":
                return q + width * inverse_root
            return q + edge.prior * width / (1 + edge.visits)

        return max(node.edges, key=score)

    def span(self, player: int) -> float:
        return 1.0 if self.to_unit else float(self.high[player] - self.low[player])

    def scaled(self, q: float, player: int) -> float:
        low, high = float(self.low[player]), float(self.high[player])
        if not self.to_unit:
            return q
        return (q - low) * (1.0 / (high - low)) if high > low else 0.0

    def worth_of_new(self, node: Node) -> float:
        """What an edge never taken is taken to be worth."""
        taken = [edge.prior for edge in node.edges if edge.visits]
        mass = added(taken) if self.prior_kind else len(taken) / len(node.edges)
        value = float(node.total[node.player]) / max(1, node.visits)
        worth = {
            "constant": self.fpu_value,
            "parent": value - self.fpu_value,
            "parent_sqrt": value - self.fpu_value * math.sqrt(mass),
        }[self.fpu]
        scaled = self.scaled(worth, node.player)
        return min(1.0, max(0.0, scaled)) if self.to_unit else scaled

    # --- the value of a leaf ---------------------------------------------------------------------

    def value(self, node: Node, depth: int) -> np.ndarray:
        if self.evaluate is None:
            limit = min(self.longest, self.max_depth - depth)
            playouts = (self.playout(node.state, limit) for _ in range(self.num_playouts))
            return sum(playouts, np.zeros(self.game.num_players)) / self.num_playouts
        # A chance state is valued by what comes after it.
        returns, factor, state = self.play(node.state, ENDLESS, only_chance=True)
        if self.game.to_play(state) == OVER:
            return returns
        values, priors = np.zeros(self.game.num_players), np.zeros(self.game.num_actions)
        self.call(self.evaluate, state, values, priors)
        if self.prior_kind and node.player != CHANCE and not node.edges:
            node.edges = self.new_edges(node, self.priors(self.game.legal(node.state), priors))
        return returns + factor * values

    def playout(self, state: Any, limit: int) -> np.ndarray:
        returns, factor, state = self.play(state, limit)
        if self.game.to_play(state) != OVER and self.game.rules.heuristic is not None:
            values = np.zeros(self.game.num_players)
            self.call(self.game.rules.heuristic, state, values)
            returns = returns + factor * values
        return returns

    def play(
        self, state: Any, limit: int, only_chance: bool = False
    ) -> tuple[np.ndarray, float, Any]:
        """Random plies: what they paid, the discount of what comes after, and where they ended."""
        returns, factor = np.zeros(self.game.num_players), 1.0
        for _ in range(limit):
            player = self.game.to_play(state)
            if player == OVER or (only_chance and player != CHANCE):
                break
            if player == CHANCE:
                action = self.draw(self.new_edges(Node(self.game, state))).action
            else:
                actions = self.game.legal(state)
                action = actions[random_below(self.rng, len(actions))]
            state, reward = self.game.step(state, action)
            returns = returns + factor * reward
            factor *= self.game.discount
        return returns, factor, state

    def priors(self, actions: list[int], given: np.ndarray) -> list[float]:
        """Softmax over the legal actions, in the precision a tree keeps; uniform without mass."""
        stored = np.float64 if self.game.max_outcomes else np.float32
        logits = [float(given[action]) for action in actions]
        if self.prior_kind == "priors":
            logits = [math.log(p) if p > 0 else -math.inf for p in logits]
        top = max(logits)
        weights = [math.exp(x - top) if top > -math.inf else 1.0 for x in logits]
        total = added(weights)
        return [float(stored(float(stored(weight)) / total)) for weight in weights]

    def call(self, function: Any, state: Any, values: np.ndarray, priors: Any = None) -> None:
        given = {"state": state, "values": values, "priors": priors, "logits": priors,
                 "rng": self.rng, "data": self.game.data}  # fmt: skip
        function(**{name: given[name] for name in inspect.signature(function).parameters})


def all_seen(node: Node) -> bool:
    """Whether every outcome of a chance node was seen; it is then worth what is expected."""
    return node.player == CHANCE and bool(node.edges) and all(e.visits for e in node.edges)


def expected(node: Node) -> np.ndarray:
    return sum(edge.prior * (edge.total / edge.visits) for edge in node.edges)


def added(numbers: list[float]) -> float:
    """Their sum, from left to right; `sum` itself compensates for rounding from Python 3.12 on."""
    return reduce(operator.add, numbers, 0.0)
