"""States that Python knows: in kernels they are numbers, and edges keep what is behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

# A state of a search whose steps are answered. `edge` is the action that leads to an unknown state;
# `to_play` is then UNSEEN, and `row` the state in which the action is taken. Else it is NONE.
STATE = np.dtype(
    [("row", np.int32), ("edge", np.int32), ("count", np.int32), ("to_play", np.int32)]
)


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
