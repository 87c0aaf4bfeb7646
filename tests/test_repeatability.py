"""The same seed gives the same tree, byte for byte, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PROGRAM = """
import hashlib
import sys
import uctree
from tests import random_games
from tests.test_properties import any_options
from uctree import games, selection

NUM_RANDOM, RANDOM = int(sys.argv[1]), {}

def judge(state, values, logits):
    x = 0.37 * float(state.own) + 0.11 * float(state.taken)
    values[state.to_play] = x % 1.0 - 0.5
    values[1 - state.to_play] = 0.5 - x % 1.0
    for action in range(9):
        logits[action] = x * (action + 1) % 2.0

BOARD = games.tic_tac_toe()
PRIORS = {"evaluator": judge, "selection": selection.puct(1.5)}
SEARCHES = {
    "plain": (BOARD, {}),
    "solver": (BOARD, {"solver": True}),
    "transpositions": (BOARD, {"transpositions": True}),
    "random ties": (BOARD, {"ties": "random"}),
    "puct": (BOARD, PRIORS),
    "root noise": (BOARD, PRIORS | {"root_noise": selection.dirichlet()}),
    "gumbel": (BOARD, PRIORS | {"root_selection": selection.gumbel(4)}),
    "chance": (games.pig(target=12), {}),
    "open loop": (games.pig(target=12), {"open_loop": True}),
}
for number in range(NUM_RANDOM):
    game, state = random_games.any_game(number)
    options = any_options(game, number)
    if options.get("threads", 1) == 2 and options.get("parallel", "tree") != "root":
        options["threads"] = 1  # threads that share a tree take turns by chance
    RANDOM[f"random {number}"] = game, {"state": state} | options
for name, (game, options) in (SEARCHES | RANDOM).items():
    for seed in (1, 2):
        tree = uctree.search(game, num_simulations=30, seed=seed, **options).tree
        used = 1 + tree.num_edges
        content = tree.edges[:used].tobytes() + tree.root_squares.tobytes() + tree.table.tobytes()
        print(name, seed, hashlib.sha256(content).hexdigest(), sep=": ")
"""


@pytest.mark.parametrize(
    ("way", "num_random", "num_processes"),
    [
        ("interpreted", 6, 3),
        pytest.param("interpreted", 60, 5, marks=pytest.mark.slow),
        pytest.param("compiled", 8, 5, marks=pytest.mark.slow),
    ],
)
def test_the_same_seed_gives_the_same_tree_in_all_processes(
    tmp_path, way, num_random, num_processes
):
    disabled = str(int(way == "interpreted"))
    given = os.environ | {"UCTREE_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": disabled}
    given["PYTHONPATH"] = os.pathsep.join([str(ROOT), given.get("PYTHONPATH", "")])
    program, printed = tmp_path / "program.py", []
    program.write_text(PROGRAM)
    for number in range(num_processes):  # the first one fills the cache of machine code
        done = subprocess.run(
            [sys.executable, program, str(num_random)], env=given | {"PYTHONHASHSEED": str(number)},
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    assert len(printed[0]) == 18 + 2 * num_random
    named = printed[0][:18]
    hashes = [line.rpartition(": ")[2] for line in named if not line.startswith("puct")]
    assert len(set(hashes)) == len(hashes) == 16  # other seeds and options: other trees
    for other in printed[1:]:
        assert other == printed[0]
