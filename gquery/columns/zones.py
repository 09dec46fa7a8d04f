"""Zone maps: the least and the greatest value of each block of rows of a column, so that a scan can leave out blocks in which
no row can pass.

They are taken where a column of integers is encoded (dates, times and decimals are integers too), and kept with its
statistics. They help where rows that lie together have values that lie together: sorted columns, and those that grow as a
table is filled. A column whose blocks have all kinds of values gets none.
"""

from __future__ import annotations

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


@dataclass(frozen=True, eq=False)
class ValueRange:
    """What `value_range` finds: the ``bounds`` of all values but NULLs (None where there is no value), and zones, where
    they can help."""

    bounds: Bounds | None
    zones: Zones | None


def value_range(values: Any, validity: Any | None) -> ValueRange:
    """The extremes of an array of integers of at most 64 bits, 0 where ``validity`` (uint8, 1 for a value) is 0."""
    rows, block = len(values), tuning.encoding.zone_rows
    whole = rows // block * block
    low, high = (np.empty(-(-rows // block), np.int64) for _ in range(2))
    if whole:
        blocks = values[:whole].reshape(-1, block)
        low[: len(blocks)], high[: len(blocks)] = blocks.min(axis=1), blocks.max(axis=1)
    if whole < rows:
        low[-1], high[-1] = values[whole:].min(), values[whole:].max()
    if validity is not None:
        _without_nulls(values, validity.view(np.bool_), low, high)
    filled = low <= high
    if not filled.any():
        return ValueRange(None, None)
    bounds = Bounds(int(low[filled].min()), int(high[filled].max()))
    return ValueRange(bounds, Zones(block, low, high) if _tell_apart(low[filled], high[filled], bounds) else None)


def _without_nulls(values: Any, ok: Any, low: Any, high: Any) -> None:
    """Make the extremes of blocks those of their values alone: a 0 at an end may stand for NULL."""
    block = tuning.encoding.zone_rows
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
