"""Sorting by rounds of bits, on NumPy and CuPy arrays, against NumPy's lexsort and Python's sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.expression.types import DOUBLE, VARCHAR, Bounds, PhysicalType
from gquery.kernels.builtin import counted_order, define, grouping, order, order_bits, scans, sort_room, text_keys
from gquery.kernels.builtin.order import Integers, Text
from gquery.kernels.kernel import Kernel
from gquery.operators import prefix
from gquery.operators.base import Frame
from gquery.operators.sort_keys import key_parts
from gquery.planner.physical import Pipeline, ReadTable
from tests.kernels.test_whole_arrays import DEVICES, host, on, place
from tests.support.harness import assert_same
from tests.support.lanes import Lanes
from tests.support.tuned import Tune

SIZES = [0, 1, 2, 10, 5_000, 200_000]


def _told_apart_by(keys: list[Any], rows: Any) -> Any:
    """For each place of the rows whether one of the keys is another than at the place before; True for the first."""
    told = np.zeros(rows.size, bool)
    told[:1] = True
    for key in keys:
        told[1:] |= key[rows][1:] != key[rows][:-1]
    return told


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", SIZES)
def test_integers(device: str, rows: int) -> None:
    r = np.random.default_rng(rows)
    narrow, wide = r.integers(-5, 5, rows), r.integers(-(2**62), 2**62, rows)
    days, edges = r.integers(0, 10**4, rows, np.int16), np.where(r.random(rows) < 0.5, -(2**63), 2**63 - 1)
    low = wide & 0xFFFF | 1 << 61  # alike but for the last bits
    for keys in (
        [narrow],
        [narrow, days],
        [narrow, wide],
        [wide, narrow],
        [edges, days],
        [days],
        [low, edges, wide],
        [edges],
    ):
        want = np.lexsort(keys[::-1])
        parts = [Integers(on(device, k)) for k in keys]
        assert np.array_equal(host(order.sort_order(parts)), want)
        for k in (0, 1, 7, rows // 5, rows + 1):
            assert np.array_equal(host(order.top_k(parts, k)), want[:k])
        found, starts = map(host, order.sort_starts(parts))
        assert np.array_equal(found, want)
        told = _told_apart_by(keys, want)
        assert np.array_equal(starts, told)
        for first in range(len(keys) + 1):
            found, starts, firsts = order.sort_partitions([Integers(on(device, k)) for k in keys], first, 2)
            assert np.array_equal(host(found), want) and np.array_equal(host(starts), told)
            if firsts is not None:
                assert np.array_equal(host(firsts), _told_apart_by(keys[:first], want))
        if rows == 5_000 and keys[0] is narrow:
            assert order.sort_partitions([Integers(on(device, k)) for k in keys], 1, 1)[2] is not None
    turned = [Integers(on(device, narrow), Bounds(-5, 4), True), Integers(on(device, days), Bounds(0, 10**4))]
    assert np.array_equal(host(order.sort_order(turned)), np.lexsort((days, -narrow)))
    turned = [Integers(on(device, edges), None, True), Integers(on(device, wide), None, True)]
    assert np.array_equal(host(order.sort_order(turned)), np.lexsort((~wide, ~edges)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("few", [tuning.sorting.round_bits, 60])
def test_every_value_twice(device: str, few: int, tune: Tune) -> None:
    """Ties all the way: runs take the room of bits, so that whole words are sorted within them."""
    tune(tuning.sorting, round_bits=few)
    r = np.random.default_rng(2)
    keys = [r.permutation(np.repeat(r.integers(-(2**62), 2**62, 20_000), 2)) for _ in range(3)]
    keys[1] = keys[0] >> 3  # tells nothing more
    want = np.lexsort(keys[::-1])
    assert np.array_equal(host(order.sort_order([Integers(on(device, k)) for k in keys])), want)


@pytest.mark.parametrize("device", DEVICES)
def test_top_k_with_many_ties(device: str) -> None:
    first, second = np.arange(50_000) % 3, -np.arange(50_000)
    parts = [Integers(on(device, first)), Integers(on(device, second))]
    assert np.array_equal(host(order.top_k(parts, 20)), np.lexsort((second, first))[:20])
    assert np.array_equal(host(order.top_k(parts[:1], 20)), np.arange(20) * 3)


TEXTS: tuple[list[str], ...] = (
    ["", "a", "a\0", "a\0\0", "b", "é", "日本", "\U0001f600", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh\0", "zz"]
    * 7,
    [f"Supplier#{n * 7919 % 3000:09}" for n in range(3000)],
    [f"{'the same beginning ' * 3}{n % 50}{'.' * (n % 9)}" for n in range(2000)],
    ["", "", ""],
    [],
    [f"{'x' * 300}{n % 97}" for n in range(300)],  # longer than is compared word by word
    [["ab", "abc", "abcd" * 5][n % 3] for n in range(5000)],
)


def text_column(values: list[str]) -> ColumnData:
    """Plain text, whatever a dictionary would save."""
    offsets = np.cumsum([0, *(len(s.encode()) for s in values)])
    characters = np.frombuffer("".join(values).encode(), np.uint8)
    return ColumnData(VARCHAR, PhysicalType.STRING64, len(values), Buffer(offsets), None, Buffer(characters))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("values", TEXTS, ids=range(len(TEXTS)))
def test_text(device: str, values: list[str]) -> None:
    column = text_column(values)
    keys = [s.encode() for s in values]
    rows = range(len(keys))
    up, down = Text(column, place(device)), Text(column, place(device), True)
    assert host(order.sort_order([up])).tolist() == sorted(rows, key=lambda n: keys[n])
    want = sorted(rows, key=lambda n: keys[n], reverse=True)  # stable, too
    assert host(order.sort_order([down])).tolist() == want
    other = np.array([hash(k) % 3 for k in keys], np.int64)
    both: list[order.OrderKey] = [Integers(on(device, other)), Text(column, place(device))]
    assert host(order.sort_order(both)).tolist() == sorted(rows, key=lambda n: (other[n], keys[n]))
    both = [Text(column, place(device)), Integers(on(device, np.arange(len(keys))), None, True)]
    want = sorted(rows, key=lambda n: (keys[n], -n))
    assert host(order.sort_order(both)).tolist() == want
    for k in (1, 5, len(keys) // 5):
        assert host(order.top_k(both, k)).tolist() == want[:k]
    found, starts = map(host, order.sort_starts([Text(column, place(device))]))
    sorted_keys = [keys[n] for n in found]
    assert starts.tolist() == [n == 0 or sorted_keys[n] != sorted_keys[n - 1] for n in rows]


@pytest.mark.parametrize("values", TEXTS, ids=range(len(TEXTS)))
def test_words_of_text_by_numpy_and_by_kernel(values: list[str]) -> None:
    column, device = text_column(values), cpu_device()
    assert column.characters is not None
    rows = np.arange(column.length, dtype=np.uint32)
    for n in range(5):
        words = np.empty(column.length, np.uint64)
        at: Any = define.address(column.characters.host)
        kernel = text_keys.WORDS[column.physical_type]
        define.launch(kernel, column.length, words, column.data.host, at, rows, n, words)
        want = [int.from_bytes(s.encode()[8 * n : 8 * n + 8].ljust(8, b"\0"), "big") for s in values]
        assert words.tolist() == want
        assert text_keys.text_words(column, device, n).tolist() == want


def test_order_by_text() -> None:
    r = np.random.default_rng(1)
    words = [f"word {x}" for x in r.integers(0, 5000, 4000)]
    t = pa.table({
        "s": [None if n % 11 == 3 else w for n, w in enumerate(words)], "n": range(4000), "f": r.integers(0, 3, 4000),
    })  # fmt: skip
    for sql in (
        "SELECT s, n FROM t ORDER BY s, n",
        "SELECT s, n FROM t ORDER BY s DESC NULLS LAST, n DESC",
        "SELECT f, s, n FROM t ORDER BY f DESC, s NULLS FIRST, n LIMIT 30 OFFSET 3",
        "SELECT n FROM t ORDER BY substr(s, 3), s, n LIMIT 500",
        "SELECT f, min(s), max(s) FROM t GROUP BY f ORDER BY f",
    ):
        assert_same(sql, {"t": t}, ordered=True)


def test_what_is_sorted_is_not_copied_first() -> None:
    """A GPU's sort reads a table's columns where they lie; whatever else could be written to has columns of its own."""
    connection = gquery.connect(device="cpu").register(
        "t", pa.table({"s": [f"text {n}" for n in range(999)], "k": range(999)})
    )
    materializes, sorts = (s.work for s in connection.program("SELECT s FROM t ORDER BY k", "cuda").stages)
    assert isinstance(materializes, Pipeline)
    assert isinstance(materializes.source, ReadTable)
    columns = materializes.source.source.load(materializes.source.fields).columns
    frame = Frame({s.column.id: c for s, c in zip(materializes.source.columns, columns, strict=True)}, 999)
    gpu = Device("cuda")
    assert prefix.zero_copy(materializes, frame, gpu, False, [sorts]) == frame
    assert prefix.zero_copy(materializes, frame, gpu, False, [sorts, materializes]) is None
    assert prefix.zero_copy(materializes, frame, gpu, False) is None
    assert prefix.zero_copy(materializes, frame, gpu, True, [sorts]) is None


@pytest.mark.parametrize("rows", [1, 2, 33, 500])
@pytest.mark.parametrize("bits", [0, 3, 9])
def test_kernels_of_a_round(rows: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU does around each sort, on lanes, and what NumPy does."""
    lanes = Lanes()
    r = np.random.default_rng(rows)
    values = r.integers(0, 2**62, rows).astype(np.uint64) >> np.uint64(50)

    def run(kernel: Kernel, values: Any, bits: int, made: Any) -> Any:
        arguments = [lanes.argument(p, v) for p, v in zip(kernel.parameters, (values, bits, made), strict=True)]
        lanes.run(lanes.compile(kernel), 0, rows, arguments)
        return made

    words = order_bits.with_places(values, bits)
    assert np.array_equal(run(order_bits.PLACED.kernel, values, bits, np.empty(rows, np.uint64)), words)
    words.sort()
    assert np.array_equal(
        run(order_bits.PLACES.kernel, words, 2**bits - 1, np.empty(rows, np.uint32)),
        order_bits.places_of(words, bits),
    )
    marks = run(order_bits.TIED.kernel, words, bits, np.empty(-(-rows // 32), np.uint32))
    assert np.array_equal(scans.rows_of_bits(marks), order_bits.tied([(words, bits)]))


@pytest.mark.parametrize("descending", [False, True])
def test_kernels_of_a_part(descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = Lanes()
    data = np.random.default_rng(4).integers(-(2**62), 2**62, 200)
    part = order.Part(lambda rows: data, Bounds(int(data.min()), int(data.max())), descending)

    def run(kernel: Kernel, *values: Any) -> None:
        arguments = [lanes.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
        lanes.run(lanes.compile(kernel), 0, data.size, arguments)

    flip, low = (-1, ~part.bounds.high) if descending else (0, part.bounds.low)
    top, both = np.empty(200, np.uint64), np.empty(200, np.uint64)
    run(order_bits.FIRST_BITS["i64"].kernel, data, flip, low, part.bits - 9, 2**9 - 1, top)
    assert np.array_equal(top, part.append(None, None, part.bits - 9, 9))
    run(order_bits.NEXT_BITS["i64"].kernel, data, top, flip, low, 5, 2**20 - 1, 20, both)
    assert np.array_equal(both, part.append(top, None, 5, 20))
    offsets = part.bounds.high - data.astype(object) if descending else data.astype(object) - part.bounds.low
    assert both.tolist() == [(x >> part.bits - 9 & 2**9 - 1) << 20 | x >> 5 & 2**20 - 1 for x in offsets]
    assert [order_bits.signed(x) for x in (2**64 - 1, 2**63, -1, 5)] == [-1, -(2**63), -1, 5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_words_of_floats_by_numpy_and_by_kernel(dtype: type, tune: Tune) -> None:
    """NaN is last and one value, and so are -0.0 and 0.0; the words are the same whichever makes them."""
    payload = np.array([0x7FF8000000000001], np.int64).view(np.float64)
    plain = [np.inf, -0.0, np.nan, -np.inf, 0.0, -1.5, 5e-324, -np.nan, 3e38]
    values: Any = np.concatenate([plain, payload]).astype(dtype)
    column = ColumnData(
        DOUBLE, PhysicalType.F32 if dtype is np.float32 else PhysicalType.F64, values.size, Buffer(values)
    )
    found: list[list[int]] = []
    for least in (1, values.size + 1):
        tune(tuning.sorting, fused_rows=least)
        (words,) = key_parts(column, cpu_device())
        assert isinstance(words, Integers)
        found.append(words.data.tolist())
    assert found[0] == found[1]
    assert len({found[0][i] for i in (2, 7, 9)}) == 1 and found[0][1] == found[0][4]
    assert np.array_equal(values[np.argsort(found[0], kind="stable")], np.sort(values), equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 64, 256])
def test_few_words_are_compared_with_each_other(device: str, rows: int) -> None:
    r = np.random.default_rng(rows)
    for words in (
        r.integers(0, 2**64, rows, np.uint64),
        r.integers(0, 3, rows, np.uint64),
        np.full(rows, 2**64 - 1, np.uint64),
        np.sort(r.integers(2**63 - 2, 2**63 + 2, rows, np.uint64))[::-1].copy(),
    ):
        given = on(device, words)
        assert np.array_equal(host(sort_room.sorted_few(given)), np.sort(words))
        assert np.array_equal(host(sort_room.sorted_words(given)), np.sort(words))


ORDERS = [
    "SELECT a, s, f FROM few ORDER BY ALL",
    "SELECT a, s, f FROM few ORDER BY f DESC NULLS LAST, s, a",
    "SELECT a, count(*), sum(f) FROM few GROUP BY a ORDER BY 3 DESC, a LIMIT 9",
    "SELECT s, count(*) FROM few GROUP BY s ORDER BY s",
    "SELECT DISTINCT a, s FROM few ORDER BY a DESC, s",
    "SELECT a, s, rank() OVER (PARTITION BY a ORDER BY s), row_number() OVER (ORDER BY a, s, f) FROM few",
    "SELECT median(f), mode(a), min(s) FROM few GROUP BY a % 3",
    "SELECT a FROM few WHERE a > 10 ORDER BY a LIMIT 5 OFFSET 3",
]


@pytest.mark.parametrize("rows", [0, 1, 7, 200])
@pytest.mark.parametrize("sql", ORDERS)
def test_orders_of_few_rows(sql: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted as GPUs sort few words."""
    called = []

    def few(words: Any) -> Any:
        called.append(words.size)
        return sort_room.sorted_few(words)

    for module in (order, counted_order, grouping):
        monkeypatch.setattr(module, "sorted_words", few)
    r = np.random.default_rng(rows)
    numbers = [None if n % 9 == 0 else int(n) for n in r.integers(-5, 30, rows)]
    texts = [None if n % 5 == 0 else f"text {n % 13}" * (n % 3 + 1) for n in range(rows)]
    table = pa.table(
        {"a": pa.array(numbers, pa.int64()), "s": pa.array(texts, pa.string()), "f": r.integers(0, 40, rows) / 8}
    )
    assert_same(sql, {"few": table}, targets=("python", "cpu"))
    assert called or rows < 2 or "median" in sql or "DISTINCT" in sql or "GROUP BY s" in sql
