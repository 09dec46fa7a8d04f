"""A recorded run: the graph, what it needs to be played again, and the result that it gives (see `replay`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, cast

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData, Table, TableSource
from gquery.device.arena import Arena
from gquery.device.array import Array, ElementDType
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.errors import InterruptError
from gquery.execution.feedback import RunFeedback
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Run
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import address
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, Launched
from gquery.planner.physical import Pipeline, Program, ReadTable
from gquery.runtime.interrupt import beside
from gquery.runtime.records import dataclass

RunStages = Callable[[Run], Table]
"""Runs the stages of a program and gives its result; nothing that was speculated is validated yet."""


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


@dataclass(eq=False)
class Recording:
    """A recorded run. ``result`` has what is the same in each run, ``outputs`` its buffers that are not, by their identity.
    ``block`` (uint8) has the status words and, where the result is small, all of it."""

    program: Program
    graph: RecordedGraph | None  # None once it was let go of
    speculation: Speculation
    result: Table
    outputs: dict[int, Output]
    block: Array
    status_bytes: int  # at the beginning of the block
    is_small: bool
    inputs: Inputs
    kept: list[object]  # kernels, arrays and constants that the graph uses
    seconds: float = 0.0  # that the last run took

    def release(self) -> None:
        """Let go of everything; nobody plays it again."""
        self.graph, self.inputs, self.kept, self.block = None, Inputs((), ()), [], np.empty(0, np.uint8)

    def play(self, device: Device, arena: Arena) -> Table | None:
        """The result of another run; None where the recording is of no use any more. Raises what kernels have to say."""
        if not self.inputs.are_current(device):
            return None
        start = time.perf_counter()
        copies: dict[int, Array] = {}
        with arena.stream:
            if not self.is_small:
                copies = {i: device.empty(o.size, o.dtype, "the result") for i, o in self.outputs.items()}
            if self.graph is None:  # memory ran out, now or before
                return None
            self.graph.launch(arena.stream)
            for identity, copy in copies.items():
                arena.copy(address(copy), self.outputs[identity].address, copy.nbytes)
            fetched = fetch_block(self.block, self.speculation, arena, self.seconds)
        self.seconds = time.perf_counter() - start
        try:
            self.speculation.check(fetched[: self.status_bytes].view(np.uint32))
        except MisspeculationError:
            return None
        made = {i: Buffer(copy, device) for i, copy in copies.items()}
        if self.is_small:
            for identity, output in self.outputs.items():
                made[identity] = Buffer(fetched[output.offset : output.offset + output.nbytes].view(output.dtype))
        return _with_buffers(self.result, made)


def fetch_block(block: Array, speculation: Speculation, arena: Arena, seconds: float) -> Array:
    """The block of a run on the host, once all has run; the last one took so many seconds. An interrupt has the kernels that did
    not begin yet do nothing."""
    is_long = seconds > tuning.replay.long_seconds
    try:
        return arena.fetch(address(block), block.size, beside if is_long else _at_once)
    except (InterruptError, KeyboardInterrupt):
        assert speculation.abort_flag is not None
        arena.set_flag(address(speculation.abort_flag))
        raise


def _at_once(wait: Callable[[], None]) -> None:
    wait()


def record(
    program: Program, context: ExecutionContext, rehearsed: RunFeedback, run_stages: RunStages, arena: Arena
) -> Recording:
    """A recording of a program that was rehearsed; nothing has run yet. CannotRecordError says what stands in its way."""
    device, cuda = cast(RecordingDevice, context.device), cast(AbortableTarget, get_target(context.target))
    constants = device.constants = []
    try:
        with cuda.noting() as noted, arena.recording() as graph:
            state = Run(program, context, rehearsed, Speculation(rehearsed, device, waits=False))
            result = run_stages(state)
            words = state.speculation.status_words
            outputs, size = _outputs(result, words.nbytes, arena, device)
            is_small = size <= tuning.replay.block_bytes
            block = device.empty(size if is_small else words.nbytes, np.uint8, "the result")
            arena.copy(address(block), address(words), words.nbytes)
            for output in outputs.values() if is_small else ():
                arena.copy(address(block) + output.offset, output.address, output.nbytes)
    except InterruptError:
        raise
    except Exception as error:
        # CuPy's or the driver's: something waits for the GPU. What is wrong with a query, its usual run says
        raise CannotRecordError(f"{type(error).__name__}: {error}") from error
    finally:
        device.constants = None
    if not graph:
        raise CannotRecordError("memory has run out")
    kept = [*noted.kernels, *foreign(noted, arena), *constants]
    made = Recording(
        program, graph[0], state.speculation, result, outputs, block, words.nbytes, is_small, inputs_of(state), kept
    )
    arena.add(made)
    return made


def foreign(noted: Launched, arena: Arena) -> list[Array]:
    """The arrays that launches were handed and that do not lie in the arena."""
    return [a for a in noted.arrays if a is not None and not arena.owns(a)]


def inputs_of(state: Run) -> Inputs:
    """What the stages that have run have read of tables."""
    device, columns = state.context.device, tuple(_inputs(state))
    arrays = tuple((b, b.on(device)) for i in columns for c in i.columns for b in c.buffers if b.is_on(device))
    return Inputs(columns, arrays)


def _inputs(state: Run) -> Iterator[Input]:
    works = [stage.work for stage in state.program.stages]
    sources = [w.source.source for w in works if isinstance(w, Pipeline) and isinstance(w.source, ReadTable)]
    for source in {id(s): s for s in sources if id(s) in state.tables}.values():
        columns = state.tables[id(source)]
        yield Input(source, tuple(columns), tuple(columns.values()))


def _outputs(result: Table, start: int, arena: Arena, device: Device) -> tuple[dict[int, Output], int]:
    """The buffers of a result that were recorded, each with a place behind ``start`` in the block, and the size of that."""
    outputs: dict[int, Output] = {}
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
                start += array.nbytes
    return outputs, start


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
