"""Files of JSON lines that grow: a line is written as a whole, or removed when the file is opened.

Nothing is written to a file that is not of the kind that the caller expects, nor through a link.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from uctree.errors import UctreeError


class LineFile:
    """A file open for more lines, which no other process writes to; `lines` has the earlier ones.

    An incomplete last line, which a crash or a full disk leaves, is removed.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, beginning: bytes) -> None:
        """
        Args:
            kind: the word for what the file holds: match, journal.
            beginning: the first bytes of every file of this kind.
        """
        self.path, self.kind = Path(path), kind
        try:
            file = open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, "a+b")
        except OSError as error:
            raise UctreeError(f"{self.path}: {error.strerror}") from error
        if file is None:
            raise UctreeError(
                f"{self.path} is a link or not a file, and a {kind} would be written elsewhere; "
                "name the file that it leads to"
            )
        self.file = file
        try:
            _lock(self.file, self.path, kind)
            self.lines = self._resume(beginning)
        except OSError as error:
            self.file.close()
            raise UctreeError(f"{self.path}: {error.strerror}") from error
        except BaseException:
            self.file.close()
            raise

    def _resume(self, beginning: bytes) -> list[bytes]:
        self.file.seek(0)
        content = self.file.read()
        if not beginning.startswith(content[: len(beginning)]):
            raise UctreeError(f"{self.path} is not the file of a {self.kind}; give another name")
        lines = complete_lines(content)
        self.file.truncate(sum(map(len, lines)))
        return lines

    def append(self, text: str) -> None:
        """Write a line of JSON; UctreeError if the disk is full."""
        line = text.encode() + b"\n"
        try:
            while line:  # a full disk may write only a part
                line = line[self.file.write(line) :]
        except OSError as error:
            raise UctreeError(
                f"{self.path}: {error.strerror}; what was written so far is safe, and the same "
                f"call resumes the {self.kind}"
            ) from error

    def close(self) -> None:
        """Close the file, so that others can use it."""
        self.file.close()


def complete_lines(content: bytes) -> list[bytes]:
    """The lines of a file with their line ends, without an incomplete last line."""
    lines = content.splitlines(keepends=True)
    return lines if not lines or lines[-1].endswith(b"\n") else lines[:-1]


def open_regular(path: Path, flags: int, mode: str) -> io.FileIO | None:
    """A file without a buffer, open to write; None for a link, a device or a pipe."""
    # Without waiting for the other end of a pipe.
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():  # for systems without O_NOFOLLOW
        return None
    try:
        number = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            return None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return None
    return os.fdopen(number, mode, buffering=0)  # type: ignore[return-value]


def _lock(file: io.FileIO, path: Path, kind: str) -> None:
    """Raise UctreeError if another process writes to the same file."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UctreeError(f"{path} is in use by another {kind}; wait for it, or end it") from None
