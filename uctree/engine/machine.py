"""Machine primitives for kernels: a lock between threads, and the clock."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from uctree.engine.compile import interpreted

_CLOCKS = {"linux": 1, "darwin": 6}  # CLOCK_MONOTONIC


def has_clock() -> bool:
    """Whether kernels can read the clock on this platform."""
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
    """Do nothing: plain Python runs in one thread."""


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
            # Reading slows the holder down less than trying to take the lock.
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


def _named(primitive: Any) -> Any:
    """A primitive with a name and a version, which stand for its source in fingerprints."""
    primitive.uctree_primitive = f"{primitive.__name__} 2"
    return primitive
