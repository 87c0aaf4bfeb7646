"""Actions that are vectors: proposals and refinement, solvers without a tree, regret.

Imported by `engine.compose` (as options of a search), `arena` and `cli`.
Read `proposals.py` first; `solvers.py` and `backward.py` need no tree, `regret.py` rates any path.
"""

from __future__ import annotations

from uctree.continuous.backward import BackwardSolution, generators, solve_backward
from uctree.continuous.proposals import (
    Proposal,
    compiled,
    gaussian,
    low_discrepancy,
    quadratic,
    uniform,
)
from uctree.continuous.solvers import LineSolution, gradient_step, local_maxn, own_gradient_ascent

__all__ = [
    "BackwardSolution",
    "LineSolution",
    "Proposal",
    "compiled",
    "gaussian",
    "generators",
    "gradient_step",
    "local_maxn",
    "low_discrepancy",
    "own_gradient_ascent",
    "quadratic",
    "solve_backward",
    "uniform",
]
