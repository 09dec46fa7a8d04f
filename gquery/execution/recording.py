"""A recorded run: the graph, what it needs to be played again, and the result that it gives (see `replay`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData, Table, TableSource
from gquery.device.arena import Arena
from gquery.device.array import Array, ElementDType
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.distributed.parts import part_of
from gquery.errors import InterruptError
from gquery.execution.feedback import RunFeedback
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.elements import COPIED, copy_together
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, Launched
from gquery.planner.physical import Pipeline, Program, ReadTable
from gquery.runtime.interrupt import beside
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

T = TypeVar("T")

RunStages = Callable[[Run], Table]
"""Runs the stages of a program and gives its result; nothing that was speculated is validated yet."""


LAYING_OUT = COPIED.kernel
"""The kernel that puts a result in place; see `laid_out`."""


def always() -> bool:
    """What is asked of tables that nobody looks at."""
    return True


@frozen_open
class Input:
    """The columns that a recorded run reads of a table."""

    source: TableSource
    fields: tuple[int, ...]
    columns: tuple[ColumnData, ...]


@frozen_open
class Inputs:
    """All that a recorded run reads of tables: the columns, and their buffers with the arrays where they were recorded."""

    columns: tuple[Input, ...]
    arrays: tuple[tuple[Buffer, Array], ...]

    def are_current(self, device: Device) -> bool:
        """Whether the tables still have the columns that were recorded, at the same place."""
        for given in self.columns:
            now = given.source.load(given.fields).columns
            if any(a is not b for a, b in zip(now, given.columns, strict=True)):
                return False
        return all(buffer.on(device) is array for buffer, array in self.arrays)


class Output(NamedTuple):
    """A buffer of the result, which each run writes again: its place in the arena, and ``offset`` (bytes) in the block of a small
    result."""

    address: int
    dtype: ElementDType
    size: int
    offset: int

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class Status(NamedTuple):
    """The status words of a run, or of one rank's: ``size`` bytes from ``start`` on in the block."""

    speculation: Speculation
    start: int
    size: int

    def words(self, block: Array) -> Array:
        """The words in a block that was fetched."""
        words: Array = block[self.start : self.start + self.size].view(np.uint32)
        return words


@frozen_open
class Answer:
    """What a recorded run gives. ``result`` has what is the same in each run, ``outputs`` its buffers that are not, by their
    identity. ``block`` (uint8) has the status words and, where the result is small, all of it."""

    result: Table
    outputs: dict[int, Output]
    statuses: tuple[Status, ...]
    block: Array
    is_small: bool

    def check(self, fetched: Array) -> None:
        """Raise what the kernels of a run have to say; MisspeculationError before anything else."""
        if any(s.words(fetched)[0] for s in self.statuses):
            raise MisspeculationError
        errors: list[Exception] = []
        for status in self.statuses:
            try:
                status.speculation.check(status.words(fetched))
            except MisspeculationError:
                raise
            except Exception as error:  # another rank's table may have been full
                errors.append(error)
        if errors:
            raise errors[0]

    def table(self, fetched: Array, copies: Mapping[int, Array], device: Device) -> Table:
        """The result, whose buffers lie in the block that is fetched, or are copies on ``device`` of larger ones."""
        made = {i: Buffer(copy, device) for i, copy in copies.items()}
        if self.is_small:
            for identity, output in self.outputs.items():
                made[identity] = Buffer(fetched[output.offset : output.offset + output.nbytes].view(output.dtype))
        return _with_buffers(self.result, made)


