"""Ctrl-C by a real signal, and what a call leaves behind: threads, files, processes, memory."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from pathlib import Path


def keyboard(*delays):
    """A thread that presses Ctrl-C after each of these seconds, counted from the one before."""

    def run():
        for delay in delays:
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)

    return threading.Thread(target=run)


def interrupted(call, *delays):
    """What `call()` returns if Ctrl-C is pressed meanwhile; None if it raises KeyboardInterrupt."""
    found, thread = None, keyboard(*delays)
    pressed = threading.Event()  # an interrupted `join` takes a thread that runs as ended

    def press(run=thread.run):
        run()
        pressed.set()

    thread.run = press
    # Callbacks of other libraries: Ctrl-C inside one of them would be dropped with a warning.
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        thread.start()
        found = call()
        thread.join()
        time.sleep(0.001)  # Ctrl-C takes effect here if the call has ended before
    except KeyboardInterrupt:
        while True:  # it may press again
            try:
                while not pressed.is_set():
                    time.sleep(0.005)
                time.sleep(0.05)  # a press that a destructor dropped is sent again
                break
            except KeyboardInterrupt:
                continue
    finally:
        gc.callbacks.extend(callbacks)
    return found


def two_moments(rng, latest):
    """When to press Ctrl-C: at a random moment, and again at once, soon or a little later."""
    return rng.uniform(0.0, latest), rng.choice([0.0, rng.uniform(0.0, 0.003), rng.uniform(0, 0.1)])


def _children():
    own, found = str(os.getpid()), []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, fields = path.read_text().partition("(")[2].rpartition(")")
            state, parent = fields.split()[:2]
            if parent == own and "resource_tracker" not in _command(path.parent):
                found.append(f"{path.parent.name} {name} {state}")
    return found


def _command(folder):
    return (folder / "cmdline").read_bytes().decode(errors="replace")


def _files():
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(link))
    return [name for name in found if "/proc/" not in name]


def held():
    """What this process holds, each as a list: threads, open files, child processes, memory."""
    gc.collect()
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "files": sorted(_files()),
        "processes": _children(),
        "shared memory": sorted(os.listdir("/dev/shm")),
    }


def assert_nothing_stays(before, seconds=5.0):
    """Whether this process holds no more than `before`, at once or after a moment."""
    until = time.monotonic() + seconds
    while True:
        now = held()
        more = {what: [each for each in now[what] if each not in before[what]] for what in now}
        more |= {what: now[what] for what in now if len(now[what]) > len(before[what])}
        more = {what: rest for what, rest in more.items() if rest}
        if not more:
            return
        assert time.monotonic() < until, f"left behind: {more}"
        time.sleep(0.01)
