"""Services in other processes, which may die: on this machine, or as actors of Ray.

A service receives messages and sends replies; both are pairs of a kind and its content. A reply of
the kind "broken" says why a service could not be made.
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

from uctree.engine import interrupts

BACKENDS = ("process", "ray")
EXIT_TIMEOUT = 1.0  # seconds to wait for a process whose connection is closed

# One compute thread per worker: two threads beside another busy process are many times slower.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

Message = tuple[str, Any]
Send = Callable[[Message], None]
Service = Callable[[Message, Send], None]  # it may have a method `close`

_context = multiprocessing.get_context("spawn")


class Worker(Protocol):
    """A handle of a service that runs in another process."""

    def send(self, kind: str, content: Any) -> None:
        """Send a message to the service; ignored if the service has died."""

    def poll(self) -> bool:
        """Whether `recv` would return at once."""

    def recv(self) -> Message:
        """The next reply; EOFError if the service has died."""

    def death(self) -> str:
        """How the service died, in words."""

    def was_killed(self) -> bool:
        """Whether a signal ended it."""

    def end(self, seconds: float) -> None:
        """Let the service close, and kill it after `seconds`."""

    def kill(self) -> None:
        """End it at once, with all processes that it has started."""


class Host(Protocol):
    """The place where workers run."""

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        """A new worker with the service that `make(*arguments)` returns in its process."""

    def wait(self, workers: Sequence[Worker], timeout: float | None = None) -> list[Worker]:
        """The workers that have replied or died; none after `timeout` seconds."""

    def share(self, content: bytes) -> Any:
        """An object to send to several workers in place of these bytes."""


def make_host(backend: str, num_workers: int) -> Host:
    """The host of `num_workers` workers: processes for "process", a cluster for "ray"."""
    if backend == "process":
        return Processes()
    # Imported by name and late: that module imports this one, and needs the extra `ray`.
    host: Host = importlib.import_module("uctree.workers.ray").Cluster(num_workers)
    return host


class Processes:
    """Workers as processes of this machine."""

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        return _Process(make, arguments)

    def wait(self, workers: Sequence[Any], timeout: float | None = None) -> list[Any]:
        ready = multiprocessing.connection.wait([each.connection for each in workers], timeout)
        return [each for each in workers if each.connection in ready]

    def share(self, content: bytes) -> bytes:
        return content


class _Process:
    """A worker in a process of this machine."""

    def __init__(self, make: Callable[..., Service], arguments: tuple[Any, ...]) -> None:
        self.is_alive = False
        self.exit_code: int | None = None
        try:
            with _without_interrupts(), environment(ONE_THREAD):
                self._start(make, arguments)
        except BaseException:  # also Ctrl-C, which has waited
            self.kill()
            raise

    def _start(self, make: Callable[..., Service], arguments: tuple[Any, ...]) -> None:
        self.connection, other = _context.Pipe()
        # Not a daemon: daemons may not start processes, and agents may. The process ends when its
        # connection is closed, and with the process that started it.
        self.process = _context.Process(target=_serve, args=(other, make, arguments))
        with other:  # closed here, so that the connection ends with the process
            try:
                self.process.start()
            except BaseException:
                self.connection.close()
                raise
        self.is_alive = True

    def send(self, kind: str, content: Any) -> None:
        with contextlib.suppress(OSError):  # it died; `recv` raises EOFError
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
        return f"the process died (exit code {self._exit_code()})"

    def was_killed(self) -> bool:
        return (self._exit_code() or 0) < 0

    def _exit_code(self) -> int | None:
        if self.is_alive:
            self.process.join(EXIT_TIMEOUT)
            self.exit_code = self.process.exitcode
        return self.exit_code

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
        with interrupts.shielded():
            self.is_alive = False
            if hasattr(os, "killpg") and self.process.pid is not None:
                # The group may have ended, or the process may not lead one yet.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()
            self.exit_code = self.process.exitcode
            self.process.close()  # here, because Ctrl-C may be raised where it would be freed
            self.connection.close()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started in this block never see Ctrl-C; here it waits for the end of the block.

    The process that started them ends them. They inherit that the signal is blocked.
    """
    with interrupts.shielded():
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Processes started in this block have these environment variables.

    Some are read when Python starts, so they cannot be set in the process itself.
    """
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
    """The main function of a process: serve messages until the connection is closed."""
    if hasattr(os, "setsid"):
        os.setsid()  # a process group of its own, which `kill` ends as a whole
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # The connection may be closed at any time.
    with contextlib.suppress(EOFError, OSError):
        service = make_service(make, arguments, connection.send)
        if service is None:
            return
        try:
            while (message := connection.recv()) is not None:
                service(message, connection.send)
        finally:
            getattr(service, "close", lambda: None)()


def make_service(
    make: Callable[..., Service], arguments: tuple[Any, ...], send: Send
) -> Service | None:
    """The service; None if it cannot be made, after a reply of the kind "broken"."""
    try:
        return make(*arguments)
    except Exception as error:
        send(("broken", f"{type(error).__name__}: {error}"))
        return None


def _die_with_parent() -> None:
    """Wait for the end of the process that started this one, then end the whole group."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this process was started by another"
    parent.join()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
