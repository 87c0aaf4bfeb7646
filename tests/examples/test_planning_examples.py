"""The examples of planning run as a user runs them, with stand-ins for models."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"


def run(name, *arguments):
    """What an example prints."""
    done = subprocess.run(command(name, *arguments), capture_output=True, text=True, timeout=300,
                          env=environment())  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(name, *arguments):
    return [sys.executable, EXAMPLES / name, *map(str, arguments)]


def environment():
    return os.environ | {"PYTHONPATH": str(ROOT), "UCTREE_QUIET": "1"}


def calls_of(printed):
    return int(re.search(r"calls of this run: (\d+)", printed)[1])


def table_of(printed):
    return printed[printed.index("action") : printed.index("ended by")]


def test_the_game_of_24_is_killed_in_the_middle_and_goes_on(tmp_path):
    whole = run("game_of_24.py", "--journal", tmp_path / "whole.jsonl")
    assert "solution: 13 - 9, 10 - 4, 6 * 4" in whole
    journal = tmp_path / "killed.jsonl"
    process = subprocess.Popen(
        command("game_of_24.py", "--journal", journal, "--seconds-per-call", 0.02),
        stdout=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    while not journal.exists() or journal.read_bytes().count(b"\n") < 20:
        assert process.poll() is None, "it ends later"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    num_known = journal.read_bytes().count(b"\n") - 1  # but for the header
    again = run("game_of_24.py", "--journal", journal)
    assert table_of(again) == table_of(whole)
    assert journal.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    # Every answer took one call at least, and is not asked for again.
    assert calls_of(again) <= calls_of(whole) - num_known + 2
    assert calls_of(run("game_of_24.py", "--journal", journal)) == 0


def test_the_game_of_24_stops_when_its_money_is_spent(tmp_path):
    journal = tmp_path / "run.jsonl"
    printed = run("game_of_24.py", "1", "1", "1", "1", "--usd", "0.3", "--journal", journal)
    assert "ended by: budget" in printed
    assert "solution: none found" in printed
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert 0.3 <= sum(line.get("costs", {}).get("usd", 0.0) for line in lines) < 0.34


def test_the_page_of_the_game_of_24_shows_states_and_steps(tmp_path):
    page = tmp_path / "24.html"
    run("game_of_24.py", "--save-page", page)
    text = page.read_text()
    assert "13 - 9" in text
    assert "left: 4 9 10 13" in text


def test_the_agent_with_tools_backs_its_answer_by_what_it_looked_up():
    printed = run("tool_agent.py")
    conversation = printed[printed.index("The best conversation") :]
    for line in ("look up[first powered flight]", "calculate[1969 - 1903]", "answer[66]"):
        assert line in conversation
    assert "pays 1" in conversation


def test_a_deck_of_lists_and_dicts_is_built():
    printed = run("deck_building.py")
    assert "12 turns left; hand: copper, copper" in printed
    assert int(re.search(r"provinces: (\d)", printed)[1]) >= 2
