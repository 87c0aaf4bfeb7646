"""What is measured at a checkpoint: games, ratings, diagnosis, exact play."""

from __future__ import annotations

import itertools
import json
import math
import sys

import numpy as np
import pytest

from tests.exact import action_values, maxn
from uctree import evaluators, games, solve
from uctree.arena import rate
from uctree.errors import UctreeError
from uctree.learn import diagnosis, exact, ladder, together
from uctree.learn.options import make_options
from uctree.learn.run import Run

pytest.importorskip("safetensors", reason="the extra learn is not installed")


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.fixture(scope="module")
def options(game):
    return make_options(game, num_simulations=20, ladder_games=6)


def constant(game, logits=None):
    """A network that has learned nothing: the same for all states."""

    def answer(observations):
        row = np.zeros(game.num_actions) if logits is None else logits
        n = len(observations)
        return np.tile(row, (n, 1)).astype(np.float32), np.zeros((n, game.num_players), np.float32)

    return evaluators.network(answer, name="constant")


@pytest.fixture(scope="module")
def perfect(game):
    """A network that knows the game by heart."""
    solution, known, seen = solve(game), {}, set()
    states = [game.start()]
    for state in states:
        if game.key(state) in seen:
            continue
        seen.add(game.key(state))
        player = game.to_play(state)
        shown = game.observation(state, player).tobytes()
        logits = np.full(game.num_actions, -20.0)
        values = action_values(game, state, solution.value_of)
        best = max(value[player] for value in values)
        for action, value in zip(game.legal(state), values, strict=True):
            after, _ = game.step(state, action)
            if value[player] == best:
                logits[action] = 0.0
            if not game.is_over(after):
                states.append(after)
        known[shown] = logits, best

    def answer(observations):
        rows = [known[each.tobytes()] for each in observations]
        values = np.array([value for _, value in rows])
        return (
            np.array([logits for logits, _ in rows], np.float32),
            np.stack([values, -values], axis=1).astype(np.float32),
        )

    return evaluators.network(answer, name="perfect")


