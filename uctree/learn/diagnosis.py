"""Diagnosis of a network: its values against outcomes, its policy against that of search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uctree.arena.ratings import mean_interval
from uctree.game import Game
from uctree.learn.batched_play import BatchedGame, NetworkSearch, predict
from uctree.learn.targets import divergence, n_step_returns

NUM_BINS = 10  # of predicted values


def diagnose(search: NetworkSearch, games: Sequence[BatchedGame]) -> dict[str, Any]:
    """Numbers about the positions of games in which the network had every seat."""
    game = search.game
    states = [each.record.states[ply.ply] for each in games for ply in each.searched]
    roots = [ply.root for each in games for ply in each.searched]
    game_ids = np.repeat(np.arange(len(games)), [len(each.searched) for each in games])
    outcomes = np.concatenate([_outcomes(game, each) for each in games])
    priors, values = predict(game, search.evaluator, states)
    raw = [row[root.actions] for row, root in zip(priors, roots, strict=True)]
    policies = [search.policy(root) for root in roots]
    expected = np.array([root.value[root.to_play] for root in roots])
    changed = [
        root.actions[np.argmax(row)] != search.action(root)
        for row, root in zip(raw, roots, strict=True)
    ]
    surprises = [divergence(policy, row) for policy, row in zip(policies, raw, strict=True)]
    rows = reliability(values[:, 0], outcomes, game_ids, bin_edges(game, values[:, 0]))
    searched = reliability(expected, outcomes, game_ids, bin_edges(game, expected))
    return {
        "games": len(games),
        "positions": len(states),
        "value_error": calibration_error(rows),
        "search_value_error": calibration_error(searched),
        "reliability": rows,
        "divergence": float(np.mean(surprises)),
        "changed": float(np.mean(changed)),
        "entropy": float(np.mean([entropy(row) for row in raw])),
        "search_entropy": float(np.mean([entropy(row) for row in policies])),
    }


def _outcomes(game: Game, played: BatchedGame) -> np.ndarray:
    """The returns from each searched position on, for the player to move there."""
    rewards = played.record.episode.rewards
    returns = n_step_returns(rewards, discount=game.discount)
    return np.array([returns[ply.ply, ply.root.to_play] for ply in played.searched])


def entropy(policy: np.ndarray) -> float:
    """The entropy of a policy, in nats.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 6) == round(math.log(2), 6)
    True
    """
    return float(-divergence(policy, np.ones(len(policy))))


def bin_edges(game: Game, predicted: np.ndarray) -> np.ndarray:
    """The edges of bins of values: equal parts of the payoff range, or quantiles without one."""
    if game.payoff_range is None:
        return np.quantile(predicted, np.linspace(0.0, 1.0, NUM_BINS + 1))
    return np.linspace(game.payoff_range.min(), game.payoff_range.max(), NUM_BINS + 1)


def reliability(
    predicted: np.ndarray, outcomes: np.ndarray, game_ids: np.ndarray, edges: np.ndarray
) -> list[dict[str, Any]]:
    """The mean predicted value and the mean outcome of each bin of values that is not empty.

    Args:
        game_ids: the game of each position; positions of one game are correlated, so intervals
            count games.
        edges: those of the bins; values beyond them belong to the first or the last bin.

    >>> rows = reliability(np.array([0.1, 0.3, 0.9]), np.array([0.0, 1.0, 1.0]),
    ...                    np.array([0, 1, 2]), np.array([0.0, 0.5, 1.0]))
    >>> [(row["positions"], round(row["predicted"], 2), row["outcome"]) for row in rows]
    [(2, 0.2, 0.5), (1, 0.9, 1.0)]
    """
    bounds = min(edges[0], outcomes.min()), max(edges[-1], outcomes.max())
    bins = np.clip(np.searchsorted(edges, predicted, side="right") - 1, 0, len(edges) - 2)
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        rows.append({
            "low": float(edges[number]),
            "high": float(edges[number + 1]),
            "positions": int(inside.sum()),
            "predicted": float(predicted[inside].mean()),
            "outcome": float(outcomes[inside].mean()),
            "outcome_interval": _clipped(
                bounds, finite_interval(_interval(outcomes[inside], game_ids[inside]))
            ),
        })  # fmt: skip
    return rows


def _interval(outcomes: np.ndarray, game_ids: np.ndarray) -> tuple[float, float]:
    """The interval of the mean of all outcomes, with the games as independent samples."""
    _, indices = np.unique(game_ids, return_inverse=True)
    counts = np.bincount(indices)
    deviations = np.bincount(indices, outcomes - outcomes.mean()) / counts.mean()
    return mean_interval(outcomes.mean() + deviations)


def _clipped(bounds: tuple[float, float], interval: list[float] | None) -> list[float] | None:
    return None if interval is None else np.clip(interval, *bounds).tolist()


def calibration_error(rows: Sequence[dict[str, Any]]) -> float:
    """The expected calibration error of values: distances of means by bin, weighted by positions.

        ECE = Σ_b n_b/n |mean value_b - mean outcome_b|                                 [Eq. 73]

    >>> calibration_error([{"positions": 3, "predicted": 0.5, "outcome": 0.1},
    ...                    {"positions": 1, "predicted": -0.4, "outcome": 0.0}])
    0.4
    """
    total = sum(row["positions"] for row in rows)
    off = sum(row["positions"] * abs(row["predicted"] - row["outcome"]) for row in rows)
    return float(off / total)


def finite_interval(interval: tuple[float, float]) -> list[float] | None:
    """An interval as a list for JSON; None if an end is infinite.

    >>> finite_interval((0.0, 1.0)), finite_interval((-math.inf, math.inf))
    ([0.0, 1.0], None)
    """
    return [float(end) for end in interval] if all(map(math.isfinite, interval)) else None
