"""The line of a simulation, or the best one, improved and added to the tree, in kernels."""

from __future__ import annotations

import numpy as np

from uctree.continuous.refine import DECAY, EXPLORE, FREQUENCY, copy_line
from uctree.game import OVER, random_below, random_unit
from uctree.kernels.backups import AT_END, LEAF
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Search
from uctree.kernels.expansion import append_vector, move_block
from uctree.kernels.records import FIRST_BLOCK, NO_EDGES, NONE
from uctree.kernels.rules import DIM, draw_action, step
from uctree.kernels.scoring import incumbent
from uctree.kernels.status import BAD_ACTION, DONE

# Bound when a search is composed.
improve = UNBOUND  # how a line of vectors is improved
REFINES_PLAYOUTS = REFINES_BEST = REFINES_REPLIES = UNBOUND

NO_LINE = 101  # a path does not reach the end


def refine_path(search: Search) -> int:
    """Improve the vectors of a simulation's path, as often as the frequency says."""
    tree, work, states = search.tree, search.work, search.states
    rng, data = search.rng, search.data
    work.debt += work.refine[FREQUENCY]
    while work.debt >= 1.0:
        work.debt -= 1.0
        if REFINES_BEST:
            follow_best(search)
        status = read_line(search)
        if status == NO_LINE:
            continue
        if status == DONE:
            work.evaluations = 0
            write_scales(search)
            status = improve(work, states, rng, data)
            tree.evaluations += work.evaluations
        if status != DONE:
            return status
        if REFINES_REPLIES:
            copy_line(work.lines[0, 0], work.replies)
            insert_line(search, work.replies)
        insert_line(search, work.better)
    return DONE


def follow_best(search: Search) -> None:
    """Let the path be the line on which every mover takes the edge of the highest value."""
    edges, path, work = search.edges, search.path, search.work
    states, rng, data = search.states, search.rng, search.data
    states[2] = states[0]
    node = np.int64(0)
    work.depth = 0
    work.ending = LEAF
    for i in range(path.shape[0]):
        if states[2].to_play == OVER:
            work.ending = AT_END
            return
        edge = NONE
        if edges[node].first != NONE:
            edge = incumbent(search, node, np.int64(states[2].to_play))
            if i == 0 and random_unit(rng) < work.refine[EXPLORE]:
                edge = np.int64(edges[0].first) + random_below(rng, np.int64(edges[0].num_edges))
        if edge == NONE:
            return
        path[i].edge = edge
        for j in range(DIM):
            work.actions[0, j] = edges[edge].vector[j]
        step(states[2], work.actions[0], work.reward, data)
        node = edge
        work.depth = i + 1
    if states[2].to_play == OVER:
        work.ending = AT_END


def write_scales(search: Search) -> None:
    """Write the step lengths of all stages: shorter, the more edges a stage's node has."""
    edges, path, work = search.edges, search.path, search.work
    node = np.int64(0)
    for stage in range(work.line.shape[0]):
        count = np.int64(1)
        if stage <= work.depth and edges[node].first != NONE:
            count = max(count, np.int64(edges[node].num_edges))
        work.scales[stage] = float(count) ** -work.refine[DECAY]
        if stage < work.depth:
            node = np.int64(path[stage].edge)


def read_line(search: Search) -> int:
    """Write the vectors of a path, and draw those to the end; NO_LINE if it is not reached."""
    edges, path, work = search.edges, search.path, search.work
    states, rng, data = search.states, search.rng, search.data
    for i in range(work.depth):
        for j in range(DIM):
            work.line[i, j] = edges[np.int64(path[i].edge)].vector[j]
    stage = np.int64(work.depth)
    if work.ending == AT_END:
        return DONE
    if not REFINES_PLAYOUTS:
        return NO_LINE
    states[2] = states[0]
    for i in range(work.line.shape[0]):
        if states[2].to_play == OVER:
            return DONE
        if i >= stage:
            if draw_action(states[2], work.actions, rng, data) < 0:
                return BAD_ACTION
            for j in range(DIM):
                work.line[i, j] = work.actions[0, j]
        for j in range(DIM):
            work.actions[0, j] = work.line[i, j]
        step(states[2], work.actions[0], work.reward, data)
    return DONE if states[2].to_play == OVER else NO_LINE


def insert_line(search: Search, line: np.ndarray) -> None:
    """Give a line new edges from where it leaves the path; they have no visits.

    The next simulation that reaches them takes them. Existing edges keep their vectors.
    """
    edges, path, work = search.edges, search.path, search.work
    node, stage = np.int64(0), np.int64(0)
    while stage < work.depth and is_same(search, line, stage):
        node = np.int64(path[stage].edge)
        stage += 1
    while stage < work.length:
        if edges[node].first == NONE:
            if not move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK)):
                return
        for j in range(DIM):
            work.actions[0, j] = line[stage, j]
        before = np.int64(edges[node].first)
        edge = append_vector(search, node, work.actions)
        if edge == NONE:
            return
        if edges[node].first != before and stage < work.depth:
            move_path(search, stage, before, np.int64(edges[node].first))
        node = edge
        stage += 1


def is_same(search: Search, line: np.ndarray, stage: int) -> bool:
    """Whether a line has the vector of the path at a stage."""
    work = search.work
    for j in range(DIM):  # noqa: SIM110
        if work.line[stage, j] != line[stage, j]:
            return False
    return True


def move_path(search: Search, stage: int, before: int, after: int) -> None:
    """Update the path after the edges of a node were moved."""
    path = search.path
    edge = np.int64(path[stage].edge)
    path[stage].edge = edge - before + after
