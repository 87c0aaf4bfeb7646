"""A batch of trees in one kernel, and the queue of leaves that Python evaluates.

A search of one state is a batch of one tree. In a call of the kernel every tree first resumes the
simulations whose leaves were evaluated, and backs them up. It then begins new ones until its part
of the queue is full, or its budget is used up. A leaf whose state is in the queue already, or in
the evaluation cache, is not requested again. Compiled evaluators need no queue.

If Python knows the steps as well (`HAS_ANSWERS`), the leaf may be an edge that nobody has taken
yet. The question is then what is behind it, and the answer has the reward, the player to move, the
number of actions, priors and values. Such answers come one by one, in any order. A learned model
(`IMAGINES`) answers all questions of a batch at once; row i of its answers is about question i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.game import CHANCE, OVER, seeded
from uctree.kernels import gumbel
from uctree.kernels.backups import LEAF
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.context import Batch, Search
from uctree.kernels.evaluation import evaluate, list_actions, place_edges
from uctree.kernels.playouts import are_bounded
from uctree.kernels.records import (
    CLOSED,
    HAS_ANSWERS,
    HAS_PRIORS,
    NONE,
    NUM_VALUES,
    SHARES_NODES,
    UNSEEN,
    ZERO_SUM,
    node_of,
    visits_of_node,
    write_edge,
)
from uctree.kernels.rules import (
    HAS_BATCH_EVALUATOR,
    HAS_CHANCE,
    IMAGINES,
    NUM_ACTIONS,
    NUM_PLAYERS,
    observe,
)
from uctree.kernels.scoring import HALVES_ROOT, HAS_NOISE
from uctree.kernels.simulation import arrive, conclude, key_hash, simulate, take_known, walk
from uctree.kernels.status import BAD_VALUE, DONE, EDGE_CLOSED, NEED_CAPACITY, ROOT_SOLVED, WAITING

# Bound when a search is composed.
# Values begin with the player to move, as those of networks do; else they are in the order of the
# players. A batch evaluator then gets observations.
OBSERVES = UNBOUND
read_frame = search_of = UNBOUND  # the batch of the kernel's argument, and the search of a tree

# The phases of a tree. IDLE: nothing to do. RESET: it starts from another root. ROOT_EVALUATION:
# the root gets edges, outside the budget. ROOT_READY: Python mixes noise into the root's priors.
# SEARCHING: simulations use the budget. FINISHED: the budget is used up.
IDLE, RESET, ROOT_EVALUATION, ROOT_READY, SEARCHING, FINISHED = 0, 1, 2, 3, 4, 5

CACHE_WAYS = 4  # entries that can hold a given result; a new result replaces the oldest


QUEUE = np.dtype(
    [
        ("num_waiting", np.int64),  # simulations whose leaves are not evaluated yet
        ("num_ready", np.int64),  # those of them whose leaves have been evaluated since
        ("is_solved", np.int64),
        ("phase", np.int64),
        ("budget", np.int64),
        ("piece", np.int64),  # the part of it that begins before Python looks at the clock; 0: all
        ("seed", np.uint64),
        ("stops_when_ready", np.int64),  # whether Python begins the budget of a prepared root
        ("has_noise", np.int64),  # whether the root gets the noise of the options
        ("num_considered", np.int64),  # edges that a Gumbel root considers
        ("simulations_before", np.int64),  # `tree.simulations` when the root's evaluation began
        ("since_root_before", np.int64),
        ("is_ordered", np.int64),  # whether simulations are resumed in the order of their questions
        ("resumes_first", np.int64),  # whether answered simulations end before others begin
        ("num_asked", np.int64),  # questions so far
        ("first_waiting", np.int64),  # where the simulations that wait begin on the stack
        ("keeps_priors", np.int64),  # whether nodes keep the log-priors of all their actions
        ("rests_at", np.int64),  # at how many simulations the kernel returns; 0 for never
        *gumbel.HALVING_FIELDS,
    ]
)
CONTROL = np.dtype(
    [
        ("tree", np.int64),  # the current tree, for error messages
        ("slot", np.int64),  # of the current simulation, for error messages
        ("num_requests", np.int64),  # rows that Python is to evaluate
        ("num_results", np.int64),  # rows that Python has evaluated
        ("num_stopped", np.int64),  # trees that became ROOT_READY or FINISHED
        ("cache_stamp", np.int64),  # grows with every result that enters the cache
        ("num_cache_hits", np.int64),
        ("is_paused", np.int64),  # whether no simulation may begin
        ("num_roots", np.int64),  # questions to a model that are about roots
        ("is_scattered", np.int64),  # whether its answers do not belong into adjacent places
    ]
)
CACHE_ENTRY = np.dtype([("key", np.uint64, (2,)), ("stamp", np.int64)])


def slot_dtype(num_players: int) -> np.dtype:
    """The record of a simulation that waits for its leaf's value."""
    return np.dtype(
        [
            ("row", np.int64),  # of the result
            ("is_cached", np.int64),  # whether that is a row of the cache
            ("depth", np.int64),
            ("player", np.int64),  # to move in the leaf
            ("expands", np.int64),  # whether the leaf gets edges
            ("returns", np.float64, (num_players,)),  # paid by chance steps at the leaf
            ("discount", np.float64),  # of the leaf's value
            ("ticket", np.int64),  # the number of its question
        ]
    )


