"""One simulation, in kernels: descend, expand, evaluate, back up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree._compile import UNBOUND, apart
from uctree.backup import AT_END, FOUND, KNOWN, LEAF, REPEATED, back_up
from uctree.evaluators import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_SCORE,
    BAD_TO_PLAY,
    BAD_VALUE,
    DONE,
    GROW,
    GUARD,
    GUARD_AT,
    IS_OUTSIDE,
    MAX_OUTCOMES,
    NOT_ZERO_SUM,
    NUM_ACTIONS,
    NUM_PLAYERS,
    PAYS_EARLY,
    SETTLED,
    WAITING,
    chance,
    check_values,
    draw_action,
    draw_chance,
    know_exactly,
    legal,
    step,
)  # fmt: skip
from uctree.game import CHANCE, OVER, random_below, random_unit
from uctree.gumbel import exp_below
from uctree.proofs import is_root_settled, mark_end, read_exact
from uctree.refine import DECAY, EXPLORE, FREQUENCY, copy_line
from uctree.scoring import (
    OPEN_LOOP,
    best_edge,
    chosen_edge,
    drawn_again,
    incumbent,
    largest_of,
    note_ref,
    sum_of,
    won_edge,
)
from uctree.selection import inverse, widening_limit
from uctree.tree import (
    APPENDS,
    DIM,
    DISCOUNT,
    FIRST_BLOCK,
    HAS_AMAF,
    HAS_BOUNDS,
    HAS_CHANCE,
    HAS_PENDING,
    HAS_PRIORS,
    HAS_PROOFS,
    IS_CONTINUOUS,
    IS_LAZY,
    IS_SPARSE,
    KEEPS_RAW,
    LAZY_ABOVE,
    MOVER,
    NO_LIMIT,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    ZERO_SUM,
    block_room,
    block_size,
    find_slot,
    is_exact,
    node_of,
    visits_of_node,
    worth_to,
    write_edge,
)  # fmt: skip

# Bound when a search is composed.
value_leaf = UNBOUND
width = score = unvisited = total = choose = scale = blend = unvisited_first = UNBOUND
root_width = root_score = root_unvisited = root_total = root_choose = root_scale = UNBOUND
root_blend = root_unvisited_first = UNBOUND
ROOT_DIFFERS = CHOOSES = ROOT_CHOOSES = UNBOUND
SCORES = UNBOUND  # some edges are scored one by one
pick_outcome = UNBOUND
propose = UNBOUND  # how actions that are vectors are found
WIDENS = WIDENS_OUTCOMES = SORTS = UNBOUND
HAS_EXACT = UNBOUND  # the game knows what some states are worth, and proofs are wanted
improve = UNBOUND  # how a line of vectors is made better
REFINES = REFINES_PLAYOUTS = REFINES_BEST = REFINES_REPLIES = UNBOUND
NUM_BLOCKS = UNBOUND  # how many nodes get an edge in one simulation, where actions are vectors
acquire = release = read_clock = UNBOUND
HAS_THREADS = UNBOUND

# Kernels hand on int64 and never a literal: Numba would compile the callee once for each type.
NO_EDGES = ROOT = np.int64(0)
ONE = np.int64(1)

LEAST = -float(np.finfo(np.float32).max)  # the least log-prior, that of prior 0

# The parts of a simulation whose time is taken, in one of so many of them.
SELECTION, GAME, EVALUATION, BACKUP = np.arange(4)
TIMED_EVERY = 256


def simulate(
    head: np.ndarray, edges: np.ndarray, states: Any, path: np.ndarray, works: np.ndarray,
    root_squares: np.ndarray, schedule: np.ndarray, table: np.ndarray, key_bytes: np.ndarray,
    key_words: np.ndarray, key_ranges: np.ndarray, rng: np.ndarray, lock: np.ndarray,
    untried: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Run the simulations that remain of a piece; DONE, or why not: GROW, SETTLED, what is wrong.

    Several threads may do so in one tree: whoever changes it holds the lock, and leaves are valued
    without it.
    """
    tree, work = head[0], works[0]
    while True:
        if HAS_THREADS:
            acquire(lock, np.int64(work.worker))
        status = begin(tree, edges, work, table, key_bytes, key_words, key_ranges, untried)
        if status != GO:
            if HAS_THREADS:
                release(lock)
            return status
        drawn = rng[0]
        states[1] = states[0]
        tick(work, BACKUP)
        status = descend(
            tree,
            edges,
            states[1],
            path,
            work,
            schedule,
            table,
            key_bytes,
            key_words,
            key_ranges,
            rng,
            untried,
            data,
        )
        for player in range(NUM_PLAYERS):
            work.returns[player] = 0.0
        if status == DONE:
            status = close(tree, edges, path, work, states, rng, lock, untried, data)
        if IS_OUTSIDE and status == WAITING:
            return status  # the simulation stays under way
        if HAS_CHANCE and status == GROW:
            # The simulation starts again in a larger tree, as if it had never begun.
            rng[0] = drawn
        status = conclude(tree, edges, path, work, states, root_squares, rng, data, status)
        if HAS_THREADS:
            release(lock)
        if status != DONE:
            return status


