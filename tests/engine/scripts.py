"""A game in a file of its own, and fresh interpreters that search it."""

from __future__ import annotations

import os
import subprocess
import sys

SOURCE = """
import numpy as np
import uctree
{imports}

Position = np.dtype([("left", np.int8), ("to_play", np.int8)])


def legal(state, actions):
    actions[0] = 0
    return 1


def step(state, action, reward):
    state.left += 1
    if state.left == 2:
        reward[0] = {payoff}
        state.to_play = uctree.OVER


game = uctree.Game(Position, legal, step, num_players=1, num_actions=1, name="one way")
"""
RUN = """
result = uctree.search(game, game.start(), num_simulations=5)
print(float(result.value[0]))
"""
# A kernel so small that the processes of a test take little more than their imports.
KERNEL = """
from uctree.engine.compile import compile_kernel

def double(n):
    return 2 * n

kernel = compile_kernel(double, {}, (1,), label="double")
print(kernel.call(21), kernel.cached)
"""


def run_python(folder, *arguments, cache="cache", text=None, **variables):
    """What a fresh interpreter prints, started in `folder` with a cache of its own."""
    environment = os.environ | {"UCTREE_CACHE_DIR": str(folder / cache)} | variables
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, input=text,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def entries(folder):
    """The machine code in a cache; marks say that a game was looked at."""
    return sorted(path for path in (folder / "cache").iterdir() if path.suffix != ".mark")


def write_game(folder, name="my_game.py", imports="", payoff="1.0"):
    (folder / name).write_text(SOURCE.format(imports=imports, payoff=payoff))
