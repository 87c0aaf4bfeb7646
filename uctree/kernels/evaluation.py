"""The value of a leaf, and the priors of its actions, in kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.game import CHANCE
from uctree.kernels.backups import AT_END, FOUND, KNOWN, LEAF, REPEATED
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Search
from uctree.kernels.episodes import KEEPS_BEST, note_episode
from uctree.kernels.expansion import make_edges
from uctree.kernels.gumbel import exp_below
from uctree.kernels.playouts import check_values
from uctree.kernels.proofs import mark_end, read_exact
from uctree.kernels.records import (
    HAS_ANSWERS,
    HAS_PRIORS,
    HAS_PROOFS,
    IS_LAZY,
    IS_SPARSE,
    KEEPS_RAW,
    NO_EDGES,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    node_of,
)
from uctree.kernels.rules import (
    GUARD_AT,
    HAS_BATCH_EVALUATOR,
    HAS_CHANCE,
    IMAGINES,
    NUM_ACTIONS,
    NUM_PLAYERS,
    know_exactly,
    legal,
)
from uctree.kernels.scoring import largest_of, sum_of
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_COUNT,
    BAD_VALUE,
    DONE,
    GUARD,
    NEED_CAPACITY,
    WAITING,
)
from uctree.kernels.timing import EVALUATION, tick

# Bound when a search is composed.
value_leaf = UNBOUND
HAS_EXACT = UNBOUND  # the game has `exact`, and the search proves values
SORTS = UNBOUND
acquire = release = UNBOUND
HAS_THREADS = UNBOUND

LEAST = -float(np.finfo(np.float32).max)  # the least log-prior, that of prior 0
FEW, MOST_PASSES = 8, 12  # of `threshold`: how many more than wanted are good enough, and its tries


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
    edges, tree, work = search.edges, search.tree, search.work
    count = np.int64(work.count)
    first = np.int64(tree.num_untried) if IS_SPARSE else NO_EDGES
    row = search.untried[first : first + count] if IS_SPARSE else work.log_priors
    if SORTS:
        status = check_actions(search, count)
        if status != DONE:
            return status
        sort_actions(search, count, logits)
    if IMAGINES and not SORTS and node != 0:
        status = read_row(logits, count, row)
    else:
        status = read_logits(search, count, logits, row)
    if status != DONE:
        return status
    largest = largest_of(row, count)
    total = weigh(row, count, largest, work.weights)
    if IS_SPARSE and node != 0:
        record = edges[node]
        record.largest, record.sum_weights, record.best = largest, total, NONE
        # It has no edges yet; when the first one is taken, they get a block.
        record.first, record.num_edges, record.num_legal = tree.used, 0, count
        keep_untried(search, record, row)
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


def read_row(logits: np.ndarray, count: int, row: np.ndarray) -> int:
    """As `read_logits` if all actions are legal, which compilers vectorise."""
    num_wrong = 0
    for i in range(count):
        logit = logits[i]
        num_wrong += 0 if logit < math.inf else 1
        row[i] = logit if logit > LEAST else LEAST
    return DONE if num_wrong == 0 else BAD_VALUE


def keep_untried(search: Search, record: Any, row: np.ndarray) -> None:
    """Keep the log-priors of a node's likeliest actions, as many as its visits can open.

    A later simulation takes at most one more action here, the likeliest without an edge. So the
    search never reads the others; who reads the tree may (`keeps_priors`).

    Args:
        row: all of them, which begin where they are kept.
    """
    tree, queue, legal = search.tree, search.queue, search.work.actions
    first, count = np.int64(tree.num_untried), np.int64(row.shape[0])
    actions = search.untried_actions[first : first + count]
    kept, left = np.int64(0), np.int64(queue.budget - tree.simulations - 1)
    if queue.keeps_priors or left >= count:
        for i in range(count):
            actions[i] = legal[i]
        kept = count
    else:
        least = threshold(row, count, np.float64(record.largest), left)
        for i in range(count):  # no branch, which would be mispredicted
            row[np.uint64(kept)], actions[np.uint64(kept)] = row[i], legal[i]
            kept += 1 if row[i] >= least else 0
    record.untried, record.num_kept = first, kept
    tree.num_untried += kept


def threshold(row: np.ndarray, count: int, largest: float, wanted: int) -> float:
    """A log-prior that at least `wanted` of the first `count` reach, and few more if that is easy.

    A few passes that only count: compilers vectorise them, unlike a sort.

    >>> threshold(np.array([0.0, -3.0, -1.0, -2.0, -1.5, -50.0]), 6, largest=0.0, wanted=2)
    -1.0
    """
    if wanted <= 0:
        return math.inf
    low, high = math.inf, 0.0  # how far below the largest
    width = 1.0
    for _ in range(MOST_PASSES):
        reached = num_reaching(row, count, largest - width)
        if reached >= wanted:
            low = width
            if reached <= wanted + wanted // 4 + FEW:
                break
        else:
            high = width
        width = 2.0 * width if low == math.inf else 0.5 * (low + high)
    return LEAST if low == math.inf else largest - low


def num_reaching(row: np.ndarray, count: int, least: float) -> int:
    """How many of the first `count` numbers of a row are at least `least`."""
    reached = 0
    for i in range(count):
        reached += 1 if row[i] >= least else 0
    return reached


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
