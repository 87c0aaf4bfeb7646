"""Compilation: what is cached, what is never served stale, and how errors read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import uctree
from tests.engine.scripts import KERNEL, RUN, entries, run_python, write_game
from uctree.engine.compile import compile_kernel
from uctree.engine.compose import compose
from uctree.engine.options import resolve

CACHED = "print(result.cached)\n"


def test_the_second_process_loads_what_the_first_compiled(folder):
    write_game(folder)
    (folder / "main.py").write_text("import uctree\nfrom my_game import game\n" + RUN + CACHED)
    assert run_python(folder, "main.py") == ["1.0", "False"]
    assert run_python(folder, "main.py") == ["1.0", "True"]


def test_racing_processes_both_get_the_answer(folder):
    (folder / "main.py").write_text(KERNEL)
    environment = os.environ | {"UCTREE_CACHE_DIR": str(folder / "cache")}
    racing = [
        subprocess.Popen(
            [sys.executable, "main.py"], cwd=folder, env=environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=300)[0].split() for process in racing]
    assert [answer for answer, _ in printed] == [b"42"] * 2
    assert run_python(folder, "main.py") == ["42", "True"]
    assert len(entries(folder)) == 1


RECURSIVE = """
import sys
from uctree.engine.compile import compile_kernel

def fibonacci(n):
    if n < 2:
        return n + BASE
    return fibonacci(n - 1) + fibonacci(n - 2)

def kernel(n):
    return fibonacci(n)

for BASE in map(int, sys.argv[1:]):
    print(compile_kernel(kernel, {}, (1,), label="test").call(10))
