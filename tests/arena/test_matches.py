"""Matches: what is played, what is stored, and what happens when something dies."""

from __future__ import annotations

import collections
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uctree
from tests.arena import failing
from uctree import UctreeError, arena, games
from uctree.arena import (
    RandomAgent,
    SearchAgent,
    Sprt,
    match,
    matches,
    play,
    read_games,
    read_match,
)

ROOT = Path(__file__).parent.parent.parent
FAILING = "tests/arena/failing.py"
THREE = "n_in_a_row(rows=3, cols=3, length=3, num_players=3)"
FOUR = "n_in_a_row(rows=3, cols=3, length=3, num_players=4)"


def told(record):
    """All of a game but how long it took."""
    content = record.to_json()
    del content["seconds"]
    return content


# --- one game ------------------------------------------------------------------------------------


def test_a_game_is_played_to_its_end_and_pays_what_the_rules_pay():
    record = play("tic_tac_toe", ["search(simulations=200)", "random"], seed=1)
    assert record.end == "over"
    assert record.agents == ("search(simulations=200)", "random")
    assert record.decisions == ((len(record.actions) + 1) // 2, len(record.actions) // 2)
    assert record.seconds[0] > record.seconds[1] > 0
    record.check()


def test_the_same_seed_gives_the_same_game_and_another_one_another():
    agents = ["random", "search(simulations=30)"]
    first = play("tic_tac_toe", agents, seed=4)
    assert told(play("tic_tac_toe", agents, seed=4)) == told(first)
    assert play("tic_tac_toe", agents, seed=5).actions != first.actions


def test_a_game_begins_with_its_opening():
    record = play("tic_tac_toe", ["random", "random"], opening=[4, 0, 8])
    assert record.actions[:3] == (4, 0, 8)
    assert record.decisions[0] + record.decisions[1] == len(record.actions) - 3


def test_a_game_that_reaches_max_plies_is_cut():
    plain = games.tic_tac_toe()
    game = uctree.Game(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9, max_plies=3
    )
    record = play(game, ["random", "random"])
    assert (record.end, len(record.actions), record.returns) == ("cut", 3, (0.0, 0.0))


def test_paired_games_roll_the_same_dice():
    result = match("pig(20)", ["random", "greedy"], num_games=10, openings=0)
    game = games.pig(20)
    for first, second in zip(result.records[::2], result.records[1::2], strict=True):
        assert first.seed == second.seed
        rolls = [
            [action for state, action in zip(each.states, each.actions, strict=False)
             if game.to_play(state) == uctree.CHANCE]
            for each in (first, second)
        ]  # fmt: skip
        shared = min(map(len, rolls))
        assert shared > 0
        assert rolls[0][:shared] == rolls[1][:shared]
    assert len({record.seed for record in result.records}) == 5


def test_two_agents_of_one_kind_do_not_play_the_same_games():
    result = match("tic_tac_toe", ["random", "random"], num_games=40)
    assert result.agents == ["random", "random (2)"]
    pairs = zip(result.records[::2], result.records[1::2], strict=True)
    assert sum(one.actions == other.actions for one, other in pairs) < 5


@pytest.mark.parametrize(
    ("agents", "opening", "message"),
    [
        (["random"], [], "tic_tac_toe has 2 players; got 1 agents"),
        (["random", "random"], [0, 0], "action 0 is not legal"),
    ],
)
def test_what_cannot_be_played_is_refused(agents, opening, message):
    with pytest.raises(UctreeError, match=message):
        play("tic_tac_toe", agents, opening=opening)


# --- mistakes of agents --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("Raises(1)", "act at ply 2: ZeroDivisionError: one over zero"),
        ("Leaves(1)", "act at ply 2: SystemExit: 3"),
        ("Cheats(1)", "action 10000 at ply 2 is not legal; legal: "),
        ("Babbles(1)", "'the middle' at ply 2 is not an action"),
        ("NeverBegins()", "begin at ply 0: OSError: no such program"),
        ("LooksAway()", "watch at ply 1: RuntimeError: cannot look"),
    ],
)
def test_an_agent_that_fails_forfeits_the_game(agent, message):
    record = play("tic_tac_toe", [f"{FAILING}:{agent}", "random"])
    assert record.end == "forfeit"
    assert record.forfeiter == 0
    assert message in record.error
    assert record.returns == (-1.0, 1.0)
    record.check()  # what was played before is legal


