"""Ranges of rows that are cut into pieces of so many, and values of two words, on a GPU.

Functions take arrays of a GPU, and those of the host for tests, and give arrays of the same kind.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.prefix_sums import offsets_of
from gquery.kernels.readback import read_scalar
from gquery.runtime.tuples import NamedTuple

COUNTS = builtin_kernel(
    "sizes:*i64 most:i64 made:*i64",
    "store_i64(made, i64(i), floor_div_i64(add_i64(i64(sizes[i]), sub_i64(most, 1)), most))",
)
PIECES = builtin_kernel(
    "firsts:*i64 ranges:i64 begins:*i64 sizes:*i64 most:i64 low:*i64 high:*i64",
    "part = sub_i64(first_above(firsts, 0, ranges, i64(i)), 1)",
    "begin = i64(begins[row_index(part)])",
    "end = add_i64(begin, i64(sizes[row_index(part)]))",
    "start = add_i64(begin, mul_i64(sub_i64(i64(i), i64(firsts[row_index(part)])), most))",
    "store_i64(low, i64(i), start)",
    "store_i64(high, i64(i), min_i64(add_i64(start, most), end))",
)
PAIRS = builtin_kernel(
    "low:*i64 high:*i64 made:*i64",
    "store_i64(made, shl_i64(i64(i), 1), i64(low[i]))",
    "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), i64(high[i]))",
)


class RangePieces(NamedTuple):
    """Where each piece begins and ends; and of each range its first piece and the one behind its last (all int64)."""

    low: Array
    high: Array
    first: Array
    last: Array


def pieces_of(begins: Array, sizes: Array, most: int) -> RangePieces:
    """The pieces of ranges of so many rows (both int64), at most ``most`` in one."""
    xp = namespace(sizes)
    counts = xp.empty(sizes.size, np.int64)
    launch(COUNTS, sizes.size, sizes, sizes, most, counts)
    firsts = offsets_of(counts)
    pieces = read_scalar(firsts[-1])
    low, high = xp.empty(pieces, np.int64), xp.empty(pieces, np.int64)
    launch(PIECES, pieces, sizes, firsts, sizes.size, begins, sizes, most, low, high)
    return RangePieces(low, high, firsts[:-1], firsts[1:])


def pairs_of(low: Array, high: Array) -> Array:
    """Words (int64) of values of two, the lower one first."""
    made: Array = namespace(low).empty(2 * low.size, np.int64)
    launch(PAIRS, low.size, low, low, high, made)
    return made
