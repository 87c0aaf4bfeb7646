"""Journals: every answer in a file, so that nothing is asked twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import uctree
from tests.planning.counting import counting, step
from uctree import Problem, Step, UctreeError

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("both_ways")]


def test_a_journal_goes_on_without_asking_twice_and_gives_the_same_tree(tmp_path):
    calls = []

    def counted(number, action):
        calls.append((number, action))
        return step(number, action)

    journal = tmp_path / "run.jsonl"
    problem = counting(step=counted)
    whole = uctree.plan(problem, 1, num_simulations=60, seed=1).edges
    num_calls = len(calls)
    calls.clear()
    for num_simulations in (10, 25, 60):
        result = uctree.plan(problem, 1, num_simulations=num_simulations, seed=1, journal=journal)
    assert len(calls) == num_calls
    assert (result.edges == whole).all()


def test_a_torn_last_line_is_asked_again(tmp_path):
    journal = tmp_path / "run.jsonl"
    wanted = uctree.plan(counting(), 1, num_simulations=30, seed=1, journal=journal).edges
    journal.write_bytes(journal.read_bytes()[:-9])
    found = uctree.plan(counting(), 1, num_simulations=30, seed=1, journal=journal).edges
    assert (found == wanted).all()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"row":999,"index":0}', "row 999 is not known"),
        ("[1]", "is not an answer"),
        ('{"row":0}', "KeyError"),
        ("[" * 5000, "is not an answer"),
    ],
    ids=["unknown row", "no object", "no index", "deep"],
)
def test_a_damaged_journal_is_refused(tmp_path, line, message):
    journal = tmp_path / "run.jsonl"
    uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)
    with journal.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UctreeError, match=message):
        uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)


def test_the_journal_of_another_start_is_refused(tmp_path):
    journal = tmp_path / "run.jsonl"
    uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)
    with pytest.raises(UctreeError, match="the journal of another plan"):
        uctree.plan(counting(), 2, num_simulations=5, seed=1, journal=journal)


def test_states_that_json_cannot_hold_need_dump_and_load(tmp_path):
    problem = Problem(actions=lambda s: [1], step=lambda s, a: Step(object(), over=True))
    with pytest.raises(UctreeError, match="dump= and load="):
        uctree.plan(problem, 1, num_simulations=5, journal=tmp_path / "run.jsonl")


KILLED = """
import os, sys
import uctree
from tests.planning.counting import counting, step

def counted(number, action):
    with open(sys.argv[2], "a") as log:
        log.write(f"{number} {action}\\n")
    if os.path.getsize(sys.argv[2]) > int(sys.argv[3]):
        os.kill(os.getpid(), 9)
    return step(number, action)

problem = counting(step=counted, key=lambda number: number)
result = uctree.plan(problem, 1, num_simulations=40, seed=1, journal=sys.argv[1])
print(result.edges["visits"].tolist())
"""


def test_kill_9_loses_at_most_the_answer_under_way(tmp_path):
    problem = counting(key=lambda number: number)
    wanted = uctree.plan(problem, 1, num_simulations=40, seed=1).edges["visits"].tolist()
    log = tmp_path / "calls.txt"
    most, found = 20, ""
    for _ in range(20):
        run = subprocess.run(
            [sys.executable, "-c", KILLED, tmp_path / "run.jsonl", log, str(most)],
            capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        )  # fmt: skip
        if run.returncode == 0:
            found = json.loads(run.stdout)
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        most += 120
    calls = log.read_text().splitlines()
    assert found == wanted
    assert all(calls.count(call) <= 2 for call in set(calls))