OPEN, ANSWERED, FAILED, EXHAUSTED = 0, 1, 2, 3  # what became of a question


def answer_dtype(num_players: int) -> np.dtype:
    """The record of what Python says about an edge or a node; its values and priors are beside."""
    return np.dtype(
        [
            ("reward", np.float64, (num_players,)),
            ("status", np.int64),
            ("row", np.int64),  # the number of the state
            ("count", np.int64),  # of its actions or outcomes
            ("mover", np.int64),  # its `to_play`
        ]
    )


PARENT, ACTION, PLACE = 0, 1, 2  # rows of the questions to a model, see `ask_model`


# --- kernels: the step of a batch ----------------------------------------------------------------


def step_batch(frame: Any, logits: np.ndarray, values: np.ndarray, data: Any) -> int:
    """Store results and search: WAITING for evaluations, DONE, NEED_CAPACITY, or an error."""
    batch = read_frame(frame)
    control = batch.controls[0]
    if HAS_BATCH_EVALUATOR and (IMAGINES or not HAS_ANSWERS) and control.num_results > 0:
        if not IMAGINES:
            for row in range(control.num_results):
                store_result(batch, logits, values, np.int64(row))
        clear_requests(batch)
    for number in range(batch.heads.shape[0]):
        control.tree = number
        if batch.queues[number].phase == RESET:
            reset(batch, np.int64(number))
        status = step_tree(batch, np.int64(number), logits, values, data)
        if status != DONE:
            return status
    return WAITING if HAS_BATCH_EVALUATOR and control.num_requests > 0 else DONE


