"""The named tuples that kernels take, and how the fields of one follow from the other."""

from __future__ import annotations

import pytest

from uctree import selection
from uctree.kernels.context import SEARCH_FIELDS, Batch, Rule, Search

pytestmark = pytest.mark.quick


def test_every_field_of_a_search_but_data_is_a_part_of_a_batch():
    assert [*SEARCH_FIELDS, "data"] == list(Search._fields)
    for source, *indices in SEARCH_FIELDS.values():
        assert source in Batch._fields
        assert set(indices) <= {"number", "slot", "first"}


def test_a_rule_has_a_function_for_every_field():
    functions = {"width", "score", "unvisited", "total", "choose"}
    assert functions <= set(Rule._fields)
    for name in functions:
        assert callable(selection.puct().bound(name))
