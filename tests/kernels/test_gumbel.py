"""Gumbel search: its formulas by hand, by brute force, and as machine code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uctree.engine.compile import compile_kernel
from uctree.game import make_rng
from uctree.kernels import gumbel

DEFAULTS = np.array([50.0, 0.1, 1.0])


# --- the formulas once more, straight from the page ----------------------------------------------


def plain_sigma(q, prior, visits, raw_value, c_visit, c_scale, rescale):
    taken = visits > 0
    floored = np.maximum(prior, np.finfo(float).tiny)
    completion = raw_value
    if taken.any():
        mean = (floored[taken] * q[taken]).sum() / floored[taken].sum()
        completion = (raw_value + visits.sum() * mean) / (1 + visits.sum())
    completed = np.where(taken, q, completion)
    if rescale:
        completed = (completed - completed.min()) / max(np.ptp(completed), 1e-8)
    return (c_visit + visits.max()) * c_scale * completed


def plain_logits(prior):
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(prior), -1e300)


def plain_policy(prior, sigma):
    logits = plain_logits(prior) + sigma
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def plain_root_scores(prior, visits, noise, considered, sigma):
    logits = plain_logits(prior)
    scores = np.maximum(-1e9, noise + (logits - logits.max()) + sigma)
    return np.where(visits == considered, scores, -np.inf)


def drawn_noise(seed, count, scale=1.0):
    noise = np.zeros(count)
    with np.errstate(over="ignore"):
        gumbel.write_noise(make_rng(seed), count, scale, noise)
    return noise


def draws_of(noise, prior):
    draws = np.zeros(len(prior))
    gumbel.write_draws(len(prior), noise, prior, draws)
    return draws


def random_node(rng):
    """Edges as a search may meet them: some never taken, some of prior 0, some alike."""
    count = int(rng.integers(1, 12))
    prior = rng.exponential(size=count) ** 2 * (rng.random(count) < 0.9)
    prior = np.full(count, 1.0) if prior.sum() == 0.0 or rng.random() < 0.2 else prior
    visits = rng.integers(0, rng.choice([1, 2, 10, 20_000]), count)
    q = rng.choice([rng.normal(size=count), rng.integers(-1, 2, count) * 1.0])
    q[visits == 0] = np.nan  # nobody may read it
    parameters = np.array([rng.choice([0.0, 50.0]), rng.choice([0.1, 1.0]), rng.integers(2)])
    return count, q, prior / prior.sum(), visits, float(rng.normal()), parameters


@pytest.fixture(scope="module", params=["plain", "compiled"])
def choose(request):
    """`choose_interior` and `choose_root`, as they are and as machine code."""
    if request.param == "plain":
        return gumbel.choose_interior, gumbel.choose_root
    x, n = np.zeros(3), np.zeros(3, np.int64)
    interior = (3, x, x, n, 0.0, x, x, 0.0)
    root = (3, x, x, n, 0.0, x, 0, x, x)
    return tuple(
        compile_kernel(function, {}, arguments, label=function.__name__).call
        for function, arguments in ((gumbel.choose_interior, interior), (gumbel.choose_root, root))
    )


# --- edges that are considered -------------------------------------------------------------------


def test_three_edges_share_eight_simulations():
    assert gumbel.halving_schedule(3, 8).tolist() == [0, 0, 0, 1, 1, 2, 2, 3]


def test_a_single_edge_gets_every_simulation():
    assert gumbel.halving_schedule(1, 5).tolist() == [0, 1, 2, 3, 4]
    assert gumbel.halving_schedule(0, 3).tolist() == [0, 1, 2]


def test_no_simulations_make_an_empty_schedule():
    assert gumbel.halving_schedule(16, 0).tolist() == []


@given(m=st.integers(1, 70), n=st.integers(0, 700))
def test_a_schedule_is_exactly_used_up_and_always_finds_an_edge(m, n):
    schedule = gumbel.halving_schedule(m, n)
    assert schedule.dtype == np.int64
    assert len(schedule) == n
    visits = np.zeros(m, int)
    for considered in schedule:
        visits[np.flatnonzero(visits == considered)[0]] += 1  # earlier edges count as better
    assert visits.sum() == n
    assert np.count_nonzero(visits) == min(m, n)
    assert (np.diff(visits) <= 0).all()


@given(m=st.integers(2, 40), n=st.integers(1, 400))
def test_the_edges_that_go_on_are_halved_in_every_phase(m, n):
    counts = np.bincount(gumbel.halving_schedule(m, n))[:-1]  # the last round may be cut short
    allowed = {m}
    while min(allowed) > 2:
        allowed.add(max(2, min(allowed) // 2))
    assert (np.diff(counts) <= 0).all()
    assert set(counts.tolist()) <= allowed


def test_noise_draws_edges_by_their_priors():
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    noise = drawn_noise(3, 80_000).reshape(-1, 4)
    order = np.argsort(-(noise + np.log(prior)), axis=1)
    first = np.bincount(order[:, 0], minlength=4) / len(order)
    assert first == pytest.approx(prior, abs=0.012)
    second = np.bincount(order[order[:, 0] == 0, 1], minlength=4) / np.sum(order[:, 0] == 0)
    assert second[1:] == pytest.approx(prior[1:] / 0.5, abs=0.02)


def test_noise_is_multiplied_by_its_scale():
    none, one, two = (drawn_noise(1, 5, scale) for scale in (0.0, 1.0, 2.0))
    assert (two == 2 * one).all()
    assert not none.any()


def test_the_edges_considered_are_those_the_schedule_takes_first():
    rng = np.random.default_rng(5)
    for _ in range(50):
        prior, noise = rng.dirichlet(np.ones(9)), rng.gumbel(size=9)
        visits, taken = np.zeros(9, np.int64), []
        for considered in gumbel.halving_schedule(4, 4):
            q, scratch = np.zeros(9), np.zeros(9)
            draws = draws_of(noise, prior)
            edge = gumbel.choose_root(
                9, q, prior, visits, 0.2, draws, considered, DEFAULTS, scratch
            )  # fmt: skip
            visits[edge] += 1
            taken.append(edge)
        assert taken == gumbel.considered_edges(noise, prior, 4).tolist()


def test_of_equal_edges_the_first_are_considered():
    assert gumbel.considered_edges(np.zeros(4), np.full(4, 0.25), 2).tolist() == [0, 1]


def test_an_edge_of_prior_zero_is_considered_last():
    noise = np.array([30.0, 0.0, 0.0])
    assert gumbel.considered_edges(noise, np.array([0.0, 0.5, 0.5]), 3).tolist() == [1, 2, 0]


def test_a_list_of_edges_is_sorted_as_a_stable_sort_would():
    rng = np.random.default_rng(7)
    for _ in range(300):
        prior, noise = rng.dirichlet(np.ones(12)), rng.integers(0, 3, 12) * 1.0
        prior = np.full(12, 1 / 12) if rng.random() < 0.5 else prior
        most = int(rng.integers(0, 15))
        expected = np.argsort(-(noise + np.log(prior)), kind="stable")[:most]
        assert gumbel.considered_edges(noise, prior, most).tolist() == expected.tolist()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_exponentials_are_right_to_the_last_digits(is_compiled):
    def write(x, out):
        for i in range(len(x)):
            out[i] = gumbel.exp_below(x[i])

    write.__module__ = "uctree.kernels.gumbel"  # compiled as a kernel
    x = -np.concatenate([np.linspace(0, 708, 4001), np.logspace(-20, 0, 500), [0.0]])
    out = np.zeros(len(x))
    call = compile_kernel(write, {}, (x, out), label="exponentials").call if is_compiled else write
    call(x, out)
    assert out == pytest.approx([math.exp(each) for each in x], rel=7e-16, abs=0)
    assert out[-1] == 1.0
    none = np.array([-708.1, -1e9, -math.inf])
    call(none, out)
    assert out[:3].tolist() == [0.0, 0.0, 0.0]


# --- values --------------------------------------------------------------------------------------


def test_without_visits_the_mixed_value_is_the_evaluation():
    x = np.full(2, np.nan)
    assert gumbel.mixed_value(2, x, np.array([0.5, 0.5]), np.zeros(2, int), 0.3) == 0.3


def test_visited_edges_of_prior_zero_weigh_alike_in_the_mixed_value():
    q, prior = np.array([0.2, 0.6, 9.0]), np.array([0.0, 0.0, 1.0])
    value = gumbel.mixed_value(3, q, prior, np.array([1, 3, 0]), 0.4)
    assert value == pytest.approx((0.4 + 4 * 0.4) / 5)


def test_equal_values_leave_the_priors():
    prior = np.array([0.2, 0.3, 0.5])
    policy = gumbel.improved_policy(np.full(3, 0.7), prior, np.array([2, 2, 2]), 0.7)
    assert policy == pytest.approx(prior)


def test_rescaled_values_do_not_depend_on_the_scale_of_payoffs():
    q, prior, visits = np.array([0.1, 0.5, 0.0]), np.array([0.6, 0.3, 0.1]), np.array([3, 1, 0])
    one = gumbel.transformed_q(q, prior, visits, 0.2)
    assert gumbel.transformed_q(1000 * q + 7, prior, visits, 207.0) == pytest.approx(one)


def test_the_policy_is_the_softmax_of_log_priors_and_sigma():
    rng = np.random.default_rng(8)
    for _ in range(300):
        _, q, prior, visits, raw_value, parameters = random_node(rng)
        sigma = plain_sigma(q, prior, visits, raw_value, *parameters)
        got = gumbel.transformed_q(q, prior, visits, raw_value, *parameters)
        assert got == pytest.approx(sigma, rel=1e-12, abs=1e-12)
        policy = gumbel.improved_policy(q, prior, visits, raw_value, *parameters)
        assert policy == pytest.approx(plain_policy(prior, sigma), rel=1e-9, abs=1e-12)


def test_huge_values_and_small_priors_make_a_policy_without_nan():
    q, visits = np.array([1e6, 0.0, -1e6]), np.array([9, 9, 0])
    for prior in ([0.0, 1.0, 0.0], [1e-300, 1.0, 1e-300], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]):
        policy = gumbel.improved_policy(q, np.array(prior), visits, 0.0, c_scale=1e3, rescale=False)
        assert policy.sum() == pytest.approx(1.0)
        assert (policy[np.array(prior) == 0.0] == 0.0).all()


@st.composite
def policies_and_values(draw):
    count = draw(st.integers(1, 8))
    logits = draw(st.lists(st.floats(-6, 6), min_size=count, max_size=count))
    q = draw(st.lists(st.floats(-1, 1), min_size=count, max_size=count))
    visits = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    weights = np.exp(logits)
    return weights / weights.sum(), np.array(q), np.array(visits)


@given(
    node=policies_and_values(),
    c_visit=st.floats(0, 100),
    c_scale=st.floats(0, 2),
    rescale=st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=300)
def test_completed_by_the_value_of_the_prior_the_policy_is_worth_no_less(
    node, c_visit, c_scale, rescale
):
    prior, q, visits = node
    out = np.zeros(len(q))
    edges = gumbel.Completed(len(q), q, prior, visits, prior @ q)
    total = gumbel.improve(edges, (c_visit, c_scale, rescale), out)
    assert out @ q / total >= prior @ q - 1e-12


# --- edges that are taken ------------------------------------------------------------------------


def test_below_the_root_the_chosen_edge_has_the_largest_score(choose):
    choose_interior, _ = choose
    rng = np.random.default_rng(1)
    for _ in range(2000):
        count, q, prior, visits, raw_value, parameters = random_node(rng)
        policy = plain_policy(prior, plain_sigma(q, prior, visits, raw_value, *parameters))
        scores = policy - visits / (1 + visits.sum())
        edge = choose_interior(
            count, q, prior, visits, raw_value, parameters, np.full(count, np.nan), 0.0
        )
        assert scores[edge] >= scores.max() - 1e-11
        if np.sum(scores >= scores.max() - 1e-11) == 1:
            assert edge == np.argmax(scores)


def test_of_edges_never_taken_the_likeliest_is_all_that_need_be_shown(choose):
    choose_interior, _ = choose
    rng = np.random.default_rng(9)
    for _ in range(2000):
        count, q, prior, visits, raw_value, parameters = random_node(rng)
        scratch = np.zeros(count)
        edge = choose_interior(count, q, prior, visits, raw_value, parameters, scratch, 0.0)
        shown = np.flatnonzero(visits > 0)
        if (visits == 0).any():
            shown = np.append(shown, np.argmax(np.where(visits == 0, prior, -1.0)))
        rest = prior.sum() - prior[shown].sum()
        found = choose_interior(
            len(shown), q[shown], prior[shown], visits[shown], raw_value, parameters, scratch,
            float(rest),
        )  # fmt: skip
        if shown[found] != edge:  # they tie, but for rounding
            policy = plain_policy(prior, plain_sigma(q, prior, visits, raw_value, *parameters))
            scores = policy - visits / (1 + visits.sum())
            assert scores[shown[found]] == pytest.approx(scores[edge], abs=1e-11)


def test_at_the_root_the_chosen_edge_has_the_largest_score(choose):
    _, choose_root = choose
    rng = np.random.default_rng(2)
    for _ in range(2000):
        count, q, prior, visits, raw_value, parameters = random_node(rng)
        noise, considered = rng.gumbel(size=count), int(rng.choice(visits))
        sigma = plain_sigma(q, prior, visits, raw_value, *parameters)
        scores = plain_root_scores(prior, visits, noise, considered, sigma)
        scratch = np.full(count, np.nan)
        edge = choose_root(
            count, q, prior, visits, raw_value, draws_of(noise, prior), considered, parameters,
            scratch,
        )  # fmt: skip
        assert visits[edge] == considered
        assert scores[edge] >= scores.max() - 1e-9
        if np.sum(scores >= scores.max() - 1e-9) == 1:
            assert edge == np.argmax(scores)


def test_machine_code_and_python_choose_alike():
    """Also where edges tie: both compute the same numbers."""
    x, n = np.zeros(3), np.zeros(3, np.int64)
    compiled = compile_kernel(
        gumbel.choose_interior, {}, (3, x, x, n, 0.0, x, x, 0.0), label="choose_interior"
    ).call
    rng = np.random.default_rng(4)
    for _ in range(500):
        count = int(rng.integers(2, 9))
        node = (
            count, rng.integers(-1, 2, count) * 1.0, np.full(count, 1 / count),
            rng.integers(0, 3, count), 0.0, DEFAULTS,
        )  # fmt: skip
        plain = gumbel.choose_interior(*node, np.zeros(count), 0.0)
        assert compiled(*node, np.zeros(count), 0.0) == plain


def test_a_fresh_node_follows_its_priors(choose):
    choose_interior, _ = choose
    nothing, visits = np.full(4, np.nan), np.zeros(4, np.int64)
    prior = np.array([0.2, 0.3, 0.3, 0.2])
    assert choose_interior(4, nothing, prior, visits, 0.5, DEFAULTS, np.zeros(4), 0.0) == 1


def test_equal_edges_are_taken_in_turn(choose):
    choose_interior, _ = choose
    visits, taken = np.zeros(3, np.int64), []
    for _ in range(7):
        edge = choose_interior(
            3, np.zeros(3), np.full(3, 1 / 3), visits, 0.0, DEFAULTS, np.zeros(3), 0.0
        )
        visits[edge] += 1
        taken.append(int(edge))
    assert taken == [0, 1, 2, 0, 1, 2, 0]


def test_visits_below_the_root_follow_the_improved_policy():
    prior, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    parameters, visits = np.array([1.0, 0.0, 1.0]), np.zeros(4, np.int64)  # so that P stays π'
    for _ in range(1000):
        visits[gumbel.choose_interior(4, q, prior, visits, 0.0, parameters, np.zeros(4), 0.0)] += 1
    assert visits / 1000 == pytest.approx(prior, abs=2e-3)


def test_where_no_edge_has_the_visits_considered_the_nearest_is_taken(choose):
    _, choose_root = choose
    visits, prior = np.array([9, 4, 1], np.int64), np.array([0.4, 0.3, 0.3])
    node = (3, np.zeros(3), prior, visits, 0.0, draws_of(np.zeros(3), prior))
    chosen = [int(choose_root(*node, n, DEFAULTS, np.zeros(3))) for n in (0, 3, 100)]
    assert chosen == [2, 1, 0]


def test_the_edge_played_is_the_best_of_the_most_visited(choose):
    _, choose_root = choose
    prior, visits = np.full(3, 1 / 3), np.array([6, 6, 2], np.int64)
    node = (3, np.array([0.1, 0.2, 0.9]), prior, visits, 0.0)

    def played(noise):
        return int(choose_root(*node, draws_of(np.array(noise), prior), 6, DEFAULTS, np.zeros(3)))

    assert played([0.0, 0.0, 0.0]) == 1
    assert played([5.0, 0.0, 0.0]) == 0


# --- the regularised policy ----------------------------------------------------------------------


@given(node=policies_and_values(), weight=st.floats(1e-6, 100))
def test_the_regularised_policy_adds_up_and_solves_its_equation(node, weight):
    prior, q, _ = node
    policy, alpha = gumbel.regularised_policy(q, prior, weight)
    # The root lies so near to the largest q that their difference has few digits left.
    assert policy.sum() == pytest.approx(1.0, abs=1e-5)
    assert max(q + weight * prior) - 1e-12 <= alpha <= max(q) + weight + 1e-12
    assert policy == pytest.approx(weight * prior / (alpha - q))


def test_the_regularised_policy_is_the_best_of_its_kind():
    rng = np.random.default_rng(6)
    q, prior, weight = rng.normal(size=5), rng.dirichlet(np.ones(5)), 0.3

    def worth(policy):
        return q @ policy - weight * (prior @ np.log(prior / policy))

    best = worth(gumbel.regularised_policy(q, prior, weight)[0])
    assert all(worth(rng.dirichlet(np.ones(5))) < best for _ in range(200))


def test_visits_at_which_puct_scores_all_alike_are_the_regularised_policy():
    visits, prior, c = np.array([3, 0, 12]), np.array([0.5, 0.2, 0.3]), 1.25
    total = visits.sum()
    q = 0.7 - c * prior * math.sqrt(total) / (1 + visits)  # every score is 0.7
    policy, alpha = gumbel.regularised_policy(q, prior, c * math.sqrt(total) / (3 + total))
    assert policy == pytest.approx((1 + visits) / (3 + total))
    assert alpha == pytest.approx(0.7)


def test_an_action_of_prior_zero_stays_out_of_the_regularised_policy():
    policy, _ = gumbel.regularised_policy(np.array([5.0, 0.1, 0.0]), np.array([0.0, 0.5, 0.5]), 0.2)
    assert policy[0] == 0.0
    assert policy.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_that_is_no_positive_number_is_refused(weight):
    with pytest.raises(ValueError, match=r"weight must be a number above 0; got"):
        gumbel.regularised_policy(np.zeros(2), np.array([0.5, 0.5]), weight)
