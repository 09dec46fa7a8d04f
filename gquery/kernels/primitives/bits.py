"""Bitmaps of rows and counts by row: what a materialize and `kernels.builtin.scans` read and make a word at a time."""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import add_i64, and_i64, i64, lt_i64, shl_i64, shr_i64
from gquery.kernels.primitives.python.memory import load_i64, load_u32
from gquery.kernels.primitives.python.values import Pointer


def sum_of_rows(counts: Pointer, k: int) -> int:
    """What the rows 8 * k to 8 * k + 7 count together."""
    row, end, total = shl_i64(k, 3), shl_i64(add_i64(k, 1), 3), i64(0)
    while lt_i64(row, end):
        total = add_i64(total, load_u32(counts, row))
        row = add_i64(row, 1)
    return total


def place_of_row(starts: Pointer, counts: Pointer, row: int) -> int:
    """The first place of a row, from the start of its group of eight and the counts of those before it there."""
    place, other = load_i64(starts, shr_i64(row, 3)), and_i64(row, -8)
    while lt_i64(other, row):
        place = add_i64(place, load_u32(counts, other))
        other = add_i64(other, 1)
    return place
