"""What functions of a problem may return, what they cost, and what happens if they fail."""

from __future__ import annotations

import asyncio
import json
import random
import time

import numpy as np
import pytest

import uctree
from tests.planning.test_calls import counting, step
from tests.planning.test_planner import lines, planned
from uctree import BrokenGame, Problem, Step, UctreeError, selection
from uctree.game import CHANCE
from uctree.planning.answers import answers_at_once
from uctree.planning.planner import Planner
from uctree.planning.playouts import SeededPlayout
from uctree.planning.problem import Answer, Question, as_actions, stable_hash

pytestmark = pytest.mark.usefixtures("both_ways")


# --- answers that come at once -------------------------------------------------------------------


def drop(number, action):
    """From 1 to 8 exactly; a coin falls behind "toss", and other players move after a "pass"."""
    if action == "toss":
        return Step(("coin", number), to_play=CHANCE)
    if isinstance(number, tuple):
        return Step(number[1] + action, (0.5, -0.5))
    if action == "pass":
        return Step(number, 1.0, to_play=1)
    return Step(number + 1, np.array([number, 1.0]), over=number > 6)


COIN = {
    "actions": lambda number: ["add", "toss", "pass"] if number < 9 else [], "step": drop,
    "chance": lambda coin: [(1, 0.25), (2, 0.75)], "num_players": 2,
    "payoff_range": (-9, 9), "horizon": 6,
}  # fmt: skip
AT_ONCE = {
    "value": {"value": lambda number: (number / 9, -1)},
    "priors": {"value": lambda number: [1, 2], "actions": lambda n: [("add", 0.5), ("toss", 0.5)]},
    "key": {"value": lambda number: (0, 0), "key": lambda number: number},
    "playout": {"playout": lambda number, rng: [rng.random(), rng.random()]},
    "seeded": {"playout": SeededPlayout(lambda number, seed: (seed % 7, seed % 5))},
    "steps": {},
    "steps and a key": {"key": lambda number: str(number)},
}


@pytest.mark.parametrize("functions", AT_ONCE.values(), ids=AT_ONCE)
def test_answers_at_once_are_those_to_questions(functions):
    problem = Problem(**(COIN | functions))
    answer = answers_at_once(problem, 5)
    asked = [(1, "add", 0), (1, "toss", 1), (("coin", 1), 2, CHANCE), (2, "pass", 1), (9, "add", 0),
             (8, "add", 0)]  # fmt: skip
    for number, (state, action, player) in enumerate(asked):
        question = Question(number, 0, 0, state, action, (), player, 0, 100 + number)
        wanted = problem.answer(question, seed=5)._replace(costs=None)
        assert answer(state, action, player, 100 + number) == tuple(wanted)


@pytest.mark.parametrize("name", ["step", "actions", "chance", "value", "playout"])
def test_what_must_be_waited_for_is_no_answer_at_once(name):
    async def later(*arguments):
        return COIN.get(name, max)(*arguments)

    functions = COIN | {"value" if name != "playout" else "playout": later}
    answer = answers_at_once(Problem(**(functions | {name: lambda *given: later(*given)})), 5)
    assert answer(1, "toss" if name == "chance" else "add", 0, 1) is None


def test_answers_at_once_leave_out_what_is_known():
    problem = counting(key=lambda number: number)
    answer = answers_at_once(problem, 5, knows=lambda key: key == 2)
    assert answer(1, "add", 0, 1) == (2, (0.0,), 0, False, (), None, None, None, None)
    assert answer(2, "add", 0, 1)[4] == ("add", "double")


# --- random playouts -----------------------------------------------------------------------------


def without_value(**functions):
    def dig(number, action):
        after = 3 * number + action
        return Step(after, after % 7 / 7, over=after > 5000)

    return Problem(actions=lambda number: [0, 1, 2], step=dig, **functions)


