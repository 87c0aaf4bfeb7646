"""Programs of others as agents: a client for those that speak GTP, the Go Text Protocol, version 2.

A program runs as a process of its own and keeps the episode itself: it is told every action that
others take, and asked for its own.
"""

from __future__ import annotations

import contextlib
import queue
import re
import shlex
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from uctree.errors import IllegalAction, UctreeError
from uctree.game import Game

COLOURS = ("black", "white")  # of players 0 and 1
FOLDERS = ("/usr/games", "/usr/local/games")  # where Debian puts games, often not on the path
PATIENCE = 2.0  # seconds for each step of ending a program
LONGEST_END = 3 * PATIENCE  # to leave, to be told to, and to be read to the end
LONGEST = 2_000  # characters of what a program said that are shown in a message


class ProgramFailed(UctreeError):
    """A program of others that is not there, died, says nothing or not what was asked for."""


class Resigned(Exception):
    """An agent gives up: the episode is lost for the player it was asked to act for."""

    def __init__(self, player: int) -> None:
        super().__init__(f"player {player} resigns")
        self.player = player


def gnugo(level: int = 10, *, max_seconds: float = 120.0) -> GtpAgent:
    """GNU Go as an agent for `games.go`, by Chinese rules.

    It plays on until dead stones are off the board, because uctree counts all stones as they stand.

    Args:
        level: 1 to 10, how much it reads; above 10 it only gets slower.
        max_seconds: how long a single reply may take.
    """
    if level < 1:
        raise ValueError(f"level must be at least 1; got {level}")
    return GtpAgent(
        f"gnugo --mode gtp --level {level} --chinese-rules --never-resign --capture-all-dead "
        "--play-out-aftermath",
        setup=("boardsize {size}", "clear_board", "komi {komi}", "set_random_seed {seed}"),
        install="apt install gnugo",
        max_seconds=max_seconds,
    )


def rhino(*, max_seconds: float = 120.0) -> GtpAgent:
    """GRhino's GTP program as an agent for `games.othello`."""
    return GtpAgent(
        "gtp-rhino",
        setup=("set_game Othello", "boardsize {size}", "clear_board"),
        install="apt install grhino",
        max_seconds=max_seconds,
        tells_passes=False,
    )


class GtpAgent:
    """A program that speaks GTP; it is started when an episode begins and ended by `close`.

    A program that dies in an episode is started once more and told what was played so far.

    Args:
        command: how it is started, as text or as a list of words.
        setup: what it is told when an episode begins. `{size}` stands for the length of the board,
            `{komi}` for the komi in the game's name, `{seed}` for the seed of the episode.
        install: how one gets the program, for the message where it is missing.
        max_seconds: how long a single reply may take.
        tells_passes: False for programs that know by themselves when a player has to pass.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        setup: Sequence[str] = ("boardsize {size}", "clear_board"),
        install: str = "",
        max_seconds: float = 120.0,
        tells_passes: bool = True,
    ) -> None:
        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words:
            raise ValueError("command is empty; give the program to start, as 'gnugo --mode gtp'")
        if isinstance(setup, str):
            raise TypeError(f"setup is a list of commands; got the text {setup!r}")
        if not max_seconds > 0:
            raise ValueError(f"max_seconds must be above 0; got {max_seconds}")
        self.command = words
        self.setup = tuple(setup)
        self.install = install
        self.max_seconds = max_seconds
        self.tells_passes = tells_passes
        self.game: Game | None = None
        self._program: _Program | None = None
        self._told: list[str] = []  # all commands of this episode, to start again from
        self._answer: int | None = None  # what `act` said and the program has played already

    def prepare(self, game: Game) -> None:
        """Find out whether the program is there and knows the game, before there is a match."""
        self.begin(game, player=0, seed=0)

    def begin(self, game: Game, player: int, seed: int) -> None:
        """Set the program up for a new episode, from the game's start."""
        if game.num_players != 2:
            raise UctreeError(f"GTP knows two players; {game.name} has {game.num_players}")
        self.game = game
        self._answer = None
        self._told = [_filled(command, game, seed) for command in self.setup]
        if self._program is not None and self._program.is_alive():
            for command in self._told:
                self._program.ask(command)
        else:
            self._start()

    def act(self, state: np.record) -> int:
        """The action the program takes; `Resigned` where it gives up."""
        game = self._begun()
        player = game.to_play(state)
        command = f"genmove {COLOURS[player]}"
        legal = game.legal(state)
        if len(legal) == 1 and self._is_silent(state, legal[0]):
            return legal[0]
        reply = self.ask(command)
        if reply.lower() == "resign":
            raise Resigned(player)
        try:
            self._answer = game.read_action(state, reply)
        except IllegalAction as error:
            raise ProgramFailed(f"{self.command[0]} answered {command!r} so: {error}") from None
        self._told.append(f"play {COLOURS[player]} {game.show_action(state, self._answer)}")
        return self._answer

    def watch(self, state: np.record, action: int) -> None:
        """Tell the program what was played, unless it said so itself."""
        game = self._begun()
        answer, self._answer = self._answer, None
        if answer is not None:
            if action != answer:
                raise UctreeError(
                    f"{self.command[0]} has played {game.show_action(state, answer)} and cannot "
                    f"take it back; got {game.show_action(state, action)} instead"
                )
            return
        if self._is_silent(state, action):
            return
        command = f"play {COLOURS[game.to_play(state)]} {game.show_action(state, action)}"
        self.ask(command)
        self._told.append(command)

    def ask(self, command: str) -> str:
        """What the program replies to any command, without what is only there for GTP."""
        self._begun()
        if self._program is None:
            self._start()
        program: Any = self._program
        try:
            return program.ask(command)
        except _Died:
            self._start()
            program = self._program
            return program.ask(command)

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def _is_silent(self, state: np.record, action: int) -> bool:
        """Whether an action is a pass that the program is not told of."""
        return not self.tells_passes and self._begun().show_action(state, action) == "pass"

    def _begun(self) -> Game:
        if self.game is None:
            raise UctreeError("no episode has begun: call begin(game, player, seed) first")
        return self.game

    def _start(self) -> None:
        """A new process that knows the episode so far."""
        self.close()
        self._program = _Program(self.command, self.install, self.max_seconds)
        for command in self._told:
            self._program.ask(command)


