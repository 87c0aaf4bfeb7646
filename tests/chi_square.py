"""Pearson's chi-square test of counts that should be equal."""

from __future__ import annotations

import numpy as np


def deviations(counts: np.ndarray) -> float:
    """How many standard deviations the chi-square of `counts` is above its mean.

    A chi-square of n degrees of freedom has mean n and variance 2 n.
    """
    degrees = len(counts) - 1
    if degrees == 0:
        return 0.0
    expected = counts.sum() / len(counts)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float((statistic - degrees) / np.sqrt(2 * degrees))
