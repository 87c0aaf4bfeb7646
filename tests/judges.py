"""Evaluators of tic-tac-toe that give the same values compiled and asked in Python."""

from __future__ import annotations

import numpy as np

import uctree
from uctree import evaluators, games

GAME = games.tic_tac_toe()


def judge(state, values, logits):
    """Priors and values that differ from state to state, the same for each."""
    x = float(state.own) * 0.37 + float(state.taken) * 0.11
    value = float(np.float32(np.sin(x)))
    values[state.to_play], values[1 - state.to_play] = value, -value
    for action in range(9):
        logits[action] = float(np.float32(np.cos(x * (action + 1))))


def judge_batch(states):
    """The same for a batch."""
    x = states["own"] * 0.37 + states["taken"] * 0.11
    rows, me = np.arange(len(states)), states["to_play"]
    values = np.zeros((len(states), 2))
    values[rows, me] = np.sin(x)
    values[rows, 1 - me] = -np.sin(x)
    return np.cos(x[:, None] * np.arange(1, 10)), values


def in_python(**options):
    return evaluators.python(judge_batch, priors=True, **options)


def visits(evaluator, **options):
    result = uctree.search(
        GAME, GAME.start(), num_simulations=300, evaluator=evaluator, **options
    )  # fmt: skip
    return result.edges["visits"].tolist()
