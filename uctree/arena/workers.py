"""Games played by workers, which may die: the agent that acted then forfeits its game."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence

from uctree.arena.agents import AgentSource
from uctree.arena.episodes import Clock, Report, Squad, Task, forfeited, play_task
from uctree.arena.external import LONGEST_END
from uctree.arena.records import GameRecord, record_from
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.processes import Host, Message, Tell, make_host

GRACE = 1.0  # seconds beyond max_seconds before a worker that does not answer is ended
MOST_TRIES = 2  # of a game whose worker died before any agent was asked


def play_in_workers(
    squad: Squad, tasks: Iterable[Task], processes: int, max_seconds: float | None,
    backend: str = "process",
) -> Generator[GameRecord]:  # fmt: skip
    """The records of games in the order in which they end.

    Args:
        squad: the agents as they are made anew in each worker.
        processes: how many workers there are.
        backend: what they run on, "process" or "ray".
    """
    payload = _pickled(squad.game_source, dict(zip(squad.names, squad.sources, strict=True)))
    farewell = GRACE + LONGEST_END * len(squad.names)  # each agent may be a program to end
    host = make_host(backend, processes)
    waiting, tries = deque(tasks), dict[int, int]()
    players: list[_Player] = []
    try:
        while waiting or players:
            while waiting and len(players) < processes:
                players.append(_Player(host, payload, max_seconds))
                players[-1].give(waiting.popleft())
            for player in _ready(host, players):
                record = player.listen(squad)
                if record is None and player.is_alive:
                    continue
                task = player.task
                assert task is not None, "it was given one"
                if record is not None:
                    yield record
                else:
                    tries[task.number] = tries.get(task.number, 0) + 1
                    if tries[task.number] == MOST_TRIES:
                        raise UctreeError(_unexplained(player))
                    waiting.appendleft(task)
                if not player.is_alive or not waiting:
                    player.end(farewell)
                    players.remove(player)
                else:
                    player.give(waiting.popleft())
    finally:
        for player in players:
            player.kill()


def _pickled(game: Game | str, sources: dict[str, AgentSource]) -> bytes:
    """The game and the agents as another process gets them."""
    for name, source in sources.items():
        try:
            pickle.dumps(source)
        except Exception as error:
            raise UctreeError(
                f"agent {name} cannot be sent to another process ({error}); name it by text, as "
                "my_agents.py:Clever(depth=3), give a class of a module, or use processes=1"
            ) from error
    return pickle.dumps((game, sources))  # a game says itself what is wrong with it


def _unexplained(player: _Player) -> str:
    return (
        f"a worker ended before it played: {player.worker.death()}; in a script, call match below "
        '`if __name__ == "__main__":`, or use processes=1'
    )


def _ready(host: Host, players: list[_Player]) -> list[_Player]:
    """Those that said something, died, or have been silent for too long."""
    until = min(player.deadline for player in players)
    timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
    heard = host.wait([player.worker for player in players], timeout)
    now = time.monotonic()
    return [each for each in players if each.worker in heard or now >= each.deadline]


class _Player:
    """A worker that plays one game after the other."""

    def __init__(self, host: Host, payload: bytes, max_seconds: float | None) -> None:
        self.worker = host.start(_Service, payload, max_seconds)
        self.max_seconds = max_seconds
        self.task: Task | None = None
        self.is_alive = True

    def give(self, task: Task) -> None:
        """Let it play a game."""
        self.task, self.actions, self.seat = task, list[int](), -1
        self.deadline = float("inf")
        self.worker.send("play", task)

    def listen(self, squad: Squad) -> GameRecord | None:
        """The record of its game, where that has ended; by its death if need be."""
        if time.monotonic() >= self.deadline and not self.worker.poll():
            return self._lost(squad, f"no answer within {self.max_seconds:g} s; ended")
        try:
            kind, content = self.worker.recv()
        except EOFError:
            return self._lost(squad, self.worker.death())
        if kind == "record":
            self.deadline = float("inf")
            return record_from(content, squad.game)
        if kind == "broken":
            raise UctreeError(f"a worker cannot play: {content}")
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
        if self.is_alive:
            self.is_alive = False
            self.worker.end(seconds)

    def kill(self) -> None:
        """End it with all that its agents have started, also where it has died before them."""
        if self.is_alive:
            self.is_alive = False
            self.worker.kill()


class _Service:
    """What a worker does: play the games it is given."""

    def __init__(self, payload: bytes, max_seconds: float | None) -> None:
        self.squad = Squad(*pickle.loads(payload))
        self.max_seconds = max_seconds

    def __call__(self, message: Message, tell: Tell) -> None:
        def report(seat: int, actions: Sequence[int], quick: bool) -> None:
            tell(("asks", (seat, list(actions), quick)))

        tell(self._answer(message[1], report))

    def _answer(self, task: Task, report: Report) -> Message:
        try:
            record = play_task(self.squad, task, self.max_seconds, report)
            return "record", record.to_json()
        except Exception as error:
            return "broken", f"{type(error).__name__}: {error}"

    def close(self) -> None:
        self.squad.close()
