"""The time of the parts of a simulation, in kernels; one simulation in TIMED_EVERY is timed."""

from __future__ import annotations

import numpy as np

from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Search

read_clock = UNBOUND  # bound when a search is composed

SELECTION, GAME, EVALUATION, BACKUP = np.arange(4)  # the parts
TIMED_EVERY = 256


def tick(search: Search, part: int) -> None:
    """Add the time since the last tick to a part of the simulation."""
    work = search.work
    if work.timed:
        now = read_clock()
        work.times[part] += now - work.clock
        work.clock = now
