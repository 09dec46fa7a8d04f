"""The compiled loops that columns are encoded with, handed down to `columns.loops`, and what fills arrays, to `device.filling`.
Each is imported by who first wants it: short columns want none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gquery.columns.loops import use_loops
from gquery.device.filling import use_fill

if TYPE_CHECKING:
    from gquery.columns.loops import InOrder, NarrowingLoop, TextSlots, Words
    from gquery.device.array import Array


class _Loops:
    """`columns.loops.Loops`."""

    def narrowing(self, words: Words, size: int) -> NarrowingLoop | None:
        from gquery.kernels.builtin.narrowing import find_loop

        return find_loop(words, size)

    def all_differ(self, values: Array, low: int, width: int) -> bool:
        from gquery.kernels.builtin.marking import all_differ

        return all_differ(values, low, width)

    def code_texts(self, offsets: Array, characters: Array, valid: Array | None, size: int, most: int) -> TextSlots | None:
        from gquery.kernels.builtin.text_coding import code_texts

        return code_texts(offsets, characters, valid, size, most)

    def in_order(self, values: Array) -> InOrder:
        from gquery.kernels.builtin.extremes import in_order

        return in_order(values)

    def every(self, values: Array, stride: int) -> Array:
        from gquery.kernels.builtin.elements import every

        return every(values, stride)

    def contiguous(self, values: Array) -> Array:
        from gquery.kernels.builtin.elements import contiguous

        return contiguous(values)

    def converted(self, values: Array, dtype: str) -> Array:
        from gquery.kernels.builtin.elements import converted

        return converted(values, dtype)

    def decimals(self, values: Array, scale: float) -> Array:
        from gquery.kernels.builtin.wide_arrays import f64_from_decimals

        return f64_from_decimals(values, scale)

    def wide_decimals(self, words: Array, scale: float) -> Array:
        from gquery.kernels.builtin.wide_arrays import f64_from_wide_decimals

        return f64_from_wide_decimals(words, scale)

    def pairs(self, values: Array) -> Array:
        from gquery.kernels.builtin.wide_arrays import unsigned_pairs

        return unsigned_pairs(values)

    def count(self, flags: Array) -> int:
        from gquery.kernels.builtin.scans import count_others

        return int(count_others(flags).item())


def _fill(values: Array, value: float) -> None:
    from gquery.kernels.builtin.define import fill

    fill(values, value)


use_loops(_Loops())
use_fill(_fill)
