"""What the rows of a sorted join table are searched by: numbers in their order, and reach trees (`kernels.primitives.ranges`)."""

from __future__ import annotations

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import INT64, PhysicalType
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.elements import converted
from gquery.kernels.builtin.wide_arrays import f64_order

LEAVES = builtin_kernel(  # the values, and the least one behind them; what lies above is written level by level
    "values:*i64 size:i64 leaves:i64 least:i64 tree:*i64",
    "value = least",
    "if lt_i64(i64(i), size):",
    "    value = i64(values[i])",
    "if eq_i64(i64(i), 0):",
    "    store_i64(tree, 0, least)",
    "store_i64(tree, add_i64(leaves, i64(i)), value)",
)
_LEVEL = builtin_kernel(
    "tree:*i64 first:i64",
    "node = add_i64(first, i64(i))",
    "below = shl_i64(node, 1)",
    "store_i64(tree, node, max_i64(load_i64(tree, below), load_i64(tree, add_i64(below, 1))))",
)


def ordinals(column: ColumnData, device: Device) -> Array:
    """Integers (int64) that compare as a column's values do; those of NULLs mean nothing."""
    data = column.data.on(device)
    if column.physical_type in (PhysicalType.F32, PhysicalType.F64):
        return f64_order(data)
    return converted(data, np.int64)


def reach_tree(values: Array, workers: int = 1) -> tuple[Array, int]:
    """The tree over values (int64) by their place, and where its leaves begin. There is a leaf more than values, so that the
    place behind the last one is in the tree, too."""
    xp = namespace(values)
    size = int(values.size)
    leaves = 1 << size.bit_length()
    tree = xp.empty(2 * leaves, np.int64)
    if xp is np:
        tree[:leaves], tree[leaves : leaves + size], tree[leaves + size :] = INT64.low, values, INT64.low
    else:
        launch(LEAVES, leaves, tree, values, size, leaves, INT64.low, tree)
    level = leaves
    while level > 1:
        level //= 2
        launch(_LEVEL, level, tree, tree, level, workers=workers)
    return tree, leaves
