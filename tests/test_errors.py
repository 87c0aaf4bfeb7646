"""Exceptions that a caller can act on."""

from __future__ import annotations

import pickle

import pytest

from uctree import errors

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["BrokenGame", "IllegalAction", "IncompletePath"])
def test_all_are_value_errors_of_uctree(name):
    kind = getattr(errors, name)
    assert issubclass(kind, errors.UctreeError)
    assert issubclass(kind, ValueError)


def test_an_incomplete_path_says_how_long_it_is_and_what_to_do():
    error = errors.IncompletePath(3, "go")
    assert error.depth == 3
    assert str(error).startswith("the path of 3 actions does not reach the end of go; complete it")


@pytest.mark.parametrize(
    "error", [errors.BrokenGame("step set to_play to 5"), errors.IncompletePath(3, "go")]
)
def test_errors_come_back_from_another_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
