"""Modules that the extra `learn` installs or that need it, loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def load_module(name: str) -> Any:
    """The module of this name; if a package is missing, the error says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "uctree").split(".")[0] == "uctree":
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: pip install 'uctree[learn]'",
            name=error.name,
        ) from error
