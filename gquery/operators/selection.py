"""Compaction by a selection vector: on a GPU, rows that a filter lets through are found first, and the rest of a pipeline runs
over those alone.

Threads go in warps of 32. Where one row in twenty gets past the first steps, a warp takes every later step for one or two
rows while the other lanes wait. So a pipeline whose first steps drop most rows has two kernels: *select* marks the rows that
get past these steps in a bitmap, which becomes a selection vector; *main* has a thread for each row of that. What goes through
memory between them is a bit a row and four bytes a marked row.

Rows that head segments are always compacted where there are many: a thread that stands for a segment goes over its rows, while
the threads of these rows would have nothing to do. Behind that every thread has a segment. Where no other step drops heads, a
segment ends where the next one begins, so that its key is read no more. What materializes segments then writes a row a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from gquery import tuning
from gquery.expression.expr import Expr
from gquery.expression.facts import MOST_ROW_IDS
from gquery.operators.base import JoinIndex
from gquery.operators.materialize import selectivity
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    FilterRows,
    Group,
    Materialize,
    Pipeline,
    Probe,
    ReadStage,
    ReadTable,
    Reduce,
    SegmentHeads,
    SegmentRows,
    Sink,
    Step,
)
from gquery.planner.segments import segment_steps
from gquery.planner.step_columns import accumulated, exprs_read
from gquery.runtime.records import replace


def compacted(pipeline: Pipeline, rows: int, joins: Mapping[int, JoinIndex]) -> Pipeline:
    """The pipeline with the rows compacted behind its first steps, where that is a gain. ``joins`` are the tables as they were
    built: one with a key filter has few keys of its range, whatever was expected."""
    steps = pipeline.steps
    limits = tuning.materialization
    if not limits.compacted_least_rows <= rows <= MOST_ROW_IDS or pipeline.host is not None:
        return pipeline
    if not isinstance(pipeline.source, ReadTable | ReadStage):
        return pipeline
    if (segment := segment_steps(steps)) is not None:
        return _with_heads(pipeline, segment.heads)
    if not _takes_any_row(pipeline.sink):
        return pipeline
    for n, step in enumerate(steps, 1):
        if not _is_cheap(step):
            break
        if (
            _selectivity(step, joins) <= limits.compacted_most_selectivity
            and _slots(steps[n:], pipeline.sink) >= limits.compacted_least_probes
        ):
            # filters that stand right behind cost nothing more
            while n < len(steps) and isinstance(steps[n], FilterRows):
                n += 1
            return replace(pipeline, selection_steps=n)
    return pipeline


def _with_heads(pipeline: Pipeline, heads: tuple[Step, ...]) -> Pipeline:
    """The pipeline with the rows compacted that head segments and get past the other steps of heads."""
    if selectivity(heads) > tuning.materialization.compacted_most_heads:
        return pipeline
    if not isinstance(pipeline.sink, Materialize) and not _takes_any_row(pipeline.sink):
        return pipeline
    return replace(pipeline, selection_steps=len(heads))


def _slots(steps: Sequence[Step], sink: Sink) -> int:
    """Places in memory, not next to each other, that a row is taken to; the table of hashed groups counts twice, since
    neighbouring lanes search it for different times."""
    hashed = isinstance(sink, Group) and sink.layout == "hash"
    return sum(isinstance(s, Probe) for s in steps) + 2 * hashed


def _selectivity(step: Step, joins: Mapping[int, JoinIndex]) -> float:
    if isinstance(step, Compute | SegmentRows):
        return 1.0
    built = joins.get(step.table.stage) if isinstance(step, Probe) else None
    if built is None or built.table.filter is None or built.table.filter.is_table:
        return step.selectivity
    return min(step.selectivity, tuning.materialization.compacted_most_selectivity)


def _is_cheap(step: Step) -> bool:
    """Whether a step looks at one place at most for each row."""
    if isinstance(step, SegmentHeads | SegmentRows | AggregateSegment):
        return False
    if not isinstance(step, Probe):
        return True
    found = step.table.exists or (step.table.unique and step.kind is JoinKind.INNER)
    return found and step.residual is None and step.mark is None and not step.records_matches


def _takes_any_row(sink: Sink) -> bool:
    """Whether a sink does not care for the numbers of the rows that it gets."""
    match sink:
        case Group(layout=layout):
            return layout != "row-id hash"
        case Reduce():
            return True
        case Build(table=table):
            return table.exists or (table.unique and table.inline_payload is not None)
        case Materialize():
            return False  # has a bitmap of its own
        case _:
            assert_never(sink)


def needed_by(steps: Sequence[Step], sink: Sink) -> frozenset[int]:
    """The columns that steps and a sink use."""
    return frozenset(i for e in _used(steps, sink) for i in used_columns(e))


def _used(steps: Sequence[Step], sink: Sink) -> Iterator[Expr]:
    yield from exprs_read(steps)
    match sink:
        case Materialize(columns=columns):
            yield from (s.column for s in columns)
        case Group(keys=keys, accumulators=accumulators):
            yield from (e for _, e, _ in keys)
            yield from accumulated(accumulators)
        case Reduce(accumulators=accumulators):
            yield from accumulated(accumulators)
        case Build(table=table):
            yield from table.keys
            if table.inline_payload is not None:
                yield from (f.column for f in table.inline_payload.fields)
        case _:
            assert_never(sink)
