"""The first rows of partitions without a sort: by every type, with NULLs and ties, and least texts of groups that begin alike."""

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
from gquery.expression.expr import SortKey, new_column
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.builtin import order_bits
from gquery.kernels.builtin.leading import Slots, Values, bounds_of, flags_within
from gquery.operators.base import Frame
from gquery.operators.leading_rows import first_rows, leading_rows
from tests.operators.test_order import text_column
from tests.support.harness import assert_same
from tests.support.lanes import Lanes
from tests.support.tuned import Tune

BEGINNINGS = ("", "a", "an address of which the first bytes are ", "z\0", "ä")


@pytest.fixture(autouse=True)
def few_rows_are_enough(tune: Tune) -> None:
    tune(tuning.sorting, leading_least=1, leading_sample=8)


def _tables(rows: int, groups: int, nulls: float = 0.1, seed: int = 3) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    null = rng.random(rows) < nulls
    texts = np.array([BEGINNINGS[n % 5] + str(m) for n, m in rng.integers(0, 40, (rows, 2))], dtype=object)
    doubles = rng.normal(0, 3, rows).round(1)
    doubles[rng.random(rows) < 0.1] = np.array([np.nan, np.inf, -np.inf, -0.0])[rng.integers(0, 4)]
    return {
        "t": pa.table(
            {
                "g": pa.array(rng.integers(-3, groups - 3, rows), mask=rng.random(rows) < 0.05),
                "h": pa.array(rng.integers(0, 2, rows).astype(bool)),
                "i": pa.array(rng.integers(-20, 20, rows), mask=null),
                "x": pa.array(doubles, mask=null),
                "s": pa.array(texts, mask=null),
                "w": pa.array([int(n) << 70 for n in rng.integers(-9, 9, rows)], pa.decimal128(38, 0), mask=null),
                "o": np.arange(rows),
            }
        )
    }


@pytest.mark.parametrize(
    "key", ["i", "i DESC NULLS FIRST, o", "x", "x DESC", "s", "s DESC, i", "w", "w DESC NULLS FIRST", "o"]
)
def test_first_rows_by_each_type(key: str) -> None:
    tables = _tables(400, 9)
    for number, limit in (("rank()", "= 1"), ("rank()", "<= 3"), ("dense_rank()", "< 2")):
        sql = f"SELECT g, h, i, s FROM t QUALIFY {number} OVER (PARTITION BY g, h ORDER BY {key}) {limit}"
        assert_same(sql, tables, targets=["python"])


@pytest.mark.parametrize(
    "by", ["", "PARTITION BY g", "PARTITION BY h", "PARTITION BY g, h", "PARTITION BY s", "PARTITION BY x"]
)
def test_every_partition(by: str) -> None:
    sql = f"SELECT o, r FROM (SELECT o, row_number() OVER ({by} ORDER BY i, o DESC) AS r FROM t) AS u WHERE 2 >= r"
    assert_same(sql, _tables(300, 5), targets=["python"])


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows(rows: int) -> None:
    tables = _tables(rows, 2)
    assert_same(
        "SELECT o FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY o) <= 2", tables, targets=["python"]
    )
    assert_same("SELECT g, min(s), max(w) FROM t GROUP BY g", tables, targets=["python"])


def test_nothing_but_nulls() -> None:
    tables = _tables(200, 4, nulls=1.0)
    assert_same("SELECT g, o FROM t QUALIFY rank() OVER (PARTITION BY g ORDER BY i) = 1", tables, targets=["python"])
    assert_same("SELECT g, min(s), max(s), min(w), count(*) FROM t GROUP BY g", tables, targets=["python"])


def test_compiled_on_threads_and_ranks() -> None:
    tables = _tables(6_000, 60)
    sql = "SELECT g, h, o FROM t QUALIFY row_number() OVER (PARTITION BY g, h ORDER BY x DESC, o) <= 2"
    assert_same(sql, tables, targets=["cpu"])
    assert_same("SELECT g, min(s), max(s), min(w), sum(i) FROM t GROUP BY g", tables, targets=["cpu"])


@pytest.mark.parametrize("limit", ["", " OFFSET 3"])
@pytest.mark.parametrize("key", ["x", "x DESC NULLS FIRST", "s", "w DESC", "i", "x * 0"])
def test_the_first_of_all(key: str, limit: str) -> None:
    assert_same(f"SELECT o FROM t ORDER BY {key}, o LIMIT 4{limit}", _tables(900, 3), ordered=True, targets=["python"])


