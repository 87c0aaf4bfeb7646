"""Which libraries are loaded when, and what is said if one is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from uctree import adapters, games

LIBRARIES = ("gymnasium", "pettingzoo", "pyspiel")


def test_adapters_load_no_other_library_until_it_is_used():
    code = (
        "import sys, uctree.adapters, uctree.adapters.dispatch; "
        f"print([name for name in {LIBRARIES} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "function", "thing"),
    [
        ("pyspiel", adapters.from_openspiel, "chess"),
        ("gymnasium", adapters.from_gymnasium, None),
        ("pettingzoo", adapters.from_pettingzoo, None),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, name, function, thing):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"{name} is missing: pip install 'uctree\["):
        function(thing)


def test_things_of_no_library_are_refused():
    for thing in (None, "chess", games):
        with pytest.raises(TypeError, match="plan takes a uctree"):
            adapters.as_world(thing)
