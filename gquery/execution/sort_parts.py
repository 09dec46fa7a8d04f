"""Sorts of more rows than fit memory: chunks of rows are sorted and go to the tier below (`execution.tiers`), cut at the same
splitters, and what the chunks have between two splitters is put together and sorted.

Splitters are rows of a sample. A row of equal keys comes before a splitter if its chunk does: so rows of one key are cut, too,
and rows that compare equal keep their order.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from gquery import tuning
from gquery.device.array import Array, ElementDType
from gquery.device.copies import copied
from gquery.device.device import Device
from gquery.distributed.movable import concatenated, movable
from gquery.errors import OutOfMemoryError
from gquery.execution import held
from gquery.execution.behind import Behind, relieved
from gquery.execution.collected import Collected
from gquery.execution.parts import Parts
from gquery.execution.state import StageReport
from gquery.execution.tiers import brought, free_bytes, put_below, tier_of
from gquery.expression.expr import Column
from gquery.kernels.builtin import gathers, order, scans
from gquery.operators.base import Frame, make_column, narrow
from gquery.operators.breakers import different, run_breaker
from gquery.operators.partition_rows import Partitioned, rows_between
from gquery.operators.sort_keys import sort_keys
from gquery.planner.physical import DistinctRows, SortRows
from gquery.runtime.interrupt import check


def sort_by_parts(work: SortRows, frame: Frame, device: Device, report: StageReport) -> Frame:
    """The sorted rows of a frame, in the tier."""
    frame = put_below(movable(frame), device, device.task)
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
    limits = tuning.spilling
    row = tuning.memory.sorted_row + sum(c.nbytes for c in frame.columns.values()) / max(frame.rows, 1)
    return max(limits.least_rows, int(free_bytes(device) * limits.part_fraction / row))


def _first_rows(work: SortRows, frame: Frame, most: int, step: int, device: Device) -> Frame:
    """The first rows of a sort with a limit: they are among the first of each chunk."""
    kept: list[Frame] = []
    for low in range(0, max(frame.rows, 1), step):
        check()
        part = brought([rows_between(frame, low, min(low + step, frame.rows))], device)
        rows = order.top_k(sort_keys(work.keys, part, device), most)
        first = {i: gathers.take(c, rows, device) for i, c in part.columns.items()}
        kept.append(Frame(first, int(rows.size)))
    return run_breaker(work, {work.stage: concatenated(kept, (), device)}, {}, {}, device)


def _key_ids(work: SortRows) -> tuple[int, ...]:
    return tuple([k.expr.id for k in work.keys if isinstance(k.expr, Column)])


def _taken(frame: Frame, rows: Array, device: Device) -> Frame:
    rows = rows.astype(np.uint32, copy=False)
    return Frame({i: gathers.take(c, rows, device) for i, c in frame.columns.items()}, int(rows.size))


class _Sorted:
    """A sort in parts, under way."""

    def __init__(self, work: SortRows, frame: Frame, step: int, device: Device, report: StageReport) -> None:
        self._work, self._frame, self._step, self._device, self._report = work, frame, step, device, report
        self._label = device.task
        self._row_bytes = sum(c.nbytes for c in frame.columns.values()) // max(frame.rows, 1) + 1

    def all(self) -> Frame:
        """The sorted rows, in the tier."""
        parts = Parts(self._chunks(), self._device)
        self._report.spilled_bytes += self._row_bytes * self._frame.rows
        with parts, Behind(self._device, self._label) as behind:
            made = Collected(self._device, self._label, behind, self._frame.rows)
            for n in range(parts.parts):
                check()
                self._add(parts, n, made, behind)
            return made.all()

    def _chunks(self) -> list[Partitioned]:
        """Chunks of rows, each in its order, in the tier, with the rows between two splitters as parts."""
        numbers, splitters = self._splitters()
        made: list[Partitioned] = []
        with Behind(self._device, self._label) as behind:
            for low in range(0, self._frame.rows, self._step):
                check()
                chunk = rows_between(self._frame, low, min(low + self._step, self._frame.rows))
                rows, cuts = behind.made(partial(self._chunk, chunk, splitters, numbers < low))
                made.append(Partitioned(behind.move(rows), tuple(cuts)))
        self._report.parts += len(made)
        return made

    def _add(self, parts: Parts, number: int, made: Collected, behind: Behind) -> None:
        """Add the rows between two splitters, in their order."""
        pieces = parts.pieces(number)
        if len(pieces) > 1:
            del pieces
            parts.begin(number + 1)
            made.add(relieved(partial(self._together, parts, number), behind, parts))
        elif pieces[0].rows:
            made.add(pieces[0])

    def _splitters(self) -> tuple[Array, Frame]:
        """Rows between which ranges lie, in their order: their numbers (int64, on the host) and their keys, in the tier."""
        limits, rows, tier = tuning.spilling, self._frame.rows, tier_of(self._device)
        ranges = -(-rows // self._step) + 1
        sampled = min(rows, ranges * limits.sampled_rows)
        sample = np.arange(sampled) * rows // sampled
        taken = _taken(self._keys(self._frame), sample, tier)
        at = order.sort_order(sort_keys(self._work.keys, taken, tier)).astype(np.int64)
        at = at[np.arange(1, ranges) * sampled // ranges]
        return sample[at], _taken(taken, at, tier)

    def _keys(self, frame: Frame) -> Frame:
        return Frame({i: frame.columns[i] for i in _key_ids(self._work)}, frame.rows)

    def _room(self, rows: int) -> AbstractContextManager[None]:
        """Room for so many rows that are sorted and gathered."""
        return self._device.scratch(rows * (tuning.memory.sorted_row + self._row_bytes), self._label)

    def _chunk(self, chunk: Frame, splitters: Frame, is_before: Array) -> tuple[Frame, list[int]]:
        """A chunk's rows in their order, and where its rows between splitters begin, with the end of all. Splitters
        that lie in chunks before come before rows of equal keys, others behind."""
        device, tier, before = self._device, tier_of(self._device), int(np.count_nonzero(is_before))
        first, last = np.flatnonzero(is_before), np.flatnonzero(~is_before)
        with self._room(chunk.rows):
            chunk = brought([chunk], device)
            frames = [_taken(splitters, first, tier), self._keys(chunk), _taken(splitters, last, tier)]
            keys = concatenated([f for f in frames if f.rows], (), device)
            at = order.sort_order(sort_keys(self._work.keys, keys, device))
            del keys, frames
            at, is_row = scans.moved_within(at, before, chunk.rows)
            ends = device.to_host(scans.compact(is_row, 1)).astype(np.int64) - np.arange(splitters.rows)
            made = _taken(chunk, gathers.gather(at, scans.compact(is_row)), device)
        return made, [0, *ends.tolist(), chunk.rows]

    def _together(self, parts: Parts, number: int) -> Frame:
        """The rows between two splitters, which lie in chunks that are sorted, in their order."""
        with self._room(parts.rows(number)):
            whole = parts.part(number)
            at = order.sort_order(sort_keys(self._work.keys, whole, self._device))
            return _taken(whole, at, self._device)


# ---- different values ------------------------------------------------------------------------------------------------


def distinct_by_parts(work: DistinctRows, frame: Frame, device: Device, report: StageReport) -> Frame:
    """The different values of a column: those of each chunk, and of what chunks have between two splitters."""
    label, tier = device.task, tier_of(device)
    values = frame.columns[work.source.id].data.on(tier)
    step = chunk_rows(Frame({work.source.id: frame.columns[work.source.id]}, frame.rows), device)
    ranges = -(-frame.rows // step) + 1
    sampled = min(frame.rows, ranges * tuning.spilling.sampled_rows)
    sample = np.sort(values[np.arange(sampled) * frame.rows // max(sampled, 1)])
    splitters = np.unique(sample[np.arange(1, ranges) * sampled // ranges])
    chunks: list[tuple[Array, list[int]]] = []
    for low in range(0, max(frame.rows, 1), step):
        check()
        own = _different([values[low : low + step]], device, label)
        chunks.append((own, [0, *np.searchsorted(own, splitters).tolist(), own.size]))
    report.parts += len(chunks)
    report.spilled_bytes += sum(own.nbytes for own, _ in chunks)
    made: list[Array] = []
    count = 0
    for n in range(splitters.size + 1):
        check()
        found = _different([own[ends[n] : ends[n + 1]] for own, ends in chunks], device, label)
        made.append(found[:0] if work.counted else found)
        count += int(found.size)
    whole = np.array([count], np.int64) if work.counted else _joined(made, values.dtype, device, label)
    columns = {
        s.column.id: make_column(s.properties, s.physical_type, narrow(whole, s.physical_type), None, whole.size, tier)
        for s in work.columns
    }
    return Frame(columns, int(whole.size))


def _different(pieces: Sequence[Array], device: Device, label: str) -> Array:
    """The different values of arrays of the tier, ascending, there."""
    with device.scratch(sum(p.size for p in pieces) * tuning.memory.sorted_row, label):
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if device.below is None:
            return device.in_file(np.unique(values), label)
        with device.activate():
            return copied(different(device.from_host(values, label), device.xp), device, device.below, label)


def _joined(arrays: Sequence[Array], dtype: ElementDType, device: Device, label: str) -> Array:
    with device.into_files():
        made = tier_of(device).empty_spillable(sum(a.size for a in arrays), dtype, label)
    return np.concatenate(arrays, out=made)
