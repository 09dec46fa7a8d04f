"""Quantiles of frames whose ends move on, on a CPU: a thread keeps the ranks of a frame's values as a set, and a place in it.

Every value has a rank among all. When a frame moves on, the ranks of the rows that it loses leave the set, and those of the rows
that it gains join it (`primitives.bit_sets`). The place is the rank that is wanted, and it is known how many members are below. A
row that comes or goes changes how many are, or how many should be, by one or two, and the place moves by as many members. So a
row costs the same however long frames are, and all values are sorted once.

Rows are divided into as many tiles as there are threads: each has a set, of a bit a row of the whole column, and begins with
all rows of its first frame.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from gquery.device.array import Array
from gquery.expression.expr import Literal, SortKey
from gquery.expression.facts import INT64_BITS
from gquery.expression.windows import WindowFrame
from gquery.kernels.builtin import gathers
from gquery.operators.quantiles import float_of, positions_between, positions_of
from gquery.operators.window.frames import RowEnds, frame_ranges, row_ends
from gquery.operators.window.own_order import hide_absent, own_ranks
from gquery.operators.window.positions import (
    NEXT_PARTITION,
    PARTITION_OF_TILE,
    PositionKernel,
    Work,
    constant_of,
    tile_kernel,
)


class Chosen(NamedTuple):
    """By row, the rows (uint32) of the values that a quantile lies between, how far it is from the first to the second (float64;
    None: it is the first), and whether the frame has a value (uint8)."""

    low: Array
    high: Array
    weight: Array | None
    there: Array


def moves_on(frame: WindowFrame, work: Work) -> bool:
    """Whether frames follow each other on a CPU so that neither end goes back, but for few rows, and nothing is left out."""
    bounds = (frame.start, frame.end)
    if not work.device.is_cpu or frame.exclude != "no others":
        return False
    return not any(b.is_value or (b.amount is not None and constant_of(b.amount) is None) for b in bounds)


def chosen_rows(
    keys: tuple[SortKey, ...], present: Array | None, frame: WindowFrame, fraction: Literal, between: bool, work: Work
) -> Chosen:
    """Where the quantile of each frame lies among the values, in the order of the keys, that are ``present``."""
    o, device = work.ordered, work.device
    positions, ranks = own_ranks(keys, work)
    if present is not None:
        hide_absent(ranks, present, o.count, work)
    found = positions if o.rows is None else gathers.gather(o.rows, positions)
    ends = row_ends(frame, work)
    given: tuple[Array | None, Array | None, int, int]
    if ends is None:
        ranges = frame_ranges(frame, work)
        longest = int((ranges.high - ranges.low).max(initial=0))
        given = (*ranges, 0, 0)
    else:
        longest, given = ends.longest(o.count), (None, None, ends.start_amount, ends.end_amount)
    numbers_by_count = _wanted_numbers(fraction, between, longest)
    tile = max(-(-o.count // work.workers), 1)
    words = max(-(-o.count // INT64_BITS), 1)
    room = _words_of_set(words)
    sets = device.zeros(-(-o.count // tile) * room, np.int64)
    low, there = device.empty(o.count, np.uint32), device.empty(o.count, np.uint8)
    high = device.empty(o.count, np.uint32) if between else low
    weight = device.empty(o.count, np.float64) if between else None
    kernel = _moving(None if ends is None else (ends.start, ends.end), between)
    numbers = (o.partitions.numbers, o.partitions.starts, *given)
    kernel.run_tiles(
        o,
        work.workers,
        tile,
        ranks,
        *numbers,
        room,
        words,
        sets,
        *numbers_by_count,
        found,
        low,
        high,
        weight,
        there,
    )
    return Chosen(high, low, weight, there) if float_of(fraction) < 0 else Chosen(low, high, weight, there)


def _wanted_numbers(fraction: Literal, between: bool, longest: int) -> tuple[Array, Array, Array]:
    """By the number of a frame's values: the lesser and the greater place next to the quantile, and how far it is from the one
    that comes first to the other."""
    counts = np.arange(longest + 1, dtype=np.int64)
    if not between:
        only = positions_of(fraction, counts)
        return only, only, np.zeros(0)
    low, high, weight = positions_between(fraction, counts)
    return np.minimum(low, high), np.maximum(low, high), weight


def _words_of_set(words: int) -> int:
    total = words
    while words > 1:
        words = -(-words // INT64_BITS)
        total += words
    return total


def _changing(position: str, is_new: bool) -> list[str]:
    """Lines by which the row at a position joins the set, or leaves it."""
    call, count = ("set_add", "add_i64") if is_new else ("set_remove", "sub_i64")
    return [
        f"    rank = i64(ranks[row_index({position})])",
        "    if lt_i64(rank, rows_in_all):",
        f"        {call}(sets, base, words, rank)",
        f"        count = {count}(count, 1)",
        "        if lt_i64(rank, place):",
        f"            below = {count}(below, 1)",
    ]


@cache
def _moving(kinds: tuple[str, str] | None, between: bool) -> PositionKernel:
    """The kernel that goes from frame to frame of a tile; ``place`` is a rank, ``below`` so many members have lesser ones."""
    before = [*PARTITION_OF_TILE, "base = mul_i64(i64(i), room)"]
    before += [f"{name} = i64(0)" for name in ("first", "last", "count", "below", "place")]
    find = (
        RowEnds(*kinds, 0, 0).lines if kinds else ("low = i64(lows[row_index(at)])", "high = i64(highs[row_index(at)])")
    )
    lines = [*NEXT_PARTITION, *find, "high = max_i64(low, high)"]
    lines += ["if ge_i64(low, last) or ge_i64(first, high):", "    while lt_i64(first, last):"]
    lines += [f"    {line}" for line in (*_changing("first", False), "    first = add_i64(first, 1)")]
    lines += ["    first = low", "    last = low"]
    lines += ["while lt_i64(low, first):", "    first = sub_i64(first, 1)", *_changing("first", True)]
    lines += ["while lt_i64(last, high):", *_changing("last", True), "    last = add_i64(last, 1)"]
    lines += ["while lt_i64(high, last):", "    last = sub_i64(last, 1)", *_changing("last", False)]
    lines += ["while lt_i64(first, low):", *_changing("first", False), "    first = add_i64(first, 1)"]
    lines += [
        "chosen = i64(0)",
        *(["other = i64(0)"] * between),
        "if gt_i64(count, 0):",
        "    wanted = i64(lesser[row_index(count)])",
        "    while gt_i64(below, wanted):",
        "        place = set_last(sets, base, words, sub_i64(place, 1))",
        "        below = sub_i64(below, 1)",
        "    place = set_next(sets, base, words, place)",
        "    while lt_i64(below, wanted):",
        "        place = set_next(sets, base, words, add_i64(place, 1))",
        "        below = add_i64(below, 1)",
        "    chosen = i64(found[row_index(place)])",
    ]
    if between:
        lines += [
            "    other = chosen",
            "    if gt_i64(i64(greater[row_index(count)]), wanted):",
            "        above = set_next(sets, base, words, add_i64(place, 1))",
            "        other = i64(found[row_index(above)])",
            "store_u32(second, row, other)",
            "store_f64(weight, row, f64(weights[row_index(count)]))",
        ]
    lines += ["store_u32(made, row, chosen)", "store_bool(there, row, gt_i64(count, 0))"]
    return tile_kernel(
        "ranks:*u32 partitions:*u32 begins:*u32 lows:*u32 highs:*u32 back:i64 forth:i64 room:i64 words:i64 sets:*i64 "
        "lesser:*i64 greater:*i64 weights:*f64 found:*u32 made:*u32 second:*u32 weight:*f64 there:*u8",
        before,
        *lines,
    )