"""


def test_what_two_processes_compiled_can_be_loaded_into_a_third(folder):
    # Recursive and large functions are called by name, not inlined; the names must not clash.
    (folder / "main.py").write_text(RECURSIVE)
    first, second = (run_python(folder, "main.py", base) for base in "01")
    assert (first, second) == (["55"], ["144"])
    assert len(entries(folder)) == 2
    assert run_python(folder, "main.py", "0", "1") == first + second
    assert run_python(folder, "main.py", "1", "0") == second + first


@pytest.mark.slow
def test_searches_that_two_processes_compiled_can_be_loaded_into_a_third(folder):
    code = (
        "import sys, uctree\n"
        "for size in map(int, sys.argv[1:]):\n"
        "    game = uctree.games.go(size)\n"
        "    result = uctree.search(game, game.start(), num_simulations=300, seed=1)\n"
        "    print(result.edges['visits'].tolist())\n"
    )
    (folder / "main.py").write_text(code)
    first = run_python(folder, "main.py", "3")
    second = run_python(folder, "main.py", "4")
    assert run_python(folder, "main.py", "3", "4") == first + second
    assert run_python(folder, "main.py", "4", "3") == second + first


def compiled(function, *arguments):
    return compile_kernel(function, {}, arguments, label="test").call(*arguments)


NUMBERS = [3, 1, 4]


def pick(i):
    return NUMBERS[i]


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def test_lists_of_numbers_and_recursion_compile():
    assert compiled(pick, 2) == 4
    assert compiled(factorial, 5) == 120


def numbers_below(n):
    below = np.zeros(n)
    for i in range(n):
        below[i] = i
    return below


def rotated(n):
    room = np.empty(n)
    room[:] = np.roll(numbers_below(n), 1)
    return room[1:]


def make_arrays(n):
    return rotated(n).sum() + len([n, n])


def test_functions_may_make_arrays_and_return_them():
    assert compiled(make_arrays, 5) == 0 + 1 + 2 + 3 + 2


def game_with(step):
    dtype = np.dtype([("left", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0] = 0
        return 1

    return uctree.Game(dtype, legal, step, num_players=1, num_actions=1, name="wrong")


def test_code_that_does_not_compile_names_file_line_source_and_cure():
    def step(state, action, reward):
        state.to_play = {"over": uctree.OVER}.get(str(action), object())

    game = game_with(step)
    with pytest.raises(uctree.BrokenGame) as caught:
        uctree.search(game, game.start(), num_simulations=1, check=False)
    message = str(caught.value)
    line = step.__code__.co_firstlineno + 1
    assert message.startswith("wrong: ucb1, playout does not compile")
    assert f"test_compile.py, line {line}:" in message
    assert 'state.to_play = {"over"' in message
    assert len(message.splitlines()) == 4


def test_a_field_that_does_not_exist_is_named():
    def step(state, action, reward):
        state.rest = 1
        state.to_play = uctree.OVER

    game = game_with(step)
    with pytest.raises(
        uctree.BrokenGame, match=r"(?s)test_compile.py, line .*state.rest = 1.*rest"
    ):
        uctree.solve(game, check=False)


def test_an_undefined_name_is_named_before_anything_is_compiled():
    def step(state, action, reward):
        state.left = undefined_helper(state)  # noqa: F821

    game = game_with(step)
    with pytest.raises(uctree.BrokenGame, match=r"(?s)'undefined_helper'.*test_compile.py, line"):
        uctree.search(game, game.start(), num_simulations=1)


def one_step(state, action, reward):
    state.to_play = uctree.OVER


TOTAL = 0


def counts(state, action, reward):
    global TOTAL
    TOTAL += 1
    one_step(state, action, reward)


def copies(state, action, reward):
    other = state.copy()
    one_step(other, action, reward)


def comprehends(state, action, reward):
    one_step(state, action, reward)
    state.left = len([number.upper() for number in range(3)])


def comprehends_a_field(state, action, reward):
    one_step(state, action, reward)
    state.left = sum([state.wrong[i] for i in range(3)])


def calls_numpy(state, action, reward):
    one_step(state, action, reward)
    state.left = np.linalg.norm(np.zeros((2, 2, 2)))


@pytest.mark.parametrize(
    ("step", "line", "reason"),
    [
        (counts, "TOTAL += 1", r"STORE_GLOBAL(.|\n)*put what changes into the record"),
        (copies, "other = state.copy()", "the state has no field 'copy'"),
        (comprehends, "state.left = len([number.upper()", "Unknown attribute 'upper'"),
        (comprehends_a_field, "state.left = sum([state.wrong[i]", "has no field 'wrong'"),
        (calls_numpy, "state.left = np.linalg.norm(", "No implementation of function"),
    ],
)
def test_the_line_is_the_users(step, line, reason):
    """Not one of Numba, of a kernel, or of a function nearby."""
    game = game_with(step)
    with pytest.raises(uctree.BrokenGame) as caught:
        uctree.solve(game, check=False)  # a smaller kernel than that of a search
    place = str(caught.value).splitlines()[1]
    assert "test_compile.py, line " in place
    assert line in place
    assert re.search(reason, str(caught.value))


def test_a_rule_that_returns_nothing_is_named():
    def legal(state, actions):
        actions[0] = 0

    def sometimes(state, actions):
        actions[0] = 0
        if state.left == 0:
            return 1

    for rule in (legal, sometimes):
        game = uctree.Game(game_with(one_step).dtype, rule, one_step, num_players=1, num_actions=1)
        with pytest.raises(uctree.BrokenGame, match="legal does not return a number") as caught:
            compose(game, resolve(game, check=False))
        assert f"def {rule.__name__}(state, actions):" in str(caught.value)


def test_rules_may_make_arrays():
    def step(state, action, reward):
        sums = np.zeros((2, 2))
        sums[1, 1] = 3.0
        reward[0] = sums.sum()
        state.to_play = uctree.OVER

    assert uctree.search(game_with(step), num_simulations=3).value[0] == 3.0


def test_debug_finds_an_index_out_of_bounds():
    dtype = np.dtype([("cells", np.int8, 4), ("left", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0] = 0
        return 1

    def step(state, action, reward):
        state.left += 1
        state.cells[state.left + 3] = 1
        state.to_play = uctree.OVER if state.left == 3 else 0

    game = uctree.Game(dtype, legal, step, num_players=1, num_actions=1)
    with pytest.raises(uctree.BrokenGame, match="raised IndexError"):
        uctree.search(game, game.start(), num_simulations=5, debug=True, check=False)


def read_at(numbers, i):
    return numbers[i]


def test_one_variable_turns_on_bounds_checks_everywhere(monkeypatch):
    numbers = np.arange(3)
    unchecked = compile_kernel(read_at, {}, (numbers, 1), label="reading")
    assert unchecked.call(numbers, 2) == 2
    monkeypatch.setenv("UCTREE_DEBUG", "1")
    checked = compile_kernel(read_at, {}, (numbers, 1), label="reading")
    with pytest.raises(IndexError):
        checked.call(numbers, 3)


def test_rules_may_use_numbers_that_numba_gets_from_a_closure_of_a_closure():
    def factory(size):
        def pay():
            return size * 0.5

        def step(state, action, reward):
            reward[0] = pay()
            state.to_play = uctree.OVER

        return game_with(step)

    for size in (3, 4):
        game = factory(size)
        assert uctree.search(game, game.start(), num_simulations=3).value[0] == size / 2


def test_the_interpreter_can_be_asked_for(folder):
    write_game(folder)
    text = (
        "import uctree\nfrom my_game import game\n"
        + RUN
        + "import sys\nprint('numba' in sys.modules)"
    )
    (folder / "main.py").write_text(textwrap.dedent(text))
    assert run_python(folder, "main.py", NUMBA_DISABLE_JIT="1") == ["1.0", "False"]


def compiled_functions(record, name):
    """How many functions of this name Numba compiled."""
    starts = [each for _, each in record.buffer if each.is_start]
    return sum(each.data["dispatcher"].py_func.__name__ == name for each in starts)


PAYS = 1.0


def paid(n):
    return n * PAYS


def pay_once(n):
    return paid(n)


def pay_twice(n):
    return paid(n) + paid(n)


def test_what_two_kernels_have_in_common_is_compiled_once(monkeypatch, tmp_path):
    from numba.core import event

    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    with event.install_recorder("numba:compile") as record:
        for pays in (1.0, 2.0):
            monkeypatch.setitem(globals(), "PAYS", pays)
            assert compiled(pay_once, 3) == 3 * pays
            assert compiled(pay_twice, 3) == 6 * pays
    assert compiled_functions(record, "paid") == 2  # once for each value
    assert compiled_functions(record, "pay_once") == 2
    assert compiled_functions(record, "pay_twice") == 2