@pytest.mark.parametrize("processes", [1, 2])
def test_an_agent_that_resigns_has_lost_and_has_made_no_mistake(processes, tmp_path):
    agents = {"meek": failing.Resigns, "random": "random"}
    path = tmp_path / "games.jsonl"
    failing.Resigns.made = 0
    result = match("tic_tac_toe", agents, num_games=4, openings=1, processes=processes, path=path)
    assert [record.end for record in result.records] == ["resigned"] * 4
    for record in result.records:
        assert record.returns[record.agents.index("meek")] == -1.0
        assert record.returns[record.agents.index("random")] == 1.0
        assert (record.forfeiter, record.error) == (None, None)
    assert not result.forfeits
    assert [each.forfeits for each in result.standings] == [0, 0]
    assert failing.Resigns.made == 1  # the agent was kept
    seat = result.records[0].agents.index("meek")
    assert f"player {seat} (meek) resigns" in str(result.records[0])
    assert read_games(path) == result.records


def test_an_agent_that_takes_too_long_forfeits_the_game():
    record = play("tic_tac_toe", ["random", f"{FAILING}:Dawdles(1)"], max_seconds=0.1)
    assert (record.forfeiter, record.returns) == (1, (1.0, -1.0))
    assert record.error.startswith("took 0.3")
    assert record.error.endswith("s at ply 3; the limit is 0.1 s")


def test_without_a_known_range_who_forfeits_is_last():
    plain = games.tic_tac_toe()
    game = uctree.Game(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9
    )
    assert play(game, [functools.partial(failing.Raises, 1), "random"]).returns == (-1.0, 0.0)


def test_all_others_win_where_one_of_three_forfeits():
    record = play(THREE, ["random", f"{FAILING}:Raises(1)", "random"])
    low, high = games.n_in_a_row(3, 3, 3, 3).payoff_range[0]
    assert record.returns == (high, low, high)


def test_an_agent_cannot_change_the_game_by_writing_into_a_state():
    record = play("tic_tac_toe", [f"{FAILING}:Scribbles(0)", f"{FAILING}:Scribbles(0)"])
    assert record.end == "over"
    record.check()


def test_a_match_goes_on_after_forfeits_and_lists_them():
    result = match("tic_tac_toe", [f"{FAILING}:Raises(2)", "random"], num_games=10)
    assert len(result.records) == 10
    assert 0 < len(result.forfeits) <= 10
    assert "forfeits: act at ply" in str(result)
    first = result.to_json()["forfeits"][0]
    assert first["agent"] == f"{FAILING}:Raises(2)"
    assert "one over zero" in first["error"]


# --- what is played ------------------------------------------------------------------------------


def test_each_opening_is_played_from_both_sides():
    result = match("tic_tac_toe", ["random", "greedy"], num_games=20)
    assert len(result.records) == 20
    for first, second in zip(result.records[::2], result.records[1::2], strict=True):
        assert first.opening == second.opening
        assert first.agents == second.agents[::-1]


def test_openings_are_different_positions_and_not_over():
    result = match("tic_tac_toe", ["random", "greedy"], num_games=200, openings=5)
    game = games.tic_tac_toe()
    states = [game.play(record.opening) for record in result.records[::2]]
    assert len({game.key(state) for state in states}) == 100
    assert not any(game.is_over(state) for state in states)


def test_openings_come_again_when_all_have_been_played():
    result = match("tic_tac_toe", ["random", "random"], num_games=40, openings=1)
    counts = collections.Counter(record.opening for record in result.records[::2])
    assert len(counts) == 9
    assert set(counts.values()) == {2, 3}
    seeds = {record.seed for record in result.records}
    assert len(seeds) == 20


def test_openings_that_come_again_cost_no_further_draws(monkeypatch):
    drawn = []
    walk = matches.random_walk
    monkeypatch.setattr(matches, "random_walk", lambda *given: drawn.append(1) or walk(*given))
    tasks = matches.schedule(games.tic_tac_toe(), 2, 9 * 2 * 5, 1, 0)
    rounds = [
        [task.opening for task in tasks[start : start + 18 : 2]] for start in range(0, 90, 18)
    ]
    assert all(len(set(each)) == 9 for each in rounds)
    assert len({tuple(each) for each in rounds}) == 5  # in another order each time
    assert len(drawn) < 2 * matches.MOST_DRAWS


def test_without_random_plies_nothing_is_drawn(monkeypatch):
    monkeypatch.setattr(matches, "random_walk", None)
    tasks = matches.schedule(games.tic_tac_toe(), 2, 10, 0, 0)
    assert [task.opening for task in tasks] == [()] * 10


