"""Array functions that are kernels on a GPU and NumPy's on the host: both against NumPy, the kernels interpreted and compiled."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pytest

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.expression.types import BIGINT, INT64, Bounds, PhysicalType
from gquery.kernels.builtin import (
    counted_order,
    define,
    elements,
    extremes,
    gathers,
    grouping,
    order,
    order_bits,
    prefix_sums,
    reach,
    scans,
    wide_arrays,
)
from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.targets.base import arguments_of
from tests.support.lanes import Lanes
from tests.support.tuned import Tune

MODULES = (counted_order, elements, extremes, gathers, grouping, order, order_bits, prefix_sums, reach, scans, wide_arrays)
SIZES = [0, 1, 2, 31, 33, 1000]
EXTREME = [INT64.low, -(2**53) - 1, -1, 0, 1, 2**32, 2**53 + 1, INT64.high]
DOUBLES = [-np.inf, -1.5, -5e-324, -0.0, 0.0, 1e308, np.inf, np.nan, -np.nan, 2.0**53]


def _of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """NumPy's arrays are said to be those of a GPU, but where a kernel is launched."""
    arrays: Any = types.ModuleType("arrays")
    vars(arrays).update({n: getattr(np, n) for n in ("empty", "zeros", "ascontiguousarray", "copyto", "lib")})
    for module in MODULES:
        monkeypatch.setattr(module, "namespace", lambda array: arrays)

    def namespace(array: Any) -> Any:
        return arrays if sys._getframe(1).f_code.co_name == "fill" else np

    monkeypatch.setattr(define, "namespace", namespace)
    return arrays


