"""PIVOT, UNPIVOT, SUMMARIZE and DESCRIBE: names of columns, values that are asked of the data, and what is refused."""

from __future__ import annotations

from itertools import combinations_with_replacement, cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import BinderException, ConversionException

import gquery
from gquery.errors import BindError, CatalogError, Error, FileError, NotSupportedError, ParseError
from tests.support import tables
from tests.support.cases import read_cases
from tests.support.harness import assert_same, connect, oracle

CASES = [case for case in read_cases() if case.name.startswith("pivot:")]
TABLES = tables.pivots()


def test_columns_have_the_names_of_duckdb() -> None:
    ours, duckdb = connect("python", 1, TABLES), oracle(TABLES)
    for case in CASES:
        assert ours.sql(case.sql).columns == duckdb.sql(case.sql).columns, case.sql


def test_which_constants_of_a_list_are_one_value() -> None:
    """All pairs of them: both engines refuse what is one value in two spellings, and have the same columns and rows else."""
    constants = (
        "1", "1::BIGINT", "'1'", "CAST(1 AS VARCHAR)", "abc", "'abc'", "NULL", "NULL::INTEGER", "INTERVAL '1 month'",
        "INTERVAL '30 days'", "'720 hours'::INTERVAL", "0e0", "-0e0", "0::FLOAT", "'nan'::DOUBLE", "'nan'::FLOAT", "2.50", "2.5",
        "CAST(2.5 AS DECIMAL(9, 2))", "DATE '2000-01-01'", "'2000-01-01'::DATE", "'2000-01-01'", "TIMESTAMP '2000-01-01'",
        "TIMESTAMPTZ '2000-01-01'", "TRUE", "'true'", "1::BOOLEAN", "TRY_CAST('x' AS DATE)", "0", "FALSE", "0.0", "0.00",
    )  # fmt: skip
    columns = cycle(("1", "2.50", "'1'", "DATE '2000-01-01'", "INTERVAL '30 days'", "TRUE", "0e0"))
    ours, duckdb, refused = connect("python", 1, {}), oracle({}), 0
    for (a, b), column in zip(combinations_with_replacement(constants, 2), columns):
        text = f"SELECT * FROM (SELECT {column} AS p, 2 AS v) PIVOT (sum(v) FOR p IN ({a} AS x, {b} AS y))"
        try:
            want = duckdb.sql(text).fetchall()
        except BinderException:
            refused += 1
            with pytest.raises(BindError, match="twice"):
                ours.sql(text)
            continue
        except ConversionException:  # of a constant that the column's type does not hold
            with pytest.raises(Error):
                ours.sql(text)
            continue
        assert ours.sql(text).fetchall() == want, text
    assert refused > len(constants)
    for text in ("1::BIGINT, 2::TINYINT", "CAST(1 AS VARCHAR), 2.5::DOUBLE", "'1', 1"):  # and their names
        text = f"SELECT * FROM (SELECT 1 AS p, 2 AS v) PIVOT (sum(v) FOR p IN ({text}))"
        assert ours.sql(text).columns == duckdb.sql(text).columns


