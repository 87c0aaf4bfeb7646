"""SearchResult: the action, the policy, the principal variation."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np

from ramify._compile import bind
from ramify.errors import BrokenGame
from ramify.game import CHANCE, ENDLESS, Game, StateView, StateViews, make_rng, random_unit
from ramify.tree import NONE, Node, Tree

Z = 5.0  # how many standard errors make a confidence bound
LEAST_SHARE = 0.15  # of the most visits: what an edge needs for its lower bound to count

# --- formulas ------------------------------------------------------------------------------------


def robust_choice(visits: np.ndarray, q: np.ndarray) -> int:
    """The most visited edge; of equals the one with the larger q, then the first; -1 for none.

    >>> robust_choice(np.array([4, 7, 7]), np.array([0.9, 0.1, 0.2]))
    2
    """
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    most = np.flatnonzero(visits == np.max(visits))
    return int(most[np.argmax(np.asarray(q)[most])])


def max_choice(visits: np.ndarray, q: np.ndarray) -> int:
    """The edge with the largest q among those with visits, the first of equals; -1 for none.

    >>> max_choice(np.array([4, 7, 0]), np.array([0.3, 0.1, 0.9]))
    0
    """
    visits = np.asarray(visits)
    if not (visits > 0).any():
        return -1
    return int(np.argmax(np.where(visits > 0, q, -np.inf)))


def robust_max(visits: np.ndarray, q: np.ndarray) -> int:
    """The edge that has both the most visits and the largest q; -1 where no edge has both.

    >>> robust_max(np.array([4, 7]), np.array([0.1, 0.3]))
    1
    >>> robust_max(np.array([4, 7]), np.array([0.3, 0.1]))
    -1
    """
    best = robust_choice(visits, q)
    return best if best == max_choice(visits, q) else -1


def temperature_policy(visits: np.ndarray, temperature: float) -> np.ndarray:
    """A distribution over edges from their visits.

        π(a) = N(a)^(1/τ) / Σ N(b)^(1/τ), over edges with visits                        [Eq. 9]

    At 0 all goes to the most visited edge (the first of equals); at infinity every edge with visits
    gets the same. Without any visits the distribution is uniform.

    >>> temperature_policy(np.array([10, 5, 30, 5]), 1.0)
    array([0.2, 0.1, 0.6, 0.1])
    """
    visits = np.asarray(visits, float)
    if not temperature >= 0:
        raise ValueError(f"temperature must be at least 0; got {temperature}")
    policy = np.zeros(len(visits))
    seen = visits > 0
    if not seen.any():
        policy[:] = 1.0 / max(1, len(visits))
    elif temperature == 0:
        policy[np.argmax(visits)] = 1.0
    else:
        logs = np.log(visits[seen])
        weights = np.exp((logs - logs.max()) / temperature)
        policy[seen] = weights / weights.sum()
    return policy


def falling_temperature(
    ply: int, start: float = 1.0, decay: float = 0.98, floor: float = 0.1
) -> float:
    """The temperature at a ply of an episode: max(floor, start · decay^ply) [Eq. 10].

    >>> round(falling_temperature(30), 6)
    0.545484
    """
    return max(floor, start * decay**ply)


def confidence_radius(
    visits: Any, mean: Any, mean_square: Any, half_range: float, z: float = Z
) -> Any:
    """How far the value of an edge may be from its mean: z standard errors [Eq. 11].

    The variance is that of the returns seen, mixed with the largest possible one by a weight that
    falls with the square of the visits, as in KataGo, so that few visits give a wide interval.
    Numbers give a number, arrays over edges an array.

    >>> round(float(confidence_radius(100, 0.42, 0.25, half_range=1.0)), 6)
    0.135647
    """
    visits, mean = np.asarray(visits, float), np.asarray(mean, float)
    weight = np.maximum(1.0, visits)
    extra = weight / weight**3
    square = np.maximum(mean_square, mean * mean + 1e-8)
    square = (square * weight + (square + half_range**2) * extra) / (weight + extra)
    sample_size = (weight + extra) ** 2 / (weight + extra**2)
    radius = z * np.sqrt(np.maximum(0.0, square - mean * mean) / sample_size)
    return np.where(visits > 0, radius, 2.0 * half_range * z)[()]


def lcb_choice(visits: np.ndarray, lcb: np.ndarray, least_share: float = LEAST_SHARE) -> int:
    """The edge with the largest lower bound, among those with enough visits; -1 for none.

        argmax mean(a) - radius(a) over N(a) > 0, N(a) ≥ least_share · max N           [Eq. 35]

    The first of equals. The radius is that of [Eq. 11].

    >>> lcb_choice(np.array([400, 50, 70]), np.array([0.40, 0.53, 0.45]))
    2
    """
    visits = np.asarray(visits)
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    eligible = (visits > 0) & (visits >= least_share * np.max(visits))
    return int(np.argmax(np.where(eligible, lcb, -np.inf)))


def lcb_weights(visits: np.ndarray, lcb: np.ndarray, radius: np.ndarray, best: int) -> np.ndarray:
    """Visits as weights, where the edge with the best lower bound gets what its bound deserves.

        w(best) = max( N(best), ((r(a) + d) / (r(a) + d/5))² · N(a) ),  d = lcb(best) - lcb(a)
                                                                                       [Eq. 36]

    The maximum is over the other edges with lcb(a) ≤ lcb(best); r is their radius.

    >>> lcb_weights(np.array([16, 9]), np.array([0.0, 0.5]), np.array([0.4, 0.1]), best=1)
    array([16.  , 51.84])
    """
    weights = np.asarray(visits, float).copy()
    if best < 0:
        return weights
    for other in range(len(weights)):
        gap = lcb[best] - lcb[other]
        if other != best and gap >= 0:
            bottom = radius[other] + 0.2 * gap
            factor = (radius[other] + gap) / bottom if bottom > 0 else 1.0
            weights[best] = max(weights[best], factor * factor * float(visits[other]))
    return weights


def playable(
    proven: np.ndarray, low: float = -math.inf, high: float = math.inf, settled: bool = False
) -> np.ndarray:
    """Which edges may be played, from what each is proven to give the player; NaN where open.

    One that gives the most there is leaves the rest out. One that gives the least there is, or less
    than another one is proven to give, is left out while something else is there.

    Args:
        low, high: the least and the most the player can get, where that is known.
        settled: whether the value of the whole node is proven.

    >>> playable(np.array([0.0, -1.0, np.nan]), low=-1.0, high=1.0)
    array([ True, False,  True])
    >>> playable(np.array([0.0, 1.0, np.nan]), low=-1.0, high=1.0)
    array([False,  True, False])
    """
    exact = ~np.isnan(proven)
    if not exact.any():
        return ~exact
    best = np.max(proven[exact])
    if settled or best >= high or exact.all():
        return proven == best
    return ~exact | ((proven == best) & (best > low))


# --- how the action is chosen --------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """How the action is chosen from what a search found; its name and numbers are all of it."""

    name: str
    parameters: tuple[Any, ...] = ()  # numbers, or None


def temperature(
    start: float = 1.0, decay: float = 0.98, floor: float = 0.1, cutover: int | None = None
) -> Choice:
    """An action drawn by visits at a temperature that falls from ply to ply [Eq. 9, 10].

    The ply is the field `ply` of the state, 0 where it has none. The draw depends on the seed of
    the search and the ply alone.

    Args:
        cutover: from this ply on the most visited action is taken.
    """
    for name, value in (("start", start), ("decay", decay), ("floor", floor)):
        if not value >= 0:
            raise ValueError(f"{name} must be at least 0; got {value}")
    if cutover is not None and cutover < 0:
        raise ValueError(f"cutover is a ply, at least 0, or None for never; got {cutover}")
    return Choice("temperature", (start, decay, floor, cutover))


def lcb(z: float = Z, least_share: float = LEAST_SHARE) -> Choice:
    """The action with the largest lower confidence bound [Eq. 35], z standard errors below."""
    if not z >= 0:
        raise ValueError(f"z must be at least 0; got {z}")
    if not 0 <= least_share <= 1:
        raise ValueError(f"least_share must be within 0 and 1; got {least_share}")
    return Choice("lcb", (z, least_share))


def as_choice(given: str | Choice | None, after_gumbel: bool = False) -> Choice:
    """A choice from its name; without one the most visited, or what a Gumbel root decides.

    >>> as_choice("robust")
    Choice(name='robust', parameters=())
    """
    if given is None:
        given = "gumbel" if after_gumbel else "robust"
    if isinstance(given, str):
        with_defaults: dict[str, Callable[[], Choice]] = {"temperature": temperature, "lcb": lcb}
        given = with_defaults[given]() if given in with_defaults else Choice(given)
    if not isinstance(given, Choice):
        raise TypeError(
            f"choice is one of {', '.join(_PICKS)} or comes from ramify.choice, as "
            f"choice.temperature(); got {given!r}"
        )
    if given.name not in _PICKS:
        raise ValueError(f"choice is one of {', '.join(_PICKS)}; got {given.name!r}")
    if given.name == "gumbel" and not after_gumbel:
        raise ValueError(
            'choice="gumbel" is what a Gumbel root decides; search with '
            "root_selection=selection.gumbel() or leave choice away"
        )
    return given


# Each gives the index, within `among`, of the edge of the root to take; -1 where it has none.


def _pick_robust(result: SearchResult, among: np.ndarray) -> int:
    return robust_choice(result.edges["visits"][among], result._q[among])


def _pick_max(result: SearchResult, among: np.ndarray) -> int:
    return max_choice(result.edges["visits"][among], result._q[among])


def _pick_robust_max(result: SearchResult, among: np.ndarray) -> int:
    return robust_max(result.edges["visits"][among], result._q[among])


def _pick_lcb(result: SearchResult, among: np.ndarray) -> int:
    z, least_share = result.choice.parameters
    lower, _ = result.bounds(z)
    return lcb_choice(result.edges["visits"][among], lower[among], least_share)


def _pick_temperature(result: SearchResult, among: np.ndarray) -> int:
    start, decay, floor, cutover = result.choice.parameters
    ply = _ply(result.game, result.state)
    degree = falling_temperature(ply, start, decay, floor)
    if degree == 0 or (cutover is not None and ply >= cutover):
        return _pick_robust(result, among)
    policy = temperature_policy(result.edges["visits"][among], degree)
    with np.errstate(over="ignore"):
        drawn = random_unit(make_rng(result.seed, stream=_ACTION_STREAM - ply))
    return min(int(np.searchsorted(np.cumsum(policy), drawn, side="right")), len(among) - 1)


def _pick_gumbel(result: SearchResult, among: np.ndarray) -> int:
    visits = result.edges["visits"][among]
    scores = result._gumbel_scores()[among]
    return int(np.argmax(np.where(visits == visits.max(), scores, -np.inf)))


_PICKS: dict[str, Callable[[SearchResult, np.ndarray], int]] = {
    "robust": _pick_robust,
    "max": _pick_max,
    "robust_max": _pick_robust_max,
    "lcb": _pick_lcb,
    "temperature": _pick_temperature,
    "gumbel": _pick_gumbel,
}

# Streams of the seed that no search draws from: those of searches are not negative.
_LINE_STREAM = -2
_ACTION_STREAM = -3  # and below, one per ply


def _ply(game: Game, state: np.record) -> int:
    return int(state["ply"]) if "ply" in (game.dtype.names or ()) else 0


def _plies_left(game: Game, state: np.record) -> int:
    return ENDLESS if game.max_plies is None else game.max_plies - _ply(game, state)


# --- edges of a node, of one tree or several -----------------------------------------------------


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
class _Place:
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

    def child(self, tables: list[np.ndarray], action: int, open_loop: bool) -> _Place:
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
        return _Place(tuple(nodes), tuple(actions), edges[0][1])


def _completion(
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
            min(longest, _plies_left(game, state)), game.data,
        )  # fmt: skip
        if status != evaluators.DONE:
            raise BrokenGame(f"{evaluator.name} cannot value the state\n{game.show(state)}")
        return returns

    return value


def _draw_outcome(game: Game, state: np.record, rng: np.ndarray) -> int:
    """An outcome of a chance state, drawn by its probability."""
    outcomes = game.outcomes(state)
    sums = np.cumsum([probability for _, probability in outcomes])
    drawn = int(np.searchsorted(sums, random_unit(rng), side="right"))
    return outcomes[min(drawn, len(outcomes) - 1)][0]


# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What a search found. Print it for a table.

    Where several threads grew a tree each, all that is said of the root is their sum by action.
    """

    game: Game
    trees: tuple[Tree, ...]  # of the same root, one per thread where each grew its own
    # Why it ended: "simulations", "seconds", "interrupted", "terminal", "solved", or the name of
    # the Stop that ended it.
    status: str
    simulations: int
    seconds: float
    seed: int
    options: dict[str, Any]  # of the search, with defaults filled in
    choice: Choice
    compile_seconds: float = 0.0  # spent before the first simulation
    cached: bool = False  # whether the machine code was there already
    profile: dict[str, float] | None = None  # seconds by part of a simulation, where measured

    @property
    def tree(self) -> Tree:
        """The tree; the first one where several threads grew one each."""
        return self.trees[0]

    @property
    def state(self) -> np.record:
        return self.tree.state

    # What was found about the root.

    @cached_property
    def action(self) -> int | None:
        """What to do, as `choice` says; None where there is nothing to decide.

        What is proven comes first: an action that is proven best is taken, one that is proven worst
        is not while there is another.
        """
        if len(self.edges) == 0 or self._player < 0:
            return None
        among = np.flatnonzero(self._playable(self._root, self._player, self.is_proven))
        rows = self._root[among]
        if not np.isnan(rows["proven"][:, self._player]).any():
            best = robust_choice(rows["visits"], self._q[among])
        elif rows["visits"].max() == 0:
            best = int(np.argmax(rows["prior"]))
        else:
            best = _PICKS[self.choice.name](self, among)
            best = _pick_robust(self, among) if best < 0 else best
        return int(rows["action"][max(best, 0)])

    @cached_property
    def value(self) -> np.ndarray:
        """What the root is worth, per player: the mean of all returns seen there.

        The exact value where the solver found it.
        """
        if self.solved is not None:
            return self.solved
        visits = np.array([max(1, tree.root.visits) for tree in self.trees])
        means = np.array([tree.mean_values(range(1))[0] for tree in self.trees])
        return means[0] if len(means) == 1 else visits @ means / visits.sum()

    @cached_property
    def solved(self) -> np.ndarray | None:
        """What the root is worth exactly, per player; None where that is not proven."""
        for tree in self.trees:
            if tree.proof(0) == "exact":
                return tree.proven_values(range(1))[0]
        return None

    @cached_property
    def is_proven(self) -> bool:
        """Whether the best action is proven, with or without all of what the root is worth."""
        return any(tree.proof(0) != "" for tree in self.trees)

    @cached_property
    def edges(self) -> np.ndarray:
        """The root's edges as a structured array: action, visits, q, prior, lcb, ucb.

        `q` is a vector over the players; `lcb` and `ucb` bound it for the one to move. After a
        search with `solver=True` there is also `proven`, a vector as q, NaN where nothing is.
        """
        root = self._root
        vector = (float, (self.game.num_players,))
        names: list[Any] = [("action", np.int64), ("visits", np.int64), ("q", *vector),
                            ("prior", float), ("lcb", float), ("ucb", float)]  # fmt: skip
        copied = ["action", "visits", "q", "prior"]
        if self.tree.layout.proofs:
            names.append(("proven", *vector))
            copied.append("proven")
        table = np.zeros(len(root), names)
        for name in copied:
            table[name] = root[name]
        table["lcb"], table["ucb"] = self.bounds()
        return table

    def bounds(self, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of q of the root's edges for the one to move [Eq. 11]."""
        root, player = self._root, max(0, self._player)
        low = min(float(tree.head["low"][0][player]) for tree in self.trees)
        high = max(float(tree.head["high"][0][player]) for tree in self.trees)
        half_range = max(0.0, (high - low) / 2) if high >= low else 0.0
        mean = root["q"][:, player]
        radius = confidence_radius(root["visits"], mean, root["square"], half_range, z)
        return mean - radius, mean + radius

    def policy(self, temperature: float = 1.0, by_bounds: bool = False) -> np.ndarray:
        """Visits as a distribution over all actions of the game; see `temperature_policy`.

        At temperature 0 all goes to `action`. At a chance root it is one over outcomes.

        Args:
            by_bounds: count for the action with the best lower bound as many visits as its bound
                deserves [Eq. 36].
        """
        if temperature == 0 and self.action is not None:
            return self._dense(np.where(self.edges["action"] == self.action, 1.0, 0.0))
        visits = self.edges["visits"]
        if by_bounds:
            lower, upper = self.bounds()
            visits = lcb_weights(visits, lower, (upper - lower) / 2, lcb_choice(visits, lower))
        return self._dense(temperature_policy(visits, temperature))

    def improved_policy(self) -> np.ndarray:
        """What a Gumbel search makes of the priors, as a distribution over all actions."""
        from ramify import gumbel

        return self._dense(gumbel.improved_policy(*self._gumbel_arguments()))

    def principal_variation(self, complete: Any = None) -> Variation:
        """The most visited line from the root; ties go to the larger value for who chooses.

        What is proven comes before visits, as in `action`. In an open-loop search, whose tree holds
        no outcomes of chance, the likeliest ones stand between the actions.

        Args:
            complete: how to play on where the tree ends before the episode does. None: not at all.
                "playout": at random. An evaluator, or a function as `evaluators.compiled` takes it:
                by the action after which it sees most for the player to move. `f(state) -> action`:
                as it says. Outcomes of chance are drawn; the same seed gives the same line.
        """
        seen: set[int] = set()
        open_loop = bool(self.options.get("open_loop"))

        def children(place: _Place) -> Any:
            first = place.nodes[0]
            repeated = first.tree.layout.shared and first.edge in seen
            seen.add(first.edge)
            tables = [edge_table(node) for node in place.nodes]
            table = merged(tables)[: 0 if repeated else None]
            visits, q = self._seen_by(first.to_play, table, place.is_proven)
            if open_loop:
                legal = self.game.legal(place.state)
                visits = np.where(np.isin(table["action"], legal), visits, 0)
            return visits, q, lambda i: place.child(tables, int(table["action"][i]), open_loop)

        places = follow(_Place(tuple(tree.root for tree in self.trees)), children)
        actions = [action for place in places[1:] for action in place.actions]
        edges = [e for p in places[1:] for e in (p.edge, *[NONE] * (len(p.actions) - 1))]
        state, by = places[-1].state, None
        if complete is not None:
            by, more, state = self._play_on(state, len(actions), complete)
            actions += more
        return Variation(actions, edges, self.game.is_over(state), len(edges), by)

    def _play_on(
        self, state: np.record, depth: int, complete: Any
    ) -> tuple[str | None, list[int], np.record]:
        """Who played on from `state` (None where it was over), the actions, and where they led."""
        game, rng = self.game, make_rng(self.seed, stream=_LINE_STREAM)
        name, take = _completion(game, complete, rng)
        if game.is_over(state):
            return None, [], state
        limit = _plies_left(game, self.state)
        actions: list[int] = []
        with np.errstate(over="ignore"):
            while not game.is_over(state) and depth + len(actions) < limit:
                chance = game.to_play(state) == CHANCE
                actions.append(_draw_outcome(game, state, rng) if chance else take(state))
                state, _ = game.step(state, actions[-1])
        return name, actions, state

    @property
    def _player(self) -> int:
        return self.tree.root.to_play

    @cached_property
    def _root(self) -> np.ndarray:
        return merged([edge_table(tree.root) for tree in self.trees])

    @cached_property
    def _q(self) -> np.ndarray:
        """q of the root's edges for the one to move."""
        return self._root["q"][:, max(0, self._player)]

    def _seen_by(
        self, player: int, table: np.ndarray, is_proven: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Visits of edges, 0 where proofs speak against one, and what they are worth to `player`.

        Chance has no preferences. The players around a paranoid one want what is worst for it.
        """
        visits = table["visits"]
        if player < 0:
            return visits, np.zeros(len(table))
        if player != self._player and self.options.get("opponents") == "paranoid":
            return visits, -table["q"][:, max(0, self._player)]
        allowed = self._playable(table, player, is_proven)
        return np.where(allowed, visits, 0), table["q"][:, player]

    def _playable(self, table: np.ndarray, player: int, settled: bool) -> np.ndarray:
        known = self.game.payoff_range
        low, high = (-math.inf, math.inf) if known is None else known[player]
        return playable(table["proven"][:, player], low, high, settled)

    def _dense(self, rows: np.ndarray) -> np.ndarray:
        """Numbers per edge of the root as numbers per action."""
        largest = max(self.edges["action"], default=-1)
        policy = np.zeros(max(self.game.num_actions, largest + 1))
        policy[self.edges["action"]] = rows
        return policy

    def _gumbel_arguments(self) -> tuple[Any, ...]:
        """q, prior, visits, what the evaluator said of the root, and the numbers of the rule."""
        rule: Any = self.options.get("root_selection")
        if getattr(rule, "name", None) != "gumbel" or len(self.edges) == 0:
            raise ValueError(
                "an improved policy comes from a Gumbel search of a state that is not over; "
                "search with root_selection=selection.gumbel() and an evaluator that gives priors"
            )
        c_visit, c_scale, rescale = rule.parameters[:3]
        raw_value = float(self.tree.raw_value[max(0, self._player)])
        edges = self.edges
        return self._q, edges["prior"], edges["visits"], raw_value, c_visit, c_scale, bool(rescale)

    def _gumbel_scores(self) -> np.ndarray:
        """Noise, log-prior and the weight of the value of each edge of the root, added up."""
        from ramify import gumbel

        scores = gumbel.transformed_q(*self._gumbel_arguments())
        with np.errstate(divide="ignore"):
            scores += np.log(self.edges["prior"])
        if self.tree.root_noise is not None:
            span = self.tree.root.edges
            actions = self.tree.edges["action"][span.start : span.stop].tolist()
            noise = dict(zip(actions, self.tree.root_noise, strict=False))
            scores += [noise.get(action, 0.0) for action in self.edges["action"].tolist()]
        return scores

    # As plain data.

    def manifest(self) -> dict[str, Any]:
        """What it takes to do this search again, ready for `json.dumps`."""
        import ramify

        return {
            "ramify": ramify.__version__,
            "numba": metadata.version("numba"),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "game": self.game.name,
            "state": hashlib.sha256(self.game.key(self.state)).hexdigest(),
            "options": described(self.options),
            "choice": described(self.choice),
            "seed": self.seed,
            "simulations": self.simulations,
            "threads": self.options.get("threads", 1),
            "status": self.status,
        }

    def to_json(self) -> dict[str, Any]:
        """All of it as plain numbers, lists and strings, ready for `json.dumps`."""
        line = self.principal_variation()
        return {
            "game": self.game.name,
            "status": self.status,
            "action": self.action,
            "value": self.value.tolist(),
            "solved": None if self.solved is None else self.solved.tolist(),
            "edges": [
                {name: _known(row[name].tolist()) for name in self.edges.dtype.names or ()}
                for row in self.edges
            ],
            "principal_variation": {"actions": line.actions, "complete": line.complete},
            "simulations": self.simulations,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "seed": self.seed,
            "tree": {"num_edges": self._num_edges, "num_bytes": self._num_bytes},
            "profile": self.profile,
            "manifest": self.manifest(),
        }

    @property
    def _num_edges(self) -> int:
        return sum(tree.num_edges for tree in self.trees)

    @property
    def _num_bytes(self) -> int:
        return sum(tree.num_bytes for tree in self.trees)

    # For people.

    def __repr__(self) -> str:
        return f"<SearchResult of {self.game.name}: action {self.action}, value {self.value}>"

    def __str__(self) -> str:
        return "\n".join([self.game.show(self.state), "", *self._headline(), *self._table()])

    @property
    def profile_line(self) -> str:
        """Where the time went and what the tree takes, in one line."""
        parts = []
        if self.profile:
            total = max(sum(self.profile.values()), 1e-12)
            shares = [f"{name} {spent / total:.0%}" for name, spent in self.profile.items()]
            parts.append(f"time: {', '.join(shares).replace('%', ' %')}")
        if self.compile_seconds:
            verb = "cached" if self.cached else "compiled"
            parts.append(f"{verb} in {self.compile_seconds:.2f} s")
        depths = [tree.mean_depth for tree in self.trees]
        parts.append(f"mean depth {sum(depths) / len(depths):.1f}")
        parts.append(f"{self._num_edges:,} edges")
        parts.append(f"{self._num_bytes / 1e6:.1f} MB")
        threads = self.options.get("threads", 1)
        if threads > 1:
            kind = "root" if len(self.trees) > 1 else "tree"
            parts.append(f"{threads} threads ({kind})")
        return "; ".join([*parts, f"seed {self.seed}"])

    def _headline(self) -> list[str]:
        if self.status == "terminal":
            return ["The episode is over: there is nothing to search."]
        who = "chance" if self._player == CHANCE else f"player {self._player}"
        best = "" if self.action is None else f": {self.game.show_action(self.state, self.action)}"
        exact = "" if self.solved is None else f" ({self._verdict(self.solved)})"
        speed = self.simulations / max(self.seconds, 1e-9)
        line = self.principal_variation()
        end = ", to the end" if line.complete else ""
        return [
            f"{who} to play{best}   value {_numbers(self.value)}{exact}",
            f"{self.simulations:,} simulations in {self.seconds:.2f} s ({speed:,.0f}/s)"
            f"{self._ending()}",
            self.profile_line,
            f"expected: {self._line_text(line)}{end}",
            "",
        ]

    def _ending(self) -> str:
        """Why the search ended, where it was not by the number of simulations."""
        words = {"simulations": "", "seconds": ", time is up", "interrupted": ", interrupted",
                 "solved": ", solved"}  # fmt: skip
        return words.get(self.status, f", stopped: {self.status}")

    def _verdict(self, proven: np.ndarray) -> str:
        """What is proven, in a word: for two players whose payoffs add up to zero, the outcome."""
        if np.isnan(proven).any():
            return ""
        if self._player < 0 or len(proven) != 2 or proven.sum() != 0:
            return "exact"
        return ("drawn", "won", "lost")[int(np.sign(proven[self._player]))]

    def _line_text(self, line: Variation) -> str:
        words, state = [], self.state
        for action in line.actions[:20]:
            words.append(self.game.show_action(state, action))
            state, _ = self.game.step(state, action)
        return " ".join(words) + (" ..." if line.depth > 20 else "")

    def _table(self, most: int = 12) -> list[str]:
        if len(self.edges) == 0:
            return []
        order = np.lexsort((np.arange(len(self._q)), -self._q, -self.edges["visits"]))
        rows = [["action", "visits", "share", "value", "bound", "prior", "proven"]]
        total = max(1, int(self.edges["visits"].sum()))
        for row, proven in zip(self.edges[order[:most]], self._root["proven"][order], strict=False):
            rows.append([
                self.game.show_action(self.state, int(row["action"])),
                f"{row['visits']:,}",
                f"{row['visits'] / total:.1%}",
                _numbers(row["q"]),
                f"{row['lcb']:+.3f} to {row['ucb']:+.3f}",
                f"{row['prior']:.3f}",
                self._verdict(proven),
            ])  # fmt: skip
        if not any(row[-1] for row in rows[1:]):
            rows = [row[:-1] for row in rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        hidden = len(self.edges) - most
        return lines + ([f"... and {hidden} more"] if hidden > 0 else [])


def described(value: Any) -> Any:
    """A value as JSON can hold it: records by their fields, functions by their names.

    >>> described(Choice("lcb", (5.0, math.inf)))
    {'name': 'lcb', 'parameters': [5.0, 'Infinity']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        words = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return value if math.isfinite(value) else words.get(value, "NaN")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: described(item) for name, item in fields.items() if item is not None}
    if isinstance(value, dict):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _known(value: Any) -> Any:
    """Numbers for JSON: None where there is none."""
    if isinstance(value, list):
        return [_known(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(vector: np.ndarray) -> str:
    return " ".join(f"{number:+.3f}" for number in vector)
