"""Run by `test_cudasim` under Numba's CUDA simulator: entries of large tables, radix-partitioned by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from gquery.kernels.builtin.partition import word_shift
from gquery.kernels.primitives import partition, simulated
from tests.support.turns import take_turns_in_numba

THREADS, BLOCKS = 32, 2
PLACES = partition.PARTS


def fresh() -> None:
    blocks[:] = [simulated.Block(THREADS, shared=PLACES // 2) for _ in range(BLOCKS)]


blocks: list[simulated.Block] = []


@cuda.jit
def words_kernel(rows: int, entries: int, words: Any, out: Any, counters: Any, room: int, shift: int) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), rows, cuda.gridsize(1)):
        partition.radix_partition(i, entries, words, out, counters, room, shift)


def _launch(entries: int) -> int:
    """Rows of a launch, in whole blocks."""
    return -(-entries // (partition.ENTRIES_A_THREAD * THREADS)) * THREADS


def check_words(r: np.random.Generator, places: int) -> None:
    fresh()
    entries = places // 2
    words = r.permutation(places)[:entries] << 32 | r.integers(1, 2**32, entries)
    words[::9] = 0
    shift = word_shift(places)
    out, counters = np.zeros(PLACES << shift, np.int64), np.zeros(PLACES, np.uint32)
    words_kernel[BLOCKS, THREADS](_launch(entries), entries, words, out, counters, 1 << shift, 32 + shift)
    for part in range(PLACES):
        mine = words[(words != 0) & (words >> 32 + shift == part)]
        assert counters[part] == mine.size
        assert sorted(out[part << shift :][: mine.size].tolist()) == sorted(mine.tolist())


if __name__ == "__main__":  # a process that collects tests imports this file, and compiles what it finds
    take_turns_in_numba()
    vars(partition).update(load_i64=lambda pointer, i: int(pointer[i]))  # elements of arrays as Python's integers
    for n in (2, 200, 1000, 2048):
        check_words(np.random.default_rng(n), n)
    print("simulated")
