"""Ratings: against choix, against formulas, and the coverage of the intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uctree import UctreeError
from uctree.arena import Sprt, bradley_terry, expected_score, placement_scores, rate
from uctree.arena.ratings import (
    PER_NAT,
    log_likelihood_ratio,
    mean_interval,
    pairwise_points,
    small_sample_factor,
    superiority,
    wald_bounds,
)


def round_robin(rng, elo, num_openings, draws=0.3, luck=0.0):
    """Points of a simulated match: each pair plays each opening from both sides.

    Args:
        draws: how often a game is drawn, at most.
        luck: by how many Elo points openings favour a seat, as a standard deviation; scores are
            then averaged over it.
    """
    n = len(elo)
    points = np.zeros((num_openings, n, n))
    favour = luck * rng.standard_normal(num_openings)
    for i in range(n):
        for j in range(i):
            for side in (1.0, -1.0):
                score = 1.0 / (1.0 + np.exp(-(elo[i] - elo[j] + side * favour) / PER_NAT))
                drawn = np.minimum(draws, 1.8 * np.minimum(score, 1.0 - score))
                u = rng.random(num_openings)
                won = (u < score - drawn / 2) + 0.5 * (abs(u - score) <= drawn / 2)
                points[:, i, j] += won
                points[:, j, i] += 1.0 - won
    return points


# --- scores and ratings --------------------------------------------------------------------------


def test_a_game_of_two_scores_one_a_half_or_nothing():
    assert placement_scores([1.0, -1.0]).tolist() == [1.0, 0.0]
    assert placement_scores([0.0, 0.0]).tolist() == [0.5, 0.5]


def test_scores_of_a_game_add_up_to_half_the_number_of_players():
    rng = np.random.default_rng(1)
    for n in range(2, 7):
        returns = rng.integers(0, 3, n)
        assert placement_scores(returns).sum() == pytest.approx(n / 2)
        table = pairwise_points(returns)
        assert (table + table.T == 1.0 - np.eye(n)).all()


def test_two_agents_are_as_far_apart_as_the_odds_say():
    for won, lost in ((3, 1), (10, 7), (1, 99)):
        r = bradley_terry(np.array([[0.0, won], [lost, 0.0]]), regularisation=0)
        assert r[0] - r[1] == pytest.approx(400 * math.log10(won / lost))
        assert expected_score(r[0] - r[1]) == pytest.approx(won / (won + lost))


@pytest.mark.peer
def test_ratings_are_those_of_choix():
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(3)
    for n in (2, 4, 7):
        won = rng.integers(1, 30, (n, n)).astype(float)
        np.fill_diagonal(won, 0)
        pairs = [(i, j) for i in range(n) for j in range(n) for _ in range(int(won[i, j]))]
        theirs = choix.opt_pairwise(n, pairs, alpha=0.0, tol=1e-12) * PER_NAT
        ours = bradley_terry(won, regularisation=0.0)
        assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-3)
        spectral = choix.ilsr_pairwise_dense(won, alpha=0.0, tol=1e-12) * PER_NAT
        assert ours == pytest.approx(spectral - spectral.mean(), abs=1e-5)


def test_ratings_expect_as_many_points_as_were_won():
    rng = np.random.default_rng(5)
    won = rng.integers(0, 20, (6, 6)) * 0.5 + 0.5
    np.fill_diagonal(won, 0)
    r = bradley_terry(won, regularisation=0.0)
    expected = [
        sum((won[i, j] + won[j, i]) * expected_score(r[i] - r[j]) for j in range(6) if j != i)
        for i in range(6)
    ]
    assert expected == pytest.approx(won.sum(axis=1))


def test_a_long_chain_of_wins_can_be_rated_only_if_it_closes():
    n = 9
    won = np.zeros((n, n))
    won[range(n - 1), range(1, n)] = 1.0
    with pytest.raises(UctreeError, match="ratings are infinite"):
        bradley_terry(won, regularisation=0.0)
    won[n - 1, 0] = 1.0
    assert bradley_terry(won, regularisation=0.0) == pytest.approx(np.zeros(n), abs=1e-6)


def test_many_tables_are_rated_at_once():
    rng = np.random.default_rng(2)
    tables = rng.random((5, 3, 3)) * (1 - np.eye(3))
    assert bradley_terry(tables) == pytest.approx(np.array([bradley_terry(t) for t in tables]))


def test_nothing_but_wins_is_finite_with_regularisation_and_refused_without():
    won = np.array([[0.0, 50.0], [0.0, 0.0]])
    assert bradley_terry(won)[0] == pytest.approx(200 * math.log10(50.5 / 0.5))
    with pytest.raises(UctreeError, match=r"only wins, or only losses.*regularisation= above 0"):
        bradley_terry(won, regularisation=0.0)


def test_extreme_records_converge():
    won = np.array([[0, 1e6, 1e6], [1, 0, 1e6], [1, 1, 0]], float)
    r = bradley_terry(won, regularisation=0.0)
    assert np.isfinite(r).all()
    assert r[0] > r[1] > r[2]
    with pytest.raises(UctreeError, match=r"finite and not negative; got -1e\+06 to -1"):
        bradley_terry(-won - np.eye(3))
    with pytest.raises(UctreeError, match=r"\[..., n, n\].*got \(2, 3\)"):
        bradley_terry(won[:2])


def test_draws_alone_leave_all_at_zero():
    assert bradley_terry(np.ones((4, 4)) - np.eye(4)) == pytest.approx(np.zeros(4))


# --- intervals -----------------------------------------------------------------------------------


def test_a_record_of_wins_alone_has_the_interval_of_jeffreys():
    points = np.tile([[0.0, 1.0], [0.0, 0.0]], (400, 1, 1))
    rated = rate(points, num_samples=20_000)
    _, low, high = rated.difference(0, 1)
    # The 2.5 % point of Beta(400.5, 0.5) is 0.99374.
    assert expected_score(low) == pytest.approx(0.99374, abs=5e-4)
    assert high > 2_000
    assert rated.superiority[0, 1] == 1.0


def test_superiority_is_close_to_the_formula_for_independent_games():
    wins, losses = 115, 85
    points = np.array([[[0, 1], [0, 0]]] * wins + [[[0, 0], [1, 0]]] * losses, float)
    formula = 0.5 * (1 + math.erf((wins - losses) / math.sqrt(2 * (wins + losses))))
    assert rate(points, num_samples=20_000).superiority[0, 1] == pytest.approx(formula, abs=0.005)


def test_games_of_one_opening_are_not_counted_as_independent():
    wins, losses = np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])
    alike = np.array([wins, losses] * 50)  # an opening decides both its games
    single = np.concatenate([alike, alike]) / 2  # as if each game were an opening
    split = np.tile([[0.0, 1.0], [1.0, 0.0]], (100, 1, 1))  # the seat decides
    widths = [np.diff(rate(points).intervals[0])[0] for points in (alike, single, split)]
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(2), rel=0.05)
    assert widths[2] < 0.2 * widths[1]


def test_intervals_come_out_the_same_with_the_same_seed():
    points = round_robin(np.random.default_rng(1), [0, 50, 100], 30)
    assert (rate(points, seed=3).samples == rate(points, seed=3).samples).all()
    assert (rate(points, seed=4).samples != rate(points, seed=3).samples).any()


def test_an_anchor_moves_ratings_and_not_differences():
    points = round_robin(np.random.default_rng(1), [0, 50, 100], 30)
    free, anchored = rate(points), rate(points, anchor=1)
    assert anchored.elo[1] == 0
    assert anchored.intervals[1].tolist() == [0.0, 0.0]
    assert anchored.difference(0, 2) == pytest.approx(free.difference(0, 2))


def test_the_interval_of_a_mean_is_that_of_student():
    values = np.random.default_rng(1).standard_normal(20)
    low, high = mean_interval(values, num_samples=50_000)
    radius = 2.093 * values.std(ddof=1) / math.sqrt(20)  # t of 19 degrees of freedom
    assert (high - low) / 2 == pytest.approx(radius, rel=0.03)
    assert small_sample_factor(10_000) == pytest.approx(1.0, abs=1e-3)


def test_of_one_value_alone_no_interval_is_known():
    assert mean_interval(np.array([0.7])) == (-np.inf, np.inf)
    assert np.isfinite(mean_interval(np.array([0.7, 0.6]))).all()


def test_superiority_counts_equals_half():
    assert superiority(np.array([[1.0, 1.0], [2.0, 1.0]])).tolist() == [[0.5, 0.75], [0.25, 0.5]]


CASES = {
    "two, equal, 100 games": ([0, 0], 50, 0.0, 0.0),
    "two, 100 apart, 200 games": ([0, 100], 100, 0.3, 0.0),
    "two, 400 apart, 200 games": ([0, 400], 100, 0.1, 0.0),
    "two, openings that favour a seat": ([0, 0], 100, 0.2, 300.0),
    "four, 100 games a pair": ([0, 30, 60, 150], 50, 0.3, 0.0),
}


def coverage(case, runs):
    """How often the interval holds the true difference of the last agent and the first."""
    elo, num_openings, draws, luck = CASES[case]
    rng = np.random.default_rng(11)
    hits = 0
    for run in range(runs):
        points = round_robin(rng, elo, num_openings, draws, luck)
        _, low, high = rate(points, num_samples=1000, seed=run).difference(len(elo) - 1, 0)
        hits += low <= elo[-1] - elo[0] <= high
    return hits / runs


@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_the_truth_about_as_often_as_they_say(case):
    assert 0.88 <= coverage(case, 100) <= 1.0  # 95 % within 3 standard errors of 100 runs


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_the_truth_in_93_to_97_of_100_tournaments(case):
    assert 0.93 <= coverage(case, 1000) <= 0.97


# --- the sequential test -------------------------------------------------------------------------


def test_scores_of_all_or_nothing_give_the_ratio_of_the_binomial():
    p0, p1 = expected_score(0.0), expected_score(80.0)
    plain = 30 * math.log(p1 / p0) + 20 * math.log((1 - p1) / (1 - p0))
    ratio = log_likelihood_ratio([1.0] * 30 + [0.0] * 20, 0.0, 80.0)
    assert ratio == pytest.approx(plain, abs=0.002)


def test_the_ratio_turns_its_sign_with_the_roles():
    scores = [1.0, 0.75, 0.5, 0.5, 0.25, 0.5, 1.0]
    ratio = log_likelihood_ratio(scores, -10.0, 30.0)
    assert log_likelihood_ratio([1 - score for score in scores], 10.0, -30.0) == (
        pytest.approx(ratio)
    )
    assert log_likelihood_ratio(scores, 30.0, -10.0) == pytest.approx(-ratio)
    assert log_likelihood_ratio([], -10.0, 30.0) == pytest.approx(0.0, abs=1e-3)


def test_the_bounds_are_those_of_wald():
    assert wald_bounds(0.05, 0.1) == pytest.approx((math.log(0.1 / 0.95), math.log(0.9 / 0.05)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((20, 0), "sprt needs elo0 < elo1; got 20 and 0"),
        ((0, 20, 0.7), "sprt needs alpha between 0 and 0.5; got 0.7"),
        ((0, 20, 0.05, 0), "sprt needs beta between 0 and 0.5; got 0"),
    ],
)
def test_a_test_that_means_nothing_is_refused(arguments, message):
    with pytest.raises(UctreeError, match=message):
        Sprt(*arguments)


def test_a_score_that_no_pair_of_games_has_is_refused():
    with pytest.raises(UctreeError, match=r"scores of pairs must be 0, 0.25, 0.5, 0.75 or 1; got"):
        Sprt(0, 10).test([0.3])


def run_tests(truth, runs):
    """The mean number of games until [-50, 0] is decided, and how often 0 is accepted."""
    rng, test = np.random.default_rng(7), Sprt(-50, 0)
    win = expected_score(truth)
    games, accepted = 0, 0
    for _ in range(runs):
        scores = []
        while True:
            scores.append(float((rng.random(2) < win).mean()))
            state = test.test(scores)
            if state.decision is not None:
                break
        games += 2 * len(scores)
        accepted += state.decision == "elo1"
    return games / runs, accepted / runs


def test_a_sequential_test_decides_with_about_as_many_games_as_wald_says():
    games, accepted = run_tests(-50, runs=60)
    # Wald: 2.65 nats, at 0.01025 nats a game, are 258 games, and a few more by overshoot.
    assert 190 <= games <= 350
    assert accepted <= 0.17


@pytest.mark.slow
@pytest.mark.parametrize("truth", [-50, 0])
def test_a_sequential_test_errs_as_seldom_as_it_says(truth):
    games, accepted = run_tests(truth, runs=1000)
    assert 240 <= games <= 300
    wrong = accepted if truth == -50 else 1 - accepted
    assert wrong <= 0.07
