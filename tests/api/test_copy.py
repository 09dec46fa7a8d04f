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
        ("COPY t TO x.csv", ParseError, "the name of a file is expected"),
        ("COPY t", ParseError, "TO is expected"),
        ("COPY nope TO 'x.csv'", CatalogError, "'nope' does not exist"),
        ("COPY t TO 'x.csv' (HEADER", ParseError, "a value is expected"),
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


@pytest.mark.parametrize(
    ("columns", "copy"),
    [
        ("id INT, name VARCHAR, v DOUBLE, day DATE", "t FROM 'c.csv'"),
        ("id INT, name VARCHAR, v DOUBLE, day DATE", "t FROM 'c*.csv' WITH (HEADER true, DELIMITER ',', FORMAT csv)"),
        ("x VARCHAR, y VARCHAR, v VARCHAR, day VARCHAR", "main.t FROM 'c.csv' (HEADER false)"),
        ("id INT, name VARCHAR, v VARCHAR, day DATE, z INT DEFAULT 5", "t (id, name, v, day) FROM 'c.csv' (NULLSTR 'jam')"),
        ("id INT, name VARCHAR, v DOUBLE, day DATE", "t FROM 'c.csv' (SKIP 1, HEADER false)"),
        ("id INT, name VARCHAR, v DECIMAL(10,2), day TIMESTAMP", "t FROM 'c.csv' (AUTO_DETECT true)"),
        ("a BIGINT, b VARCHAR, c DOUBLE", "t FROM 'p.parquet'"),
        ("a INT, b VARCHAR, c DOUBLE, d INT DEFAULT 3", "t (a, b, c) FROM 'p.parquet' (FORMAT parquet)"),
        ("name VARCHAR, id BIGINT", "t FROM 'j.ndjson'"),
        ("id BIGINT, z INT, name VARCHAR", "t (id, name) FROM 'j.ndjson' (FORMAT json)"),
    ],
)
def test_files_are_copied_into_a_table(
    columns: str, copy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = '1,tea,2.5,2024-01-01\n2,jam,,2024-02-01\n3,"a,b",7,2024-03-01\n'
    Path("c.csv").write_text("id,name,v,day\n" + rows)
    Path("j.ndjson").write_text('{"id": 1, "name": "x"}\n{"name": "y", "id": 2}\n')
    pq.write_table(pa.table({"id": [1, 2], "g": ["x", None], "x": [0.5, 2.0]}), "p.parquet")
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for db in (ours, theirs):
        db.execute(f"CREATE TABLE t ({columns})")
    counts = [db.execute(f"COPY {copy}").fetchall() for db in (ours, theirs)]
    assert counts[0] == counts[1]
    assert ours.sql("FROM t").fetchall() == theirs.sql("FROM t").fetchall()


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("COPY nosuch FROM 'c.csv'", CatalogError, "'nosuch' does not exist"),
        ("COPY t FROM 'nosuch.csv'", FileError, "nosuch.csv"),
        ("COPY t (zz) FROM 'c.csv'", BindError, "no column 'zz'"),
        ("COPY t FROM 'c.csv' (NOSUCH 1)", NotSupportedError, "read_csv has no option nosuch"),
        ("COPY t FROM 'c.xlsx' (FORMAT xlsx)", NotSupportedError, "FORMAT xlsx"),
        ("COPY (SELECT 1) FROM 'c.csv'", ParseError, "TO is expected"),
        ("COPY t FROM c", ParseError, "the name of a file"),
    ],
)
def test_copy_from_that_is_refused(
    db: gquery.Connection, sql: str, kind: type[Error], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text("a,b\n1,2\n")
    with pytest.raises(kind, match=message):
        db.sql(sql)
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(6,)]


