"""States that Python knows: in kernels they are numbers, and edges keep what is behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

# A state of a search whose steps are answered. `edge` is the action that leads to an unknown state;
# `to_play` is then UNSEEN, and `row` the state in which the action is taken. Else it is NONE.
STATE = np.dtype(
    [("row", np.int32), ("edge", np.int32), ("count", np.int32), ("to_play", np.int32)]
)


# A state of a learned model. `tree` is the number of its tree, and `row` that of its hidden state
# in the tree; the root has row 0.
HIDDEN_STATE = np.dtype([*STATE.descr, ("tree", np.int32)])


def list_numbers(state: Any, actions: np.ndarray, data: Any) -> int:
    """The `legal` of kernels: actions are numbered in every state."""
    for i in range(state.count):
        actions[i] = i
    return np.int64(state.count)


def no_step(state: Any, action: int, reward: np.ndarray, data: Any) -> None:
    """The `step` of kernels, which is never called."""


def no_outcomes(state: Any, outcomes: np.ndarray, probabilities: np.ndarray, data: Any) -> int:
    """The `chance` of kernels, which is never called."""
    return np.int64(0)


def list_imagined(state: Any, actions: np.ndarray, data: Any) -> int:
    """The `legal` of kernels in a learned model: all actions, at the root those that are legal.

    Below the root nobody knows what is legal. `data[0]` has the legal actions of each root.
    """
    count = np.int64(state.count)
    if state.row == 0:
        for i in range(count):
            actions[i] = data[0][state.tree, i]
    else:
        for i in range(count):
            actions[i] = i
    return count
