"""Integers of Arrow's, narrowed into a column's array in one pass that also finds their extremes.

NumPy takes nine passes over a batch of decimals, each a turn at the interpreter's lock; a compiled loop takes one
(`columns.loops`). Nobody waits for a compiler here: until a loop is ready, NumPy does its work.
"""

from __future__ import annotations

import pyarrow as pa

from gquery.columns.arrow_buffers import values_of
from gquery.columns.loops import NarrowingLoop, Words, loops
from gquery.device.array import Array

_BITS: dict[int, Words] = {64: "i64", 32: "i32", 16: "i16"}


def loop_for(type_: pa.DataType, size: int) -> NarrowingLoop | None:
    """The loop from an Arrow type into values of ``size`` bytes; None where there is none, or none yet."""
    words, known = words_of(type_), loops()
    return None if words is None or known is None else known.narrowing(words, size)


def word_loop(size: int) -> NarrowingLoop | None:
    """The loop from words of 64 bits into values of ``size`` bytes; None where there is none yet."""
    known = loops()
    return None if known is None else known.narrowing("i64", size)


def words_of(type_: pa.DataType) -> Words | None:
    """How the integers of an Arrow type lie; None where they are not signed or mean something else in gquery."""
    if pa.types.is_decimal128(type_):
        return "pairs"
    if pa.types.is_signed_integer(type_) or type_ == pa.date32():
        return _BITS.get(type_.bit_width)
    is_time = pa.types.is_timestamp(type_) or pa.types.is_time64(type_)
    return "i64" if is_time and type_.unit == "us" else None


def words_in(piece: pa.Array) -> Array:
    """The words of an array of a type that has some: views of int64 of pairs, two a row."""
    words = words_of(piece.type)
    assert words is not None
    values: Array = values_of(piece, "i8", 2) if words == "pairs" else values_of(piece, f"i{int(words[1:]) // 8}")
    return values
