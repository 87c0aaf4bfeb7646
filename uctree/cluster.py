"""Services as actors of Ray, on this machine or on a cluster; needs the extra `ray`.

Whoever reaches the ports of Ray may run code by it. What is started here listens on the loopback
address alone.
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
from uctree.processes import ONE_THREAD, Message, Service, Worker, environment, made

LOOPBACK = "127.0.0.1"
STORE_BYTES = 256 << 20  # memory that what is shared may take on this machine

# Read when Ray is loaded. Without the first it takes the address of the network card, although
# another one is given, and listens on all of them.
LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def connect(num_workers: int) -> Any:
    """Ray, connected to a cluster: as it is, to that of RAY_ADDRESS, or to a new one right here.

    A new one ends with this process.
    """
    if "RAY_ADDRESS" in os.environ:
        ray = _load_ray()
        if not ray.is_initialized():
            _join(ray)
    else:
        with environment(LOCAL):
            ray = _load_ray()
            if not ray.is_initialized():
                _begin(ray, num_workers)
    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < num_workers:
        raise UctreeError(
            f"{num_workers} workers need a processor each, and the Ray cluster has {processors}; "
            "ask for fewer workers, or add machines to it"
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
            f"there is no Ray cluster to be had at RAY_ADDRESS={os.environ['RAY_ADDRESS']} "
            f"({error}); see that it runs and, where it wants a token, that RAY_AUTH_MODE=token "
            "and the token are set here too"
        ) from error


def _begin(ray: Any, num_workers: int) -> None:
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
            "be set; set it in the environment, do not import ray yourself, or connect it yourself "
            "by ray.init()"
        )


class Cluster:
    """Workers that are actors of Ray, on a processor each."""

    def __init__(self, num_workers: int) -> None:
        self.ray = connect(num_workers)
        # What dies is started anew by whoever knows what it has to be told first, and has counted
        # its tries; so Ray does neither.
        self.actor = self.ray.remote(
            num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )(_Actor)

    def start(self, make: Callable[..., Service], *arguments: Any) -> Worker:
        return _Remote(self.ray, self.actor.remote(make, arguments, sys.path))

    def wait(self, workers: Sequence[Any], timeout: float | None = None) -> list[Any]:
        until = None if timeout is None else time.monotonic() + timeout
        while not any(worker.answers for worker in workers):
            streams = {worker.streams[0]: worker for worker in workers if worker.streams}
            left = None if until is None else max(0.0, until - time.monotonic())
            found, _ = self.ray.wait(list(streams), timeout=left)
            for stream in found:
                streams[stream].fetch()
            if not found:
                break
        return [worker for worker in workers if worker.answers]

    def share(self, content: bytes) -> Any:
        return self.ray.put(content)


class _Actor:
    """What runs over there: a service whose answers are a stream."""

    def __init__(
        self, make: Callable[..., Service], arguments: tuple[Any, ...], path: list[str]
    ) -> None:
        os.environ.update(ONE_THREAD)
        # Where modules are found by who asks, as a game or an agent in a file of one's own.
        sys.path += [each for each in path if each not in sys.path]
        self.make, self.arguments = make, arguments
        self.service: Service | None = None

    def answer(self, kind: str, content: Any) -> Generator[Message]:
        """The answers to a message.

        They are told from another thread, which goes on when an answer has come to who asked: it
        would be lost if this process died before.
        """
        told: queue.Queue[Message | None] = queue.Queue()

        def tell(answer: Message) -> None:
            told.put(answer)
            told.join()

        def serve() -> None:
            try:
                if self.service is None:
                    self.service = made(self.make, self.arguments, tell)
                if self.service is not None:
                    self.service((kind, content), tell)
            finally:
                told.put(None)

        threading.Thread(target=serve, daemon=True).start()
        while (answer := told.get()) is not None:
            yield answer
            told.task_done()

    def close(self) -> None:
        """Let the service close."""
        getattr(self.service, "close", lambda: None)()


class _Remote:
    """An actor as it is seen from here."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self.ray, self.actor = ray, actor
        self.streams: deque[Any] = deque()  # of answers, to one message each
        self.answers: deque[Message | None] = deque()  # that are here; None where it has died
        self.error = ""

    def send(self, kind: str, content: Any) -> None:
        # One answer after the other: the next is made when this one was taken.
        answer = self.actor.answer.options(
            num_returns="streaming", _generator_backpressure_num_objects=1
        )
        self.streams.append(answer.remote(kind, content))

    def fetch(self) -> None:
        """Take what the first stream has ready: an answer, its end, or that the actor has died."""
        try:
            self.answers.append(self.ray.get(next(self.streams[0])))
        except StopIteration:
            self.streams.popleft()
        except self.ray.exceptions.RayError as error:
            self.error = str(error).partition("\n")[0]
            self.answers.append(None)

    def poll(self) -> bool:
        while self.streams and not self.answers:
            if not self.ray.wait([self.streams[0]], timeout=0)[0]:
                break
            self.fetch()
        return bool(self.answers)

    def recv(self) -> Message:
        while not self.answers:
            self.fetch()
        answer = self.answers.popleft()
        if answer is None:
            raise EOFError
        return answer

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
