"""The same seed gives the same tree, byte for byte, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NUM_PROCESSES = 5

PROGRAM = """
import hashlib
import uctree
from uctree import games, selection

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
for name, (game, options) in SEARCHES.items():
    for seed in (1, 2):
        tree = uctree.search(game, num_simulations=30, seed=seed, **options).tree
        used = 1 + tree.num_edges
        content = tree.edges[:used].tobytes() + tree.root_squares.tobytes() + tree.table.tobytes()
        print(name, seed, hashlib.sha256(content).hexdigest(), sep=": ")
"""


@pytest.mark.parametrize(
    "way", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)]
)  # fmt: skip
def test_the_same_seed_gives_the_same_tree_in_five_processes(tmp_path, way):
    disabled = str(int(way == "interpreted"))
    given = os.environ | {"UCTREE_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": disabled}
    program, printed = tmp_path / "program.py", []
    program.write_text(PROGRAM)
    for number in range(NUM_PROCESSES):  # the first one fills the cache of machine code
        done = subprocess.run(
            [sys.executable, program], env=given | {"PYTHONHASHSEED": str(number)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    hashes = [line.rpartition(": ")[2] for line in printed[0] if not line.startswith("puct")]
    assert len(set(hashes)) == len(hashes) == 16  # other seeds and options: other trees
    for other in printed[1:]:
        assert other == printed[0]