@dataclass(eq=False)
class Recording:
    """A recorded run on one GPU, or on several: the first one has the result."""

    program: Program
    graph: RecordedGraph | None  # None once it was let go of
    answer: Answer | None  # likewise
    inputs: tuple[tuple[Device, Inputs], ...]  # of each GPU
    kept: list[object]  # kernels, arrays and constants that the graph uses
    seconds: float = 0.0  # that the last run took

    def release(self) -> None:
        """Let go of everything; nobody plays it again."""
        self.graph, self.answer, self.inputs, self.kept = None, None, (), []

    def play(self, device: Device, arena: Arena, is_current: Callable[[], bool] = always) -> Table | None:
        """The result of another run; None where the recording is of no use any more, or ``is_current`` says that. Raises what
        kernels have to say. Whether the tables are as they were is asked while the GPU works: what it reads is held."""
        start = time.perf_counter()
        copies: dict[int, Array] = {}
        answer = self.answer
        if answer is not None and not answer.is_small:
            with arena.stream:
                copies = {i: device.empty(o.size, o.dtype, "the result") for i, o in answer.outputs.items()}
        # what a run needs stays until it has ended, also where memory runs out meanwhile
        graph, inputs, _kept = self.graph, self.inputs, self.kept
        if graph is None or answer is None:  # memory ran out, now or before
            return None
        graph.launch(arena.stream)
        for identity, copy in copies.items():
            arena.copy(address(copy), answer.outputs[identity].address, copy.nbytes)

        def meanwhile(fetched: Array) -> Table | None:
            is_same = is_current() and all(read.are_current(at) for at, read in inputs)
            return answer.table(fetched, copies, device) if is_same else None

        fetched, result = fetch_block(answer.block, answer.statuses[0].speculation, arena, self.seconds, meanwhile)
        self.seconds = time.perf_counter() - start
        if result is None:
            return None
        try:
            answer.check(fetched)
        except MisspeculationError:
            return None
        return result


def fetch_block(
    block: Array, speculation: Speculation, arena: Arena, seconds: float, meanwhile: Callable[[Array], T]
) -> tuple[Array, T]:
    """The block of a run on the host (uint8), once all has run, and what ``meanwhile`` makes of it before it has come. The last
    run took so many seconds. An interrupt has the kernels that did not begin yet do nothing."""
    fetched = np.empty(block.size, np.uint8)
    arena.begin_fetch(address(block), block.size)
    try:
        made = meanwhile(fetched)
    finally:
        try:
            arena.end_fetch(fetched, beside if seconds > tuning.replay.long_seconds else _at_once)
        except (InterruptError, KeyboardInterrupt):
            assert speculation.abort_flag is not None
            arena.set_flag(address(speculation.abort_flag))
            raise
    return fetched, made


def _at_once(wait: Callable[[], None]) -> None:
    wait()


def record(
    program: Program, context: ExecutionContext, rehearsed: RunFeedback, run_stages: RunStages, arena: Arena
) -> Recording:
    """A recording of a program that was rehearsed; nothing has run yet. CannotRecordError says what stands in its way."""
    device, cuda = cast(RecordingDevice, context.device), cast(AbortableTarget, get_target(context.target))
    with recording_constants([device]) as constants:
        with cuda.noting() as noted, arena.recording() as graph:
            state = Run(program, context, rehearsed, Speculation(rehearsed, device, waits=False))
            result = run_stages(state)
            answer = laid_out(result, [(state.speculation, state.speculation.status_words)], arena, device)
    if not graph:
        raise CannotRecordError("memory has run out")
    kept = [*noted.kernels, *foreign(noted, arena), *constants]
    made = Recording(program, graph[0], answer, ((device, inputs_of(state)),), kept)
    arena.add(made)
    return made


@contextmanager
def recording_constants(devices: Sequence[RecordingDevice]) -> Iterator[list[Array]]:
    """Within it, a run is recorded on GPUs; afterwards the list has what the host sent them. What stands in its way becomes a
    CannotRecordError."""
    constants: list[Array] = []
    for device in devices:
        device.constants = []
    try:
        yield constants
    except InterruptError:
        raise
    except Exception as error:
        # CuPy's or the driver's: something waits for the GPU. What is wrong with a query, its usual run says
        raise CannotRecordError(f"{type(error).__name__}: {error}") from error
    finally:
        for device in devices:
            constants += device.constants or ()
            device.constants = None


