"""Connections, relations, cursors and settings: the surface that users touch."""

from __future__ import annotations

import datetime
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors
from gquery.settings import Settings, from_environment, parse_bytes

TABLE = pa.table({"a": [3, 1, None, 2], "s": ["x", "y", None, "x"], "d": pa.array([Decimal("1.50")] * 4)})


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python") as connection:
        yield connection.register("t", TABLE)


# ---- settings --------------------------------------------------------------------------------------------------------


def test_settings_are_parsed() -> None:
    settings = Settings().with_option("INTERPRET_LIMIT", "0").with_option("memory_limit", "1.5GiB")
    assert (settings.interpret_limit, settings.memory_limit) == (0, 3 * 2**29)
    assert settings.with_option("memory_limit", None).memory_limit is None
    assert settings.with_option("threads", 3).worker_count == 3
    assert Settings().worker_count >= 1
    assert Settings().with_option("disabled_rules", "a, b").disabled_rules == {"a", "b"}
    assert Settings().with_option("narrow", "off").narrow is False
    assert parse_bytes("10 kB") == 10_000


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("interpret_limits", 1, 'Did you mean "interpret_limit"'),
        ("interpret_limit", "many", "interpret_limit"),
        ("partitions", 0, "the least is 1"),
        ("memory_limit", "2 parsecs", "500MB"),
        ("narrow", "perhaps", "narrow"),
    ],
)
def test_bad_settings(name: str, value: object, match: str) -> None:
    with pytest.raises(errors.ProgrammingError, match=match):
        Settings().with_option(name, value)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GQUERY_PARTITIONS", "3")
    assert from_environment().partitions == 3
    assert gquery.connect(device="cpu").settings.partitions == 3
    assert gquery.connect(device="cpu", partitions=2).settings.partitions == 2
    monkeypatch.setenv("GQUERY_THREADS", "none of them")
    with pytest.raises(errors.InterfaceError, match="GQUERY_THREADS"):
        gquery.connect(device="cpu")


# ---- connections -----------------------------------------------------------------------------------------------------


def test_devices() -> None:
    assert gquery.connect(device="cpu").device_name == "cpu"
    assert gquery.connect(device="python").device_name == "python"
    assert gquery.connect().device_name in ("cpu", "cuda:0")
    for wrong in ("gpu", "cpu:1", "cuda:x"):
        with pytest.raises(errors.InterfaceError, match="There is no device"):
            gquery.connect(device=wrong)
    with pytest.raises(errors.DeviceError):
        gquery.connect(device="cuda:99")
    with pytest.raises(errors.InterfaceError, match="partitions"):
        gquery.connect(device="cpu", partitions=0)


def test_closed_connection(db: gquery.Connection) -> None:
    kept, unread = db.sql("SELECT a FROM t ORDER BY a"), db.sql("SELECT a FROM t")
    assert len(kept.fetchall()) == 4
    db.close()
    db.close()
    assert kept.to_arrow_table().num_rows == 4
    for use in (lambda: db.sql("SELECT 1"), unread.fetchall, db.cursor, lambda: db.register("x", TABLE)):
        with pytest.raises(errors.InterfaceError, match="closed"):
            use()


