"""Groups whose aggregates look at their rows in an order: quantiles, modes, joined texts, first and last values.

The rows are sorted by their keys once, which numbers the groups; a CPU numbers those of integers that lie close together by
addresses, and selects quantiles without a sort. Each order that aggregates ask for is one sort more, by group,
then rows that count before those that do not, then the order: what is asked for stands at a place that is known from where a
group begins and how many of its rows count. Aggregates of the same order share its sort. Nothing is moved but row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import export_column
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Column, Literal, SortKey
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import BIGINT, BOOLEAN, Bounds, PhysicalType
from gquery.functions import declared
from gquery.functions.aggregate_record import (
    Accumulated,
    AtEnd,
    AtFraction,
    Derived,
    JoinedText,
    Listed,
    MostFrequent,
    OneValue,
    Reduced,
    StandsFor,
)
from gquery.functions.list_arrays import list_array
from gquery.kernels.builtin import gathers, grouping, order, scans
from gquery.kernels.builtin.define import builtin_kernel, fill, launch
from gquery.kernels.builtin.elements import added, are_positive, differences, every, put, row_numbers, store
from gquery.kernels.builtin.group_modes import By, SortedValues, most_frequent
from gquery.kernels.builtin.group_texts import hide_first_separators, separated
from gquery.kernels.builtin.key_groups import firsts_of, tells_apart
from gquery.kernels.builtin.prefix_sums import group_numbers, offsets_of
from gquery.operators.base import Frame, with_flags
from gquery.operators.group_selection import GroupValues, column_values, group_values, is_selectable
from gquery.operators.made_lists import list_column
from gquery.operators.numbered_groups import numbered
from gquery.operators.ordered_reductions import NumberedRows, Ranges, reduced, reduced_by_number
from gquery.operators.quantiles import Sides, interpolated, interpolated_rows, positions_between, positions_of
from gquery.operators.sort_keys import key_parts, sort_keys
from gquery.planner.ordered_call import OrderedCall
from gquery.planner.physical import OrderedGroups, Stored
from gquery.runtime.records import cached_property, dataclass

_ROW_MASK = (1 << ROW_ID_BITS) - 1
_ROWS_AT = builtin_kernel(  # of positions within groups, the first place where a group has no row that counts
    "starts:*i64 positions:*i64 sizes:*i64 last:i64 numbers:*u32",
    "at = i64(starts[i])",
    "if gt_i64(i64(sizes[i]), 0):",
    "    at = add_i64(at, i64(positions[i]))",
    "store_u32(numbers, i64(i), min_i64(at, last))",
)
_COUNTED = builtin_kernel(  # how many rows of a group count, of sums of flags up to each
    "starts:*i64 before:*i64 counted:*i64",
    "low = i64(before[row_index(i64(starts[i]))])",
    "high = i64(before[row_index(i64(starts[next_index(i)]))])",
    "store_i64(counted, i64(i), sub_i64(high, low))",
)


def ordered_groups(work: OrderedGroups, frame: Frame, device: Device, workers: int = 1) -> Frame:
    """The frame of the groups of one that has rows: their keys, and the results of aggregates; so many threads of a CPU work at
    it."""
    groups = _groups(work, frame, device, workers)
    made: dict[int, ColumnData] = {}
    for (new, source), stored in zip(work.keys, work.columns, strict=False):
        assert new.id == stored.column.id
        made[new.id] = gathers.take(frame.columns[source.id], groups.some_rows, device)
    orders: dict[tuple[tuple[SortKey, ...], Column | None], InOrder] = {}
    for stored, call in work.calls:
        key = (call.order, call.kept)
        if key not in orders:
            orders[key] = InOrder(groups, call.order, call.kept, workers)
        made[stored.column.id] = result_of(call, stored, orders[key])
    return Frame(made, groups.count)


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a frame: of each row its number (uint32; None: there is one), and where each would begin if rows lay by
    group, with the end of the last (int64). ``some_rows``: a row of each. ``sorted_rows``: the rows by group, where known."""

    frame: Frame
    device: Device
    numbers: Array | None
    starts: Array
    some_rows: Array
    sorted_rows: Array | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.starts.size) - 1


