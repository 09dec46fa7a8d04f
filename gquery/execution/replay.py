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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Protocol, cast

from gquery import tuning
from gquery.columns.table import Table
from gquery.device.arena import Arena, arena_of
from gquery.device.device import Device
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.execution.feedback import Recorded, RunFeedback
from gquery.execution.prepare import forecast
from gquery.execution.recording import LAYING_OUT, RunStages, lay_out_nothing, record
from gquery.execution.speculation import Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.execution.variants import output_of, units_of
from gquery.expression.frozen import frozen_single
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, KernelsAwaitedError
from gquery.operators.joined_text import joins_text
from gquery.operators.merge_groups import merged_sink
from gquery.operators.reduce_run import as_group
from gquery.operators.text_scans import kernels_of_scans
from gquery.planner.later import pattern_of
from gquery.planner.physical import (
    Group,
    HostRows,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Program,
    Reduce,
    UnnestRows,
    WindowRows,
)
from gquery.runtime.records import replace


class Way(Protocol):
    """How a program is recorded: on one GPU, or on several by ranks (`ranked_replay`)."""

    @property
    def context(self) -> ExecutionContext:
        """Where and how it runs; on the first GPU."""

    @property
    def has_run(self) -> bool:
        """Whether the program has run as usual."""

    @property
    def arenas(self) -> Sequence[Arena]:
        """Those of the GPUs, the first one's first; each once."""

    def may_record(self) -> bool:
        """Whether nothing speaks against it that is known before."""

    def kernels(self) -> Iterator[Kernel]:
        """What the program probably needs where all of its work is on the GPUs."""

    def rehearse(self, rehearsed: RunFeedback) -> Table:
        """The result of a run with all work on the GPUs, which leaves the numbers that the recording speculates on."""

    def record(self, rehearsed: RunFeedback) -> Recorded:
        """A recording of the program; nothing has run yet. CannotRecordError says what stands in its way."""


@frozen_single
class OneGpu:
    """A program on one GPU; see `Way`."""

    program: Program
    context: ExecutionContext
    feedback: RunFeedback
    run_stages: RunStages

    @property
    def has_run(self) -> bool:
        """See `Way`."""
        return self.feedback.scalars is not None

    @property
    def arenas(self) -> Sequence[Arena]:
        """See `Way`."""
        return (arena_of(self.context.device.ordinal),)

    def may_record(self) -> bool:
        """See `Way`."""
        return may_be_recorded(self.program, self.context)

    def kernels(self) -> Iterator[Kernel]:
        """See `Way`."""
        return kernels_to_record(self.program, staying(self.context, self.arenas[0]), self.feedback)

    def rehearse(self, rehearsed: RunFeedback) -> Table:
        """See `Way`."""
        context = staying(self.context, self.arenas[0])
        waiting = Speculation(rehearsed, context.device, waits=True)
        with cast(AbortableTarget, get_target(context.target)).waiting_for_none():
            table = self.run_stages(Run(self.program, context, rehearsed, waiting))
        waiting.validate_all()
        return table

    def record(self, rehearsed: RunFeedback) -> Recorded:
        """See `Way`."""
        (arena,) = self.arenas
        return record(self.program, staying(self.context, arena), rehearsed, self.run_stages, arena)


def staying(context: ExecutionContext, arena: Arena) -> ExecutionContext:
    """The same with all work on the GPU."""
    return replace(context, device=RecordingDevice(context.device, arena))


def replayed(program: Program, feedback: RunFeedback, way: Way) -> Table | None:
    """The result by a recording, or by a run that leads to one; None: the program is to run as usual."""
    progress = feedback.replay
    if progress.refused is not None or not (way.has_run or progress.runs) or not way.may_record():
        return None
    progress.runs += 1
    is_served = feedback.shared is not None and feedback.shared.replay.recorded is not None
    if progress.runs < (tuning.replay.runs_beside_template if is_served else tuning.replay.runs):
        return None
    with ExitStack() as locks:
        if not all(locks.enter_context(arena.held()) for arena in way.arenas):
            return None  # a recording runs for another thread: this GPU has work
        locks.enter_context(way.context.device.activate())
        return _next(program, feedback, way, way.arenas[0])


