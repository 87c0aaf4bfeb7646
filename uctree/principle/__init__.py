"""The action principle behind one-loop PUCT: its formulas, and searches compared with them.

Imported by `cli`; `measurements` uses `mcts`, the formulas only NumPy.
Read `formulas.py` first, with `docs/principle.md`.
"""

from __future__ import annotations

from uctree.principle.formulas import (
    action,
    classical_shares,
    curvatures,
    fluctuation_shares,
    hessian,
    kept_weight,
    measure_kept_weight,
    negative_gradient,
    one_loop_bonus,
    one_loop_term,
    partition_function,
    pruning_free_energy,
    pruning_penalty,
    pruning_term,
    puct_action,
    puct_shares,
    puct_weight,
    sibling_shift,
    simplex_determinant,
    validities,
)
from uctree.principle.measurements import Study, by_share, by_value, study
from uctree.principle.records import NodeStudy, Pruning

__all__ = [
    "NodeStudy",
    "Pruning",
    "Study",
    "action",
    "by_share",
    "by_value",
    "classical_shares",
    "curvatures",
    "fluctuation_shares",
    "hessian",
    "kept_weight",
    "measure_kept_weight",
    "negative_gradient",
    "one_loop_bonus",
    "one_loop_term",
    "partition_function",
    "pruning_free_energy",
    "pruning_penalty",
    "pruning_term",
    "puct_action",
    "puct_shares",
    "puct_weight",
    "sibling_shift",
    "simplex_determinant",
    "study",
    "validities",
]
