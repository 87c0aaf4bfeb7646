"""SearchResult: the action, the policy, the principal variation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ramify.game import CHANCE, Game
from ramify.tree import Tree

# --- formulas ------------------------------------------------------------------------------------


def robust_choice(visits: np.ndarray, q: np.ndarray) -> int:
    """The most visited edge; of equals the one with the larger q, then the first; -1 for none."""
    if len(visits) == 0 or np.max(visits) == 0:
        return -1
    most = np.flatnonzero(visits == np.max(visits))
    return int(most[np.argmax(np.asarray(q)[most])])


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
    visits: int, mean: float, mean_square: float, half_range: float, z: float = 5.0
) -> float:
    """How far the value of an edge may be from its mean: z standard errors [Eq. 11].

    The variance is that of the returns seen, mixed with the largest possible one by a weight that
    falls with the square of the visits, as in KataGo, so that few visits give a wide interval.

    >>> round(confidence_radius(100, 0.42, 0.25, half_range=1.0), 6)
    0.135647
    """
    if visits == 0:
        return 2.0 * half_range * z
    extra = visits / visits**3
    square = max(mean_square, mean * mean + 1e-8)
    square = (square * visits + (square + half_range**2) * extra) / (visits + extra)
    sample_size = (visits + extra) ** 2 / (visits + extra**2)
    return z * math.sqrt((square - mean * mean) / sample_size)


# --- the principal variation ---------------------------------------------------------------------


@dataclass(frozen=True)
class Variation:
    """The line of play a search expects."""

    actions: list[int]
    edges: list[int]  # their indices in the tree
    complete: bool  # whether it reaches the end of the episode

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


# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What a search found. Print it for a table."""

    game: Game
    tree: Tree
    status: str  # why it ended: "simulations", "seconds", "interrupted" or "terminal"
    simulations: int
    seconds: float
    seed: int
    compile_seconds: float = 0.0  # spent before the first simulation
    cached: bool = False  # whether the machine code was there already

    @property
    def state(self) -> np.record:
        return self.tree.state

    @cached_property
    def action(self) -> int | None:
        """The most visited action; None where there is nothing to decide."""
        if len(self.edges) == 0 or self.game.to_play(self.state) == CHANCE:
            return None
        best = robust_choice(self.edges["visits"], self._values_of_mover())
        return int(self.edges["action"][max(best, 0)])

    @cached_property
    def value(self) -> np.ndarray:
        """What the root is worth, per player: the mean of all returns seen there."""
        root = range(1)
        return self.tree.mean_values(root)[0]

    @cached_property
    def edges(self) -> np.ndarray:
        """The root's edges as a structured array: action, visits, q, prior, lcb, ucb.

        `q` is a vector over the players; `lcb` and `ucb` bound it for the one to move.
        """
        node, game = self.tree.root, self.game
        span = slice(node.edges.start, node.edges.stop)
        source = self.tree.edges[span]
        names = [("action", np.int64), ("visits", np.int64), ("q", float, (game.num_players,)),
                 ("prior", float), ("lcb", float), ("ucb", float)]  # fmt: skip
        table = np.zeros(len(source), names)
        table["action"], table["visits"] = source["action"], source["visits"]
        table["q"] = self.tree.mean_values(node.edges)
        has_prior = "prior" in (source.dtype.names or ()) and (
            self.tree.has_priors or node.to_play == CHANCE
        )
        legal = max(1, self.tree.root_squares.shape[0])
        table["prior"] = source["prior"] if has_prior else 1.0 / legal
        player = max(0, node.to_play)
        low, high = (float(self.tree.head[name][0][player]) for name in ("low", "high"))
        half_range = max(0.0, (high - low) / 2) if high >= low else 0.0
        for i, row in enumerate(table):
            visits = max(1, row["visits"])
            square = self.tree.root_squares[i, 0 if game.zero_sum else player] / visits
            mean = row["q"][player]
            radius = confidence_radius(int(row["visits"]), mean, square, half_range)
            row["lcb"], row["ucb"] = mean - radius, mean + radius
        return table

    def policy(self, temperature: float = 1.0) -> np.ndarray:
        """Visits as a distribution over all actions of the game; see `temperature_policy`.

        At a chance root it is one over outcomes.
        """
        largest = max(self.edges["action"], default=-1)
        policy = np.zeros(max(self.game.num_actions, largest + 1))
        if temperature == 0 and self.action is not None:
            policy[self.action] = 1.0
        elif len(self.edges):
            policy[self.edges["action"]] = temperature_policy(self.edges["visits"], temperature)
        return policy

    def principal_variation(self) -> Variation:
        """The most visited line from the root; ties go to the larger value for who chooses."""
        tree = self.tree

        def children(node: Any) -> Any:
            visits = tree.edges["visits"][node.edges.start : node.edges.stop]
            values = tree.mean_values(node.edges)
            q = np.zeros(len(visits)) if node.to_play < 0 else values[:, node.to_play]
            return visits, q, lambda i: node.child(node.edges[i])

        nodes = follow(tree.root, children)
        edges = [node.edge for node in nodes[1:]]
        actions = [int(tree.edges["action"][edge]) for edge in edges]
        return Variation(actions, edges, self.game.is_over(nodes[-1].state))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain numbers, lists and strings, ready for `json.dumps`."""
        line = self.principal_variation()
        return {
            "game": self.game.name,
            "status": self.status,
            "action": self.action,
            "value": self.value.tolist(),
            "edges": [
                {name: row[name].tolist() for name in self.edges.dtype.names or ()}
                for row in self.edges
            ],
            "principal_variation": {"actions": line.actions, "complete": line.complete},
            "simulations": self.simulations,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "seed": self.seed,
            "tree": {"num_edges": self.tree.num_edges, "num_bytes": self.tree.num_bytes},
        }

    def _values_of_mover(self) -> np.ndarray:
        return self.edges["q"][:, max(0, self.tree.root.to_play)]

    def __repr__(self) -> str:
        return f"<SearchResult of {self.game.name}: action {self.action}, value {self.value}>"

    def __str__(self) -> str:
        return "\n".join([self.game.show(self.state), "", *self._headline(), *self._table()])

    def _headline(self) -> list[str]:
        if self.status == "terminal":
            return ["The episode is over: there is nothing to search."]
        to_play = self.game.to_play(self.state)
        who = "chance" if to_play == CHANCE else f"player {to_play}"
        best = "" if self.action is None else f": {self.game.show_action(self.state, self.action)}"
        speed = self.simulations / max(self.seconds, 1e-9)
        ended = ", interrupted" if self.status == "interrupted" else ""
        line = self.principal_variation()
        end = ", to the end" if line.complete else ""
        return [
            f"{who} to play{best}   value {_numbers(self.value)}",
            f"{self.simulations:,} simulations in {self.seconds:.2f} s ({speed:,.0f}/s{ended}), "
            f"{self.tree.num_edges:,} edges, {self.tree.num_bytes / 1e6:.1f} MB",
            f"expected: {self._line_text(line)}{end}",
            "",
        ]

    def _line_text(self, line: Variation) -> str:
        words, state = [], self.state
        for action in line.actions[:20]:
            words.append(self.game.show_action(state, action))
            state, _ = self.game.step(state, action)
        return " ".join(words) + (" ..." if line.depth > 20 else "")

    def _table(self, most: int = 12) -> list[str]:
        if len(self.edges) == 0:
            return []
        q = self._values_of_mover()
        order = np.lexsort((np.arange(len(q)), -q, -self.edges["visits"]))
        rows = [["action", "visits", "share", "value", "bound", "prior"]]
        total = max(1, int(self.edges["visits"].sum()))
        for row in self.edges[order[:most]]:
            rows.append([
                self.game.show_action(self.state, int(row["action"])),
                f"{row['visits']:,}",
                f"{row['visits'] / total:.1%}",
                _numbers(row["q"]),
                f"{row['lcb']:+.3f} to {row['ucb']:+.3f}",
                f"{row['prior']:.3f}",
            ])  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        hidden = len(self.edges) - most
        return lines + ([f"... and {hidden} more"] if hidden > 0 else [])


def _numbers(vector: np.ndarray) -> str:
    return " ".join(f"{number:+.3f}" for number in vector)