@pytest.mark.parametrize(
    "sql",
    [
        "SUMMARIZE SELECT range % 21 AS v FROM range(1001)",
        "SUMMARIZE SELECT a, b, NULL AS n FROM t",
        "SUMMARIZE SELECT g, a, d FROM t WHERE false",
        "SELECT column_name, min, max, avg, count, null_percentage FROM (SUMMARIZE t) ORDER BY column_name",
        "SELECT column_name, min, max, avg, std FROM (SUMMARIZE dd)",
        "DESCRIBE SELECT g, a AS q, NULL AS n FROM t",
        "SELECT column_name, column_type FROM (DESCRIBE t) WHERE column_type = 'INTEGER'",
        "FROM (SHOW TABLES)",
        "SHOW t",
        "SELECT * EXCLUDE (schema) FROM (SHOW ALL TABLES) WHERE schema = current_schema()",
        "SELECT * EXCLUDE (schema) FROM (DESCRIBE) WHERE schema = current_schema()",
        "SELECT name, column_types FROM (SHOW ALL TABLES) WHERE schema = current_schema() AND len(column_names) > 2",
        "SHOW SELECT 1 AS a",
        "DESCRIBE PIVOT t ON a",
    ],
)
def test_what_is_said_of_tables(sql: str) -> None:
    assert connect("python", 1, TABLES).sql(sql).columns == oracle(TABLES).sql(sql).columns
    if "range % 21" in sql:  # whose distinct values DuckDB guesses
        sql = f"SELECT * EXCLUDE (approx_unique, std) FROM ({sql})"
    assert_same(sql, TABLES, targets=("python",))


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("PIVOT t", ParseError, "ON, USING or GROUP BY is expected"),
        ("PIVOT t ON a IN 'x'", ParseError, "values in parentheses"),
        ("PIVOT t ON a IN () USING sum(x)", ParseError, "cannot stand here"),
        ("PIVOT t ON t.a USING sum(x) GROUP BY t.g", ParseError, "cannot stand here"),
        ("PIVOT t ON a USING sum(x) GROUP BY g % 2", ParseError, "% cannot stand here"),
        ("UNPIVOT t", ParseError, "ON is expected"),
        ("UNPIVOT w ON jan INTO x", ParseError, "NAME is expected"),
        ("UNPIVOT w ON jan INTO NAME m", ParseError, "VALUE is expected"),
        ("FROM t PIVOT (sum(x) FOR a)", ParseError, "IN is expected"),
        ("FROM w UNPIVOT (v FOR m jan)", ParseError, "IN is expected"),
        ("PIVOT t ON a IN ('x', x) USING sum(x)", BindError, "names the value 'x' twice"),
        ("PIVOT t ON a IN (('x', 1)) USING sum(x)", BindError, "2 values for 1 columns"),
        ("PIVOT t ON a IN (lower('X')) USING sum(x)", BindError, "takes constants"),
        ("PIVOT t ON a IN (SELECT a, g FROM t) USING sum(x)", BindError, "a query of one column"),
        ("PIVOT t ON (SELECT 1) USING sum(x)", BindError, "no subquery"),
        ("PIVOT t ON a USING sum(x) + count(*)", BindError, "this has 2"),
        ("PIVOT t ON a USING 1", BindError, "this has none"),
        ("PIVOT t ON a USING x", BindError, "this has none"),
        ("PIVOT t ON a USING sum(x) + g", BindError, "only stand within an aggregate"),
        ("PIVOT t ON a USING sum(x) OVER ()", BindError, "window"),
        ("PIVOT t ON a USING sum(x) FILTER (WHERE g > 1)", NotSupportedError, "FILTER within USING"),
        ("PIVOT t ON (a, b) USING sum(x)", NotSupportedError, "without its values"),
        ("PIVOT t JOIN n2 ON t.g = n2.g ON nm USING sum(x)", BindError, "ambiguous"),
        ("PIVOT t ON nope", BindError, "'nope' is not in the FROM clause"),
        ("PIVOT nope ON a", CatalogError, "'nope' does not exist"),
        ("PIVOT (SELECT a FROM t WHERE false) ON a", BindError, "finds no values"),
        ("PIVOT (FROM range(2000)) ON range USING count(*)", NotSupportedError, "more than 1000 columns"),
        ("CREATE VIEW v AS PIVOT t ON a", BindError, "have to be named here"),
        (
            "SELECT (SELECT count(*) FROM (PIVOT (SELECT * FROM t WHERE t.g = n2.g) ON a)) FROM n2",
            BindError,
            "depends on the one around it",
        ),
        ("SELECT t.x FROM t PIVOT (sum(x) FOR a IN ('x') GROUP BY g)", BindError, "'t' is not in the FROM clause"),
        ("UNPIVOT w ON k, s", BindError, "types INTEGER and VARCHAR: an explicit CAST"),
        ("UNPIVOT w ON jan + feb", BindError, "one column each"),
        ("UNPIVOT w ON (jan, k), (feb, k)", BindError, "2 columns for 1 names"),
        ("UNPIVOT w ON nope", BindError, "'nope'"),
        ("SUMMARIZE nope", CatalogError, "'nope' does not exist"),
        ("SUMMARIZE range(3)", ParseError, "cannot stand here"),
        ("DESCRIBE 1", ParseError, "cannot stand here"),
    ],
)
def test_what_is_wrong_is_said(sql: str, error: type[Error], match: str) -> None:
    db = connect("python", 1, TABLES)
    with pytest.raises(error) as caught:
        db.sql(sql).fetchall()
    assert match in str(caught.value)
    assert "\x1e" not in str(caught.value)


# ---- values that are asked of the data -------------------------------------------------------------------------------


def _sales(kinds: list[str]) -> pa.Table:
    return pa.table({"kind": kinds, "price": pa.array(range(len(kinds)), pa.int32())})