def test_openings_may_be_given():
    result = match("tic_tac_toe", ["random", "greedy"], openings=[[4], [0, 8]])
    assert [record.opening for record in result.records] == [(4,), (4,), (0, 8), (0, 8)]
    result = match("tic_tac_toe", ["random", "greedy"], openings=[[4], [0, 8]], num_games=6)
    assert [record.opening for record in result.records[::2]] == [(4,), (0, 8), (4,)]


def test_three_players_sit_in_all_orders():
    result = match(THREE, ["random", "greedy", "random"], num_games=6)
    assert len({record.agents for record in result.records}) == 6
    assert len({record.opening for record in result.records}) == 1


def test_four_players_sit_in_all_rotations_of_every_order():
    result = match(FOUR, dict.fromkeys("abcd", "random"), num_games=24)
    seated = ["".join(record.agents) for record in result.records]
    assert seated[:5] == ["abcd", "bcda", "cdab", "dabc", "abdc"]
    assert len(set(seated)) == 24
    assert [record.opening for record in result.records[:4]] == [result.records[0].opening] * 4


def test_all_pairs_play_where_there_are_more_agents_than_seats():
    agents = {"a": "random", "b": "greedy", "c": "random"}
    result = match("nim", agents, num_games=4)
    met = collections.Counter("".join(sorted(record.agents)) for record in result.records)
    assert met == {"ab": 4, "ac": 4, "bc": 4}
    assert len({record.opening for record in result.records}) == 2


def test_one_player_is_compared_by_returns():
    result = match("twenty48", ["random", "greedy"], num_games=2, openings=0)
    assert len(result.records) == 4
    assert result.standings[0].mean_return >= result.standings[1].mean_return
    assert "mean return" in str(result)
    with pytest.raises(UctreeError, match="one player: there is nobody to be rated with"):
        _ = result.ratings


def test_progress_tells_how_far_it_is_and_how_it_stands():
    steps = []
    result = match("tic_tac_toe", ["random", "greedy"], num_games=4, progress=steps.append)
    assert [step.done for step in steps] == [0, 1, 2, 3, 4]
    assert {step.total for step in steps} == {4}
    assert steps[0].scores == {"random": 0.5, "greedy": 0.5}
    by_name = {each.agent: each.score for each in result.standings}
    assert steps[-1].scores == pytest.approx(by_name)


def test_a_sequential_test_ends_the_match_when_it_is_decided():
    agents = ["search(simulations=100)", "random"]
    result = match("tic_tac_toe", agents, num_games=400, sprt=Sprt(0, 100))
    assert result.status == "decided"
    assert result.sprt.decision == "elo1"
    assert len(result.records) == 2 * result.sprt.num_pairs < 100
    assert "the larger difference is accepted" in str(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": ["random"]}, "has 2 players; got 1 agents. One that plays several seats"),
        ({"num_games": 0}, "num_games must be a number of at least 1; got 0"),
        ({"processes": 0}, "processes must be a number of at least 1; got 0"),
        ({"max_seconds": 0}, "max_seconds must be above 0; got 0"),
        ({"openings": -1}, "openings is a number of random plies, at least 0; got -1"),
        ({"openings": 9}, "was over within 9 random plies 1000 times; choose shorter openings"),
        ({"openings": []}, "openings is an empty list"),
        ({"openings": "2"}, "openings is a number of random plies, or a list .*; got '2'"),
        ({"openings": [3, 3]}, "each a list of actions; got 3 as one of them"),
        ({"openings": [[0.5]]}, r"each a list of actions; got \[0.5\] as one of them"),
        ({"agents": ["random", failing.Stumbles]}, "agent Stumbles: .*OSError: no such file"),
        ({"agents": [RandomAgent()] * 2}, r"are the same object, which cannot be made anew"),
        ({"openings": [[4, 4]]}, r"opening \[4, 4\]: action 4 is not legal"),
        ({"openings": [[0, 3, 1, 4, 2]]}, "the episode is over; there is nothing to play"),
        ({"sprt": Sprt(0, 9), "agents": ["random"] * 3}, "sprt tests two agents in a game of two"),
        ({"agents": ["random", "search"]}, "agent search: a search needs a budget"),
        (
            {"agents": ["random", "search(simulations=9, solver=True, open_loop=True)"]},
            r"agent search\(simulations=9, solver=True, open_loop=True\): ",
        ),
        ({"game": THREE, "agents": [failing.Sulks] * 3}, "agent Sulks: .*two players at most"),
        ({"game": "tic_tac_to"}, "unknown game 'tic_tac_to'; did you mean tic_tac_toe"),
        (
            {"agents": ["random", lambda: RandomAgent()], "processes": 2},
            "agent <lambda> cannot be sent to another process .*name it by text",
        ),
    ],
)
def test_what_is_wrong_with_a_match_is_said_before_it_begins(options, message):
    given = {"game": "tic_tac_toe", "agents": ["random", "greedy"]} | options
    with pytest.raises(UctreeError, match=message):
        match(given.pop("game"), given.pop("agents"), **given)


