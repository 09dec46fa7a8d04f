"""A program, stage by stage: pipelines and pipeline breakers, memory let go of as soon as no later stage reads it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import cast

from gquery.columns.table import Table
from gquery.device.device import cpu_device
from gquery.errors import InterruptError, OutOfMemoryError
from gquery.execution.choose import breaker_device
from gquery.execution.feedback import RunFeedback
from gquery.execution.late_fetch import with_fetched
from gquery.execution.measure import Meter, named_range
from gquery.execution.pipelines import run_pipeline
from gquery.execution.prepare import prepare
from gquery.execution.replay import replayed
from gquery.execution.sources import read
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.stage_feedback import BuiltTable
from gquery.execution.state import ExecutionContext, Run, StageReport
from gquery.execution.verify_frame import verify_stage
from gquery.expression.types import Field, Schema
from gquery.kernels import checks
from gquery.kernels.readback import scalar_readback
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.operators.base import Frame, JoinIndex
from gquery.operators.breakers import run_breaker
from gquery.operators.host_rows import run_host_rows
from gquery.planner.physical import HostRows, Materialize, Pipeline, Program, Stage
from gquery.runtime import stopwatch
from gquery.runtime.interrupt import check

_NOT_READING = nullcontext()


def run(program: Program, context: ExecutionContext, feedback: RunFeedback | None = None) -> Table:
    """The result of a program; ``feedback`` is what earlier runs of it have left, for this one and for later ones."""
    return run_with_report(program, context, feedback)[0]


def run_with_report(
    program: Program, context: ExecutionContext, feedback: RunFeedback | None = None
) -> tuple[Table, list[StageReport]]:
    """The result of a program, and what each stage did. A run that is not measured speculates where it can."""
    table, reports = _run_stages(program, context, feedback or RunFeedback())
    return table if program.fetch is None else with_fetched(program.fetch, table), reports


def _run_stages(program: Program, context: ExecutionContext, feedback: RunFeedback) -> tuple[Table, list[StageReport]]:
    if context.device.is_cuda and (table := replayed(program, context, feedback, _run)) is not None:
        return table, []
    state = Run(program, context, feedback, Speculation(feedback, context.device, context.meter is not None))
    try:
        return _validated(state)
    except MisspeculationError:
        pass
    except Exception:
        if not state.speculation.has_failed():  # else it comes of arrays that aborted kernels did not write
            raise
    feedback.misspeculated()
    for made in (state.frames, state.joins, state.matched):
        made.clear()
    return _validated(Run(program, context, feedback, Speculation(feedback, context.device, True)))


def _validated(state: Run) -> tuple[Table, list[StageReport]]:
    """A run of which everything is right that was speculated."""
    table = _run(state)
    state.speculation.validate_all()
    return table, state.reports


def _run(state: Run) -> Table:
    """Run all stages. What was speculated has not been validated yet."""
    program, context = state.program, state.context
    with context.device.activate(), _NOT_READING if state.speculation.abort_flag is None else _reading_scalars(state):
        prepare(state)
        watch = stopwatch.current()
        if watch is not None:
            watch.begin([_weight(s) for s in program.stages])
        for stage in program.stages:
            start = time.perf_counter()
            report = StageReport(stage.number, stage.label, "", 0, 0.0)
            state.speculation.stage = stage.number
            if watch is not None:
                watch.stage(stage.number)
            try:
                check()
                with named_range(f"stage {stage.number}: {stage.label}"):
                    _stage(state, stage, report)
            except (
                InterruptError,
                KeyboardInterrupt,
            ) as error:  # what was made so far is freed now, not with the error
                for made in (state.frames, state.joins, state.matched):
                    made.clear()
                traceback.clear_frames(error.__traceback__)
                raise
            if context.meter is not None:
                _measure(state, stage, context.meter)
            if checks.ENABLED and stage.number in state.frames and not context.device.stays:
                verify_stage(stage, state.frames[stage.number], stage is program.stages[-1])
            report.seconds = time.perf_counter() - start
            state.reports.append(report)
            for number in state.dataflow.released[stage.number]:
                state.frames.pop(number, None)
                _note_table(state, number, state.joins.pop(number, None))
    frame = state.frames[program.stages[-1].number]
    columns = tuple(frame.columns[s.column.id] for s in program.outputs)
    fields = tuple(
        Field(n, s.column.dtype, s.properties.nullable) for n, s in zip(program.names, program.outputs, strict=True)
    )
    return Table(Schema(fields), columns, frame.rows)


def _note_table(state: Run, number: int, index: JoinIndex | None) -> None:
    """Leave to later runs what a join table was like that no stage reads any more."""
    if index is not None:
        built = BuiltTable(index.table, index.rows, index.frame.rows, index.longest)
        state.feedback.built(number, built)


@contextmanager
def _reading_scalars(state: Run) -> Iterator[None]:
    """Within it, scalars that a GPU makes are speculated where they can be, and its kernels validate them."""
    speculation = state.speculation
    assert speculation.abort_flag is not None
    cuda = cast(AbortableTarget, get_target("cuda"))
    with scalar_readback(speculation.read_scalar, speculation.validate), cuda.aborting_on(speculation.abort_flag):
        yield


def _measure(state: Run, stage: Stage, meter: Meter) -> None:
    """What a stage made, for its report; waits until it is there."""
    state.context.device.synchronize()
    frame = state.frames.get(stage.number)
    if frame is not None:
        meter.rows_out[stage.number] = frame.rows
        if isinstance(stage.work, Pipeline) and isinstance(stage.work.sink, Materialize):
            meter.wrote(stage.number, sum(c.nbytes for c in frame.columns.values()))
    if not state.context.device.is_cuda:
        held = {id(b): b.nbytes for f in state.frames.values() for c in f.columns.values() for b in c.buffers}
        parts = {id(b): b.nbytes for j in state.joins.values() for b in j.arrays.buffers}
        meter.peak_bytes = max(meter.peak_bytes, sum(held.values()) + sum(parts.values()))


def _weight(stage: Stage) -> float:
    """The work of a stage, roughly, for progress bars."""
    return float(max(stage.work.work, stage.work.rows, 1)) if isinstance(stage.work, Pipeline) else 1.0


def _stage(state: Run, stage: Stage, report: StageReport) -> None:
    """Run a stage. Where memory runs out in the midst of an array function, it runs once more with all room that can be
    made; an error that is raised then holds no frames, so that the next query has their memory."""
    device = state.context.device
    device.task = stage.label
    failures: list[str] = []
    while len(failures) < 2:
        try:
            match stage.work:
                case Pipeline():
                    run_pipeline(state, stage, stage.work, report)
                case HostRows():
                    state.speculation.validate()
                    report.target = "host"
                    state.frames[stage.number] = _on_host(state, stage.work, stage.label)
                case _:
                    at = breaker_device(state, stage.work)
                    if at.is_cpu:
                        state.speculation.validate()
                    report.target = at.name
                    workers = state.context.settings.worker_count
                    made = run_breaker(stage.work, state.frames, state.joins, state.matched, at, workers)
                    state.frames[stage.number] = made
            return
        except MemoryError as error:  # NumPy's and CuPy's; the traceback, and with it the arrays, is let go of here
            failures.append(str(error) or "no memory is left")
        except OutOfMemoryError:
            _forget(state)
            raise
        device.make_room()
    _forget(state)
    raise device.exhausted(stage.label, failures[-1])


def _forget(state: Run) -> None:
    for made in (state.frames, state.joins, state.matched):
        made.clear()
    state.context.device.make_room()


def _on_host(state: Run, work: HostRows, label: str) -> Frame:
    """A frame with columns that the host makes beside those of a source."""
    device, context = cpu_device(), state.context
    if context.device.is_cpu:
        device = context.device
    return run_host_rows(work, read(state, work.source), device, context.settings.worker_count, label)
