"""Games played by workers; if a worker dies, the agent that was acting forfeits its game."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence

from uctree.arena.agents import AgentSource
from uctree.arena.episodes import AgentPool, Clock, Report, Task, forfeited, play_task
from uctree.arena.external import LONGEST_END
from uctree.arena.records import GameRecord, record_from
from uctree.engine import interrupts
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.workers.processes import Host, Message, Send, Worker, make_host

GRACE = 1.0  # seconds beyond max_seconds before a worker without a message is ended
MAX_TRIES = 2  # of a game whose worker died before any agent was called


def play_in_workers(
    pool: AgentPool, tasks: Iterable[Task], processes: int, max_seconds: float | None,
    backend: str = "process",
) -> Generator[GameRecord]:  # fmt: skip
    """The records of games in the order in which they end.

    Args:
        pool: the agents, which each worker makes for itself.
        processes: the number of workers.
        backend: "process" or "ray".
    """
    payload = _pickled(pool.game_source, dict(zip(pool.names, pool.sources, strict=True)))
    end_seconds = GRACE + LONGEST_END * len(pool.names)  # each agent may be a program to end
    host = make_host(backend, processes)
    waiting, tries = deque(tasks), dict[int, int]()
    workers: list[_GameWorker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < processes:
                with interrupts.postponed():  # so that the end of this function ends it
                    workers.append(_GameWorker(host, payload, max_seconds))
                workers[-1].start(waiting.popleft())
            for each in _ready(host, workers):
                record = each.receive(pool)
                if record is None and each.is_alive:
                    continue
                task = each.task
                assert task is not None, "it has a game"
                if record is not None:
                    yield record
                else:
                    tries[task.number] = tries.get(task.number, 0) + 1
                    if tries[task.number] == MAX_TRIES:
                        raise UctreeError(_unexplained(each.worker))
                    waiting.appendleft(task)
                if not each.is_alive or not waiting:
                    each.end(end_seconds)
                    workers.remove(each)
                else:
                    each.start(waiting.popleft())
    finally:
        with interrupts.shielded():
            for each in workers:
                each.kill()


def _pickled(game: Game | str, sources: dict[str, AgentSource]) -> bytes:
    """The game and the agents, pickled for another process."""
    for name, source in sources.items():
        try:
            pickle.dumps(source)
        except Exception as error:
            raise UctreeError(
                f"agent {name} cannot be sent to another process ({error}); name it by text, as "
                "my_agents.py:Clever(depth=3), give a class of a module, or use processes=1"
            ) from error
    return pickle.dumps((game, sources))  # a game raises its own error


def _unexplained(worker: Worker) -> str:
    return (
        f"a worker ended before it played: {worker.death()}; in a script, call match below "
        '`if __name__ == "__main__":`, or use processes=1'
    )


def _ready(host: Host, workers: list[_GameWorker]) -> list[_GameWorker]:
    """The workers that sent a message, died, or exceeded their time limit."""
    until = min(each.deadline for each in workers)
    timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
    heard = host.wait([each.worker for each in workers], timeout)
    now = time.monotonic()
    return [each for each in workers if each.worker in heard or now >= each.deadline]


class _GameWorker:
    """A worker that plays one game after another."""

    def __init__(self, host: Host, payload: bytes, max_seconds: float | None) -> None:
        self.worker = host.start(_Service, payload, max_seconds)
        self.max_seconds = max_seconds
        self.task: Task | None = None
        self.is_alive = True

    def start(self, task: Task) -> None:
        """Send it a game to play."""
        self.task, self.actions, self.seat = task, list[int](), -1
        self.deadline = float("inf")
        self.worker.send("play", task)

    def receive(self, pool: AgentPool) -> GameRecord | None:
        """The record of its game if that has ended, also because the worker died."""
        if time.monotonic() >= self.deadline and not self.worker.poll():
            return self._lost(pool, f"no reply within {self.max_seconds:g} s; ended")
        try:
            kind, content = self.worker.recv()
        except EOFError:
            return self._lost(pool, self.worker.death())
        if kind == "record":
            self.deadline = float("inf")
            return record_from(content, pool.game)
        if kind == "broken":
            raise UctreeError(f"a worker cannot play: {content}")
        self.seat, new, limited = content
        self.actions += new
        limit = self.max_seconds if limited else None
        self.deadline = float("inf") if limit is None else time.monotonic() + limit + GRACE
        return None

    def _lost(self, pool: AgentPool, error: str) -> GameRecord | None:
        """The game as a forfeit of the agent that was acting; None if no agent was called yet."""
        self.kill()
        if self.seat < 0 or self.task is None:
            return None
        where = f"at ply {len(self.actions)}: {error}"
        unknown = Clock(pool.game.num_players)
        return forfeited(pool, self.task, self.actions, self.seat, where, unknown)

    def end(self, seconds: float) -> None:
        """Let it close its agents, and end it after `seconds`."""
        if self.is_alive:
            self.worker.end(seconds)
            self.is_alive = False  # not before: Ctrl-C may end the wait, and `kill` comes then

    def kill(self) -> None:
        """End it with all processes of its agents, also if it died before them."""
        if self.is_alive:
            self.worker.kill()
            self.is_alive = False


class _Service:
    """The service of a worker: plays the games that it receives."""

    def __init__(self, payload: bytes, max_seconds: float | None) -> None:
        self.pool = AgentPool(*pickle.loads(payload))
        self.max_seconds = max_seconds

    def __call__(self, message: Message, send: Send) -> None:
        def report(seat: int, actions: Sequence[int], limited: bool) -> None:
            send(("calls", (seat, list(actions), limited)))

        send(self._play(message[1], report))

    def _play(self, task: Task, report: Report) -> Message:
        try:
            record = play_task(self.pool, task, self.max_seconds, report)
            return "record", record.to_json()
        except Exception as error:
            return "broken", f"{type(error).__name__}: {error}"

    def close(self) -> None:
        self.pool.close()
