"""Hash tables of groups: a key and, in the words behind it, what is accumulated for it.

An entry is ``stride`` words of 64 bits: one look into memory finds both, where a table of keys beside arrays of state
would need two. An empty entry's key is 0, so that most tables are made by clearing memory; the key 0 has an entry of
its own, behind the others, whose first word says that it is there. Probing is linear. An insertion that finds no room
within `_LIMIT` slots gives up and sets its bit in the status block: the table is then built anew, larger. Half of the
slots are free if as many groups come as were expected, and then the longest walk in a table of any size is some
hundred slots.
"""

from __future__ import annotations

from gquery.kernels.primitives.checked import fail
from gquery.kernels.primitives.python.atomics import cas_i64, prefetch
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    hash_i64,
    i64,
    lt_i64,
    mul_i64,
    ne_i64,
    shl_i64,
    shr_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u32, store_i64
from gquery.kernels.primitives.python.values import Pointer

_LIMIT, _LONG = 512, 32  # also of `operators.join_build.find_or_insert`


def has_failed(status: Pointer, site: int) -> bool:
    """Whether the bit of ``site`` is set in the status block: another row has found out."""
    return ne_i64(and_i64(load_u32(status, shr_i64(site, 5)), shl_i64(1, and_i64(site, 31))), 0)


def slot_insert(slots: Pointer, mask: int, stride: int, key: int, status: Pointer, site: int) -> int:
    """Where the accumulated words of ``key`` begin among ``mask`` + 2 slots, one of which is taken now if nobody has
    it; -1 and a failure where none is free."""
    if eq_i64(key, 0):
        at = mul_i64(add_i64(mask, 1), stride)
        if eq_i64(load_i64(slots, at), 0):
            store_i64(slots, at, 1)
        return add_i64(at, 1)
    slot = and_i64(hash_i64(key), mask)
    tries = i64(0)
    while lt_i64(tries, _LIMIT):
        at = mul_i64(slot, stride)
        found = load_i64(slots, at)
        if eq_i64(found, 0):
            found = cas_i64(slots, at, 0, key)
        if eq_i64(found, key) or eq_i64(found, 0):
            return add_i64(at, 1)
        if eq_i64(tries, _LONG) and has_failed(status, site):
            return i64(-1)
        slot = and_i64(add_i64(slot, 1), mask)
        tries = add_i64(tries, 1)
    fail(status, site)
    return i64(-1)


def slot_prefetch(slots: Pointer, mask: int, stride: int, key: int) -> None:
    """Have memory bring the place where the search for a key begins."""
    prefetch(slots, mul_i64(and_i64(hash_i64(key), mask), stride))


# ---- the aggregation cache of a thread: groups that it holds before they go on to a table that threads share. An entry is a key,
# ---- whether it is there, and what is accumulated for it; `operators.aggregation_cache` says how many there are. ----


def cache_slot(key: int, last: int, stride: int) -> int:
    """Where in the cache the entry of a key is, of ``last`` + 1 of them: the key's own, or another one's."""
    return mul_i64(and_i64(hash_i64(key), last), stride)


def cache_holds(cache: Pointer, at: int, key: int) -> bool:
    """Whether the slot at word ``at`` of a thread's cache is in use and has this key."""
    return eq_i64(load_i64(cache, at), key) and ne_i64(load_i64(cache, add_i64(at, 1)), 0)
