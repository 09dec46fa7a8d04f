"""Movable data: frames that go from one rank's device to another's, and frames of all ranks that become one.

Nothing that moves holds an address: views of text become characters, and what they point into stays behind. What is copied
shares no memory with where it came from. The ranks' frames follow one another in rank order, which is the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.copies import copied
from gquery.device.device import Device
from gquery.distributed.column_pieces import Copies, one_column, recoded, text_parts
from gquery.errors import InternalError
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.builtin import gathers
from gquery.kernels.readback import read_scalar
from gquery.operators.base import Frame
from gquery.operators.value_ranks import rank
from gquery.planner.physical import Stored


def movable(frame: Frame, device: Device | None = None) -> Frame:
    """The same rows where they lie, without what cannot move: a number on the GPU is read, views of text are copied out, and of
    other text there are no characters but its own, so that nobody has to look at its offsets. A rank that hands a frame over
    calls it on its own thread, with its ``device``, whose copies are taken where there are several."""
    rows, columns = frame.rows, frame.columns
    if frame.number is not None:
        rows = read_scalar(frame.number)
        columns = {i: c.slice(0, rows) for i, c in columns.items()}
    values = {i: _movable(c, device) for i, c in frame.rank_values.items()}
    return Frame({i: _movable(c, device) for i, c in columns.items()}, rows, values)


def moved(frame: Frame, device: Device) -> Frame:
    """The same rows with all buffers on ``device`` and nowhere else. What lies there already is not copied."""
    frame = movable(frame)
    return Frame(_all_moved(frame.columns, device), frame.rows, _all_moved(frame.rank_values, device))


def concatenated(frames: Sequence[Frame], stored: Sequence[Stored], device: Device) -> Frame:
    """The rows of frames that have the same columns, one frame after another, on ``device``. A column of ``stored`` gets the
    physical type of there, any other the widest among the frames. Dictionaries of equal content count as one, different ones are
    united; so are the values that ranks stand for. InternalError where a planned column cannot be made of what there is."""
    if not frames:
        raise InternalError("frames of no rank are concatenated")
    return together([movable(f) for f in frames], stored, device)


def together(frames: Sequence[Frame], stored: Sequence[Stored], device: Device) -> Frame:
    """`concatenated` of one or more frames that are `movable`: of those on other devices nothing is looked at, but copied."""
    ids = frames[0].columns.keys()
    planned = {s.column.id: s for s in stored}
    if any(f.columns.keys() != ids for f in frames) or not planned.keys() <= ids:
        raise InternalError(
            f"frames of {[sorted(f.columns) for f in frames]} are to be one of {sorted(planned or ids)}"
        )
    values: dict[int, ColumnData] = {}
    columns: dict[int, ColumnData] = {}
    copies = Copies(device)
    with device.activate():
        for i in ids:
            pieces = [f.columns[i] for f in frames]
            if any(i in f.rank_values for f in frames):
                pieces, values[i] = _ranked_together(pieces, [f.rank_values[i] for f in frames], device)
            columns[i] = one_column(pieces, planned.get(i), device, copies)
        copies.end()
    return Frame(columns, sum(f.rows for f in frames), values)


def _ranked_together(
    pieces: Sequence[ColumnData], values: Sequence[ColumnData], device: Device
) -> tuple[list[ColumnData], ColumnData]:
    """Columns of ranks among values of their own as ranks among the values of all, and those."""
    together = one_column(values, None, device)
    codes, distinct = rank(together, device)
    ends = np.cumsum([v.length for v in values]).tolist()
    tables = [codes[end - v.length : end] for end, v in zip(ends, values, strict=True)]
    known = Bounds(0, max(distinct.length - 1, 0))
    return [recoded(p, t, known, device) for p, t in zip(pieces, tables, strict=True)], distinct


# ---- columns --------------------------------------------------------------------------------------------------------


def _movable(column: ColumnData, device: Device | None) -> ColumnData:
    if device is not None and device.is_cuda:  # others copy from GPU to GPU
        column = _brought(column, device)
    at = device if device is not None and column.data.is_on(device) else column.data.devices[0]
    if column.physical_type is PhysicalType.VIEW:
        with at.activate():
            return gathers.gather_views(column, at)
    if column.physical_type.is_string:
        offsets, own = text_parts(column, at)
        column = replace(column, data=Buffer(offsets, at), characters=Buffer(own, at))
    return replace(column, owners=()) if column.owners else column


def _brought(column: ColumnData, device: Device) -> ColumnData:
    """The column as it lies on a device, which keeps the copies that it did not have yet."""
    if all(b.devices[0] == device for b in column.buffers):
        return column

    def there(buffer: Buffer | None) -> Buffer | None:
        return None if buffer is None else Buffer(buffer.on(device), device)

    data = Buffer(column.data.on(device), device)
    return replace(column, data=data, validity=there(column.validity), characters=there(column.characters))


def _all_moved(columns: Mapping[int, ColumnData], device: Device) -> dict[int, ColumnData]:
    return {i: _moved(c, device) for i, c in columns.items()}


def _moved(column: ColumnData, device: Device) -> ColumnData:
    if all(b.devices == (device,) for b in column.buffers):
        return column
    validity = None if column.validity is None else _copied(column.validity, device)
    data, characters = _copied(column.data, device), column.characters and _copied(column.characters, device)
    return replace(column, data=data, validity=validity, characters=characters)


def _copied(buffer: Buffer, device: Device) -> Buffer:
    """A buffer on this device alone."""
    if buffer.is_on(device):
        return Buffer(buffer.on(device), device)
    at = buffer.devices[0]
    return Buffer(copied(buffer.on(at), at, device, "moving rows to another device"), device)
