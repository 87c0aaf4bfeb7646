"""Backup rules as options: their names, their numbers, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uctree import backup
from uctree.kernels import backups

pytestmark = pytest.mark.quick


def test_a_rule_is_a_kernel_and_a_number():
    assert backup.mean() == backup.Backup("mean", backups.gather_nothing, 0.0)
    assert backup.maximum(3) == backup.Backup("maximum", backups.gather_best, 3.0)
    assert backup.soft_maximum(0.5) == backup.Backup("soft_maximum", backups.gather_softly, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: backup.maximum(0), "min_visits must be at least 1; got 0"),
        (lambda: backup.soft_maximum(0.0), "temperature must be above 0; got 0"),
        (lambda: backup.soft_maximum(math.nan), "temperature must be above 0; got nan"),
        (lambda: backup.soft_maximum(math.inf), "temperature must be above 0; got inf"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("min_visits", [1.5, math.nan, True, "3"])
def test_a_number_of_visits_is_whole(min_visits):
    with pytest.raises(TypeError, match=f"min_visits must be a whole number; got {min_visits!r}"):
        backup.maximum(min_visits)
    assert backup.maximum(np.int64(3)) == backup.maximum(3)
