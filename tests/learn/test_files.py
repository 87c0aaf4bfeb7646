"""Files of a run: checksums, temporary files, the lock, errors of the system."""

from __future__ import annotations

import numpy as np
import pytest

from tests.learn.faults import flip
from uctree.errors import UctreeError
from uctree.learn import files


def test_json_comes_back_and_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, {"n": np.int64(3), "weights": np.array([0.5, 1.0])})
    assert files.read_json(path) == {"n": 3, "weights": [0.5, 1.0]}
    flip(path)
    with pytest.raises(UctreeError, match="was changed or damaged after it was written"):
        files.read_json(path)


def test_values_that_json_cannot_hold_are_refused(tmp_path):
    with pytest.raises(UctreeError, match="hold numbers, text, lists and tables; got set"):
        files.write_json(tmp_path / "a.json", {"n": {1, 2}})


def test_temporary_files_and_folders_are_deleted(tmp_path):
    files.temporary_path(tmp_path).mkdir()
    files.temporary_path(tmp_path).write_text("half")
    (tmp_path / "metrics.jsonl").write_text("{}")
    files.delete_temporaries(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_folder_is_locked_once(tmp_path):
    pytest.importorskip("fcntl", reason="locks need fcntl")
    with files.lock(tmp_path), pytest.raises(UctreeError, match="in use by another process"):
        files.lock(tmp_path)
    files.lock(tmp_path).close()


def test_an_error_of_the_system_says_what_to_do(tmp_path):
    path = tmp_path / "none" / "a.json"
    message = "No such file or directory while saving. Complete files are unchanged"
    with pytest.raises(UctreeError, match=message), files.explain_os_errors(path, "saving"):
        path.write_text("{}")
