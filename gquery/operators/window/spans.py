"""Frames of so many rows, whose values may count twice (minima, maxima, bits): what spans of a fixed length combine to, of which
each frame takes some.

    frames of 100 rows, spans of 10     spans[p] = max(values[p], ..., values[p + 9])
                                        frame    = max(spans[low], spans[low + 10], ..., spans[last - 9])

The last span of a frame overlaps the one before it. Neighbouring positions read neighbouring values at every step, which a GPU's
cache hands out a line at a time, and nothing is carried from one position to another: so two kernels of about the root of
the width in steps take the place of two scans, the flags of their blocks, and a look at partitions.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PositionKernel, Work, position_kernel
from gquery.operators.window.segment_scans import Op, identity, word_of

REPEATABLE: frozenset[Op] = frozenset(("min", "max", "and", "or"))
"""What gives the same of values that come twice."""


@cache
def _combining(op: Op, word: str) -> BuiltinKernel:
    """The kernel that combines the values of the span from each position on, cut off behind the last one."""
    return builtin_kernel(
        f"values:*{word} count:i64 length:i64 made:*{word}",
        f"total = {word}(values[i])",
        "at = add_i64(i64(i), 1)",
        "behind = min_i64(add_i64(i64(i), length), count)",
        "while lt_i64(at, behind):",
        f"    total = {op}_{word}(total, {word}(values[row_index(at)]))",
        "    at = add_i64(at, 1)",
        f"store_{word}(made, i64(i), total)",
    )


@cache
def _taking(op: Op, word: str, element: str) -> PositionKernel:
    """The kernel that combines the spans of each frame; the values themselves, where a frame is cut off to less than a span."""
    return position_kernel(
        f"lows:*u32 highs:*u32 values:*{word} spans:*{word} length:i64 other:{word} made:*{element}",
        "at = i64(lows[i])",
        "behind = i64(highs[i])",
        "total = other",
        "if lt_i64(sub_i64(behind, at), length):",
        "    while lt_i64(at, behind):",
        f"        total = {op}_{word}(total, {word}(values[row_index(at)]))",
        "        at = add_i64(at, 1)",
        "else:",
        "    final = sub_i64(behind, length)",
        f"    total = {word}(spans[row_index(final)])",
        "    while lt_i64(at, final):",
        f"        total = {op}_{word}(total, {word}(spans[row_index(at)]))",
        "        at = add_i64(at, length)",
        f"store_{element}(made, row, total)",
    )


def combined_by_spans(
    values: Array, op: Op, width: int, frame: Ranges, work: Work, physical_type: PhysicalType | None
) -> Array:
    """By row what the values (by position) of its frame of so many rows, or fewer, combine to; see `combine.combined`."""
    o, device, word, length = work.ordered, work.device, word_of(values), max(isqrt(width), 1)
    spans: Array = device.empty(o.count, values.dtype)
    launch(_combining(op, word), o.count, spans, values, o.count, length, spans, workers=work.workers)
    made: Array = device.empty(o.count, values.dtype if physical_type is None else physical_type.numpy)
    kernel = _taking(op, word, word if physical_type is None else physical_type.value)
    kernel.run(o, work.workers, frame.low, frame.high, values, spans, length, identity(op, word), made)
    return made
