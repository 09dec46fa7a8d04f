"""One ordered frame: the rows of a frame in the order of partitions and, within each, of the ORDER BY keys, from one sort.

Window functions, ordered and holistic aggregates, and what else looks at rows in an order stand on it. Rows are numbered and not
moved: what reads a value at a *position* of the order takes it from the row that stands there. *Peers* are rows of one partition
whose order keys are equal. On this ground, functions are computed by position and their values stored at the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.expr import Column, SortKey
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.builtin import order, scans
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.elements import store
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.key_changes import key_changes
from gquery.kernels.builtin.key_groups import group_rows, tells_apart
from gquery.kernels.builtin.prefix_sums import group_numbers
from gquery.operators.base import Frame, KnownOrder
from gquery.operators.sort_keys import sort_keys
from gquery.runtime.records import cached_property, dataclass

_ENDS = builtin_kernel("starts:*u32 rows:i64 groups:i64", "store_u32(starts, groups, rows)")


@dataclass(frozen=True, eq=False)
class PositionGroups:
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
    in each. Those of peers are made when they are first asked for: frames of ROWS do not ask."""

    count: int
    rows: Array | None
    partition_flags: Array | None
    find_peers: Callable[[], Array] | None
    device: Device
    workers: int = 1

    @cached_property
    def peer_flags(self) -> Array | None:
        """The flags of groups of peers."""
        return None if self.find_peers is None else self.find_peers()

    @cached_property
    def partitions(self) -> PositionGroups:
        """The partitions."""
        return groups_of(self.partition_flags, self.count, self.device, self.workers)

    @cached_property
    def peers(self) -> PositionGroups:
        """The groups of peers: parts of the partitions."""
        return (
            self.partitions
            if self.peer_flags is None
            else groups_of(self.peer_flags, self.count, self.device, self.workers)
        )

    def take(self, values: Array, words: int = 1) -> Array:
        """What the rows have in an array, by position."""
        return values if self.rows is None else gather(values, self.rows, words)


def order_frame(
    frame: Frame,
    partition: Sequence[Column],
    keys: Sequence[SortKey],
    device: Device,
    workers: int,
    sort: Sequence[SortKey],
) -> OrderedFrame:
    """The rows of a frame by partition, and within each by the keys; rows with equal keys stay in the frame's order. With
    ``sort`` they are sorted by these keys, which begin so, and rows with equal keys stay in that order."""
    if not partition and not keys:
        return OrderedFrame(frame.rows, None, None, None, device)
    if not sort:  # what a partition has one value of puts nothing in order
        keys = [k for k in keys if k.expr not in partition]
    every = [*(SortKey(c) for c in partition), *keys]
    by, known = list(sort) or every, _known_rows(frame, partition, keys, sort)
    rows: Array | None = None if known is None else known.rows
    if known is None and not _is_sorted(frame, by):
        if {k.expr for k in by[: len(partition)]} == set(partition) and by[len(partition) :] == list(keys):
            own = _numbers(partition, frame, device, workers) if not sort else None
            own = own or sort_keys(by[: len(partition)], frame, device, workers)
            then = sort_keys(by[len(partition) :], frame, device, workers)
            rows, peers, starts = order.sort_partitions([*own, *then], len(own), workers)
            if starts is not None or not partition:
                found = (lambda: peers) if keys else None
                return OrderedFrame(frame.rows, rows, starts if partition else None, found, device, workers)
        else:
            rows = order.sort_order(sort_keys(by, frame, device, workers), workers=workers)
    first = [frame.columns[c.id] for c in partition]
    last = [frame.columns[k.expr.id] for k in keys if isinstance(k.expr, Column)]
    if not partition:
        return OrderedFrame(
            frame.rows, rows, None, lambda: key_changes((), last, rows, device, workers)[1], device, workers
        )
    starts, peers = key_changes(first, last, rows, device, workers)
    return OrderedFrame(frame.rows, rows, starts, (lambda: peers) if keys else None, device, workers)


