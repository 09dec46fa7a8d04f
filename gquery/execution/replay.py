"""Replay: a program that has run some times on a GPU is recorded as a CUDA graph, and runs as one launch from then on.

A hot run is nearly all Python that sends the same launches again. What is to be launched depends on numbers that the GPU makes,
and `speculation` takes them as they were in the run before, has the GPU compare, and so never waits. Such a run can be
recorded: its launches, copies and fills become a graph (`device.arena`), whose memory and whose arrays stay where they were. To
replay it is to launch the graph, wait, and copy the result out. What is compared in a run is compared in each replay: where a
number is another one, the recording is given up and the query runs as usual.

A program comes to it in four steps. It runs as usual until it has proved to be one that comes again. The kernels of the stages
that were interpreted so far are compiled in the background. It is *rehearsed*: run once with all work on the GPU, where nothing
is sent to the host between (`device.recording`). Then it is recorded. A program that has to wait for the GPU in its midst is
refused for good.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from gquery import tuning
from gquery.columns.table import Table
from gquery.device.arena import Arena, arena_of
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.execution.feedback import Recorded, RunFeedback
from gquery.execution.prepare import forecast
from gquery.execution.recording import RunStages, record
from gquery.execution.speculation import Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.execution.variants import output_of, units_of
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.operators.reduce_run import as_group
from gquery.planner.later import pattern_of
from gquery.planner.physical import Group, HostRows, Pipeline, Program, Reduce


def replayed(program: Program, context: ExecutionContext, feedback: RunFeedback, run_stages: RunStages) -> Table | None:
    """The result by a recording, or by a run that leads to one; None: the program is to run as usual."""
    progress = feedback.replay
    has_run = feedback.scalars is not None or progress.runs > 0
    if progress.refused is not None or not has_run or not may_be_recorded(program, context):
        return None
    progress.runs += 1
    is_served = feedback.shared is not None and feedback.shared.replay.recorded is not None
    if progress.runs < (tuning.replay.runs_beside_template if is_served else tuning.replay.runs):
        return None
    arena = arena_of(context.device.ordinal)
    if not arena.lock.acquire(blocking=False):  # a recording runs for another thread: this GPU has work
        return None
    try:
        with context.device.activate():
            return _next(program, context, feedback, run_stages, arena)
    finally:
        arena.lock.release()


def may_be_recorded(program: Program, context: ExecutionContext) -> bool:
    """Whether a program runs on one GPU, with nothing on the host, and under no limit of memory."""
    settings = context.settings
    if not context.device.is_cuda or context.meter is not None or not settings.replay:
        return False
    if settings.partitions > 1 or context.device.memory_limit is not None:
        return False
    works = [stage.work for stage in pattern_of(program)]
    return not any(isinstance(w, HostRows) or (isinstance(w, Pipeline) and w.host is not None) for w in works)


def _next(
    program: Program, context: ExecutionContext, feedback: RunFeedback, run_stages: RunStages, arena: Arena
) -> Table | None:
    """One step further; the caller has the arena's lock."""
    progress = feedback.replay
    recorded = progress.recorded
    if recorded is None:
        staying = replace(context, device=RecordingDevice(context.device, arena))
        if progress.rehearsed is None:
            return _rehearse(program, staying, feedback, run_stages)
        try:
            recorded = progress.recorded = record(program, staying, progress.rehearsed, run_stages, arena)
        except CannotRecordError as reason:
            progress.refused = str(reason)
            return None
    elif recorded.program is not program:
        return None
    table = recorded.play(context.device, arena)
    if table is None:
        _give_up(feedback, recorded)
    return table


def _give_up(feedback: RunFeedback, recorded: Recorded) -> None:
    """Let go of a recording that does not fit any more; another is made, but not for ever."""
    progress = feedback.replay
    recorded.release()
    progress.recorded = progress.rehearsed = None
    progress.given_up += 1
    if progress.given_up >= tuning.replay.given_up:
        progress.refused = "each recording was soon of no use"


def _rehearse(
    program: Program, context: ExecutionContext, feedback: RunFeedback, run_stages: RunStages
) -> Table | None:
    """A run with all work on the GPU, once its kernels are there: it leaves the numbers that the recording speculates on."""
    progress, target = feedback.replay, cast(AbortableTarget, get_target(context.target))
    if progress.kernels is None:
        progress.kernels = tuple(dict.fromkeys(kernels_to_record(program, context, feedback)))
        target.compile_in_background(progress.kernels)
    if time.monotonic() < progress.asks_at:
        return None
    if not target.is_at_hand(progress.kernels):
        progress.asks_at = time.monotonic() + tuning.replay.poll_seconds
        return None
    rehearsed = feedback.for_recording()
    waiting = Speculation(rehearsed, context.device, waits=True)
    with target.without_drafts():  # no kernel is loaded while a graph is recorded
        table = run_stages(Run(program, context, rehearsed, waiting))
    waiting.validate_all()
    progress.rehearsed = rehearsed
    return table


def kernels_to_record(program: Program, context: ExecutionContext, feedback: RunFeedback) -> Iterator[Kernel]:
    """The kernels that a program probably needs where all of its work is on the GPU."""
    for found in forecast(program, context, feedback):
        number, pipeline = found.stage.number, found.runs.pipeline
        yield from (u.kernel for u in units_of(feedback, number, pipeline, context.target))
        match pipeline.sink:
            case Group() as sink if not sink.sparse:
                yield output_of(feedback, number, sink, context.target).unit[0]
            case Reduce() as sink:
                yield output_of(feedback, number, as_group(sink), context.target).unit[0]
