"""Checks that a program is sound: run on every program in tests and under GQUERY_VERIFY=1, beside `planner.logical.verify`.

Columns are known by id alone in a pipeline. If the two inputs of a join give one id, the one hides the other, and rows are
paired with themselves; so no two places of a pipeline may bind the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from gquery.errors import InternalError
from gquery.expression.expr import Column
from gquery.planner.physical import (
    AggregateSegment,
    Compute,
    FilterRows,
    Pipeline,
    Probe,
    Program,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    SegmentHeads,
    SegmentRows,
    Source,
)
from gquery.planner.stage_columns import stage_columns


def verify_program(program: Program) -> None:
    """Raises InternalError for a program whose pipelines bind a column id twice, or read what a stage does not make."""
    problems: list[str] = []
    made: dict[int, set[int]] = {}
    for stage in program.stages:
        if isinstance(stage.work, Pipeline):
            problems += (f"stage {stage.number}: {p}" for p in _problems(stage.work, made))
        made[stage.number] = {s.column.id for s in stage_columns(stage.work)}
    if problems:
        raise InternalError("unsound program: " + "; ".join(dict.fromkeys(problems)))


def _problems(work: Pipeline, made: dict[int, set[int]]) -> Iterator[str]:
    known: set[int] = set()
    for where, columns in _bound(work):
        here = {c.id: c for c in columns}  # a table may hold a column twice, as two keys
        for c in here.values():
            if c.id in known:
                yield f"{where} binds {c.name}#{c.id}, which is bound before it"
        known |= here.keys()
    yield from _segments(work)
    if isinstance(work.source, ReadStage):
        frame = made.get(work.source.stage)
        if frame is None:
            yield f"reads stage {work.source.stage}, which is no earlier one"
        elif missing := set(work.source.origins) - frame:
            yield f"reads columns {sorted(missing)} that stage {work.source.stage} does not make"


def _segments(work: Pipeline) -> Iterator[str]:
    """What is wrong with the segments of a pipeline: the first step finds their heads, then they are opened and aggregated."""
    found = [s for s in work.steps if isinstance(s, SegmentHeads | SegmentRows | AggregateSegment)]
    if not found:
        return
    kinds = [type(s) for s in found]
    if work.steps[0] is not found[0] or kinds not in ([SegmentHeads], [SegmentHeads, SegmentRows, AggregateSegment]):
        yield "segments are not found, opened and aggregated in this order"
    of_source = isinstance(work.source, ReadTable) and {s.column.id for s in work.source.columns}
    for step in found:
        if not isinstance(step, AggregateSegment) and (not of_source or step.key.column.id not in of_source):
            yield f"segments of {step.key.column.name}, which is no column of a table that is read"
    if work.selection_steps:
        yield "heads of segments are compacted"


def _bound(work: Pipeline) -> Iterator[tuple[str, Iterable[Column]]]:
    """The columns that each place of a pipeline binds."""
    yield "its source", _source_columns(work.source)
    for step in work.steps:
        match step:
            case FilterRows():
                pass
            case Compute(exprs):
                yield "a computation", (c for c, _ in exprs)
            case Probe(table=table, mark=mark):
                yield "a join table", (s.column for s in table.columns)
                yield "a mark", () if mark is None else (mark,)
            case SegmentHeads() | SegmentRows():
                pass
            case AggregateSegment(aggregates=aggregates):
                yield "a segment", (c for c, _ in aggregates)
            case _:
                assert_never(step)


def _source_columns(source: Source) -> Iterable[Column]:
    match source:
        case ReadTable(columns=columns) | ReadStage(columns=columns):
            return (s.column for s in columns)
        case ReadRange(column):
            return (column,)
        case ReadOne():
            return ()
        case _:
            assert_never(source)
