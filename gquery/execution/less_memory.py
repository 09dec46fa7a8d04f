"""What a stage does that memory has run out for (`execution.relief`): a pipeline's groups (`execution.group_parts`), or the join
that its table is for (`execution.join_parts`), are made in parts, or its rows a slice after another (`execution.tiers`); of
pipeline breakers sorts (`execution.sort_parts`), windows and groups in an order (`execution.partition_parts`, `window_slices`,
`sorted_rows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution.group_parts import groups_by_parts
from gquery.execution.join_parts import leave_unbuilt
from gquery.execution.partition_parts import one_partition, partitions_by_parts
from gquery.execution.sort_parts import distinct_by_parts, sort_by_parts
from gquery.execution.sorted_rows import aggregates_of_sorted, can_be_sorted
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import rows_below
from gquery.execution.window_slices import can_be_sliced, window_by_slices
from gquery.operators.base import Frame
from gquery.operators.breakers import run_breaker
from gquery.planner.partition_keys import partition_keys
from gquery.planner.physical import (
    Build,
    DistinctRows,
    Group,
    Materialize,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Reduce,
    SortRows,
    Stage,
    WindowRows,
)

__all__ = ["has_parts", "one_partition", "run_breaker_in_parts", "run_pipeline"]


def run_pipeline(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport, refused: OutOfMemoryError) -> None:
    """Run a pipeline in parts; what it made is in the run's state. The error that it is refused with where that cannot be."""
    match pipeline.sink:
        case Group():
            made = groups_by_parts(state, stage, pipeline, report)
            if made is None:
                raise refused
            state.frames[stage.number] = made
        case Build():
            if not leave_unbuilt(state, stage, pipeline, report):
                raise refused
        case Materialize():
            if state.context.device.below is None:  # frames lie in files as they are made
                raise refused
            state.frames[stage.number] = rows_below(state, stage, pipeline, report)
        case Reduce():
            raise refused
        case _:
            assert_never(pipeline.sink)


def run_breaker_in_parts(
    state: Run, stage: Stage, work: PipelineBreaker, frames: Mapping[int, Frame], report: StageReport
) -> Frame:
    """Run a pipeline breaker in parts, or where there is room, if slowly. OutOfMemoryError where nothing helps."""
    device, workers = state.context.device, state.context.settings.worker_count
    if isinstance(work, SortRows):
        return sort_by_parts(work, frames[work.stage], device, report)
    if isinstance(work, DistinctRows):
        return distinct_by_parts(work, frames[work.stage], device, report)
    if isinstance(work, OrderedGroups) and can_be_sorted(work, device):
        return aggregates_of_sorted(state, work, report)
    if isinstance(work, WindowRows) and can_be_sliced(work, device):
        try:
            return window_by_slices(state, stage.number, work, report)
        except OutOfMemoryError as error:
            raise one_partition(work, error, frames[work.stage].rows) from None
    if isinstance(work, WindowRows | OrderedGroups) and partition_keys(work):
        return partitions_by_parts(state, stage.number, work, report)
    assert device.below is not None
    return run_breaker(work, frames, state.joins, state.matched, device.below, workers)


def has_parts(work: PipelineBreaker, device: Device) -> bool:
    """Whether a pipeline breaker can be run in parts."""
    if isinstance(work, OrderedGroups) and can_be_sorted(work, device):
        return True
    if isinstance(work, WindowRows) and can_be_sliced(work, device):
        return True
    return isinstance(work, SortRows | DistinctRows) or bool(partition_keys(work))