@pytest.mark.parametrize(
    "functions",
    [{}, {"key": lambda n: n % 40}, {"playout": lambda n, rng: rng.random()}],
    ids=["steps", "key", "playout"],
)
def test_playouts_do_not_depend_on_the_order_of_answers(functions):
    problem, found = without_value(**functions), []
    for seed in range(4):
        shuffle = random.Random(seed) if seed else None
        found.append(
            lines(planned(problem, 1, 0, shuffle, num_simulations=90, in_flight=8, seed=2))
        )
    assert found[0] == found[1] == found[2] == found[3]


def test_keys_that_are_equal_have_the_same_hash_in_every_process():
    assert stable_hash((1, True, "a")) == stable_hash((1.0, 1, "a"))
    assert stable_hash(frozenset("abc")) == stable_hash(frozenset("cba"))
    assert stable_hash("knight") == 6709209225260674402
    assert stable_hash(object()) == stable_hash(object())


# --- wrong answers -------------------------------------------------------------------------------

WRONG = {
    "value": {"value": lambda n: float("nan") if n == 3 else 0.5},
    "value of nothing": {"value": lambda n: None if n == 3 else 0.5},
    "reward": {"step": lambda n, a: step(n, a)._replace(reward="much") if n == 2 else step(n, a)},
    "to_play": {"step": lambda n, a: step(n, a)._replace(to_play=1) if n == 2 else step(n, a)},
    "priors": {"priors": True, "actions": lambda n: [("add", 1.0), ("double", -float(n == 3))]},
}


@pytest.mark.parametrize("functions", WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_a_call_that_failed(functions, tmp_path):
    problem, journal = counting(**functions), tmp_path / "run.jsonl"
    with pytest.raises(UctreeError, match="failed with BrokenGame"):
        uctree.plan(problem, 1, num_simulations=60, seed=1, journal=journal)
    for _ in range(2):
        result = uctree.plan(
            problem, 1, num_simulations=60, seed=1, journal=journal, on_error="drop"
        )
        assert result.simulations == 60
        assert result.num_failed > 0


def test_a_wrong_answer_is_asked_for_again():
    given = []

    def value(number):
        given.append(number)
        return "no number" if given.count(number) == 1 else number / 16

    result = uctree.plan(counting(value=value), 1, num_simulations=20, seed=1, retries=1, backoff=0)
    assert (result.edges == uctree.plan(counting(), 1, num_simulations=20, seed=1).edges).all()


def test_a_planner_refuses_a_wrong_answer_and_takes_a_right_one(tmp_path):
    problem = counting()
    planner = Planner(problem, 1, num_simulations=10, seed=1, journal=tmp_path / "run.jsonl")
    (question,) = planner.ask()
    for answer in (
        Answer(1, value="x", actions=["a"]), Answer(1, to_play=5), Answer(1, actions=[[]]),
        Answer(1, reward=[1, 2]),
    ):  # fmt: skip
        with pytest.raises(BrokenGame):
            planner.tell(question, answer)
    planner.tell(question, problem.answer(question))
    planner.close()
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 2


def test_numbers_of_numpy_are_numbers():
    def stepped(number, action):
        after = step(number, action)
        return Step(after.state, np.float32(after.reward), np.int64(0), np.bool_(after.over))

    wanted = uctree.plan(counting(), 1, num_simulations=30, seed=1).edges
    for value in (lambda n: np.float32(n / 16), lambda n: np.array(n / 16)):
        problem = counting(step=stepped, value=value)
        assert (uctree.plan(problem, 1, num_simulations=30, seed=1).edges == wanted).all()
    problem = counting(value=lambda n: np.int64(1))
    assert uctree.plan(problem, 1, num_simulations=9).value[0] == pytest.approx(1.0, abs=0.5)


def test_numbers_of_numpy_are_written_to_a_journal(tmp_path):
    problem = counting(
        step=lambda n, a: Step(*step(n, a)[:2], np.int64(0), np.bool_(step(n, a).over)),
        value=lambda n: np.float32(0.5),
    )
    arguments = {"num_simulations": 20, "seed": 1, "journal": tmp_path / "run.jsonl"}
    first = uctree.plan(problem, 1, **arguments)
    assert (uctree.plan(problem, 1, **arguments).edges == first.edges).all()


# --- failed actions that have a value ------------------------------------------------------------


def broken(number, action):
    if action == "double":
        raise ConnectionError("no line")
    return step(number, action)


@pytest.mark.parametrize(
    "functions",
    [
        {"key": lambda n: n + 0},
        {"dump": lambda n: n + 0, "load": int},
        {"show": lambda n: f"{n:d}"},
    ],
    ids=["key", "dump", "show"],
)
def test_a_failed_action_with_a_value_has_no_state(functions, tmp_path):
    problem = counting(step=broken, **functions)
    arguments = {"on_error": "value", "error_value": -2.0, "journal": tmp_path / "run.jsonl"}
    for _ in range(2):
        result = uctree.plan(problem, 1, num_simulations=30, seed=1, **arguments)
        assert result.edges["q"][1] == -2.0
        result.save(tmp_path / "plan.html")
    with pytest.raises(ValueError, match="solver=True would take it for proven"):
        uctree.plan(
            problem, 1, num_simulations=5, solver=True, on_error="value", error_value=0.0
        )  # fmt: skip


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"transpositions": True}, "give the Problem key=f"),
        ({"chance": selection.outcome_widening()}, "outcome_widening.* is for compiled games"),
        ({"stop": uctree.stopping.decided()}, "stop= is an argument of plan"),
    ],
)
def test_options_that_a_planner_cannot_take_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Planner(counting(), 1, num_simulations=5, **given)