def step_tree(batch: Batch, number: int, logits: np.ndarray, values: np.ndarray, data: Any) -> int:
    """Search one tree until it waits or has nothing to do; DONE, or the status that stopped it."""
    control, queue, tree = batch.controls[0], batch.queues[number], batch.heads[number][0]
    num_slots = batch.slots.shape[0] // batch.heads.shape[0]
    is_entered = False
    while True:
        if HAS_ANSWERS and not IMAGINES and 0 < queue.rests_at <= tree.simulations:
            return DONE
        if (
            HAS_ANSWERS
            and not IMAGINES
            and (
                queue.resumes_first
                or tree.remaining <= 0
                or control.is_paused
                or queue.num_waiting >= num_slots
            )
        ):
            ready_answered(batch, number, num_slots)
        is_resumed = HAS_BATCH_EVALUATOR and queue.num_ready > 0
        if is_resumed:
            queue.num_ready -= 1
            queue.num_waiting -= 1
        elif tree.remaining <= 0 and queue.num_waiting == 0:
            if not stop_or_begin_budget(batch, number):
                return DONE
            is_entered = False
            continue
        elif tree.remaining <= 0 or control.is_paused or queue.num_waiting >= num_slots:
            return DONE
        elif not is_entered:
            is_entered = True
            batch.states[0] = batch.roots[number]
            read_noise(batch, number)
        place = place_of(batch, number, num_slots, np.int64(queue.num_waiting))
        slot = np.int64(batch.stack[place])
        control.slot = slot
        search = search_of(batch, number, slot, data)
        if is_resumed:
            batch.states[1] = batch.leaves[slot]
            if HAS_ANSWERS:
                status = resume_answered(batch, search, slot, logits, values)
            else:
                is_cached = batch.slots[slot].is_cached
                status = resume_simulation(
                    search, batch.slots[slot], batch.cache_logits if is_cached else logits,
                    batch.cache_values if is_cached else values,
                )  # fmt: skip
        else:
            status = simulate(search)
        if status == ROOT_SOLVED:
            queue.is_solved = 1
            tree.remaining = 0
        elif HAS_BATCH_EVALUATOR and status == WAITING:
            enqueue_leaf(batch, search, slot)
        elif status != DONE and not (HAS_ANSWERS and status == EDGE_CLOSED):
            return status


def stop_or_begin_budget(batch: Batch, number: int) -> bool:
    """Enter the next phase of a tree without simulations left; whether it continues searching."""
    queue = batch.queues[number]
    if HAS_PRIORS and queue.phase == ROOT_EVALUATION:
        if HALVES_ROOT:
            halve_root(batch, number)
        queue.phase = ROOT_READY
        if not HAS_NOISE and not queue.stops_when_ready:
            begin_budget(batch.heads[number][0], queue)
            return True
        batch.controls[0].num_stopped += 1
    elif queue.phase == SEARCHING:
        queue.phase = FINISHED
        batch.controls[0].num_stopped += 1
    return False


# --- kernels: from one root to the next ----------------------------------------------------------


@noinline
def reset(batch: Batch, number: int) -> None:
    """Empty a tree and let it start from its root; with priors the root is evaluated first."""
    batch.heads[number][0] = batch.blank_head[0]
    tree, queue = batch.heads[number][0], batch.queues[number]
    tree.root_player = batch.roots[number].to_play
    write_edge(batch.edges[number], np.int64(0), np.int64(0))
    squares, table = batch.root_squares[number], batch.tables[number]
    for i in range(squares.shape[0]):
        for j in range(NUM_VALUES):
            squares[i, j] = 0.0
    if SHARES_NODES:
        for i in range(table.shape[0]):
            table[i].node = NONE
    batch.rngs[number][0] = seeded(queue.seed, np.uint64(0))
    queue.num_waiting = queue.num_ready = queue.is_solved = queue.num_asked = 0
    queue.simulations_before = queue.since_root_before = 0
    if HAS_PRIORS:
        queue.phase, tree.remaining = ROOT_EVALUATION, 1
    else:
        begin_budget(tree, queue)


@noinline
def halve_root(batch: Batch, number: int) -> None:
    """Prepare sequential halving at a root that has edges: noise, considered edges, schedule."""
    edges, queue, work = batch.edges[number], batch.queues[number], batch.works[0]
    noise, given = batch.noises[number], batch.given_noise
    first, count = np.int64(edges[0].first), np.int64(edges[0].num_edges)
    is_given = given.shape[0] > 0
    scale = work.root_parameters[gumbel.NOISE_SCALE] if queue.has_noise else 0.0
    for i in range(count):
        work.prior[i] = edges[first + i].prior
        if is_given:
            noise[i] = given[edges[first + i].action]
    queue.num_considered = gumbel.consider(
        batch.rngs[number], scale, is_given, count, noise, work.prior, work.scratch,
        batch.considered[number], batch.draws[number],
    )  # fmt: skip
    most = np.int64(work.root_parameters[gumbel.NUM_CONSIDERED])
    gumbel.begin_halving(queue, min(count, most), np.int64(queue.budget))


