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


STUCK = """
import sys
import numpy as np
import uctree

def legal(state, actions):
    actions[0] = 0
    return 1

def step(state, action, reward, data):
    while data[0][0] == 1:
        pass
    state.to_play = uctree.OVER

dtype, switch = np.dtype([("to_play", np.int8)]), np.zeros(1)
game = uctree.Game(dtype, legal, step, num_players=1, num_actions=1, data=(switch,), name="stuck")
options = eval(sys.argv[1])
assert uctree.search(game, num_simulations=2, **options).status == "simulations"
switch[0] = 1
print("ready", flush=True)
uctree.search(game, num_simulations=2, check=False, **options)  # no look at the changed data
"""


@pytest.mark.parametrize("options", [{}, {"threads": 2, "parallel": "root"}])
def test_a_second_interrupt_ends_a_search_whose_rule_does_not_return(options):
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, repr(options)], stdout=subprocess.PIPE,
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
