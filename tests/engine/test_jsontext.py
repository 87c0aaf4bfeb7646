"""JSON that is written is valid, and JSON that is read is bounded."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

import uctree
from uctree import games
from uctree.engine.jsontext import finite, json_text, parse_json

pytestmark = pytest.mark.quick


def strictly(text):
    """The content of a text; ValueError for what JSON does not have."""

    def refuse(token):
        raise ValueError(token)

    return json.loads(text, parse_constant=refuse)


def test_numbers_that_are_not_finite_become_null():
    content = {"a": [math.nan, 1.5, (math.inf, 2)], "b": {"c": -math.inf}, "d": "NaN", "e": True}
    expected = {"a": [None, 1.5, [None, 2]], "b": {"c": None}, "d": "NaN", "e": True}
    assert strictly(json_text(content)) == expected
    assert finite(content) == expected
    plain = json_text({"x": np.array([1.0, math.nan])}, default=lambda array: array.tolist())
    assert strictly(plain) == {"x": [1.0, None]}


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", '{"a": -Infinity}', "1e400", "-1e999", "9" * 101, "[" * 100_000, "[1,]",
     b"\xff", '{"a": 1'],
    ids=lambda text: str(text[:20]),
)  # fmt: skip
def test_what_is_not_json_or_too_large_is_refused(text):
    began = time.process_time()
    with pytest.raises(ValueError, match=r".") as error:
        parse_json(text)
    assert len(str(error.value)) < 300
    assert time.process_time() - began < 1.0


def test_numbers_of_generators_are_read():
    state = np.random.default_rng(1).bit_generator.state
    assert parse_json(json_text(state)) == state


def test_a_result_with_undefined_numbers_is_valid_json(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.tic_tac_toe()
    result = uctree.search(game, num_simulations=20)
    result.tree.edges["value_sum"][1] = math.nan
    for content in (result.to_json(), result.manifest()):
        assert strictly(json.dumps(content)) == json.loads(json.dumps(content, allow_nan=False))
