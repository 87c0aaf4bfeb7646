"""Problem: its arguments, its answers, and what its functions may return."""

from __future__ import annotations

import asyncio
import math

import pytest

import uctree
from tests.planning.counting import counting, step
from uctree import BrokenGame, Problem, Step
from uctree.kernels.records import NONE
from uctree.planning.problem import (
    Question,
    as_actions,
    as_outcomes,
    as_step,
    as_value,
    as_vector,
)

pytestmark = pytest.mark.quick


def no_actions(number):
    return []


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"actions": None}, TypeError, "give one of the two"),
        ({"propose": no_actions}, TypeError, "give one of the two"),
        ({"values": no_actions}, TypeError, "give one of value= for one state"),
        ({"dump": str}, TypeError, "dump= and load= belong together"),
        ({"num_players": 0}, ValueError, "num_players must be a whole number of at least 1; got 0"),
        ({"horizon": 1.5}, ValueError, "horizon must be a whole number"),
        ({"max_actions": True}, ValueError, "max_actions must be a whole number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        counting(**given)


def about(state, edge=NONE, action=None):
    return Question(0, 0, edge, state, action)


def test_an_answer_has_what_is_behind_an_action():
    found = counting().answer(about(3, 0, "add"))
    assert (found.state, found.reward, found.over) == (4, (0.0,), False)
    assert list(found.actions) == ["add", "double"]
    assert found.value == (4 / 16,)
    assert counting().answer(about(4, 1, "double")).over


def test_a_state_without_actions_is_an_end():
    assert counting(actions=no_actions).answer(about(3, 0, "add")).to_play == uctree.OVER


def test_without_a_value_a_random_playout_gives_one():
    problem = counting(value=None)
    values = {problem.answer(about(1), seed=seed).value[0] for seed in range(30)}
    assert values == {0.0, 1.0}
    assert problem.answer(about(1), seed=3) == problem.answer(about(1), seed=3)


def test_functions_may_be_async_and_are_then_awaited():
    async def late(number, action):
        await asyncio.sleep(0)
        return step(number, action)

    problem = counting(step=late)
    assert problem.is_async
    assert not counting().is_async
    assert asyncio.run(problem.answer_async(about(3, 0, "add"))).state == 4
    with pytest.raises(TypeError, match=r"await problem\.answer_async"):
        problem.answer(about(3, 0, "add"))


def test_costs_belong_to_the_call_that_booked_them():
    def costly(number, action):
        uctree.spent(usd=0.5, tokens=3)
        uctree.spent(usd=0.25)
        return step(number, action)

    assert counting(step=costly).answer(about(3, 0, "add")).costs == {"usd": 0.75, "tokens": 3}
    uctree.spent(usd=1.0)  # outside of a call it does nothing
    wrong = counting(step=lambda number, action: uctree.spent(usd=-1.0))
    with pytest.raises(ValueError, match=r"spent\(usd=\) takes a number of at least 0; got -1\.0"):
        wrong.answer(about(3, 0, "add"))


def test_proposals_that_were_tried_are_left_out():
    problem = Problem(propose=lambda n, tried, k: ["add", "double"], step=step, value=lambda n: 0.0)
    found = problem.answer(Question(0, 0, 1, 3, None, tried=("add",), wanted=1))
    assert list(found.proposed) == ["double"]


def test_chance_needs_its_outcomes():
    tossing = counting(step=lambda number, action: Step(number, to_play=uctree.CHANCE))
    with pytest.raises(BrokenGame, match="the Problem has no chance="):
        tossing.answer(about(3, 0, "add"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_step(None, "add"), r"step\(state, 'add'\) must return uctree\.Step"),
        (lambda: as_actions(["a", "a"], None), "lists 'a' twice"),
        (lambda: as_actions([["a"]], None), r"actions must be hashable.*got \['a'\]"),
        (lambda: as_actions([("a", -1.0)], True), "priors must be numbers of at least 0"),
        (lambda: as_outcomes([("a", 0.5)]), "add up to 1"),
        (lambda: as_outcomes([]), "add up to 1"),
        (lambda: as_vector([1.0], 2, 0), "a reward is a finite number, or one per player"),
        (lambda: as_vector(1.0, 2, uctree.CHANCE), "no player acted"),
        (lambda: as_value(1.0, 2), "one finite number per player"),
        (lambda: as_value(math.nan, 1), "one finite number per player"),
    ],
)
def test_what_functions_return_is_checked(call, message):
    with pytest.raises(BrokenGame, match=message):
        call()


def test_what_functions_may_return():
    assert as_step((5, 1.0), "add") == Step(5, 1.0)
    assert as_actions([("a", 0.5), ("b", 0.0)], True) == (("a", "b"), (0.5, 0.0))
    with pytest.raises(BrokenGame, match="these may be actions, or actions with their priors"):
        as_actions([("a", 0.5), ("b", 0.0)], None)
    assert as_actions([("a", 1), ("b", 2)], None) == ((("a", 1), ("b", 2)), None)
    assert [*map(list, as_outcomes([("a", 1.0), ("b", 0.0)]))] == [["a"], [1.0]]
    assert list(as_vector(2.0, 3, 1)) == [0.0, 2.0, 0.0]
    assert list(as_value([1, 2], 2)) == [1.0, 2.0]
