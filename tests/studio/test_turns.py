"""Searches that take turns."""

from __future__ import annotations

import threading
import time

import pytest

from uctree.studio.turns import Turns

pytestmark = pytest.mark.quick


def test_no_more_run_than_there_are_turns_and_all_get_some():
    turns, running, most, slices = Turns(2), [], [], [0] * 6

    def search(number):
        assert turns.take(lambda: True)
        for _ in range(20):
            running.append(number)
            most.append(len(running))
            time.sleep(0.001)
            running.remove(number)
            slices[number] += 1
            assert turns.pass_on(lambda: True)
        turns.give()

    threads = [threading.Thread(target=search, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert max(most) <= 2
    assert slices == [20] * 6


def test_who_waits_longest_is_next():
    turns, order = Turns(1), []
    assert turns.take(lambda: True)

    def search(number):
        assert turns.take(lambda: True)
        order.append(number)
        turns.give()

    threads = [threading.Thread(target=search, args=(number,)) for number in range(4)]
    for i, thread in enumerate(threads):
        thread.start()
        while len(turns._queue) <= i:
            time.sleep(0.001)
    turns.give()
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3]


def test_who_is_not_wanted_any_more_stops_waiting():
    turns = Turns(1)
    assert turns.take(lambda: True)
    assert not turns.take(lambda: False)
    assert turns.crowd == 1
    assert turns.pass_on(lambda: True)  # nobody waits: the turn goes on
    turns.give()
    assert turns.take(lambda: False)  # a turn is free: there is nothing to wait for
