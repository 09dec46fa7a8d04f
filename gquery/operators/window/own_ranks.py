"""Ranks, lag and lead in an order of the call's own: of the rows of the frame, not of the partition.

A tree of the ranks of all rows in that order (`rank_tree`) says how many rows of a frame come before the row, or its peers, and
which row is so many further.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.expression.facts import UNBOUNDED
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.elements import added
from gquery.operators.ordered import groups_of
from gquery.operators.window.aggregates import difference
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.own_order import hide_absent, own_peers, rows_of_ranks
from gquery.operators.window.positions import PositionKernel, Work, position_kernel
from gquery.operators.window.rank_tree import count_below, rank_tree, select_rank


@cache
def _limits(of_peers: bool, is_end: bool) -> BuiltinKernel:
    """The kernel that says, by position, below which rank rows are counted: the row's own, or those of its peers."""
    number = f"add_i64(i64(numbers[i]), {int(is_end)})"
    limit = f"i64(begins[row_index({number})])" if of_peers else f"add_i64(i64(i), {int(is_end)})"
    return builtin_kernel("found:*u32 numbers:*u32 begins:*u32 made:*u32", f"store_u32(made, i64(found[i]), {limit})")


_SHARES = {
    "percent_rank": builtin_kernel(
        "counts:*i64 sizes:*i64 made:*f64",
        "others = max_i64(sub_i64(i64(sizes[i]), 1), 1)",
        "store_f64(made, i64(i), div_f64(f64(i64(counts[i])), f64(others)))",
    ),
    "cume_dist": builtin_kernel(
        "counts:*i64 sizes:*i64 made:*f64",
        "store_f64(made, i64(i), div_f64(f64(i64(counts[i])), f64(max_i64(i64(sizes[i]), 1))))",
    ),
}


def own_rank_values(call: WindowCall, work: Work) -> Array:
    """The values of a rank function by row: which row of its frame it would be in the call's order."""
    rows, device = work.ordered.count, work.device
    found, starts, ranks = own_peers(call.order, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    limits = _limits_of(found, starts, call.function != "row_number", call.function == "cume_dist", work)
    counts = count_below(rank_tree(ranks, rows, work), limits, ranges, work)
    if call.function not in _SHARES:
        return added(counts, 1)
    made: Array = device.empty(rows, np.float64)
    sizes = difference(None, ranges, work)
    launch(_SHARES[call.function], rows, made, counts, sizes, made, workers=work.workers)
    return made


def _limits_of(found: Array, starts: Array, of_peers: bool, is_end: bool, work: Work) -> Array:
    rows, device = work.ordered.count, work.device
    limits: Array = device.empty(rows, np.uint32)
    peers = groups_of(starts, rows, device, work.workers)
    kernel = _limits(of_peers, is_end)
    launch(kernel, rows, limits, found, peers.numbers, peers.starts, limits, workers=work.workers)
    return limits


@cache
def _amounts(is_lead: bool, by_row: bool) -> PositionKernel:
    amount = "i64(offsets[row_index(row)])" if by_row else "offset"
    move = "add_i64(i64(before[row_index(row)]), away)"
    if not is_lead:
        move = "sub_i64(add_i64(i64(before[row_index(row)]), 1), away)"
    return position_kernel(
        "before:*i64 offset:i64 offsets:*i64 made:*i64",
        f"away = max_i64(min_i64({amount}, {UNBOUNDED}), {-UNBOUNDED})",
        f"store_i64(made, row, {move})",
    )


def shifted_by_order(
    call: WindowCall, offset: int, offsets: Array | None, present: Array | None, work: Work
) -> tuple[Array, Array]:
    """By row the row of its frame that is so many further in the call's order (``offsets``: int64, by row), and whether there is
    one."""
    rows, is_lead = work.ordered.count, call.function == "lead"
    found, starts, ranks = own_peers(call.order, work)
    limits = _limits_of(found, starts, False, is_lead, work)
    if present is not None:
        hide_absent(ranks, present, rows, work)
    tree = rank_tree(ranks, rows, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    amounts = work.device.empty(rows, np.int64)
    before = count_below(tree, limits, ranges, work)
    _amounts(is_lead, offsets is not None).run(work.ordered, work.workers, before, offset, offsets, amounts)
    return rows_of_ranks(select_rank(tree, amounts, ranges, work), found, work)
