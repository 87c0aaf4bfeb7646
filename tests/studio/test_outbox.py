"""Outboxes: one slot per kind of message."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from uctree.studio.outbox import Outbox, waking

pytestmark = pytest.mark.quick


def taken(outbox):
    return [json.loads(each) for each in outbox.take()]


def test_the_latest_message_of_a_kind_wins_and_comes_last():
    outbox = Outbox()
    for number in range(1_000):
        outbox.put("frame", {"number": number})
        outbox.put("line", {"number": -number})
    outbox.put("frame", {"number": 1_000})
    assert taken(outbox) == [{"kind": "line", "number": -999}, {"kind": "frame", "number": 1_000}]
    assert outbox.take() == []


def test_a_message_about_an_earlier_state_is_dropped():
    outbox = Outbox()
    outbox.put("frame", {})
    outbox.drop("frame")
    outbox.drop("line")
    assert outbox.take() == []


def test_numbers_that_are_not_finite_are_null():
    outbox = Outbox()
    outbox.put("frame", {"value": float("nan"), "bound": float("inf")})
    assert taken(outbox) == [{"kind": "frame", "value": None, "bound": None}]


def test_any_thread_wakes_the_loop_and_a_closed_loop_is_no_error():
    async def wait():
        event = asyncio.Event()
        outbox = Outbox(waking(asyncio.get_running_loop(), event))
        threading.Thread(target=outbox.put, args=("frame", {})).start()
        await asyncio.wait_for(event.wait(), 5)
        return outbox

    outbox = asyncio.run(wait())
    outbox.put("line", {})
    assert [each["kind"] for each in taken(outbox)] == ["frame", "line"]
