"""Machine code in one piece: Numba's class of libraries is replaced, and put back."""

from __future__ import annotations

import ctypes

import numba
import numpy as np
import pytest
from llvmlite import ir

from uctree.engine import inlining
from uctree.engine.compile import compile_kernel


def codegen():
    from numba.core.registry import cpu_target

    return cpu_target.target_context.codegen()


def test_only_the_kernel_is_a_library_of_its_own():
    usual = codegen()._library_class
    with inlining.one_piece("the kernel"):
        libraries = codegen()._library_class
        kernel = libraries(codegen(), "the kernel")
        helper = libraries(codegen(), "a helper")
        assert type(kernel).__name__ == "KernelLibrary"
        assert type(helper).__name__ == "LinkedLibrary"
        assert helper.get_pointer_to_function("a helper") == 0
    assert codegen()._library_class is usual


def test_an_error_puts_numbas_own_class_back():
    usual = codegen()._library_class
    with pytest.raises(ZeroDivisionError), inlining.one_piece("the kernel"):
        1 / 0  # noqa: B018
    assert codegen()._library_class is usual


def doubled(number):
    return 2 * number


def calls_doubled(number):
    return doubled(number) + 1


def test_another_numba_than_expected_compiles_as_usual(monkeypatch, tmp_path):
    monkeypatch.setattr(inlining, "_is_as_expected", lambda library: False)
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    with inlining.one_piece("the kernel"):
        assert "_library_class" not in vars(codegen())
    assert compile_kernel(calls_doubled, {}, (1,), label="test").call(4) == 9


def rolls(numbers):
    return np.roll(numbers, 1)[0]


def test_numbas_own_functions_are_linked_into_later_code_of_users(monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    numbers = np.arange(3)
    assert compile_kernel(rolls, {}, (numbers,), label="test").call(numbers) == 2
    assert numba.njit(lambda numbers: np.roll(numbers, 1)[1])(numbers) == 0
    assert compile_kernel(rolls, {"unused": 1}, (numbers,), label="test").call(numbers) == 2


def library_of(libraries, name, calls=""):
    """A library with one function, `name`, which returns 1 more than `calls`."""
    module, number = ir.Module(name), ir.IntType(64)
    kind = ir.FunctionType(number, ())
    builder = ir.IRBuilder(ir.Function(module, kind, name).append_basic_block())
    called = builder.call(ir.Function(module, kind, calls), ()) if calls else number(0)
    builder.ret(builder.add(called, number(1)))
    library = libraries(codegen(), name)
    library.add_ir_module(module)
    return library


def test_code_is_linked_in_whatever_order_it_is_reached():
    for order in ((0, 1), (1, 0)):
        kernel_name = f"kernel_{order[0]}"
        with inlining.one_piece(kernel_name):
            libraries = codegen()._library_class
            low = library_of(libraries, "low")
            high = library_of(libraries, "high", calls="low")
            for library in (low, high):
                library.finalize()
            kernel = library_of(libraries, kernel_name, calls="high")
            for i in order:
                kernel.add_linking_library((low, high)[i])
            kernel.finalize()
        address = kernel.get_pointer_to_function(kernel_name)
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 3


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)  # a literal is another type, so another function
    return ackermann(m - 1, ackermann(m, n - 1))


def both(numbers):
    return ackermann(numbers[0], numbers[1])


def test_functions_that_call_themselves_with_other_types_are_right(monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    numbers = np.array([2, 3])
    for _ in range(2):
        kernel = compile_kernel(both, {}, (numbers,), label="test")
        assert kernel.call(numbers) == 9
    assert not any(tmp_path.iterdir())  # addresses are of this process
