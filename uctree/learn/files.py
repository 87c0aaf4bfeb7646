"""Files of a run: JSON under a seal, temporaries, the lock, and a full disk in words.

A sealed file is a JSON object whose last entry is the SHA-256 of all the others, so that a changed
digit in it is noticed. Nothing that is read here is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from uctree.errors import UctreeError
from uctree.treefile import replacing

TEMPORARY = ".uctree-"  # how the names of files begin that are not complete yet
LARGEST_JSON = 1 << 24  # bytes
SEAL = "sha256"


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object with its seal in one go; what was there before stays until then."""
    content = json.loads(json.dumps(content, default=plain))
    text = json.dumps(content | {SEAL: _seal(content)}, indent=1).encode() + b"\n"
    with replacing(path) as file:
        file.write(text)


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a file that `write_sealed` wrote; UctreeError where it is not that any more.

    FileNotFoundError where there is none.
    """
    with open(path, "rb") as file:
        text = file.read(LARGEST_JSON + 1)
    try:
        if len(text) > LARGEST_JSON:
            raise ValueError(f"it has more than {LARGEST_JSON:,} bytes")
        content = json.loads(text.decode())
        if not isinstance(content, dict):
            raise ValueError(f"it holds {type(content).__name__}, expected an object")
        if content.pop(SEAL, None) != _seal(content):
            raise ValueError("its checksum is wrong")
    except (ValueError, RecursionError) as error:
        raise UctreeError(f"{path} was changed or damaged after it was written: {error}") from None
    return content


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def plain(value: Any) -> Any:
    """What JSON has for a number or an array of NumPy; UctreeError for all else."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise UctreeError(
        f"a run's files hold numbers, text, lists and tables; got {type(value).__name__} {value!r}"
    )


@contextlib.contextmanager
def told(path: Path, doing: str) -> Iterator[None]:
    """Turn what the system says of files into a UctreeError that says what to do."""
    try:
        yield
    except OSError as error:
        raise UctreeError(
            f"{path}: {error.strerror or error} while {doing}. What was complete before is still "
            "there; make room or mend the folder, and the same call goes on"
        ) from error


def write_at(file: IO[bytes], size: int, content: bytes) -> None:
    """Write bytes behind the first `size` of a file; where they do not all fit, it keeps those."""
    rest = memoryview(content)
    try:
        file.seek(size)  # what a write that failed may have left there is written over
        while rest:  # a disk that fills up may take a part
            rest = rest[file.write(rest) :]
    except BaseException:
        with contextlib.suppress(OSError):
            file.truncate(size)
        raise


def temporary(folder: Path) -> Path:
    """A name in `folder` that `sweep` takes away where it is left over."""
    return folder / f"{TEMPORARY}{os.urandom(8).hex()}"


def sweep(folder: Path) -> None:
    """Delete what a killed process left half written."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def delete_folder(folder: Path) -> None:
    """Delete a folder so that no half of it is ever seen under its name."""
    aside = temporary(folder.parent)
    os.replace(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder outlive a power cut."""
    if sys.platform == "win32":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def lock(folder: Path) -> IO[bytes]:
    """An open file that keeps others from writing to a folder until it is closed."""
    file = open(folder / "lock", "ab")  # noqa: SIM115 (it stays open)
    try:
        import fcntl
    except ImportError:  # Windows
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UctreeError(
            f"{folder} is in use by another process that trains in it; wait for it, end it, or "
            "give another folder"
        ) from None
    return file
