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


def forged(**changes):
    """The line of a journal with an answer about the first action of the start."""
    line = {"row": 0, "index": 0, "state": 2, "reward": 0.0, "to_play": 0, "over": False,
            "actions": ["add", "double"], "weights": None, "value": 0.0, "proposed": None,
            "costs": {}}  # fmt: skip
    return json.dumps(line | changes)


def test_a_forged_line_that_keeps_the_rules_is_taken(tmp_path):
    journal = tmp_path / "run.jsonl"
    uctree.plan(counting(), 1, num_simulations=1, seed=1, journal=journal)
    with journal.open("a") as file:
        file.write(forged(value=[0.5]) + "\n")
    uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"row":999,"index":0}', "row 999 is not known"),
        ("[1]", "is not an answer"),
        ('{"row":0}', "KeyError"),
        ("[" * 5000, "is not an answer"),
        ('{"row":NaN,"index":0}', "is not an answer"),
        ('{"row":1' + "0" * 200 + ',"index":0}', "is not an answer"),
        ('{"row":"0","index":0}', "are no integers"),
        (forged(index=2), "state 0 has 2 actions; there is none with number 2"),
        (forged(index=-7), "none with number -7"),
        (forged(to_play=3), "to_play=3"),
        (forged(to_play=uctree.CHANCE), "the problem has no chance"),
        (forged(to_play="0"), "to_play is '0'"),
        (forged(over=0), "over is 0"),
        (forged(actions=[[1], [1]]), "twice"),
        (forged(actions=[{}]), "hashable"),
        (forged(weights=[1.0]), "zip"),
        (forged(weights=[1.0, -1.0]), "priors must be"),
        (forged(value=[1.0, 2.0]), "a value is"),
        (forged(value="much"), "a value is one finite number"),
        (forged(reward=[]), "a reward is"),
        (forged(proposed=["triple"]), "where none were asked for"),
        (forged(costs={"usd": -1.0}), "the cost usd is -1.0"),
        (forged(costs={"usd": "1"}), "TypeError"),
        (forged(costs=[1]), "AttributeError"),
    ],
)
def test_a_damaged_journal_is_refused(tmp_path, line, message):
    journal = tmp_path / "run.jsonl"
    uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)
    with journal.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UctreeError, match=message):
        uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)


@pytest.mark.parametrize("text", ["important\nnotes", "notes", '{"a": 1}\n', '{"uctree jou,"\n'])
def test_a_file_that_is_no_journal_is_not_written_to(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(UctreeError, match="is not the file of a journal"):
        uctree.plan(counting(), 1, num_simulations=5, journal=path)
    assert path.read_text() == text


def test_a_link_or_a_pipe_is_not_written_to(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(UctreeError, match=f"{name} is a link or not a file"):
            uctree.plan(counting(), 1, num_simulations=5, journal=tmp_path / name)
    assert not target.exists()


def test_a_journal_in_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UctreeError, match=r"run\.jsonl: No such file"):
        uctree.plan(counting(), 1, num_simulations=5, journal=tmp_path / "none" / "run.jsonl")


def test_two_plans_do_not_share_a_journal(tmp_path):
    journal = tmp_path / "run.jsonl"

    def nested(number, action):
        with pytest.raises(UctreeError, match="in use by another journal"):
            uctree.plan(counting(), 1, num_simulations=5, journal=journal)
        return step(number, action)

    uctree.plan(counting(step=nested), 1, num_simulations=3, seed=1, journal=journal)
    uctree.plan(counting(), 1, num_simulations=5, seed=1, journal=journal)


def test_wrong_options_leave_no_journal(tmp_path):
    journal = tmp_path / "run.jsonl"
    with pytest.raises(ValueError, match="in_flight must be"):
        uctree.plan(counting(), 1, num_simulations=5, in_flight=0, journal=journal)
    assert not journal.exists()


def test_numbers_that_would_not_be_read_back_are_refused(tmp_path):
    problem = counting(step=lambda number, action: Step(10**200, over=True))
    with pytest.raises(UctreeError, match="cannot be written to"):
        uctree.plan(problem, 1, num_simulations=5, journal=tmp_path / "run.jsonl")


FULL = """
import resource, signal, sys
import uctree
from tests.planning.counting import counting

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    uctree.plan(counting(), 1, num_simulations=30, seed=1, journal=sys.argv[1])
except uctree.UctreeError as error:
    print(error)
"""


def test_a_full_disk_is_named_and_the_answers_so_far_count(tmp_path):
    journal = tmp_path / "run.jsonl"
    run = subprocess.run(
        [sys.executable, "-c", FULL, journal],
        capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True,
    )  # fmt: skip
    assert "run.jsonl: File too large; what was written so far is safe" in run.stdout
    assert journal.stat().st_size == 1000  # a part of the last line, too
    found = uctree.plan(counting(), 1, num_simulations=30, seed=1, journal=journal)
    wanted = uctree.plan(counting(), 1, num_simulations=30, seed=1)
    assert (found.edges == wanted.edges).all()


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
