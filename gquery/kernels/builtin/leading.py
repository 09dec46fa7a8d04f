"""Which rows may be among the first few of their slot, by one integer a row that compares as the row's value does.

A pass over the rows keeps, of each slot, the least ``first`` integers that came so far: a row that does not come before the last
of them is done after one comparison, any other is pushed in from the front by atomics, each of which hands on the greater of
two. What stands last in the end is the slot's bound, whatever the order in which threads came. A second pass flags the rows that
do not exceed it: all rows whose rank is at most ``first``, and those that the integers do not tell from them.

The integer of a text is made of eight of its bytes, that of a 128-bit number of its upper half; that of a double, as of other
types, is exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import INT64, PhysicalType
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, element_word, fill, launch
from gquery.kernels.builtin.gathers import gather
from gquery.runtime.records import dataclass

_TEXT = f"xor_i64(text_word({{text}}, word), {INT64.low})"  # unsigned words in the order of signed ones
_VALUES = {
    PhysicalType.BOOL: "i64(values[{row}])",
    PhysicalType.I128: "i64(values[row_index(add_i64(mul_i64(i64({row}), 2), 1))])",
    PhysicalType.F32: "f64_order(f64(values[{row}]))",
    PhysicalType.F64: "f64_order(f64(values[{row}]))",
    PhysicalType.STRING32: _TEXT.format(text="string32(values, characters, i64({row}))"),
    PhysicalType.STRING64: _TEXT.format(text="string64(values, characters, i64({row}))"),
    PhysicalType.VIEW: _TEXT.format(text="view(values, i64({row}))"),
}
_PUSH = (
    "at = mul_i64({slot}, first)",
    "if lt_i64(v, i64(bounds[row_index(add_i64(at, sub_i64(first, 1)))])):",
    "    place = i64(0)",
    "    while lt_i64(place, first):",
    "        v = max_i64(v, atomic_min_i64(bounds, add_i64(at, place), v))",
    "        place = add_i64(place, 1)",
)
_FLAG = (
    "at = mul_i64({slot}, first)",
    "if le_i64(v, i64(bounds[row_index(add_i64(at, sub_i64(first, 1)))])):",
    "    store_u8(flags, i64(i), 1)",
)


@dataclass(frozen=True, eq=False)
class Slots:
    """The slot of each row: what an array of integers holds, less ``low``; there are ``count``. Without an array there is one."""

    array: Array | None
    low: int
    count: int

    def of(self, rows: Array) -> Slots:
        """Those of some rows."""
        return self if self.array is None else Slots(gather(self.array, rows), self.low, self.count)


@dataclass(frozen=True, eq=False)
class Values:
    """A column as integers of its order. ``null``: what stands for a NULL, and for a row whose flag in ``there`` is 0."""

    column: ColumnData
    device: Device
    descending: bool = False
    null: int = INT64.high
    there: Array | None = None

    @property
    def flags(self) -> Array | None:
        """1 for each row whose value counts; None: for all."""
        validity = None if self.column.validity is None else self.column.validity.on(self.device)
        if self.there is None or validity is None:
            return validity if self.there is None else self.there
        return self.there * validity

    def integers(self, rows: Array | None, word: int = 0) -> Array:
        """Those of some rows (uint32; None: all), of text by its eight bytes number ``word``."""
        size = self.column.length if rows is None else int(rows.size)
        made: Array = self.device.xp.empty(size, np.int64)
        parts, arguments = self.arguments(word)
        kernel = _kernel(parts, "", rows is not None, ("store_i64(made, i64(i), v)",), "made:*i64")
        launch(kernel, size, made, *arguments, *(() if rows is None else (rows,)), made)
        return made

    def arguments(self, word: int = 0) -> tuple[tuple[PhysicalType, str, bool], tuple[Argument, ...]]:
        """What a kernel's text must know of the column, and what it is given."""
        data, flags, physical_type = self.column.data.on(self.device), self.flags, self.column.physical_type
        element = "i32" if physical_type is PhysicalType.STRING32 else _element(data)
        given: list[Argument] = [data]
        if physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
            given.append(0 if self.column.characters is None else address(self.column.characters.on(self.device)))
        if physical_type.is_string:
            given.append(word)
        given.append(-1 if self.descending else 0)
        if flags is not None:
            given += [flags, self.null]
        return (physical_type, element, flags is not None), tuple(given)


def bounds_of(values: Values, slots: Slots, first: int, workers: int = 1) -> Array:
    """Of each slot the ``first`` least integers (int64), the greatest last; where it has fewer, those behind are the greatest
    there is."""
    bounds: Array = values.device.xp.empty(slots.count * first, np.int64)
    fill(bounds, INT64.high)
    _run(values, slots, _PUSH, (first, bounds), "first:i64 bounds:*i64", workers)
    return bounds


def flags_within(values: Values, slots: Slots, first: int, bounds: Array, workers: int = 1) -> Array:
    """True for each row whose integer does not exceed the bound of its slot."""
    flags = values.device.zeros(values.column.length, np.bool_)
    _run(values, slots, _FLAG, (first, bounds, flags), "first:i64 bounds:*i64 flags:*u8", workers)
    return flags


def _run(
    values: Values, slots: Slots, body: tuple[str, ...], more: tuple[Argument, ...], declared: str, workers: int
) -> None:
    parts, arguments = values.arguments()
    given: tuple[Argument, ...] = () if slots.array is None else (slots.array, slots.low)
    kernel = _kernel(parts, "" if slots.array is None else _element(slots.array), False, body, declared)
    launch(
        kernel, values.column.length, values.column.data.on(values.device), *arguments, *given, *more, workers=workers
    )


@cache
def _kernel(
    parts: tuple[PhysicalType, str, bool], slots: str, has_rows: bool, body: tuple[str, ...], more: str
) -> BuiltinKernel:
    """A kernel that finds each row's integer ``v`` and does with it what ``body`` says."""
    physical_type, element, has_flags = parts
    row = "row_index(i64(rows[i]))" if has_rows else "i"
    value = _VALUES.get(physical_type, _VALUES[PhysicalType.BOOL]).format(row=row)
    parameters = [f"values:*{element}"]
    if physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
        parameters.append("characters:i64")
    if physical_type.is_string:
        parameters.append("word:i64")
    parameters.append("flip:i64")
    lines = [f"v = xor_i64({value}, flip)"]
    if has_flags:
        parameters.append("there:*u8 missing:i64")
        lines.append(f"if eq_i64(i64(there[{row}]), 0):")
        lines.append("    v = missing")
    if has_rows:
        parameters.append("rows:*u32")
    if slots:
        parameters.append(f"slots:*{slots} low:i64")
    slot = "sub_i64(i64(slots[i]), low)" if slots else "i64(0)"
    lines += [line.format(slot=slot) for line in body]
    return builtin_kernel(" ".join([*parameters, more]), *lines)


def _element(array: Array) -> str:
    return f"f{8 * array.dtype.itemsize}" if array.dtype.kind == "f" else element_word(array)
