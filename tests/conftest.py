"""Fixtures that tests of several rooms share."""

from __future__ import annotations

import sys

import pytest

from uctree import specs


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def both_ways(request, monkeypatch):
    """Run a test in plain Python, and with machine code by `make slow`.

    Kernels give the same numbers either way, which other tests check. Tests of logic need no
    machine code, and compiling it takes many times as long as the tests themselves.
    """
    if request.param == "interpreted":
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.fixture
def interpreted(monkeypatch):
    """Run a test in plain Python, because it is about logic that is the same in machine code."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.fixture
def imports_are_undone():
    """Remove user files that a test imported from `sys.modules`."""
    path, modules = sys.path.copy(), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) in specs.user_files:
            del sys.modules[name]
