"""Every failure is a class of `gquery.errors` with one clear message, and the connection stays usable after it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors
from tests.conftest import has_gpu
from tests.support.harness import assert_error
from tests.support.tables import all_types, edges, joins


def expect_error(
    sql: str, error: type[Exception], match: str, tables: Any = None, targets: tuple[str, ...] = ("python",)
) -> str:
    return assert_error(sql, tables or all_types(), error, match, targets=targets, ranks=(1,))


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("SELECT * FROM tt", errors.CatalogError, 'did you mean "t"'),
        ("SELECT * FROM emty", errors.CatalogError, '"empty"'),
        ("SELECT i46 FROM t", errors.BindError, '"i64"'),
        ("CREATE TYPE mood AS ENUM ('a')", errors.NotSupportedError, "CREATE TYPE"),
        ("CREATE TABLE n(x ENUM('a', 'b'))", errors.NotSupportedError, "type ENUM"),
        ("SELECT [1]::INTEGER[1]", errors.NotSupportedError, "a fixed number of values"),
        ("CREATE TABLE n(x INTEGER[1])", errors.NotSupportedError, "a fixed number of values"),
        ("SELECT t.id @ 5 FROM t", errors.ParseError, "@ cannot stand here"),
        ("SELECT list_transform([1], (x, 1) -> x)", errors.NotSupportedError, "lambda functions"),
        ("UPDATE t SET (i64, s) = (1)", errors.ParseError, "a value for each column"),
        ("UPDATE t SET (i64, s) = 5", errors.ParseError, "( is expected"),
        ("CREATE TABLE n AS SELECT 1 AS a WITH NO ROWS", errors.NotSupportedError, "CREATE TABLE"),
        ("SELECT t.nothing FROM t", errors.BindError, "nothing"),
        ("SELECT x.i64 FROM t", errors.BindError, "x"),
        ("SELECT s.uper() FROM t", errors.BindError, "'uper'"),
        ("SELECT nothing.upper() FROM t", errors.BindError, "'nothing'"),
        ("SELECT 1 IN 5", errors.ParseError, "( or a list is expected"),
        ("SELECT id = ANY(id) FROM t", errors.BindError, "any takes a list or a query"),
        ("SELECT id FROM t, one", errors.BindError, "ambiguous"),
        ("SELECT i64 FROM t GROUP BY s", errors.BindError, "group by"),
        ("SELECT sum(sum(i64)) FROM t", errors.BindError, "sum"),
        ("SELECT id FROM t WHERE sum(i64) > 1", errors.BindError, "where"),
        ("SELECT s + 1 FROM t", errors.BindError, "varchar"),
        ("SELECT id FROM t WHERE day", errors.BindError, "boolean"),
        ("SELECT day + flag FROM t", errors.BindError, "date"),
        ("SELECT stddev(s) FROM t", errors.BindError, "no function matches stddev(varchar)"),
        ("SELECT min_by(s) FROM t", errors.BindError, "no function matches min_by(varchar)"),
        ("SELECT count(DISTINCT id, s) FROM t", errors.BindError, "count(distinct (a, b))"),
        ("SELECT string_agg(DISTINCT s, ',' ORDER BY id) FROM t", errors.BindError, "only be ordered by its arguments"),
        ("SELECT sum(id) WITHIN GROUP (ORDER BY id) FROM t", errors.BindError, "sum takes no within group"),
        ("SELECT mode(id ORDER BY s) FROM t", errors.NotSupportedError, "mode with an order by"),
        ("SELECT frobnicate(i64) FROM t", errors.BindError, "frobnicate"),
        ("SELECT substrin(s, 1) FROM t", errors.BindError, "substring"),
        ("SELECT id FROM t ORDER BY 9", errors.BindError, "9"),
        ("SELECT id FROM t UNION ALL SELECT id, s FROM t", errors.BindError, "column"),
        ("SELECT id FROM t INTERSECT SELECT id, s FROM t", errors.BindError, "intersect have 1 and 2 columns"),
        ("SELECT id, id FROM t UNION BY NAME SELECT 1", errors.BindError, "two columns 'id'"),
        ("SELECT day FROM t EXCEPT SELECT 1", errors.BindError, "except cannot mix values of type date"),
        ("SELECT id FROM t EXCEPT BY NAME SELECT id FROM t", errors.ParseError, "by"),
        ("SELECT * FROM t SEMI JOIN (SELECT t.id) u ON TRUE", errors.BindError, "inner or left"),
        ("SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.id) u ON TRUE", errors.BindError, "inner or left"),
        ("SELECT s, GROUPING(flag) FROM t GROUP BY ROLLUP (s)", errors.BindError, "grouping must be a key"),
        ("SELECT GROUPING(s) FROM t", errors.BindError, "grouping must be a key"),
        ("SELECT sum(GROUPING(s)) FROM t GROUP BY CUBE (s)", errors.BindError, "sum cannot contain grouping"),
        ("SELECT id FROM t GROUP BY ROLLUP (s)", errors.BindError, "'id' must be in group by"),
        ("SELECT 1 FROM t GROUP BY ROLLUP ()", errors.ParseError, ")"),
        (
            f"SELECT 1 FROM t GROUP BY CUBE ({', '.join(f'id + {n}' for n in range(17))})",
            errors.NotSupportedError,
            "65535",
        ),
        ("SELECT id FROM t LIMIT 150%", errors.BindError, "between 0 and 100"),
        ("SELECT id FROM t LIMIT (SELECT -1)", errors.ConversionError, "out of range"),
        ("SELECT id FROM t LIMIT id", errors.BindError, "id"),
        ("SELECT DISTINCT ON (2) id FROM t", errors.BindError, "2"),
        ("SELECT * FROM t TABLESAMPLE foo(10%)", errors.BindError, "'foo'"),
        ("SELECT * FROM t TABLESAMPLE system(10 ROWS)", errors.BindError, "a percentage"),
        ("SELECT * FROM t USING SAMPLE 200%", errors.BindError, "between 0 and 100"),
        ("SELECT COLUMNS('zzz') FROM t", errors.BindError, "no column is meant"),
        ("SELECT COLUMNS('(') FROM t", errors.BindError, "regular expression"),
        ("SELECT COLUMNS(*) + COLUMNS('i.*') FROM t", errors.BindError, "the same"),
        ("SELECT COLUMNS([id]) FROM t", errors.NotSupportedError, "a list of names"),
        ("SELECT COLUMNS(lambda c: c = 'zzz') FROM t", errors.BindError, "no column is meant"),
        ("SELECT COLUMNS(lambda c: id = 1) FROM t", errors.BindError, "id"),
        ("SELECT COLUMNS(lambda c: c || 'x') FROM t", errors.Error, "BOOLEAN"),
        ("SELECT (id, 1) < (1, 2, 3) FROM t", errors.BindError, "row of 2 values"),
        ("SELEC 1", errors.ParseError, ""),
        ("SELECT FROM WHERE", errors.ParseError, ""),
        ("SELECT (1", errors.ParseError, ""),
        ("", errors.ProgrammingError, ""),
        ("SELECT id FROM t QUALIFY id = 1", errors.BindError, "without a window function"),
        ("SELECT id FROM t WHERE row_number() OVER () = 1", errors.BindError, "WHERE cannot contain window"),
        ("SELECT id FROM t GROUP BY id, rank() OVER ()", errors.BindError, "GROUP BY cannot contain window"),
        ("SELECT n FROM t GROUP BY n HAVING rank() OVER () = 1", errors.BindError, "HAVING cannot contain window"),
        ("SELECT 1 FROM t a JOIN t b ON rank() OVER () = a.id", errors.BindError, "ON cannot contain window"),
        ("SELECT sum(rank() OVER ()) FROM t", errors.BindError, "sum cannot contain window"),
        ("SELECT sum(rank() OVER ()) OVER () FROM t", errors.BindError, "a window function cannot contain window"),
        ("SELECT n, sum(id) OVER () FROM t GROUP BY n", errors.BindError, "'id' must be in GROUP BY"),
        ("SELECT sum(id) OVER w FROM t", errors.BindError, "window 'w' does not exist"),
        ("SELECT 1 FROM t WINDOW w AS (), w AS ()", errors.BindError, "defined twice"),
        ("SELECT rank() OVER w FROM t WINDOW w AS (v), v AS (w)", errors.BindError, "does not exist"),
        ("SELECT rank() OVER (w PARTITION BY n) FROM t WINDOW w AS (ORDER BY id)", errors.BindError, "cannot override"),
        ("SELECT rank() OVER (w ORDER BY n) FROM t WINDOW w AS (ORDER BY id)", errors.BindError, "cannot override"),
        ("SELECT rank() OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)", errors.BindError, "cannot extend"),
        ("SELECT rank() OVER (ORDER BY ALL) FROM t", errors.BindError, "no ORDER BY ALL"),
        ("SELECT sum(n) OVER (RANGE 1 PRECEDING) FROM t", errors.BindError, "needs one ORDER BY key"),
        ("SELECT sum(n) OVER (ORDER BY n, id RANGE 1 PRECEDING) FROM t", errors.BindError, "needs one ORDER BY key"),
        ("SELECT sum(n) OVER (ORDER BY s RANGE 1 PRECEDING) FROM t", errors.BindError, "no function matches"),
        (
            "SELECT sum(n) OVER (ORDER BY n RANGE INTERVAL 1 DAY PRECEDING) FROM t",
            errors.BindError,
            "no function matches",
        ),
        ("SELECT sum(n) OVER (ROWS BETWEEN CURRENT ROW AND -1 PRECEDING) FROM t", errors.BindError, "cannot end at PRECEDING"),
        ("SELECT sum(n) OVER (ORDER BY n RANGE -1 PRECEDING) FROM t", errors.BindError, "cannot be negative"),
        ("SELECT sum(n) OVER (ORDER BY n GROUPS -1 PRECEDING) FROM t", errors.BindError, "cannot be negative"),
        ("SELECT s COLLATE NOCASE FROM t", errors.NotSupportedError, "collate nocase"),
        ("SELECT s FROM t ORDER BY s COLLATE de", errors.NotSupportedError, "collate de"),
        ("SELECT max(s COLLATE NOCASE) FROM t", errors.NotSupportedError, "collate nocase"),
        ("SELECT COLUMNS(['n', 'nope']) FROM t", errors.BindError, "no column 'nope'"),
        ("SELECT COLUMNS([n]) FROM t", errors.NotSupportedError, "a list of names"),
        ("SELECT * FROM range(1, 5, 0)", errors.BindError, "a step of 0"),
        ("SELECT * FROM range(2.5)", errors.BindError, "integers"),
        ("SELECT * FROM range(DATE '2020-01-01', DATE '2020-01-02', 3)", errors.BindError, "interval"),
        ("SELECT * FROM range(DATE '2020-01-01', DATE '2020-01-02', INTERVAL 0 DAY)", errors.BindError, "a step of 0"),
        ("CREATE VIEW v AS SELECT * FROM range((SELECT 3))", errors.BindError, "a view rests on no answer"),
        ("SELECT ROW(1) = 1", errors.BindError, "cannot compare"),
        ("SELECT {'a': n}.b FROM t", errors.BindError, "no field 'b'"),
        ("SELECT {'a': n}[1] FROM t", errors.BindError, "by its name"),
        ("SELECT {'a': n, 'A': 1} FROM t", errors.BindError, "the name 'A' twice"),
        ("SELECT n.a FROM t", errors.BindError, "it is no struct"),
        ("SELECT struct_pack(n) FROM t", errors.BindError, "arguments with names"),
        ("SELECT {'a': 1}::STRUCT(b INTEGER)", errors.BindError, "cannot CAST STRUCT(a INTEGER)"),
        ("SELECT {'a': INTERVAL 1 DAY}", errors.NotSupportedError, "structs of INTERVAL"),
        ("SELECT map([1, 1], [2, 3])", errors.ConversionError, "have to differ"),
        ("SELECT map([NULL], [n]) FROM t", errors.ConversionError, "none can be NULL"),
        ("SELECT map([1], [2, 3])", errors.ConversionError, "as many values"),
        ("SELECT map_concat(MAP {'a': 1}, MAP {'a': 'x'})", errors.BindError, "maps of one type"),
        ("SELECT MAP {'a': 1}[1]", errors.BindError, "no key of a value of type MAP(VARCHAR, INTEGER)"),
        ("SELECT histogram(n, [n]) FROM t", errors.NotSupportedError, "no constant list"),
        ("SELECT approx_top_k(n, 0) FROM t", errors.BindError, "an integer above 0"),
        ("SELECT min(n, 0) FROM t", errors.DataError, "n has to be above 0"),
        ("SELECT arg_max(n, s, -2) FROM t", errors.DataError, "n has to be above 0"),
        ("SELECT max(n, NULL) FROM t", errors.DataError, "n cannot be NULL"),
        ("SELECT max(n, 1000000) FROM t", errors.DataError, "n has to be below 1000000"),
        ("SELECT min_by(n, s, 2.5) FROM t", errors.BindError, "candidate: min_by(x any, y any, n) -> list"),
        ("SELECT _min_n(n, n, 1) FROM t", errors.BindError, "_min_n"),
        ("SELECT regexp_extract_all('aab', 'a*')", errors.DataError, "'a*' matches empty texts"),
        ("SELECT regexp_extract_all('a', '(a)', 2)", errors.DataError, "no group 2 of '(a)'; there are 1"),
        ("SELECT regexp_extract_all('a', '(')", errors.DataError, "missing"),
        ("SELECT '3'::INTERVAL MONTH TO DAY", errors.ParseError, "TO cannot stand here"),
        ("SELECT 'abc'::VARCHAR[1:1]", errors.ParseError, ": cannot stand here: ] is expected"),
        ("SELECT CAST(s AS VARCHAR[:]) FROM t", errors.ParseError, ": cannot stand here: ] is expected"),
        ("SELECT n::DECIMAL(5, 2)[n] FROM t", errors.ParseError, "n cannot stand here: ] is expected"),
        ("SELECT [n]::INTEGER[][1:2] FROM t", errors.ParseError, ": cannot stand here: ] is expected"),
        ("SELECT s->>1.5 FROM t", errors.BindError, "no function matches json_extract_string"),
        ("SELECT 1 WHERE '{}'->'1' = 1", errors.BindError, "no function matches json_extract"),
        ("SAVEPOINT x", errors.NotSupportedError, "SAVEPOINT; ROLLBACK takes back"),
        ("RELEASE SAVEPOINT x", errors.NotSupportedError, "RELEASE; there are no savepoints"),
        ("FORCE CHECKPOINT", errors.NotSupportedError, "FORCE CHECKPOINT; tables are in memory"),
        ("ANALYZE t", errors.NotSupportedError, "ANALYZE; statistics"),
        ("INSTALL json", errors.NotSupportedError, "INSTALL; there are no extensions"),
        ("EXPORT DATABASE 'x'", errors.NotSupportedError, "EXPORT; COPY writes"),
        ("COMMENT ON TABLE t IS 'x'", errors.NotSupportedError, "COMMENT; tables"),
        ("CALL pragma_version()", errors.NotSupportedError, "CALL; functions that give tables"),
        ("SELECT '[1, 2'::INTEGER[]", errors.ConversionError, "could not convert string '[1, 2' to INTEGER[]"),
        ("SELECT '[x]'::INTEGER[]", errors.ConversionError, "could not convert string 'x' to INTEGER"),
        ("SELECT '{b: 1}'::STRUCT(a INTEGER)", errors.ConversionError, "to STRUCT(a INTEGER)"),
        ("SELECT '{1=2, 01=3}'::MAP(INTEGER, INTEGER)", errors.ConversionError, "have to differ"),
        ("CREATE TABLE n (a INT REFERENCES t)", errors.NotSupportedError, "REFERENCES; no table depends on others"),
        ("CREATE TABLE n (a INT GENERATED ALWAYS AS (1))", errors.NotSupportedError, "GENERATED"),
        (
            "CREATE TABLE n (a INT, FOREIGN KEY (a) REFERENCES t (n))",
            errors.NotSupportedError,
            "FOREIGN KEY; no table depends on others",
        ),
        ("SELECT abs(x := 1)", errors.NotSupportedError, "x := 1"),
        ("SELECT n NOT GLOB 'x' FROM t", errors.ParseError, "cannot stand here"),
        ("RESET", errors.ParseError, "a name is expected"),
        ("RESET no_such_setting", errors.ProgrammingError, "no_such_setting"),
        ("SELECT sum(n) OVER (ROWS NULL PRECEDING) FROM t", errors.BindError, "cannot be NULL"),
        ("SELECT sum(n) OVER (ROWS 1 FOLLOWING) FROM t", errors.BindError, "cannot end at CURRENT ROW"),
        ("SELECT sum(n) OVER (ROWS UNBOUNDED FOLLOWING) FROM t", errors.BindError, "cannot start at"),
        ("SELECT rank(n) OVER () FROM t", errors.BindError, "no function matches rank"),
        ("SELECT ntile('x', 1) OVER () FROM t", errors.BindError, "no function matches ntile"),
        ("SELECT rank() FILTER (WHERE true) OVER () FROM t", errors.BindError, "takes no FILTER"),
        ("SELECT lag(DISTINCT n) OVER () FROM t", errors.BindError, "takes no DISTINCT"),
        ("SELECT sum(n IGNORE NULLS) OVER () FROM t", errors.BindError, "IGNORE NULLS"),
        ("SELECT sum(n IGNORE NULLS) FROM t", errors.ParseError, "OVER"),
        ("SELECT abs(n) OVER () FROM t", errors.BindError, "takes no OVER"),
        ("SELECT nothing(n) OVER () FROM t", errors.BindError, "no window function 'nothing'"),
        ("SELECT ntile(2 ORDER BY id) OVER (ORDER BY s) FROM t", errors.NotSupportedError, "ORDER BY inside ntile"),
        ("SELECT mad(n) OVER (ORDER BY id) FROM t", errors.NotSupportedError, "mad over a part"),
        ("SELECT entropy(n) OVER (ROWS 1 PRECEDING) FROM t", errors.NotSupportedError, "over a part of a partition"),
        ("SELECT ntile(0) OVER () FROM t", errors.DataError, "greater than zero"),
        ("ALTER TABLE t ADD COLUMN z INTEGER UNIQUE", errors.NotSupportedError, "UNIQUE behind the type"),
        ("SET no_such_setting = 1", errors.ProgrammingError, "no_such_setting"),
        ("SET threads = 'many'", errors.ProgrammingError, "many"),
    ],
)
def test_the_text_is_at_fault(sql: str, error: type[Exception], match: str) -> None:
    expect_error(sql, error, match)


def test_a_caret_stands_under_the_place() -> None:
    text = expect_error("SELECT id,\n       i46 + 1\nFROM t", errors.BindError, "LINE 2")
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("LINE 2"))
    assert lines[place + 1].index("^") == lines[place].index("i46")


def test_all_reasons_at_once() -> None:
    text = expect_error("SELECT row_number() OVER (), s COLLATE NOCASE FROM t ORDER BY s", errors.NotSupportedError, "")
    assert "OVER" in text.upper()
    assert "COLLATE" in text.upper()


OVERFLOWS = [
    ("SELECT i8 + i8 FROM ints", "tinyint"),
    ("SELECT i16 * i16 FROM ints", "smallint"),
    ("SELECT i32 + i32 FROM ints", "integer"),
    ("SELECT i64 + 1 FROM ints", "bigint"),
    ("SELECT i64 - 1 FROM ints", "bigint"),
    ("SELECT i64 * i64 FROM ints", "bigint"),
    ("SELECT -i64 FROM ints", "bigint"),
    ("SELECT u8 - 1::utinyint FROM ints", "utinyint"),
    ("SELECT u64 + u64 FROM ints", "ubigint"),
    ("SELECT sum(i64) FROM (SELECT i64 FROM ints WHERE i64 > 0 UNION ALL SELECT i64 FROM ints WHERE i64 > 0) AS q", ""),
    ("SELECT sum(u64) FROM ints", ""),
    ("SELECT d18 + d18 FROM decs", "decimal"),
    ("SELECT d38 + 1 FROM decs", "decimal"),
    ("SELECT d18 * d18 FROM decs", "decimal"),
    ("SELECT sum(d38) FROM (SELECT d38 FROM decs WHERE d38 > 0 UNION ALL SELECT d38 FROM decs WHERE d38 > 0) AS q", ""),
    ("SELECT avg(x) FROM (SELECT a.d38 AS x FROM decs a, range(3) WHERE a.d38 > 0) AS q", "128 bits"),
    ("SELECT abs(i64) FROM ints", ""),
    ("SELECT day + 2147483647 FROM dates", "date"),
]


@pytest.mark.parametrize(("sql", "match"), OVERFLOWS)
def test_overflow_raises_and_never_wraps(sql: str, match: str) -> None:
    expect_error(sql, errors.OutOfRangeError, match, edges())


@pytest.mark.parametrize(("sql", "match"), OVERFLOWS[:2] + OVERFLOWS[5:6] + OVERFLOWS[9:12])
def test_overflow_raises_in_compiled_kernels(sql: str, match: str) -> None:
    expect_error(sql, errors.OutOfRangeError, match, edges(), targets=("cpu",))


@pytest.mark.cuda
@pytest.mark.parametrize(("sql", "match"), OVERFLOWS)
def test_overflow_raises_on_a_gpu(sql: str, match: str) -> None:
    expect_error(sql, errors.OutOfRangeError, match, edges(), targets=("cuda",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(i64 AS TINYINT) FROM ints",
        "SELECT CAST(u64 AS BIGINT) FROM ints",
        "SELECT CAST(d38 AS BIGINT) FROM decs",
        "SELECT CAST(x AS INTEGER) FROM floats",
        "SELECT CAST(i32 AS DECIMAL(5, 2)) FROM ints",
        "SELECT CAST(1e300 AS REAL)",
        "SELECT CAST(x AS UBIGINT) FROM floats",
        "SELECT day + 1 FROM dates",
        "SELECT CAST('twelve' AS INTEGER)",
        "SELECT CAST('1995-02-30' AS DATE)",
    ],
)
def test_a_failed_cast(sql: str) -> None:
    expect_error(sql, errors.DataError, "", edges())


def test_only_rows_that_are_reached_can_fail() -> None:
    connection = gquery.connect(device="python")
    connection.register("ints", edges()["ints"])
    kept = connection.sql("SELECT i64 + 1 FROM ints WHERE i64 < 9223372036854775807").fetchall()
    assert sorted(kept) == [(-(2**63) + 1,), (1,)]
    assert connection.sql("SELECT CASE WHEN i8 < 127 THEN i8 + 1::TINYINT ELSE 0 END FROM ints").fetchall()[1] == (0,)


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_a_scalar_subquery_with_two_rows(target: str) -> None:
    for sql in ("SELECT (SELECT v FROM l)", "SELECT id FROM u WHERE v > (SELECT l.v FROM l WHERE l.k = u.k)"):
        assert_error(sql, joins(), errors.CardinalityError, "row", targets=(target,), ranks=(1, 3))


def test_files(tmp_path: Path) -> None:
    connection = gquery.connect(device="python")
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 this is no Parquet file PAR1")
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), good)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(good.read_bytes()[:-20])
    for path in (tmp_path / "none.parquet", damaged, cut, tmp_path):
        with pytest.raises(errors.Error, match=path.name.split(".")[0]):
            connection.sql(f"SELECT * FROM '{path}'").fetchall()
        with pytest.raises(errors.FileError):
            connection.read_parquet(path).fetchall()
    assert connection.sql(f"SELECT sum(a) FROM '{good}'").fetchall() == [(6,)]


def test_a_file_that_breaks_inside_is_no_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    pq.write_table(pa.table({"a": list(range(20000))}), path, compression="snappy", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:4000] = bytes(3960)
    path.write_bytes(bytes(content))
    connection = gquery.connect(device="python")
    with pytest.raises(errors.FileError, match="broken"):
        connection.sql(f"SELECT sum(a) FROM '{path}'").fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.skipif(has_gpu(), reason="there is a GPU here")
def test_a_gpu_where_there_is_none() -> None:
    for device in ("cuda", "cuda:1"):
        with pytest.raises(errors.DeviceError):
            gquery.connect(device=device)


def test_unknown_devices() -> None:
    for device in ("tpu", "cuda:x", "cuda:-1", ""):
        with pytest.raises(errors.Error):
            gquery.connect(device=device)


def test_memory_limit() -> None:
    """A query that needs more than it may take fails with what, how much and what to do; the next one runs."""
    connection = gquery.connect(device="cpu", memory_limit="20MB")
    connection.sql("SET spill_limit = '1MB'")
    with pytest.raises(errors.OutOfMemoryError) as raised:
        connection.sql("SELECT range, count(*) FROM range(3000000) GROUP BY range").fetchall()
    assert "memory_limit" in str(raised.value)
    assert connection.sql("SELECT count(*) FROM range(1000)").fetchall() == [(1000,)]


def test_wrong_use() -> None:
    connection = gquery.connect(device="python")
    with pytest.raises(errors.InterfaceError):
        connection.register("t", object())
    with pytest.raises(errors.Error):
        connection.sql("SELECT ?")
    connection.close()
    with pytest.raises(errors.InterfaceError, match="closed"):
        connection.sql("SELECT 1")


@pytest.mark.long
def test_deep_nesting_is_an_error_and_no_crash() -> None:
    connection = gquery.connect(device="python")
    for sql in ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT 1" + " + 1" * 5000):
        with contextlib.suppress(errors.Error):
            connection.sql(sql).fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_the_tree_of_pep_249() -> None:
    for name in ("InterfaceError", "DatabaseError", "DataError", "OperationalError", "IntegrityError", "InternalError"):
        assert issubclass(getattr(gquery, name), gquery.Error)
    assert issubclass(errors.OutOfRangeError, errors.DataError)
    assert issubclass(errors.BindError, gquery.ProgrammingError)
