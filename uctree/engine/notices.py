"""Tells a person who waits that something is being compiled."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def compiling(label: str) -> Iterator[None]:
    """A block that compiles: one line on stderr with the name and the seconds.

    The line is for a person at a terminal or in a notebook; UCTREE_QUIET=1 turns it off.
    """
    stream = sys.stderr
    if not _is_watched():
        yield
        return
    if hasattr(stream, "rich_proxied_file"):  # a progress bar is redrawn below whole lines
        print(f"uctree: compiling {label} ...", file=stream, flush=True)
        yield
        return
    began = time.perf_counter()
    print(f"uctree: compiling {label} ...", end="", file=stream, flush=True)
    outcome = "stopped"
    try:
        yield
        outcome = f"{time.perf_counter() - began:.1f} s"
    finally:
        print(f" {outcome}", file=stream, flush=True)


def _is_watched() -> bool:
    """Whether a person sees stderr: never in a pipe, a worker process or a test."""
    if os.environ.get("UCTREE_QUIET", "0") not in ("", "0") or _is_worker():
        return False
    return _is_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _is_worker() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return "ipykernel" in sys.modules and shell is not None and shell.get_ipython() is not None