def one_group(frame: Frame, device: Device) -> Groups:
    """All rows of a frame as one group."""
    ends = device.from_host(np.array([0, frame.rows], np.int64))
    return Groups(frame, device, None, ends, device.zeros(0, np.uint32))


def _groups(work: OrderedGroups, frame: Frame, device: Device, workers: int) -> Groups:
    xp, rows = device.xp, frame.rows
    if not work.keys:
        return one_group(frame, device)
    if (found := numbered([frame.columns[c.id] for _, c in work.keys], rows, device, workers)) is not None:
        return Groups(frame, device, found.of_rows, found.starts, found.some_rows)
    sorted_rows, flags = order.sort_starts(
        sort_keys([SortKey(c) for _, c in work.keys], frame, device, workers), workers
    )
    numbers = xp.empty(rows, np.uint32)
    put(numbers, sorted_rows, group_numbers(flags, np.uint32))
    positions = scans.compact(flags)
    starts = xp.empty(positions.size + 1, np.int64)
    store(positions, starts[:-1])
    fill(starts[-1:], rows)
    return Groups(frame, device, numbers, starts, gathers.gather(sorted_rows, positions), sorted_rows)


class InOrder:
    """The rows of groups in an order; of each group those that count come first."""

    def __init__(self, groups: Groups, keys: Sequence[SortKey], kept: Column | None, workers: int = 1) -> None:
        self.groups, self.device, self.frame = groups, groups.device, groups.frame
        self.keys, self.workers = keys, workers
        self.kept = None if kept is None else self.frame.columns[kept.id].data.on(self.device)

        self._values: dict[int, GroupValues] = {}

    def needs_no_sort(self, argument: Column, column: ColumnData) -> bool:
        """Whether the n-th values of groups in this order are found without a sort."""
        is_own = len(self.keys) == 1 and self.keys[0].expr == argument and not self.keys[0].descending
        return self.device.is_cpu and is_own and is_selectable(column)

    def values_at(self, column: ColumnData, low: Array, high: Array) -> list[ColumnData]:
        """The values at two places (int64) of the sorted ones of each group, which are the same or next to each other."""
        if id(column) not in self._values:
            numbers, count = self.groups.numbers, self.groups.count
            self._values[id(column)] = group_values(column, numbers, self.kept, count, self.device, self.workers)
        first = np.minimum(low, high)
        ends = self._values[id(column)].select(first)
        return [column_values(np.where(p > first, ends[1], ends[0]), column, self.device) for p in (low, high)]

    @property
    def _before(self) -> list[order.OrderKey]:
        """What rows are sorted by before their order."""
        found: list[order.OrderKey] = []
        if self.groups.numbers is not None:
            found.append(order.Integers(self.groups.numbers, Bounds(0, max(self.groups.count - 1, 0))))
        if self.kept is not None:
            found.append(order.Integers(self.kept, Bounds(0, 1), True))
        return found

    @cached_property
    def rows(self) -> Array:
        """The row at each place (uint32)."""
        keys = [*self._before, *sort_keys(self.keys, self.frame, self.device, self.workers)]
        if not self.keys and self.kept is None and self.groups.sorted_rows is not None:
            return self.groups.sorted_rows
        if not keys:
            return row_numbers(self.device.xp, self.frame.rows)
        return order.sort_order(keys, workers=self.workers)

    def by_value(self, column: ColumnData) -> tuple[Array, Array]:
        """The rows by group, those that count before others, and then by the values of a column; and where neighbours differ."""
        return order.sort_starts([*self._before, *key_parts(column, self.device, workers=self.workers)], self.workers)

    @cached_property
    def sizes(self) -> Array:
        """How many rows of each group count (int64)."""
        starts = self.groups.starts
        if self.kept is None:
            return differences(starts)
        if self.device.is_cpu:
            numbers = self.groups.numbers
            counting = np.zeros(self.frame.rows, np.uint32) if numbers is None else numbers
            return np.bincount(counting[self.kept.view(np.bool_)], minlength=self.groups.count)
        before = offsets_of(gathers.gather(self.kept, self.rows))
        counted: Array = self.device.xp.empty(self.groups.count, np.int64)
        launch(_COUNTED, counted.size, counted, starts, before, counted)
        return counted

    def rows_at(self, positions: Array) -> Array:
        """The rows (uint32) at positions within their groups, counted from 0; any where a group has none."""
        starts, last = self.groups.starts, self.frame.rows - 1
        if self.device.is_cpu:
            at = starts[:-1] + positions * (self.sizes > 0)
            return gathers.gather(self.rows, np.minimum(at, last).astype(np.uint32))
        found = self.device.xp.empty(self.groups.count, np.uint32)
        launch(_ROWS_AT, found.size, found, starts, positions, self.sizes, last, found)
        return gathers.gather(self.rows, found)


