"""Runs of a stage over parts of its rows, one after another, which lie in the tier below the device until it is their turn.

A stage is cut in two (`planner.cut_pipeline`): the rows that its state is made of become a frame, those of equal keys lie
together in a part, and the rest of the pipeline runs over one part after another. The parts of a run have feedback of their own,
so that what is found out of them says nothing of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gquery import tuning
from gquery.device.addresses import staying
from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution.feedback import PartsFeedback, RunFeedback
from gquery.execution.held import count_made
from gquery.execution.pipelines import run_pipeline
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import free_bytes, has_tier, put_below, rows_below, slices, tier_of
from gquery.expression.expr import Column, Expr, new_column
from gquery.operators.base import Frame, make_column
from gquery.operators.partition_rows import (
    HashPartitioning,
    Partitioned,
    RangePartitioning,
    partition_by_range,
    partition_rows,
)
from gquery.planner.physical import Compute, Pipeline, Program, Stage, Stored
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.execution.parts import Parts


def can_have_parts(state: Run) -> bool:
    """Whether stages of a run may be made in parts: under a limit, by one rank."""
    return has_tier(state.context.device) and state.rank is None and state.bound is None


def part_run(
    state: Run,
    number: int,
    make: Callable[[], Sequence[Pipeline]],
    form: Hashable = None,
    instead: Callable[[], Mapping[int, Pipeline]] = dict,
) -> Run:
    """A run of the program with further stages behind its own, and others ``instead`` of some, over the same frames and join
    tables, for stage ``number``. They are made once for each ``form`` of parts, and keep their kernels for later runs."""
    known = state.feedback.parts.get((number, form))
    if known is None:
        other = instead()
        stages = tuple([replace(s, work=other.get(s.number, s.work)) for s in state.program.stages])
        more = [Stage(len(stages) + n, work, stages[number].label) for n, work in enumerate(make())]
        program = Program((*stages, *more), state.program.outputs, state.program.names)
        known = state.feedback.parts.setdefault((number, form), PartsFeedback(program, RunFeedback()))
    context = replace(state.context, meter=None)
    made = Run(known.program, context, known.feedback, Speculation(known.feedback, context.device, True))
    made.frames, made.joins = dict(state.frames), dict(state.joins)
    made.tables, made.matched, made.unbuilt = state.tables, dict(state.matched), dict(state.unbuilt)
    return made


def run_counted(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, and count what array functions made of its result. OutOfMemoryError leaves nothing of it."""
    device = state.context.device
    try:
        with staying(device):
            run_pipeline(state, stage, pipeline, report)
        if device.keeps_columns:
            count_made(state.joins.get(stage.number) or state.frames.get(stage.number), device, stage.label)
    except OutOfMemoryError:
        state.joins.pop(stage.number, None)
        state.frames.pop(stage.number, None)
        raise


def run_extra(run: Run, number: int) -> StageReport:
    """Run one of the stages that a run has behind those of its program."""
    stage = run.program.stages[number]
    assert isinstance(stage.work, Pipeline)
    report = StageReport(number, stage.label, "", 0, 0.0)
    run_counted(run, stage, stage.work, report)
    return report


def with_keys(pipeline: Pipeline, keys: Sequence[Expr]) -> tuple[Pipeline, tuple[Column, ...]]:
    """The pipeline with expressions as columns behind its steps, and those."""
    columns = tuple([e if isinstance(e, Column) else new_column("key", e.dtype) for e in keys])
    made = tuple([(c, e) for c, e in zip(columns, keys, strict=True) if c is not e])
    steps = (*pipeline.steps, Compute(made)) if made else pipeline.steps
    return replace(pipeline, steps=steps), columns


def parts_for(wanted: int, device: Device) -> int:
    """In how many parts something is made that would take about so many bytes as a whole."""
    limits = tuning.spilling
    return int(min(max(wanted / (free_bytes(device) * limits.part_fraction), limits.least_parts), limits.most_parts))


def in_parts(
    frames: Sequence[Frame], by: HashPartitioning | RangePartitioning, state: Run, report: StageReport, label: str
) -> Parts:
    """The rows of frames of the tier in parts there."""
    from gquery.execution.behind import Behind  # a query that has room does without
    from gquery.execution.parts import Parts  # as above

    device, workers = state.context.device, state.context.settings.worker_count
    cuts: list[Partitioned] = []
    with device.into_files(), Behind(device, label) as behind:
        for frame in frames:
            for rows in slices(frame, device):
                made = behind.made(partial(_partitioned, rows, by, device, workers, label))
                del rows
                report.spilled_bytes += sum(c.nbytes for c in made.frame.columns.values())
                cuts.append(Partitioned(behind.move(made.frame), made.starts))
    parts = Parts(cuts, device)
    report.parts += sum(parts.rows(p) > 0 for p in range(parts.parts))
    return parts


def _partitioned(
    rows: Frame, by: HashPartitioning | RangePartitioning, device: Device, workers: int, label: str
) -> Partitioned:
    if isinstance(by, RangePartitioning):
        return partition_by_range(rows, by, device, workers, label)
    return partition_rows(rows, by, device, workers, label)


def run_below(run: Run, number: int, report: StageReport) -> Frame:
    """The rows that one of the stages behind those of a run's program makes, in the tier."""
    stage = run.program.stages[number]
    assert isinstance(stage.work, Pipeline)
    made = rows_below(run, stage, stage.work, report)
    count_made(made, run.context.device, stage.label)
    return made


def numbered(frame: Frame, number: Stored, device: Device) -> Frame:
    """The frame with the numbers of its rows."""
    with device.into_files():
        made = tier_of(device).empty_spillable(frame.rows, np.int64, "numbers of rows")
    step = tuning.partitioning.unit_rows
    for low in range(0, frame.rows, step):
        made[low : low + step] = np.arange(low, min(low + step, frame.rows))
    column = make_column(number.properties, number.physical_type, made, None, frame.rows, tier_of(device))
    return Frame({**frame.columns, number.column.id: column}, frame.rows)


def spill_idle(state: Run, label: str) -> bool:
    """Move what earlier stages have made, and no kernel reads now, into the tier; whether memory became free."""
    device = state.context.device
    before = device.used_bytes
    for frame in state.frames.values():
        put_below(frame, device, label)
    return device.used_bytes < before
