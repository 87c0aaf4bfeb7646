"""Backup rules: how a node's value is computed from those below."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uctree.kernels.backups import gather_best, gather_nothing, gather_softly


@dataclass(frozen=True)
class Backup:
    """How the value of a node is computed from its edges: a kernel and its parameter."""

    name: str
    gather: Callable[..., bool]
    parameter: float = 0.0


def mean() -> Backup:
    """The value of a node is the mean of the returns seen there."""
    return Backup("mean", gather_nothing)


def maximum(min_visits: int = 1) -> Backup:
    """The value of a node is that of its mover's best edge with at least `min_visits`.

    Without such an edge it is the mean.
    """
    if isinstance(min_visits, bool) or not isinstance(min_visits, (int, np.integer)):
        raise TypeError(f"min_visits must be a whole number; got {min_visits!r}")
    if min_visits < 1:
        raise ValueError(f"min_visits must be at least 1; got {min_visits}")
    return Backup("maximum", gather_best, float(min_visits))


def soft_maximum(temperature: float) -> Backup:
    """The value of a node is the mean over its edges, weighted by exp(Q / temperature) [Eq. 25].

    Q is the mover's, in units of the game's payoffs.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be above 0; got {temperature}")
    return Backup("soft_maximum", gather_softly, temperature)
