"""Search with objects and recursion: slow, obvious, and what the kernels are measured by.

It draws the same random numbers in the same order, so that the tree of a kernel must equal this one
visit for visit. Where scores may tie, it multiplies in the same order as well.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from uctree.game import CHANCE, ENDLESS, OVER, Game, make_rng, random_below, random_unit

# --- the tree ------------------------------------------------------------------------------------


class Node:
    """A state with what was seen of it."""

    def __init__(self, game: Game, state: Any) -> None:
        self.state = state  # in an open loop that of the latest simulation
        self.player = game.to_play(state)
        self.visits = 0
        self.total = np.zeros(game.num_players)  # of the returns from here on
        self.evaluations = 0
        self.own_total = np.zeros(game.num_players)  # of its own evaluations alone
        self.value: np.ndarray | None = None  # where values are recomputed from the edges
        self.edges: list[Edge] = []
        self.drawn: list[Edge] = []  # outcomes in the order they came up, with outcome widening
        self.num_left_out = 0  # legal actions that never get an edge
        self.exact: np.ndarray | None = None  # what it is worth, once proven
        self.bounds = (-math.inf, math.inf)  # of player 0's value, with two players
        self.mover_proven = False
        self.amaf: dict[tuple[int, int], Amaf] = {}  # by player and action


@dataclass(eq=False)
class Edge:
    """An action or outcome at a node; its child is made when it is first taken."""

    action: int
    prior: float
    total: np.ndarray  # of the returns, the reward of this edge included
    squares: np.ndarray  # of the same returns, squared
    visits: int = 0
    draws: int = 0  # of an outcome: how often it was drawn afresh
    cycles: int = 0  # visits that came back to a node on their own path
    reward: np.ndarray | None = None
    child: Node | None = None


@dataclass
class Amaf:
    """What simulations returned in which a player took an action here or later."""

    visits: int
    total: np.ndarray


# --- rules ---------------------------------------------------------------------------------------


@dataclass
class View:
    """A node as the rule that chooses there sees it: numbers for the mover alone."""

    search: Search
    visits: int  # N(s), own evaluation included
    value: float  # V(s)
    raw_value: float  # what the evaluator said of it
    span: float  # the range of values
    priors: list[float]
    counts: list[int]  # N(s,a)
    q: list[float]  # scaled; of an edge never taken, what the rule takes it to be worth
    raw_q: list[float]  # unscaled; 0 for an edge never taken
    squares: list[float]  # means of scaled squares


def first_play(kind: str, amount: float, value: float, visited_prior: float) -> float:
    """What an edge never taken is taken to be worth."""
    return {
        "infinite": math.inf,
        "constant": amount,
        "parent": value - amount,
        "parent_sqrt": value - amount * math.sqrt(visited_prior),
    }[kind]


@dataclass(frozen=True)
class Ucb1:
    c: float = 0.5
    scale: str = "span"

    def unvisited(self, value: float, visited_prior: float) -> float:
        return math.inf

    def scores(self, view: View) -> list[Any]:
        width = self.c * view.span * math.sqrt(math.log(max(1, view.visits)))
        return [
            q + width * (1.0 / math.sqrt(n)) if n else math.inf
            for q, n in zip(view.q, view.counts, strict=True)
        ]


@dataclass(frozen=True)
class Ucb1Tuned:
    c: float = 1.0
    scale: str = "auto"

    def unvisited(self, value: float, visited_prior: float) -> float:
        return math.inf

    def scores(self, view: View) -> list[Any]:
        log = math.log(max(1, view.visits))

        def score(q: float, n: int, square: float) -> float:
            if n == 0:
                return math.inf
            variance = max(0.0, square - q * q) + math.sqrt(2 * log / n)
            return q + self.c * math.sqrt(log / n * min(0.25, variance))

        return [score(*edge) for edge in zip(view.q, view.counts, view.squares, strict=True)]


@dataclass(frozen=True)
class Puct:
    c: float = 1.25
    c_base: float = 19652.0
    fpu: str = "parent_sqrt"
    fpu_value: float = 0.2
    scale: str = "auto"

    def unvisited(self, value: float, visited_prior: float) -> float:
        return first_play(self.fpu, self.fpu_value, value, visited_prior)

    def scores(self, view: View) -> list[Any]:
        n = max(1, view.visits)
        growth = math.log((1 + n + self.c_base) / self.c_base) if self.c_base < math.inf else 0
        width = (self.c + growth) * math.sqrt(n)
        return [
            q + prior * width / (1 + count)
            for q, prior, count in zip(view.q, view.priors, view.counts, strict=True)
        ]


@dataclass(frozen=True)
class OneLoop:
    kappa: float = 1.25
    value_weight: float = 1.0
    hbar: float = 1.0
    visit_scale: float = 100.0
    mode: str = "kernel"
    max_validity: float = math.inf
    min_visits: int = 0
    fpu: str = "parent_sqrt"
    fpu_value: float = 0.2
    scale: str = "auto"

    def unvisited(self, value: float, visited_prior: float) -> float:
        return first_play(self.fpu, self.fpu_value, value, visited_prior)

    def scores(self, view: View) -> list[Any]:
        """Pairs: of equal scores an edge never taken wins."""
        parent = max(1, view.visits)
        hbar = self.hbar / math.sqrt(1 + view.visits / self.visit_scale)
        stiff = [
            self.kappa * p / 2 * math.sqrt(parent / max(1, n) ** 3)
            for p, n in zip(view.priors, view.counts, strict=True)
        ]
        soft = added([1 / h for h in stiff if h > 0])

        def score(q: float, prior: float, count: int, h: float) -> tuple[float, bool]:
            n = max(1, count)
            share = {"kernel": 0.75, "saddle": 0.5, "off": 0.0, "simplex": 0.75}[self.mode]
            if self.mode == "simplex" and prior > 0:
                share *= 1 - 1 / h / soft
            counts = prior > 0 and count >= self.min_visits
            bonus = share * hbar / n if counts and hbar / (h * n**2) <= self.max_validity else 0.0
            explore = self.kappa * prior * math.sqrt(parent / n)
            return self.value_weight * q + explore + bonus, count == 0

        edges = zip(view.q, view.priors, view.counts, stiff, strict=True)
        return [score(*edge) for edge in edges]


@dataclass(frozen=True)
class Rave:
    """RAVE on a base rule; with `ref` GRAVE, whose statistics are those of a node above."""

    base: Any
    bias: float = 0.1
    equivalence: float | None = None
    ref: int = 0

    @property
    def scale(self) -> str:
        return self.base.scale

    def unvisited(self, value: float, visited_prior: float) -> float:
        return self.base.unvisited(value, visited_prior)

    def scores(self, view: View) -> list[Any]:
        return self.base.scores(view)

    def weight(self, n: int, amaf: int) -> float:
        """How much of the blend is AMAF's."""
        if amaf == 0:
            return 0.0
        if self.equivalence is not None:
            return math.sqrt(self.equivalence / (3 * n + self.equivalence))
        return amaf / (n + amaf + 4 * n * amaf * self.bias**2)


