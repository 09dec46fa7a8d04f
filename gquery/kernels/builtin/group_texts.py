"""Texts of groups on a GPU, as pairs of address and length (int64): which one a group has, and several one behind another.

Functions take arrays of a GPU, and those of the host for tests, and give arrays of the same kind.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.group_columns import full_of

FIRSTS = builtin_kernel(
    "valid:*u8 slots:*i64 firsts:*i64",
    "if ne_i64(i64(valid[i]), 0):",
    "    accumulate_min_i64(firsts, i64(slots[i]), i64(i))",
)
FIRST_VIEWS = builtin_kernel(
    "firsts:*i64 views:*i64 none:i64 made:*i64 there:*u8",
    "row = i64(firsts[i])",
    "begin = i64(0)",
    "length = i64(0)",
    "if lt_i64(row, none):",
    "    begin = i64(views[row_index(shl_i64(row, 1))])",
    "    length = i64(views[row_index(add_i64(shl_i64(row, 1), 1))])",
    "store_i64(made, shl_i64(i64(i), 1), begin)",
    "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), length)",
    "store_bool(there, i64(i), lt_i64(row, none))",
)
SEPARATED = builtin_kernel(  # a pair for the separator, and one for the text
    "separator:*i64 views:*i64 kept:*u8 rows:*u32 is_filtered:i64 made:*i64",
    "first = i64(separator[row_index(1)])",
    "second = i64(views[row_index(add_i64(shl_i64(i64(i), 1), 1))])",
    "if ne_i64(is_filtered, 0):",
    "    if eq_i64(i64(kept[row_index(i64(rows[i]))]), 0):",
    "        first = i64(0)",
    "        second = i64(0)",
    "at = shl_i64(i64(i), 2)",
    "store_i64(made, at, i64(separator[row_index(0)]))",
    "store_i64(made, add_i64(at, 1), first)",
    "store_i64(made, add_i64(at, 2), i64(views[row_index(shl_i64(i64(i), 1))]))",
    "store_i64(made, add_i64(at, 3), second)",
)
UNSEPARATED = builtin_kernel(
    "starts:*i64 rows:i64 made:*i64",
    "if lt_i64(i64(starts[i]), rows):",
    "    store_i64(made, add_i64(shl_i64(i64(starts[i]), 2), 1), 0)",
)


def first_texts(views: Array, valid: Array, slots: Array, groups: int) -> tuple[Array, Array]:
    """The first text of each group that is ``valid`` (uint8), of pairs whose groups are ``slots`` (int64), as such pairs; and
    whether it has any (uint8)."""
    none = int(valid.size)
    firsts = full_of(views, groups, none, np.int64)
    launch(FIRSTS, none, views, valid, slots, firsts)
    made, there = (namespace(views).empty(n, t) for n, t in ((2 * groups, np.int64), (groups, np.uint8)))
    launch(FIRST_VIEWS, groups, views, firsts, views, none, made, there)
    return made, there


def separated(separator: Array, views: Array, rows: Array | None = None, kept: Array | None = None) -> Array:
    """Each text with the separator, one pair, in front of it. Both have no length where the row that stands at the place, one of
    ``rows`` (uint32), is not ``kept`` (uint8); None: all are."""
    made: Array = namespace(views).empty(2 * views.size, np.int64)
    launch(SEPARATED, views.size // 2, views, separator, views, kept, rows, int(kept is not None), made)
    return made


def hide_first_separators(views: Array, starts: Array) -> None:
    """Give the separators no length that stand in front of the first text of a group, which begins at ``starts`` (int64)."""
    launch(UNSEPARATED, starts.size, views, starts, views.size // 2 // 2, views)
