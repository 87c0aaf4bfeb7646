"""What `plan` takes: a problem and its start, or a world."""

from __future__ import annotations

import pytest

import uctree
from tests.planning.counting import counting
from uctree.planning.world import World, world_of

pytestmark = pytest.mark.quick


def test_a_problem_needs_a_start_and_a_world_has_one():
    problem = counting()
    assert world_of(problem, 1) == World(problem, 1, 0)
    assert world_of(problem, None, 0).start is None  # None is a state like others
    assert world_of(problem, 1, uctree.CHANCE).to_play == uctree.CHANCE
    world = World(problem, 1)
    assert world_of(world) is world
    with pytest.raises(TypeError, match="needs the start: the state to plan from"):
        world_of(problem)


@pytest.mark.parametrize("more", [{"start": 1}, {"to_play": 0}])
def test_a_world_is_planned_in_from_its_own_start(more):
    with pytest.raises(TypeError, match=r"belong to a uctree\.Problem; a World has its own"):
        world_of(World(counting(), 1), **more)


def test_a_world_says_how_it_was_made():
    assert repr(World(counting(), 1)) == "<World problem>"
    assert repr(World(counting(name="sums"), 1, note="by hand")) == "<World sums: by hand>"
