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


def unnest_rows(work: UnnestRows, frame: Frame, device: Device) -> Frame:
    """The frame of one row for each element of a row's longest list."""
    lists = [lists_of(array_of_column(frame.columns[c.id]), frame.rows) for _, c in work.lists]
    counts = np.max([x.lengths for x in lists], axis=0) if lists else np.zeros(frame.rows, np.int64)
    if work.kept:
        counts = np.maximum(counts, 1)
    total = int(counts.sum())
    if total > MOST_ROW_IDS:
        raise OutOfRangeError(f"unnest would make {total:,} rows, and a frame has {MOST_ROW_IDS:,} at most")
    rows = np.repeat(np.arange(frame.rows, dtype=np.uint32), counts)
    ordinals = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    label, made = device.task, dict[int, ColumnData]()
    numbers = device.from_host(rows)
    new = {s.column.id for s, _ in work.lists} | ({work.ordinal.column.id} if work.ordinal is not None else set())
    for stored in work.columns:
        if stored.column.id not in new:
            made[stored.column.id] = gathers.take(frame.columns[stored.column.id], numbers, device)
    for (stored, _), own in zip(work.lists, lists, strict=True):
        made[stored.column.id] = column_of(stored, _elements(own, rows, ordinals), device, label)
    if work.ordinal is not None:
        counted = from_numpy(ordinals + 1, ordinals < np.max([x.lengths for x in lists], axis=0)[rows])
        made[work.ordinal.column.id] = column_of(work.ordinal, counted, device, label)
    return Frame(made, total)


def _elements(lists: Lists, rows: Array, ordinals: Array) -> pa.Array:
    """The element of each row, NULL where its list has no more."""
    is_there = ordinals < lists.lengths[rows]
    return lists.elements.take(from_numpy(np.where(is_there, lists.starts[rows] + ordinals, 0), is_there))
