"""Lowering of aggregates that look at the rows of a group in an order: over a frame of what they read, which is sorted.

The rule `expand_aggregates` leaves such aggregates in nodes of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.columns.opaque import Pending
from gquery.expression.expr import (
    FALSE,
    TRUE,
    AggregateCall,
    Case,
    Column,
    Expr,
    IsNull,
    Literal,
    Not,
    SortKey,
    new_column,
)
from gquery.expression.traverse import conjunction
from gquery.expression.types import VARCHAR, Bounds, PhysicalType
from gquery.functions import declaration
from gquery.functions.aggregate_record import JoinedText, Listed, Reduced
from gquery.functions.certain import guarded
from gquery.kernels.values import ValueProperties, opaque_properties
from gquery.planner.logical.aggregate_joins import Calls
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.ordered_call import OrderedCall
from gquery.planner.physical import OrderedGroups, Stored
from gquery.runtime.records import replace

Keys = tuple[tuple[Column, Expr], ...]


def ordered_groups(lowering: Lowering, stream: Stream, keys: Keys, aggregates: Calls, rows: float) -> Stream:
    """The stream of the groups; ``rows`` is about how many there are."""
    columns: dict[Expr, Column] = {}

    def column(e: Expr) -> Column:
        if e not in columns:
            columns[e] = e if isinstance(e, Column) else new_column("value", e.dtype, e.nullable)
        return columns[e]

    aggregates = tuple((c, guarded(a)) for c, a in aggregates)
    pairs = tuple((c, column(e)) for c, e in keys)
    calls = [_call(a, column) for _, a in aggregates]
    stream = lowering.compute(stream, tuple((c, e) for e, c in columns.items() if c is not e))
    is_text_made = any(isinstance(declaration(a).by, JoinedText) for _, a in aggregates)
    stream = lowering.materialized(stream, tuple(columns.values()), "input of ordered groups", plain=is_text_made)
    number = lowering.renamed_frame(stream)
    stored = {s.column.id: s for s in stored_of(stream)}
    made = tuple(_result(c, a, stored, column) for c, a in aggregates)
    frame_columns = (*(replace(stored[source.id], column=c) for c, source in pairs), *made)
    work = OrderedGroups(number, pairs, tuple(zip(made, calls, strict=True)), frame_columns)
    label = f"group by {', '.join(c.name for c, _ in keys)} in order" if keys else "aggregate in order"
    number = lowering.stage(work, label)
    limit = stream.limit if keys else 1
    return lowering.read(number, tuple(s.column for s in frame_columns), rows if keys else 1.0, limit)


def _call(a: AggregateCall, column: Callable[[Expr], Column]) -> OrderedCall:
    args = tuple(e if n and isinstance(e, Literal) else column(e) for n, e in enumerate(a.args))
    terms = () if a.filter is None else (a.filter,)
    if declaration(a).skips_null and a.args[0].nullable:
        terms = (*terms, Not(IsNull(a.args[0])))
    kept = column(Case(((conjunction(terms), TRUE),), FALSE)) if terms else None
    order = a.order
    if declaration(a).orders_itself and not order:
        order = (SortKey(a.args[0]),)
    return OrderedCall(
        a.function, args, tuple(SortKey(column(k.expr), k.descending, k.nulls_first) for k in order), kept
    )


def _result(c: Column, a: AggregateCall, stored: dict[int, Stored], column: Callable[[Expr], Column]) -> Stored:
    by = declaration(a).by
    if isinstance(by, JoinedText):
        return Stored(c, ValueProperties(VARCHAR, None, True), PhysicalType.STRING64)
    if isinstance(by, Listed):
        made = opaque_properties(c.dtype, Pending(), True)
        return Stored(c, made, made.physical_type)
    value = a.args[0]
    found = stored[column(value).id]
    known = replace(found.properties, nullable=True)
    if isinstance(by, Reduced) and by.word == "i64":
        known = replace(known, bounds=_closed(known.bounds))
    return Stored(c, known, found.physical_type)


def _closed(bounds: Bounds | None) -> Bounds | None:
    """Within what integers lie that bits of integers within these bounds make."""
    if bounds is None:
        return None
    bits = max(bounds.high.bit_length(), (~bounds.low).bit_length() if bounds.low < 0 else 0)
    return Bounds(-(1 << bits) if bounds.low < 0 else 0, (1 << bits) - 1)
