"""Whole-array operations on NumPy and CuPy arrays, against NumPy and Python integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns.import_arrow import import_table
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.errors import OperationalError
from gquery.expression.facts import MOST_ROW_IDS, NOT_IN
from gquery.expression.types import VARCHAR, PhysicalType
from gquery.kernels.builtin import define, gathers, grouping, order, scans, wide_arrays
from tests.support.tuned import Tune

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SIZES = [0, 1, 10, 5_000, 200_000]


def on(device: str, array: Any) -> Any:
    return place(device).from_host(array)


def place(device: str) -> Device:
    return cpu_device() if device == "cpu" else Device("cuda")


def host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", SIZES)
def test_group_rows(device: str, rows: int) -> None:
    r = np.random.default_rng(rows)
    size = rows // 3 + 1
    slots = r.integers(0, size, rows).astype(np.uint32)
    slots[r.random(rows) < 0.2] = NOT_IN
    starts, found = map(host, grouping.group_rows(on(device, slots), size))
    kept = slots[slots != NOT_IN]
    assert (np.diff(starts) == np.bincount(kept, minlength=size)).all()
    assert (found == np.argsort(slots, kind="stable")[: kept.size]).all()
    for quick, slow in zip(
        grouping.rows_by_sorting(slots, np.zeros(size + 1, np.uint32)), (starts, found), strict=True
    ):
        assert np.array_equal(quick, slow)


@pytest.mark.parametrize("device", DEVICES)
def test_group_rows_of_clustered_keys(device: str) -> None:
    rng = np.random.default_rng(3)
    slots = np.sort(rng.integers(0, 700, 5_000)).astype(np.uint32)
    slots[rng.random(slots.size) < 0.3] = NOT_IN
    for quick, slow in zip(
        grouping.group_rows(on(device, slots), 700, is_sorted=True),
        grouping.group_rows(on(device, slots), 700),
        strict=True,
    ):
        assert np.array_equal(host(quick), host(slow))
    slots = np.sort(slots[slots != NOT_IN])
    starts, places = grouping.group_rows(on(device, slots), 700, is_sorted=True)
    assert places is None, "every row is at its place"
    assert np.array_equal(host(starts), np.searchsorted(slots, np.arange(701)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_starts_of_sorted_keys(dtype: str, rows: int) -> None:
    """Gaps before the first key, between keys, behind the last one; also by threads, and where the first key is the least."""
    base = 5 if dtype.startswith("u") else -20
    for first in (base, base + 7):
        keys = np.sort(np.random.default_rng(rows).integers(first, 90, rows)).astype(dtype)
        keys[:1] = first
        want = np.searchsorted(keys.astype(np.int64), np.arange(base, base + 111))
        for workers in (1, 3):
            assert np.array_equal(grouping.starts_of_sorted(keys, base, 110, workers), want)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [0, 1, 2, 300, 70_000])
@pytest.mark.parametrize("widest", [1, 3, 40, 5000])
def test_starts_by_search(widest: int, rows: int, device: str, tune: Tune) -> None:
    """Keys that repeat, gaps up to so wide, before the first and behind the last one too; the first key is the least or not."""
    rows = min(rows, 20_000_000 // widest)  # so that there are few slots
    gaps = np.random.default_rng(rows).integers(0, widest + 1, rows)
    gaps[gaps == widest // 2 + 1] = 0
    for first in (0, 9):
        keys = (np.cumsum(gaps) - 1000 + first).astype(np.int32)
        size = int(keys[-1]) + 1000 + 20 if rows else 20
        want = np.searchsorted(keys, np.arange(-1000, -1000 + size + 1))
        for near in (1, 8):
            tune(tuning.join_layouts, near_slots=near)
            assert np.array_equal(host(grouping.starts_by_search(on(device, keys), -1000, size)), want)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64"])
def test_count(dtype: str, device: str) -> None:
    values = np.random.default_rng(2).integers(0, 2, 70_001).astype(dtype)
    for none in (0, 1):
        counted = scans.count_others(on(device, values), none)
        assert host(counted).tolist() == [int((values != none).sum())] and counted.dtype == np.int64
    assert host(scans.count_others(on(device, values[:0]))).tolist() == [0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_sum(dtype: str, device: str) -> None:
    values = np.random.default_rng(2).integers(0, 2**32, 70_001).astype(dtype)
    total = scans.sum_of(on(device, values))
    assert host(total).tolist() == [int(values.sum(dtype=np.int64))] and total.dtype == np.int64
    assert host(scans.sum_of(on(device, values[:0]))).tolist() == [0]


@pytest.mark.parametrize("device", DEVICES)
def test_longest_range(device: str) -> None:
    lengths = np.random.default_rng(4).integers(0, 50, 70_001)
    lengths[3] = 77
    starts = np.cumsum([0, *lengths]).astype(np.uint32)
    assert grouping.longest_range(on(device, starts)) == 77
    assert [grouping.longest_range(on(device, starts[:n])) for n in (0, 1, 2)] == [0, 0, lengths[0]]
    far = np.array([5, 2**32 - 1], np.uint32)
    assert grouping.longest_range(on(device, far)) == 2**32 - 6


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_fill(dtype: str, device: str) -> None:
    for size in (0, 1, 70_001):
        made = on(device, np.zeros(size, dtype))
        define.fill(made, NOT_IN)
        assert (host(made) == NOT_IN).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", ["uint32", "int64", "int32"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "uint32", "int64", "float64"])
def test_gather(dtype: str, row: str, device: str) -> None:
    r = np.random.default_rng(3)
    values, rows = r.integers(0, 200, 999).astype(dtype), r.integers(0, 999, 5_000).astype(row)
    taken = gathers.gather(on(device, values), on(device, rows))
    assert taken.dtype == dtype
    assert np.array_equal(host(taken), values[rows])
    assert host(gathers.gather(on(device, values), on(device, rows[:0]))).size == 0
    every_other = gathers.gather(on(device, values)[::2], on(device, rows)[::2] % 500)
    assert np.array_equal(host(every_other), values[::2][rows[::2] % 500])


@pytest.mark.parametrize("device", DEVICES)
def test_scan_and_compact(device: str) -> None:
    counts = np.array([3, 0, 2, 5], np.uint32)
    starts, count = scans.exclusive_scan(on(device, counts))
    assert (host(starts).tolist(), count.bound) == ([0, 3, 3, 5], 10)
    assert scans.exclusive_scan(on(device, counts[:0]))[1].bound == 0
    assert host(scans.compact(on(device, np.array([0, 1, 1, 0, 1], np.uint8)))).tolist() == [1, 2, 4]
    for flags in (np.array([0, -3, 2, 0, 255 - 2**32]), np.array([0, 7, 1, 0, 255], np.uint8), np.arange(5) % 3 > 0):
        assert host(scans.compact(on(device, flags))).tolist() == np.flatnonzero(flags).tolist()
    rows = on(device, np.array([2, 0], np.uint32))
    assert host(gathers.gather(on(device, np.arange(6)), rows, 2)).tolist() == [4, 5, 0, 1]


@pytest.mark.parametrize("device", [*DEVICES, "kernels"])
def test_128_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``kernels``: those of a GPU, interpreted."""
    if device == "kernels":
        device = "cpu"
        monkeypatch.setattr(wide_arrays, "namespace", lambda array: SimpleNamespace(**vars(np)))
    values = [
        0,
        1,
        -1,
        2**127 - 1,
        -(2**127),
        2**64,
        -(2**64),
        12345678901234567890123,
        -(2**63),
        10**38 - 1,
        1 - 10**38,
    ]
    sum_words = [np.array([v >> 96 if k == 3 else v >> 32 * k & 0xFFFFFFFF for v in values]) for k in range(4)]
    wide = wide_arrays.multiword_to_i128([on(device, x) for x in sum_words])
    assert integers(wide) == values
    sums = wide_arrays.multiword_to_i128([on(device, x * 3) for x in sum_words])
    assert integers(sums) == [max(-(2**127), min(2**127 - 1, 3 * v)) for v in values]
    np.testing.assert_allclose(host(wide_arrays.f64_from_i128(wide)), [float(v) for v in values], rtol=1e-15)
    assert wide_arrays.i128_within(wide, -(2**127), 2**127 - 1)
    assert not wide_arrays.i128_within(wide, -(2**127) + 1, 2**127 - 1)
    assert not wide_arrays.i128_within(wide, -(2**127), 2**127 - 2)
    halves = [-12, 12, -(2**52), 2**53 - 1, -(2**64), 1 - 2**53, -(2**64) - 2**20, 2**126 + 2**80, 2**80 - 2**126, 0]
    assert integers(wide_arrays.i128_from_f64(on(device, np.array(halves, float)))) == halves
    small = np.array([5, -5, 2**62, -(2**63)])
    for bits in (16, 32):
        low, high = map(host, wide_arrays.split_words(on(device, small), bits))
        assert low.min() >= 0 and low.max() < 2**bits and np.array_equal((high << bits) + low, small)
    few = wide_arrays.multiword_to_i128(wide_arrays.split_words(on(device, small), 32))
    assert integers(few) == small.tolist()
    halves_of_words = [np.array([v >> 112 if k == 7 else v >> 16 * k & 0xFFFF for v in values]) for k in range(8)]
    assert integers(wide_arrays.multiword_to_i128([on(device, x) for x in halves_of_words], 16)) == values
    assert integers(wide_arrays.i128_from_i64(on(device, small))) == small.tolist()


