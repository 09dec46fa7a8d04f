"""Which earlier stages a stage reads: their frames or their join tables."""

from __future__ import annotations

from typing import assert_never

from gquery.planner.physical import (
    ConcatRows,
    DistinctRows,
    HostRows,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    RankDecode,
    RankEncode,
    ReadStage,
    RecursiveRows,
    RoundRows,
    SliceRows,
    SortRows,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)


def stage_inputs(work: Pipeline | PipelineBreaker) -> list[int]:
    """The numbers of the stages that a stage reads, its source first."""
    match work:
        case Pipeline(source=source, steps=steps):
            read = [source.stage] if isinstance(source, ReadStage) else []
            return read + [s.table.stage for s in steps if isinstance(s, Probe)]
        case SortRows(stage=stage) | SliceRows(stage=stage) | RankEncode(stage=stage) | DistinctRows(stage=stage):
            return [stage]
        case WindowRows(stage=stage) | UnnestRows(stage=stage) | OrderedGroups(stage=stage) | RecursiveRows(stage=stage):
            return [stage]
        case RoundRows():
            return []
        case ConcatRows(stages=stages):
            return list(stages)
        case RankDecode(stage=stage, ranked=ranked):
            return [stage, ranked]
        case UnmatchedRows(table=table, probe_stage=probe_stage):
            return [table.stage, probe_stage]
        case HostRows(source=source):
            return [source.stage] if isinstance(source, ReadStage) else []
        case _:
            assert_never(work)
