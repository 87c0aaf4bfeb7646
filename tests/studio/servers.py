"""A studio that runs in this process, on loopback."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest


@contextmanager
def running(game=None, **options):
    """A studio on a free port; the test is skipped if the extra is not installed."""
    for module in ("starlette", "uvicorn", "websockets"):
        pytest.importorskip(module, reason="the extra studio is not installed")
    from uctree.studio.server import Studio

    studio = Studio(game, **({"port": 0} | options))
    thread = threading.Thread(target=studio.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not studio.server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield studio
    finally:
        studio.stop()
        thread.join(20)
        assert not thread.is_alive()
