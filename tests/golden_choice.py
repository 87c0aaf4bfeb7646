"""The answers of uctree's choice of an action to the test vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uctree import choice

Input = dict[str, Any]
Answer = dict[str, Any]


def _lcb_choice(given: Input) -> Answer:
    visits, mean, square = (
        np.array([child[key] or 0 for child in given["children"]])
        for key in ("N", "mean", "mean_square")
    )
    radius = choice.confidence_radius(visits, mean, square, given["utility_radius"], given["z"])
    lower = np.where(visits > 0, mean, 0.0) - radius
    best = choice.lcb_choice(visits, lower, given["min_visit_fraction"])
    return {
        "choice": best,
        "lcb": lower,
        "selection_weights": choice.lcb_weights(visits, lower, radius, best),
        "robust_child": choice.robust_choice(visits, mean),
        "max_child": choice.max_choice(visits, mean),
    }


FAMILIES: dict[str, Callable[[Input], Answer]] = {"lcb.choice.": _lcb_choice}
