"""The driver with machine code: the same numbers as in plain Python, processes, time."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import uctree
from tests.judges import GAME, in_python, judge, visits
from uctree import evaluators, selection
from uctree.engine.driver import BatchedSearch


def test_the_same_numbers_come_out_of_plain_python(monkeypatch):
    compiled = visits(in_python(), leaves=3)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert visits(in_python(), leaves=3) == compiled


def test_results_without_priors_are_cached_row_by_row(monkeypatch):
    def values(states):
        return np.zeros((len(states), 2), np.float32)

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # plain Python raises beyond the end of an array
    evaluator, states = evaluators.python(values), [GAME.start(), GAME.play([4])]
    results = uctree.search_many(GAME, states, num_simulations=20, evaluator=evaluator)
    assert [result.edges["visits"].sum() for result in results] == [20, 20]


@pytest.mark.parametrize("evaluator", [judge, in_python(cache=0)], ids=["compiled", "python"])
def test_a_batched_search_in_plain_python_grows_the_same_trees(monkeypatch, evaluator):
    def roots():
        batch = BatchedSearch(GAME, 2, evaluator=evaluator, root_selection=selection.gumbel(5))
        batch.reset([0, 1], [GAME.start(), GAME.play([4])], num_simulations=40, seed=3)
        batch.run()
        return [(batch.root(t).visits.tolist(), batch.root(t).noise.tolist()) for t in (0, 1)]

    compiled = roots()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert roots() == compiled


def test_a_call_that_never_returns_does_not_keep_the_process():
    program = """
import threading
import numpy as np
from uctree import UctreeError, evaluators, games, search

def hangs(states):
    threading.Event().wait()

game = games.tic_tac_toe()
try:
    search(game, game.start(), num_simulations=5, evaluator=evaluators.python(hangs, timeout=0.05))
except UctreeError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert "TimeoutError: no result within 0.05 seconds for 1 of 1 calls" in ended.stdout


def test_simulations_that_need_no_answer_end_with_the_time():
    """All take the edge that is a proven draw, while what the other one is worth stays open."""

    def sure(states):
        logits = np.full((len(states), 9), -60.0)
        logits[:, 7] = 0.0
        return logits, np.zeros((len(states), 2))

    result = uctree.search(
        GAME, GAME.play([4, 0, 2, 6, 3, 5, 1]), seconds=0.3, solver=True, leaves=4,
        evaluator=evaluators.python(sure, priors=True),
    )  # fmt: skip
    assert result.status == "seconds"
    assert result.edges["visits"].tolist() == [result.simulations, 0]
    assert result.simulations < 10**9
