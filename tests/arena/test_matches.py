"""Matches: the schedule, stored games, and wrong options."""

from __future__ import annotations

import collections
import json

import pytest

import uctree
from tests.arena import failing
from tests.arena.failing import FAILING
from tests.arena.timing import all_without_seconds
from uctree import UctreeError, arena, games
from uctree.arena import (
    RandomAgent,
    Sprt,
    match,
    matches,
    read_games,
    read_match,
)

pytestmark = pytest.mark.quick

THREE = "n_in_a_row(rows=3, cols=3, length=3, num_players=3)"
FOUR = "n_in_a_row(rows=3, cols=3, length=3, num_players=4)"


# --- one game ------------------------------------------------------------------------------------


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


# --- resignations and forfeits -------------------------------------------------------------------


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
    assert failing.Resigns.made == 1  # the agent is used again
    seat = result.records[0].agents.index("meek")
    assert f"player {seat} (meek) resigns" in str(result.records[0])
    assert read_games(path) == result.records


def test_a_match_continues_after_forfeits_and_lists_them():
    result = match("tic_tac_toe", [f"{FAILING}:Raises(2)", "random"], num_games=10)
    assert len(result.records) == 10
    assert 0 < len(result.forfeits) <= 10
    assert "forfeits: act at ply" in str(result)
    first = result.to_json()["forfeits"][0]
    assert first["agent"] == f"{FAILING}:Raises(2)"
    assert "one over zero" in first["error"]


# --- the schedule --------------------------------------------------------------------------------


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


def test_openings_repeat_when_all_have_been_played():
    result = match("tic_tac_toe", ["random", "random"], num_games=40, openings=1)
    counts = collections.Counter(record.opening for record in result.records[::2])
    assert len(counts) == 9
    assert set(counts.values()) == {2, 3}
    seeds = {record.seed for record in result.records}
    assert len(seeds) == 20


def test_openings_that_repeat_need_no_further_draws(monkeypatch):
    drawn = []
    walk = matches.random_walk
    monkeypatch.setattr(matches, "random_walk", lambda *given: drawn.append(1) or walk(*given))
    tasks = matches.schedule(games.tic_tac_toe(), 2, 9 * 2 * 5, 1, 0)
    rounds = [
        [task.opening for task in tasks[start : start + 18 : 2]] for start in range(0, 90, 18)
    ]
    assert all(len(set(each)) == 9 for each in rounds)
    assert len({tuple(each) for each in rounds}) == 5  # in another order each time
    assert len(drawn) < 2 * matches.MAX_DRAWS


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


def test_all_pairs_play_if_there_are_more_agents_than_seats():
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
    with pytest.raises(UctreeError, match="one player; ratings need at least two"):
        _ = result.ratings


def test_progress_has_the_number_of_games_and_scores():
    steps = []
    result = match("tic_tac_toe", ["random", "greedy"], num_games=4, progress=steps.append)
    assert [step.done for step in steps] == [0, 1, 2, 3, 4]
    assert {step.total for step in steps} == {4}
    assert steps[0].scores == {"random": 0.5, "greedy": 0.5}
    by_name = {each.agent: each.score for each in result.standings}
    assert steps[-1].scores == pytest.approx(by_name)


def test_a_sequential_test_ends_the_match_when_it_is_decided():
    agents = ["search(num_simulations=100)", "random"]
    result = match("tic_tac_toe", agents, num_games=400, sprt=Sprt(0, 100))
    assert result.status == "decided"
    assert result.sprt.decision == "elo1"
    assert len(result.records) == 2 * result.sprt.num_pairs < 100
    assert "the larger difference is accepted" in str(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": ["random"]}, "has 2 players; got 1 agents. Give an agent several times"),
        ({"num_games": 0}, "num_games must be a whole number of at least 1; got 0"),
        ({"processes": 0}, "processes must be a whole number of at least 1; got 0"),
        ({"max_seconds": 0}, "max_seconds must be above 0; got 0"),
        ({"openings": -1}, "openings must be a number of random plies, at least 0; got -1"),
        (
            {"openings": 9},
            "was over within 9 random plies in 1000 attempts; choose",
        ),
        ({"openings": []}, "openings is an empty list"),
        ({"openings": "2"}, "openings must be a number of random plies, or a list .*; got '2'"),
        ({"openings": [3, 3]}, "a list of lists of actions; got 3 as one of them"),
        ({"openings": [[0.5]]}, r"a list of lists of actions; got \[0.5\] as one of them"),
        ({"agents": ["random", failing.Stumbles]}, "agent Stumbles: .*OSError: no such file"),
        ({"agents": [RandomAgent()] * 2}, r"are the same object, which would play both seats"),
        ({"openings": [[4, 4]]}, r"opening \[4, 4\]: action 4 is not legal"),
        ({"openings": [[0, 3, 1, 4, 2]]}, "the episode is over; give a shorter one"),
        ({"sprt": Sprt(0, 9), "agents": ["random"] * 3}, "sprt tests two agents in a game of two"),
        ({"agents": ["random", "search"]}, "agent search: a search needs a budget"),
        (
            {"agents": ["random", "search(num_simulations=9, solver=True, open_loop=True)"]},
            r"agent search\(num_simulations=9, solver=True, open_loop=True\): ",
        ),
        ({"game": THREE, "agents": [failing.Sulks] * 3}, "agent Sulks: .*two players at most"),
        ({"game": "tic_tac_to"}, "unknown game 'tic_tac_to'; did you mean tic_tac_toe"),
        (
            {"agents": ["random", lambda: RandomAgent()], "processes": 2},
            "agent <lambda> cannot be sent to another process .*name it by text",
        ),
    ],
)
def test_a_mistake_is_reported_before_the_first_game(options, message):
    given = {"game": "tic_tac_toe", "agents": ["random", "greedy"]} | options
    with pytest.raises(UctreeError, match=message):
        match(given.pop("game"), given.pop("agents"), **given)


