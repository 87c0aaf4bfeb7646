"""The action principle's answers to the test vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree import principle

Input = dict[str, Any]
Answer = dict[str, Any]


def _parent_visits(given: Input) -> float | None:
    """N, or None where it is the sum of the visits."""
    return None if given["N_total"] == "sum" else given["N_total"]


def _action(given: Input) -> Answer:
    rest = given["kappa"], given["beta"], _parent_visits(given)
    return {"S_cl": principle.action(given["N"], given["p"], given["Q"], *rest)}


def _negative_gradient(given: Input) -> Answer:
    rest = given["kappa"], given["beta"], _parent_visits(given)
    gradient = principle.negative_gradient(given["N"], given["p"], given["Q"], *rest)
    shift = principle.sibling_shift(given["N"], given["p"], given["kappa"])
    return {"neg_gradient": gradient, "analytic": gradient, "sibling_shift": shift}


def _hessian(given: Input) -> Answer:
    total = _parent_visits(given)
    hessian = principle.hessian(given["N"], given["p"], given["kappa"], total)
    times = hessian @ np.array(given["N"], float)
    return {"h": np.diag(hessian), "H": hessian, "H_times_N": times}


def _one_loop(given: Input) -> Answer:
    total = _parent_visits(given)
    visits, prior, kappa, hbar = (given[name] for name in ("N", "p", "kappa", "hbar"))
    bends = principle.curvatures(visits, prior, kappa, total)

    def bonus(mode: str) -> np.ndarray:
        return principle.one_loop_bonus(visits, prior, kappa, hbar, mode=mode, parent_visits=total)

    return {
        "delta_gamma": principle.one_loop_term(bends, hbar),
        "bonus": bonus("kernel"),
        "constrained_bonus": bonus("simplex"),
        "constrained_weights": principle.fluctuation_shares(bends),
        "saddle_bonus": bonus("saddle"),
    }


def _pruning_term(given: Input) -> Answer:
    """One child kept and b of the same weight pruned, which is what the term is exact for."""
    alike = np.zeros(1 + given["b"])
    return {
        "delta_gamma": principle.pruning_term(given["b"], given["hbar"]),
        "correct_rhs": principle.kept_weight(alike, [0], given["hbar"]),
    }


def _pruning(given: Input) -> Answer:
    actions, kept, hbar = given["S"], given["kept"], given["hbar"]
    free_energy = principle.pruning_free_energy(actions, kept, hbar)
    return {
        "average_exp_minus_W": math.exp(-free_energy / hbar),
        "Z_kept_over_Z_all": principle.kept_weight(actions, kept, hbar),
        "delta_F": free_energy,
        "one_over_one_plus_b_over_m": principle.kept_weight([0.0] * len(actions), kept, hbar),
    }


def _stationary(given: Input) -> Answer:
    prior = given["p"]
    return {
        "visit_fraction_seed_kernel": principle.classical_shares(prior),
        "visit_fraction_puct": principle.puct_shares([0.0] * len(prior), prior, 10**6, 1.25),
    }


FAMILIES: dict[str, Callable[[Input], Answer]] = {
    "quantum.action.": _action,
    "quantum.neg_gradient.": _negative_gradient,
    "quantum.hessian": _hessian,
    "quantum.one_loop.": _one_loop,
    "quantum.rg.": _pruning_term,
    "quantum.jarzynski.": _pruning,
    "quantum.stationary.": _stationary,
}
