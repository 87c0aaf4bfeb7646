"""When machine code of the cache is valid: what a fingerprint depends on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import uctree
from tests.engine.scripts import KERNEL, entries, run_python
from uctree.engine.compile import compile_kernel
from uctree.engine.fingerprint import Contents, fingerprint
from uctree.kernels.binding import UNBOUND

HELPER = """
PAY = {pay}

def deeper():
    return PAY

def paid(n):
    return n * deeper()

def pay(n):
    return n + {pay}
"""
USES_HELPER = """
import helper
from helper import pay
from uctree.engine.compile import compile_kernel

def by_name(n):
    return pay(n)

def by_module(n):
    return helper.paid(n)

for function in (by_name, by_module):
    kernel = compile_kernel(function, {}, (1,), label="test")
    print(kernel.call(10), kernel.cached)
"""


def test_editing_a_helper_or_a_constant_in_a_second_file_gives_the_new_answer(folder):
    (folder / "main.py").write_text(USES_HELPER)
    (folder / "helper.py").write_text(HELPER.format(pay=2))
    assert run_python(folder, "main.py") == ["12", "False", "20", "False"]
    assert run_python(folder, "main.py") == ["12", "True", "20", "True"]
    (folder / "helper.py").write_text(HELPER.format(pay=3))
    assert run_python(folder, "main.py") == ["13", "False", "30", "False"]
    assert len(entries(folder)) == 4


def test_machine_code_is_shared_by_module_script_notebook_and_prompt(folder):
    (folder / "my_module.py").write_text(KERNEL)
    (folder / "main.py").write_text("import my_module")
    cell = f"source = {KERNEL!r}\nexec(compile(source, '<ipython-input-1-abc>', 'exec'))\n"
    (folder / "notebook.py").write_text(cell)
    assert run_python(folder, "main.py") == ["42", "False"]
    assert run_python(folder, "my_module.py") == ["42", "True"]
    assert run_python(folder, "notebook.py") == ["42", "True"]
    assert run_python(folder, "-", text=KERNEL) == ["42", "True"]
    assert len(entries(folder)) == 1


LIMIT = UNBOUND


def kernel(n):
    return n + LIMIT


@pytest.mark.quick
def test_a_fingerprint_depends_on_all_that_is_reached():
    def outer(table, inner):
        def function(n):
            return table[n] + inner(n)

        return function

    def one(n):
        return n + 1

    def two(n):
        return n + 2

    def same_as_one(n):
        return n + 1

    def name(function, **bindings):
        return fingerprint(function, bindings).name

    base = name(outer(np.arange(3), one))
    same_as_one.__name__ = same_as_one.__qualname__ = "one"
    assert name(outer(np.arange(3), one)) == base
    assert name(outer(np.arange(3), two)) != base
    assert name(outer(np.arange(1, 4), one)) != base
    assert name(outer(np.arange(3.0), one)) != base
    assert name(kernel, LIMIT=1) != name(kernel, LIMIT=2)
    assert name(kernel, LIMIT=1) != name(kernel, LIMIT=True)


class Opaque:
    def __index__(self):
        return 3


OPAQUE = Opaque()


def test_what_cannot_be_told_by_its_content_is_compiled_in_memory_and_said_so():
    def reads(n):
        return n if n > 0 else len(str(OPAQUE))

    with (
        pytest.warns(UserWarning, match="compiled anew in every process: it uses"),
        warnings.catch_warnings(),
        pytest.raises(uctree.BrokenGame, match="OPAQUE"),
    ):
        compile_kernel(reads, {}, (1,), label="test")


# --- parts ---------------------------------------------------------------------------------------


def program(source):
    """The functions of a source text."""
    space = {}
    exec(source, space)
    return space


LEAF = "def leaf(x):\n    return x + {}\n"
CHAIN = LEAF + "def middle(x):\n    return leaf(x)\ndef top(x):\n    return middle(leaf(x))\n"
CIRCLE = (
    "def even(n):\n    return n == 0 or odd(n - 1)\n"
    "def odd(n):\n    return n != {} and even(n - 1)\n"
    "def top(n):\n    return even(n)\n"
)


def test_a_function_has_the_same_contents_wherever_it_is_reached_from():
    one, other = program(CHAIN.format(1)), program(CHAIN.format(1))
    contents = Contents({})
    for name in ("top", "middle", "leaf"):
        assert contents.of(one[name]) == Contents({}).of(other[name])
    assert len({contents.of(one[name]) for name in ("top", "middle", "leaf")}) == 3


@pytest.mark.parametrize(("source", "changed"), [(CHAIN, ["top", "middle", "leaf"]),
                                                 (CIRCLE, ["top", "even", "odd"])])  # fmt: skip
def test_what_a_function_reaches_belongs_to_its_contents(source, changed):
    one, other = program(source.format(0)), program(source.format(2))
    for order in (changed, changed[::-1]):
        first, second = Contents({}), Contents({})
        assert all(first.of(one[name]) != second.of(other[name]) for name in order)
        again = Contents({})
        assert all(again.of(one[name]) == first.of(one[name]) for name in reversed(order))


def test_bindings_belong_to_the_contents_of_functions_that_read_them():
    space = {"PAY": UNBOUND}
    exec("def pays():\n    return PAY\ndef rests():\n    return 0\n", space)
    one, other = Contents({"PAY": 1}), Contents({"PAY": 2})
    assert one.of(space["pays"]) != other.of(space["pays"])
    assert one.of(space["rests"]) == other.of(space["rests"])
