"""The records of a study."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.principle.formulas import pruning_penalty
from uctree.principle.records import NodeStudy

pytestmark = pytest.mark.quick


def test_the_effective_action_is_the_sum_of_its_parts():
    study = NodeStudy(
        line=(1, 2), to_play=0, visits=50, hbar=0.5, edges=np.zeros(0), action=2.0, one_loop=-0.5,
        num_pruned=3, free_energy=0.25, special_case=0.3,
    )  # fmt: skip
    assert study.effective_action == 1.75
    assert study.penalty == pytest.approx(pruning_penalty(0.25, 50))
