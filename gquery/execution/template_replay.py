"""Replay for constants that never were: the stages of a template's program are recorded once, and each plan of the template plays
them with its own constants.

It begins once plans of a template have run some times with other constants each (`tuning.replay`). The steps are those of
`replay`: kernels are compiled in the background, the stages are rehearsed, until that needs no kernel that is still being
compiled, then recorded. How many of them is found out by rehearsing: the first stage that cannot be recorded, and those behind,
run as usual over what was replayed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import cast

from gquery import tuning
from gquery.columns.table import Table
from gquery.device.arena import Arena, arena_of
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.errors import OutOfMemoryError
from gquery.execution.feedback import RunFeedback, Shared, TemplateProgress
from gquery.execution.recording import LAYING_OUT, lay_out_nothing
from gquery.execution.replay import is_free, kernels_to_record, may_be_recorded
from gquery.execution.run_stages import result_of, run_stages
from gquery.execution.speculation import COUNTING, Speculation, count_nothing
from gquery.execution.state import ExecutionContext, Run
from gquery.execution.template_recording import TemplateRecording, record_stages, run_first_stages
from gquery.expression.slots import SlotValues
from gquery.kernels.builtin.counted_order import kernels_of_counted_sorts
from gquery.kernels.builtin.text_scan import scans_of_other_patterns
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, KernelsAwaitedError
from gquery.operators.prefix import rows_wanted
from gquery.planner.later import pattern_of
from gquery.planner.physical import Pipeline, Probe, Program, SliceRows, SortRows, Stage
from gquery.runtime.records import replace


def replayed_stages(program: Program, context: ExecutionContext, feedback: RunFeedback) -> Table | None:
    """The result of a plan that a template made, with the first stages replayed; None: the program is to run as usual."""
    shared = feedback.shared
    if shared is None or shared.replay.refused is not None or not may_be_recorded(program, context):
        return None
    progress = shared.replay
    if progress.recorded is None:
        progress.runs += feedback.scalars is None
        if progress.runs <= tuning.replay.template_runs:
            return None
    arena = arena_of(context.device.ordinal)
    with arena.held() as is_held:
        if not is_held:  # a recording runs for another thread: this GPU has work
            return None
        with context.device.activate():
            return _next(program, context, feedback, shared, arena)


def played_template(
    progress: TemplateProgress, values: SlotValues, context: ExecutionContext, is_current: Callable[[], bool]
) -> Table | None:
    """The result of a template's plan with these values, which needs no program where all stages are recorded. While that runs,
    ``is_current`` says whether the plan is one of the tables as they are. None where it is not, where the recording does not
    serve it, and where there is none."""
    recorded = cast(TemplateRecording | None, progress.recorded)
    if recorded is None or recorded.result is None or not is_free(context, context.device):
        return None
    arena = arena_of(context.device.ordinal)
    with arena.held() as is_held:
        if not is_held:
            return None
        with context.device.activate():
            slots = recorded.slots
            constants = None if slots is None else slots.made(values)
            made = None if constants is None else recorded.play(constants, context.device, arena, is_current)
            return None if made is None else recorded.result.table(made.frames)


def _next(
    program: Program, context: ExecutionContext, feedback: RunFeedback, shared: Shared, arena: Arena
) -> Table | None:
    """One step further; the caller has the arena's lock."""
    while True:
        recorded = cast(TemplateRecording | None, shared.replay.recorded)
        if recorded is None:
            recorded = _record(program, context, feedback, shared.replay, arena)
        constants = None if recorded is None or recorded.slots is None else recorded.slots.made(shared.values)
        if recorded is None or constants is None:
            return None
        made = recorded.play(constants, context.device, arena)
        if made is not None:
            break
        _give_up(shared.replay, recorded)  # another one has room for the rows of this query, too
    feedback.replay.runs = max(1, feedback.replay.runs)
    if recorded.end < len(program.stages):
        waiting = Speculation(feedback, context.device, waits=True)
        run_stages(Run(program, context, feedback, waiting, made.frames, made.joins), recorded.end, len(program.stages))
    result = result_of(program, made.frames)
    if made.joins:
        context.device.synchronize()  # they lie where the next recorded run writes
    return result


