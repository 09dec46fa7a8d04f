"""Short arrays that ranks merge are combined by one kernel, which reads those of all ranks where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.kernels.builtin import combining
from gquery.kernels.builtin.combining import Combination, can_combine, combine_together, merge_few
from gquery.operators import combined_arrays as module
from gquery.operators.combined_arrays import Stretch, add_to, combined, combined_stretches, word_stretches
from gquery.planner.aggregates import Accumulator, One, Op
from tests.support.harness import assert_same
from tests.support.tuned import Tune

HOW = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or}
KINDS = [
    ("add", "i8"),
    ("min", "i8"),
    ("max", "i8"),
    ("or", "i8"),
    ("add", "f8"),
    ("max", "u1"),
    ("or", "u4"),
    ("or", "u2"),
]


def made(rng: np.random.Generator, dtype: str, size: int) -> Any:
    """All words there are, so that sums wrap; doubles of any size."""
    if dtype == "f8":
        return rng.normal(size=size) * 10.0 ** rng.integers(-9, 9, size)
    return rng.integers(0, 256, size * int(dtype[1]), dtype=np.uint8).view(dtype)


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_arrays_of_all_kinds_at_once(ranks: int, interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes around each array stay as they were; what is combined may be one of those that are read."""
    monkeypatch.setattr("gquery.kernels.builtin.define.is_interpreted", lambda kernel, rows: interpreted)
    rng = np.random.default_rng(ranks)
    pieces, wanted, around = [], [], []
    for op, dtype in KINDS:
        for size in (0, 1, 7, 300):
            arrays = [made(rng, dtype, size) for _ in range(ranks)]
            memory = np.full((size + 2) * np.dtype(dtype).itemsize, 9, np.uint8).view(dtype)
            memory[1 : size + 1] = arrays[0]
            arrays[0] = memory[1 : size + 1]
            assert can_combine(op, arrays[0])
            wanted.append(reduce(HOW[op], arrays))
            pieces.append(Combination(op, arrays, arrays[0] if size % 2 else made(rng, dtype, size)))
            around.append(memory)
    combine_together(pieces, cpu_device())
    for piece, right, memory in zip(pieces, wanted, around, strict=True):
        assert piece.made.tobytes() == right.tobytes(), piece.op
        assert set(memory.view(np.uint8)[: memory.itemsize]) == set(memory.view(np.uint8)[-memory.itemsize :]) == {9}


@pytest.mark.parametrize(
    ("op", "array"),
    [
        ("min", np.zeros(2)),
        ("max", np.zeros(2)),
        ("add", np.zeros(2, np.int32)),
        ("max", np.zeros(2, np.int32)),
        ("max", np.zeros(2, np.int8)),
        ("or", np.zeros(2)),
        ("add", np.zeros(4, np.int64)[::2]),
        ("add", np.zeros((2, 2), np.int64)),
    ],
)
def test_what_the_kernel_does_not_combine(op: str, array: Any) -> None:
    """NaNs and zeros with a sign have an order of their own in NumPy."""
    assert not can_combine(op, array)


def everywhere(device: Device, other: Device) -> bool:
    return True


@pytest.mark.parametrize("most", [0, 64, 1 << 20])
def test_long_arrays_and_short_ones(most: int, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.transfers, combined_bytes=most)
    monkeypatch.setattr(module, "reads_there", everywhere)
    own, other = Device("cpu", 71), Device("cpu", 72)
    rng = np.random.default_rng(5)
    kinds = [("or", "u4", 500), ("add", "i8", 1), ("add", "i4", 3), ("max", "u1", 40)]
    parts = [[d.from_host(made(rng, dtype, size)) for _, dtype, size in kinds] for d in (own, other)]
    before = [[a.copy() for a in part] for part in parts]
    for rank, device in ((0, own), (1, other)):
        sums = [a.copy() for a in parts[rank]]
        add_to(sums, [parts[1 - rank]], [op for op, _, _ in kinds], device)
        for (op, _, _), a, b, total in zip(kinds, *parts, sums, strict=True):
            assert total.tobytes() == HOW[op](a, b).tobytes()
        with patch.object(module, "combine_together", wraps=combine_together) as called:
            found = combined(parts, [op for op, _, _ in kinds], rank, device)
        assert called.call_count == (most > 0)
        for (op, _, _), a, b, total in zip(kinds, *parts, found, strict=True):
            assert total.tobytes() == HOW[op](a, b).tobytes() and total.dtype == a.dtype
        for a, b in zip([a for p in parts for a in p], [b for p in before for b in p], strict=True):
            assert (a == b).all(), "others may still read it"


