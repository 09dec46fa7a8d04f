"""Values that all differ, by marking each in a bitmap; a row of the kernel is a block of them."""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.runtime.threads import core_count


def _marking(element: str) -> BuiltinKernel:
    """Sets the bit of each value's distance from ``low``, and ``met`` where one was set before. Then blocks that begin later do
    nothing."""
    return builtin_kernel(
        f"values:*{element} bits:*u32 met:*u32 low:i64 width:i64 block:i64 rows:i64",
        "row = mul_i64(i64(i), block)",
        "end = min_i64(add_i64(row, block), rows)",
        "repeated = i64(load_u32(met, 0))",
        "while lt_i64(row, end) and eq_i64(repeated, 0):",
        "    k = sub_i64(i64(values[row_index(row)]), low)",
        "    if ge_i64(k, 0) and lt_i64(k, width):",
        "        mask = shl_i64(1, and_i64(k, 31))",
        "        repeated = and_i64(i64(atomic_or_u32(bits, shr_i64(k, 5), mask)), mask)",
        "    row = add_i64(row, 1)",
        "if ne_i64(repeated, 0):",
        "    store_u32(met, 0, 1)",
    )


MARKING = {name: _marking(element) for name, element in (("int32", "i32"), ("uint32", "u32"), ("int64", "i64"))}


def all_differ(values: Array, low: int, width: int) -> bool:
    """See `columns.loops.Loops`."""
    bits, met = np.zeros(-(-width // 32), np.uint32), np.zeros(1, np.uint32)
    block = tuning.encoding.marked_rows
    arguments = (values, bits, met, low, width, block, len(values))
    launch(MARKING[values.dtype.name], -(-len(values) // block), values, *arguments, workers=core_count(), unit=block)
    return not met[0]
