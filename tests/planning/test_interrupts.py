"""Ctrl-C in a plan, by a real signal and by functions that raise: no answer and no cost is lost."""

from __future__ import annotations

import asyncio
import itertools
import random
import time

import numpy as np
import pytest

import uctree
from tests.pressing import assert_nothing_stays, held, interrupted, two_moments
from uctree import Planner, Problem, Step, UctreeError

OFTEN = [pytest.param(5), pytest.param(200, marks=pytest.mark.slow)]


def actions(number):
    return () if number > 10**12 else (1, 2, 3)


def step(number, action):
    uctree.spent(steps=1)
    after = 3 * number + action
    return Step(after, (after % 7) / 70)


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


def key(number):
    return number


PLAIN = {"step": step, "value": value}
# The functions, and the numbers of simulations in flight and in all: those of a tenth of a second.
MODES = {
    "one at a time": (PLAIN, 1, 4000),
    "several": (PLAIN, 6, 4000),
    "equal states": (PLAIN | {"key": key}, 6, 4000),
    "values of many": ({"step": step, "values": values}, 6, 2000),
    "threads": (PLAIN | {"step": step_slowly}, 6, 300),
    "async": (PLAIN | {"step": step_later}, 6, 300),
    "a journal": (PLAIN, 3, 2000),
}
ALL = {mode: num for mode, (_, _, num) in MODES.items()}


def problem_of(mode, **functions):
    return Problem(**({"actions": actions} | MODES[mode][0] | functions))


def planner_of(mode, **given):
    functions = {name: given.pop(name) for name in ("step", "values") if name in given}
    options = {"in_flight": MODES[mode][1], "seed": 1, "num_simulations": ALL[mode]}
    return Planner(problem_of(mode, **functions), 1, **(options | given))


def shape(planner):
    """The statistics of a tree; the numbers of states depend on the order of answers."""
    edges = planner.result().tree.edges
    used = planner.result().tree.num_edges + 1
    return [edges[name][:used].tolist() for name in ("action", "visits", "value_sum", "first")]


@pytest.fixture(scope="module")
def expected():
    """The tree of a plan of each mode that nothing interrupted."""
    found = {}
    for mode in MODES:
        planner = planner_of(mode)
        uctree.plan(planner)
        found[mode] = shape(planner)
    return found


class Once:
    """A function that raises at one of its calls."""

    def __init__(self, function, number, error=KeyboardInterrupt):
        self.function, self.number, self.error, self.calls = function, number, error, 0

    def __call__(self, *arguments):
        self.calls += 1
        given = self.function(*arguments)
        if self.calls == self.number:
            raise self.error
        return given


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", [1, 2, 3, 50, 150])
@pytest.mark.parametrize(
    "mode", ["one at a time", "several", "equal states", "values of many", "a journal"]
)
def test_a_plan_goes_on_after_a_function_was_interrupted(
    mode, call, error, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr("uctree.planning.calls.SLOW_CALL", 1.0)  # no call gets a thread
    journal = tmp_path / "answers" if mode == "a journal" else None
    once = Once(step, call, error)
    planner = planner_of(mode, step=once, journal=journal)
    if error is KeyboardInterrupt:
        assert uctree.plan(planner).status == "interrupted"
    else:
        with pytest.raises(SystemExit):
            uctree.plan(planner)
    assert planner.simulations < ALL[mode]
    result = uctree.plan(planner)
    assert (result.status, planner.simulations) == ("simulations", ALL[mode])
    assert shape(planner) == expected[mode]
    assert result.costs == {"steps": once.calls}  # also those that were made in vain
    assert once.calls <= len(planner.book.behind) + MODES[mode][1]
    planner.close()
    if journal is not None:
        again = planner_of(mode, step=None, journal=journal)
        assert uctree.plan(again).costs == result.costs
        assert shape(again) == expected[mode]
        again.close()


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
@pytest.mark.parametrize("mode", MODES)
def test_a_plan_goes_on_after_ctrl_c_at_any_moment(mode, num_moments, expected, tmp_path):
    rng, before, calls, num_cut = random.Random(mode), held(), [], 0
    step_of = MODES[mode][0]["step"]

    def counted(number, action):
        calls.append(number)
        return step_of(number, action)

    def start():
        calls.clear()
        journal = tmp_path / f"answers{next(numbers)}" if mode == "a journal" else None
        return planner_of(mode, step=counted, journal=journal)

    planner, numbers = None, itertools.count()
    for _ in range(num_moments):
        planner = planner or start()
        result = interrupted(lambda planner=planner: uctree.plan(planner), rng.uniform(0, 0.05))
        num_cut += result is None or result.status == "interrupted"
        if planner.simulations == ALL[mode]:
            check(planner, mode, calls, expected[mode])
            planner = None
    if planner is not None:
        assert uctree.plan(planner).status == "simulations"
        check(planner, mode, calls, expected[mode])
    assert num_cut > 0
    assert_nothing_stays(before)


def check(planner, mode, calls, expected):
    """Whether a planner that was stopped several times has the tree of one that was not."""
    assert planner.simulations == ALL[mode]
    assert shape(planner) == expected
    assert len(planner.book.behind) <= planner.costs["steps"] <= len(calls)
    planner.close()


@pytest.mark.parametrize("num_moments", OFTEN)
@pytest.mark.parametrize("mode", MODES)
def test_a_plan_goes_on_after_a_second_ctrl_c(mode, num_moments, expected, tmp_path):
    rng, before = random.Random(mode), held()
    for moment in range(num_moments):
        journal = tmp_path / f"answers{moment}" if mode == "a journal" else None
        planner = planner_of(mode, journal=journal)
        interrupted(lambda planner=planner: uctree.plan(planner), *two_moments(rng, 0.01))
        result = uctree.plan(planner)
        assert (result.status, result.simulations) == ("simulations", ALL[mode])
        assert shape(planner) == expected[mode]
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
        if planner.simulations == ALL["several"]:
            assert shape(planner) == expected["several"]
            planner = None
    if planner is not None:
        run()
        assert shape(planner) == expected["several"]


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
    result = uctree.plan(problem_of("one at a time", step=Once(step, 20)), 1, num_simulations=100)
    assert result.status == "interrupted"
    assert 0 < result.simulations < 100
    assert result.costs["steps"] == 20
    assert np.isfinite(result.value).all()
