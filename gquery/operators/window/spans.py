"""Frames of so many rows, whose values may count twice (minima, maxima, bits): what spans of a fixed length combine to, of which
each frame takes some.

    frames of 100 rows, spans of 10     spans[p] = max(values[p], ..., values[p + 9])
                                        frame    = max(spans[low], spans[low + 10], ..., spans[last - 9])

The last span of a frame overlaps the one before it. Neighbouring positions read neighbouring values at every step, which a GPU's
cache hands out a line at a time, and nothing is carried from one position to another: so two kernels of about the root of
the width in steps take the place of two scans, the flags of their blocks, and a look at partitions. Wide frames take spans of
spans, so that no kernel has many steps: of 100,000 rows, 47 spans of 47 of 47 values. A frame that its partition cuts off takes
the longest spans that it has room for.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

from gquery import tuning
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
    """The kernel that combines values, or spans of ``step`` values, to the span of ``length`` values from each position on, cut
    off behind the last one."""
    return builtin_kernel(
        f"values:*{word} count:i64 step:i64 length:i64 made:*{word}",
        f"total = {word}(values[i])",
        "at = add_i64(i64(i), step)",
        "behind = min_i64(add_i64(i64(i), length), count)",
        "while lt_i64(at, behind):",
        f"    total = {op}_{word}(total, {word}(values[row_index(at)]))",
        "    at = add_i64(at, step)",
        f"store_{word}(made, i64(i), total)",
    )


@cache
def _taking(op: Op, word: str, element: str, levels: int) -> PositionKernel:
    """The kernel that combines the spans of each frame, the longest of ``levels`` that it has room for; the values themselves,
    where it is cut off to less than any span."""
    spans = [f"spans{level}" for level in range(levels)]
    lengths = [f"length{level}" for level in range(levels)]
    given = " ".join(f"{array}:*{word} {length}:i64" for array, length in zip(spans, lengths, strict=True))
    lines = [
        f"if lt_i64(size, {lengths[0]}):",
        "    while lt_i64(at, behind):",
        f"        total = {op}_{word}(total, {word}(values[row_index(at)]))",
        "        at = add_i64(at, 1)",
    ]
    for level, (array, length) in enumerate(zip(spans, lengths, strict=True)):
        is_longest = level == levels - 1
        lines += [
            "else:" if is_longest else f"elif lt_i64(size, {lengths[level + 1]}):",
            f"    final = sub_i64(behind, {length})",
            f"    total = {word}({array}[row_index(final)])",
            "    while lt_i64(at, final):",
            f"        total = {op}_{word}(total, {word}({array}[row_index(at)]))",
            f"        at = add_i64(at, {length})",
        ]
    return position_kernel(
        f"lows:*u32 highs:*u32 values:*{word} {given} other:{word} made:*{element}",
        "at = i64(lows[i])",
        "behind = i64(highs[i])",
        "size = sub_i64(behind, at)",
        "total = other",
        *lines,
        f"store_{element}(made, row, total)",
    )


def span_lengths(width: int, most_steps: int) -> list[int]:
    """Lengths of the spans that frames of ``width`` rows are made of, each some times the one before, so that no kernel combines
    more than about ``most_steps`` values for a row.

    >>> span_lengths(100, 64), span_lengths(100_000, 64)
    ([10], [46, 2116])
    """
    levels = 2
    while most_steps**levels < width:
        levels += 1
    root = isqrt(width) if levels == 2 else round(width ** (1 / levels))
    return [max(root, 1) ** level for level in range(1, levels)]


def combined_by_spans(
    values: Array, op: Op, width: int, frame: Ranges, work: Work, physical_type: PhysicalType | None
) -> Array:
    """By row what the values (by position) of its frame of so many rows, or fewer, combine to; see `combine.combined`."""
    o, device, word = work.ordered, work.device, word_of(values)
    levels: list[Array | int] = []
    below, step = values, 1
    lengths = span_lengths(width, tuning.window_functions.spans_steps)
    for length in lengths:
        spans: Array = device.empty(o.count, values.dtype)
        launch(_combining(op, word), o.count, spans, below, o.count, step, length, spans, workers=work.workers)
        levels += [spans, length]
        below, step = spans, length
    made: Array = device.empty(o.count, values.dtype if physical_type is None else physical_type.numpy)
    kernel = _taking(op, word, word if physical_type is None else physical_type.value, len(lengths))
    kernel.run(o, work.workers, frame.low, frame.high, values, *levels, identity(op, word), made)
    return made
