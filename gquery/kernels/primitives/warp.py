"""Accumulators on a GPU: what a warp agrees on before one lane touches global memory.

All lanes of a warp call these, in the epilogue. A ``private`` accumulator is a 64-bit word of shared memory that
belongs to one thread; word ``w`` of neighbouring threads lies side by side, so no two lanes meet in a bank.

The words are those of the simulator, so that this file's logic is tested without a GPU (`tests/kernels/test_cudasim.py`).
"""

from __future__ import annotations

from gquery.kernels.primitives.python.floats import add_f64, bits_f64, f64_from_bits, ne_f64
from gquery.kernels.primitives.python.integers import (
    add_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    ne_i64,
    shl_i64,
    shr_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, store_u8
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.simulated import (
    atomic_add_f64,
    atomic_add_i64,
    atomic_add_u32,
    atomic_max_i64,
    atomic_min_i64,
    lane,
    private_load,
    private_store,
    shuffle_down_f64,
    shuffle_down_i64,
    shuffle_from_i64,
)


def reduce_add_i64(state: Pointer, k: int, v: int) -> None:
    """Adds the sum of a warp's values to element ``k`` of the state (int64), once."""
    offset = i64(16)
    while ne_i64(offset, 0):
        v = add_i64(v, shuffle_down_i64(v, offset))
        offset = shr_i64(offset, 1)
    if eq_i64(lane(), 0) and ne_i64(v, 0):
        atomic_add_i64(state, k, v)


def reduce_min_i64(state: Pointer, k: int, v: int) -> None:
    """Lowers element ``k`` of the state (int64) to the least of a warp's values, once."""
    offset = i64(16)
    while ne_i64(offset, 0):
        v = min_i64(v, shuffle_down_i64(v, offset))
        offset = shr_i64(offset, 1)
    if eq_i64(lane(), 0):
        accumulate_min_i64(state, k, v)


def reduce_max_i64(state: Pointer, k: int, v: int) -> None:
    """Raises element ``k`` of the state (int64) to the greatest of a warp's values, once."""
    offset = i64(16)
    while ne_i64(offset, 0):
        v = max_i64(v, shuffle_down_i64(v, offset))
        offset = shr_i64(offset, 1)
    if eq_i64(lane(), 0):
        accumulate_max_i64(state, k, v)


def reduce_add_f64(state: Pointer, k: int, v: float) -> None:
    """Adds the sum of a warp's values to element ``k`` of the state (float64), once."""
    offset = i64(16)
    while ne_i64(offset, 0):
        v = add_f64(v, shuffle_down_f64(v, offset))
        offset = shr_i64(offset, 1)
    if eq_i64(lane(), 0) and ne_f64(v, 0.0):
        atomic_add_f64(state, k, v)


def prefix_sum(v: int) -> int:
    """The sum of the values of the lanes up to the calling one, wrapped."""
    offset = i64(1)
    while lt_i64(offset, 32):
        other = shuffle_from_i64(v, sub_i64(lane(), offset))
        if ge_i64(lane(), offset):
            v = add_i64(v, other)
        offset = shl_i64(offset, 1)
    return v


def last_lane(v: int) -> int:
    """The value of the warp's last lane."""
    return shuffle_from_i64(v, 31)


def accumulate_add_i64(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of the state (int64), wrapped to 64 bits."""
    atomic_add_i64(state, slot, v)


def accumulate_min_i64(state: Pointer, slot: int, v: int) -> None:
    """Lowers a slot of the state (int64) to ``v``, if that is less."""
    if lt_i64(v, load_i64(state, slot)):  # an old value is too large at most
        atomic_min_i64(state, slot, v)


def accumulate_max_i64(state: Pointer, slot: int, v: int) -> None:
    """Raises a slot of the state (int64) to ``v``, if that is greater."""
    if gt_i64(v, load_i64(state, slot)):
        atomic_max_i64(state, slot, v)


def accumulate_add_f64(state: Pointer, slot: int, v: float) -> None:
    """Adds to a slot of the state (float64)."""
    atomic_add_f64(state, slot, v)


def accumulate_add_u32(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of an array of counts (uint32), wrapped to 32 bits."""
    atomic_add_u32(state, slot, v)


def reserve(counter: Pointer, n: int) -> int:
    """The counter before ``n`` was added to it."""
    return atomic_add_i64(counter, 0, n)


def private_init(word: int, identity: int) -> None:
    """Sets a word of the thread's own."""
    private_store(word, identity)


def private_add_i64(word: int, v: int) -> None:
    """Adds to a word of the thread's own."""
    private_store(word, add_i64(private_load(word), v))


def private_min_i64(word: int, v: int) -> None:
    """Lowers a word of the thread's own to ``v``, if that is less."""
    private_store(word, min_i64(private_load(word), v))


def private_max_i64(word: int, v: int) -> None:
    """Raises a word of the thread's own to ``v``, if that is greater."""
    private_store(word, max_i64(private_load(word), v))


def private_add_f64(word: int, v: float) -> None:
    """Adds to a double in a word of the thread's own."""
    private_store(word, bits_f64(add_f64(f64_from_bits(private_load(word)), v)))


def private_flush_touch(word: int, touched: Pointer, k: int) -> None:
    """Sets flag ``k`` of ``touched`` (uint8) if the thread's word is not 0."""
    if ne_i64(private_load(word), 0):
        store_u8(touched, k, 1)


def private_flush_add_i64(word: int, state: Pointer, k: int) -> None:
    """Adds the word of each thread of a warp to element ``k`` of the state (int64)."""
    reduce_add_i64(state, k, private_load(word))


def private_flush_min_i64(word: int, state: Pointer, k: int) -> None:
    """Lowers element ``k`` of the state (int64) to the least word of a warp's threads."""
    reduce_min_i64(state, k, private_load(word))


def private_flush_max_i64(word: int, state: Pointer, k: int) -> None:
    """Raises element ``k`` of the state (int64) to the greatest word of a warp's threads."""
    reduce_max_i64(state, k, private_load(word))


def private_flush_add_f64(word: int, state: Pointer, k: int) -> None:
    """Adds the double of each thread of a warp to element ``k`` of the state (float64)."""
    reduce_add_f64(state, k, f64_from_bits(private_load(word)))