def test_import_is_fast_and_light() -> None:
    code = (
        "import time, sys; t = time.process_time(); import gquery; t = time.process_time() - t;"
        "print(t < 0.3, [m for m in ('numba', 'cupy', 'pandas', 'pyarrow', 'sqlglot') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"


# ---- statements ------------------------------------------------------------------------------------------------------


def test_select(db: gquery.Connection) -> None:
    r = db.sql("SELECT a, s, d FROM t WHERE a > 1 ORDER BY a")
    assert (r.columns, [str(x) for x in r.types]) == (["a", "s", "d"], ["BIGINT", "VARCHAR", "DECIMAL(3,2)"])
    assert (r.shape, len(r)) == ((2, 3), 2)
    assert r.fetchall() == [(2, "x", Decimal("1.50")), (3, "x", Decimal("1.50"))]
    assert r.fetchall() == [(2, "x", Decimal("1.50")), (3, "x", Decimal("1.50"))], "once more from the beginning"
    assert list(r) == [(2, "x", Decimal("1.50")), (3, "x", Decimal("1.50"))]


def test_fetching_by_pieces(db: gquery.Connection) -> None:
    r = db.sql("SELECT a FROM t ORDER BY a NULLS LAST")
    assert r.fetchone() == (1,)
    assert r.fetchmany(2) == [(2,), (3,)]
    assert r.fetchmany(9) == [(None,)]
    assert r.fetchone() is None


def test_other_forms_of_a_result(db: gquery.Connection) -> None:
    import pandas
    import polars

    r = db.sql("SELECT a, s, DATE '2020-01-02' AS day FROM t ORDER BY a NULLS LAST")
    expected = {"a": [1, 2, 3, None], "s": ["y", "x", "x", None], "day": [datetime.date(2020, 1, 2)] * 4}
    assert r.to_arrow_table().to_pydict() == expected
    assert r.pl().to_dict(as_series=False) == expected
    assert pa.table(r).to_pydict() == expected
    assert polars.DataFrame(r).to_dict(as_series=False) == expected
    assert r.to_arrow_reader(2).read_all().to_pydict() == expected
    frame = r.df()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["a", "s", "day"]
    assert str(frame["day"].dtype).startswith("datetime64")


def test_show_and_repr(db: gquery.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    r = db.sql("SELECT a FROM t ORDER BY a")
    r.show()
    shown = capsys.readouterr().out
    assert repr(r) in shown
    assert "4 rows" in shown
    big = db.sql("SELECT * FROM range(5000)")
    assert "? rows" in repr(big)
    big.table()
    assert "5,000 rows (40 shown)" in repr(big)
    assert "4999" in repr(big)
    assert "<td>" in r._repr_html_()


def test_errors_in_the_text_come_at_once(db: gquery.Connection) -> None:
    with pytest.raises(errors.BindError):
        db.sql("SELECT nothing FROM t")
    with pytest.raises(errors.ParseError):
        db.sql("SELEC 1")
    with pytest.raises(errors.ProgrammingError, match="no statement"):
        db.sql("  ")
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_errors_of_the_data_come_with_the_rows(db: gquery.Connection) -> None:
    r = db.sql("SELECT (SELECT a FROM t) AS x")
    with pytest.raises(errors.CardinalityError):
        r.fetchall()
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(4,)]


def test_parameters(db: gquery.Connection) -> None:
    for value, expected in ((1, [(2,), (3,)]), (2, [(3,)]), (1, [(2,), (3,)])):
        assert db.sql("SELECT a FROM t WHERE a > ? ORDER BY a", [value]).fetchall() == expected
    assert db.sql("SELECT $x + 1 AS y", {"x": 1}).fetchall() == [(2,)]


def test_views_and_tables(db: gquery.Connection) -> None:
    db.sql("CREATE VIEW v AS SELECT a + 1 AS b FROM t WHERE a IS NOT NULL")
    assert sorted(db.table("v").fetchall()) == [(2,), (3,), (4,)]
    assert db.sql("CREATE TABLE c AS SELECT b, 'x' AS s FROM v").fetchall() == [(3,)]
    db.unregister("v")
    assert db.sql("SELECT sum(b), min(s) FROM c").fetchall() == [(9, "x")]
    with pytest.raises(errors.CatalogError, match="already"):
        db.sql("CREATE TABLE C AS SELECT 1 AS z")
    assert db.sql("CREATE TABLE IF NOT EXISTS c AS SELECT 1 AS z").fetchall() == [(0,)]
    db.sql("CREATE OR REPLACE TABLE c AS SELECT 1 AS z")
    assert db.table("C").columns == ["z"]
    assert [r[0] for r in db.sql("SHOW TABLES")] == ["c", "t"]
    with pytest.raises(errors.CatalogError, match="no view"):
        db.sql("DROP VIEW c")
    db.sql("DROP TABLE c; DROP TABLE IF EXISTS c")
    with pytest.raises(errors.DatabaseError, match="c"):
        db.table("c")
    assert db.sql("DESCRIBE t").fetchall()[0] == ("a", "BIGINT", "YES", None, None, None)


def test_plans_follow_the_tables(db: gquery.Connection) -> None:
    text = "SELECT * FROM t"
    old = db.sql(text)
    db.register("t", pa.table({"z": [1]}))
    assert db.sql(text).columns == ["z"]
    assert old.fetchall() == [(1,)]  # it had not run: it sees the table of now
    db.unregister("t")
    with pytest.raises(errors.DatabaseError):
        db.sql(text)


def test_plans_are_kept(db: gquery.Connection) -> None:
    text = "SELECT s, count(*) FROM t GROUP BY s"
    first, second = db.sql(text), db.sql(text)
    assert first._prepared is second._prepared
    assert sorted(map(str, first.fetchall())) == sorted(map(str, second.fetchall()))
    db.sql("SET interpret_limit = 5")
    assert db.sql(text)._prepared is not first._prepared


def test_set(db: gquery.Connection) -> None:
    db.sql("SET interpret_limit = 0")
    db.sql("SET memory_limit = '1GB'")
    assert (db.settings.interpret_limit, db.settings.memory_limit, db.device.memory_limit) == (0, 10**9, 10**9)
    with pytest.raises(errors.ProgrammingError, match="Did you mean"):
        db.sql("SET interpret_limits = 0")


def test_explain(db: gquery.Connection) -> None:
    text = "SELECT s, sum(a) FROM t GROUP BY s"
    for level in ("bound", "optimized", "physical", "pipelines", "code"):
        assert db.explain(text, level).strip()
        assert db.sql(text).explain(level) == db.explain(text, level)
    assert db.explain(text, "tree").strip() == str(db.sql(f"EXPLAIN {text}")).strip()
    assert str(db.sql(f"EXPLAIN bound {text}")).strip() == db.explain(text, "bound").strip()
    with pytest.raises(errors.ProgrammingError, match="no level"):
        db.explain(text, "deep")


def test_cursor(db: gquery.Connection) -> None:
    with db.cursor() as cursor:
        with pytest.raises(errors.ProgrammingError, match="nothing was executed"):
            cursor.fetchone()
        assert cursor.execute("SELECT a, s FROM t WHERE a < ? ORDER BY a", [3]).rowcount == 2
        assert [x[0] for x in cursor.description or ()] == ["a", "s"]
        assert cursor.fetchone() == (1, "y")
        assert cursor.fetchmany() == [(2, "x")]
        assert cursor.fetchall() == []
    with pytest.raises(errors.InterfaceError, match="closed"):
        cursor.execute("SELECT 1")
    assert (gquery.apilevel, gquery.paramstyle, gquery.threadsafety) == ("2.0", "qmark", 1)


def test_relations_are_tables(db: gquery.Connection) -> None:
    db.register("r", db.sql("SELECT a * 2 AS b FROM t"))
    assert db.sql("SELECT sum(b) FROM r").fetchall() == [(12,)]


# ---- files -----------------------------------------------------------------------------------------------------------


def test_parquet(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path)
    assert db.read_parquet(path).to_arrow_table().to_pydict() == TABLE.to_pydict()
    assert db.read_parquet([path, path]).shape == (8, 3)
    assert db.read_parquet(str(tmp_path / "*.parquet")).columns == ["a", "s", "d"]
    text = f"SELECT max(a) FROM '{path}'"
    assert db.sql(text).fetchall() == [(3,)]
    pq.write_table(pa.table({"a": [70, 80]}), path)
    assert db.sql(text).fetchall() == [(80,)]
    unread = db.sql(f"SELECT * FROM '{path}'")
    path.write_bytes(b"damaged, and long enough to be looked at")
    for use in (lambda: db.sql(text), unread.fetchall, lambda: db.read_parquet(path)):
        with pytest.raises(errors.FileError, match="x.parquet"):
            use()
    path.unlink()
    with pytest.raises(errors.FileError, match="no file"):
        db.sql(text)
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_small_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(100_000), "b": range(100_000)}), path)
    with gquery.connect(device="python", memory_limit="100kB") as db:
        with pytest.raises(errors.OutOfMemoryError, match="memory_limit"):
            db.sql(f"SELECT sum(a) FROM '{path}'").fetchall()
        assert db.sql("SELECT 1").fetchall() == [(1,)]
        db.sql("SET memory_limit = '100MB'")
        assert db.sql(f"SELECT min(b) FROM '{path}'").fetchall() == [(0,)]