def begin_budget(tree: Any, queue: Any) -> None:
    """Let a tree with a prepared root use its budget; the root's evaluation does not count."""
    tree.simulations = queue.simulations_before
    tree.since_root = queue.since_root_before
    tree.remaining = min(queue.piece, queue.budget) if queue.piece > 0 else queue.budget
    queue.phase = SEARCHING


def read_noise(batch: Batch, number: int) -> None:
    """Copy a tree's noise and its considered edges to where the root's rule reads them."""
    work, queue = batch.works[0], batch.queues[number]
    if HALVES_ROOT:
        considered, draws = batch.considered[number], batch.draws[number]
        work.num_considered = queue.num_considered
        for i in range(queue.num_considered):
            work.considered[i] = considered[i]
            work.draws[i] = draws[i]
    elif HAS_NOISE:
        noise = batch.noises[number]
        for i in range(noise.shape[0]):
            work.noise[i] = noise[i]


# --- kernels: the evaluation queue ---------------------------------------------------------------


def enqueue_leaf(batch: Batch, search: Search, number: int) -> None:
    """Put a simulation into a slot, where it waits for a value from the cache or from Python."""
    control, queue, work = batch.controls[0], search.queue, search.work
    slot, state = batch.slots[number], batch.states[1]
    slot.depth = work.depth
    slot.player = state.to_play
    slot.expands = work.count
    slot.discount = work.reward[0]
    for player in range(NUM_PLAYERS):
        slot.returns[player] = work.returns[player]
    batch.leaves[number] = batch.states[1]
    if HAS_ANSWERS:
        slot.discount = 1.0
        slot.row = number
        slot.ticket = queue.num_asked
        queue.num_asked += 1
        queue.num_waiting += 1
        if IMAGINES:
            ask_model(batch, slot)
            return
        batch.answers[number].status = OPEN
        batch.asked[control.num_requests] = number
        control.num_requests += 1
        return
    low, high = key_hash(search, np.int64(1))
    row = find_cached(batch.cache_entries, low, high)
    slot.is_cached = row != NONE
    if row != NONE:
        control.num_cache_hits += 1
        queue.num_ready = 1
    else:
        row = request(batch, low, high, search.data)
    slot.row = row
    queue.num_waiting += 1


def request(batch: Batch, low: int, high: int, data: Any) -> int:
    """The row of the result for the leaf's state, which is requested if it is not already."""
    control, keys, table = batch.controls[0], batch.request_keys, batch.request_table
    mask = table.shape[0] - 1
    place = np.int64(low & np.uint64(0x7FFFFFFF)) & mask
    while table[place] != NONE:
        row = np.int64(table[place])
        if keys[row, 0] == low and keys[row, 1] == high:
            return row
        place = (place + 1) & mask
    row = np.int64(control.num_requests)
    control.num_requests += 1
    table[place] = row
    keys[row, 0], keys[row, 1] = low, high
    state = batch.states[1]
    if OBSERVES:
        batch.observations[row] = 0.0  # it holds an earlier batch
        observe(state, np.int64(state.to_play), batch.observations[row], data)
    else:
        batch.requested_states[row] = batch.states[1]
    return row


def clear_requests(batch: Batch) -> None:
    """Mark all waiting simulations as ready, and empty the queue."""
    control, queues, table = batch.controls[0], batch.queues, batch.request_table
    for number in range(queues.shape[0]):
        queues[number].num_ready = queues[number].num_waiting
    if not IMAGINES:
        mask = table.shape[0] - 1
        for row in range(control.num_requests):
            place = np.int64(batch.request_keys[row, 0] & np.uint64(0x7FFFFFFF)) & mask
            while table[place] != NONE:  # and the entries behind it, also requests
                table[place] = NONE
                place = (place + 1) & mask
    control.num_results = 0
    control.num_requests = 0
    control.num_roots = 0
    control.is_scattered = 0


