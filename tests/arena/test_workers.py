"""Games in worker processes: the same games, and what happens if a process dies."""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uctree
from tests.arena import failing
from tests.arena.failing import FAILING
from tests.arena.timing import all_without_seconds
from tests.pressing import assert_nothing_stays, held, interrupted, two_moments
from tests.services import is_running
from uctree import UctreeError, games
from uctree.arena import SearchAgent, match, read_games

ROOT = Path(__file__).parents[2]


def test_a_game_that_cannot_be_sent_to_another_process_says_so():
    plain = games.tic_tac_toe()
    namespace = {"__name__": "nowhere"}
    exec("def step(state, action, reward):\n    state.to_play = -2", namespace)
    game = uctree.Game(
        plain.dtype, plain.rules.legal, namespace["step"], num_players=2, num_actions=9, name="odd"
    )
    with pytest.raises(UctreeError, match="cannot be sent to another process"):
        match(game, ["random", "random"], processes=2, openings=0)


def test_several_processes_play_the_same_games_as_one(tmp_path):
    agents = ["search(num_simulations=20)", f"{FAILING}:Raises(2)", "greedy"]
    one = match("tic_tac_toe", agents, num_games=6)
    two = match("tic_tac_toe", agents, num_games=6, processes=2, path=tmp_path / "games.jsonl")
    assert all_without_seconds(two.records) == all_without_seconds(one.records)


def test_agents_that_are_classes_and_games_that_are_objects_go_to_other_processes():
    agents = [functools.partial(SearchAgent, 20), failing.Watches]
    result = match(games.tic_tac_toe(), agents, num_games=4, processes=2)
    assert result.status == "complete"
    assert not result.forfeits


def test_a_game_in_a_file_whose_name_is_taken_goes_to_other_processes_by_its_text(tmp_path):
    path = tmp_path / "calendar.py"  # Python has a module of this name
    path.write_text("import uctree\n\ngame = uctree.games.tic_tac_toe()\n")
    result = match(f"{path}:game", ["random", "greedy"], num_games=2, processes=2)
    assert [record.end for record in result.records] == ["over", "over"]


def test_an_agent_whose_process_dies_forfeits_and_the_match_continues():
    agents = {"mortal": f"{FAILING}:Dies(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=4, processes=2)
    assert [record.number for record in result.records] == [0, 1, 2, 3]
    assert len(result.forfeits) == 4
    for record in result.records:
        assert record.agents[record.forfeiter] == "mortal"
        assert "the process died (exit code -9)" in record.error
        assert len(record.actions) in (4, 5)  # two of the opening, one or two each
        record.check()


def test_an_agent_that_hangs_is_ended_and_forfeits():
    agents = {"stuck": f"{FAILING}:Hangs(after=1)", "random": "random"}
    result = match("tic_tac_toe", agents, num_games=2, max_seconds=0.2)
    assert [record.agents[record.forfeiter] for record in result.records] == ["stuck"] * 2
    assert "no reply within 0.2 s; ended" in result.records[0].error


def test_an_agent_may_take_its_time_before_it_has_to_act():
    result = match("tic_tac_toe", [failing.Warms, "random"], num_games=2, max_seconds=0.2)
    assert [record.end for record in result.records] == ["over", "over"]


SLEEPER = """
import os, pathlib, sys, time

(pathlib.Path(sys.argv[1]) / str(os.getpid())).touch()
for line in sys.stdin:
    if "genmove" in line:
        time.sleep(60)
    print("=\\n", flush=True)
"""


@pytest.mark.parametrize(
    ("other", "error"),
    [("random", "no reply within 0.3 s; ended"), (f"{FAILING}:Dies(after=0)", "exit code -9")],
)
def test_programs_end_with_the_worker_whose_agents_they_are(tmp_path, other, error):
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    notes = tmp_path / "notes"
    notes.mkdir()
    sleeper = f"gtp('{sys.executable} {tmp_path}/sleeper.py {notes}')"
    result = match("tic_tac_toe", [other, sleeper], num_games=2, openings=1, max_seconds=0.3)
    assert any(error in record.error for record in result.forfeits)
    programs = [int(name) for name in os.listdir(notes)]
    assert len(programs) >= 2
    until = time.monotonic() + 5
    while any(map(is_running, programs)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, programs))


def test_agents_in_workers_may_have_processes_of_their_own():
    result = match(
        "tic_tac_toe", [failing.Multiplies, "random"], num_games=2, openings=6, processes=2
    )
    assert [record.error for record in result.records] == [None, None]


