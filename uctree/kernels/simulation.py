"""One simulation, in kernels: descend, expand, evaluate, back up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.continuous.refine import DECAY, EXPLORE, FREQUENCY, copy_line
from uctree.game import CHANCE, ENDLESS, OVER, random_below, random_unit
from uctree.kernels.backups import AT_END, FOUND, KNOWN, LEAF, REPEATED, back_up
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Decision, Search
from uctree.kernels.copying import find_slot
from uctree.kernels.episodes import KEEPS_BEST, note_episode
from uctree.kernels.gumbel import considered_visits, exp_below
from uctree.kernels.playouts import are_bounded, check_values, draw_checked, is_distribution
from uctree.kernels.proofs import is_root_solved, mark_end, read_exact
from uctree.kernels.records import (
    APPENDS,
    CLOSED,
    FIRST_BLOCK,
    HAS_AMAF,
    HAS_ANSWERS,
    HAS_BOUNDS,
    HAS_PENDING,
    HAS_PRIORS,
    HAS_PROOFS,
    IS_LAZY,
    IS_SPARSE,
    KEEPS_RAW,
    LAZY_ABOVE,
    MOVER,
    NO_LIMIT,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    UNSEEN,
    ZERO_SUM,
    block_capacity,
    block_size,
    copy_edges,
    is_exact,
    node_of,
    value_for,
    visits_of_node,
    write_edge,
)
from uctree.kernels.rules import (
    DIM,
    DISCOUNT,
    GUARD_AT,
    HAS_BATCH_EVALUATOR,
    HAS_CHANCE,
    IS_CONTINUOUS,
    NUM_ACTIONS,
    NUM_PLAYERS,
    chance,
    draw_action,
    know_exactly,
    legal,
    step,
)
from uctree.kernels.scoring import (
    OPEN_LOOP,
    best_edge,
    chosen_edge,
    drawn_again,
    incumbent,
    index_amaf_edges,
    largest_of,
    sum_of,
    won_edge,
)
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_SCORE,
    BAD_TO_PLAY,
    BAD_VALUE,
    DONE,
    ENDLESS_CHANCE,
    GUARD,
    NEED_CAPACITY,
    NOT_ZERO_SUM,
    PAYS_EARLY,
    ROOT_SOLVED,
    WAITING,
)
from uctree.selection import inverse, widening_limit

# Bound when a search is composed.
value_leaf = UNBOUND
RULE = ROOT_RULE = UNBOUND  # see `context.Rule`
ROOT_DIFFERS = CHOOSES = ROOT_CHOOSES = UNBOUND
SCORES = UNBOUND  # some edges are scored one by one
pick_outcome = UNBOUND
propose = UNBOUND  # how actions that are vectors are found
WIDENS = WIDENS_OUTCOMES = SORTS = UNBOUND
HAS_EXACT = UNBOUND  # the game has `exact`, and the search proves values
improve = UNBOUND  # how a line of vectors is improved
REFINES = REFINES_PLAYOUTS = REFINES_BEST = REFINES_REPLIES = UNBOUND
NUM_BLOCKS = UNBOUND  # how many nodes get an edge in one simulation, if actions are vectors
acquire = release = read_clock = UNBOUND
HAS_THREADS = UNBOUND

# Kernels pass int64 and never a literal: Numba would compile the callee once for each type.
NO_EDGES = ROOT = np.int64(0)
ONE = np.int64(1)

LEAST = -float(np.finfo(np.float32).max)  # the least log-prior, that of prior 0

# The parts of a simulation that are timed, in one of TIMED_EVERY simulations.
SELECTION, GAME, EVALUATION, BACKUP = np.arange(4)
TIMED_EVERY = 256


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
        if status != DONE:
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


NO_LEGAL_EDGE = 100  # no edge has a legal action, and there is no capacity for another
NO_LINE = 101  # a path does not reach the end
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


def tick(search: Search, part: int) -> None:
    """Add the time since the last tick to a part of the simulation."""
    work = search.work
    if work.timed:
        now = read_clock()
        work.times[part] += now - work.clock
        work.clock = now


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


# --- select --------------------------------------------------------------------------------------


def select(search: Search, node: int, player: int, state: Any) -> int:
    """The edge that the rule takes at a node, made if it is new; minus a status on an error."""
    edges, work = search.edges, search.work
    if HAS_PROOFS and not HAS_BOUNDS and edges[node].proof == MOVER:
        edge = won_edge(search, node, player)
        if edge != NONE:
            return edge
    if OPEN_LOOP:
        status = open_actions(search, node, state)
        if status != DONE:
            return -status
    num_untried = np.int64(0)
    if IS_LAZY:
        record = edges[np.uint64(node)]
        num_untried = np.int64(record.num_legal - record.num_edges)
    value = node_value(search, node, player)
    if ROOT_CHOOSES and node == 0:
        return chosen_edge(
            search, node, player, value, considered(search), work.root_parameters, ROOT_RULE
        )
    if CHOOSES and (not SCORES or node != 0 or not ROOT_DIFFERS):
        edge = chosen_edge(search, node, player, value, NO_EDGES, work.parameters, RULE)
        if IS_SPARSE and edge == NONE:
            return likeliest_edge(search, node, state)
        return edge
    if SCORES:
        return scored_edge(search, node, player, state, value, num_untried)
    return -np.int64(BAD_SCORE)


def scored_edge(
    search: Search, node: int, player: int, state: Any, value: float, num_untried: int
) -> int:
    """The edge with the best score, made if it is new; minus a status on an error."""
    edges, work = search.edges, search.work
    amaf_node = node
    if HAS_AMAF and work.amaf_nodes[player] != NONE:
        amaf_node = np.int64(work.amaf_nodes[player])
        if amaf_node != node:
            index_amaf_edges(search, amaf_node)
    num_edges = np.int64(edges[np.uint64(node)].num_edges)
    num_legal = np.int64(work.count) if OPEN_LOOP else num_edges + num_untried
    if WIDENS:
        num_open = count_open(edges, node)
        num_counted = num_open - count_closed(edges, node, num_open)
        visits = visits_of_node(edges, node)
        if num_counted < widening_limit(
            visits, work.widening_k, work.widening_alpha, work.widening_rounding
        ):
            if IS_CONTINUOUS:
                edge = new_action(search, node, player, state)
                if edge != NONE:
                    return edge
            elif not IS_LAZY and num_open < num_edges:
                return np.int64(edges[node].first) + num_open
            if IS_LAZY and num_untried > 0:
                edge = next_untried(search, node, state)
                if edge != NONE:
                    return edge
        num_edges, num_untried = num_open, NO_EDGES
    while True:
        edge = score_edges(
            search, Decision(node, player, value, num_edges, num_untried, num_legal, amaf_node)
        )
        if edge != NONE:
            return edge
        if num_untried == 0:
            return fallback_edge(search, node, state)
        edge = next_untried(search, node, state)
        if edge != NONE:
            return edge
        num_untried = NO_EDGES  # no capacity for another edge: use the existing ones


def score_edges(search: Search, decision: Decision) -> int:
    """The best of a node's first edges by the rule of the root or the one below it."""
    work = search.work
    if not CHOOSES and (not ROOT_DIFFERS or decision.node != 0):
        return best_edge(search, decision, RULE, work.parameters)
    if ROOT_DIFFERS and not ROOT_CHOOSES:
        return best_edge(search, decision, ROOT_RULE, work.root_parameters)
    return NONE


