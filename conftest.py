"""Runs every Python block of the README and the docs, and every doctest of the package."""

from __future__ import annotations

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

pytest_collect_file = (
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md", "docs/*.md", "docs/*/*.md"])
    + Sybil(parsers=[DocTestParser()], patterns=["ramify/*.py", "ramify/*/*.py"])
).pytest()
