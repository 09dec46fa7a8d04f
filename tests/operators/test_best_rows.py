"""Least and greatest texts of groups by the best row so far, and groups of rows by a hash table that threads share, on CPUs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.builtin import grouping, key_groups, order
from gquery.kernels.builtin.best_rows import best_rows
from gquery.kernels.builtin.gathers import string_views
from gquery.kernels.builtin.key_groups import group_rows
from gquery.kernels.builtin.leading import Values
from tests.operators.test_order import text_column
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 900
TEXTS = ["", "a", "a\0", "a\0\0", "ab", "abcdefgh", "abcdefghi", "abcdefgh" * 9, "abcdefgh" * 9 + "z", "ä", "z"]


@pytest.fixture(autouse=True)
def few_rows_are_enough(tune: Tune) -> None:
    tune(tuning.sorting, leading_least=1, numbered_least=4, numbered_rows=8)


def keys_of(rows: int, groups: int) -> dict[str, Any]:
    """A key of each kind, with NULLs; doubles that are one value in several ways."""
    rng = np.random.default_rng(groups)
    numbers = rng.integers(0, groups, rows)
    zeros = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5])
    null = rng.random(rows) < 0.1
    return {
        "i": pa.array(numbers * 977_777_777_777, mask=null),
        "small": numbers.astype(np.int8),
        "x": pa.array(zeros[numbers % 7] + (numbers // 7), mask=null),
        "f": pa.array(zeros[numbers % 7].astype(np.float32)),
        "s": pa.array([f"{'a long beginning ' * (n % 3)}{n}" for n in numbers.tolist()], mask=null),
        "few": pa.array(["one", "two", "three", None]).take(pa.array(numbers % 4)),
        "w": pa.array([Decimal(int(n) << 70) for n in numbers], pa.decimal128(38, 0), mask=null),
        "d": pa.array(numbers % 30, pa.int32()).cast(pa.date32()),
        "b": pa.array(numbers % 2 == 0, mask=null),
        "all_null": pa.nulls(rows, pa.int64()),
    }


def table(rows: int, groups: int, nulls: float = 0.2) -> pa.Table:
    rng = np.random.default_rng(rows + groups)
    texts = [TEXTS[n] for n in rng.integers(0, len(TEXTS), rows)]
    made = {
        "t": pa.array(texts, mask=rng.random(rows) < nulls),
        "u": pa.array([f"{n:09}" for n in rng.permutation(rows)]),
        "v": rng.integers(0, 50, rows),
    }
    return pa.table(keys_of(rows, groups) | made)


CALLS = [
    "min(t)",
    "max(u), min(u)",
    "min(t) FILTER (v > 25), max(t) FILTER (v < 3), sum(v)",
    "max(t), count(t), min(v)",
]


@pytest.mark.parametrize("key", [*keys_of(1, 1), "s, i", "x, b, few", "d, w, all_null", "v % 3, s"])
@pytest.mark.parametrize("calls", CALLS)
def test_by_keys_of_every_kind(key: str, calls: str) -> None:
    tables = {"t": table(ROWS, 90)}
    assert_same(f"SELECT {key}, {calls} FROM t GROUP BY {key}", tables, targets=["python"])


@pytest.mark.parametrize("groups", [1, 2, 5, ROWS * 4])
@pytest.mark.parametrize("calls", CALLS)
def test_few_groups_and_as_many_as_rows(groups: int, calls: str) -> None:
    tables = {"t": table(ROWS, groups)}
    assert_same(f"SELECT i, {calls} FROM t GROUP BY i", tables, targets=["python"], ranks=[1, 3])
    assert_same(f"SELECT s, {calls} FROM t GROUP BY s HAVING count(*) > 1", tables, targets=["python"])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(rows: int) -> None:
    for calls in CALLS:
        assert_same(f"SELECT s, {calls} FROM t GROUP BY s", {"t": table(rows, 2)}, targets=["python"])


def test_nothing_but_nulls() -> None:
    for calls in CALLS:
        assert_same(f"SELECT s, {calls} FROM t GROUP BY s", {"t": table(200, 9, nulls=1.0)}, targets=["python"])


def test_behind_joins_unions_and_in_what_is_joined() -> None:
    """Codes of a group stand for a text in whatever comes behind."""
    tables = {"t": table(ROWS, 40), "n": pa.table({"k": range(30), "name": [TEXTS[n % 11] for n in range(30)]})}
    for sql in (
        "SELECT small, min(name), max(t) FROM t JOIN n ON small = k GROUP BY small",
        "SELECT few, min(lowest) FROM (SELECT few, s, min(t) AS lowest FROM t GROUP BY few, s) GROUP BY few",
        "SELECT s, min(t) AS m FROM t GROUP BY s ORDER BY m NULLS FIRST, s LIMIT 7",
        "SELECT m, count(*) FROM (SELECT s, max(t) AS m FROM t GROUP BY s) GROUP BY m",
        "SELECT few, min(t) FROM (SELECT few, t FROM t UNION ALL SELECT few, u FROM t WHERE v < 9) GROUP BY few",
        "SELECT few, d, min(t) FROM t GROUP BY ROLLUP (few, d)",
        "SELECT small FROM t GROUP BY small HAVING min(t) = 'a' OR max(t) > 'zz'",
    ):
        assert_same(sql, tables, targets=["python"], ranks=[1, 3])


def test_compiled_by_threads() -> None:
    tables = {"t": table(40_000, 3_000)}
    for key in ("s", "i", "x, few", "w"):
        assert_same(f"SELECT {key}, min(t), max(u), sum(v) FROM t GROUP BY {key}", tables, targets=["cpu"])
    assert_same("SELECT s, min(u) FROM t GROUP BY s", tables, targets=["cpu"], ranks=[3])


@pytest.mark.parametrize("groups", [3, 5_000, 300_000])
def test_threads_agree_on_groups(groups: int) -> None:
    """Each row has the number of a group, each group a row of it, and no two groups a value."""
    rows, device = 1 << 19, cpu_device()
    values = np.random.default_rng(1).integers(0, groups, rows) * 0x1E3779B97F4A7C15
    column = ColumnData(BIGINT, PhysicalType.I64, rows, Buffer(values, device))
    numbers, some = group_rows([column], rows, device, workers=4)
    assert (values[some][numbers] == values).all()
    assert np.unique(values).size == some.size == np.unique(numbers).size


def test_threads_agree_on_the_best_rows() -> None:
    rows, groups, device = 1 << 19, 40, cpu_device()
    rng = np.random.default_rng(2)
    texts = [f"a beginning of all {n:07}" for n in rng.integers(0, 10**7, rows)]
    numbers = rng.integers(0, groups, rows).astype(np.uint32)
    flags = (rng.random(rows) < 0.5).astype(np.uint8)
    column = text_column(texts)
    for descending in (False, True):
        found = best_rows(Values(column, device, descending, there=flags), numbers, groups + 1, workers=4)
        best = max if descending else min
        for group in range(groups):
            own = np.flatnonzero((numbers == group) & (flags == 1)).tolist()
            assert texts[found[group]] == best(texts[row] for row in own)
        assert found[groups] == -1


def test_a_table_that_is_too_small_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    enter = key_groups._enter

    def counting(*given: Any) -> None:
        sizes.append(int(given[2].words.size))
        enter(*given)

    monkeypatch.setattr(key_groups, "_enter", counting)
    db = gquery.connect(device="python")
    db.register("t", {"k": [f"k{n}" for n in range(5_000)], "s": [f"s{n}" for n in range(5_000)]})
    assert db.sql("SELECT count(DISTINCT m) FROM (SELECT k, min(s) AS m FROM t GROUP BY k)").fetchall() == [(5_000,)]
    assert len(sizes) > 1 and sizes == sorted(set(sizes)) and sizes[-1] >= 10_000


@pytest.mark.parametrize("limit", ["LIMIT 3", "LIMIT 5 OFFSET 2", "LIMIT 150"])
@pytest.mark.parametrize("key", ["t", "t DESC", "t NULLS FIRST", "t DESC NULLS FIRST", "u DESC", "s, v", "few, t DESC"])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 0.999, 1.0])
def test_the_first_texts_of_all(key: str, limit: str, nulls: float, tune: Tune) -> None:
    """Texts that begin alike, that are many times there, and none."""
    tune(tuning.sorting, leading_sample=16, candidate_rows=2)
    tables = {"t": table(ROWS, 300, nulls)}
    assert_same(f"SELECT t, u, s, v FROM t ORDER BY {key}, u {limit}", tables, ordered=True, targets=["python"])


@pytest.mark.parametrize("text", ["", "the same text in all rows"])
def test_the_first_of_equal_texts(text: str, tune: Tune) -> None:
    tune(tuning.sorting, leading_sample=16, candidate_rows=2)
    tables = {"t": pa.table({"s": [text] * 500, "n": range(500)})}
    assert_same("SELECT s, n FROM t ORDER BY s DESC, n DESC LIMIT 4", tables, ordered=True, targets=["python"])


def test_texts_that_begin_alike_are_few_before_they_are_sorted(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.sorting, leading_sample=1 << 10)
    sorted_rows: list[int] = []
    sort_order = order.sort_order

    def counting(keys: Any, rows: Any = None, workers: int = 1) -> Any:
        sorted_rows.append(keys[0].size if rows is None else int(rows.size))
        return sort_order(keys, rows, workers)

    monkeypatch.setattr(order, "sort_order", counting)
    texts = [f"https://example.com/of/{n:08}" for n in np.random.default_rng(1).permutation(60_000)]
    with gquery.connect(device="cpu") as db:
        db.register("t", pa.table({"s": texts}))
        found = db.sql("SELECT s FROM t ORDER BY s LIMIT 5").fetchall()
    assert [s for (s,) in found] == sorted(texts)[:5]
    assert sorted_rows and max(sorted_rows) < 3_000


@pytest.mark.parametrize("rows_a_group", [1, 3, 40])
def test_groups_in_the_order_of_their_rows(rows_a_group: int) -> None:
    """By a place a row where most rows have a group, and sorted where few have."""
    rng = np.random.default_rng(rows_a_group)
    firsts = np.sort(rng.permutation(rows_a_group * 1_000)[:1_000]).astype(np.uint32)
    slots = np.zeros(4_096, np.uint32)
    slots[rng.permutation(4_096)[:1_000]] = rng.permutation(firsts) + np.uint32(1)
    rows, places, count = grouping.rows_in_order(slots, rows_a_group * 1_000)
    assert count.bound == 1_000 and (rows == firsts).all() and rows.dtype == places.dtype == np.uint32
    assert (slots[places] == rows + np.uint32(1)).all()
    rows, places, count = grouping.rows_in_order(np.zeros(8, np.uint32), rows_a_group)
    assert rows.size == places.size == count.bound == 0


def test_where_texts_lie_is_the_same_by_a_kernel(tune: Tune) -> None:
    column, some = text_column(TEXTS * 300), np.random.default_rng(3).integers(0, 3_300, 5_000).astype(np.uint32)
    every, few = string_views(column, cpu_device()), string_views(column, cpu_device(), some)
    tune(tuning.built_in_kernels, viewed_rows=1)
    assert (string_views(column, cpu_device()) == every).all()
    assert (string_views(column, cpu_device(), some) == few).all()
    assert (string_views(column, cpu_device(), some.astype(np.int64)) == few).all()


@pytest.mark.parametrize("partition", ["t", "s, i", "w", "few, x", "t, small", "all_null, t"])
@pytest.mark.parametrize(
    "call",
    [
        "row_number() OVER (PARTITION BY {} ORDER BY v, u)",
        "rank() OVER (PARTITION BY {} ORDER BY {} DESC, v)",
        "dense_rank() OVER (PARTITION BY {} ORDER BY v DESC NULLS FIRST, {})",
        "count(*) OVER (PARTITION BY {} ORDER BY {})",
        "sum(v) OVER (PARTITION BY {} ORDER BY u ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
        "sum(v) OVER (PARTITION BY {} ORDER BY v RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)",
        "max(t) OVER (PARTITION BY {} ORDER BY v GROUPS 1 PRECEDING)",
        "lag(u) OVER (PARTITION BY {} ORDER BY u)",
        "count(*) OVER (PARTITION BY {})",
    ],
)
def test_windows_by_keys_that_a_hash_table_tells_apart(partition: str, call: str, tune: Tune) -> None:
    tune(tuning.sorting, hashed_rows=1)
    sql = f"SELECT u, {call.replace('{}', partition, 1).replace('{}', partition.split(', ')[0])} AS w FROM t"
    assert_same(sql, {"t": table(500, 30)}, targets=["python"])


def test_windows_of_one_sort_and_of_several(tune: Tune) -> None:
    tune(tuning.sorting, hashed_rows=1)
    tables = {"t": table(600, 30)}
    for sql in (
        "SELECT u, sum(v) OVER (PARTITION BY s ORDER BY u) AS a, rank() OVER (PARTITION BY s ORDER BY u, v) AS b FROM t",
        "SELECT u, sum(v) OVER (PARTITION BY s) AS a, count(*) OVER (PARTITION BY t, s ORDER BY v) AS b FROM t ORDER BY s, u",
        "SELECT DISTINCT ON (s) s, v, u FROM t ORDER BY s, v, u",
        "SELECT u FROM t QUALIFY row_number() OVER (PARTITION BY t, few ORDER BY t, v DESC, u) <= 2",
    ):
        assert_same(sql, tables, ordered="ORDER BY s, u" in sql, targets=["python"], ranks=[1, 3])


@pytest.mark.parametrize("key", ["s", "t", "i", "x", "w", "s, few", "x, b, t", "all_null"])
def test_ordered_groups_by_keys_that_a_hash_table_tells_apart(key: str, tune: Tune) -> None:
    tune(tuning.sorting, hashed_rows=1)
    tables = {"t": table(700, 40)}
    for calls in (
        "median(v), quantile_disc(v, 0.2) FILTER (v > 5), count(*)",
        "list(u ORDER BY u DESC), first(t ORDER BY u)",
        "string_agg(u, ',' ORDER BY v, u) FILTER (v < 20), arg_max(t, u), sum(v)",
    ):
        assert_same(f"SELECT {key}, {calls} FROM t GROUP BY {key}", tables, targets=["python"])


def test_groups_always_come_in_the_same_order(tune: Tune) -> None:
    """Whatever threads do; ordered groups in that of their first rows."""
    tune(tuning.sorting, hashed_rows=1)
    rng = np.random.default_rng(6)
    names = [f"name {n}" for n in rng.integers(0, 20_000, 1 << 17)]
    texts = pa.array([TEXTS[n % 11] for n in rng.integers(0, 11, 1 << 17)], mask=rng.random(1 << 17) < 0.8)
    with gquery.connect(device="cpu", threads=4) as db:
        db.register("t", {"s": names, "v": rng.integers(0, 9, 1 << 17), "t": texts})
        found = [s for s, _ in db.sql("SELECT s, median(v) FROM t GROUP BY s").fetchall()]
        assert found == list(dict.fromkeys(names))
        least = [db.sql("SELECT s, min(t) FROM t GROUP BY s").fetchall() for _ in range(5)]
        assert all(rows == least[0] for rows in least)


@pytest.mark.parametrize("key", ["", "s", "few", "i, b"])
@pytest.mark.parametrize("value", ["v", "few", "t", "i", "w", "b", "d", "all_null"])
def test_the_most_frequent_value_is_counted(key: str, value: str, tune: Tune) -> None:
    """Of values that are as frequent the one that came first."""
    tune(tuning.sorting, hashed_rows=1)
    by, given = (f" GROUP BY {key}", f"{key}, ") if key else ("", "")
    calls = f"mode({value}), mode({value}) FILTER (v > 20), mode({value} ORDER BY {value} DESC)"
    assert_same(f"SELECT {given}{calls} FROM t{by}", {"t": table(600, 25)}, targets=["python"])
