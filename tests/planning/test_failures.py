"""Failures and kills at random, with a journal: nothing is asked twice, no visit is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

import uctree
from tests.planning.test_planner import lines
from tests.planning.test_proposals import adding, check_labels
from uctree import Problem, Step
from uctree.planning.planner import Planner


def fails(question):
    """Whether the calls for a question fail: always the same ones."""
    if question.edge < 0:
        return False
    return random.Random(f"{question.state} {question.action} {question.edge}").random() < 0.2


def what(question):
    return question.row, question.edge, question.wanted


class Run:
    """A planner that is killed again and again; what is written down must outlive it."""

    def __init__(self, problem, journal, luck, **arguments):
        self.problem, self.journal, self.arguments = problem, journal, arguments
        self.rng, self.told = random.Random(luck), []
        self.num_killed = self.num_failed = 0

    def tear(self):
        """Cut the last line, as a kill in the middle of writing it does."""
        content = self.journal.read_bytes()
        last = content.rstrip(b"\n").rfind(b"\n") + 1
        if last and self.rng.random() < 0.5 and self.told:
            self.journal.write_bytes(content[: self.rng.randrange(last + 1, len(content))])
            self.told.pop()

    def until_killed(self, most):
        """Answer in any order; returns the planner if it came to its end."""
        planner = Planner(self.problem, 0, journal=self.journal, **self.arguments)
        waiting = []
        for _ in range(most):
            waiting += planner.ask(self.rng.choice([1, 2, None]))
            if not waiting:
                planner.close()
                return planner
            question = waiting.pop(self.rng.randrange(len(waiting)))
            if fails(question):
                self.num_failed += 1
                planner.tell_failure(question, "the line is dead", costs={"usd": 1.0})
            else:
                planner.tell(question, self.problem.answer(question))
            self.told.append(what(question))
        planner._journal.close()
        self.num_killed += 1
        self.tear()
        return None


def run(problem, journal, luck, most, **arguments):
    each = Run(problem, journal, luck, **arguments)
    planner = None
    while planner is None:
        planner = each.until_killed(each.rng.randrange(1, most))
    return planner, each


@pytest.mark.parametrize(
    "seed", [1, 2, *[pytest.param(n, marks=pytest.mark.slow) for n in range(3, 21)]]
)
@pytest.mark.parametrize("is_proposed", [False, True])
@pytest.mark.usefixtures("both_ways")
def test_no_answer_is_asked_twice_and_the_tree_is_the_same(tmp_path, seed, is_proposed):
    listed = {} if is_proposed else {"propose": None, "actions": lambda n: [1, 2, 3, 5, 8]}
    problem = adding(**listed)
    arguments = {"num_simulations": 70, "in_flight": 7, "seed": 1}
    planner, each = run(problem, tmp_path / "run.jsonl", seed, 12, **arguments)
    assert each.num_killed > 5
    assert each.num_failed > 5
    assert len(each.told) == len(set(each.told))
    check_labels(planner.book)
    assert planner.simulations == 70
    assert planner.costs == {"usd": float(len(planner.book.failed))}
    wanted, _ = run(problem, tmp_path / "other.jsonl", 0, 10**6, **arguments)
    assert lines(planner.result()) == lines(wanted.result())


# --- a plan in which everything goes wrong -------------------------------------------------------

SECONDS = 1.0  # of patience with a call; more than it takes on a busy machine


class Unsteady:
    """A step that fails and hangs in the same places every time, and kills its process once."""

    def __init__(self, log, num_steps):
        self.log, self.left, self.seen = log, num_steps, set()

    def __call__(self, number, action):
        luck = random.Random(f"{number} {action}").random()
        is_first = (number, action) not in self.seen
        self.seen.add((number, action))
        if luck < 0.25 and (is_first or luck < 0.04):  # some do so again
            os.write(self.log, b"f")
            raise OSError("the line is dead")
        if luck > 0.97 and (is_first or luck > 0.996):
            os.write(self.log, b"t")
            time.sleep(2 * SECONDS)
        self.left -= 1
        if self.left == 0:
            os.write(self.log, b"k")
            os.kill(os.getpid(), signal.SIGKILL)
        return Step(4 * number + action + 1, (number + action) % 7 / 7, over=number > 4**9)


def unsteady(log, num_steps, journal, num_simulations=1500):
    problem = Problem(
        actions=lambda number: (0, 1, 2, 3), value=lambda number: number % 5 / 5,
        step=Unsteady(log, num_steps),
    )  # fmt: skip
    return uctree.plan(
        problem, 0, num_simulations=num_simulations, in_flight=50, seed=1, journal=journal,
        on_error="drop", timeout=SECONDS, retries=1, backoff=0,
    )  # fmt: skip


def killed(log, num_steps, journal):
    """Whether a plan in a process of its own was killed before it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            unsteady(log, num_steps, journal)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.mark.slow
def test_a_thousand_failures_timeouts_and_kills_change_nothing(tmp_path: Path):
    journal, rng = tmp_path / "run.jsonl", random.Random(1)
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    unsteady(log, 0, None, num_simulations=2)  # what is compiled is so for all processes
    num_killed = 0
    while killed(log, rng.randrange(5, 50), journal):
        num_killed += 1
    events = (tmp_path / "log").read_bytes()
    assert events.count(b"k") == num_killed > 30
    assert min(events.count(b"f"), events.count(b"t")) > 100
    assert len(events) > 1000
    lines_read = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    places = [(line["row"], line["index"]) for line in lines_read]
    assert len(places) == len(set(places)) > 1000
    found = unsteady(log, 0, journal)  # it asks nothing any more
    assert len(journal.read_text().splitlines()) == len(places) + 1
    wanted = unsteady(log, 0, tmp_path / "other.jsonl")
    assert lines(found) == lines(wanted)
    assert found.num_failed == wanted.num_failed > 20
    os.close(log)
