"""Machine code on disk: one file per kernel, named after its fingerprint.

An entry is the hash of all that follows, a line of JSON with the label, and a pickle by Numba.
Unpickling runs code, so entries are read only from a folder that nobody else may write to, and only
if the hash is right.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import stat
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAX_BYTES = 10**9  # of machine code on disk
MAX_MARKS = 10_000
SUFFIX, UNFINISHED, MARK = ".kernel", ".part", ".mark"


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


# --- entries -------------------------------------------------------------------------------------


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
        for path in cache_folder().glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError, ValueError, KeyError), path.open("rb") as file:
                file.readline()  # the hash
                label = json.loads(file.readline())["label"]
                status = path.stat()
                entries.append(CacheEntry(label, path, status.st_size, status.st_mtime))
    return sorted(entries, key=lambda entry: -entry.used)


def clear_cache() -> int:
    """Delete every entry; returns how many there were."""
    found = list(cache_folder().glob(f"*{SUFFIX}"))
    for suffix in (SUFFIX, UNFINISHED, MARK):
        for path in cache_folder().glob(f"*{suffix}"):
            path.unlink(missing_ok=True)
    return len(found)


def drop_oldest() -> None:
    """Keep the most recently used entries that fit into MAX_BYTES, and the newest in any case."""
    total = 0
    for i, entry in enumerate(cache_entries()):
        total += entry.num_bytes
        if total > MAX_BYTES and i > 0:
            with contextlib.suppress(OSError):
                entry.path.unlink()


def versions() -> tuple[Any, ...]:
    """What machine code depends on besides its source: versions, and the processor."""
    import llvmlite
    import numba
    from numba.core.registry import cpu_target

    processor = cpu_target.target_context.codegen().magic_tuple()
    return sys.version, np.__version__, numba.__version__, llvmlite.__version__, processor


def load_entry(name: str, target: Any) -> Any | None:
    """The result of an earlier compilation; None if there is none that can be trusted.

    Args:
        target: Numba's target context.
    """
    from numba.core.compiler import CompileResult

    try:
        path = safe_folder() / f"{name}{SUFFIX}"
        content = _read(path)
    except (OSError, UnsafeFolder):
        return None
    if content is None:
        return None
    try:
        target.refresh()
        result = CompileResult._rebuild(target, *pickle.loads(content))
    except Exception:  # the entry of some other build; it is replaced
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return result


def save_entry(name: str, label: str, result: Any) -> None:
    """Write the result of a compilation; a warning says why if that is impossible."""
    from numba.core import serialize

    try:
        folder = safe_folder()
        pickled = serialize.dumps(result._reduce())
        _write(folder / f"{name}{SUFFIX}", json.dumps({"label": label}).encode(), pickled)
        drop_oldest()
    except (OSError, UnsafeFolder) as reason:
        warnings.warn(
            f"{label} is compiled anew in every process: {reason}. To keep machine code, set "
            "UCTREE_CACHE_DIR to a folder that you alone can write to",
            stacklevel=2,
        )


def _read(path: Path) -> bytes | None:
    """The pickle of an entry; None if the entry is damaged, or others may have written it."""
    with path.open("rb") as file:
        if _writer(os.fstat(file.fileno())):
            return None
        written, content = file.readline(), file.read()
    if written.strip() != _hash(content):
        return None
    return content.partition(b"\n")[2]


def _write(path: Path, header: bytes, pickled: bytes) -> None:
    """Write an entry, or nothing."""
    content = header + b"\n" + pickled
    handle, unfinished = tempfile.mkstemp(suffix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_hash(content) + b"\n" + content)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


# --- marks ---------------------------------------------------------------------------------------


def save_mark(name: str) -> None:
    """Remember a name: an empty file. Nothing happens if the folder cannot be used."""
    with contextlib.suppress(OSError, UnsafeFolder):
        folder = safe_folder()
        (folder / f"{name}{MARK}").touch(mode=0o600)
        marks = list(folder.glob(f"*{MARK}"))
        for path in sorted(marks, key=_time_of_change)[: max(0, len(marks) - MAX_MARKS)]:
            path.unlink(missing_ok=True)


def has_mark(name: str) -> bool:
    """Whether a name was remembered by a process of this user."""
    try:
        return not _writer((safe_folder() / f"{name}{MARK}").lstat())
    except (OSError, UnsafeFolder):
        return False


def _time_of_change(path: Path) -> float:
    return path.stat().st_mtime


# --- who may write -------------------------------------------------------------------------------


class UnsafeFolder(Exception):
    """Somebody else could put code into the cache."""


def safe_folder() -> Path:
    """The cache folder without links, made if need be; UnsafeFolder if others may write to it.

    Windows is not checked: its folders have no mode, and the default one belongs to the user alone.
    """
    folder = cache_folder().resolve()
    _make(folder)
    for path in (folder, *folder.parents):
        status = path.stat()
        # In a folder like /tmp all may write, but not rename or delete what belongs to another.
        is_shared = path != folder and bool(status.st_mode & stat.S_ISVTX)
        writer = _writer(status, is_shared)
        if writer:
            raise UnsafeFolder(
                f"{writer} can write to {path}, and so put code into the cache of machine code in "
                f"{folder}; if the folder is yours, chmod go-w {path} ends that"
            )
    return folder


def _make(folder: Path) -> None:
    """Make a folder and those above it, for this user alone."""
    if not folder.exists():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _writer(status: os.stat_result, is_shared: bool = False) -> str:
    """Who besides this user and root may write to a file or folder, in words; "" if nobody."""
    if sys.platform == "win32":
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return f"the user with the number {status.st_uid}"
    if is_shared:
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return f"the group with the number {status.st_gid}"
    return ""


def _is_own_group(number: int) -> bool:
    """Whether a group is that of this user alone, as many systems make one for every user."""
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
