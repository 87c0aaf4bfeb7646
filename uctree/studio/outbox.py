"""What a session sends to its tab: one slot per kind of message, in which the latest one wins.

So a tab that is slow or paused never lets the server grow: what it has not read is replaced.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec


class Outbox:
    """Filled by the thread of a session, emptied by the event loop."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """
        Args:
            wake: called, by any thread, if there is something to take.
        """
        self._slots: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._wake = wake
        self._encoder = msgspec.json.Encoder()

    def put(self, kind: str, content: dict[str, Any]) -> None:
        """Leave a message; one of the same kind that was not taken is replaced."""
        encoded = self._encoder.encode({"kind": kind} | content)
        with self._lock:
            self._slots.pop(kind, None)
            self._slots[kind] = encoded
        self._wake()

    def drop(self, kind: str) -> None:
        """Remove a message that was not taken, because it is about an earlier state."""
        with self._lock:
            self._slots.pop(kind, None)

    def take(self) -> list[bytes]:
        """All messages that wait, in the order they were left."""
        with self._lock:
            waiting = list(self._slots.values())
            self._slots.clear()
        return waiting


def waking(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], None]:
    """A function that sets an event of a loop from any thread, also after the loop has ended."""

    def wake() -> None:
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # it was closed meanwhile
                return

    return wake
