"""External programs as agents: a client for GTP, the Go Text Protocol, version 2.

A program runs in its own process and stores the episode itself. It receives every action of the
other players, and is asked for its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from uctree.engine import interrupts
from uctree.errors import IllegalAction, UctreeError
from uctree.game import Game

COLOURS = ("black", "white")  # of players 0 and 1
FOLDERS = ("/usr/games", "/usr/local/games")  # of Debian's games, often not on the path
END_TIMEOUT = 2.0  # seconds for each step of ending a program
LONGEST_END = 2 * END_TIMEOUT + 1.0  # quit, terminate, kill
LOOK_SECONDS = 0.05  # how long to wait for output before looking whether a program has died
MAX_SHOWN = 2_000  # characters of a program's output that are shown in a message
MAX_LINE = 1 << 16  # bytes
MAX_REPLY = 1 << 20  # characters
CHUNK = 1 << 16  # bytes read at once


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
    """A running process, which leads a process group of its own, and its replies."""

    def __init__(self, command: list[str], install: str, max_seconds: float) -> None:
        self.name = command[0]
        self.max_seconds = max_seconds
        self._number = 0
        with interrupts.postponed():
            try:
                self._process = _started(command)
            except OSError as error:
                hint = f"; to install it: {install}" if install else ""
                raise ProgramFailed(f"cannot start {self.name!r}: {error.strerror}{hint}") from None
            try:
                self._output = _Output(self._process)
                guard = _guarded(self._process)
            except BaseException:
                _kill_group(self._process)
                raise
            # The process also ends if the agent is garbage-collected without `end`.
            self._end = weakref.finalize(self, _end, self._process, self._output, guard)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str) -> str:
        """The reply to a command; ProgramFailed if it is an error, late or missing."""
        with interrupts.postponed():
            self._number += 1
            try:
                stdin: Any = self._process.stdin
                stdin.write(f"{self._number} {command}\n".encode())
            except OSError:
                raise self._death(command) from None
            first, *rest = self._reply(command, time.monotonic() + self.max_seconds)
        text = "\n".join([re.sub(r"^[=?]\d*", "", first), *rest]).strip()
        if first.startswith("?"):
            raise ProgramFailed(f"{self.name} refused {command!r}: {text[:MAX_SHOWN]}")
        return text

    def _reply(self, command: str, deadline: float) -> list[str]:
        """The lines of the reply to the last command, without output before it."""
        lines: list[str] = []
        size = 0
        while True:
            line = self._line(command, deadline)
            if lines:
                if not line.strip():
                    return lines
                lines.append(line)
                size += len(line) + 1
                if size > MAX_REPLY:
                    raise self._failure(f"replied to {command!r} by over {MAX_REPLY:,} characters")
            else:
                head = re.match(r"[=?](\d*)(?:\s|$)", line)
                # A reply with another number belongs to an earlier command.
                if head and head[1] in ("", str(self._number)):
                    lines.append(line)

    def _line(self, command: str, deadline: float) -> str:
        """The next line of output, which must come before the deadline."""
        output = self._output
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                hint = "Set max_seconds= to allow more time"
                late = f"gave no full reply to {command!r} within {self.max_seconds:g} s"
                raise self._failure(late, hint)
            if output.lines:
                return output.lines.popleft().decode(errors="replace").rstrip("\r")
            if output.is_too_long:
                raise self._failure(f"wrote a line of over {MAX_LINE:,} bytes")
            is_dead = not self.is_alive()
            has_read = output.read(0.0 if is_dead else min(left, LOOK_SECONDS))
            if not has_read and (is_dead or output.is_closed):
                raise self._death(command)

    def _failure(self, what: str, hint: str = "") -> ProgramFailed:
        self.end(at_once=True)
        return ProgramFailed(f"{self.name} {what}; it was ended. {hint}".strip())

    def _death(self, command: str) -> _Died:
        self.end(at_once=True)
        return _Died(
            f"{self.name} ended with status {self._process.returncode} after {command!r}; "
            f"the end of its stderr: {self.stderr_tail or 'nothing'}"
        )

    stderr_tail = ""  # known once the process has ended

    def end(self, at_once: bool = False) -> None:
        """End the process, by `quit` or by a kill at once, with all that it has started."""
        if self._end.alive:
            if at_once:
                _kill_group(self._process)
            self.stderr_tail = self._end() or ""


class _Output:
    """What a process has written: whole lines of stdout, the end of stderr."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.lines: deque[bytes] = deque()
        self.stderr_tail = b""
        self._rest = b""  # of stdout, behind the last whole line
        streams: Any = process.stdout, process.stderr
        self._stdout, self._stderr = (stream.fileno() for stream in streams)
        self._poll = select.poll()
        self._open = {self._stdout, self._stderr}
        for number in self._open:
            os.set_blocking(number, False)
            self._poll.register(number, select.POLLIN)

    @property
    def is_closed(self) -> bool:
        """Whether no further line can come."""
        return self._stdout not in self._open

    @property
    def is_too_long(self) -> bool:
        """Whether a line grows beyond all bounds."""
        return len(self._rest) > MAX_LINE

    def read(self, seconds: float) -> bool:
        """Whether something came within `seconds`, which is read."""
        with interrupts.allowed():
            ready = self._poll.poll(1000 * seconds)
        if not self._open and seconds > 0:  # no stream is left to wait for
            time.sleep(min(seconds, LOOK_SECONDS / 10))
        for number, _ in ready:
            chunk = os.read(number, CHUNK)
            if not chunk:
                self._poll.unregister(number)
                self._open.remove(number)
            elif number == self._stderr:
                self.stderr_tail = (self.stderr_tail + chunk)[-MAX_SHOWN:]
            else:
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                self.lines.extend(lines)
        return bool(ready)


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    """The process of a command, which may also be in one of FOLDERS."""
    missing: OSError | None = None
    places = [command[0]]
    if "/" not in command[0]:
        places += [f"{folder}/{command[0]}" for folder in FOLDERS]
    for place in places:
        try:
            return subprocess.Popen(
                [place, *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, bufsize=0, start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            missing = missing or error
    assert missing is not None
    raise missing


def _guarded(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """A shell that kills the group of a process if this process dies without doing so itself."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$1"', "sh", str(process.pid)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
        start_new_session=True,
    )  # fmt: skip


def _kill_group(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
        os.killpg(process.pid, number)


def _end(process: subprocess.Popen[bytes], output: _Output, guard: subprocess.Popen[bytes]) -> str:
    """The end of the stderr of a process, which is ended and waited for, with its whole group."""
    try:
        _ask_to_quit(process, output)
    finally:  # at once if Ctrl-C comes
        with interrupts.postponed():
            _kill_group(process)
            process.wait()
            while output.read(0.0) and not output.is_too_long:
                output.lines.clear()
            guard.kill()
            guard.wait()
            streams: Any = process.stdin, process.stdout, process.stderr, guard.stdin
            for stream in streams:
                stream.close()
    return output.stderr_tail.decode(errors="replace").strip()


def _ask_to_quit(process: subprocess.Popen[bytes], output: _Output) -> None:
    """Wait until a process has ended, by `quit` or by a signal that it can handle."""
    stdin: Any = process.stdin
    with contextlib.suppress(OSError):
        stdin.write(b"quit\n")
        stdin.close()
    for number in (signal.SIGTERM, None):
        deadline = time.monotonic() + END_TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            output.read(LOOK_SECONDS)
            output.lines.clear()
        if number is None or process.poll() is not None:
            return
        _kill_group(process, number)
