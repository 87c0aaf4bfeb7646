"""Ctrl-C in a plan, by a real signal and by functions that raise: no answer and no cost is lost."""

from __future__ import annotations

import asyncio
import random
import time

import numpy as np
import pytest

import uctree
from tests.pressing import assert_nothing_stays, held, interrupted, two_moments
from uctree import Planner, Problem, Step, UctreeError

NUM = 300
OFTEN = [pytest.param(5), pytest.param(200, marks=pytest.mark.slow)]


def actions(number):
    return () if number > 5_000 else (1, 2, 3)


def step(number, action):
    uctree.spent(steps=1)
    after = 3 * number + action
    return Step(after, (after % 7) / 7)


def value(number):
    return (number % 11) / 11


def values(numbers):
    return [value(number) for number in numbers]


async def step_later(number, action):
    await asyncio.sleep(0.0005)
    return step(number, action)


def step_slowly(number, action):
    time.sleep(0.0015)
    return step(number, action)


FUNCTIONS = {
    "one at a time": ({"step": step, "value": value}, 1),
    "several": ({"step": step, "value": value}, 6),
    "values of many": ({"step": step, "values": values}, 6),
    "threads": ({"step": step_slowly, "value": value}, 6),
    "async": ({"step": step_later, "value": value}, 6),
    "a journal": ({"step": step, "value": value}, 3),
}


def problem_of(mode, **functions):
    return Problem(**({"actions": actions, "key": lambda number: number} | FUNCTIONS[mode][0]
                      | functions))  # fmt: skip


def planner_of(mode, num_simulations=NUM, **given):
    functions = {name: given.pop(name) for name in ("step", "values") if name in given}
    options = {"in_flight": FUNCTIONS[mode][1], "seed": 1, "num_simulations": num_simulations}
    return Planner(problem_of(mode, **functions), 1, **(options | given))


def shape(planner):
    """The statistics of a tree; the numbers of states depend on the order of answers."""
    edges = planner.result().tree.edges
    used = planner.result().tree.num_edges + 1
    return [edges[name][:used].tolist() for name in ("action", "visits", "value_sum", "first")]


@pytest.fixture(scope="module")
def expected():
    """The tree of a plan that nothing interrupted, by simulations in flight."""
    found = {}
    for mode in ("one at a time", "a journal", "several"):
        planner = planner_of(mode)
        uctree.plan(planner)
        found[FUNCTIONS[mode][1]] = shape(planner)
    return found


class Once:
    """A function that raises at one of its calls."""

    def __init__(self, function, number, error=KeyboardInterrupt):
        self.function, self.left, self.error = function, number, error

    def __call__(self, *arguments):
        self.left -= 1
        given = self.function(*arguments)
        if self.left == 0:
            raise self.error
        return given


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", [1, 2, 3, 50, 299])
@pytest.mark.parametrize("mode", ["one at a time", "several", "values of many", "a journal"])
def test_a_plan_goes_on_after_a_function_was_interrupted(mode, call, error, expected, tmp_path):
    journal = tmp_path / "answers" if mode == "a journal" else None
    planner = planner_of(mode, step=Once(step, call, error), journal=journal)
    if error is KeyboardInterrupt:
        assert uctree.plan(planner).status == "interrupted"
    else:
        with pytest.raises(SystemExit):
            uctree.plan(planner)
    assert planner.simulations < NUM
    result = uctree.plan(planner)
    assert (result.status, planner.simulations) == ("simulations", NUM)
    assert shape(planner) == expected[FUNCTIONS[mode][1]]
    # The call that raised had cost as much as one that returned, and was made once more.
    assert result.costs == {"steps": len(planner.book.behind) + 1}
    planner.close()
    if journal is not None:
        again = planner_of(mode, step=None, journal=journal)
        assert uctree.plan(again).costs == result.costs
        assert shape(again) == expected[FUNCTIONS[mode][1]]


def test_a_failure_keeps_the_answers_that_came_with_it():
    def fail_once(number, action):
        if action == 2 and not failed:
            failed.append(number)
            raise OSError("no")
        return step_slowly(number, action)

    failed = []
    planner = planner_of("threads", step=fail_once, num_simulations=50)
    with pytest.raises(UctreeError, match="failed with OSError: no"):
        uctree.plan(planner)
    assert planner.costs == {"steps": len(planner.book.behind)}
    assert uctree.plan(planner).status == "simulations"
    assert planner.simulations == 50