def integers(wide: Any) -> list[int]:
    return [int(high) << 64 | int(low) & (2**64 - 1) for low, high in host(wide)]


@pytest.mark.parametrize("device", DEVICES)
def test_order_of_doubles(device: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-300, -5e-324])
    order = wide_arrays.f64_order(on(device, values))
    assert np.array_equal(host(wide_arrays.f64_unorder(order)), values, equal_nan=True)
    assert host(order)[0] == host(order)[1]
    assert (np.argsort(host(order), kind="stable") == np.argsort(values, kind="stable")).all()


def texts(column: ColumnData) -> list[str]:
    offsets, characters = column.data.host, column.characters.host.tobytes() if column.characters else b""
    return [characters[a:b].decode() for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 100, 30_000])
def test_take(device: str, count: int) -> None:
    values = [*(["hello", "", None, "wörld", "x" * 40] * 5), *(f"{i} of many" for i in range(20_000))]
    table = import_table(pa.table({"s": values, "n": list(range(len(values)))}))
    rows = np.random.default_rng(3).integers(0, len(values), count).astype(np.uint32)
    at = place(device)
    strings, numbers = (gathers.take(column, on(device, rows), at) for column in table.columns)
    assert texts(strings) == [values[i] or "" for i in rows]
    assert strings.validity is not None
    assert strings.validity.host.tolist() == [int(values[i] is not None) for i in rows]
    assert numbers.data.host.tolist() == rows.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_views_become_contiguous(device: str) -> None:
    values = [f"value {i}" for i in range(5_000)]
    source = import_table(pa.table({"s": values})).columns[0]
    at = place(device)
    views = gathers.string_views(source, at, on(device, np.arange(0, 5_000, 7, dtype=np.uint32)))
    column = ColumnData(source.dtype, PhysicalType.VIEW, views.size // 2, Buffer(views, at))
    found = gathers.gather_views(column, at)
    assert found.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64)
    assert texts(found) == values[::7]


