"""Bitmaps and the hash tables of joins on integer keys, by the atomic words. A row table is generated where it is used,
a table of groups stands in `kernels.primitives.groups`.

In both (``key_*``, ``pair_*``) an empty slot holds 0, so that a table is made by clearing memory, and the key 0 has a
slot of its own behind the last slot. There are more slots than rows, so that no insertion fails. A *pair* is a key and
beside it, in the same sector of memory, the word that a probe wants: one access finds both.

Probing is linear.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.atomics import atomic_or_u32, cas_i64
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    hash_i64,
    i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u32, store_i64, store_u32
from gquery.kernels.primitives.python.strings import load_pair, str_address, str_bytes
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.python.wide import high_i128, mul_u64_i128


def bit_set(bits: Pointer, k: int) -> None:
    """Set bit ``k``. Tested first: many rows set the same bit, and an atomic costs more than a load."""
    word, mask = shr_i64(k, 5), shl_i64(1, and_i64(k, 31))
    if eq_i64(and_i64(load_u32(bits, word), mask), 0):
        atomic_or_u32(bits, word, mask)


def bit_put(bits: Pointer, k: int) -> None:
    """Set bit ``k`` of a bitmap that no other thread writes to. Not tested first: what is there cannot be foreseen, and a wrong
    guess costs more than a store."""
    word = shr_i64(k, 5)
    store_u32(bits, word, or_i64(i64(load_u32(bits, word)), shl_i64(1, and_i64(k, 31))))


def bit_test(bits: Pointer, k: int) -> bool:
    """Whether bit ``k`` of a bitmap of 32-bit words is set."""
    return ne_i64(and_i64(shr_u64(load_u32(bits, shr_i64(k, 5)), and_i64(k, 31)), 1), 0)


# ---- join tables -------------------------------------------------------------------------------------------------
def _first_slot(key: int, capacity: int) -> int:
    """Where the search for a key begins: the upper part of hash times capacity, which any number of slots will do for."""
    return high_i128(mul_u64_i128(hash_i64(key), capacity))


def _next_slot(slot: int, capacity: int) -> int:
    slot = add_i64(slot, 1)
    if eq_i64(slot, capacity):
        return i64(0)
    return slot


def key_insert(keys: Pointer, capacity: int, key: int) -> int:
    """The slot of ``key``, taken now if nobody has it; ``keys`` has ``capacity`` + 1 words."""
    if eq_i64(key, 0):
        store_i64(keys, capacity, 1)
        return capacity
    slot = _first_slot(key, capacity)
    while True:
        found = load_i64(keys, slot)  # many rows may have one key, and a swap costs more than a load
        if eq_i64(found, 0):
            found = cas_i64(keys, slot, 0, key)
        if eq_i64(found, 0) or eq_i64(found, key):
            return slot
        slot = _next_slot(slot, capacity)


def key_find(keys: Pointer, capacity: int, key: int) -> int:
    """The slot of ``key``, or -1."""
    if eq_i64(key, 0):
        if eq_i64(load_i64(keys, capacity), 0):
            return i64(-1)
        return capacity
    slot = _first_slot(key, capacity)
    while True:
        found = load_i64(keys, slot)
        if eq_i64(found, key):
            return slot
        if eq_i64(found, 0):
            return i64(-1)
        slot = _next_slot(slot, capacity)


def pair_insert(pairs: Pointer, capacity: int, key: int, word: int) -> bool:
    """Enter a key and its word, which is not 0; False where the key has one already. ``pairs`` has ``capacity`` + 1 pairs."""
    if eq_i64(key, 0):
        return eq_i64(cas_i64(pairs, or_i64(shl_i64(capacity, 1), 1), 0, word), 0)
    slot = _first_slot(key, capacity)
    while True:
        found = cas_i64(pairs, shl_i64(slot, 1), 0, key)
        if eq_i64(found, 0):
            store_i64(pairs, or_i64(shl_i64(slot, 1), 1), word)
            return True
        if eq_i64(found, key):
            return False
        slot = _next_slot(slot, capacity)


def pair_find(pairs: Pointer, capacity: int, key: int) -> int:
    """The word of ``key``; 0 where it is not there."""
    slot = capacity
    if ne_i64(key, 0):
        slot = _first_slot(key, capacity)
    while True:
        pair = load_pair(pairs, slot)
        if eq_i64(str_address(pair), key):
            return str_bytes(pair)
        if eq_i64(str_address(pair), 0):
            return i64(0)
        slot = _next_slot(slot, capacity)