def test_a_kept_plan_has_the_values_of_the_data_as_they_are() -> None:
    db, text = gquery.connect("python"), "PIVOT sales ON kind USING sum(price)"
    db.register("sales", _sales(["a", "b"]))
    made = db.sql(text)
    assert made.columns == ["a", "b"]
    db.register("sales", _sales(["b", "c", "d"]))
    assert db.sql(text).columns == ["b", "c", "d"]
    assert made.fetchall() == [(0, 1, 2)]  # it had not run yet


def test_a_changed_file_changes_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "sales.parquet"
    pq.write_table(_sales(["a", "b"]), path)
    db, text = gquery.connect("python"), f"PIVOT '{path}' ON kind USING sum(price)"
    assert db.sql(text).fetchall() == [(0, 1)]
    assert db.sql(text).fetchall() == [(0, 1)]
    pq.write_table(_sales(["c", "a", "e"]), path)
    again = db.sql(text)
    assert (again.columns, again.fetchall()) == (["a", "c", "e"], [(1, 0, 2)])


def test_a_query_of_values_is_of_its_own_tables(tmp_path: Path) -> None:
    """The table that names the values is not read by what runs, and its file changes."""
    path = tmp_path / "kinds.parquet"
    pq.write_table(pa.table({"kind": ["b"]}), path)
    db, text = gquery.connect("python"), f"PIVOT sales ON kind IN (SELECT kind FROM '{path}') USING sum(price)"
    db.register("sales", _sales(["a", "b"]))
    assert db.sql(text).columns == ["b"]
    pq.write_table(pa.table({"kind": ["a", "z", "a"]}), path)
    assert db.sql(text).columns == ["a", "z"]


def test_a_relation_of_a_pivot_notices_new_data(tmp_path: Path) -> None:
    """Its columns are those of the data as they were: what is made of it is an error once they have changed, and no answer
    without the new values."""
    path = tmp_path / "sales.parquet"
    pq.write_table(_sales(["a", "b"]), path)
    db = gquery.connect("python")
    pivoted = db.sql(f"PIVOT '{path}' ON kind USING sum(price)")
    made = [pivoted.filter("a = 0"), pivoted.sql("SELECT b FROM self"), db.sql("SELECT b FROM pivoted").limit(1)]
    assert made[0].fetchall() == [(0, 1)]
    other = pivoted.select("b")
    pq.write_table(_sales(["c", "a", "e"]), path)
    for relation in (*made[1:], other):
        with pytest.raises(FileError, match="make it anew"):
            relation.fetchall()
    assert made[0].fetchall() == [(0, 1)]  # it had run
    assert pivoted.columns == ["a", "b"] and pivoted.fetchall() == [(1, 0, 2)]
    plain = db.sql(f"PIVOT '{path}' ON kind IN ('a', 'z') USING sum(price)").limit(5)
    pq.write_table(_sales(["z"]), path)
    assert plain.fetchall() == [(None, 0)]  # whose columns stand in the text


def test_no_other_constants_take_its_plan() -> None:
    db = gquery.connect("python")
    db.register("sales", _sales(["a", "b", "c"]))
    for least, names in ((0, ["a", "b", "c"]), (1, ["b", "c"]), (2, ["c"]), (0, ["a", "b", "c"])):
        text = f"SELECT * FROM (PIVOT (SELECT * FROM sales WHERE price >= {least}) ON kind USING sum(price))"
        assert db.sql(text).columns == names
        assert db.sql(text.replace(str(least), "$1"), [least]).columns == names
    for name, values in (("x", [0]), ("y", [0])):
        text = f"SELECT * FROM (PIVOT sales ON kind IN ('a' AS {name}) USING sum(price))"
        assert (db.sql(text).columns, db.sql(text).fetchall()) == ([name], [tuple(values)])
    for given, price in (("a", 0), ("b", 1), ("c", 2)):
        text = f"SELECT * FROM (PIVOT sales ON kind IN ('{given}' AS one) USING sum(price))"
        assert db.sql(text).fetchall() == [(price,)]


def test_moments_are_new_in_each_run() -> None:
    """A query with the clock in it is bound anew, and so are its columns."""
    db = gquery.connect("python")
    text = "PIVOT (SELECT now() IS NULL AS never, 1 AS one) ON never USING sum(one)"
    assert [db.sql(text).fetchall() for _ in range(2)] == [[(1,)], [(1,)]]