def test_more_rows_than_row_numbers_have_bits() -> None:
    """A clear error; no array of so many rows is touched."""
    many = np.broadcast_to(np.zeros(1, np.uint8), MOST_ROW_IDS + 1)
    key = order.Integers(many)
    refused: tuple[Callable[[], Any], ...] = (
        lambda: scans.compact(many), lambda: grouping.group_rows(many, 1), lambda: order.sort_order([key]),
        lambda: order.top_k([key], 3),
    )  # fmt: skip
    for call in refused:
        with pytest.raises(OperationalError, match="4294967294 rows"):
            call()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_accumulate_at(device: str, op: Literal["add", "min", "max"]) -> None:
    r = np.random.default_rng(4)
    slots, values = r.integers(0, 50, 3000), r.integers(-(2**62), 2**62, 3000) >> 8
    identity = {"add": 0, "min": 2**63 - 1, "max": -(2**63)}[op]
    total = on(device, np.full(50, identity))
    grouping.accumulate_at(total, on(device, slots), on(device, values), op)
    combine: Any = {"add": np.sum, "min": np.min, "max": np.max}[op]
    assert host(total).tolist() == [combine(values[slots == k]) for k in range(50)]


@pytest.mark.parametrize("device", DEVICES)
def test_accumulate_doubles_at(device: str) -> None:
    r = np.random.default_rng(5)
    slots, values = r.integers(0, 5, 3000), r.random(3000)
    total = on(device, np.zeros(5))
    grouping.accumulate_at(total, on(device, slots), on(device, values), "add")
    np.testing.assert_allclose(host(total), np.bincount(slots, values), rtol=1e-12)


@pytest.mark.parametrize("physical_type", [PhysicalType.STRING32, PhysicalType.STRING64, PhysicalType.VIEW])
@pytest.mark.parametrize("count", [0, 1, 40, 5_000])
def test_take_strings(physical_type: PhysicalType, count: int) -> None:
    """A GPU's way to take strings out of a column, and the host's."""
    values = ["", "a", "wörld", "x" * 40, *(f"{n} of many" for n in range(300))]
    offsets = np.cumsum([0, *(len(s.encode()) for s in values)])
    characters = np.frombuffer("".join(values).encode() + bytes(16), np.uint8)[: offsets[-1]]
    column = ColumnData(VARCHAR, PhysicalType.STRING64, len(values), Buffer(offsets), None, Buffer(characters))
    if physical_type is PhysicalType.STRING32:
        column = replace(column, physical_type=physical_type, data=Buffer(offsets.astype(np.int32)))
    elif physical_type is PhysicalType.VIEW:
        column = replace(
            column,
            physical_type=physical_type,
            data=Buffer(gathers.string_views(column, cpu_device())),
            characters=None,
        )
    rows = np.random.default_rng(count).integers(0, len(values), count).astype(np.uint32)
    found = gathers.take_strings(column, rows, cpu_device())
    for mine, theirs in zip(
        found, gathers.gather_strings(gathers.string_views(column, cpu_device(), rows)), strict=True
    ):
        assert np.array_equal(mine, theirs)
