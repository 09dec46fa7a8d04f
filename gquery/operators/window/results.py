"""Columns of results: what was computed by row, and from how many values, as the physical type that the plan promised.

One loop writes values and validity. Of no values the result is NULL, under which lies a 0.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import wide_arrays
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.elements import converted, every
from gquery.operators.base import make_column, narrow
from gquery.operators.window.positions import Work
from gquery.planner.physical import Stored

Form = Literal["integer", "double", "ordered", "mean of integers", "mean of doubles"]
"""What stands in an array: integers, doubles, doubles as integers of their order, sums of which a mean is made."""
VALUES: dict[Form, str] = {
    "integer": "{found}",
    "double": "{found}",
    "ordered": "f64_unorder({found})",
    "mean of integers": "div_f64(div_f64(f64({found}), f64(count)), power)",
    "mean of doubles": "div_f64(div_f64({found}, f64(count)), power)",
}
"""What is stored of what was ``{found}`` from ``count`` values."""


def zero_of(form: Form) -> str:
    """What lies under a NULL."""
    return "i64(0)" if form == "integer" else "f64(0.0)"


def value_lines(form: Form, found: str, nullable: bool) -> list[str]:
    """Lines that make ``value`` of what was found from ``count`` values, which is 0 only where a result may be NULL."""
    stored = VALUES[form].format(found=found)
    if not nullable:
        return [f"value = {stored}"]
    return [f"value = {zero_of(form)}", "if gt_i64(count, 0):", f"    value = {stored}"]


@cache
def _finalizing(form: Form, element: str) -> BuiltinKernel:
    word = "f64" if form in ("double", "mean of doubles") else "i64"
    value = VALUES[form].format(found=f"{word}(found[i])")
    return builtin_kernel(
        f"found:*{word} counts:*i64 power:f64 made:*{element} valid:*u8",
        "count = i64(counts[i])",
        f"value = {zero_of(form)}",
        "if gt_i64(count, 0):",
        f"    value = {value}",
        f"store_{element}(made, i64(i), value)",
        "store_bool(valid, i64(i), gt_i64(count, 0))",
    )


def result_column(
    stored: Stored, found: Array, counts: Array, form: Form, work: Work, power: float = 1.0
) -> ColumnData:
    """The column of what was found by row (int64 or float64), from ``counts`` values each; means are divided by ``power``."""
    rows, device = work.ordered.count, work.device
    element = "u8" if stored.physical_type is PhysicalType.BOOL else stored.physical_type.value
    made, valid = device.empty(rows, stored.physical_type.numpy), device.empty(rows, np.uint8)
    launch(_finalizing(form, element), rows, made, found, counts, power, made, valid, workers=work.workers)
    return make_column(stored.properties, stored.physical_type, made, valid, rows, device)


def column_of(stored: Stored, values: Array, validity: Array | None, work: Work) -> ColumnData:
    """A column of numbers by row; 128-bit integers are rows of two words."""
    if stored.physical_type is PhysicalType.I128:
        wide = values if values.ndim == 2 else wide_arrays.i128_from_i64(values)
        data = wide.reshape(-1)
    elif values.ndim == 2:
        data = narrow(every(values.reshape(-1), 2), stored.physical_type)
    else:
        data = narrow(converted(values, np.int64) if values.dtype == np.bool_ else values, stored.physical_type)
    return make_column(stored.properties, stored.physical_type, data, validity, work.ordered.count, work.device)


def plain_type(stored: Stored) -> PhysicalType | None:
    """The type of a column of integers of 64 bits or fewer, which a kernel can write at once; None of any other."""
    physical_type = stored.physical_type
    is_plain = np.dtype(physical_type.numpy).kind in "iu" and physical_type is not PhysicalType.BOOL
    wide = (PhysicalType.I128, PhysicalType.VIEW, PhysicalType.STRING32, PhysicalType.STRING64)
    return physical_type if is_plain and physical_type not in wide else None
