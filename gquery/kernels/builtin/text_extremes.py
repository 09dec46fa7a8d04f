"""The rows with the least and the greatest text of a column, on the CPU.

The first eight bytes of a text, as a number, mostly tell whether it is less than the least so far; the rest of it is read
where they are equal. Threads take parts of the rows, where the column lies; nothing of it is copied. Of few rows Arrow finds
the extremes, as compiling takes longer.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gquery import tuning
from gquery.columns.arrow import export_column
from gquery.columns.table import ColumnData
from gquery.kernels.builtin.define import PART, BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.builtin.gathers import TEXTS
from gquery.runtime.interrupt import check

_BEGIN = (
    "least_at = i64(-1)",
    "most_at = i64(-1)",
    "least = i64(9223372036854775807)",
    "most = i64(-9223372036854775808)",
)
_END = (
    f"part = mul_i64(div_i64(i64(lo), {PART}), 2)",
    "store_i64(found, row_index(part), least_at)",
    "store_i64(found, row_index(add_i64(part, 1)), most_at)",
)


def _kernel(element: str, string: str, has_nulls: bool) -> BuiltinKernel:
    """For each part the first row with the least and with the greatest text, -1 where all are NULL. A word without its top
    bit compares, signed, as its bytes do; the first text has one that equals ``least`` or ``most`` at worst."""
    this, least, most = (string.format(row=row) for row in ("i64(i)", "least_at", "most_at"))
    body = [
        f"word = xor_i64(text_word({this}, 0), -9223372036854775808)",
        "below = lt_i64(word, least)",
        "above = gt_i64(word, most)",
        "if eq_i64(word, least):",
        f"    below = lt_i64(least_at, 0) or lt_str({this}, {least})",
        "if eq_i64(word, most):",
        f"    above = lt_i64(most_at, 0) or gt_str({this}, {most})",
        "if below:",
        "    least = word",
        "    least_at = i64(i)",
        "if above:",
        "    most = word",
        "    most_at = i64(i)",
    ]
    if has_nulls:
        body = ["if ne_i64(i64(validity[i]), 0):", *("    " + line for line in body)]
    validity = "validity:*u8 " if has_nulls else ""
    return builtin_kernel(f"data:{element} characters:i64 {validity}found:*i64", *body, prologue=_BEGIN, epilogue=_END)


EXTREMES = {
    (physical_type, has_nulls): _kernel(element, text, has_nulls)
    for physical_type, (element, text) in TEXTS.items()
    for has_nulls in (False, True)
}


def text_extremes(column: ColumnData, workers: int) -> tuple[int, int] | None:
    """A row with the least and one with the greatest text of a column on the host, by bytes; None where all are NULL."""
    rows: list[int] = []
    limits = tuning.built_in_kernels
    for low in range(0, column.length, limits.text_slice):
        check()
        part = column.slice(low, min(low + limits.text_slice, column.length))
        found = _by_arrow(part) if column.length <= limits.arrow_text_rows else _by_kernel(part, workers)
        rows += [low + row for row in found]
    if not rows:
        return None
    texts = _texts(column, rows)
    return rows[texts.index(min(texts))], rows[texts.index(max(texts))]


def _by_kernel(part: ColumnData, workers: int) -> list[int]:
    """The rows with the extremes of parts of so many rows."""
    found = np.full(2 * -(-part.length // PART), -1, np.int64)
    characters = 0 if part.characters is None else address(part.characters.host)
    flags = () if part.validity is None else (part.validity.host,)
    kernel = EXTREMES[part.physical_type, bool(flags)]
    launch(kernel, part.length, found, part.data.host, characters, *flags, found, workers=workers)
    return [row for row in found.tolist() if row >= 0]


def _by_arrow(part: ColumnData) -> list[int]:
    import pyarrow.compute as pc

    texts = export_column(part)
    ends = pc.min_max(texts)
    return [pc.index(texts, ends[n]).as_py() for n in ("min", "max") if ends[n].is_valid]


def _texts(column: ColumnData, rows: Iterable[int]) -> list[bytes]:
    """The bytes of some rows."""
    return [export_column(column.slice(row, row + 1))[0].as_py().encode() for row in rows]


__all__ = ["text_extremes"]
