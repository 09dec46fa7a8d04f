"""The most frequent values of groups on a GPU, of rows that are sorted by group and by value.

Functions take arrays of a GPU, and those of the host for tests, and give arrays of the same kind.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gquery.device.array import Array
from gquery.expression.facts import ROW_ID_BITS
from gquery.kernels.builtin.define import builtin_kernel, fill, launch, namespace
from gquery.runtime.tuples import NamedTuple

By = Literal["row", "least", "greatest"]
"""Of values that are as frequent the one that counts: that of the first row, or the least or the greatest one."""
_NUMBERS: dict[By, int] = {"row": 0, "greatest": 1, "least": 2}
_ROW_MASK = (1 << ROW_ID_BITS) - 1

BEST = builtin_kernel(  # of each run of equal values how long it is, and in the lower bits which one comes first
    "at:*u32 runs:i64 ordered:*u32 rows:i64 numbers:*u32 is_grouped:i64 kept:*u8 is_filtered:i64 by:i64 best:*i64",
    "begin = i64(at[i])",
    "end = rows",
    "behind = add_i64(i64(i), 1)",
    "if lt_i64(behind, runs):",
    "    end = i64(at[row_index(behind)])",
    "row = i64(ordered[row_index(begin)])",
    "before = begin",
    "if eq_i64(by, 0):",
    "    before = row",
    "if ne_i64(by, 1):",
    f"    before = sub_i64({_ROW_MASK}, before)",
    f"score = or_i64(shl_i64(sub_i64(end, begin), {ROW_ID_BITS}), before)",
    "if ne_i64(is_filtered, 0):",
    "    if eq_i64(i64(kept[row_index(row)]), 0):",
    "        score = i64(-1)",
    "group = i64(0)",
    "if ne_i64(is_grouped, 0):",
    "    group = i64(numbers[row_index(row)])",
    "accumulate_max_i64(best, group, score)",
)
PICKED = builtin_kernel(
    "best:*i64 ordered:*u32 rows:i64 by:i64 made:*u32",
    f"place = and_i64(max_i64(i64(best[i]), 0), {_ROW_MASK})",
    "if ne_i64(by, 1):",
    f"    place = sub_i64({_ROW_MASK}, place)",
    "place = max_i64(min_i64(place, sub_i64(rows, 1)), 0)",
    "if ne_i64(by, 0) and gt_i64(rows, 0):",
    "    place = i64(ordered[row_index(place)])",
    "store_u32(made, i64(i), place)",
)


class SortedValues(NamedTuple):
    """Rows (uint32) by group and value, and the places where a run of equal values begins (uint32)."""

    ordered: Array
    at: Array


def most_frequent(values: SortedValues, numbers: Array | None, kept: Array | None, groups: int, by: By) -> Array:
    """A row (uint32) with the most frequent value of each group, any where it has none. ``numbers``: the group of each row
    (uint32; None: all are in one); ``kept``: whether it counts (uint8; None: all do)."""
    ordered, at = values
    xp, rows = namespace(ordered), int(ordered.size)
    best: Array = xp.empty(groups, np.int64)
    made: Array = xp.empty(groups, np.uint32)
    fill(best, -1)
    flags = (numbers, int(numbers is not None), kept, int(kept is not None))
    launch(BEST, at.size, ordered, at, at.size, ordered, rows, *flags, _NUMBERS[by], best)
    launch(PICKED, groups, ordered, best, ordered, rows, _NUMBERS[by], made)
    return made
