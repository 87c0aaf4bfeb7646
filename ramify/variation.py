"""The edges of a node, of one tree or several, and the line of play that follows from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify._compile import bind
from ramify.choice import ply_of, robust_choice
from ramify.errors import BrokenGame
from ramify.game import CHANCE, ENDLESS, Game, StateView, StateViews, random_unit
from ramify.tree import NONE, Node


def edge_table(node: Node) -> np.ndarray:
    """The edges of a node: action, visits, q, proven, and at the root square and prior.

    `square` is the mean of the squared returns of the player to move.
    """
    tree, span = node.tree, node.edges
    vector = (float, (tree.game.num_players,))
    names: list[Any] = [("action", np.int64), ("visits", np.int64), ("q", *vector),
                        ("proven", *vector), ("square", float), ("prior", float)]  # fmt: skip
    table = np.zeros(len(span), names)
    table["action"] = tree.edges["action"][span.start : span.stop]
    table["visits"] = tree.edge_visits(span)
    table["q"] = tree.mean_values(span)
    table["proven"] = tree.proven_values(span)
    if node.edge == 0 and len(span):
        player = 0 if tree.game.zero_sum else max(0, node.to_play)
        squares = tree.root_squares[: len(span), player]
        table["square"] = squares / np.maximum(1, table["visits"])
        table["prior"] = _priors(node)
    return table


def _priors(node: Node) -> Any:
    """P(s,a) of the root's edges; probabilities at a chance root; all alike without any."""
    tree, span = node.tree, node.edges
    if node.to_play == CHANCE:
        chances = dict(tree.game.outcomes(node.state))
        return [chances[action] for action in tree.edges["action"][span.start : span.stop].tolist()]
    priors = tree.priors(span)
    return 1.0 / len(tree.root_squares) if priors is None else priors


