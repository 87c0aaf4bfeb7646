"""SearchResult: the action, the policy and the principal variation of a search."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import os
import platform
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np

from uctree.choice import (
    LINE_STREAM,
    Candidates,
    Choice,
    Z,
    choose,
    confidence_radius,
    lcb_choice,
    lcb_weights,
    playable,
    ply_of,
    robust_choice,
    temperature_policy,
    valued_choice,
)
from uctree.engine.history import BestSeen, Samples, history_dtype, summed_samples
from uctree.engine.jsontext import finite
from uctree.game import CHANCE, Game, make_rng
from uctree.kernels.records import NONE
from uctree.tree import Tree
from uctree.variation import (
    Episode,
    Place,
    Variation,
    action_field,
    completion,
    draw_outcome,
    edge_table,
    follow,
    is_action,
    merged,
    plies_left,
    replayed,
    shown_steps,
)


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What a search found. Print it for a table.

    If several threads grew a tree each, the numbers of the root are summed by action.
    """

    game: Game
    trees: tuple[Tree, ...]  # of the same root: one, or one per thread
    # Why the search ended: "simulations", "seconds", "interrupted", "terminal", "solved", "full",
    # or the name of the Stop that ended it.
    status: str
    simulations: int
    seconds: float
    seed: int
    options: dict[str, Any]  # of the search, with defaults filled in
    choice: Choice
    compile_seconds: float = 0.0  # before the first simulation
    cached: bool = False  # whether the machine code came from the cache
    profile: dict[str, float] | None = None  # seconds by part of a simulation, if measured
    began: float = 0.0  # the start of the first simulation, by time.perf_counter
    samples: tuple[Samples, ...] = ()  # of each tree's root during the search
    best_seen: tuple[BestSeen, ...] | None = ()  # by each tree; None if it is not kept
    note: str = ""  # about the world of a plan, as how its states are copied
    costs: dict[str, float] = field(default_factory=dict)  # that a plan booked by `spent`
    num_failed: int = 0  # actions of a plan whose calls failed

    @property
    def tree(self) -> Tree:
        """The tree; the first one if several threads grew one each."""
        return self.trees[0]

    @property
    def evaluations(self) -> int:
        """Simulations of all trees, plus the payoffs computed to refine actions."""
        return sum(tree.evaluations for tree in self.trees)

    @property
    def state(self) -> np.record:
        return self.tree.state

    # The root.

    @property
    def action(self) -> Any:
        """The action to play by `choice`; None if no player is to move.

        It is an int, a vector in a continuous game, or what a Problem calls the action. Proofs come
        first: an action proven best is played, and one proven worst is not unless no other is left.
        """
        return None if self._action is None else self.game.label(self.state, self._action)

    @cached_property
    def _action(self) -> Any:
        """The action to play, as edges hold it."""
        if len(self.edges) == 0 or self._player < 0:
            return None
        among = np.flatnonzero(self._playable(self._root, self._player, self.is_proven))
        rows = self._root[among]
        if not np.isnan(rows["proven"][:, self._player]).any():
            best = robust_choice(rows["visits"], self._q[among])
        elif rows["visits"].max() == 0:
            best = int(np.argmax(rows["prior"]))
        else:
            best = choose(self.choice, self._candidates(among))
        return self.game.plain_action(rows["action"][max(best, 0)])

    @cached_property
    def value(self) -> np.ndarray:
        """The value of the root for each player: the mean of all returns seen.

        The exact value if the solver proved it.
        """
        if self.solved is not None:
            return self.solved
        visits = np.array([max(1, tree.root.visits) for tree in self.trees])
        means = np.array([tree.mean_values(range(1))[0] for tree in self.trees])
        return means[0] if len(means) == 1 else visits @ means / visits.sum()

    @cached_property
    def solved(self) -> np.ndarray | None:
        """The exact value of the root for each player; None if it is not proven."""
        for tree in self.trees:
            if tree.proof(0) == "exact":
                return tree.proven_values(range(1))[0] + 0.0
        return None

    @cached_property
    def is_proven(self) -> bool:
        """Whether the best action is proven, even if the root's value is not for every player."""
        return any(tree.proof(0) != "" for tree in self.trees)

    @cached_property
    def edges(self) -> np.ndarray:
        """The root's edges as a structured array: action, visits, q, prior, lcb, ucb.

        An action is an int, or in a continuous game a vector. `q` is a vector over the players;
        `lcb` and `ucb` bound it for the player to move. After a search with `solver=True` there is
        also `proven`, a vector over the players, NaN if not proven.
        """
        root = self._root
        vector = (float, (self.game.num_players,))
        names: list[Any] = [action_field(self.game), ("visits", np.int64), ("q", *vector),
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

    @cached_property
    def history(self) -> np.ndarray:
        """The root during the search: simulations, seconds, visits, q.

        A structured array of at most 65 moments, the end last. `visits` and `q` have a row for
        each of `edges`, in the same order; `q` is a vector over the players.
        """
        root = self._root
        end = (self.simulations, self.seconds, root["visits"], root["q"])
        moments = [
            (simulations, clock - self.began, visits, q)
            for simulations, clock, visits, q in summed_samples(
                self.samples, self.trees, root["action"]
            )
            if simulations < self.simulations
        ]
        table = np.zeros(len(moments) + 1, history_dtype(len(root), self.game.num_players))
        for row, moment in zip(table, [*moments, end], strict=True):
            row["simulations"], row["seconds"], row["visits"], row["q"] = moment
        return table

    def bounds(self, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of q of the root's edges for the player to move [Eq. 11]."""
        root, player = self._root, max(0, self._player)
        low = min(float(tree.head["low"][0][player]) for tree in self.trees)
        high = max(float(tree.head["high"][0][player]) for tree in self.trees)
        half_range = max(0.0, (high - low) / 2) if high >= low else 0.0
        mean = root["q"][:, player]
        radius = confidence_radius(root["visits"], mean, root["square"], half_range, z)
        proven = root["proven"][:, player]
        is_open = np.isnan(proven)
        return (
            np.where(is_open, mean - radius, proven),
            np.where(is_open, mean + radius, proven),
        )

    def policy(self, temperature: float = 1.0, by_bounds: bool = False) -> np.ndarray:
        """Visits as a distribution over all actions of the game; see `temperature_policy`.

        At temperature 0 it is 1 for `action`. At a chance root it is a distribution over outcomes,
        in a continuous game over `edges`.

        Args:
            by_bounds: raise the visits of the action with the best lower bound by [Eq. 36].
        """
        if temperature == 0 and self._action is not None:
            return self._dense(np.where(is_action(self.edges, self._action), 1.0, 0.0))
        visits = self.edges["visits"]
        if by_bounds:
            lower, upper = self.bounds()
            visits = lcb_weights(visits, lower, (upper - lower) / 2, lcb_choice(visits, lower))
        return self._dense(temperature_policy(visits, temperature))

    def improved_policy(self) -> np.ndarray:
        """The improved policy of a Gumbel search, a distribution over all actions."""
        from uctree.kernels import gumbel

        return self._dense(gumbel.improved_policy(*self._gumbel_arguments()))

    def principal_variation(self, complete: Any = None, *, by: str = "visits") -> Variation:
        """The most visited line from the root; ties go to the larger value for the player to move.

        Proofs come before visits, as in `action`. The tree of an open-loop search has no outcomes
        of chance; the line contains the likeliest ones.

        Args:
            complete: how to continue the line to the end of the episode if the tree ends earlier.
                None: not at all. "playout": at random. "best_reply": by backward induction, the
                best action if all later players play their best too. An evaluator, or a function
                as `evaluators.compiled` takes it: by the action with the largest value for the
                player to move. `f(state) -> action`: by this function. Outcomes of chance are
                drawn; the same seed gives the same line.
            by: "visits", or "value": every player takes the edge of the largest value among those
                with a tenth of the most visits. Prefer it if returns are not random and a node
                has the value of its best edge.
        """
        if by not in ("visits", "value"):
            raise ValueError(f'by is "visits" or "value"; got {by!r}')
        line = self._line(complete, by=by)
        return replace(line, actions=self._labels(line.actions))

    def _labels(self, actions: list[Any]) -> list[Any]:
        """The actions of a line from the root on, as the game or problem calls them."""
        state, labels = self.state, []
        if self.game.labels is None:
            return actions
        for action in actions:
            labels.append(self.game.label(state, action))
            state, _ = self.game.step(state, action)
        return labels

    def best_episode(self) -> Episode | None:
        """The actions of the largest return that a simulation of this search saw, and that return.

        For one player and without chance, playing these actions gives this return. It counts
        episodes that ended in the tree or in a playout; None if there was none. Estimates by an
        evaluator do not count, nor the game's own `playout`, whose actions are not known.
        """
        if self.game.num_players != 1:
            raise ValueError(
                f"{self.game.name} has {self.game.num_players} players, and the best return of one "
                "depends on the others; principal_variation() is the line that all would play"
            )
        if self.game.rules.chance is not None:
            raise ValueError(
                f"{self.game.name} has chance: the largest return seen was luck, which no plan "
                "can repeat; play action by action, and search again after each outcome"
            )
        if self.best_seen is None:
            raise ValueError("search_many with a Python evaluator keeps no episodes; use search()")
        if not self.best_seen:
            return None
        best = max(self.best_seen, key=lambda seen: seen.total)
        episode = replayed(self.game, self.state, best)
        return replace(episode, actions=self._labels(episode.actions))

    def _line(
        self, complete: Any = None, begin: int | None = None, by: str = "visits"
    ) -> Variation:
        """The most visited line; with `begin` the one that begins with this action."""
        seen: set[int] = set()
        open_loop = bool(self.options.get("open_loop"))

        def children(place: Place) -> Any:
            first = place.nodes[0]
            repeated = first.tree.layout.shared and first.edge in seen
            seen.add(first.edge)
            tables = [edge_table(node) for node in place.nodes]
            table = merged(tables)[: 0 if repeated else None]
            visits, q = self._seen_by(first.to_play, table, place.is_proven)
            if begin is not None and first.edge == 0 and len(seen) == 1:
                visits = np.where(is_action(table, begin), table["visits"], 0)
            if open_loop:
                legal = self.game.legal(place.state)
                visits = np.where(np.isin(table["action"], legal), visits, 0)
            return visits, q, lambda i: place.child(tables, table["action"][i], open_loop)

        choose_child = valued_choice if by == "value" else robust_choice
        places = follow(Place(tuple(tree.root for tree in self.trees)), children, choose_child)
        actions, players, edges = list[Any](), list[int](), list[int]()
        for before, place in itertools.pairwise(places):
            outcomes = len(place.actions) - 1  # of chance, after the action
            actions += place.actions
            players += [before.nodes[0].to_play, *[CHANCE] * outcomes]
            edges += [place.edge, *[NONE] * outcomes]
        state, completed_by = places[-1].state, None
        if complete is not None:
            completed_by, more, state = self._continue(state, len(actions), complete)
            actions += [action for _, action in more]
            players += [player for player, _ in more]
        return Variation(
            actions, players, edges, self.game.is_over(state), len(edges), completed_by
        )

    def _continue(
        self, state: np.record, depth: int, complete: Any
    ) -> tuple[str | None, list[tuple[int, Any]], np.record]:
        """The name of the completion (None if the episode is over), its players and actions, and
        the last state."""
        game, rng = self.game, make_rng(self.seed, stream=LINE_STREAM)
        name, take = completion(game, complete, rng)
        if game.is_over(state):
            return None, [], state
        limit = plies_left(game, self.state)
        taken: list[tuple[int, Any]] = []
        with np.errstate(over="ignore"):
            while not game.is_over(state) and depth + len(taken) < limit:
                player = game.to_play(state)
                action = draw_outcome(game, state, rng) if player == CHANCE else take(state)
                taken.append((player, action))
                state, _ = game.step(state, action)
        return name, taken, state

    @property
    def _player(self) -> int:
        return self.tree.root.to_play

    @cached_property
    def _root(self) -> np.ndarray:
        table = merged([edge_table(tree.root) for tree in self.trees])
        if self.options.get("open_loop") and self._player >= 0:
            # The node has the edges of many states; only those of this state count.
            table = table[np.isin(table["action"], self.game.legal(self.state))]
            table["prior"] = 1.0 / max(1, len(table))
        return table

    @cached_property
    def _q(self) -> np.ndarray:
        """q of the root's edges for the player to move."""
        return self._root["q"][:, max(0, self._player)]

    def _seen_by(
        self, player: int, table: np.ndarray, is_proven: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Visits of edges, 0 for those that proofs exclude, and their values for `player`.

        Values at chance are 0. With opponents="paranoid" the others minimise the value of the
        player to move at the root.
        """
        visits = table["visits"]
        if player < 0:
            return visits, np.zeros(len(table))
        if player != self._player and self.options.get("opponents") == "paranoid":
            return visits, -table["q"][:, max(0, self._player)]
        allowed = self._playable(table, player, is_proven)
        return np.where(allowed, visits, 0), table["q"][:, player]

    def _playable(self, table: np.ndarray, player: int, solved: bool) -> np.ndarray:
        known = self.game.payoff_range
        low, high = (-math.inf, math.inf) if known is None else known[player]
        return playable(table["proven"][:, player], low, high, solved)

    def _candidates(self, among: np.ndarray) -> Candidates:
        """The edges of the root with these indices, for the final choice."""
        return Candidates(
            self._root["visits"][among],
            self._q[among],
            ply_of(self.game, self.state),
            self.seed,
            lambda z: self.bounds(z)[0][among],
            lambda: self._gumbel_scores()[among],
        )

    def _dense(self, rows: np.ndarray) -> np.ndarray:
        """Numbers per edge of the root as numbers per action; unchanged if actions are vectors."""
        if self.game.is_continuous:
            return rows
        largest = max(self.edges["action"], default=-1)
        policy = np.zeros(max(self.game.num_actions, largest + 1))
        policy[self.edges["action"]] = rows
        return policy

    def _gumbel_arguments(self) -> tuple[Any, ...]:
        """q, prior, visits, the evaluator's value of the root, and the parameters of the rule."""
        from uctree.kernels import gumbel

        rule: Any = self.options.get("root_selection")
        if getattr(rule, "name", None) != "gumbel" or len(self.edges) == 0:
            raise ValueError(
                "an improved policy needs a Gumbel search of a state that is not over; search "
                "with root_selection=selection.gumbel() and an evaluator that gives priors"
            )
        given = rule.parameters
        raw_value = float(self.tree.raw_value[max(0, self._player)])
        return (
            self._q, self.edges["prior"], self.edges["visits"], raw_value, given[gumbel.C_VISIT],
            given[gumbel.C_SCALE], bool(given[gumbel.RESCALE]),
        )  # fmt: skip

    def _gumbel_scores(self) -> np.ndarray:
        """Noise plus log-prior plus transformed q of each edge of the root."""
        from uctree.kernels import gumbel

        scores = gumbel.transformed_q(*self._gumbel_arguments())
        with np.errstate(divide="ignore"):
            scores += np.log(self.edges["prior"])
        if self.tree.root_noise is not None:
            span = self.tree.root.edges
            actions = self.tree.edges["action"][span.start : span.stop].tolist()
            noise = dict(zip(actions, self.tree.root_noise, strict=False))
            scores += [noise.get(action, 0.0) for action in self.edges["action"].tolist()]
        return scores

    # Plain data and files.

    def manifest(self) -> dict[str, Any]:
        """Everything needed to repeat this search, ready for `json.dumps`."""
        import uctree

        return finite(
            {
                "uctree": uctree.__version__,
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
        )

    def to_json(self) -> dict[str, Any]:
        """The whole result as plain numbers, lists and strings, ready for `json.dumps`."""
        line = self._line()
        return finite(
            {
                "game": self.game.name,
                "status": self.status,
                "action": described_action(self.action),
                "value": self.value.tolist(),
                "solved": None if self.solved is None else self.solved.tolist(),
                "edges": [
                    {name: _finite(row[name].tolist()) for name in self.edges.dtype.names or ()}
                    | self._described_label(row["action"])
                    for row in self.edges
                ],
                "principal_variation": {
                    "actions": [described_action(action) for action in self._labels(line.actions)],
                    "players": line.players,
                    "complete": line.complete,
                },
                "simulations": self.simulations,
                "seconds": self.seconds,
                "compile_seconds": self.compile_seconds,
                "seed": self.seed,
                "tree": {"num_edges": self._num_edges, "num_bytes": self._num_bytes},
                "profile": self.profile,
                "costs": self.costs,
                "num_failed": self.num_failed,
                "manifest": self.manifest(),
            }
        )

    def _described_label(self, action: Any) -> dict[str, Any]:
        """What a problem calls an action, for JSON; nothing in a game, where it is the number."""
        if self.game.labels is None:
            return {}
        return {"action": described_action(self.game.label(self.state, int(action)))}

    def save(self, path: str | os.PathLike[str], *, complete: Any = "auto") -> None:
        """Write the result to a file: an HTML page (.html), or `to_json` (.json).

        The page has the board, a table of the actions, charts of the search, variations, and the
        tree. It is one file and needs no network.

        Args:
            complete: how variations continue after the end of the tree, as in
                `principal_variation`. "auto": by a playout in games of at most 1,000 actions, else
                not at all; nor after a plan, which knows only the steps that were asked for.
        """
        from uctree.pages import result_page

        result_page.save(self, path, complete)

    def _repr_html_(self) -> str:
        """Board and table as HTML for a notebook."""
        from uctree.pages import result_page

        return result_page.fragment(self)

    @property
    def _num_edges(self) -> int:
        return sum(tree.num_edges for tree in self.trees)

    @property
    def _num_bytes(self) -> int:
        return sum(tree.num_bytes for tree in self.trees)

    # Text.

    def __repr__(self) -> str:
        return f"<SearchResult of {self.game.name}: action {self.action!r}, value {self.value}>"

    def __str__(self) -> str:
        return "\n".join([self.game.show(self.state), "", *self._headline(), *self._table()])

    @property
    def profile_line(self) -> str:
        """How the time was spent and how large the tree is, in one line."""
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
        if self.costs:
            parts.append("spent " + ", ".join(f"{n} {c:.6g}" for n, c in self.costs.items()))
        if self.num_failed:
            parts.append(f"{self.num_failed:,} action{'s' * (self.num_failed > 1)} failed")
        return "; ".join([*parts, f"seed {self.seed}"])

    def _headline(self) -> list[str]:
        if self.status == "terminal":
            return ["The episode is over: there is nothing to search."]
        who = "chance" if self._player == CHANCE else f"player {self._player}"
        best = (
            "" if self._action is None else f": {self.game.show_action(self.state, self._action)}"
        )
        exact = "" if self.solved is None else f" ({self._verdict(self.solved)})"
        speed = self.simulations / max(self.seconds, 1e-9)
        line = self._line(begin=self._action)
        end = ", to the end" if line.complete else ""
        return [
            f"{who} to move{best}   value {_numbers(self.value)}{exact}",
            f"{self.simulations:,} simulations in {self.seconds:.2f} s ({speed:,.0f}/s)"
            f"{self._ending()}",
            self.profile_line,
            *([f"world: {self.note}"] if self.note else []),
            f"expected: {self._line_text(line)}{end}",
            "",
        ]

    def _ending(self) -> str:
        """Why the search ended; empty if the number of simulations was reached."""
        words = {"simulations": "", "seconds": ", time is up", "interrupted": ", interrupted",
                 "solved": ", solved", "full": ", full"}  # fmt: skip
        return words.get(self.status, f", stopped: {self.status}")

    def _verdict(self, proven: np.ndarray) -> str:
        """A proven value in a word: the outcome for two players whose payoffs add up to zero."""
        if np.isnan(proven).any():
            return ""
        if self._player < 0 or len(proven) != 2 or proven.sum() != 0:
            return "exact"
        return ("drawn", "won", "lost")[int(np.sign(proven[self._player]))]

    def _line_text(self, line: Variation) -> str:
        words = [text for text, _ in shown_steps(self.game, self.state, line.actions[:20])]
        return " ".join(words) + (" ..." if line.depth > 20 else "")

    def _table(self, most: int = 12) -> list[str]:
        if len(self.edges) == 0:
            return []
        order = np.lexsort((np.arange(len(self._q)), -self._q, -self.edges["visits"]))
        rows = [["action", "visits", "share", "value", "bound", "prior", "proven"]]
        total = max(1, int(self.edges["visits"].sum()))
        for row, proven in zip(self.edges[order[:most]], self._root["proven"][order], strict=False):
            rows.append([
                self.game.show_action(self.state, row["action"]),
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


def described_action(action: Any) -> Any:
    """An action as JSON data; one that is no data is its text.

    >>> described_action(("buy", 3)), described_action(frozenset({1}))
    (['buy', 3], 'frozenset({1})')
    """
    if isinstance(action, (np.ndarray, np.generic)):
        return action.tolist()
    if action is None or isinstance(action, (bool, int, float, str)):
        return action
    return [described_action(each) for each in action] if type(action) is tuple else str(action)


def described(value: Any) -> Any:
    """A value as JSON data: records by their fields, functions by their names.

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


def _finite(value: Any) -> Any:
    """Numbers for JSON: None for NaN and infinity."""
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(vector: np.ndarray) -> str:
    return " ".join(f"{number:+.3f}" for number in vector)
