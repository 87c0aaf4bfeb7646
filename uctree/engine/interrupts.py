"""Ctrl-C at safe points, while machine code is made, and while machine code does not return.

Python runs the handler of Ctrl-C in the main thread, between any two instructions, so that an
exception may leave anything half done. In a block of `postponed` the handler only notes Ctrl-C, and
`check`, `allowed` and the end of the block call the handler that was there before, which usually
raises KeyboardInterrupt. A second Ctrl-C does not wait, except for the end of a `shielded` block.
Other threads never see Ctrl-C.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enums, which takes 2 us
import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from types import FrameType, TracebackType
from typing import Any

_SIGINT = int(signal.SIGINT)
_main = threading.main_thread().ident


def _is_main() -> bool:
    return _thread.get_ident() == _main


# --- safe points ---------------------------------------------------------------------------------


class Keyboard:
    """What is known of Ctrl-C in the main thread."""

    handler: Callable[[int, FrameType | None], Any] = staticmethod(signal.default_int_handler)
    is_postponed = False
    is_waiting = False  # one has come, and its handler has not been called
    is_second = False  # the next one of this block does not wait
    is_forced = False  # one of this block did not wait
    is_shielded = False  # even a second one waits
    is_impatient = False  # a second one came while it was shielded


_keyboard = Keyboard()


def _note(number: int, frame: FrameType | None) -> None:
    """The handler of Ctrl-C in a block of `postponed`."""
    if _keyboard.is_shielded:
        _keyboard.is_impatient = _keyboard.is_second
        _keyboard.is_waiting = _keyboard.is_second = True
        return
    if _keyboard.is_postponed and not _keyboard.is_second:
        _keyboard.is_waiting = _keyboard.is_second = True
        return
    _keyboard.is_forced = _keyboard.is_postponed
    _deliver(frame)


def _deliver(frame: FrameType | None) -> None:
    _keyboard.is_waiting, _keyboard.is_second = False, True
    _keyboard.handler(signal.SIGINT, frame)


def check() -> None:
    """Let Ctrl-C take effect here if it has come."""
    if _keyboard.is_waiting and _is_main():
        _deliver(sys._getframe())


def keyboard() -> Keyboard:
    """That of this thread, for loops in which `allowed` would take too long: they do what it does.

    Only in the main thread it is the one that Ctrl-C changes.
    """
    return _keyboard if _is_main() else Keyboard()


def was_forced() -> bool:
    """Whether a second Ctrl-C took effect inside the current block, not at a safe point."""
    return _keyboard.is_forced and _is_main()


class postponed:
    """A block in which Ctrl-C waits for the end, or for `check` or `allowed` inside it."""

    _is_outer = _is_inner = _before = False

    def __enter__(self) -> None:
        if not _is_main():
            return
        handler = _signal.getsignal(_SIGINT)
        if handler is _note:
            self._is_inner, self._before = True, _keyboard.is_postponed
            _keyboard.is_postponed = True
        elif callable(handler):  # else it is ignored, or ends the process
            self._is_outer, _keyboard.handler, _keyboard.is_postponed = True, handler, True
            _keyboard.is_waiting = _keyboard.is_second = _keyboard.is_forced = False
            _signal.signal(_SIGINT, _note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._is_outer and _signal.getsignal(_SIGINT) is _note:
            _signal.signal(_SIGINT, _keyboard.handler)
        if self._is_inner:
            _keyboard.is_postponed = self._before
        if self._is_outer or (self._is_inner and not self._before):
            check()


class shielded:
    """A block of some milliseconds that always ends, for whose end even a second Ctrl-C waits.

    Processes are started and killed in it: a second Ctrl-C would leave some of them behind.
    """

    _before = False

    def __enter__(self) -> None:
        self._block = postponed()
        self._block.__enter__()
        if _is_main():
            self._before, _keyboard.is_shielded = _keyboard.is_shielded, True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if _is_main():
                _keyboard.is_shielded = self._before
                if _keyboard.is_impatient and not self._before:
                    _keyboard.is_impatient, _keyboard.is_forced = False, True
                    _deliver(sys._getframe())
        finally:
            self._block.__exit__(kind, error, trace)


class allowed:
    """A block inside one of `postponed` in which Ctrl-C takes effect at once."""

    _before = False

    def __enter__(self) -> None:
        if _is_main():
            self._before, _keyboard.is_postponed = _keyboard.is_postponed, False
            check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if _is_main():
            _keyboard.is_postponed = self._before


def wait_for(futures: Sequence[Future[Any]]) -> None:
    """Wait until all have ended, even if Ctrl-C comes again and again."""
    while not all(future.done() for future in futures):
        with contextlib.suppress(KeyboardInterrupt):
            wait(futures)


# --- where Python drops exceptions ---------------------------------------------------------------


@contextlib.contextmanager
def sent_again() -> Iterator[None]:
    """A block in which Ctrl-C is not lost in destructors and callbacks.

    Python reports exceptions of destructors, of callbacks of weak references and of callbacks from
    C, and then drops them. Numba's types have such callbacks, and thousands of types are freed
    after a compilation. So the signal is sent again until KeyboardInterrupt is raised elsewhere.
    """
    before = sys.unraisablehook

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        if not (_is_main() and issubclass(dropped.exc_type, KeyboardInterrupt)):
            before(dropped)
            return
        _keyboard.is_second = _keyboard.is_forced  # the same press, not a second one
        _thread.start_new_thread(_send_soon, ())

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        if sys.unraisablehook is send_again:
            sys.unraisablehook = before


def _send_soon() -> None:
    """Send Ctrl-C from another thread: an exception in the hook itself would be dropped, too."""
    time.sleep(0.001)
    _thread.interrupt_main()


# --- while compiling -----------------------------------------------------------------------------


@contextlib.contextmanager
def never_lost() -> Iterator[None]:
    """A block after which Ctrl-C has raised KeyboardInterrupt, if it was pressed.

    LLVM calls Python, and drops the exceptions of what it calls. Most of the time of a compilation
    is spent in LLVM, so that is where Python would raise KeyboardInterrupt.
    """
    if not _is_main() or _signal.getsignal(_SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        if not _is_called_by_llvm(frame):
            raise KeyboardInterrupt

    _signal.signal(_SIGINT, note)
    try:
        with sent_again():
            yield
    except Exception:
        if pressed:
            raise KeyboardInterrupt from None
        raise
    finally:
        _signal.signal(_SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _is_called_by_llvm(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name.startswith("_raw_object_cache"):
            return True
        frame = frame.f_back
    return False


# --- while machine code runs ---------------------------------------------------------------------

PATIENCE = 0.25  # seconds; two signals within them are one press of the keys

_session = 0  # the number of the last block of `armed`
_is_armed = False
_pipe: tuple[int, int] | None = None


class armed:
    """A block in which a second Ctrl-C ends the process at once, if the first one does nothing.

    Python handles Ctrl-C when machine code returns. A rule that loops for ever never does. But the
    signal is written to a pipe, and a thread reads it. This is for the main thread, with Python's
    own handler, unless somebody else (asyncio) reads the signals; and not for Windows, where
    Ctrl-Break ends the process.
    """

    _before = False
    _is_main = False

    def __enter__(self) -> None:
        global _session, _is_armed
        if sys.platform == "win32" or not _is_main():
            return
        if _pipe is None:
            _open_pipe()  # it stays open, because opening takes longer than a short search may wait
        self._is_main, self._before = True, _is_armed
        _session += 1
        _is_armed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        global _is_armed
        if self._is_main:
            _is_armed = self._before


def _open_pipe() -> None:
    """Let a thread read the signals of this process, unless somebody else does."""
    global _pipe
    _pipe = os.pipe()
    os.set_blocking(_pipe[1], False)
    before = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        return
    threading.Thread(target=_end_at_second, args=(_pipe[0],), daemon=True).start()


def _end_at_second(pipe: int) -> None:
    """End the process if a session gets two interrupts, and goes on nevertheless."""
    session, first = 0, 0.0
    while True:
        is_interrupt = os.read(pipe, 1)[0] == signal.SIGINT and _is_armed
        if not is_interrupt or _handler() is not signal.default_int_handler:
            continue
        now = time.monotonic()
        if session != _session:
            session, first = _session, now
        elif now - first > PATIENCE and not _ends(session):
            os.write(2, b"\nuctree: ended by a second Ctrl-C: a rule or evaluator did not return\n")
            os._exit(130)


def _handler() -> Any:
    """The handler of Ctrl-C, also while it waits for a safe point."""
    handler = _signal.getsignal(_SIGINT)
    return _keyboard.handler if handler is _note else handler


def _ends(session: int) -> bool:
    """Whether a session ends by itself, because Python could raise KeyboardInterrupt in it."""
    time.sleep(PATIENCE)
    return not _is_armed or session != _session


def _forget() -> None:
    """After a fork: the pipe and its thread are the parent's, and this thread is the main one."""
    global _pipe, _is_armed, _main
    _main = _thread.get_ident()
    if _pipe is not None and _is_main():
        before = signal.set_wakeup_fd(-1)
        if before not in (-1, _pipe[1]):
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
    _pipe, _is_armed = None, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
