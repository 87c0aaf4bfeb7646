"""The command `uctree info`: what is installed, where files are kept, and what works here."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uctree
from uctree.cli.app import Flag, app, count, size
from uctree.engine import disk_cache
from uctree.engine.jsontext import json_text
from uctree.pages.columns import aligned

BROKEN = 1  # the exit status if something that is installed does not work


@app.command
def info(*, no_tests: Flag = False, json: Flag = False) -> int:
    """Say what is installed, where machine code is kept, and what works; for reports of errors.

    Args:
        no_tests: do not try what works; trying takes some seconds.
        json: print JSON.
    """
    found: dict[str, Any] = {
        "uctree": uctree.__version__, "python": platform.python_version(),
        "system": platform.platform(), "processors": os.cpu_count(),
        "folder": str(Path(uctree.__file__).parent), "packages": installed(),
        "cache": _cache(),
    }  # fmt: skip
    if not no_tests:
        found["works"] = {name: _outcome(test) for name, test in TESTS.items()}
    print(json_text(found, indent=2) if json else _text(found))
    broken = any(each.startswith("fails") for each in found.get("works", {}).values())
    return BROKEN if broken else 0


def installed() -> dict[str, dict[str, str | None]]:
    """For the core and every extra the packages it asks for, with versions; None if missing."""
    found: dict[str, dict[str, str | None]] = {"core": {}}
    for requirement in metadata.requires("uctree") or []:
        asked, _, condition = requirement.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", condition)
        name = re.split(r"[\s\[<>=!~;(]", asked.strip(), maxsplit=1)[0]
        if name != "uctree" and (extra is None or extra[1] != "dev"):
            found.setdefault(extra[1] if extra else "core", {})[name] = _version(name)
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cache() -> dict[str, Any]:
    """Where machine code is kept, how much there is, and why it is not used, if so."""
    folder, reason = disk_cache.cache_folder(), None
    try:
        disk_cache.safe_folder()
    except (OSError, disk_cache.UnsafeFolder) as error:
        reason = str(error)
    entries = uctree.cache_entries()
    return {
        "folder": str(folder), "entries": len(entries),
        "bytes": sum(entry.num_bytes for entry in entries), "not_used_because": reason,
    }  # fmt: skip


# --- what works ----------------------------------------------------------------------------------


class _Missing(Exception):
    """An extra is not installed."""


def _search() -> str:
    result = uctree.search("tic_tac_toe", num_simulations=1000)
    if not result.edges["visits"].sum() == 1000:
        raise AssertionError(f"visits add up to {result.edges['visits'].sum()}, not to 1000")
    origin = "loaded from the cache" if result.cached else "compiled"
    return f"{1000 / result.seconds:,.0f} simulations/s, {origin}"


def _solver() -> str:
    value = uctree.solve("tic_tac_toe").value.tolist()
    if value != [0.0, 0.0]:
        raise AssertionError(f"tic-tac-toe is a draw, not worth {value}")
    return "tic-tac-toe is a draw"


def _objects() -> str:
    problem = uctree.Problem(
        actions=lambda number: [1, 2], step=lambda a, b: uctree.Step(a + b, float(b), over=a > 3)
    )
    result = uctree.plan(problem, 0, num_simulations=50, seed=0)
    return f"a plan of {result.simulations} simulations"


def _networks() -> str:
    try:
        from uctree import learn
        from uctree.learn.devices import available

        game = uctree.games.tic_tac_toe()
        evaluator = learn.evaluator(learn.mlp(game), game)
    except ModuleNotFoundError as error:
        raise _Missing(str(error)) from error
    result = uctree.search(game, evaluator=evaluator, num_simulations=20)
    return f"{result.simulations} simulations; devices for learning: {', '.join(available())}"


TESTS: dict[str, Callable[[], str]] = {
    "search": _search,
    "exact values": _solver,
    "plans of Python objects": _objects,
    "networks": _networks,
}


def _outcome(test: Callable[[], str]) -> str:
    """What became of a test, in words."""
    try:
        return f"works: {test()}"
    except _Missing as missing:
        return f"not installed: {missing}"
    except Exception as error:
        return f"fails: {type(error).__name__}: {error}"


# --- as text -------------------------------------------------------------------------------------


def _text(found: dict[str, Any]) -> str:
    cache = found["cache"]
    rows = [
        ["uctree", f"{found['uctree']} in {found['folder']}"],
        ["Python", f"{found['python']}, {found['system']}, {found['processors']} processors"],
        *([name, _packages(name, each)] for name, each in found["packages"].items()),
        ["cache", f"{cache['folder']}: {count(cache['entries'], 'entry', 'entries')}, "
                  f"{size(cache['bytes'])}"],
        *([["", f"not used: {cache['not_used_because']}"]] if cache["not_used_because"] else []),
        *([name, outcome] for name, outcome in found.get("works", {}).items()),
    ]  # fmt: skip
    return "\n".join(aligned(rows, left=(0, 1)))


def _packages(extra: str, versions: dict[str, str | None]) -> str:
    have = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    missing = [name for name, version in versions.items() if not version]
    if not missing:
        return have
    hint = "pip install uctree" if extra == "core" else f"pip install 'uctree[{extra}]'"
    return f"{have}{'; ' if have else ''}without {', '.join(missing)} ({hint})"
