"""The row with the least or the greatest text of each group, and the rows whose texts do not come behind another, on the CPU.

Threads share one row a group, the best so far: who has a better one puts it there if nobody has done so meanwhile, and looks
again if somebody has. Of equal texts the first row is it, whatever the order in which threads come. No text is sorted, and none
that is worse than the best so far is read beyond the byte that tells so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.builtin.gathers import TEXTS
from gquery.kernels.builtin.leading import Values


def _loop(element: str, text: str, is_greatest: bool, has_flags: bool) -> BuiltinKernel:
    this, other = (text.format(row=row) for row in ("i64(i)", "old"))
    body = [
        "group = i64(groups[i])",
        "old = load_i64(best, group)",
        "is_compared = i64(1)",
        "while ne_i64(is_compared, 0):",
        "    is_compared = i64(0)",
        f"    is_better = lt_i64(old, 0) or {'gt_str' if is_greatest else 'lt_str'}({this}, {other})",
        "    if lt_i64(i64(i), old):",
        f"        is_better = is_better or eq_str({this}, {other})",
        "    if is_better:",
        "        seen = cas_i64(best, group, old, i64(i))",
        "        if ne_i64(seen, old):",
        "            old = seen",
        "            is_compared = i64(1)",
    ]
    if has_flags:
        body = ["if ne_i64(i64(flags[i]), 0):", *("    " + line for line in body)]
    flags = "flags:*u8 " if has_flags else ""
    return builtin_kernel(f"data:{element} characters:i64 {flags}groups:*u32 best:*i64", *body)


def _comparing(element: str, text: str, is_descending: bool, has_nulls: bool) -> BuiltinKernel:
    this, other = (text.format(row=row) for row in ("i64(i)", "bound"))
    body = [f"store_bool(flags, i64(i), {'ge_str' if is_descending else 'le_str'}({this}, {other}))"]
    if has_nulls:
        body = [
            "if ne_i64(i64(validity[i]), 0):",
            f"    {body[0]}",
            "else:",
            "    store_bool(flags, i64(i), ne_i64(null, 0))",
        ]
    nulls = "validity:*u8 null:i64 " if has_nulls else ""
    return builtin_kernel(f"data:{element} characters:i64 {nulls}bound:i64 flags:*u8", *body)


def _of_all(
    make: Callable[[str, str, bool, bool], BuiltinKernel],
) -> dict[tuple[PhysicalType, bool, bool], BuiltinKernel]:
    """For texts as they lie, both directions, without flags a row and with them."""
    return {
        (physical_type, descending, has_flags): make(element, text, descending, has_flags)
        for physical_type, (element, text) in TEXTS.items()
        for descending in (False, True)
        for has_flags in (False, True)
    }


BEST = _of_all(_loop)
COMPARED = _of_all(_comparing)


def best_rows(values: Values, groups: Array, count: int, workers: int) -> Array:
    """A row (int64) with the least text, or the greatest if they descend, of each of ``count`` groups; -1 where none of its texts
    counts. ``groups``: that of each row (uint32)."""
    column, device, flags = values.column, values.device, values.flags
    best = device.full(count, -1, np.int64)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    given = () if flags is None else (flags,)
    loop = BEST[column.physical_type, values.descending, flags is not None]
    launch(loop, column.length, best, column.data.on(device), characters, *given, groups, best, workers=workers)
    return best


def flags_until(
    column: ColumnData, row: int, descending: bool, nulls_first: bool, device: Device, workers: int
) -> Array:
    """True for each row whose text does not come behind that of a row, which is none of the NULLs."""
    flags = device.empty(column.length, np.bool_)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    given = () if column.validity is None else (column.validity.on(device), int(nulls_first))
    loop = COMPARED[column.physical_type, descending, column.validity is not None]
    launch(loop, column.length, flags, column.data.on(device), characters, *given, row, flags, workers=workers)
    return flags
