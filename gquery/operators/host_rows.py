"""HostRows: calls that no kernel can make, over arrays of Arrow's, a chunk of rows at a time on all cores.

Threads take chunks; Arrow and NumPy let go of the interpreter's lock meanwhile. Numbers are written into the column's array
at once. How long text is becomes known chunk by chunk, so its chunks are kept and copied into one when all are there. An
interrupt is looked for between chunks, and every chunk asks for its memory before it is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import arrow_type, carried
from gquery.columns.arrow_buffers import bits_of, numpy_name, values_of
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.errors import OutOfMemoryError
from gquery.expression.expr import Expr
from gquery.expression.facts import INT64_BITS
from gquery.expression.types import Kind, PhysicalType
from gquery.functions.vectors import array_of, characters_of, from_numpy, offsets_of, reserving_room
from gquery.kernels.failures import Failure
from gquery.kernels.host_calls import vectorised
from gquery.operators.base import Frame, make_column, words_a_row
from gquery.operators.made_lists import list_column
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import HostRows, Stored
from gquery.runtime.arrow_compute import take
from gquery.runtime.records import dataclass
from gquery.runtime.threads import Phases, Task, run_phases


def run_host_rows(work: HostRows, frame: Frame, device: Device, workers: int, label: str) -> Frame:
    """The frame with the columns that calls make."""
    columns = {s.column.id: frame.columns[s.column.id] for s in work.columns if s.column.id in frame.columns}
    run = _Run(work, frame, device, label)
    many = len(run.chunks) > 1
    try:
        run_phases([run.phases()], workers if many else 1)
    finally:
        run.room.close()
    return Frame(columns | run.columns(), frame.rows, frame.rank_values)


class _Room:
    """The memory that kept chunks take, within the device's limit."""

    def __init__(self, device: Device, label: str) -> None:
        self._device, self._label = device, label
        self._held = 0
        self._lock = threading.Lock()

    def ask(self, size: int) -> None:
        """OutOfMemoryError where so many bytes more would not fit."""
        with self._lock:
            held = 0 if self._device.is_counted else self._held  # the account knows of it
        self._device.reserve(held + size, self._label)

    def keep(self, size: int) -> None:
        self._device.take(size, self._label)
        with self._lock:
            self._held += size

    def release(self, size: int) -> None:
        if self._device.is_counted:
            self._device.account.give(size)
        with self._lock:
            self._held -= size

    def close(self) -> None:
        """Give back what is left, where a chunk has failed."""
        self.release(self._held)


class _Made(Protocol):
    """A column in the making: results of chunks are put, in any order, and finished at the end."""

    def put(self, chunk: int, low: int, made: pa.Array) -> None: ...
    def finalize(self) -> list[Task]: ...
    def column(self) -> ColumnData: ...


class _Fixed:
    """A column of numbers, dates, times or booleans."""

    def __init__(self, stored: Stored, rows: int, device: Device, label: str) -> None:
        self.stored, self.rows, self.device = stored, rows, device
        self.words = words_a_row(stored.physical_type)
        self.values = device.empty(rows * self.words, stored.physical_type.numpy, label)
        self.validity = device.empty(rows, np.uint8, label) if stored.properties.nullable else None

    def put(self, chunk: int, low: int, made: pa.Array) -> None:
        high = low + len(made)
        words = _words(made, self.stored)
        if made.null_count:
            ok = bits_of(made, 0)
            words = np.where(np.repeat(ok.view(np.bool_), self.words), words, words.dtype.type(0))
        self.values[low * self.words : high * self.words] = words
        if self.validity is not None:
            self.validity[low:high] = ok if made.null_count else 1

    def finalize(self) -> list[Task]:
        return []

    def column(self) -> ColumnData:
        s = self.stored
        return make_column(s.properties, s.physical_type, self.values, self.validity, self.rows, self.device)


def _words(made: pa.Array, stored: Stored) -> Array:
    """The words of an array in the layout of a physical type, anything under NULL."""
    if stored.physical_type is PhysicalType.BOOL:
        bits: Array = bits_of(made, 1)
        return bits
    if pa.types.is_decimal(made.type):
        words: Array = values_of(made, "i8", 2)
        return words if stored.physical_type is PhysicalType.I128 else words[::2]
    words = values_of(made, numpy_name(made.type))
    if stored.physical_type is PhysicalType.I128:
        wide = np.zeros(2 * len(words), np.int64)
        wide[::2] = words.view(np.int64)
        if stored.properties.dtype.kind is not Kind.UBIGINT:
            wide[1::2] = wide[::2] >> (INT64_BITS - 1)
        return wide
    return words


class _Listed:
    """A column of lists: numbers of the arrays of all chunks, one after another."""

    def __init__(self, stored: Stored, chunks: int, rows: int, device: Device) -> None:
        self.stored, self.rows, self.device = stored, rows, device
        self._chunks: list[pa.Array | None] = [None] * chunks

    def put(self, chunk: int, low: int, made: pa.Array) -> None:
        self._chunks[chunk] = made

    def finalize(self) -> list[Task]:
        return []

    def column(self) -> ColumnData:
        chunks = [c for c in self._chunks if c is not None]
        return list_column(self.stored, chunks, self.rows, self.device)


