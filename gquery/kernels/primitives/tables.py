"""Bitmaps and hash tables on packed keys, by the atomic words. A row table is generated where it is used.

An empty slot holds -2^63; keys are packed so that none is equal to it. Probing is linear. An insertion that finds no
room within `_LIMIT` slots gives up and sets its bit in the status block: the table is then built anew, larger.
"""

from __future__ import annotations

from gquery.kernels.primitives.checked import fail
from gquery.kernels.targets.python_words import (
    Pointer,
    add_i64,
    and_i64,
    atomic_or_u32,
    cas_i64,
    eq_i64,
    hash_i64,
    i64,
    load_i64,
    load_u32,
    lt_i64,
    ne_i64,
    shl_i64,
    shr_i64,
    shr_u64,
)

_EMPTY = -(2**63)
_LIMIT = 4096


def bit_set(bits: Pointer, k: int) -> None:
    """Set bit ``k``. Tested first: many rows set the same bit, and an atomic costs more than a load."""
    word, mask = shr_i64(k, 5), shl_i64(1, and_i64(k, 31))
    if eq_i64(and_i64(load_u32(bits, word), mask), 0):
        atomic_or_u32(bits, word, mask)


def bit_test(bits: Pointer, k: int) -> bool:
    return ne_i64(and_i64(shr_u64(load_u32(bits, shr_i64(k, 5)), and_i64(k, 31)), 1), 0)


def table_insert_i64(keys: Pointer, mask: int, key: int, status: Pointer, site: int) -> int:
    """The slot of ``key`` among ``mask`` + 1 slots, taken now if nobody has it; -1 and a failure where none is free."""
    slot = and_i64(hash_i64(key), mask)
    tries = i64(0)
    while lt_i64(tries, _LIMIT):
        found = load_i64(keys, slot)
        if eq_i64(found, _EMPTY):
            found = cas_i64(keys, slot, _EMPTY, key)
        if eq_i64(found, key) or eq_i64(found, _EMPTY):
            return slot
        slot = and_i64(add_i64(slot, 1), mask)
        tries = add_i64(tries, 1)
    fail(status, site)
    return i64(-1)


def table_find_i64(keys: Pointer, mask: int, key: int) -> int:
    """The slot of ``key``, or -1."""
    slot = and_i64(hash_i64(key), mask)
    tries = i64(0)
    while lt_i64(tries, _LIMIT):
        found = load_i64(keys, slot)
        if eq_i64(found, key):
            return slot
        if eq_i64(found, _EMPTY):
            return i64(-1)
        slot = and_i64(add_i64(slot, 1), mask)
        tries = add_i64(tries, 1)
    return i64(-1)
