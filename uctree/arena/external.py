"""External programs as agents: a client for GTP, the Go Text Protocol, version 2.

A program runs in its own process and stores the episode itself. It receives every action of the
other players, and is asked for its own.
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
FOLDERS = ("/usr/games", "/usr/local/games")  # of Debian's games, often not on the path
END_TIMEOUT = 2.0  # seconds for each step of ending a program
LONGEST_END = 3 * END_TIMEOUT  # quit, terminate, and read the rest of its output
MAX_SHOWN = 2_000  # characters of a program's output that are shown in a message


class ProgramFailed(UctreeError):
    """An external program is missing, died, does not reply or replies with nonsense."""


class Resigned(Exception):
    """An agent resigns: the player it acts for has lost the episode."""

    def __init__(self, player: int) -> None:
        super().__init__(f"player {player} resigns")
        self.player = player


def gnugo(level: int = 10, *, max_seconds: float = 120.0) -> GtpAgent:
    """GNU Go as an agent for `games.go`, by Chinese rules.

    It plays on until dead stones are captured, because uctree counts all stones on the board.

    Args:
        level: strength from 1 to 10; above 10 it only gets slower.
        max_seconds: the time limit of a single reply.
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

    A program that dies in an episode is started once more and receives the actions so far again.

    Args:
        command: the command that starts it, as text or as a list of words.
        setup: commands that are sent when an episode begins. `{size}` stands for the length of the
            board, `{komi}` for the komi in the game's name, `{seed}` for the seed of the episode.
        install: how to install the program, for the message if it is missing.
        max_seconds: the time limit of a single reply.
        tells_passes: False for a program that passes by itself if a player has no other action.
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
        self._commands: list[str] = []  # of this episode, sent again to a new process
        self._own_action: int | None = None  # that `act` returned; the program has played it

    def prepare(self, game: Game) -> None:
        """Raise an error before a match if the program is missing or does not play the game."""
        self.begin(game, player=0, seed=0)

    def begin(self, game: Game, player: int, seed: int) -> None:
        """Set the program up for a new episode, from the game's start."""
        if game.num_players != 2:
            raise UctreeError(f"GTP knows two players; {game.name} has {game.num_players}")
        self.game = game
        self._own_action = None
        self._commands = [_filled(command, game, seed) for command in self.setup]
        if self._program is not None and self._program.is_alive():
            for command in self._commands:
                self._program.ask(command)
        else:
            self._start()

    def act(self, state: np.record) -> int:
        """The action the program takes; raises `Resigned` if it resigns."""
        game = self._begun()
        player = game.to_play(state)
        command = f"genmove {COLOURS[player]}"
        legal = game.legal(state)
        if len(legal) == 1 and self._is_implied(state, legal[0]):
            return legal[0]
        reply = self.ask(command)
        if reply.lower() == "resign":
            raise Resigned(player)
        try:
            self._own_action = game.read_action(state, reply)
        except IllegalAction as error:
            raise ProgramFailed(f"{self.command[0]} replied to {command!r}: {error}") from None
        self._commands.append(f"play {COLOURS[player]} {game.show_action(state, self._own_action)}")
        return self._own_action

    def watch(self, state: np.record, action: int) -> None:
        """Send an action to the program, unless it is the program's own."""
        game = self._begun()
        own, self._own_action = self._own_action, None
        if own is not None:
            if action != own:
                raise UctreeError(
                    f"{self.command[0]} has played {game.show_action(state, own)} and cannot "
                    f"take it back; got {game.show_action(state, action)} instead"
                )
            return
        if self._is_implied(state, action):
            return
        command = f"play {COLOURS[game.to_play(state)]} {game.show_action(state, action)}"
        self.ask(command)
        self._commands.append(command)

    def ask(self, command: str) -> str:
        """The reply of the program to any command, without the markup of GTP."""
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

    def _is_implied(self, state: np.record, action: int) -> bool:
        """Whether an action is a pass that is not sent to the program."""
        return not self.tells_passes and self._begun().show_action(state, action) == "pass"

    def _begun(self) -> Game:
        if self.game is None:
            raise UctreeError("no episode has begun: call begin(game, player, seed) first")
        return self.game

    def _start(self) -> None:
        """Start a new process and send it the episode so far."""
        self.close()
        self._program = _Program(self.command, self.install, self.max_seconds)
        for command in self._commands:
            self._program.ask(command)


def _filled(command: str, game: Game, seed: int) -> str:
    """A command of the setup with its placeholders filled in."""
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
    """A running process and its output, line by line."""

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
        # The process also ends if the agent is garbage-collected without `end`.
        self._end = weakref.finalize(self, _end, self._process, reader, self._errors)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str) -> str:
        """The reply to a command; ProgramFailed if it is an error, late or missing."""
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
            raise ProgramFailed(f"{self.name} refused {command!r}: {text[:MAX_SHOWN]}")
        return text

    def _reply(self, command: str, deadline: float) -> list[str]:
        """The lines of the reply to the last command, without output before it."""
        lines: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.end(at_once=True)
                raise ProgramFailed(
                    f"{self.name} gave no full reply to {command!r} within {self.max_seconds:g} s; "
                    "it was ended. Set max_seconds= to allow more time"
                ) from None
            if line is None:
                raise self._death(command)
            if lines:
                if not line.strip():
                    return lines
                lines.append(line)
            else:
                head = re.match(r"[=?](\d*)(?:\s|$)", line)
                # A reply with another number belongs to an earlier command.
                if head and head[1] in ("", str(self._number)):
                    lines.append(line)

    def _death(self, command: str) -> _Died:
        self.end(at_once=True)
        return _Died(
            f"{self.name} ended with status {self._process.returncode} after {command!r}; "
            f"the end of its stderr: {self.stderr_tail or 'nothing'}"
        )

    stderr_tail = ""  # known once the process has ended

    def end(self, at_once: bool = False) -> None:
        """End the process, by `quit` or by a kill at once, and wait until it is gone."""
        if self._end.alive:
            if at_once:
                self._process.kill()
            self.stderr_tail = self._end() or ""


def _started(command: list[str], errors: IO[bytes]) -> subprocess.Popen[str]:
    """The process of a command, which may also be in one of FOLDERS."""
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
    """Put the output of a process into a queue, line by line; None at its end."""
    with contextlib.suppress(ValueError, OSError):  # closed while waiting
        for line in stream:
            lines.put(line.rstrip("\r\n"))
    lines.put(None)


def _end(process: subprocess.Popen[str], reader: threading.Thread, errors: IO[bytes]) -> str:
    """The end of the stderr of a process, which is ended and waited for."""
    streams: Any = process.stdin, process.stdout
    with contextlib.suppress(OSError, ValueError):
        streams[0].write("quit\n")
    with contextlib.suppress(OSError, ValueError):
        streams[0].close()
    for stop in (process.terminate, process.kill):
        try:
            process.wait(timeout=END_TIMEOUT)
            break
        except subprocess.TimeoutExpired:
            stop()
    process.wait()
    reader.join(timeout=END_TIMEOUT)
    with contextlib.suppress(OSError):
        streams[1].close()
    errors.seek(max(0, errors.seek(0, 2) - MAX_SHOWN))
    text = errors.read().decode(errors="replace").strip()
    errors.close()
    return text