@pytest.mark.parametrize("mode", ["threads", "async"])
def test_a_function_that_ends_its_thread_ends_the_plan(mode):
    async def leave_later(number, action):
        raise SystemExit

    def leave(number, action):
        raise SystemExit

    given = {"timeout": 5.0} if mode == "threads" else {}
    planner = planner_of(mode, step=leave if mode == "threads" else leave_later)
    with pytest.raises(UctreeError, match="failed with SystemExit"):
        uctree.plan(planner, **given)


@pytest.mark.parametrize("num_moments", OFTEN)
@pytest.mark.parametrize("mode", FUNCTIONS)
def test_a_plan_goes_on_after_ctrl_c_at_any_moment(mode, num_moments, expected, tmp_path):
    rng, before, calls, num_cut = random.Random(mode), held(), [], 0
    step_of = FUNCTIONS[mode][0]["step"]

    def counted(number, action):
        calls.append(number)
        return step_of(number, action)

    def start():
        calls.clear()
        journal = tmp_path / f"answers{moment}" if mode == "a journal" else None
        return planner_of(mode, step=counted, journal=journal)

    planner = None
    for moment in range(num_moments):
        planner = planner or start()
        result = interrupted(lambda planner=planner: uctree.plan(planner), rng.uniform(0, 0.03))
        num_cut += result is None or result.status == "interrupted"
        if planner.simulations == NUM:
            check(planner, calls, expected[FUNCTIONS[mode][1]])
            planner = None
    if planner is not None:
        assert uctree.plan(planner).status == "simulations"
        check(planner, calls, expected[FUNCTIONS[mode][1]])
    assert num_cut > 0
    assert_nothing_stays(before)


def check(planner, calls, expected):
    """Whether a planner that was stopped several times has the tree of one that was not."""
    assert planner.simulations == NUM
    assert shape(planner) == expected
    assert len(planner.book.behind) <= planner.costs["steps"] <= len(calls)
    planner.close()


@pytest.mark.parametrize("num_moments", OFTEN)
@pytest.mark.parametrize("mode", FUNCTIONS)
def test_a_plan_goes_on_after_a_second_ctrl_c(mode, num_moments, expected, tmp_path):
    rng, before = random.Random(mode), held()
    for moment in range(num_moments):
        journal = tmp_path / f"answers{moment}" if mode == "a journal" else None
        planner = planner_of(mode, journal=journal)
        interrupted(lambda planner=planner: uctree.plan(planner), *two_moments(rng, 0.01))
        result = uctree.plan(planner)
        assert (result.status, result.simulations) == ("simulations", NUM)
        assert shape(planner) == expected[FUNCTIONS[mode][1]]
        planner.close()
    assert_nothing_stays(before)


@pytest.mark.parametrize("num_moments", OFTEN)
def test_questions_and_answers_by_hand_are_whole_after_ctrl_c(num_moments, expected):
    rng, planner = random.Random("by hand"), None

    def run():
        planner.ask_again()
        while questions := planner.ask():
            for question in questions:
                planner.tell(question, planner.problem.answer(question))
        return True

    for _ in range(num_moments):
        planner = planner or planner_of("several")
        interrupted(run, rng.uniform(0, 0.03))
        if planner.simulations == NUM:
            assert shape(planner) == expected[6]
            planner = None
    if planner is not None:
        run()
        assert shape(planner) == expected[6]


def test_a_book_without_its_torn_end_is_as_before():
    planner = planner_of("one at a time", num_simulations=20)
    uctree.plan(planner)
    book = planner.book
    before = len(book), book.most_actions, book.has_priors
    book.states.append(7)
    book.to_play.append(0)
    book.actions.append(tuple(range(99)))
    book.drop_torn()
    assert (len(book), book.most_actions, book.has_priors) == before
    assert len(book.actions) == len(book.to_play) == len(book.values)


def test_a_result_is_kept_if_the_first_ctrl_c_comes_in_a_function():
    result = uctree.plan(problem_of("one at a time", step=Once(step, 20)), 1, num_simulations=NUM)
    assert result.status == "interrupted"
    assert 0 < result.simulations < NUM
    assert result.costs["steps"] == 20
    assert np.isfinite(result.value).all()