def fallback_edge(search: Search, node: int, state: Any) -> int:
    """The edge to take if none has a score, as when all are lost; minus a status on an error."""
    edges, work = search.edges, search.work
    first = np.int64(edges[node].first)
    if HAS_ANSWERS:
        first = first_taken(search, node)
        if first == NONE:
            return -np.int64(NO_LEGAL_EDGE)
    if not HAS_PROOFS and not OPEN_LOOP:
        return -np.int64(BAD_SCORE)
    if WIDENS:
        if IS_LAZY and edges[node].num_edges < edges[node].num_legal:
            edge = next_untried(search, node, state)
            if edge != NONE:
                return edge
        if not IS_LAZY:
            num_open = count_open(edges, node)
            if num_open < edges[node].num_edges:
                return first + num_open
    if OPEN_LOOP:
        for edge in range(first, first + edges[node].num_edges):
            if work.legal_stamp[edges[edge].action] == work.stamp:
                return np.int64(edge)
        return -np.int64(NO_LEGAL_EDGE)
    return first


def first_taken(search: Search, node: int) -> int:
    """The first edge of a node that can be taken; NONE if all are closed."""
    edges = search.edges
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        if edges[edge].mover != CLOSED:
            return np.int64(edge)
    return NONE


def considered(search: Search) -> int:
    """The number of visits of the edge that sequential halving takes now at the root."""
    number = np.int64(search.tree.since_root)
    if HAS_PENDING:
        number += search.edges[0].pending - 1  # those in flight count, this one does not
    return considered_visits(search.queue, number)


