"""Modules that the extra `learn` installs, or that need one; loaded where they are used."""

from __future__ import annotations

import importlib
import os
from typing import Any


def load_module(name: str) -> Any:
    """The module of that name; an error says how to install what it lacks."""
    # Read when torch is loaded. Threads that wait by spinning, beside another busy process, make a
    # step of learning up to a hundred times longer.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "ramify").split(".")[0] == "ramify":
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: pip install 'ramify[learn]'",
            name=error.name,
        ) from error
