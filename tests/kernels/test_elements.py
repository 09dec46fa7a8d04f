"""Array functions element by element: NumPy's, and the kernels that a GPU runs, which the interpreter runs here, too."""

from __future__ import annotations

import itertools
import types
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery.columns.import_arrow import import_table
from gquery.columns.table import Dictionary
from gquery.device.device import Device, cpu_device
from gquery.kernels.builtin import elements, gathers, order, order_bits
from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.dictionaries import text_of
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from tests.support.lanes import Lanes

HOW = ["numpy", "kernels", pytest.param("cuda", marks=pytest.mark.cuda)]


def launched(builtin: BuiltinKernel, rows: int, like: Any, *values: Any, **_: Any) -> None:
    """By the interpreter, wherever it would be."""
    target = get_target("python")
    target.run(target.compile(builtin.kernel), 0, rows, arguments_of(target, builtin.kernel, values))


@pytest.fixture(params=HOW)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """Where arrays lie; for kernels on the host, which is said to be a GPU."""
    if request.param == "kernels":
        arrays: Any = types.ModuleType("arrays")
        vars(arrays).update({n: getattr(np, n) for n in ("empty", "zeros", "cumsum", "ascontiguousarray", "lib")})
        for module in (elements, gathers, order_bits):
            monkeypatch.setattr(module, "namespace", lambda array: arrays)
            monkeypatch.setattr(module, "launch", launched)
    return Device("cuda") if request.param == "cuda" else cpu_device()


INTEGERS = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("wanted", [n for n in INTEGERS if n != "bool"])
def test_converted(device: Device, wanted: str) -> None:
    for dtype in INTEGERS:
        bits = np.random.default_rng(1).integers(0, 2**64, 71, np.uint64)
        values = bits % 2 == 1 if dtype == "bool" else bits.astype(dtype)
        for part in (values, values[:0], values[::3]):
            made = elements.converted(device.from_host(part), wanted)
            assert made.dtype == wanted and np.array_equal(device.to_host(made), part.astype(wanted))
    again = elements.converted(given := device.from_host(np.arange(3)), np.int64)
    assert again is not given


def test_row_numbers_and_puts(device: Device) -> None:
    xp = vars(elements)["namespace"](device.from_host(np.empty(1)))
    assert device.to_host(elements.row_numbers(xp, 70)).tolist() == list(range(70))
    rows = np.random.default_rng(2).permutation(90)[:70].astype(np.uint32)
    for dtype in (np.bool_, np.uint8, np.uint32, np.int64, np.uint64):
        values, want = np.arange(70).astype(dtype), np.zeros(90, dtype)
        want[rows] = values
        made = device.from_host(np.zeros(90, dtype))
        elements.put(made, device.from_host(rows), device.from_host(values))
        assert np.array_equal(device.to_host(made), want)


def test_strides_and_differences(device: Device) -> None:
    flags = np.random.default_rng(3).random(70) < 0.4
    values = np.random.default_rng(4).integers(-(2**62), 2**62, 70)
    elements.subtract(made := device.from_host(values.copy()), device.from_host(values[::-1].copy()))
    assert np.array_equal(device.to_host(made), values - values[::-1])
    for stride in (1, 2, 7):
        assert np.array_equal(device.to_host(elements.every(device.from_host(values), stride)), values[::stride])
    for offsets in (np.cumsum(flags).astype(np.int32), values):
        assert np.array_equal(device.to_host(elements.differences(device.from_host(offsets))), np.diff(offsets))
    assert elements.differences(device.from_host(values[:1])).size == 0


def test_words_and_flags(device: Device) -> None:
    words = np.random.default_rng(5).integers(0, 2**64, 70, np.uint64) >> np.uint64(8)
    words[20:30] = words[20]
    words[25] ^= np.uint64(3)
    more = np.arange(70).astype(np.uint64)
    elements.or_shifted(made := device.from_host(words.copy()), device.from_host(more), 57)
    assert np.array_equal(device.to_host(made), words | more << np.uint64(57))
    for bound in (words[3], words.max(), np.uint64(0), np.uint64(2**64 - 1)):
        flags = elements.are_at_most(device.from_host(words), device.from_host(np.array([bound]))[0])
        assert flags.dtype == np.bool_ and np.array_equal(device.to_host(flags), words <= bound)
    counts = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    assert device.to_host(elements.are_positive(device.from_host(counts))).tolist() == [0, 0, 0, 1, 1]
    elements.clear_others(made := device.from_host(counts.copy()), device.from_host(np.array([1, 0, 1, 0, 1], np.uint8)))
    assert device.to_host(made).tolist() == [-(2**63), 0, 0, 0, 2**63 - 1]
    for bits, groups in ((0, 1), (2, 1), (2, 2)):
        given = [(device.from_host(words), bits), (device.from_host(more >> np.uint64(4)), 0)][:groups]
        want = np.diff(words >> np.uint64(bits)) != 0
        if groups == 2:
            want |= np.diff(more >> np.uint64(4)) != 0
        assert np.array_equal(device.to_host(order_bits.changed_words(given)), want)
    assert order_bits.changed_words([(device.from_host(words[:1]), 0)]).size == 0


