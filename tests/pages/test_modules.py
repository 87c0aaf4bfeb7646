"""Modules that are joined to one script."""

from __future__ import annotations

import re

import pytest

from uctree.pages import modules


@pytest.fixture
def files(monkeypatch):
    """Files in place of those of `static/`."""
    given = {}
    monkeypatch.setattr(modules, "source", lambda name: given[name])
    return given


@pytest.mark.quick
def test_a_module_follows_those_that_it_imports_and_each_is_there_once(files):
    files["page.js"] = 'import { b } from "./b.js";\nimport { c } from "./c.js";\nb(c);\n'
    files["b.js"] = 'import { c } from "./c.js";\nexport const b = () => c;\n'
    files["c.js"] = "export const c = 1;\n"
    script = modules.bundled("page.js")
    assert script.count("const c = 1;") == 1
    assert script.index("const c") < script.index("const b") < script.index("b(c)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("export const b = 1;\nconst c = 2;\n", r"c\.js and b\.js both define c|b\.js.*define c"),
        ('import { c } from "./c.js";\nexport const d = c;\n', r"page\.js imports b, which b\.js"),
        ('import { a } from "./page.js";\nexport const b = a;\n', r"page\.js -> b\.js -> page\.js"),
    ],
)
def test_what_one_script_cannot_hold_is_refused(files, text, message):
    files["page.js"] = 'import { c } from "./c.js";\nimport { b } from "./b.js";\n'
    files["b.js"], files["c.js"] = text, "export const c = 1;\n"
    with pytest.raises(ValueError, match=message):
        modules.bundled("page.js")


def test_the_script_of_a_page_loads_nothing():
    script = modules.bundled("page.js")
    assert re.search(r"^\s*(import|export)\b", script, re.MULTILINE) is None
    assert "makeTree = (" in script
