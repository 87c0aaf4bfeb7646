"""Ctrl-C while something is compiled, and while a rule does not return."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

# The signal comes while LLVM calls Python, which is where Ctrl-C during a compilation usually ends.
IN_LLVM = """
import signal
from numba.core.registry import cpu_target
from uctree.engine.compile import compile_kernel

def double(n):
    return 2 * n

engine = cpu_target.target_context.codegen()._engine._ee
usual = engine._object_cache_notify

def press(module, content):
    signal.raise_signal(signal.SIGINT)
    usual(module, content)

engine._object_cache_notify = press
try:
    compile_kernel(double, {}, (1,), label="double")
except KeyboardInterrupt:
    print("interrupted")
engine._object_cache_notify = usual
print(compile_kernel(double, {}, (1,), label="double").call(21))
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_an_interrupt_during_compilation_is_never_lost(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", IN_LLVM], capture_output=True, text=True, timeout=100,
        env=os.environ | {"UCTREE_CACHE_DIR": str(tmp_path)}, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["interrupted", "42"]
    assert done.stderr == ""


# The square is 0 in compiled code alone, so that looks in plain Python do not hang.
STUCK = """
import sys
import numpy as np
import uctree
from uctree.engine.driver import BatchedSearch

def legal(state, actions):
    actions[0] = 0
    return 1

def step(state, action, reward, data):
    while data[0][0] == 1 and state.large * state.large == 0:
        pass
    state.to_play = uctree.OVER

def start(state):
    state.large = 2**32

fields, switch = [("large", np.uint64), ("to_play", np.int8)], np.zeros(1)
game = uctree.Game(
    fields, legal, step, start=start, num_players=1, num_actions=1, data=(switch,), name="stuck"
)

def search(**options):
    uctree.search(game, num_simulations=2, **options)

def batch():
    batch = BatchedSearch(game, 2)
    batch.reset(range(2), [game.start()] * 2, num_simulations=5)
    batch.run()

calls = {
    "search": search,
    "threads": lambda: search(threads=2, parallel="root"),
    "batch": batch,
    "solve": lambda: uctree.solve(game),
    "check": lambda: uctree.check(game, num_simulations=0),
    "rule_speed": lambda: uctree.rule_speed(game),
}
call = calls[sys.argv[1]]
call()
switch[0] = 1
print("ready", flush=True)
call()
"""


@pytest.mark.parametrize(
    "where",
    ["search", "threads", "batch", "solve"]
    + [pytest.param(each, marks=pytest.mark.slow) for each in ("check", "rule_speed")],
)
def test_a_second_interrupt_ends_a_rule_that_does_not_return(where):
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, where], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)  # until it is stuck
        process.send_signal(signal.SIGINT)
        time.sleep(0.4)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "ended by a second Ctrl-C" in errors


DEEP = """
import resource
import sys
import numpy as np
import uctree

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def depth(n):
    if n < 0:
        return 1
    return depth(n + 1) * depth(n + 2) + 1

def legal(state, actions):
    actions[0] = 0
    return 1

def step(state, action, reward):
    reward[0] = depth(1)
    state.to_play = uctree.OVER

game = uctree.Game([("to_play", np.int8)], legal, step, num_players=1, num_actions=1, name="deep")
try:
    uctree.search(game, num_simulations=2)
except uctree.BrokenGame as error:
    print(error, flush=True)
uctree.search(game, num_simulations=2, check=False)
"""


def test_endless_recursion_is_refused_and_ends_the_process_if_it_is_searched():
    done = subprocess.run(
        [sys.executable, "-c", DEEP], capture_output=True, text=True, timeout=100, check=False
    )
    assert "deep: raises: step raised RecursionError" in done.stdout
    assert done.returncode == -signal.SIGSEGV