@pytest.mark.parametrize("in_flight", [1, 5])
def test_the_tree_stays_within_its_half_of_max_memory(in_flight):
    asked = []

    def dig(number, action):
        asked.append((number, action))
        return Step(50 * number + action + 1)

    problem = Problem(actions=lambda n: range(50), step=dig, value=lambda n: n % 7 / 7)
    arguments = {"num_simulations": 110, "seed": 1, "in_flight": in_flight}
    free = uctree.plan(problem, 0, **arguments)
    asked.clear()
    result = uctree.plan(problem, 0, max_memory=120_000, **arguments)
    assert free.tree.num_bytes > 60_000 >= result.tree.num_bytes
    assert (result.simulations, result.status) == (110, "simulations")
    assert len(asked) == len(set(asked))


# --- priors --------------------------------------------------------------------------------------


def test_priors_may_begin_below_the_start():
    def actions(number):
        return ["add", "double"] if number == 1 else [("add", 0.25), ("double", 0.75)]

    result = uctree.plan(counting(actions=actions), 1, num_simulations=40, seed=1)
    assert result.simulations == 40
    same = uctree.plan(counting(actions=actions, priors=None), 1, num_simulations=40, seed=1)
    assert (result.edges == same.edges).all()


def test_priors_count_if_the_start_is_chance():
    favoured = counting(
        priors=True, actions=lambda n: [("add", 0.001), ("double", 0.999)], value=lambda n: 0.0,
        chance=lambda n: [(1, 0.5), (2, 0.5)],
        step=lambda n, a: Step(n + a, 0.0) if isinstance(a, int) else step(n, a),
    )  # fmt: skip
    result = uctree.plan(favoured, 0, to_play=CHANCE, num_simulations=12, seed=1)
    node = result.tree.root.child(result.tree.root.edges[0])
    assert result.tree.layout.priors
    visits = result.tree.edge_visits(node.edges)
    assert visits[1] > visits[0]


def test_pairs_that_may_be_actions_are_not_taken_as_priors():
    assert as_actions([("a", 0.5), ("b", 0.5)], None) == (("a", "b"), (0.5, 0.5))
    assert as_actions([("a", np.float32(1))], None) == (("a",), (1.0,))
    assert as_actions([(0.5, 1.0)], False) == (((0.5, 1.0),), None)
    assert as_actions([(0.5, 3.0)], True) == ((0.5,), (3.0,))
    for pairs in ([(0.5, 1.0)], [(0.5, 0.5), (1, 0.5)], [("buy", 2.5)], [("a", -1.0), ("b", 2.0)]):
        with pytest.raises(BrokenGame, match=r"priors=False.* or Problem\(priors=True"):
            as_actions(pairs, None)
    with pytest.raises(BrokenGame, match="lists pairs"):
        as_actions(["a"], True)