def test_texts(device: Device) -> None:
    strings = [f"{'日本語' * (n % 3)}{n}" if n % 7 else "" for n in range(60)]
    dictionary = import_table(pa.table({"s": strings})).columns[0].dictionary
    assert isinstance(dictionary, Dictionary)
    column = text_of(dictionary)
    want = [s.encode() for s in sorted(set(strings))]
    rows = np.random.default_rng(6).integers(0, len(want), 25)
    for given in (None, rows.astype(np.uint32), rows, rows.astype(np.int32)):
        views = gathers.string_views(column, device, None if given is None else device.from_host(given))
        offsets, characters = map(device.to_host, gathers.gather_strings(views))
        found = [characters[a:b].tobytes() for a, b in itertools.pairwise(offsets)]
        assert found == (want if given is None else [want[r] for r in rows])
    lengths = gathers.text_lengths(column, device.from_host(rows.astype(np.uint32)), device)
    assert device.to_host(lengths).tolist() == [len(want[r]) for r in rows]


@pytest.mark.parametrize("chunk", [2, 31, 33, 100])
def test_least_of_chunks(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    lanes = Lanes()

    def played(builtin: BuiltinKernel, rows: int, like: Any, *values: Any) -> None:
        lanes.run(lanes.compile(builtin.kernel), 0, rows, arguments_of(lanes, builtin.kernel, values))

    monkeypatch.setattr(order_bits, "launch", played)
    words = np.random.default_rng(chunk).integers(0, 2**64, 7 * chunk + 1, np.uint64)
    words[:chunk] = 2**64 - 1
    found = order_bits.least_of_chunks(words, chunk)
    assert found.tolist() == words[:-1].reshape(-1, chunk).min(axis=1).tolist()


@pytest.mark.parametrize("dtypes", [("int16",), ("int8", "uint8", "int64"), ("int64", "int32"), ("uint64", "bool")])
def test_sorts_go_the_way_of_a_gpu(dtypes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """By lanes that are played, with ties: the order, and where keys change."""
    arrays: Any = types.ModuleType("arrays")
    vars(arrays).update({n: getattr(np, n) for n in ("empty", "zeros", "cumsum", "ascontiguousarray", "lib")})
    lanes = Lanes()

    def played(builtin: BuiltinKernel, rows: int, like: Any, *values: Any, **_: Any) -> None:
        lanes.run(lanes.compile(builtin.kernel), 0, rows, arguments_of(lanes, builtin.kernel, values))

    def rows_of_bits(marks: Any) -> Any:
        return np.unpackbits(marks.view(np.uint8), bitorder="little").nonzero()[0].astype(np.uint32)

    for module in (elements, gathers, order, order_bits):
        monkeypatch.setattr(module, "namespace", lambda array: arrays)
    for module in (elements, gathers, order_bits):
        monkeypatch.setattr(module, "launch", played)
    monkeypatch.setattr(order, "fill", lambda values, value: values.fill(value))
    monkeypatch.setattr(order_bits, "rows_of_bits", rows_of_bits)
    r = np.random.default_rng(7)
    for rows in (1, 9, 150):
        columns = [r.integers(-3, 3, rows).astype(dtype) for dtype in dtypes]
        columns[0] = columns[0] * (2**60 if dtypes[0] in ("int64", "uint64") else 1)
        found, starts = order.sort_starts([order.Integers(c, None, descending=True) for c in columns])
        assert found.tolist() == np.lexsort([-c.astype(object) for c in columns[::-1]]).tolist()
        sorted_rows = [tuple(c[k] for c in columns) for k in found]
        assert starts.tolist() == [n == 0 or sorted_rows[n] != sorted_rows[n - 1] for n in range(rows)]
