"""A rank's part of a column: a range of its rows as a column of its own, so that a GPU gets no more than these rows.

Parts stay as long as the column does, and with them the copies on their ranks' devices.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.expression.types import PhysicalType


class _Kept(NamedTuple):
    """A part, and what it was cut of but for the data."""

    part: ColumnData
    validity: ReferenceType[Buffer] | None

    def is_of(self, column: ColumnData) -> bool:
        """Whether it was cut of this column: another one may have the same data."""
        validity = None if self.validity is None else self.validity()
        return (
            validity is column.validity
            and self.part.dictionary is column.dictionary
            and self.part.dtype == column.dtype
        )


_parts: WeakKeyDictionary[Buffer, dict[tuple[int, int], _Kept]] = WeakKeyDictionary()
_lock = Lock()


def part_of(column: ColumnData, low: int, high: int) -> ColumnData:
    """Rows ``low`` to ``high`` of a column of a table, in buffers of their own; the same one whenever it is asked for."""
    if (low, high) == (0, column.length):
        return column
    with _lock:
        kept = _parts.setdefault(column.data, {})
        found = kept.get((low, high))
        if found is None or not found.is_of(column):
            found = _Kept(_cut(column, low, high), None if column.validity is None else ref(column.validity))
            kept[low, high] = found
        return found.part


def _cut(column: ColumnData, low: int, high: int) -> ColumnData:
    part = column.slice(low, high)
    if column.physical_type not in (PhysicalType.STRING32, PhysicalType.STRING64) or column.characters is None:
        return part
    offsets = part.data.host
    first, last = int(offsets[0]), int(offsets[-1])
    return replace(part, data=Buffer(offsets - first), characters=column.characters.slice(first, last))