def _give_up(progress: TemplateProgress, recorded: TemplateRecording) -> None:
    """Let go of a recording that does not fit any more; another is made, but not for ever."""
    progress.bounds, progress.recorded, progress.kernels = dict(recorded.speculation.seen), None, None
    recorded.release()
    progress.given_up = progress.given_up + 1 if recorded.played < tuning.replay.worthwhile else 1
    if progress.given_up >= tuning.replay.given_up:
        progress.refused = "each recording was soon of no use"


def _record(
    program: Program, context: ExecutionContext, feedback: RunFeedback, progress: TemplateProgress, arena: Arena
) -> TemplateRecording | None:
    """A recording, once the kernels that it needs are there."""
    target = cast(AbortableTarget, get_target(context.target))
    staying = replace(context, device=RecordingDevice(context.device, arena))
    if progress.kernels is None:
        needed = dict.fromkeys(kernels_to_record(program, staying, feedback))
        progress.kernels = (*needed, *scans_of_other_patterns(needed), *_kernels_of_counts(program))
        target.compile_in_background(progress.kernels)
    if time.monotonic() < progress.asks_at:
        return None
    if not target.is_at_hand(progress.kernels):
        progress.asks_at = time.monotonic() + tuning.replay.poll_seconds
        return None
    if progress.refused is not None:
        return None
    try:
        rehearsed, end = _rehearse(program, staying, feedback, progress)
        recorded = record_stages(program, staying, rehearsed, end, arena)
    except KernelsAwaitedError as awaited:  # the rehearsal has found what else is needed
        progress.kernels += awaited.kernels
        return None
    except (CannotRecordError, OutOfMemoryError) as reason:  # of memory for more rows than there are
        progress.refused = str(reason)
        return None
    progress.recorded = recorded
    return recorded


def _kernels_of_counts(program: Program) -> Iterator[Kernel]:
    """What only a recording of rows that the GPU counts has use for: no other run has had it compiled."""
    yield LAYING_OUT
    yield from (made.kernel for made in COUNTING)
    if any(isinstance(stage.work, SortRows) for stage in pattern_of(program)):
        yield from kernels_of_counted_sorts()


def _rehearse(
    program: Program, context: ExecutionContext, feedback: RunFeedback, progress: TemplateProgress
) -> tuple[RunFeedback, int]:
    """What a run with all work on the GPU and with slack leaves, and the stage that it had to end before. CannotRecordError where
    that is the first one."""
    stages, reason = program.stages, "nothing of it can be recorded"
    end = next((n for n, stage in enumerate(stages) if not _may_be_recorded(stage)), len(stages))
    target = cast(AbortableTarget, get_target(context.target))
    while end:
        rehearsed = feedback.for_template_recording()
        speculation = Speculation(rehearsed, context.device, True, tuning.replay.slack, progress.bounds)
        try:
            with target.waiting_for_none():  # and so a recording loads no kernel
                run_first_stages(Run(program, context, rehearsed, speculation, bound=[]), end)
                lay_out_nothing(context.device)
                count_nothing(context.device)
        except CannotRecordError as error:
            end, reason = speculation.stage, str(error)
            continue
        speculation.validate_all()
        return rehearsed, end
    raise CannotRecordError(reason)


def _may_be_recorded(stage: Stage) -> bool:
    """Whether a stage is one that goes without knowing how many rows there are."""
    match stage.work:
        case Pipeline() as work if work.host is None and rows_wanted(work) is None:
            return not any(isinstance(s, Probe) and s.records_matches for s in work.steps)
        case SortRows() | SliceRows():
            return True
        case _:
            return False
