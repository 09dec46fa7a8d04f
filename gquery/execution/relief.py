"""A stage where memory runs out. Cached columns have gone to the tier below by then: a CPU's into files, a GPU's are on the
host anyway. Next, what earlier stages made goes there too and the pipeline runs once more; then it is made in parts
(`execution.less_memory`); then it is an error.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution import held
from gquery.execution.part_runs import can_have_parts, run_counted, spill_idle
from gquery.execution.state import Run, StageReport
from gquery.operators.base import Frame
from gquery.planner.partition_keys import partition_keys
from gquery.planner.physical import OrderedGroups, Pipeline, PipelineBreaker, Stage, WindowRows


def run_within_memory(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, in parts if need be; what it made is in the run's state. OutOfMemoryError where nothing helps."""
    if state.unbuilt:
        from gquery.execution.join_parts import first_unbuilt, join_by_parts  # as below

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
    from gquery.execution import less_memory  # twelve modules, which a query that has room does without

    less_memory.run_pipeline(state, stage, pipeline, report, refused)


def break_within_memory(
    state: Run, stage: Stage, work: PipelineBreaker, frames: Mapping[int, Frame], at: Device, report: StageReport
) -> Frame:
    """Run a pipeline breaker on a device, in parts if need be (`execution.sort_parts`)."""
    from gquery.operators.breakers import run_breaker  # many queries have none

    device, workers = state.context.device, state.context.settings.worker_count
    try:
        size = held.scratch_of(work, frames) if device.is_counted else 0
        with device.scratch(size, stage.label):
            return run_breaker(work, frames, state.joins, state.matched, at, workers)
    except OutOfMemoryError as error:
        from gquery.execution import less_memory  # as above

        if not can_have_parts(state) or not (device.below or less_memory.has_parts(work, device)):
            if device.is_counted and isinstance(work, WindowRows | OrderedGroups) and not partition_keys(work):
                raise less_memory.one_partition(work, error, frames[work.stage].rows) from None
            raise
        traceback.clear_frames(error.__traceback__)
    state.feedback.is_short_of_memory = True
    spill_idle(state, stage.label)
    return less_memory.run_breaker_in_parts(state, stage, work, frames, report)


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
