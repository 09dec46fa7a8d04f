"""One node of window functions: the rows in order, each call's values by row, and the columns that hold them."""

from __future__ import annotations

from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.errors import NotSupportedError
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin import gathers
from gquery.operators.base import Frame
from gquery.operators.leading_rows import leading_rows
from gquery.operators.ordered import order_frame
from gquery.operators.window.aggregates import AGGREGATES, aggregate_column
from gquery.operators.window.extremes import EXTREMES, extreme_column
from gquery.operators.window.joined_texts import joined_column
from gquery.operators.window.listed_values import listed_column
from gquery.operators.window.modes import mode_column
from gquery.operators.window.moments import MOMENTS, moment_column
from gquery.operators.window.own_ranks import RANKED, own_rank_values
from gquery.operators.window.positions import Work
from gquery.operators.window.quantiles import QUANTILES, quantile_column
from gquery.operators.window.ranks import RANKS, rank_values
from gquery.operators.window.reductions import REDUCTIONS, reduction_column
from gquery.operators.window.results import column_of
from gquery.operators.window.values import VALUES, value_column
from gquery.planner.physical import Stored, WindowRows


def run_window(work: WindowRows, frame: Frame, device: Device, workers: int = 1) -> Frame:
    """The frame with the values of the calls, its rows in their order, on ``device``; so many threads of a CPU work at it. Where
    the first rows of partitions are enough, few others are in it."""
    if work.first is not None and work.order:
        found = leading_rows(frame, work.partition, work.order[0], work.first, device, workers)
        if found is not None:
            kept = {i: gathers.take(c, found, device) for i, c in frame.columns.items()}
            frame = Frame(kept, int(found.size), frame.rank_values)
    ordered = order_frame(frame, work.partition, work.order, device, workers)
    shared = Work(frame, ordered, work.order, device, workers)
    made = {stored.column.id: _column(stored, call, shared) for stored, call in work.calls}
    columns = {
        s.column.id: made[s.column.id] if s.column.id in made else frame.columns[s.column.id] for s in work.columns
    }
    return Frame(columns, frame.rows, frame.rank_values)


def _column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    if call.function in VALUES:
        return value_column(stored, call, work)
    if call.function in EXTREMES:
        return extreme_column(stored, call, work)
    if call.function in QUANTILES:
        return quantile_column(stored, call, work)
    if call.function in MOMENTS:
        return moment_column(stored, call, work)
    if call.function in REDUCTIONS:
        return reduction_column(stored, call, work)
    if call.function == "mode":
        return mode_column(stored, call, work)
    if call.function == "list":
        return listed_column(stored, call, work)
    if call.function == "string_agg":
        return joined_column(stored, call, work)
    if call.function in AGGREGATES:
        return aggregate_column(stored, call, work)
    if call.order and call.function in RANKED:
        return column_of(stored, own_rank_values(call, work), None, work)
    if call.function in RANKS or call.function == "ntile":
        return column_of(stored, *rank_values(call, work), work)
    raise NotSupportedError(f"{call.function} over a window")