# --- files ---------------------------------------------------------------------------------------


def test_a_match_is_stored_and_read_again(tmp_path):
    path = tmp_path / "games.jsonl"
    result = match("pig(20)", ["random", "greedy"], num_games=6, path=path)
    header, *lines = map(json.loads, path.read_text().splitlines())
    assert (header["format"], header["version"]) == ("uctree match", 1)
    assert header["game"]["spec"].startswith("pig(")
    assert len(lines) == 6
    assert all_without_seconds(read_games(path)) == all_without_seconds(result.records)
    again = read_match(path)
    assert again.status == "stored"
    assert again.to_json()["standings"] == result.to_json()["standings"]


def test_a_match_is_resumed_and_can_become_longer(tmp_path):
    path = tmp_path / "games.jsonl"
    agents = ["random", "search(num_simulations=20)"]
    short = match("tic_tac_toe", agents, num_games=4, path=path)
    content = path.read_bytes()
    played = []
    long = match("tic_tac_toe", agents, num_games=10, path=path, progress=played.append)
    assert path.read_bytes().startswith(content)
    assert all_without_seconds(long.records[:4]) == all_without_seconds(short.records)
    assert [step.done for step in played] == [4, 5, 6, 7, 8, 9, 10]
    fresh = match("tic_tac_toe", agents, num_games=10)
    assert all_without_seconds(fresh.records) == all_without_seconds(long.records)
    before = path.read_bytes()
    match("tic_tac_toe", agents, num_games=10, path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lost", [1, 40, 200])
def test_an_incomplete_last_line_is_removed_and_its_game_played_again(tmp_path, lost):
    path = tmp_path / "games.jsonl"
    whole = match("tic_tac_toe", ["random", "greedy"], num_games=6, path=path)
    path.write_bytes(path.read_bytes()[:-lost])
    again = match("tic_tac_toe", ["random", "greedy"], num_games=6, path=path)
    assert all_without_seconds(again.records) == all_without_seconds(whole.records)
    assert [record.number for record in read_games(path)] == list(range(6))


def test_an_incomplete_header_is_written_again(tmp_path):
    path = tmp_path / "games.jsonl"
    match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path)
    path.write_bytes(path.read_bytes()[:50])
    assert len(match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path).records) == 2
    assert len(read_games(path)) == 2


@pytest.mark.parametrize(
    ("game", "agents", "options", "message"),
    [
        (
            "nim",
            ["random", "greedy"],
            {},
            "another game than nim.*name is 'tic_tac_toe'",
        ),
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


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UctreeError, match="No such file or directory"):
        match("tic_tac_toe", ["random", "greedy"], path=tmp_path / "no" / "games.jsonl")


# --- interrupts and deaths -----------------------------------------------------------------------


def test_ctrl_c_ends_a_match_and_the_same_call_resumes_it(tmp_path):
    path = tmp_path / "games.jsonl"
    failing.Interrupts.begun = 0
    given = {"num_games": 6, "path": path}
    result = match("tic_tac_toe", [failing.Interrupts, "random"], **given)
    assert result.status == "interrupted"
    assert [record.number for record in result.records] == [0, 1]
    result = match("tic_tac_toe", [failing.Interrupts, "random"], **given)
    assert result.status == "complete"
    assert [record.number for record in read_games(path)] == list(range(6))


def test_games_of_vectors_are_refused():
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        arena.match("loss_game", ["random", "greedy", "random"], num_games=1)
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        uctree.advise(games.loss_game())
    with pytest.raises(UctreeError, match=r"loss_game are vectors.*uctree continuous"):
        arena.random_states(games.loss_game(), 10)


def test_agents_play_all_of_a_game_with_a_window(tmp_path):
    """Also outside of the window, in which the game's own search acts."""
    game = games.n_in_a_row(7, 7, 4, 3, view=3)
    path = tmp_path / "m.jsonl"
    result = match(game, ["random", "random", "random"], num_games=6, path=path)
    assert result.game is game.view.whole
    outside = [
        game.view.to_local(state, action)
        for record in result.records
        for state, action in zip(record.states, record.actions, strict=False)
    ].count(None)
    assert outside > 20
    read = read_match(path)
    assert read.game.view.windowed.num_actions == 9
    assert [each.actions for each in read.records] == [each.actions for each in result.records]
    again = match(game, ["random", "random", "random"], num_games=6, path=path)
    assert again.records == result.records
