"""Workers that play episodes and measure checkpoints: in this process, or in others.

A worker may die and an episode may fail; lost episodes are played again. If a chunk of episodes
fails repeatedly, its episodes are played one by one. An episode that then fails again is left out
and reported.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from uctree.engine import interrupts
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn.extras import load_module
from uctree.learn.options import Options
from uctree.learn.selfplay import Episode, network_evaluator
from uctree.workers.processes import Host, Message, Send, Worker, make_host

MAX_TRIES = 3  # of a chunk, and of an episode on its own
MAX_FAILURES = 3  # before self-play stops if more episodes fail than succeed
MAX_STARTS = 10  # of workers that die one after the other before they play

OnProgress = Callable[[int, int], None]  # called with what is done and the total
Chunk = tuple[int, ...]  # the numbers of episodes that are played at the same time


@dataclass(frozen=True)
class Failed:
    """An episode that failed `MAX_TRIES` times."""

    number: int
    error: str


@dataclass(frozen=True)
class EvaluationJob:
    """A checkpoint to measure."""

    game: Game
    options: Options
    network: Any  # as in `Setup`
    past: Any  # that of an earlier checkpoint, or None
    seed: int

    def measure(self, progress: OnProgress) -> dict[str, Any]:
        """The numbers of `ladder.measure`."""
        evaluator, past = (
            None if each is None else network_evaluator(each, self.game, self.options)
            for each in (self.network, self.past)
        )
        found: dict[str, Any] = load_module("uctree.learn.ladder").measure(
            self.game, evaluator, self.options, past=past, seed=self.seed, progress=progress
        )
        return found


class Job(Protocol):
    """What workers play: `selfplay.Setup`, or `reanalysis.Reanalysis`."""

    @property
    def game(self) -> Game:
        """The game."""

    def play(self, numbers: Sequence[int]) -> Iterator[Episode]:
        """The episodes, or chunks, of these numbers, as they end."""


class Workers(Protocol):
    """Plays episodes and measures checkpoints."""

    cpu_seconds: float  # of processor time that other processes took

    def play(self, setup: Job, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        """Every episode once, as they end; those of a chunk are played at the same time.

        UctreeError if more episodes fail than succeed.
        """

    def measure(self, job: EvaluationJob, progress: OnProgress) -> dict[str, Any]:
        """The strength of a checkpoint, as `ladder.measure` returns it."""

    def close(self) -> None:
        """Stop all worker processes."""


def make_workers(options: Options) -> Workers:
    """The workers of a run, by its options `workers` and `backend`."""
    if options.workers == 1 and options.backend == "process":
        return InProcessWorker()
    return WorkerPool(make_host(options.backend, options.workers), options.workers)


class InProcessWorker:
    """Plays in this process, one chunk after the other."""

    cpu_seconds = 0.0

    def play(self, setup: Job, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        ledger = _Ledger(setup.game, chunks)
        while (chunk := ledger.next_chunk()) is not None:
            try:
                for episode in setup.play(chunk):
                    if ledger.accept(episode):
                        yield episode
            except Exception as error:
                yield from ledger.record_error(chunk, _format_error(error))

    def measure(self, job: EvaluationJob, progress: OnProgress) -> dict[str, Any]:
        return job.measure(progress)

    def close(self) -> None:
        pass


def _format_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class _Ledger:
    """The chunks left to play, how often each was tried, and which episodes are missing."""

    def __init__(self, game: Game, chunks: Sequence[Chunk]) -> None:
        self.game = game
        self.waiting = deque(chunks)
        self.missing = {number for chunk in chunks for number in chunk}
        self.tries: Counter[Chunk] = Counter()
        self.num_played = self.num_failed = 0
        self.raised: set[Chunk] = set()  # chunks in which an error was raised

    def next_chunk(self) -> Chunk | None:
        """The next chunk to play; None if none is waiting."""
        return self.waiting.popleft() if self.waiting else None

    def return_chunk(self, chunk: Chunk) -> None:
        """Put a chunk that was not started back to the front."""
        self.waiting.appendleft(chunk)

    def accept(self, episode: Episode) -> bool:
        """Count an episode; False if it was played before."""
        if episode.number not in self.missing:
            return False
        self.missing.remove(episode.number)
        self.num_played += 1
        return True

    def record_error(self, chunk: Chunk, error: str) -> list[Failed]:
        """The episodes to give up after an error was raised in a chunk: none, or one."""
        self.raised.add(chunk)
        if len(self.raised) >= MAX_FAILURES and self.num_played == 0:
            self._raise_failure(error)
        return self.record_death(chunk, error)

    def record_death(self, chunk: Chunk, error: str) -> list[Failed]:
        """The episodes to give up after the worker of a chunk died: none, or one."""
        self.tries[chunk] += 1
        if self.tries[chunk] < MAX_TRIES:
            self.waiting.append(chunk)
            return []
        alone = [number for number in chunk if number in self.missing]
        if len(chunk) > 1:
            self.waiting.extend((number,) for number in alone)
            return []
        self.missing.difference_update(alone)
        self.num_failed += 1
        enough = self.num_failed >= MAX_FAILURES or not self.missing
        if enough and self.num_failed > self.num_played:
            self._raise_failure(error)
        return [Failed(chunk[0], error)]

    def _raise_failure(self, error: str) -> None:
        raise UctreeError(
            f"self-play of {self.game.name} fails: {self.num_played} episodes were played in this "
            f"iteration, and the others fail at every try. The last error: {error}"
        )


# --- worker processes ----------------------------------------------------------------------------


class WorkerPool:
    """Plays with workers that may die; the host decides where they run."""

    def __init__(self, host: Host, num_workers: int) -> None:
        self.host, self.num_workers = host, num_workers
        self.cpu_seconds = 0.0
        self.workers: list[_PoolWorker] = []
        self.failed_starts = 0  # in a row
        self.game: tuple[Game, bytes] | None = None  # with its pickle

    def play(self, setup: Job, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        ledger = _Ledger(setup.game, chunks)
        content = self.host.share(self._pickled(setup.game, setup))
        for each in self.workers:
            each.prepare(content)
        is_over = False
        try:
            while ledger.waiting or any(each.chunk for each in self.workers):
                self._assign(ledger, content)
                busy = {id(each.worker): each for each in self.workers if each.chunk}
                for worker in self.host.wait([each.worker for each in busy.values()]):
                    yield from self._receive(busy[id(worker)], ledger)
            is_over = True
        finally:
            if not is_over:  # the episodes in progress are not needed any more
                self.close()

    def _pickled(self, game: Game, job: Job | EvaluationJob) -> bytes:
        """The bytes of a job; those of its game stay the same, so that workers reuse the game."""
        if self.game is None or self.game[0] is not game:
            self.game = game, pickle.dumps(game)  # raises an error of ours if it cannot be pickled
        try:
            return pickle.dumps((self.game[1], replace(cast(Any, job), game=None)))
        except Exception as error:
            raise UctreeError(
                f"the network cannot be sent to another process ({error}); define its class in a "
                'module (a .py file), or use inference="onnx"'
            ) from error

    def _assign(self, ledger: _Ledger, content: Any) -> None:
        """Start missing workers, and give each idle one a chunk."""
        while ledger.waiting and len(self.workers) < self.num_workers:
            self._start().prepare(content)
        for each in self.workers:
            if each.chunk is None and (chunk := ledger.next_chunk()) is not None:
                each.assign(chunk)

    def _receive(self, source: _PoolWorker, ledger: _Ledger) -> Generator[Episode | Failed]:
        """What the next message of a worker brings."""
        chunk = source.chunk
        assert chunk is not None, "a busy worker has a chunk"
        try:
            kind, content = source.worker.recv()
        except EOFError:
            death = source.worker.death()
            if source.has_started:
                yield from ledger.record_death(chunk, death)
            else:
                self._count_failed_start(source.worker)
                ledger.return_chunk(chunk)
            self._remove(source)
            return
        if kind == "broken":
            raise UctreeError(f"a worker cannot play: {content}")
        if kind == "begun":
            source.has_started, self.failed_starts = True, 0
        elif kind == "spent":
            self.cpu_seconds += source.spent_since(content)
        elif kind == "episode":
            if ledger.accept(content):
                yield content
        else:
            source.chunk = None
            if kind == "error":
                yield from ledger.record_error(chunk, content)

    def _start(self) -> _PoolWorker:
        with interrupts.postponed():  # so that `close` ends it
            self.workers.append(_PoolWorker(self.host.start(_Service)))
        return self.workers[-1]

    def _remove(self, dead: _PoolWorker) -> None:
        with interrupts.postponed():
            dead.worker.kill()
            self.workers.remove(dead)

    def _count_failed_start(self, worker: Worker) -> None:
        """Count a worker that died before it played; UctreeError if this is not by chance."""
        self.failed_starts += 1
        if self.failed_starts == MAX_STARTS or not worker.was_killed():
            raise UctreeError(
                f"a worker ended before it started to play ({worker.death()}); in a script, call "
                'train below `if __name__ == "__main__":`, or use workers=1'
            )

    def measure(self, job: EvaluationJob, progress: OnProgress) -> dict[str, Any]:
        content = self.host.share(self._pickled(job.game, job))
        for _ in range(MAX_TRIES):
            chosen = self.workers[0] if self.workers else self._start()
            chosen.worker.send("measure", content)
            try:
                return self._wait_for_result(chosen, progress)
            except EOFError:
                death = chosen.worker.death()
                self._remove(chosen)
        raise UctreeError(f"the ladder failed {MAX_TRIES} times: {death}")

    def _wait_for_result(self, chosen: _PoolWorker, progress: OnProgress) -> dict[str, Any]:
        while True:
            self.host.wait([chosen.worker])
            kind, content = chosen.worker.recv()
            if kind == "progress":
                progress(*content)
            elif kind == "spent":
                self.cpu_seconds += chosen.spent_since(content)
            elif kind == "measured":
                found: dict[str, Any] = content
                return found
            else:
                raise UctreeError(f"the ladder failed: {content}")

    def close(self) -> None:
        with interrupts.shielded():
            for each in self.workers:
                each.worker.kill()
            self.workers.clear()


class _PoolWorker:
    """A worker and the chunk that it plays."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.chunk: Chunk | None = None
        self.has_started = False
        self.cpu_seconds = 0.0  # at its last message

    def prepare(self, content: Any) -> None:
        """Send the setup of the next episodes."""
        self.worker.send("setup", content)

    def assign(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.worker.send("play", chunk)

    def spent_since(self, cpu_seconds: float) -> float:
        """The processor time since the last message; `cpu_seconds` is that since its start."""
        before, self.cpu_seconds = self.cpu_seconds, cpu_seconds
        return cpu_seconds - before


class _Service:
    """What a worker runs: it plays episodes with the last setup, and measures checkpoints."""

    def __init__(self) -> None:
        self.game: tuple[bytes, Game] | None = None  # its pickle, and the game with compiled code
        self.setup: Job | None = None

    def __call__(self, message: Message, send: Send) -> None:
        kind, content = message
        if kind == "setup":
            self._prepare(content, send)
        elif kind == "play":
            self._play(content, send)
        else:
            self._measure(content, send)

    def _unpickled(self, content: bytes) -> Any:
        game, job = pickle.loads(content)
        if self.game is None or self.game[0] != game:
            self.game = game, pickle.loads(game)
        return replace(job, game=self.game[1])

    def _prepare(self, content: bytes, send: Send) -> None:
        try:
            self.setup = self._unpickled(content)
        except Exception as error:
            send(("broken", _format_error(error)))

    def _play(self, chunk: Chunk, send: Send) -> None:
        assert self.setup is not None, "the setup is sent first"
        send(("begun", None))
        end: Message = ("done", None)
        try:
            for episode in self.setup.play(chunk):
                send(("episode", episode))
        except Exception as error:
            end = "error", _format_error(error)
        send(("spent", time.process_time()))
        send(end)

    def _measure(self, content: bytes, send: Send) -> None:
        def progress(done: int, total: int) -> None:
            send(("progress", (done, total)))

        try:
            end: Message = "measured", self._unpickled(content).measure(progress)
        except Exception as error:
            end = "error", _format_error(error)
        send(("spent", time.process_time()))
        send(end)
