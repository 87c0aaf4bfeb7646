"""Machine code on disk: one folder per kernel, named after its fingerprint."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree.engine.fingerprint import NotFingerprintable, fingerprint

MAX_BYTES = 10**9  # of machine code on disk


# --- the cache on disk ---------------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder of cached machine code: UCTREE_CACHE_DIR, or the platform's cache folder."""
    explicit = os.environ.get("UCTREE_CACHE_DIR")
    if explicit:
        return Path(explicit)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "uctree/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/uctree"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uctree"


@dataclass(frozen=True)
class CacheEntry:
    """One compiled kernel on disk."""

    label: str
    path: Path
    num_bytes: int
    used: float  # seconds since the epoch


def cache_entries() -> list[CacheEntry]:
    """The entries of the cache, the most recently used first."""
    entries = []
    with contextlib.suppress(OSError):
        for path in cache_folder().iterdir():
            with contextlib.suppress(OSError, ValueError, KeyError):
                label = json.loads((path / "entry.json").read_text())["label"]
                size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
                entries.append(CacheEntry(label, path, size, path.stat().st_mtime))
    return sorted(entries, key=lambda entry: -entry.used)


def clear_cache() -> int:
    """Delete every entry; returns how many there were."""
    entries = cache_entries()
    for entry in entries:
        shutil.rmtree(entry.path, ignore_errors=True)
    return len(entries)


def entry_folder(
    function: Callable[..., Any],
    bindings: dict[str, Any],
    signature: tuple[Any, ...],
    label: str,
    debug: bool,
) -> Path | None:
    """The folder that holds this kernel's machine code; None if it must stay in memory."""
    import llvmlite
    import numba

    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    try:
        name = fingerprint(function, bindings, versions, tuple(map(str, signature)), debug)
    except NotFingerprintable as reason:
        warnings.warn(
            f"{label} is compiled anew in every process: it uses {reason}, whose content cannot be "
            "hashed; use numbers, strings, tuples, NumPy arrays and plain functions as globals",
            stacklevel=2,
        )
        return None
    folder = cache_folder() / name[:40]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_entry(folder / "entry.json", json.dumps({"label": label}))
        (folder / "__pycache__").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder / "__pycache__"):
            pass
        os.utime(folder)
    except OSError:
        return None  # an unwritable cache only costs time
    return folder


def _write_entry(path: Path, text: str) -> None:
    """Write an entry's label. Numba compares size and time of this file, so both are constant."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.utime(temporary, (0, 0))
    os.replace(temporary, path)


def drop_oldest() -> None:
    """Keep the most recently used entries that fit into MAX_BYTES, and the newest in any case."""
    total = 0
    for i, entry in enumerate(cache_entries()):
        total += entry.num_bytes
        if total > MAX_BYTES and i > 0:
            shutil.rmtree(entry.path, ignore_errors=True)
