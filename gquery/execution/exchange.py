"""What a rank exchanges with others at the borders of stages; nothing where one rank has all rows.

Every rank makes the same exchanges in the same order, since all run the same program by the same placement. Ranks on GPUs hand
over what is only queued: with it goes a mark on the rank's stream, for which the streams of the others wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.peer import Mark, in_step, mark, wait_for
from gquery.distributed.movable import movable, together
from gquery.distributed.stage_placement import Rows
from gquery.execution.state import Rank, Run
from gquery.operators.base import Frame
from gquery.operators.cut_keys import CutKeys, GroupParts
from gquery.operators.merge_groups import Exchange, bytes_of, merge_arrays
from gquery.planner.physical import (
    ConcatRows,
    DistinctRows,
    HostRows,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    RankDecode,
    RankEncode,
    RecursiveRows,
    RoundRows,
    SliceRows,
    SortRows,
    Stage,
    Stored,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import dataclass, replace

T = TypeVar("T")


def rows_read(state: Run, stage: Stage) -> Rows:
    """Which rows of its source a stage runs over."""
    return "whole" if state.rank is None else state.rank.placement[stage.number].reads


def merge_exchange(state: Run, stage: Stage) -> Exchange | None:
    """What the sink of a stage hands its state to; None where it is merged with no other."""
    if state.rank is None or not state.rank.placement[stage.number].merges:
        return None
    placed = state.rank.placement[stage.number]
    return StateExchange(
        state, state.rank, f"states of stage {stage.number}, {stage.label}", placed.parts, placed.ranges
    )


@dataclass(frozen=True)
class StateExchange:
    """Hands states to other ranks, and counts what comes of them; see `Exchange`."""

    state: Run
    own: Rank
    what: str
    parts: GroupParts | None = None
    ranges: CutKeys | None = None

    @property
    def rank(self) -> int:
        """See `Exchange`."""
        return self.own.comm.rank

    @property
    def ranks(self) -> int:
        """See `Exchange`."""
        return self.own.comm.size

    def agree(self, vote: bool) -> bool:
        """See `Exchange`."""
        return self.own.comm.agree(self.what, vote)

    def __call__(self, value: T, /) -> list[T]:
        return brought_near(self.unmoved(value), self.state.context.device)

    def unmoved(self, value: T) -> list[T]:
        """See `Exchange`."""
        return self._counted(handed_over(self.state, self.own, self.what, value))

    def send(self, values: Sequence[T]) -> list[T]:
        """See `Exchange`."""
        return brought_near(self.send_unmoved(values), self.state.context.device)

    def send_unmoved(self, values: Sequence[T]) -> list[T]:
        """See `Exchange`."""
        return self._counted(handed_to_each(self.state, self.own, self.what, values))

    def _counted(self, values: list[T]) -> list[T]:
        self.own.received_bytes += sum(bytes_of(v) for n, v in enumerate(values) if n != self.rank)
        return values


@dataclass(frozen=True, eq=False)
class _Handed(Generic[T]):
    """What a rank hands over: a value, which may have arrays on its device; a mark behind all that writes them; and the flag that
    says whether that has run (None where nothing is speculated)."""

    value: T
    mark: Mark | None
    abort_flag: Array | None


def handed_over(state: Run, rank: Rank, what: str, value: T) -> list[T]:
    """What every rank has, in rank order. What is queued behind finds it there. A rank keeps its own value until all have read
    it: they have when they hand over something again."""
    (own,) = _handed(state, [value])
    parts = rank.comm.all_gather(what, own)
    rank.handed_over = own
    return _received(state, rank, parts)


def handed_to_each(state: Run, rank: Rank, what: str, values: Sequence[T], reads: bool = True) -> list[T]:
    """What every rank has for this one, in rank order; ``values[r]`` is for rank r. See `handed_over`. One that ``reads``
    nothing of it does not mind if others were aborted."""
    own = _handed(state, values)
    parts = rank.comm.exchange(what, own)
    rank.handed_over = own
    return _received(state, rank, parts, reads)


def _handed(state: Run, values: Sequence[T]) -> list[_Handed[T]]:
    """Values with a mark behind all that writes them."""
    behind, speculation = mark(state.context.device), state.speculation
    return [_Handed(v, behind, speculation.abort_flag if speculation.speculates else None) for v in values]


def _received(state: Run, rank: Rank, parts: Sequence[_Handed[T]], reads: bool = True) -> list[T]:
    """The values, for which what is queued behind waits."""
    for number, part in enumerate(parts):
        if number != rank.comm.rank:
            wait_for(state.context.device, part.mark)
            if reads and part.abort_flag is not None:
                state.speculation.follow(part.abort_flag)
    return [p.value for p in parts]


def brought_near(values: Sequence[T], device: Device) -> list[T]:
    """Values that ranks have handed over; a GPU has their small arrays."""
    if not device.is_cuda:
        return list(values)
    from gquery.execution.near import near  # of ranks on GPUs alone

    return near(values, device)


def gather_inputs(state: Run, stage: Stage) -> None:
    """Gather the frames of earlier stages of which a stage needs all rows; for a stage that the first rank runs alone, others
    hand over theirs. All ranks have gathered the same before, so that all come to the same exchanges."""
    rank = state.rank
    if rank is None:
        return
    placed = rank.placement[stage.number]
    kept = rank.wholes_of_first if placed.alone else rank.wholes
    for number in placed.gathers:
        if number not in rank.wholes and number not in kept:
            kept[number] = gathered(state, rank, number, state.frames[number], placed.alone)


def hand_over_inputs(state: Run, stage: Stage) -> None:
    """What a rank does for a stage that the first one runs alone."""
    if isinstance(stage.work, Pipeline | HostRows):
        gather_inputs(state, stage)
    else:
        breaker_frames(state, stage, stage.work)


def gathered(state: Run, rank: Rank, number: int, part: Frame, only_first: bool = False) -> Frame:
    """All rows of a frame of which each rank has a part, in rank order; on the first rank alone, others keep their part."""
    device = state.context.device
    part = movable(part, device)
    what = f"rows of stage {number}, {state.program.stages[number].label}"
    if only_first:
        is_first, others = rank.comm.rank == 0, rank.comm.size - 1
        sent: list[Frame | None] = [part, *[None] * others]
        parts = [p for p in handed_to_each(state, rank, what, sent, is_first) if p is not None]
        if not is_first:
            return part
    else:
        parts = handed_over(state, rank, what, part)
    rank.received_bytes += sum(c.nbytes for n, p in enumerate(parts) if n != rank.comm.rank for c in p.columns.values())
    with in_step():
        return together(brought_near(parts, device), stored_columns(state, number, part), device)


def agree(state: Run, stage: Stage) -> None:
    """Take the first rank's frame of a stage of which ranks might have made different ones."""
    rank = state.rank
    if rank is None or not rank.placement[stage.number].agrees:
        return
    device, is_first = state.context.device, rank.comm.rank == 0
    own = movable(state.frames[stage.number], device) if is_first else None
    frame = handed_over(state, rank, f"rows of stage {stage.number}, {stage.label}", own)[0]
    assert frame is not None
    if not is_first:
        rank.received_bytes += sum(c.nbytes for c in frame.columns.values())
        with in_step():
            frame = together(brought_near([frame], device), stored_columns(state, stage.number, frame), device)
    state.frames[stage.number] = (
        frame  # the first rank's too: on a cluster it may be what it handed over when it ran before
    )


