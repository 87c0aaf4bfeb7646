"""Services for the tests of workers and of their users."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

from uctree.workers.processes import make_host


class Echo:
    """Replies twice with the content of a message; on "die" it dies in between."""

    def __init__(self, greeting="", folder=None):
        if greeting == "fail":
            raise ZeroDivisionError("one over zero")
        self.greeting, self.folder = greeting, folder

    def __call__(self, message, send):
        kind, content = message
        if kind == "environment":
            send((kind, {name: os.environ.get(name) for name in content}))
            return
        if kind == "who":
            send((kind, os.getpid()))
            return
        send((kind, self.greeting + str(content)))
        if kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        send((kind, content))

    def close(self):
        if self.folder is not None:
            with open(os.path.join(self.folder, "closed"), "w") as file:
                file.write(str(os.getpid()))


def host_of(backend):
    """A host of two workers; skips the test if Ray is not installed."""
    if backend == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")  # found without loading it
    return make_host(backend, 2)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
