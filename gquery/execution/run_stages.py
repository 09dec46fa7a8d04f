"""Some stages of a program, one after another: pipelines and pipeline breakers, memory let go of as soon as no later stage
reads it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import cast

import numpy as np

from gquery.columns.table import Table
from gquery.device.device import Device, cpu_device
from gquery.errors import InterruptError, OutOfMemoryError
from gquery.execution.choose import breaker_device
from gquery.execution.exchange import agree, breaker_frames, gather_inputs, hand_over_inputs, rows_read
from gquery.execution.hashed_rows import exchange_by_hash, partition_frames
from gquery.execution.held import count_made
from gquery.execution.made_lists import remember_lists, resolve_lists
from gquery.execution.measure import Meter, named_range
from gquery.execution.prepare import prepare
from gquery.execution.relief import break_within_memory, run_within_memory
from gquery.execution.sources import read
from gquery.execution.stage_feedback import BuiltTable
from gquery.execution.state import Run, StageReport
from gquery.execution.verify_frame import verify_stage
from gquery.expression.types import Field, Schema
from gquery.kernels.readback import scalar_readback
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.operators.base import Frame, JoinIndex
from gquery.planner.later import pattern_of
from gquery.planner.physical import (
    HostRows,
    Materialize,
    Pipeline,
    PipelineBreaker,
    Program,
    RecursiveRows,
    SortRows,
    Stage,
)
from gquery.runtime import stopwatch
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace


def run_stages(state: Run, first: int, end: int) -> None:
    """Run some stages one after another, over what those before have made."""
    program, context = state.program, state.context
    with reading_scalars(state):
        prepare(state)
        watch = stopwatch.current()
        if watch is not None:
            watch.begin([_weight(s) for s in pattern_of(program)])
        for stage in program.stages[first:end]:
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
                state.forget()
                traceback.clear_frames(error.__traceback__)
                raise
            if context.meter is not None:
                _measure(state, stage, context.meter)
            verify_stage(state, stage)
            report.seconds = time.perf_counter() - start
            if state.rank is not None:
                report.received_bytes, state.rank.received_bytes = state.rank.received_bytes, 0
                state.rank.by_hash.pop(stage.number, None)
            state.reports.append(report)
            for number in state.dataflow.released[stage.number]:
                state.frames.pop(number, None)
                state.unbuilt.pop(number, None)
                if state.rank is not None:
                    state.rank.release(number)
                _note_table(state, number, state.joins.pop(number, None))


def result_of(program: Program, frames: Mapping[int, Frame]) -> Table:
    """The table of the last stage, by the frames that stages made."""
    frame = frames[pattern_of(program)[-1].number]
    return Table(schema_of(program), tuple(frame.columns[s.column.id] for s in program.outputs), frame.rows)


def schema_of(program: Program) -> Schema:
    """The names and types of a program's result."""
    pairs = zip(program.names, program.outputs, strict=True)
    return Schema(tuple(Field(n, s.column.dtype, s.properties.nullable) for n, s in pairs))


def _note_table(state: Run, number: int, index: JoinIndex | None) -> None:
    """Leave to later runs what a join table was like that no stage reads any more."""
    if index is not None:
        built = BuiltTable(index.table, index.rows, index.frame.rows, index.longest)
        state.feedback.built(number, built)


@contextmanager
def reading_scalars(state: Run) -> Iterator[None]:
    """Within it, the run's device is the current one, scalars that a GPU makes are speculated where they can be, and its kernels
    validate them."""
    speculation = state.speculation
    with state.context.device.activate():
        if speculation.abort_flag is None:
            yield
            return
        cuda = cast(AbortableTarget, get_target("cuda"))
        # what is measured is what later runs take
        final = nullcontext() if state.context.meter is None else cuda.without_drafts()
        with scalar_readback(speculation), cuda.aborting_on(speculation.abort_flag), final:
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
    if (space := state.context.device.spill) is not None:
        meter.spilled_bytes = max(meter.spilled_bytes, space.taken)


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
            if state.leaves(stage.number):
                hand_over_inputs(state, stage)
                return
            match stage.work:
                case Pipeline():
                    gather_inputs(state, stage)
                    exchange_by_hash(state, stage, stage.work, report)
                    run_within_memory(state, stage, stage.work, report)
                    resolve_lists(state, stage)
                    agree(state, stage)
                case HostRows():
                    gather_inputs(state, stage)
                    state.frames[stage.number] = _host_rows(state, stage, stage.work, report)
                    agree(state, stage)
                case RecursiveRows():
                    from gquery.execution.recursion import run_recursion

                    frames = breaker_frames(state, stage, stage.work)
                    report.target = "rounds"
                    state.frames[stage.number] = run_recursion(state, stage, stage.work, frames, _stage)
                case _:
                    at = breaker_device(state, stage.work)
                    if at.is_cpu:
                        state.speculation.validate()
                    report.target = at.name
                    frames = partition_frames(state, stage, stage.work, report)
                    if state.bound is not None:
                        frames = _counted(state, stage.work)
                    state.frames[stage.number] = break_within_memory(state, stage, stage.work, frames, at, report)
                    resolve_lists(state, stage)
                    agree(state, stage)
            remember_lists(state, stage)
            if device.keeps_columns and not isinstance(stage.work, Pipeline):
                count_made(state.frames[stage.number], device, stage.label)
            return
        except MemoryError as error:  # NumPy's and CuPy's; the traceback, and with it the arrays, is let go of here
            failures.append(str(error) or "no memory is left")
        except OutOfMemoryError:
            _forget(state)
            raise
        if state.rank is not None:  # others have gone on
            break
        device.make_room()
    _forget(state)
    raise device.exhausted(stage.label, failures[-1])


def _counted(state: Run, work: PipelineBreaker) -> Mapping[int, Frame]:
    """The frames, where the run is recorded for other constants, too: what is sorted has its number of rows on the GPU, so that
    the sort counts on none of its values."""
    if not isinstance(work, SortRows) or (frame := state.frames[work.stage]).number is not None:
        return state.frames
    number = state.context.device.from_host(np.array([frame.rows], np.int64))
    return {**state.frames, work.stage: replace(frame, number=number)}


def _forget(state: Run) -> None:
    state.forget()
    state.context.device.make_room()


def _host_rows(state: Run, stage: Stage, work: HostRows, report: StageReport) -> Frame:
    """A frame with columns that the host makes beside those of a source; where they are joined texts and the source is on a GPU,
    that does."""
    frame = read(state, work.source, rows_read(state, stage))
    device, workers = state.context.device, state.context.settings.worker_count
    if device.is_cuda and _is_on(frame, device):
        from gquery.operators.joined_text import joins_text, run_joined_text  # of GPUs alone

        if joins_text(work):
            report.target = device.name
            return run_joined_text(work, frame, device)
    from gquery.operators.host_rows import run_host_rows

    state.speculation.validate()
    report.target = "host"
    return run_host_rows(work, frame, device if device.is_cpu else cpu_device(), workers, stage.label)


def _is_on(frame: Frame, device: Device) -> bool:
    """Whether all columns of a frame lie on a device, or have to."""
    return device.stays or all(c.data.is_on(device) for c in frame.columns.values())