@pytest.mark.parametrize(
    "calls",
    [
        "min(s)",
        "min(s), max(w)",
        "max(s) FILTER (i > 3), min(s) FILTER (x < 0), min(i), count(*), sum(i), max(s), first(o)",
    ],
)
@pytest.mark.parametrize("keys", ["g", "g, h", "x > 0", "substr(s, 1, 1)"])
@pytest.mark.parametrize("way", ["by best rows", "by ranks"])
def test_texts_of_groups(calls: str, keys: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "by ranks":
        by_ranks(monkeypatch)
    sql = f"SELECT {keys}, {calls} FROM t GROUP BY {keys}"
    assert_same(sql, _tables(300, 6), targets=["python"], ranks=[1] if keys == "g, h" else [3])


def by_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a CPU find extremes of texts as a GPU does."""
    monkeypatch.setattr("gquery.operators.group_extremes._are_texts", lambda *_: False)


def test_texts_that_begin_alike_are_few_before_they_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    from gquery.operators import value_ranks

    by_ranks(monkeypatch)
    ranked: list[int] = []
    rank = value_ranks.rank

    def counting(column: ColumnData, device: Device) -> object:
        ranked.append(column.length)
        return rank(column, device)

    monkeypatch.setattr("gquery.operators.group_extremes.rank", counting)
    rng = np.random.default_rng(1)
    texts = ["https://example.com/of/" + str(n) for n in rng.integers(10**6, 10**7, 4_000)]
    with gquery.connect(device="cpu") as db:
        db.register("t", pa.table({"k": rng.integers(0, 40, 4_000), "s": texts}))
        found = dict(db.sql("SELECT k, min(s) FROM t GROUP BY k").fetchall())
        keys = db.sql("SELECT k FROM t").fetchall()
    for k in range(40):
        assert found[k] == min(s for s, (own,) in zip(texts, keys, strict=True) if own == k)
    assert ranked and max(ranked) <= 40 * tuning.sorting.leading_ties


def test_bounds_are_the_least_of_each_slot_whatever_threads_do() -> None:
    rng = np.random.default_rng(2)
    device, rows, first = cpu_device(), 1 << 19, 3
    slots, values = rng.integers(5, 25, rows).astype(np.int32), rng.integers(-(2**40), 2**40, rows)
    column = ColumnData(BIGINT, PhysicalType.I64, rows, Buffer(values, device))
    given = Values(column, device)
    bounds = bounds_of(given, Slots(slots, 5, 20), first, workers=2).reshape(20, first)
    assert [list(b) for b in bounds] == [sorted(values[slots == n + 5])[:first] for n in range(20)]
    flags = flags_within(given, Slots(slots, 5, 20), first, bounds.reshape(-1), workers=2)
    assert int(flags.sum()) == 20 * first


def test_rows_are_left_out_where_that_is_a_gain_and_only_there(tune: Tune) -> None:
    device, rng = cpu_device(), np.random.default_rng(4)
    p, o = new_column("p", BIGINT, False), new_column("o", BIGINT, False)

    def frame(groups: int) -> Frame:
        made = {c.id: rng.integers(0, n, 1_000) for c, n in ((p, groups), (o, 10**6))}
        columns = {i: ColumnData(BIGINT, PhysicalType.I64, 1_000, Buffer(a, device)) for i, a in made.items()}
        return Frame(columns, 1_000)

    few = leading_rows(frame(10), [p], SortKey(o), 2, device)
    assert few is not None and 20 <= few.size <= 22
    assert leading_rows(frame(900), [p], SortKey(o), 2, device) is None
    assert first_rows(frame(10), SortKey(o), 2, device, 1) is not None
    tune(tuning.sorting, leading_least=1_001, leading_sample=500)
    assert leading_rows(frame(10), [p], SortKey(o), 2, device) is None
    assert first_rows(frame(10), SortKey(o), 2, device, 1) is None


def test_another_limit_is_another_answer() -> None:
    tables = _tables(500, 4)
    with gquery.connect(device="python") as db:
        db.register("t", tables["t"])
        for limit in (1, 2, 5, 3, 0, 400):
            sql = f"SELECT g, o FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY o) <= {limit}"
            groups = db.sql("SELECT g, count(*) FROM t GROUP BY g").fetchall()
            assert len(db.sql(sql).fetchall()) == sum(min(n, limit) for _, n in groups)


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    tables = _tables(6_000, 60)
    for key in ("i", "x DESC", "s", "w DESC NULLS FIRST"):
        sql = f"SELECT g, h, o FROM t QUALIFY rank() OVER (PARTITION BY g, h ORDER BY {key}) <= 2"
        assert_same(sql, tables, targets=["cuda"], ranks=[1])
    assert_same("SELECT g, min(s), max(s), min(w), sum(i) FROM t GROUP BY g", tables, targets=["cuda"], ranks=[1])
    assert_same("SELECT g, min(s) FROM t GROUP BY g", tables, targets=["cuda"], ranks=[1])


def test_on_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU's kernels do, and what those of a CPU do."""
    device, rows, first = cpu_device(), 300, 2
    rng = np.random.default_rng(6)
    texts = text_column([BEGINNINGS[n % 5] + str(m) for n, m in rng.integers(0, 40, (rows, 2))])
    numbers = ColumnData(BIGINT, PhysicalType.I64, rows, Buffer(rng.integers(-99, 99, rows), device))
    slots = Slots(rng.integers(0, 7, rows).astype(np.uint8), 0, 7)
    there = (rng.random(rows) < 0.8).astype(np.uint8)
    words = [order_bits.Piece(numbers.data.host, -1, -100, 0, 9), order_bits.Piece(there, 0, 0, 0, 1)]

    def all_of_it() -> list[list[int]]:
        found: list[np.ndarray[Any, Any]] = []
        for column in (texts, numbers):
            values = Values(column, device, descending=True, there=there)
            bounds = bounds_of(values, slots, first)
            found += [
                bounds,
                flags_within(values, slots, first, bounds),
                values.integers(np.arange(5, dtype=np.uint32)),
            ]
        placed = np.sort(order_bits.placed_words(words, 9, 1))
        return [f.tolist() for f in (*found, placed, *order_bits.starts_of(placed, 9, 1, 1))]

    wanted, lanes = all_of_it(), Lanes()
    monkeypatch.setattr("gquery.kernels.builtin.define.get_target", lambda name: lanes)
    assert all_of_it() == wanted
