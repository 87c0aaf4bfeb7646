"""Setups of self-play that fail, and the processes that are left after a training."""

from __future__ import annotations

import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import uctree
from uctree import games
from uctree.learn.selfplay import Setup
from uctree.learn.workers import EvaluationJob


@dataclass(frozen=True)
class LoggedSetup(Setup):
    """Logs in a folder which process plays which episodes, and sleeps after each episode."""

    folder: str = ""
    seconds: float = 0.0  # of sleep

    def play(self, numbers):
        text = f"{os.getpid()} {' '.join(map(str, numbers))}"
        (Path(self.folder) / uuid.uuid4().hex).write_text(text)
        for episode in super().play(numbers):
            time.sleep(self.seconds)
            yield episode


@dataclass(frozen=True)
class FailingSetup(LoggedSetup):
    """Raises an error, or kills its process, if a chunk has one of the failing episodes."""

    failing: tuple[int, ...] = ()
    kills: bool = False

    def play(self, numbers):
        for episode in super().play(numbers):
            if set(numbers) & set(self.failing):
                if self.kills:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ZeroDivisionError("one over zero")
            yield episode


@dataclass(frozen=True)
class DeadlyJob(EvaluationJob):
    """Kills the process that measures it the first time."""

    folder: str = ""

    def measure(self, progress):
        tried = Path(self.folder) / "tried"
        if not tried.exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().measure(progress)


def logged(folder):
    """Pairs of a process id and the episodes it played, in no order."""
    texts = [path.read_text().split() for path in Path(folder).iterdir()]
    return [(int(pid), tuple(map(int, numbers))) for pid, *numbers in filter(None, texts)]


def over_at_once():
    """Tic-tac-toe whose start is over."""
    whole = games.tic_tac_toe()

    def start(state):
        state.to_play = uctree.OVER

    return uctree.Game(
        whole.dtype, whole.rules.legal, whole.rules.step, num_players=2, num_actions=9,
        observe=whole.rules.observe, observation_shape=whole.observation_shape, start=start,
        name="hasty",
    )  # fmt: skip


def processes_with(mark):
    """The processes that were started with this text in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def all_ended(mark, seconds):
    """Whether all processes with this text have ended, after at most `seconds`."""
    until = time.monotonic() + seconds
    while processes_with(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not processes_with(mark)