def resume_simulation(search: Search, slot: Any, logits: np.ndarray, values: np.ndarray) -> int:
    """Continue a simulation that waited, in its leaf `states[1]`."""
    edges, work = search.edges, search.work
    work.depth, work.ending, work.leaf_player = slot.depth, LEAF, slot.player
    work.timed = 0  # other simulations ran in the meantime
    status = read_values(work, slot, values)
    depth = np.int64(slot.depth)
    node = node_of(edges, np.int64(search.path[depth - 1].edge)) if depth > 0 else np.int64(0)
    if HAS_PRIORS and status == DONE and slot.expands and edges[node].first == NONE:
        status = list_actions(search, search.states[1])
        if status == DONE:
            status = place_edges(search, node, logits[slot.row])
    return conclude(search, status)


def read_values(work: Any, slot: Any, values: np.ndarray) -> int:
    """Write the returns of a simulation from its leaf's values, in the order of the players."""
    for j in range(NUM_PLAYERS):
        player = (slot.player + j) % NUM_PLAYERS if OBSERVES else j
        work.values[player] = float(values[slot.row, j])
    if not are_bounded(work.values):
        return BAD_VALUE
    if ZERO_SUM:
        # Both players' values are estimates; their mean makes them add up to zero.
        work.values[0] = 0.5 * (work.values[0] - work.values[1])
        work.values[1] = -work.values[0]
    for player in range(NUM_PLAYERS):
        work.returns[player] = slot.returns[player] + slot.discount * work.values[player]
    return DONE if are_bounded(work.returns) else BAD_VALUE


# --- kernels: answers ----------------------------------------------------------------------------


def ask_model(batch: Batch, slot: Any) -> None:
    """Ask what is behind an edge, or at a root, which has no PARENT.

    Hidden states are numbered through all trees: that of row r of tree t is r * trees + t. The one
    that the answer brings goes to PLACE; its row is the number of the question in its tree.
    """
    control, state, questions = batch.controls[0], batch.states[1], batch.questions
    num_trees, number = np.int64(batch.heads.shape[0]), np.int64(control.num_requests)
    place = np.int64(slot.ticket) * num_trees + control.tree
    if number > 0 and questions[PLACE, number - 1] + 1 != place:
        control.is_scattered = 1
    if state.to_play == UNSEEN:
        questions[PARENT, number] = state.row * num_trees + control.tree
        questions[ACTION, number] = state.edge
    else:
        questions[PARENT, number] = NONE
        control.num_roots += 1
    questions[PLACE, number] = place
    slot.row = number
    control.num_requests = number + 1


def place_of(batch: Batch, number: int, num_slots: int, waiting: int) -> int:
    """Where the n-th waiting simulation of a tree is on the stack; behind the last is a free slot.

    If answers are ordered this is a ring, which simulations leave in the order in which they came.
    """
    place = np.int64(waiting)
    if HAS_ANSWERS and not IMAGINES:
        place += np.int64(batch.queues[number].first_waiting)
        if place >= num_slots:
            place -= num_slots
    return number * num_slots + place


def ready_answered(batch: Batch, number: int, num_slots: int) -> None:
    """Let the earliest answered simulation of a tree be resumed next.

    If the order counts, it must be the earliest of all: a late answer then holds up later ones, and
    the tree does not depend on how long answers take.
    """
    queue, stack = batch.queues[number], batch.stack
    num_waiting = np.int64(queue.num_waiting)
    if queue.num_ready > 0 or num_waiting == 0:
        return
    place, free = np.int64(0), num_waiting
    if queue.is_ordered:
        place = place_of(batch, number, num_slots, place)
        free = place_of(batch, number, num_slots, free)
    else:
        place = earliest_answered(batch, number * num_slots, num_waiting)
        free = number * num_slots + num_waiting - 1
    slot = stack[place]
    if batch.answers[slot].status == OPEN:
        return
    if queue.is_ordered:  # the ring begins with the next one
        queue.first_waiting = place + 1 - number * num_slots
        if queue.first_waiting == num_slots:
            queue.first_waiting = 0
    stack[place] = stack[free]
    stack[free] = slot
    queue.num_ready = 1


