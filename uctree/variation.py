"""The edges of a node, in one tree or several, and the principal variation through them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from uctree.choice import ply_of, robust_choice
from uctree.engine.bindings import action_array, game_bindings
from uctree.engine.compile import bind
from uctree.engine.history import BestSeen
from uctree.errors import BrokenGame
from uctree.game import CHANCE, ENDLESS, Game, StateView, StateViews, random_unit
from uctree.kernels.records import NONE
from uctree.kernels.status import DONE
from uctree.tree import Node


def edge_table(node: Node) -> np.ndarray:
    """The edges of a node: action, visits, q, proven, and at the root square and prior.

    `square` is the mean of the squared returns of the player to move.
    """
    tree, span = node.tree, node.edges
    vector = (float, (tree.game.num_players,))
    names: list[Any] = [action_field(tree.game), ("visits", np.int64), ("q", *vector),
                        ("proven", *vector), ("square", float), ("prior", float)]  # fmt: skip
    table = np.zeros(len(span), names)
    actions = "vector" if tree.layout.dim else "action"
    table["action"] = tree.edges[actions][span.start : span.stop]
    table["visits"] = tree.edge_visits(span)
    table["q"] = tree.mean_values(span)
    table["proven"] = tree.proven_values(span)
    if tree.layout.dim:
        squares = tree.edges["square_sum"][span.start : span.stop]
        table["square"] = squares / np.maximum(1, table["visits"])
        table["prior"] = 1.0 / max(1, len(span))
    elif node.edge == 0 and len(span):
        player = 0 if tree.game.zero_sum else max(0, node.to_play)
        squares = tree.root_squares[: len(span), player]
        table["square"] = squares / np.maximum(1, table["visits"])
        table["prior"] = _priors(node)
    return table


def action_field(game: Game) -> tuple[Any, ...]:
    """The column of a table that holds the actions: integers, or vectors."""
    return ("action", float, (game.dim,)) if game.is_continuous else ("action", np.int64)


def is_action(table: np.ndarray, action: Any) -> np.ndarray:
    """Which rows of a table belong to an action."""
    same = table["action"] == action
    return same if same.ndim == 1 else same.all(axis=1)


def _priors(node: Node) -> Any:
    """P(s,a) of the root's edges; probabilities at a chance root; uniform without priors."""
    tree, span = node.tree, node.edges
    if node.to_play == CHANCE:
        chances = dict(tree.game.outcomes(node.state))
        return [chances[action] for action in tree.edges["action"][span.start : span.stop].tolist()]
    priors = tree.priors(span)
    return 1.0 / len(tree.root_squares) if priors is None else priors


