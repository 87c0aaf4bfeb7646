"""Services that work elsewhere and may die: in processes of this machine, or as Ray actors.

A service takes messages, and tells what comes of them; both are pairs of a kind and its content. An
answer of the kind "broken" says why a service could not even be made.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

BACKENDS = ("process", "ray")
LONGEST_DEATH = 1.0  # seconds that a process takes to be gone after its connection is closed

# One compute thread for each: two of one process beside another busy process are many times slower.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

Message = tuple[str, Any]
Tell = Callable[[Message], None]
Service = Callable[[Message, Tell], None]  # it may have a method `close`

_context = multiprocessing.get_context("spawn")


class Worker(Protocol):
    """Who has a service elsewhere."""

    def send(self, kind: str, content: Any) -> None:
        """Hand a message to the service; nothing happens where it has died."""

    def poll(self) -> bool:
        """Whether `recv` would not have to wait."""

    def recv(self) -> Message:
        """The next answer; EOFError where none can come any more."""

    def death(self) -> str:
        """In words, how it died."""

    def was_killed(self) -> bool:
        """Whether it did not end by itself."""

    def end(self, seconds: float) -> None:
        """Let the service close, and leave within so many seconds."""

    def kill(self) -> None:
        """End it at once, with all that it has started."""


class Host(Protocol):
    """What workers run on."""

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        """A worker with the service that `make` gives there."""

    def wait(self, workers: Sequence[Worker], timeout: float | None = None) -> list[Worker]:
        """Those that have answered or died; none of them after so many seconds."""

    def share(self, content: bytes) -> Any:
        """What is sent as the content of a message to several workers instead of these bytes."""


def make_host(backend: str, num_workers: int) -> Host:
    """What so many workers run on: processes for "process", a cluster for "ray"."""
    if backend == "process":
        return Processes()
    host: Host = importlib.import_module("uctree.cluster").Cluster(num_workers)
    return host


class Processes:
    """Workers that are processes of this machine."""

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        return _Process(make, arguments)

    def wait(self, workers: Sequence[Any], timeout: float | None = None) -> list[Any]:
        heard = multiprocessing.connection.wait([each.connection for each in workers], timeout)
        return [each for each in workers if each.connection in heard]

    def share(self, content: bytes) -> bytes:
        return content


class _Process:
    """A process with a service."""

    def __init__(self, make: Callable[..., Service], arguments: tuple[Any, ...]) -> None:
        self.connection, other = _context.Pipe()
        # Not a daemon, because those may not have processes of their own, as agents may want; it
        # ends by itself when its connection is closed, and with the process that started it.
        self.process = _context.Process(target=_serve, args=(other, make, arguments))
        with _without_interrupts(), environment(ONE_THREAD):
            self.process.start()
        other.close()  # so that the end of the process is the end of the connection
        self.is_alive = True

    def send(self, kind: str, content: Any) -> None:
        with contextlib.suppress(OSError):  # it died; `recv` will find out
            self.connection.send((kind, content))

    def poll(self) -> bool:
        return self.connection.poll()

    def recv(self) -> Message:
        try:
            message: Message = self.connection.recv()
        except OSError as error:
            raise EOFError from error
        return message

    def death(self) -> str:
        self.process.join(LONGEST_DEATH)
        return f"the process died (exit code {self.process.exitcode})"

    def was_killed(self) -> bool:
        self.process.join(LONGEST_DEATH)
        return (self.process.exitcode or 0) < 0

    def end(self, seconds: float) -> None:
        if not self.is_alive:
            return
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(seconds)
        self.kill()

    def kill(self) -> None:
        if not self.is_alive:
            return
        self.is_alive = False
        if hasattr(os, "killpg") and self.process.pid is not None:
            # Nothing is left of its group, or it has not come to lead one yet.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started here is not told of Ctrl-C: who started it ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """What is started here has these variables: some are read before any line of ours runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _serve(connection: Connection, make: Callable[..., Service], arguments: Any) -> None:
    """What a process does: answer messages as long as someone listens."""
    if hasattr(os, "setsid"):
        os.setsid()  # what the service starts belongs to it, and is ended with it
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # Nobody is there to listen where the work was ended.
    with contextlib.suppress(EOFError, OSError):
        service = made(make, arguments, connection.send)
        if service is None:
            return
        try:
            while (message := connection.recv()) is not None:
                service(message, connection.send)
        finally:
            getattr(service, "close", lambda: None)()


def made(make: Callable[..., Service], arguments: tuple[Any, ...], tell: Tell) -> Service | None:
    """The service; None where it cannot be made, which is told."""
    try:
        return make(*arguments)
    except Exception as error:
        tell(("broken", f"{type(error).__name__}: {error}"))
        return None


def _die_with_parent() -> None:
    """Wait until the process that started this one is no more, then end all that belongs to it."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this process was started by another"
    parent.join()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
