"""The command `uctree info`."""

from __future__ import annotations

import json
import sys

import numba
import pytest

import uctree
from uctree import cli
from uctree.cli import environment


def test_info_says_what_is_installed_and_what_works(capsys):
    assert cli.main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["uctree"] == uctree.__version__
    assert found["packages"]["core"]["numba"] == numba.__version__
    assert "torch" in found["packages"]["learn"]
    assert "pytest" not in str(found["packages"])
    assert found["cache"]["folder"] == str(uctree.cache_folder())
    assert list(found["works"]) == list(environment.TESTS)
    assert all(each.startswith(("works: ", "not installed: ")) for each in found["works"].values())


def test_what_fails_and_what_is_missing_is_said(capsys, monkeypatch, tmp_path):
    def fails():
        raise AssertionError("2 is not 1")

    monkeypatch.setitem(environment.TESTS, "search", fails)
    monkeypatch.setitem(sys.modules, "uctree.learn.devices", None)  # as if torch were missing
    monkeypatch.setattr(environment, "_version", lambda name: None if name == "onnx" else "1.0")
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    assert cli.main(["info"]) == environment.BROKEN
    printed = capsys.readouterr().out
    assert "fails: AssertionError: 2 is not 1" in printed
    assert "not installed: " in printed
    assert "; without onnx (pip install 'uctree[learn]')" in printed
    assert f"not used: everybody can write to {tmp_path}" in printed


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_without_tests_nothing_is_compiled(capsys, monkeypatch, flags):
    monkeypatch.setattr(environment, "_outcome", lambda test: pytest.fail("it was tried"))
    assert cli.main(["info", "--no-tests", *flags]) == 0
    assert "works" not in capsys.readouterr().out