@pytest.fixture(params=["numpy", "interpreted", "compiled", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> Iterator[Device]:
    """Where arrays lie; for kernels on the host, which is said to be a GPU."""
    if request.param in ("interpreted", "compiled"):
        _of_a_gpu(monkeypatch)
        rows = 0 if request.param == "compiled" else 1 << 30
        tune(tuning.built_in_kernels, interpreted_rows=rows, compiled_after=1 << 30)
    made = Device("cuda") if request.param == "cuda" else cpu_device()
    with made.activate():
        yield made


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kernels are run by lanes that vote."""
    made = Lanes()

    def played(builtin: BuiltinKernel, rows: int, like: Any, *values: Any, **_: Any) -> None:
        made.run(made.compile(builtin.kernel), 0, rows, arguments_of(made, builtin.kernel, values))

    arrays = _of_a_gpu(monkeypatch)
    for module in (counted_order, order_bits):
        monkeypatch.setattr(module, "launch", played)
    return arrays


def _some(size: int, dtype: str) -> Any:
    if dtype.startswith("f"):
        with np.errstate(over="ignore"):
            return np.resize(np.array(DOUBLES), size).astype(dtype)
    return np.resize(np.array(EXTREME), size).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "uint64", "float64"])
def test_strided_values(size: int, dtype: str, device: Device) -> None:
    values = _some(size, dtype)
    placed = device.from_host(values)
    for step in (1, 2, 3, -1, -2):
        made = elements.contiguous(placed[::step])
        assert made.flags.c_contiguous and made.dtype == values.dtype
        assert np.array_equal(device.to_host(made), values[::step], equal_nan=dtype.startswith("f"))
        rows = np.arange(made.size)[::-2].astype(np.uint32)
        found = gathers.gather(placed[::step], device.from_host(np.arange(made.size).astype(np.uint32))[::-2])
        assert np.array_equal(device.to_host(found), values[::step][rows], equal_nan=dtype.startswith("f"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("source", "wanted"),
    [("float32", "float64"), ("float64", "float32"), ("float64", "float64"), ("uint64", "float64"), ("int16", "float64"),
     ("int64", "float64"), ("bool", "float64")],
)  # fmt: skip
def test_numbers_as_floats(size: int, source: str, wanted: str, device: Device) -> None:
    values = _some(size, source)
    with np.errstate(over="ignore"):
        want = values.astype(wanted)
        made = elements.converted(device.from_host(values), wanted)
        elements.store(device.from_host(values), room := device.empty(size, wanted))
    assert made.dtype == wanted and np.array_equal(device.to_host(made), want, equal_nan=True)
    assert np.array_equal(device.to_host(room), want, equal_nan=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_one_value_and_clearing(size: int, dtype: str, device: Device) -> None:
    made = device.empty(size, dtype)
    ends = [0, 1] if dtype == "bool" else DOUBLES if dtype.startswith("f") else [0, np.iinfo(dtype).min, np.iinfo(dtype).max]
    for value in ends:
        with np.errstate(over="ignore"):
            define.fill(made, float(value) if dtype.startswith("f") else int(value))
            want = np.full(size, value, dtype)
        assert device.to_host(made).tobytes() == want.tobytes()
    if dtype[0] in "iu":
        flags = (np.arange(size) % 3 == 0).astype(np.uint8)
        elements.clear_others(made, device.from_host(flags))
        assert np.array_equal(device.to_host(made), want * flags)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("source", ["int32", "int64"])
@pytest.mark.parametrize("wanted", ["int32", "int64"])
def test_added(size: int, source: str, wanted: str, device: Device) -> None:
    values = np.arange(size).astype(source)
    assert np.array_equal(device.to_host(elements.added(device.from_host(values), -3)), values - 3)
    elements.store_added(device.from_host(values), 70, made := device.empty(size, wanted))
    assert made.dtype == wanted and np.array_equal(device.to_host(made), values + 70)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_order_of_floats(size: int, dtype: str, device: Device) -> None:
    values = _some(size, dtype)
    made = wide_arrays.f64_order(device.from_host(values))
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    want = np.where(np.isnan(values), 0x7FF8000000000000, bits ^ ((bits >> 63) & INT64.high))
    assert made.dtype == np.int64 and np.array_equal(device.to_host(made), want)
    again = device.to_host(wide_arrays.f64_unorder(made))
    assert again.dtype == np.float64 and np.array_equal(again, values.astype(np.float64), equal_nan=True)
    assert not np.signbit(again[again == 0]).any()


def test_whole_doubles(device: Device) -> None:
    wanted = [0, 1, -1, 12, -12, 2**53, -(2**53), 2**63, -(2**63), 2**64, -(2**64), 2**64 + 2**12, 3 * 2**70, -(2**126), 2**126]
    for part in (wanted, wanted[:1], []):
        made = wide_arrays.i128_from_f64(device.from_host(np.array(part, np.float64)))
        assert made.shape == (len(part), 2)
        found = [(high << 64) + (low & (2**64 - 1)) for low, high in device.to_host(made).tolist()]
        assert found == part
    made = wide_arrays.i128_from_f64(device.from_host(np.array([-0.0])))
    assert device.to_host(made).tolist() == [[0, 0]]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 31, 64])
@pytest.mark.parametrize(
    "physical_type",
    [PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64, PhysicalType.F32, PhysicalType.F64,
     PhysicalType.BOOL],
)  # fmt: skip
def test_reach_trees(size: int, physical_type: PhysicalType, device: Device) -> None:
    data = _some(size, np.dtype(physical_type.numpy).name)
    column = ColumnData(BIGINT, physical_type, size, Buffer(device.from_host(data), device))
    values = reach.ordinals(column, device)
    own = device.to_host(values)
    assert own.dtype == np.int64
    if data.dtype.kind != "f":
        assert np.array_equal(own, data.astype(np.int64))
    tree, leaves = reach.reach_tree(values)
    found = device.to_host(tree)
    assert leaves == 1 << size.bit_length() and found.size == 2 * leaves
    assert found[leaves:].tolist() == [*own.tolist(), *[INT64.low] * (leaves - size)]
    assert all(found[n] == max(found[2 * n], found[2 * n + 1]) for n in range(1, leaves)) and found[0] == INT64.low


Op = Literal["add", "min", "max", "or"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("op", "dtype", "combine"),
    [("add", "int64", np.add), ("add", "float64", np.add), ("min", "int64", np.minimum), ("max", "int64", np.maximum),
     ("max", "uint8", np.maximum), ("max", "bool", np.maximum), ("or", "bool", np.bitwise_or), ("or", "uint8", np.bitwise_or),
     ("or", "uint32", np.bitwise_or), ("or", "uint64", np.bitwise_or), ("or", "int64", np.bitwise_or),
     ("or", "uint16", np.bitwise_or), ("add", "uint32", np.add), ("max", "int16", np.maximum), ("min", "uint32", np.minimum)],
)  # fmt: skip
def test_combined_slots(size: int, op: Op, dtype: str, combine: Callable[..., Any], device: Device) -> None:
    values = _some(size, dtype)
    others = np.roll(values, 3)
    with np.errstate(all="ignore"):
        want = combine(values, others)
        grouping.combine_into(total := device.initialized(values), device.from_host(others), op)
    assert total.dtype == want.dtype and np.array_equal(device.to_host(total), want, equal_nan=dtype.startswith("f"))


@pytest.mark.parametrize("row", ["uint32", "int64", "int16"])
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_accumulated_slots(row: str, op: Literal["add", "min", "max"], device: Device) -> None:
    slots, values = np.array([3, 0, 3, 3, 1, 0] * 9).astype(row), _some(54, "int64") // 64
    want = np.array([7, 5, 3, 1])
    total = device.initialized(want)
    {"add": np.add, "min": np.minimum, "max": np.maximum}[op].at(want, slots, values)
    grouping.accumulate_at(total, device.from_host(slots), device.from_host(values), op)
    assert np.array_equal(device.to_host(total), want)


def test_arrays_one_after_another(device: Device) -> None:
    parts = [np.arange(n, dtype=np.int32) for n in (5, 0, 9)] + [np.array([-7], np.int32)]
    for dtype in (None, np.dtype(np.int64), np.dtype(np.float64)):
        placed = [device.from_host(p) for p in parts]
        made = gathers.concatenated([*placed[:2], placed[2][::2], placed[3]], dtype)
        assert device.to_host(made).tolist() == np.concatenate([*parts[:2], parts[2][::2], parts[3]]).tolist()
        assert made.dtype == (np.int32 if dtype is None else dtype)


def test_rows_that_are_not_there(device: Device) -> None:
    """Are NULL, as are those that were."""
    data, validity = np.arange(40), (np.arange(40) % 4 != 0).astype(np.uint8)
    rows, there = np.arange(39, -1, -1).astype(np.uint32), (np.arange(40) % 3 != 0).astype(np.uint8)
    for own in (None, validity):
        column = ColumnData(BIGINT, PhysicalType.I64, 40, Buffer(data, cpu_device()), None if own is None else Buffer(own))
        made = gathers.take(column, device.from_host(rows), device, there=device.from_host(there))
        want = there if own is None else there * own[rows]
        assert made.validity is not None and device.to_host(made.validity.on(device)).tolist() == want.tolist()
        assert device.to_host(made.data.on(device)).tolist() == (data[rows] * want).tolist()


@pytest.mark.parametrize("physical_type", [PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64])
def test_widened(physical_type: PhysicalType, device: Device) -> None:
    for size in SIZES:
        values = _some(size, np.dtype(physical_type.numpy).name)
        wide_arrays.widen(device.from_host(values), made := device.empty(2 * size, np.int64))
        assert device.to_host(made).tolist() == [w for v in values.tolist() for w in (v, v >> 63)]


@pytest.mark.parametrize("size", SIZES)
def test_words_without_a_sign(size: int, device: Device) -> None:
    values = _some(size, "uint64")
    made = wide_arrays.unsigned_pairs(device.from_host(values))
    assert [low % 2**64 + (high << 64) for low, high in device.to_host(made).reshape(-1, 2).tolist()] == values.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_decimals_as_floats(size: int, device: Device) -> None:
    for dtype in ("int8", "int16", "int32", "int64"):
        values = _some(size, dtype)
        made = wide_arrays.f64_from_decimals(device.from_host(values), 1e3)
        assert made.dtype == np.float64 and np.array_equal(device.to_host(made), values / 1e3)
    words = _some(2 * size, "int64")
    want = (words[1::2] * 2.0**64 + words[::2].view(np.uint64)) / 100.0
    made = wide_arrays.f64_from_wide_decimals(device.from_host(words), 100.0)
    assert made.dtype == np.float64 and np.array_equal(device.to_host(made), want)


@pytest.mark.parametrize("size", SIZES)
def test_numbers_of_several_arrays(size: int, device: Device) -> None:
    """NULLs may have any number under them."""
    starts, r = np.array([5, -(2**32), 7 << 32]), np.random.default_rng(size)
    arrays, rows = r.integers(0, 3, size), r.integers(0, 2**32, size)
    values = (arrays << 32) + rows
    values[::5] = np.resize([-1, 3 << 32, INT64.low, INT64.high], values[::5].size)
    made = device.to_host(elements.renumber(device.from_host(values), device.from_host(starts), 32))
    meant = np.arange(size) % 5 != 0
    assert made.dtype == np.int64 and np.array_equal(made[meant], (values + starts[arrays])[meant])


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
@pytest.mark.parametrize("size", [0, 1, 31, 200])
@pytest.mark.parametrize("aligned", [1, 32])
def test_places_in_a_selection(aligned: int, size: int, dtype: str, device: Device) -> None:
    selection = np.sort(np.random.default_rng(size).choice(10 * size + 1, size, replace=False)).astype(dtype)
    rows = [0, 1, 5 * size, 10 * size, 10 * size + 9]
    places, first_rows = scans.places_in_selection(device.from_host(selection), rows, aligned, device)
    want = [int(n) // aligned * aligned for n in np.searchsorted(selection, rows)]
    assert places == want
    assert first_rows == ([int(selection[min(n, size - 1)]) for n in want] if size else rows)
    assert scans.places_in_selection(device.from_host(selection), [], aligned, device) == ([], [])


@pytest.mark.parametrize("size", [1, 2, 33, 500])
def test_places_without_those_before(size: int, device: Device) -> None:
    places = np.random.default_rng(size).permutation(size).astype(np.uint32)
    for before, rows in ((0, size), (1, max(size - 2, 0)), (size // 2, 1), (size, 0)):
        moved, flags = map(device.to_host, scans.moved_within(device.from_host(places), before, rows))
        want = (places >= before) & (places.astype(np.int64) < before + rows)
        assert flags.dtype == np.uint8 and flags.tolist() == want.tolist()
        assert moved.dtype == np.uint32 and moved[want].tolist() == (places[want] - before).tolist()


@pytest.mark.parametrize("size", [1, 31, 32, 33, 150])
def test_bits_of_candidates(size: int, lanes: Any) -> None:
    values = np.random.default_rng(size).integers(0, 2**64, size, np.uint64)
    values[size // 2 :: 3] = 2**64 - 1
    for bound in (values[0], np.uint64(0), np.uint64(2**63), np.uint64(2**64 - 2), np.uint64(2**64 - 1)):
        bits = counted_order.candidate_bits(values, np.array([bound])[0])
        found = np.unpackbits(bits.view(np.uint8), count=size, bitorder="little")
        assert found.tolist() == ((values <= bound) & (values != np.uint64(2**64 - 1))).tolist()


@pytest.mark.parametrize("size", [2, 31, 32, 33, 150])
def test_ties_of_several_numbers(size: int, lanes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_of_bits(marks: Any) -> Any:
        return np.unpackbits(marks.view(np.uint8), bitorder="little").nonzero()[0]

    monkeypatch.setattr(order_bits, "rows_of_bits", rows_of_bits)
    r = np.random.default_rng(size)
    first, second = np.sort(r.integers(0, size // 2 + 1, size)).astype(np.uint64), r.integers(0, 2, size).astype(np.uint64)
    for groups in ([(first, 0), (second, 0)], [(first << np.uint64(4), 4), (second, 1)], [(first, 0), (second, 0), (first, 2)]):
        rows = [tuple(int(w[n]) >> bits for w, bits in groups) for n in range(size)]
        want = [n for n in range(size) if (n and rows[n] == rows[n - 1]) or rows[n] in rows[n + 1 : n + 2]]
        assert order_bits.tied(groups).tolist() == want


@pytest.mark.parametrize("size", [2, 3, 40, 700])
def test_places_in_runs(size: int, device: Device) -> None:
    """Words of 64 bits, many of them equal, in any order of their runs; rows that are equal stay in theirs."""
    r = np.random.default_rng(size)
    values = r.choice(r.integers(0, 2**64, size, np.uint64), size)
    values[::7] = 2**64 - 1
    runs = np.sort(r.integers(0, size, size)).astype(np.uint64)
    for given in (runs, runs * np.uint64(0)):
        found = order_bits.places_in_runs(device.from_host(values), device.from_host(given), (size - 1).bit_length())
        assert found.dtype == np.uint32 and device.to_host(found).tolist() == np.lexsort((values, given)).tolist()


def test_all_rows_equal(device: Device) -> None:
    from gquery.kernels.readback import Count

    key = order.Integers(device.from_host(np.zeros(40, np.int64)), Bounds(0, 0))
    rows = counted_order.counted_order([key], Count(40))
    assert rows is not None and device.to_host(rows).tolist() == list(range(40))
