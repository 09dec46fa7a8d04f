"""Run by `test_cudasim` under Numba's CUDA simulator: entries of large tables, spread over its parts by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from gquery.kernels.primitives import spread
from gquery.kernels.spread import pair_room, word_shift
from gquery.kernels.targets import simulated_words
from gquery.kernels.targets.python_words import hash_i64

vars(spread).update(  # elements of arrays as Python's integers
    load_pair=lambda pointer, i: (int(pointer[2 * i]), int(pointer[2 * i + 1])),
    load_i64=lambda pointer, i: int(pointer[i]),
)
THREADS, BLOCKS = 32, 2
PLACES = spread.PARTS


def fresh() -> None:
    blocks[:] = [simulated_words.Block(THREADS, shared=PLACES // 2) for _ in range(BLOCKS)]


blocks: list[simulated_words.Block] = []


@cuda.jit
def pairs_kernel(rows: int, entries: int, pairs: Any, out: Any, counters: Any, room: int) -> None:
    simulated_words.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), rows, cuda.gridsize(1)):
        spread.spread_pairs(i, entries, pairs, out, counters, room)


@cuda.jit
def words_kernel(rows: int, entries: int, words: Any, out: Any, counters: Any, room: int, shift: int) -> None:
    simulated_words.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), rows, cuda.gridsize(1)):
        spread.spread_words(i, entries, words, out, counters, room, shift)


def _launch(entries: int) -> int:
    """Rows of a launch, in whole blocks."""
    return -(-entries // (spread.ENTRIES_A_THREAD * THREADS)) * THREADS


def check_pairs(r: np.random.Generator, entries: int) -> None:
    fresh()
    pairs = np.stack((r.integers(-(2**63), 2**63 - 1, entries), r.integers(1, 100, entries)), axis=1)
    pairs[r.random(entries) < 0.2, 1] = 0
    room = pair_room(entries)
    out, counters = np.zeros((PLACES * room, 2), np.int64), np.zeros(PLACES, np.uint32)
    pairs_kernel[BLOCKS, THREADS](_launch(entries), entries, pairs.reshape(-1), out.reshape(-1), counters, room)
    wanted = pairs[pairs[:, 1] != 0]
    assert counters.sum() == len(wanted)
    assert counters.max() <= room
    for part in range(PLACES):
        mine = [row for row in wanted.tolist() if (hash_i64(row[0]) >> 56) & 255 == part]
        assert sorted(out[part * room :][: counters[part]].tolist()) == sorted(mine)
        assert not out[part * room + counters[part] : (part + 1) * room].any()


def check_no_room(r: np.random.Generator) -> None:
    """One key many times: its part says how many there are, and no other part is written to."""
    fresh()
    pairs = np.tile(np.array([7, 1]), 500)
    out, counters = np.zeros(2 * PLACES * 10, np.int64), np.zeros(PLACES, np.uint32)
    pairs_kernel[BLOCKS, THREADS](_launch(500), 500, pairs, out, counters, 10)
    assert sorted(counters.tolist())[-2:] == [0, 500]
    assert np.count_nonzero(out) == 20


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


if __name__ == "__main__":
    for n in (1, 127, 128, 1000):
        check_pairs(np.random.default_rng(n), n)
    check_no_room(np.random.default_rng(1))
    for n in (2, 200, 1000, 2048):
        check_words(np.random.default_rng(n), n)
    print("simulated")
