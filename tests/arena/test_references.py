"""Reference values of actions: exact ones, and those of long searches."""

from __future__ import annotations

import pytest

import uctree
from uctree import games
from uctree.arena import advise, random_states

NIM = games.nim(heaps=(2, 3, 4))


def test_exact_references_are_those_of_the_solver():
    state = NIM.start()
    found = advise(NIM, [state], rules=["ucb1()"], budgets=[5], num_seeds=1)
    (reference,) = found.references
    solution = uctree.solve(NIM, state)
    assert reference.exact
    assert reference.values == {a: v[0] for a, v in solution.action_values.items()}
    assert reference.best == solution.value[0]
    assert reference.loss(solution.action) == 0


def test_long_searches_come_to_the_same_best_actions_as_exact_values():
    arguments = {"rules": ["ucb1()"], "budgets": [5], "num_seeds": 1}
    states = random_states(NIM, 8, seed=3)
    exact = advise(NIM, states, **arguments)
    deep = advise(NIM, states, max_states=0, reference_simulations=20_000, **arguments)
    assert not any(reference.exact for reference in deep.references)
    for one, other in zip(exact.references, deep.references, strict=True):
        assert one.best == pytest.approx(other.best, abs=0.1)
        best = {action for action in one.values if one.loss(action) <= one.margin}
        assert {action for action in other.values if other.loss(action) <= other.margin} <= best
