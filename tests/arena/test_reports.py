"""Reports as files."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from uctree import UctreeError
from uctree.arena.reports import plain_row, write_files


@dataclass
class Row:
    name: str
    loss_interval: tuple[float, float]


def test_an_unknown_interval_is_none():
    assert plain_row(Row("a", (-math.inf, math.inf))) == {"name": "a", "loss_interval": None}
    assert plain_row(Row("a", (0.0, 1.0)))["loss_interval"] == (0.0, 1.0)


def test_texts_are_written_to_a_new_folder(tmp_path):
    (path,) = write_files(tmp_path / "new", {"table.md": "x"})
    assert path.read_text() == "x"


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UctreeError, match=r"table\.md: "):
        write_files(tmp_path / "file", {"table.md": "x"})
