"""Window functions, and groups in an order, whose rows do not fit memory are computed in parts: DuckDB's answers, and one clear
error where the rows of one partition do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors, tuning
from tests.support.cases import Case, read_cases
from tests.support.harness import compare, expect
from tests.support.in_parts import Refused, all_in_parts
from tests.support.marks import one_in
from tests.support.tables import all_types

CASES = [case for case in read_cases() if case.name.startswith("windows")]


@pytest.fixture
def everything() -> Iterator[Refused]:
    with all_in_parts() as refused:
        yield refused


def limited(folder: Path) -> gquery.Connection:
    db = gquery.connect(device="cpu", memory_limit="1GB")
    db.set("spill_directory", str(folder))
    for name, table in all_types().items():
        db.register(name, table)
    return db


def test_windows_by_parts_are_the_windows(tmp_path: Path, everything: Refused) -> None:
    db = limited(tmp_path)
    for case in CASES[:: len(CASES) // 10]:
        check(case, db)
    assert everything.windows


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_windows_by_parts(case: Case, tmp_path: Path, everything: Refused) -> None:
    check(case, limited(tmp_path))


def check(case: Case, db: gquery.Connection) -> None:
    types, want = expect(case.sql, all_types())
    assert compare(db.sql(case.sql).fetchall(), want, case.ordered, types) is None, case.sql


def test_rows_of_parts_keep_their_order(tmp_path: Path, everything: Refused) -> None:
    sql = "SELECT id, rank() OVER (PARTITION BY s ORDER BY n) FROM t"
    assert [row[0] for row in limited(tmp_path).sql(sql).fetchall()] == list(range(120))
    assert everything.windows


ORDERED = (
    "SELECT i8, median(i64), string_agg(s, '; '), mode(n), first(s), count(*), stddev(f64) FROM t GROUP BY i8",
    "SELECT s, quantile_disc(day, 0.3), last(n), bit_xor(id), mad(f64) FROM t GROUP BY s",
    "SELECT n % 5, s, string_agg(s, '-' ORDER BY id DESC), arg_max(s, id) FROM t GROUP BY ALL",
    "SELECT n, median(i64) FROM t WHERE id < 0 GROUP BY n",
    "SELECT median(i64), quantile_disc(s, 0.3), first(w ORDER BY f64, id), last(d38), median(f32) FILTER (WHERE n > 2) FROM t",
    "SELECT median(i64) FROM t WHERE id < 0 AND n > 3",
    "SELECT quantile_disc(i64, 0.3), arg_max_null(d38, i8 ORDER BY d38), quantile_disc(day, 0.5) FROM t",
    "SELECT n, sum(m) FROM (SELECT n, s, median(i64) m FROM t GROUP BY ALL) GROUP BY n",
)


@pytest.mark.parametrize("sql", ORDERED)
def test_groups_in_an_order_by_parts(sql: str, tmp_path: Path, everything: Refused) -> None:
    db = limited(tmp_path)
    types, want = expect(sql, all_types())
    assert compare(db.sql(sql).fetchall(), want, False, types) is None
    assert everything.ordered


SLICED = (
    "row_number() OVER (ORDER BY i)",
    "rank() OVER (ORDER BY g), dense_rank() OVER (ORDER BY g), sum(k) OVER (ORDER BY g DESC), count(k) OVER (ORDER BY g)",
    "sum(k) OVER (ORDER BY i), min(k) OVER (ORDER BY i), max(f) OVER (ORDER BY i), max(k) FILTER (WHERE k > 9) OVER (ORDER BY i)",
    "lag(s, 3) OVER (ORDER BY i), lead(k) OVER (ORDER BY i), max(s) OVER (ORDER BY i ROWS 3 PRECEDING)",
    "stddev(f) OVER (ORDER BY i ROWS BETWEEN 20 PRECEDING AND 3 FOLLOWING), row_number() OVER (ORDER BY i)",
)


def test_the_first_ranks_of_all_slices(tmp_path: Path, everything: Refused) -> None:
    """A slice leaves out no row of a rank that is great within it alone."""
    rows, sql = 4_000, "SELECT i, rank() OVER (ORDER BY i) r FROM t QUALIFY r <= 4 ORDER BY i"
    db = limited(tmp_path)
    db.register(
        "t", pa.table({"i": np.random.default_rng(3).permutation(rows), "s": [f"text {v}" for v in range(rows)]})
    )
    with tuning.using(replace(tuning.sorting, leading_least=16, leading_sample=16)):
        assert db.sql(sql).fetchall() == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("calls", one_in(2, SLICED))
def test_windows_without_partitions_go_slice_by_slice(calls: str) -> None:
    r = np.random.default_rng(3)
    rows = 60_000
    k = pa.array(r.integers(-1000, 1000, rows).astype(np.int32), mask=r.random(rows) < 0.2)
    texts = [f"text {v}" for v in r.integers(0, 999, rows)]
    columns = {"i": r.permutation(rows), "g": r.integers(0, 90, rows), "k": k, "f": r.normal(0, 1, rows), "s": texts}
    tables = {"t": pa.table(columns)}
    sql = f"SELECT i, s, {calls} FROM t"
    db = gquery.connect(device="cpu", memory_limit="2MB")
    db.register("t", tables["t"])
    types, want = expect(sql, tables)
    assert compare(db.sql(sql).fetchall(), want, False, types) is None
    assert "made in" in db.explain(sql, "analyze")


NUMBERS = "SELECT x % 20000 k, x % 2 half, x FROM range(600000) t(x)"


def test_groups_in_an_order_within_a_limit() -> None:
    """Parts that are too large, of which half of the rows are one group, are divided again."""
    db = gquery.connect(device="cpu", memory_limit="12MB")
    sql = f"SELECT count(*), sum(m) FROM (SELECT k, median(x) m FROM ({NUMBERS}) GROUP BY k)"
    assert db.sql(sql).fetchall() == [(20000, 20000 * (290000 + 9999.5))]
    assert " parts" in db.explain(sql, "analyze")
    skewed = f"SELECT CASE WHEN k < 4000 THEN -1 ELSE k END g, median(x) m FROM ({NUMBERS}) GROUP BY g"
    skewed = f"SELECT count(*), sum(m) FROM ({skewed})"
    want = gquery.connect(device="cpu").sql(skewed).fetchall()
    assert db.sql(skewed).fetchall() == want


def test_medians_of_all_rows_within_a_limit() -> None:
    db = gquery.connect(device="cpu", memory_limit="4MB")
    calls = "median(x), quantile_cont(x, 0.9) FILTER (WHERE x % 2 = 0), first(x ORDER BY x % 100 DESC, x)"
    sql = f"SELECT {calls} FROM range(300000) t(x)"
    assert db.sql(sql).fetchall() == [(149999.5, 269998.2, 99)]


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("SELECT max(r) FROM (SELECT cume_dist() OVER (ORDER BY x % 1000) r FROM range(3000000) t(x))", "PARTITION BY more"),
        ("SELECT max(r) FROM (SELECT rank() OVER (ORDER BY x // 9000000) r FROM range(900000) t(x))", "PARTITION BY more"),
        ("SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY x % 2 ORDER BY x % 9) r FROM range(3000000) t(x))", "partition"),
        ("SELECT mode(x % 9) FROM range(3000000) t(x)", "one group .* GROUP BY more columns"),
        ("SELECT x % 2, median(x) FROM range(3000000) t(x) GROUP BY 1", "one group .* here 1,500,000 are"),
    ],
)  # fmt: skip
def test_one_partition_that_does_not_fit_is_one_error(sql: str, match: str) -> None:
    db = gquery.connect(device="cpu", memory_limit="20MB")
    with pytest.raises(errors.OutOfMemoryError, match=match):
        db.sql(sql).fetchall()
    assert db.sql("SELECT 1").fetchall() == [(1,)]
