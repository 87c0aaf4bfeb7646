"""The formulas of the action principle: proofs by sympy, finite differences, draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from uctree import principle, selection

# --- proofs --------------------------------------------------------------------------------------

K = 3
kappa, b, hbar, N, c, scale = sp.symbols("kappa b hbar N c N_s", positive=True)
n = sp.symbols(f"n0:{K}", positive=True)
p = sp.symbols(f"p0:{K}", positive=True)
Q = sp.symbols(f"Q0:{K}", real=True)
S = kappa * sum((sp.sqrt(n[k]) - p[k] * sp.sqrt(N)) ** 2 for k in range(K)) - b * sum(
    n[k] * Q[k] for k in range(K)
)
h = [kappa * p[k] / 2 * sp.sqrt(N / n[k] ** 3) for k in range(K)]
# Directions with Σ dn = 0, orthogonal and of length 1.
ALONG = sp.Matrix([[1, -1, 0], [1, 1, -2]]).T * sp.diag(1 / sp.sqrt(2), 1 / sp.sqrt(6))


def along_sum(expression, k):
    """The derivative in n_k where N is the sum of the visits: by the chain rule one in N more."""
    return sp.diff(expression, n[k]) + sp.diff(expression, N)


def is_zero(expression):
    return sp.simplify(sp.expand(expression)) == 0


def full_hessian():
    return sp.Matrix(K, K, lambda i, j: along_sum(along_sum(S, i), j))


def test_both_forms_of_the_action_are_one():
    shares = N * sum((sp.sqrt(n[k] / N) - p[k]) ** 2 for k in range(K))
    roots = sum((sp.sqrt(n[k]) - p[k] * sp.sqrt(N)) ** 2 for k in range(K))
    assert is_zero(shares - roots)


def test_the_gradient_for_fixed_total_follows_from_the_action():
    for k in range(K):
        claimed = b * Q[k] + kappa * p[k] * sp.sqrt(N / n[k]) - kappa
        assert is_zero(-sp.diff(S, n[k]) - claimed)


def test_the_total_as_a_sum_adds_the_same_to_every_component():
    shift = kappa * sum(p[k] * sp.sqrt(n[k] / N) - p[k] ** 2 for k in range(K))
    for k in range(K):
        assert is_zero(-along_sum(S, k) + sp.diff(S, n[k]) - shift)


def test_both_hessians_follow_from_the_action():
    for i in range(K):
        for j in range(K):
            fixed = sp.diff(S, n[i], n[j])
            assert is_zero(fixed - (h[i] if i == j else 0))
            full = along_sum(along_sum(S, i), j)
            slope = p[i] / sp.sqrt(N * n[i]) + p[j] / sp.sqrt(N * n[j])
            spread = (
                kappa * sum(p[k] * sp.sqrt(n[k]) for k in range(K)) / (2 * N ** sp.Rational(3, 2))
            )
            assert is_zero(full - (h[i] if i == j else 0) + kappa / 2 * slope - spread)


def test_the_full_hessian_gives_nothing_along_the_visits():
    times = full_hessian() * sp.Matrix(n)
    for k in range(K):
        assert is_zero(times[k].subs(N, sum(n)))


def test_both_hessians_agree_where_the_sum_of_the_visits_stays():
    difference = ALONG.T * (full_hessian() - sp.diag(*h)) * ALONG
    assert all(is_zero(each) for each in difference)


def test_the_determinant_on_the_simplex_is_the_product_times_the_mean_of_the_inverses():
    bends = sp.symbols(f"h0:{K}", positive=True)
    claimed = sp.prod(bends) * sum(1 / each for each in bends) / K
    assert is_zero((ALONG.T * sp.diag(*bends) * ALONG).det() - claimed)


def test_the_kernel_mode_has_three_quarters():
    term = hbar / 2 * sum(sp.log(each) for each in h)
    for k in range(K):
        assert is_zero(-sp.diff(term, n[k]) - 3 * hbar / (4 * n[k]))


def test_the_simplex_mode_takes_off_the_share_of_the_edge():
    sum_inverse = sum(1 / each for each in h)
    term = hbar / 2 * sp.log(sp.prod(h) * sum_inverse / K)
    for k in range(K):
        w = 1 / (h[k] * sum_inverse)
        assert is_zero(-sp.diff(term, n[k]) - 3 * hbar / (4 * n[k]) * (1 - w))


def test_the_saddle_mode_has_one_half():
    at_saddle = h[0].subs(p[0], sp.sqrt(n[0] / N))
    assert is_zero(at_saddle - kappa / (2 * n[0]))
    assert is_zero(-sp.diff(hbar / 2 * sp.log(at_saddle), n[0]) - hbar / (2 * n[0]))


def test_in_roots_of_visits_the_action_is_quadratic_and_the_term_constant():
    y = sp.symbols("y", positive=True)
    bend = sp.diff(S.subs({n[0]: y**2, Q[0]: 0}), y, 2)
    assert is_zero(bend - 2 * kappa)
    assert sp.diff(sp.log(bend), y) == 0


def test_the_two_loop_coefficient_vanishes():
    second, third, fourth = (sp.diff(S, n[0], order) for order in (2, 3, 4))
    assert not is_zero(fourth / (8 * second**2))
    assert is_zero(fourth / (8 * second**2) - 5 * third**2 / (24 * second**3))


def test_the_partition_function_has_its_closed_form():
    y, m, a = sp.symbols("y m a", positive=True)  # y = √n, a = κ/ħ
    weight = 2 * y * sp.exp(-a * (y - m) ** 2)  # dn = 2 y dy
    integral = -sp.exp(-a * (y - m) ** 2) / a + m * sp.sqrt(sp.pi / a) * sp.erf(
        sp.sqrt(a) * (y - m)
    )
    assert is_zero(sp.diff(integral, y) - weight)
    value = sp.limit(integral, y, sp.oo) - integral.subs(y, 0)
    closed = sp.exp(-a * m**2) / a + m * sp.sqrt(sp.pi / a) * (1 + sp.erf(sp.sqrt(a) * m))
    assert is_zero(value - closed)
    got = principle.partition_function(prior=0.2, parent_visits=50, kappa=1.4, hbar=0.3)
    wanted = closed.subs({m: sp.Rational(1, 5) * sp.sqrt(50), a: sp.Rational(14, 3)})
    assert got == pytest.approx(float(wanted), rel=1e-13)


def test_values_that_move_with_the_visits_have_no_gradient():
    W = sp.symbols("W", real=True)
    assert sp.diff(n[0] * (W / n[0]), n[0]) == 0


def test_a_falling_constant_adds_the_same_to_every_score():
    falling = hbar / sp.sqrt(1 + N / scale)
    term = falling / 2 * sum(sp.log(each) for each in h)
    rests = [-along_sum(term, k) - 3 * falling / (4 * n[k]) for k in range(K)]
    assert all(is_zero(rest - rests[0]) for rest in rests)


def test_the_action_of_puct_descends_by_puct():
    total = -c * sp.sqrt(N) * sum(p[k] * sp.log(1 + n[k]) for k in range(K)) - b * n[0] * Q[0]
    assert is_zero(-sp.diff(total, n[0]) - b * Q[0] - c * p[0] * sp.sqrt(N) / (1 + n[0]))


# --- code against finite differences and itself --------------------------------------------------

NODES = [
    ([50, 10, 40], [0.4, 0.1, 0.5], [0.8, 0.6, 0.5], 1.0, 1.0),
    ([12, 3, 1, 30, 4], [0.3, 0.1, 0.05, 0.35, 0.2], [0.1, -0.4, 0.9, 0.2, 0.0], 1.4, 2.0),
    ([200, 100], [0.5, 0.5], [-0.1, 0.1], 0.7, 1.0),
]
each_node = pytest.mark.parametrize("node", NODES)


def shifted(visits, k, by):
    moved = np.array(visits, float)
    moved[k] += by
    return moved


@each_node
@pytest.mark.parametrize("fixed", [True, False])
def test_the_gradient_is_that_of_the_action(node, fixed):
    visits, prior, q, *rest = node
    total = sum(visits) if fixed else None
    got = principle.negative_gradient(visits, prior, q, *rest, total)
    for k in range(len(visits)):
        ahead, behind = (
            principle.action(shifted(visits, k, by), prior, q, *rest, total) for by in (1e-4, -1e-4)
        )
        assert got[k] == pytest.approx((behind - ahead) / 2e-4, abs=1e-6)


@each_node
@pytest.mark.parametrize("fixed", [True, False])
def test_the_hessian_is_that_of_the_action(node, fixed):
    visits, prior, q, kappa, _ = node
    total = sum(visits) if fixed else None
    got = principle.hessian(visits, prior, kappa, total)
    for k in range(len(visits)):
        ahead, behind = (
            principle.negative_gradient(shifted(visits, k, by), prior, q, kappa, 1.0, total)
            for by in (1e-4, -1e-4)
        )
        assert got[k] == pytest.approx((behind - ahead) / 2e-4, abs=1e-6)


@each_node
@pytest.mark.parametrize("mode", ["kernel", "simplex"])
def test_the_bonus_is_the_slope_of_the_one_loop_term(node, mode):
    visits, prior, _, kappa, _ = node
    total = sum(visits)
    got = principle.one_loop_bonus(visits, prior, kappa, 0.7, mode=mode, parent_visits=total)

    def term(moved):
        return principle.one_loop_term(principle.curvatures(moved, prior, kappa, total), 0.7, mode)

    for k in range(len(visits)):
        if visits[k] > 1:  # a visit counts as at least one
            slope = (term(shifted(visits, k, -1e-4)) - term(shifted(visits, k, 1e-4))) / 2e-4
            assert got[k] == pytest.approx(slope, abs=1e-7)


@each_node
def test_the_determinant_is_that_of_both_hessians_along_the_simplex(node):
    visits, prior, _, kappa, _ = node
    count = len(visits)
    basis = np.linalg.svd(np.ones((1, count)))[2][1:].T
    wanted = principle.simplex_determinant(principle.curvatures(visits, prior, kappa))
    for total in (None, sum(visits)):
        full = principle.hessian(visits, prior, kappa, total)
        assert np.linalg.det(basis.T @ full @ basis) == pytest.approx(wanted, rel=1e-9)


@each_node
@pytest.mark.parametrize("mode", ["kernel", "simplex", "saddle", "off"])
def test_the_search_adds_the_same_bonus(node, mode):
    visits, prior, q, kappa, weight = node
    rule = selection.one_loop(kappa, value_weight=weight, hbar=0.7, visit_scale=math.inf, mode=mode)
    plain = selection.one_loop(kappa, value_weight=weight, hbar=0.7, mode="off")
    total = sum(visits)

    def scores(rule):
        edges = list(zip(q, prior, visits, strict=True))
        sums = sum(rule.bound("total")(p, n, total, rule.parameters) for _, p, n in edges)
        width = rule.bound("width")(total, 1.0, rule.parameters)
        return np.array([
            rule.bound("score")(value, p, n, width, 0.0, sums, rule.parameters, None)
            for value, p, n in edges
        ])  # fmt: skip

    got = principle.one_loop_bonus(visits, prior, kappa, 0.7, mode=mode)
    assert got == pytest.approx(scores(rule) - scores(plain), abs=1e-12)
    pull = principle.negative_gradient(visits, prior, q, kappa, weight, total)
    assert scores(plain) == pytest.approx(pull + kappa)


@each_node
def test_on_the_classical_solution_all_edges_draw_alike(node):
    _, prior, q, kappa, weight = node
    shares = principle.classical_shares(prior, q, kappa, weight)
    assert shares.sum() == pytest.approx(1.0, abs=1e-14)
    pull = principle.negative_gradient(shares, prior, q, kappa, weight, 1.0)
    assert pull == pytest.approx(pull[0], rel=1e-12)


@each_node
def test_the_bonus_by_the_classical_term_is_the_validity_by_three_eighths(node):
    visits, prior, _, kappa, _ = node
    visits_, total = np.array(visits), sum(visits)
    bonus = principle.one_loop_bonus(visits, prior, kappa, 0.7)
    exploration = kappa * np.array(prior) * np.sqrt(total / visits_)
    epsilon = principle.validities(visits, prior, kappa, 0.7)
    assert bonus / exploration == pytest.approx(0.375 * epsilon)


def test_the_gaussian_misses_the_partition_function_by_something_exponentially_small():
    for m_squared, miss in ((4.0, 1e-2), (9.0, 1e-5), (25.0, 1e-11)):
        exact = principle.partition_function(1.0, m_squared, kappa=1.0, hbar=1.0)
        gaussian = math.sqrt(2 * math.pi / (1.0 / (2 * m_squared)))
        assert abs(exact / gaussian - 1) < miss


@pytest.mark.parametrize("q", [[0.0, 0.0, 0.0], [0.3, 0.9, 0.1]])
def test_visits_that_lower_the_action_most_tend_to_the_classical_solution(q):
    prior, visits = np.array([0.5, 0.3, 0.2]), np.ones(3)
    for _ in range(20_000):
        pull = principle.negative_gradient(visits, prior, q, 1.0, 1.0, visits.sum())
        visits[np.argmax(pull)] += 1
    assert visits / visits.sum() == pytest.approx(principle.classical_shares(prior, q), abs=2e-4)


def test_the_classical_solution_is_the_square_of_the_priors_and_puct_the_priors():
    prior = np.array([0.5, 0.3, 0.2])
    assert principle.classical_shares(prior) == pytest.approx([25 / 38, 9 / 38, 4 / 38])
    assert principle.classical_shares(prior, [0.4] * 3) == pytest.approx([25 / 38, 9 / 38, 4 / 38])
    visits = np.zeros(3)
    for total in range(20_000):
        scores = [
            selection.puct_score(0.0, p, int(n), selection.puct_width(total, 1.25, math.inf))
            for p, n in zip(prior, visits, strict=True)
        ]
        visits[np.argmax(scores)] += 1
    assert visits / visits.sum() == pytest.approx(prior, abs=2e-4)


def test_the_bonus_of_puct_is_that_of_the_regularised_policy():
    visits, prior, c_puct = np.array([7, 2, 0, 1]), np.array([0.5, 0.2, 0.2, 0.1]), 1.25
    total = int(visits.sum())
    weight = principle.puct_weight(len(visits), total, c_puct)
    shares = (1 + visits) / (len(visits) + total)
    width = selection.puct_width(total, c_puct, math.inf)
    bonus = [
        selection.puct_score(0.0, p, int(n), width) for p, n in zip(prior, visits, strict=True)
    ]
    assert weight * prior / shares == pytest.approx(bonus, rel=1e-14)


# --- what the published formulation says ---------------------------------------------------------

VISITS, PRIOR, VALUES = NODES[0][:3]


def test_a_minus_before_the_value_prefers_the_worst_child():
    width = math.sqrt(100)
    right, printed = (
        [
            selection.one_loop_score(q, p, n, width, sign, 0.75 * 0.7)
            for q, p, n in zip(VALUES, PRIOR, VISITS, strict=True)
        ]
        for sign in (1.0, -1.0)
    )
    assert (int(np.argmax(right)), int(np.argmax(printed))) == (0, 2)
    assert right[0] == pytest.approx(1.376185424949238)
    assert printed[2] == pytest.approx(0.3036944150420948)


def test_the_coefficient_depends_on_the_mode():
    bonus = [
        float(principle.one_loop_bonus(VISITS, PRIOR, 1.0, 0.7, mode=mode)[1])
        for mode in ("kernel", "simplex", "saddle", "off")
    ]
    assert bonus == pytest.approx([0.0525, 0.042768920642827835, 0.035, 0.0])


def test_the_unconstrained_determinant_is_zero():
    full = principle.hessian(VISITS, PRIOR, 1.0)
    assert abs(np.linalg.det(full)) < 1e-20
    assert principle.simplex_determinant(principle.curvatures(VISITS, PRIOR, 1.0)) > 1e-5


def test_the_gaussian_is_doubtful_after_ten_visits_of_a_hundred():
    assert principle.validities([10], [0.1], 1.0, 0.7, 100)[0] == pytest.approx(0.4427, abs=1e-4)


def test_the_printed_mean_of_pruning_is_right_for_a_constant_of_one_alone():
    for hbar_, printed in ((1.0, 0.25), (0.5, 0.5)):
        free_energy = principle.pruning_term(3, hbar_)
        assert math.exp(-free_energy / hbar_) == pytest.approx(0.25)
        assert principle.kept_weight([0.0] * 4, [0], hbar_) == 0.25
        assert math.exp(-free_energy) == pytest.approx(printed)  # without the constant


def test_the_count_alone_is_right_for_one_kept_child_of_equal_weight():
    alike = [0.3] * 9
    assert principle.pruning_free_energy(alike, [0], 0.7) == pytest.approx(
        principle.pruning_term(8, 0.7)
    )
    assert principle.kept_weight(alike, [0, 1, 2], 0.7) == pytest.approx(1 / (1 + 6 / 3))
    assert principle.kept_weight([0.0, 3.0, 3.0], [0], 0.4) > 0.99 > 1 / (1 + 2)


def test_the_mean_over_kept_or_pruned_children_alone_says_nothing():
    actions = np.array([0.1, 0.7, -0.4])
    assert principle.kept_weight(actions[[0, 2]], [0, 1], 0.5) == 1.0
    assert principle.measure_kept_weight(actions[[0, 2]], [0, 1], 0.5, 1_000)[0] == 1.0
    # An ensemble in which only pruned children have weight.
    assert principle.measure_kept_weight([900.0, 0.7, -0.4], [0], 0.5, 1_000)[0] == 0.0


# --- pruning -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_draws_agree_with_the_pruning_identity(seed):
    rng = np.random.default_rng(seed)
    actions = rng.normal(size=8)
    kept, hbar_ = [0, 3, 5], float(rng.uniform(0.3, 2.0))
    mean, error = principle.measure_kept_weight(actions, kept, hbar_, 20_000, seed)
    theory = math.exp(-principle.pruning_free_energy(actions, kept, hbar_) / hbar_)
    assert abs(mean - theory) < 4 * error
    assert 0 < error < 0.004
    assert mean == principle.measure_kept_weight(actions, kept, hbar_, 20_000, seed)[0]


def test_weights_beyond_what_floats_hold_have_a_free_energy():
    assert principle.pruning_free_energy([0.0, 5_000.0], [1], 1.0) == pytest.approx(5_000.0)
    assert principle.pruning_free_energy([0.0, 5_000.0], [0], 1.0) == 0.0
    assert principle.pruning_free_energy([0.0, 5_000.0], [0, 1], 1.0) == 0.0


# --- edge cases and messages ---------------------------------------------------------------------


def test_an_edge_of_prior_zero_has_no_curvature_and_no_bonus():
    assert principle.curvatures([10, 10], [1.0, 0.0], 1.0)[1] == 0.0
    for mode in ("kernel", "simplex", "saddle"):
        assert principle.one_loop_bonus([10, 10], [1.0, 0.0], 1.0, 0.5, mode=mode)[1] == 0.0
    assert principle.classical_shares([1.0, 0.0], [0.0, 9.0]).tolist() == [1.0, 0.0]
    assert math.isfinite(principle.one_loop_term([0.1, 0.0], 1.0))


def test_an_edge_never_taken_draws_without_limit():
    pull = principle.negative_gradient([0, 0, 4], [0.5, 0.0, 0.5], [0.0, 0.25, 0.0], 1.0, 1.0, 4)
    assert pull.tolist() == [math.inf, -0.75, -0.5]
    assert principle.one_loop_bonus([0, 1], [0.5, 0.5], 1.0, 1.0).tolist() == [0.75, 0.75]


def test_a_single_child_has_nothing_to_fluctuate_against():
    assert principle.one_loop_bonus([7], [1.0], 1.0, 1.0, mode="simplex").tolist() == [0.0]
    assert principle.one_loop_term([0.3], 1.0, "simplex") == 0.0
    assert principle.classical_shares([1.0], [0.3]).tolist() == [1.0]
    assert principle.hessian([7], [1.0], 1.0)[0, 0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: principle.kept_weight([0.0, 1.0], [], 1.0), "nothing is kept; keep a child"),
        (lambda: principle.pruning_free_energy([0.0], [], 1.0), "nothing is kept; keep a child"),
        (lambda: principle.kept_weight([0.0, 1.0], [2], 1.0), r"indices 0 to 1; got \[2\]"),
        (lambda: principle.kept_weight([0.0], [0], 0.0), "hbar must be a number above 0; got 0.0"),
        (lambda: principle.kept_weight([math.inf], [0], 1.0), r"must be finite; got \[inf\]"),
        (lambda: principle.measure_kept_weight([0.0], [0], 1.0, 0), "num_samples must be at least"),
        (lambda: principle.pruning_term(-1, 1.0), "num_pruned must be at least 0; got -1"),
        (lambda: principle.action([1, 2], [1.0], [0, 0], 1.0), r"the shapes \(2,\), \(1,\)"),
        (lambda: principle.action([], [], [], 1.0), "pass at least one edge"),
        (lambda: principle.hessian([0, 1], [0.5, 0.5], 1.0), r"visits above 0; got the visits \[0"),
        (lambda: principle.simplex_determinant([1.0, 0.0]), "without curvature has no fluctuation"),
        (
            lambda: principle.one_loop_term([1.0], 1.0, "tree"),
            "one of kernel, simplex, saddle, off",
        ),
        (lambda: principle.classical_shares([0.0, 0.0]), r"a prior above 0; got \[0.0, 0.0\]"),
        (lambda: principle.puct_weight(0, 4, 1.0), "num_actions must be at least 1; got 0"),
        (lambda: principle.by_share(2.0), "a share from 0 to 1; got 2.0"),
        (lambda: principle.by_value(-1.0), "gap must be at least 0; got -1.0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