def earliest_answered(batch: Batch, first: int, count: int) -> int:
    """Where on the stack the answered simulation with the first question is; any if none is."""
    stack, earliest = batch.stack, np.int64(first)
    for i in range(first + 1, first + count):
        if batch.answers[stack[i]].status == OPEN:
            continue
        if (
            batch.answers[stack[earliest]].status == OPEN
            or batch.slots[stack[i]].ticket < batch.slots[stack[earliest]].ticket
        ):
            earliest = np.int64(i)
    return earliest


def resume_answered(
    batch: Batch, search: Search, number: int, logits: np.ndarray, values: np.ndarray
) -> int:
    """Continue a simulation whose question was answered; it may end in another question."""
    edges, path, work = search.edges, search.path, search.work
    slot, state = batch.slots[number], search.states[1]
    depth = np.int64(slot.depth)
    work.depth, work.ending, work.timed = depth, LEAF, 0
    for player in range(NUM_PLAYERS):
        work.returns[player] = 0.0
    edge = np.int64(path[depth - 1].edge) if depth > 0 else np.int64(0)
    if not IMAGINES and batch.answers[number].status != ANSWERED:
        close_edge(search, edge, batch.answers[number])
        return conclude(search, np.int64(EDGE_CLOSED))
    if IMAGINES and depth == 0:
        state.count = batch.roots[batch.controls[0].tree].count  # the answer has written it
    status, node = np.int64(DONE), np.int64(0)
    if state.to_play == UNSEEN:
        status = read_answer(batch, search, number, edge)
        if status != DONE:
            return conclude(search, status)
        node = arrive(search, state, edge, depth - 1)
    elif depth > 0:
        node = node_of(edges, edge)
    if work.ending == LEAF:
        if HAS_CHANCE and state.to_play == CHANCE and edges[node].first == NONE:
            status = place_outcomes(search, node, logits[slot.row])
        if status == DONE and goes_on(search, node, edge):
            status = walk(search, state, node, depth)
        elif status == DONE:
            return conclude(search, value_answered(search, slot, node, logits, values))
    if status == DONE:
        status = evaluate(search)
    if status == WAITING:
        return status
    return conclude(search, status)


def read_answer(batch: Batch, search: Search, number: int, edge: int) -> int:
    """Write an answer to the edge it is about, take the edge; DONE, or an error in the rewards."""
    record, work = search.edges[edge], search.work
    if record.row == NONE:  # else a simulation that asked the same has written it
        if IMAGINES:
            player = np.int64(search.path[work.depth - 1].player)
            write_imagined(batch, record, batch.slots[number], player)
        else:
            answer = batch.answers[number]
            record.row, record.count, record.mover = answer.row, answer.count, answer.mover
            for j in range(NUM_VALUES):
                record.reward[j] = answer.reward[j]
    status = take_known(search.states[1], record, work.reward)
    for j in range(NUM_VALUES):
        search.path[work.depth - 1].reward[j] = work.reward[j]
    return status


def write_imagined(batch: Batch, record: Any, slot: Any, player: int) -> None:
    """Write a model's answer to the edge that a player took; rewards begin with that player."""
    row = np.int64(slot.row)
    seats, rewards = np.int64(batch.turns[row]), batch.rewards
    record.row, record.count = slot.ticket, NUM_ACTIONS
    record.mover = OVER if seats == NUM_PLAYERS else (player + seats) % NUM_PLAYERS
    if ZERO_SUM:
        # Both players' rewards are estimates; their mean makes them add up to zero.
        paid = 0.5 * (rewards[row, 0] - rewards[row, 1])
        record.reward[0] = paid if player == 0 else -paid
        return
    for j in range(NUM_PLAYERS):
        record.reward[(player + j) % NUM_PLAYERS] = rewards[row, j]


