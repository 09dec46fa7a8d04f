"""What a block shares: accumulators, words of its shared memory, accumulated by atomics there, flushed once by its
threads; and copies of small bitmaps.

An accumulator's accumulators lie side by side, from 64-bit word ``first`` on, ``size`` of them: ``copies`` for each
group, one of which a thread takes by its number, so that few groups do not make neighbouring lanes meet. Hardware adds
32 bits in shared memory at once but loops for 64, so a sum is two arrays of 32 bits, the low words and then the high
ones: adding costs a second atomic only where the high word changes.

All threads of a block call `shared_begin`, `shared_end` and what fills and flushes. The words are those of the
simulator, so that this file's logic is tested without a GPU (`tests/kernels/test_cudasim.py`).
"""

from __future__ import annotations

from gquery.kernels.primitives.python.floats import add_f64, f64_from_bits, ne_f64
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    gt_i64,
    hash_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_u32, store_u8
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.simulated import (
    block_barrier,
    block_thread,
    block_threads,
    shared_atomic_add_f64,
    shared_atomic_add_u32,
    shared_atomic_max_i64,
    shared_atomic_min_i64,
    shared_cas_i64,
    shared_load_i64,
    shared_load_u32,
    shared_store_i64,
    shared_store_u32,
)
from gquery.kernels.primitives.warp import (
    accumulate_add_f64,
    accumulate_add_i64,
    accumulate_max_i64,
    accumulate_min_i64,
)

_LOW = 2**32 - 1


def shared_fill(first: int, size: int, identity: int) -> None:
    """Sets ``size`` words of shared memory from word ``first`` on; all threads of the block take part."""
    word = block_thread()
    while lt_i64(word, size):
        shared_store_i64(add_i64(first, word), identity)
        word = add_i64(word, block_threads())


def shared_copy(first: int, size: int, words: Pointer) -> None:
    """Copies ``size`` words of 32 bits to shared memory, from 64-bit word ``first`` on; all threads of the block take part."""
    word, base = block_thread(), shl_i64(first, 1)
    while lt_i64(word, size):
        shared_store_u32(add_i64(base, word), load_u32(words, word))
        word = add_i64(word, block_threads())


def shared_bit_test(first: int, k: int) -> bool:
    """Whether bit ``k`` of a bitmap of 32-bit words is set, which lies in shared memory from 64-bit word ``first`` on."""
    word = shared_load_u32(add_i64(shl_i64(first, 1), shr_i64(k, 5)))
    return ne_i64(and_i64(shr_u64(word, and_i64(k, 31)), 1), 0)


def shared_begin() -> None:
    """Behind it, what was filled is there for all threads."""
    block_barrier()


def shared_end() -> None:
    """Behind it, no thread of the block accumulates any more."""
    block_barrier()


def shared_slot(slot: int, copies: int) -> int:
    """The slot of the calling thread's accumulator of a group; ``copies`` is a power of two."""
    return add_i64(mul_i64(slot, copies), and_i64(block_thread(), sub_i64(copies, 1)))


def shared_touch(first: int, slot: int) -> None:
    """Note that the group has a row; many threads may store the same, so there are no copies of this."""
    shared_store_u32(add_i64(shl_i64(first, 1), slot), 1)


def shared_add_i64(first: int, size: int, slot: int, v: int) -> None:
    """Adds to a slot: its low and high halves by 32-bit atomics, with the carry between them."""
    low = add_i64(shl_i64(first, 1), slot)
    part = and_i64(v, _LOW)
    old = shared_atomic_add_u32(low, part)
    high = add_i64(shr_i64(v, 32), shr_i64(add_i64(old, part), 32))  # with the carry; 0 for most, negative or not
    if ne_i64(high, 0):
        shared_atomic_add_u32(add_i64(low, size), high)


def shared_min_i64(first: int, size: int, slot: int, v: int) -> None:
    """Lowers a slot to ``v``, if that is less."""
    word = add_i64(first, slot)
    if lt_i64(v, shared_load_i64(word)):  # an old value is too large at most
        shared_atomic_min_i64(word, v)


def shared_max_i64(first: int, size: int, slot: int, v: int) -> None:
    """Raises a slot to ``v``, if that is greater."""
    word = add_i64(first, slot)
    if gt_i64(v, shared_load_i64(word)):
        shared_atomic_max_i64(word, v)


def shared_add_f64(first: int, size: int, slot: int, v: float) -> None:
    """Adds a double to a slot."""
    shared_atomic_add_f64(add_i64(first, slot), v)


def _sum_at(first: int, size: int, slot: int) -> int:
    low = add_i64(shl_i64(first, 1), slot)
    return or_i64(shl_i64(shared_load_u32(add_i64(low, size)), 32), shared_load_u32(low))


