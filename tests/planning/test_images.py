"""States that change after they were returned: what is noticed, and what is no change."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest

import uctree
from uctree import BrokenGame, Problem, Step
from uctree.planning import images
from uctree.planning.images import Watch, difference, image


@dataclass
class Trip:
    places: list = field(default_factory=list)
    known: dict = field(default_factory=dict, compare=False)  # computed once


class Simulator:
    def __init__(self):
        self.num_calls = 0


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ([1, 2], lambda state: state.append(3)),
        ({"done": [1]}, lambda state: state["done"].append(2)),
        ({1, 2}, lambda state: state.add(3)),
        (np.zeros(3), lambda state: state.__setitem__(1, 5.0)),
        ((0, np.zeros((2, 2))), lambda state: state[1].fill(1.0)),
        (Trip(["home"]), lambda state: state.places.append("market")),
    ],
)
def test_a_change_of_data_is_noticed(state, change):
    watch = Watch()
    watch.add(state)
    watch.look()
    change(state)
    with pytest.raises(BrokenGame, match=r"a state changed after the plan got it: .* became"):
        watch.look()


def test_what_objects_share_and_what_is_computed_once_is_no_change():
    watch, simulator, trip = Watch(), Simulator(), Trip(["home"])
    watch.add((simulator, 1))
    watch.add(trip)
    simulator.num_calls += 1
    trip.known["length"] = 3
    watch.look()
    assert image(simulator) != image(Simulator())  # the doctor looks into it


def test_the_watch_ends_after_some_looks_or_some_time(monkeypatch):
    for limit in ("MOST_LOOKS", "MOST_SECONDS"):
        with monkeypatch.context() as patch:
            patch.setattr(images, limit, 1e-9 if limit == "MOST_SECONDS" else 1)
            watch, state = Watch(), [1]
            watch.add(state)
            watch.look()
        state.append(2)
        watch.look()


def test_a_difference_is_that_of_the_part_that_differs():
    assert difference(image([1, {"a": 2}]), image([1, {"a": 3}])) == "2 became 3"
    trip = Trip(["home"])
    before = image(trip)
    trip.places[0] = "away"
    assert difference(before, image(trip)) == ".places: 'home' became 'away'"


@pytest.mark.parametrize("gives_values", [False, True])
@pytest.mark.parametrize("copies", [lambda state: state, copy.copy])
def test_a_step_that_changes_its_argument_ends_the_plan(copies, gives_values):
    def step(state, job):
        after = copies(state)
        after["done"].append(job)
        return Step(after, reward=1.0, over=len(after["done"]) == 3)

    problem = Problem(
        actions=lambda state: [job for job in range(3) if job not in state["done"]], step=step,
        value=(lambda state: 0.0) if gives_values else None,
    )  # fmt: skip
    with pytest.raises(BrokenGame, match="copy the lists, dicts and arrays"):
        uctree.plan(problem, {"done": []}, num_simulations=50, seed=1)


def test_the_order_of_other_libraries_is_refused():
    problem = Problem(
        actions=lambda state: [0, 1], step=lambda state, action: (state + 1, 1.0, state > 3),
        num_players=2,
    )  # fmt: skip
    with pytest.raises(uctree.UctreeError, match=r"got False. A step returns uctree.Step\(state"):
        uctree.plan(problem, 0, num_simulations=50, seed=1)
