"""Actions that are proposed while others are asked for: every label belongs to its edge."""

from __future__ import annotations

import random

import pytest

import uctree
from tests.planning.test_planner import lines
from uctree import BrokenGame, Problem, Step, UctreeError
from uctree.planning.book import NO_ACTION
from uctree.planning.planner import Planner
from uctree.planning.problem import Answer

pytestmark = pytest.mark.usefixtures("both_ways")


def adding(**functions):
    """Numbers to which proposed ones are added, so a label says what is behind its edge."""

    def propose(number, tried, k):
        rng = random.Random(1000 * number + len(tried))
        return [rng.randrange(50) for _ in range(rng.choice([1, 1, 3]))]

    def step(number, amount):
        return Step(number + amount, (amount % 7) / 7, over=number + amount > 200)

    given = {"propose": propose, "step": step, "value": lambda n: (n % 5) / 5, "max_actions": 12}
    return Problem(**(given | functions))


def told_in_any_order(planner, problem, shuffle, most=10**9):
    waiting = []
    while most > 0:
        waiting += planner.ask()
        if not waiting:
            break
        question = waiting.pop(shuffle.randrange(len(waiting)))
        planner.tell(question, problem.answer(question))
        most -= 1
    return planner


def check_labels(book):
    assert book.behind
    for (row, index), (behind, _) in book.behind.items():
        assert book.states[behind] == book.states[row] + book.actions[row][index]


@pytest.mark.parametrize("ordered", [True, False])
def test_the_state_behind_an_edge_is_that_of_its_label(ordered):
    problem = adding()
    for seed in range(3):
        planner = Planner(
            problem, 0, num_simulations=150, in_flight=9, seed=1, ordered=ordered
        )  # fmt: skip
        told_in_any_order(planner, problem, random.Random(seed))
        assert planner.simulations == 150
        check_labels(planner.book)


def test_the_tree_does_not_depend_on_the_order_in_which_proposals_come():
    problem = adding()
    found = []
    for seed in range(4):
        planner = Planner(problem, 0, num_simulations=120, in_flight=7, seed=1)
        found.append(lines(told_in_any_order(planner, problem, random.Random(seed)).result()))
    assert found[0] == found[1] == found[2] == found[3]


def test_proposals_that_were_interrupted_go_on_with_the_same_labels(tmp_path):
    problem, journal = adding(), tmp_path / "run.jsonl"
    arguments = {"num_simulations": 100, "in_flight": 7, "seed": 1}
    wanted = told_in_any_order(Planner(problem, 0, **arguments), problem, random.Random(0))
    for seed in range(6):
        planner = Planner(problem, 0, **arguments, journal=journal)
        told_in_any_order(planner, problem, random.Random(seed), 40 if seed < 5 else 10**9)
        planner.close()
        check_labels(planner.book)
    assert lines(planner.result()) == lines(wanted.result())


def test_a_proposal_that_fails_closes_its_edge_and_the_next_one_is_asked_for():
    calls = []

    def propose(number, tried, k):
        calls.append((number, tried))
        if len(calls) % 3 == 2:
            raise ConnectionError("no line")
        return [len(calls)]

    for on_error in ({"on_error": "drop"}, {"on_error": "value", "error_value": 9.0}):
        calls.clear()
        result = uctree.plan(
            adding(propose=propose), 0, num_simulations=80, seed=1, in_flight=3, **on_error
        )
        assert result.simulations == 80
        assert result.num_failed > 0
        assert result.action is not NO_ACTION
        assert NO_ACTION not in {action for _, tried in calls for action in tried}
        assert result.value[0] < 9.0
        assert "ConnectionError: no line" in str(result)


def test_proposals_that_are_used_up_leave_no_empty_rows():
    result = uctree.plan(
        adding(propose=lambda number, tried, k: [1, 2] if not tried else []), 0,
        num_simulations=60, seed=1,
    )  # fmt: skip
    assert len(result.edges) == 2
    assert "proposal" not in str(result)


def test_wrong_proposals_are_refused_and_the_question_stays_open():
    problem = adding()
    planner = Planner(problem, 0, num_simulations=20, seed=1)
    (start,) = planner.ask()
    planner.tell(start, problem.answer(start))
    (question,) = planner.ask()
    assert (question.action, question.wanted) == (None, 1)
    for answer in (Answer(5), Answer(None, proposed="text"), Answer(None, proposed=[[1]])):
        with pytest.raises(BrokenGame):
            planner.tell(question, answer)
    planner.tell(question, Answer(None, proposed=[3]))
    (question,) = planner.ask()
    assert (question.action, question.wanted) == (3, 0)


def test_a_failed_proposal_is_replayed_as_failed(tmp_path):
    journal, calls = tmp_path / "run.jsonl", []

    def propose(number, tried, k):
        calls.append(tried)
        if len(calls) == 2:
            raise ConnectionError("no line")
        return [len(tried) + 1]

    problem = adding(propose=propose, dump=lambda n: n + 0, load=int)
    arguments = {"num_simulations": 30, "seed": 1, "on_error": "drop", "journal": journal}
    first = uctree.plan(problem, 0, **arguments)
    num_calls = len(calls)
    again = uctree.plan(problem, 0, **arguments)
    assert len(calls) == num_calls
    assert (first.edges == again.edges).all()
    with pytest.raises(UctreeError, match="a proposal failed with ConnectionError"):
        uctree.plan(adding(propose=_broken), 0, num_simulations=3)


def _broken(number, tried, k):
    raise ConnectionError("no line")