def _numbers(partition: Sequence[Column], frame: Frame, device: Device, workers: int) -> list[order.OrderKey] | None:
    """The number of each row's partition as the only key, on a CPU, where keys are texts or 128-bit integers: partitions may come
    in any order, and a hash table tells them apart sooner than a sort. None where that is no gain."""
    columns = [frame.columns[c.id] for c in partition]
    are_long = any(c.physical_type.is_string or c.physical_type is PhysicalType.I128 for c in columns)
    if not are_long or not tells_apart(device, frame.rows, tuning.sorting.hashed_rows):
        return None
    numbers, some = group_rows(columns, frame.rows, device, workers, device.task)
    return [order.Integers(numbers, Bounds(0, max(int(some.size) - 1, 0)))]


def _known_rows(
    frame: Frame, partition: Sequence[Column], keys: Sequence[SortKey], sort: Sequence[SortKey]
) -> KnownOrder | None:
    """An order in which the rows are known and that serves these keys: the sort that is shared, or that of the rows as they
    stand."""
    known = frame.known_order
    if known is None or (known.rows is not None and len(known.keys) != len(sort)):
        return None
    if sort:
        return known if known.keys[: len(sort)] == tuple(sort) else None
    ids = set(partition)
    first, own = known.keys[: len(ids)], [k for k in keys if k.expr not in ids]
    begins = {k.expr for k in first} == ids
    return known if begins and list(known.keys[len(ids) : len(ids) + len(own)]) == own else None


def _is_sorted(frame: Frame, keys: Sequence[SortKey]) -> bool:
    """Whether the rows are in the order of the keys as they stand."""
    if len(keys) > 1 or keys[0].descending or not isinstance(keys[0].expr, Column):
        return False
    column = frame.columns[keys[0].expr.id]
    return column.statistics.is_sorted and column.validity is None


_COUNT_STARTS = builtin_kernel(
    "flags:*u8 tile:i64 rows:i64 counts:*i64",
    "at = mul_i64(i64(i), tile)",
    "behind = min_i64(add_i64(at, tile), rows)",
    "count = i64(0)",
    "while lt_i64(at, behind):",
    "    count = add_i64(count, i64(flags[row_index(at)]))",
    "    at = add_i64(at, 1)",
    "store_i64(counts, i64(i), count)",
)
_NUMBER_ROWS = builtin_kernel(
    "flags:*u8 tile:i64 rows:i64 ends:*i64 counts:*i64 numbers:*u32 starts:*u32",
    "at = mul_i64(i64(i), tile)",
    "behind = min_i64(add_i64(at, tile), rows)",
    "number = sub_i64(sub_i64(i64(ends[i]), i64(counts[i])), 1)",
    "while lt_i64(at, behind):",
    "    if ne_i64(i64(flags[row_index(at)]), 0):",
    "        number = add_i64(number, 1)",
    "        store_u32(starts, number, at)",
    "    store_u32(numbers, at, number)",
    "    at = add_i64(at, 1)",
)


def _groups_by_tiles(flags: Array, count: int, device: Device, workers: int) -> PositionGroups:
    """`groups_of` on a CPU: threads take tiles of positions, of which it is known how many groups begin in those before."""
    tile = count if workers == 1 else tuning.window_functions.sliding_tile
    tiles = -(-count // tile)
    counts = np.empty(tiles, np.int64)
    launch(_COUNT_STARTS, tiles, flags, flags, tile, count, counts, workers=workers, unit=tile)
    ends = np.cumsum(counts)
    numbers, starts = device.empty(count, np.uint32), device.empty(int(ends[-1]) + 1, np.uint32)
    starts[-1:] = count
    launch(_NUMBER_ROWS, tiles, flags, flags, tile, count, ends, counts, numbers, starts, workers=workers, unit=tile)
    return PositionGroups(numbers, starts)


def groups_of(flags: Array | None, count: int, device: Device, workers: int) -> PositionGroups:
    """Groups of positions that begin where a flag (uint8) is 1, as the first one is; None: all positions are one group."""
    xp = device.xp
    if flags is None or count == 0:
        ends = np.array([0, count] if count else [0], np.uint32)
        return PositionGroups(device.zeros(count, np.uint32), device.from_host(ends))
    if device.is_cpu:
        return _groups_by_tiles(flags, count, device, workers)
    numbers = group_numbers(flags, np.uint32)
    found = scans.compact(flags)
    starts: Array = xp.empty(found.size + 1, np.uint32)
    store(found, starts[:-1])
    launch(_ENDS, 1, starts, starts, count, int(found.size))
    return PositionGroups(numbers, starts)
