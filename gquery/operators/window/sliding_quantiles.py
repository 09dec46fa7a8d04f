"""Quantiles of frames whose ends move on, on a CPU: a thread keeps the ranks of a frame's values as a set, and a place in it.

Every value has a rank among all. When a frame moves on, the ranks of the rows that it loses leave the set, and those of the rows
that it gains join it (`primitives.bit_sets`). The place is the rank that is wanted, and it is known how many members are below. A
row that comes or goes changes how many are, or how many should be, by one or two, and the place moves by as many members. So a
row costs the same however long frames are, and all values are sorted once.

Rows are divided into tiles, each of which begins with all rows of its first frame. Where these are few, tiles are short, and the
rank of a row is that among those that the tile's frames reach (`tile_orders`): the set, which has so many bits, and all that is
known of these rows stay in a thread's cache. Else all rows are sorted, there are as many tiles as threads, and each has a set of
a bit a row of the whole column.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.expression.expr import Literal, SortKey
from gquery.expression.facts import INT64_BITS
from gquery.expression.windows import WindowFrame
from gquery.kernels.bindings import Argument
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
from gquery.operators.window.tile_orders import TileOrders, tile_orders
from gquery.runtime.tuples import NamedTuple


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
    ends = row_ends(frame, work)
    if ends is None:
        ranges = frame_ranges(frame, work)
        longest, amounts = int((ranges.high - ranges.low).max(initial=0)), (0, 0)
    else:
        ranges, longest, amounts = None, ends.longest(o.count), (ends.start_amount, ends.end_amount)
    orders = tile_orders(keys, ends, ranges, longest, work)
    if orders is None:
        tile, reached, known = max(-(-o.count // work.workers), 1), o.count, _of_all(keys, present, work)
    else:
        tile, reached, known = orders.tile, orders.size, _of_tiles(orders, present, work)
    words, tiles = max(-(-reached // INT64_BITS), 1), -(-o.count // tile)
    room = _words_of_set(words)
    low, there = device.empty(o.count, np.uint32), device.empty(o.count, np.uint8)
    high = device.empty(o.count, np.uint32) if between else low
    weight = device.empty(o.count, np.float64) if between else None
    form = _Form(None if ends is None else (ends.start, ends.end), between, orders is not None, present is not None)
    _moving(form).run_tiles(
        o,
        work.workers,
        tile,
        *known,
        *(o.partitions.numbers, o.partitions.starts, *(ranges or (None, None)), *amounts),
        *(room, words, device.zeros(tiles * room, np.int64)),
        *_wanted_numbers(fraction, between, longest),
        *(low, high, weight, there),
    )
    return Chosen(high, low, weight, there) if float_of(fraction) < 0 else Chosen(low, high, weight, there)


_Known = tuple[Argument, ...]
"""Of rows and ranks: ranks, the rows that have them, words of tiles, those that count, and the measures of tiles."""


def _of_all(keys: tuple[SortKey, ...], present: Array | None, work: Work) -> _Known:
    """Ranks of all rows by position; those of rows that do not count are beyond the last."""
    o = work.ordered
    positions, ranks = own_ranks(keys, work)
    if present is not None:
        hide_absent(ranks, present, o.count, work)
    found = positions if o.rows is None else gathers.gather(o.rows, positions)
    return ranks, found, None, None, None, None, 0, 0


def _of_tiles(orders: TileOrders, present: Array | None, work: Work) -> _Known:
    """Ranks of each tile, which its thread writes."""
    ranks = work.device.empty(orders.words.size, np.uint32)
    mask = (1 << orders.position_bits) - 1
    return ranks, None, orders.words, present, orders.origins, orders.ends, orders.size, mask


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


class _Form(NamedTuple):
    """What the kernel's text depends on: how frames are known, whether two values are wanted, whether ranks are those of tiles,
    and whether rows that do not count are among them."""

    kinds: tuple[str, str] | None
    between: bool
    of_tiles: bool
    masked: bool

    def row_of(self, rank: str, name: str, is_ordered: bool) -> list[str]:
        """Lines that find the row of a rank in a variable of that name."""
        if not self.of_tiles:
            return [f"{name} = i64(found[row_index({rank})])"]
        position = f"add_i64(origin, and_i64(i64(words_in_order[row_index(add_i64(corner, {rank}))]), mask))"
        return [f"{name} = i64(rows[row_index({position})])" if is_ordered else f"{name} = {position}"]

    def changing(self, position: str, is_new: bool) -> list[str]:
        """Lines by which the row at a position joins the set, or leaves it."""
        call, count = ("set_add", "add_i64") if is_new else ("set_remove", "sub_i64")
        at = f"add_i64(corner, sub_i64({position}, origin))" if self.of_tiles else position
        lines = [
            f"{call}(sets, base, words, rank)",
            f"count = {count}(count, 1)",
            "if lt_i64(rank, place):",
            f"    below = {count}(below, 1)",
        ]
        if self.masked:
            counts = f"ne_i64(i64(present[row_index({position})]), 0)" if self.of_tiles else "lt_i64(rank, rows_in_all)"
            lines = [f"if {counts}:", *("    " + line for line in lines)]
        return [f"    rank = i64(ranks[row_index({at})])", *("    " + line for line in lines)]


_RANKS_OF_TILE = (
    "corner = mul_i64(i64(i), size)",
    "origin = i64(origins[row_index(i64(i))])",
    "held = sub_i64(i64(reached[row_index(i64(i))]), origin)",
    "rank = i64(0)",
    "while lt_i64(rank, held):",
    "    behind_origin = and_i64(i64(words_in_order[row_index(add_i64(corner, rank))]), mask)",
    "    store_u32(ranks, add_i64(corner, behind_origin), rank)",
    "    rank = add_i64(rank, 1)",
)


@cache
def _moving(form: _Form) -> PositionKernel:
    """The kernel that goes from frame to frame of a tile; ``place`` is a rank, ``below`` so many members have lesser ones."""
    before = [*PARTITION_OF_TILE, "base = mul_i64(i64(i), room)", *(_RANKS_OF_TILE if form.of_tiles else ())]
    before += [f"{name} = i64(0)" for name in ("first", "last", "count", "below", "place")]
    find = ("low = i64(lows[row_index(at)])", "high = i64(highs[row_index(at)])")
    if form.kinds is not None:
        find = RowEnds(*form.kinds, 0, 0).lines
    changing = form.changing
    lines = [*NEXT_PARTITION, *find, "high = max_i64(low, high)"]
    lines += ["if ge_i64(low, last) or ge_i64(first, high):", "    while lt_i64(first, last):"]
    lines += [f"    {line}" for line in (*changing("first", False), "    first = add_i64(first, 1)")]
    lines += ["    first = low", "    last = low"]
    lines += ["while lt_i64(low, first):", "    first = sub_i64(first, 1)", *changing("first", True)]
    lines += ["while lt_i64(last, high):", *changing("last", True), "    last = add_i64(last, 1)"]
    lines += ["while lt_i64(high, last):", "    last = sub_i64(last, 1)", *changing("last", False)]
    lines += ["while lt_i64(first, low):", *changing("first", False), "    first = add_i64(first, 1)"]

    parameters = (
        "ranks:*u32 found:*u32 words_in_order:*u64 present:*u8 origins:*i64 reached:*i64 size:i64 mask:i64 partitions:*u32 "
        "begins:*u32 lows:*u32 highs:*u32 back:i64 forth:i64 room:i64 words:i64 sets:*i64 "
        "lesser:*i64 greater:*i64 weights:*f64 made:*u32 second:*u32 weight:*f64 there:*u8"
    )
    ordered, plain = (tile_kernel(parameters, before, *lines, *_choosing(form, is_in)) for is_in in (True, False))
    return PositionKernel(ordered.ordered, plain.plain)


def _choosing(form: _Form, is_ordered: bool) -> list[str]:
    """Lines that move the place to the rank that is wanted, and store the rows of the quantile."""
    lines = [
        "chosen = i64(0)",
        *(["other = i64(0)"] * form.between),
        "if gt_i64(count, 0):",
        "    wanted = i64(lesser[row_index(count)])",
        "    while gt_i64(below, wanted):",
        "        place = set_last(sets, base, words, sub_i64(place, 1))",
        "        below = sub_i64(below, 1)",
        "    place = set_next(sets, base, words, place)",
        "    while lt_i64(below, wanted):",
        "        place = set_next(sets, base, words, add_i64(place, 1))",
        "        below = add_i64(below, 1)",
        *("    " + line for line in form.row_of("place", "chosen", is_ordered)),
    ]
    if form.between:
        lines += [
            "    other = chosen",
            "    if gt_i64(i64(greater[row_index(count)]), wanted):",
            "        above = set_next(sets, base, words, add_i64(place, 1))",
            *("        " + line for line in form.row_of("above", "other", is_ordered)),
            "store_u32(second, row, other)",
            "store_f64(weight, row, f64(weights[row_index(count)]))",
        ]
    return [*lines, "store_u32(made, row, chosen)", "store_bool(there, row, gt_i64(count, 0))"]