@dataclass(frozen=True)
class GumbelInterior:
    c_visit: float = 50.0
    c_scale: float = 0.1
    rescale: bool = True
    scale: str = "none"

    def unvisited(self, value: float, visited_prior: float) -> float:
        return value

    def scores(self, view: View) -> list[Any]:
        logits = [a + b for a, b in zip(log_priors(view), self.sigma(view), strict=True)]
        policy = softmax(logits)
        total = sum(view.counts)
        return [p - n / (1 + total) for p, n in zip(policy, view.counts, strict=True)]

    def sigma(self, view: View) -> list[float]:
        completed = completed_q(view)
        if self.rescale:
            low, high = min(completed), max(completed)
            completed = [(q - low) / max(high - low, 1e-8) for q in completed]
        return [(self.c_visit + max(view.counts)) * self.c_scale * q for q in completed]


@dataclass(frozen=True)
class GumbelRoot(GumbelInterior):
    num_considered: int = 16

    def scores(self, view: View) -> list[Any]:
        search, visits = view.search, view.counts
        m = min(self.num_considered, len(visits))
        considered = halving_schedule(m, search.num_simulations)[sum(visits)]
        logits = log_priors(view)
        scores = [
            max(-1e9, g + logit - max(logits) + s)
            for g, logit, s in zip(search.gumbel_noise, logits, self.sigma(view), strict=True)
        ]
        return [s if n == considered else -math.inf for s, n in zip(scores, visits, strict=True)]


