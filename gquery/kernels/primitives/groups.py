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
from gquery.kernels.primitives.python.atomics import cas_i64, prefetch, reserve
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    hash_i64,
    i64,
    lt_i64,
    mul_i64,
    ne_i64,
    shl_i64,
    shr_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u32, store_i64, store_u32
from gquery.kernels.primitives.python.values import Pointer

_LIMIT, _LONG = 512, 32  # also of `operators.join_build.find_or_insert`
CHUNK_BITS = 8
_CHUNK_LAST = (1 << CHUNK_BITS) - 1


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


# ---- groups by parts of their keys' hashes: threads write contributions, a key and its words, each part's to chunks of its own;
# ---- then one thread makes the groups of a part. `operators.partitioned_groups` says what lies where. ----


def next_contribution(ends: Pointer, parts: Pointer, taken: Pointer, part: int, status: Pointer, site: int) -> int:
    """The number of the next contribution of a thread in a part, for which it takes a chunk where the last one is full; -1 and a
    failure where none is left. ``taken`` says how many chunks are taken, and how many there are. ``ends`` are the thread's own, 0
    where it has no chunk yet."""
    contribution = load_i64(ends, part)
    if eq_i64(and_i64(contribution, _CHUNK_LAST), 0):
        chunk = reserve(taken, 1)
        if ge_i64(chunk, load_i64(taken, 1)):
            fail(status, site)
            return i64(-1)
        store_u32(parts, chunk, part)
        contribution = shl_i64(chunk, CHUNK_BITS)
    store_i64(ends, part, add_i64(contribution, 1))
    return contribution


def group_enter(slots: Pointer, mask: int, groups: Pointer, stride: int, count: int, key: int) -> int:
    """The number of the group of ``key`` among ``count`` that lie one after another, ``stride`` words each, key first: ``count``
    itself where it is new, whose words the caller writes. Of the ``mask`` + 1 slots, which hold numbers plus 1, some are free."""
    slot = and_i64(hash_i64(key), mask)
    while True:
        found = load_u32(slots, slot)
        if eq_i64(found, 0):
            store_u32(slots, slot, add_i64(count, 1))
            return i64(count)
        found = add_i64(found, -1)
        if eq_i64(load_i64(groups, mul_i64(found, stride)), key):
            return found
        slot = and_i64(add_i64(slot, 1), mask)
