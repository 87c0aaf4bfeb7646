"""Actors of Ray: matches on a cluster, and the addresses that Ray listens on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.arena.failing import __file__ as FAILING
from tests.services import host_of
from uctree import games
from uctree.arena import match
from uctree.errors import UctreeError
from uctree.workers.processes import make_host

# --- matches -------------------------------------------------------------------------------------


def outcome(result):
    return [(record.agents, record.actions, record.returns) for record in result.records]


@pytest.mark.peer
def test_a_match_of_actors_is_the_match_in_this_process(monkeypatch, tmp_path):
    host_of("ray")
    agents = ["search(num_simulations=20)", "greedy"]
    local = match("tic_tac_toe", agents, num_games=6)
    remote = match(games.tic_tac_toe(), agents, num_games=6, processes=2, backend="ray")
    assert outcome(remote) == outcome(local)
    monkeypatch.syspath_prepend(tmp_path)  # also on the path of the actors
    (tmp_path / "own_game.py").write_text("import uctree\n\ngame = uctree.games.tic_tac_toe()\n")
    own = match(f"{tmp_path}/own_game.py:game", agents, num_games=6, backend="ray")
    assert outcome(own) == outcome(local)


@pytest.mark.peer
def test_an_actor_that_dies_or_hangs_is_a_forfeit_of_the_acting_agent():
    host_of("ray")
    agents = {"mortal": f"{FAILING}:Dies(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=2, backend="ray")
    assert [record.forfeiter for record in result.records] == [0, 1]
    assert all("the actor died" in record.error for record in result.forfeits)
    agents = {"slow": f"{FAILING}:Hangs(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=2, backend="ray", max_seconds=0.3)
    assert all("no reply within 0.3 s" in record.error for record in result.forfeits)


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
    with pytest.raises(UctreeError, match="1000 workers need a processor each, but the Ray clus"):
        make_host("ray", 1000)
