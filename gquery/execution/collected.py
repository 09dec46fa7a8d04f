"""Frames that are made one after another and become one in the tier below (`execution.tiers`).

Where it is known how many rows there will be, about, each frame goes to its place in arrays of so many rows as soon as it is
made, so that nothing is moved twice. What finds no place there, and texts, are put behind the others in the end. A frame goes
there while the next one is made.
"""

from __future__ import annotations

import numpy as np

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.copies import copy_all, room_for
from gquery.device.device import Device
from gquery.execution.behind import Behind
from gquery.execution.tiers import joined_below, tier_of
from gquery.expression.types import Bounds
from gquery.operators.base import Frame, words_a_row
from gquery.operators.partition_rows import rows_between
from gquery.runtime.records import replace


class Collected:
    """See above. ``expected`` is how many rows there will be; 0: nobody knows. What is left ``behind`` arrives with that."""

    def __init__(self, device: Device, label: str, behind: Behind, expected: int = 0) -> None:
        self._device, self._label, self._behind, self._expected = device, label, behind, expected
        self._first: dict[int, ColumnData] = {}  # of each column all rows, as they are to be
        self._arrays: dict[int, tuple[Array, Array | None]] = {}
        self._bounds: dict[int, Bounds | None] = {}
        self._placed = 0
        self._others: list[Frame] = []
        self.rows = self.frames = 0

    def add(self, frame: Frame) -> None:
        """Take the rows of a frame that lies where its kernels run. OutOfMemoryError where the tier has no room."""
        self.rows += frame.rows
        self.frames += 1
        if not frame.rows and (self._first or self._others):
            return
        if self._others or not self._has_place(frame):
            self._others.append(self._behind.move(frame))
            return
        tier, low, high = tier_of(self._device), self._placed, self._placed + frame.rows
        moves: dict[Device, list[tuple[Array, Array]]] = {}
        for i, column in frame.columns.items():
            data, validity = self._arrays[i]
            words = words_a_row(column.physical_type)
            at = _where(column.data, self._device)
            moves.setdefault(at, []).append((data[words * low : words * high], column.data.on(at)))
            if validity is not None and column.validity is not None:
                at = _where(column.validity, self._device)
                moves.setdefault(at, []).append((validity[low:high], column.validity.on(at)))
            known, before = column.statistics.bounds, self._bounds[i]
            self._bounds[i] = None if known is None or before is None else before | known

        def place() -> None:
            with self._device.activate():
                for at, pairs in moves.items():
                    copy_all(pairs, tier, at)

        self._behind.run(place)
        self._placed = high

    def all(self) -> Frame:
        """All rows, one frame behind another, of which this has none afterwards."""
        self._behind.wait()
        frames, self._others = self._others, []
        if self._first:
            columns = {
                i: replace(column, statistics=ColumnStatistics(self._bounds[i])) for i, column in self._first.items()
            }
            frames = [rows_between(Frame(columns, self._expected), 0, self._placed), *frames]
            self._first, self._arrays = {}, {}
        return joined_below(frames, self._device)

    def _has_place(self, frame: Frame) -> bool:
        """Whether there are arrays for a frame's rows, which are made for the first one."""
        if not frame.columns or frame.rank_values or any(c.physical_type.is_string for c in frame.columns.values()):
            return False
        if self._placed + frame.rows > self._expected:
            return False
        if self._first:
            return all(is_alike(c, frame.columns[i]) for i, c in self._first.items())
        tier = tier_of(self._device)
        with self._device.into_files():
            for i, column in frame.columns.items():
                size, dtype = self._expected * words_a_row(column.physical_type), np.dtype(column.physical_type.numpy)
                data = room_for(size, dtype, tier, self._label, is_copied=True)
                flags = None
                if column.validity is not None:
                    flags = room_for(self._expected, np.dtype(np.uint8), tier, self._label, is_copied=True)
                self._arrays[i], self._bounds[i] = (data, flags), column.statistics.bounds
                rows = None if flags is None else Buffer(flags, tier)
                self._first[i] = replace(column, length=self._expected, data=Buffer(data, tier), validity=rows)
        return True


def _where(buffer: Buffer, device: Device) -> Device:
    return device if buffer.is_on(device) else buffer.devices[0]


def is_alike(column: ColumnData, other: ColumnData) -> bool:
    """Whether values of one column can go behind those of the other as they are."""
    is_same = column.physical_type is other.physical_type and column.dictionary is other.dictionary
    return is_same and (column.validity is None) is (other.validity is None)
