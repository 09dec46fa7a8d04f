"""Reductions that no accumulator makes, over the rows of groups in order: bits and products.

A thread reduces the rows of a piece of a group one after another, then one those pieces, so that a group of many rows is the
work of many threads. Every piece begins with the value that changes no other. On a CPU rows whose groups have numbers change
their group's value as they lie: nobody sorts them by group.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.functions.aggregate_record import Reduced
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.elements import are_positive, converted, every, hide_nulls
from gquery.kernels.builtin.group_ranges import RangePieces, pairs_of, pieces_of
from gquery.kernels.builtin.prefix_sums import running_sums
from gquery.kernels.readback import read_scalar
from gquery.operators.base import narrow, words_a_row
from gquery.planner.stored import Stored
from gquery.runtime.records import dataclass

_TYPES = {"f64": np.float64, "i64": np.int64}
_OPERATIONS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "mul": np.multiply}


@cache
def _kernel(by: Reduced, in_order: bool) -> BuiltinKernel:
    """The kernel that reduces ranges of values, of rows that stand in an order, or of values as they lie."""
    word = by.word
    value = "values[row_index(i64(rows[row_index(at)]))]" if in_order else "values[row_index(at)]"
    return builtin_kernel(
        f"begins:*i64 ends:*i64 {'rows:*u32 ' * in_order}values:*{word} made:*{word}",
        "at = i64(begins[i])",
        "end = i64(ends[i])",
        f"total = {word}({by.identity})",
        "while lt_i64(at, end):",
        f"    total = {by.operation}_{word}(total, {word}({value}))",
        "    at = add_i64(at, 1)",
        f"store_{word}(made, i64(i), total)",
    )


@dataclass(frozen=True, eq=False)
class Ranges:
    """Of each group the rows that are reduced: so many of ``rows`` (uint32) from ``begins`` on (both int64)."""

    rows: Array
    begins: Array
    sizes: Array


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """Rows by the numbers of their groups (uint32), those alone that are ``kept`` (a flag each), and how many of each group are
    (``sizes``, int64)."""

    numbers: Array
    kept: Array | None
    sizes: Array


def reduced(by: Reduced, column: ColumnData, ranges: Ranges, stored: Stored, device: Device) -> ColumnData:
    """The reduction of the values of each group; NULL where it has none."""
    if not device.is_cpu:
        return _reduced_on_gpu(by, column, ranges, stored, device)
    made = [_in_pieces(by, word, ranges, device) for word in _words(by, column, device)]
    return _of_words(made, are_positive(ranges.sizes), stored, device)


def reduced_by_number(by: Reduced, column: ColumnData, rows: NumberedRows, stored: Stored, device: Device) -> ColumnData:
    """The same on a CPU, of rows as they lie."""
    numbers, made = rows.numbers.astype(np.intp), []
    kept = None if rows.kept is None else rows.kept.view(np.bool_)
    numbers = numbers if kept is None else numbers[kept]
    for word in _words(by, column, device):
        total = np.full(rows.sizes.size, word.dtype.type(by.identity))
        with np.errstate(all="ignore"):  # as kernels
            _OPERATIONS[by.operation].at(total, numbers, word if kept is None else word[kept])
        made.append(total)
    return _of_words(made, are_positive(rows.sizes), stored, device)


def _words(by: Reduced, column: ColumnData, device: Device) -> list[Array]:
    """A column's values, of two words the lower ones and the upper ones."""
    data = column.data.on(device)
    words = data.reshape(-1, 2) if column.physical_type is PhysicalType.I128 else data.reshape(-1, 1)
    return [np.ascontiguousarray(words[:, n]).astype(_TYPES[by.word]) for n in range(words.shape[1])]


def _of_words(made: list[Array], there: Array, stored: Stored, device: Device) -> ColumnData:
    values = np.stack(made, axis=1).reshape(-1) if len(made) > 1 else made[0]
    kept = there if len(made) == 1 else np.repeat(there, len(made))
    values = narrow(np.where(kept > 0, values, np.zeros_like(values)), stored.physical_type)
    return ColumnData(
        stored.properties.dtype, stored.physical_type, int(there.size), Buffer(values, device), Buffer(there, device)
    )


def _reduced_on_gpu(by: Reduced, column: ColumnData, ranges: Ranges, stored: Stored, device: Device) -> ColumnData:
    """The same by kernels."""
    there, words = are_positive(ranges.sizes), words_a_row(column.physical_type)
    pieces = pieces_of(ranges.begins, ranges.sizes, tuning.sorting.reduced_rows)
    data, made = column.data.on(device), []
    for n in range(words):
        own = every(data[n:], words)
        values = own if own.dtype == _TYPES[by.word] else converted(own, _TYPES[by.word])
        made.append(_in_ranges(by, values, ranges.rows, pieces, device))
    whole = made[0] if words == 1 else pairs_of(*made)
    hide_nulls(whole, there, words)
    return ColumnData(
        stored.properties.dtype, stored.physical_type, int(there.size), Buffer(narrow(whole, stored.physical_type), device),
        Buffer(there, device),
    )  # fmt: skip


def _in_ranges(by: Reduced, values: Array, rows: Array, pieces: RangePieces, device: Device) -> Array:
    low, high, first, last = pieces
    partial, made = (device.empty(n, values.dtype) for n in (low.size, first.size))
    launch(_kernel(by, True), low.size, partial, low, high, rows, values, partial, unit=tuning.sorting.reduced_rows)
    launch(_kernel(by, False), first.size, made, first, last, partial, made)
    return made


def _in_pieces(by: Reduced, values: Array, ranges: Ranges, device: Device) -> Array:
    begins, sizes = ranges.begins, ranges.sizes
    most = tuning.sorting.reduced_rows
    pieces = (sizes + (most - 1)) // most
    last = running_sums(pieces, np.int64)
    first = last - pieces
    count = read_scalar(last[-1]) if last.size else 0
    group = np.repeat(np.arange(sizes.size), pieces)
    low = begins[group] + (np.arange(count) - first[group]) * most
    high = np.minimum(low + most, begins[group] + sizes[group])
    return _in_ranges(by, values, ranges.rows, RangePieces(low, high, first, last), device)
