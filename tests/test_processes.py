"""Services elsewhere: the same tests for processes and for actors of Ray."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import pytest

from tests.arena import failing
from tests.services import Echo
from uctree import games
from uctree.arena import match
from uctree.errors import UctreeError
from uctree.processes import BACKENDS, ONE_THREAD, make_host

FAILING = failing.__file__
RAY = pytest.param("ray", marks=pytest.mark.peer)


def host_of(backend):
    if backend == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")  # not loaded before it is set up
    return make_host(backend, 2)


@pytest.fixture(params=["process", RAY])
def host(request):
    return host_of(request.param)


@pytest.fixture
def start(host):
    workers = []

    def started(*arguments):
        workers.append(host.start(Echo, *arguments))
        return workers[-1]

    yield started
    for worker in workers:
        worker.kill()


def test_answers_come_in_order(start):
    worker = start("hello ")
    worker.send("first", 1)
    worker.send("second", 2)
    found = [worker.recv() for _ in range(4)]
    assert found == [("first", "hello 1"), ("first", 1), ("second", "hello 2"), ("second", 2)]


def test_what_is_shared_arrives_as_it_was(host, start):
    worker, content = start(), bytes(range(256)) * 1000
    worker.send("shared", host.share(content))
    assert [worker.recv(), worker.recv()][1] == ("shared", content)


def test_who_answers_is_waited_for(host, start):
    silent, busy = start(), start()
    busy.send("say", 1)
    assert host.wait([silent, busy]) == [busy]
    assert host.wait([silent], 0.0) == []
    assert busy.poll()
    assert not silent.poll()


def test_what_was_told_before_death_is_heard(host, start):
    worker = start()
    worker.send("die", 1)
    assert host.wait([worker]) == [worker]
    assert worker.recv() == ("die", "1")
    with pytest.raises(EOFError):
        worker.recv()
    assert "died" in worker.death()
    assert worker.was_killed()
    worker.send("say", 2)  # nobody is there, and nothing happens


def test_a_service_that_cannot_be_made_says_why(start):
    worker = start("fail")
    worker.send("say", 1)
    assert worker.recv() == ("broken", "ZeroDivisionError: one over zero")


def test_they_compute_with_one_thread_and_we_as_before(start):
    before = dict(os.environ)
    worker = start()
    worker.send("environment", list(ONE_THREAD))
    assert worker.recv() == ("environment", ONE_THREAD)
    assert dict(os.environ) == before


def test_the_end_lets_the_service_close_and_leaves_nobody(start, tmp_path):
    worker = start("", str(tmp_path))
    worker.send("who", None)
    _, pid = worker.recv()
    worker.end(10.0)
    assert (tmp_path / "closed").read_text() == str(pid)
    until = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(pid)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- matches -------------------------------------------------------------------------------------


def outcome(result):
    return [(record.agents, record.actions, record.returns) for record in result.records]


@pytest.mark.peer
def test_a_match_of_actors_is_the_match_that_is_played_here(monkeypatch, tmp_path):
    host_of("ray")
    agents = ["search(simulations=20)", "greedy"]
    here = match("tic_tac_toe", agents, num_games=6)
    there = match(games.tic_tac_toe(), agents, num_games=6, processes=2, backend="ray")
    assert outcome(there) == outcome(here)
    monkeypatch.syspath_prepend(tmp_path)  # known to the actors too
    (tmp_path / "own_game.py").write_text("import uctree\n\ngame = uctree.games.tic_tac_toe()\n")
    own = match(f"{tmp_path}/own_game.py:game", agents, num_games=6, backend="ray")
    assert outcome(own) == outcome(here)


@pytest.mark.peer
def test_an_actor_that_dies_or_hangs_is_a_forfeit_of_who_acted():
    host_of("ray")
    agents = {"mortal": f"{FAILING}:Dies(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=2, backend="ray")
    assert [record.forfeiter for record in result.records] == [0, 1]
    assert all("the actor died" in record.error for record in result.forfeits)
    agents = {"slow": f"{FAILING}:Hangs(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=2, backend="ray", max_seconds=0.3)
    assert all("no answer within 0.3 s" in record.error for record in result.forfeits)


def test_a_backend_that_is_not_there_is_named():
    with pytest.raises(UctreeError, match=r"backend is 'process' or 'ray'; got 'dask'"):
        match("tic_tac_toe", ["random", "random"], num_games=2, backend="dask")
    assert BACKENDS == ("process", "ray")


# --- Ray -----------------------------------------------------------------------------------------


def listening(pids):
    """The addresses that processes listen on, as /proc/net has them."""
    sockets = set()
    for pid in pids:
        for path in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(path))
            except OSError:
                continue  # it was closed meanwhile
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
    }


@pytest.mark.peer
@pytest.mark.skipif(not os.path.exists("/proc/net/tcp6"), reason="needs /proc")
def test_ray_listens_on_the_loopback_address_alone():
    host_of("ray")
    ours = [os.getpid(), *children(os.getpid())]
    found = listening(ours)
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}


def children(pid):
    """The processes that a process has started, and those that these have."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *children(child)]
    return found


@pytest.mark.peer
def test_more_workers_than_processors_of_the_cluster_are_refused():
    host_of("ray")
    with pytest.raises(UctreeError, match="1000 workers need a processor each, and the Ray clus"):
        make_host("ray", 1000)
