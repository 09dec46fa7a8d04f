"""The first stages of a program, recorded so that they serve all plans of a template: with the constants of each.

What differs from a recording of one query (`recording`): Counts of rows have slack, and what goes over the rows of a stage reads
their number on the GPU (`Frame.number`). Before it is played, the launches that depend on constants get those of the query
(`recorded_slots`). It ends before the first stage that has to know numbers exactly, if there is one, and gives the frames that
stages behind read, or the result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.arena import Arena
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.errors import InterruptError
from gquery.execution.feedback import RunFeedback
from gquery.execution.recorded_slots import Made, RecordedSlots
from gquery.execution.recording import Inputs, fetch_block, foreign, inputs_of
from gquery.execution.run_stages import reading_scalars, run_stages
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.expression.facts import INT64_BYTES
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import counted_order, gathers
from gquery.kernels.builtin.define import address
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.operators.base import Frame, JoinIndex, words_a_row
from gquery.operators.sort_keys import sort_keys
from gquery.planner.physical import Program, SortRows
from gquery.runtime.records import dataclass, replace
from gquery.runtime.tuples import NamedTuple


class Place(NamedTuple):
    """Where a buffer lies while the recording runs: ``offset`` (bytes) in the block of a small result."""

    array: Array
    offset: int


@frozen_open
class LiveFrame:
    """A frame that is read behind the recorded stages. ``number`` is where its rows stand in the block (bytes); None: there are
    always as many."""

    frame: Frame
    number: int | None


@frozen_open
class LiveTable:
    """A join table that is read behind the recorded stages, where it lies. ``number`` as in `LiveFrame`, of its build side."""

    index: JoinIndex
    number: int | None


@frozen_open
class Played:
    """What a run of the recorded stages has made for those behind, by the stages that made it. The tables stay where they are
    until the arena runs something else."""

    frames: dict[int, Frame]
    joins: dict[int, JoinIndex]


@dataclass(eq=False)
class TemplateRecording:
    """See above. ``block`` (uint8) has the status words, the numbers of rows, and where they are small, all live frames."""

    end: int  # the first stage that is not recorded
    graph: RecordedGraph | None  # None once it was let go of
    speculation: Speculation
    slots: RecordedSlots | None  # as ``graph``
    frames: dict[int, LiveFrame]
    tables: dict[int, LiveTable]
    places: dict[int, Place]  # of the buffers that are written anew in each run, by their identity
    block: Array
    status_bytes: int  # at the beginning of the block
    is_small: bool
    inputs: Inputs
    kept: list[object]  # kernels, arrays and constants that the graph uses
    seconds: float = 0.0  # that the last run took
    played: int = 0  # runs that it gave

    def release(self) -> None:
        """Let go of everything; nobody plays it again."""
        self.graph, self.slots, self.kept, self.block = None, None, [], np.empty(0, np.uint8)
        self.frames, self.tables, self.places, self.inputs = {}, {}, {}, Inputs((), ())

    def play(self, constants: Sequence[Made], device: Device, arena: Arena) -> Played | None:
        """What a run with these constants (`RecordedSlots.made`) has made; None where the recording is of no use any more. Raises
        what kernels have to say."""
        start = time.perf_counter()
        # what a run needs stays until it has ended, also where memory runs out meanwhile
        graph, inputs, block, _kept = self.graph, self.inputs, self.block, self.kept
        if graph is None or self.slots is None or not self.slots.fits(constants):  # the first two where memory ran out
            return None
        with arena.stream:
            self.slots.set(constants, graph, arena)
            graph.launch(arena.stream)
            fetched, is_current = fetch_block(
                block, self.speculation, arena, self.seconds, lambda _: inputs.are_current(device)
            )
        self.seconds = time.perf_counter() - start
        if not is_current:
            return None
        try:
            self.speculation.check(fetched[: self.status_bytes].view(np.uint32))
        except MisspeculationError:
            return None
        with arena.stream:
            frames = {number: self._frame(live, fetched, device, arena) for number, live in self.frames.items()}
            if not self.is_small:
                arena.stream.synchronize()
        self.played += 1
        joins = {number: _with_rows(live.index, _rows(live.number, fetched)) for number, live in self.tables.items()}
        return Played(frames, joins)

    def _frame(self, live: LiveFrame, fetched: Array, device: Device, arena: Arena) -> Frame:
        frame, rows = live.frame, _rows(live.number, fetched)
        if rows is None:
            rows = frame.rows
        columns = {i: self._column(c, rows, fetched, device, arena) for i, c in frame.columns.items()}
        return Frame(columns, rows)

    def _column(self, column: ColumnData, rows: int, fetched: Array, device: Device, arena: Arena) -> ColumnData:
        """The first rows of a column as they are after this run."""

        def made(buffer: Buffer | None, elements: int) -> Buffer | None:
            place = None if buffer is None else self.places.get(id(buffer))
            if buffer is None or place is None:
                return buffer if buffer is None or elements >= buffer.length else buffer.slice(0, elements)
            size = elements * buffer.dtype.itemsize
            if self.is_small:
                return Buffer(fetched[place.offset : place.offset + size].view(buffer.dtype))
            copy = device.empty(elements, buffer.dtype, "the result")
            arena.copy(address(copy), address(place.array), size)
            return Buffer(copy, device)

        has_offsets = column.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64)
        data = made(column.data, words_a_row(column.physical_type) * rows + has_offsets)
        assert data is not None
        characters = column.characters
        if characters is not None:
            is_known = has_offsets and data.is_on(cpu_device())
            characters = made(characters, int(data.host[rows]) if is_known else characters.length)
        validity = made(column.validity, rows)
        return replace(column, length=rows, data=data, validity=validity, characters=characters)


def _rows(number: int | None, fetched: Array) -> int | None:
    """How many rows there are, by the block of a run; None: as many as always."""
    return None if number is None else int(fetched[number : number + INT64_BYTES].view(np.int64)[0])


def _with_rows(index: JoinIndex, rows: int | None) -> JoinIndex:
    """A join table whose build side has so many rows."""
    if rows is None:
        return index
    frame = replace(index.frame, rows=rows, number=None)
    return replace(index, arrays=replace(index.arrays, count=rows), frame=frame, rows=min(rows, index.rows))


def record_stages(
    program: Program, context: ExecutionContext, rehearsed: RunFeedback, end: int, arena: Arena
) -> TemplateRecording:
    """A recording of the stages before ``end`` of a program that was rehearsed; nothing has run yet. CannotRecordError says what
    stands in its way."""
    device, cuda = cast(RecordingDevice, context.device), cast(AbortableTarget, get_target(context.target))
    shared = rehearsed.shared
    assert shared is not None, "a template's plan"
    constants = device.constants = []
    try:
        with cuda.noting() as noted, arena.recording() as graph:
            speculation = Speculation(rehearsed, device, waits=False, slack=tuning.replay.slack)
            state = Run(program, context, rehearsed, speculation, bound=[], bound_patterns=[])
            run_first_stages(state, end)
            words = speculation.status_words
            frames, tables, size = _live(state, words.nbytes)
            places, all_bytes = _places(state.frames, size, arena, device)
            is_small = all_bytes <= tuning.replay.block_bytes
            block = device.empty(all_bytes if is_small else size, np.uint8, "the result")
            arena.copy(address(block), address(words), words.nbytes)
            found = [(f.number, f.frame) for f in frames.values()] + [
                (t.number, t.index.frame) for t in tables.values()
            ]
            for number, frame in found:
                if number is not None and frame.number is not None:
                    arena.copy(address(block) + number, address(frame.number), INT64_BYTES)
            for place in places.values() if is_small else ():
                arena.copy(address(block) + place.offset, address(place.array), place.array.nbytes)
    except InterruptError:
        raise
    except Exception as error:
        raise CannotRecordError(f"{type(error).__name__}: {error}") from error
    finally:
        device.constants = None
    if not graph:
        raise CannotRecordError("memory has run out")
    kept = [*noted.kernels, *foreign(noted, arena), *constants]
    made = TemplateRecording(
        end,
        graph[0],
        speculation,
        RecordedSlots(state, noted.kernels, shared),
        frames,
        tables,
        places,
        block,
        words.nbytes,
        is_small,
        inputs_of(state),
        kept,
    )
    arena.add(made)
    return made


def run_first_stages(state: Run, end: int) -> None:
    """Run the stages before ``end``. Where that one sorts and needs the first rows alone, few that may be among them are left."""
    run_stages(state, 0, end)
    work = state.program.stages[end].work if end < len(state.program.stages) else None
    if not isinstance(work, SortRows) or work.limit is None or len(state.dataflow.readers[work.stage]) > 1:
        return
    frame, device = state.frames[work.stage], state.context.device
    if frame.number is None:
        return
    state.speculation.stage = end
    with reading_scalars(state):
        found = counted_order.counted_candidates(
            sort_keys(work.keys, frame, device), work.limit + work.offset, frame.number
        )
        if found is not None:
            rows, count = found
            columns = {i: gathers.take(c, rows, device, count.number) for i, c in frame.columns.items()}
            state.frames[work.stage] = Frame(columns, count.bound, number=count.number)


def _live(state: Run, start: int) -> tuple[dict[int, LiveFrame], dict[int, LiveTable], int]:
    """The frames and join tables, with places in the block for the numbers of their rows, and where the block goes on."""

    def place(frame: Frame) -> int | None:
        nonlocal start
        if frame.number is None:
            return None
        start = _aligned(start) + INT64_BYTES
        return start - INT64_BYTES

    frames = {number: LiveFrame(frame, place(frame)) for number, frame in state.frames.items()}
    tables = {number: LiveTable(index, place(index.frame)) for number, index in state.joins.items()}
    return frames, tables, start


def _places(frames: Mapping[int, Frame], start: int, arena: Arena, device: Device) -> tuple[dict[int, Place], int]:
    """The buffers that are written anew in each run, with places in the block behind ``start``, and the size of that."""
    found: dict[int, Place] = {}
    for frame in frames.values():
        for column in frame.columns.values():
            if column.physical_type is PhysicalType.VIEW:
                raise CannotRecordError("a frame has addresses of texts")
            for buffer in column.buffers:
                if id(buffer) in found or not buffer.is_on(device) or not arena.owns(buffer.on(device)):
                    continue
                start = _aligned(start)
                found[id(buffer)] = Place(buffer.on(device), start)
                start += buffer.nbytes
    return found, start


def _aligned(place: int) -> int:
    return -(-place // tuning.replay.alignment) * tuning.replay.alignment