def shared_flush_touch(first: int, groups: int, touched: Pointer) -> None:
    """Sets the flag of each group that has a row in this block: ``touched`` is uint8, one a group."""
    group = block_thread()
    while lt_i64(group, groups):
        if ne_i64(shared_load_u32(add_i64(shl_i64(first, 1), group)), 0):
            store_u8(touched, group, 1)
        group = add_i64(group, block_threads())


def shared_flush_add_i64(first: int, size: int, copies: int, base: int, state: Pointer) -> None:
    """Adds the block's sums to ``state`` (int64, one a group from ``base`` on), over all copies of a group."""
    group, slot = block_thread(), mul_i64(block_thread(), copies)
    while lt_i64(slot, size):
        total, copy = i64(0), i64(0)
        while lt_i64(copy, copies):
            total = add_i64(total, _sum_at(first, size, add_i64(slot, copy)))
            copy = add_i64(copy, 1)
        if ne_i64(total, 0):
            accumulate_add_i64(state, add_i64(base, group), total)
        group = add_i64(group, block_threads())
        slot = mul_i64(group, copies)


def shared_flush_min_i64(first: int, size: int, copies: int, base: int, state: Pointer) -> None:
    """Lowers ``state`` (int64, one a group from ``base`` on) to the block's minima, over all copies of a group."""
    group, slot = block_thread(), mul_i64(block_thread(), copies)
    while lt_i64(slot, size):
        least, copy = shared_load_i64(add_i64(first, slot)), i64(1)
        while lt_i64(copy, copies):
            least = min_i64(least, shared_load_i64(add_i64(first, add_i64(slot, copy))))
            copy = add_i64(copy, 1)
        accumulate_min_i64(state, add_i64(base, group), least)
        group = add_i64(group, block_threads())
        slot = mul_i64(group, copies)


def shared_flush_max_i64(first: int, size: int, copies: int, base: int, state: Pointer) -> None:
    """Raises ``state`` (int64, one a group from ``base`` on) to the block's maxima, over all copies of a group."""
    group, slot = block_thread(), mul_i64(block_thread(), copies)
    while lt_i64(slot, size):
        most, copy = shared_load_i64(add_i64(first, slot)), i64(1)
        while lt_i64(copy, copies):
            most = max_i64(most, shared_load_i64(add_i64(first, add_i64(slot, copy))))
            copy = add_i64(copy, 1)
        accumulate_max_i64(state, add_i64(base, group), most)
        group = add_i64(group, block_threads())
        slot = mul_i64(group, copies)


def shared_flush_add_f64(first: int, size: int, copies: int, base: int, state: Pointer) -> None:
    """Adds the block's sums to ``state`` (float64, one a group from ``base`` on), over all copies of a group."""
    group, slot = block_thread(), mul_i64(block_thread(), copies)
    while lt_i64(slot, size):
        total, copy = f64_from_bits(shared_load_i64(add_i64(first, slot))), i64(1)
        while lt_i64(copy, copies):
            total = add_f64(total, f64_from_bits(shared_load_i64(add_i64(first, add_i64(slot, copy)))))
            copy = add_i64(copy, 1)
        if ne_f64(total, 0.0):
            accumulate_add_f64(state, add_i64(base, group), total)
        group = add_i64(group, block_threads())
        slot = mul_i64(group, copies)


# ---- a hash table of the block: keys in the words from ``first`` on, accumulators of their own at the same slots ----

_EMPTY = -(2**63)
_TRIES = 16


def shared_find(first: int, size: int, key: int) -> int:
    """The slot of ``key`` among ``size`` slots, a power of two, taken now if nobody has it; -1 where the next few are
    others' (the row is then accumulated in global memory) and for the one key that stands for an empty slot."""
    if eq_i64(key, _EMPTY):
        return i64(-1)
    slot = and_i64(hash_i64(key), sub_i64(size, 1))
    tries = i64(0)
    while lt_i64(tries, _TRIES):
        found = shared_load_i64(add_i64(first, slot))
        if eq_i64(found, _EMPTY):
            found = shared_cas_i64(add_i64(first, slot), _EMPTY, key)
        if eq_i64(found, key) or eq_i64(found, _EMPTY):
            return slot
        slot = and_i64(add_i64(slot, 1), sub_i64(size, 1))
        tries = add_i64(tries, 1)
    return i64(-1)


def shared_get_add_i64(first: int, size: int, slot: int) -> int:
    """The block's sum in a slot of its hash table."""
    return _sum_at(first, size, slot)


def shared_get_min_i64(first: int, size: int, slot: int) -> int:
    """The block's minimum in a slot of its hash table."""
    return shared_load_i64(add_i64(first, slot))


def shared_get_max_i64(first: int, size: int, slot: int) -> int:
    """The block's maximum in a slot of its hash table."""
    return shared_load_i64(add_i64(first, slot))


def shared_get_add_f64(first: int, size: int, slot: int) -> float:
    """The block's sum of doubles in a slot of its hash table."""
    return f64_from_bits(shared_load_i64(add_i64(first, slot)))
