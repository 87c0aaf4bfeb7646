"""The time of the parts of a simulation."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from uctree.engine.compile import bind
from uctree.kernels import timing

pytestmark = pytest.mark.quick


def test_a_part_gets_the_time_since_the_last_one():
    clock = iter([130, 190])
    tick = bind(timing.tick, {"read_clock": lambda: next(clock)})
    work = SimpleNamespace(timed=True, clock=100, times=np.zeros(4, np.int64))
    tick(SimpleNamespace(work=work), timing.GAME)
    tick(SimpleNamespace(work=work), timing.BACKUP)
    assert work.times.tolist() == [0, 30, 0, 60]
    work.timed = False
    tick(SimpleNamespace(work=work), timing.GAME)  # reads no clock
