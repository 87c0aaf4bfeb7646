"""The differences between two searches of one state, action by action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from uctree.choice import as_choice
from uctree.engine.identity import describe_game, game_differences
from uctree.engine.jsontext import finite
from uctree.errors import UctreeError
from uctree.result import SearchResult, described_action
from uctree.tree import Tree
from uctree.variation import action_field

MOST_ROWS = 12  # of the table


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """The total variation distance of two distributions: ½ Σ |p - q|.

    >>> total_variation(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.75, 0.0]))
    0.5
    """
    return float(np.abs(p - q).sum()) / 2


def compare(
    a: SearchResult | Tree, b: SearchResult | Tree, names: tuple[str, str] = ("a", "b")
) -> Comparison:
    """The comparison of two searches of one state; print it for a table.

    Args:
        a, b: results, or trees from `Tree.load`.
        names: of the two, for messages and the table.
    """
    comparison = Comparison(_result(a), _result(b), names)
    _check_same_root(comparison)
    return comparison


def _result(given: SearchResult | Tree) -> SearchResult:
    if not isinstance(given, Tree):
        return given
    simulations = given.simulations
    return SearchResult(
        given.game, (given,), "simulations", simulations, 0.0, 0, {}, as_choice(None)
    )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two searches of the same state."""

    a: SearchResult
    b: SearchResult
    names: tuple[str, str]

    @cached_property
    def edges(self) -> np.ndarray:
        """The root's edges, most visited in `a` first: action, and visits, share, q, prior of both.

        An edge without visits in one of the two has q NaN there, and prior NaN if that search has
        no priors. Actions of plans are numbered as in `a`, those that only `b` has after them.
        """
        tables = [_edges_by_action(result) for result in (self.a, self.b)]
        if self._labels:
            numbers = {label: number for number, label in enumerate(self._labels)}
            tables = [
                {numbers[result.game.label(result.state, action)]: row
                 for action, row in table.items()}
                for result, table in zip((self.a, self.b), tables, strict=True)
            ]  # fmt: skip
        pair, vectors = (float, (2,)), (float, (2, self.a.game.num_players))
        names: list[Any] = [action_field(self.a.game), ("visits", np.int64, (2,)), ("share", *pair),
                            ("q", *vectors), ("prior", *pair)]  # fmt: skip
        actions = sorted(tables[0].keys() | tables[1].keys())
        table = np.zeros(len(actions), names)
        table["q"] = table["prior"] = np.nan
        for row, action in zip(table, actions, strict=True):
            row["action"] = action
            for i, edges in enumerate(tables):
                if action in edges:
                    row["visits"][i], row["q"][i], row["prior"][i] = edges[action]
        table["share"] = table["visits"] / np.maximum(1, table["visits"].sum(axis=0))
        visits = table["visits"]
        return table[np.lexsort((np.arange(len(table)), -visits[:, 1], -visits[:, 0]))]

    @cached_property
    def _labels(self) -> list[Any]:
        """The actions of two plans, which may be listed or proposed in another order."""
        if self.a.game.labels is None:
            return []
        both = (self.a, self.b)
        listed = (r.game.label(r.state, int(action)) for r in both for action in r.edges["action"])
        return list(dict.fromkeys(listed))

    def _text(self, action: int) -> str:
        if self._labels:
            return str(self._labels[action])
        return self.a.game.show_action(self.a.state, action)

    @property
    def total_variation(self) -> float:
        """The distance of the visit distributions of the root, from 0 (the same) to 1."""
        return total_variation(self.edges["share"][:, 0], self.edges["share"][:, 1])

    @property
    def value_difference(self) -> np.ndarray:
        """The value of the root per player in `b`, minus that in `a`."""
        return self.b.value - self.a.value

    @cached_property
    def common_line(self) -> list[Any]:
        """The actions that both principal variations begin with."""
        lines = [result.principal_variation().actions for result in (self.a, self.b)]
        common: list[Any] = []
        for one, other in zip(*lines, strict=False):
            if np.any(one != other):
                break
            common.append(one)
        return common

    def to_json(self) -> dict[str, Any]:
        """The whole comparison as plain numbers, lists and strings, ready for `json.dumps`."""
        both = (self.a, self.b)
        return finite(
            {
                "game": self.a.game.name,
                "to_play": self.a.game.to_play(self.a.state),
                "names": list(self.names),
                "simulations": [result.simulations for result in both],
                "action": [described_action(result.action) for result in both],
                "value": [result.value.tolist() for result in both],
                "value_difference": self.value_difference.tolist(),
                "total_variation": self.total_variation,
                "common_line": [described_action(action) for action in self.common_line],
                "edges": [
                    {name: _plain(row[name]) for name in self.edges.dtype.names or ()}
                    | (
                        {"action": described_action(self._labels[row["action"]])}
                        if self._labels
                        else {}
                    )
                    for row in self.edges
                ],
            }
        )

    def __repr__(self) -> str:
        return f"<Comparison of {self.names[0]} and {self.names[1]}: {self.a.game.name}>"

    def __str__(self) -> str:
        game, state = self.a.game, self.a.state
        return "\n".join([game.show(state), "", *self._headline(), "", *self._table()])

    def _headline(self) -> list[str]:
        game = self.a.game
        lines = [
            f"{game.name}, {'chance' if self._player < 0 else f'player {self._player}'} to move"
        ]
        for letter, name, result in zip("ab", self.names, (self.a, self.b), strict=True):
            action = result._action
            best = "" if action is None else f": {result.game.show_action(result.state, action)}"
            lines.append(
                f"{letter}  {name}, {result.simulations:,} simulations{best}"
                f"   value {self._shown(result.value)}"
            )
        depth = len(self.common_line)
        plies = "first ply expected is" if depth == 1 else f"first {depth} plies expected are"
        lines.append(
            f"visits differ by {self.total_variation:.3f} (total variation), value by "
            f"{self._shown(self.value_difference)}; the {plies} the same"
        )
        return lines

    def _table(self) -> list[str]:
        edges = self.edges
        has_priors = not np.isnan(edges["prior"]).any()
        columns = ("visits", "share", "value", "prior")[: 4 if has_priors else 3]
        rows = [["action", *(f"{column} {letter}" for column in columns for letter in "ab")]]
        for row in edges[:MOST_ROWS]:
            rows.append([
                self._text(row["action"]),
                *(f"{visits:,}" for visits in row["visits"]),
                *(f"{share:.1%}" for share in row["share"]),
                *(self._shown(q) for q in row["q"]),
                *(f"{prior:.3f}" for prior in row["prior"] if has_priors),
            ])  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        hidden = len(edges) - MOST_ROWS
        return lines + ([f"... and {hidden} more"] if hidden > 0 else [])

    @property
    def _player(self) -> int:
        return self.a.game.to_play(self.a.state)

    def _shown(self, vector: np.ndarray) -> str:
        """A value for the player to move, for all players at a chance state."""
        numbers = vector if self._player < 0 else vector[self._player : self._player + 1]
        return "-" if np.isnan(numbers).any() else " ".join(f"{x:+.3f}" for x in numbers)


