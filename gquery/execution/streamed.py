"""Columns that do not fit a device's memory limit go through it in chunks of rows while a kernel runs.

    host   | rows 0.. | rows m.. | rows 2m.. | ...       a chunk: the same rows of all columns that are streamed
    device   piece 0    piece 1    piece 0               kernels read one piece while the next chunk is copied

A kernel is given the address where a column would begin if it lay there whole, so row numbers stay those of the table, and the
state of a sink stays on the device from chunk to chunk. A column that there is room for stays on the device instead; what
is there is not let go of for another column's sake, as the columns that a query goes through come again in the same order.
Not streamed is what kernels read at other rows than the one at hand, and text that a sink keeps by its address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.chunks import chunk_buffers, lock_pages, room_of
from gquery.device.section import Section
from gquery.execution.attempt import Attempt
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.types import PhysicalType
from gquery.kernels.bindings import ColumnPart
from gquery.kernels.builtin.scans import places_in_selection
from gquery.operators.base import words_a_row
from gquery.operators.codegen import Unit
from gquery.operators.scan_ranges import Ranges
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Reduce, Sink
from gquery.planner.segments import finds_heads
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple

Launch = Callable[[Attempt, Ranges], None]
"""Run a kernel over ranges of rows, of the source or of the selection."""


class StreamedPart(NamedTuple):
    """An array of a column that is streamed: where it lies on the host, and which column it is of."""

    part: ColumnPart
    array: Array
    column: ColumnData

    def elements(self, low: int, high: int) -> tuple[int, int]:
        """The elements of rows ``low`` to ``high``."""
        match self.part.part:
            case "validity":
                return low, high
            case "characters":
                data = self.column.data
                offsets = data.host if data.cpu is None else data.cpu  # a GPU may have them alone, and not the characters
                return int(offsets[low]), int(offsets[high])
            case _:
                if self.column.physical_type in _OFFSETS:
                    return low, high + 1
                words = words_a_row(self.column.physical_type)
                return words * low, words * high

    def section(self, low: int, high: int) -> Array:
        """These elements, on the host."""
        first, last = self.elements(low, high)
        return self.array[first:last]


class Chunk(NamedTuple):
    """Rows ``low`` to ``high`` of the source, those beside them that their segments reach into included, and the ranges to run
    over."""

    low: int
    high: int
    ranges: Ranges


_OFFSETS = (PhysicalType.STRING32, PhysicalType.STRING64)


def streamed_parts(attempt: Attempt, unit: Unit, pipeline: Pipeline) -> list[StreamedPart]:
    """What a kernel reads of its source that lies on the host and does not fit the device. What fits is brought there."""
    device = attempt.device
    if not device.streams or attempt.run.rank is not None or not _reads_own_rows(pipeline):
        return []
    limit, found, pending = device.total_bytes, [], 0
    for _, binding in unit.parameters:
        if not isinstance(binding, ColumnPart) or binding.owner is not None:
            continue
        column = attempt.frame.columns[binding.column]
        buffer: Buffer | None = getattr(column, binding.part)
        if buffer is None or buffer.is_on(device) or not buffer.nbytes or (array := buffer.cpu) is None:
            continue
        if device.used_bytes + pending + buffer.nbytes <= limit * tuning.streaming.most_resident:
            pending += buffer.nbytes
        elif _may_stream(column, pipeline.sink, unit.role):
            found.append(StreamedPart(binding, array, column))
    return found


def stream(attempt: Attempt, parts: Sequence[StreamedPart], ranges: Ranges, pipeline: Pipeline, launch: Launch) -> int:
    """Run a kernel over ranges of rows while chunks of columns come to the device. The bytes that were copied. OutOfMemoryError
    where the device has no room for chunks of the fewest rows."""
    device = attempt.device
    chunks = list(_chunks(attempt, parts, ranges, pipeline))
    sizes = [room_of([p.section(c.low, c.high).nbytes for p in parts]) for c in chunks]
    if not chunks:
        return 0
    for part in parts:
        lock_pages(device, part.array)
    buffers = chunk_buffers(device, max(sizes), f"{attempt.label}: two chunks of the columns that it streams")
    copied = 0
    try:
        for chunk in chunks:
            arrays = [p.section(chunk.low, chunk.high) for p in parts]
            with buffers.filled(arrays) as placed:
                sections = {
                    p.part: Section(array, p.elements(chunk.low, chunk.high)[0])
                    for p, array in zip(parts, placed, strict=True)
                }
                launch(replace(attempt, sections=sections), chunk.ranges)
            copied += sum(int(a.nbytes) for a in arrays)
    except BaseException:
        buffers.close()
        raise
    return copied


def on_host(attempt: Attempt, parts: Sequence[StreamedPart]) -> Attempt:
    """The attempt with whole columns of the host in place of what is streamed: for whoever asks how large they are."""
    return replace(attempt, sections={p.part: Section(p.array, 0) for p in parts})


def _reads_own_rows(pipeline: Pipeline) -> bool:
    """Whether kernels read the source's columns at the row at hand alone, or within its segment."""
    if pipeline.host is not None:
        return False
    match pipeline.sink:
        case Group(layout=layout):
            return layout != "row-id hash"
        case Build(table=table):
            return table.layout != "hash" or table.inline_keys
        case _:
            return True


