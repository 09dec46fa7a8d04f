"""Entries of a large table, moved next to those that go near the same place, by the blocks of a GPU.

A block takes some entries, counts how many go to each part of the table, reserves that many positions in each part's room with
one atomic a part, and writes them there. What several blocks write into one part at a time fills sectors before they leave
the cache. All threads of a block come here for the same entries: there are barriers between the steps.

The words are those of the simulator, so that this file's logic is tested without a GPU (`tests/kernels/test_cudasim.py`).
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import add_i64, lt_i64, min_i64, mul_i64, ne_i64, shr_u64, sub_i64
from gquery.kernels.primitives.python.memory import load_i64, store_i64
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.simulated import (
    atomic_add_u32,
    block_barrier,
    block_thread,
    block_threads,
    shared_atomic_add_u32,
    shared_load_u32,
    shared_store_u32,
)

PARTS = 256
ENTRIES_A_THREAD = 4  # so few that what was counted is still near when it is moved


def _begin() -> None:
    part = block_thread()
    while lt_i64(part, PARTS):
        shared_store_u32(part, 0)
        part = add_i64(part, block_threads())
    block_barrier()


def _reserve(counters: Pointer) -> None:
    """The block's counts become positions: where in each part's room its entries go."""
    block_barrier()
    part = block_thread()
    while lt_i64(part, PARTS):
        count = shared_load_u32(part)
        if ne_i64(count, 0):
            shared_store_u32(part, atomic_add_u32(counters, part, count))
        part = add_i64(part, block_threads())
    block_barrier()


def _first(i: int) -> int:
    """The first entry of the calling thread, which is the one of row ``i`` of the launch."""
    return add_i64(mul_i64(sub_i64(i, block_thread()), ENTRIES_A_THREAD), block_thread())


def _stop(i: int, entries: int) -> int:
    begin = mul_i64(sub_i64(i, block_thread()), ENTRIES_A_THREAD)
    return min_i64(add_i64(begin, mul_i64(block_threads(), ENTRIES_A_THREAD)), entries)


def radix_partition(
    i: int, entries: int, words: Pointer, out: Pointer, counters: Pointer, room: int, shift: int
) -> None:
    """Move words that are not 0 to the rooms of the parts of an array; their bits from ``shift`` on say which part. ``counters``
    say how many each part has; what is more than ``room`` is counted and not written."""
    _begin()
    at, stop = _first(i), _stop(i, entries)
    while lt_i64(at, stop):
        word = load_i64(words, at)
        if ne_i64(word, 0):
            shared_atomic_add_u32(shr_u64(word, shift), 1)
        at = add_i64(at, block_threads())
    _reserve(counters)
    at = _first(i)
    while lt_i64(at, stop):
        word = load_i64(words, at)
        if ne_i64(word, 0):
            part = shr_u64(word, shift)
            place = shared_atomic_add_u32(part, 1)
            if lt_i64(place, room):
                store_i64(out, add_i64(mul_i64(part, room), place), word)
        at = add_i64(at, block_threads())
    block_barrier()