# --- keys ----------------------------------------------------------------------------------------


def test_nothing_is_asked_about_a_state_whose_key_is_known():
    valued, listed = [], []
    problem = Problem(
        actions=lambda n: listed.append(n) or [1, 2], value=lambda n: valued.append(n) or 0.5,
        step=lambda n, a: Step(n + a, over=n + a > 9), key=lambda n: n,
    )  # fmt: skip
    uctree.plan(problem, 0, num_simulations=80, seed=1)
    assert len(valued) == len(set(valued))
    assert len(listed) == len(set(listed))


# --- costs ---------------------------------------------------------------------------------------


def test_failed_calls_and_retries_cost(tmp_path):
    calls = []

    def costly(number, action):
        uctree.spent(usd=1)
        calls.append(action)
        return broken(number, action)

    arguments = {"num_simulations": 15, "seed": 1, "on_error": "drop", "retries": 2, "backoff": 0}
    journal = tmp_path / "run.jsonl"
    result = uctree.plan(counting(step=costly), 1, journal=journal, **arguments)
    assert result.costs == {"usd": len(calls)}
    num_calls = len(calls)
    again = uctree.plan(counting(step=costly), 1, journal=journal, **arguments)
    assert again.costs == {"usd": num_calls} == {"usd": len(calls)}


def test_a_late_answer_costs(tmp_path):
    def late(number, action):
        if (number, action) == (1, "double"):
            time.sleep(0.2)
            uctree.spent(usd=7)
        elif number > 1:
            time.sleep(0.02)
        return step(number, action)

    journal = tmp_path / "run.jsonl"
    arguments = {"num_simulations": 60, "seed": 1, "on_error": "drop", "timeout": 0.1}
    result = uctree.plan(counting(step=late), 1, journal=journal, **arguments)
    assert result.costs == {"usd": 7}
    assert result.edges["visits"].tolist() == [60, 0]
    again = uctree.plan(counting(step=late), 1, journal=journal, **arguments)
    assert again.costs == {"usd": 7}


# --- async ---------------------------------------------------------------------------------------

WANTED = {"num_simulations": 40, "seed": 1}


class Async:
    async def __call__(self, number, action):
        return step(number, action)


async def stepped(number, action):
    await asyncio.sleep(0)
    return step(number, action)


async def valued(states):
    return [n / 16 for n in states]


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize(
    "functions",
    [
        {"step": Async()},
        {"step": lambda n, a: stepped(n, a)},
        {"value": None, "values": valued},
        {"value": None, "values": lambda states: valued(states)},
        {"value": None, "values": lambda states: np.array(states) / 16},
        {"step": stepped, "value": None, "values": lambda states: np.array(states) / 16},
    ],
    ids=["call", "lambda", "values", "lambda values", "array", "mixed"],
)
def test_functions_are_async_in_any_way(functions, in_flight):
    wanted = uctree.plan(counting(), 1, in_flight=in_flight, **WANTED).edges
    found = uctree.plan(counting(**functions), 1, in_flight=in_flight, **WANTED).edges
    assert (found == wanted).all()


@pytest.mark.parametrize("is_slow", [False, True])
def test_values_are_asked_for_together(is_slow):
    sizes = []

    async def slow(states):
        sizes.append(len(states))
        await asyncio.sleep(0.005)
        return [n / 16 for n in states]

    def quick(states):
        sizes.append(len(states))
        return [n / 16 for n in states]

    problem = counting(value=None, values=slow if is_slow else quick)
    uctree.plan(problem, 1, num_simulations=60, seed=1, in_flight=8)
    assert max(sizes) > 2