def _may_stream(column: ColumnData, sink: Sink, role: str) -> bool:
    """Whether nobody needs a column's memory once its kernel has run: a state may have the address of a text."""
    if not column.physical_type.is_string or role in ("count", "select"):
        return True
    match sink:
        case Materialize(columns=columns):
            return not any(c.physical_type.is_string for c in columns)
        case Group(accumulators=accumulators) | Reduce(accumulators=accumulators):
            return not any(a.arg is not None and a.arg.dtype.is_string for a in accumulators)
        case Build():
            return True


def _chunks(attempt: Attempt, parts: Sequence[StreamedPart], ranges: Ranges, pipeline: Pipeline) -> Iterator[Chunk]:
    """The chunks of ranges of rows, or of places in the selection, in their order."""
    before, behind = 0, 0
    if finds_heads(pipeline.steps):
        before, behind = tuning.materialization.unit, tuning.encoding.longest_run + tuning.loops.segment_rows
    for low, high, within in _cut(attempt, parts, ranges, pipeline.sink):
        yield Chunk(max(0, low - before), min(attempt.frame.rows, high + behind), within)


def _cut(
    attempt: Attempt, parts: Sequence[StreamedPart], ranges: Ranges, sink: Sink
) -> Iterator[tuple[int, int, Ranges]]:
    """Rows from and to, and what of the ranges lies between them."""
    selection, rows = attempt.selection, attempt.frame.rows
    most = min(tuning.streaming.chunk_bytes, attempt.device.total_bytes // tuning.streaming.chunk_parts)
    if selection is None:
        for first, last in ranges:
            for low, high in _pieces(parts, first, last, most):
                yield low, high, ((low, high),)
        return
    pieces = list(_pieces(parts, 0, rows, most))
    aligned = (
        BITMAP_BITS if isinstance(sink, Materialize) else 1
    )  # the lanes of a warp have the places of one word of a bitmap
    places, first_rows = _places(attempt, selection, [low for low, _ in pieces], aligned)
    for n, (low, high) in enumerate(pieces):
        clipped = ((max(a, places[n]), min(b, places[n + 1])) for a, b in ranges)
        within = tuple((a, b) for a, b in clipped if a < b)
        if within:
            yield min(low, first_rows[n]), high, within


def _places(attempt: Attempt, selection: Array, rows: Sequence[int], aligned: int) -> tuple[list[int], list[int]]:
    """Where in a selection, at multiples of so many places, those of rows from these on begin, and where it ends; and the row at
    each of these places."""
    places, first_rows = places_in_selection(selection, rows, aligned, attempt.device)
    return [*places, int(selection.size)], first_rows


def _pieces(parts: Sequence[StreamedPart], first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """Rows in pieces of about so many bytes at most; texts are of any length, so a piece that has too many is halved."""
    unit = tuning.materialization.unit
    a_row = sum(p.array.nbytes / p.column.length for p in parts)
    step = max(unit, int(most / a_row) // unit * unit)
    waiting = [(low, min(low + step, last)) for low in range(first, last, step)][::-1]
    while waiting:
        low, high = waiting.pop()
        half = low + (high - low) // 2 // unit * unit
        if half > low and sum(p.section(low, high).nbytes for p in parts) > 2 * most:
            waiting += [(half, high), (low, half)]
        else:
            yield low, high