def test_a_game_that_cannot_be_sent_to_another_process_says_so():
    plain = games.tic_tac_toe()
    namespace = {"__name__": "nowhere"}
    exec("def step(state, action, reward):\n    state.to_play = -2", namespace)
    game = uctree.Game(
        plain.dtype, plain.rules.legal, namespace["step"], num_players=2, num_actions=9, name="odd"
    )
    with pytest.raises(UctreeError, match="cannot be sent to another process"):
        match(game, ["random", "random"], processes=2, openings=0)


# --- files ---------------------------------------------------------------------------------------


def test_a_match_is_stored_and_read_again(tmp_path):
    path = tmp_path / "games.jsonl"
    result = match("pig(20)", ["random", "greedy"], num_games=6, path=path)
    header, *lines = map(json.loads, path.read_text().splitlines())
    assert (header["format"], header["version"]) == ("uctree match", 1)
    assert header["game"]["spec"].startswith("pig(")
    assert len(lines) == 6
    assert [told(record) for record in read_games(path)] == [told(each) for each in result.records]
    again = read_match(path)
    assert again.status == "stored"
    assert again.to_json()["standings"] == result.to_json()["standings"]


def test_a_match_goes_on_where_it_was_and_can_become_longer(tmp_path):
    path = tmp_path / "games.jsonl"
    agents = ["random", "search(simulations=20)"]
    short = match("tic_tac_toe", agents, num_games=4, path=path)
    content = path.read_bytes()
    played = []
    long = match("tic_tac_toe", agents, num_games=10, path=path, progress=played.append)
    assert path.read_bytes().startswith(content)
    assert [told(each) for each in long.records[:4]] == [told(each) for each in short.records]
    assert [step.done for step in played] == [4, 5, 6, 7, 8, 9, 10]
    fresh = match("tic_tac_toe", agents, num_games=10)
    assert [told(each) for each in fresh.records] == [told(each) for each in long.records]
    before = path.read_bytes()
    match("tic_tac_toe", agents, num_games=10, path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lost", [1, 40, 200])
def test_a_torn_last_line_is_cut_off_and_its_game_played_again(tmp_path, lost):
    path = tmp_path / "games.jsonl"
    whole = match("tic_tac_toe", ["random", "greedy"], num_games=6, path=path)
    path.write_bytes(path.read_bytes()[:-lost])
    again = match("tic_tac_toe", ["random", "greedy"], num_games=6, path=path)
    assert [told(each) for each in again.records] == [told(each) for each in whole.records]
    assert [record.number for record in read_games(path)] == list(range(6))


def test_a_torn_header_begins_the_file_anew(tmp_path):
    path = tmp_path / "games.jsonl"
    match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path)
    path.write_bytes(path.read_bytes()[:50])
    assert len(match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path).records) == 2
    assert len(read_games(path)) == 2


@pytest.mark.parametrize(
    ("game", "agents", "options", "message"),
    [
        ("nim", ["random", "greedy"], {}, "is of another game than nim.*name is 'tic_tac_toe'"),
        ("tic_tac_toe", ["random", "random"], {}, "holds a match with other agents: "),
        ("tic_tac_toe", ["greedy", "random"], {}, "game 0 is not one of this match"),
        ("tic_tac_toe", ["random", "greedy"], {"seed": 1}, "with other settings: .*'seed': 0"),
        ("tic_tac_toe", ["random", "greedy"], {"openings": 3}, "with other settings"),
    ],
)
def test_the_file_of_another_match_is_refused_and_stays_as_it_is(
    tmp_path, game, agents, options, message
):
    path = tmp_path / "games.jsonl"
    match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path)
    before = path.read_bytes()
    with pytest.raises(UctreeError, match=message):
        match(game, agents, num_games=2, path=path, **options)
    assert path.read_bytes() == before


def test_a_file_that_is_in_use_is_refused(tmp_path):
    path, errors = tmp_path / "games.jsonl", []

    def meanwhile(progress):
        if progress.done == 1:
            with pytest.raises(UctreeError, match="is in use by another match") as caught:
                match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path)
            errors.append(caught)

    match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path, progress=meanwhile)
    assert len(errors) == 1
    assert len(read_games(path)) == 2


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UctreeError, match="No such file or directory"):
        match("tic_tac_toe", ["random", "greedy"], path=tmp_path / "no" / "games.jsonl")


