"""Rows of text in columns."""

from __future__ import annotations

import pytest

from uctree.pages.columns import aligned

pytestmark = pytest.mark.quick


def test_columns_are_as_wide_as_their_widest_cell():
    rows = [["name", "games", "note"], ["a", "12", "longer"], ["long name", "3", ""]]
    assert aligned(rows, left=(0, 2)) == [
        "name       games  note",
        "a             12  longer",
        "long name      3",
    ]


def test_rows_of_different_lengths_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        aligned([["a", "b"], ["c"]])
