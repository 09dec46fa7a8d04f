"""Run by `test_cudasim` under Numba's CUDA simulator: the logic of the GPU's primitives, thread by thread.

The bodies are those that are compiled for GPUs; only the words below them are a twin (`primitives.simulated`).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda

from gquery.kernels.builtin import wide_arrays
from gquery.kernels.primitives import checked, groups, simulated, tables, warp
from gquery.kernels.primitives.python import wide
from tests.support.turns import take_turns_in_numba

THREADS, BLOCKS, ROWS, GROUPS = 64, 3, 1000, 5
LOW = -(2**63)
blocks = [simulated.Block(THREADS, words=2) for _ in range(BLOCKS)]


def on_atomics(body: Any) -> Any:
    """A body on the atomics of the simulator, which other threads may interrupt, in place of Python's."""
    namespace = {**body.__globals__, "cas_i64": simulated.cas_i64, "atomic_or_u32": simulated.atomic_or_u32}
    namespace["load_i64"] = namespace["load_u32"] = lambda pointer, i: int(pointer[i])
    if body is not checked.fail:
        namespace["fail"] = on_atomics(checked.fail)
        namespace["_LIMIT"] = 128  # giving up takes long here
    return FunctionType(body.__code__, namespace, body.__name__)


slot_insert = on_atomics(groups.slot_insert)
bit_set, bit_test = on_atomics(tables.bit_set), on_atomics(tables.bit_test)
key_insert, pair_insert = on_atomics(tables.key_insert), on_atomics(tables.pair_insert)
accumulate_min_i64, accumulate_max_i64 = on_atomics(warp.accumulate_min_i64), on_atomics(warp.accumulate_max_i64)


