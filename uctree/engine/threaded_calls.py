"""Calls of a Python function in several threads at once, each bounded in time."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any

import numpy as np

from uctree.engine import interrupts


class ThreadedCalls:
    """Evaluates a batch by a function, in parts, in parallel and with a time limit."""

    def __init__(
        self, function: Callable[[np.ndarray], Any], priors: bool, concurrency: int,
        timeout: float | None,
    ) -> None:  # fmt: skip
        self.function, self.priors = function, priors
        self.concurrency, self.timeout = concurrency, timeout
        self._calls: _Calls | None = None  # of the threads that wait for calls
        self._lock = threading.Lock()  # several searches may share an evaluator
        self._end: Callable[[], Any] = lambda: None

    def __call__(self, states: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        if self.concurrency == 1 and self.timeout is None:
            return self._read(self.function(states))
        parts = np.array_split(states, min(self.concurrency, len(states)))
        futures: list[Future[Any]] = [Future() for _ in parts]
        try:
            self._put(futures, parts)
            _, late = wait(futures, self.timeout)
            if late:
                # Python cannot stop these threads; the next call starts new ones.
                self.close()
                raise TimeoutError(
                    f"no result within {self.timeout} seconds for {len(late)} of {len(parts)} calls"
                )
        finally:
            for future in futures:
                future.cancel()  # if it has not begun
        results = [self._read(future.result()) for future in futures]
        values = np.concatenate([values for _, values in results])
        if not self.priors:
            return None, values
        return np.concatenate([logits for logits, _ in results if logits is not None]), values

    def _put(self, futures: list[Future[Any]], parts: list[np.ndarray]) -> None:
        """Hand the calls to the threads, which are started if there are none."""
        with interrupts.postponed(), self._lock:
            calls = self._calls or self._start()
            for call in zip(futures, parts, strict=True):
                calls.put(call)

    def close(self) -> None:
        """Let the threads end after the calls that they were given; the next call starts others."""
        with interrupts.postponed(), self._lock:
            self._forget()

    def _forget(self) -> None:
        self._calls = None
        self._end()

    def _start(self) -> _Calls:
        """Start threads that wait for calls; daemons, so that a hanging one cannot block exit."""
        self._calls = calls = _Calls()
        # Threads refer to the calls, not to this object, so they end when it is deleted.
        self._end = weakref.finalize(self, _stop, calls, self.concurrency)
        try:
            for number in range(self.concurrency):
                threading.Thread(
                    target=_work, args=(self.function, calls), daemon=True,
                    name=f"uctree-evaluator-{number}",
                ).start()  # fmt: skip
        except BaseException:  # the system has no more threads
            self._forget()
            raise
        return calls

    def _read(self, result: Any) -> tuple[np.ndarray | None, np.ndarray]:
        if not self.priors:
            return None, np.asarray(result, np.float32)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"with priors=True a function returns (logits, values); got {type(result).__name__}"
            )
        return np.asarray(result[0], np.float32), np.asarray(result[1], np.float32)


_Calls = SimpleQueue["tuple[Future[Any], np.ndarray] | None"]


def _work(function: Callable[[np.ndarray], Any], calls: _Calls) -> None:
    """Run calls until None comes."""
    while (call := calls.get()) is not None:
        future, states = call
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(function(states))
        except BaseException as error:
            future.set_exception(error)


def _stop(calls: _Calls, count: int) -> None:
    for _ in range(count):
        calls.put(None)
