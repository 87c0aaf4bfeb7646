"""Arrays and numbers that rules assign to whole fields, in machine code and in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from uctree.engine.compile import compile_kernel
from uctree.engine.fields import teach_numba
from uctree.game import StateView

Board = np.dtype(
    [("ply", np.int8), ("row", np.int8, 4), ("other", np.int8, 4), ("grid", np.int8, (2, 2)),
     ("wide", np.int32, 4), ("share", np.float32, 4), ("end", np.int8)]
)  # fmt: skip
TABLE = np.arange(16, dtype=np.int8).reshape(4, 4)
SQUARE = np.array([[1, 2], [3, 4]], np.int8)
LONG = np.array([4, 3, 2, 1])


def another_field(state):
    state.row = state.other


def backwards(state):
    state.row = state.other[::-1]


def rolled(state):
    state.row = np.roll(state.row, 1)


def a_copy(state):
    board = state.row.copy()
    board[2] = 9
    state.row = board


def turned(state):
    state.grid = state.grid.T


def wider(state):
    state.wide = state.row


def narrower(state):
    state.row = state.wide


def of_fractions(state):
    state.share = state.row / 2


def a_constant(state):
    state.row = LONG


def a_constant_column(state):
    state.row = TABLE[:, 1]


def a_constant_turned(state):
    state.grid = SQUARE.T


def a_number(state):
    state.row = 7


def new_zeros(state):
    state.row = np.zeros(4, np.int64)


def shorter(state):
    state.row = LONG[:3]


def of_another_dimension(state):
    state.row = SQUARE


def a_state():
    states = np.zeros(1, Board).view(np.recarray)
    states[0] = (1, [1, 2, 3, 4], [5, 6, 7, 8], [[1, 2], [3, 4]], [10, 20, 30, 40], 0, 99)
    return states


def call_first(states):
    a_constant_column(states[0])


def compiled(rule):
    """Call a rule in machine code."""
    import numba

    teach_numba()
    inner = numba.njit(_nrt=True)(rule)

    @numba.njit
    def call(states):
        inner(states[0])

    states = a_state()
    call(states)
    return states


@pytest.mark.parametrize(
    "rule",
    [another_field, backwards, rolled, a_copy, turned, wider, narrower, of_fractions, a_constant,
     a_constant_column, a_constant_turned, a_number, new_zeros],
)  # fmt: skip
def test_a_field_gets_the_elements_that_plain_python_gives_it(rule):
    states = a_state()
    rule(StateView(states.view(np.ndarray)[0]))
    assert compiled(rule)[0] == states[0]


def test_kernels_are_compiled_so():
    states = a_state()
    compile_kernel(call_first, {}, (states,), label="columns").call(states)
    assert states[0].row.tolist() == [1, 5, 9, 13]


def test_an_array_of_another_length_is_refused():
    with pytest.raises(ValueError, match="another shape"):
        compiled(shorter)


def test_an_array_of_another_dimension_does_not_compile():
    from numba.core.errors import NumbaError

    with pytest.raises(NumbaError, match="2 dimensions cannot be assigned to a field of 1"):
        compiled(of_another_dimension)
