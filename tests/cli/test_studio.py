"""The command `studio`."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

import pytest


def test_it_says_where_it_is_and_ctrl_c_ends_it():
    pytest.importorskip("uvicorn", reason="the extra studio is not installed")
    command = [sys.executable, "-m", "uctree", "studio", "tic_tac_toe", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("The studio is at http://127.0.0.1:")
        address = line.split()[4]
        with urllib.request.urlopen(address, timeout=20) as page:
            assert b"uctree studio" in page.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert (out, err) == ("", "")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("studio --port 70000", "--port must be 0 to 65535; got 70000"),
        ("studio chest", "unknown game 'chest'"),
        ("studio --host 203.0.113.1", "cannot listen on 203.0.113.1"),
    ],
)
def test_mistakes_are_explained(refused, tokens, message):
    pytest.importorskip("uvicorn", reason="the extra studio is not installed")
    assert message in refused(*tokens.split())
