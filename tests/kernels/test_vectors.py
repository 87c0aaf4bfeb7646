"""Actions that are vectors: the box of a state, and the way into it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uctree.engine.compile import bind
from uctree.game import make_rng
from uctree.kernels import vectors

pytestmark = pytest.mark.quick

ROOM = np.array([[0.0, 0.0], [-1.0, 0.0], [1.0, 2.0]])


def room(first, second):
    actions = ROOM.copy()
    actions[0] = first, second
    return actions


def test_a_vector_outside_its_box_is_moved_to_the_nearest_one_inside():
    actions = room(-3.0, 5.0)
    assert vectors.into_box(actions, 2) == 0
    assert actions[0].tolist() == [-1.0, 2.0]
    assert vectors.into_box(room(math.nan, 0.0), 2) < 0
    assert vectors.into_box(room(0.0, 0.0), -1) < 0


def test_a_direction_has_length_1():
    onto_sphere = bind(vectors.onto_sphere, {"DIM": 2})
    for given, expected in (((3.0, 4.0), [0.6, 0.8]), ((0.0, 0.0), [1.0, 0.0])):
        actions = room(*given)
        assert onto_sphere(actions, 2) == 0
        assert actions[0] == pytest.approx(expected)
    assert onto_sphere(room(math.inf, 0.0), 2) < 0


@pytest.mark.parametrize(
    ("dim", "low", "high", "expected"),
    [(2, -1, 1, 2), (1, -1, 1, 1), (0, -1, 1, -1), (3, -1, 1, -1), (1, 2, 1, -1),
     (1, 0, math.inf, -1)],
)  # fmt: skip
def test_the_box_of_a_state_is_checked(dim, low, high, expected):
    def bounds(state, lower, upper, data):
        lower[0], upper[0] = low, high
        return dim

    actions = room(9.0, 9.0)
    find = bind(vectors.state_bounds, {"DIM": 2, "bounds": bounds})
    assert find(None, actions, None) == expected
    assert actions[0, 1] == (0.0 if expected == 1 else 9.0)  # a coordinate that does not count


def test_random_vectors_fill_the_box():
    names = {"DIM": 2, "find_bounds": lambda state, actions, data: 2}
    draw, rng, drawn = bind(vectors.draw_in_box, names), make_rng(1), []
    for _ in range(200):
        actions = room(0.0, 0.0)
        assert draw(None, actions, rng, None) == 0
        drawn.append(actions[0].copy())
    low, high = np.min(drawn, 0), np.max(drawn, 0)
    assert (low >= ROOM[1]).all()
    assert (high <= ROOM[2]).all()
    assert high - low == pytest.approx([2.0, 2.0], abs=0.1)
