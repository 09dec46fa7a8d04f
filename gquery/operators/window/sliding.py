"""Frames of which neither end moves back, on a CPU: a thread takes them one after another, and combines each value twice.

Nothing is subtracted. The rows of a frame are two runs, one behind the other: of the first it is known what its values combine to
from each on, and of the second what all combine to so far.

    frame            [a b c d e]       from c on: cde, from d on: de, from e on: e      behind them: nothing
    the next ones      [b c d e f]     bcde with f
                           [d e f g]   de with fg
                                 [g h] the first run is used up: from g on: g, and so on backward, becomes the first run

So a row costs the same however long frames are, and values are read in their order. Rows are divided into tiles, which threads
take: each begins with the values of its first frame. What is known of a first run lies in a ring as long as the longest frame,
which stays in the cache for most.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowFrame
from gquery.operators.base import make_column
from gquery.operators.window.frames import RowEnds, frame_ranges, row_ends
from gquery.operators.window.positions import (
    NEXT_PARTITION,
    PARTITION_OF_TILE,
    PositionKernel,
    Work,
    constant_of,
    tile_kernel,
)
from gquery.operators.window.results import Form, value_lines
from gquery.operators.window.segment_scans import Op, identity, word_of
from gquery.planner.physical import Stored
from gquery.runtime.tuples import NamedTuple


class _Shape(NamedTuple):
    """What the kernel's text depends on: how values are combined, how frames are known, whether rows without a value are among
    them, and what is stored of a frame."""

    op: Op
    word: str
    ends: tuple[str, str] | None
    masked: bool
    form: Form
    element: str
    nullable: bool


def slides(frame: WindowFrame, work: Work) -> bool:
    """Whether no end of such frames moves back, nothing is left out of them, and no scan of the partition has what they want."""
    bounds = (frame.start, frame.end)
    if not work.device.is_cpu or frame.exclude != "no others":
        return False
    if any(b.is_value or (b.amount is not None and constant_of(b.amount) is None) for b in bounds):
        return False
    return frame.start.kind != "unbounded preceding" and frame.end.kind != "unbounded following"


def sliding_column(
    stored: Stored, values: Array, present: Array | None, frame: WindowFrame, how: tuple[Op, Form, float], work: Work
) -> ColumnData:
    """What the values (by position, int64 or float64) of each frame combine to that are ``present``; NULL of none. ``how``: by
    which operation, what is stored of it, and for a mean what it is divided by."""
    o, device, word, (op, form, power) = work.ordered, work.device, word_of(values), how
    element = "u8" if stored.physical_type is PhysicalType.BOOL else stored.physical_type.value
    nullable = stored.properties.nullable
    ends = row_ends(frame, work)
    given: tuple[Array | None, Array | None, int, int]
    if ends is None:
        ranges = frame_ranges(frame, work)
        longest = int((ranges.high - ranges.low).max(initial=1))
        given = (*ranges, 0, 0)
    else:
        longest, given = ends.longest(o.count), (None, None, ends.start_amount, ends.end_amount)
    ring = 1 << max(longest - 1, 1).bit_length()
    tile = _tile_rows(o.count, ring, work.workers)
    known = device.empty(-(-o.count // tile) * ring, values.dtype)
    made = device.empty(o.count, stored.physical_type.numpy)
    valid = device.empty(o.count, np.uint8) if nullable else None
    kinds = None if ends is None else (ends.start, ends.end)
    kernel = _sliding(_Shape(op, word, kinds, present is not None, form, element, nullable))
    numbers = (o.partitions.numbers, o.partitions.starts, *given)
    limits = (ring, identity(op, word), power)
    kernel.run_tiles(o, work.workers, tile, values, present, *numbers, *limits, known, made, valid)
    return make_column(stored.properties, stored.physical_type, made, valid, o.count, device)


def _tile_rows(rows: int, ring: int, workers: int) -> int:
    """Rows of a tile: several frames, as each tile goes through one more, and no more than a thread's share."""
    limits = tuning.window_functions
    if workers == 1:
        return max(rows, 1)
    return max(limits.sliding_tile, min(limits.frames_a_tile * ring, -(-rows // workers)))


def _moving(s: _Shape) -> list[str]:
    """Lines that go on to the frame from ``low`` to before ``high``: ``middle`` is the end of its first run, ``total`` what the
    second one's values combine to, and ``count`` how many values it has."""
    value = f"{s.word}(values[row_index({{at}})])"
    lines = [
        "if ge_i64(low, last) or lt_i64(low, first) or lt_i64(high, last):",  # no row of the frame before is in it
        "    first = low",
        "    middle = low",
        "    last = low",
        "    total = other",
        "    present_in = i64(0)",
        "elif ge_i64(low, middle):",
        "    total = other",
        "    middle = last",
        "    back_to = last",
        "    while gt_i64(back_to, low):",
        "        back_to = sub_i64(back_to, 1)",
        f"        total = {s.op}_{s.word}({value.format(at='back_to')}, total)",
        f"        store_{s.word}(known, add_i64(base, and_i64(back_to, sub_i64(ring, 1))), total)",
        "    total = other",
        "while lt_i64(last, high):",
        f"    total = {s.op}_{s.word}(total, {value.format(at='last')})",
        *(["    present_in = add_i64(present_in, i64(present[row_index(last)]))"] * s.masked),
        "    last = add_i64(last, 1)",
    ]
    if not s.masked:
        return [*lines, "first = low", "count = sub_i64(high, low)"]
    return [
        *lines,
        "while lt_i64(first, low):",
        "    present_in = sub_i64(present_in, i64(present[row_index(first)]))",
        "    first = add_i64(first, 1)",
        "count = present_in",
    ]


@cache
def _sliding(s: _Shape) -> PositionKernel:
    before = [*PARTITION_OF_TILE, "base = mul_i64(i64(i), ring)", "first = i64(-1)", "middle = i64(0)", "last = i64(0)"]
    before += ["total = other", "present_in = i64(0)"]
    find = (
        RowEnds(*s.ends, 0, 0).lines
        if s.ends
        else ("low = i64(lows[row_index(at)])", "high = i64(highs[row_index(at)])")
    )
    lines = [*NEXT_PARTITION, *find, "high = max_i64(low, high)", *_moving(s)]
    lines += [
        "found = total",
        "if lt_i64(low, middle):",
        f"    held = {s.word}(known[row_index(add_i64(base, and_i64(low, sub_i64(ring, 1))))])",
        f"    found = {s.op}_{s.word}(held, total)",
    ]
    lines += value_lines(s.form, "found", s.nullable)
    lines += ["store_bool(valid, row, gt_i64(count, 0))"] * s.nullable
    lines.append(f"store_{s.element}(made, row, value)")
    return tile_kernel(
        f"values:*{s.word} present:*u8 partitions:*u32 begins:*u32 lows:*u32 highs:*u32 back:i64 forth:i64 "
        f"ring:i64 other:{s.word} power:f64 known:*{s.word} made:*{s.element} valid:*u8",
        before,
        *lines,
    )
