"""A pipeline where memory runs out. The account has had cached columns moved into files by then; next, what earlier stages made
goes there too and the pipeline runs once more; then its state is made in parts (`execution.group_parts`); then it is an error.
"""

from __future__ import annotations

import traceback

from gquery.errors import OutOfMemoryError
from gquery.execution.group_parts import groups_by_parts
from gquery.execution.part_runs import can_have_parts, spill_idle
from gquery.execution.pipelines import run_pipeline
from gquery.execution.state import Run, StageReport
from gquery.planner.physical import Group, Pipeline, Stage


def run_within_memory(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, in parts if need be; what it made is in the run's state. OutOfMemoryError where nothing helps."""
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
        case _:
            made = None
    if made is None:
        raise refused
    state.frames[stage.number] = made


def _refused(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> OutOfMemoryError | None:
    """Run a pipeline; the error of memory where it may be made in parts, which holds none of its arrays."""
    try:
        run_pipeline(state, stage, pipeline, report)
    except OutOfMemoryError as error:
        if not can_have_parts(state):
            raise
        traceback.clear_frames(error.__traceback__)
        return error.with_traceback(None)
    return None
