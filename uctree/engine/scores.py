"""Why a search takes an edge: the terms of the scores at a node, noted by the kernel itself.

The kernel that selects edges runs in plain Python, on copies of the records along a path, and the
functions of its rule note what they are given and what they return. So nothing is computed in
another way than in the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uctree.engine.compile import bind
from uctree.engine.compose import bindings
from uctree.engine.history import Sample
from uctree.engine.options import Options
from uctree.engine.workspace import Workspace, arrays_of
from uctree.game import CHANCE, StateView, StateViews, make_rng
from uctree.kernels.context import Search
from uctree.kernels.records import NONE
from uctree.kernels.selections import select
from uctree.selection import Rule
from uctree.tree import Tree, num_values

MOST_NEEDED = 2**40  # simulations; an edge that needs more will hardly be taken


@dataclass(frozen=True)
class EdgeScore:
    """The terms of the score of an edge; NaN for what the rule did not compute."""

    place: int  # among the edges of the node; NONE for each of the actions without an edge
    action: Any  # an int, or a vector; None for NONE
    visits: int  # N(s,a), with those in flight
    value: float  # Q(s,a) for the player to move, as stored
    q: float = math.nan  # what the rule is given: scaled, or of an edge without visits
    mixed: float = 0.0  # how much all-moves-as-first changed the value
    prior: float = math.nan
    score: float = math.nan
    needed_value: float = math.nan  # the value with which the edge would be taken now
    # How many simulations may pass this edge by before it is taken, if no value changes; 0 now.
    needed_simulations: float = math.nan

    @property
    def bonus(self) -> float:
        """What the score adds to the value: exploration."""
        return self.score - self.q


@dataclass(frozen=True)
class Decision:
    """What the rule computes at a node."""

    state: np.record
    player: int  # to move; CHANCE
    visits: int  # N(s)
    value: float  # V(s) for that player
    rule: str
    untried: int  # legal actions without an edge
    edges: tuple[EdgeScore, ...]
    taken: int  # the place of the edge that the next simulation takes; NONE for a new one
    note: str = ""  # what else decides


def decisions(tree: Tree, options: Options, actions: Sequence[int]) -> list[Decision]:
    """What the rule computes at the root, and at the nodes after these actions.

    Args:
        actions: from the root; in a continuous game the places of the edges at their nodes. The
            list ends early if the tree does.
    """
    copy = _Copy(tree, options)
    copy.add_path(actions)
    return copy.decisions()


def earlier_decision(tree: Tree, options: Options, sample: Sample, before: int) -> Decision:
    """What the rule computed at the root when a sample of its edges was taken.

    Args:
        before: the simulations of the tree when the search began.
    """
    copy = _Copy(tree, options)
    copy.add_sample(sample, before)
    return copy.decisions()[0]


@dataclass
class _Notes:
    """What the functions of a rule were given at one node."""

    scale: tuple[float, float, float, int] = (0.0, 1.0, 1.0, 0)
    blends: list[tuple[int, float, float]] = field(default_factory=list)  # edge, q before and after
    scores: dict[int, tuple[tuple[Any, ...], float]] = field(default_factory=dict)  # by edge


class _Noted:
    """A function of a rule that notes its calls."""

    def __init__(self, name: str, function: Any, notes: list[_Notes]) -> None:
        self.name, self.function, self.notes = name, function, notes

    def __call__(self, *given: Any) -> Any:
        found, notes = self.function(*given), self.notes[-1]
        if self.name == "scale":
            notes.scale = found
        elif self.name == "blend":
            notes.blends.append((int(given[2]), float(given[4]), float(found[0])))
        else:
            last = notes.blends[-1][0] if notes.blends else NONE
            notes.scores[last] = given, float(found)
        return found


@dataclass(frozen=True)
class _Place:
    """A node of the path, in the copy."""

    node: int
    num_edges: int
    state: np.record
    depth: int


class _Copy:
    """Copies of the records along a path, so that a kernel may read and change them."""

    def __init__(self, tree: Tree, options: Options) -> None:
        self.tree, self.options = tree, options
        self.records = tree.edges[:1].copy()
        self.rewards: list[np.ndarray] = []
        self.places: list[_Place] = []

    def add_path(self, actions: Sequence[int]) -> None:
        """Copy the nodes along a path, with their edges."""
        tree, game = self.tree, self.tree.game
        old, new, state = 0, 0, tree.state
        for depth in range(len(actions) + 1):
            first, count = int(tree.edges["first"][old]), int(tree.edges["num_edges"][old])
            if first == NONE or count == 0:
                return
            place = self._add_block(new, tree.edges[first : first + count], None)
            self.places.append(_Place(new, count, state, depth))
            if depth == len(actions) or (self.options.open_loop and depth == 0):
                return
            found = [actions[depth]]
            if not game.is_continuous:
                block = tree.edges["action"][first : first + count]
                found = np.flatnonzero(block == actions[depth]).tolist()
            if not found or not 0 <= found[0] < count:
                return
            edge = first + found[0]
            state, reward = game.step(state, tree.action(edge))
            self.rewards.append(reward[: num_values(game)])
            old, new = edge, place + found[0]
            if tree.layout.shared:
                old, new = int(tree.edges["node"][edge]), int(self.records["node"][new])
                if old == NONE:
                    return

    def add_sample(self, sample: Sample, before: int) -> None:
        """Copy the root as it was when a sample was taken."""
        tree = self.tree
        records = np.frombuffer(sample.edges, tree.edges.dtype)
        nodes = np.frombuffer(sample.nodes, tree.edges.dtype) if sample.nodes else None
        self.records["visits"] = before + sample.simulations
        if tree.layout.shared:
            self.records["node_visits"] = before + sample.simulations
        else:
            self.records["value_sum"] = records["value_sum"].sum(axis=0)
        self.records["num_edges"] = len(records)
        self._add_block(0, records, nodes)
        self.places.append(_Place(0, len(records), tree.state, 0))

    def _add_block(self, node: int, block: np.ndarray, nodes: np.ndarray | None) -> int:
        """Add the edges of a node, with room for those it may still get; the first of them.

        Args:
            nodes: with transpositions, the records of the nodes that the edges lead to; else those
                of the tree.
        """
        tree, first = self.tree, len(self.records)
        legal = int(self.records["num_legal"][node]) if tree.layout.lazy else 0
        room = np.zeros(max(legal - len(block), len(block) + 8), block.dtype)
        self.records = np.concatenate([self.records, block, room])
        self.records["first"][node] = first
        if tree.layout.shared:
            if nodes is None:
                nodes = tree.edges[np.maximum(0, block["node"])]
            self.records["node"][first : first + len(block)] = np.where(
                block["node"] == NONE, NONE, len(self.records) + np.arange(len(block))
            )
            self.records = np.concatenate([self.records, nodes])
        return first

    def decisions(self) -> list[Decision]:
        """What the rule computes at each of the nodes."""
        tree, options, game = self.tree, self.options, self.tree.game
        notes: list[_Notes] = []
        bound = bindings(game, options, tree.layout)
        noting = {
            name: bound[name]._replace(
                **{
                    each: _Noted(each, bind(getattr(bound[name], each), bound), notes)
                    for each in ("scale", "blend", "score")
                }
            )
            for name in ("RULE", "ROOT_RULE")
        }
        choose = bind(select, bound | noting)
        search = self._search()
        found = []
        for place in self.places:
            rule = options.root_selection if place.node == 0 else options.selection
            notes.append(_Notes())
            player = game.to_play(place.state)
            if player == CHANCE or rule.choose is not None:
                found.append(self._without_scores(place, player, rule))
                continue
            search.work.depth = place.depth
            amaf = rule.amaf
            if amaf is not None and self._visits(place.node) >= amaf.ref:
                search.work.amaf_nodes[player] = place.node
            with np.errstate(over="ignore"):
                edge = int(choose(search, place.node, player, StateView(game.copy(place.state))))
            found.append(self._decision(place, player, rule, notes[-1], edge))
        return found

    def _visits(self, node: int) -> int:
        name = "node_visits" if self.tree.layout.shared else "visits"
        return int(self.records[name][node])

    def _search(self) -> Search:
        """What the kernel is given."""
        tree, options, game = self.tree, self.options, self.tree.game
        arrays = arrays_of(game, options, tree.layout)
        space = Workspace(game, options, arrays, tree.state)
        work = space.work.view(np.recarray)[0]
        work.amaf_nodes[:] = NONE
        if options.root_noise is not None and tree.root_noise is not None:
            work.noise[: len(tree.root_noise)] = tree.root_noise
        head = tree.head.copy()
        head["used"] = head["capacity"] = len(self.records)
        head["may_grow"] = 0
        path = np.zeros(len(self.rewards) + 1, arrays.path)
        for depth, reward in enumerate(self.rewards):
            path["reward"][depth] = reward
        needed: dict[str, Any] = {
            "tree": head.view(np.recarray)[0], "edges": self.records.view(np.recarray),
            "path": path.view(np.recarray), "work": work, "states": StateViews(space.states),
            "rng": make_rng(1), "data": game.data,
        }  # fmt: skip
        # Nothing else is read to select an edge.
        return Search(**(dict.fromkeys(Search._fields, np.zeros(0)) | needed))

    def _stored(self, place: _Place, player: int) -> list[EdgeScore]:
        """Visits and values of the edges of a node."""
        first = int(self.records["first"][place.node])
        block = self.records[first : first + place.num_edges]
        nodes = self.records[np.maximum(0, block["node"])] if self.tree.layout.shared else block
        means = self.tree.means(block, nodes)[:, max(0, player)]
        return [
            EdgeScore(i, self._action(row), int(row["visits"]), float(mean))
            for i, (row, mean) in enumerate(zip(block, means, strict=True))
        ]

    def _action(self, record: np.void) -> Any:
        return record["vector"].copy() if self.tree.layout.dim else int(record["action"])

    def _without_scores(self, place: _Place, player: int, rule: Rule) -> Decision:
        note = f"{rule.name} looks at all edges of a node at once and gives none of them a score"
        if player == CHANCE:
            note = "chance is drawn by its probabilities"
        edges = tuple(self._stored(place, player))
        visits = self._visits(place.node)
        return Decision(place.state, player, visits, math.nan, rule.name, 0, edges, NONE, note)

    def _decision(
        self, place: _Place, player: int, rule: Rule, notes: _Notes, edge: int
    ) -> Decision:
        first, tree = int(self.records["first"][place.node]), self.tree
        mixed = {
            at: after - before if math.isfinite(before) else math.nan
            for at, before, after in notes.blends
        }
        edges = []
        for stored in self._stored(place, player):
            at = first + stored.place
            if at in notes.scores:
                given, score = notes.scores[at]
                stored = replace(
                    stored, visits=int(given[2]), q=float(given[0]), prior=float(given[1]),
                    mixed=mixed[at], score=score,
                )  # fmt: skip
            elif at in mixed:  # it has no visits, and such edges come first
                stored = replace(stored, score=math.inf)
            edges.append(stored)
        legal = int(self.records["num_legal"][place.node]) if tree.layout.lazy else 0
        untried = max(0, legal - place.num_edges)
        if NONE in notes.scores:
            given, score = notes.scores[NONE]
            edges.append(
                EdgeScore(NONE, None, 0, math.nan, float(given[0]), 0.0, float(given[1]), score)
            )
        taken = edge - first if first <= edge < first + place.num_edges else NONE
        parent = self._visits(place.node)
        needs = _Needs(rule, notes, taken if taken == NONE else edge, parent)
        value = self._node_value(place, player)
        return Decision(
            place.state, player, parent, value, rule.name, untried,
            tuple(needs.filled(each, first) for each in edges), taken, _note(notes, taken),
        )  # fmt: skip

    def _node_value(self, place: _Place, player: int) -> float:
        """V(s) for a player: the mean of the returns seen, the reward before it included."""
        record = self.records[place.node : place.node + 1]
        stored = record["value_sum"][0].astype(float)
        if not self.tree.layout.shared:
            stored = stored / max(1, self._visits(place.node))
        vector = np.concatenate([stored, -stored]) if self.tree.game.zero_sum else stored
        return float(vector[player])


def _note(notes: _Notes, taken: int) -> str:
    """What decides besides scores, in words; empty if they decide alone."""
    if taken != NONE and not notes.scores:
        return "an action without visits comes first, or a proven one"
    if taken == NONE and not notes.scores:
        return "the node gets another action: those without visits come first, or it widens"
    return "" if taken != NONE else "an action that has no edge yet has the largest score"


class _Needs:
    """What would have to change at a node for the rule to take another edge."""

    def __init__(self, rule: Rule, notes: _Notes, best: int, parent_visits: int) -> None:
        self.rule, self.notes, self.best, self.parent_visits = rule, notes, best, parent_visits

    def filled(self, edge: EdgeScore, first: int) -> EdgeScore:
        """The score of an edge, with what it needs."""
        at = NONE if edge.place == NONE else first + edge.place
        known = self.notes.scores
        is_random = self.rule.asks_for("rng")
        if at == self.best:
            return replace(edge, needed_value=edge.value, needed_simulations=0)
        if at not in known or self.best not in known or is_random:
            return edge
        return replace(edge, needed_value=self._value(at), needed_simulations=self._simulations(at))

    def _score(self, at: int, q: float, passed: int = 0) -> float:
        """The score of an edge after `passed` more simulations of the node took the best one."""
        (_, prior, visits, width, square, total, parameters, rng), _ = self.notes.scores[at]
        if passed:
            width = self.rule.bound("width")(
                self.parent_visits + passed, self.notes.scale[2], parameters
            )
            visits = visits + passed if at == self.best else visits
        score = self.rule.bound("score")
        return float(score(q, prior, visits, width, square, total, parameters, rng))

    def _value(self, at: int) -> float:
        """The stored value with which the score of an edge would be that of the best."""
        given, score = self.notes.scores[at]
        goal, low = self.notes.scores[self.best][1], float(given[0])
        if not math.isfinite(goal - score):
            return math.nan
        step = max(1e-9, goal - score)
        while self._score(at, low + step) < goal:
            step *= 2
            if step > 1e12:
                return math.nan
        high = low + step
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._score(at, middle) < goal else (low, middle)
        shift, factor, _, _ = self.notes.scale
        return high / factor + shift if factor > 0 else math.nan

    def _simulations(self, at: int) -> float:
        """How many simulations take the best edge before this one is taken, all values equal."""
        q, best_q = float(self.notes.scores[at][0][0]), float(self.notes.scores[self.best][0][0])
        if self.rule.total is not None:
            return math.nan  # a term sums over all edges

        def is_taken(passed: int) -> bool:
            return self._score(at, q, passed) > self._score(self.best, best_q, passed)

        passed = 1
        while not is_taken(passed):
            passed *= 2
            if passed > MOST_NEEDED:
                return math.inf
        low, high = passed // 2, passed
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_taken(middle) else (middle, high)
        return float(high)
