"""A search that asks: the trees of compiled games, answers in any order, failures."""

from __future__ import annotations

import random
import threading
from functools import cache

import numpy as np
import pytest

import uctree
from tests import random_games
from tests.random_games import table_logits, table_values
from uctree import backup, selection
from uctree.planning.planner import Planner
from uctree.planning.problem import Problem, Step

pytestmark = pytest.mark.usefixtures("both_ways")


def as_problem(game, priors=False, **options):
    """A compiled game as a problem of objects: its states are records."""
    values, logits = game.data[6], game.data[7]

    def actions(state):
        legal = game.legal(state)
        if not priors:
            return legal
        weights = np.exp(logits[state["place"], legal])
        return list(zip(legal, weights.tolist(), strict=True))

    def step(state, action):
        after, reward = game.step(state, action)
        return Step(after, reward, game.to_play(after), game.is_over(after))

    return Problem(
        actions=actions, step=step, chance=game.outcomes, num_players=game.num_players,
        value=lambda state: values[state["place"]], discount=game.discount, priors=priors,
        payoff_range=None if game.payoff_range is None else game.payoff_range.tolist(), **options,
    )  # fmt: skip


def planned(problem, start, to_play, shuffle=None, **options):
    """The result of a planner whose questions are answered at once, or in random order."""
    planner = Planner(problem, start, to_play=to_play, **options)
    waiting = []
    while True:
        waiting += planner.ask()
        if not waiting:
            return planner.result()
        at = 0 if shuffle is None else shuffle.randrange(len(waiting))
        question = waiting.pop(at)
        planner.tell(question, problem.answer(question))


def lines(result):
    """Visits and values of all nodes by the actions that lead there."""
    tree, game = result.tree, result.game
    found = {}

    def visit(node, path):
        record = tree.edges[node.edge]
        values = tree.mean_values(range(node.edge, node.edge + 1))[0]
        found[path] = int(record["visits"]), *np.round(values, 9).tolist()
        for edge in node.edges:
            if tree.edges["visits"][edge]:
                label = game.show_action(node.state, tree.action(edge))
                visit(node.child(edge), (*path, label))

    visit(tree.root, ())
    return found


OPTIONS = {
    "plain": {},
    "puct": {"selection": selection.puct(2.0)},
    "maximum": {"backup": backup.maximum()},
    "transpositions": {"transpositions": True},
    "widening": {"widening": selection.widening()},
    "tuned": {"selection": selection.ucb1_tuned()},
}


SHAPES = ["alone, with dice", "two, zero-sum but not declared", "three", "three, with dice"]


@cache
def a_game(shape):
    """One of the random games, which has no largest number of plies, as problems have none."""
    tables, options = random_games.SHAPES[shape]
    options = {name: value for name, value in options.items() if name != "max_plies"}
    return random_games.game_of(random_games.random_tables(**tables), **options)


