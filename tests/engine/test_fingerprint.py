"""When machine code of the cache is valid: what a fingerprint depends on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import uctree
from tests.engine.scripts import RUN, entries, run_python, write_game
from uctree.engine.compile import compile_kernel
from uctree.engine.fingerprint import Contents, fingerprint
from uctree.kernels.binding import UNBOUND


def test_editing_a_helper_in_a_second_file_gives_the_new_answer(folder):
    write_game(folder, imports="from helper import pay", payoff="pay(state)")
    (folder / "main.py").write_text("import uctree\nfrom my_game import game\n" + RUN)
    (folder / "helper.py").write_text("def pay(state):\n    return 2.0\n")
    assert run_python(folder, "main.py") == ["2.0"]
    assert run_python(folder, "main.py") == ["2.0"]
    assert len(entries(folder)) == 1
    (folder / "helper.py").write_text("def pay(state):\n    return 3.0\n")
    assert run_python(folder, "main.py") == ["3.0"]
    assert len(entries(folder)) == 2


def test_editing_a_helper_behind_a_module_name_or_a_constant_gives_the_new_answer(folder):
    write_game(folder, imports="import helper", payoff="helper.pay(state)")
    (folder / "main.py").write_text("import uctree\nfrom my_game import game\n" + RUN)
    source = (
        "PAY = {}\n\n\ndef deeper():\n    return PAY\n\n\ndef pay(state):\n    return deeper()\n"
    )
    for answer in ("2.5", "4.5"):
        (folder / "helper.py").write_text(source.format(answer))
        assert run_python(folder, "main.py") == [answer]


def test_machine_code_is_shared_by_module_script_notebook_and_prompt(folder):
    write_game(folder)
    source = (folder / "my_game.py").read_text()
    (folder / "script.py").write_text(source + RUN)
    (folder / "main.py").write_text("import uctree\nfrom my_game import game\n" + RUN)
    cell = f"source = {source + RUN!r}\nexec(compile(source, '<ipython-input-1-abc>', 'exec'))\n"
    (folder / "notebook.py").write_text(cell)
    assert run_python(folder, "main.py") == ["1.0"]
    assert run_python(folder, "script.py") == ["1.0"]
    assert run_python(folder, "notebook.py") == ["1.0"]
    assert run_python(folder, "-", text=source + RUN) == ["1.0"]
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
