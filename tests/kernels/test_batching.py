"""The queue of leaves and the evaluation cache of a batch of trees."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from uctree.engine.compile import bind
from uctree.kernels import batching
from uctree.kernels.batching import CACHE_ENTRY, CACHE_WAYS, CONTROL, QUEUE
from uctree.kernels.records import NONE, UNSEEN

pytestmark = pytest.mark.quick

ROWS = 4


def batch_of(num_entries=CACHE_WAYS):
    """The arrays of a batch of one tree that the queue and the cache use."""
    return SimpleNamespace(
        controls=np.zeros(1, CONTROL).view(np.recarray),
        queues=np.zeros(1, QUEUE).view(np.recarray),
        request_keys=np.zeros((ROWS, 2), np.uint64),
        request_table=np.full(16, NONE, np.int64),
        requested_states=np.zeros(ROWS, np.int64),
        states=[None, 7, None],
        cache_entries=np.zeros(num_entries, CACHE_ENTRY).view(np.recarray),
        cache_logits=np.zeros((num_entries, 1)),
        cache_values=np.zeros((num_entries, 1)),
    )


def key(number):
    """A key whose place in every table is the same, so that all of them compete for it."""
    return np.uint64(0), np.uint64(number)


def test_a_state_is_requested_once():
    batch, request = batch_of(), bind(batching.request, {"OBSERVES": False, "observe": None})
    rows = [request(batch, *key(number), None) for number in (1, 2, 1, 3, 2)]
    assert rows == [0, 1, 0, 2, 1]
    assert batch.controls[0].num_requests == 3


def test_after_results_the_queue_is_empty_and_all_that_waited_are_ready():
    batch, request = batch_of(), bind(batching.request, {"OBSERVES": False, "observe": None})
    for number in range(3):
        request(batch, *key(number), None)
    batch.queues[0].num_waiting = 5
    bind(batching.clear_requests, {"IMAGINES": False})(batch)
    assert (batch.request_table == NONE).all()
    assert batch.controls[0].num_requests == 0
    assert batch.queues[0].num_ready == 5


def test_questions_to_a_model_name_hidden_states_through_all_trees():
    batch = batch_of()
    batch.heads, batch.questions = np.zeros((3, 1)), np.zeros((3, ROWS), np.int64)
    slot = SimpleNamespace(ticket=2, row=NONE)
    asked = ((0, 2, 1, 5), (1, 2, 0, 7), (1, 3, 1, 6), (2, 0, 0, NONE))
    for number, (tree, ticket, row, action) in enumerate(asked):
        batch.controls[0].tree, slot.ticket = tree, ticket
        to_play = 0 if action == NONE else UNSEEN
        batch.states[1] = SimpleNamespace(row=row, edge=action, to_play=to_play)
        batching.ask_model(batch, slot)
        assert slot.row == number
        assert batch.controls[0].is_scattered == (number > 1)  # 6 and 7 are adjacent
    assert batch.questions[batching.PARENT].tolist() == [3, 1, 4, NONE]
    assert batch.questions[batching.ACTION, :3].tolist() == [5, 7, 6]
    assert batch.questions[batching.PLACE].tolist() == [6, 7, 10, 2]
    assert (batch.controls[0].num_roots, batch.controls[0].num_requests) == (1, 4)


def store(batch, number):
    batch.request_keys[0] = key(number)
    values = np.array([[float(number)]])
    bind(batching.store_result, {"HAS_PRIORS": True})(batch, values, values, 0)


def test_a_new_result_replaces_the_oldest_of_its_set():
    batch = batch_of()
    for number in range(1, CACHE_WAYS + 2):
        store(batch, number)
    found = [batching.find_cached(batch.cache_entries, *key(n)) for n in range(1, CACHE_WAYS + 2)]
    assert found[0] == NONE
    assert sorted(found[1:]) == list(range(CACHE_WAYS))
    assert batch.cache_values[found[-1], 0] == CACHE_WAYS + 1


def test_a_result_that_is_cached_is_not_stored_again():
    batch = batch_of()
    store(batch, 1)
    store(batch, 1)
    assert batch.controls[0].cache_stamp == 1
    store(batch_of(num_entries=0), 1)  # without a cache nothing happens
