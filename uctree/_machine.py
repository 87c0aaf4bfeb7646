"""What kernels ask of the machine: a lock between threads, the time, arrays by their addresses."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree._compile import interpreted

_CLOCKS = {"linux": 1, "darwin": 6}  # CLOCK_MONOTONIC


def has_clock() -> bool:
    """Whether kernels can tell the time here."""
    return interpreted() or sys.platform in _CLOCKS


def primitives() -> dict[str, Any]:
    """`acquire(lock, owner)`, `release(lock)` and `read_clock()`, as plain Python or for Numba."""
    if interpreted():
        return {"acquire": _nothing, "release": _nothing, "read_clock": time.perf_counter_ns}
    global _compiled
    if _compiled is None:
        _compiled = _make_primitives()
    return _compiled


_compiled: dict[str, Any] | None = None


def _nothing(lock: np.ndarray, owner: int = 0) -> None:
    """Plain Python runs in one thread."""


def _make_primitives() -> dict[str, Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word = ir.IntType(64)

    def address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return array.data

    def acquire(typing: Any, lock: Any, owner: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = address(context, builder, signature, arguments)
            again = builder.append_basic_block("again")
            take = builder.append_basic_block("take")
            done = builder.append_basic_block("done")
            builder.branch(again)
            builder.position_at_end(again)
            # Looking costs the holder less than trying to take.
            held = builder.load_atomic(place, "monotonic", 8)
            builder.cbranch(builder.icmp_unsigned("==", held, word(0)), take, again)
            builder.position_at_end(take)
            pair = builder.cmpxchg(place, word(0), arguments[1], "acquire", "monotonic")
            builder.cbranch(builder.extract_value(pair, 1), done, again)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(lock, owner), generate

    def release(typing: Any, lock: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = address(context, builder, signature, arguments)
            builder.store_atomic(word(0), place, "release", 8)
            return context.get_dummy_value()

        return types.void(lock), generate

    def read_clock(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if sys.platform not in _CLOCKS:
                return word(0)
            now = cgutils.alloca_once(builder, ir.ArrayType(word, 2))
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), now.type])
            call = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
            builder.call(call, [ir.IntType(32)(_CLOCKS[sys.platform]), now])
            pair = builder.load(now)
            seconds, rest = builder.extract_value(pair, 0), builder.extract_value(pair, 1)
            return builder.add(builder.mul(seconds, word(10**9)), rest)

        return types.int64(), generate

    made = {"acquire": acquire, "release": release, "read_clock": read_clock}
    return {name: _named(intrinsic(function)) for name, function in made.items()}


# --- many arrays as one argument -----------------------------------------------------------------
# Handing an array to machine code takes time, and a search of many arrays may be called once for
# every simulation. A frame is one array that says where the others are.

_WORDS = 16  # of a frame, for each array: its address, then shape and strides
_MOST_DIMENSIONS = 7


class Frame:
    """Arrays that machine code takes as one argument, `words`; plain Python takes `arrays`."""

    def __init__(self, arrays: tuple[np.ndarray, ...]) -> None:
        self.arrays = arrays
        self.words = np.zeros(_WORDS * len(arrays), np.int64)
        for array, words in zip(arrays, self.words.reshape(-1, _WORDS), strict=True):
            words[0] = array.__array_interface__["data"][0]
            words[1 : 1 + array.ndim] = array.shape
            words[1 + _MOST_DIMENSIONS : 1 + _MOST_DIMENSIONS + array.ndim] = array.strides


def array_reader(arrays: tuple[np.ndarray, ...]) -> Callable[..., Any]:
    """`array_at(frame, number)` for frames of arrays that have the types of these."""
    if interpreted():
        return operator.getitem
    from llvmlite import ir
    from numba import typeof, types
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array, populate_array

    kinds = tuple(map(typeof, arrays))
    word = ir.IntType(64)

    def array_at(typing: Any, frame: Any, number: Any) -> Any:
        kind, first = kinds[number.literal_value], _WORDS * number.literal_value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = make_array(signature.args[0])(context, builder, arguments[0]).data

            def read(place: int, count: int) -> list[Any]:
                at = range(first + place, first + place + count)
                return [builder.load(builder.gep(words, [word(i)])) for i in at]

            array = make_array(kind)(context, builder)
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            populate_array(
                array,
                data=builder.inttoptr(read(0, 1)[0], array.data.type),
                shape=read(1, kind.ndim),
                strides=read(1 + _MOST_DIMENSIONS, kind.ndim),
                itemsize=context.get_constant(types.intp, size),
                meminfo=None,
            )
            return array._getvalue()

        return kind(frame, number), generate

    reader: Any = intrinsic(prefer_literal=True)(array_at)
    reader.uctree_primitive = f"array_at 1 {kinds}"
    return reader


def _named(primitive: Any) -> Any:
    """A primitive whose source, this file, is part of every fingerprint by its name and version."""
    primitive.uctree_primitive = f"{primitive.__name__} 2"
    return primitive
