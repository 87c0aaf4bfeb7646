"""Random numbers of playouts."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

import uctree
from tests.planning.counting import counting
from uctree.planning.playouts import SeededPlayout, draws, one_of, weighed


def test_draws_depend_on_the_seed_alone():
    first = list(islice(draws(5), 100))  # more than one block
    assert first == list(islice(draws(5), 100))
    assert len(set(first)) == 100
    assert not set(first) & set(islice(draws(6), 100))


def test_draws_are_uniform():
    for count in (3, 7):
        picked = Counter(one_of(range(count), next(draws(seed))) for seed in range(14_000))
        expected = 14_000 / count
        error = sum((picked[each] - expected) ** 2 / expected for each in range(count))
        assert error < 30  # chi squared with at most 6 degrees of freedom


def test_weighed_elements_come_as_often_as_their_weights_say():
    numbers = draws(1)
    picked = Counter(weighed("abc", (0.5, 0.2, 0.3), next(numbers)) for _ in range(20_000))
    for element, weight in zip("abc", (0.5, 0.2, 0.3), strict=True):
        assert picked[element] / 20_000 == pytest.approx(weight, abs=0.02)


def test_weights_that_add_up_to_a_little_less_than_one_pick_the_last():
    assert weighed("ab", (0.5, 0.4999), 2**32 - 1) == "b"


def test_a_seeded_playout_is_called_as_any_other():
    playout = SeededPlayout(lambda state, seed: (state, seed))
    state, seed = playout("here", random.Random(1))
    assert (state, seed) == playout("here", random.Random(1))
    assert 0 <= seed < 2**64


@pytest.mark.usefixtures("interpreted")
def test_playouts_in_order_are_used_if_their_order_is_certain(tmp_path):
    begun = []

    def in_order(seed):
        numbers = random.Random(seed)
        begun.append(seed)
        return lambda state: numbers.random()

    problem = counting(value=None, playout=SeededPlayout(lambda state, seed: 0.5, in_order))
    found = [uctree.plan(problem, 1, num_simulations=20, seed=3).edges for _ in range(2)]
    assert (found[0] == found[1]).all()
    assert begun[0] == begun[1]
    for options in ({"in_flight": 2}, {"journal": tmp_path / "run.jsonl"}, {"retries": 1}):
        uctree.plan(problem, 1, num_simulations=20, seed=3, **options)
    assert len(begun) == 2
