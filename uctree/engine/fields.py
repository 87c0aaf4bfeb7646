"""Teaches Numba to assign arrays to fields of a state, as `state.board = np.roll(state.board, 1)`.

Numba copies as many bytes as the field has from where the array begins. That is right for arrays of
the same type, length and order of elements, and it refuses most others by an assertion; constants
it takes as they are, so that a column of a table would be read as if it were a row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def teach_numba() -> None:
    """Register how arrays and numbers become the content of a field of several numbers."""
    from numba.core import types
    from numba.extending import lower_cast

    lower_cast(types.Array, types.NestedArray)(_from_array)
    for kind in (types.Number, types.Boolean):
        lower_cast(kind, types.NestedArray)(_from_number)


def _from_array(context: Any, builder: Any, given: Any, field: Any, value: Any) -> Any:
    from numba.core.errors import NumbaTypeError

    if given.ndim != field.ndim:
        raise NumbaTypeError(
            f"an array of {given.ndim} dimensions cannot be assigned to a field of {field.ndim}"
        )
    return _filled(context, builder, _copy, given, field, value)


def _from_number(context: Any, builder: Any, given: Any, field: Any, value: Any) -> Any:
    return _filled(context, builder, _fill, given, field, value)


def _filled(context: Any, builder: Any, write: Any, given: Any, field: Any, value: Any) -> Any:
    """An array on the stack like the field, to which `write` wrote the value."""
    from numba.core import cgutils, types
    from numba.core.typing.templates import signature
    from numba.np.arrayobj import make_array, populate_array

    def constants(numbers: tuple[int, ...]) -> Any:
        packed = [context.get_constant(types.intp, number) for number in numbers]
        return cgutils.pack_array(builder, packed)

    element = context.get_data_type(field.dtype)
    array = make_array(field)(context, builder)
    populate_array(
        array,
        data=cgutils.alloca_once(builder, element, size=field.nitems),
        shape=constants(field.shape),
        strides=constants(field.strides),
        itemsize=context.get_constant(types.intp, context.get_abi_sizeof(element)),
        meminfo=None,
        parent=None,
    )
    content = array._getvalue()
    context.compile_internal(builder, write, signature(types.none, field, given), (content, value))
    return content


def _copy(field: np.ndarray, given: np.ndarray) -> None:
    if field.shape != given.shape:
        raise ValueError("an array of another shape was assigned to a field")
    for place in np.ndindex(field.shape):
        field[place] = given[place]


def _fill(field: np.ndarray, given: float) -> None:
    for place in np.ndindex(field.shape):
        field[place] = given
