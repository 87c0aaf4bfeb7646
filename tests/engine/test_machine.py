"""Machine primitives: the clock and the lock that kernels use."""

from __future__ import annotations

import time

import numpy as np
import pytest

from uctree.engine import machine
from uctree.engine.compile import compile_kernel
from uctree.kernels.binding import UNBOUND

acquire = release = read_clock = UNBOUND


def locked_time(lock):
    acquire(lock, np.int64(7))
    held = lock[0]
    release(lock)
    return held, read_clock()


@pytest.mark.usefixtures("interpreted")
def test_plain_python_has_a_clock_and_needs_no_lock():
    primitives, lock = machine.primitives(), np.zeros(1, np.int64)
    assert machine.has_clock()
    primitives["acquire"](lock, 7)
    assert lock[0] == 0
    primitives["release"](lock)
    before = time.perf_counter_ns()
    assert before <= primitives["read_clock"]() <= time.perf_counter_ns()


@pytest.mark.skipif(not machine.has_clock(), reason="kernels have no clock here")
def test_machine_code_holds_the_lock_and_reads_the_clock():
    lock = np.zeros(1, np.int64)
    kernel = compile_kernel(locked_time, machine.primitives(), (lock,), label="lock")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    held, now = kernel.call(lock)
    assert (held, lock[0]) == (7, 0)
    assert before <= now <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
