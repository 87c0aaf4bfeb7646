"""plan(): budgets, failures, and functions that take their time."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time

import pytest

import uctree
from tests.planning.counting import counting, step
from uctree import Step, UctreeError

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("both_ways")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a plan needs a limit"),
        ({"num_simulations": 0}, "num_simulations must be at least 1; got 0"),
        ({"seconds": -1}, "seconds must be above 0; got -1"),
        ({"num_simulation": 5}, "did you mean num_simulations?"),
        ({"num_simulations": 5, "in_flight": 0}, "in_flight must be at least 1; got 0"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_asked(given, message):
    asked = []
    problem = counting(step=lambda number, action: asked.append(action))
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        uctree.plan(problem, 1, **given)
    assert asked == []


def test_the_result_speaks_of_the_problems_actions():
    result = uctree.plan(counting(), 1, num_simulations=100, seed=1)
    assert result.action == "add"
    assert result.principal_variation().actions == ["add", "double", "double"]
    assert result.best_episode().actions == ["add", "double", "double"]
    assert "double" in str(result)


def test_a_plan_that_ends_with_a_proof_says_so():
    short = counting(payoff_range=(0.0, 1.0))
    result = uctree.plan(short, 4, num_simulations=100, seed=1, solver=True)
    assert (result.action, result.status) == ("double", "solved")
    assert result.simulations < 100


@pytest.mark.parametrize("in_flight", [1, 6])
def test_functions_that_take_their_time_give_the_same_tree(in_flight):
    rng = random.Random(1)

    async def late(number, action):
        await asyncio.sleep(rng.random() / 500)
        return step(number, action)

    def slow(number, action):
        time.sleep(rng.random() / 250)
        return step(number, action)

    arguments = {"num_simulations": 60, "seed": 1, "in_flight": in_flight}
    wanted = uctree.plan(counting(), 1, **arguments).edges
    for function in (late, slow):
        found = uctree.plan(counting(step=function), 1, **arguments).edges
        assert (found == wanted).all()


def test_threads_are_used_again():
    threads = set()

    def slow(number, action):
        threads.add(threading.get_ident())
        time.sleep(0.002)
        return step(number, action)

    uctree.plan(counting(step=slow), 1, num_simulations=60, seed=1, in_flight=4)
    assert 2 < len(threads) <= 5  # the first answers come from the thread of the plan


def test_no_thread_is_left_behind():
    async def late(number, action):
        await asyncio.sleep(0.001)
        return step(number, action)

    before = threading.active_count()
    for _ in range(5):
        uctree.plan(counting(step=late), 1, num_simulations=20, in_flight=4)
    deadline = time.time() + 5
    while threading.active_count() > before and time.time() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before  # threads of earlier tests may end meanwhile


def test_a_budget_ends_the_plan():
    def costly(number, action):
        uctree.spent(usd=0.01)
        return step(number, action)

    result = uctree.plan(counting(step=costly), 1, num_simulations=100, budget={"usd": 0.05})
    assert result.status == "budget"
    assert 0 < result.simulations < 100


@pytest.mark.parametrize("is_async", [False, True])
def test_a_plan_ends_in_time_when_all_states_are_known(is_async):
    async def later(number, action):
        return Step(number + 1, over=True)

    problem = counting(step=later if is_async else lambda number, action: Step(number, over=True))
    result = uctree.plan(problem, 1, seconds=0.3, seed=1)
    assert result.status == "seconds"
    assert result.simulations > 4
    assert uctree.plan(problem, 1, num_simulations=300, seed=1).simulations == 300


def test_seconds_end_the_plan():
    result = uctree.plan(counting(), 1, seconds=0.05)
    assert result.status == "seconds"


def test_a_plan_stops_when_its_action_is_decided():
    sure = counting(step=lambda number, action: Step(0, float(action == "add"), over=True))
    result = uctree.plan(sure, 1, num_simulations=700, seed=1, stop=uctree.stopping.decided())
    assert (result.action, result.status) == ("add", "decided")
    assert 500 < result.simulations < 510  # the second look


def broken(number, action):
    if action == "double":
        raise ConnectionError("no line")
    return step(number, action)


def test_an_error_is_raised_by_default():
    with pytest.raises(UctreeError, match="'double' failed with ConnectionError: no line"):
        uctree.plan(counting(step=broken), 1, num_simulations=30)


def test_a_failed_action_is_dropped():
    result = uctree.plan(counting(step=broken), 1, num_simulations=30, on_error="drop")
    assert result.edges["visits"].tolist() == [30, 0]


def test_a_failed_action_has_a_stated_value():
    result = uctree.plan(
        counting(step=broken), 1, num_simulations=30, on_error="value", error_value=-2.0
    )
    assert result.edges["q"][1] == -2.0


def test_a_failed_call_is_made_again():
    calls = []

    def flaky(number, action):
        calls.append((number, action))
        if calls.count((number, action)) < 3:
            raise ConnectionError("no line")
        return step(number, action)

    result = uctree.plan(
        counting(step=flaky), 1, num_simulations=20, seed=1, retries=2, backoff=0.0
    )
    assert (result.edges == uctree.plan(counting(), 1, num_simulations=20, seed=1).edges).all()


def test_a_call_that_hangs_counts_as_failed():
    def hanging(number, action):
        time.sleep(60 if action == "double" else 0)
        return step(number, action)

    result = uctree.plan(
        counting(step=hanging), 1, num_simulations=10, timeout=0.2, on_error="drop", in_flight=2
    )
    assert result.edges["visits"].tolist() == [10, 0]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"budget": {"usd": float("nan")}}, "budget 'usd' must be a number above 0; got nan"),
        ({"budget": {"usd": -1}}, "budget 'usd' must be a number above 0; got -1"),
        ({"budget": {"usd": "2"}}, "budget 'usd' must be a number above 0; got '2'"),
        ({"timeout": float("nan")}, "timeout must be a number above 0; got nan"),
        ({"timeout": 0}, "timeout must be a number above 0; got 0"),
        ({"backoff": -1.0}, "backoff must be a number of at least 0; got -1.0"),
        ({"retries": -1}, "retries must be at least 0; got -1"),
    ],
)
def test_limits_that_limit_nothing_are_refused_before_anything_is_asked(limit, message):
    asked = counting(step=lambda state, action: pytest.fail("it was asked"))
    with pytest.raises(ValueError, match=re.escape(message)):
        uctree.plan(asked, 1, num_simulations=10, **limit)
    with pytest.raises(TypeError, match=re.escape("retries must be a whole number; got 1.5")):
        uctree.plan(asked, 1, num_simulations=10, retries=1.5)
