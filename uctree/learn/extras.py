"""Modules that the extra `learn` installs, or that need one; loaded where they are used."""

from __future__ import annotations

import importlib
from typing import Any


def load_module(name: str) -> Any:
    """The module of that name; an error says how to install what it lacks."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "uctree").split(".")[0] == "uctree":
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: pip install 'uctree[learn]'",
            name=error.name,
        ) from error
