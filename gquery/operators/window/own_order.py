"""ORDER BY inside a call: the first, last and n-th value of a frame in an order of their own.

Every position has a rank in that order; rows which it does not tell apart are in the window's. The first row of a frame is the
one with the least rank, whatever the frame: ranks are combined as values are, and the least one found says which row it is. For
the n-th one, and for quantiles, a tree of ranks is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from gquery.device.array import Array
from gquery.expression.expr import Column, SortKey
from gquery.expression.windows import WindowCall
from gquery.functions.aggregate_record import AtEnd
from gquery.functions.windows import aggregate_by
from gquery.kernels.builtin import gathers, order
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.operators.base import Frame
from gquery.operators.sort_keys import sort_keys
from gquery.operators.window.combine import combined
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import Work
from gquery.operators.window.rank_tree import RankTree, rank_tree, select_rank
from gquery.operators.window.segment_scans import Op, identity

RankWord = Literal["u32", "i64"]
_RANKS = {
    word: builtin_kernel(f"found:*u32 ranks:*{word}", f"store_{word}(ranks, i64(found[i]), i64(i))")
    for word in get_args(RankWord)
}
_ABSENT = {
    word: builtin_kernel(
        f"present:*u8 other:i64 ranks:*{word}",
        "if eq_i64(i64(present[i]), 0):",
        f"    store_{word}(ranks, i64(i), other)",
    )
    for word in get_args(RankWord)
}


def own_ranks(keys: Sequence[SortKey], work: Work, word: RankWord = "u32") -> tuple[Array, Array]:
    """The positions in the order of the keys (uint32), and the rank of each position in it."""
    found = order.sort_order(own_keys(keys, work), workers=work.workers)
    return found, _ranks_of(found, word, work)


def own_peers(keys: Sequence[SortKey], work: Work) -> tuple[Array, Array, Array]:
    """The same (ranks: uint32); between them flags (uint8) of those positions, in their order, before which keys differ."""
    found, starts = order.sort_starts(own_keys(keys, work), work.workers)
    return found, starts.view(np.uint8), _ranks_of(found, "u32", work)


def own_keys(keys: Sequence[SortKey], work: Work) -> list[order.OrderKey]:
    """The keys of the positions."""
    o, device = work.ordered, work.device
    ids = {k.expr.id for k in keys if isinstance(k.expr, Column)}
    columns = {i: work.frame.columns[i] for i in ids}
    if o.rows is not None:
        columns = {i: gathers.take(c, o.rows, device) for i, c in columns.items()}
    return sort_keys(keys, Frame(columns, o.count), device, work.workers)


def _ranks_of(found: Array, word: RankWord, work: Work) -> Array:
    ranks = work.device.empty(found.size, np.uint32 if word == "u32" else np.int64)
    launch(_RANKS[word], found.size, ranks, found, ranks, workers=work.workers)
    return ranks


def hide_absent(ranks: Array, present: Array, other: int, work: Work) -> None:
    """Give rows that do not count another rank."""
    kernel = _ABSENT["u32" if ranks.dtype == np.uint32 else "i64"]
    launch(kernel, work.ordered.count, ranks, present, other, ranks, workers=work.workers)


def takes_last(call: WindowCall) -> bool:
    """Whether a call that takes the value of a row at the end of a frame takes the last one's."""
    by = aggregate_by(call)
    return by.last if isinstance(by, AtEnd) else call.function == "last_value"


def first_by_order(
    call: WindowCall, ranges: Sequence[Ranges], present: Array | None, work: Work
) -> tuple[Array, Array]:
    """By row the row with the first or last value of each frame in the call's order, and whether there is one (uint8)."""
    op: Op = "max" if takes_last(call) else "min"
    positions, ranks = own_ranks(call.order, work, "i64")
    if present is not None:
        hide_absent(ranks, present, int(identity(op, "i64")), work)
    return rows_of_ranks(combined(ranks, op, call.frame, ranges, work), positions, work)


def nth_by_order(
    call: WindowCall, amounts: Array, ranges: Sequence[Ranges], present: Array | None, work: Work
) -> tuple[Array, Array]:
    """The same of the n-th value (``amounts``: int64, by row)."""
    positions, tree = ordered_tree(call.order, present, work)
    return rows_of_ranks(select_rank(tree, amounts, ranges, work), positions, work)


def ordered_tree(keys: Sequence[SortKey], present: Array | None, work: Work) -> tuple[Array, RankTree]:
    """The positions in the order of the keys, and a tree of their ranks; rows that do not count have the last rank of all."""
    positions, ranks = own_ranks(keys, work)
    rows = work.ordered.count
    if present is not None:
        hide_absent(ranks, present, rows, work)
    return positions, rank_tree(ranks, rows, work)


def rows_of_ranks(found: Array, positions: Array, work: Work) -> tuple[Array, Array]:
    """The rows that have ranks (int64), by the positions in their order, and whether there is such a rank."""
    o, device = work.ordered, work.device
    rows, there = device.empty(o.count, np.uint32), device.empty(o.count, np.uint8)
    kernel = _FOUND[o.rows is not None]
    launch(kernel, o.count, found, found, positions, o.rows, o.count, rows, there, workers=work.workers)
    return rows, there


_FOUND = {
    ordered: builtin_kernel(
        "found:*i64 positions:*u32 rows:*u32 rows_in_all:i64 made:*u32 there:*u8",
        "rank = i64(found[i])",
        "ok = ge_i64(rank, 0) and lt_i64(rank, rows_in_all)",
        "row = i64(0)",
        "if ok:",
        "    at = i64(positions[row_index(rank)])",
        f"    row = {'i64(rows[row_index(at)])' if ordered else 'at'}",
        "store_u32(made, i64(i), row)",
        "store_bool(there, i64(i), ok)",
    )
    for ordered in (False, True)
}