class _Text:
    """A column of strings. A chunk is copied to its place as soon as those before it are there, so that few are held beside
    the column, whose memory is asked for by how long the first texts were: pages that are not written cost nothing. Where
    more comes, it goes to a further piece, and the pieces become one at the end."""

    def __init__(self, stored: Stored, rows: int, device: Device, label: str, room: _Room) -> None:
        self.stored, self.rows, self.device, self.label, self.room = stored, rows, device, label, room
        self.offsets = device.empty(rows + 1, np.int64, label)
        self.offsets[0] = 0
        self.validity = device.empty(rows, np.uint8, label) if stored.properties.nullable else None
        self._waiting: dict[int, tuple[int, pa.Array]] = {}
        self._next = self._total = 0  # the chunk that is to be placed next, and the bytes before it
        self._pieces: list[Array] = []
        self._filled: list[int] = []  # bytes of each piece that have a place
        self._lock = threading.Lock()

    def put(self, chunk: int, low: int, made: pa.Array) -> None:
        self.room.keep(made.nbytes)
        if made.null_count and np.diff(offsets_of(made))[bits_of(made, 0) == 0].any():
            made = take(made, from_numpy(np.arange(len(made))))  # which leaves nothing under NULL, as sorts want it
        placed = []
        with self._lock:
            self._waiting[chunk] = low, made
            while self._next in self._waiting:
                low, made = self._waiting.pop(self._next)
                offsets = offsets_of(made)
                size = int(offsets[-1] - offsets[0])
                placed.append((low, made, offsets, self._total, self._reserve(size, low, len(made))))
                self._total += size
                self._next += 1
        del made
        while placed:
            self._copy(*placed.pop())

    def _reserve(self, size: int, low: int, rows: int) -> Array:
        """Room for so many bytes in the last piece, or in a new one that probably takes all rows from ``low`` on."""
        if not self._pieces or self._filled[-1] + size > len(self._pieces[-1]):
            self._pieces.append(self.device.empty(self._room_for(size, low, rows), np.uint8, self.label))
            self._filled.append(0)
        start = self._filled[-1]
        self._filled[-1] += size
        array: Array = self._pieces[-1][start : start + size]
        return array

    def _room_for(self, size: int, low: int, rows: int) -> int:
        size, left = max(size, 1), self.rows - low - rows
        limits = tuning.host_functions
        wanted = size + int(left * size * limits.spare / max(rows, 1)) + (limits.spare_bytes if left else 0)
        try:
            self.device.reserve(wanted, self.label)
        except OutOfMemoryError:  # the rest may be shorter
            return size
        return wanted

    def _copy(self, low: int, made: pa.Array, offsets: Array, start: int, into: Array) -> None:
        high, first = low + len(made), int(offsets[0])
        np.add(offsets[1:], start - first, out=self.offsets[low + 1 : high + 1])
        into[:] = characters_of(made)[first : int(offsets[-1])]
        if self.validity is not None:
            self.validity[low:high] = bits_of(made, 0) if made.null_count else 1
        self.room.release(made.nbytes)

    def finalize(self) -> list[Task]:
        """Tasks that make one piece of several."""
        if len(self._pieces) < 2:
            return []
        pieces, starts = self._pieces, np.append(0, np.cumsum(self._filled)).tolist()
        whole = self.device.empty(self._total, np.uint8, self.label)
        self._pieces = [whole]

        def copy(n: int) -> None:
            whole[starts[n] : starts[n + 1]] = pieces[n][: self._filled[n]]

        return [partial(copy, n) for n in range(len(pieces))]

    def column(self) -> ColumnData:
        validity = None if self.validity is None else Buffer(self.validity, self.device)
        characters = Buffer(self._pieces[0][: self._total], self.device)
        offsets = Buffer(self.offsets, self.device)
        return ColumnData(self.stored.properties.dtype, PhysicalType.STRING64, self.rows, offsets, validity, characters)


@dataclass(frozen=True)
class _Call:
    """A call, the columns that it reads and what it makes. ``entries``: the results for the entries of the one dictionary
    that it reads, and the failures among them."""

    expr: Expr
    reads: frozenset[int]
    made: _Made
    entries: list[tuple[pa.Array | pa.Scalar, list[Failure]]]
    dictionary: Dictionary | None


