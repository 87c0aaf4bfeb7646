"""Searches of many tabs take turns, so that all of them answer soon."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

SECONDS_BETWEEN_LOOKS = 0.05  # of a search that waits, at whether it is still wanted


class Turns:
    """Lets only so many searches run at the same time, the one that waits longest first.

    With more searches than cores, every thread would run rarely and late, also to answer a message.
    """

    def __init__(self, number: int | None = None) -> None:
        """
        Args:
            number: how many may run; one for each core by default.
        """
        self.number = number or os.cpu_count() or 1
        self._free = self.number
        self._queue: deque[object] = deque()  # those that wait
        self._changed = threading.Condition()

    @property
    def crowd(self) -> float:
        """How many searches share a turn, at least 1."""
        return max(1.0, (self.number - self._free + len(self._queue)) / self.number)

    def take(self, is_wanted: Callable[[], bool]) -> bool:
        """Wait for a turn; False, and no turn, once `is_wanted` says no."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            while self._free == 0 or self._queue[0] is not ticket:
                if not is_wanted():
                    self._queue.remove(ticket)
                    self._changed.notify_all()
                    return False
                self._changed.wait(SECONDS_BETWEEN_LOOKS)
            self._queue.popleft()
            self._free -= 1
            return True

    def give(self) -> None:
        """End a turn."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def pass_on(self, is_wanted: Callable[[], bool]) -> bool:
        """Let others that wait have the turn, and wait for the next one; as `take`."""
        if not self._queue:
            return True
        self.give()
        return self.take(is_wanted)