JSON_TABLE = """
CREATE TABLE v AS SELECT * FROM (VALUES (1, 'a b', DATE '2024-01-01', 1.5::DOUBLE, [1], {'x': 'q'}, '{"q": 1}'::JSON),
(2, 'c/d', DATE '2024-02-01', NULL, NULL, NULL, NULL), (3, NULL, DATE '2024-01-01', 2.0, [], {'x': NULL}, '[]'),
(4, '', NULL, 1e20, [NULL], {'x': 'é=%"'}, '1.50')) v(i, s, d, f, l, r, j)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "COPY v TO 'o/a.json'",
        "COPY v TO 'o/a.json' (ARRAY true)",
        "COPY v (i, s) TO 'o/a' (FORMAT json, ARRAY)",
        "COPY (FROM v WHERE false) TO 'o/a.ndjson'",
        "COPY (FROM v WHERE false) TO 'o/a.json' (ARRAY)",
        "COPY (SELECT * EXCLUDE (j) FROM v) TO 'o/p' (FORMAT csv, PARTITION_BY (s))",
        "COPY (SELECT i, s, d FROM v) TO 'o' (FORMAT csv, PARTITION_BY (D, s), HEADER false)",
        "COPY (SELECT i, s, d FROM v) TO 'o/p' (FORMAT csv, PARTITION_BY d, WRITE_PARTITION_COLUMNS, FILENAME_PATTERN 'x_{i}')",
        "COPY (SELECT i, f, l FROM v) TO 'o/p.csv' (PARTITION_BY (f, l))",
        "COPY (SELECT i, f FROM v WHERE false) TO 'o/p' (FORMAT csv, PARTITION_BY (i))",
        "COPY (SELECT i, d, l, r FROM v) TO 'o/p' (FORMAT parquet, PARTITION_BY (d))",
        "COPY (SELECT d, count(*) AS n FROM v GROUP BY d) TO 'o/p' (FORMAT parquet, PARTITION_BY (d), COMPRESSION zstd)",
    ],
)
def test_files_have_the_rows_of_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """JSON and CSV files the bytes."""
    found, counts = [], []
    for name, run in (("theirs", duckdb.connect().execute), ("ours", gquery.connect("python").sql)):
        (tmp_path / name / "o").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        run(JSON_TABLE)
        counts.append(run(statement).fetchall())
        files = (f for f in sorted(Path("o").rglob("*")) if f.is_file())
        read = {str(f): pq.ParquetFile(f).read().to_pylist() if f.suffix == ".parquet" else f.read_bytes() for f in files}
        found.append((read, sorted(str(f) for f in Path("o").rglob("*") if f.is_dir())))
    assert counts[0] == counts[1] and found[0] == found[1]


def test_folders_that_are_there(db: gquery.Connection, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    copy = f"COPY (SELECT s, b, d FROM t) TO '{folder}' (FORMAT parquet, PARTITION_BY (b)"
    assert db.sql(f"{copy})").fetchall() == [(6,)]
    (folder / "other").write_text("kept")
    with pytest.raises(FileError, match="not empty; OVERWRITE"):
        db.sql(f"{copy})")
    with pytest.raises(BindError, match="exclude each other"):
        db.sql(f"{copy}, OVERWRITE, APPEND)")
    with pytest.raises(Error):
        db.sql(f"COPY (SELECT s, b, s::INTEGER AS d FROM t) TO '{folder}' (FORMAT parquet, PARTITION_BY (b), OVERWRITE)")
    assert (folder / "other").read_text() == "kept" and len([*folder.rglob("*.parquet")]) == 3
    db.sql(f"{copy}, OVERWRITE_OR_IGNORE)")
    db.sql(f"{copy}, APPEND)")
    (folder / "other").unlink()
    counted = "SELECT b, count(*) FROM read_parquet('{}/*/*.parquet', hive_partitioning = true) GROUP BY b ORDER BY b"
    assert db.sql(counted.format(folder)).fetchall() == [("false", 2), ("true", 2), (None, 8)]
    db.sql(f"{copy}, OVERWRITE)")
    assert db.sql(counted.format(folder)).fetchall() == [("false", 1), ("true", 1), (None, 4)]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ("FORMAT csv, PARTITION_BY (nope)", BindError, "'nope', which is no column"),
        ("FORMAT csv, PARTITION_BY (s, S)", BindError, "there twice"),
        ("FORMAT csv, PARTITION_BY *", NotSupportedError, "all columns"),
        ("FORMAT csv, PARTITION_BY (s), OVERWRITE maybe", BindError, "OVERWRITE is TRUE or FALSE"),
        ("FORMAT csv, PARTITION_BY (s), APPEND, FILENAME_PATTERN 'x'", BindError, "{uuid}"),
        ("FORMAT csv, OVERWRITE", NotSupportedError, "without PARTITION_BY"),
        ("FORMAT json, HEADER", NotSupportedError, "option HEADER"),
        ("FORMAT json, ARRAY maybe", BindError, "ARRAY is TRUE or FALSE"),
    ],
)
def test_options_that_are_wrong(
    db: gquery.Connection, tmp_path: Path, options: str, kind: type[Error], message: str
) -> None:
    with pytest.raises(kind, match=message):
        db.sql(f"COPY t TO '{tmp_path}/out' ({options})")
    assert not (tmp_path / "out").exists()
