"""One ordered frame: the rows of a frame in the order of partitions and, within each, of the ORDER BY keys, from one sort.

Window functions, ordered and holistic aggregates, and what else looks at rows in an order stand on it. Rows are numbered and not
moved: what reads a value at a *position* of the order takes it from the row that stands there. *Peers* are rows of one partition
whose order keys are equal. On this ground, functions are computed by position and their values stored at the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.expr import Column, SortKey
from gquery.kernels.builtin import order, scans
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.key_changes import key_changes
from gquery.operators.base import Frame
from gquery.operators.sort_keys import sort_keys
from gquery.runtime.records import dataclass

_FROM_ZERO = builtin_kernel("numbers:*u32", "store_u32(numbers, i64(i), sub_i64(i64(numbers[i]), 1))")
_ENDS = builtin_kernel("starts:*u32 rows:i64 groups:i64", "store_u32(starts, groups, rows)")


@dataclass(frozen=True, eq=False)
class Groups:
    """Neighbouring positions that belong together: the number of each position's group (uint32), and where each begins, with the
    end of the last (uint32)."""

    numbers: Array
    starts: Array

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.starts.size) - 1


@dataclass(frozen=True, eq=False)
class OrderedFrame:
    """The rows of a frame in an order. ``rows``: which stands at each position (uint32); None: each at its own. The flags (uint8)
    are 1 for a position with which a partition, or a group of peers, begins; None: there is one partition, or one group of peers
    in each."""

    count: int
    rows: Array | None
    partition_flags: Array | None
    peer_flags: Array | None
    device: Device

    @cached_property
    def partitions(self) -> Groups:
        """The partitions."""
        return groups_of(self.partition_flags, self.count, self.device)

    @cached_property
    def peers(self) -> Groups:
        """The groups of peers: parts of the partitions."""
        return self.partitions if self.peer_flags is None else groups_of(self.peer_flags, self.count, self.device)

    def take(self, values: Array, words: int = 1) -> Array:
        """What the rows have in an array, by position."""
        return values if self.rows is None else gather(values, self.rows, words)


def order_frame(
    frame: Frame, partition: Sequence[Column], keys: Sequence[SortKey], device: Device, workers: int = 1
) -> OrderedFrame:
    """The rows of a frame by partition, and within each by the keys; rows with equal keys stay in the frame's order."""
    if not partition and not keys:
        return OrderedFrame(frame.rows, None, None, None, device)
    every = [*(SortKey(c) for c in partition), *keys]
    rows: Array | None = None
    if not _is_sorted(frame, every):
        own = sort_keys(every[: len(partition)], frame, device)
        rows, peers, starts = order.sort_partitions([*own, *sort_keys(keys, frame, device)], len(own), workers)
        if starts is not None or not partition:
            return OrderedFrame(frame.rows, rows, starts if partition else None, peers if keys else None, device)
    first = [frame.columns[c.id] for c in partition]
    then = [frame.columns[k.expr.id] for k in keys if isinstance(k.expr, Column)]
    starts, peers = key_changes(first, then, rows, device, workers)
    return OrderedFrame(frame.rows, rows, starts if partition else None, peers if keys else None, device)


def _is_sorted(frame: Frame, keys: Sequence[SortKey]) -> bool:
    """Whether the rows are in the order of the keys as they stand."""
    if len(keys) > 1 or keys[0].descending or not isinstance(keys[0].expr, Column):
        return False
    column = frame.columns[keys[0].expr.id]
    return column.statistics.is_sorted and column.validity is None


def groups_of(flags: Array | None, count: int, device: Device, workers: int = 1) -> Groups:
    """Groups of positions that begin where a flag (uint8) is 1, as the first one is; None: all positions are one group."""
    xp = device.xp
    if flags is None or count == 0:
        ends = np.array([0, count] if count else [0], np.uint32)
        return Groups(device.zeros(count, np.uint32), device.from_host(ends))
    numbers = xp.cumsum(flags, dtype=np.uint32)
    launch(_FROM_ZERO, count, numbers, numbers, workers=workers)
    found = scans.compact(flags)
    starts: Array = xp.empty(found.size + 1, np.uint32)
    starts[:-1] = found
    launch(_ENDS, 1, starts, starts, count, int(found.size))
    return Groups(numbers, starts)
