"""What a function reaches: globals, closures, functions of other files."""

from __future__ import annotations

import types

import numpy as np
import pytest

from uctree import BrokenGame, games
from uctree.engine import reach
from uctree.kernels.binding import UNBOUND

pytestmark = pytest.mark.quick

SCALE, LIMIT = 3, UNBOUND
TABLE = np.arange(3)


def deeper(number):
    return number + SCALE


def outer(closed):
    def inner(number):
        return [deeper(number) + closed + TABLE[i] for i in range(LIMIT)]

    return inner


def wrong(number):
    return number + undefined_name  # noqa: F821


def test_names_come_with_their_values_and_closure_cells_first():
    found = dict(reach.reached(outer(5), {"LIMIT": 2}))
    assert next(iter(found)) == "closed"
    assert found == {"closed": 5, "LIMIT": 2, "TABLE": TABLE, "deeper": deeper, "range": range}


def test_functions_are_followed_once():
    found = reach.reached_functions(outer(deeper), {"LIMIT": 2}, set())
    assert [function.__name__ for function in found] == ["inner", "deeper"]


def test_a_name_that_is_not_defined_is_told_with_its_line():
    with pytest.raises(BrokenGame, match=r"(?s)'undefined_name'.*test_reach\.py, line \d+:  retu"):
        list(reach.reached(wrong, {}))


def test_of_a_module_only_what_is_mentioned_is_read():
    module = types.ModuleType("helpers")
    module.used, module.unused = 1, 2

    def reads():
        return module.used

    assert reach.members_read(module, reads.__code__) == [("used", 1)]
    assert reach.is_own_module(module)
    assert not reach.is_own_module(np)


def test_the_users_files_are_neither_uctrees_nor_numbas():
    assert reach.is_users_file(__file__)
    assert reach.is_users_file(games.nim.__code__.co_filename)  # as an example for users
    assert not reach.is_users_file(reach.__file__)
    assert not reach.is_users_file(np.__file__)
    assert not reach.is_users_file("<string>")


def test_the_line_that_raised_is_that_of_the_user():
    with pytest.raises(ValueError, match="reshape") as caught:
        np.reshape(np.arange(3), (2, 2))
    place = reach.place_of_error(caught.value)
    assert "test_reach.py, line" in place
    assert "np.reshape" in place