def _filled(command: str, game: Game, seed: int) -> str:
    """A command of the setup with its numbers."""
    numbers: dict[str, Any] = {"seed": seed % 2**31}
    if game.geometry is not None:
        _, rows, cols = game.geometry
        if "{size}" in command and rows != cols:
            raise UctreeError(f"GTP knows square boards; {game.name} has {rows} x {cols} cells")
        numbers["size"] = rows
    komi = re.search(r"komi (-?[\d.]+)", game.name)
    if komi:
        numbers["komi"] = komi[1]
    try:
        return command.format(**numbers)
    except (KeyError, IndexError, ValueError) as error:
        raise UctreeError(
            f"cannot fill in {command!r} for {game.name}: known are "
            f"{', '.join(f'{{{name}}}' for name in numbers)} ({error!r})"
        ) from None


# --- one process ---------------------------------------------------------------------------------


class _Died(ProgramFailed):
    """The process has ended by itself."""


class _Program:
    """A running process and what it says, line by line."""

    def __init__(self, command: list[str], install: str, max_seconds: float) -> None:
        self.name = command[0]
        self.max_seconds = max_seconds
        self._number = 0
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        try:
            self._process = _started(command, self._errors)
        except OSError as error:
            self._errors.close()
            hint = f"; to install it: {install}" if install else ""
            raise ProgramFailed(f"cannot start {self.name!r}: {error.strerror}{hint}") from None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._lines), daemon=True
        )
        reader.start()
        # Also where nobody calls `end`: an agent that is thrown away takes its process along.
        self._end = weakref.finalize(self, _end, self._process, reader, self._errors)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str) -> str:
        """The reply to a command; an error where it is an error, late, or does not come."""
        self._number += 1
        try:
            stdin: Any = self._process.stdin
            stdin.write(f"{self._number} {command}\n")
            stdin.flush()
        except OSError:
            raise self._death(command) from None
        deadline = time.monotonic() + self.max_seconds
        first, *rest = self._reply(command, deadline)
        text = "\n".join([re.sub(r"^[=?]\d*", "", first), *rest]).strip()
        if first.startswith("?"):
            raise ProgramFailed(f"{self.name} refused {command!r}: {text[:LONGEST]}")
        return text

    def _reply(self, command: str, deadline: float) -> list[str]:
        """The lines of the reply to the last command; what stands around replies is left out."""
        lines: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.end(at_once=True)
                raise ProgramFailed(
                    f"{self.name} gave no full reply to {command!r} within {self.max_seconds:g} s; "
                    "it was ended. Give it more time by max_seconds="
                ) from None
            if line is None:
                raise self._death(command)
            if lines:
                if not line.strip():
                    return lines
                lines.append(line)
            else:
                head = re.match(r"[=?](\d*)(?:\s|$)", line)
                # A number other than ours belongs to a reply that came too late.
                if head and head[1] in ("", str(self._number)):
                    lines.append(line)

    def _death(self, command: str) -> _Died:
        self.end(at_once=True)
        said = self.said or "nothing"
        return _Died(
            f"{self.name} ended with status {self._process.returncode} when asked {command!r}; "
            f"its last words on stderr: {said}"
        )

    said = ""  # the end of what came on stderr, known once the process has ended

    def end(self, at_once: bool = False) -> None:
        """End the process, politely unless at once, and wait until it is gone."""
        if self._end.alive:
            if at_once:
                self._process.kill()
            self.said = self._end() or ""


def _started(command: list[str], errors: IO[bytes]) -> subprocess.Popen[str]:
    """The process of a command, looked for in the folders of games as well."""
    missing: OSError | None = None
    places = [command[0]]
    if "/" not in command[0]:
        places += [f"{folder}/{command[0]}" for folder in FOLDERS]
    for place in places:
        try:
            return subprocess.Popen(
                [place, *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True, errors="replace", bufsize=1,
            )  # fmt: skip
        except FileNotFoundError as error:
            missing = missing or error
    assert missing is not None
    raise missing


def _read(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Hand on line by line what a process says; None at its end."""
    with contextlib.suppress(ValueError, OSError):  # closed while waiting
        for line in stream:
            lines.put(line.rstrip("\r\n"))
    lines.put(None)


def _end(process: subprocess.Popen[str], reader: threading.Thread, errors: IO[bytes]) -> str:
    """End a process, wait until it is gone, and give the end of what it said on stderr."""
    streams: Any = process.stdin, process.stdout
    with contextlib.suppress(OSError, ValueError):
        streams[0].write("quit\n")
    with contextlib.suppress(OSError, ValueError):
        streams[0].close()
    for stop in (process.terminate, process.kill):
        try:
            process.wait(timeout=PATIENCE)
            break
        except subprocess.TimeoutExpired:
            stop()
    process.wait()
    reader.join(timeout=PATIENCE)
    with contextlib.suppress(OSError):
        streams[1].close()
    errors.seek(max(0, errors.seek(0, 2) - LONGEST))
    text = errors.read().decode(errors="replace").strip()
    errors.close()
    return text
