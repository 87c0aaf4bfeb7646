"""Frames: one array with the addresses of many, which is how arrays get into kernels.

Passing an array to machine code takes time, and a kernel with many arrays may be called once per
simulation. So Python writes addresses, shapes and strides of all arrays into one array of words. In
machine code a `Batch` or a `Search` is a pointer to these words and a few numbers; reading a field
loads the field's array. Plain Python gets the named tuples themselves.

A named tuple of arrays in machine code has hundreds of values, which every function takes as
arguments: kernels took a third longer to compile that way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from uctree.engine.compile import interpreted
from uctree.kernels.context import SEARCH_FIELDS, Batch, Search

_WORDS = 16  # of a frame, for each array: its address, then shape and strides
_MOST_DIMENSIONS = 7


class Frame:
    """The addresses, shapes and strides of a named tuple of arrays, as one array `words`.

    It holds no references: the arrays must stay alive while machine code reads them.
    """

    def __init__(self, arrays: Any) -> None:
        self.words = np.zeros(_WORDS * len(arrays), np.int64)
        words: Any = self.words
        self._view = memoryview(words)  # faster to write than NumPy arrays
        self._places = {name: _WORDS * i for i, name in enumerate(arrays._fields)}
        self.write(arrays._asdict())

    def write(self, arrays: dict[str, np.ndarray]) -> None:
        """Replace the arrays of some fields."""
        view = self._view
        for name, array in arrays.items():
            place = self._places[name]
            view[place] = array.ctypes.data
            for axis, length in enumerate(array.shape, place + 1):
                view[axis] = length
            for axis, stride in enumerate(array.strides, place + 1 + _MOST_DIMENSIONS):
                view[axis] = stride


def readers(arrays: Batch) -> dict[str, Callable[..., Any]]:
    """`read_frame(words)`, the batch of a frame, and `search_of(batch, number, slot, data)`.

    Args:
        arrays: an example of the batch; only the types matter.
    """
    if interpreted():
        return {"read_frame": _itself, "search_of": _search_of}
    return _compiled_readers(arrays)


def _itself(batch: Batch) -> Batch:
    return batch


def _search_of(batch: Batch, number: int, slot: int, data: Any) -> Search:
    """The search of a tree, in plain Python."""
    given = {"number": number, "slot": slot, "first": 0}
    parts: dict[str, Any] = {}
    for name, (source, *indices) in SEARCH_FIELDS.items():
        parts[name] = getattr(batch, source)
        for index in indices:
            parts[name] = parts[name][given[index]]
    return Search(**parts, data=data)


# --- machine code --------------------------------------------------------------------------------


def _compiled_readers(arrays: Batch) -> dict[str, Any]:
    from numba import typeof, types
    from numba.core import cgutils
    from numba.extending import intrinsic

    view_type = _view_type()
    kinds = {name: typeof(array) for name, array in arrays._asdict().items()}
    places = {name: _WORDS * i for i, name in enumerate(kinds)}
    whole = {name: (places[name], kind, (), kind) for name, kind in kinds.items()}
    parts = {
        name: (places[source], kinds[source], tuple(indices), _part_type(kinds[source], indices))
        for name, (source, *indices) in SEARCH_FIELDS.items()
    }

    def read_frame(typing: Any, frame: Any) -> Any:
        kind = view_type("Batch", whole, types.none)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = cgutils.create_struct_proxy(kind)(context, builder)
            frame = context.make_array(signature.args[0])(context, builder, arguments[0])
            view.words = frame.data
            return view._getvalue()

        return kind(frame), generate

    def search_of(typing: Any, batch: Any, number: Any, slot: Any, data: Any) -> Any:
        kind = view_type("Search", parts, data)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = cgutils.create_struct_proxy(kind)(context, builder)
            batch = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0])
            view.words = batch.words
            view.number, view.slot, view.data = arguments[1:]
            return view._getvalue()

        return kind(batch, types.int64, types.int64, data), generate

    made = {"read_frame": intrinsic(read_frame), "search_of": intrinsic(search_of)}
    for name, function in made.items():
        function.uctree_primitive = f"{name} 3 {kinds} {SEARCH_FIELDS}"  # type: ignore[attr-defined]
    return made


def _part_type(kind: Any, indices: list[Any]) -> Any:
    """The Numba type of an array of type `kind` at as many indices."""
    rest = kind.ndim - len(indices)
    return kind.dtype if rest == 0 else kind.copy(ndim=rest)


@cache
def _view_type() -> Any:
    """The Numba type of a batch or search, registered once."""
    from numba import types
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

    class View(types.Type):
        """A pointer to a frame, and which tree and slot of it are meant."""

        def __init__(self, name: str, fields: dict[str, Any], data: Any) -> None:
            self.fields, self.data = fields, data
            # Short, because the names of all functions contain it.
            content = hashlib.sha1(f"{fields} {data}".encode()).hexdigest()
            super().__init__(name=f"{name}{content[:12]}")

    class ViewModel(models.StructModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            members = [
                ("words", types.CPointer(types.int64)),
                ("number", types.int64),
                ("slot", types.int64),
                ("data", kind.data),
            ]
            super().__init__(manager, kind, members)

    class ViewAttributes(AttributeTemplate):
        key = View

        def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
            if name == "data":
                return kind.data
            return kind.fields[name][-1] if name in kind.fields else None

    register_model(View)(ViewModel)
    infer_getattr(ViewAttributes)
    lower_getattr_generic(View)(_lower_field)
    return View


def _lower_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Emit the loads of a field's array, or of the part of it that belongs to the search."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.np.arrayobj import make_array, populate_array

    view = cgutils.create_struct_proxy(kind)(context, builder, value)
    if name == "data":
        return view.data
    place, source, indices, part = kind.fields[name]
    word = ir.IntType(64)

    def load(at: int) -> Any:
        loaded = builder.load(builder.gep(view.words, [word(at)]))
        # Nothing writes to a frame while a kernel runs, so a field is loaded only once.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    address = load(place)
    for axis, index in enumerate(indices):
        if index == "first":
            continue
        row = builder.mul(getattr(view, index), load(place + 1 + _MOST_DIMENSIONS + axis))
        address = builder.add(address, row)
    if isinstance(part, types.Record):
        return builder.inttoptr(address, context.get_value_type(part))
    axes = range(len(indices), source.ndim)
    array = make_array(part)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(part.dtype))
    populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[load(place + 1 + axis) for axis in axes],
        strides=[load(place + 1 + _MOST_DIMENSIONS + axis) for axis in axes],
        itemsize=context.get_constant(types.intp, size),
        meminfo=None,
    )
    return array._getvalue()
