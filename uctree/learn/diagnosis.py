"""Whether a network is right: its values against what came of them, its policy against search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uctree.arena.ratings import mean_interval
from uctree.game import Game
from uctree.learn.targets import divergence, n_step_returns
from uctree.learn.together import Play, Searches, predict

BINS = 10  # of predicted values


def diagnose(searches: Searches, plays: Sequence[Play]) -> dict[str, Any]:
    """Numbers about the positions of games in which a network had every seat."""
    game = searches.game
    states = [play.ended.states[note.ply] for play in plays for note in play.notes]
    roots = [note.root for play in plays for note in play.notes]
    units = np.repeat(np.arange(len(plays)), [len(play.notes) for play in plays])
    outcomes = np.concatenate([_outcomes(game, play) for play in plays])
    priors, values = predict(game, searches.evaluator, states)
    raw = [row[root.actions] for row, root in zip(priors, roots, strict=True)]
    policies = [searches.policy(root) for root in roots]
    expected = np.array([root.value[root.to_play] for root in roots])
    changed = [
        root.actions[np.argmax(row)] != searches.action(root)
        for row, root in zip(raw, roots, strict=True)
    ]
    surprises = [divergence(policy, row) for policy, row in zip(policies, raw, strict=True)]
    rows = reliability(values[:, 0], outcomes, units, edges_for(game, values[:, 0]))
    searched = reliability(expected, outcomes, units, edges_for(game, expected))
    return {
        "games": len(plays),
        "positions": len(states),
        "value_error": calibration_error(rows),
        "search_value_error": calibration_error(searched),
        "reliability": rows,
        "divergence": float(np.mean(surprises)),
        "changed": float(np.mean(changed)),
        "entropy": float(np.mean([entropy(row) for row in raw])),
        "search_entropy": float(np.mean([entropy(row) for row in policies])),
    }


def _outcomes(game: Game, play: Play) -> np.ndarray:
    """What came of each noted position, for the player who was to play."""
    rewards = play.ended.episode.rewards
    returns = n_step_returns(rewards, discount=game.discount)
    return np.array([returns[note.ply, note.root.to_play] for note in play.notes])


def entropy(policy: np.ndarray) -> float:
    """How undecided a policy is, in nats.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 6) == round(math.log(2), 6)
    True
    """
    return float(-divergence(policy, np.ones(len(policy))))


def edges_for(game: Game, predicted: np.ndarray) -> np.ndarray:
    """Where bins of values end: at equal parts of the range of payoffs, else at quantiles."""
    if game.payoff_range is None:
        return np.quantile(predicted, np.linspace(0.0, 1.0, BINS + 1))
    return np.linspace(game.payoff_range.min(), game.payoff_range.max(), BINS + 1)


def reliability(
    predicted: np.ndarray, outcomes: np.ndarray, units: np.ndarray, edges: np.ndarray
) -> list[dict[str, Any]]:
    """For each bin of predicted values that is not empty, their mean and that of the outcomes.

    Args:
        units: the game of each position; intervals weigh games, since positions of one are alike.
        edges: the ends of the bins; what lies beyond them is in the first or the last one.

    >>> rows = reliability(np.array([0.1, 0.3, 0.9]), np.array([0.0, 1.0, 1.0]),
    ...                    np.array([0, 1, 2]), np.array([0.0, 0.5, 1.0]))
    >>> [(row["positions"], round(row["predicted"], 2), row["outcome"]) for row in rows]
    [(2, 0.2, 0.5), (1, 0.9, 1.0)]
    """
    hull = min(edges[0], outcomes.min()), max(edges[-1], outcomes.max())
    bins = np.clip(np.searchsorted(edges, predicted, side="right") - 1, 0, len(edges) - 2)
    rows = []
    for number in np.unique(bins):
        here = bins == number
        rows.append({
            "low": float(edges[number]),
            "high": float(edges[number + 1]),
            "positions": int(here.sum()),
            "predicted": float(predicted[here].mean()),
            "outcome": float(outcomes[here].mean()),
            "outcome_interval": _within(hull, finite(_interval(outcomes[here], units[here]))),
        })  # fmt: skip
    return rows


def _interval(outcomes: np.ndarray, units: np.ndarray) -> tuple[float, float]:
    """The interval of the mean of all outcomes, where those of one unit go together."""
    _, places = np.unique(units, return_inverse=True)
    counts = np.bincount(places)
    away = np.bincount(places, outcomes - outcomes.mean()) / counts.mean()
    return mean_interval(outcomes.mean() + away)


def _within(hull: tuple[float, float], interval: list[float] | None) -> list[float] | None:
    return None if interval is None else np.clip(interval, *hull).tolist()


def calibration_error(rows: Sequence[dict[str, Any]]) -> float:
    """By how much values are off: the distance of means in each bin, weighed by its positions.

        ECE = Σ_b n_b/n |mean value_b - mean outcome_b|                                 [Eq. 73]

    >>> calibration_error([{"positions": 3, "predicted": 0.5, "outcome": 0.1},
    ...                    {"positions": 1, "predicted": -0.4, "outcome": 0.0}])
    0.4
    """
    total = sum(row["positions"] for row in rows)
    off = sum(row["positions"] * abs(row["predicted"] - row["outcome"]) for row in rows)
    return float(off / total)


def finite(interval: tuple[float, float]) -> list[float] | None:
    """An interval as JSON has it; None where it is not known.

    >>> finite((0.0, 1.0)), finite((-math.inf, math.inf))
    ([0.0, 1.0], None)
    """
    return [float(end) for end in interval] if all(map(math.isfinite, interval)) else None
