"""Where episodes of self-play are played, and checkpoints measured: here, or by other processes.

Whoever plays may die, and an episode may fail: what was lost is played again. Episodes that were to
be played together with one that fails time and again are played one by one, so that the one is
found; it is left out, and named.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn.extras import load_module
from uctree.learn.options import Options
from uctree.learn.selfplay import Episode, Setup, network_evaluator
from uctree.processes import Host, Message, Tell, Worker, make_host

MOST_TRIES = 3  # of episodes that are played together, and of one alone
MOST_FAILURES = 3  # before it is asked whether anything can be played at all
MOST_STARTS = 10  # of workers that die, one after the other, before they have begun

Progress = Callable[[int, int], None]  # told how much of how much is done
Chunk = tuple[int, ...]  # the numbers of episodes that are played together


@dataclass(frozen=True)
class Failed:
    """An episode that cannot be played."""

    number: int
    error: str


@dataclass(frozen=True)
class Rung:
    """A checkpoint that is to be measured."""

    game: Game
    options: Options
    network: Any  # as in `Setup`
    past: Any  # the same of an earlier checkpoint, or None
    seed: int

    def measure(self, progress: Progress) -> dict[str, Any]:
        """What `ladder.measure` finds."""
        evaluator, past = (
            None if each is None else network_evaluator(each, self.game, self.options)
            for each in (self.network, self.past)
        )
        found: dict[str, Any] = load_module("uctree.learn.ladder").measure(
            self.game, evaluator, self.options, past=past, seed=self.seed, progress=progress
        )
        return found


class Players(Protocol):
    """Who plays episodes, and measures checkpoints."""

    def play(self, setup: Setup, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        """Every episode once, as they end; those of a chunk are played together.

        UctreeError where more episodes fail than can be played.
        """

    def measure(self, rung: Rung, progress: Progress) -> dict[str, Any]:
        """What a checkpoint is worth."""

    def close(self) -> None:
        """Let everyone go."""


def make_players(options: Options) -> Players:
    """Those that the options ask for."""
    if options.workers == 1 and options.backend == "process":
        return Here()
    return Pool(make_host(options.backend, options.workers), options.workers)


class Here:
    """Plays in this process, one chunk after the other."""

    def play(self, setup: Setup, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        book = _Book(setup.game, chunks)
        while (chunk := book.take()) is not None:
            try:
                for episode in setup.play(chunk):
                    if book.is_new(episode):
                        yield episode
            except Exception as error:
                yield from book.note_error(chunk, _told(error))

    def measure(self, rung: Rung, progress: Progress) -> dict[str, Any]:
        return rung.measure(progress)

    def close(self) -> None:
        pass


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class _Book:
    """What is still to be played, how often it was tried, and what went wrong."""

    def __init__(self, game: Game, chunks: Sequence[Chunk]) -> None:
        self.game = game
        self.waiting = deque(chunks)
        self.missing = {number for chunk in chunks for number in chunk}
        self.tries: Counter[Chunk] = Counter()
        self.num_played = self.num_failed = 0
        self.wrong: set[Chunk] = set()  # those in which an error was raised

    def take(self) -> Chunk | None:
        """The next chunk to play; None where there is none at the moment."""
        return self.waiting.popleft() if self.waiting else None

    def give_back(self, chunk: Chunk) -> None:
        """It could not be begun; someone else plays it."""
        self.waiting.appendleft(chunk)

    def is_new(self, episode: Episode) -> bool:
        """Whether an episode is there for the first time."""
        if episode.number not in self.missing:
            return False
        self.missing.remove(episode.number)
        self.num_played += 1
        return True

    def note_error(self, chunk: Chunk, error: str) -> list[Failed]:
        """Episodes that are given up because an error was raised in a chunk, at most one."""
        self.wrong.add(chunk)
        if len(self.wrong) >= MOST_FAILURES and self.num_played == 0:
            self._stop(error)
        return self.note_death(chunk, error)

    def note_death(self, chunk: Chunk, error: str) -> list[Failed]:
        """The same where who played it died, which may be nobody's fault."""
        self.tries[chunk] += 1
        if self.tries[chunk] < MOST_TRIES:
            self.waiting.append(chunk)
            return []
        alone = [number for number in chunk if number in self.missing]
        if len(chunk) > 1:
            self.waiting.extend((number,) for number in alone)
            return []
        self.missing.difference_update(alone)
        self.num_failed += 1
        enough = self.num_failed >= MOST_FAILURES or not self.missing
        if enough and self.num_failed > self.num_played:
            self._stop(error)
        return [Failed(chunk[0], error)]

    def _stop(self, error: str) -> None:
        raise UctreeError(
            f"self-play of {self.game.name} fails: {self.num_played} episodes were played in this "
            f"iteration, and others fail whenever they are tried. The last error: {error}"
        )


# --- elsewhere -----------------------------------------------------------------------------------