def goes_on(search: Search, node: int, edge: int) -> bool:
    """Whether the walk continues from a node: at chance, at an end, or if others evaluated it."""
    if search.states[1].to_play < 0:
        return True
    return SHARES_NODES and node != edge and visits_of_node(search.edges, node) > 0


def value_answered(
    search: Search, slot: Any, node: int, logits: np.ndarray, values: np.ndarray
) -> int:
    """Write the returns of the leaf from its answer, and give it edges; a status."""
    edges, work, state = search.edges, search.work, search.states[1]
    slot.player = work.leaf_player = state.to_play
    status = read_values(work, slot, values)
    if HAS_PRIORS and status == DONE and edges[node].first == NONE:
        status = list_actions(search, state)
        if status == DONE:
            status = place_edges(search, node, logits[slot.row])
    return status


def place_outcomes(search: Search, node: int, probabilities: np.ndarray) -> int:
    """Give a chance node its edges, with their probabilities; DONE or NEED_CAPACITY."""
    tree, edges = search.tree, search.edges
    count = np.int64(search.states[1].count)
    if tree.used + count > tree.capacity:
        return NEED_CAPACITY
    first = np.int64(tree.used)
    for i in range(count):
        write_edge(edges, first + i, np.int64(i))
        edges[first + i].prior = probabilities[i]
    tree.used += count
    edges[node].first = first
    edges[node].num_edges = count
    return DONE


def close_edge(search: Search, edge: int, answer: Any) -> None:
    """Let an edge never be taken; if its node has no more actions, remove all that follow."""
    edges, path, work = search.edges, search.path, search.work
    if answer.status == FAILED:
        edges[edge].mover = CLOSED
        return
    node = np.int64(0)
    if work.depth > 1:
        node = node_of(edges, np.int64(path[work.depth - 2].edge))
    edges[node].num_edges = min(np.int64(edges[node].num_edges), edge - edges[node].first)


# --- kernels: the evaluation cache ---------------------------------------------------------------


def find_cached(entries: np.ndarray, low: int, high: int) -> int:
    """The row of a cached result; NONE if there is none."""
    if entries.shape[0] == 0:
        return NONE
    first = np.int64(low & np.uint64(0x7FFFFFFF)) & (entries.shape[0] - CACHE_WAYS)
    for row in range(first, first + CACHE_WAYS):
        if entries[row].stamp > 0 and entries[row].key[0] == low and entries[row].key[1] == high:
            return np.int64(row)
    return NONE


@noinline
def store_result(batch: Batch, logits: np.ndarray, values: np.ndarray, row: int) -> None:
    """Cache a result in place of the oldest of the entries that can hold it."""
    control, entries = batch.controls[0], batch.cache_entries
    low, high = batch.request_keys[row, 0], batch.request_keys[row, 1]
    if entries.shape[0] == 0 or find_cached(entries, low, high) != NONE:
        return
    first = np.int64(low & np.uint64(0x7FFFFFFF)) & (entries.shape[0] - CACHE_WAYS)
    oldest = first
    for place in range(first + 1, first + CACHE_WAYS):
        if entries[place].stamp < entries[oldest].stamp:
            oldest = np.int64(place)
    control.cache_stamp += 1
    entries[oldest].stamp = control.cache_stamp
    entries[oldest].key[0], entries[oldest].key[1] = low, high
    if HAS_PRIORS:  # else `logits` has no rows
        for i in range(batch.cache_logits.shape[1]):
            batch.cache_logits[oldest, i] = logits[row, i]
    for i in range(batch.cache_values.shape[1]):
        batch.cache_values[oldest, i] = values[row, i]
