"""Inside shortcuts, Numba does the same as outside, in less time."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.engine.shortcuts import _replacements, shortcuts


def mixed(numbers, start):
    total, pair = start, (start, 2)
    for i in range(numbers.shape[0]):
        if numbers[i] > total and i != pair[1]:
            total += numbers[i] * pair[0]
        else:
            numbers[i] = total
    return total, max(pair[0], int(numbers.size), key=None) if start else 0


def statements():
    """The statements of a function, as Numba's compiler knows them."""
    from numba.core import bytecode, interpreter

    identity = bytecode.FunctionIdentity.from_function(mixed)
    found = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
    return [each for block in found.blocks.values() for each in block.body]


def names(values):
    return [each.name for each in values]


def test_statements_have_the_same_variables():
    lines = statements()
    usual = [names(line.list_vars()) for line in lines]
    values = [line.value for line in lines if hasattr(line, "value")]
    inner = [names(value.list_vars()) for value in values if hasattr(value, "list_vars")]
    with shortcuts():
        assert [names(line.list_vars()) for line in lines] == usual
        found = [names(value.list_vars()) for value in values if hasattr(value, "list_vars")]
        assert found == inner
    assert sum(map(len, usual)) > 40


def test_options_of_a_compilation_are_compared_and_hashed_by_their_values():
    from numba.core.compiler import Flags

    one, other, default = Flags(), Flags(), Flags()
    one.nrt = True
    other.nrt, other.boundscheck = True, default.boundscheck  # set, to what it is anyway
    usual = one.values()
    with shortcuts():
        assert one.values() == usual
        assert list(one.values()) == list(usual)
        assert one == other
        assert hash(one) == hash(other)
        assert one != default
        other.boundscheck = True
        assert one != other


def test_sizes_of_types_are_those_of_llvm():
    from llvmlite import ir
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    kinds = [ir.IntType(8), ir.IntType(64), ir.DoubleType(), ir.ArrayType(ir.FloatType(), 3)]
    with shortcuts():
        for _ in range(2):
            assert [context.get_abi_sizeof(kind) for kind in kinds] == [1, 8, 8, 12]


def test_everything_is_as_before_behind_an_error():
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in _replacements()]

    def fail():
        assert all(vars(owner)[name] is not usual for owner, name, usual in before)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), shortcuts():
        fail()
    assert all(vars(owner)[name] is usual for owner, name, usual in before)


def test_functions_compile_and_events_still_have_listeners():
    import numba
    from numba.core import event

    function = numba.njit(lambda numbers: numbers.sum() + 1)
    with shortcuts(), event.install_recorder("numba:compile") as recorder:
        assert function(np.arange(4)) == 7
    assert recorder.buffer
