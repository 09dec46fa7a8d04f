"""Lowering of what a FULL join has more than a LEFT one: the build rows that no probe matched."""

from __future__ import annotations

from gquery.expression.expr import Literal, new_column
from gquery.expression.types import BOOLEAN
from gquery.planner.layouts import nullable
from gquery.planner.logical.nodes import Join
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import ConcatRows, Probe, ReadStage, UnmatchedRows
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import replace


def full_join(
    lowering: Lowering, stream: Stream, plan: Join, probe: Probe, wanted: frozenset[int], host: str | None
) -> Stream:
    """FULL: the pairs and the left rows without a match, and behind them the build rows that no probe matched."""
    columns = tuple(c for c in plan.columns if c.id in wanted)
    if not columns:  # only the number of rows is asked for
        columns = (new_column("row", BOOLEAN),)
        stream = lowering.compute(stream, ((columns[0], Literal(True, BOOLEAN)),))
    stream = replace(stream, columns={i: nullable(w) for i, w in stream.columns.items()})
    pairs = lowering.materialized(stream, columns, "full join", host=host)
    assert isinstance(pairs.source, ReadStage)
    stored = pairs.source.columns
    rest = lowering.stage(UnmatchedRows(probe.table, pairs.source.stage, stored), "unmatched build rows")
    inputs = (stored, stored)
    number = lowering.stage(ConcatRows((pairs.source.stage, rest), inputs, stored), "full join")
    result = lowering.read(number, columns, stream.rows, None)
    assert all(s.column in columns for s in stage_columns(lowering.stages[number].work))
    return result
