"""COPY ... TO: the bytes of CSV files are DuckDB's, Parquet files hold the rows."""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.errors import BindError, CatalogError, Error, FileError, InterfaceError, NotSupportedError, ParseError

TABLE = pa.table(
    {
        "i d": pa.array([1, 2, 3, 4, 5, None], pa.int32()),
        "s": ["x,y", "", " lead", "#c", "N", None],
        "n": [None, 'a"b', "it's", "line\nbreak", "a;b", None],
        "b": [True, False, None, None, None, None],
        "d": [1.5, 1e20, None, 0.1, float("nan"), None],
        "day": [datetime.date(2020, 1, 1), None, None, None, None, None],
    }
)


@pytest.fixture
def db() -> gquery.Connection:
    made = gquery.connect("python")
    made.register("t", TABLE)
    return made


@pytest.mark.parametrize(
    ("what", "options"),
    [
        ("t", ""),
        ("t (s, b)", "(FORMAT csv, HEADER)"),
        ("t", "(NULLSTR 'N', DELIMITER ';')"),
        ("t", "WITH (NULL 'N', SEP '|', HEADER false)"),
        ("t", "(FORCE_QUOTE *, HEADER 0)"),
        ("t", "(FORCE_QUOTE (s, b))"),
        ("t", "(QUOTE '''')"),
        ("t", "(ESCAPE '\\')"),
        ("(FROM t WHERE false)", "(DELIM '\t')"),
        ("(SELECT NULL AS a)", ""),
        ('(SELECT 1 AS "a,b", 2 AS "q""r")', ""),
        ("(PIVOT t ON b USING count(*) GROUP BY s ORDER BY s)", "(FORMAT 'CSV')"),
    ],
)
def test_csv_has_the_bytes_of_duckdb(db: gquery.Connection, tmp_path: Path, what: str, options: str) -> None:
    oracle = duckdb.connect()
    oracle.register("r", TABLE)
    oracle.execute("CREATE TABLE t AS FROM r")
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    oracle.execute(f"COPY {what} TO '{theirs}' {options}")
    result = db.sql(f"COPY {what} TO '{ours}' {options}")
    assert ours.read_bytes() == theirs.read_bytes()
    assert result.columns == ["Count"]


def test_parquet_holds_the_rows(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    assert db.sql(f"COPY (SELECT s, n FROM t WHERE s <> '') TO '{path}'").fetchall() == [(4,)]
    assert pq.read_table(path).column("s").to_pylist() == ["x,y", " lead", "#c", "N"]
    db.sql(f"COPY t TO '{tmp_path / 'u'}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 2)")
    file = pq.ParquetFile(tmp_path / "u")
    assert file.num_row_groups == 3 and file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert db.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(4,)]
    db.sql(f"COPY (SELECT 1 AS s) TO '{path}'")  # a file that was read has changed
    assert db.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("COPY t FROM 'x.csv'", NotSupportedError, "COPY ... FROM"),
        ("COPY t TO x.csv", ParseError, "the name of a file is expected"),
        ("COPY t", ParseError, "TO is expected"),
        ("COPY nope TO 'x.csv'", CatalogError, "'nope' does not exist"),
        ("COPY t TO 'x.csv' (HEADER", ParseError, "a value is expected"),
        ("COPY t TO 'x.json'", NotSupportedError, "FORMAT json"),
        ("COPY t TO 'x.csv.gz'", NotSupportedError, "compressed"),
        ("COPY t TO 'x.csv' (NOPE 1)", NotSupportedError, "option NOPE"),
        ("COPY t TO 'x.parquet' (HEADER)", NotSupportedError, "option HEADER of COPY with FORMAT parquet"),
        ("COPY t TO 'x.parquet' (COMPRESSION what)", InterfaceError, "compression"),
        ("COPY t TO 'x.parquet' (ROW_GROUP_SIZE many)", BindError, "is a number"),
        ("COPY t TO 'x.csv' (HEADER maybe)", BindError, "TRUE or FALSE"),
        ("COPY t TO 'x.csv' (DELIMITER 'ab')", BindError, "one character"),
        ("COPY t TO 'x.csv' (FORCE_QUOTE z)", BindError, "'z', which is no column"),
        ("COPY t TO '/nowhere/x.csv'", FileError, "/nowhere/x.csv"),
    ],
)
def test_what_is_wrong_is_said(
    db: gquery.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, error: type[Error], match: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        db.sql(sql)
    assert match in str(caught.value)
    assert not list(tmp_path.iterdir())
