"""Which of the sorted values of a group a quantile is, or lies between, and what lies there: DuckDB's rules.

A fraction is a constant: of a decimal the position is exact. A negative one counts from the greatest value.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Literal
from gquery.expression.facts import power_of_ten
from gquery.expression.types import Kind, PhysicalType, Register, register_for
from gquery.kernels.builtin import gathers, wide_arrays
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch, namespace
from gquery.kernels.builtin.elements import converted
from gquery.kernels.builtin.interpolating import Rule, between, between_wide
from gquery.operators.base import narrow
from gquery.planner.physical import Stored
from gquery.runtime.tuples import NamedTuple


def _turned(position: str) -> tuple[str, str]:
    """Counts a position from the end where the fraction is negative."""
    return "if ne_i64(is_behind, 0):", f"    {position} = max_i64(sub_i64(sub_i64(v0, 1), {position}), 0)"


def _discrete(parameters: str, rest: str) -> BuiltinKernel:
    return builtin_kernel(
        f"c0:*i64 {parameters} is_behind:i64 positions:*i64",
        "v0 = i64(c0[i])",
        f"rest = {rest}",
        "at = sub_i64(max_i64(sub_i64(v0, rest), 1), 1)",
        *_turned("at"),
        "store_i64(positions, i64(i), at)",
    )


_EXACT = _discrete("scale:i64 whole:i64", "floor_div_i64(sub_i64(mul_i64(v0, scale), mul_i64(v0, whole)), scale)")
_INEXACT = _discrete("part:f64", "truncate_f64(floor_f64(sub_f64(f64(v0), mul_f64(f64(v0), part))))")
_BETWEEN = builtin_kernel(
    "c0:*i64 part:f64 is_behind:i64 lower:*i64 upper:*i64 weight:*f64",
    "v0 = i64(c0[i])",
    "at = mul_f64(f64(max_i64(sub_i64(v0, 1), 0)), part)",
    "low = truncate_f64(floor_f64(at))",
    "high = truncate_f64(ceil_f64(at))",
    "store_f64(weight, i64(i), sub_f64(at, floor_f64(at)))",
    *_turned("low"),
    *_turned("high"),
    "store_i64(lower, i64(i), low)",
    "store_i64(upper, i64(i), high)",
)


def positions_of(fraction: Literal, sizes: Array) -> Array:
    """The place of the discrete quantile among so many sorted values (int64)."""
    xp, part = namespace(sizes), abs(float_of(fraction))
    if xp is not np:
        return _discrete_on_gpu(fraction, sizes)
    if fraction.dtype.is_decimal:
        scale, whole = power_of_ten(fraction.dtype.scale), abs(int(fraction.value))
        rest = (sizes * scale - sizes * whole) // scale
    else:
        rest = xp.floor(sizes - sizes * part).astype(np.int64)
    positions = xp.maximum(sizes - rest, 1) - 1
    return _from_the_end(fraction, positions, sizes)


def positions_between(fraction: Literal, sizes: Array) -> tuple[Array, Array, Array]:
    """The positions next to the continuous quantile among so many sorted values (int64), and how far it is from the first to the
    second (float64)."""
    if (xp := namespace(sizes)) is not np:
        return _between_on_gpu(fraction, sizes, xp)
    position = xp.maximum(sizes - 1, 0) * abs(float_of(fraction))
    low, high = (f(position).astype(np.int64) for f in (xp.floor, xp.ceil))
    weight: Array = position - low
    return _from_the_end(fraction, low, sizes), _from_the_end(fraction, high, sizes), weight


def _discrete_on_gpu(fraction: Literal, sizes: Array) -> Array:
    """`positions_of` on a GPU."""
    made: Array = namespace(sizes).empty(sizes.size, np.int64)
    given, is_behind = converted(sizes, np.int64), int(float_of(fraction) < 0)
    if fraction.dtype.is_decimal:
        scale = power_of_ten(fraction.dtype.scale)
        launch(_EXACT, sizes.size, made, given, scale, abs(int(fraction.value)), is_behind, made)
    else:
        launch(_INEXACT, sizes.size, made, given, abs(float_of(fraction)), is_behind, made)
    return made


def _between_on_gpu(fraction: Literal, sizes: Array, xp: ModuleType) -> tuple[Array, Array, Array]:
    """`positions_between` on a GPU."""
    low, high, weight = (xp.empty(sizes.size, t) for t in (np.int64, np.int64, np.float64))
    part, given = float_of(fraction), converted(sizes, np.int64)
    launch(_BETWEEN, sizes.size, low, given, abs(part), int(part < 0), low, high, weight)
    return low, high, weight


def float_of(fraction: Literal) -> float:
    """The value of a fraction."""
    return fraction.value / power_of_ten(fraction.dtype.scale) if fraction.dtype.is_decimal else float(fraction.value)


def _from_the_end(fraction: Literal, positions: Array, sizes: Array) -> Array:
    if float_of(fraction) >= 0:
        return positions
    turned: Array = namespace(sizes).maximum(sizes - 1 - positions, 0)
    return turned


def interpolated(
    low: ColumnData, high: ColumnData, weight: Array, there: Array, stored: Stored, device: Device
) -> ColumnData:
    """What lies so far between values; NULL where none is ``there``."""
    a, b = low.data.on(device), high.data.on(device)
    is_wide = stored.physical_type is PhysicalType.I128
    if not device.is_cpu:
        made = between_wide(a, b, weight, there) if is_wide else between(a, b, weight, there, _rule(stored))
        data = narrow(made, stored.physical_type)
    elif is_wide:
        data = _between_wide(a, b, weight, there)
    else:
        with np.errstate(invalid="ignore"):  # an infinity times 0, which is not taken
            data = narrow(_between(a, b, weight, _rule(stored)), stored.physical_type)
        data = np.where(there > 0, data, np.zeros_like(data))
    return ColumnData(
        stored.properties.dtype, stored.physical_type, int(there.size), Buffer(data, device), Buffer(there, device)
    )


class Sides(NamedTuple):
    """By quantile, the rows (uint32) whose values it lies between, how far it is from the first to the second (float64), and
    whether there is one (uint8)."""

    low: Array
    high: Array
    weight: Array
    there: Array


def interpolated_rows(column: ColumnData, sides: Sides, stored: Stored, device: Device, workers: int) -> ColumnData:
    """The same of a column's rows."""
    _, _, weight, there = sides
    if not column.physical_type == stored.physical_type == PhysicalType.F64:
        low, high = (gathers.take(column, rows, device) for rows in (sides.low, sides.high))
        return interpolated(low, high, weight, there, stored, device)
    made = device.empty(there.size, np.float64)
    launch(_BETWEEN_ROWS, there.size, made, column.data.on(device), *sides, made, workers=workers)
    validity = Buffer(there, device)
    return ColumnData(stored.properties.dtype, PhysicalType.F64, int(there.size), Buffer(made, device), validity)


