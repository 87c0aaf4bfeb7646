"""The package loads its parts when they are used, and says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_importing_the_package_does_not_load_torch():
    code = (
        "import sys, uctree.learn; uctree.learn.targets; "
        "print(sorted({'torch', 'onnx', 'onnxruntime', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_every_name_of_the_package_is_there():
    from uctree import learn

    assert all(getattr(learn, name) is not None for name in learn.__all__)
    assert sorted(learn.__all__) == learn.__all__
    assert set(learn._LAZY) == set(learn.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        learn.trian  # noqa: B018


def test_without_the_extra_an_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; from uctree.learn import mlp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "needs torch, which is not installed: pip install 'uctree[learn]'" in done.stderr