class Pool:
    """Plays with workers that may die; where they run is the host's business."""

    def __init__(self, host: Host, num_workers: int) -> None:
        self.host, self.num_workers = host, num_workers
        self.players: list[_Player] = []
        self.starts = 0  # in a row that came to nothing
        self.game: tuple[Game, bytes] | None = None  # and how it is sent

    def play(self, setup: Setup, chunks: Sequence[Chunk]) -> Generator[Episode | Failed]:
        book = _Book(setup.game, chunks)
        content = self.host.share(self._pickled(setup.game, setup))
        for player in self.players:
            player.prepare(content)
        is_over = False
        try:
            while book.waiting or any(player.chunk for player in self.players):
                self._hand_out(book, content)
                busy = {id(each.worker): each for each in self.players if each.chunk}
                for worker in self.host.wait([each.worker for each in busy.values()]):
                    yield from self._listen(busy[id(worker)], book)
            is_over = True
        finally:
            if not is_over:  # what they are at is not wanted any more
                self.close()

    def _pickled(self, game: Game, what: Setup | Rung) -> bytes:
        """What workers get; the bytes of a game stay the same, so that they keep it."""
        if self.game is None or self.game[0] is not game:
            self.game = game, pickle.dumps(game)  # it says itself what is wrong with it
        try:
            return pickle.dumps((self.game[1], replace(what, game=cast(Game, None))))
        except Exception as error:
            raise UctreeError(
                f"the network cannot be sent to another process ({error}); define its class in a "
                'module (a .py file), or use inference="onnx"'
            ) from error

    def _hand_out(self, book: _Book, content: Any) -> None:
        """Give everyone something to play, and see that there are enough of them."""
        while book.waiting and len(self.players) < self.num_workers:
            self._start().prepare(content)
        for player in self.players:
            if player.chunk is None and (chunk := book.take()) is not None:
                player.give(chunk)

    def _listen(self, player: _Player, book: _Book) -> Generator[Episode | Failed]:
        chunk = player.chunk
        assert chunk is not None, "it was given one"
        try:
            kind, told = player.worker.recv()
        except EOFError:
            death = player.worker.death()
            if player.has_begun:
                yield from book.note_death(chunk, death)
            else:
                self._note_start(player.worker)
                book.give_back(chunk)
            self._bury(player)
            return
        if kind == "broken":
            raise UctreeError(f"a worker cannot play: {told}")
        if kind == "begun":
            player.has_begun, self.starts = True, 0
        elif kind == "episode":
            if book.is_new(told):
                yield told
        else:
            player.chunk = None
            if kind == "error":
                yield from book.note_error(chunk, told)

    def _start(self) -> _Player:
        self.players.append(_Player(self.host.start(_Service)))
        return self.players[-1]

    def _bury(self, player: _Player) -> None:
        player.worker.kill()
        self.players.remove(player)

    def _note_start(self, worker: Worker) -> None:
        """Count a worker that died before it had begun; UctreeError where all do."""
        self.starts += 1
        if self.starts == MOST_STARTS or not worker.was_killed():
            raise UctreeError(
                f"a worker ended before it had begun to play ({worker.death()}); in a script, call "
                'train below `if __name__ == "__main__":`, or use workers=1'
            )

    def measure(self, rung: Rung, progress: Progress) -> dict[str, Any]:
        content = self.host.share(self._pickled(rung.game, rung))
        for _ in range(MOST_TRIES):
            player = self.players[0] if self.players else self._start()
            player.worker.send("measure", content)
            try:
                return self._measured(player.worker, progress)
            except EOFError:
                death = player.worker.death()
                self._bury(player)
        raise UctreeError(f"the ladder failed {MOST_TRIES} times: {death}")

    def _measured(self, worker: Worker, progress: Progress) -> dict[str, Any]:
        while True:
            self.host.wait([worker])
            kind, told = worker.recv()
            if kind == "progress":
                progress(*told)
            elif kind == "measured":
                found: dict[str, Any] = told
                return found
            else:
                raise UctreeError(f"the ladder failed: {told}")

    def close(self) -> None:
        for player in self.players:
            player.worker.kill()
        self.players.clear()


class _Player:
    """A worker, and what it is at."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.chunk: Chunk | None = None
        self.has_begun = False

    def prepare(self, content: Any) -> None:
        """Let it know what the next episodes are played with."""
        self.worker.send("setup", content)

    def give(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.worker.send("play", chunk)


class _Service:
    """What a worker does: play episodes with the setup that it got last, or measure."""

    def __init__(self) -> None:
        self.game: tuple[bytes, Game] | None = None  # the one that code was compiled for
        self.setup: Setup | None = None

    def __call__(self, message: Message, tell: Tell) -> None:
        kind, content = message
        if kind == "setup":
            self._prepare(content, tell)
        elif kind == "play":
            self._play(content, tell)
        else:
            self._measure(content, tell)

    def _unpickled(self, content: bytes) -> Any:
        game, what = pickle.loads(content)
        if self.game is None or self.game[0] != game:
            self.game = game, pickle.loads(game)
        return replace(what, game=self.game[1])

    def _prepare(self, content: bytes, tell: Tell) -> None:
        try:
            self.setup = self._unpickled(content)
        except Exception as error:
            tell(("broken", _told(error)))

    def _play(self, chunk: Chunk, tell: Tell) -> None:
        assert self.setup is not None, "it comes first"
        tell(("begun", None))
        try:
            for episode in self.setup.play(chunk):
                tell(("episode", episode))
        except Exception as error:
            tell(("error", _told(error)))
        else:
            tell(("done", None))

    def _measure(self, content: bytes, tell: Tell) -> None:
        def progress(done: int, total: int) -> None:
            tell(("progress", (done, total)))

        try:
            tell(("measured", self._unpickled(content).measure(progress)))
        except Exception as error:
            tell(("error", _told(error)))
