"""Sorts of as many rows as a number says, with any rows behind them: first come these, in the order of a sort of them alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gquery import tuning
from gquery.expression.types import Bounds
from gquery.kernels.builtin import counted_order, order, ranked
from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.builtin.order import Integers, OrderKey, Text
from gquery.kernels.readback import Count
from tests.kernels.test_whole_arrays import DEVICES, host, on, place
from tests.operators.test_order import text_column
from tests.support.lanes import Lanes
from tests.support.tuned import Tune

ROOM = 300
COUNTS = [0, 1, 2, 63, ROOM - 1, ROOM]
WORDS = ["", "a", "a\0", "ab", "Supplier#1", "Supplier#10", "Supplier#1\0", "ä", "x" * 40, "x" * 41, "zz", "Supplier#1"]
EDGES = [-(2**63), 2**63 - 1, 0, -1, 1]
Make = Callable[[str, np.random.Generator, int, bool], list[OrderKey]]


def _ints(bounds: Bounds | None, values: list[int], dtype: str = "int64") -> Make:
    """Keys of integers out of a list, so that many are equal; behind the rows that count stand other ones."""

    def make(device: str, rng: np.random.Generator, count: int, descending: bool) -> list[OrderKey]:
        data = rng.choice(np.array(values, dtype), ROOM)
        data[count:] = rng.integers(-100, 100, ROOM - count).astype(dtype)
        return [Integers(on(device, data), bounds, descending)]

    return make


def _texts(device: str, rng: np.random.Generator, count: int, descending: bool) -> list[OrderKey]:
    found = [WORDS[n] for n in rng.integers(0, len(WORDS), count)] + [""] * (ROOM - count)
    return [Text(text_column(found), place(device), descending)]


def _nullable(device: str, rng: np.random.Generator, count: int, descending: bool) -> list[OrderKey]:
    valid = rng.integers(0, 2, ROOM).astype(np.uint8)
    data = rng.integers(0, 5, ROOM) * valid
    valid[count:] = 255
    return [
        Integers(on(device, valid), Bounds(0, 1), not descending),
        Integers(on(device, data), Bounds(0, 5), descending),
    ]


KEYS: dict[str, list[Make]] = {
    "few values": [_ints(Bounds(0, 3), [0, 1, 2, 3], "int8")],
    "one value": [_ints(Bounds(7, 7), [7], "int16")],
    "edges": [_ints(None, EDGES)],
    "edges of known bounds": [_ints(Bounds(-(2**63), 2**63 - 1), EDGES), _ints(Bounds(0, 1), [0, 1])],
    "several words": [_ints(Bounds(0, 3), [1, 3]), _ints(None, EDGES), _ints(None, EDGES), _ints(Bounds(0, 9), [4, 9])],
    "texts": [_texts],
    "texts among others": [_ints(Bounds(0, 2), [0, 2]), _texts, _ints(Bounds(-3, 3), [-3, 3]), _texts],
    "nulls": [_nullable, _ints(Bounds(-50, 50), [-50, 50, 0])],
}


def _first(key: OrderKey, count: int) -> OrderKey:
    """A key of the first rows alone."""
    match key:
        case Integers():
            return Integers(key.data[:count], key.bounds, key.descending)
        case Text():
            data = key.column.data.slice(0, count + 1)
            return Text(replace(key.column, length=count, data=data), key.device, key.descending)
    raise AssertionError(key)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", KEYS)
def test_rows_that_count_come_first(device: str, descending: bool, count: int, name: str) -> None:
    rng = np.random.default_rng(count)
    keys = [key for make in KEYS[name] for key in make(device, rng, count, descending)]
    number = on(device, np.array([count], np.int64))
    rows = counted_order.counted_order(keys, Count(ROOM, number))
    assert rows is not None and rows.dtype == np.uint32
    found, wanted = host(rows), host(order.sort_order([_first(k, count) for k in keys]))
    assert found[:count].tolist() == wanted.tolist(), "stable, too"
    assert sorted(found.tolist()) == list(range(ROOM)), "each place is a row, whatever stands there"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 40, 64])
def test_given_rows(device: str, count: int) -> None:
    """Those that may be among the first: behind them stands row 0."""
    rng = np.random.default_rng(5)
    values = rng.integers(0, 6, ROOM)
    rows = np.zeros(64, np.uint32)
    rows[:count] = np.sort(rng.choice(ROOM, count, replace=False))
    number = on(device, np.array([count], np.int64))
    keys: list[OrderKey] = [Integers(on(device, values), Bounds(0, 5), True)]
    found = counted_order.counted_order(keys, Count(64, number), on(device, rows))
    assert found is not None
    assert host(found)[:count].tolist() == sorted(rows[:count].tolist(), key=lambda n: -values[n])


def test_keys_of_too_many_bits(tune: Tune) -> None:
    """Texts so long that all their words would be sorted by, and more words than pay for so many rows."""
    number = np.array([3])
    short: list[OrderKey] = [Text(text_column(["b" * 20, "a", "c"]), place("cpu"))]
    assert counted_order.counted_order(short, Count(3, number)) is not None
    long: list[OrderKey] = [Text(text_column(["b" * 200, "a", "c"]), place("cpu"))]
    assert counted_order.counted_order(long, Count(3, number)) is None
    tune(tuning.sorting, counted_words=5)
    assert counted_order.counted_order(short, Count(3, number)) is None
    assert counted_order.counted_order([Integers(np.array([3, 1, 2]), Bounds(1, 3))], Count(3, number)) is not None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("count", "offset", "limit", "wanted"),
    [
        (10, 0, None, (0, 20, 10)),
        (10, 0, 20, (0, 20, 10)),
        (10, 0, 5, (0, 5, 5)),
        (3, 0, 5, (0, 5, 3)),
        (10, 8, 5, (8, 13, 2)),
        (8, 8, 5, (8, 13, 0)),
        (0, 8, None, (8, 20, 0)),
        (20, 30, 5, (20, 20, 0)),
        (20, 18, 5, (18, 20, 2)),
        (20, 0, 0, (0, 0, 0)),
    ],
)
def test_limit_and_offset(
    device: str, count: int, offset: int, limit: int | None, wanted: tuple[int, int, int]
) -> None:
    number = on(device, np.array([count], np.int64))
    lo, hi, left = counted_order.rows_between(Count(20, number), offset, limit)
    assert left is not None
    assert (lo, hi, int(host(left)[0])) == wanted
    assert int(host(number)[0]) == count, "others read it, too"


def test_all_rows_count() -> None:
    assert counted_order.rows_between(Count(20), 3, 5) == (3, 8, None)
    rows = counted_order.counted_order([Integers(np.array([3, 1, 2]), Bounds(1, 3))], Count(3))
    assert isinstance(rows, np.ndarray) and rows.tolist() == [1, 2, 0]


@pytest.mark.parametrize("seed", range(6))
def test_candidates_of_as_many_rows_as_a_number_says(seed: int) -> None:
    """What stands behind them may be anything."""
    rng = np.random.default_rng(seed)
    count, room = 3_000, 4_000
    nulls, values = rng.integers(0, 2, room).astype(np.uint8), rng.integers(-5, 40, room)
    keys = [Integers(nulls, Bounds(0, 1)), Integers(values, Bounds(-5, 40), descending=bool(seed % 2))]
    found = counted_order.counted_candidates(keys, 7, np.array([count]))
    assert found is not None
    rows = found[0].tolist()
    wanted = order.sort_order([Integers(k.data[:count], k.bounds, k.descending) for k in keys])[:7]
    assert set(wanted.tolist()) <= set(rows) and max(rows) < count and len(rows) < count // 2


def test_no_candidates() -> None:
    """Of text, and where nearly all rows are wanted."""
    values, number = np.arange(4_000), np.array([3_000])
    texts: list[OrderKey] = [Text(text_column(["a"] * 4_000), place("cpu")), Integers(values)]
    assert counted_order.counted_candidates(texts, 7, number) is None
    assert counted_order.counted_candidates([Integers(values, Bounds(0, 4_000))], 3_999, number) is None


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("rows", [1, 2, 31, 70])
def test_rows_that_are_compared_with_each_other(words: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On lanes, what NumPy does. Words are few, so that many begin alike, and have their first bit set."""
    lanes, rng = Lanes(), np.random.default_rng(words)
    values = [rng.choice(np.array([0, 1, 2**63, 2**64 - 1], np.uint64), rows) for _ in range(words)]

    def run(builtin: BuiltinKernel, rows: int, like: object, *given: object) -> None:
        arguments = [lanes.argument(p, v) for p, v in zip(builtin.kernel.parameters, given, strict=True)]
        lanes.run(lanes.compile(builtin.kernel), 0, rows, arguments)

    monkeypatch.setattr(ranked, "launch", run)
    assert ranked.ranked_order(values).tolist() == np.lexsort(values[::-1]).tolist()
