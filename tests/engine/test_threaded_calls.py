"""Python evaluators in several threads, each call bounded in time."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

from tests.judges import GAME, in_python, judge_batch, visits
from uctree import UctreeError, evaluators
from uctree.engine.threaded_calls import ThreadedCalls

pytestmark = pytest.mark.usefixtures("both_ways")


def test_parts_of_a_batch_are_asked_at_the_same_time():
    threads = set()

    def slow(states):
        threads.add(threading.get_ident())
        time.sleep(0.01)
        return judge_batch(states)

    evaluator = evaluators.python(slow, priors=True, concurrency=4, leaves=8, cache=0)
    assert visits(evaluator) == visits(in_python(leaves=8, cache=0))
    assert len(threads) == 4


def test_a_call_that_takes_too_long_ends_the_search():
    def hangs(states):
        time.sleep(0.5)
        return judge_batch(states)

    evaluator = evaluators.python(hangs, priors=True, timeout=0.05)
    with pytest.raises(UctreeError, match=r"hangs raised TimeoutError: no result within 0\.05 s"):
        visits(evaluator)


def test_threads_wait_for_the_next_batch_and_end_where_nobody_asks_any_more():
    def count():
        return sum(each.name.startswith("uctree-evaluator") for each in threading.enumerate())

    before, batch = count(), np.zeros(5, GAME.dtype)
    asked = ThreadedCalls(judge_batch, True, 3, None)
    for _ in range(4):
        assert np.array_equal(asked(batch)[1], np.float32(judge_batch(batch)[1]))
    assert count() == before + 3
    del asked
    gc.collect()
    deadline = time.monotonic() + 60
    while count() > before:
        assert time.monotonic() < deadline, "threads that nobody asks are still there"
        time.sleep(0.01)
