"""Ablations: pairings, tables, and stored games."""

from __future__ import annotations

import contextlib
import itertools
import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from uctree import UctreeError
from uctree.arena import ablate, match, read_games
from uctree.arena.ablation import _check_folder
from uctree.arena.ratings import rate

THREE = "n_in_a_row(rows=3, cols=3, length=3, num_players=3)"
BUDGETS = {"num_simulations": "10,1000"}


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Three budgets of tic-tac-toe, each against the next."""
    folder = tmp_path_factory.mktemp("chain")
    found = ablate(
        "tic_tac_toe", {"num_simulations": [10, 50, 200]}, num_games=20, pairing="neighbours",
        openings=1, folder=folder,
    )  # fmt: skip
    return found, folder


def without_seconds(ablation):
    """The content of an ablation except how long it took."""
    content = ablation.to_json()
    for row in content["rows"]:
        del row["seconds_per_action"]
    return content


# --- the result ----------------------------------------------------------------------------------


def test_a_hundred_times_the_simulations_are_surely_stronger():
    found = ablate("tic_tac_toe", BUDGETS, num_games=40, openings=1)
    row = found.row("num_simulations=1000")
    assert row.elo_interval[0] > 0
    assert row.score > 0.6
    assert "differs from num_simulations=10: num_simulations=1000" in str(found)


def test_a_setting_against_its_equal_is_within_noise():
    vary = {"selection": ["ucb1(c=1)", "ucb1(c=1.0)"]}
    found = ablate("tic_tac_toe", vary, num_simulations=30, num_games=40)
    low, high = found.row("selection=ucb1(c=1.0)").elo_interval
    assert low < 0 < high
    assert "within noise of selection=ucb1(c=1): selection=ucb1(c=1.0)" in str(found)


def test_two_settings_are_rated_as_their_match_is():
    found = ablate("tic_tac_toe", {"num_simulations": [10, 200]}, num_games=20)
    agents = {f"num_simulations={n}": f"search(num_simulations={n})" for n in (10, 200)}
    played = match("tic_tac_toe", agents, num_games=20)
    row, standing = found.row("num_simulations=200"), played.standings[0]
    assert (row.wins, row.draws, row.losses) == (standing.wins, standing.draws, standing.losses)
    assert row.elo == pytest.approx(played.difference(*reversed(played.agents))[0])


def test_elo_adds_up_along_a_chain(chain):
    found, _ = chain
    first, second, third = found.table
    assert first.elo == 0
    assert first.gain is None
    assert second.gain == pytest.approx(second.elo)
    assert third.elo == pytest.approx(second.elo + third.gain)
    alone = rate(found.meetings[1].result.points, anchor=0)
    # Settings that never played each other have no common prior: only their own games count.
    assert third.gain == pytest.approx(alone.elo[1], abs=1e-6)


def test_every_budget_has_rows_of_its_own():
    found = ablate(
        "tic_tac_toe", {"selection.ucb1.c": "0.5,2"}, num_simulations=[20, 10], num_games=4,
        base="solver=True, choice=lcb",
    )  # fmt: skip
    assert [(row.budget, row.setting) for row in found.table] == [
        (f"num_simulations={n}", f"c={c}") for n in (10, 20) for c in ("0.5", "2")
    ]
    assert found.table[0].agent == (
        "search(num_simulations=10, solver=True, choice='lcb', selection=ucb1(c=0.5))"
    )
    assert all(row.games == 4 for row in found.table)


@pytest.mark.parametrize(
    ("pairing", "met"),
    [
        ("first", [(0, 1), (0, 2)]),
        ("neighbours", [(0, 1), (1, 2)]),
        ("all", [(0, 1), (0, 2), (1, 2)]),
    ],
)
def test_the_pairing_determines_the_matches(pairing, met):
    found = ablate("tic_tac_toe", {"num_simulations": "1,2,3"}, num_games=2, pairing=pairing)
    assert [meeting.pair for meeting in found.meetings] == met
    openings = [[r.opening for r in meeting.result.records] for meeting in found.meetings]
    assert all(one == openings[0] for one in openings)


def test_in_a_game_of_three_the_first_has_the_seats_that_are_left():
    found = ablate(THREE, {"num_simulations": "1,100"}, num_games=12)
    first, second = found.table
    assert (first.games, second.games) == (24, 12)
    # It is not rated against itself: one setting wins what the other loses.
    assert first.score + second.score == pytest.approx(1)


def test_alone_settings_are_compared_by_what_they_are_paid():
    found = ablate("twenty48(max_tile=64)", {"selection.ucb1.c": "0.5,2"}, num_simulations=5,
                   num_games=4)  # fmt: skip
    first, second = found.table
    assert (first.elo, first.score, first.more) == (None, None, 0.0)
    assert second.more == pytest.approx(second.mean_return - first.mean_return)
    assert second.more_interval[0] <= second.more <= second.more_interval[1]
    seeds = [[r.seed for r in meeting.result.records] for meeting in found.meetings]
    assert seeds[0] == seeds[1]
    assert "mean return" in str(found)


def test_alone_an_interrupted_setting_is_compared_by_the_openings_that_it_has_played():
    def interrupt(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    found = ablate("twenty48(max_tile=64)", {"selection.ucb1.c": "0.5,2"}, num_simulations=5,
                   num_games=4, progress=interrupt)  # fmt: skip
    first, second = found.table
    paid = [[r.returns[0] for r in meeting.result.records] for meeting in found.meetings]
    assert [len(each) for each in paid] == [4, 1]
    assert first.mean_return == pytest.approx(np.mean(paid[0]))
    assert second.mean_return == pytest.approx(paid[1][0])
    assert second.more == pytest.approx(paid[1][0] - paid[0][0])
    assert np.isfinite(first.return_interval).all()
    assert second.more_interval == (-np.inf, np.inf)
    assert "unknown" in str(found)
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["rows"][1]["more_interval"] is None
    assert "inf" not in found.chart()


def test_seconds_per_action_are_weighted_by_actions(chain):
    found, _ = chain
    row = found.table[1]
    seats = [(record, record.agents.index(row.setting)) for meeting in found.meetings
             for record in meeting.result.records if row.setting in record.agents]  # fmt: skip
    seconds = sum(record.seconds[seat] for record, seat in seats)
    decisions = sum(record.decisions[seat] for record, seat in seats)
    assert row.seconds_per_action == pytest.approx(seconds / decisions)


# --- files ---------------------------------------------------------------------------------------


def test_the_same_call_again_changes_nothing(chain):
    found, folder = chain
    before = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    assert sorted(before) == ["games-2-against-1.jsonl", "games-3-against-2.jsonl"]
    again = ablate("tic_tac_toe", {"num_simulations": [10, 50, 200]}, num_games=20,
                   pairing="neighbours", openings=1, folder=folder)  # fmt: skip
    assert without_seconds(again) == without_seconds(found)
    assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == before


def test_an_interrupted_ablation_is_resumed_to_the_same_end(tmp_path):
    def interrupt(progress):
        if progress.done == 7:
            raise KeyboardInterrupt

    arguments = ("tic_tac_toe", {"num_simulations": "1,5,20"})
    stopped = ablate(*arguments, num_games=6, folder=tmp_path, progress=interrupt)
    assert (stopped.status, stopped.num_games) == ("interrupted", 7)
    assert len(stopped.table) == 3
    resumed = ablate(*arguments, num_games=6, folder=tmp_path)
    assert without_seconds(resumed) == without_seconds(ablate(*arguments, num_games=6))


def test_more_games_leave_the_first_ones_as_they_are(tmp_path):
    ablate("tic_tac_toe", {"num_simulations": "1,5"}, num_games=4, folder=tmp_path)
    few = read_games(tmp_path / "games-2-against-1.jsonl")
    ablate("tic_tac_toe", {"num_simulations": "1,5"}, num_games=8, folder=tmp_path)
    many = read_games(tmp_path / "games-2-against-1.jsonl")
    assert (len(few), len(many)) == (4, 8)
    assert many[:4] == few


def test_another_budget_is_added_to_a_folder(tmp_path):
    arguments = ("tic_tac_toe", {"selection.ucb1.c": "0.5,2"})
    ablate(*arguments, num_simulations=5, num_games=2, folder=tmp_path)
    found = ablate(*arguments, num_simulations=[5, 10], num_games=2, folder=tmp_path)
    assert len(found.table) == 4
    assert {path.name for path in tmp_path.glob("*.jsonl")} == {
        "games-num_simulations=5-2-against-1.jsonl", "games-num_simulations=10-2-against-1.jsonl",
    }  # fmt: skip


def test_several_processes_play_the_same_games(chain):
    found, _ = chain
    again = ablate("tic_tac_toe", {"num_simulations": [10, 50, 200]}, num_games=20,
                   pairing="neighbours", openings=1, processes=2)  # fmt: skip
    assert without_seconds(again) == without_seconds(found)


def test_the_folder_of_another_grid_is_refused(chain):
    _, folder = chain
    with pytest.raises(UctreeError, match=r"holds the games of another grid: vary is .*'50'"):
        ablate("tic_tac_toe", {"num_simulations": "10,60"}, folder=folder)
    with pytest.raises(UctreeError, match="another grid: game is tic_tac_toe"):
        ablate("nim", {"num_simulations": [10, 50, 200]}, pairing="neighbours", folder=folder)


DAMAGED = {
    "no text": b"\xff\xfe{}",
    "half of it": None,
    "no JSON": b"grid",
    "not a number of JSON": b'{"game": NaN}',
    "a huge number": b'{"game": ' + b"9" * 5000 + b"}",
    "deep": b"[" * 5000 + b"]" * 5000,
    "another kind": b"[7]",
    "parts of another kind": b'{"game": [[]], "vary": 7, "base": "", "pairing": {}}',
    "nothing": b"",
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_folder_with_a_damaged_grid_is_refused_and_left_alone(kind, chain, tmp_path):
    _, folder = chain
    path = tmp_path / "grid.json"
    whole = (folder / "grid.json").read_bytes()
    path.write_bytes(damaged := whole[: len(whole) // 2] if kind == "half of it" else DAMAGED[kind])
    with pytest.raises(UctreeError, match=r"is damaged|holds the games of another grid") as caught:
        ablate("tic_tac_toe", {"num_simulations": [10, 50, 200]}, folder=tmp_path)
    assert len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == damaged


def test_every_flipped_bit_of_a_grid_is_noticed_or_harmless(chain, tmp_path):
    _, folder = chain
    whole = (folder / "grid.json").read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.choice(8 * len(whole), 40, replace=False):
        bits = bytearray(whole)
        bits[place // 8] ^= 1 << (place % 8)
        (tmp_path / "grid.json").write_bytes(bits)
        with contextlib.suppress(UctreeError):  # a blank may become another blank
            _check_folder(tmp_path, json.loads(whole))
            found = json.loads(bits)
            assert all(found.get(part) == value for part, value in json.loads(whole).items())


def test_nothing_is_written_through_the_links_of_a_folder(chain, tmp_path):
    found, _ = chain
    other, folder = tmp_path / "precious", tmp_path / "folder"
    other.write_text("mine")
    folder.mkdir()
    for name in ("table.md", "chart.svg", "ablation.json"):
        (folder / name).symlink_to(other)
    found.save(folder)
    assert other.read_text() == "mine"
    assert not any(path.is_symlink() for path in folder.iterdir())
    (folder / "grid.json").symlink_to(tmp_path / "new")
    with pytest.raises(UctreeError, match=r"grid\.json is not a file"):
        ablate("tic_tac_toe", {"num_simulations": [10, 50]}, folder=folder)
    assert not (tmp_path / "new").exists()


def test_what_is_saved_can_be_read(chain, tmp_path):
    found, _ = chain
    paths = found.save(tmp_path / "new")
    assert [path.name for path in paths] == ["table.md", "chart.svg", "ablation.json"]
    rows = json.loads(paths[2].read_text())["rows"]
    assert [row["elo"] for row in rows] == [row.elo for row in found.table]
    circles = [each for each in xml.parse(paths[1]).iter() if each.tag.endswith("circle")]
    assert len(circles) == 3
    table = [line for line in paths[0].read_text().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert len(table) == 2 + 3


def test_rules_without_numbers_have_a_chart_too():
    vary = {"selection": "ucb1(),ucb1(c=0.5)"}
    found = ablate("tic_tac_toe", vary, num_simulations=[5, 10], num_games=2)
    assert found.chart().count("<circle") == 4


def test_progress_counts_all_games():
    seen = []
    ablate("tic_tac_toe", {"num_simulations": "1,2,3"}, num_games=2, progress=seen.append)
    assert [now.done for now in seen if now.scores] == sorted(now.done for now in seen)
    assert (seen[-1].done, {now.total for now in seen}) == (4, {4})
    assert all(one.done <= other.done for one, other in itertools.pairwise(seen))


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vary", "options", "message"),
    [
        ({"solvr": "true,false"}, {}, r"no option 'solvr'; did you mean solver\? It has num_sim"),
        ({"solver": "true,perhaps"}, {}, "setting solver=perhaps: solver must be True or False"),
        ({"selection": "ucb1(),pct()"}, {}, "unknown 'pct'; did you mean puct"),
        ({"selection.ucb1.c": "1,many"}, {}, r"ucb1\(c='many'\).*signature is ucb1\(c="),
        (BUDGETS, {"num_simulations": 5}, "simulations is part of the grid; omit the budget"),
        ({"solver": "true,false"}, {"num_simulations": 5, "seconds": 1}, "not both"),
        ({"solver": "true,false"}, {"num_simulations": [5, 5]}, "and each once"),
        ({"solver": "true,false"}, {"num_simulations": 0}, "simulations must be whole numbers"),
        ({"solver": "true,false"}, {"pairing": "some"}, "pairing is first, neighbours, all"),
    ],
)
def test_a_mistake_is_reported_before_the_first_game(vary, options, message, tmp_path):
    with pytest.raises(UctreeError, match=message):
        ablate("tic_tac_toe", vary, folder=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_a_setting_that_was_not_played_is_not_found(chain):
    with pytest.raises(UctreeError, match=r"no setting 'c=1'.*settings are 'num_simulations=10'"):
        chain[0].row("c=1")


def test_points_of_a_pair_are_weighted_by_opening(chain):
    found, _ = chain
    result = found.meetings[0].result
    assert result.points.shape == (10, 2, 2)
    assert np.array_equal(result.points.sum(axis=(1, 2)), np.full(10, 2.0))
