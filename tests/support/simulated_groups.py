"""Run by `test_cudasim` under Numba's CUDA simulator: accumulators that a block shares, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from gquery.kernels.primitives import block, simulated
from tests.support.turns import take_turns_in_numba

THREADS, BLOCKS, ROWS = 32, 3, 1500
LOW, HIGH = -(2**63), 2**63 - 1
blocks: list[simulated.Block] = []


def fresh(words: int) -> None:
    blocks[:] = [simulated.Block(THREADS, shared=words) for _ in range(BLOCKS)]


@cuda.jit
def accumulators(
    slots: Any, values: Any, floats: Any, groups: int, copies: int, state: Any, sums: Any, touched: Any
) -> None:
    """A sum, the least, the largest, a sum of doubles and a flag a group, each in one array of ``size`` words."""
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    size = groups * copies
    for n, identity in enumerate((0, HIGH, LOW, 0, 0)):
        block.shared_fill(n * size, size, identity)
    block.shared_begin()
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        slot, v = int(slots[i]), int(values[i])
        place = block.shared_slot(slot, copies)
        block.shared_add_i64(0, size, place, v)
        block.shared_min_i64(size, size, place, v)
        block.shared_max_i64(2 * size, size, place, v)
        block.shared_add_f64(3 * size, size, place, float(floats[i]))
        block.shared_touch(4 * size, slot)
    block.shared_end()
    block.shared_flush_add_i64(0, size, copies, 0, state[0])
    block.shared_flush_min_i64(size, size, copies, 0, state[1])
    block.shared_flush_max_i64(2 * size, size, copies, 0, state[2])
    block.shared_flush_add_f64(3 * size, size, copies, 0, sums)
    block.shared_flush_touch(4 * size, groups, touched)


def check(r: np.random.Generator, groups: int, copies: int, low: int, high: int, used: int) -> None:
    """Sums wrap at 64 bits, as those of multiword sums may: whatever the carries, their low bits are right."""
    fresh(5 * groups * copies)
    slots, values, floats = r.integers(0, used, ROWS), r.integers(low, high, ROWS, endpoint=True), r.random(ROWS)
    state = np.tile(np.array([[0], [HIGH], [LOW]]), (1, groups))
    sums, touched = np.zeros(groups), np.zeros(groups, np.uint8)
    with np.errstate(over="ignore"):
        accumulators[BLOCKS, THREADS](slots, values, floats, groups, copies, state, sums, touched)
    for g in range(groups):
        mine = values[slots == g]
        total = sum(mine.tolist())
        assert int(state[0, g]) == (total + 2**63) % 2**64 - 2**63, (g, total)
        assert state[1:, g].tolist() == ([mine.min(), mine.max()] if mine.size else [HIGH, LOW])
        assert np.isclose(sums[g], floats[slots == g].sum(), rtol=1e-12)
        assert touched[g] == (mine.size > 0)


@cuda.jit
def copied(bits: Any, words: int, first: int, found: Any) -> None:
    """What a block's copy of a bitmap says of each bit, and of words beside it that stay as they are."""
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    block.shared_copy(first, words, bits)
    block.shared_begin()
    for k in range(cuda.grid(1), 32 * words, cuda.gridsize(1)):
        found[k] = block.shared_bit_test(first, k)


def check_copies(r: np.random.Generator, words: int, first: int) -> None:
    fresh(first + (words + 1) // 2 + 1)
    bits, found = r.integers(0, 2**32, words, dtype=np.uint32), np.zeros(32 * words, np.bool_)
    copied[BLOCKS, THREADS](bits, words, first, found)
    assert found.tolist() == np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool).tolist()
    for mine in blocks:
        assert (mine.shared[:first] == -1).all()
        assert mine.shared[-1] == -1


def main() -> None:
    r = np.random.default_rng(1)
    for words, first in ((1, 0), (33, 3), (100, 7)):
        check_copies(r, words, first)
    check(r, 5, 1, 0, 10, 5)
    check(r, 7, 4, -(2**31), 2**31, 6)  # a group without rows
    check(r, 40, 2, 2**31, 2**33, 40)  # more places than threads, carries
    check(r, 3, 32, -(2**52), 2**52, 1)  # all rows in one group
    check(r, 70, 1, -3, -1, 70)  # the low word wraps at almost every row
    check(r, 2, 8, LOW // ROWS, HIGH // ROWS, 2)


if __name__ == "__main__":
    take_turns_in_numba()
    main()
    print("simulated")
