"""Lowering of window functions: a frame with all that they read, and a breaker that adds their values.

What a window is partitioned and ordered by, and what its calls read, becomes columns of the frame; constants stay constants. The
frame keeps its order, so that rows which a window's order does not tell apart come as they come.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.columns.opaque import Pending
from gquery.expression.expr import Column, Expr, Literal, SortKey, new_column
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import Bounds, type_bounds
from gquery.expression.windows import WindowCall, with_parts
from gquery.functions.aggregate_record import Count, JoinedText, Listed, Total
from gquery.functions.windows import accumulated_by, aggregate_by, gives_argument, numbers_rows
from gquery.kernels.values import ValueProperties, opaque_properties
from gquery.planner.logical.nodes import Window
from gquery.planner.logical.tree import expressions, used_columns
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.physical import Stored, WindowRows


def window(lowering: Lowering, plan: Window, wanted: frozenset[int]) -> Stream:
    """The stream of the rows of a plan with the values of window functions."""
    if not any(c.id in wanted for c, _ in plan.calls):
        return lowering.plan(plan.source, wanted)
    own = {c.id for c, _ in plan.calls}
    below = (wanted - own).union(*(used_columns(e) for e in expressions(plan)))
    stream = lowering.plan(plan.source, below)
    made: dict[Expr, Column] = {}

    def column(e: Expr) -> Column:
        if isinstance(e, Column):
            return e
        return made.setdefault(e, new_column("key", e.dtype, e.nullable))

    partition = tuple(map(column, plan.partition))
    order = tuple(SortKey(column(k.expr), k.descending, k.nulls_first) for k in plan.order)
    calls = [(c, _over_columns(call, column)) for c, call in plan.calls if c.id in wanted]
    stream = lowering.compute(stream, tuple((c, e) for e, c in made.items()))
    read = {c.id: c for c in (*partition, *(k.expr for k in order)) if isinstance(c, Column)}
    read |= {e.id: e for _, call in calls for e in call.expressions if isinstance(e, Column)}
    passed = [stream.by_id[i] for i in sorted(below & wanted) if i in stream.by_id]
    is_text_made = any(isinstance(aggregate_by(call), JoinedText) for _, call in calls)
    stream = lowering.materialized(stream, [*passed, *read.values()], "input of a window", plain=is_text_made)
    stage = lowering.renamed_frame(stream)
    kept = {c.id for c in passed}
    stored = tuple(s for s in stored_of(stream) if s.column.id in kept)
    new = tuple((_result(c, call, stream), call) for c, call in calls)
    columns = stored + tuple(s for s, _ in new)
    names = ", ".join(dict.fromkeys(call.function for _, call in calls))
    number = lowering.stage(WindowRows(stage, partition, order, new, columns, plan.first), f"{names} over a window")
    rows = stream.rows if plan.first is None else min(stream.rows, max(lowering.estimator.rows(plan), 1.0))
    return lowering.read(number, tuple(s.column for s in columns), rows, stream.limit)


def _over_columns(call: WindowCall, column: Callable[[Expr], Column]) -> WindowCall:
    """The call over columns; constants that say how many rows or how far stay."""
    ends = (call.frame.start.amount, call.frame.end.amount)
    amounts = (*call.args[not numbers_rows(call) :], *(e for e in ends if e is not None))
    stay = {id(e) for e in amounts if isinstance(e, Literal) and not e.is_null}
    return with_parts(call, iter([e if id(e) in stay else column(e) for e in call.expressions]))


def _result(c: Column, call: WindowCall, stream: Stream) -> Stored:
    if isinstance(aggregate_by(call), Listed):
        made = opaque_properties(c.dtype, Pending(), True)
        return Stored(c, made, made.physical_type)
    known = _properties(call, stream)
    return Stored(c, known, known.physical_type)


def _properties(call: WindowCall, stream: Stream) -> ValueProperties:
    """What is known of a call's values."""
    most = stream.limit if stream.limit is not None else 1 << ROW_ID_BITS
    accumulated = accumulated_by(call)
    if numbers_rows(call) or isinstance(accumulated, Count):
        return ValueProperties(call.dtype, Bounds(0, most), call.nullable)
    limits = type_bounds(call.dtype)
    if gives_argument(call.function):
        arg = stream.describe(call.args[0])
        return ValueProperties(call.dtype, arg.bounds, call.nullable, arg.dictionary)
    if (
        isinstance(accumulated, Total)
        and limits is not None
        and (bounds := stream.describe(call.args[0]).bounds) is not None
    ):
        low, high = min(0, bounds.low * most), max(0, bounds.high * most)
        limits = Bounds(max(low, limits.low), min(high, limits.high))
    return ValueProperties(call.dtype, limits, call.nullable)
