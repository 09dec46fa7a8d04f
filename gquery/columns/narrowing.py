"""Integers of Arrow's, narrowed into a column's array in one pass that also finds their extremes.

NumPy takes nine passes over a batch of decimals, each a turn at the interpreter's lock; a compiled loop takes one. Kernels lie
above columns, so the engine hands its loops down when it is loaded (`kernels.builtin.narrowing`). Nobody waits for a compiler
here: until a loop is ready, NumPy does its work.
"""

from __future__ import annotations

from typing import Literal, Protocol

import pyarrow as pa

from gquery.columns.arrow_buffers import values_of
from gquery.device.array import Array
from gquery.runtime.tuples import NamedTuple

Words = Literal["pairs", "i64", "i32", "i16"]
"""How the integers lie; pairs are those of 128 bits, the lower word first."""

_BITS: dict[int, Words] = {64: "i64", 32: "i32", 16: "i16"}


class Extremes(NamedTuple):
    """The least and greatest of each block (int64), and whether all upper words of pairs repeat the sign of the lower ones."""

    low: Array
    high: Array
    is_narrow: bool


class NarrowingLoop(Protocol):
    """A loop over contiguous integers. One that does not fit is cut off: the extremes tell."""

    def __call__(self, words: Array, made: Array, skip: int, block: int) -> Extremes:
        """Writes each value into ``made``; of the first of the blocks, which have ``block`` rows, ``skip`` rows lie before."""
        ...


class Loops(Protocol):
    """Who has the loops."""

    def __call__(self, words: Words, size: int) -> NarrowingLoop | None:
        """The loop into values of ``size`` bytes; None while it is not ready."""
        ...


_loops: Loops | None = None


def use_loops(loops: Loops) -> None:
    """Take loops from here on, in all of the process."""
    global _loops
    _loops = loops


def loop_for(type_: pa.DataType, size: int) -> NarrowingLoop | None:
    """The loop from an Arrow type into values of ``size`` bytes; None where there is none, or none yet."""
    words = words_of(type_)
    return None if words is None or _loops is None else _loops(words, size)


def word_loop(size: int) -> NarrowingLoop | None:
    """The loop from words of 64 bits into values of ``size`` bytes; None where there is none yet."""
    return None if _loops is None else _loops("i64", size)


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
