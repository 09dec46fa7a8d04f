"""Lists of the values of frames: the elements of all frames one after another, in the order of the rows that have the lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import export_column
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.windows import WindowCall
from gquery.functions.list_arrays import list_array
from gquery.kernels.builtin import gathers, scans
from gquery.operators.made_lists import list_column
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.positions import Work, prefix, present_by_position
from gquery.planner.physical import Stored


def listed_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The values of each frame in a list, NULLs among them; NULL where it has no row."""
    column, device, o = work.column(call.args[0]), work.device, work.ordered
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(None, keep, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    counts = positions = None
    if present is not None:
        counts, positions = device.to_host(prefix(present, device)).astype(np.int64), scans.compact(present)
    ends = [(_by_row(r.low, counts, work), _by_row(r.high, counts, work)) for r in ranges]
    low, high = (np.stack([e[n] for e in ends], axis=1).reshape(-1) for n in (0, 1))  # of a row one range after another
    sizes = np.maximum(high - low, 0)
    first = np.cumsum(sizes) - sizes
    numbers = np.repeat(low - first, sizes) + np.arange(int(sizes.sum()))
    rows: Array = device.from_host(numbers.astype(np.uint32))
    for order in (positions, o.rows):
        rows = rows if order is None else gathers.gather(order, rows)
    whole = export_column(gathers.take(column, rows, device))
    elements = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    lengths = sizes.reshape(-1, len(ranges)).sum(axis=1)
    return list_column(stored, [list_array(elements, lengths, lengths > 0)], o.count, device)


def _by_row(ends: Array, counts: Array | None, work: Work) -> Array:
    """By row, on the host, an end of a range (int64); among the rows that count, where some do not."""
    device, o = work.device, work.ordered
    found = device.to_host(ends).astype(np.int64)
    found = found if counts is None else counts[found]
    if o.rows is None:
        return found
    made: Array = np.empty_like(found)
    made[device.to_host(o.rows)] = found
    return made
