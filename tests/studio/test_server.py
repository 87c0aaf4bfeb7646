"""The server: what it answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import pytest

from tests.studio.servers import running
from uctree.errors import UctreeError

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.fixture(scope="module")
def studio():
    with running("tic_tac_toe") as started:
        yield started


def get(studio, path="/", **headers):
    """Status, headers and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=10)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return found


def connect(studio, **options):
    """A socket as the page opens it."""
    from websockets.sync.client import connect as connected

    given = {"origin": f"http://127.0.0.1:{studio.port}", "proxy": None} | options
    return connected(f"ws://127.0.0.1:{studio.port}/socket", **given)


def first(tab, kind):
    """The first message of a kind."""
    while True:
        message = json.loads(tab.recv(timeout=20))
        if message["kind"] == kind:
            return message


def test_the_page_and_all_its_modules_are_there(studio):
    status, _, page = get(studio)
    assert status == 200
    assert "<script>" not in page
    assert "style=" not in page
    seen, waiting = set(), ["/studio/studio.js", "/studio/studio.css", "/pages/page.css"]
    while waiting:
        path = waiting.pop()
        status, headers, text = get(studio, path)
        assert status == 200, path
        seen.add(path)
        kind = "javascript" if path.endswith(".js") else "css"
        assert kind in headers["content-type"]
        for line in text.splitlines():
            if line.startswith("import "):
                name = line.rsplit('"', 2)[1].replace("./", path.rpartition("/")[0] + "/")
                waiting += [] if name in seen else [name]
    assert {"/pages/tree.js", "/studio/board.js"} <= seen


def test_every_answer_forbids_what_is_foreign(studio):
    for path in ("/", "/pages/tree.js", "/nothing"):
        _, headers, _ = get(studio, path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "10.0.0.1", "", "[::2]:80"])
def test_foreign_names_of_the_host_are_refused(studio, host):
    status, _, text = get(studio, Host=host)
    assert status == 400
    assert "answers on this machine alone" in text


def test_names_of_this_machine_are_taken(studio):
    for host in ("localhost", f"localhost:{studio.port}", "127.0.0.1:1", "[::1]"):
        assert get(studio, Host=host)[0] == 200


@pytest.mark.parametrize(
    "path", ["/pages/../modules.py", "/pages/%2e%2e/modules.py", "/studio//etc"]
)
def test_no_other_files_are_served(studio, path):
    assert get(studio, path)[0] == 404


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_sockets_of_other_pages_are_refused(studio, origin):
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as refused, connect(studio, origin=origin):
        pass
    assert refused.value.response.status_code == 403
    assert studio.sessions == set()


def test_a_message_that_is_too_large_ends_the_connection(studio):
    from websockets.exceptions import ConnectionClosed

    with connect(studio) as tab:
        tab.send("x" * 70_000)
        with pytest.raises(ConnectionClosed) as closed:
            first(tab, "nothing")
    assert closed.value.rcvd.code == 1009


def test_a_game_is_played_through_the_socket(studio):
    with connect(studio) as tab:
        games = [each["game"] for each in first(tab, "hello")["games"]]
        assert games[0] == "tic_tac_toe"
        tab.send('{"kind": "open", "seats": ["person", "person"]}')
        assert first(tab, "position")["ply"] == 0
        tab.send(b'{"kind": "act", "ply": 0, "action": 4}')
        assert first(tab, "position")["episode"] == [4]
        tab.send("nonsense")
        assert "cannot read this message" in first(tab, "problem")["text"]


def test_a_connection_that_breaks_ends_the_search_within_a_second(studio):
    with connect(studio) as tab:
        tab.send('{"kind": "open", "seats": ["person", "person"]}')
        tab.send('{"kind": "think", "on": true}')
        first(tab, "frame")
        tab.socket.shutdown(socket.SHUT_RDWR)  # without a farewell
        began = time.perf_counter()
    while studio.sessions or any(t.name == "uctree studio" for t in threading.enumerate()):
        assert time.perf_counter() - began < 1.0
        time.sleep(0.01)


def test_there_is_a_largest_number_of_tabs(studio, monkeypatch):
    from websockets.exceptions import ConnectionClosed

    from uctree.studio import server

    monkeypatch.setattr(server, "MOST_TABS", 1)
    with connect(studio), connect(studio) as second:
        with pytest.raises(ConnectionClosed) as closed:
            second.recv(timeout=20)
        assert closed.value.rcvd.code == 1013


def test_beyond_this_machine_a_token_is_asked_for():
    with running("tic_tac_toe", host="0.0.0.0") as studio:
        assert studio.token in studio.url
        assert get(studio)[0] == get(studio, "/?token=wrong")[0] == 403
        assert get(studio, "/pages/tree.js")[0] == 403
        status, headers, _ = get(studio, f"/?token={studio.token}")
        assert status == 303
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        given = cookie.partition(";")[0]
        assert get(studio, Cookie=given, Host="studio.example")[0] == 200
        assert get(studio, Cookie=f"{given}x")[0] == 403
        from websockets.exceptions import InvalidStatus

        with pytest.raises(InvalidStatus), connect(studio):
            pass
        with connect(studio, additional_headers={"Cookie": given}) as tab:
            assert first(tab, "hello")["first"] == "tic_tac_toe"


def test_a_port_that_is_taken_is_named(studio):
    from uctree.studio.server import Studio

    with pytest.raises(
        UctreeError, match=f"cannot listen on 127.0.0.1, port {studio.port}: .*--port 0"
    ):
        Studio(port=studio.port)
