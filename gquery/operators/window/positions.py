"""Kernels over the positions of an ordered frame, and what they share: columns by position, flags of the rows that count.

A kernel has two texts: ``row`` is the row that stands at position ``i``, by an array of row numbers or, where rows stand as they
are, the position itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Column, Expr, SortKey
from gquery.expression.expr import Literal as Constant
from gquery.expression.facts import INT64_BITS
from gquery.expression.types import Bounds, Kind, PhysicalType, physical_type_for
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.choosing import repeated_words
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.builtin.order_bits import signed
from gquery.kernels.builtin.prefix_sums import offsets_of
from gquery.operators.base import Frame
from gquery.operators.ordered import OrderedFrame
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

PARTITION = (
    "begin = i64(begins[row_index(i64(partitions[i]))])",
    "end = i64(begins[row_index(add_i64(i64(partitions[i]), 1))])",
)
"""Lines that find where the partition of a position begins and ends."""


class PositionKernel(NamedTuple):
    """A kernel over positions: the text for rows in an order, and for rows as they stand."""

    ordered: BuiltinKernel
    plain: BuiltinKernel

    def run(self, o: OrderedFrame, workers: int, *values: Argument, unit: int = 1) -> None:
        """Launch it over all positions."""
        kernel = self.plain if o.rows is None else self.ordered
        like = o.partitions.starts
        launch(kernel, o.count, like, o.rows, *values, workers=workers, unit=unit)

    def run_tiles(self, o: OrderedFrame, workers: int, tile: int, *values: Argument) -> None:
        """Launch a kernel of `tile_kernel` over all tiles of so many positions."""
        kernel = self.plain if o.rows is None else self.ordered
        like = o.partitions.starts
        launch(kernel, -(-o.count // tile), like, o.rows, tile, o.count, *values, workers=workers, unit=tile)


def position_kernel(parameters: str, *body: str) -> PositionKernel:
    """A kernel whose body finds the row at position ``i`` in ``row``, an integer."""
    parameters = f"rows:*u32 {parameters}"
    return PositionKernel(
        builtin_kernel(parameters, "row = i64(rows[i])", *body), builtin_kernel(parameters, "row = i64(i)", *body)
    )


def tile_kernel(parameters: str, before: Sequence[str], *each: str, row: bool = True) -> PositionKernel:
    """A kernel of which each row is a tile of positions, gone through one after another: lines ``before`` the first of them, at
    ``at``, and lines for ``each``, which find its row in ``row``. The tile ends with the position ``behind``."""
    parameters = f"rows:*u32 tile:i64 rows_in_all:i64 {parameters}"
    start = ("at = mul_i64(i64(i), tile)", "behind = min_i64(add_i64(at, tile), rows_in_all)", *before)

    def kernel(found: str) -> BuiltinKernel:
        lines = (*([f"row = {found}"] if row else []), *each, "at = add_i64(at, 1)")
        return builtin_kernel(parameters, *start, "while lt_i64(at, behind):", *("    " + line for line in lines))

    return PositionKernel(kernel("i64(rows[row_index(at)])"), kernel("at"))


NEXT_PARTITION = (
    "if ge_i64(at, end):",
    "    partition = add_i64(partition, 1)",
    "    begin = end",
    "    end = i64(begins[row_index(add_i64(partition, 1))])",
)
"""Lines of a tile's kernel that go on to the partition of the next position; `PARTITION_OF_TILE` finds the first one's."""
PARTITION_OF_TILE = (
    "partition = i64(partitions[row_index(at)])",
    "begin = i64(begins[row_index(partition)])",
    "end = i64(begins[row_index(add_i64(partition, 1))])",
)


@dataclass(frozen=True, eq=False)
class Work:
    """What computing the calls of one node takes: the frame, its rows in order, by which keys, where, by how many threads."""

    frame: Frame
    ordered: OrderedFrame
    order: tuple[SortKey, ...]
    device: Device
    workers: int

    def column(self, e: Expr) -> ColumnData:
        """The column that an expression names, or one of a constant's value in every row."""
        if isinstance(e, Column):
            return self.frame.columns[e.id]
        assert isinstance(e, Constant)
        return repeated(e, self.ordered.count, self.device)