class _Run:
    def __init__(self, work: HostRows, frame: Frame, device: Device, label: str) -> None:
        self.frame, self.room = frame, _Room(device, label)
        used = {i for _, e in work.made for i in used_columns(e)}
        self.read = {i: frame.columns[i] for i in used}
        self.chunks = _chunks(list(self.read.values()), frame.rows)
        self.calls: list[_Call] = []
        self.ids = [s.column.id for s, _ in work.made]
        for stored, e in work.made:
            made: _Made
            if stored.properties.dtype.is_nested:
                made = _Listed(stored, len(self.chunks), frame.rows, device)
            elif stored.properties.dtype.is_string:
                made = _Text(stored, frame.rows, device, label, self.room)
            else:
                made = _Fixed(stored, frame.rows, device, label)
            reads = used_columns(e)
            only = self.read[next(iter(reads))].dictionary if len(reads) == 1 else None
            is_short = isinstance(only, Dictionary) and len(only) * tuning.host_functions.dictionary_rows <= frame.rows
            self.calls.append(_Call(e, reads, made, [], only if is_short else None))  # type: ignore[arg-type]

    def phases(self) -> Phases[None]:
        if over := [c for c in self.calls if c.dictionary is not None]:
            yield [partial(self._over_entries, c) for c in over]
        yield [partial(self._chunk, n, *r) for n, r in enumerate(self.chunks)]
        for call in self.calls:
            if tasks := call.made.finalize():
                yield tasks

    def columns(self) -> dict[int, ColumnData]:
        return {i: call.made.column() for i, call in zip(self.ids, self.calls, strict=True)}

    def _over_entries(self, call: _Call) -> None:
        reserving_room(self.room.ask)
        assert call.dictionary is not None
        failures: list[Failure] = []
        (column,) = call.reads
        values = call.dictionary.values
        with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
        # An entry of no row may be one that the call raises on: '' that stands for no value, or what a filter took away.
        used = np.zeros(len(values) + 1, np.bool_)
        used[self._codes(self.read[column], call.dictionary, 0, self.frame.rows)] = True
        if not used[:-1].all():
            with_null = take(with_null, from_numpy(np.where(used, np.arange(len(used)), len(values))))
        call.entries.append((vectorised(call.expr, {column: with_null}, failures), failures))

    def _chunk(self, number: int, low: int, high: int) -> None:
        reserving_room(self.room.ask)
        arrays = {i: array_of_column(c.slice(low, high)) for i, c in self.read.items() if self._is_read_by_rows(i)}
        for call in self.calls:
            failures: list[Failure] = []
            if call.dictionary is not None:
                made = self._taken(call, low, high)
            else:
                made = vectorised(call.expr, arrays, failures)
            for failure in failures if low < high else ():  # of constants over no row
                raise failure.error(failure.message)
            call.made.put(number, low, array_of(made, high - low))

    def _is_read_by_rows(self, column: int) -> bool:
        return any(column in c.reads and c.dictionary is None for c in self.calls)

    def _taken(self, call: _Call, low: int, high: int) -> pa.Array | pa.Scalar:
        """The results of a call for the entries that the rows have."""
        ((made, failures),) = call.entries
        (column,) = call.reads
        stored = self.read[column]
        assert call.dictionary is not None
        codes = self._codes(stored, call.dictionary, low, high)
        for failure in failures:
            if np.broadcast_to(failure.rows, len(call.dictionary) + 1)[codes].any():
                raise failure.error(failure.message)
        return made.take(from_numpy(codes)) if isinstance(made, pa.Array) else made

    def _codes(self, stored: ColumnData, dictionary: Dictionary, low: int, high: int) -> npt.NDArray[np.int64]:
        """The entries of rows; of NULL the one behind the last."""
        codes: npt.NDArray[np.int64] = stored.data.host[low:high].astype(np.int64)
        if stored.validity is not None:
            codes[stored.validity.host[low:high] == 0] = len(dictionary)
        return codes


def column_of(stored: Stored, values: pa.Array, device: Device, label: str) -> ColumnData:
    """A column of an array's values, as a stage stores it: on the host, where the device is a GPU."""
    device = device if device.is_cpu else cpu_device()
    room = _Room(device, label)
    made: _Made
    if stored.properties.dtype.is_nested:
        made = _Listed(stored, 1, len(values), device)
    elif stored.properties.dtype.is_string:
        made = _Text(stored, len(values), device, label, room)
    else:
        made, type_ = _Fixed(stored, len(values), device, label), arrow_type(stored.properties.dtype)
        values = values if values.type == type_ else values.cast(type_)
    try:
        made.put(0, 0, values)
    finally:
        room.close()
    for task in made.finalize():
        task()
    return made.column()


def array_of_column(column: ColumnData) -> pa.Array:
    """A column as one array."""
    made = carried(column)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _chunks(columns: Sequence[ColumnData], rows: int) -> list[tuple[int, int]]:
    """Ranges of rows that threads take, each of not too many bytes of text."""
    widest = max((c.characters.nbytes for c in columns if c.characters is not None), default=0)
    step = max(1, min(tuning.host_functions.chunk_rows, rows * tuning.host_functions.chunk_bytes // max(widest, 1)))
    return [(low, min(low + step, rows)) for low in range(0, rows, step)] or [(0, 0)]


__all__ = ["run_host_rows"]
