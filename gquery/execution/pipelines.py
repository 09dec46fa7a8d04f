"""One pipeline of a program: over all rows of its source, or over as many of the first as give enough rows."""

from __future__ import annotations

from gquery import tuning
from gquery.device.recording import CannotRecordError
from gquery.execution.decide import decide, work_ahead
from gquery.execution.exchange import merge_matches, rows_read
from gquery.execution.runner import Runner
from gquery.execution.sources import read
from gquery.execution.state import Run, StageReport
from gquery.kernels.targets.capabilities import Capabilities
from gquery.operators import prefix
from gquery.operators.base import DuplicateKeysError, FannedOutError, Frame, JoinIndex, OutgrownError
from gquery.operators.scan_ranges import ScanRanges, scan_ranges, whole_scan
from gquery.operators.specialize import specialize_for_tables
from gquery.planner.physical import Pipeline, ReadStage, Stage


def run_pipeline(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport, rows: Frame | None = None) -> None:
    """Run a pipeline, over some ``rows`` of its source or over all; what it made is in the run's state."""
    by_hash = None if state.rank is None else state.rank.by_hash.get(stage.number)
    frame = rows if rows is not None else read(state, pipeline.source, rows_read(state, stage), by_hash)
    wanted = prefix.rows_wanted(pipeline)
    if wanted is None:
        result = _validated(state, stage, pipeline, frame, report)
    else:
        result = _first_rows(state, stage, pipeline, frame, wanted, report)
    if isinstance(result, JoinIndex):
        state.joins[stage.number] = result
    else:
        state.frames[stage.number] = result
    merge_matches(state, stage, pipeline)


def _validated(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Frame | JoinIndex:
    """A pipeline over all rows. A build that speculated that its keys are unique, and found one twice, runs again, and so does
    a pipeline that speculated on few rows, and made many, or one that was interpreted and has too much work for that. Each is
    noted, and so happens once."""
    while True:
        try:
            return _run(state, stage, pipeline, frame, report)
        except DuplicateKeysError:
            state.feedback.found_duplicate_keys(stage.number)
        except FannedOutError:
            state.feedback.found_fan_out(stage.number)
        except OutgrownError:
            state.feedback.found_outgrown(stage.number)
        report.attempts += 1


def _first_rows(
    state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, wanted: int, report: StageReport
) -> Frame | JoinIndex:
    """A pipeline over the first rows of its source, more of them until enough came out."""
    device = state.context.device
    length = prefix.first_length(specialize_for_tables(pipeline, frame.rows, state.joins), wanted, device.is_cuda)
    while True:
        part = prefix.prefix(frame, length, device)
        result = _validated(state, stage, pipeline, part, report)
        assert isinstance(result, Frame)
        if result.rows >= wanted or part.rows == frame.rows:
            return result
        length = prefix.next_length(length, result.rows, wanted)
        report.attempts += 1


def _scan(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, able: Capabilities) -> ScanRanges:
    """The rows to scan, by the plan's pipeline: a decision may serve other constants. Nobody asks again where an earlier run of
    the same constants had to scan nearly all: the keys of join tables take longer to look through than that saves."""
    if stage.number in state.feedback.whole_scans:
        return whole_scan(frame)
    scan = scan_ranges(pipeline, frame, state.joins, able)
    if scan.rows > tuning.encoding.whole_scan * frame.rows:
        state.feedback.whole_scans.add(stage.number)
    elif state.bound is not None:
        raise CannotRecordError("which rows are scanned depends on constants")
    return scan if state.bound is None else whole_scan(frame)


def _run(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Frame | JoinIndex:
    """A pipeline over all rows of a frame."""
    report.rows = frame.rows
    context = state.context
    is_result, readers = state.makes_result(stage.number), state.dataflow.readers[stage.number]
    lies = prefix.zero_copy(pipeline, frame, context.device, is_result, readers)
    if lies is not None and context.meter is None:
        report.target = "none"
        return lies
    decision = decide(state, stage, pipeline, frame.rows)
    if not decision.able.has_own_memory and isinstance(pipeline.source, ReadStage):
        state.speculation.validate()
    scan = _scan(state, stage, pipeline, frame, decision.able)
    report.target, report.blocks, report.skipped_blocks = decision.runs.target, scan.blocks, scan.skipped
    result = Runner(state, stage, decision, frame, scan, report).run()
    state.feedback.read_rows(stage.number, frame.rows)
    work_ahead(state, stage, pipeline, decision)
    return result
