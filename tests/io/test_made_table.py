"""CREATE TABLE AS: the columns that a query has made, as a table: the same values and statistics as from Arrow."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_column
from gquery.columns.encode import import_column
from gquery.columns.looked_over import _where_it_lies
from gquery.columns.table import ColumnData, Dictionary
from gquery.expression.types import PhysicalType
from gquery.io.made_table import MadeTable
from tests.columns.test_assemble import table_of_everything
from tests.support.harness import compare, connect, expect
from tests.support.tuned import Tune

TABLES = {
    "t": pa.table(
        {
            "k": pa.array([n % 50 if n % 7 else None for n in range(3_000)], pa.int64()),
            "s": pa.array([f"c{n % 11}" if n % 5 else None for n in range(3_000)]),
            "u": pa.array([f"text {n}" for n in range(3_000)]),
            "f": pa.array([n / 8 for n in range(3_000)]),
        }
    )
}


@pytest.fixture
def late(tune: Tune) -> None:
    """Columns of short tables, too, are looked over when they are used."""
    tune(tuning.encoding, one_thread=0)


def made(db: gquery.Connection, sql: str, name: str = "made") -> MadeTable:
    db.sql(f"CREATE OR REPLACE TABLE {name} AS {sql}")
    found = db._catalog.lookup(name)
    assert isinstance(found, MadeTable)
    return found


def known(column: ColumnData) -> tuple[Any, ...]:
    s = column.statistics
    zones = None if s.zones is None else (s.zones.low.tolist(), s.zones.high.tolist())
    return (
        column.physical_type.bytes, s.bounds, s.null_count, s.is_sorted, s.is_unique, s.values, s.longest_run, zones,
        column.validity is None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM x", "SELECT * FROM x WHERE number % 3 <> 1", "SELECT * FROM x ORDER BY number LIMIT 700"]
)
def test_statistics_are_those_of_arrow(sql: str, late: None) -> None:
    """Of every type: what a column is like once it is used is what encoding its values anew tells."""
    table = table_of_everything()
    with gquery.connect("python") as db:
        db.register("x", table.append_column("number", pa.array(range(table.num_rows))))
        found = made(db, sql)
        before = [export_column(c) for c in found.table.columns]
        looked = found.load(range(len(before))).columns
    assert len(looked) > 15
    for field, arrow, column in zip(found.schema, before, looked, strict=True):
        want = import_column(arrow, field)
        assert export_column(column).equals(arrow), field.name
        if not isinstance(column.dictionary, Dictionary):
            assert known(column) == known(want), field.name
        if column.dtype.is_exact and column.physical_type is not PhysicalType.I128:
            there, s = _where_it_lies(column).statistics, want.statistics
            assert (there.bounds, there.null_count, there.is_sorted, there.is_unique and not s.is_unique) == (
                s.bounds, s.null_count, s.is_sorted, False
            ), field.name  # fmt: skip


QUERIES = [
    "SELECT count(*), sum(k), min(s), max(u), sum(f) FROM made",
    "SELECT s, count(*), min(u) FROM made GROUP BY s",
    "SELECT made.s, count(*) FROM made JOIN t ON made.s = t.s AND made.k = t.k GROUP BY made.s",
    "SELECT u FROM made WHERE s > 'c3' AND k BETWEEN 3 AND 9",
    "SELECT * FROM made ORDER BY f DESC LIMIT 5",
]


@pytest.mark.parametrize(("target", "ranks"), [("python", 1), ("python", 3), ("cpu", 1)])
def test_it_is_a_table_as_any(target: str, ranks: int, late: None) -> None:
    db = connect(target, ranks, TABLES)
    queries = (
        "SELECT k, lower(s) AS s, u, f FROM t WHERE k > 5",
        "SELECT * FROM t",
        "FROM t LIMIT 9",
        "FROM t LIMIT 0",
    )
    for sql in queries if target == "python" else queries[:1]:
        found = made(db, sql)
        assert found.rows == expect(f"SELECT count(*) FROM ({sql})", TABLES)[1][0][0]
        for query in QUERIES:
            types, want = expect(f"WITH made AS ({sql}) {query}", TABLES)
            assert (wrong := compare(db.sql(query).fetchall(), want, False, types)) is None, f"{sql}\n{query}\n{wrong}"
        db.sql("CREATE OR REPLACE TABLE again AS SELECT * FROM made WHERE k < 20")
        assert (
            db.sql("SELECT count(*) FROM again").fetchall()
            == db.sql("SELECT count(*) FROM made WHERE k < 20").fetchall()
        )
    db.sql("DROP TABLE made")
    db.sql("DROP TABLE again")
    with pytest.raises(gquery.CatalogError):
        db.sql("SELECT * FROM made")


def test_a_dictionary_stays(late: None) -> None:
    with gquery.connect("python") as db:
        db.register("t", TABLES["t"])
        of_table = db.sql("SELECT s FROM t").table().columns[0].dictionary
        found = made(db, "SELECT s, u FROM t WHERE k = 3")
        assert found.statistics(0).bounds is None, "nobody has used it"
        assert found.load([0]).columns[0].dictionary is of_table
        assert found.statistics(0).bounds is not None and found.statistics(1).bounds is None


def test_little_of_much_is_copied() -> None:
    with gquery.connect("python") as db:
        db.register("x", {"a": np.arange(1_000_000.0)})
        found = made(db, "SELECT a FROM x LIMIT 10")
        array = found.table.columns[0].data.host
        assert array.base is None or array.base.nbytes < 1_000


def test_other_constants_over_a_new_table(late: None) -> None:
    with gquery.connect("python") as db:
        for low in (0, 10, 2_000):
            db.sql(f"CREATE OR REPLACE TABLE made AS SELECT i + {low} AS i FROM range(100) AS r(i)")
            for most in (5, 50, 2_050):
                sql = f"SELECT count(*) FROM made WHERE i < {most}"
                assert db.sql(sql).fetchall() == [(max(0, min(100, most - low)),)]


@pytest.fixture
def limited(tmp_path: Path, tune: Tune) -> Iterator[gquery.Connection]:
    with gquery.connect("cpu", threads=2, memory_limit=12_000_000) as db:
        db.set("spill_directory", str(tmp_path))
        yield db


def test_tables_within_a_limit_move_into_files(limited: gquery.Connection) -> None:
    """Four tables of 8 MB each, of which one does not fit beside another."""
    for n in range(4):
        limited.sql(f"CREATE TABLE t{n} AS SELECT i * 3 + {n} AS a, i * {1 << 33} AS b FROM range(500000) AS r(i)")
    for n in range(4):
        want = (500_000, 3 * 499_999 * 250_000 + 500_000 * n, (1 << 33) * 499_999)
        assert limited.sql(f"SELECT count(*), sum(a), max(b) FROM t{n}").fetchall() == [want]
    assert limited.device.account.peak <= 12_000_000
    for n in range(4):
        limited.sql(f"DROP TABLE t{n}")
    limited._plans.clear()
    limited._templates.clear()
    gc.collect()
    assert not limited._cache._columns and limited.device.account.taken == 0


def test_lists_and_intervals(late: None) -> None:
    sql = "SELECT i AS n, [i, i + 1] AS xs, INTERVAL (i) MONTH AS span, i::DECIMAL(38, 2) AS d FROM range(5) AS r(i)"
    with gquery.connect("python") as db:
        made(db, sql)
        assert db.sql("FROM made ORDER BY n").fetchall() == db.sql(f"{sql} ORDER BY n").fetchall()
        assert (
            db.sql("SELECT max(span), sum(xs[2]) FROM made WHERE d < 4").fetchall()
            == db.sql(f"SELECT max(span), sum(xs[2]) FROM ({sql}) AS made WHERE d < 4").fetchall()
        )
