"""The compiled loops that long columns are encoded with, and that look over columns on a GPU. Kernels lie above columns, so the
engine hands the loops down when it is loaded (`kernels.builtin.column_loops`); until then, and for short columns, NumPy and Arrow
do the work."""

from __future__ import annotations

from typing import Literal, Protocol

from gquery.device.array import Array
from gquery.runtime.tuples import NamedTuple

Words = Literal["pairs", "i64", "i32", "i16"]
"""How integers lie; pairs are those of 128 bits, the lower word first."""


class Extremes(NamedTuple):
    """The least and greatest of each block (int64), and whether all upper words of pairs repeat the sign of the lower ones."""

    low: Array
    high: Array
    is_narrow: bool


class InOrder(NamedTuple):
    """The extremes of integers, how often one is less than the one before, and how often equal to it."""

    least: int
    most: int
    falls: int
    repeats: int


class NarrowingLoop(Protocol):
    """A loop over contiguous integers. One that does not fit is cut off: the extremes tell."""

    def __call__(self, words: Array, made: Array, skip: int, block: int) -> Extremes:
        """Writes each value into ``made``; of the first of the blocks, which have ``block`` rows, ``skip`` rows lie before."""
        ...


class TextSlots(NamedTuple):
    """``slots``: for each row the slot of its text (uint32), anything for NULL. ``used``: the slots that have a text (int64), and
    ``first`` a row of each one's text (int64). ``size``: how many slots there are."""

    slots: Array
    used: Array
    first: Array
    size: int


class Loops(Protocol):
    """Who has the loops."""

    def narrowing(self, words: Words, size: int) -> NarrowingLoop | None:
        """The loop into values of ``size`` bytes; None while it is not ready: nobody waits for a compiler there."""
        ...

    def all_differ(self, values: Array, low: int, width: int) -> bool:
        """Whether the integers from ``low`` on, so many of them, stand no more than once each among values of 4 or 8 bytes."""
        ...

    def code_texts(self, offsets: Array, characters: Array, valid: Array | None, size: int, most: int) -> TextSlots | None:
        """The texts of less than 2^32 - 1 rows in a hash table of ``size`` slots, a power of two and more than ``most``;
        ``valid`` is 0 for NULL, None where there is none. None where more than ``most`` texts differ."""
        ...

    def in_order(self, values: Array) -> InOrder:
        """What there is to know of some integers on a GPU, booleans among them, when the GPU is done."""
        ...

    def every(self, values: Array, stride: int) -> Array:
        """Every so many-th of some integers on a GPU, from the first on."""
        ...

    def contiguous(self, values: Array) -> Array:
        """Values on a GPU one after another: where they lie, if they do so there."""
        ...

    def converted(self, values: Array, dtype: str) -> Array:
        """Numbers on a GPU as those of another type."""
        ...

    def decimals(self, values: Array, scale: float) -> Array:
        """Integers on a GPU, divided by a number (float64)."""
        ...

    def wide_decimals(self, words: Array, scale: float) -> Array:
        """The same of integers of 128 bits: two words each (int64), the low one first."""
        ...

    def pairs(self, values: Array) -> Array:
        """Integers of 64 bits without a sign, on a GPU, as those of 128 bits."""
        ...

    def count(self, flags: Array) -> int:
        """How many flags (uint8) on a GPU are not 0."""
        ...


_loops: Loops | None = None


def use_loops(loops: Loops) -> None:
    """Take loops from here on, in all of the process."""
    global _loops
    _loops = loops


def loops() -> Loops | None:
    """The loops, once the engine is loaded."""
    return _loops


def on_gpus() -> Loops:
    """The loops over arrays of a GPU, which there is none of before the engine is loaded."""
    assert _loops is not None
    return _loops