def test_one_state_without_a_value_spoils_no_other():
    def values(states):
        if 6 in states:
            raise ValueError("six")
        return [n / 16 for n in states]

    problem = counting(value=None, values=values)
    result = uctree.plan(problem, 1, num_simulations=60, seed=1, in_flight=8, on_error="drop")
    assert 0 < result.num_failed < 6
    assert result.simulations == 60


def test_slow_functions_beside_async_ones_do_not_wait_for_each_other():
    def slow(number):
        time.sleep(0.02)
        return 0.5

    problem = Problem(
        actions=lambda n: range(10), value=slow,
        step=lambda n, a: stepped_far(n, a),
    )  # fmt: skip
    began = time.perf_counter()
    uctree.plan(problem, 1, num_simulations=64, seed=1, in_flight=16)
    assert time.perf_counter() - began < 0.6 * 64 * 0.02


async def stepped_far(number, action):
    return Step(10 * number + action)


def test_a_call_that_takes_too_long_is_cancelled_and_made_again():
    cancelled, calls = [], []

    async def hanging(number, action):
        calls.append((number, action))
        try:
            await asyncio.sleep(
                30 if calls.count((number, action)) == 1 and action == "double" else 0
            )
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        return step(number, action)

    result = uctree.plan(
        counting(step=hanging), 1, timeout=0.05, retries=1, backoff=0, **WANTED
    )  # fmt: skip
    assert len(cancelled) > 0
    assert (result.edges == uctree.plan(counting(), 1, **WANTED).edges).all()


def test_calls_that_become_slow_get_threads():
    most = [0, 0]

    def late(number, action):
        if number > 4:
            most[0] += 1
            most[1] = max(most)
            time.sleep(0.01)
            most[0] -= 1
        return Step(number + action, over=number > 200)

    problem = Problem(actions=lambda n: range(1, 9), step=late, value=lambda n: n % 5 / 5)
    uctree.plan(problem, 0, num_simulations=80, seed=1, in_flight=8)
    assert most[1] > 2


# --- ends ----------------------------------------------------------------------------------------


def test_a_plan_without_time_for_its_start_says_so():
    async def slow(number):
        await asyncio.sleep(5)
        return ["add"]

    with pytest.raises(UctreeError, match="over before the start was evaluated"):
        uctree.plan(counting(actions=slow), 1, seconds=0.05)


def test_a_planner_gives_as_many_questions_as_are_wanted():
    problem = Problem(
        actions=lambda n: range(9), step=lambda n, a: Step(9 * n + a), value=lambda n: 0.5
    )
    planner = Planner(problem, 1, num_simulations=40, in_flight=6, seed=1)
    (start,) = planner.ask(1)
    planner.tell(start, problem.answer(start))
    first, rest = planner.ask(2), planner.ask()
    assert (len(first), len(rest)) == (2, 4)
    numbers = [question.number for question in first + rest]
    assert numbers == sorted(set(numbers))
    for question in first + rest:
        planner.tell(question, problem.answer(question))
    while questions := planner.ask(3):
        for question in questions:
            planner.tell(question, problem.answer(question))
    assert planner.result().simulations == 40


def test_an_answer_told_twice_is_refused():
    problem = counting()
    planner = Planner(problem, 1, num_simulations=10, seed=1)
    (question,) = planner.ask()
    planner.tell(question, problem.answer(question))
    with pytest.raises(ValueError, match="was answered already"):
        planner.tell(question, problem.answer(question))
    with pytest.raises(ValueError, match="was answered already"):
        planner.tell_failure(planner.ask()[0]._replace(number=0), "why")


def test_the_journal_of_a_planner_is_one_of_a_plan(tmp_path):
    journal, problem = tmp_path / "run.jsonl", counting()
    planner = Planner(problem, 1, num_simulations=25, seed=1, journal=journal)
    while questions := planner.ask():
        for question in questions:
            planner.tell(question, problem.answer(question))
    planner.close()
    silent = counting(step=lambda n, a: 1 / 0)
    found = uctree.plan(silent, 1, num_simulations=25, seed=1, journal=journal)
    assert (found.edges == planner.result().edges).all()
    for line in journal.read_text().splitlines():
        json.loads(line)
