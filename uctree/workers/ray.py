"""Services as actors of Ray, on this machine or on a cluster; needs the extra `ray`.

Anyone who can reach the ports of Ray can run code. A Ray that is started here listens on the
loopback address only.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

from uctree.errors import UctreeError
from uctree.workers.processes import ONE_THREAD, Message, Service, Worker, environment, make_service

LOOPBACK = "127.0.0.1"
STORE_BYTES = 256 << 20  # memory of the object store on this machine

# Read when Ray is loaded. Without the first one Ray ignores the given address, takes that of the
# network card, and listens on all addresses.
LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def connect(num_workers: int) -> Any:
    """Ray, connected to the current cluster, to that of RAY_ADDRESS, or to a new local one.

    A new local cluster ends with this process.
    """
    if "RAY_ADDRESS" in os.environ:
        ray = _load_ray()
        if not ray.is_initialized():
            _join(ray)
    else:
        with environment(LOCAL):
            ray = _load_ray()
            if not ray.is_initialized():
                _start_local(ray, num_workers)
    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < num_workers:
        raise UctreeError(
            f"{num_workers} workers need a processor each, but the Ray cluster has {processors}; "
            "use fewer workers, or add machines to the cluster"
        )
    return ray


def _load_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"backend=\"ray\" needs {error.name}, which is not installed: pip install "
            "'uctree[ray]'", name=error.name,
        ) from error  # fmt: skip


def _join(ray: Any) -> None:
    """Connect Ray to the cluster of RAY_ADDRESS."""
    try:
        ray.init(log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError) as error:
        raise UctreeError(
            f"cannot connect to a Ray cluster at RAY_ADDRESS={os.environ['RAY_ADDRESS']} "
            f"({error}); check that it runs and, if it needs a token, that RAY_AUTH_MODE=token "
            "and the token are set in this environment"
        ) from error


def _start_local(ray: Any, num_workers: int) -> None:
    """Start Ray on this machine for this process."""
    ray.init(
        address="local", num_cpus=max(os.cpu_count() or 1, num_workers),
        object_store_memory=STORE_BYTES, _node_ip_address=LOOPBACK, include_dashboard=False,
        log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    address = ray.nodes()[0]["NodeManagerAddress"]
    if address != LOOPBACK:
        ray.shutdown()
        raise UctreeError(
            f"Ray listens on {address}, because it was loaded before {next(iter(LOCAL))}=0 could "
            "be set; set it in the environment, do not import ray yourself, or call ray.init() "
            "yourself"
        )


class Cluster:
    """Workers as actors of Ray, one per processor."""

    def __init__(self, num_workers: int) -> None:
        self.ray = connect(num_workers)
        # Ray neither restarts nor retries: the caller does, which sends the first messages again
        # and counts the tries.
        self.actor = self.ray.remote(
            num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )(_Actor)

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        return _Remote(self.ray, self.actor.remote(make, arguments, sys.path))

    def wait(self, workers: Sequence[Any], timeout: float | None = None) -> list[Any]:
        until = None if timeout is None else time.monotonic() + timeout
        while not any(worker.replies for worker in workers):
            streams = {worker.streams[0]: worker for worker in workers if worker.streams}
            left = None if until is None else max(0.0, until - time.monotonic())
            found, _ = self.ray.wait(list(streams), timeout=left)
            for stream in found:
                streams[stream].fetch()
            if not found:
                break
        return [worker for worker in workers if worker.replies]

    def share(self, content: bytes) -> Any:
        return self.ray.put(content)


class _Actor:
    """The remote side of a worker: a service whose replies are a stream."""

    def __init__(
        self, make: Callable[..., Service], arguments: tuple[Any, ...], path: list[str]
    ) -> None:
        os.environ.update(ONE_THREAD)
        # The caller's module path, for a game or an agent in a user's file.
        sys.path += [each for each in path if each not in sys.path]
        self.make, self.arguments = make, arguments
        self.service: Service | None = None

    def serve(self, kind: str, content: Any) -> Generator[Message]:
        """The replies to a message.

        The service runs in another thread, which waits until the caller has received a reply: if
        this process died before that, the reply would be lost.
        """
        replies: queue.Queue[Message | None] = queue.Queue()

        def send(reply: Message) -> None:
            replies.put(reply)
            replies.join()

        def run() -> None:
            try:
                if self.service is None:
                    self.service = make_service(self.make, self.arguments, send)
                if self.service is not None:
                    self.service((kind, content), send)
            finally:
                replies.put(None)

        threading.Thread(target=run, daemon=True).start()
        while (reply := replies.get()) is not None:
            yield reply
            replies.task_done()

    def close(self) -> None:
        """Close the service."""
        getattr(self.service, "close", lambda: None)()


class _Remote:
    """The local side of a worker: a handle of an actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self.ray, self.actor = ray, actor
        self.streams: deque[Any] = deque()  # of replies, one stream per message
        self.replies: deque[Message | None] = deque()  # received; None if the actor has died
        self.error = ""

    def send(self, kind: str, content: Any) -> None:
        # Backpressure: the next reply is computed when this one was received.
        serve = self.actor.serve.options(
            num_returns="streaming", _generator_backpressure_num_objects=1
        )
        self.streams.append(serve.remote(kind, content))

    def fetch(self) -> None:
        """Receive from the first stream: a reply, its end, or the death of the actor."""
        try:
            self.replies.append(self.ray.get(next(self.streams[0])))
        except StopIteration:
            self.streams.popleft()
        except self.ray.exceptions.RayError as error:
            self.error = str(error).partition("\n")[0]
            self.replies.append(None)

    def poll(self) -> bool:
        while self.streams and not self.replies:
            if not self.ray.wait([self.streams[0]], timeout=0)[0]:
                break
            self.fetch()
        return bool(self.replies)

    def recv(self) -> Message:
        while not self.replies:
            self.fetch()
        reply = self.replies.popleft()
        if reply is None:
            raise EOFError
        return reply

    def death(self) -> str:
        return f"the actor died ({self.error})"

    def was_killed(self) -> bool:
        return True

    def end(self, seconds: float) -> None:
        with contextlib.suppress(self.ray.exceptions.RayError):  # it is dead, or takes too long
            self.ray.get(self.actor.close.remote(), timeout=seconds)
        self.kill()

    def kill(self) -> None:
        self.ray.kill(self.actor)