def count_open(edges: np.ndarray, node: int) -> int:
    """How many of a node's edges were taken; with widening these come first."""
    if IS_LAZY or IS_CONTINUOUS:
        return np.int64(edges[node].num_edges)
    first, count = np.int64(edges[node].first), np.int64(0)
    while count < edges[node].num_edges and is_taken(edges, first + count):
        count += 1
    return count


def count_closed(edges: np.ndarray, node: int, num_open: int) -> int:
    """How many of a node's first edges cannot be taken; widening does not count them."""
    count = np.int64(0)
    if HAS_ANSWERS:
        first = np.int64(edges[node].first)
        for edge in range(first, first + num_open):
            count += 1 if edges[edge].mover == CLOSED else 0
    return count


def is_taken(edges: np.ndarray, edge: int) -> bool:
    if HAS_ANSWERS and edges[edge].mover == CLOSED:
        return True
    if HAS_PENDING and edges[edge].pending > 0:
        return True
    return edges[edge].visits > 0


def node_value(search: Search, node: int, player: int) -> float:
    """V(s): the mean return seen at a node, without the reward of the edge that leads there."""
    tree, edges = search.tree, search.edges
    path, work = search.path, search.work
    visits = visits_of_node(edges, node)
    if visits == 0:
        return 0.0
    if SHARES_NODES:
        return value_for(tree, edges[node].value_sum, player)
    value = value_for(tree, edges[np.uint64(node)].value_sum, player) * inverse(visits)
    if not OPEN_LOOP and work.depth > 0:
        reward = path[np.uint64(work.depth - 1)].reward
        value = (value - value_for(tree, reward, player)) / DISCOUNT
    return value


# --- expand --------------------------------------------------------------------------------------


