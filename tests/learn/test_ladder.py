"""The strength of a checkpoint: games, ratings, diagnosis, exact play."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tests.learn import fixed_evaluators
from tests.learn.fixed_evaluators import constant
from uctree import games
from uctree.arena import rate
from uctree.errors import UctreeError
from uctree.learn import ladder
from uctree.learn.options import make_options
from uctree.learn.run import Run

pytest.importorskip("safetensors", reason="the extra learn is not installed")


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.fixture(scope="module")
def options(game):
    return make_options(game, num_simulations=20, ladder_games=6)


@pytest.fixture(scope="module")
def perfect(game):
    return fixed_evaluators.perfect(game)


# --- measurements -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(game, options, perfect):
    """The numbers of a perfect network, with an untrained one before it, and the progress."""
    reports = []
    found = ladder.measure(
        game, perfect, options, past=constant(game), seed=5,
        progress=lambda done, total: reports.append((done, total)),
    )  # fmt: skip
    return found, reports


def test_a_perfect_network_loses_no_opening_and_beats_random_play(measured):
    played = measured[0]["games"]
    assert list(played) == ["random", "greedy", "playout_100", "playout_1000", "past"]
    assert all(each["games"] == 6 for each in played.values())
    # An opening may be lost already; then it is won from the other seat.
    assert all(won >= lost for each in played.values() for won, lost in each["points"])
    assert played["random"]["wins"] >= 4
    assert played["random"]["score"] == sum(w for w, _ in played["random"]["points"]) / 6
    low, high = played["random"]["elo_interval"]
    assert low < played["random"]["elo"] < high


def test_a_perfect_network_is_right_about_its_own_games(measured):
    found = measured[0]["diagnosis"]
    assert found["games"] == 6
    assert found["value_error"] == pytest.approx(0.0, abs=1e-6)
    assert all(row["outcome"] == pytest.approx(row["predicted"]) for row in found["reliability"])
    assert found["divergence"] < 1.0 < math.log(9)
    assert 0 < found["entropy"] < math.log(9)


def test_a_perfect_network_plays_optimally_with_and_without_search(measured):
    found = measured[0]["exact"]
    assert (found["source"], found["raw"], found["search"]) == ("solved", 1.0, 1.0)


def test_progress_counts_every_game_and_exact_play(measured):
    total = 6 * 6 + 1  # five opponents and itself, then exact play
    assert measured[1] == [(done, total) for done in range(1, total + 1)]


def test_the_numbers_are_json_without_the_keys_that_the_run_adds(measured):
    text = json.dumps(measured[0], allow_nan=False)
    assert json.loads(text) == measured[0]
    assert not {"iteration", "past", "kind", "time"} & set(measured[0])


def test_the_same_seed_measures_the_same_and_another_one_other_games(
    game, options, perfect, measured
):
    again = ladder.measure(game, perfect, options, past=constant(game), seed=5)
    assert again | {"seconds": 0} == measured[0] | {"seconds": 0}
    other = ladder.measure(game, perfect, options, seed=6)
    assert "past" not in other["games"]
    assert other["diagnosis"] != measured[0]["diagnosis"]


def test_an_untrained_network_is_measured_as_weak(game, options):
    found = ladder.measure(game, constant(game), options)
    (row,) = found["diagnosis"]["reliability"]
    assert row["predicted"] == 0.0
    assert found["diagnosis"]["value_error"] == abs(row["outcome"])
    assert 0 < found["diagnosis"]["search_entropy"] < found["diagnosis"]["entropy"] < math.log(9)
    assert 0 < found["diagnosis"]["changed"] < 1
    assert found["exact"]["raw"] < 0.6 < found["exact"]["search"] < 1.0


def test_a_measurement_without_games_is_refused(game):
    with pytest.raises(UctreeError, match="ladder_games=0"):
        ladder.measure(game, constant(game), make_options(game, ladder_games=0))


def test_with_three_players_the_opponent_has_the_other_two_seats():
    game = games.n_in_a_row(3, 3, 3, num_players=3)
    options = make_options(game, num_simulations=20, ladder_games=6)
    found = ladder.measure(game, constant(game), options)
    assert found["games"]["random"]["games"] == 6  # one opening in all six seatings
    assert np.sum(found["games"]["random"]["points"]) == 2 * 6
    assert found["diagnosis"]["games"] == 6


def test_a_game_of_one_player_compares_returns_with_the_same_chance_outcomes():
    game = games.twenty48(max_tile=16)
    options = make_options(game, num_simulations=10, ladder_games=4)
    found = ladder.measure(game, constant(game), options)
    for each in found["games"].values():
        assert each["difference"] == pytest.approx(each["mean_return"] - each["opponent_return"])
        low, high = each["return_interval"]
        assert low <= each["mean_return"] <= high
    assert len({each["mean_return"] for each in found["games"].values()}) == 1
    assert len({each["opponent_return"] for each in found["games"].values()}) > 1
    assert found["exact"] is None


def test_games_with_chance_and_gumbel_roots_are_measured():
    game = games.pig(target=10)
    options = make_options(game, num_simulations=8, ladder_games=2, root_selection="gumbel")
    found = ladder.measure(game, constant(game), options)
    assert found["games"]["random"]["games"] == 2
    assert found["diagnosis"]["divergence"] >= 0.0


# --- ratings over a run --------------------------------------------------------------------------


def log_row(run, iteration, points, past=None):
    played = {name: {"points": rows} for name, rows in points.items()}
    run.log("ladder", iteration=iteration, past=past, games=played)


@pytest.fixture
def rated_run(tmp_path, game):
    """Two checkpoints; the second one beats the first and does better against all others."""
    with Run.begin(tmp_path / "run", game) as run:
        even, won = [[1.0, 1.0]] * 10, [[1.5, 0.5]] * 5 + [[2.0, 0.0]] * 5
        log_row(run, 10, {"random": won, "playout_100": even, "past": even}, past=0)
        log_row(run, 20, {"random": won, "playout_100": won, "past": won}, past=10)
    return run


def test_ratings_put_all_checkpoints_and_opponents_on_one_scale(rated_run):
    found = ladder.ratings(rated_run)
    checkpoints = ["iteration 0", "iteration 10", "iteration 20"]
    assert found.agents == ["random", "playout_100", *checkpoints]
    assert found.iterations == [None, None, 0, 10, 20]
    elo = {row["agent"]: row["elo"] for row in found.rows()}
    assert elo["random"] == 0.0
    assert elo["iteration 20"] > elo["iteration 10"] > 0.0
    difference, low, high = found.difference("iteration 20", "iteration 10")
    assert 0.0 < low < difference < high


def test_ratings_of_one_checkpoint_are_those_of_its_match(tmp_path, game):
    points = [[2.0, 0.0], [1.5, 0.5], [1.0, 1.0], [2.0, 0.0]]
    with Run.begin(tmp_path / "run", game) as run:
        log_row(run, 10, {"random": points})
    rows = {row["agent"]: row for row in ladder.ratings(run).rows()}
    table = np.array([[[0.0, lost], [won, 0.0]] for won, lost in points])
    alone = rate(table, anchor=0)
    assert rows["iteration 10"]["elo"] == pytest.approx(alone.elo[1])


def test_measurements_that_a_resume_made_invalid_are_not_rated(rated_run, game):
    with Run.begin(rated_run.folder, game) as run:
        run.log("resumed", iteration=10)
        assert "iteration 20" not in ladder.ratings(run).agents


def test_without_games_or_with_one_player_there_are_no_ratings(tmp_path, game):
    with Run.begin(tmp_path / "new", game) as run:
        assert ladder.ratings(run) is None
    with Run.begin(tmp_path / "alone", games.twenty48(max_tile=16)) as run:
        run.log("ladder", iteration=10, past=None, games={"random": {"mean_return": 3.0}})
        assert ladder.ratings(run) is None


def test_of_very_many_measurements_some_are_rated(tmp_path, game, monkeypatch):
    monkeypatch.setattr(ladder, "MOST_RATED", 10)
    with Run.begin(tmp_path / "run", game) as run:
        for iteration in range(50):
            log_row(run, iteration, {"random": [[1.0, 1.0]] * 3})
        rated = ladder.ratings(run)
        assert len(rated.agents) == 1 + 10
        assert {0, 49} <= set(rated.iterations)
        monkeypatch.setattr(ladder, "MOST_CELLS", 1000)
        log_row(run, 50, {"random": [[1.0, 1.0]] * 30})
        assert ladder.ratings(run).iterations == [None, 0, 50]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"games": {"greedy": {"points": [[1.0, 1.0]]}}}, "no games against random"),
        ({"games": {"boss": {"points": [[1.0, 1.0]]}}}, "Invalid enum value 'boss'"),
        ({"games": {"random": {"points": [[0.0, 0.0]]}}}, "an opening has no points"),
        ({"games": {"random": {"points": []}}}, "length >= 1"),
        ({"games": {"random": {"points": [[1.0, -1.0]]}}}, ">= 0"),
        ({"games": {"random": {"points": [[1.0]]}}}, "length"),
        ({"iteration": -1}, ">= 0"),
    ],
)
def test_measurements_that_cannot_be_rated_are_left_out(rated_run, game, changes, message):
    before = ladder.ratings(rated_run).agents
    with Run.begin(rated_run.folder, game) as run:
        row = {"iteration": 30, "past": None, "games": {"random": {"points": [[1.0, 1.0]]}}}
        run.log("ladder", **(row | changes))
        assert ladder.ratings(run).agents == before
        assert "1 lines of metrics.jsonl of the kind 'ladder'" in run.warnings[0]
        assert message in run.warnings[0]
