"""Bitmaps of rows and counts by row: what a collect and `kernels.bulk` read and make a word at a time."""

from __future__ import annotations

from gquery.kernels.targets.python_words import (
    Pointer,
    add_i64,
    and_i64,
    i64,
    load_i64,
    load_u32,
    lt_i64,
    mul_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
)


def bits_of_flags(flags: Pointer, k: int) -> int:
    """Word ``k`` of the bitmap of flags, bytes of 0 or 1 that are read eight at a time: the product moves byte j's bit to bit
    56 + j, and no two of its terms meet in one bit."""
    word, place = i64(0), i64(0)
    while lt_i64(place, 32):
        eight = load_i64(flags, add_i64(shl_i64(k, 2), shr_i64(place, 3)))
        word = or_i64(word, shl_i64(shr_u64(mul_i64(eight, 0x0102040810204080), 56), place))
        place = add_i64(place, 8)
    return word


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
