"""Sets of small integers in which the next greater or lesser member is found in few steps, however far away it is.

A set is a bitmap in words of 64 bits. Behind it lies a bitmap of its words that are not 0, and so on, up to one word. A set
begins at ``start`` in an array of several, and its lowest bitmap has so many ``words``; the others lie behind it.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.bits import popcount
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    mul_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, lowest_bit, store_i64
from gquery.kernels.primitives.python.values import Pointer


def _words_above(size: int) -> int:
    """How many words the bitmap above one of so many words has; 0: there is none."""
    if eq_i64(size, 1):
        return i64(0)
    return shr_i64(add_i64(size, 63), 6)


def _highest_bit(word: int) -> int:
    """Which bit is the highest that is set, of a word that has one."""
    filled = or_i64(word, shr_u64(word, 1))
    filled = or_i64(filled, shr_u64(filled, 2))
    filled = or_i64(filled, shr_u64(filled, 4))
    filled = or_i64(filled, shr_u64(filled, 8))
    filled = or_i64(filled, shr_u64(filled, 16))
    filled = or_i64(filled, shr_u64(filled, 32))
    return sub_i64(popcount(filled), 1)


def set_add(sets: Pointer, start: int, words: int, k: int) -> None:
    """Makes ``k`` a member. A bitmap above changes only where a word was 0."""
    at, base, size, before = k, start, words, i64(0)
    while gt_i64(size, 0) and eq_i64(before, 0):
        place = add_i64(base, shr_i64(at, 6))
        before = load_i64(sets, place)
        store_i64(sets, place, or_i64(before, shl_i64(i64(1), and_i64(at, 63))))
        base = add_i64(base, size)
        at = shr_i64(at, 6)
        size = _words_above(size)


def set_remove(sets: Pointer, start: int, words: int, k: int) -> None:
    """Makes ``k``, which is a member, none any more. A bitmap above changes only where a word becomes 0."""
    at, base, size, after = k, start, words, i64(0)
    while gt_i64(size, 0) and eq_i64(after, 0):
        place = add_i64(base, shr_i64(at, 6))
        after = and_i64(load_i64(sets, place), xor_i64(shl_i64(i64(1), and_i64(at, 63)), -1))
        store_i64(sets, place, after)
        base = add_i64(base, size)
        at = shr_i64(at, 6)
        size = _words_above(size)


def set_next(sets: Pointer, start: int, words: int, k: int) -> int:
    """The least member from ``k`` on; -1 where there is none."""
    word = shr_i64(k, 6)
    if lt_i64(word, words):  # where members lie close to each other, this is all
        near = and_i64(load_i64(sets, add_i64(start, word)), shl_i64(i64(-1), and_i64(k, 63)))
        if not eq_i64(near, 0):
            return add_i64(shl_i64(word, 6), lowest_bit(near))
    at, base, size, level, found = add_i64(word, 1), add_i64(start, words), _words_above(words), i64(1), i64(0)
    while gt_i64(size, 0) and eq_i64(found, 0):
        word = shr_i64(at, 6)
        if lt_i64(word, size):
            found = and_i64(load_i64(sets, add_i64(base, word)), shl_i64(i64(-1), and_i64(at, 63)))
        if eq_i64(found, 0):
            at = add_i64(word, 1)
            base = add_i64(base, size)
            level = add_i64(level, 1)
            size = _words_above(size)
    if eq_i64(found, 0):
        return i64(-1)
    at = add_i64(shl_i64(word, 6), lowest_bit(found))
    while gt_i64(level, 0):
        level = sub_i64(level, 1)
        base = sub_i64(base, add_i64(shr_i64(sub_i64(words, 1), mul_i64(level, 6)), 1))
        at = add_i64(shl_i64(at, 6), lowest_bit(load_i64(sets, add_i64(base, at))))
    return at


def set_last(sets: Pointer, start: int, words: int, k: int) -> int:
    """The greatest member up to ``k``; -1 where there is none."""
    at, base, size, level, found = k, start, words, i64(0), i64(0)
    word = shr_i64(at, 6)
    while gt_i64(size, 0) and eq_i64(found, 0):
        if lt_i64(at, 0):
            return i64(-1)
        word = shr_i64(at, 6)
        up_to = xor_i64(shl_i64(shl_i64(i64(-1), and_i64(at, 63)), 1), -1)
        found = and_i64(load_i64(sets, add_i64(base, word)), up_to)
        if eq_i64(found, 0):
            at = sub_i64(word, 1)
            base = add_i64(base, size)
            level = add_i64(level, 1)
            size = _words_above(size)
    if eq_i64(found, 0):
        return i64(-1)
    at = add_i64(shl_i64(word, 6), _highest_bit(found))
    while gt_i64(level, 0):
        level = sub_i64(level, 1)
        base = sub_i64(base, add_i64(shr_i64(sub_i64(words, 1), mul_i64(level, 6)), 1))
        at = add_i64(shl_i64(at, 6), _highest_bit(load_i64(sets, add_i64(base, at))))
    return at
