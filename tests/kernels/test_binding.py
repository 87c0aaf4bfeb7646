"""Names of kernels that a search binds."""

from __future__ import annotations

import pytest

from uctree.engine.compile import bind
from uctree.kernels.binding import UNBOUND, noinline

pytestmark = pytest.mark.quick

LIMIT = FACTOR = UNBOUND


def product(number):
    return number * FACTOR


def capped(number):
    return min(LIMIT, product(number))


def test_bound_names_reach_the_functions_that_a_function_calls():
    assert bind(capped, {"LIMIT": 10, "FACTOR": 3})(2) == 6
    assert bind(capped, {"LIMIT": 5, "FACTOR": 3})(2) == 5
    assert LIMIT is UNBOUND
    assert repr(UNBOUND) == "UNBOUND"


def test_a_name_without_a_binding_is_an_error():
    with pytest.raises(KeyError, match="FACTOR"):
        bind(capped, {"LIMIT": 10})


def test_a_function_that_is_not_inlined_stays_the_same_function():
    def large(number):
        return number + 1

    assert noinline(large) is large
    assert vars(large) == {"is_never_inlined": True}
    assert large(1) == 2