# --- the whole measurement -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(game, options, perfect):
    """A perfect network, after one that knows nothing."""
    told = []
    found = ladder.measure(
        game, perfect, options, past=constant(game), seed=5,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    return found, told


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


def test_a_perfect_network_keeps_every_result_with_and_without_search(measured):
    found = measured[0]["exact"]
    assert (found["source"], found["raw"], found["search"]) == ("solved", 1.0, 1.0)


def test_progress_counts_every_game_and_exact_play(measured):
    total = 6 * 6 + 1  # five opponents and itself, then exact play
    assert measured[1] == [(done, total) for done in range(1, total + 1)]


def test_the_numbers_are_json_and_leave_room_for_what_the_run_adds(measured):
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


def test_a_network_that_knows_nothing_is_measured_as_that(game, options):
    found = ladder.measure(game, constant(game), options)
    (row,) = found["diagnosis"]["reliability"]
    assert row["predicted"] == 0.0
    assert found["diagnosis"]["value_error"] == abs(row["outcome"])
    assert 0 < found["diagnosis"]["search_entropy"] < found["diagnosis"]["entropy"] < math.log(9)
    assert 0 < found["diagnosis"]["changed"] < 1
    assert found["exact"]["raw"] < 0.6 < found["exact"]["search"] < 1.0


def test_asking_for_no_games_is_refused(game):
    with pytest.raises(UctreeError, match="ladder_games=0"):
        ladder.measure(game, constant(game), make_options(game, ladder_games=0))


def test_with_three_players_the_opponent_has_the_other_two_seats():
    game = games.n_in_a_row(3, 3, 3, num_players=3)
    options = make_options(game, num_simulations=20, ladder_games=6)
    found = ladder.measure(game, constant(game), options)
    assert found["games"]["random"]["games"] == 6  # one opening in all six seatings
    assert np.sum(found["games"]["random"]["points"]) == 2 * 6
    assert found["diagnosis"]["games"] == 6


def test_a_player_alone_is_compared_by_returns_with_the_same_dice():
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


# --- many at a time ------------------------------------------------------------------------------


def test_games_are_the_same_however_many_are_played_at_once(game, options, perfect):
    def played(most):
        network = together.Searches(game, perfect, options)
        tasks = ladder.schedule(game, 2, 8, 2, 0)
        plays = []
        for task in tasks:
            play = together.Play(game, task, {})
            play.sources.update(network=together.network_seat(network, play.notes), random="random")
            plays.append(play)
        together.play_together(plays, most, lambda: None)
        return [(play.ended.actions, [note.ply for note in play.notes]) for play in plays]

    assert played(1) == played(3) == played(64)


def test_a_search_of_many_states_is_each_state_searched(game, options, perfect):
    searches = together.Searches(game, perfect, options)
    states = [game.play(actions) for actions in itertools.permutations(range(4), 3)] * 4
    roots = searches.roots(states, range(len(states)))
    assert len(states) > searches.forest.num_trees
    for state, root in zip(states, roots, strict=True):
        assert root.actions.tolist() == game.legal(state)
        assert root.visits.sum() == options.num_simulations
    assert [root.visits.tolist() for root in roots[:24]] == [
        root.visits.tolist() for root in roots[24:48]
    ]


def test_priors_without_search_are_a_softmax_over_legal_actions(game):
    logits = np.log(np.arange(1.0, 10.0))
    priors, values = together.predict(game, constant(game, logits), [game.play([8, 0])])
    assert priors[0] == pytest.approx(np.array([0, 2, 3, 4, 5, 6, 7, 8, 0]) / 35)
    assert values.tolist() == [[0.0, 0.0]]


def test_what_is_not_a_network_is_refused(game, options):
    judge = evaluators.python(lambda states: np.zeros((len(states), 2)))
    with pytest.raises(UctreeError, match="is not a network"):
        together.predict(game, judge, [game.start()])


# --- diagnosis -----------------------------------------------------------------------------------


def test_the_positions_of_one_game_do_not_make_an_interval_narrower():
    rng = np.random.default_rng(0)
    outcomes, edges = rng.choice([-1.0, 1.0], 20), np.array([-1.0, 1.0])

    def width(times):
        (row,) = diagnosis.reliability(
            np.zeros(20 * times), np.repeat(outcomes, times), np.repeat(np.arange(20), times), edges
        )
        low, high = row["outcome_interval"]
        assert low < row["outcome"] < high
        return high - low

    assert width(1) == pytest.approx(width(7))


def test_of_one_game_alone_no_interval_is_known():
    rows = diagnosis.reliability(
        np.array([0.2, 0.3]), np.array([1.0, 1.0]), np.zeros(2), np.array([-1.0, 1.0])
    )
    assert rows[0]["outcome_interval"] is None


def test_values_beyond_the_range_are_in_the_last_bin():
    edges = np.array([0.0, 1.0, 2.0])
    rows = diagnosis.reliability(np.array([-5.0, 7.0]), np.zeros(2), np.arange(2), edges)
    assert [(row["low"], row["positions"]) for row in rows] == [(0.0, 1), (1.0, 1)]


# --- exact play ----------------------------------------------------------------------------------


def test_all_states_with_something_to_lose_are_there_and_brute_force_keeps_the_same(game):
    positions, memo, expected = exact.exact_positions(game), {}, {}
    maxn(game, game.start(), memo)
    states = {game.key(game.start()): game.start()}
    for key in memo:  # the keys of all states, those that are over included
        state = game.copy(game.start())
        for name in game.key_fields:
            size = np.asarray(state[name]).nbytes
            state[name], key = np.frombuffer(key[:size], state[name].dtype)[0], key[size:]
        states[game.key(state)] = state
    for key, state in states.items():
        player = game.to_play(state)
        if player < 0:
            continue
        values = action_values(game, state, lambda after: memo[game.key(after)])
        best = max(value[player] for value in values)
        pairs = zip(game.legal(state), values, strict=True)
        kept = [action for action, value in pairs if value[player] == best]
        if len(kept) < len(values):
            expected[key] = kept
    found = zip(positions.states, positions.kept, strict=True)
    assert {game.key(state): np.flatnonzero(row).tolist() for state, row in found} == expected


def test_large_games_have_no_exact_positions():
    assert exact.exact_positions(games.othello(size=6)) is None
    assert exact.exact_positions(games.connect_four(rows=5, cols=5)) is None


@pytest.mark.peer
def test_positions_of_connect_four_are_distinct_and_kept_actions_are_those_a_solver_keeps():
    pytest.importorskip("bitbully", reason="bitbully is not installed")
    game = games.connect_four()
    positions = exact.exact_positions(game, num_positions=30, seed=2)
    assert positions.source == "bitbully"
    assert len({game.key(state) for state in positions.states}) == 30
    late = 0
    for state, row in zip(positions.states, positions.kept, strict=True):
        plies = bin(int(state["taken"])).count("1")
        assert 4 <= plies <= 30
        if plies < 24:
            continue
        late += 1
        player = game.to_play(state)
        values = {a: v[player] for a, v in solve(game, state).action_values.items()}
        assert set(np.flatnonzero(row)) == {a for a in values if values[a] == max(values.values())}
    assert late >= 3


def test_where_bitbully_is_missing_the_numbers_say_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    game = games.connect_four()
    found = exact.agreement(game, constant(game), make_options(game))
    assert set(found) == {"missing"}
    assert "pip install bitbully" in found["missing"]


def test_the_interval_of_a_sample_is_around_its_share():
    kept = np.array([[True, False]] * 8 + [[False, True]] * 2)
    sample = exact.ExactPositions([None] * 10, kept, "bitbully")
    assert sample.share_kept([0] * 10) == 0.8
    low, high = sample.interval([0] * 10)
    assert 0.3 < low < 0.8 < high <= 1.0
    assert exact.ExactPositions([None] * 10, kept, "solved").interval([0] * 10) is None


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


def test_measurements_that_going_back_made_void_are_not_rated(rated_run, game):
    with Run.begin(rated_run.folder, game) as run:
        run.log("resumed", iteration=10)
        assert "iteration 20" not in ladder.ratings(run).agents


def test_without_games_or_with_one_player_nobody_is_rated(tmp_path, game):
    with Run.begin(tmp_path / "new", game) as run:
        assert ladder.ratings(run) is None
    with Run.begin(tmp_path / "alone", games.twenty48(max_tile=16)) as run:
        run.log("ladder", iteration=10, past=None, games={"random": {"mean_return": 3.0}})
        assert ladder.ratings(run) is None
