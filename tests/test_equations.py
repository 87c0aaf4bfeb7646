"""Every numbered formula stands in docs/theory.md, in the code, and in a test or doctest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parent.parent


def numbers(text):
    found = set()
    for group in re.findall(r"\[Eq\. ([\d, ]+)\]", text):
        found |= {int(number) for number in group.split(",")}
    return found


def functions_with_equation(text):
    """Functions whose docstring has a number, with whether a doctest shows a worked value."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node) or ""
            for number in numbers(docstring):
                yield number, node.name, ">>>" in docstring


def test_theory_and_code_have_the_same_numbers():
    theory = numbers((ROOT / "docs/theory.md").read_text())
    code = set()
    for path in (ROOT / "uctree").rglob("*.py"):
        code |= numbers(path.read_text())
    assert theory == code
    assert theory == set(range(1, len(theory) + 1))


def test_every_number_has_a_worked_value_that_is_run():
    worked = set()
    for path in (ROOT / "uctree").rglob("*.py"):
        worked |= {n for n, _, shown in functions_with_equation(path.read_text()) if shown}
    assert worked == numbers((ROOT / "docs/theory.md").read_text())