def result_of(call: OrderedCall, stored: Stored, rows: InOrder) -> ColumnData:
    """The column of an aggregate: one row a group."""
    device = rows.device
    there = are_positive(rows.sizes)
    columns: Mapping[int, ColumnData] = rows.frame.columns
    (first, *more) = call.args
    assert isinstance(first, Column)
    column, sizes = columns[first.id], rows.sizes
    constants = [e for e in more if isinstance(e, Literal)]
    by = declared(call.function).by
    match by:
        case AtEnd(last=True):
            return gathers.take(column, rows.rows_at(added(sizes, -1)), device, there=there)
        case AtEnd() | Accumulated(only=OneValue()):
            return gathers.take(column, rows.rows_at(device.xp.zeros_like(sizes)), device, there=there)
        case AtFraction(between=False):
            numbers = positions_of(constants[0], sizes)
            if rows.needs_no_sort(first, column):
                return with_flags(rows.values_at(column, numbers, numbers)[0], there, device)
            return gathers.take(column, rows.rows_at(numbers), device, there=there)
        case AtFraction():
            low, high, weight = positions_between(constants[0], sizes)
            if rows.needs_no_sort(first, column):
                ends = rows.values_at(column, low, high)
                return interpolated(ends[0], ends[1], weight, there, stored, device)
            sides = Sides(rows.rows_at(low), rows.rows_at(high), weight, there)
            return interpolated_rows(column, sides, stored, device, rows.workers)
        case MostFrequent():  # a second argument says where equal values are not the same
            compared = columns[more[0].id] if more and isinstance(more[0], Column) else column
            return gathers.take(column, _modes(compared, call.order, rows), device, there=there)
        case Reduced() if device.is_cpu and rows.groups.numbers is not None:
            return reduced_by_number(by, column, NumberedRows(rows.groups.numbers, rows.kept, sizes), stored, device)
        case Reduced():
            return reduced(by, column, Ranges(rows.rows, rows.groups.starts[:-1], sizes), stored, device)
        case JoinedText():
            return _joined(column, constants[0].value, there, rows)
        case Listed():
            return _listed(column, stored, rows)
        case Accumulated() | Derived() | StandsFor():
            raise AssertionError(call.function)
        case _:
            assert_never(by)


def _listed(column: ColumnData, stored: Stored, rows: InOrder) -> ColumnData:
    """The values of each group in a list; NULL where none counts."""
    device, sizes = rows.device, rows.sizes
    taken = rows.rows if rows.kept is None else _counted(rows)
    whole = export_column(gathers.take(column, taken, device))
    elements = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    lengths = device.to_host(sizes)
    return list_column(stored, [list_array(elements, lengths, lengths > 0)], int(sizes.size), device)


def _counted(rows: InOrder) -> Array:
    """The rows that count, by group."""
    assert rows.kept is not None
    return gathers.gather(rows.rows, scans.compact(gathers.gather(rows.kept, rows.rows)))