def merged(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Edges of the same node in several trees as those of one tree, in the order of the actions.

    >>> names = [("action", int), ("visits", int), ("q", float, (1,)), ("proven", float, (1,)),
    ...          ("square", float), ("prior", float)]
    >>> one = np.array([(0, 1, 0.5, np.nan, 1.0, 0.5), (2, 3, 1.0, np.nan, 1.0, 0.5)], names)
    >>> other = np.array([(2, 1, 0.0, 1.0, 0.0, 0.5)], names)
    >>> both = merged([one, other])
    >>> both["visits"].tolist(), both["q"].ravel().tolist(), both["proven"].ravel().tolist()
    ([1, 4], [0.5, 0.75], [nan, 1.0])
    """
    if len(tables) == 1:
        return tables[0]
    actions = np.unique(np.concatenate([table["action"] for table in tables]))
    total = np.zeros(len(actions), tables[0].dtype)
    total["action"] = actions
    total["proven"] = np.nan
    for table in tables:
        rows = np.searchsorted(actions, table["action"])
        total["visits"][rows] += table["visits"]
        total["q"][rows] += table["q"] * table["visits"][:, None]
        total["square"][rows] += table["square"] * table["visits"]
        total["prior"][rows] = table["prior"]
        known = ~np.isnan(table["proven"])
        total["proven"][rows] = np.where(known, table["proven"], total["proven"][rows])
    visits = np.maximum(1, total["visits"])
    total["q"] /= visits[:, None]
    total["square"] /= visits
    return total


# --- the principal variation ---------------------------------------------------------------------


@dataclass(frozen=True)
class Variation:
    """The line of play a search expects."""

    actions: list[int]
    # Of the actions that come from the tree, in the first tree that has them; NONE for outcomes of
    # chance that an open-loop tree does not hold.
    edges: list[int]
    complete: bool  # whether it reaches the end of the episode
    tree_depth: int  # how many of the actions come from the tree
    completed_by: str | None = None  # where the others come from

    @property
    def depth(self) -> int:
        return len(self.actions)


def follow(
    start: Any, children: Callable[[Any], tuple[np.ndarray, np.ndarray, Callable[[int], Any]]]
) -> list[Any]:
    """The places met from `start` on by taking the most visited child each time.

    Args:
        children: visits and values (for who chooses) of a place's children, and how to get to one.
    """
    places = [start]
    while True:
        visits, q, go = children(places[-1])
        best = robust_choice(visits, q)
        if best < 0:
            return places
        places.append(go(best))


@dataclass(frozen=True)
class Place:
    """A node of the variation, in each tree that has it, and what led there."""

    nodes: tuple[Node, ...]
    actions: tuple[int, ...] = ()  # the edge's, and outcomes that an open-loop tree does not hold
    edge: int = NONE  # in the first tree of `nodes`

    @property
    def state(self) -> np.record:
        return self.nodes[0].state

    @property
    def is_proven(self) -> bool:
        return any(node.tree.proof(node.edge) != "" for node in self.nodes)

    def child(self, tables: list[np.ndarray], action: int, open_loop: bool) -> Place:
        """Where `action` leads; in an open loop on to where a player acts."""
        edges = []
        for node, table in zip(self.nodes, tables, strict=True):
            found = np.flatnonzero((table["action"] == action) & (table["visits"] > 0))
            edges += [(node, node.edges[int(i)]) for i in found]
        nodes = [node.child(edge) for node, edge in edges]
        actions = [action]
        while open_loop and nodes[0].to_play == CHANCE:
            game, state = nodes[0].tree.game, nodes[0].state
            outcome, _ = max(game.outcomes(state), key=lambda each: each[1])
            state, _ = game.step(state, outcome)
            nodes = [Node(node.tree, node.edge, state) for node in nodes]
            actions.append(outcome)
        return Place(tuple(nodes), tuple(actions), edges[0][1])


def completion(
    game: Game, complete: Any, rng: np.ndarray
) -> tuple[str, Callable[[np.record], int]]:
    """The name of a way to play on from the end of a tree, and the action it takes in a state."""
    from ramify import evaluators

    if isinstance(complete, str) and complete == "playout":
        return "playout", _at_random(game, rng)
    if isinstance(complete, evaluators.Evaluator):
        return complete.name, _greedy(game, complete, rng)
    if not callable(complete):
        raise TypeError(
            'complete is None, "playout", an evaluator, or a function f(state) -> action; '
            f"got {complete!r}"
        )
    name = getattr(complete, "__qualname__", type(complete).__name__)
    if len(inspect.signature(complete).parameters) == 1:
        return name, lambda state: int(complete(state))
    return name, _greedy(game, evaluators.compiled(complete), rng)


def _at_random(game: Game, rng: np.ndarray) -> Callable[[np.record], int]:
    """Takes the actions that a playout takes."""
    from ramify import evaluators

    bound = evaluators.bindings(game, evaluators.playout())
    draw = bind(bound["draw_action"], bound)
    actions = np.zeros(game.num_actions, np.int32)
    return lambda state: int(draw(StateView(game.copy(state)), actions, rng, game.data))


def _greedy(game: Game, evaluator: Any, rng: np.ndarray) -> Callable[[np.record], int]:
    """Takes the action after which the mover has most, by an evaluator; the first of equals."""
    value = _values_by(game, evaluator, rng)

    def take(state: np.record) -> int:
        player, actions, worth = game.to_play(state), game.legal(state), []
        for action in actions:
            after, reward = game.step(state, action)
            rest = 0.0 if game.is_over(after) else game.discount * value(after)[player]
            worth.append(reward[player] + rest)
        return actions[int(np.argmax(worth))]

    return take


def _values_by(game: Game, evaluator: Any, rng: np.ndarray) -> Callable[[np.record], np.ndarray]:
    """What an evaluator says of a state, per player, in plain Python."""
    from ramify import evaluators

    value_leaf = bind(evaluator.value_leaf, evaluators.bindings(game, evaluator))
    largest = max(game.num_actions, game.max_outcomes)
    longest = ENDLESS if evaluator.max_plies is None else evaluator.max_plies

    def value(state: np.record) -> np.ndarray:
        states = np.zeros(3, game.dtype)
        states[1] = state
        returns, reward = np.zeros((2, game.num_players))
        status = value_leaf(
            StateViews(states), np.full(2 * largest + 1024, evaluators.GUARD, np.int32),
            np.zeros(game.max_outcomes + 1024), np.zeros(game.num_actions), reward, returns, rng,
            np.zeros(1 + game.num_players * game.num_actions), evaluator.num_playouts,
            min(longest, plies_left(game, state)), game.data,
        )  # fmt: skip
        if status != evaluators.DONE:
            raise BrokenGame(f"{evaluator.name} cannot value the state\n{game.show(state)}")
        return returns

    return value


def draw_outcome(game: Game, state: np.record, rng: np.ndarray) -> int:
    """An outcome of a chance state, drawn by its probability."""
    outcomes = game.outcomes(state)
    sums = np.cumsum([probability for _, probability in outcomes])
    drawn = int(np.searchsorted(sums, random_unit(rng), side="right"))
    return outcomes[min(drawn, len(outcomes) - 1)][0]


def plies_left(game: Game, state: np.record) -> int:
    """How many plies may follow a state."""
    return ENDLESS if game.max_plies is None else game.max_plies - ply_of(game, state)
