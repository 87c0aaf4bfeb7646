"""One simulation, in kernels: descend, expand, evaluate, back up."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.game import CHANCE, ENDLESS, OVER
from uctree.kernels.backups import AT_END, KNOWN, LEAF, REPEATED, back_up
from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Search
from uctree.kernels.copying import find_slot
from uctree.kernels.evaluation import evaluate
from uctree.kernels.expansion import expand, outcome
from uctree.kernels.playouts import are_bounded, draw_checked
from uctree.kernels.proofs import is_root_solved
from uctree.kernels.records import (
    HAS_AMAF,
    HAS_ANSWERS,
    HAS_PENDING,
    HAS_PRIORS,
    HAS_PROOFS,
    IS_LAZY,
    IS_SPARSE,
    NO_EDGES,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    UNSEEN,
    ZERO_SUM,
    is_exact,
    node_of,
    visits_of_node,
)
from uctree.kernels.refinement import refine_path
from uctree.kernels.rules import (
    DIM,
    HAS_BATCH_EVALUATOR,
    HAS_CHANCE,
    IS_CONTINUOUS,
    NUM_ACTIONS,
    NUM_PLAYERS,
    step,
)
from uctree.kernels.scoring import OPEN_LOOP
from uctree.kernels.selections import NO_LEGAL_EDGE, select
from uctree.kernels.status import (
    BAD_CHANCE,
    BAD_REWARD,
    BAD_TO_PLAY,
    DONE,
    ENDLESS_CHANCE,
    NEED_CAPACITY,
    NOT_ZERO_SUM,
    PAYS_EARLY,
    ROOT_SOLVED,
    WAITING,
)
from uctree.kernels.timing import BACKUP, GAME, SELECTION, TIMED_EVERY, tick

# Bound when a search is composed.
REFINES = UNBOUND
acquire = release = read_clock = UNBOUND
HAS_THREADS = UNBOUND

ROOT = np.int64(0)
ONE = np.int64(1)


def simulate(search: Search) -> int:
    """Run the remaining simulations of a tree: DONE, NEED_CAPACITY, ROOT_SOLVED, or an error.

    WAITING if a leaf is to be evaluated in Python. Several threads may search one tree: the thread
    that changes it holds the lock, and leaves are evaluated without it.
    """
    work, states, rng = search.work, search.states, search.rng
    while True:
        if HAS_THREADS:
            acquire(search.lock, np.int64(work.worker))
        status = begin(search)
        if status != GO:
            if HAS_THREADS:
                release(search.lock)
            return status
        drawn = rng[0]
        states[1] = states[0]
        tick(search, BACKUP)
        status = descend(search, states[1])
        for player in range(NUM_PLAYERS):
            work.returns[player] = 0.0
        if status == DONE:
            status = evaluate(search)
        if HAS_BATCH_EVALUATOR and status == WAITING:
            return status  # the simulation stays in flight
        if HAS_CHANCE and status == NEED_CAPACITY:
            # The simulation starts again in a larger tree, with the same random numbers.
            rng[0] = drawn
        status = conclude(search, status)
        if HAS_THREADS:
            release(search.lock)
        if status != DONE or (HAS_ANSWERS and search.queue.rests_at > 0):
            return status


def conclude(search: Search, status: int) -> int:
    """Back up a simulation whose leaf is evaluated, or undo it on an error."""
    tree, work = search.tree, search.work
    if status == DONE:
        back_up(search)
        tree.simulations += 1
        tree.since_root += 1
        tree.depth_sum += work.depth
        if REFINES:
            status = refine_path(search)
    else:
        tree.remaining += 1
        if HAS_CHANCE and status == NEED_CAPACITY:
            undo_expansion(search)
    if HAS_PENDING:
        remove_virtual_visits(search)
    tick(search, BACKUP)
    return status


GO = -1  # the next simulation may begin


def begin(search: Search) -> int:
    """Take one of the remaining simulations; GO, or the status that forbids it."""
    tree, edges, work = search.tree, search.edges, search.work
    table, untried = search.table, search.untried
    if tree.remaining <= 0:
        return DONE
    if HAS_PROOFS and is_root_solved(edges):
        return ROOT_SOLVED
    if tree.may_grow:
        if tree.used + tree.reserve > tree.capacity:
            return NEED_CAPACITY
        if SHARES_NODES and 4 * tree.num_nodes > 3 * table.shape[0]:
            return NEED_CAPACITY
        if IS_SPARSE and tree.num_untried + NUM_ACTIONS > untried.shape[0]:
            return NEED_CAPACITY
    if SHARES_NODES and tree.num_nodes == 0:
        enter_node(search, ROOT, NO_EDGES)
    tree.remaining -= 1
    work.played[0] += 1
    work.timed = tree.simulations % TIMED_EVERY == 0
    if work.timed:
        work.clock = read_clock()
    return GO


def undo_expansion(search: Search) -> None:
    """Remove the edge that an undone simulation made."""
    edges, path, work = search.edges, search.path, search.work
    node = np.int64(0)
    for i in range(work.depth):
        edge = np.int64(path[i].edge)
        if IS_LAZY and path[i].player != CHANCE and edges[edge].visits == 0:
            if not HAS_PENDING or edges[edge].pending <= 1:
                edges[node].num_edges -= 1
        node = edge


def remove_virtual_visits(search: Search) -> None:
    """Remove the virtual visits of the simulation from its path."""
    edges, path, work = search.edges, search.path, search.work
    for i in range(work.depth):
        edges[np.int64(path[i].edge)].pending -= 1
    edges[0].pending -= 1


# --- descend -------------------------------------------------------------------------------------


def descend(search: Search, state: Any) -> int:
    """Walk from the root to the leaf; `state` becomes that of the leaf."""
    edges, work = search.edges, search.work
    work.depth = 0
    if HAS_AMAF:
        for mover in range(NUM_PLAYERS):
            work.amaf_nodes[mover] = NONE
    work.ending = LEAF
    if HAS_PENDING:
        edges[0].pending += 1
    return walk(search, state, ROOT, NO_EDGES)


def walk(search: Search, state: Any, node: int, start: int) -> int:
    """Walk to the leaf from a node, which the path reaches after `start` edges."""
    tree, edges = search.tree, search.edges
    path, work = search.path, search.work
    for depth in range(start, path.shape[0]):
        player = np.int64(state.to_play)
        if player < 0 or player >= NUM_PLAYERS:
            if player == OVER:
                break
            if not HAS_CHANCE or player != CHANCE:
                return BAD_TO_PLAY
        if edges[np.uint64(node)].first == NONE:
            if HAS_ANSWERS and player == CHANCE:
                break  # Python gives the outcomes
            # With priors a leaf gets edges when it is evaluated; without, at its second visit.
            if player != CHANCE and (HAS_PRIORS or (depth > 0 and is_new(edges, node))):
                break
            status = expand(search, node, state)
            if status != DONE:
                return status
            if edges[np.uint64(node)].first == NONE:
                if HAS_CHANCE and tree.may_grow:
                    return NEED_CAPACITY
                break  # no capacity
        if HAS_AMAF and player != CHANCE and visits_of_node(edges, node) >= work.amaf_threshold:
            work.amaf_nodes[player] = node
        if HAS_CHANCE and player == CHANCE:
            edge = outcome(search, node, state)
        else:
            edge = select(search, node, player, state)
        if edge < 0:
            if (OPEN_LOOP or HAS_ANSWERS) and edge == -NO_LEGAL_EDGE:
                break
            return -edge
        tick(search, SELECTION)
        status = follow(search, node, edge, player, state)
        if HAS_PENDING:
            edges[edge].pending += 1
        work.depth = depth + 1
        tick(search, GAME)
        if status != DONE or (HAS_ANSWERS and state.to_play == UNSEEN):
            return status
        node = arrive(search, state, edge, np.int64(depth))
        if (SHARES_NODES or HAS_PROOFS) and work.ending != LEAF:
            return DONE
    if state.to_play == OVER:
        work.ending = AT_END
    return DONE


def arrive(search: Search, state: Any, edge: int, depth: int) -> int:
    """The node behind an edge that was just taken; `ending` says if the simulation ends there."""
    edges, path, work = search.edges, search.path, search.work
    if SHARES_NODES:
        enter_node(search, edge, np.int64(state.to_play))
        if is_repeated(path, depth, node_of(edges, edge)):
            work.ending = REPEATED
            return node_of(edges, edge)
    node = node_of(edges, edge)
    if HAS_PROOFS and is_exact(edges, node) and state.to_play != OVER:
        work.ending = KNOWN
    return node


def is_new(edges: np.ndarray, node: int) -> bool:
    """Whether a node has not been evaluated yet."""
    return visits_of_node(edges, node) == 0


def follow(search: Search, node: int, edge: int, player: int, state: Any) -> int:
    """Take an edge, and write it to the path; DONE or an error."""
    edges, path, work = search.edges, search.path, search.work
    rng, data = search.rng, search.data
    record = path[np.uint64(work.depth)]
    record.edge = edge
    record.player = player
    if SHARES_NODES:
        record.node = node
    if IS_CONTINUOUS:
        for j in range(DIM):
            work.actions[0, j] = edges[edge].vector[j]
        status = take(state, work.actions[0], work.reward, data)
    elif HAS_ANSWERS:
        status = take_known(state, edges[edge], work.reward)
    else:
        status = take(state, np.int64(edges[np.uint64(edge)].action), work.reward, data)
    for j in range(NUM_VALUES):
        record.reward[j] = work.reward[j]
    if SHARES_NODES:
        for j in range(NUM_VALUES):
            edges[edge].reward[j] = work.reward[j]
    if OPEN_LOOP and HAS_CHANCE:
        for _ in range(ENDLESS):
            if status != DONE or state.to_play != CHANCE:
                return status
            action = draw_checked(state, work.actions, work.probabilities, rng, data)
            if action < 0:
                return BAD_CHANCE
            status = take(state, action, work.reward, data)
            for j in range(NUM_VALUES):
                record.reward[j] += work.reward[j]
        return ENDLESS_CHANCE
    return status


def take(state: Any, action: Any, reward: np.ndarray, data: Any) -> int:
    """Step the state; DONE, or an error in its rewards."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    step(state, action, reward, data)
    return check_reward(state, reward)