def test_module_functions() -> None:
    gquery.register("module_test", pa.table({"a": [1]}))
    assert gquery.table("module_test").fetchall() == gquery.sql("SELECT 1").fetchall()
    gquery.unregister("module_test")


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE TABLE old AS SELECT 1 AS a",
        "DROP TABLE old",
        "INSERT INTO old VALUES (7)",
        "UPDATE old SET a = 7",
        "register",
        "unregister",
    ],
)
def test_plans_hold_no_tables_that_are_others_now(db: gquery.Connection, change: str) -> None:
    db.sql("CREATE TABLE old AS SELECT range AS a FROM range(1000)")
    for constant in range(3):  # of a text, and of its template
        db.sql(f"SELECT sum(a) + {constant} FROM old").fetchall()
    before = weakref.ref(db._catalog.table("old"))
    assert before() is not None
    match change:
        case "register":
            db.register("old", {"a": [1]})
        case "unregister":
            db.unregister("old")
        case _:
            db.sql(change)
    if not change.startswith(("DROP", "unreg")):
        db.sql("SELECT sum(a) FROM old").fetchall()
    gc.collect()
    assert before() is None


def test_pragmas_are_other_statements() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t(a INTEGER NOT NULL, b VARCHAR)")
    assert db.sql("PRAGMA table_info('t')").fetchall() == db.sql("SELECT * FROM pragma_table_info('t')").fetchall()
    assert db.sql("PRAGMA show_tables").fetchall() == [("t",)]
    assert db.sql("PRAGMA threads = 3; PRAGMA memory_limit='1GB'; SELECT 1").fetchall() == [(1,)]
    assert (db.settings.threads, db.settings.memory_limit) == (3, 10**9)
    for sql, kind in (("PRAGMA version", gquery.NotSupportedError), ("PRAGMA nosuch = 1", gquery.ProgrammingError)):
        with pytest.raises(kind):
            db.sql(sql)