SCRIPT = """
import sys
from uctree.arena import match

if __name__ == "__main__":
    slow = "tests/arena/failing.py:Slow(0.02, {folder!r})"
    result = match("tic_tac_toe", [slow, "random"], num_games=16, path=sys.argv[1],
                   processes={processes})
    print(result.status, len(result.records))
"""


def begin_match(folder, processes):
    """A match in another process that has stored a few games, its file and the ids of workers."""
    script, path, notes = folder / "script.py", folder / "games.jsonl", folder / "notes"
    notes.mkdir()
    script.write_text(SCRIPT.format(folder=str(notes), processes=processes))
    process = subprocess.Popen(
        [sys.executable, str(script), str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < 4:
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < until, "no games within a minute"
        time.sleep(0.01)
    return process, path, notes


@pytest.mark.parametrize("processes", [1, 2])
def test_a_match_that_was_killed_is_resumed_without_losing_or_repeating_a_game(tmp_path, processes):
    process, path, notes = begin_match(tmp_path, processes)
    process.kill()
    process.wait()
    process.stdout.close()
    before = path.read_bytes()
    complete = before[: before.rindex(b"\n") + 1]
    slow = f"{FAILING}:Slow(0.02, {str(notes)!r})"
    workers = [int(name) for name in os.listdir(notes)]
    result = match("tic_tac_toe", [slow, "random"], num_games=16, path=path)
    assert result.status == "complete"
    assert path.read_bytes().startswith(complete)
    assert [record.number for record in read_games(path)] == list(range(16))
    fresh = match("tic_tac_toe", [slow, "random"], num_games=16)
    assert all_without_seconds(fresh.records) == all_without_seconds(result.records)
    assert not any(is_running(pid) for pid in workers if pid != os.getpid())


def test_a_worker_that_is_killed_from_outside_is_a_forfeit_of_the_acting_agent(tmp_path):
    lost = []
    while not lost:  # a worker that dies between two games loses none
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        process, path, notes = begin_match(folder, processes=2)
        workers = [int(name) for name in os.listdir(notes) if int(name) != process.pid]
        os.kill(workers[0], signal.SIGKILL)
        printed, _ = process.communicate(timeout=60)
        assert printed == "complete 16\n"
        records = read_games(path)
        assert [record.number for record in records] == list(range(16))
        lost = [record for record in records if record.end == "forfeit"]
        assert len(list(tmp_path.iterdir())) < 10
    assert len(lost) == 1
    assert "the process died (exit code -9)" in lost[0].error


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_in_a_terminal_ends_the_workers_too(tmp_path, processes):
    process, path, notes = begin_match(tmp_path, processes)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    status, number = printed.split()
    assert status == "interrupted"
    assert int(number) == len(read_games(path)) >= 3
    assert not any(is_running(int(name)) for name in os.listdir(notes))


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("num_moments", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_ctrl_c_at_any_moment_leaves_nothing_behind_and_the_match_resumes(
    tmp_path, num_moments, presses
):
    def work():
        path = tmp_path / f"{num_matches}.jsonl"
        return match("tic_tac_toe", agents, num_games=12, processes=2, path=path)

    agents = [f"{FAILING}:Slow(0.01, {str(tmp_path)!r})", "random"]
    num_matches, num_cut, rng, began = 0, 0, random.Random("match"), time.monotonic()
    expected = all_without_seconds(work().records)
    seconds, before = time.monotonic() - began, held()
    num_matches = 1
    for _ in range(num_moments):
        result = interrupted(work, *two_moments(rng, 0.6 * seconds)[:presses])
        assert_nothing_stays(before)
        num_cut += result is None or result.status == "interrupted"
        if result is not None:
            played = {record.number for record in result.records}
            wanted = [each for each in expected if each["number"] in played]
            assert all_without_seconds(result.records) == wanted
            num_matches += result.status == "complete"  # another file
    result = work()
    assert result.status == "complete"
    assert all_without_seconds(result.records) == expected
    assert num_cut > 0


def test_a_script_without_a_guard_gets_a_hint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from uctree.arena import match\n"
        "match('tic_tac_toe', ['random', 'random'], num_games=2, processes=2)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=100,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert "a worker ended before it played: the process died (exit code 1)" in done.stderr
    assert 'call match below `if __name__ == "__main__":`' in done.stderr
