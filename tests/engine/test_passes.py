"""Kernels go through fewer of Numba's passes than rules of users, and mean the same."""

from __future__ import annotations

import numpy as np

from uctree.engine.compile import compile_kernel
from uctree.engine.passes import kernel_passes

DOUBLES = False


def counted(numbers):
    total = 0
    for number in numbers:
        if DOUBLES:
            number.no_such_attribute()
        elif number > 0:
            total += 1
    return total


def listed(numbers):
    return sum([number * number for number in numbers])


def test_functions_of_kernels_have_what_they_need(monkeypatch):
    import numba

    call = numba.njit(pipeline_class=kernel_passes())(counted)
    assert call(np.array([1, -1, 2])) == 2


def test_rules_of_users_may_have_comprehensions(monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    assert compile_kernel(listed, {}, (np.arange(4),), label="test").call(np.arange(4)) == 14
