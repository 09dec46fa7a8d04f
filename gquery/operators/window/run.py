"""One node of window functions: the rows in order, each call's values by row, and the columns that hold them."""

from __future__ import annotations

from typing import assert_never

from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.errors import NotSupportedError
from gquery.expression.windows import WindowCall
from gquery.functions.aggregate_record import (
    Accumulated,
    AtEnd,
    AtFraction,
    Derived,
    Extreme,
    JoinedText,
    Listed,
    MostFrequent,
    Reduced,
    StandsFor,
)
from gquery.functions.windows import aggregate_by, gives_argument
from gquery.kernels.builtin import gathers
from gquery.operators.base import Frame, KnownOrder
from gquery.operators.leading_rows import leading_rows
from gquery.operators.ordered import order_frame
from gquery.operators.window.aggregates import aggregate_column
from gquery.operators.window.extremes import extreme_column
from gquery.operators.window.joined_texts import joined_column
from gquery.operators.window.listed_values import listed_column
from gquery.operators.window.modes import mode_column
from gquery.operators.window.moments import MOMENTS, moment_column
from gquery.operators.window.own_ranks import own_rank_values
from gquery.operators.window.positions import Work
from gquery.operators.window.quantiles import quantile_column
from gquery.operators.window.ranks import rank_values
from gquery.operators.window.reductions import reduction_column
from gquery.operators.window.results import column_of
from gquery.operators.window.values import value_column
from gquery.planner.physical import Stored, WindowRows


def run_window(work: WindowRows, frame: Frame, device: Device, workers: int) -> Frame:
    """The frame with the values of the calls, its rows in their order, on ``device``; so many threads of a CPU work at it. Where
    the first rows of partitions are enough, few others are in it."""
    if work.first is not None and work.order:
        found = leading_rows(frame, work.partition, work.order[0], work.first, device, workers)
        if found is not None:
            kept = {i: gathers.take(c, found, device) for i, c in frame.columns.items()}
            frame = Frame(kept, int(found.size), frame.rank_values)
    ordered = order_frame(frame, work.partition, work.order, device, workers, work.sort)
    shared = Work(frame, ordered, work.order, device, workers)
    made = {stored.column.id: _column(stored, call, shared) for stored, call in work.calls}
    columns = {
        s.column.id: made[s.column.id] if s.column.id in made else frame.columns[s.column.id] for s in work.columns
    }
    known = frame.known_order if not work.sort or device.is_counted else KnownOrder(work.sort, ordered.rows)
    return Frame(columns, frame.rows, frame.rank_values, known_order=known)


def _column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    by = aggregate_by(call)
    match by:
        case Accumulated(only=Extreme(op)):
            return extreme_column(stored, call, op, work)
        case Accumulated():
            return aggregate_column(stored, call, by, work)
        case AtEnd():
            return value_column(stored, call, work)
        case AtFraction(between):
            return quantile_column(stored, call, between, work)
        case MostFrequent():
            return mode_column(stored, call, work)
        case Reduced(operation):
            return reduction_column(stored, call, operation, work)
        case JoinedText():
            return joined_column(stored, call, work)
        case Listed():
            return listed_column(stored, call, work)
        case Derived() | StandsFor():
            raise NotSupportedError(f"{call.function} over a window")
        case None:
            return _other_column(stored, call, work)
        case _:
            assert_never(by)


def _other_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The column of a window function that is no aggregate, or of moments that aggregates are made of."""
    if call.function in MOMENTS:
        return moment_column(stored, call, work)
    if gives_argument(call.function):
        return value_column(stored, call, work)
    if call.order:
        return column_of(stored, own_rank_values(call, work), None, work)
    return column_of(stored, *rank_values(call, work), work)