def repeated(constant: Constant, rows: int, device: Device) -> ColumnData:
    """A constant as a column of so many rows."""
    value, dtype = constant.value, constant.dtype
    validity = Buffer(device.zeros(rows, np.uint8), device) if value is None else None
    if isinstance(value, str) or dtype.is_string:
        encoded = np.frombuffer((value or "").encode(), np.uint8)
        if not encoded.size:
            return ColumnData(dtype, PhysicalType.VIEW, rows, Buffer(device.zeros(2 * rows, np.int64), device), validity)
        characters = Buffer(device.from_host(encoded.copy()), device)
        view = np.array([address(characters.on(device)), encoded.size], np.int64)
        views = Buffer(_repeated_words(view, rows, device), device)
        return ColumnData(dtype, PhysicalType.VIEW, rows, views, validity, owners=(characters,))
    value = 0 if value is None else value
    physical_type = PhysicalType.F64 if dtype.is_float else physical_type_for(Bounds(value, value))
    if dtype.kind is Kind.BOOLEAN:
        physical_type = PhysicalType.BOOL
    words = [signed(value), value >> INT64_BITS] if physical_type is PhysicalType.I128 else [value]
    data = _repeated_words(np.array(words, physical_type.numpy), rows, device)
    bounds = None if dtype.is_float else Bounds(value, value)
    return ColumnData(
        dtype, physical_type, rows, Buffer(data, device), validity, statistics=ColumnStatistics(bounds=bounds)
    )


def _repeated_words(words: Array, times: int, device: Device) -> Array:
    """Some words of the host so many times, on the device."""
    return np.tile(words, times) if device.is_cpu else repeated_words(device.from_host(words), times)


def constant_of(e: Expr) -> Constant | None:
    """The constant that an expression is; None for a column."""
    return e if isinstance(e, Constant) else None


Form = Literal["i64", "f64", "ordered"]
"""How values are taken: integers, doubles, or integers in the order of doubles."""
_FORMS: dict[Form, str] = {"i64": "i64({c})", "f64": "f64({c})", "ordered": "f64_order(f64({c}))"}


@cache
def _taking(element: str, form: Form, masked: bool) -> PositionKernel:
    word = "f64" if form == "f64" else "i64"
    value = _FORMS[form].format(c="c0[row_index(row)]")
    lines = [f"value = {value}"]
    if masked:
        lines += ["if eq_i64(i64(present[i]), 0):", "    value = other"]
    return position_kernel(
        f"c0:*{element} present:*u8 other:{word} made:*{word}", *lines, f"store_{word}(made, i64(i), value)"
    )


def element_of(column: ColumnData) -> str:
    """The element type of a column of numbers."""
    return "u8" if column.physical_type is PhysicalType.BOOL else column.physical_type.value


def values_by_position(column: ColumnData, form: Form, present: Array | None, other: int | float, work: Work) -> Array:
    """A column of numbers of at most 64 bits by position (int64 or float64), with ``other`` where ``present`` is 0."""
    made = work.device.empty(work.ordered.count, np.float64 if form == "f64" else np.int64)
    kernel = _taking(element_of(column), form, present is not None)
    kernel.run(work.ordered, work.workers, column.data.on(work.device), present, other, made)
    return made


@cache
def _marking(valid: bool, filtered: bool, filter_valid: bool) -> PositionKernel:
    tests = []
    for name, used in (("valid", valid), ("filtered", filtered), ("filter_valid", filter_valid)):
        if used:
            tests.append(f"ne_i64(i64({name}[row_index(row)]), 0)")
    return position_kernel(
        "valid:*u8 filtered:*u8 filter_valid:*u8 made:*u8", f"store_bool(made, i64(i), {' and '.join(tests)})"
    )


def present_by_position(column: ColumnData | None, keep: ColumnData | None, work: Work) -> Array | None:
    """For each position whether its row counts (uint8): the column's value is not NULL, and ``keep`` is TRUE. None: all do."""

    def flags(values: ColumnData | None) -> Array | None:
        return None if values is None or values.validity is None else values.validity.on(work.device)

    valid, keep_valid = flags(column), flags(keep)
    if valid is None and keep is None:
        return None
    made = work.device.empty(work.ordered.count, np.uint8)
    kernel = _marking(valid is not None, keep is not None, keep_valid is not None)
    kept = None if keep is None else keep.data.on(work.device)
    kernel.run(work.ordered, work.workers, valid, kept, keep_valid, made)
    return made


def prefix(values: Array, device: Device) -> Array:
    """Sums of the values before each position, and behind the last of all; of flags as uint32, of integers as int64."""
    dtype = np.uint32 if values.dtype == np.uint8 else np.int64
    return offsets_of(values, dtype, device.empty(values.size + 1, dtype))