def take_known(state: Any, record: Any, reward: np.ndarray) -> int:
    """Step to what Python answered about an edge; UNSEEN is to move if it did not answer yet."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    if record.row == NONE:
        state.edge = record.action
        state.to_play = UNSEEN
        return DONE
    state.row, state.edge = record.row, NONE
    state.count, state.to_play = record.count, record.mover
    for j in range(NUM_VALUES):
        reward[j] = record.reward[j]
    if ZERO_SUM:
        reward[1] = -reward[0]
    return check_reward(state, reward)


def check_reward(state: Any, reward: np.ndarray) -> int:
    """DONE, or an error in the rewards of the step to this state."""
    if not are_bounded(reward):
        return BAD_REWARD
    if ZERO_SUM and reward[0] + reward[1] != 0.0:
        return NOT_ZERO_SUM
    if HAS_PROOFS and state.to_play != OVER:
        for player in range(NUM_PLAYERS):
            if reward[player] != 0.0:
                return PAYS_EARLY
    return DONE


def is_repeated(path: np.ndarray, depth: int, node: int) -> bool:
    """Whether the path came through a node."""
    for i in range(depth + 1):  # noqa: SIM110
        if path[i].node == node:
            return True
    return False


def enter_node(search: Search, edge: int, to_play: int) -> None:
    """Link an edge that is taken for the first time to the node of its state.

    Ends of episodes are not shared, because their reward belongs to the edge.
    """
    tree, edges, table = search.tree, search.edges, search.table
    record = edges[edge]
    if record.node != NONE and tree.num_nodes > 0:
        return
    record.node = edge
    for j in range(NUM_VALUES):
        record.own_sum[j] = 0.0
    if to_play == OVER:
        return
    low, high = key_hash(search, ONE if tree.num_nodes > 0 else ROOT)
    slot = find_slot(table, low, high)
    if table[slot].node != NONE:
        record.node = table[slot].node
    elif 4 * tree.num_nodes <= 3 * table.shape[0]:
        table[slot].key[0] = low
        table[slot].key[1] = high
        table[slot].node = edge
        tree.num_nodes += 1


def key_hash(search: Search, row: int) -> tuple[int, int]:
    """A hash of 128 bits of one of `states`, from the bytes of its key fields."""
    key_bytes, key_words, ranges = search.key_bytes, search.key_words, search.key_ranges
    low, high = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    for i in range(ranges.shape[0]):
        at, end = ranges[i, 0], ranges[i, 1]
        while at < end:
            word = np.uint64(0)
            if at + 8 <= end:
                word = key_words[row, at]
                at += 8
            else:
                while at < end:
                    word = (word << np.uint64(8)) | np.uint64(key_bytes[row, at])
                    at += 1
            low = mixed(low ^ word, np.uint64(0xFF51AFD7ED558CCD))
            high = mixed(high + word, np.uint64(0xD6E8FEB86659FD93))
    return low, high ^ (low >> np.uint64(1))


def mixed(word: int, factor: int) -> int:
    """A word with its bits mixed."""
    word ^= word >> np.uint64(32)
    word *= factor
    return word ^ (word >> np.uint64(29))
