"""Workers: the same tests for processes and for actors of Ray."""

from __future__ import annotations

import os
import time

import pytest

from tests.arena import failing
from tests.pressing import assert_nothing_stays, held, interrupted
from tests.services import Echo, host_of, is_running
from uctree.arena import match
from uctree.errors import UctreeError
from uctree.workers.processes import BACKENDS, ONE_THREAD

FAILING = failing.__file__
RAY = pytest.param("ray", marks=pytest.mark.peer)


@pytest.fixture(params=["process", RAY])
def host(request):
    return host_of(request.param)


@pytest.fixture
def start(host):
    workers = []

    def start_worker(*arguments):
        workers.append(host.start(Echo, *arguments))
        return workers[-1]

    yield start_worker
    for worker in workers:
        worker.kill()


def test_replies_come_in_order(start):
    worker = start("hello ")
    worker.send("first", 1)
    worker.send("second", 2)
    found = [worker.recv() for _ in range(4)]
    assert found == [("first", "hello 1"), ("first", 1), ("second", "hello 2"), ("second", 2)]


def test_shared_bytes_arrive_unchanged(host, start):
    worker, content = start(), bytes(range(256)) * 1000
    worker.send("shared", host.share(content))
    assert [worker.recv(), worker.recv()][1] == ("shared", content)


def test_waiting_returns_the_worker_that_has_replied(host, start):
    silent, busy = start(), start()
    busy.send("say", 1)
    assert host.wait([silent, busy]) == [busy]
    assert host.wait([silent], 0.0) == []
    assert busy.poll()
    assert not silent.poll()


def test_a_reply_before_death_is_received(host, start):
    worker = start()
    worker.send("die", 1)
    assert host.wait([worker]) == [worker]
    assert worker.recv() == ("die", "1")
    with pytest.raises(EOFError):
        worker.recv()
    assert "died" in worker.death()
    assert worker.was_killed()
    worker.send("say", 2)  # ignored


def test_a_service_that_cannot_be_made_says_why(start):
    worker = start("fail")
    worker.send("say", 1)
    assert worker.recv() == ("broken", "ZeroDivisionError: one over zero")


def test_workers_compute_with_one_thread_and_the_caller_is_unchanged(start):
    before = dict(os.environ)
    worker = start()
    worker.send("environment", list(ONE_THREAD))
    assert worker.recv() == ("environment", ONE_THREAD)
    assert dict(os.environ) == before


def test_the_end_closes_the_service_and_leaves_no_process(start, tmp_path):
    worker = start("", str(tmp_path))
    worker.send("who", None)
    _, pid = worker.recv()
    worker.end(10.0)
    assert (tmp_path / "closed").read_text() == str(pid)
    until = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(pid)


def test_ctrl_c_while_a_worker_starts_is_not_lost_and_leaves_no_process():
    host = host_of("process")
    host.start(Echo).kill()  # the first one starts the resource tracker of Python
    before = held()
    for delay in (0.0, 0.001, 0.004):
        workers = []

        def start(workers=workers):
            for _ in range(20):  # longer than Ctrl-C takes to come
                workers.append(host.start(Echo))
            return True

        assert interrupted(start, delay) is None
        while workers:
            workers.pop().kill()
        assert_nothing_stays(before)


@pytest.mark.quick
def test_an_unknown_backend_is_named():
    with pytest.raises(UctreeError, match=r"backend is 'process' or 'ray'; got 'dask'"):
        match("tic_tac_toe", ["random", "random"], num_games=2, backend="dask")
    assert BACKENDS == ("process", "ray")