def conclude(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any,
    root_squares: np.ndarray, rng: np.ndarray, data: Any, status: int,
) -> int:  # fmt: skip
    """Back up a simulation whose leaf is valued, or take it back where something was wrong."""
    if status == DONE:
        back_up(tree, edges, path, work, root_squares)
        tree.simulations += 1
        tree.since_root += 1
        tree.depth_sum += work.depth
        if REFINES:
            status = refine_path(tree, edges, path, work, states, rng, data)
    else:
        tree.remaining += 1
        if HAS_CHANCE and status == GROW:
            take_back(edges, path, work)
    if HAS_PENDING:
        lift_marks(edges, path, work)
    tick(work, BACKUP)
    return status


NO_WAY = 100  # no edge is there for what is legal, and no room for one
GO = -1  # the next simulation may begin


def begin(
    tree: Any, edges: np.ndarray, work: Any, table: np.ndarray, key_bytes: np.ndarray,
    key_words: np.ndarray, key_ranges: np.ndarray, untried: np.ndarray,
) -> int:  # fmt: skip
    """Take one of the simulations that remain; GO, or why there is none."""
    if tree.remaining <= 0:
        return DONE
    if HAS_PROOFS and is_root_settled(edges):
        return SETTLED
    if tree.may_grow:
        if tree.used + tree.room > tree.capacity:
            return GROW
        if SHARES_NODES and 4 * tree.num_nodes > 3 * table.shape[0]:
            return GROW
        if IS_SPARSE and tree.num_untried + NUM_ACTIONS > untried.shape[0]:
            return GROW
    if SHARES_NODES and tree.num_nodes == 0:
        enter_node(tree, edges, ROOT, table, key_bytes, key_words, key_ranges, NO_EDGES)
    tree.remaining -= 1
    work.played[0] += 1
    work.timed = tree.simulations % TIMED_EVERY == 0
    if work.timed:
        work.clock = read_clock()
    return GO


def tick(work: Any, part: int) -> None:
    """Add the time since the last tick to a part of the simulation."""
    if work.timed:
        now = read_clock()
        work.times[part] += now - work.clock
        work.clock = now


def take_back(edges: np.ndarray, path: np.ndarray, work: Any) -> None:
    """Forget the edge that a simulation made and did not get to count."""
    node = np.int64(0)
    for i in range(work.depth):
        edge = np.int64(path[i].edge)
        if IS_LAZY and path[i].player != CHANCE and edges[edge].visits == 0:
            if not HAS_PENDING or edges[edge].pending <= 1:
                edges[node].num_edges -= 1
        node = edge


def lift_marks(edges: np.ndarray, path: np.ndarray, work: Any) -> None:
    """The simulation is no longer under way."""
    for i in range(work.depth):
        edges[np.int64(path[i].edge)].pending -= 1
    edges[0].pending -= 1


# --- descend -------------------------------------------------------------------------------------