@pytest.mark.parametrize("slots", [1, 5])
def test_the_words_of_a_state(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours that are combined alike, and flags behind them, by the kernel as by NumPy."""
    accumulators = [Accumulator(op, word, One()) for op, word in WORDS]
    rng = np.random.default_rng(slots)
    parts = []
    for rank in (71, 72, 73):
        words = np.concatenate([made(rng, "f8" if w == "f64" else "i8", slots).view(np.int64) for _, w in WORDS])
        parts.append([Device("cpu", rank).from_host(a) for a in (words, made(rng, "u1", slots))])
    stretches = [*word_stretches(accumulators, slots), Stretch(1, 0, slots, "max", np.dtype(np.uint8))]
    assert [(r.first, r.end, r.op) for r in stretches[:2]] == [(0, 2 * slots, "add"), (2 * slots, 4 * slots, "add")]
    device = Device("cpu", 72)
    usual = combined_stretches(parts, stretches, device)
    monkeypatch.setattr(module, "reads_there", everywhere)
    with patch.object(module, "combine_together", wraps=combine_together) as called:
        found = combined_stretches(parts, stretches, device)
    assert called.call_count == 1
    for a, b in zip(found, usual, strict=True):
        assert a.tobytes() == b.tobytes() and a.dtype == b.dtype


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("sizes", [[1], [0, 1, 0], [40, 44], [3, 0, 170, 299]])
def test_few_groups_are_compared_with_each_other(
    sizes: list[int], interpreted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that one rank has, several, or all; extremes among them; in order; no words, or some of each kind."""
    monkeypatch.setattr("gquery.kernels.builtin.define.is_interpreted", lambda kernel, rows: interpreted)
    rng = np.random.default_rng(len(sizes))
    keys = [rng.choice(np.r_[np.arange(-150, 150), -(2**63), 2**63 - 1], n, replace=False) for n in sizes]
    for kinds in ([], WORDS):
        words = [[made(rng, "f8" if w == "f64" else "i8", n) for n in sizes] for _, w in kinds]
        found, totals = merge_few(keys, words, [op for op, _ in kinds], cpu_device())
        assert found.tolist() == sorted({k for array in keys for k in array.tolist()})
        for (op, _), of_ranks, total in zip(kinds, words, totals, strict=True):
            flat, at = np.concatenate(of_ranks), np.concatenate(keys)
            assert total.tobytes() == b"".join(reduce(HOW[op], flat[at == k]).tobytes() for k in found)


WORDS: list[tuple[Op, Literal["i64", "f64"]]] = [
    ("add", "i64"), ("add", "i64"), ("add", "f64"), ("add", "f64"), ("min", "i64"), ("max", "i64"), ("max", "i64"),
    ("add", "f64"),
]  # fmt: skip

TABLES = {
    "t": pa.table(
        {
            "k": [(7 * n) % 23 for n in range(3000)],
            "n": pa.array([None if n % 5 == 0 else n - 900 for n in range(3000)]),
            "w": [2**62 + n for n in range(3000)],
            "f": [n / 8 if n % 7 else -n * 1e9 for n in range(3000)],
        }
    ),
    "u": pa.table({"k": list(range(0, 2000, 3)), "v": list(range(667))}),
    "e": pa.table({"k": pa.array([], pa.int64()), "f": pa.array([], pa.float64())}),
}
MERGED = [
    "SELECT k, sum(n), count(*), min(n), max(w), sum(f), min(f), max(f), bool_or(n > 2000), count(n) FROM t GROUP BY k",
    "SELECT k % 3, sum(f) FROM t WHERE n < -900 GROUP BY ALL",
    "SELECT count(*) FROM t WHERE n NOT IN (SELECT k FROM u)",
    "SELECT t.n, u.v FROM t FULL JOIN u ON t.n = u.k",
    "SELECT DISTINCT k FROM t",
]
OTHERS = [
    "SELECT sum(n), avg(f), min(w), max(w), count(*), stddev(f) FROM t",
    "SELECT sum(f), count(*), min(k), max(k) FROM e",
    "SELECT k, count(*) FROM e GROUP BY k",
    "SELECT count(*), sum(v), sum(n) FROM t JOIN u ON t.n = u.k",
    "SELECT count(*) FROM t WHERE n IN (SELECT k FROM u WHERE v % 2 = 0)",
    "SELECT w % 7 * 1000003 AS a, sum(f), count(*), min(n), max(w), avg(n) FROM t GROUP BY a",
    "SELECT w % 3 * 10000000019 AS a, k % 4 AS b, bool_and(n > 0), sum(w % 10) FROM t GROUP BY a, b",
]
"""Of which a CPU combines nothing by slots."""
FEW = [
    "SELECT DISTINCT n // 100 FROM t",
    "SELECT m, count(*) FROM (SELECT k, count(n) AS m FROM t GROUP BY k) GROUP BY m ORDER BY m",
    MERGED[0],
]


@pytest.mark.parametrize("sql", [*MERGED, *OTHERS])
def test_queries_of_ranks(sql: str, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Ranks combine what others hand over as GPUs do."""
    called: list[int] = []

    def noted(pieces: Sequence[Combination], device: Device) -> None:
        called.append(len(pieces))
        combine_together(pieces, device)

    tune(tuning.distribution, merged_slot_words=1 << 13)
    tune(tuning.accumulators, few_merged=0)
    monkeypatch.setattr(module, "reads_there", everywhere)
    monkeypatch.setattr(module, "combine_together", noted)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(1, 3))
    assert called or sql in OTHERS


@pytest.mark.parametrize("most", [16, 512])
@pytest.mark.parametrize("sql", [*FEW, *MERGED[1:], *OTHERS])
def test_few_groups_of_ranks(sql: str, most: int, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    called: list[int] = []

    def noted(keys: Sequence[Any], words: Any, ops: Any, device: Device) -> Any:
        found, totals = merge_few(keys, words, ops, device)
        called.append(found.size)
        return found, totals

    tune(tuning.distribution, merged_slot_words=0, merged_ps=0.0)
    tune(tuning.accumulators, few_merged=most)
    monkeypatch.setattr(module, "reads_there", everywhere)
    monkeypatch.setattr(combining, "merge_few", noted)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(1, 3))
    assert called or sql not in FEW or most == 16
    assert max(called, default=0) <= most