def _modes(column: ColumnData, keys: Sequence[SortKey], rows: InOrder) -> Array:
    """A row with the most frequent value of each group: of several such values the one that comes first in the order, which is
    that of the values, or of the rows where there is none."""
    if not keys and (counted := _value_counts(column, rows)) is not None:
        firsts, counts = counted
        best = _best_scores(counts << ROW_ID_BITS | (_ROW_MASK - firsts), firsts.astype(np.uint32), rows)
        made: Array = np.minimum(_ROW_MASK - (best & _ROW_MASK), rows.frame.rows - 1).astype(np.uint32)
        return made
    ordered, flags = rows.by_value(column)
    at, numbers = scans.compact(flags), rows.groups.numbers
    if not rows.device.is_cpu:
        by: By = "row" if not keys else "greatest" if keys[0].descending else "least"
        return most_frequent(SortedValues(ordered, at), numbers, rows.kept, rows.groups.count, by)
    ends = np.empty_like(at)
    ends[:-1] = at[1:]
    ends[-1:] = ordered.size
    found = gathers.gather(ordered, at)
    if not keys:
        precedence = _ROW_MASK - found.astype(np.int64)
    elif keys[0].descending:
        precedence = at.astype(np.int64)
    else:
        precedence = _ROW_MASK - at.astype(np.int64)
    best = _best_scores((ends.astype(np.int64) - at) << ROW_ID_BITS | precedence, found, rows) & _ROW_MASK
    if not keys:
        picked = _ROW_MASK - best
    else:
        positions = best if keys[0].descending else _ROW_MASK - best
        picked = gathers.gather(ordered, np.minimum(positions, ordered.size - 1).astype(np.uint32)).astype(np.int64)
    return np.ascontiguousarray(np.minimum(picked, rows.frame.rows - 1).astype(np.uint32))


def _value_counts(column: ColumnData, rows: InOrder) -> tuple[Array, Array] | None:
    """The first row of each value of each group, and how many rows have it (int64), on a CPU without a sort; None where that is
    no gain. Rows that do not count are values of their own."""
    groups, device = rows.groups, rows.device
    if not tells_apart(device, rows.frame.rows, tuning.sorting.hashed_rows):
        return None
    keys = [column]
    if groups.numbers is not None:
        keys.append(ColumnData(BIGINT, PhysicalType.U32, rows.frame.rows, Buffer(groups.numbers, device)))
    if rows.kept is not None:
        keys.append(ColumnData(BOOLEAN, PhysicalType.BOOL, rows.frame.rows, Buffer(rows.kept, device)))
    found = numbered(keys, rows.frame.rows, device, rows.workers)
    if found is None:
        return None
    return firsts_of(found.of_rows, int(found.some_rows.size)), np.diff(found.starts)


def _best_scores(scores: Array, found: Array, rows: InOrder) -> Array:
    """Of each group the greatest score of the values that are ``found`` in these rows and count; 0 where none does. On a CPU."""
    if rows.kept is not None:
        scores = np.where(gathers.gather(rows.kept, found) > 0, scores, np.int64(-1))
    best, numbers = np.full(rows.groups.count, -1, np.int64), rows.groups.numbers
    own = np.zeros(found.size, np.uint32) if numbers is None else gathers.gather(numbers, found)
    grouping.accumulate_at(best, own, scores, "max")
    return np.maximum(best, 0)


def _joined(column: ColumnData, separator: str, there: Array, rows: InOrder) -> ColumnData:
    """The texts of each group one behind another: of every row that counts first a separator, of no bytes where it is the first
    of its group, then its text."""
    device, count = rows.device, rows.frame.rows
    encoded = np.frombuffer(separator.encode(), np.uint8)
    characters = device.from_host(encoded.copy()) if encoded.size else device.zeros(1, "uint8")
    offsets = device.from_host(np.array([0, encoded.size], np.int64))
    between = ColumnData(
        column.dtype, PhysicalType.STRING64, 1, Buffer(offsets, device), None, Buffer(characters, device)
    )
    starts, one = rows.groups.starts, gathers.string_views(between, device)
    texts = gathers.string_views(column, device, rows.rows)
    if device.is_cpu:
        pairs = np.zeros((count, 2, 2), np.int64)
        pairs[:, 0, :], pairs[:, 1, :] = one.reshape(1, 2), texts.reshape(-1, 2)
        pairs[starts[:-1], 0, 1] = 0  # a group of a frame has a row
        if rows.kept is not None:
            pairs[:, :, 1] *= gathers.gather(rows.kept, rows.rows).astype(np.int64)[:, None]
        views = pairs.reshape(-1)
    else:
        views = separated(one, texts, rows.rows, rows.kept)
        hide_first_separators(views, starts[:-1])
    ends, text = gathers.gather_strings(views, device=device)
    own_ends = ends[2 * starts] if device.is_cpu else gathers.gather(every(ends, 2), starts)
    return ColumnData(
        column.dtype, PhysicalType.STRING64, rows.groups.count, Buffer(own_ends, device), Buffer(there, device),
        Buffer(text, device),
    )  # fmt: skip
