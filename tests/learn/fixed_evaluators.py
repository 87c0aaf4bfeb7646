"""Evaluators with known priors and values, without torch."""

from __future__ import annotations

import numpy as np

from tests.exact import action_values
from uctree import evaluators, solve


def constant(game, logits=None):
    """A network that gives the same logits for all states, and values of 0."""

    def predict(observations):
        row = np.zeros(game.num_actions) if logits is None else logits
        n = len(observations)
        return np.tile(row, (n, 1)).astype(np.float32), np.zeros((n, game.num_players), np.float32)

    return evaluators.network(predict, name="constant")


def perfect(game):
    """A network with the exact values of a small game of two, and priors on optimal actions."""
    solution, known, seen = solve(game), {}, set()
    states = [game.start()]
    for state in states:
        if game.key(state) in seen:
            continue
        seen.add(game.key(state))
        player = game.to_play(state)
        observation = game.observation(state, player).tobytes()
        logits = np.full(game.num_actions, -20.0)
        values = action_values(game, state, solution.value_of)
        best = max(value[player] for value in values)
        for action, value in zip(game.legal(state), values, strict=True):
            after, _ = game.step(state, action)
            if value[player] == best:
                logits[action] = 0.0
            if not game.is_over(after):
                states.append(after)
        known[observation] = logits, best

    def predict(observations):
        rows = [known[each.tobytes()] for each in observations]
        values = np.array([value for _, value in rows])
        return (
            np.array([logits for logits, _ in rows], np.float32),
            np.stack([values, -values], axis=1).astype(np.float32),
        )

    return evaluators.network(predict, name="perfect")