def log_priors(view: View) -> list[float]:
    return [math.log(p) if p > 0 else -1e300 for p in view.priors]


def completed_q(view: View) -> list[float]:
    """Q where an edge was taken, elsewhere a mix of the evaluator's value and those."""
    total = sum(view.counts)
    taken = [i for i, n in enumerate(view.counts) if n]
    mixed = view.raw_value
    if taken:
        weights = [max(view.priors[i], np.finfo(float).tiny) for i in taken]
        mean = added([w * view.raw_q[i] for w, i in zip(weights, taken, strict=True)])
        mixed = (view.raw_value + total * mean / added(weights)) / (total + 1)
    return [q if n else mixed for q, n in zip(view.raw_q, view.counts, strict=True)]


def halving_schedule(num_considered: int, num_simulations: int) -> list[int]:
    """How many visits the edge has that each simulation takes."""
    if num_considered <= 1:
        return list(range(num_simulations))
    rounds = math.ceil(math.log2(num_considered))
    counters, left = [0] * num_considered, num_considered
    schedule: list[int] = []
    while len(schedule) < num_simulations:
        for _ in range(max(1, num_simulations // (rounds * left))):
            schedule += counters[:left]
            counters[:left] = [n + 1 for n in counters[:left]]
        left = max(2, left // 2)
    return schedule[:num_simulations]


# --- further options of a search -----------------------------------------------------------------


@dataclass(frozen=True)
class Widening:
    k: float = 2.0
    alpha: float = 0.5
    rounding: str = "floor"
    most: int | None = None

    def limit(self, visits: int) -> int:
        rounded = math.floor if self.rounding == "floor" else math.ceil
        return max(1, rounded(self.k * visits**self.alpha))


@dataclass(frozen=True)
class Backup:
    """ "mean", "maximum" over edges with `min_visits`, or "soft_maximum" with a `temperature`."""

    kind: str = "mean"
    min_visits: int = 1
    temperature: float = 1.0


# --- the search ----------------------------------------------------------------------------------


@dataclass
class Search:
    """One search of `state`; `run` grows the tree below `root`.

    Args:
        root_priors: what the root's edges are chosen by instead of their priors (noise mixed in).
        gumbel_noise: one number per edge of the root, for `GumbelRoot`.
    """

    game: Game
    state: Any
    rule: Any = None
    root_rule: Any = None
    evaluate: Callable[..., None] | None = None
    num_playouts: int = 1
    max_plies: int | None = None
    seed: int = 0
    backup: Backup = field(default_factory=Backup)
    widening: Widening | None = None
    chance: str | Widening = "sample"
    open_loop: bool = False
    transpositions: bool = False
    solver: bool = False
    paranoid: bool = False
    ties: str = "first"
    root_priors: list[float] | None = None
    gumbel_noise: list[float] | None = None

    def __post_init__(self) -> None:
        game = self.game
        asked = () if self.evaluate is None else inspect.signature(self.evaluate).parameters
        self.prior_kind = next((kind for kind in ("priors", "logits") if kind in asked), None)
        if self.rule is None:
            self.rule = Puct() if self.prior_kind else Ucb1()
        if self.root_rule is None:
            self.root_rule = self.rule
        self.rng = make_rng(self.seed)
        self.known = game.payoff_range
        self.low = np.full(game.num_players, np.inf)  # of the returns seen
        self.high = -self.low
        ply = int(self.state["ply"]) if "ply" in game.dtype.names else 0
        self.max_depth = ENDLESS if game.max_plies is None else game.max_plies - ply
        self.longest = ENDLESS if self.max_plies is None else self.max_plies
        repeated = getattr(game, "repetition_value", 0.0)
        self.repeated = np.broadcast_to(np.asarray(repeated, float), game.num_players)
        self.recomputes = self.transpositions or self.backup.kind != "mean"
        self.nodes: dict[bytes, Node] = {}  # by key, with transpositions
        self.path: list[Node] = []  # of the simulation that is under way
        self.played: list[tuple[int, int]] = []  # its actions, with who took them
        self.sample = np.zeros(game.num_players)  # what it returned, whatever nodes are worth
        self.root = self.node_of(self.state)

    def run(self, num_simulations: int) -> Node:
        self.num_simulations = num_simulations
        self.simulations = 0
        with np.errstate(over="ignore"):
            if self.prior_kind and not self.root.edges and self.root.player != CHANCE:
                self.visit(self.root, 0)  # outside the budget
            while self.simulations < num_simulations and not self.is_proven(self.root):
                self.played.clear()
                self.visit(self.root, 0)
                self.simulations += 1
        return self.root

    # --- one simulation --------------------------------------------------------------------------

    def visit(self, node: Node, depth: int) -> np.ndarray:
        """One simulation from `node` on; what it returned there."""
        self.path.append(node)
        start = len(self.played)
        takes_edge = False
        if node.exact is not None:
            returns = node.exact
        elif node.player == OVER:
            returns = np.zeros(self.game.num_players)
        elif depth == self.max_depth or self.is_leaf(node, depth):
            returns = self.value(node, depth)
        else:
            takes_edge = True
            returns = self.take(self.choose(node), node, depth)
        self.path.pop()
        node.visits += 1
        node.total = node.total + returns
        if not takes_edge:
            node.evaluations += 1
            node.own_total = node.own_total + returns
            self.sample = returns
        else:  # a leaf has no edges yet whose counts could grow
            self.count_amaf(node, self.played[start:])
        return self.backed_up(node, returns)

    def is_leaf(self, node: Node, depth: int) -> bool:
        if node.player == CHANCE:
            return False
        return not node.edges if self.prior_kind else depth > 0 and node.visits == 0

    def take(self, edge: Edge, node: Node, depth: int) -> np.ndarray:
        """Go on below `edge`; what was returned from `node` on."""
        if node.player != CHANCE:
            self.played.append((node.player, edge.action))
        if edge.child is None or self.open_loop:
            self.step(edge, node)
        child, discount = edge.child, self.game.discount
        if self.transpositions and child in self.path:
            edge.cycles += 1
            after = self.sample = self.repeated
        else:
            after = self.visit(child, depth + 1)
        returns = edge.reward + discount * after
        self.sample = edge.reward + discount * self.sample if self.recomputes else returns
        edge.visits += 1
        edge.total = edge.total + returns
        edge.squares = edge.squares + self.sample * self.sample
        if child.exact is not None or self.all_seen(child) or self.recomputes:
            edge.total = edge.visits * (edge.reward + discount * self.value_of(child))
        self.low, self.high = np.minimum(self.low, returns), np.maximum(self.high, returns)
        return returns

    def step(self, edge: Edge, node: Node) -> None:
        """Take the edge: its reward, and its child where it has none."""
        state, reward = self.game.step(node.state, edge.action)
        while self.open_loop and self.game.to_play(state) == CHANCE:
            outcome = self.draw(self.new_edges(Node(self.game, state)))
            state, more = self.game.step(state, outcome.action)
            reward = reward + more
        edge.reward = reward
        if edge.child is None:
            edge.child = self.node_of(state)
        if self.open_loop:
            edge.child.state, edge.child.player = state, self.game.to_play(state)

    def node_of(self, state: Any) -> Node:
        """A node for `state`; with transpositions the one that is there already."""
        if self.transpositions and self.game.key(state) in self.nodes:
            return self.nodes[self.game.key(state)]
        node = Node(self.game, state)
        if self.known is not None:
            node.bounds = (self.known[0, 0], self.known[0, 1])
        if self.solver and node.player == OVER:
            node.exact, node.bounds = np.zeros(self.game.num_players), (0.0, 0.0)
        if self.transpositions:
            self.nodes[self.game.key(state)] = node
        return node

    # --- what flows back -------------------------------------------------------------------------

    def backed_up(self, node: Node, returns: np.ndarray) -> np.ndarray:
        """What flows further up from a node whose statistics have just changed."""
        if self.solver and node.exact is None and node.edges:
            self.prove(node)
        if node.exact is not None:
            return node.exact
        if self.recomputes:
            # Kept as a sum over visits, so that what ties here ties in a kernel.
            node.value = node.visits * self.recomputed(node) / node.visits
            return node.value
        return returns

    def value_of(self, node: Node) -> np.ndarray:
        """V(s)."""
        if node.exact is not None:
            return node.exact
        if self.recomputes:
            return np.zeros(len(node.total)) if node.value is None else node.value
        return self.expected(node) if self.all_seen(node) else node.total / max(1, node.visits)

    def all_seen(self, node: Node) -> bool:
        """Whether every outcome of a chance node was seen; it is then worth what is expected.

        Outcome widening takes the probabilities as unknown.
        """
        if node.player != CHANCE or isinstance(self.chance, Widening):
            return False
        return bool(node.edges) and all(edge.visits for edge in node.edges)

    def expected(self, node: Node) -> np.ndarray:
        """What a chance node is worth whose outcomes were all seen."""
        return added([e.prior * self.q(e) for e in node.edges], np.zeros(len(node.total)))

    def q(self, edge: Edge) -> np.ndarray:
        """Q(s,a), of an edge that was taken."""
        if not self.transpositions:
            return edge.total / edge.visits
        after = self.repeated
        if edge.cycles < edge.visits:
            after = self.value_of(edge.child)
            after = after + edge.cycles / edge.visits * (self.repeated - after)
        return edge.reward + self.game.discount * after

    def recomputed(self, node: Node) -> np.ndarray:
        """V(s) from the edges of a node."""
        if node.player == OVER:
            return np.zeros(len(node.total))
        least = self.backup.min_visits if self.backup.kind == "maximum" else 1
        eligible = [edge for edge in node.edges if edge.visits >= least]
        if self.backup.kind != "mean" and node.player != CHANCE and eligible:
            values = [self.q(edge) for edge in eligible]
            worth = [self.for_mover(value, node.player) for value in values]
            if self.backup.kind == "maximum":
                return values[worth.index(max(worth))]
            weights = softmax([w / self.backup.temperature for w in worth])
            return sum(w * value for w, value in zip(weights, values, strict=True))
        if self.all_seen(node):
            return self.expected(node)
        taken = [edge.visits * self.q(edge) for edge in node.edges if edge.visits]
        return added(taken, node.own_total) / node.visits

    def count_amaf(self, node: Node, played: list[tuple[int, int]]) -> None:
        own = {(node.player, edge.action) for edge in node.edges}
        for key in own & set(played):
            seen = node.amaf.setdefault(key, Amaf(0, np.zeros(len(self.sample))))
            seen.visits += 1
            seen.total = seen.total + self.sample

    # --- proofs ----------------------------------------------------------------------------------

    def is_proven(self, node: Node) -> bool:
        return node.exact is not None or node.mover_proven

    def prove(self, node: Node) -> None:
        """Find out what follows for a node from what is proven of its edges."""
        if self.game.zero_sum and self.game.num_players == 2:
            self.narrow(node)
            return
        proven = [self.exact_q(edge) for edge in node.edges]
        known = [value for value in proven if value is not None]
        complete = len(known) == len(proven) and node.num_left_out == 0
        if node.player == CHANCE:
            if complete:
                chances = [
                    edge.prior * value for edge, value in zip(node.edges, known, strict=True)
                ]
                node.exact = added(chances, np.zeros(self.game.num_players))
            return
        worth = [value[node.player] for value in known]
        if complete:
            node.exact = known[worth.index(max(worth))]
        if known and self.known is not None:
            node.mover_proven = max(worth) == self.known[node.player, 1]

    def narrow(self, node: Node) -> None:
        """Bounds of player 0's value; equal ones are a proof."""
        bounds = [self.edge_bounds(edge) for edge in node.edges]
        if node.num_left_out:
            bounds.append(self.root.bounds if self.known is None else tuple(self.known[0]))
        if node.player == CHANCE:
            low, high = (
                added([e.prior * b[side] for e, b in zip(node.edges, bounds, strict=True)])
                for side in (0, 1)
            )
        else:
            best = max if node.player == 0 else min
            low, high = (best(bound[side] for bound in bounds) for side in (0, 1))
        node.bounds = (low, high)
        if low == high:
            node.exact = np.array([low, -low])

    def edge_bounds(self, edge: Edge) -> tuple[float, float]:
        if edge.child is None:
            return (-math.inf, math.inf) if self.known is None else tuple(self.known[0])
        low, high = edge.child.bounds
        return edge.reward[0] + low, edge.reward[0] + high

    def exact_q(self, edge: Edge) -> np.ndarray | None:
        """What an edge is worth for certain; None where that is not known."""
        if edge.child is None or edge.child.exact is None:
            return None
        return edge.reward + edge.child.exact

    # --- which edge to take ----------------------------------------------------------------------

    def choose(self, node: Node) -> Edge:
        if not node.edges:
            node.edges = self.new_edges(node)
        if node.player == CHANCE:
            return self.outcome(node)
        edges = self.legal_edges(node) if self.open_loop else node.edges
        won, left = self.worth_taking(node, edges)
        if won:
            return won[0]
        untried = [edge for edge in edges if not edge.visits]
        if self.widening is not None:
            edges = [edge for edge in edges if edge.visits]
            left = [edge for edge in left if edge.visits]
            if untried and (len(edges) < self.widening.limit(node.visits) or not left):
                return untried[0]
        return self.best(node, edges, left or edges)

    def worth_taking(self, node: Node, edges: list[Edge]) -> tuple[list[Edge], list[Edge]]:
        """The edges that are proven to win, and all but those proven to lose."""
        if not self.solver or self.known is None:
            return [], edges
        low, high = self.known[node.player]
        proven = [(edge, self.exact_q(edge)) for edge in edges]
        won = [e for e, value in proven if value is not None and value[node.player] == high]
        left = [e for e, value in proven if value is None or value[node.player] != low]
        return won, left

    def best(self, node: Node, edges: list[Edge], left: list[Edge]) -> Edge:
        """The one of `left` with the largest score among `edges`; of equals the first, or any."""
        rule = self.root_rule if node is self.root else self.rule
        scores = rule.scores(self.view(node, edges, rule))
        best, best_score, num_equals = left[0], None, 0
        for edge, score in zip(edges, scores, strict=True):
            if edge not in left:
                continue
            if best_score is None or score > best_score:
                best, best_score, num_equals = edge, score, 1
            elif score == best_score and self.ties == "random":
                num_equals += 1
                best = edge if random_below(self.rng, num_equals) == 0 else best
        return best

    def view(self, node: Node, edges: list[Edge], rule: Any) -> View:
        player = node.player
        value = self.for_mover(self.value_of(node), player)
        own = self.for_mover(node.own_total / max(1, node.evaluations), player)
        priors = self.selection_priors(node, edges)
        counts = [edge.visits for edge in edges]
        known = [self.mover_q(edge, player) if edge.visits else None for edge in edges]
        seen = [q for q in known if q is not None]
        if isinstance(rule, Rave):
            known, counts = self.blended(rule, node, edges, known)
        shift, factor, span, is_unit = self.scaling(rule.scale, player, value, seen)
        taken = [prior for edge, prior in zip(edges, priors, strict=True) if edge.visits]
        mass = added(taken) if self.prior_kind else len(taken) / len(edges)
        worth = rule.unvisited(value, mass)
        is_noisy = node is self.root and self.root_priors is not None
        if is_noisy and getattr(rule, "fpu", "").startswith("parent"):
            worth = value  # no reduction where noise is to be tried
        if is_unit and worth < math.inf:
            worth = min(1.0, max(0.0, (worth - shift) * factor))
        if rule.scale == "parent_and_siblings":
            worth = 0.0
        q = [worth if q is None else (q - shift) * factor for q in known]
        raw_q = [0.0 if q is None else q for q in known]
        squares = [self.mean_square(edge, player, shift, factor) for edge in edges]
        return View(self, node.visits, value, own, span, priors, counts, q, raw_q, squares)

    def blended(
        self, rule: Rave, node: Node, edges: list[Edge], known: list[float | None]
    ) -> tuple[list[float | None], list[int]]:
        """Values mixed with those of AMAF, and the visits they are scored with."""
        own = [n for n in reversed(self.path) if n.player == node.player]
        amaf = next((n for n in own if n.visits >= rule.ref), node).amaf
        values, counts = [], []
        for edge, q in zip(edges, known, strict=True):
            seen = amaf.get((node.player, edge.action))
            n = edge.visits
            if seen is not None:
                b = rule.weight(n, seen.visits)
                other = self.for_mover(seen.total / seen.visits, node.player)
                q = other if q is None else (1 - b) * q + b * other
                if rule.unvisited(0.0, 0.0) == math.inf:
                    n = max(1, n)
            values.append(q)
            counts.append(n)
        return values, counts

    def selection_priors(self, node: Node, edges: list[Edge]) -> list[float]:
        if self.open_loop:
            return [1.0 / len(edges)] * len(edges)
        if node is self.root and self.root_priors is not None:
            mixed = {e.action: p for e, p in zip(node.edges, self.root_priors, strict=True)}
            return [mixed[edge.action] for edge in edges]
        return [edge.prior for edge in edges]

    def for_mover(self, vector: np.ndarray, player: int) -> float:
        """What a vector is worth for who chooses; paranoid, everybody else is against the root."""
        if not self.paranoid or player == self.root.player:
            return float(vector[player])
        return -float(vector[self.root.player])

    def mover_q(self, edge: Edge, player: int) -> float:
        if self.transpositions:
            return self.for_mover(self.q(edge), player)
        root = 1.0 / math.sqrt(edge.visits)
        return self.for_mover(edge.total, player) * root * root

    def mean_square(self, edge: Edge, player: int, shift: float, factor: float) -> float:
        """The mean of squared returns after scaling."""
        if edge.visits == 0:
            return 0.0
        square = float(edge.squares[self.root.player if self.paranoid else player]) / edge.visits
        mean = self.mover_q(edge, player)
        return (square - 2.0 * shift * mean + shift * shift) * factor * factor

    def scaling(
        self, scale: str, player: int, value: float, seen: list[float]
    ) -> tuple[float, float, float, bool]:
        """Shift and factor for values, the span left after them, and whether that is [0, 1]."""
        if scale == "none":
            return 0.0, 1.0, 1.0, False
        if scale == "parent_and_siblings":
            low, high = min([value, *seen]), max([value, *seen])
            return low, 1.0 / max(high - low, 1e-8), 1.0, True
        if scale in ("auto", "span") and self.known is None:
            scale = "minmax"
        low, high = self.range_of(player, seen_only=scale == "minmax")
        if scale == "span":
            return 0.0, 1.0, high - low, False
        return (low, 1.0 / (high - low), 1.0, True) if high > low else (0.0, 0.0, 1.0, True)

    def range_of(self, player: int, seen_only: bool) -> tuple[float, float]:
        against = self.paranoid and player != self.root.player
        whose = self.root.player if self.paranoid else player
        if seen_only:
            low, high = float(self.low[whose]), float(self.high[whose])
        else:
            low, high = (float(bound) for bound in self.known[whose])
        return (-high, -low) if against else (low, high)

    # --- edges -----------------------------------------------------------------------------------

    def new_edges(self, node: Node, priors: list[float] | None = None) -> list[Edge]:
        if node.player == CHANCE:
            actions, priors = zip(*self.game.outcomes(node.state), strict=True)
        else:
            actions = self.game.legal(node.state)
            priors = [1.0 / len(actions)] * len(actions) if priors is None else priors
        zero = np.zeros(self.game.num_players)
        edges = [Edge(a, p, zero, zero) for a, p in zip(actions, priors, strict=True)]
        if self.widening is not None and node.player != CHANCE:
            edges.sort(key=lambda edge: -edge.prior)
            kept = edges[: self.widening.most]
            node.num_left_out = len(edges) - len(kept)
            return kept
        return edges

    def legal_edges(self, node: Node) -> list[Edge]:
        """The edges of a node in an open loop that are legal in its state.

        They stand in the order in which they became legal first, and then in that of `legal`.
        """
        known = {edge.action for edge in node.edges}
        node.edges += [edge for edge in self.new_edges(node) if edge.action not in known]
        legal = self.game.legal(node.state)
        return [edge for edge in node.edges if edge.action in legal]

    def outcome(self, node: Node) -> Edge:
        """The edge a chance node takes."""
        if self.chance == "proportional":
            return max(node.edges, key=lambda edge: edge.prior / (edge.visits + 1))
        if self.chance == "sample":
            return self.draw(node.edges)
        if len(node.drawn) >= self.chance.limit(node.visits):
            total = sum(edge.draws for edge in node.drawn)
            return self.draw(node.drawn, [edge.draws for edge in node.drawn], total)
        edge = self.draw(node.edges)
        edge.draws += 1
        if edge not in node.drawn:
            node.drawn.append(edge)
        return edge

    def draw(
        self, edges: list[Edge], weights: list[float] | None = None, total: float = 1.0
    ) -> Edge:
        """One of `edges`, by their probabilities or these weights."""
        rest = random_unit(self.rng) * total
        for i, edge in enumerate(edges[:-1]):
            rest -= edge.prior if weights is None else weights[i]
            if rest < 0:
                return edge
        return edges[-1]

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
                self.played.append((player, action))
            state, reward = self.game.step(state, action)
            returns = returns + factor * reward
            factor *= self.game.discount
        return returns, factor, state

    def priors(self, actions: list[int], given: np.ndarray) -> list[float]:
        """Softmax over the legal actions, in the precision a tree keeps; uniform without mass."""
        is_gumbel = any(isinstance(r, GumbelInterior) for r in (self.rule, self.root_rule))
        stored = np.float64 if self.game.max_outcomes or is_gumbel else np.float32
        logits = [float(given[action]) for action in actions]
        if self.prior_kind == "priors":
            logits = [math.log(p) if p > 0 else -math.inf for p in logits]
        top = max(logits)
        weights = [math.exp(x - top) if top > -math.inf else 1.0 for x in logits]
        total = added(weights)
        return [float(stored(weight / total)) for weight in weights]

    def call(self, function: Any, state: Any, values: np.ndarray, priors: Any = None) -> None:
        given = {"state": state, "values": values, "priors": priors, "logits": priors,
                 "rng": self.rng, "data": self.game.data}  # fmt: skip
        function(**{name: given[name] for name in inspect.signature(function).parameters})


def softmax(numbers: list[float]) -> list[float]:
    weights = [math.exp(x - max(numbers)) for x in numbers]
    return [weight / added(weights) for weight in weights]


def added(numbers: list[Any], start: Any = 0.0) -> Any:
    """Their sum, from left to right; `sum` itself compensates for rounding from Python 3.12 on."""
    return reduce(operator.add, numbers, start)
