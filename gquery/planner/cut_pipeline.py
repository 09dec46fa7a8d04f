"""A pipeline in two: the rows that get past some of its steps as a frame, and a pipeline that goes on from there.

    scan, filter, probe, group   =>   scan, filter -> rows        rows, probe, group

What a state does not fit memory for is made of the rows in parts; for that they have to lie still (`execution.relief`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from gquery.expression.expr import Column
from gquery.expression.types import BOOLEAN, PhysicalType
from gquery.kernels.render import describe
from gquery.kernels.values import ValueProperties, value_properties
from gquery.planner.layouts import nullable
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    ConcatRows,
    DistinctRows,
    FilterRows,
    Group,
    HostRows,
    Materialize,
    OrderedGroups,
    Pipeline,
    Probe,
    RankDecode,
    RankEncode,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    RecursiveRows,
    Reduce,
    RoundRows,
    SegmentHeads,
    SegmentRows,
    Sink,
    SliceRows,
    SortRows,
    Source,
    Stage,
    Step,
    Stored,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.planner.stage_columns import stage_columns
from gquery.planner.stage_inputs import stage_inputs
from gquery.planner.step_columns import accumulated, columns_read
from gquery.runtime.records import replace


def cut(
    pipeline: Pipeline, at: int, stage: int, types: Mapping[int, PhysicalType] | None = None
) -> tuple[Pipeline, Pipeline]:
    """The pipeline up to step ``at``, whose rows are the frame of ``stage``, and the rest of it. Not between the steps of a
    segment. ``types``: the physical types of columns, by id, that do not have the narrowest one there."""
    known = columns_behind(pipeline.source, pipeline.steps[:at])
    wanted = sink_reads(pipeline.sink) | columns_read(pipeline.steps[at:])
    kept = [known[i] for i in sorted(wanted) if i in known]
    stored = tuple([Stored(c, what, (types or {}).get(c.id, what.physical_type)) for c, what in kept])
    first = replace(pipeline, steps=pipeline.steps[:at], sink=Materialize(stored, ordered=True), selection_steps=0)
    made = stage_columns(first)
    source = ReadStage(stage, made, tuple([s.column.id for s in made]))
    return first, replace(pipeline, source=source, steps=pipeline.steps[at:], selection_steps=0)


def is_in_order(stages: Sequence[Stage], source: Source) -> bool:
    """Whether the rows of a source come from a sort, so that somebody asks for their order."""
    if not isinstance(source, ReadStage):
        return False
    work = stages[source.stage].work
    match work:
        case SortRows():
            return True
        case Pipeline(source=before, sink=Materialize()) | HostRows(source=before):
            return is_in_order(stages, before)
        case SliceRows() | RankEncode() | RankDecode() | WindowRows() | UnnestRows() | ConcatRows():
            return any(is_in_order(stages, ReadStage(n, (), ())) for n in stage_inputs(work))
        case Pipeline() | UnmatchedRows() | DistinctRows() | RoundRows() | RecursiveRows() | OrderedGroups():
            return False
        case _:
            assert_never(work)


def sink_reads(sink: Sink) -> frozenset[int]:
    """The ids of the columns that a sink takes of each row."""
    match sink:
        case Materialize(columns=columns):
            return frozenset(s.column.id for s in columns)
        case Reduce(accumulators=accumulators):
            return frozenset(i for e in accumulated(accumulators) for i in used_columns(e))
        case Group(keys=keys, accumulators=accumulators):
            exprs = (*(e for _, e, _ in keys), *accumulated(accumulators))
            return frozenset(i for e in exprs for i in used_columns(e))
        case Build(table=table):
            held = () if table.inline_payload is None else table.inline_payload.fields
            return frozenset(c.id for c in (*table.keys, *(s.column for s in table.columns), *(f.column for f in held)))
        case _:
            assert_never(sink)


def columns_behind(source: Source, steps: Sequence[Step]) -> dict[int, tuple[Column, ValueProperties]]:
    """The columns that are at hand behind steps, and what is known of each, by id."""
    known = dict(_of_source(source))
    for step in steps:
        match step:
            case Compute(exprs):
                for column, e in exprs:
                    known[column.id] = column, describe(e, {i: what for i, (_, what) in known.items()})
            case Probe():
                known |= _of_probe(step)
            case AggregateSegment(aggregates=aggregates):
                known |= {c.id: (c, plan.result) for c, plan in aggregates}
            case FilterRows() | SegmentHeads() | SegmentRows():
                pass
            case _:
                assert_never(step)
    return known


def _of_source(source: Source) -> Iterable[tuple[int, tuple[Column, ValueProperties]]]:
    match source:
        case ReadTable(columns=columns):
            stored = columns
        case ReadStage(columns=columns, numbered=numbered):
            stored = columns if numbered is None else (*columns, numbered)
        case ReadRange(column=column, properties=properties):
            return [(column.id, (column, properties))]
        case ReadOne():
            return []
        case _:
            assert_never(source)
    return [(s.column.id, (s.column, s.properties)) for s in stored]


def _of_probe(step: Probe) -> dict[int, tuple[Column, ValueProperties]]:
    """What a probe adds: columns of the build side, NULL where there was no match, or a mark."""
    if step.mark is not None:
        may_be_null = step.null_key or step.residual is not None
        return {step.mark.id: (step.mark, value_properties(BOOLEAN, nullable=may_be_null))}
    filled = step.kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ASOF, JoinKind.FULL)
    if step.table.exists or not (filled or step.kind is JoinKind.INNER):
        return {}
    stored = [(s.column, s.properties) for s in step.table.columns]
    if step.table.inline_payload is not None:
        stored += [(f.column, f.properties) for f in step.table.inline_payload.fields]
    return {c.id: (c, nullable(what) if filled else what) for c, what in stored}
