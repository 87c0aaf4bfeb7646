"""uctree's formulas and searches against values that were computed independently of it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.golden_vectors import compute

pytestmark = pytest.mark.quick

FILE = Path(os.environ.get("UCTREE_GOLDEN") or Path(__file__).parent / "vectors" / "golden.json")
VECTORS = json.loads(FILE.read_text())["vectors"]

# Whole searches: the first of each family is compiled, the others run in plain Python, in which
# kernels give the same numbers.
SEARCHES = ("gumbel.search.", "muzero.search.", "search3p.")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_uctree_gives_the_value_computed_elsewhere(vector, monkeypatch):
    name = vector["id"]
    if name.startswith(SEARCHES) and not name.endswith(".0"):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert_answers(vector)


@pytest.mark.slow
@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if v["id"].startswith(SEARCHES)], ids=lambda vector: vector["id"]
)
def test_compiled_searches_give_the_value_computed_elsewhere(vector):
    assert_answers(vector)


def assert_answers(vector: dict[str, Any]) -> None:
    name = vector["id"]
    expected = {key: value for key, value in vector["expected"].items() if is_asked(name, key)}
    got = compute(name, vector["input"])
    assert expected.keys() <= got.keys()
    for key, value in expected.items():
        assert_equal(got[key], value, vector["tol"], key)


def is_asked(name: str, key: str) -> bool:
    """Whether a key of an answer is compared: not those that record a wrong formula."""
    return not key.startswith("rejected_")


def assert_equal(got: Any, expected: Any, tol: float, where: str) -> None:
    if isinstance(expected, dict):
        expected = {key: v for key, v in expected.items() if not key.startswith("rejected_")}
        assert expected.keys() <= got.keys(), where
        for key, value in expected.items():
            assert_equal(got[key], value, tol, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for i, value in enumerate(expected):
            assert_equal(got[i], value, tol, f"{where}[{i}]")
    elif isinstance(expected, float) or expected in ("Infinity", "-Infinity", "NaN"):
        expected = float(expected)
        assert isinstance(got, (int, float)), f"{where}: got {got}, expected {expected}"
        if math.isfinite(expected):
            same = abs(got - expected) <= tol * max(1.0, abs(expected))
        else:
            same = got == expected or (math.isnan(got) and math.isnan(expected))
        assert same, f"{where}: got {got}, expected {expected}"
    else:
        assert got == expected, where
        assert isinstance(got, bool) == isinstance(expected, bool), where
