"""Searching strings on a processor: 64 bytes at a time are compared with the first two of what is looked for.

What is read is the string's own, or lies in the page of its last byte: a read that would go beyond that page begins earlier.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    min_i64,
    ne_i64,
    or_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import byte_pairs, load_i64, load_u8, lowest_bit
from gquery.kernels.primitives.python.strings import str_address, str_bytes
from gquery.kernels.primitives.python.values import Pointer, Str
from gquery.kernels.primitives.search import PART_WORDS
from gquery.kernels.primitives.strings import _same

_PAGE = 4096  # bytes, or a multiple of it
_READ = 64  # bytes


def _next_place(p: int, end: int, needle: int, length: int) -> int:
    """The first address from ``p`` on at which the ``length`` bytes at ``needle`` stand, before ``end``; -1 where they do not."""
    last = sub_i64(end, length)
    step = min_i64(sub_i64(length, 1), 1)  # to the second byte; of a single byte, to itself
    first, second = load_u8(needle), load_u8(add_i64(needle, step))
    latest = sub_i64(sub_i64(or_i64(sub_i64(end, 1), _PAGE - 1), _READ - 1), step)
    while le_i64(p, last):
        at = min_i64(p, latest)
        places = shr_u64(byte_pairs(at, add_i64(at, step), first, second), sub_i64(p, at))
        while ne_i64(places, 0):
            place = add_i64(p, lowest_bit(places))
            if gt_i64(place, last):
                return i64(-1)
            if _same(place, needle, length):
                return place
            places = and_i64(places, sub_i64(places, 1))
        p = add_i64(at, _READ)
    return i64(-1)


def _find(s: Str, needle: Str) -> int:
    """Bytes before the first place of ``needle`` in ``s``, or -1."""
    if eq_i64(str_bytes(needle), 0):
        return i64(0)
    place = _next_place(str_address(s), add_i64(str_address(s), str_bytes(s)), str_address(needle), str_bytes(needle))
    if lt_i64(place, 0):
        return place
    return sub_i64(place, str_address(s))


def str_contains(s: Str, needle: Str) -> bool:
    """Whether the bytes of ``needle`` stand in a text."""
    return ge_i64(_find(s, needle), 0)


def str_has_parts(s: Str, parts: Pointer, stop: int, needles: Str) -> bool:
    """Whether the parts of a pattern, ``stop`` words of the table that `kernels.patterns.part_table` makes, are in a string one
    behind another."""
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    part = i64(0)
    while lt_i64(part, stop):
        length = load_i64(parts, part)
        needle = add_i64(str_address(needles), load_i64(parts, add_i64(part, PART_WORDS - 1)))
        p = _next_place(p, end, needle, length)
        if lt_i64(p, 0):
            return False
        p = add_i64(p, length)
        part = add_i64(part, PART_WORDS)
    return True
