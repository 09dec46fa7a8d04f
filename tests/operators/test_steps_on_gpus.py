"""Pipeline breakers on a GPU, whose arrays have none of CuPy's operators (`tests.support.strict_arrays`)."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery.columns.import_arrow import import_table
from gquery.device.device import cpu_device
from gquery.operators import breakers, keys, merge_groups, partition_rows
from gquery.operators.base import Frame
from gquery.planner.layouts import KeyEncoding, KeyPart
from tests.support.harness import assert_same
from tests.support.marks import in_turns
from tests.support.strict_arrays import GPU, StrictArray, asnumpy, on_gpu, steps_on_gpu, strict_gpu


def _table(rows: int, seed: int = 1) -> pa.Table:
    r = random.Random(seed)

    def column(make: Callable[[], object], type_: pa.DataType, nulls: float = 0.2) -> pa.Array:
        return pa.array([None if r.random() < nulls else make() for _ in range(rows)], type_)

    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "k": column(lambda: r.randrange(4), pa.int64(), 0.1),
            "g": column(lambda: r.choice(["", "a", "ä long text that is more", "b"]), pa.string()),
            "p": column(lambda: r.randrange(3), pa.int32(), 0),
            "i": column(lambda: r.randrange(-9, 9), pa.int64()),
            "big": column(lambda: r.randrange(-(2**62), 2**62), pa.int64()),
            "f": column(lambda: r.choice([0.5, -0.0, 1e300, -7.25, 3.0]), pa.float64()),
            "e": column(lambda: r.choice([0.5, -1.25, 3.0]), pa.float32()),
            "s": column(lambda: r.choice(["", "x", "日本", "a text of some length"]), pa.string()),
            "d": column(lambda: day + datetime.timedelta(r.randrange(9)), pa.date32()),
            "t": column(lambda: datetime.datetime(2020, 1, 1, 0, 0, r.randrange(50), r.randrange(9)), pa.timestamp("us")),
            "m": column(lambda: decimal.Decimal(r.randrange(-999, 999)) / 100, pa.decimal128(9, 2)),
            "w": column(lambda: decimal.Decimal(r.randrange(-(10**25), 10**25)), pa.decimal128(38, 0)),
            "b": column(lambda: r.random() < 0.5, pa.bool_()),
            "o": pa.array(np.arange(rows)),
        }
    )


TABLES = {n: {"t": _table(n)} for n in (0, 1, 40)} | {7: {"t": _table(7, 3)}}
GROUPS = [
    "median(f), median(i), median(e), median(t), median(d), median(m), median(w), median(big)",
    "quantile_cont(i, 0.3), quantile_cont(m, 0.7), quantile_cont(w, 0.4), quantile_cont(t, 0.9), quantile_cont(e, 0.6)",
    "quantile_disc(i, 0.3), quantile_disc(s, 0.4), quantile_disc(w, 0.7), quantile_disc(d, 0.5), mad(i), mad(f)",
    "mode(i), mode(s), mode(f), mode(w), mode(b)",
    "mode(i) FILTER (WHERE b), median(i) FILTER (WHERE b), string_agg(s, ', ' ORDER BY o) FILTER (WHERE b)",
    "string_agg(s, '; ' ORDER BY i DESC, o), string_agg(s, '' ORDER BY o)",
    "bit_and(i), bit_or(i), bit_xor(big), product(i), bit_xor(p), first(s ORDER BY o), last(w ORDER BY o)",
    "arg_max(s, o), arg_min(w, o), count(*)",
    "min(s), max(s), min(w), max(w)",
    "max(g), count(*)",
]
OTHERS = [
    "SELECT o, g, w FROM t ORDER BY g DESC NULLS LAST, w, f, o",
    "SELECT o, f, e FROM t ORDER BY f, e DESC, t, d, b, o",
    "SELECT o, s FROM t ORDER BY i, o LIMIT 5 OFFSET 1",
    "SELECT DISTINCT g, p, f, w FROM t",
    "SELECT DISTINCT i, b FROM t",
    "SELECT s, i, w FROM t UNION ALL SELECT g, p, i FROM t",
    "SELECT f, d, NULL FROM t UNION ALL SELECT i, d, s FROM t",
    "SELECT o, unnest([i, p, NULL]) FROM t",
    "SELECT k, list(i ORDER BY o), list(s ORDER BY o) FILTER (WHERE b) FROM t GROUP BY k",
    "SELECT p, min(s), max(s), min(w), max(w), sum(i) FROM t GROUP BY p",
    "SELECT count(DISTINCT i), count(DISTINCT s), count(DISTINCT d) FROM t",
    "SELECT p, min(s) FILTER (WHERE b), max(w) FILTER (WHERE b), count(*) FROM t GROUP BY p",
]
WINDOWS = [
    "sum(w) OVER (PARTITION BY p ORDER BY o), avg(w) OVER (PARTITION BY k), sum(m) OVER (ORDER BY o)",
    "string_agg(s, ', ') OVER (PARTITION BY p ORDER BY o), "
    "string_agg(s, '') OVER (ORDER BY o ROWS 2 PRECEDING EXCLUDE CURRENT ROW)",
    "lag(s) OVER w, lead(g, 2, 'none') OVER w, lag(w, 1, 5) OVER w, lag(i, 1, p) OVER w, lead(f, 1, 0.5) OVER w",
    "lag(s, 1, g) OVER w, lead(b, 1, true) OVER w, lag(d, 2) OVER w, first_value(w) OVER w, last_value(s) OVER w",
    "nth_value(i, 2) OVER w, ntile(3) OVER w, ntile(p + 1) OVER w, row_number() OVER w, percent_rank() OVER w",
    "rank() OVER w, dense_rank() OVER w, cume_dist() OVER w, rank(ORDER BY i) OVER w, row_number(ORDER BY f) OVER w",
    "sum(i) OVER (ORDER BY o ROWS BETWEEN p PRECEDING AND CURRENT ROW), "
    "max(s) OVER (ORDER BY o ROWS BETWEEN p PRECEDING AND p FOLLOWING)",
    "sum(i) OVER (ORDER BY p GROUPS BETWEEN p PRECEDING AND CURRENT ROW), "
    "min(w) OVER (ORDER BY p RANGE BETWEEN p PRECEDING AND 1 FOLLOWING)",
    "count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL 2 DAY PRECEDING AND CURRENT ROW), "
    "sum(f) OVER (ORDER BY i RANGE 2 PRECEDING)",
    "count(DISTINCT i) OVER (PARTITION BY p), sum(DISTINCT w) OVER (ORDER BY o), "
    "count(DISTINCT s) OVER (ORDER BY o ROWS 3 PRECEDING)",
    "median(i) OVER w, quantile_disc(s, 0.5) OVER w, mode(i) OVER w, mode(s) OVER w, "
    "bit_and(i) OVER w, product(i) OVER w",
    "median(f) OVER (ORDER BY o ROWS 4 PRECEDING), stddev(i) OVER w, var_pop(p) OVER w, skewness(i) OVER w",
    "sum(i) FILTER (WHERE b) OVER w, min(f) FILTER (WHERE b) OVER w, max(e) OVER w, max(t) OVER w, arg_max(s, i) OVER w",
    "list(i) OVER (PARTITION BY p ORDER BY o), first_value(s IGNORE NULLS) OVER w, last_value(i IGNORE NULLS) OVER w",
    "bit_and(h) OVER w, bit_xor(h) OVER (ORDER BY o ROWS 2 PRECEDING), bit_or(h) FILTER (WHERE b) OVER w",
    "mode(i) OVER (ORDER BY o ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW), mode(w) OVER w",
    "sum(i) OVER (ORDER BY e RANGE BETWEEN abs(p) PRECEDING AND 1 FOLLOWING), max(f) OVER (ORDER BY w RANGE 3 PRECEDING)",
    "lag(i, p) OVER w, nth_value(s, p + 1) OVER w, nth_value(i, 2 ORDER BY f) OVER w, lead(s, 2 ORDER BY i) OVER w",
]


@pytest.fixture
def taken() -> Iterator[set[str]]:
    with steps_on_gpu() as names:
        yield names


@pytest.mark.parametrize(("calls", "keys_and_rows"), in_turns(3, GROUPS, list(product(["", "p", "k, g"], [0, 1, 7, 40]))))
def test_groups(calls: str, keys_and_rows: tuple[str, int], taken: set[str]) -> None:
    keys, rows = keys_and_rows
    sql = f"SELECT {keys}{', ' * bool(keys)}{calls} FROM t{' GROUP BY ' * bool(keys)}{keys}"
    assert_same(sql, TABLES[rows], targets=["python"], ranks=[1])
    assert taken or "max" in calls


@pytest.mark.parametrize("rows", [0, 7, 40])
@pytest.mark.parametrize("sql", OTHERS)
def test_other_breakers(sql: str, rows: int, taken: set[str]) -> None:
    assert_same(sql, TABLES[rows], ordered=" t ORDER BY " in sql, targets=["python"], ranks=[1])


@pytest.mark.parametrize(("calls", "rows"), in_turns(2, WINDOWS, [0, 40, 1]))
def test_windows(calls: str, rows: int, taken: set[str]) -> None:
    rows_of = "(SELECT *, sum(big) OVER (PARTITION BY o) AS h FROM t) AS t"
    sql = f"SELECT o, {calls} FROM {rows_of} WINDOW w AS (PARTITION BY k ORDER BY o)"
    assert_same(sql, TABLES[rows], targets=["python"], ranks=[1])
    assert "WindowRows" in taken


def _strict(values: np.ndarray) -> Any:
    return StrictArray(values)


@pytest.mark.parametrize("rows", [0, 1, 70])
def test_keys_of_groups(rows: int) -> None:
    parts = KeyPart(-3, 5, True), KeyPart(7, 2, False), KeyPart(0, 9, True)
    encoding = KeyEncoding(parts)
    encoded = np.random.default_rng(rows).integers(0, encoding.size, rows)
    want = keys.decode_keys(encoded, encoding)
    with strict_gpu():
        found = keys.decode_keys(_strict(encoded), encoding)
        merged = [merge_groups._distinct(_strict(encoded), size) for size in (encoding.size, None)]
        different = breakers.different(_strict(encoded), GPU.xp)
    for (values, valid), (made, made_valid) in zip(want, found, strict=True):
        assert np.array_equal(asnumpy(made), values)
        assert (valid is None) is (made_valid is None)
        assert valid is None or np.array_equal(asnumpy(made_valid), valid)
    for distinct, numbers in merged:
        assert np.array_equal(asnumpy(distinct), np.unique(encoded))
        assert np.array_equal(asnumpy(distinct)[asnumpy(numbers)], encoded)
    assert np.array_equal(asnumpy(different), np.unique(encoded))


@pytest.mark.parametrize("dtype", [pa.int8(), pa.int32(), pa.int64()])
def test_a_key_that_is_shifted(dtype: pa.DataType) -> None:
    values = [-7, -1, 0, 5, 127]
    column = import_table(pa.table({"x": pa.array(values, dtype)})).columns[0]
    frame = Frame({1: column}, len(values))
    want = partition_rows.shifted(frame, 1, -7, 200, cpu_device()).columns[1].data.host
    with strict_gpu():
        found = partition_rows.shifted(on_gpu(frame), 1, -7, 200, GPU).columns[1].data.on(GPU)
        labels = partition_rows.labels_of(on_gpu(frame), partition_rows.CutPartitioning(1, (-1, 3)), GPU, 1, "")
    assert asnumpy(found).tolist() == want.tolist() == [0, 6, 7, 12, 134]
    assert asnumpy(labels).tolist() == [0, 1, 1, 2, 2]
