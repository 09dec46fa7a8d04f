"""Quantiles over frames: a tree of the ranks of all values says which is the n-th least of a frame, however long it is.

On a CPU frames that move on are gone through one after another instead (`sliding_quantiles`).
"""

from __future__ import annotations

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.expr import Column, Literal, SortKey
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin.elements import added, are_positive
from gquery.operators.quantiles import Sides, interpolated_rows, positions_between, positions_of
from gquery.operators.window.aggregates import difference
from gquery.operators.window.distinct import counted_once
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.own_order import ordered_tree, rows_of_ranks
from gquery.operators.window.positions import Work, prefix
from gquery.operators.window.rank_tree import select_rank
from gquery.operators.window.sliding_quantiles import chosen_rows, moves_on
from gquery.operators.window.taking import take_or_null
from gquery.planner.physical import Stored


def quantile_column(stored: Stored, call: WindowCall, between: bool, work: Work) -> ColumnData:
    """A quantile of each frame, a value or what lies between two; NULL where it has no value."""
    argument, fraction = call.args
    assert isinstance(argument, Column) and isinstance(fraction, Literal)
    column, device = work.column(argument), work.device
    present = counted_once(column, call, work)
    keys = call.order or (SortKey(argument),)
    if column.length and moves_on(call.frame, work):
        chosen = chosen_rows(keys, present, call.frame, fraction, between, work)
        if chosen.weight is None:
            return take_or_null(column, chosen.low, chosen.there, stored, work)
        sides = Sides(chosen.low, chosen.high, chosen.weight, chosen.there)
        return interpolated_rows(column, sides, stored, device, work.workers)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    counts = difference(None if present is None else prefix(present, device), ranges, work)
    positions, tree = ordered_tree(keys, present, work)

    def rows_of(numbers: Array) -> Array:
        return rows_of_ranks(select_rank(tree, added(numbers, 1), ranges, work), positions, work)[0]

    there = are_positive(counts)
    if not between or column.length == 0:
        return take_or_null(column, rows_of(positions_of(fraction, counts)), there, stored, work)
    low, high, weight = positions_between(fraction, counts)
    return interpolated_rows(column, Sides(rows_of(low), rows_of(high), weight, there), stored, device, work.workers)
