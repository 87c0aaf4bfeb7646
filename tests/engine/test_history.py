"""What a search remembers of its course: bounded, true, and without a trace in the tree."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import evaluators, games
from uctree.engine import history
from uctree.engine.driver import TreeSearch


def search(**options):
    game = games.connect_four()
    given = {"num_simulations": 3_000, "seed": 1} | options
    return uctree.search(game, game.start(), **given)


@pytest.mark.parametrize(
    "options",
    [{}, {"transpositions": True}, {"threads": 2, "parallel": "root"}, {"solver": True}],
    ids=str,
)
def test_the_history_ends_with_the_result_and_its_visits_add_up(options):
    result = search(**options)
    rows = result.history
    assert rows["simulations"][-1] == result.simulations == 3_000
    assert np.all(np.diff(rows["simulations"]) > 0)
    assert np.all(np.diff(rows["seconds"]) >= 0)
    assert rows["visits"].sum(axis=1).tolist() == rows["simulations"].tolist()
    np.testing.assert_array_equal(rows["visits"][-1], result.edges["visits"])
    np.testing.assert_allclose(rows["q"][-1], result.edges["q"])


def test_a_moment_of_the_history_is_what_a_search_of_that_length_finds():
    rows = search().history
    assert len(rows) >= 5
    for row in rows[1:]:
        shorter = search(num_simulations=int(row["simulations"]))
        np.testing.assert_array_equal(row["visits"], shorter.edges["visits"])
        np.testing.assert_allclose(row["q"], shorter.edges["q"])


def test_the_moments_of_shared_nodes_have_the_values_of_that_time():
    rows = search(transpositions=True).history
    middle = rows[len(rows) // 2]
    shorter = search(transpositions=True, num_simulations=int(middle["simulations"]))
    np.testing.assert_allclose(middle["q"], shorter.edges["q"])


def test_looking_does_not_change_the_tree(monkeypatch):
    seen = search()
    monkeypatch.setattr(history.Samples, "note", lambda *_: None)
    monkeypatch.setattr(TreeSearch, "FIRST_PIECES", 1 << 40)
    unseen = search()
    used = unseen.tree.num_edges + 1
    assert seen.tree.edges[:used].tobytes() == unseen.tree.edges[:used].tobytes()
    assert len(unseen.history) == 1


def test_a_history_that_goes_on_counts_its_own_simulations():
    first = search()
    second = search(tree=first.tree, num_simulations=2_000)
    assert second.history["simulations"][-1] == 2_000
    assert second.history["visits"][0].sum() == 3_000 + second.history["simulations"][0]


def test_samples_are_thinned_out_evenly():
    result = search(num_simulations=100)
    samples = history.Samples()
    for moment in range(1, 1_001):
        samples.note(result.tree, moment, float(moment))
    sampled = [sample.simulations for sample in samples.moments]
    assert history.MOST_SAMPLES // 2 <= len(sampled) <= history.MOST_SAMPLES
    assert len(set(np.diff(sampled).tolist())) == 1


def test_large_roots_are_sampled_less_often(monkeypatch):
    monkeypatch.setattr(history, "MOST_BYTES", 0)
    result = search(num_simulations=100)
    samples = history.Samples()
    for moment in range(1, 101):
        samples.note(result.tree, moment, float(moment))
    assert len(samples.moments) <= history.FEWEST_SAMPLES


def test_edges_that_came_later_have_no_visits_before():
    game = games.n_in_a_row(rows=7, cols=7)  # more than 32 actions: edges come one by one
    result = uctree.search(game, game.start(), num_simulations=200, seed=1)
    first = result.history[0]
    assert len(first["visits"]) == len(result.edges)
    assert first["visits"].sum() == first["simulations"]


def test_an_episode_that_is_over_has_a_history_of_one_moment():
    game = games.tic_tac_toe()
    result = uctree.search(game, game.play([0, 3, 1, 4, 2]), num_simulations=10)
    assert result.history["simulations"].tolist() == [0]


def test_a_slow_search_is_seen_at_every_piece():
    # Pieces grow by a factor of eight at most: 1 + 8 + 64 + 512 are fewer than 600.
    evaluator = evaluators.playout(num_playouts=200)
    rows = search(num_simulations=600, evaluator=evaluator).history
    assert len(rows) >= 5