def replayed_beside(
    program: Program, context: ExecutionContext, feedback: RunFeedback, is_current: Callable[[], bool]
) -> Table | None:
    """The result by a recording, on one GPU or on those of all ranks. While that runs, ``is_current`` says whether the program
    may run over the tables as they are; None where it may not, and where nothing is recorded."""
    recorded = feedback.replay.recorded
    if recorded is None or recorded.program is not program or not is_free(context, context.device):
        return None
    if context.ranks:
        return _replayed_beside_by_ranks(recorded, context, is_current)
    arena = arena_of(context.device.ordinal)
    with arena.held() as is_held:
        if not is_held:
            return None
        with context.device.activate():
            return recorded.play(context.device, arena, is_current)


def _replayed_beside_by_ranks(
    recorded: Recorded, context: ExecutionContext, is_current: Callable[[], bool]
) -> Table | None:
    """The same on the GPUs of all ranks."""
    if not all(is_free(context, d) for d in context.ranks):
        return None
    arenas = [arena_of(d.ordinal) for d in context.ranks]
    with ExitStack() as locks:
        if not all(locks.enter_context(arena.held()) for arena in arenas):
            return None
        locks.enter_context(context.device.activate())
        return recorded.play(context.device, arenas[0], is_current)


def is_free(context: ExecutionContext, device: Device) -> bool:
    """Whether runs are on a GPU, under no limit of memory, and not measured."""
    settings = context.settings
    if not device.is_cuda or context.meter is not None or not settings.replay:
        return False
    return settings.partitions == 1 and device.memory_limit is None


def may_be_recorded(program: Program, context: ExecutionContext) -> bool:
    """Whether a program runs on one GPU, with nothing on the host, and under no limit of memory."""
    if not is_free(context, context.device):
        return False
    works = [stage.work for stage in pattern_of(program)]
    return not any(_is_on_host(work) for work in works)


def _is_on_host(work: Pipeline | PipelineBreaker) -> bool:
    """Whether the host has a part in a stage."""
    match work:
        case HostRows():
            return not joins_text(work)
        case Pipeline(host=host):
            return host is not None
        case UnnestRows():
            return True
        case OrderedGroups(calls=calls) | WindowRows(calls=calls):
            return any(stored.properties.dtype.is_nested for stored, _ in calls)
        case _:
            return False


def _next(program: Program, feedback: RunFeedback, way: Way, arena: Arena) -> Table | None:
    """One step further; the caller has the locks of the arenas."""
    progress = feedback.replay
    recorded = progress.recorded
    if recorded is None:
        try:
            if progress.rehearsed is None:
                return _rehearse(feedback, way)
            recorded = progress.recorded = way.record(progress.rehearsed)
        except CannotRecordError as reason:
            progress.refused = str(reason)
            return None
    elif recorded.program is not program:
        return None
    table = recorded.play(way.context.device, arena)
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


def _rehearse(feedback: RunFeedback, way: Way) -> Table | None:
    """A run with all work on the GPUs, once its kernels are there: no kernel is loaded while a graph is recorded."""
    progress, target = feedback.replay, cast(AbortableTarget, get_target(way.context.target))
    if progress.kernels is None:
        progress.kernels = tuple(dict.fromkeys([*way.kernels(), LAYING_OUT]))
        target.compile_in_background(progress.kernels)
    if time.monotonic() < progress.asks_at:
        return None
    if not target.is_at_hand(progress.kernels):
        progress.asks_at = time.monotonic() + tuning.replay.poll_seconds
        return None
    rehearsed = feedback.for_recording()
    try:
        table = way.rehearse(rehearsed)
        with target.waiting_for_none():
            lay_out_nothing(way.context.device)
    except KernelsAwaitedError as awaited:  # which the forecast did not have
        progress.kernels += awaited.kernels
        return None
    progress.rehearsed = rehearsed
    return table


def merges_nothing(stage: int) -> bool:
    """Whether the states of several ranks become one at the end of a stage, where there is one rank."""
    return False


def kernels_to_record(
    program: Program,
    context: ExecutionContext,
    feedback: RunFeedback,
    merges: Callable[[int], bool] = merges_nothing,
) -> Iterator[Kernel]:
    """The kernels that a program probably needs where all of its work is on the GPU."""
    for found in forecast(program, context, feedback, merges=merges):
        number, pipeline = found.stage.number, found.runs.pipeline
        for unit in units_of(feedback, number, pipeline, context.target):
            yield unit.kernel
            yield from kernels_of_scans(pipeline.source, unit.bindings.values())
        match pipeline.sink:
            case Group() as sink if not sink.sparse:
                made = merged_sink(sink) if merges(number) else sink
                yield output_of(feedback, number, made, context.target).unit[0]
            case Reduce() as sink:
                yield output_of(feedback, number, as_group(sink), context.target).unit[0]
