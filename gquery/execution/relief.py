"""A stage where memory runs out. Cached columns have gone to the tier below by then: a CPU's into files, a GPU's are on the
host anyway. Next, what earlier stages made goes there too and the pipeline runs once more; then its groups
(`execution.group_parts`), or the join that its table is for (`execution.join_parts`), are made in parts, or its rows a slice
after another (`execution.tiers`); windows and groups in an order, too (`execution.partition_parts`, `window_slices`,
`sorted_rows`); then it is an error.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import assert_never

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution import held
from gquery.execution.group_parts import groups_by_parts
from gquery.execution.join_parts import first_unbuilt, join_by_parts, leave_unbuilt
from gquery.execution.part_runs import can_have_parts, run_counted, spill_idle
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


def run_within_memory(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, in parts if need be; what it made is in the run's state. OutOfMemoryError where nothing helps."""
    if (at := first_unbuilt(state, pipeline)) is not None:
        join_by_parts(state, stage, pipeline, at, report, run_within_memory)
        report.target = state.context.target
        return
    refused = _refused(state, stage, pipeline, report)
    if refused is None:
        return
    state.feedback.is_short_of_memory = True
    if spill_idle(state, stage.label):
        refused = _refused(state, stage, pipeline, report)
        if refused is None:
            return
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


def break_within_memory(
    state: Run, stage: Stage, work: PipelineBreaker, frames: Mapping[int, Frame], at: Device, report: StageReport
) -> Frame:
    """Run a pipeline breaker on a device, in parts if need be (`execution.sort_parts`)."""
    device, workers = state.context.device, state.context.settings.worker_count
    try:
        size = held.scratch_of(work, frames) if device.is_counted else 0
        with device.scratch(size, stage.label):
            return run_breaker(work, frames, state.joins, state.matched, at, workers)
    except OutOfMemoryError as error:
        if not can_have_parts(state) or not (device.below or _has_parts(work, device)):
            if device.is_counted and isinstance(work, WindowRows | OrderedGroups) and not partition_keys(work):
                raise one_partition(work, error, frames[work.stage].rows) from None
            raise
        traceback.clear_frames(error.__traceback__)
    state.feedback.is_short_of_memory = True
    spill_idle(state, stage.label)
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
    return run_breaker(
        work, frames, state.joins, state.matched, device.below, workers
    )  # where there is room, if slowly


def _has_parts(work: PipelineBreaker, device: Device) -> bool:
    """Whether a pipeline breaker can be run in parts."""
    if isinstance(work, OrderedGroups) and can_be_sorted(work, device):
        return True
    if isinstance(work, WindowRows) and can_be_sliced(work, device):
        return True
    return isinstance(work, SortRows | DistinctRows) or bool(partition_keys(work))


def _refused(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> OutOfMemoryError | None:
    """Run a pipeline; the error of memory where it may be made in parts, which holds none of its arrays."""
    try:
        run_counted(state, stage, pipeline, report)
    except OutOfMemoryError as error:
        if not can_have_parts(state):
            raise
        traceback.clear_frames(error.__traceback__)
        return error.with_traceback(None)
    return None
