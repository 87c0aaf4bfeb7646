"""Reference values of the actions of a state: exact, or from long searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.result import SearchResult
from uctree.solver import solve


@dataclass(frozen=True)
class Reference:
    """The values of the actions of one state, for the player to move."""

    values: dict[int, float]
    best: float
    margin: float  # actions within it of the best count as equally good
    exact: bool
    doubtful: bool  # two long searches chose actions that differ by more than the margin

    def loss(self, action: int) -> float:
        """How much less an action is worth than the best one."""
        return max(0.0, self.best - self.values.get(action, min(self.values.values())))


def exact_reference(
    game: Game, state: np.record, max_states: int, tolerance: float
) -> Reference | None:
    """Exact values of the actions; None if too many states can follow."""
    try:
        solution = solve(game, state, max_states=max_states)
    except BrokenGame:
        raise
    except UctreeError:  # too many states, or values that do not converge
        return None
    player = game.to_play(state)
    values = {action: float(value[player]) for action, value in solution.action_values.items()}
    margin = _margin(game, player, values, tolerance)
    return Reference(values, max(values.values()), margin, exact=True, doubtful=False)


def deep_reference(
    game: Game, state: np.record, pair: Sequence[SearchResult], tolerance: float
) -> Reference:
    """Mean values of two long searches, weighted by the visits of each action."""
    player = game.to_play(state)
    tables = [_action_values(result, player) for result in pair]
    visits: dict[int, int] = {}
    sums: dict[int, float] = {}
    for table in tables:
        for action, (count, value) in table.items():
            visits[action] = visits.get(action, 0) + count
            sums[action] = sums.get(action, 0.0) + count * value
    values = {action: sums[action] / visits[action] for action in visits}
    margin = _margin(game, player, values, tolerance)
    # Only the actions that were chosen have accurate values.
    best = max(values[result.action] for result in pair if result.action is not None)
    doubtful = any(
        _disagrees(table, result.action, other.action, margin)
        for table, result, other in zip(tables, pair, reversed(pair), strict=True)
    )
    return Reference(values, best, margin, exact=False, doubtful=doubtful)


def _disagrees(
    table: dict[int, tuple[int, float]], own: int | None, other: int | None, margin: float
) -> bool:
    """Whether a search values the other search's action below its own by more than the margin."""
    if own is None or other is None:  # a player has a choice, so there is an action
        return False
    return other not in table or table[own][1] - table[other][1] > margin


def _action_values(result: SearchResult, player: int) -> dict[int, tuple[int, float]]:
    """Visits and value of each action with visits."""
    return {
        int(edge["action"]): (int(edge["visits"]), float(edge["q"][player]))
        for edge in result.edges
        if edge["visits"] > 0
    }


def _margin(game: Game, player: int, values: dict[int, float], tolerance: float) -> float:
    """The tolerance in returns; at least the size of rounding errors."""
    if game.payoff_range is not None:
        low, high = game.payoff_range[player]
    else:
        low, high = min(values.values()), max(values.values())
    return max(1e-9, tolerance * float(high - low))
