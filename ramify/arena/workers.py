"""Games played by worker processes, which may die: the agent that acted then forfeits its game."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ramify.arena.agents import AgentSource
from ramify.arena.episodes import Clock, Squad, Task, forfeited, play_task
from ramify.arena.external import LONGEST_END
from ramify.arena.records import GameRecord, record_from
from ramify.errors import RamifyError
from ramify.game import Game

GRACE = 1.0  # seconds beyond max_seconds before a process that does not answer is ended
MOST_TRIES = 2  # of a game whose process died before any agent was asked

_context = multiprocessing.get_context("spawn")


def play_in_workers(
    squad: Squad, tasks: Iterable[Task], processes: int, max_seconds: float | None
) -> Generator[GameRecord]:
    """The records of games in the order in which they end.

    Args:
        squad: the agents as they are made anew in each process.
    """
    payload = _pickled(squad.game_source, dict(zip(squad.names, squad.sources, strict=True)))
    farewell = GRACE + LONGEST_END * len(squad.names)  # each agent may be a program to end
    waiting, tries = deque(tasks), dict[int, int]()
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < processes:
                workers.append(_Worker(payload, max_seconds))
                workers[-1].give(waiting.popleft())
            for worker in _ready(workers):
                record = worker.listen(squad)
                if record is None and worker.is_alive:
                    continue
                task = worker.task
                assert task is not None, "it was given one"
                if record is not None:
                    yield record
                else:
                    tries[task.number] = tries.get(task.number, 0) + 1
                    if tries[task.number] == MOST_TRIES:
                        raise RamifyError(_unexplained(worker))
                    waiting.appendleft(task)
                if not worker.is_alive or not waiting:
                    worker.end(farewell)
                    workers.remove(worker)
                else:
                    worker.give(waiting.popleft())
    finally:
        for worker in workers:
            worker.kill()


def _pickled(game: Game | str, sources: dict[str, AgentSource]) -> bytes:
    """The game and the agents as another process gets them."""
    for name, source in sources.items():
        try:
            pickle.dumps(source)
        except Exception as error:
            raise RamifyError(
                f"agent {name} cannot be sent to another process ({error}); name it by text, as "
                "my_agents.py:Clever(depth=3), give a class of a module, or use processes=1"
            ) from error
    return pickle.dumps((game, sources))  # a game says itself what is wrong with it


def _unexplained(worker: _Worker) -> str:
    return (
        f"a worker process ended before it played (exit code {worker.process.exitcode}); in a "
        'script, call match below `if __name__ == "__main__":`, or use processes=1'
    )


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Workers that said something, died, or have been silent for too long."""
    until = min(worker.deadline for worker in workers)
    timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
    heard = wait([worker.connection for worker in workers], timeout)
    now = time.monotonic()
    return [each for each in workers if each.connection in heard or now >= each.deadline]


class _Worker:
    """A process that plays one game after the other."""

    def __init__(self, payload: bytes, max_seconds: float | None) -> None:
        self.connection, other = _context.Pipe()
        self.max_seconds = max_seconds
        # Not a daemon, because those may not have processes of their own, as agents may want; it
        # ends by itself when its connection is closed.
        self.process = _context.Process(target=_work, args=(other, payload, max_seconds))
        with _without_interrupts():
            self.process.start()
        other.close()  # so that the end of the process is the end of the connection
        self.task: Task | None = None
        self.is_alive = True

    def give(self, task: Task) -> None:
        """Let it play a game."""
        self.task, self.actions, self.seat = task, list[int](), -1
        self.deadline = float("inf")
        with contextlib.suppress(OSError):  # it died; `listen` will find out
            self.connection.send(task)

    def listen(self, squad: Squad) -> GameRecord | None:
        """The record of its game, where that has ended; by its death if need be."""
        if time.monotonic() >= self.deadline and not self.connection.poll():
            return self._lost(squad, f"no answer within {self.max_seconds:g} s; ended")
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(GRACE)
            died = f"the process died (exit code {self.process.exitcode})"
            return self._lost(squad, died)
        if kind == "record":
            self.deadline = float("inf")
            return record_from(content, squad.game)
        if kind == "broken":
            raise RamifyError(f"a worker process cannot play: {content}")
        self.seat, new, quick = content
        self.actions += new
        limit = self.max_seconds if quick else None
        self.deadline = float("inf") if limit is None else time.monotonic() + limit + GRACE
        return None

    def _lost(self, squad: Squad, error: str) -> GameRecord | None:
        """The game as a forfeit of whoever acted; None where nobody did yet."""
        self.kill()
        if self.seat < 0 or self.task is None:
            return None
        where = f"at ply {len(self.actions)}: {error}"
        unknown = Clock(squad.game.num_players)
        return forfeited(squad, self.task, self.actions, self.seat, where, unknown)

    def end(self, seconds: float) -> None:
        """Let it close its agents and leave within so many seconds."""
        if not self.is_alive:
            return
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(seconds)
        self.kill()

    def kill(self) -> None:
        """End it with all that its agents have started, also where it has died before them."""
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
    """What is started here is not told of Ctrl-C: the match itself ends its workers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(connection: Connection, payload: bytes, max_seconds: float | None) -> None:
    """What a worker process does: play the games it is given."""
    if hasattr(os, "setsid"):
        os.setsid()  # what its agents start belongs to it, and is ended with it

    def report(seat: int, actions: Sequence[int], quick: bool) -> None:
        connection.send(("asks", (seat, list(actions), quick)))

    def answer(task: Task) -> tuple[str, Any]:
        try:
            return "record", play_task(squad, task, max_seconds, report).to_json()
        except Exception as error:
            return "broken", f"{type(error).__name__}: {error}"

    try:
        squad = Squad(*pickle.loads(payload))
    except Exception as error:
        connection.send(("broken", f"{type(error).__name__}: {error}"))
        return
    # Nobody is there to listen where the match was ended.
    with contextlib.suppress(EOFError, OSError), contextlib.closing(squad):
        while (task := connection.recv()) is not None:
            connection.send(answer(task))
