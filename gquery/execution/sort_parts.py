"""Sorts of more rows than fit memory: chunks of rows are sorted and written to files, cut at the same splitters, and what the
chunks have between two splitters is put together and sorted.

Splitters are rows of a sample. A row of equal keys comes before a splitter if its chunk does: so rows of one key are cut, too,
and rows that compare equal keep their order.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np

from gquery import tuning
from gquery.device.array import Array, ElementDType
from gquery.device.device import Device
from gquery.distributed.movable import concatenated, movable
from gquery.errors import OutOfMemoryError
from gquery.execution import held
from gquery.execution.part_runs import to_files
from gquery.execution.state import StageReport
from gquery.expression.expr import Column
from gquery.kernels.builtin import gathers, order
from gquery.operators.base import Frame, make_column, narrow
from gquery.operators.breakers import run_breaker
from gquery.operators.partition_rows import rows_between
from gquery.operators.sort_keys import sort_keys
from gquery.planner.physical import DistinctRows, SortRows
from gquery.runtime.interrupt import check


def sort_by_parts(work: SortRows, frame: Frame, device: Device, report: StageReport) -> Frame:
    """The sorted rows of a frame on a CPU."""
    frame = movable(frame)
    step = chunk_rows(frame, device)
    most = frame.rows if work.limit is None else min(frame.rows, work.limit + work.offset)
    if most * -(-frame.rows // step) <= step:
        return _first_rows(work, frame, most, step, device)
    kept = {s.column.id for s in work.columns} | set(_key_ids(work))
    frame = Frame({i: c for i, c in frame.columns.items() if i in kept}, frame.rows)
    found = _Sorted(work, frame, step, device, report).all()
    columns = {s.column.id: found.columns[s.column.id] for s in work.columns}
    return rows_between(Frame(columns, found.rows), min(work.offset, most), most)


def sort_within_memory(work: SortRows, frame: Frame, device: Device, report: StageReport) -> Frame:
    """The same, in memory where there is room."""
    frames = {work.stage: frame}
    try:
        with device.scratch(held.scratch_of(work, frames), device.task):
            return run_breaker(work, frames, {}, {}, device)
    except OutOfMemoryError as error:
        traceback.clear_frames(error.__traceback__)
    return sort_by_parts(work, frame, device, report)


def chunk_rows(frame: Frame, device: Device) -> int:
    """How many rows of a frame are sorted in memory at once."""
    assert device.memory_limit is not None
    limits = tuning.spilling
    free = max(device.memory_limit - device.account.taken, device.memory_limit * limits.least_free)
    row = tuning.memory.sorted_row + sum(c.nbytes for c in frame.columns.values()) / max(frame.rows, 1)
    return max(limits.least_rows, int(free * limits.part_fraction / row))


def _first_rows(work: SortRows, frame: Frame, most: int, step: int, device: Device) -> Frame:
    """The first rows of a sort with a limit: they are among the first of each chunk."""
    kept: list[Frame] = []
    for low in range(0, max(frame.rows, 1), step):
        check()
        part = rows_between(frame, low, min(low + step, frame.rows))
        rows = order.top_k(sort_keys(work.keys, part, device), most)
        first = {i: gathers.take(c, rows, device) for i, c in part.columns.items()}
        kept.append(Frame(first, int(rows.size)))
    return run_breaker(work, {work.stage: concatenated(kept, (), device)}, {}, {}, device)


def _key_ids(work: SortRows) -> tuple[int, ...]:
    return tuple([k.expr.id for k in work.keys if isinstance(k.expr, Column)])


class _Sorted:
    """A sort in parts, under way."""

    def __init__(self, work: SortRows, frame: Frame, step: int, device: Device, report: StageReport) -> None:
        self._work, self._frame, self._step, self._device, self._report = work, frame, step, device, report
        self._label = device.task
        self._row_bytes = sum(c.nbytes for c in frame.columns.values()) // max(frame.rows, 1) + 1

    def all(self) -> Frame:
        """The sorted rows, in files."""
        numbers, splitters = self._splitters()
        chunks: list[tuple[Frame, list[int]]] = []
        for low in range(0, self._frame.rows, self._step):
            check()
            chunk = rows_between(self._frame, low, min(low + self._step, self._frame.rows))
            chunks.append(self._chunk(chunk, splitters, numbers < low))
        self._report.spilled_bytes += self._row_bytes * self._frame.rows
        self._report.parts += len(chunks)
        made: list[Frame] = []
        for n in range(len(numbers) + 1):
            check()
            pieces = [rows_between(f, cuts[n], cuts[n + 1]) for f, cuts in chunks if cuts[n] < cuts[n + 1]]
            if pieces:
                made.append(self._together(pieces))
        with self._device.into_files():
            return concatenated(made, (), self._device)

    def _splitters(self) -> tuple[Array, Frame]:
        """Rows between which ranges lie, in their order: their numbers (int64) and their keys."""
        limits, rows = tuning.spilling, self._frame.rows
        ranges = -(-rows // self._step) + 1
        sampled = min(rows, ranges * limits.sampled_rows)
        sample = np.arange(sampled) * rows // sampled
        taken = self._taken(self._keys(self._frame), sample)
        at = order.sort_order(sort_keys(self._work.keys, taken, self._device)).astype(np.int64)
        at = at[np.arange(1, ranges) * sampled // ranges]
        return sample[at], self._taken(taken, at)

    def _keys(self, frame: Frame) -> Frame:
        return Frame({i: frame.columns[i] for i in _key_ids(self._work)}, frame.rows)

    def _taken(self, frame: Frame, rows: Array) -> Frame:
        rows = rows.astype(np.uint32)
        return Frame({i: gathers.take(c, rows, self._device) for i, c in frame.columns.items()}, int(rows.size))

    def _room(self, rows: int) -> AbstractContextManager[None]:
        """Room for so many rows that are sorted and gathered."""
        return self._device.scratch(rows * (tuning.memory.sorted_row + self._row_bytes), self._label)

    def _chunk(self, chunk: Frame, splitters: Frame, is_before: Array) -> tuple[Frame, list[int]]:
        """A chunk's rows in their order, in files, and where its rows between splitters begin, with the end of all. Splitters
        that lie in chunks before come before rows of equal keys, others behind."""
        before = int(np.count_nonzero(is_before))
        first, last = np.flatnonzero(is_before), np.flatnonzero(~is_before)
        with self._room(chunk.rows):
            frames = [self._taken(splitters, first), self._keys(chunk), self._taken(splitters, last)]
            keys = concatenated([f for f in frames if f.rows], (), self._device)
            at = order.sort_order(sort_keys(self._work.keys, keys, self._device)).astype(np.int64) - before
            is_row = (at >= 0) & (at < chunk.rows)
            ends = np.flatnonzero(~is_row) - np.arange(splitters.rows)
            made = to_files(self._taken(chunk, at[is_row]), self._device, self._label)
        return made, [0, *ends.tolist(), chunk.rows]

    def _together(self, pieces: Sequence[Frame]) -> Frame:
        """The rows of pieces, each of which is sorted, in their order."""
        if len(pieces) == 1:
            return pieces[0]
        with self._room(sum(p.rows for p in pieces)):
            whole = concatenated(pieces, (), self._device)
            at = order.sort_order(sort_keys(self._work.keys, whole, self._device))
            return to_files(self._taken(whole, at), self._device, self._label)


# ---- different values ------------------------------------------------------------------------------------------------


def distinct_by_parts(work: DistinctRows, frame: Frame, device: Device, report: StageReport) -> Frame:
    """The different values of a column on a CPU: those of each chunk, and of what chunks have between two splitters."""
    label, values = device.task, frame.columns[work.source.id].data.on(device)
    step = chunk_rows(Frame({work.source.id: frame.columns[work.source.id]}, frame.rows), device)
    ranges = -(-frame.rows // step) + 1
    sampled = min(frame.rows, ranges * tuning.spilling.sampled_rows)
    sample = np.sort(values[np.arange(sampled) * frame.rows // max(sampled, 1)])
    splitters = np.unique(sample[np.arange(1, ranges) * sampled // ranges])
    chunks: list[tuple[Array, list[int]]] = []
    for low in range(0, max(frame.rows, 1), step):
        check()
        chunk = values[low : low + step]
        with device.scratch(chunk.size * tuning.memory.sorted_row, label):
            own = device.in_file(np.unique(chunk), label)
        chunks.append((own, [0, *np.searchsorted(own, splitters).tolist(), own.size]))
    report.parts += len(chunks)
    report.spilled_bytes += sum(own.nbytes for own, _ in chunks)
    made: list[Array] = []
    count = 0
    for n in range(splitters.size + 1):
        check()
        pieces = [own[ends[n] : ends[n + 1]] for own, ends in chunks]
        with device.scratch(sum(p.size for p in pieces) * tuning.memory.sorted_row, label):
            found = np.unique(np.concatenate(pieces))
            made.append(found[:0] if work.counted else device.in_file(found, label))
            count += int(found.size)
    whole = np.array([count], np.int64) if work.counted else _joined(made, values.dtype, device, label)
    columns = {
        s.column.id: make_column(
            s.properties, s.physical_type, narrow(whole, s.physical_type), None, whole.size, device
        )
        for s in work.columns
    }
    return Frame(columns, int(whole.size))


def _joined(arrays: Sequence[Array], dtype: ElementDType, device: Device, label: str) -> Array:
    with device.into_files():
        made = device.empty_spillable(sum(a.size for a in arrays), dtype, label)
    return np.concatenate(arrays, out=made)
