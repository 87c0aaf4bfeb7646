"""Files of a run: JSON with a checksum, temporary files, the lock, messages about full disks.

The last entry of a JSON object here is the SHA-256 of all the others, so that any change of the
file is noticed. Nothing that is read here is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from uctree.engine.jsonlines import open_regular
from uctree.engine.jsontext import json_text, parse_json
from uctree.engine.treefile import replacing
from uctree.errors import UctreeError

TEMPORARY = ".uctree-"  # the prefix of files that are not complete yet
MAX_JSON_BYTES = 1 << 24  # bytes
CHECKSUM = "sha256"


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace a file atomically by a JSON object and its checksum.

    UctreeError for a number that is not finite: null would be read back as something else.
    """
    try:
        content = parse_json(json.dumps(content, default=to_builtin, allow_nan=False))
    except UctreeError:
        raise
    except ValueError as error:
        raise UctreeError(f"{path} holds finite numbers: {error}") from None
    text = json_text(content | {CHECKSUM: _checksum(content)}, indent=1).encode() + b"\n"
    with replacing(path) as file:
        file.write(text)


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file that `write_json` wrote; UctreeError if it was changed since.

    FileNotFoundError if there is no such file.
    """
    with open(path, "rb") as file:
        text = file.read(MAX_JSON_BYTES + 1)
    try:
        if len(text) > MAX_JSON_BYTES:
            raise ValueError(f"it has more than {MAX_JSON_BYTES:,} bytes")
        content = parse_json(text.decode())
        if not isinstance(content, dict):
            raise ValueError(f"it holds {type(content).__name__}, expected an object")
        if content.pop(CHECKSUM, None) != _checksum(content):
            raise ValueError("its checksum is wrong")
    except ValueError as error:
        raise UctreeError(f"{path} was changed or damaged after it was written: {error}") from None
    return content


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def to_builtin(value: Any) -> Any:
    """A NumPy number or array as JSON can hold it; UctreeError for any other type."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise UctreeError(
        f"a run's files hold numbers, text, lists and tables; got {type(value).__name__} {value!r}"
    )


@contextlib.contextmanager
def explain_os_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError into a UctreeError that says what to do."""
    try:
        yield
    except OSError as error:
        raise UctreeError(
            f"{path}: {error.strerror or error} while {doing}. Complete files are unchanged; free "
            "disk space or fix the folder, then repeat the call to continue"
        ) from error


def open_own(path: Path, flags: int, mode: str) -> IO[bytes]:
    """A file of a run's folder, open to write; UctreeError for a link or a device.

    A folder from somebody else may have links in place of files, so that writing would change
    files elsewhere. Reading follows links, which change nothing.
    """
    file = open_regular(path, flags, mode)
    if file is None:
        raise _not_own(path)
    return file


def check_own_folder(path: Path) -> None:
    """Raise UctreeError if a folder within a run's folder is a link."""
    if path.is_symlink():
        raise _not_own(path)


def _not_own(path: Path) -> UctreeError:
    return UctreeError(
        f"{path} is a link or not a file, and training would write elsewhere than to "
        f"{path.parent}; replace it by what it leads to, or choose another folder"
    )


def read_own(path: Path) -> bytes:
    """The content of a file, which must not be a device or a pipe."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UctreeError(f"{path} is not a file; restore it, or choose another folder")
        return file.read()


def write_at(file: IO[bytes], size: int, content: bytes) -> None:
    """Write bytes at the offset `size` of a file; an error leaves the file with `size` bytes."""
    rest = memoryview(content)
    try:
        file.seek(size)  # a failed write may have left bytes there; they are overwritten
        while rest:  # a disk that is almost full may take only a part
            rest = rest[file.write(rest) :]
    except BaseException:
        with contextlib.suppress(OSError):
            file.truncate(size)
        raise


def temporary_path(folder: Path) -> Path:
    """A new name in `folder`; `delete_temporaries` deletes it if a process leaves it behind."""
    return folder / f"{TEMPORARY}{os.urandom(8).hex()}"


def delete_temporaries(folder: Path) -> None:
    """Delete the incomplete files and folders that a killed process left."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def delete_folder(folder: Path) -> None:
    """Delete a folder; it is renamed first, so that its name never shows a part of it."""
    aside = temporary_path(folder.parent)
    os.replace(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut."""
    if sys.platform == "win32":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def lock(folder: Path) -> IO[bytes]:
    """An open lock file; until it is closed, no other process can lock the folder."""
    file = open_own(folder / "lock", os.O_WRONLY | os.O_CREAT | os.O_APPEND, "ab")
    try:
        import fcntl
    except ImportError:  # Windows
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UctreeError(
            f"{folder} is in use by another process that trains in it; wait for it, stop it, or "
            "choose another folder"
        ) from None
    return file
