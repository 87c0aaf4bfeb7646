"""Statuses of kernels: numbers that cannot be taken for each other."""

from __future__ import annotations

from uctree.kernels import status
from uctree.kernels.records import NONE

STATUSES = {
    name: number
    for name, number in vars(status).items()
    if name.isupper() and name != "GUARD"  # which marks the end of an array
}


def test_no_two_statuses_have_the_same_number():
    assert len(set(STATUSES.values())) == len(STATUSES) > 10


def test_minus_a_status_is_not_an_edge_that_is_missing():
    assert -NONE not in STATUSES.values()