def expand(search: Search, node: int, state: Any) -> int:
    """Give a node its edges, or its first ones; it gets none if there is no capacity."""
    edges, work, data = search.edges, search.work, search.data
    if HAS_CHANCE and state.to_play == CHANCE:
        if WIDENS_OUTCOMES:
            move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
            return DONE
        return expand_chance(search, node, state)
    if IS_CONTINUOUS:
        move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    count = np.int64(legal(state, work.actions, data))
    if count < 1 or count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if OPEN_LOOP:
        move_block(search, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    if not IS_LAZY:
        return make_edges(search, node, work.actions, NO_EDGES, count)
    status = make_edges(search, node, work.actions, NO_EDGES, block_size(count, NO_EDGES))
    edges[node].num_legal = count
    edges[node].num_edges = 0
    return status


def move_block(search: Search, node: int, num_moved: int, size: int) -> bool:
    """Move a node's `num_moved` edges to a new block, and add new ones; False without capacity."""
    tree, edges = search.tree, search.edges
    if tree.used + size > tree.capacity:
        return False
    first = np.int64(tree.used)
    copy_edges(edges, np.int64(edges[node].first), edges, first, num_moved)
    for i in range(num_moved, size):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += size
    edges[node].first = first
    edges[node].num_edges = num_moved
    if IS_CONTINUOUS and 2 * NUM_BLOCKS * size > tree.reserve:
        tree.reserve = 2 * NUM_BLOCKS * size  # the next simulation may double this block
    return True


def make_edges(search: Search, node: int, actions: np.ndarray, num_moved: int, size: int) -> int:
    """Move a node's first `num_moved` edges to a new block of `size` edges, the others new."""
    tree, edges = search.tree, search.edges
    capacity = block_capacity(NO_LIMIT, size) if APPENDS and not IS_LAZY else size
    if tree.used + capacity > tree.capacity:
        return DONE
    first = np.int64(tree.used)
    copy_edges(edges, np.int64(edges[node].first), edges, first, num_moved)
    for i in range(num_moved, size):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return BAD_ACTION
        write_edge(edges, first + i, np.int64(actions[i]))
    for i in range(size, capacity):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += capacity
    edges[node].first = first
    edges[node].num_edges = size
    return DONE


def next_untried(search: Search, node: int, state: Any) -> int:
    """The next edge of a node in the order of `legal`; NONE without capacity."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    if not IS_LAZY:
        return NONE  # all were made at once
    count, num_edges = np.int64(edges[node].num_legal), np.int64(edges[node].num_edges)
    if count > LAZY_ABOVE and num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if legal(state, work.actions, data) != count or work.actions[GUARD_AT] != GUARD:
            return -BAD_COUNT
        first = edges[node].first
        size = block_size(count, num_edges)
        status = make_edges(search, node, work.actions, num_edges, size)
        if status != DONE:
            return -status
        if edges[node].first == first:
            return -NEED_CAPACITY if HAS_CHANCE and tree.may_grow else NONE
    edges[node].num_edges = num_edges + 1
    return np.int64(edges[node].first) + num_edges


def append_edge(search: Search, node: int, action: int) -> int:
    """A new edge of a node, whose block doubles when it is full; NONE without capacity."""
    edges = search.edges
    num_edges = np.int64(edges[node].num_edges)
    if num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if not move_block(search, node, num_edges, 2 * num_edges):
            return NONE
    edge = np.int64(edges[node].first) + num_edges
    write_edge(edges, edge, action)
    edges[node].num_edges = num_edges + 1
    return edge


@noinline
def likeliest_edge(search: Search, node: int, state: Any) -> int:
    """A new edge for the likeliest action without one, which `best_untried` has found."""
    edges, work = search.edges, search.work
    data, untried = search.data, search.untried
    count, best = np.int64(edges[node].num_legal), np.int64(edges[node].best)
    if legal(state, work.actions, data) != count or work.actions[GUARD_AT] != GUARD:
        return -np.int64(BAD_COUNT)
    edge = append_edge(search, node, np.int64(work.actions[best]))
    if edge == NONE:
        return -np.int64(NEED_CAPACITY)
    edges[edge].prior = edges[node].best_prior
    untried[np.int64(edges[node].untried) + best] = -math.inf  # it has an edge now
    edges[node].best = NONE
    return edge


def new_action(search: Search, node: int, player: int, state: Any) -> int:
    """A new edge of a node, for a vector of the proposal; NONE without capacity."""
    work = search.work
    status = propose(search, node, player, state, work.actions, work.proposal)
    if status < 0:
        return -np.int64(BAD_ACTION)
    return append_vector(search, node, work.actions)


def append_vector(search: Search, node: int, actions: np.ndarray) -> int:
    """A new edge of a node, for the vector in `actions`; NONE without capacity."""
    edges = search.edges
    edge = append_edge(search, node, np.int64(edges[node].num_edges))
    if edge != NONE:
        for j in range(DIM):
            edges[edge].vector[j] = actions[0, j]
    return edge


def open_actions(search: Search, node: int, state: Any) -> int:
    """Mark the actions that are legal in this state of a node, and make edges for new ones."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    count = np.int64(legal(state, work.actions, data))
    if count < 1 or count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    work.count = count
    work.stamp += 1
    first, num_edges = np.int64(edges[node].first), np.int64(edges[node].num_edges)
    for edge in range(first, first + num_edges):
        work.legal_stamp[edges[edge].action] = -work.stamp  # has an edge
    for i in range(count):
        action = np.int64(work.actions[i])
        if action < 0 or action >= NUM_ACTIONS:
            return BAD_ACTION
        if abs(work.legal_stamp[action]) != work.stamp:
            if append_edge(search, node, action) == NONE:
                if tree.may_grow:
                    return NEED_CAPACITY
                continue
        work.legal_stamp[action] = work.stamp
    return DONE


def expand_chance(search: Search, node: int, state: Any) -> int:
    """Give a chance node one edge for every outcome that can happen."""
    tree, edges = search.tree, search.edges
    work, data = search.work, search.data
    actions, probabilities = work.actions, work.probabilities
    count = np.int64(chance(state, actions, probabilities, data))
    if not is_distribution(count, actions, probabilities):
        return BAD_CHANCE
    if tree.used + count > tree.capacity:
        return DONE
    first = np.int64(tree.used)
    for i in range(count):
        if probabilities[i] > 0.0:
            write_edge(edges, np.int64(tree.used), np.int64(actions[i]))
            edges[tree.used].prior = probabilities[i]
            tree.used += 1
    edges[node].first = first
    edges[node].num_edges = tree.used - first
    return DONE


def outcome(search: Search, node: int, state: Any) -> int:
    """The edge of a chance node to take."""
    tree, edges, work = search.tree, search.edges, search.work
    rng, data = search.rng, search.data
    if not WIDENS_OUTCOMES:
        return np.int64(pick_outcome(search, node))
    num_edges = np.int64(edges[node].num_edges)
    visits = visits_of_node(edges, node)
    limit = widening_limit(visits, work.outcome_k, work.outcome_alpha, 0.0)
    if num_edges >= limit:
        return np.int64(drawn_again(search, node))
    action = draw_checked(state, work.actions, work.probabilities, rng, data)
    if action < 0:
        return -BAD_CHANCE
    first = np.int64(edges[node].first)
    for edge in range(first, first + num_edges):
        if edges[edge].action == action:
            edges[edge].prior += 1.0
            return np.int64(edge)
    edge = append_edge(search, node, action)
    if edge == NONE:
        return -NEED_CAPACITY if tree.may_grow else np.int64(drawn_again(search, node))
    edges[edge].prior = 1.0
    return edge


# --- refine --------------------------------------------------------------------------------------


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


# --- evaluate ------------------------------------------------------------------------------------


def evaluate(search: Search) -> int:
    """Write the returns of the leaf, by proof, repetition or evaluation; a status."""
    tree, edges, path = search.tree, search.edges, search.path
    work, states, lock = search.work, search.states, search.lock
    if work.ending == AT_END:
        if KEEPS_BEST:
            note_episode(search, states[1], 0.0, search.rng[0])
        return DONE
    if HAS_ANSWERS and work.ending == LEAF:
        return WAITING
    depth = np.int64(work.depth)
    node = node_of(edges, np.int64(path[depth - 1].edge)) if depth > 0 else np.int64(0)
    if HAS_PROOFS and work.ending == KNOWN:
        read_exact(edges, node, work.returns)
        return DONE
    if SHARES_NODES:
        work.leaf_player = states[1].to_play
        if work.ending == REPEATED:
            for j in range(NUM_VALUES):
                work.returns[j] = tree.repetition[j]
            return DONE
    if HAS_THREADS:
        release(lock)
    # The root is searched, even if its value is known.
    if HAS_EXACT and depth > 0 and is_known_exactly(search, states[1]):
        work.ending = FOUND
        status = check_values(work.returns, np.int64(DONE))
    else:
        status = evaluate_leaf(search, node)
    tick(search, EVALUATION)
    if HAS_THREADS:
        acquire(lock, np.int64(work.worker))
    if HAS_EXACT and work.ending == FOUND:
        mark_end(edges, node, work.returns)
        return status
    if HAS_PRIORS and not HAS_BATCH_EVALUATOR and status == DONE and work.count > 0:
        if edges[node].first == NONE:
            status = place_edges(search, node, work.logits)
    return status


def is_known_exactly(search: Search, state: Any) -> bool:
    """Whether the game knows the exact value of the leaf, which is written to `returns`."""
    work, data = search.work, search.data
    if state.to_play < 0:
        return False
    for player in range(NUM_PLAYERS):
        work.reward[player] = 0.0
    if not know_exactly(state, work.reward, data):
        return False
    for player in range(NUM_PLAYERS):
        work.returns[player] = work.reward[player]
    return True


def evaluate_leaf(search: Search, node: int) -> int:
    """Evaluate the leaf; with priors list its actions as well; a status."""
    state, work = search.states[1], search.work
    work.count = 0
    if HAS_PRIORS and state.to_play != CHANCE and search.edges[node].first == NONE:
        if HAS_BATCH_EVALUATOR:
            work.count = 1  # it gets edges; their actions are listed with the result
        elif list_actions(search, state) != DONE:
            return BAD_COUNT
    return value_leaf(search)


def list_actions(search: Search, state: Any) -> int:
    """Write the legal actions of a leaf and their number; DONE or BAD_COUNT."""
    work, data = search.work, search.data
    work.count = legal(state, work.actions, data)
    if work.count < 1 or work.count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    return DONE


@noinline
def place_edges(search: Search, node: int, logits: np.ndarray) -> int:
    """Give an evaluated leaf its edges and their priors; a status."""
    tree, edges = search.tree, search.edges
    work, untried = search.work, search.untried
    count = np.int64(work.count)
    if SORTS:
        status = check_actions(search, count)
        if status != DONE:
            return status
        sort_actions(search, count, logits)
    first = np.int64(tree.num_untried) if IS_SPARSE else NO_EDGES
    row = untried[first : first + count] if IS_SPARSE else work.log_priors
    status = read_logits(search, count, logits, row)
    if status != DONE:
        return status
    largest = largest_of(row, count)
    total = weigh(row, count, largest, work.weights)
    if IS_SPARSE and node != 0:
        record = edges[node]
        record.untried, record.largest, record.sum_weights = first, largest, total
        record.best = NONE
        record.first, record.num_edges, record.num_legal = tree.used, 0, count
        tree.num_untried += count
        tree.used += FIRST_BLOCK  # edges are written when they are taken
    else:
        num_made = min(count, np.int64(work.most_edges)) if SORTS else count
        status = make_edges(search, node, work.actions, NO_EDGES, num_made)
        if status != DONE:
            return status
        if edges[node].first == NONE:
            return NEED_CAPACITY if HAS_CHANCE and tree.may_grow else DONE
        if IS_LAZY:
            edges[node].num_legal = count
        for i in range(num_made):
            edges[np.int64(edges[node].first) + i].prior = work.weights[i] / total
    if KEEPS_RAW:
        for j in range(NUM_VALUES):
            edges[node].raw[j] = work.returns[j]
    return DONE


def check_actions(search: Search, count: int) -> int:
    """DONE if all listed actions are in range, else BAD_ACTION."""
    work = search.work
    num_wrong = 0
    for i in range(count):  # no early exit, so that compilers vectorise the loop
        num_wrong += 1 if work.actions[i] < 0 or work.actions[i] >= NUM_ACTIONS else 0
    return DONE if num_wrong == 0 else BAD_ACTION


def read_logits(search: Search, count: int, logits: np.ndarray, row: np.ndarray) -> int:
    """Write the log-priors of the legal actions to `row`, in their order; DONE or an error."""
    work = search.work
    status = check_actions(search, count)
    if status != DONE:
        return status
    num_wrong = 0
    for i in range(count):
        logit = logits[np.uint32(work.actions[i])]  # unsigned: no index from the end
        num_wrong += 0 if logit < math.inf else 1
        row[i] = logit if logit > LEAST else LEAST
    return DONE if num_wrong == 0 else BAD_VALUE


def weigh(row: np.ndarray, count: int, largest: float, weights: np.ndarray) -> float:
    """Write the weights of actions, e^(log-prior - largest); returns their sum.

    A prior is a weight divided by this sum: the softmax over the legal actions. If all log-priors
    are minus infinity, all count as LEAST, so the priors are equal.
    """
    for i in range(count):
        weights[i] = exp_below(np.float64(row[i]) - largest)  # `float` would stay at 32 bits
    return sum_of(weights, count)


def sort_actions(search: Search, count: int, logits: np.ndarray) -> None:
    """Sort the actions by falling log-prior; equal ones keep their order (heap sort)."""
    work = search.work
    for i in range(count):
        work.order[i] = i
    for start in range(count // 2 - 1, -1, -1):
        sift(search, np.int64(start), count, logits)
    for end in range(count - 1, 0, -1):
        swap = work.order[0]
        work.order[0] = work.order[end]
        work.order[end] = swap
        sift(search, NO_EDGES, np.int64(end), logits)
    for i in range(count):
        work.order[i] = work.actions[work.order[i]]
    for i in range(count):
        work.actions[i] = work.order[i]


def sift(search: Search, start: int, end: int, logits: np.ndarray) -> None:
    """Let the entry at `start` sink until no entry below it comes later in the order."""
    work = search.work
    at = start
    while 2 * at + 1 < end:
        child = 2 * at + 1
        if child + 1 < end and comes_later(search, child + 1, child, logits):
            child += 1
        if not comes_later(search, child, at, logits):
            return
        swap = work.order[at]
        work.order[at] = work.order[child]
        work.order[child] = swap
        at = child


def comes_later(search: Search, i: int, j: int, logits: np.ndarray) -> bool:
    """Whether entry i belongs behind entry j."""
    work = search.work
    first, second = work.order[i], work.order[j]
    a, b = logits[work.actions[first]], logits[work.actions[second]]
    return first > second if a == b else a < b
