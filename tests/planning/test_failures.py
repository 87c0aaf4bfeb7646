"""Failures and kills at random, with a journal: nothing is asked twice, no visit is lost."""

from __future__ import annotations

import random

import pytest

from tests.planning.test_planner import lines
from tests.planning.test_proposals import adding, check_labels
from uctree.planning.planner import Planner

pytestmark = pytest.mark.usefixtures("both_ways")


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
