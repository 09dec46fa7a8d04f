"""The first stages of a program, recorded so that they serve all plans of a template: with the constants of each.

What differs from a recording of one query (`recording`): Counts of rows have slack, and what goes over the rows of a stage reads
their number on the GPU (`Frame.number`). Before it is played, the launches that depend on constants get those of the query
(`recorded_slots`). It ends before the first stage that has to know numbers exactly, if there is one, and gives the frames that
stages behind read, or the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData, Table
from gquery.device.arena import Arena
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.errors import InterruptError
from gquery.execution.feedback import RunFeedback
from gquery.execution.recorded_slots import Made, RecordedSlots
from gquery.execution.recording import Inputs, always, fetch_block, foreign, inputs_of
from gquery.execution.run_stages import reading_scalars, run_stages, schema_of
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.expression.facts import INT64_BYTES
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType, Schema
from gquery.kernels.builtin import counted_order, gathers
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.elements import copy_together
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.operators.base import Frame, JoinIndex, words_a_row
from gquery.operators.sort_keys import sort_keys
from gquery.planner.later import pattern_of
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


class Result(NamedTuple):
    """Where the columns of a result stand whose program is recorded to its end: all plans of a template have the same names and
    types, and Arrow's are made of them once."""

    stage: int
    columns: tuple[int, ...]  # their ids
    schema: Schema

    @classmethod
    def of(cls, program: Program) -> Result | None:
        """That of a program; None where values of columns are fetched behind the last stage."""
        if program.fetch is not None:
            return None
        ids = tuple([s.column.id for s in program.outputs])
        return cls(pattern_of(program)[-1].number, ids, schema_of(program))

    def table(self, frames: Mapping[int, Frame]) -> Table:
        """The result by what a run has made."""
        frame = frames[self.stage]
        return Table(self.schema, tuple([frame.columns[i] for i in self.columns]), frame.rows)


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
    result: Result | None  # None where stages are left to run
    kept: list[object]  # kernels, arrays and constants that the graph uses
    seconds: float = 0.0  # that the last run took
    played: int = 0  # runs that it gave

    def release(self) -> None:
        """Let go of everything; nobody plays it again."""
        self.graph, self.slots, self.kept, self.block = None, None, [], np.empty(0, np.uint8)
        self.frames, self.tables, self.places, self.inputs = {}, {}, {}, Inputs((), ())

    def play(
        self, constants: Sequence[Made], device: Device, arena: Arena, is_current: Callable[[], bool] = always
    ) -> Played | None:
        """What a run with these constants (`RecordedSlots.made`) has made; None where the recording is of no use any more, or
        ``is_current`` says that, which is asked while the GPU works. Raises what kernels have to say."""
        start = time.perf_counter()
        # what a run needs stays until it has ended, also where memory runs out meanwhile
        graph, inputs, block, _kept = self.graph, self.inputs, self.block, self.kept
        if graph is None or self.slots is None or not self.slots.fits(constants):  # the first two where memory ran out
            return None
        with arena.stream:
            self.slots.set(constants, graph, arena)
            graph.launch(arena.stream)
            fetched, is_same = fetch_block(
                block, self.speculation, arena, self.seconds, lambda _: is_current() and inputs.are_current(device)
            )
        self.seconds = time.perf_counter() - start
        if not is_same:
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
        physical, validity, characters = column.physical_type, column.validity, column.characters
        has_offsets = physical in (PhysicalType.STRING32, PhysicalType.STRING64)
        data = self._buffer(column.data, words_a_row(physical) * rows + has_offsets, fetched, device, arena)
        if validity is not None:
            validity = self._buffer(validity, rows, fetched, device, arena)
        if characters is not None:
            is_known = has_offsets and data.is_on(cpu_device())
            size = int(data.host[rows]) if is_known else characters.length
            characters = self._buffer(characters, size, fetched, device, arena)
        return ColumnData(
            column.dtype,
            physical,
            rows,
            data,
            validity,
            characters,
            column.dictionary,
            column.statistics,
            column.owners,
        )

    def _buffer(self, buffer: Buffer, elements: int, fetched: Array, device: Device, arena: Arena) -> Buffer:
        """The first elements of a buffer as they are after this run."""
        place = self.places.get(id(buffer))
        if place is None:
            return buffer if elements >= buffer.length else buffer.slice(0, elements)
        size = elements * buffer.dtype.itemsize
        if self.is_small:
            return Buffer(fetched[place.offset : place.offset + size].view(buffer.dtype))
        copy = device.empty(elements, buffer.dtype, "the result")
        arena.copy(address(copy), address(place.array), size)
        return Buffer(copy, device)


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
            counted = [(f.number, f.frame) for f in frames.values()]
            counted += [(t.number, t.index.frame) for t in tables.values()]
            pieces = [(words, 0)] + [(f.number, n) for n, f in counted if n is not None and f.number is not None]
            if is_small:
                pieces += [(p.array, p.offset) for p in places.values()]
            copy_together([(array, block[at : at + array.nbytes]) for array, at in pieces], device)
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
        None if tables or end < len(program.stages) else Result.of(program),
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
