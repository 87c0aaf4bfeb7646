"""Frames: the addresses of many arrays in one, and the search of a tree in a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from uctree.engine.frames import Frame, readers
from uctree.kernels.context import Batch, Search

pytestmark = pytest.mark.quick


class Pair(NamedTuple):
    """Two arrays of different shapes."""

    first: np.ndarray
    second: np.ndarray


def described(words):
    """Address, shape and strides as a frame of two arrays holds them."""
    half = len(words) // 2
    return [(row[0], row[1:8], row[8:15]) for row in (words[:half], words[half:])]


def test_a_frame_holds_the_address_shape_and_strides_of_each_array():
    pair = Pair(np.zeros(5), np.zeros((3, 4), np.int32)[:, ::2])
    for array, (address, shape, strides) in zip(
        pair, described(Frame(pair).words.tolist()), strict=True
    ):
        assert address == array.ctypes.data
        assert shape[: array.ndim] == list(array.shape)
        assert strides[: array.ndim] == list(array.strides)


def test_an_array_that_was_replaced_is_found_by_its_new_address():
    frame = Frame(Pair(np.zeros(5), np.zeros(2)))
    longer = np.zeros(9)
    frame.write({"second": longer})
    address, shape, _ = described(frame.words.tolist())[1]
    assert (address, shape[0]) == (longer.ctypes.data, 9)


@pytest.mark.usefixtures("interpreted")
def test_a_search_has_the_rows_of_its_tree_and_of_its_slot():
    arrays = {name: np.arange(12).reshape(3, 4) for name in Batch._fields}
    arrays["lock"], arrays["works"] = np.zeros(1, int), np.array([70])
    batch = Batch(**arrays)
    found = readers(batch)
    assert found["read_frame"](batch) is batch
    search = found["search_of"](batch, 1, 2, "data")
    assert isinstance(search, Search)
    assert search.edges.tolist() == [4, 5, 6, 7]
    assert search.tree == 4  # the first of its row
    assert search.path.tolist() == [8, 9, 10, 11]
    assert search.work == 70
    assert search.lock is batch.lock
    assert search.data == "data"
