"""Runs every Python block of the README and the docs, and every doctest of the package."""

from __future__ import annotations

import gc
import signal

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

# A shell that runs the tests in the background has Ctrl-C ignored, and some of them press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_collect_file = (
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md", "docs/*.md", "docs/*/*.md"])
    + Sybil(parsers=[DocTestParser()], patterns=["uctree/*.py", "uctree/*/*.py"])
).pytest()


def pytest_collection_finish() -> None:
    """From now on garbage is not looked for among what lives to the end: modules and tests."""
    gc.collect()
    gc.freeze()
