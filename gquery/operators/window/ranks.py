"""Functions of a row's position in its partition: row numbers, ranks, and parts of a partition of equal size."""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.errors import DataError
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin import scans
from gquery.kernels.builtin.choosing import are_less
from gquery.kernels.builtin.elements import clear_others, converted
from gquery.operators.window.positions import PARTITION, Work, constant_of, position_kernel

_GROUPS = "partitions:*u32 begins:*u32 peers:*u32 peer_begins:*u32"
_RANK = "rank = sub_i64(i64(peer_begins[row_index(i64(peers[i]))]), begin)"
RANKS = {
    "row_number": position_kernel(
        f"{_GROUPS} made:*i64", PARTITION[0], "store_i64(made, row, add_i64(sub_i64(i64(i), begin), 1))"
    ),
    "rank": position_kernel(f"{_GROUPS} made:*i64", PARTITION[0], _RANK, "store_i64(made, row, add_i64(rank, 1))"),
    "dense_rank": position_kernel(
        f"{_GROUPS} made:*i64",
        PARTITION[0],
        "store_i64(made, row, add_i64(sub_i64(i64(peers[i]), i64(peers[row_index(begin)])), 1))",
    ),
    "percent_rank": position_kernel(
        f"{_GROUPS} made:*f64",
        *PARTITION,
        _RANK,
        "others = max_i64(sub_i64(sub_i64(end, begin), 1), 1)",
        "store_f64(made, row, div_f64(f64(rank), f64(others)))",
    ),
    "cume_dist": position_kernel(
        f"{_GROUPS} made:*f64",
        *PARTITION,
        "up_to = sub_i64(i64(peer_begins[row_index(add_i64(i64(peers[i]), 1))]), begin)",
        "store_f64(made, row, div_f64(f64(up_to), f64(sub_i64(end, begin))))",
    ),
}
_TILE = (
    "count = sub_i64(end, begin)",
    "at = sub_i64(i64(i), begin)",
    "size = quotient_i64(count, buckets)",
    "longer = sub_i64(count, mul_i64(size, buckets))",
    "in_longer = mul_i64(longer, add_i64(size, 1))",
    "if lt_i64(at, in_longer):",
    "    tile = quotient_i64(at, add_i64(size, 1))",
    "else:",
    "    tile = add_i64(longer, quotient_i64(sub_i64(at, in_longer), max_i64(size, 1)))",
    "store_i64(made, row, add_i64(tile, 1))",
)
NTILE = position_kernel("partitions:*u32 begins:*u32 buckets:i64 made:*i64", *PARTITION, *_TILE)
NTILE_BY_ROW = position_kernel(
    "partitions:*u32 begins:*u32 by_row:*i64 made:*i64",
    *PARTITION,
    "buckets = max_i64(i64(by_row[row_index(row)]), 1)",
    *_TILE,
)
_NO_BUCKETS = "ntile takes a number of parts greater than zero"


def rank_values(call: WindowCall, work: Work) -> tuple[Array, Array | None]:
    """The values of a rank function by row, and their validity."""
    o = work.ordered
    if call.function == "ntile":
        return _ntile(call, work)
    kernel = RANKS[call.function]
    made = work.device.empty(o.count, np.float64 if call.function in ("percent_rank", "cume_dist") else np.int64)
    partitions = o.partitions
    peers = partitions if call.function == "row_number" else o.peers
    kernel.run(o, work.workers, partitions.numbers, partitions.starts, peers.numbers, peers.starts, made)
    return made, None


def _ntile(call: WindowCall, work: Work) -> tuple[Array, Array | None]:
    o, device = work.ordered, work.device
    made = device.empty(o.count, np.int64)
    constant = constant_of(call.args[0])
    if constant is not None:
        if constant.value is None:
            return device.zeros(o.count, np.int64), device.zeros(o.count, np.uint8)
        if constant.value < 1 and o.count:
            raise DataError(_NO_BUCKETS)
        NTILE.run(o, work.workers, o.partitions.numbers, o.partitions.starts, constant.value, made)
        return made, None
    column = work.column(call.args[0])
    buckets = converted(column.data.on(device), np.int64)
    valid = None if column.validity is None else column.validity.on(device)
    if scans.is_any(are_less(buckets, 1, valid)):
        raise DataError(_NO_BUCKETS)
    NTILE_BY_ROW.run(o, work.workers, o.partitions.numbers, o.partitions.starts, buckets, made)
    if valid is not None:
        clear_others(made, valid)
    return made, valid
