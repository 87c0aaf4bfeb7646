"""How much memory states take: counted, and bounded by max_memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import uctree
from uctree import Problem, Step
from uctree.planning.footprint import num_bytes
from uctree.planning.planner import Planner


class Box:
    def __init__(self, content):
        self.content = content


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda: bytes(5000), 5000),
        (lambda: [bytes(1000) for _ in range(5)], 5000),
        (lambda: {"a": Box([1.5 * n for n in range(200)])}, 200 * 24),
        (lambda: np.zeros(1000), 8000),
    ],
)
def test_the_bytes_of_an_object_are_those_of_all_its_parts(make, least):
    tracemalloc.start()
    kept = make()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert least <= num_bytes([kept]) == pytest.approx(held, rel=0.2)
    assert num_bytes([(kept,)], [kept]) < 100  # the parts of another are not counted again
    assert num_bytes([kept, kept]) == num_bytes([kept])


def large(size):
    """States of so many bytes each."""
    return Problem(
        actions=lambda state: (0, 1, 2, 3), value=lambda state: state[0] % 7 / 7,
        step=lambda state, action: Step((4 * state[0] + action + 1, bytes(size))),
    )  # fmt: skip


@pytest.mark.parametrize("size", [0, 1000])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_plan_ends_when_tree_and_states_take_max_memory(size, in_flight):
    limit = 6000 * (size + 400)
    arguments = {"seed": 1, "in_flight": in_flight, "max_memory": limit}
    uctree.plan(large(size), (0, b""), num_simulations=9, **arguments)  # what is made only once
    tracemalloc.start()
    planner = Planner(large(size), (0, b""), num_simulations=10_000, **arguments)
    result = uctree.plan(planner)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.status == "full"
    assert ", full" in str(result)
    assert result.simulations > 2000
    assert held < limit
    # The rest is the tree, and memory to work with.
    states, rest = planner.book.footprint.num_bytes, held - result.tree.num_bytes
    assert limit / 2 <= states < 0.55 * limit
    assert 0.9 * states < rest < 1.03 * states + 150_000 * (1 + in_flight)


@pytest.mark.usefixtures("interpreted")
def test_a_full_plan_with_a_journal_goes_on_with_more_memory(tmp_path):
    arguments = {"seed": 1, "journal": tmp_path / "run.jsonl", "num_simulations": 150}
    problem = Problem(
        actions=lambda n: (0, 1, 2), step=lambda n, a: Step(3 * n + a + 1), value=lambda n: n % 5
    )
    wanted = uctree.plan(problem, 0, seed=1, num_simulations=150)
    found = [
        uctree.plan(problem, 0, max_memory=memory, **arguments)
        for memory in (50_000, 50_000, 1_000_000)
    ]
    assert [result.status for result in found] == ["full", "full", "simulations"]
    assert found[0].simulations == found[1].simulations < 100
    assert (found[2].edges == wanted.edges).all()
