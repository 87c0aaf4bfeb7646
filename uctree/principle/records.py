"""The records of a study: prunings, and nodes in the terms of the principle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uctree.principle.formulas import pruning_penalty


@dataclass(frozen=True)
class Pruning:
    """Edges that were dropped from a node, and the cost of that."""

    line: tuple[int, ...]  # the actions from the root to the node
    simulations: int  # of the search so far
    actions: tuple[int, ...]  # of the dropped edges
    num_kept: int
    hbar: float
    free_energy: float  # exact [Eq. 61]
    special_case: float  # by their number alone [Eq. 59]
    predicted: float  # the mean of exp(-W/ħ) in theory [Eq. 60]
    measured: float  # that mean by draws
    error: float  # the standard error of the draws


@dataclass(frozen=True, eq=False)
class NodeStudy:
    """A node of the search in the terms of the principle.

    `edges` has a row per edge with visits: action, visits, share, classical (its share in the
    classical solution [Eq. 56]), squares (that share at equal values, P²/Σ P²), q (scaled as in the
    rule), prior, exploration (κ P √(N/n)), bonus [Eq. 54], validity [Eq. 18].
    """

    line: tuple[int, ...]
    to_play: int
    visits: int  # N(s), those through pruned edges included
    hbar: float
    edges: np.ndarray
    action: float  # S [Eq. 48]
    one_loop: float  # [Eq. 53]
    num_pruned: int
    free_energy: float  # of all its prunings [Eq. 61]
    special_case: float  # of all its prunings, by [Eq. 59]

    @property
    def effective_action(self) -> float:
        """The sum of S, the one-loop term and the free energy of pruning."""
        return self.action + self.one_loop + self.free_energy

    @property
    def penalty(self) -> float:
        """The cost of pruning per visit of the node."""
        return pruning_penalty(self.free_energy, self.visits)
