"""Fixtures of several modules of the engine's tests."""

from __future__ import annotations

import pytest

from tests.forged_trees import KINDS, grow


@pytest.fixture
def folder(tmp_path):
    """A folder for scripts, with a cache of its own."""
    (tmp_path / "cache").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A file of each kind of tree, and its game."""
    folder, made = tmp_path_factory.mktemp("trees"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        for kind in KINDS:
            tree = grow(kind, 80)
            made[kind] = folder / f"{kind}.tree", tree.game
            tree.save(made[kind][0])
    return made
