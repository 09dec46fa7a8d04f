"""About how many rows the stages of a program make, and how many bytes these are, by what the planner has estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from gquery import tuning
from gquery.expression.facts import BYTE_BITS, INT64_BYTES
from gquery.planner.partition_keys import frame_columns
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    FilterRows,
    Group,
    JoinTable,
    Materialize,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    Reduce,
    SegmentHeads,
    Source,
    Stage,
    Stored,
    WindowRows,
)
from gquery.planner.stage_columns import stage_columns
from gquery.planner.stage_inputs import stage_inputs


def share_behind(work: Pipeline, steps: int) -> float:
    """The share of a pipeline's rows that get past its first steps."""
    counted = [s for s in work.steps[:steps] if isinstance(s, FilterRows | Probe | SegmentHeads | AggregateSegment)]
    return min([s.selectivity for s in counted], default=1.0)


def rows_behind(work: Pipeline, steps: int) -> int:
    """The rows that get past a pipeline's first steps, at least one."""
    return max(1, int(work.rows * share_behind(work, steps)))


def row_bytes(columns: Iterable[Stored]) -> int:
    """The bytes of a row of columns."""
    return sum(_width(s) for s in columns)


def _width(stored: Stored) -> int:
    kind = stored.physical_type
    return kind.bytes + stored.properties.nullable + (tuning.distribution.text_bytes if kind.is_string else 0)


def rows_made(work: Pipeline | PipelineBreaker) -> int:
    """The rows of the frame that a stage makes; of breakers, whose plans have no estimate, none."""
    if not isinstance(work, Pipeline):
        return 0
    match work.sink:
        case Materialize(limit=limit):
            rows = rows_behind(work, len(work.steps))
            return rows if limit is None else min(rows, limit)
        case Group(groups=groups):
            return min(groups, work.rows)
        case Reduce():
            return 1
        case Build(table):
            return table.rows
        case _:
            assert_never(work.sink)


def has_few_rows(work: Pipeline | PipelineBreaker, most: int) -> bool:
    """Whether a stage is expected to make fewer rows than that, so that dividing what follows gains nothing."""
    return isinstance(work, Pipeline) and rows_made(work) < most


def frame_bytes(work: Pipeline | PipelineBreaker) -> int:
    """The bytes of the frame that a stage makes."""
    return rows_made(work) * row_bytes(stage_columns(work))


def frame_rows(stages: Sequence[Stage], number: int) -> int:
    """The rows of the frame of a stage; of a pipeline breaker as many as it reads, at most."""
    work = stages[number].work
    if isinstance(work, Pipeline):
        return rows_made(work)
    return max([frame_rows(stages, n) for n in stage_inputs(work)], default=0)


def input_bytes(stages: Sequence[Stage], work: WindowRows | OrderedGroups) -> int:
    """The bytes of what such a pipeline breaker needs of its frame."""
    needed = frame_columns(work)
    stored = [s for s in stage_columns(stages[work.stage].work) if s.column.id in needed]
    return frame_rows(stages, work.stage) * row_bytes(stored)


def array_bytes(table: JoinTable) -> int:
    """The bytes of a join table that is an array over its keys, without the rows behind it."""
    assert table.key_encoding is not None
    slots = table.key_encoding.size
    if table.exists:
        return slots // BYTE_BITS
    return slots * (INT64_BYTES if table.inline_payload is None else table.inline_payload.physical_type.bytes)


def source_bytes(source: Source, rows: int) -> int:
    """The bytes of so many rows of a source."""
    match source:
        case ReadTable(columns=columns) | ReadStage(columns=columns):
            return rows * row_bytes(columns)
        case ReadRange() | ReadOne():
            return 0
        case _:
            assert_never(source)
