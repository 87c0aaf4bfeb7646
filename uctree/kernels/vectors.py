"""Actions that are vectors: drawing them, and projecting them into their space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.game import random_normal, random_unit
from uctree.kernels.rules import DIM, bounds, find_bounds, project, random_action

# --- kernels: vectors ----------------------------------------------------------------------------
# `actions` has three rows: the vector, and the lower and upper corner of its box.


def fixed_bounds(state: Any, actions: np.ndarray, data: Any) -> int:
    """The number of coordinates in use; the corners are written already."""
    return DIM


def state_bounds(state: Any, actions: np.ndarray, data: Any) -> int:
    """Write the box of a state; the number of its coordinates, negative if `bounds` is wrong."""
    dim = np.int64(bounds(state, actions[1], actions[2], data))
    if dim < 1 or dim > DIM:
        return -1
    for j in range(dim):
        if not actions[1, j] <= actions[2, j] or math.isinf(actions[1, j] + actions[2, j]):
            return -1
    for j in range(dim, DIM):
        actions[0, j] = 0.0
    return dim


def draw_in_box(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """Write a random vector of the box; negative if the box is wrong."""
    dim = find_bounds(state, actions, data)
    for j in range(dim):
        actions[0, j] = actions[1, j] + (actions[2, j] - actions[1, j]) * random_unit(rng)
    return min(0, dim)


def draw_on_sphere(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """Write a random vector of length 1; negative on an error."""
    for j in range(DIM):
        actions[0, j] = random_normal(rng)
    return onto_sphere(actions, DIM)


def draw_own_vector(state: Any, actions: np.ndarray, rng: np.ndarray, data: Any) -> int:
    """Write the vector of the game's own `random_action`; negative on an error."""
    dim = find_bounds(state, actions, data)
    random_action(state, actions[0], rng, data)
    return project(actions, dim)


def into_box(actions: np.ndarray, dim: int) -> int:
    """Move the vector into its box; negative if it is NaN."""
    for j in range(dim):
        x = actions[0, j]
        if x < actions[1, j]:
            actions[0, j] = actions[1, j]
        elif x > actions[2, j]:
            actions[0, j] = actions[2, j]
        elif math.isnan(x):
            return -1
    return min(0, dim)


def onto_sphere(actions: np.ndarray, dim: int) -> int:
    """Scale the vector to length 1 (0 becomes the first axis); negative if it is not finite."""
    square = 0.0
    for j in range(DIM):
        square += actions[0, j] * actions[0, j]
    if not math.isfinite(square):
        return -1
    if square == 0.0:
        actions[0, 0] = square = 1.0
    for j in range(DIM):
        actions[0, j] /= math.sqrt(square)
    return 0