def laid_out(result: Table, status_words: Sequence[tuple[Speculation, Array]], arena: Arena, device: Device) -> Answer:
    """What a run gives that is being recorded: its result, and the status words of each rank, which lie where ``device`` reads
    them. One kernel puts all of it in place, whatever was aborted: a copy of the driver's takes 2 us, and 13 from another GPU."""
    statuses, size = [], 0
    for speculation, words in status_words:
        statuses.append(Status(speculation, size, int(words.nbytes)))
        size += int(words.nbytes)
    outputs, arrays, all_bytes = _outputs(result, size, arena, device)
    is_small = all_bytes <= tuning.replay.block_bytes
    block = device.empty(all_bytes if is_small else size, np.uint8, "the result")
    pieces = [
        (words, block[status.start : status.start + status.size])
        for status, (_, words) in zip(statuses, status_words, strict=True)
    ]
    if is_small:
        pieces += [(arrays[i], block[o.offset : o.offset + o.nbytes]) for i, o in outputs.items()]
    copy_together(pieces, device)
    return Answer(result, outputs, tuple(statuses), block, is_small)


def lay_out_nothing(device: Device) -> None:
    """Have the kernel loaded that ends a recording: a rehearsal does not come to it."""
    copy_together([(device.zeros(1, np.uint8), device.empty(1, np.uint8))], device)


def foreign(noted: Launched, arena: Arena) -> list[Array]:
    """The arrays that launches were handed and that do not lie in the arena."""
    return [a for a in noted.arrays if a is not None and not arena.owns(a)]


def inputs_of(state: Run) -> Inputs:
    """What the stages that have run have read of tables."""
    device, columns = state.context.device, tuple(_inputs(state))
    read = [c for i in columns for c in i.columns]
    if state.rank is not None:  # of tables that are cut a rank has its part
        cuts, number = state.rank.cuts, state.rank.comm.rank
        read += [
            part_of(c, *cuts[id(i.source)].rows(number)) for i in columns if id(i.source) in cuts for c in i.columns
        ]
    arrays = tuple((b, b.on(device)) for c in read for b in c.buffers if b.is_on(device))
    return Inputs(columns, arrays)


def _inputs(state: Run) -> Iterator[Input]:
    works = [stage.work for stage in state.program.stages]
    sources = [w.source.source for w in works if isinstance(w, Pipeline) and isinstance(w.source, ReadTable)]
    for source in {id(s): s for s in sources if id(s) in state.tables}.values():
        columns = state.tables[id(source)]
        yield Input(source, tuple(columns), tuple(columns.values()))


def _outputs(
    result: Table, start: int, arena: Arena, device: Device
) -> tuple[dict[int, Output], dict[int, Array], int]:
    """The buffers of a result that were recorded, each with a place behind ``start`` in the block; their arrays; and the size of
    the block."""
    outputs: dict[int, Output] = {}
    arrays: dict[int, Array] = {}
    for column in result.columns:
        if column.physical_type is PhysicalType.VIEW:
            raise CannotRecordError("a result has addresses of texts")
        for buffer in column.buffers:
            if buffer.is_on(cpu_device()) or id(buffer) in outputs:
                continue
            array = buffer.on(device)
            if arena.owns(array):
                start = -(-start // tuning.replay.alignment) * tuning.replay.alignment
                outputs[id(buffer)] = Output(address(array), array.dtype, array.size, start)
                arrays[id(buffer)] = array
                start += array.nbytes
    return outputs, arrays, start


def _with_buffers(result: Table, made: Mapping[int, Buffer]) -> Table:
    """The result with the buffers of one run."""

    def of_run(buffer: Buffer | None) -> Buffer | None:
        return None if buffer is None else made.get(id(buffer), buffer)

    columns = tuple(
        ColumnData(
            c.dtype,
            c.physical_type,
            c.length,
            made.get(id(c.data), c.data),
            of_run(c.validity),
            of_run(c.characters),
            c.dictionary,
            c.statistics,
        )
        for c in result.columns
    )
    return Table(result.schema, columns, result.rows)
