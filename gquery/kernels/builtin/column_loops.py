"""The compiled loops that columns are encoded with, handed down to `columns.loops`. Each is imported by who first wants it: short
columns want none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gquery.columns.loops import use_loops

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

    def count(self, flags: Array) -> int:
        from gquery.kernels.builtin.scans import count_others

        return int(count_others(flags).item())


use_loops(_Loops())