def _edges_by_action(result: SearchResult) -> dict[Any, tuple[int, Any, float]]:
    """Visits, q and prior of the root's edges by action; NaN for unknown numbers."""
    has_priors = result.tree.priors(result.tree.root.edges) is not None
    return {
        _as_key(row["action"]): (
            int(row["visits"]),
            row["q"] if row["visits"] else np.nan,
            float(row["prior"]) if has_priors else np.nan,
        )
        for row in result.edges
    }


def _as_key(action: Any) -> Any:
    """An action as a key of a dict: an integer, or a tuple of numbers."""
    return tuple(action.tolist()) if np.ndim(action) else int(action)


def _check_same_root(comparison: Comparison) -> None:
    a, b = comparison.a, comparison.b
    one, other = comparison.names
    if a.game is not b.game:
        described = describe_game(a.game)
        differences = game_differences(described, b.game, f"in {one}", f"in {other}")
        if differences:
            raise UctreeError(
                f"{one} and {other} are searches of different games: {'; '.join(differences)}. "
                "Compare searches of one game"
            )
    if a.game.labels is not None and a.game.show(a.state) != b.game.show(b.state):
        raise UctreeError(
            f"{one} and {other} are plans from different states of {a.game.name}. Compare plans "
            "from one state"
        )
    if a.game.key(a.state) != a.game.key(b.state):
        raise UctreeError(
            f"{one} and {other} are searches of different states of {a.game.name}: "
            f"{', '.join(_differing_fields(a, b))}. Compare searches of one state"
        )


def _differing_fields(a: SearchResult, b: SearchResult) -> list[str]:
    """The differences between the two roots, for each field the first one."""
    found = []
    for name in a.game.key_fields:
        one, other = np.asarray(a.state[name]), np.asarray(b.state[name])
        places = np.argwhere(one != other)
        if len(places):
            at = tuple(places[0].tolist())
            found.append(f"{name}{list(at) if at else ''} is {one[at]} and {other[at]}")
    return found


def _plain(value: Any) -> Any:
    """Numbers and lists of a row; None for NaN."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    number = value.item()
    return None if number != number else number