@cuda.jit
def reductions(values: Any, floats: Any, state: Any, sums: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    total, least, most, real = 0, 2**63 - 1, LOW, 0.0
    warp.private_init(0, 0)
    warp.private_init(1, 0)
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        v = int(values[i])
        total, least, most, real = total + v, min(least, v), max(most, v), real + float(floats[i])
        warp.private_add_i64(0, v)
        warp.private_add_f64(1, float(floats[i]))
    warp.reduce_add_i64(state, 0, total)
    warp.reduce_min_i64(state, 1, least)
    warp.reduce_max_i64(state, 2, most)
    warp.private_flush_add_i64(0, state, 3)
    warp.reduce_add_f64(sums, 0, real)
    warp.private_flush_add_f64(1, sums, 1)


@cuda.jit
def wide_sums(words: Any, sum_words: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    mine = [0, 0, 0, 0]
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        v = int(words[2 * i + 1]) << 64 | int(words[2 * i]) & (2**64 - 1)
        for k in range(4):
            mine[k] += wide.sum_word_i128(v, k)
    for k in range(4):
        warp.reduce_add_i64(sum_words, k, mine[k])


@cuda.jit
def extremes(values: Any, groups: Any, state: Any) -> None:
    """Least, largest and number of each group, in private words and straight in global memory."""
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    warp.private_init(0, 2**63 - 1)
    warp.private_init(1, LOW)
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        v, g = int(values[i]), int(groups[i])
        warp.private_min_i64(0, v)
        warp.private_max_i64(1, v)
        accumulate_min_i64(state, 3 * g, v)
        accumulate_max_i64(state, 3 * g + 1, v)
        warp.accumulate_add_i64(state, 3 * g + 2, 1)
    warp.private_flush_min_i64(0, state, 3 * GROUPS)
    warp.private_flush_max_i64(1, state, 3 * GROUPS + 1)


@cuda.jit
def inserts(keys: Any, entries: Any, mask: int, places: Any, bits: Any, status: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        places[i] = slot_insert(entries, mask, 2, int(keys[i]), status, 33)
        if places[i] >= 0:
            warp.accumulate_add_i64(entries, int(places[i]), 1)
        bit_set(bits, int(keys[i]))


@cuda.jit
def joins(keys: Any, words: Any, capacity: int, table: Any, slots: Any, pairs: Any, fresh: Any) -> None:
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        slots[i] = key_insert(table, capacity, int(keys[i]))
        fresh[i] = pair_insert(pairs, capacity, int(keys[i]), int(words[i]))


@cuda.jit
def compaction(values: Any, kept: Any, counter: Any) -> None:
    """Rows of even values, two places each, where the counter says."""
    simulated.enter(blocks[cuda.blockIdx.x], cuda.threadIdx.x)
    for i in range(cuda.grid(1), ROWS, cuda.gridsize(1)):
        if int(values[i]) % 2 == 0:
            place = warp.reserve(counter, 2)
            kept[place] = i
            kept[place + 1] = values[i]


def check_reductions(r: np.random.Generator) -> None:
    values, floats = r.integers(-(10**12), 10**12, ROWS), r.random(ROWS)
    state, sums = np.array([0, 2**63 - 1, LOW, 0]), np.zeros(2)
    reductions[BLOCKS, THREADS](values, floats, state, sums)
    assert state.tolist() == [values.sum(), values.min(), values.max(), values.sum()], state
    assert np.allclose(sums, floats.sum(), rtol=1e-12), sums


def check_wide_sums(r: np.random.Generator) -> None:
    words = r.integers(-(2**63), 2**63 - 1, (ROWS, 2))
    words[:, 1] >>= 20
    sum_words = np.zeros(4, np.int64)
    wide_sums[BLOCKS, THREADS](words.reshape(-1), sum_words)
    total = sum(int(h) << 64 | int(low) & (2**64 - 1) for low, h in words)
    (low, high) = wide_arrays.multiword_to_i128([sum_words[k : k + 1] for k in range(4)])[0]
    assert int(high) << 64 | int(low) & (2**64 - 1) == total


def check_extremes(r: np.random.Generator) -> None:
    values, groups = r.integers(LOW, 2**63 - 1, ROWS), r.integers(0, GROUPS, ROWS)
    state = np.tile(np.array([2**63 - 1, LOW, 0]), GROUPS + 1)
    extremes[BLOCKS, THREADS](values, groups, state)
    for g in range(GROUPS):
        mine = values[groups == g]
        assert state[3 * g : 3 * g + 3].tolist() == [mine.min(), mine.max(), mine.size]
    assert state[3 * GROUPS :].tolist() == [values.min(), values.max(), 0]


def check_tables(r: np.random.Generator) -> None:
    keys, status = r.integers(0, 500, ROWS), np.zeros(2, np.uint32)
    keys[::7] = 0
    entries, places = np.zeros((1026, 2), np.int64), np.zeros(ROWS, np.int64)
    bits = np.zeros(32, np.uint32)
    inserts[BLOCKS, THREADS](keys, entries.reshape(-1), 1023, places, bits, status)
    assert (entries[places // 2, 0] == np.where(keys == 0, 1, keys)).all()
    assert sorted(entries[:1024, 0][entries[:1024, 0] != 0]) == sorted(set(keys.tolist()) - {0})
    assert (entries.reshape(-1)[places] == (keys[:, None] == keys).sum(1)).all()
    assert entries[1024].tolist() == [1, (keys == 0).sum()], "the key 0 has an entry of its own"
    assert [k for k in range(512) if bits[k >> 5] >> (k & 31) & 1] == sorted(set(keys.tolist()))
    assert all(bit_test(bits, int(k)) for k in keys)
    assert not any(bit_test(bits, int(k)) for k in r.integers(500, 1000, ROWS))
    assert status.tolist() == [0, 0]
    inserts[BLOCKS, THREADS](keys, np.zeros(2 * 66, np.int64), 63, places, bits, status)
    assert status.tolist() == [0, 2], "a table that is too small says so"


def check_one_key(r: np.random.Generator) -> None:
    """All threads want the same place at once."""
    keys, status = np.full(ROWS, 77), np.zeros(2, np.uint32)
    entries, places = np.zeros((66, 2), np.int64), np.zeros(ROWS, np.int64)
    inserts[BLOCKS, THREADS](keys, entries.reshape(-1), 63, places, np.zeros(32, np.uint32), status)
    assert len(set(places.tolist())) == 1
    assert entries[entries[:, 0] != 0].tolist() == [[77, ROWS]]


def check_join_tables(r: np.random.Generator) -> None:
    """Keys several times and once, few slots free; 0 is a key like others, and so is what a sum of hash and slot would be."""
    repeated = r.integers(-200, 200, ROWS) * np.int64(0x2545F4914F6CDD1D)
    for keys in (repeated, np.arange(-5, ROWS - 5) * np.int64(0x5851F42D4C957F2D), np.zeros(ROWS, np.int64)):
        words, capacity = np.arange(1, ROWS + 1), ROWS + 7
        table, slots = np.zeros(capacity + 1, np.int64), np.zeros(ROWS, np.int64)
        pairs, fresh = np.zeros(2 * (capacity + 1), np.int64), np.zeros(ROWS, np.uint8)
        joins[BLOCKS, THREADS](keys, words, capacity, table, slots, pairs, fresh)
        by_key: dict[int, set[int]] = {}
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            by_key.setdefault(key, set()).add(slot)
            assert tables.key_find(table, capacity, key) == slot
        assert all(len(s) == 1 for s in by_key.values())
        assert len(set.union(*by_key.values())) == len(by_key)
        assert fresh.sum() == len(by_key), "one row of each key is the first"
        for k in np.flatnonzero(fresh).tolist():
            assert tables.pair_find(pairs, capacity, int(keys[k])) == words[k]
        for other in (12345, -(2**63), 2**63 - 1):
            assert tables.key_find(table, capacity, other) == -1
            assert tables.pair_find(pairs, capacity, other) == 0
        if 0 not in by_key:
            assert tables.key_find(table, capacity, 0) == -1
            assert tables.pair_find(pairs, capacity, 0) == 0


def check_compaction(r: np.random.Generator) -> None:
    values, counter = r.integers(-(2**40), 2**40, ROWS), np.zeros(1, np.int64)
    kept = np.full(2 * ROWS, -1)
    compaction[BLOCKS, THREADS](values, kept, counter)
    rows = np.flatnonzero(values % 2 == 0)
    assert counter[0] == 2 * rows.size
    pairs = kept[: 2 * rows.size].reshape(-1, 2)
    assert sorted(map(tuple, pairs.tolist())) == [(i, int(values[i])) for i in rows.tolist()]
    assert (kept[2 * rows.size :] == -1).all()


if __name__ == "__main__":
    take_turns_in_numba()
    for check in (
        check_reductions,
        check_wide_sums,
        check_extremes,
        check_tables,
        check_one_key,
        check_join_tables,
        check_compaction,
    ):
        check(np.random.default_rng(1))
    print("simulated")
