"""Rows of a frame on a GPU, written to where their parts are wanted: each part to memory of its own, also of another GPU.

`partition_rows` puts parts one after another, and who wants one copies it. Here they are counted first, so that each is written
once, where it stays: over the link between two GPUs the rows of a part go in runs, as they go to a GPU's own memory. Columns of
text have no such places; they are partitioned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.frozen import frozen_single
from gquery.kernels.builtin import row_partition
from gquery.kernels.builtin.define import address
from gquery.operators.base import Frame, words_a_row
from gquery.operators.partition_rows import HashPartitioning, labels_of


@frozen_single
class LabelledRows:
    """Rows and the part that each belongs to: the labels of rows, where those of a part and tile begin (int64, on the device),
    and where each part begins."""

    frame: Frame
    labels: Array
    starts: Array | None  # None where there are no rows
    firsts: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each part has."""
        return tuple([end - first for first, end in pairwise(self.firsts)])


@frozen_single
class Space:
    """Room for a column: its elements, and the flags of its rows if it may have NULLs."""

    data: Array
    validity: Array | None


Spaces = Mapping[int, Space]
"""By the id of a column."""


def space_for(column: ColumnData, rows: int, device: Device, label: str) -> Space:
    """Room for so many rows of a column like this one."""
    data = device.empty(rows * words_a_row(column.physical_type), column.physical_type.numpy, label)
    return Space(data, None if column.validity is None else device.empty(rows, "uint8", label))


def label_rows_of(frame: Frame, by: HashPartitioning, device: Device, label: str) -> LabelledRows:
    """The parts of a frame's rows on a GPU, which are counted: what waits for a GPU's numbers waits here."""
    labels = labels_of(frame, by, device, 1, label)
    if frame.rows == 0:
        return LabelledRows(frame, labels, None, (0,) * (by.all_parts + 1))
    with device.activate():
        starts = row_partition.count_on_gpu(labels, by.all_parts, device, label)
        return LabelledRows(frame, labels, starts, tuple(row_partition.starts_of_parts(starts, frame.rows)))


def scatter(rows: LabelledRows, spaces: Sequence[Spaces], offsets: Sequence[int], device: Device) -> None:
    """Write each part to its ``spaces``, from the row on that ``offsets`` say. This is queued: the spaces stay until it ends."""
    if rows.starts is None:
        return
    moves: list[row_partition.Move] = []
    shifts = [offset - first for offset, first in zip(offsets, rows.firsts, strict=False)]
    for i, column in rows.frame.columns.items():
        words, data = words_a_row(column.physical_type), column.data.on(device)
        size = int(data.dtype.itemsize)
        to = [address(s[i].data) + shift * words * size for s, shift in zip(spaces, shifts, strict=True)]
        moves.append((address(data), to, size, words))
        if column.validity is not None:
            flags = [s[i].validity for s in spaces]
            to = [address(f) + shift for f, shift in zip(flags, shifts, strict=True) if f is not None]
            moves.append((address(column.validity.on(device)), to, 1, 1))
    with device.activate():
        row_partition.move_on_gpu(rows.labels, rows.starts, len(spaces), moves, device)
