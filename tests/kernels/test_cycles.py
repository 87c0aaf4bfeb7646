"""Values where play can return to a state: components, and when sweeps may end."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.game import CHANCE
from uctree.kernels import cycles
from uctree.kernels.cycles import PROGRESS, Components, Graph, Traversal
from uctree.kernels.records import NONE

pytestmark = pytest.mark.quick


def graph_of(after, paid=None, mover=None, chance=None):
    """A graph from the states that each state leads to; NONE ends the episode."""
    ends = np.cumsum([0, *map(len, after)])
    flat = np.array([each for choices in after for each in choices], np.int64)
    rewards = np.zeros((len(flat), 1)) if paid is None else np.array(paid, float)[:, None]
    return Graph(
        np.zeros(len(after), np.int64) if mover is None else np.array(mover, np.int64),
        ends.astype(np.int64), flat, rewards,
        np.zeros(len(flat)) if chance is None else np.array(chance, float),
    )  # fmt: skip


def components_of(graph):
    size = len(graph.mover)
    found = Components(
        np.zeros(size, np.int64), np.zeros(size + 1, np.int64), np.full(size, NONE, np.int64)
    )
    traversal = Traversal(*np.full((5, size), NONE, np.int64))
    count = cycles.find_components(graph, found, traversal)
    return count, found


def test_states_that_reach_each_other_are_one_component_after_those_it_leads_to():
    graph = graph_of([[1], [2, 3], [1], [4], [NONE]])
    count, found = components_of(graph)
    members = [
        sorted(found.order[found.starts[i] : found.starts[i + 1]].tolist()) for i in range(count)
    ]
    assert members == [[4], [3], [1, 2], [0]]
    assert found.number.tolist() == [3, 2, 2, 1, 0]


def test_a_survey_tells_whether_play_can_stay_and_what_ways_out_pay():
    graph = graph_of([[1], [0, NONE]], paid=[0.5, -0.25, 2.0])
    _, components = components_of(graph)
    found = np.zeros(4)
    settled = np.zeros((2, 1))
    assert cycles.survey(graph, components, 0, settled, 1.0, 0, found)
    assert found.tolist() == [2.0, 2.0, -0.25, 0.5]


def test_a_chance_state_is_bounded_by_means_over_its_outcomes():
    graph = graph_of([[1, NONE], [NONE]], paid=[0, 4, 0], mover=[CHANCE, 0], chance=[0.75, 0.25, 0])
    low, high = np.array([[-9.0], [0.0]]), np.array([[9.0], [2.0]])
    change = cycles.bound(graph, 0, low, high, 1.0)
    assert (low[0, 0], high[0, 0]) == (1.0, 2.5)
    assert change == 10.0


def test_sweeps_end_when_the_changes_to_come_are_small():
    progress = np.zeros(1, PROGRESS).view(np.recarray)[0]
    assert cycles.is_converged(progress, 0.0)
    progress.sweeps, progress.change = 0, np.nan
    changes = [0.5 ** (n / 4) for n in range(400)]
    ended = next(n for n, change in enumerate(changes) if cycles.is_converged(progress, change))
    assert sum(changes[ended + 1 :]) <= cycles.CONVERGED
    assert (ended + 1) % cycles.WINDOW == 0