# --- interrupts and deaths -----------------------------------------------------------------------


def test_ctrl_c_ends_a_match_with_what_there_is_and_the_same_call_goes_on(tmp_path):
    path = tmp_path / "games.jsonl"
    failing.Interrupts.begun = 0
    given = {"num_games": 6, "path": path}
    result = match("tic_tac_toe", [failing.Interrupts, "random"], **given)
    assert result.status == "interrupted"
    assert [record.number for record in result.records] == [0, 1]
    result = match("tic_tac_toe", [failing.Interrupts, "random"], **given)
    assert result.status == "complete"
    assert [record.number for record in read_games(path)] == list(range(6))


def test_several_processes_play_the_same_games_as_one(tmp_path):
    agents = ["search(simulations=20)", f"{FAILING}:Raises(2)", "greedy"]
    here = match("tic_tac_toe", agents, num_games=6)
    there = match("tic_tac_toe", agents, num_games=6, processes=2, path=tmp_path / "games.jsonl")
    assert [told(each) for each in there.records] == [told(each) for each in here.records]


def test_agents_that_are_classes_and_games_that_are_objects_go_to_other_processes():
    agents = [functools.partial(SearchAgent, 20), failing.Watches]
    result = match(games.tic_tac_toe(), agents, num_games=4, processes=2)
    assert result.status == "complete"
    assert not result.forfeits


def test_a_game_in_a_file_whose_name_is_taken_goes_to_other_processes_by_its_text(tmp_path):
    path = tmp_path / "calendar.py"  # there is a module of this name in Python
    path.write_text("import uctree\n\ngame = uctree.games.tic_tac_toe()\n")
    result = match(f"{path}:game", ["random", "greedy"], num_games=2, processes=2)
    assert [record.end for record in result.records] == ["over", "over"]


def test_an_agent_whose_process_dies_forfeits_and_the_match_goes_on():
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
    assert "no answer within 0.2 s; ended" in result.records[0].error


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
    [("random", "no answer within 0.3 s; ended"), (f"{FAILING}:Dies(after=0)", "exit code -9")],
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
    result = match("tic_tac_toe", [slow, "random"], num_games=30, path=sys.argv[1],
                   processes={processes})
    print(result.status, len(result.records))
"""


def begin_match(folder, processes):
    """A match in a process of its own that has stored a few games, and its file."""
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


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("processes", [1, 2])
def test_a_match_that_was_killed_goes_on_without_losing_or_repeating_a_game(tmp_path, processes):
    process, path, notes = begin_match(tmp_path, processes)
    process.kill()
    process.wait()
    process.stdout.close()
    before = path.read_bytes()
    complete = before[: before.rindex(b"\n") + 1]
    slow = f"{FAILING}:Slow(0.02, {str(notes)!r})"
    workers = [int(name) for name in os.listdir(notes)]
    result = match("tic_tac_toe", [slow, "random"], num_games=30, path=path)
    assert result.status == "complete"
    assert path.read_bytes().startswith(complete)
    assert [record.number for record in read_games(path)] == list(range(30))
    fresh = match("tic_tac_toe", [slow, "random"], num_games=30)
    assert [told(each) for each in fresh.records] == [told(each) for each in result.records]
    assert not any(is_running(pid) for pid in workers if pid != os.getpid())


def test_a_worker_that_is_killed_from_outside_is_a_forfeit_of_who_acted(tmp_path):
    process, path, notes = begin_match(tmp_path, processes=2)
    workers = [int(name) for name in os.listdir(notes) if int(name) != process.pid]
    os.kill(workers[0], signal.SIGKILL)
    printed, _ = process.communicate(timeout=60)
    assert printed == "complete 30\n"
    records = read_games(path)
    assert [record.number for record in records] == list(range(30))
    (lost,) = [record for record in records if record.end == "forfeit"]
    assert "the process died (exit code -9)" in lost.error


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_in_a_terminal_ends_the_workers_too(tmp_path, processes):
    process, path, notes = begin_match(tmp_path, processes)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    status, number = printed.split()
    assert status == "interrupted"
    assert int(number) == len(read_games(path)) >= 3
    assert not any(is_running(int(name)) for name in os.listdir(notes))


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path):
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


def test_games_of_vectors_are_refused():
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        arena.match("loss_game", ["random", "greedy", "random"], num_games=1)
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        uctree.advise(games.loss_game())
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        arena.random_states(games.loss_game(), 10)
