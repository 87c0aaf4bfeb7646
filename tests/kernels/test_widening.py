"""When a node gets another edge: by its visits, and by values drawn for new and known edges."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.kernels.in_python import bound, given_to
from tests.small_games import heap_game
from uctree import Problem, Step, selection
from uctree.game import make_rng, random_unit
from uctree.kernels import widening

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_open_edges_are_those_that_were_taken():
    rule = selection.widening(k=1.0, alpha=0.5)
    tree = uctree.search(heap_game(), num_simulations=12, seed=1, widening=rule).tree
    count_open = bound(widening.count_open, tree, widening=rule)
    for node in tree.root.walk():
        if node.edges:
            taken = (tree.edge_visits(node.edges) > 0).sum()
            assert count_open(tree.edges.view(np.recarray), np.int64(node.edge)) >= taken


def test_an_edge_keeps_what_it_returned_first():
    rule = selection.adaptive_widening()
    found = uctree.search(heap_game(), num_simulations=60, seed=3, widening=rule).tree
    for node in found.root.walk():
        for edge in node.edges:
            record = found.edges[edge]
            mean = record["value_sum"][0] * (1 if node.to_play == 0 else -1)
            if record["visits"] == 1:
                assert record["first_return"] == mean
    known = found.edges[: int(found.head["used"][0])]
    assert (known["first_return"][known["visits"] > 1] != 0).any()


def posterior_of(values, prior):
    """The mean, scale and freedom of the distribution of the mean, from the values one by one."""
    mean, weight, freedom, variance = prior
    for value in values:  # the update by one value at a time
        gap = value - mean
        variance = (freedom * variance + weight / (weight + 1) * gap * gap) / (freedom + 1)
        mean, weight, freedom = mean + gap / (weight + 1), weight + 1, freedom + 1
    return mean, weight, freedom, variance


def test_the_posterior_is_that_of_one_value_after_the_other():
    rng = np.random.default_rng(1)
    for prior in ((0.0, 1.0, 1.0, 0.1), (0.5, 0.3, 2.0, 0.02)):
        for count in (0, 1, 2, 7):
            values = rng.normal(0.4, 0.3, count)
            mean, square = (values.mean(), (values**2).mean()) if count else (0.0, 0.0)
            found = selection.posterior(count, mean, square, np.array(prior))
            assert found == pytest.approx(posterior_of(values, prior), abs=1e-12)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 30.0])
def test_draws_are_of_students_distribution(freedom):
    from scipy import stats

    rng = make_rng(5)
    drawn = [selection.student(random_unit(rng), random_unit(rng), freedom) for _ in range(4000)]
    assert stats.kstest(drawn, stats.t(freedom).cdf).pvalue > 0.001


def chance_that_new_wins(new, later, prior):
    """The probability that the mean drawn for `new` values is above that for `later` ones."""
    from scipy import stats

    laws = []
    for values in (new, later):
        mean, weight, freedom, variance = posterior_of(values, prior)
        laws.append(stats.t(freedom, mean, np.sqrt(variance / weight)))
    points = (np.arange(20_000) + 0.5) / 20_000
    return laws[1].cdf(laws[0].ppf(points)).mean()


def test_a_node_widens_as_often_as_its_values_say():
    """A root with three edges; their returns are known one by one."""
    prior = (0.2, 1.0, 1.0, 0.1)
    rule = selection.adaptive_widening(*prior)
    tree = uctree.search(heap_game(), num_simulations=40, seed=1, widening=rule).tree
    first, count = int(tree.edges["first"][0]), int(tree.edges["num_edges"][0])
    returns = [[0.9, 0.5, 0.7], [0.1], [0.6, -0.4]][:count]
    player = tree.root.to_play
    for edge, values in enumerate(returns):
        record = tree.edges[first + edge : first + edge + 1]
        record["visits"], record["first_return"] = len(values), values[0]
        record["value_sum"] = sum(values) if player == 0 else -sum(values)
        record["square_sum"] = sum(value * value for value in values)
    low, high = tree.head["low"][0, player], tree.head["high"][0, player]

    def scaled(values):
        return [(value - low) / (high - low) for value in values]

    new = scaled([values[0] for values in returns])
    later = scaled([value for values in returns for value in values[1:]])
    wanted = chance_that_new_wins(new, later, prior)
    assert 0.05 < wanted < 0.95
    widens = bound(widening.widens_by_draws, tree, widening=rule)
    search = given_to(tree, widening=rule)
    times = 4000
    found = sum(widens(search, np.int64(0), player, len(returns)) for _ in range(times))
    error = np.sqrt(wanted * (1 - wanted) / times)
    assert abs(found / times - wanted) < 4 * error


def answers(calls, seed):
    """The answers that adaptive branching asks for on a made-up task, in their order."""
    planner = uctree.Planner(
        made_up(), (), num_simulations=calls, seed=seed, selection=selection.thompson(),
        widening=selection.adaptive_widening(),
    )  # fmt: skip
    while questions := planner.ask():
        for question in questions:
            planner.tell(question, planner.problem.answer(question))
    return planner.book.states[1:]


def quality(answer):
    drawn = [np.random.default_rng(answer[: n + 1]).normal() for n in range(len(answer))]
    return float(np.clip(0.4 + 0.15 * sum(drawn), 0.0, 1.0))


def made_up():
    return Problem(
        propose=lambda state, tried, k: [len(tried) + n for n in range(k)],
        step=lambda state, action: Step((*state, action)),
        value=quality, max_actions=64, payoff_range=(0.0, 1.0),
    )  # fmt: skip


def test_every_simulation_asks_for_one_answer():
    found = answers(calls=30, seed=2)
    assert len(found) == len(set(found)) == 30
    assert any(len(answer) > 1 for answer in found)  # it goes deeper,
    assert sum(len(answer) == 1 for answer in found) > 1  # and wider


def test_where_new_answers_are_as_good_as_any_it_goes_wider():
    def calls_at_the_root(gain):
        def value(state):
            return 0.3 + gain * (len(state) - 1) if state else 0.0

        problem = made_up()
        problem = Problem(
            propose=problem.propose, step=problem.step, value=value, max_actions=64,
            payoff_range=(0.0, 1.0),
        )  # fmt: skip
        total = 0
        for seed in range(8):
            tree = uctree.plan(
                problem, (), num_simulations=40, seed=seed, selection=selection.thompson(),
                widening=selection.adaptive_widening(),
            ).tree  # fmt: skip
            total += sum(visits > 0 for visits in tree.edge_visits(tree.root.edges))
        return total / 8

    assert calls_at_the_root(gain=-0.2) > 2 * calls_at_the_root(gain=0.1)


def theirs(calls, seed):
    from treequest import ABMCTSA

    np.random.seed(seed)
    algorithm, numbers = ABMCTSA(), {}
    state = algorithm.init_tree()

    def generate(parent):
        above = parent or ()
        numbers[above] = numbers.get(above, -1) + 1
        answer = (*above, numbers[above])
        return answer, quality(answer)

    for _ in range(calls):
        state = algorithm.step(state, {"answer": generate}, inplace=True)
    return [answer for answer, _ in algorithm.get_state_score_pairs(state)]


@pytest.mark.peer
@pytest.mark.slow
def test_trees_are_shaped_as_those_of_treequest(monkeypatch):
    """The mean number of first answers, and the mean depth, over many seeds."""
    pytest.importorskip("treequest", reason="treequest is not installed")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    shapes = {"ours": [], "theirs": []}
    for seed in range(400):
        for name, run in (("ours", answers), ("theirs", theirs)):
            found = run(30, seed)
            depths = [len(answer) for answer in found]
            shapes[name].append((depths.count(1), np.mean(depths)))
    ours, others = np.array(shapes["ours"]), np.array(shapes["theirs"])
    error = np.sqrt((ours.var(axis=0) + others.var(axis=0)) / len(ours))
    assert (np.abs(ours.mean(axis=0) - others.mean(axis=0)) < 4 * error).all()
