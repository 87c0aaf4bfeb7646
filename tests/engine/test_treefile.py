"""Trees as files: what is written comes back, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import random
import struct
import time
import tracemalloc

import numpy as np
import pytest

from uctree import games
from uctree.engine import treefile

pytestmark = pytest.mark.quick

NESTED = np.dtype(
    [
        ("visits", np.int32),
        ("value_sum", np.float64, (3,)),
        ("inner", [("flag", np.bool_), ("pair", ">i2", (2, 2))], (2,)),
        ("bits", np.uint64),
    ]
)
PADDED = np.dtype([("small", np.int8), ("large", np.float64)], align=True)
OVERLAPPING = np.dtype(
    {"names": ["low", "all"], "formats": ["<u2", "<u4"], "offsets": [0, 0], "itemsize": 6}
)


def example_arrays():
    rng = np.random.default_rng(1)
    nested = np.frombuffer(rng.bytes(5 * NESTED.itemsize), NESTED).copy()
    nested["value_sum"] = rng.normal(size=(5, 3))
    nested["inner"]["flag"] = True
    return {
        "nested": nested,
        "padded": np.array([(1, 2.5), (-3, math.inf)], PADDED),
        "overlapping": np.zeros(2, OVERLAPPING),
        "empty": np.empty((0, 4), NESTED),
        "single": np.array(7.5),
        "cube": rng.normal(size=(2, 3, 4)).astype(np.float32),
        "complex": np.array([1 + 2j]),
        "half": np.arange(3, dtype=np.float16),
    }


HEADER = {"simulations": 12, "name": "ramïfy", "range": [-1.0, 1.0], "nothing": None}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tree"


@pytest.fixture
def small(path):
    """A file of some hundred bytes."""
    arrays = {"edges": np.zeros(2, [("visits", np.int32), ("pair", np.int8, (2,))])}
    treefile.write(path, {"name": "race"}, arrays)
    return path


def signed(content: bytes) -> bytes:
    """A file with the right checksum, whatever it holds."""
    return content + hashlib.sha256(content).digest()


def file_with(header: bytes, arrays: bytes = b"", version: int = 1) -> bytes:
    return signed(treefile.MAGIC + struct.pack("<II", version, len(header)) + header + arrays)


def described(*arrays: object) -> bytes:
    return json.dumps({"header": {}, "arrays": arrays}).encode()


# --- round trips ---------------------------------------------------------------------------------


def test_what_is_written_comes_back(path):
    arrays = example_arrays()
    treefile.write(path, HEADER, arrays)
    header, found = treefile.read(path)
    assert header == HEADER
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert found[name].flags.writeable


def test_nothing_can_be_written(path):
    treefile.write(path, {}, {})
    assert treefile.read(path) == ({}, {})


def test_a_record_and_numbers_of_numpy_can_be_written(path):
    state = games.connect_four().play([3, 3])
    treefile.write(path, {"n": np.int64(3), "x": np.arange(2)}, {"state": state})
    header, arrays = treefile.read(path)
    assert header == {"n": 3, "x": [0, 1]}
    assert games.connect_four().copy(arrays["state"][()]) == state


def test_an_array_that_is_not_in_one_piece_is_written_in_order(path):
    array = np.arange(24).reshape(4, 6)[::2, ::-3]
    treefile.write(path, {}, {"a": array, "b": array.T})
    arrays = treefile.read(path)[1]
    assert (arrays["a"] == array).all()
    assert (arrays["b"] == array.T).all()


def test_a_name_may_be_text_a_path_or_a_link(tmp_path, path):
    link = tmp_path / "link.tree"
    link.symlink_to(path)
    treefile.write(str(link), {"a": 1}, {})
    assert link.is_symlink()
    assert treefile.read(str(path)) == treefile.read(link) == ({"a": 1}, {})


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path, small):
    (tmp_path / "other").write_text("")
    assert small.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_million_edges_are_fast_and_copied_nowhere(path):
    dtype = np.dtype([("value_sum", np.float64, (1,)), ("visits", np.int32), ("rest", np.int8, 7)])
    edges = np.ones(1_000_000, dtype)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        treefile.write(path, {}, {"edges": edges})
        treefile.read(path)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.4
    tracemalloc.start()
    treefile.write(path, {}, {"edges": edges})
    assert tracemalloc.get_traced_memory()[1] < 4e6
    arrays = treefile.read(path)[1]
    assert tracemalloc.get_traced_memory()[1] < edges.nbytes + 4e6
    tracemalloc.stop()
    assert (arrays["edges"] == edges).all()


@pytest.mark.parametrize(
    "dtype", [object, "U3", "S3", "M8[s]", "V5", [("a", np.int8), ("b", [("c", object)])]]
)
def test_what_is_not_a_number_is_refused(path, dtype):
    with pytest.raises(ValueError, match="holds numbers and records of numbers; got the dtype"):
        treefile.write(path, {}, {"a": np.zeros(2, dtype)})
    assert not path.exists()


def test_what_json_cannot_hold_is_refused(path):
    with pytest.raises(TypeError, match="holds JSON data; got set"):
        treefile.write(path, {"a": {1, 2}}, {})
    with pytest.raises(ValueError, match="holds JSON data: Out of range float"):
        treefile.write(path, {"a": math.inf}, {})
    with pytest.raises(ValueError, match="at most 16,777,216 bytes; got 17"):
        treefile.write(path, {"a": "x" * 17_000_000}, {})


# --- damage --------------------------------------------------------------------------------------


def test_any_change_of_one_byte_is_noticed(small):
    content = small.read_bytes()
    for place in range(len(content)):
        for change in (1, 0x20, 0x80, 0xFF):
            changed = bytearray(content)
            changed[place] ^= change
            small.write_bytes(changed)
            with pytest.raises(ValueError, match=r"a\.tree .*; |a\.tree has version"):
                treefile.read(small)


def test_any_cut_and_anything_added_is_noticed(small):
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"cut off or damaged|not a tree of uctree"):
            treefile.read(small)
    for more in (b"\0", b"\n", bytes(1000), content):
        small.write_bytes(content + more)
        with pytest.raises(ValueError, match="bytes follow its last array"):
            treefile.read(small)


def test_random_damage_is_noticed(path):
    treefile.write(path, HEADER, example_arrays())
    content = path.read_bytes()
    chance = random.Random(1)
    for _ in range(2000):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 8)):
            at, length = chance.randrange(len(changed)), chance.randint(1, 20)
            kind = chance.randrange(4)
            if kind == 0:
                changed[at : at + length] = chance.randbytes(length)
            elif kind == 1:
                del changed[at : at + length]
            elif kind == 2:
                changed[at:at] = chance.randbytes(length)
            else:
                changed[at : at + length] = changed[length : 2 * length]
        if changed == content:
            continue
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"a\.tree"):
            treefile.read(path)


def test_a_header_that_was_changed_on_purpose_gives_arrays_or_an_error(path):
    treefile.write(path, HEADER, example_arrays())
    content = path.read_bytes()
    length = struct.unpack_from("<I", content, 12)[0]
    text, rest = content[16 : 16 + length].decode(), content[16 + length : -32]
    chance = random.Random(2)
    pieces = ['"', "[", "]", "{", "}", ",", "-1", "9" * 30, "null", "1e400", "<i4", "|O8", "true",
              "fields", "shape", "0", "\\u0000", "<f8", ":", ""]  # fmt: skip
    for _ in range(2000):
        changed = text
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(changed))
            changed = changed[:at] + chance.choice(pieces) + changed[at + chance.randrange(4) :]
        path.write_bytes(file_with(changed.encode(), rest))
        try:
            treefile.read(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"hello, world\n" * 10,
        pickle.dumps({}),
        bytes(100),
        b"\x93NUMPY\x01\0" + b" " * 99,
    ],
    ids=["empty", "byte", "text", "pickle", "zeros", "npy"],
)
def test_a_foreign_file_is_named_as_one(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a tree of uctree: it begins with .*Tree\.save"):
        treefile.read(path)


def test_a_newer_version_asks_for_an_update(path):
    path.write_bytes(file_with(described(), version=2))
    with pytest.raises(ValueError, match=r"version 2 .* reads version 1; .* update this one"):
        treefile.read(path)


def array(dtype: object = "<i4", shape: object = (1,)) -> dict[str, object]:
    return {"name": "a", "dtype": dtype, "shape": shape}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (described(array(shape=[10**12])), "need 4,000,000,000,000 bytes and it has 8"),
        (described(array(shape=[10**12, 10**12, 0])), "8 bytes follow its last array"),
        (described(array(["<i4", [2]])), "not a dtype of an array"),
        (described(array(["<i4", [10**9]])), "header cannot be read"),
        (described(array({"size": 10**9, "fields": {}})), "need 1,000,000,000 bytes"),
        (described(array({"size": 4, "fields": {"a": [2, "<i4"]}})), "header cannot be read"),
        (described(array({"size": 4, "fields": {"a": [10**30, "<i4"]}})), "header cannot be read"),
        (described(array({"size": 0, "fields": {}}, [10**15])), "not a dtype of an array"),
        (described(array("|O8")), r"'\|O8' is not a dtype of numbers"),
        (described(array("O")), "'O' is not a dtype of numbers"),
        (described(array("|S4")), "is not a dtype of numbers"),
        (described(array("<i4,<i4")), "is not a dtype of numbers"),
        (described(array("<i3")), "header cannot be read"),
        (described(array(shape=[-2])), "not a shape"),
        (described(array(shape=[True, True])), "not a shape"),
        (described(array(shape=[2.0])), "not a shape"),
        (described(array(shape="2")), "not a shape"),
        (described(array(shape=[1] * 65 + [2])), "not a shape"),
        (described(array(shape=[10**98] * 60)), "not a shape"),
        (described(array(shape=[10**98])), "not a shape"),
        (described(array(shape=[2**48] * 32)), "is cut off or damaged: its arrays need"),
        (described(7), "header cannot be read"),
        (b"[]", "header cannot be read"),
        (b'{"header": [], "arrays": []}', "header cannot be read"),
        (b"[" * 100_000, "header cannot be read"),
        (b"\xff\xff", "header cannot be read"),
        (b"9" * 5000, "header cannot be read"),
    ],
)
def test_a_header_that_asks_for_the_impossible_is_refused(path, header, message):
    path.write_bytes(file_with(header, bytes(8)))
    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        treefile.read(path)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_the_length_of_the_header_is_held_against_the_file(path):
    for length in (10**6, 2**32 - 1):
        path.write_bytes(signed(treefile.MAGIC + struct.pack("<II", 1, length) + b"{}"))
        with pytest.raises(ValueError, match=r"cut off or damaged|too large"):
            treefile.read(path)


# --- folders and interrupts ----------------------------------------------------------------------


def test_a_file_that_is_not_there_and_a_folder_are_told_by_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        treefile.read(tmp_path / "missing.tree")
    with pytest.raises(OSError, match=str(tmp_path)):
        treefile.read(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_told_by_the_system(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("missing/a.tree", "file/a.tree"):
        with pytest.raises(OSError, match=r"missing|file"):
            treefile.write(tmp_path / place, {}, {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        treefile.write(tmp_path / "folder", {}, {})
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_write_that_is_interrupted_leaves_the_old_file(small, monkeypatch, where, error):
    before = small.read_bytes()

    def fail(*_):
        raise error

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(error):
        treefile.write(small, {"new": True}, {"a": np.zeros(10)})
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]
