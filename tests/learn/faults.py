"""Faults for tests of files: processes killed at a write, full disks, damaged files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent


def plain_weights(iteration: int) -> dict[str, np.ndarray]:
    """Weights that need no torch, different for every iteration."""
    rng = np.random.default_rng(iteration)
    return {"layer.weight": rng.normal(size=(50, 40)).astype(np.float32), "bias": np.arange(3)}


def killed_at(call: int, work: Callable[[], None]) -> int:
    """Do `work` in a process that is killed (-9) at its n-th change of a file; return n.

    Changes are writes, of which the last is done in part, and replaced, deleted, created or
    truncated files. If the process makes fewer changes, it is not killed, and minus their number is
    returned.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that the child does not use
        child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            counted = _count_changes(call)
            work()
            os.write(writer, str(counted[0]).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return call
    assert status == 0, "the child raised an error"
    return -int(text)


def _count_changes(call: int) -> list[int]:
    """Make the process kill itself at its n-th change of a file."""
    counted = [0]

    def is_last() -> bool:
        counted[0] += 1
        return counted[0] == call

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(name: str) -> None:
        plain = getattr(os, name)

        def watched(*arguments, **keywords):
            if is_last():
                die()
            return plain(*arguments, **keywords)

        setattr(os, name, watched)

    for name in ("replace", "unlink", "mkdir", "fsync", "rmdir"):
        watch(name)

    import builtins
    import io

    class Watched(io.FileIO):
        def write(self, content):
            content = memoryview(content).cast("B")
            if is_last():
                super().write(content[: len(content) // 2])
                die()
            return super().write(content)

        def truncate(self, size=None):
            if is_last():
                die()
            return super().truncate(size)

    plain_open, plain_fdopen = builtins.open, os.fdopen

    def watched_open(path, mode="r", *arguments, **keywords):
        if not isinstance(path, int) and "b" in mode and mode != "rb":
            return Watched(path, mode.replace("b", ""))
        return plain_open(path, mode, *arguments, **keywords)

    def watched_fdopen(number, mode="r", *arguments, **keywords):
        return Watched(number, mode.replace("b", "")) if "b" in mode else plain_fdopen(number, mode)

    builtins.open, os.fdopen = watched_open, watched_fdopen
    return counted


def killed_after(seconds: float, code: str, *arguments: object) -> str:
    """What a Python process printed until it was killed (-9), `seconds` after its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        return first + process.stdout.read()


@contextlib.contextmanager
def small_disk(folder: Path, num_bytes: int) -> Iterator[Path]:
    """A folder with this capacity; the test is skipped if none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={num_bytes}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk of a limited size can be mounted: {error}")
    if done.returncode:
        pytest.skip(f"no disk of a limited size can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with a flipped bit, or with bytes cut off, replaced, removed or added."""
    kind = rng.integers(6)
    place = int(rng.integers(len(content)))
    length = int(rng.integers(1, 64))
    if kind <= 1:
        return (
            content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :]
        )
    if kind == 2:
        return content[:place]
    if kind == 3:
        return content[:place] + rng.bytes(length) + content[place + length :]
    if kind == 4:
        return content[:place] + content[place + length :]
    return content + rng.bytes(length)


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