def a_start(game):
    return next(each for each in random_games.roots(game) if game.to_play(each) >= 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("priors", [False, True])
def test_a_game_of_objects_gives_the_tree_of_the_compiled_game(options, priors, shape):
    game = a_game(shape)
    state = a_start(game)
    evaluator = table_logits if priors else table_values
    wanted = uctree.search(
        game, state, num_simulations=60, seed=3, evaluator=evaluator, **options
    )  # fmt: skip
    key = {"key": game.key} if options.get("transpositions") else {}
    found = planned(
        as_problem(game, priors, **key), state, game.to_play(state), num_simulations=60, seed=3,
        **options,
    )  # fmt: skip
    assert lines(found) == lines(wanted)


@pytest.mark.parametrize(
    "options", [{}, {"transpositions": True}, {"widening": selection.widening()}]
)
@pytest.mark.parametrize("shape", ["three, with dice", "two, zero-sum but not declared"])
def test_ordered_answers_give_the_same_tree_in_whatever_order_they_come(shape, options):
    game = a_game(shape)
    state, problem = a_start(game), as_problem(game, key=game.key)
    arguments = {"num_simulations": 80, "seed": 3, "in_flight": 7, **options}
    at_once = planned(problem, state, game.to_play(state), **arguments)
    for seed in range(3):
        shuffled = planned(
            problem, state, game.to_play(state), shuffle=random.Random(seed), **arguments
        )
        assert lines(shuffled) == lines(at_once)


@pytest.mark.quick
def test_answers_that_are_not_ordered_lose_no_simulation():
    game = a_game("three, with dice")
    state, problem = a_start(game), as_problem(game)
    result = planned(
        problem, state, game.to_play(state), shuffle=random.Random(1), num_simulations=80,
        in_flight=7, ordered=False, seed=3,
    )  # fmt: skip
    assert result.simulations == 80
    assert result.edges["visits"].sum() == 80
    assert (result.tree.edges["pending"][: result.tree.num_edges + 1] == 0).all()


def digits(**functions):
    """Numbers in base three without an end."""
    given = {"actions": lambda number: [0, 1, 2], "value": lambda number: number % 7 / 7,
             "step": lambda number, digit: Step(3 * number + digit + 1)}  # fmt: skip
    return Problem(**(given | functions))


@pytest.mark.parametrize(("ordered", "num_ended"), [(False, 59), (True, 21)])
def test_a_late_answer_holds_up_nobody_unless_the_order_counts(ordered, num_ended):
    problem, numbers, late = digits(), [], None
    planner = Planner(problem, 0, num_simulations=60, in_flight=4, seed=1, ordered=ordered)
    while questions := planner.ask():
        for question in questions:
            numbers.append(question.number)
            if question.number == 20:
                late = question
            else:
                planner.tell(question, problem.answer(question))
    assert planner.simulations == num_ended
    assert (max(numbers) == 23) == ordered  # no more than are in flight
    planner.tell(late, problem.answer(late))
    failing(planner, problem, lambda question: False)
    assert planner.simulations == 60


def test_kernels_are_compiled_once_for_all_problems():
    def kernel(problem, start, **options):
        planner = Planner(problem, start, num_simulations=3, seed=1, **options)
        failing(planner, problem, lambda question: False)
        return planner._search.composition.kernel

    letters = Problem(
        actions=lambda text: "abcdefg", step=lambda text, letter: Step(text + letter),
        value=lambda text: 0.5, name="letters",
    )  # fmt: skip
    first = kernel(digits(), 0)
    assert kernel(letters, "") is first
    assert kernel(letters, "", backup=backup.maximum()) is not first


# --- counting up, a problem of integers ----------------------------------------------------------


def counting(**options):
    """From 1 to 8 exactly, by adding one or doubling: four actions at least, one point."""

    def step(number, action):
        after = number + 1 if action == "add" else 2 * number
        return Step(after, float(after == 8), over=after >= 8)

    return Problem(step=step, value=lambda number: number / 16, **options)


LISTED = {"actions": lambda number: ["add", "double"]}


def failing(planner, problem, fails):
    """Run a planner whose questions fail if `fails` says so."""
    asked = []
    while questions := planner.ask():
        for question in questions:
            asked.append((question.row, question.edge))
            if question.edge >= 0 and fails(question):
                planner.tell_failure(question, "the line is dead")
            else:
                planner.tell(question, problem.answer(question))
    return asked


@pytest.mark.quick
def test_an_edge_that_failed_is_closed_and_the_search_goes_on():
    problem = counting(**LISTED)
    planner = Planner(problem, 1, num_simulations=60, seed=1)
    asked = failing(planner, problem, lambda question: question.action == "double")
    result = planner.result()
    assert result.simulations == 60
    assert result.edges["visits"].tolist() == [60, 0]
    assert len(set(asked)) == len(asked)


def test_a_node_whose_actions_all_fail_keeps_its_value():
    problem = counting(**LISTED)
    planner = Planner(problem, 1, num_simulations=40, seed=1)
    failing(planner, problem, lambda question: question.state > 1)
    result = planner.result()
    assert result.simulations == 40
    assert result.value[0] == pytest.approx(2 / 16)


@pytest.mark.quick
def test_proposals_are_asked_for_as_the_node_widens():
    asked = []

    def propose(number, tried, k):
        asked.append((number, tried, k))
        return [name for name in ("add", "double") if name not in tried][:k]

    problem = counting(propose=propose)
    result = planned(problem, 1, 0, num_simulations=60, seed=1)
    assert result.simulations == 60
    assert [result.game.show_action(result.state, e["action"]) for e in result.edges] == [
        "add", "double",
    ]  # fmt: skip
    assert asked[0] == (1, (), 1)


@pytest.mark.quick
def test_equal_states_are_asked_about_once_if_they_have_a_key():
    calls = []

    def step(number, action):
        calls.append((number, action))
        return Step(number + action, over=number + action >= 6)

    problem = Problem(
        actions=lambda number: [1, 2], step=step, key=lambda n: n, value=lambda n: 0.0
    )
    planned(problem, 0, 0, num_simulations=60, seed=1)
    assert len(calls) == len(set(calls))


@pytest.mark.quick
def test_a_question_is_answered_once():
    problem = counting(**LISTED)
    planner = Planner(problem, 1, num_simulations=10, seed=1)
    (question,) = planner.ask()
    planner.tell(question, problem.answer(question))
    with pytest.raises(ValueError, match="was answered already"):
        planner.tell(question, problem.answer(question))


@pytest.mark.quick
def test_no_question_is_lost_while_the_tree_grows():
    problem = Problem(
        actions=lambda number: list(range(20)), value=lambda number: 0.5,
        step=lambda number, action: Step(20 * number + action, over=number > 10**6),
    )  # fmt: skip
    planner = Planner(problem, 1, num_simulations=300, in_flight=32, seed=1)
    while questions := planner.ask():
        for question in questions:
            planner.tell(question, problem.answer(question))
    assert planner.result().simulations == 300
    assert planner.num_waiting == 0


@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_later_state_may_have_many_more_actions_than_the_start(in_flight):
    asked = []

    def step(number, action):
        asked.append((number, action))
        return Step(100 * number + action + 1, over=number > 100)

    problem = Problem(
        actions=lambda number: range(3 if number == 0 else 90), step=step, value=lambda n: 0.5
    )
    result = planned(problem, 0, 0, num_simulations=200, in_flight=in_flight, seed=1)
    assert result.simulations == 200
    assert result.game.num_actions >= 90
    assert len(asked) == len(set(asked))


def play(problem, arguments):
    """Play to the end, with one planner; the questions that were asked, and the actions taken."""
    planner, asked, taken = Planner(problem, 1, **arguments), [], []
    while True:
        while questions := planner.ask():
            for question in questions:
                asked.append((question.state, question.action))
                planner.tell(question, problem.answer(question))
        result = planner.result()
        if result.status == "terminal":
            return asked, taken
        assert result.simulations == arguments["num_simulations"]
        taken.append(result.action)
        planner.advance(result.action)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_planner_goes_on_from_a_later_state_and_asks_nothing_twice(in_flight):
    problem = counting(**LISTED, key=lambda number: number)
    arguments = {"num_simulations": 40, "in_flight": in_flight, "seed": 1}
    asked, taken = play(problem, arguments)
    assert taken == ["add", "double", "double"]
    assert len(asked) == len(set(asked))


def test_a_later_state_is_searched_as_if_it_were_the_start():
    problem = counting(**LISTED)
    planner = Planner(problem, 1, num_simulations=30, seed=1)
    failing(planner, problem, lambda question: False)
    planner.advance("double", reuse=False)
    failing(planner, problem, lambda question: False)
    fresh = planned(problem, 2, 0, num_simulations=30, seed=1)
    assert lines(planner.result()) == lines(fresh)
    with pytest.raises(uctree.IllegalAction, match="'halve' is not known at the root"):
        planner.advance("halve")


@pytest.mark.parametrize("options", [{}, {"solver": True}, {"transpositions": True}])
def test_the_subtree_of_an_action_becomes_the_tree(options):
    problem = counting(**LISTED, key=lambda number: number)
    planner = Planner(problem, 1, num_simulations=40, seed=1, **options)
    first = uctree.plan(planner)
    visits = {edge["action"]: int(edge["visits"]) for edge in first.edges}
    planner.advance("add")
    second = uctree.plan(planner)
    assert second.simulations <= 40
    assert second.tree.root.visits - second.simulations >= visits[0] > 0
    assert planner.simulations == second.simulations


def test_a_planner_is_planned_with_again_and_again():
    asked = []
    listed = counting(**LISTED)

    def step(number, action):
        asked.append((number, action))
        return listed.step(number, action)

    problem = uctree.Problem(
        actions=listed.actions, step=step, value=lambda number: 0.0, key=lambda number: number
    )
    planner = Planner(problem, 1, num_simulations=20, seed=1)
    while (result := uctree.plan(planner)).status != "terminal":
        planner.advance(result.action)
    assert len(asked) == len(set(asked))
    with pytest.raises(TypeError, match="seed= belongs to the Planner"):
        uctree.plan(planner, seed=2)


def test_a_question_that_was_not_answered_in_time_is_asked_again():
    gate = threading.Event()

    def step(number, action):
        gate.wait()
        return uctree.Step(number + 1, over=number > 8)

    problem = uctree.Problem(actions=lambda number: [0, 1], step=step, value=lambda number: 0.0)
    planner = Planner(problem, 1, num_simulations=12, in_flight=3, seed=1)
    for question in planner.ask():
        planner.tell(question, problem.answer(question))  # the start
    result = uctree.plan(planner, seconds=0.1, timeout=60)
    assert (result.status, planner.num_waiting) == ("seconds", 2)
    gate.set()
    assert uctree.plan(planner).status == "simulations"
    assert planner.simulations == 12
