"""The command `uctree`: parse, call, print. Nothing imports it but `__main__` and the script.

Read `app.py` first, which all commands share; each other module holds a group of commands.
A mistake of the user is raised as a `UctreeError`, and `main` turns it into one line on stderr
and exit status 2. Rich is only loaded for a progress line and for help, Numba when a search
compiles.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

from cyclopts import CycloptsError, UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from uctree import specs

# Importing these modules adds their commands.
from uctree.cli import (
    app,
    continuous,
    environment,
    evidence,
    learning,
    playing,
    principle,
    rules,
    searching,
    studies,
    studio,
)
from uctree.engine import interrupts
from uctree.errors import UctreeError

__all__ = [
    "app", "continuous", "environment", "evidence", "learning", "main", "playing", "principle",
    "rules", "searching", "studies", "studio",
]  # fmt: skip


def main(tokens: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 if `check` finds an error, 2 for a mistake of the user, 130 for Ctrl-C
    before there is a result.

    Args:
        tokens: the command line without the program's name; by default this process's.
    """
    try:
        with interrupts.sent_again(), _short_warnings():
            status = app.app(
                sys.argv[1:] if tokens is None else list(tokens),
                exit_on_error=False,
                print_error=False,
            )
            sys.stdout.flush()
            return status if isinstance(status, int) else 0
    except KeyboardInterrupt:
        print("uctree: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of stdout has closed it; the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        expected = isinstance(error, (CycloptsError, UctreeError))
        place = specs.place(error)
        if not (expected or place):
            raise
        kind = "" if expected else f"{type(error).__name__}: "
        command = next(iter(sys.argv[1:] if tokens is None else tokens), "")
        print(f"uctree: {place}{kind}{_in_options(_text(error), command)}", file=sys.stderr)
        return 2
    return 0


RENAMED = {"--wise": "--heuristic"}  # options, which are refused under their old names
# What messages say to people who call functions, and to those who type a command.
_TYPED = {"uctree.check(game)": "uctree check", "raise max_states=": "raise --max-states"}
_TYPED_WITH_FLAGS = {
    "check=False searches without this look": "--no-check goes on without this look",
    "Run with debug=True": "Run with --debug",
}
_TYPED_WITHOUT_FLAGS = {
    "; check=False searches without this look at the game": "",
    "Run with debug=True": "Run uctree search with --debug",
}


def _in_options(text: str, command: str) -> str:
    """A message in the words of the command line."""
    has_flags = command in ("search", "solve", "play")
    words = _TYPED | (_TYPED_WITH_FLAGS if has_flags else _TYPED_WITHOUT_FLAGS)
    for called, typed in words.items():
        text = text.replace(called, typed)
    return text


def _text(error: Exception) -> str:
    """The message of an error; for a wrong command or option also where to look it up."""
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        name, commands = error.unused_tokens[0], app.command_names()
        hint = specs.meant(name, commands)
        return f"unknown command {name!r}; {hint}commands: {', '.join(commands)}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens and error.command_chain:
        command = " ".join(["uctree", *error.command_chain])
        unused = " ".join(error.unused_tokens)
        return f"{command} does not take {unused!r} as well. See {command} --help"
    if isinstance(error, UnknownOptionError) and error.token.keyword in RENAMED:
        return f"{error.token.keyword} is now called {RENAMED[error.token.keyword]}"
    if isinstance(error, CycloptsError) and error.command_chain:
        return f"{error} See uctree {' '.join(error.command_chain)} --help"
    return str(error)


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings as one line each, without their place in uctree."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(
            f"uctree: warning: {message}", file=sys.stderr
        )
        yield