def merged(tables: Sequence[np.ndarray]) -> np.ndarray:
    """The edges of a node summed over several trees, in the order of the actions.

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
    if tables[0]["action"].ndim > 1:  # no two trees have the same vectors
        return np.concatenate(tables)
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
    """A line of play, such as the principal variation of a search."""

    actions: list[Any]  # integers, or vectors in a continuous game
    players: list[int]  # who takes each action; CHANCE for an outcome
    # Of the actions that come from the tree, in the first tree that has them; NONE for outcomes of
    # chance, which an open-loop tree does not hold.
    edges: list[int]
    complete: bool  # whether the line reaches the end of the episode
    tree_depth: int  # the number of actions that come from the tree
    completed_by: str | None = None  # the name of what added the other actions

    @property
    def depth(self) -> int:
        return len(self.actions)


def follow(
    start: Any,
    children: Callable[[Any], tuple[np.ndarray, np.ndarray, Callable[[int], Any]]],
    choose: Callable[[np.ndarray, np.ndarray], int] = robust_choice,
) -> list[Any]:
    """The places from `start` on along the most visited child of each.

    Args:
        children: visits and values (for the player to move) of a place's children, and a function
            that returns the child of an index.
        choose: the index of the child to take, from visits and values; -1 for none.
    """
    places = [start]
    while True:
        visits, q, child = children(places[-1])
        best = choose(visits, q)
        if best < 0:
            return places
        places.append(child(best))


def shown_steps(
    game: Game, state: np.record, actions: Sequence[Any]
) -> Iterator[tuple[str, np.record]]:
    """The text of each action with who takes it, and the state after it.

    >>> from uctree.games import pig
    >>> " ".join(text for text, _ in shown_steps(pig(), pig().start(), [0, 4, 1, 0]))
    'P0:roll chance:5 P0:stop P1:roll'
    """
    for action in actions:
        player, text = game.to_play(state), game.show_action(state, action)
        if player == CHANCE:
            text = f"chance:{text}"
        elif game.num_players > 1:
            text = f"P{player}:{text}"
        state, _ = game.step(state, action)
        yield text, state


@dataclass(frozen=True)
class Place:
    """A node of the variation, in each tree that has it, and the actions that led there."""

    nodes: tuple[Node, ...]
    actions: tuple[Any, ...] = ()  # of the edge, then outcomes that an open-loop tree lacks
    edge: int = NONE  # in the first tree of `nodes`

    @property
    def state(self) -> np.record:
        return self.nodes[0].state

    @property
    def is_proven(self) -> bool:
        return any(node.tree.proof(node.edge) != "" for node in self.nodes)

    def child(self, tables: list[np.ndarray], action: Any, open_loop: bool) -> Place:
        """The place after `action`; in an open loop, after the chance states that follow too."""
        edges = []
        for node, table in zip(self.nodes, tables, strict=True):
            found = np.flatnonzero(is_action(table, action) & (table["visits"] > 0))
            edges += [(node, node.edges[int(i)]) for i in found]
        nodes = [node.child(edge) for node, edge in edges]
        actions = [nodes[0].tree.game.plain_action(action)]
        while open_loop and nodes[0].to_play == CHANCE:
            game, state = nodes[0].tree.game, nodes[0].state
            outcome, _ = max(game.outcomes(state), key=lambda each: each[1])
            state, _ = game.step(state, outcome)
            nodes = [Node(node.tree, node.edge, state) for node in nodes]
            actions.append(outcome)
        return Place(tuple(nodes), tuple(actions), edges[0][1])


@dataclass(frozen=True)
class Episode:
    """An episode of one player from the root to its end."""

    actions: list[Any]
    returns: float  # what the player gets, discounted as in the search


def replayed(game: Game, state: np.record, best: BestSeen) -> Episode:
    """The episode of the best simulation: its path, and its playout drawn again."""
    actions: list[Any] = []
    total, discount = 0.0, 1.0
    rng = np.array([best.drawn], np.uint64)
    _, take = completion(game, "playout", rng)
    with np.errstate(over="ignore"):
        while not game.is_over(state):
            known = len(actions) < len(best.path)
            actions.append(game.plain_action(best.path[len(actions)]) if known else take(state))
            state, reward = game.step(state, actions[-1])
            total += discount * float(reward[0])
            discount *= game.discount
    return Episode(actions, total)


def completion(
    game: Game, complete: Any, rng: np.ndarray
) -> tuple[str, Callable[[np.record], Any]]:
    """The name of a completion of variations, and its function from a state to an action."""
    from uctree import evaluators

    if isinstance(complete, str) and complete == "playout":
        return "playout", _at_random(game, rng)
    if isinstance(complete, str) and complete == "best_reply":
        return "best_reply", _best_reply(game)
    if isinstance(complete, evaluators.Evaluator):
        return complete.name, _greedy(game, complete, rng)
    if not callable(complete):
        raise TypeError(
            'complete is None, "playout", "best_reply", an evaluator, or a function '
            f"f(state) -> action; got {complete!r}"
        )
    name = getattr(complete, "__qualname__", type(complete).__name__)
    if len(inspect.signature(complete).parameters) == 1:
        return name, lambda state: game.plain_action(complete(state))
    return name, _greedy(game, evaluators.compiled(complete), rng)


def _at_random(game: Game, rng: np.ndarray) -> Callable[[np.record], Any]:
    """A function that draws the actions a playout would draw."""
    from uctree import evaluators

    bound = game_bindings(game, evaluators.playout())
    draw = bind(bound["draw_action"], bound)
    actions = action_array(game)

    def take(state: np.record) -> Any:
        drawn = draw(StateView(game.copy(state)), actions, rng, game.data)
        return actions[0].copy() if game.is_continuous else int(drawn)

    return take


def _best_reply(game: Game) -> Callable[[np.record], Any]:
    """A function that takes the best action for the player to move, by backward induction."""
    if game.is_continuous:
        from uctree.continuous.backward import BackwardSolver

        solver = BackwardSolver(game)
        return lambda state: solver.decision(state)[0]
    from uctree.solver import solve

    solution = solve(game)
    return _greedy_by(game, solution.value_of)


SAMPLED = 64  # vectors that a greedy line compares


def _greedy(game: Game, evaluator: Any, rng: np.ndarray) -> Callable[[np.record], Any]:
    """A function that takes the action of the largest value by an evaluator, the first of equals.

    In a continuous game it compares vectors drawn as in a playout.
    """
    return _greedy_by(game, _values_by(game, evaluator, rng), rng)


def _greedy_by(
    game: Game, value: Callable[[np.record], np.ndarray], rng: np.ndarray | None = None
) -> Callable[[np.record], Any]:
    drawn = _at_random(game, rng) if rng is not None else None

    def take(state: np.record) -> Any:
        player, values = game.to_play(state), []
        if game.is_continuous and drawn is not None:
            actions = [drawn(state) for _ in range(SAMPLED)]
        else:
            actions = game.legal(state)
        for action in actions:
            after, reward = game.step(state, action)
            rest = 0.0 if game.is_over(after) else game.discount * value(after)[player]
            values.append(reward[player] + rest)
        return actions[int(np.argmax(values))]

    return take


def _values_by(game: Game, evaluator: Any, rng: np.ndarray) -> Callable[[np.record], np.ndarray]:
    """A function that evaluates a state for every player, in plain Python."""
    value_leaf = bind(evaluator.value_leaf, game_bindings(game, evaluator))
    longest = ENDLESS if evaluator.max_plies is None else evaluator.max_plies

    def value(state: np.record) -> np.ndarray:
        states = np.zeros(3, game.dtype)
        states[1] = state
        returns, reward = np.zeros((2, game.num_players))
        # The fields of a search that evaluators read.
        work = SimpleNamespace(
            drawn=action_array(game), probabilities=np.zeros(game.max_outcomes + 1024),
            reward=reward, returns=returns, logits=np.zeros(game.num_actions),
            played=np.zeros(1 + game.num_players * game.num_actions), depth=0,
            num_playouts=evaluator.num_playouts, longest_playout=longest,
            plies_left=plies_left(game, state),
        )  # fmt: skip
        status = value_leaf(
            SimpleNamespace(states=StateViews(states), work=work, rng=rng, data=game.data)
        )
        if status != DONE:
            raise BrokenGame(f"{evaluator.name} cannot evaluate the state\n{game.show(state)}")
        return returns

    return value


def draw_outcome(game: Game, state: np.record, rng: np.ndarray) -> int:
    """An outcome of a chance state, drawn by its probability."""
    outcomes = game.outcomes(state)
    sums = np.cumsum([probability for _, probability in outcomes])
    drawn = int(np.searchsorted(sums, random_unit(rng), side="right"))
    return outcomes[min(drawn, len(outcomes) - 1)][0]


def plies_left(game: Game, state: np.record) -> int:
    """The largest number of plies that can follow a state."""
    return ENDLESS if game.max_plies is None else game.max_plies - ply_of(game, state)
