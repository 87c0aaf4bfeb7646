"""A game file that is being written: loaded again when it is saved, and examined by the doctor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uctree import specs
from uctree.doctor.checkup import check
from uctree.doctor.contract import Report
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.studio.thinking import compiling

SECONDS_BETWEEN_LOOKS = 0.3
EPISODES = 100  # that the doctor plays


@dataclass(frozen=True)
class Version:
    """What a file holds since it was saved last."""

    number: int
    game: Game | None  # None if the file cannot be loaded
    fault: str = ""  # why it cannot
    report: Report | None = None  # None until the doctor is done

    def content(self) -> dict[str, Any]:
        """The fields of a message."""
        report = self.report
        return {
            "version": self.number,
            "fault": self.fault,
            "checking": self.game is not None and report is None,
            "headline": "" if report is None else str(report).splitlines()[0],
            "findings": [] if report is None else [
                {
                    "severity": each.severity, "rule": each.rule, "message": each.message,
                    "cure": each.cure,
                    "actions": [a if isinstance(a, int) else list(a) for a in each.actions],
                }
                for each in report.findings
            ],
        }  # fmt: skip


class Workshop:
    """Watches a file in a thread of its own."""

    def __init__(self, text: str) -> None:
        """
        Args:
            text: of the game, `file.py:name`; UctreeError if it cannot be loaded at first.
        """
        self.text, self.path = text, specs.file_of(text)
        self._seen = self._stamp()
        self.version = Version(1, specs.read_game(text))
        self.changed: Callable[[], None] = lambda: None  # called by the thread
        self._is_over = threading.Event()

    def start(self) -> None:
        """Examine the file, and look after it until `stop`."""
        threading.Thread(target=self._run, name="uctree workshop", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end."""
        self._is_over.set()

    def _run(self) -> None:
        self.examine()
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            self.look()

    def look(self) -> bool:
        """Whether the file was saved; then it is loaded and examined."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        number = self.version.number + 1
        try:
            specs.forget_file(self.path)
            self.version = Version(number, specs.read_game(self.text))
        except Exception as error:  # a file of a user may fail in any way
            fault = f"{specs.place(error)}{specs.reason(error)}"
            self.version = Version(number, None, fault)
        self.changed()
        self.examine()
        return True

    def examine(self) -> None:
        """Let the doctor examine the game."""
        game = self.version.game
        if game is not None:
            with compiling:
                report = check(game, episodes=EPISODES)
            self.version = replace(self.version, report=report)
            self.changed()

    def _stamp(self) -> tuple[int, int] | None:
        """What changes when the file is saved; None while it is missing."""
        try:
            status = Path(self.path).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def game(self) -> Game:
        """The game of the file as it was saved last."""
        if self.version.game is None:
            raise UctreeError(f"{self.path} cannot be loaded: {self.version.fault}")
        return self.version.game
