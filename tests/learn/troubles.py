"""Setups of self-play with which something goes wrong, and who is left when a process has ended."""

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
from uctree.learn.workers import Rung


@dataclass(frozen=True)
class Noted(Setup):
    """Notes in a folder who plays which episodes, and takes its time."""

    folder: str = ""
    seconds: float = 0.0  # more, for each episode

    def play(self, numbers):
        text = f"{os.getpid()} {' '.join(map(str, numbers))}"
        (Path(self.folder) / uuid.uuid4().hex).write_text(text)
        for episode in super().play(numbers):
            time.sleep(self.seconds)
            yield episode


@dataclass(frozen=True)
class Poisoned(Noted):
    """Fails whenever one of the deadly episodes is among those that are played together."""

    deadly: tuple[int, ...] = ()
    dies: bool = False

    def play(self, numbers):
        for episode in super().play(numbers):
            if set(numbers) & set(self.deadly):
                if self.dies:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ZeroDivisionError("one over zero")
            yield episode


@dataclass(frozen=True)
class DeadlyRung(Rung):
    """Kills whoever measures it the first time."""

    folder: str = ""

    def measure(self, progress):
        mark = Path(self.folder) / "tried"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().measure(progress)


def notes(folder):
    """Who has played what, in no order: pairs of a process and its episodes."""
    texts = [path.read_text().split() for path in Path(folder).iterdir()]
    return [(int(pid), tuple(map(int, numbers))) for pid, *numbers in filter(None, texts)]


def over_at_once():
    """Tic-tac-toe that ends before it begins."""
    whole = games.tic_tac_toe()

    def start(state):
        state.to_play = uctree.OVER

    return uctree.Game(
        whole.dtype, whole.rules.legal, whole.rules.step, num_players=2, num_actions=9,
        observe=whole.rules.observe, observation_shape=whole.observation_shape, start=start,
        name="hasty",
    )  # fmt: skip


def marked(mark):
    """The processes that have this text in the environment they were started with."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def gone(mark, seconds):
    """Whether no such process is left within so many seconds."""
    until = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not marked(mark)
