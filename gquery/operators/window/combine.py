"""What the values of each frame combine to, by the cheapest way that its form allows, and never by a difference.

- A frame that begins with its partition ends somewhere in a scan of the partition; one that ends with it, in a scan from behind.
- Frames of so many rows lie in two blocks of as many positions: what the first one's values combine to from the frame's first row
  on, and the second one's up to its last.
- Where values may count twice, a GPU takes such frames from spans of values (`spans`).
- Of any others a tree is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.expression.windows import FrameBound, WindowFrame
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PARTITION, PositionKernel, Work, constant_of, position_kernel
from gquery.operators.window.segment_scans import Op, identity, segment_scan, word_of
from gquery.operators.window.spans import REPEATABLE, combined_by_spans
from gquery.operators.window.trees import combine_ranges


def combined(
    values: Array,
    op: Op,
    frame: WindowFrame,
    ranges: Sequence[Ranges],
    work: Work,
    physical_type: PhysicalType | None = None,
) -> Array:
    """By row what the values (by position, int64 or float64) in its ranges combine to; of none, what changes nothing. Where it
    is said that all results fit a ``physical_type``, they may come as that."""
    form = form_of(frame, work)
    if form is None:
        return combine_ranges(values, op, ranges, work)
    (only,) = ranges
    if isinstance(form, int):
        if op in REPEATABLE and form <= _widest(work):
            return combined_by_spans(values, op, form, only, work, physical_type)
        return _from_blocks(values, op, form, only, work)
    return _from_scan(values, op, only, form == "from behind", work)


def form_of(frame: WindowFrame, work: Work) -> Literal["from before", "from behind"] | int | None:
    """Whether frames begin with their partition, or end with it, or how many rows they have; None for any others, and for those
    of so few rows that each is looked at."""
    if frame.exclude != "no others":
        return None
    if frame.start.kind == "unbounded preceding":
        return "from before"
    if frame.end.kind == "unbounded following":
        return "from behind"
    width = _width(frame)
    is_wide = width is not None and tuning.window_functions.least_width <= width < work.ordered.count
    return width if is_wide else None


def _widest(work: Work) -> int:
    """Rows of a frame up to which it is made of spans."""
    limits = tuning.window_functions
    return limits.spans_width_cpu if work.device.is_cpu else limits.spans_width


@cache
def _reading(word: str, backward: bool) -> PositionKernel:
    position = "low" if backward else "sub_i64(high, 1)"
    return position_kernel(
        f"lows:*u32 highs:*u32 scan:*{word} other:{word} made:*{word}",
        "low = i64(lows[i])",
        "high = i64(highs[i])",
        "total = other",
        "if lt_i64(low, high):",
        f"    total = {word}(scan[row_index({position})])",
        f"store_{word}(made, row, total)",
    )


def _from_scan(values: Array, op: Op, frame: Ranges, backward: bool, work: Work) -> Array:
    o, word = work.ordered, word_of(values)
    scan = segment_scan(values, partition_flags(work), op, work.device, work.workers, backward)
    made: Array = work.device.empty(o.count, values.dtype)
    _reading(word, backward).run(o, work.workers, frame.low, frame.high, scan, identity(op, word), made)
    return made


def partition_flags(work: Work) -> Array:
    """Flags of the positions with which partitions begin."""
    o = work.ordered
    return work.device.zeros(o.count, np.uint8) if o.partition_flags is None else o.partition_flags


def _width(frame: WindowFrame) -> int | None:
    """How many rows a frame has that is not cut off by its partition; None where that differs."""
    if frame.unit != "rows":
        return None
    first, last = _away(frame.start), _away(frame.end)
    return None if first is None or last is None else last - first + 1


def _away(bound: FrameBound) -> int | None:
    """How many rows a bound is behind the current one; None where that differs."""
    if bound.kind == "current row":
        return 0
    amount = None if bound.amount is None else constant_of(bound.amount)
    if amount is None or amount.value is None:
        return None
    return int(-amount.value if bound.kind == "preceding" else amount.value)


_BLOCKS = position_kernel(
    "flags:*u8 width:i64 made:*u8",
    "begins = eq_i64(remainder_i64(i64(i), width), 0) or ne_i64(i64(flags[i]), 0)",
    "store_bool(made, i64(i), begins)",
)


def block_flags(width: int, work: Work) -> Array:
    """Flags (uint8) of the positions with which partitions, or blocks of so many positions, begin."""
    flags: Array = work.device.empty(work.ordered.count, np.uint8)
    _BLOCKS.run(work.ordered, work.workers, partition_flags(work), width, flags)
    return flags


@cache
def _joining(op: Op, word: str) -> PositionKernel:
    """A frame in two blocks is the end of one and the beginning of the other. One in a single block is whole, or cut off by its
    partition: at its beginning, where the block's scan begins anew, or at its end, where the scan from behind does."""
    return position_kernel(
        f"partitions:*u32 begins:*u32 lows:*u32 highs:*u32 before:*{word} behind:*{word} width:i64 other:{word} made:*{word}",
        *PARTITION,
        "low = i64(lows[i])",
        "last = sub_i64(i64(highs[i]), 1)",
        "total = other",
        "if le_i64(low, last):",
        "    if lt_i64(quotient_i64(low, width), quotient_i64(last, width)):",
        f"        total = {op}_{word}({word}(behind[row_index(low)]), {word}(before[row_index(last)]))",
        "    elif eq_i64(low, begin) or eq_i64(remainder_i64(low, width), 0):",
        f"        total = {word}(before[row_index(last)])",
        "    else:",
        f"        total = {word}(behind[row_index(low)])",
        f"store_{word}(made, row, total)",
    )


def _from_blocks(values: Array, op: Op, width: int, frame: Ranges, work: Work) -> Array:
    o, device, word = work.ordered, work.device, word_of(values)
    flags = block_flags(width, work)
    before = segment_scan(values, flags, op, device, work.workers)
    behind = segment_scan(values, flags, op, device, work.workers, backward=True)
    made: Array = device.empty(o.count, values.dtype)
    numbers = (o.partitions.numbers, o.partitions.starts)
    ends = (frame.low, frame.high, before, behind)
    _joining(op, word).run(o, work.workers, *numbers, *ends, width, identity(op, word), made)
    return made
