"""The n-th least values of groups on a CPU, without a sort: values are brought next to those of their group, and selected there.

A thread takes groups one after another: it divides the values of one about one of them until the place that is wanted stands
alone (Hoare's selection, about the median of three). Where that ends too late, as it may for values that somebody chose to, the
range of the values is halved instead. Groups of many values are left to NumPy.
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import wide_arrays
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.targets.morsels import run_parts
from gquery.runtime.records import dataclass, replace

_COUNT = builtin_kernel(
    "numbers:*u32 kept:*u8 is_kept:i64 tile:i64 rows:i64 groups:i64 counts:*i64",
    "at = mul_i64(i64(i), tile)",
    "behind = min_i64(add_i64(at, tile), rows)",
    "base = mul_i64(i64(i), groups)",
    "while lt_i64(at, behind):",
    "    slot = add_i64(base, i64(numbers[row_index(at)]))",
    "    one = i64(1)",
    "    if ne_i64(is_kept, 0):",
    "        one = i64(kept[row_index(at)])",
    "    store_i64(counts, slot, add_i64(i64(counts[row_index(slot)]), one))",
    "    at = add_i64(at, 1)",
)


def _moving(word: str, value: str) -> tuple[str, ...]:
    return (
        f"values:*{word} numbers:*u32 kept:*u8 is_kept:i64 tile:i64 rows:i64 groups:i64 places:*i64 made:*i64",
        "at = mul_i64(i64(i), tile)",
        "behind = min_i64(add_i64(at, tile), rows)",
        "base = mul_i64(i64(i), groups)",
        "while lt_i64(at, behind):",
        "    one = i64(1)",
        "    if ne_i64(is_kept, 0):",
        "        one = i64(kept[row_index(at)])",
        "    if ne_i64(one, 0):",
        "        slot = add_i64(base, i64(numbers[row_index(at)]))",
        "        place = i64(places[row_index(slot)])",
        f"        store_i64(made, place, {value.format(v='values[row_index(at)]')})",
        "        store_i64(places, slot, add_i64(place, 1))",
        "    at = add_i64(at, 1)",
    )


_MOVE = {
    word: builtin_kernel(*_moving(word, "f64_order(f64({v}))" if word.startswith("f") else "i64({v})"))
    for word in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64")
}

_HALVING = (
    "at = low",
    "greatest = least",
    "while le_i64(at, high):",
    "    least = min_i64(least, i64(values[row_index(at)]))",
    "    greatest = max_i64(greatest, i64(values[row_index(at)]))",
    "    at = add_i64(at, 1)",
    "while lt_i64(least, greatest):",
    "    middle = add_i64(least, shr_u64(sub_i64(greatest, least), 1))",
    "    count = i64(0)",
    "    at = low",
    "    while le_i64(at, high):",
    "        count = add_i64(count, from_bool(le_i64(i64(values[row_index(at)]), middle)))",
    "        at = add_i64(at, 1)",
    "    if gt_i64(count, sub_i64(place, low)):",
    "        greatest = middle",
    "    else:",
    "        least = add_i64(middle, 1)",
    "up_to = i64(0)",
    "at = first",
    "while lt_i64(at, behind_it):",
    "    a = i64(values[row_index(at)])",
    "    if le_i64(a, least):",
    "        up_to = add_i64(up_to, 1)",
    "    else:",
    "        next = min_i64(next, a)",
    "    at = add_i64(at, 1)",
    "if gt_i64(up_to, add_i64(i64(wanted[i]), 1)) or eq_i64(up_to, size):",
    "    next = least",
)
_SELECT = builtin_kernel(  # the value at ``wanted`` of each group, and the least one behind it
    "values:*i64 starts:*i64 sizes:*i64 wanted:*i64 most:i64 rounds:i64 found:*i64 behind:*i64",
    "first = i64(starts[i])",
    "size = i64(sizes[i])",
    "if gt_i64(size, 0) and le_i64(size, most):",
    "    place = add_i64(first, i64(wanted[i]))",
    "    low = first",
    "    high = sub_i64(add_i64(first, size), 1)",
    "    round = i64(0)",
    "    while lt_i64(low, high) and lt_i64(round, rounds):",
    "        round = add_i64(round, 1)",
    "        a = i64(values[row_index(low)])",
    "        b = i64(values[row_index(shr_i64(add_i64(low, high), 1))])",
    "        c = i64(values[row_index(high)])",
    "        pivot = max_i64(min_i64(a, b), min_i64(max_i64(a, b), c))",
    "        left = low",
    "        right = high",
    "        while le_i64(left, right):",
    "            a = i64(values[row_index(left)])",
    "            while lt_i64(a, pivot):",
    "                left = add_i64(left, 1)",
    "                a = i64(values[row_index(left)])",
    "            b = i64(values[row_index(right)])",
    "            while gt_i64(b, pivot):",
    "                right = sub_i64(right, 1)",
    "                b = i64(values[row_index(right)])",
    "            if le_i64(left, right):",
    "                store_i64(values, left, b)",
    "                store_i64(values, right, a)",
    "                left = add_i64(left, 1)",
    "                right = sub_i64(right, 1)",
    "        if le_i64(place, right):",
    "            high = right",
    "        elif ge_i64(place, left):",
    "            low = left",
    "        else:",
    "            low = place",
    "            high = place",
    "    behind_it = add_i64(first, size)",
    "    least = i64(values[row_index(place)])",
    "    next = i64(9223372036854775807)",
    "    if lt_i64(low, high):",  # it did not end
    *("        " + line for line in _HALVING),
    "    else:",
    "        at = add_i64(place, 1)",
    "        while lt_i64(at, behind_it):",
    "            next = min_i64(next, i64(values[row_index(at)]))",
    "            at = add_i64(at, 1)",
    "        if eq_i64(add_i64(place, 1), behind_it):",
    "            next = least",
    "    store_i64(found, i64(i), least)",
    "    store_i64(behind, i64(i), next)",
)


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Values by group, as integers of their order (int64): where those of each group begin, and how many they are (int64)."""

    values: Array
    starts: Array
    sizes: Array
    workers: int

    def select(self, wanted: Array) -> tuple[Array, Array]:
        """The value at a place (int64, from 0 on) among the sorted ones of each group, and the one behind it or, where there is
        none, itself; 0 of a group without values."""
        groups = int(self.sizes.size)
        found, behind = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        if groups == 0:
            return found, behind
        most = tuning.sorting.kernel_values
        given = (self.values, self.starts, self.sizes, wanted, most, tuning.sorting.selection_rounds, found, behind)
        launch(_SELECT, groups, self.values, *given, workers=self.workers, unit=max(self.values.size // groups, 1))

        def one(lo: int, hi: int) -> None:
            for group in large[lo:hi]:
                own, at = self.values[self.starts[group] :][: self.sizes[group]], wanted[group]
                own.partition(at)
                found[group] = own[at]
                behind[group] = own[min(at + 1, own.size - 1) :].min()

        large = np.flatnonzero(self.sizes > most)
        run_parts(one, int(large.size), 1, self.workers)
        return found, behind


def is_selectable(column: ColumnData) -> bool:
    """Whether values of a column are integers or floats of at most 64 bits."""
    return column.physical_type.value in _MOVE


def group_values(
    column: ColumnData, numbers: Array | None, kept: Array | None, groups: int, device: Device, workers: int
) -> GroupValues:
    """The values of a column of a CPU by the number of their group (None: all are in one), but for those that do not count."""
    data, rows = column.data.on(device), column.length
    given = np.zeros(rows, np.uint32) if numbers is None else numbers
    tiles = workers if workers * groups <= rows else 1
    tile = max(-(-rows // tiles), 1)
    counts = np.zeros((tiles, groups), np.int64)
    flags = (kept, int(kept is not None), tile, rows, groups)
    launch(_COUNT, tiles, counts, given, *flags, counts, workers=workers, unit=tile)
    sizes = counts.sum(axis=0)
    starts = np.cumsum(sizes) - sizes
    begins = np.ascontiguousarray(np.cumsum(counts, axis=0) - counts + starts)
    made = np.empty(int(sizes.sum()), np.int64)
    launch(
        _MOVE[column.physical_type.value], tiles, made, data, given, *flags, begins, made, workers=workers, unit=tile
    )
    return GroupValues(made, starts, sizes, workers)


def column_values(values: Array, column: ColumnData, device: Device) -> ColumnData:
    """A column of what integers of their order stand for, of a column's type."""
    if column.physical_type in (PhysicalType.F32, PhysicalType.F64):
        values = wide_arrays.f64_unorder(values)
    data = Buffer(values.astype(column.physical_type.numpy), device)
    return replace(column, length=int(values.size), data=data, validity=None)
