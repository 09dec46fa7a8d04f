"""A pipeline where memory runs out. The account has had cached columns moved into files by then; next, what earlier stages made
goes there too and the pipeline runs once more; then its groups (`execution.group_parts`), or the join that its table is for
(`execution.join_parts`), are made in parts; then it is an error.
"""

from __future__ import annotations

import traceback
from typing import assert_never

from gquery.errors import OutOfMemoryError
from gquery.execution.group_parts import groups_by_parts
from gquery.execution.join_parts import first_unbuilt, join_by_parts, leave_unbuilt
from gquery.execution.part_runs import can_have_parts, run_counted, spill_idle
from gquery.execution.state import Run, StageReport
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Reduce, Stage


def run_within_memory(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, in parts if need be; what it made is in the run's state. OutOfMemoryError where nothing helps."""
    if (at := first_unbuilt(state, pipeline)) is not None:
        join_by_parts(state, stage, pipeline, at, report, run_within_memory)
        return
    refused = _refused(state, stage, pipeline, report)
    if refused is None:
        return
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
        case Materialize() | Reduce():  # frames lie in files as they are made
            raise refused
        case _:
            assert_never(pipeline.sink)


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