def descend(
    tree: Any, edges: np.ndarray, state: Any, path: np.ndarray, work: Any, schedule: np.ndarray,
    table: np.ndarray, key_bytes: np.ndarray, key_words: np.ndarray, key_ranges: np.ndarray,
    rng: np.ndarray, untried: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Walk from the root to where the simulation ends; `state` becomes the one there."""
    node = np.int64(0)
    work.depth = 0
    if HAS_AMAF:
        for mover in range(NUM_PLAYERS):
            work.refs[mover] = NONE
    work.ending = LEAF
    if HAS_PENDING:
        edges[0].pending += 1
    for depth in range(path.shape[0]):
        player = np.int64(state.to_play)
        if player < 0 or player >= NUM_PLAYERS:
            if player == OVER:
                break
            if not HAS_CHANCE or player != CHANCE:
                return BAD_TO_PLAY
        if edges[node].first == NONE:
            # With priors a leaf gets its edges when it is valued; without, when it is met again.
            if player != CHANCE and (HAS_PRIORS or (depth > 0 and is_new(edges, node))):
                break
            status = expand(tree, edges, node, state, work, data)
            if status != DONE:
                return status
            if edges[node].first == NONE:
                if HAS_CHANCE and tree.may_grow:
                    return GROW
                break  # no room
        if HAS_AMAF and player != CHANCE and visits_of_node(edges, node) >= work.amaf_ref:
            work.refs[player] = node
        if HAS_CHANCE and player == CHANCE:
            edge = outcome(tree, edges, node, state, work, rng, data)
        else:
            edge = select(
                tree, edges, node, player, state, path, work, schedule, rng, untried, data
            )
        if edge < 0:
            if OPEN_LOOP and edge == -NO_WAY:
                break
            return -edge
        tick(work, SELECTION)
        status = follow(tree, edges, node, edge, player, state, path, work, rng, data)
        if HAS_PENDING:
            edges[edge].pending += 1
        work.depth = depth + 1
        tick(work, GAME)
        if status != DONE:
            return status
        if SHARES_NODES:
            enter_node(
                tree, edges, edge, table, key_bytes, key_words, key_ranges, np.int64(state.to_play)
            )
            if is_repeated(path, depth, node_of(edges, edge)):
                work.ending = REPEATED
                return DONE
        node = node_of(edges, edge)
        if HAS_PROOFS and is_exact(edges, node) and state.to_play != OVER:
            work.ending = KNOWN
            return DONE
    if state.to_play == OVER:
        work.ending = AT_END
    return DONE


def is_new(edges: np.ndarray, node: int) -> bool:
    """Whether a node has not been valued yet."""
    return visits_of_node(edges, node) == 0


def follow(
    tree: Any, edges: np.ndarray, node: int, edge: int, player: int, state: Any, path: np.ndarray,
    work: Any, rng: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Take an edge, and write it to the path."""
    record = path[work.depth]
    record.edge = edge
    record.player = player
    if SHARES_NODES:
        record.node = node
    if IS_CONTINUOUS:
        for j in range(DIM):
            work.actions[0, j] = edges[edge].vector[j]
        status = take(state, work.actions[0], work.reward, data)
    else:
        status = take(state, np.int64(edges[edge].action), work.reward, data)
    for j in range(NUM_VALUES):
        record.reward[j] = work.reward[j]
    if SHARES_NODES:
        for j in range(NUM_VALUES):
            edges[edge].reward[j] = work.reward[j]
    if OPEN_LOOP and HAS_CHANCE:
        while status == DONE and state.to_play == CHANCE:
            action = draw_chance(state, work.actions, work.probabilities, rng, data)
            if action < 0:
                return BAD_CHANCE
            status = take(state, action, work.reward, data)
            for j in range(NUM_VALUES):
                record.reward[j] += work.reward[j]
    return status


def take(state: Any, action: Any, reward: np.ndarray, data: Any) -> int:
    """Step the state, and check what the step did."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    step(state, action, reward, data)
    total = 0.0
    for player in range(NUM_PLAYERS):
        total += reward[player]
    if ZERO_SUM:
        if total != 0.0:  # so is a sum that is no number
            return NOT_ZERO_SUM
    elif not math.isfinite(total):
        return BAD_REWARD
    if HAS_PROOFS and state.to_play != OVER:
        for player in range(NUM_PLAYERS):
            if reward[player] != 0.0:
                return PAYS_EARLY
    return DONE


def is_repeated(path: np.ndarray, depth: int, node: int) -> bool:
    """Whether a node is one that the path came through."""
    for i in range(depth + 1):  # noqa: SIM110
        if path[i].node == node:
            return True
    return False


def enter_node(
    tree: Any, edges: np.ndarray, edge: int, table: np.ndarray, key_bytes: np.ndarray,
    key_words: np.ndarray, key_ranges: np.ndarray, to_play: int,
) -> None:  # fmt: skip
    """Let an edge that is taken for the first time know the node of its state.

    Ends of episodes are not shared, because what they pay belongs to the edge.
    """
    record = edges[edge]
    if record.node != NONE and tree.num_nodes > 0:
        return
    record.node = edge
    for j in range(NUM_VALUES):
        record.own_sum[j] = 0.0
    if to_play == OVER:
        return
    low, high = key_hash(key_bytes, key_words, ONE if tree.num_nodes > 0 else ROOT, key_ranges)
    slot = find_slot(table, low, high)
    if table[slot].node != NONE:
        record.node = table[slot].node
    elif 4 * tree.num_nodes <= 3 * table.shape[0]:
        table[slot].key[0] = low
        table[slot].key[1] = high
        table[slot].node = edge
        tree.num_nodes += 1


def key_hash(
    key_bytes: np.ndarray, key_words: np.ndarray, row: int, ranges: np.ndarray
) -> tuple[int, int]:
    """128 bits that tell the key of a state, from the bytes of its key fields."""
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
    """A word whose bits all depend on all bits above and below."""
    word ^= word >> np.uint64(32)
    word *= factor
    return word ^ (word >> np.uint64(29))


# --- select --------------------------------------------------------------------------------------


def select(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, path: np.ndarray, work: Any,
    schedule: np.ndarray, rng: np.ndarray, untried: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """The edge the rule takes at a node, made if it is new; minus a status where that fails."""
    if HAS_PROOFS and not HAS_BOUNDS and edges[node].proof == MOVER:
        edge = won_edge(tree, edges, node, player)
        if edge != NONE:
            return edge
    if OPEN_LOOP:
        status = open_actions(tree, edges, node, state, work, data)
        if status != DONE:
            return -status
    num_untried = np.int64(0)
    if IS_LAZY:
        num_untried = np.int64(edges[node].num_legal - edges[node].num_edges)
    value = node_value(tree, edges, node, player, path, work)
    if ROOT_CHOOSES and node == 0:
        return chosen_edge(
            tree, edges, untried, work, node, player, value, considered(tree, edges, schedule),
            work.root_parameters, root_choose,
        )  # fmt: skip
    if CHOOSES and (not SCORES or node != 0 or not ROOT_DIFFERS):
        edge = chosen_edge(
            tree, edges, untried, work, node, player, value, NO_EDGES, work.parameters, choose
        )
        if IS_SPARSE and edge == NONE:
            return likeliest_edge(tree, edges, untried, node, state, work, data)
        return edge
    if SCORES:
        return scored_edge(
            tree, edges, node, player, state, work, value, num_untried, rng, data
        )  # fmt: skip
    return -np.int64(BAD_SCORE)


def scored_edge(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, work: Any, value: float,
    num_untried: int, rng: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """The edge with the best score, made if it is new; minus a status where that fails."""
    ref = node
    if HAS_AMAF and work.refs[player] != NONE:
        ref = np.int64(work.refs[player])
        if ref != node:
            note_ref(edges, work, ref)
    num_edges = np.int64(edges[node].num_edges)
    num_legal = np.int64(work.count) if OPEN_LOOP else num_edges + num_untried
    if WIDENS:
        num_open = count_open(edges, node)
        if num_open < widening_limit(
            visits_of_node(edges, node), work.widening[0], work.widening[1], work.widening[2]
        ):
            if IS_CONTINUOUS:
                edge = new_action(tree, edges, node, player, state, work, rng, data)
                if edge != NONE:
                    return edge
            elif not IS_LAZY and num_open < num_edges:
                return np.int64(edges[node].first) + num_open
            if IS_LAZY and num_untried > 0:
                edge = next_untried(tree, edges, node, state, work, data)
                if edge != NONE:
                    return edge
        num_edges, num_untried = num_open, NO_EDGES
    while True:
        edge = score_edges(
            tree, edges, node, ref, player, value, num_edges, num_untried, num_legal, work, rng
        )
        if edge != NONE:
            return edge
        if num_untried == 0:
            return some_edge(tree, edges, node, state, work, data)
        edge = next_untried(tree, edges, node, state, work, data)
        if edge != NONE:
            return edge
        num_untried = NO_EDGES  # no room for another edge: make do with those there are


def score_edges(
    tree: Any, edges: np.ndarray, node: int, ref: int, player: int, value: float, num_edges: int,
    num_untried: int, num_legal: int, work: Any, rng: np.ndarray,
) -> int:  # fmt: skip
    """The best of a node's first edges by the rule that is in force there."""
    first = np.int64(edges[node].first)
    if not CHOOSES and (not ROOT_DIFFERS or node != 0):
        return best_edge(
            tree, edges, work, rng, node, first, num_edges, player, value, num_untried, num_legal,
            ref, work.parameters, width, score, unvisited, total, scale, blend, unvisited_first,
        )  # fmt: skip
    if ROOT_DIFFERS and not ROOT_CHOOSES:
        return best_edge(
            tree, edges, work, rng, node, first, num_edges, player, value, num_untried, num_legal,
            ref, work.root_parameters, root_width, root_score, root_unvisited, root_total,
            root_scale, root_blend, root_unvisited_first,
        )  # fmt: skip
    return NONE


def some_edge(tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, data: Any) -> int:
    """An edge where no score says anything: all edges so far are lost; else something is wrong."""
    first = np.int64(edges[node].first)
    if not HAS_PROOFS and not OPEN_LOOP:
        return -np.int64(BAD_SCORE)
    if WIDENS:
        if IS_LAZY and edges[node].num_edges < edges[node].num_legal:
            edge = next_untried(tree, edges, node, state, work, data)
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
        return -np.int64(NO_WAY)
    return first


def considered(tree: Any, edges: np.ndarray, schedule: np.ndarray) -> int:
    """How many visits the root's edge has that sequential halving takes now."""
    number = np.int64(tree.since_root)
    if HAS_PENDING:
        number += edges[0].pending - 1  # those under way count, the one that asks does not
    return schedule[min(number, schedule.shape[0] - 1)]


def count_open(edges: np.ndarray, node: int) -> int:
    """How many of a node's edges have been taken; with widening these come first."""
    if IS_LAZY or IS_CONTINUOUS:
        return np.int64(edges[node].num_edges)
    first, count = np.int64(edges[node].first), np.int64(0)
    while count < edges[node].num_edges and is_taken(edges, first + count):
        count += 1
    return count


def is_taken(edges: np.ndarray, edge: int) -> bool:
    if HAS_PENDING and edges[edge].pending > 0:
        return True
    return edges[edge].visits > 0


def node_value(
    tree: Any, edges: np.ndarray, node: int, player: int, path: np.ndarray, work: Any
) -> float:
    """V(s): the mean return seen at a node, which is its edge's without the reward of that edge."""
    visits = visits_of_node(edges, node)
    if visits == 0:
        return 0.0
    if SHARES_NODES:
        return worth_to(tree, edges[node].value_sum, player)
    value = worth_to(tree, edges[node].value_sum, player) * inverse(visits)
    if not OPEN_LOOP and work.depth > 0:
        value = (value - worth_to(tree, path[work.depth - 1].reward, player)) / DISCOUNT
    return value


# --- expand --------------------------------------------------------------------------------------


def expand(tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, data: Any) -> int:
    """Give a node its edges, or its first ones; it stays without where there is no room."""
    if HAS_CHANCE and state.to_play == CHANCE:
        if WIDENS_OUTCOMES:
            move_block(tree, edges, node, NO_EDGES, np.int64(FIRST_BLOCK))
            return DONE
        return expand_chance(tree, edges, node, state, work, data)
    if IS_CONTINUOUS:
        move_block(tree, edges, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    count = np.int64(legal(state, work.actions, data))
    if count < 1 or count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if OPEN_LOOP:
        move_block(tree, edges, node, NO_EDGES, np.int64(FIRST_BLOCK))
        return DONE
    if not IS_LAZY:
        return make_edges(tree, edges, node, work.actions, NO_EDGES, count)
    status = make_edges(tree, edges, node, work.actions, NO_EDGES, block_size(count, NO_EDGES))
    edges[node].num_legal = count
    edges[node].num_edges = 0
    return status


def move_block(tree: Any, edges: np.ndarray, node: int, kept: int, size: int) -> bool:
    """Move a node to a fresh block: the `kept` edges it has, then new ones; False without room."""
    if tree.used + size > tree.capacity:
        return False
    first = np.int64(tree.used)
    for i in range(kept):
        edges[first + i] = edges[edges[node].first + i]
    for i in range(kept, size):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += size
    edges[node].first = first
    edges[node].num_edges = kept
    if IS_CONTINUOUS and 2 * NUM_BLOCKS * size > tree.room:
        tree.room = 2 * NUM_BLOCKS * size  # the next simulation may double this block
    return True


def make_edges(
    tree: Any, edges: np.ndarray, node: int, actions: np.ndarray, kept: int, size: int
) -> int:
    """Move a node to a fresh block of `size` edges: the first `kept` it has, then new ones."""
    room = block_room(NO_LIMIT, size) if APPENDS and not IS_LAZY else size
    if tree.used + room > tree.capacity:
        return DONE
    first = np.int64(tree.used)
    for i in range(kept):
        edges[first + i] = edges[edges[node].first + i]
    for i in range(kept, size):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return BAD_ACTION
        write_edge(edges, first + i, np.int64(actions[i]))
    for i in range(size, room):
        write_edge(edges, first + i, NO_EDGES)
    tree.used += room
    edges[node].first = first
    edges[node].num_edges = size
    return DONE


def next_untried(tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, data: Any) -> int:
    """The next edge of a node in the order of `legal`; NONE where there is no room for it."""
    if not IS_LAZY:
        return NONE  # all were made at once
    count, num_edges = np.int64(edges[node].num_legal), np.int64(edges[node].num_edges)
    if count > LAZY_ABOVE and num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if legal(state, work.actions, data) != count or work.actions[GUARD_AT] != GUARD:
            return -BAD_COUNT
        first = edges[node].first
        size = block_size(count, num_edges)
        status = make_edges(tree, edges, node, work.actions, num_edges, size)
        if status != DONE:
            return -status
        if edges[node].first == first:
            return -GROW if HAS_CHANCE and tree.may_grow else NONE
    edges[node].num_edges = num_edges + 1
    return np.int64(edges[node].first) + num_edges


def append_edge(tree: Any, edges: np.ndarray, node: int, action: int) -> int:
    """One more edge of a node whose block doubles when it is full; NONE without room."""
    num_edges = np.int64(edges[node].num_edges)
    if num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if not move_block(tree, edges, node, num_edges, 2 * num_edges):
            return NONE
    edge = np.int64(edges[node].first) + num_edges
    write_edge(edges, edge, action)
    edges[node].num_edges = num_edges + 1
    return edge


@apart
def likeliest_edge(
    tree: Any, edges: np.ndarray, untried: np.ndarray, node: int, state: Any, work: Any, data: Any
) -> int:
    """An edge for the likeliest action of a node that has none, which `best_untried` has found."""
    count, best = np.int64(edges[node].num_legal), np.int64(edges[node].best)
    if legal(state, work.actions, data) != count or work.actions[GUARD_AT] != GUARD:
        return -np.int64(BAD_COUNT)
    edge = append_edge(tree, edges, node, np.int64(work.actions[best]))
    if edge == NONE:
        return -np.int64(GROW)
    edges[edge].prior = edges[node].best_prior
    untried[np.int64(edges[node].untried) + best] = -math.inf  # it has an edge now
    edges[node].best = NONE
    return edge


def new_action(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, work: Any, rng: np.ndarray,
    data: Any,
) -> int:  # fmt: skip
    """One more edge of a node, for a vector that the proposal finds; NONE without room."""
    status = propose(tree, edges, node, player, state, work.actions, rng, work.proposal, data)
    if status < 0:
        return -np.int64(BAD_ACTION)
    return append_vector(tree, edges, node, work.actions)


def append_vector(tree: Any, edges: np.ndarray, node: int, actions: np.ndarray) -> int:
    """One more edge of a node, for the vector in `actions`; NONE without room."""
    edge = append_edge(tree, edges, node, np.int64(edges[node].num_edges))
    if edge != NONE:
        for j in range(DIM):
            edges[edge].vector[j] = actions[0, j]
    return edge


def open_actions(tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, data: Any) -> int:
    """Mark what is legal in this state of a node, and make edges for what never was before."""
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
            if append_edge(tree, edges, node, action) == NONE:
                if tree.may_grow:
                    return GROW
                continue
        work.legal_stamp[action] = work.stamp
    return DONE


def expand_chance(tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, data: Any) -> int:
    """Give a chance node one edge for every outcome that can happen."""
    actions, probabilities = work.actions, work.probabilities
    count = np.int64(chance(state, actions, probabilities, data))
    if count < 1 or count > MAX_OUTCOMES:
        return BAD_CHANCE
    total = 0.0
    for i in range(count):
        if not probabilities[i] >= 0.0:
            return BAD_CHANCE
        total += probabilities[i]
    if not abs(total - 1.0) < 1e-9:
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


def outcome(
    tree: Any, edges: np.ndarray, node: int, state: Any, work: Any, rng: np.ndarray, data: Any
) -> int:
    """The edge of a chance node to take."""
    if not WIDENS_OUTCOMES:
        return np.int64(pick_outcome(edges, node, rng))
    num_edges = np.int64(edges[node].num_edges)
    limit = widening_limit(
        visits_of_node(edges, node), work.outcome_widening[0], work.outcome_widening[1], 0.0
    )
    if num_edges >= limit:
        return np.int64(drawn_again(edges, node, rng))
    action = draw_chance(state, work.actions, work.probabilities, rng, data)
    if action < 0:
        return -BAD_CHANCE
    first = np.int64(edges[node].first)
    for edge in range(first, first + num_edges):
        if edges[edge].action == action:
            edges[edge].prior += 1.0
            return np.int64(edge)
    edge = append_edge(tree, edges, node, action)
    if edge == NONE:
        return -GROW if tree.may_grow else np.int64(drawn_again(edges, node, rng))
    edges[edge].prior = 1.0
    return edge


# --- refine --------------------------------------------------------------------------------------


def refine_path(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any, rng: np.ndarray,
    data: Any,
) -> int:  # fmt: skip
    """Make the vectors of a simulation's path better, as often as is due."""
    work.debt += work.refine[FREQUENCY]
    while work.debt >= 1.0:
        work.debt -= 1.0
        if REFINES_BEST:
            follow_best(tree, edges, path, work, states, rng, data)
        status = read_line(edges, path, work, states, rng, data)
        if status == NO_WAY:
            continue
        if status == DONE:
            work.evaluations = 0
            write_scales(edges, path, work)
            status = improve(work, states, rng, data)
            tree.evaluations += work.evaluations
        if status != DONE:
            return status
        if REFINES_REPLIES:
            copy_line(work.lines[0, 0], work.kept)
            insert_line(tree, edges, path, work, work.kept)
        insert_line(tree, edges, path, work, work.better)
    return DONE


def follow_best(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any, rng: np.ndarray,
    data: Any,
) -> None:  # fmt: skip
    """Let the path be the line on which every mover takes what is worth most to it so far."""
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
            edge = incumbent(tree, edges, node, np.int64(states[2].to_play))
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


def write_scales(edges: np.ndarray, path: np.ndarray, work: Any) -> None:
    """Let steps be the shorter, the more edges the node of a stage has."""
    node = np.int64(0)
    for stage in range(work.line.shape[0]):
        count = np.int64(1)
        if stage <= work.depth and edges[node].first != NONE:
            count = max(count, np.int64(edges[node].num_edges))
        work.scales[stage] = float(count) ** -work.refine[DECAY]
        if stage < work.depth:
            node = np.int64(path[stage].edge)


def read_line(
    edges: np.ndarray, path: np.ndarray, work: Any, states: Any, rng: np.ndarray, data: Any
) -> int:
    """Write the vectors of a path, and draw those to the end; NO_WAY where those do not count."""
    for i in range(work.depth):
        for j in range(DIM):
            work.line[i, j] = edges[np.int64(path[i].edge)].vector[j]
    stage = np.int64(work.depth)
    if work.ending == AT_END:
        return DONE
    if not REFINES_PLAYOUTS:
        return NO_WAY
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
    return DONE if states[2].to_play == OVER else NO_WAY


def insert_line(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, line: np.ndarray
) -> None:
    """Give a line edges of its own from where it leaves the path; nobody has taken them.

    The next simulation that comes by takes them. An edge that is there keeps its vector.
    """
    node, stage = np.int64(0), np.int64(0)
    while stage < work.depth and is_same(work, line, stage):
        node = np.int64(path[stage].edge)
        stage += 1
    while stage < work.length:
        if edges[node].first == NONE:
            if not move_block(tree, edges, node, NO_EDGES, np.int64(FIRST_BLOCK)):
                return
        for j in range(DIM):
            work.actions[0, j] = line[stage, j]
        before = np.int64(edges[node].first)
        edge = append_vector(tree, edges, node, work.actions)
        if edge == NONE:
            return
        if edges[node].first != before and stage < work.depth:
            move_path(path, work, stage, before, np.int64(edges[node].first))
        node = edge
        stage += 1


def is_same(work: Any, line: np.ndarray, stage: int) -> bool:
    """Whether a line has the vector of the path at a stage."""
    for j in range(DIM):  # noqa: SIM110
        if work.line[stage, j] != line[stage, j]:
            return False
    return True


def move_path(path: np.ndarray, work: Any, stage: int, before: int, after: int) -> None:
    """Follow the edges of a node to where they were moved."""
    edge = np.int64(path[stage].edge)
    path[stage].edge = edge - before + after


# --- evaluate ------------------------------------------------------------------------------------


def close(
    tree: Any, edges: np.ndarray, path: np.ndarray, work: Any, states: Any, rng: np.ndarray,
    lock: np.ndarray, untried: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """What is returned where the descent ended."""
    if work.ending == AT_END:
        return DONE
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
    # The root is to be searched, whatever is known of it.
    if HAS_EXACT and depth > 0 and is_known_exactly(states[1], work, data):
        work.ending = FOUND
        status = check_values(work.returns, np.int64(DONE))
    else:
        status = evaluate_leaf(edges, node, work, states, rng, data)
    tick(work, EVALUATION)
    if HAS_THREADS:
        acquire(lock, np.int64(work.worker))
    if HAS_EXACT and work.ending == FOUND:
        mark_end(edges, node, work.returns)
        return status
    if HAS_PRIORS and not IS_OUTSIDE and status == DONE and work.count > 0:
        if edges[node].first == NONE:
            status = place_edges(tree, edges, node, work, work.logits, untried)
    return status


def is_known_exactly(state: Any, work: Any, data: Any) -> bool:
    """Whether the game knows what the leaf is worth; `returns` gets it."""
    if state.to_play < 0:
        return False
    for player in range(NUM_PLAYERS):
        work.reward[player] = 0.0
    if not know_exactly(state, work.reward, data):
        return False
    for player in range(NUM_PLAYERS):
        work.returns[player] = work.reward[player]
    return True


def evaluate_leaf(
    edges: np.ndarray, node: int, work: Any, states: Any, rng: np.ndarray, data: Any
) -> int:
    """Value the leaf; with priors list its actions as well."""
    num_playouts = work.limits[0]
    max_plies = min(work.limits[1], work.limits[2] - work.depth)
    work.count = 0
    if HAS_PRIORS and states[1].to_play != CHANCE and edges[node].first == NONE:
        if IS_OUTSIDE:
            work.count = 1  # there will be edges; their actions are listed when the answer is there
        elif list_actions(states[1], work, data) != DONE:
            return BAD_COUNT
    return value_leaf(
        states, work.drawn, work.probabilities, work.logits, work.reward, work.returns, rng,
        work.played, num_playouts, max_plies, data,
    )  # fmt: skip


def list_actions(state: Any, work: Any, data: Any) -> int:
    """Write the legal actions of a leaf, and how many there are."""
    work.count = legal(state, work.actions, data)
    if work.count < 1 or work.count > NUM_ACTIONS or work.actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    return DONE


@apart
def place_edges(
    tree: Any, edges: np.ndarray, node: int, work: Any, logits: np.ndarray, untried: np.ndarray
) -> int:
    """Give a leaf that was valued its edges and their priors."""
    count = np.int64(work.count)
    if SORTS:
        status = check_actions(work, count)
        if status != DONE:
            return status
        sort_actions(work, count, logits)
    first = np.int64(tree.num_untried) if IS_SPARSE else NO_EDGES
    row = untried[first : first + count] if IS_SPARSE else work.log_priors
    status = read_logits(work, count, logits, row)
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
        tree.used += FIRST_BLOCK  # written when they are taken
    else:
        kept = min(count, np.int64(work.widening[3])) if SORTS else count
        status = make_edges(tree, edges, node, work.actions, NO_EDGES, kept)
        if status != DONE:
            return status
        if edges[node].first == NONE:
            return GROW if HAS_CHANCE and tree.may_grow else DONE
        if IS_LAZY:
            edges[node].num_legal = count
        for i in range(kept):
            edges[np.int64(edges[node].first) + i].prior = work.weights[i] / total
    if KEEPS_RAW:
        for j in range(NUM_VALUES):
            edges[node].raw[j] = work.returns[j]
    return DONE


def check_actions(work: Any, count: int) -> int:
    """Whether all legal actions are there."""
    num_wrong = 0
    for i in range(count):  # a loop without a way out, so that machines take several at once
        num_wrong += 1 if work.actions[i] < 0 or work.actions[i] >= NUM_ACTIONS else 0
    return DONE if num_wrong == 0 else BAD_ACTION


def read_logits(work: Any, count: int, logits: np.ndarray, row: np.ndarray) -> int:
    """Write the log-priors of the legal actions to `row`, in their order; what is wrong."""
    status = check_actions(work, count)
    if status != DONE:
        return status
    num_wrong = 0
    for i in range(count):
        logit = logits[np.uint32(work.actions[i])]  # not signed: nothing counts from the end
        num_wrong += 0 if logit < math.inf else 1
        row[i] = logit if logit > LEAST else LEAST
    return DONE if num_wrong == 0 else BAD_VALUE


def weigh(row: np.ndarray, count: int, largest: float, weights: np.ndarray) -> float:
    """The sum of the weights of actions, e^(log-prior - largest), which are written.

    A prior is a weight by this sum: the softmax over the legal actions. Where no log-prior leaves
    anything, all are the least there is, and alike.
    """
    for i in range(count):
        weights[i] = exp_below(np.float64(row[i]) - largest)  # `float` would stay at 32 bits
    return sum_of(weights, count)


def sort_actions(work: Any, count: int, logits: np.ndarray) -> None:
    """Put the actions in the order of falling log-priors, equal ones as they are (heap sort)."""
    for i in range(count):
        work.order[i] = i
    for start in range(count // 2 - 1, -1, -1):
        sift(work, np.int64(start), count, logits)
    for end in range(count - 1, 0, -1):
        swap = work.order[0]
        work.order[0] = work.order[end]
        work.order[end] = swap
        sift(work, NO_EDGES, np.int64(end), logits)
    for i in range(count):
        work.order[i] = work.actions[work.order[i]]
    for i in range(count):
        work.actions[i] = work.order[i]


def sift(work: Any, start: int, end: int, logits: np.ndarray) -> None:
    """Let the entry at `start` sink until none below it comes later in the order."""
    at = start
    while 2 * at + 1 < end:
        child = 2 * at + 1
        if child + 1 < end and comes_later(work, child + 1, child, logits):
            child += 1
        if not comes_later(work, child, at, logits):
            return
        swap = work.order[at]
        work.order[at] = work.order[child]
        work.order[child] = swap
        at = child


def comes_later(work: Any, i: int, j: int, logits: np.ndarray) -> bool:
    """Whether entry i belongs behind entry j."""
    first, second = work.order[i], work.order[j]
    a, b = logits[work.actions[first]], logits[work.actions[second]]
    return first > second if a == b else a < b