_BETWEEN_ROWS = builtin_kernel(
    "values:*f64 low:*u32 high:*u32 weights:*f64 there:*u8 made:*f64",
    "value = 0.0",
    "if ne_i64(i64(there[i]), 0):",
    "    weight = f64(weights[i])",
    "    value = f64(values[row_index(i64(low[i]))])",
    "    if gt_f64(weight, 0.0):",
    "        other = f64(values[row_index(i64(high[i]))])",
    "        value = add_f64(mul_f64(value, sub_f64(1.0, weight)), mul_f64(other, weight))",
    "store_f64(made, i64(i), value)",
)


def _rule(stored: Stored) -> Rule:
    """How values of a type meet."""
    match stored.properties.dtype.kind:
        case Kind.DOUBLE:
            return "double"
        case Kind.REAL:
            return "real"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            return "moment"
        case Kind.DECIMAL if register_for(stored.properties.dtype, None) is Register.I128:  # however narrow they lie
            return "decimal"
        case _:
            return "integer"


def _between(a: Array, b: Array, weight: Array, rule: Rule) -> Array:
    """`interpolating.between` on the host."""
    made: Array
    match rule:
        case "double":
            made = np.where(weight > 0, a * (1.0 - weight) + b * weight, a)
        case "real":
            made = np.where(weight > 0, a + ((b - a) * weight).astype(np.float32), a)
        case "moment":
            moment = a.astype(np.float64) * (1.0 - weight) + b.astype(np.float64) * weight
            moment = np.copysign(np.floor((2 * np.abs(moment) + 1) / 2), moment)
            made = np.where(weight > 0, moment.astype(np.int64), a)
        case "decimal":
            met = np.trunc(a.astype(np.float64) * (1.0 - weight) + b.astype(np.float64) * weight)
            made = np.where((weight > 0) & (a != b), met.astype(np.int64), a)
        case "integer":
            a, b = a.astype(np.int64), b.astype(np.int64)
            made = np.where(weight > 0, a + np.trunc((b - a) * weight).astype(np.int64), a)
    return made


def _between_wide(low: Array, high: Array, weight: Array, there: Array) -> Array:
    """The same of numbers of 128 bits, which meet as doubles where they are not the same."""
    a, b = (words.reshape(-1, 2) for words in (low, high))
    value = wide_arrays.f64_from_i128(a) * (1.0 - weight) + wide_arrays.f64_from_i128(b) * weight
    made = wide_arrays.i128_from_f64(np.trunc(value))
    is_between = (weight > 0) & (a != b).any(axis=1)
    made = np.where(is_between[:, None], made, a)
    return np.ascontiguousarray(np.where(there[:, None] > 0, made, 0)).reshape(-1)