def stored_columns(state: Run, number: int, frame: Frame) -> tuple[Stored, ...]:
    """The columns of a frame that a stage made, as later stages take them to be stored."""
    return tuple([s for s in stage_columns(state.program.stages[number].work) if s.column.id in frame.columns])


def breaker_frames(state: Run, stage: Stage, work: PipelineBreaker) -> Mapping[int, Frame]:
    """The frames that a pipeline breaker reads. What each rank can leave out of its part is not gathered."""
    rank = state.rank
    if rank is None:
        return state.frames
    frames = {**state.frames, **rank.wholes}
    for number in rank.placement[stage.number].gathers:
        if number not in rank.wholes:
            part = _needed(state, rank, work, number)
            frames[number] = gathered(state, rank, number, part, rank.placement[stage.number].alone)
    return frames


def _needed(state: Run, rank: Rank, work: PipelineBreaker, number: int) -> Frame:
    """The rows of a rank's part that may be among those that a pipeline breaker takes, in their order."""
    from gquery.operators.breakers import run_breaker  # of ranks alone

    device, frame = state.context.device, state.frames[number]
    stored = stored_columns(state, number, frame)
    match work:
        case SortRows(limit=limit, offset=offset) if limit is not None:
            columns = frame.columns.values()
            is_small = sum(c.nbytes for c in columns) <= rank.limits.sorted_later_bytes
            if is_small and not any(c.physical_type.is_string for c in columns):  # whose copies a graph cannot record
                return frame
            first = replace(work, columns=stored, limit=limit + offset, offset=0)
            return run_breaker(first, {work.stage: frame}, {}, {}, device)
        case SliceRows(limit=limit, offset=offset) if limit is not None:
            rows = min(frame.rows, limit + offset)
            return Frame({i: c.slice(0, rows) for i, c in frame.columns.items()}, rows)
        case DistinctRows(source=source):
            own = tuple([s for s in stored if s.column.id == source.id])
            return run_breaker(replace(work, columns=own, counted=False), {work.stage: frame}, {}, {}, device)
        case (
            SortRows()
            | SliceRows()
            | ConcatRows()
            | RankEncode()
            | RankDecode()
            | WindowRows()
            | UnnestRows()
            | RoundRows()
            | RecursiveRows()
            | UnmatchedRows()
            | HostRows()
        ):
            return frame
        case OrderedGroups():
            return frame


def merge_matches(state: Run, stage: Stage, pipeline: Pipeline) -> None:
    """FULL joins: which build rows matched on any rank, where all ranks have all build rows."""
    rank = state.rank
    if rank is None or rank.placement[stage.number].reads == "whole":
        return
    for step in pipeline.steps:
        if isinstance(step, Probe) and step.records_matches and rank.placement[step.table.stage].makes == "whole":
            number = step.table.stage
            exchange = StateExchange(state, rank, f"matches of stage {number}, {stage.label}")
            (state.matched[number],) = merge_arrays([state.matched[number]], ["max"], exchange, state.context.device)
