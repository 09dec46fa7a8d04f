"""A rank's part of a column: a range of its rows as a column of its own, so that a GPU gets no more than these rows.

Parts stay as long as the column does, and with them the copies on their ranks' devices. Queries cut a table at different places:
between two values of a sorted column where they read that, else in the middle. These lie close together. So what is copied is an
*extent*, somewhat more than the part, and all parts within it are views of the one copy.
"""

from __future__ import annotations

from dataclasses import field, replace
from threading import Lock
from weakref import ReferenceType, WeakKeyDictionary, ref

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.expression.types import PhysicalType
from gquery.runtime.forking import free_in_child
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

_TEXTS = (PhysicalType.STRING32, PhysicalType.STRING64)


class _Kept(NamedTuple):
    """Rows ``low`` to ``high`` of a column, and what they were cut of but for the data."""

    low: int
    high: int
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


@dataclass
class _Cut:
    """What a column was cut into."""

    parts: dict[tuple[int, int], _Kept] = field(default_factory=dict)
    extents: list[_Kept] = field(default_factory=list)


_cuts: WeakKeyDictionary[Buffer, _Cut] = WeakKeyDictionary()
_lock = free_in_child(Lock())


def part_of(column: ColumnData, low: int, high: int) -> ColumnData:
    """Rows ``low`` to ``high`` of a column of a table, in buffers of their own; the same one whenever it is asked for."""
    if (low, high) == (0, column.length):
        return column
    with _lock:
        cut = _cuts.setdefault(column.data, _Cut())
        found = cut.parts.get((low, high))
        if found is None or not found.is_of(column):
            is_text = column.physical_type in _TEXTS and column.characters is not None
            part = _text(column, low, high) if is_text else _within(_extent(column, low, high, cut), low, high)
            found = cut.parts[low, high] = _kept(column, low, high, part)
        return found.part


def _kept(column: ColumnData, low: int, high: int, part: ColumnData) -> _Kept:
    return _Kept(low, high, part, None if column.validity is None else ref(column.validity))


def _extent(column: ColumnData, low: int, high: int, cut: _Cut) -> _Kept:
    """Rows among which all of the wanted ones are."""
    for known in cut.extents:
        if known.low <= low and high <= known.high and known.is_of(column):
            return known
    more = min(tuning.distribution.extent_rows, column.length // 64)
    first, last = max(low - more, 0), min(high + more, column.length)
    made = _kept(column, first, last, column.slice(first, last))
    cut.extents.append(made)
    return made


def _within(extent: _Kept, low: int, high: int) -> ColumnData:
    """Rows of an extent, in its memory."""
    whole, first, last = extent.part, low - extent.low, high - extent.low
    part = whole.slice(first, last)
    words = whole.data.length // max(whole.length, 1)
    validity = None if whole.validity is None else whole.validity.window(first, last)
    return replace(part, data=whole.data.window(words * first, words * last), validity=validity)


def _text(column: ColumnData, low: int, high: int) -> ColumnData:
    """Rows of a column of text, with no characters but theirs."""
    part = column.slice(low, high)
    assert column.characters is not None
    offsets = part.data.host
    first, last = int(offsets[0]), int(offsets[-1])
    return replace(part, data=Buffer(offsets - first), characters=column.characters.slice(first, last))
