"""A program, stage by stage: pipelines and bulk operations, memory let go of as soon as no later stage reads it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, assert_never

from gquery.columns.table import ColumnData, Table, TableSource
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.errors import InterruptError, OutOfMemoryError
from gquery.execution.choose import bulk_device, for_threads, target_of
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter, named_range
from gquery.execution.prepare import prepare
from gquery.execution.runner import Runner
from gquery.execution.speculation import Outlook, UnforeseenError
from gquery.execution.state import ExecutionContext, Run, StageReport
from gquery.execution.verify_frame import verify_loaded, verify_stage
from gquery.expression.facts import LARGE_ROWS
from gquery.expression.types import Field, Schema
from gquery.kernels import checks
from gquery.kernels.readback import scalar_readback
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import prefix
from gquery.operators.base import DuplicateKeysError, Frame, JoinIndex
from gquery.operators.host_rows import run_host_rows
from gquery.operators.rows import bulk_inputs, run_bulk
from gquery.operators.selection import narrowed
from gquery.operators.specialize import adapt, attempted, fitted
from gquery.planner.physical import (
    Bulk,
    Collect,
    HostRows,
    Pipeline,
    Probe,
    Program,
    RankEncode,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    Source,
    Stage,
)
from gquery.runtime import stopwatch
from gquery.runtime.interrupt import check


def run(program: Program, context: ExecutionContext, feedback: RunFeedback | None = None) -> Table:
    """The result of a program; ``feedback`` is what earlier runs of it have left, for this one and for later ones."""
    return run_with_report(program, context, feedback)[0]


def run_with_report(
    program: Program, context: ExecutionContext, feedback: RunFeedback | None = None
) -> tuple[Table, list[StageReport]]:
    """The result of a program, and what each stage did. A run that is not measured foresees what it can."""
    feedback = feedback or RunFeedback()
    state = Run(program, context, feedback, Outlook(feedback, context.device, context.meter is not None))
    try:
        return _run(state)
    except UnforeseenError:
        pass
    except Exception:
        if not state.outlook.is_off():  # else it comes of arrays that kernels were halted before they wrote
            raise
    for made in (state.frames, state.joins, state.matched):
        made.clear()
    return _run(Run(program, context, feedback, Outlook(feedback, context.device, True)))


def _run(state: Run) -> tuple[Table, list[StageReport]]:
    program, context = state.program, state.context
    last_use = _last_uses(program)
    with context.device.activate(), _reading_scalars(state):
        prepare(state)
        watch = stopwatch.current()
        if watch is not None:
            watch.begin([_weight(s) for s in program.stages])
        for stage in program.stages:
            start = time.perf_counter()
            report = StageReport(stage.number, stage.label, "", 0, 0.0)
            state.outlook.stage = stage.number
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
            if checks.ENABLED and stage.number in state.frames:
                verify_stage(stage, state.frames[stage.number], stage is program.stages[-1])
            report.seconds = time.perf_counter() - start
            state.reports.append(report)
            for number in [n for n, last in last_use.items() if last == stage.number]:
                state.frames.pop(number, None)
                state.joins.pop(number, None)
        state.outlook.validate_all()
    frame = state.frames[program.stages[-1].number]
    columns = tuple(frame.columns[s.column.id] for s in program.outputs)
    fields = tuple(
        Field(n, s.column.dtype, s.properties.nullable) for n, s in zip(program.names, program.outputs, strict=True)
    )
    return Table(Schema(fields), columns, frame.rows), state.reports


@contextmanager
def _reading_scalars(state: Run) -> Iterator[None]:
    """Within it, numbers that a GPU makes are foreseen where they can be, and its kernels look whether they hold."""
    outlook = state.outlook
    if outlook.halt is None:
        yield
        return
    cuda: Any = get_target("cuda")
    with scalar_readback(outlook.read_scalar, outlook.validate), cuda.halting(outlook.halt):
        yield


def _measure(state: Run, stage: Stage, meter: Meter) -> None:
    """What a stage made, for its report; waits until it is there."""
    state.context.device.synchronize()
    frame = state.frames.get(stage.number)
    if frame is not None:
        meter.rows_out[stage.number] = frame.rows
        if isinstance(stage.work, Pipeline) and isinstance(stage.work.sink, Collect):
            meter.wrote(stage.number, sum(c.nbytes for c in frame.columns.values()))
    if not state.context.device.is_cuda:
        held = {id(b): b.nbytes for f in state.frames.values() for c in f.columns.values() for b in c.buffers}
        parts = {id(p): p.nbytes for j in state.joins.values() for p in j.parts.values() if isinstance(p, Buffer)}
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
                    _pipeline(state, stage, stage.work, report)
                case HostRows():
                    state.outlook.validate()
                    report.target = "host"
                    state.frames[stage.number] = _on_host(state, stage.work, stage.label)
                case _:
                    at = bulk_device(state, stage.work)
                    if at.is_cpu:
                        state.outlook.validate()
                    report.target = at.name
                    workers = state.context.settings.worker_count
                    made = run_bulk(stage.work, state.frames, state.joins, state.matched, at, workers)
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


def _last_uses(program: Program) -> dict[int, int]:
    """For each stage but the last, the last stage that reads what it made."""
    last: dict[int, int] = {}
    for stage in program.stages:
        for number in inputs(stage.work):
            last[number] = stage.number
    last.pop(program.stages[-1].number, None)
    return last


def inputs(work: Pipeline | Bulk) -> list[int]:
    if not isinstance(work, Pipeline):
        return bulk_inputs(work)
    found = [work.source.stage] if isinstance(work.source, ReadStage) else []
    return found + [s.table.stage for s in work.steps if isinstance(s, Probe)]


# ---- pipelines ------------------------------------------------------------------------------------------------------


def _pipeline(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    frame = _read(state, pipeline.source)
    pipeline = adapt(pipeline, frame.rows, state.joins)
    wanted = prefix.rows_wanted(pipeline)
    if wanted is None:
        result = _unique_if_so(state, stage, pipeline, frame, report)
    else:
        result = _first_rows(state, stage, pipeline, frame, wanted, report)
    if isinstance(result, JoinIndex):
        state.joins[stage.number] = result
    else:
        state.frames[stage.number] = result


def _unique_if_so(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Frame | JoinIndex:
    """A pipeline over all rows; a build of keys that may be unique tries that first, unless an earlier run has seen one twice."""
    pipeline = fitted(pipeline, frame.rows, state.context.device)
    attempt = attempted(pipeline)
    if attempt is not pipeline and not state.feedback.stage(stage.number).duplicate_keys:
        try:
            return _whole(state, stage, attempt, frame, report)
        except DuplicateKeysError:
            state.feedback.found_duplicate_keys(stage.number)
            report.attempts += 1
    return _whole(state, stage, pipeline, frame, report)


def _first_rows(
    state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, wanted: int, report: StageReport
) -> Frame | JoinIndex:
    """A pipeline over the first rows of its source, more of them until enough came out."""
    device = state.context.device
    length = prefix.first_length(pipeline, wanted, device.is_cuda)
    while True:
        part = prefix.prefix(frame, length, device)
        result = _whole(state, stage, pipeline, part, report)
        assert isinstance(result, Frame)
        if result.rows >= wanted or part.rows == frame.rows:
            return result
        length = prefix.next_length(length, result.rows, wanted)
        report.attempts += 1


def _whole(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Frame | JoinIndex:
    """A pipeline over all rows of a frame."""
    report.rows = frame.rows
    context = state.context
    is_result = stage.number == state.program.stages[-1].number
    lies = prefix.as_it_lies(pipeline, frame, context.device, is_result, _readers(state.program, stage.number))
    if lies is not None and context.meter is None:
        report.target = "none"
        return lies
    threaded = for_threads(state, stage, pipeline)
    name = target_of(state, stage, threaded, frame.rows)
    if capabilities(name).runs_morsels:
        pipeline = threaded
    if not capabilities(name).has_own_memory and not isinstance(pipeline.source, ReadTable | ReadOne | ReadRange):
        state.outlook.validate()
    if frame.rows >= LARGE_ROWS > pipeline.rows:  # more than was estimated: the index needs 64 bits
        pipeline = replace(pipeline, rows=frame.rows)
    if capabilities(name).has_warps and not context.counts:
        pipeline = narrowed(pipeline, frame.rows)
    runner = Runner(state, stage, pipeline, frame, name, report)
    result = runner.run()
    report.target = runner.name
    return result


def _readers(program: Program, number: int) -> list[Pipeline | Bulk]:
    """The work that reads the columns of a stage, those that ranks stand beside too."""
    found: list[Pipeline | Bulk] = []
    for stage in program.stages[number + 1 :]:
        if number in inputs(stage.work):
            found.append(stage.work)
            if isinstance(stage.work, RankEncode):
                found += _readers(program, stage.number)
    return found


def _on_host(state: Run, work: HostRows, label: str) -> Frame:
    """A frame with columns that the host makes beside those of a source."""
    device, context = cpu_device(), state.context
    if context.device.is_cpu:
        device = context.device
    return run_host_rows(work, _read(state, work.source), device, context.settings.worker_count, label)


def _read(state: Run, source: Source) -> Frame:
    match source:
        case ReadTable(table, fields, columns):
            loaded = _loaded(state, table, fields)
            rows = next(iter(loaded.values())).length if loaded else table.rows
            frame = Frame({s.column.id: loaded[f] for s, f in zip(columns, fields, strict=True)}, rows)
            if checks.ENABLED:
                verify_loaded(columns, frame, f"table {table.name}")
            return frame
        case ReadStage(number, columns, origins):
            frame = state.frames[number]
            return Frame({s.column.id: frame.columns[o] for s, o in zip(columns, origins, strict=True)}, frame.rows)
        case ReadRange(rows=rows):
            return Frame({}, rows)
        case ReadOne():
            return Frame({}, 1)
        case _:
            assert_never(source)


def _loaded(state: Run, table: TableSource, fields: Sequence[int]) -> dict[int, ColumnData]:
    """Columns of a table by field: those that the program reads, asked for once a run."""
    found = state.tables.get(id(table))
    if found is None or any(f not in found for f in fields):
        wanted = _fields_of(state.program, table)
        found = state.tables[id(table)] = dict(zip(wanted, table.load(wanted).columns, strict=True)) if wanted else {}
    return {f: found[f] for f in fields}


def _fields_of(program: Program, table: TableSource) -> list[int]:
    """The fields of a table that a program reads."""
    sources = [s.work.source for s in program.stages if isinstance(s.work, Pipeline | HostRows)]
    return sorted({f for s in sources if isinstance(s, ReadTable) and s.source is table for f in s.fields})
