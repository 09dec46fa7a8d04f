"""Run by `test_cudasim` under Numba's CUDA simulator: rows of columns, partitioned by blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda

from gquery.kernels.builtin.row_partition import job_of
from gquery.kernels.primitives import row_partition, simulated
from tests.support.turns import take_turns_in_numba

THREADS, BLOCKS = 64, 2
SMALL = {"TILE": 512, "GROUP_BITS": 6, "GROUPS": 8, "COUNTER_WORDS": 2, "PART_WORDS": 4, "TILE_WORDS": 768, "LABEL_WORDS": 64,
         "PLACES": 2048, "PARTS_BY_PLACE": 2560, "COUNTERS": 3072}  # fmt: skip
blocks: list[simulated.Block] = []


@cuda.jit
def count_kernel(launched: int, job: Any, counts: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    row_partition.count_rows(cuda.grid(1), launched, job, counts)


@cuda.jit
def move_kernel(launched: int, job: Any, starts: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    row_partition.move_rows(cuda.grid(1), launched, job, starts)


def padded(labels: np.ndarray, tiles: int) -> np.ndarray:
    """With anything behind them, up to the last tile's end."""
    made = np.full(tiles * row_partition.TILE, 7, labels.dtype)
    made[: labels.size] = labels
    return made


def check(labels: np.ndarray, parts: int, columns: Sequence[tuple[np.ndarray, int]]) -> None:
    rows, tiles = labels.size, -(-labels.size // row_partition.TILE)
    labels = padded(labels, tiles)
    made = [np.zeros_like(values) for values, _ in columns]
    pairs = [(a.ctypes.data, b.ctypes.data, a.itemsize, words) for (a, words), b in zip(columns, made, strict=True)]
    job = job_of(labels.ctypes.data, labels.dtype, rows, parts, pairs)
    job[row_partition.TILES] = tiles
    counts = np.zeros(parts * tiles, np.uint32)
    shared = row_partition.TILE_WORDS + row_partition.PART_WORDS * parts + 512
    blocks[:] = [simulated.Block(THREADS, shared=shared) for _ in range(BLOCKS)]
    count_kernel[BLOCKS, THREADS](BLOCKS * THREADS, job, counts)
    by_tile = np.zeros((parts, tiles), np.int64)
    np.add.at(by_tile, (labels[:rows], np.arange(rows) // row_partition.TILE), 1)
    assert counts.tolist() == by_tile.reshape(-1).tolist()
    starts = np.cumsum(counts, dtype=np.int64) - counts
    move_kernel[BLOCKS, THREADS](BLOCKS * THREADS, job, starts)
    order = np.argsort(labels[:rows], kind="stable")
    for (values, words), found in zip(columns, made, strict=True):
        assert np.array_equal(found.reshape(-1, words), values.reshape(-1, words)[order])
    check_places(labels, rows, parts, columns, starts)


def check_places(
    labels: np.ndarray, rows: int, parts: int, columns: Sequence[tuple[np.ndarray, int]], starts: np.ndarray
) -> None:
    """Each part goes to an array of its own."""
    tiles = -(-rows // row_partition.TILE)
    made = [[np.zeros_like(values) for _ in range(parts)] for values, _ in columns]
    moves = [
        (a.ctypes.data, [b.ctypes.data for b in to], a.itemsize, words)
        for (a, words), to in zip(columns, made, strict=True)
    ]
    job = job_of(labels.ctypes.data, labels.dtype, rows, parts, moves)
    job[row_partition.TILES] = tiles
    move_kernel[BLOCKS, THREADS](BLOCKS * THREADS, job, starts)
    order = np.argsort(labels[:rows], kind="stable")
    for (values, words), to in zip(columns, made, strict=True):
        moved = values.reshape(-1, words)[order]
        for part, found in enumerate(to):
            own = labels[:rows][order] == part
            assert np.array_equal(found.reshape(-1, words)[own], moved[own])
            assert not found.reshape(-1, words)[~own].any()


if __name__ == "__main__":  # a process that collects tests imports this file, and compiles what it finds
    take_turns_in_numba()
    vars(row_partition).update(SMALL, load_i64=lambda pointer, i: int(pointer[i]))
    r = np.random.default_rng(5)
    for rows, parts, dtype in ((1, 2, "u1"), (1500, 5, "u1"), (1024, 64, "u1"), (700, 300, "u2"), (513, 1024, "u2")):
        numbers: list[tuple[np.ndarray, int]] = [
            (r.integers(0, 200, words * rows).astype(type_), words)
            for type_, words in (("u1", 1), ("i2", 1), ("f4", 1), ("i8", 1), ("i8", 2))
        ]
        check(r.integers(0, parts, rows).astype(dtype), parts, numbers)
    check(np.full(600, 3, np.uint8), 4, numbers[:0])
    print("simulated")
