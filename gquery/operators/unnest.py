"""Rows of the elements of lists: each row of a frame is repeated, and the elements come beside it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.errors import OutOfRangeError
from gquery.expression.facts import MOST_ROW_IDS
from gquery.functions.list_arrays import Lists, lists_of
from gquery.functions.vectors import from_numpy
from gquery.kernels.builtin import gathers
from gquery.operators.base import Frame
from gquery.operators.host_rows import array_of_column, column_of
from gquery.planner.physical import UnnestRows
from gquery.runtime.records import cached_property, dataclass


def unnest_rows(work: UnnestRows, frame: Frame, device: Device) -> Frame:
    """The frame of one row for each element of a row's longest list."""
    lists = [lists_of(array_of_column(frame.columns[c.id]), frame.rows) for _, c in work.lists]
    counts = np.max([x.lengths for x in lists], axis=0) if lists else np.zeros(frame.rows, np.int64)
    if work.kept:
        counts = np.maximum(counts, 1)
    total = int(counts.sum())
    if total > MOST_ROW_IDS:
        raise OutOfRangeError(f"unnest would make {total:,} rows, and a frame has {MOST_ROW_IDS:,} at most")
    label, made, repeated = device.task, dict[int, ColumnData](), RepeatedRows(counts)
    new = {s.column.id for s, _ in work.lists} | ({work.ordinal.column.id} if work.ordinal is not None else set())
    kept = [s.column.id for s in work.columns if s.column.id not in new]
    if kept:
        numbers = device.from_host(repeated.rows)
        made |= {i: gathers.take(frame.columns[i], numbers, device) for i in kept}
    for (stored, _), own in zip(work.lists, lists, strict=True):
        made[stored.column.id] = column_of(stored, _elements(own, repeated), device, label)
    if work.ordinal is not None:
        longest = np.max([x.lengths for x in lists], axis=0)
        counted = from_numpy(repeated.ordinals + 1, repeated.ordinals < longest[repeated.rows])
        made[work.ordinal.column.id] = column_of(work.ordinal, counted, device, label)
    return Frame({s.column.id: made[s.column.id] for s in work.columns}, total)


@dataclass(frozen=True, eq=False)
class RepeatedRows:
    """So many rows for each row of a frame: the number of that row, and which of its own rows each is."""

    counts: Array

    @cached_property
    def rows(self) -> Array:
        """The number of the row that each is made of (uint32)."""
        return np.repeat(np.arange(self.counts.size, dtype=np.uint32), self.counts)

    @cached_property
    def ordinals(self) -> Array:
        """From 0 on (int64)."""
        ends = np.cumsum(self.counts)
        made: Array = np.arange(int(self.counts.sum())) - np.repeat(ends - self.counts, self.counts)
        return made


def _elements(lists: Lists, repeated: RepeatedRows) -> pa.Array:
    """The element of each row, NULL where its list has no more. Where each list has one for each of its rows, and lists lie one
    behind another, these are all elements as they lie."""
    starts, lengths = lists.starts, lists.lengths
    if np.array_equal(lengths, repeated.counts) and bool((starts[1:] == starts[:-1] + lengths[:-1]).all()):
        return lists.elements.slice(int(starts[0]) if starts.size else 0, int(lengths.sum()))
    rows, ordinals = repeated.rows, repeated.ordinals
    is_there = ordinals < lengths[rows]
    return lists.elements.take(from_numpy(np.where(is_there, starts[rows] + ordinals, 0), is_there))
