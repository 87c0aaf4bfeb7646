"""The doctor for problems: a broken problem for each rule, and good ones without a finding."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import uctree
from uctree import CHANCE, Problem, Step, adapters
from uctree.doctor.contract import PROBLEM_RULES
from uctree.doctor.problems import image


class Heap:
    """Two players take one or two; who takes the last one wins."""

    def __init__(self, left, turn=0):
        self.left, self.turn, self.taken = left, turn, []

    def legal(self):
        return [n for n in (1, 2) if n <= self.left]

    def taking(self, count):
        after = Heap(self.left - count, 1 - self.turn)
        after.taken = [*self.taken, count]
        return after


def take(heap, count):
    after = heap.taking(count)
    won = (1.0, -1.0) if heap.turn == 0 else (-1.0, 1.0)
    return Step(after, won if after.left == 0 else 0.0, after.turn, after.left == 0)


def dumped(heap):
    return [heap.left, heap.turn, heap.taken]


def loaded(data):
    heap = Heap(data[0], data[1])
    heap.taken = list(data[2])
    return heap


def nim(**functions):
    given = {
        "actions": Heap.legal, "step": take, "num_players": 2, "payoff_range": (-1, 1),
        "value": lambda heap: (0.0, 0.0), "key": lambda heap: (heap.left, heap.turn),
        "dump": dumped, "load": loaded, "name": "nim",
    }  # fmt: skip
    return Problem(**(given | functions))


def takes_in_place(heap, count):
    heap.left -= count
    return Step(heap, 0.0, 0, heap.left <= 0)


def shares_taken(heap, count):
    step = take(heap, count)
    step.state.taken = heap.taken
    heap.taken.append(count)
    return step


KEPT = []


def spoils_earlier(heap, count):
    KEPT.append(heap)
    if len(KEPT) > 4 and KEPT[-3].left > heap.left:
        KEPT[-3].taken.append(9)
    return take(heap, count)


def pays_the_next(heap, count):
    step = take(heap, count)
    return step if not step.over else step._replace(reward=[-x for x in step.reward])


def raising(heap):
    raise KeyError("left")


BROKEN = {
    "raises": nim(actions=raising),
    "actions-form": nim(actions=lambda heap: [[1]]),
    "actions-form, twice": nim(actions=lambda heap: [1, 1]),
    "step-form": nim(step=lambda heap, count: take(heap, count)._replace(to_play=2, over=False)),
    "step-form, reward": nim(step=lambda heap, count: take(heap, count)._replace(reward="one")),
    "outcomes": nim(step=lambda h, n: Step(h.taking(n), to_play=CHANCE)),
    "outcomes, sum": nim(
        step=lambda h, n: Step(h.taking(n), to_play=CHANCE), chance=lambda heap: [(1, 0.5)]
    ),
    "value-form": nim(value=lambda heap: 0.5),
    "same-again": nim(step=lambda h, n: take(h, n)._replace(reward=(random.random(), 0.0))),
    "keeps-its-argument": nim(step=takes_in_place),
    "keeps-its-argument, part": nim(step=shares_taken),
    "shares-nothing": nim(step=spoils_earlier),
    "key-holds": nim(key=lambda heap: heap.turn),
    "dump-and-load": nim(load=lambda data: Heap(data[0])),
    "dump-and-load, json": nim(dump=lambda heap: {heap}, load=loaded),
    "every-player-moves": nim(
        step=lambda h, n: Step(Heap(h.left - n), 0.0, 0, h.left - n == 0), key=None
    ),
    "last-mover-wins": nim(step=pays_the_next),
    "value-in-range": nim(value=lambda heap: (3.0, -3.0)),
    "pays": nim(step=lambda h, n: take(h, n)._replace(reward=0.0)),
    "ends": nim(actions=lambda heap: [0], step=lambda h, n: Step(Heap(5, 1 - h.turn), 0.0,
                                                                   1 - h.turn)),
}  # fmt: skip


def test_a_good_problem_has_no_finding():
    report = uctree.check(nim(), Heap(9))
    assert report.findings == ()
    assert report.ok
    assert set(report.checked) == set(PROBLEM_RULES) - {"outcomes"}
    assert "compiled" not in str(report).lower()
    json.dumps(report.to_json())


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_is_found_broken(name):
    KEPT.clear()
    rule = name.split(",")[0]
    report = uctree.check(BROKEN[name], Heap(9))
    found = {finding.rule: finding for finding in report.findings}
    assert rule in found
    assert found[rule].severity == PROBLEM_RULES[rule][0]
    assert report.ok == all(finding.severity == "warning" for finding in report.findings)
    assert PROBLEM_RULES[rule][2] in str(report)
    json.dumps(report.to_json())


def test_every_rule_has_a_broken_problem():
    assert {name.split(",")[0] for name in BROKEN} == set(PROBLEM_RULES)


def test_the_page_lists_the_rules():
    text = (Path(__file__).parents[2] / "docs/problems.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (error|warning) \| (.*?) \| (.*) \|$", text, re.M)
    assert {row[0]: row[1:] for row in rows} == PROBLEM_RULES


def test_objects_and_async_functions_are_checked():
    class Shared:
        def __init__(self):
            self.line = []

        def legal(self):
            return [] if len(self.line) > 4 else [1, 2]

        def step(self, action):
            self.line.append(action)

        def clone(self):
            other = Shared()
            other.line = self.line
            return other

    report = uctree.check(Shared())
    assert "keeps-its-argument" in {finding.rule for finding in report.findings}

    async def later(heap, count):
        return take(heap, count)

    assert uctree.check(nim(step=later), Heap(7)).ok
    assert uctree.check(adapters.from_object(Heap(5), to_play="turn", num_players=2,
                                             step=Heap.taking, clone=None)).ok  # fmt: skip


def test_an_attribute_that_is_computed_once_is_no_change():
    heap = Heap(3)
    before = image(heap)
    heap.cache = 5
    assert image(heap) == before
    heap.left = 2
    assert image(heap) != before
