"""Zone maps: the least and the greatest value of each block of rows of a column, so that a scan can leave out blocks in which
no row can pass.

They are taken where a column of integers is encoded (dates, times and decimals are integers too), and kept with its
statistics. They help where rows that lie together have values that lie together: sorted columns, and those that grow as a
table is filled. A column whose blocks have all kinds of values gets none.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from gquery import tuning
from gquery.expression.types import INT64, Bounds
from gquery.runtime.records import dataclass

Blocks = npt.NDArray[np.bool_]
"""A flag for each block."""

NO_VALUE = INT64.high, INT64.low
"""The extremes of a block of NULLs: nothing lies between them."""


@dataclass(frozen=True, eq=False)
class Zones:
    """The extremes of each block of ``block_rows`` rows, the last of which may be shorter: ``low`` and ``high`` are int64 and
    contain the values of their block, NULLs left out. A block without a value has `NO_VALUE`."""

    block_rows: int
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    def between(self, low: int, high: int) -> Blocks:
        """For each block whether a value may lie from ``low`` to ``high``. Bounds of any size are taken."""
        if low > high or low > INT64.high or high < INT64.low:
            return np.zeros(len(self.low), np.bool_)
        inside = (self.low <= min(high, INT64.high)) & (self.high >= max(low, INT64.low))
        found: Blocks = inside & (self.low <= self.high)
        return found

    def any_of(self, keys: npt.NDArray[np.int64]) -> Blocks:
        """For each block whether one of these values, which ascend, may be there."""
        found: Blocks = np.searchsorted(keys, self.low, "left") < np.searchsorted(keys, self.high, "right")
        return found

    def of_rows(self, first: int, last: int) -> Zones:
        """Those of rows ``first`` to ``last`` by themselves. A block of these may have rows of two blocks: it has the extremes of
        both, and so may be wider than its values are."""
        block = self.block_rows
        begins = np.arange(first, max(last, first), block)
        left, right = begins // block, np.minimum(begins + (block - 1), last - 1) // block
        low, high = np.minimum(self.low[left], self.low[right]), np.maximum(self.high[left], self.high[right])
        return Zones(block, low, high)


@dataclass(frozen=True, eq=False)
class ValueRange:
    """What `value_range` finds: the ``bounds`` of all values but NULLs (None where there is no value), and zones, where
    they can help."""

    bounds: Bounds | None
    zones: Zones | None


def value_range(values: Any, validity: Any | None) -> ValueRange:
    """The extremes of an array of integers of at most 64 bits, 0 where ``validity`` (uint8, 1 for a value) is 0."""
    whole = ZonesOfParts(len(values))
    whole.see(0, values, validity)
    return whole.found()


class ZonesOfParts:
    """What `value_range` finds of an array of so many rows, while threads fill it part by part."""

    def __init__(self, rows: int) -> None:
        self.block = tuning.encoding.zone_rows
        blocks = -(-rows // self.block)
        self._low, self._high = np.full(blocks, NO_VALUE[0], np.int64), np.full(blocks, NO_VALUE[1], np.int64)
        self._lock = threading.Lock()

    def no_extremes(self) -> tuple[Any, Any]:
        """Room for the extremes of all blocks (int64), as those of blocks without values."""
        return np.full_like(self._low, NO_VALUE[0]), np.full_like(self._high, NO_VALUE[1])

    def see(self, at: int, values: Any, validity: Any | None) -> None:
        """Take the rows from ``at`` on into account, which no other part has; see `value_range`."""
        ok = None if validity is None else validity.view(np.bool_)
        block, end = self.block, at + len(values)
        first, last = min(-(-at // block) * block, end), end // block * block  # between them lie whole blocks
        if first < last:
            inner = slice(first - at, last - at)
            blocks = values[inner].reshape(-1, block)
            low, high = (a[first // block : last // block] for a in (self._low, self._high))
            low[:], high[:] = blocks.min(axis=1), blocks.max(axis=1)
            if ok is not None:
                _without_nulls(values[inner], ok[inner], low, high)
        for start, stop in ((at, first), (max(first, last), end)):
            if start < stop:
                rows = slice(start - at, stop - at)
                self._widen(start // block, values[rows] if ok is None else values[rows][ok[rows]])

    def take(self, first: int, low: Any, high: Any) -> None:
        """Take the extremes of blocks from number ``first`` on into account; of the first and the last, other parts may have rows
        too. No row is NULL."""
        blocks = slice(first, first + len(low))
        with self._lock:
            np.minimum(self._low[blocks], low, out=self._low[blocks])
            np.maximum(self._high[blocks], high, out=self._high[blocks])

    def _widen(self, n: int, values: Any) -> None:
        """A part of a block, of which another thread may have another part."""
        if len(values):
            low, high = int(values.min()), int(values.max())
            with self._lock:
                self._low[n], self._high[n] = min(low, int(self._low[n])), max(high, int(self._high[n]))

    def found(self) -> ValueRange:
        """The bounds and zones of what was seen, which is the whole array."""
        low, high = self._low, self._high
        filled = low <= high
        if not filled.any():
            return ValueRange(None, None)
        bounds = Bounds(int(low[filled].min()), int(high[filled].max()))
        tells = _tell_apart(low[filled], high[filled], bounds)
        return ValueRange(bounds, Zones(self.block, low, high) if tells else None)


def _without_nulls(values: Any, ok: Any, low: Any, high: Any) -> None:
    """Make the extremes of whole blocks those of their values alone: a 0 at an end may stand for NULL."""
    block = len(values) // len(low)
    for n in np.flatnonzero((low == 0) | (high == 0)):
        there = ok[n * block : (n + 1) * block]
        if there.all():
            continue
        kept = values[n * block : (n + 1) * block][there]
        low[n], high[n] = (kept.min(), kept.max()) if len(kept) else NO_VALUE


def _tell_apart(low: Any, high: Any, bounds: Bounds) -> bool:
    """Whether blocks have but a part of all values, on the average."""
    if len(low) < tuning.encoding.least_zones:
        return False
    share = (high.astype(np.float64) - low + 1.0).mean() / float(bounds.width)
    return bool(share <= tuning.encoding.zone_share)
