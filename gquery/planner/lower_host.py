"""Lowering of expressions with calls that no kernel can make: rounds of what kernels compute and of what the host makes."""

from __future__ import annotations

from gquery.expression.expr import Column, Expr
from gquery.expression.types import PhysicalType
from gquery.kernels.dictionaries import is_looked_up
from gquery.kernels.host_calls import Needs, known_of, name_of, split
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.physical import HostRows, Materialize, ReadStage, ReadTable, Stored


def on_host(lowering: Lowering, stream: Stream, exprs: tuple[tuple[Column, Expr], ...]) -> Stream:
    """The stream with columns whose expressions need the host."""
    known = stream.columns
    rounds, left = split([e for _, e in exprs], Needs(lambda e: is_looked_up(e, known)))
    for one in rounds:
        if one.computed:
            stream = lowering.compute(stream, one.computed)
        stream = _made(lowering, stream, one.made)
    return lowering.compute(stream, tuple((c, e) for (c, _), e in zip(exprs, left, strict=True)))


def _made(lowering: Lowering, stream: Stream, calls: list[tuple[Column, Expr]]) -> Stream:
    """The stream with columns that calls over its columns make."""
    whole = _at_rest(lowering, stream)
    source = whole.source
    assert isinstance(source, ReadTable | ReadStage)
    made = []
    for column, e in calls:
        what = known_of(e, whole.columns)
        made.append((Stored(column, what, PhysicalType.STRING64 if what.dtype.is_string else what.physical_type), e))
    columns = stored_of(whole) + tuple(s for s, _ in made)
    names = ", ".join(dict.fromkeys(name_of(e) for _, e in calls))
    number = lowering.stage(HostRows(source, tuple(made), columns), f"{names} on the host")
    read = lowering.read(number, [s.column for s in columns], whole.rows, whole.limit)
    read.by_id.update(whole.by_id)
    return read


def _at_rest(lowering: Lowering, stream: Stream) -> Stream:
    """The stream as columns that lie somewhere: a table's, or those of a frame that is made here."""
    is_numbered = isinstance(stream.source, ReadStage) and stream.source.numbered is not None
    if isinstance(stream.source, ReadTable | ReadStage) and not stream.steps and not is_numbered:
        return stream
    columns = tuple(stream.by_id[i] for i in stream.columns if i in stream.by_id)
    stored = tuple(Stored(c, stream.columns[c.id], stream.columns[c.id].physical_type) for c in columns)
    number = lowering.sink(stream, Materialize(stored, ordered=True), "input of the host")
    return lowering.read(number, columns, stream.rows, stream.limit)
