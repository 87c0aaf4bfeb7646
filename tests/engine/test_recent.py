"""Tables of what was used most recently, and what stays in memory after searches."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import uctree
from uctree import backup, evaluators, games, selection
from uctree.engine.recent import Recent
from uctree.mcts import MOST_COMPOSITIONS


def uniform(state, values, priors):
    priors[:] = 1.0


def test_the_entry_that_was_not_used_for_longest_is_dropped():
    table = Recent(2)
    table.put("a", 1)
    table.put("b", 2)
    assert table.get("a") == 1
    table.put("c", 3)
    assert (table.get("a"), table.get("b"), table.get("c")) == (1, None, 3)
    assert len(table) == 2


with_priors = {"evaluator": uniform}
NUMBERS = {
    "c": lambda x: {"selection": selection.ucb1(c=x)},
    "fpu": lambda x: {"selection": selection.puct(c=x, fpu_value=x), **with_priors},
    "root": lambda x: {"root_selection": selection.ucb1(c=1 + x)},
    "noise": lambda x: {"root_noise": selection.dirichlet(alpha=x), **with_priors},
    "widening": lambda x: {"widening": selection.widening(k=1 + x, alpha=x)},
    "gumbel": lambda x: {"root_selection": selection.gumbel(c_scale=x), **with_priors},
    "rave": lambda x: {"selection": selection.rave(equivalence=100 * x)},
    "one_loop": lambda x: {"selection": selection.one_loop(kappa=x, hbar=x), **with_priors},
    "playouts": lambda x: {"evaluator": evaluators.playout(1 + int(8 * x), 1 + int(99 * x))},
    "soft_maximum": lambda x: {"backup": backup.soft_maximum(x)},
    "max_memory": lambda x: {"max_memory": 10**6 + int(1000 * x)},
}


@pytest.mark.parametrize("option", NUMBERS)
def test_other_numbers_compile_nothing_and_are_not_kept_for_ever(option, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.tic_tac_toe()
    for x in np.linspace(0.1, 0.9, MOST_COMPOSITIONS + 5):
        uctree.search(game, num_simulations=2, **NUMBERS[option](float(x)))
    assert len(game.tables["kernels"]) == 1
    assert len(game.tables["compositions"]) == MOST_COMPOSITIONS


def test_a_game_is_dropped_with_all_that_was_compiled_for_it(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.tic_tac_toe()
    uctree.search(game, num_simulations=5)
    alive = weakref.ref(game)
    del game
    gc.collect()
    assert alive() is None


MANY = """
import gc, os, resource, sys, threading
import uctree
from uctree import selection

game = uctree.games.tic_tac_toe()

def memory():
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize() / 1e6

def searches(numbers):
    for i in numbers:
        uctree.search(game, num_simulations=2, seed=i, selection=selection.ucb1(c=1 + i / 1e6))
        if i % 50 == 0:
            uctree.search(game, num_simulations=2, threads=2, parallel="root")

many = int(sys.argv[1])
searches(range(1000))
before = memory(), threading.active_count(), len(os.listdir("/proc/self/fd"))
searches(range(1000, 1000 + many))
after = memory(), threading.active_count(), len(os.listdir("/proc/self/fd"))
print(after[0] - before[0], after[1] - before[1], after[2] - before[2])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("many", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_memory_threads_and_files_stay_flat_over_many_searches(many):
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(many)], capture_output=True, text=True, timeout=900,
        check=True,
    )  # fmt: skip
    megabytes, threads, files = map(float, done.stdout.split())
    assert megabytes < 2.0  # one kilobyte per search would be 3
    assert threads <= 0
    assert files == 0
