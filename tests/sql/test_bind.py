"""The binder by its plans: ``golden/bound.txt`` holds SQL and the plan that it is bound to, one case a shape.

``GQUERY_UPDATE_GOLDEN=1 pytest tests/sql/test_bind.py`` writes the plans anew.
"""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import gquery
from gquery.errors import BindError, CatalogError, Error, InterfaceError, NotSupportedError
from gquery.expression.types import INTEGER
from gquery.planner.logical.nodes import Limit, Query, Range, Values
from gquery.planner.logical.verify import verify
from gquery.profile.explain import explain
from gquery.sql.bind import bind, bind_query
from gquery.sql.catalog import Catalog
from gquery.sql.definitions import View
from gquery.sql.statement import (
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    Explain,
    SelectStatement,
    SetOption,
)
from tests.support.catalogs import catalog
from tests.support.paths import GOLDEN
from tests.support.plans import bound
from tpch import queries

BOUND = GOLDEN / "bound.txt"
DDL = """CREATE TABLE t(i INTEGER, b BIGINT, d DECIMAL(15,2), dt DATE, ts TIMESTAMP, s VARCHAR, f DOUBLE, bo BOOLEAN);
    CREATE TABLE u(x INTEGER NOT NULL, y BIGINT); CREATE TABLE "Mixed"("Case" INTEGER)"""


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(DDL)
    return connection


@pytest.fixture
def tables(oracle: duckdb.DuckDBPyConnection) -> Catalog:
    return catalog(oracle)


def golden_cases() -> list[tuple[str, str]]:
    """(SQL, plan) of each case of the script."""
    blocks = BOUND.read_text().split("-- sql\n")[1:]
    pairs = (block.partition("-- plan\n") for block in blocks)
    return [(sql.strip(), plan.partition("-- end")[0]) for sql, _, plan in pairs]


def test_golden(tables: Catalog) -> None:
    got: list[tuple[str, str]] = []
    for sql, _ in golden_cases():
        query = bind_query(sql, tables)
        verify(query)
        got.append((sql, explain(query)))
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        BOUND.write_text("\n".join(f"-- sql\n{sql}\n-- plan\n{plan}-- end\n" for sql, plan in got))
    for (sql, plan), (_, expected) in zip(got, golden_cases(), strict=True):
        assert plan == expected, sql


def test_names_and_types_of_the_golden_queries_are_those_of_duckdb(
    tables: Catalog, oracle: duckdb.DuckDBPyConnection
) -> None:
    for sql, _ in golden_cases():
        query = bind_query(sql, tables)
        theirs = [(r[0], r[1].replace("HUGEINT", "BIGINT")) for r in oracle.execute(f"DESCRIBE {sql}").fetchall()]
        assert list(zip(query.names, (str(c.dtype) for c in query.outputs), strict=True)) == theirs, sql


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_tpch_binds(number: int) -> None:
    verify(bound(queries.sql(number)))


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql,error,message",
    [
        ("SELECT q FROM t", BindError, "column 'q' is not in the FROM clause"),
        ("SELECT boo FROM t", BindError, 'Did you mean "bo"'),
        ("SELECT t.q FROM t", BindError, "table 't' has no column 'q'"),
        ("SELECT z.i FROM t", BindError, "table 'z' is not in the FROM clause"),
        ("SELECT x FROM u, u v", BindError, "ambiguous: it may be u.x or v.x"),
        ("SELECT 1 FROM u, u", BindError, "twice"),
        ("SELECT * FROM nosuch", CatalogError, "table 'nosuch' does not exist"),
        ("SELECT * FROM mixd", CatalogError, 'Did you mean "Mixed"?'),
        ("SELECT * FROM other.t", CatalogError, "schema 'other'"),
        ("SELECT lenth(s) FROM t", BindError, '"length"'),
        ("SELECT s + 1 FROM t", BindError, r"+(VARCHAR, INTEGER)"),
        ("SELECT sum(s) FROM t", BindError, "sum(VARCHAR)"),
        ("SELECT i, sum(b) FROM t", BindError, "column 'i' must be in GROUP BY"),
        ("SELECT i FROM t HAVING i > 1", BindError, "must be in GROUP BY"),
        ("SELECT i, (SELECT max(x) FROM u WHERE y = b) FROM t GROUP BY i", BindError, "column 'b' must be in GROUP BY"),
        ("SELECT sum(sum(i)) FROM t", BindError, "cannot contain aggregates"),
        ("SELECT i FROM t WHERE sum(i) > 1", BindError, "WHERE cannot contain aggregates"),
        ("SELECT i FROM t GROUP BY sum(i)", BindError, "GROUP BY cannot contain aggregates"),
        ("SELECT i FROM t ORDER BY 5", BindError, "ORDER BY 5: there are 1 result columns"),
        ("SELECT i FROM t GROUP BY 0", BindError, "GROUP BY 0"),
        ("SELECT i FROM t LIMIT -1", BindError, "negative"),
        ("SELECT DISTINCT i FROM t ORDER BY b", BindError, "SELECT list"),
        ("SELECT x, y FROM u UNION ALL SELECT 1", BindError, "2 and 1 columns"),
        ("SELECT dt FROM t UNION ALL SELECT i FROM t", BindError, "DATE and INTEGER"),
        ("SELECT * FROM t NATURAL JOIN u", BindError, "without a common column"),
        ("SELECT * FROM t JOIN u USING (x)", BindError, "the left side of the join has no column 'x'"),
        ("SELECT i FROM t WHERE i IN (SELECT x, y FROM u)", BindError, "2 columns where 1"),
        ("SELECT (SELECT x, y FROM u)", BindError, "one column"),
        ("SELECT *", BindError, "without a FROM"),
        ("SELECT * EXCLUDE (q) FROM u", BindError, "no column 'q'"),
        ("SELECT a FROM (SELECT 1) v(a, b)", BindError, "2 names"),
        ("VALUES (1), (2, 3)", BindError, "differ in length"),
        ("SELECT i FROM t WHERE i BETWEEN dt AND 3", BindError, "INTEGER and DATE"),
    ],
)
def test_refused(tables: Catalog, sql: str, error: type[Error], message: str) -> None:
    with pytest.raises(error) as caught:
        bind(sql, tables)
    assert type(caught.value) is error
    assert message in str(caught.value)
    assert "LINE 1: " in str(caught.value), "no caret"


@pytest.mark.parametrize(
    "sql,place",
    [
        ("SELECT i,\n  nope\nFROM t", "LINE 2:   nope\n          ^"),
        ("SELECT i FROM t\nWHERE i > 1 AND zz = 3", "LINE 2: WHERE i > 1 AND zz = 3\n                        ^"),
        ("SELECT i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE x = nope)", f"LINE 1: {'x' * 0}SELECT i"),
    ],
)
def test_caret(tables: Catalog, sql: str, place: str) -> None:
    with pytest.raises(BindError) as caught:
        bind(sql, tables)
    assert place in str(caught.value)


def test_every_unsupported_construct_is_named_at_once(tables: Catalog) -> None:
    sql = "SELECT s, f(lambda x: x) FROM u EXCEPT SELECT 2, s COLLATE NOCASE"
    with pytest.raises(NotSupportedError) as caught:
        bind(sql, tables)
    for reason in ("lambda functions", "COLLATE NOCASE"):
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE n(a INTEGER REFERENCES t)",
        "SELECT bitstring_agg(i) FROM t",
        "SELECT i::HUGEINT FROM t",
        "SELECT (SELECT sum(t.i) FROM u) FROM t",  # the aggregate belongs to the outer query
    ],
)
def test_not_supported(tables: Catalog, sql: str) -> None:
    with pytest.raises(NotSupportedError):
        bind(sql, tables)


# ---- statements ------------------------------------------------------------------------------------------------------


def test_statements(tables: Catalog) -> None:
    assert isinstance(bind("FROM u", tables), SelectStatement)
    made = bind("CREATE OR REPLACE TABLE n AS SELECT x, x, y AS X FROM u", tables)
    assert isinstance(made, CreateTable)
    assert made.query.names == ("x", "x_1", "X_2")
    assert made.or_replace
    assert not made.if_not_exists
    view = bind("CREATE VIEW v(a) AS (SELECT x, y FROM u);", tables)
    assert view == CreateView("v", "(SELECT x, y FROM u)", ("a",))
    assert bind("DROP VIEW IF EXISTS v", tables) == DropView("v", if_exists=True)
    assert bind("DROP TABLE u", tables) == DropTable("u")
    assert bind("SET interpret_limit = 0", tables) == SetOption("interpret_limit", 0)
    assert bind("SET memory_limit = '1GB'", tables) == SetOption("memory_limit", "1GB")
    assert isinstance(bind("SHOW TABLES", tables), SelectStatement)
    assert isinstance(bind("DESCRIBE u", tables), SelectStatement)
    explained = bind("EXPLAIN ANALYZE SELECT 1", tables)
    assert isinstance(explained, Explain)
    assert explained.options == ("analyze",)


def test_view(tables: Catalog) -> None:
    tables.register("v", View("v", "WITH t AS (SELECT x FROM u) SELECT x, x + 1 AS z FROM t", ("a",)))
    query = bind_query("WITH u AS (SELECT 1) SELECT v.a, w.z FROM v JOIN v w ON v.a = w.z", tables)
    verify(query)
    assert query.names == ("a", "z")


def test_an_error_in_a_view_points_into_the_view(tables: Catalog) -> None:
    tables.register("v", View("v", "SELECT gone FROM u"))
    with pytest.raises(BindError, match=r"LINE 1: SELECT gone FROM u\n {15}\^"):
        bind("SELECT * FROM v", tables)


def test_files(tables: Catalog) -> None:
    opened: list[Any] = []

    def open_file(path: Any, kind: Any = None, options: Any = None) -> Any:
        opened.append(path)
        return tables.get("u")

    tables.open_file = open_file
    assert bind_query("FROM 'dir/a.parquet'", tables).names == ("x", "y")
    assert bind_query("SELECT f.x FROM read_parquet('b*.parquet') f", tables).names == ("x",)
    assert bind_query("SELECT a.x FROM 'dir/a.parquet'", tables).names == ("x",)
    bind("FROM read_parquet(['c', 'd'])", tables)
    assert opened == ["dir/a.parquet", "b*.parquet", "dir/a.parquet", ["c", "d"]]


def test_catalog() -> None:
    names = Catalog()
    names.register("A", View("A", "SELECT 1"))
    assert names.lookup("a") == names.get("A")
    with pytest.raises(CatalogError, match="already exists"):
        names.register("a", View("a", "SELECT 2"), replace=False)
    version = names.version
    assert names.drop("a")
    assert names.version > version
    assert not names.drop("a", if_exists=True)
    with pytest.raises(CatalogError):
        names.drop("a")


def test_parameters(tables: Catalog) -> None:
    def value(sql: str, parameters: Any) -> list[str]:
        return [str(c.dtype) for c in bind_query(sql, tables, parameters).outputs]

    day, moment = datetime.date(1995, 1, 1), datetime.datetime(1995, 1, 1, 2)
    given = [1, 2**40, 1.5, "a", True, Decimal("1.50"), day, moment, None]
    sql = f"SELECT {', '.join('?' * len(given))}"
    expected = ["INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL(3,2)", "DATE", "TIMESTAMP", "INTEGER"]
    assert value(sql, given) == expected
    assert value("SELECT $2, $1", [1, "a"]) == ["VARCHAR", "INTEGER"]
    assert value("SELECT $name", {"name": 1}) == ["INTEGER"]
    ordered = bind_query("WITH c AS (SELECT ? AS a) SELECT a, ? AS b FROM c LIMIT ?", tables, ["s", 2.5, 7])
    assert [str(c.dtype) for c in ordered.outputs] == ["VARCHAR", "DOUBLE"]
    assert isinstance(ordered.plan, Limit)
    assert ordered.plan.limit == 7
    for sql, parameters in (("SELECT ?", []), ("SELECT $2", [1]), ("SELECT $a", {"b": 1}), ("SELECT ?", None)):
        with pytest.raises(InterfaceError):
            bind(sql, tables, parameters)
    with pytest.raises(InterfaceError):
        bind("SELECT ?", tables, [object()])
    for value_of_no_type in (10**400, -(10**400), 10**5000):
        with pytest.raises(InterfaceError, match="too large"):
            bind("SELECT ?", tables, [value_of_no_type])


@pytest.mark.parametrize(
    "text",
    ["1" * 38, "1" * 40, "9" * 309, "1" * 5000, "-" + "1" * 400, "0" * 5000 + "7", "1" * 5000 + ".5", "0" * 40],
    ids=lambda text: f"{len(text)} characters",
)
def test_numbers_of_many_digits(text: str) -> None:
    """What no integer type holds is a DOUBLE, infinity where that holds it neither; zeros before a number count for nothing."""
    sql = f"SELECT CAST({text} AS DOUBLE), x FROM (SELECT 1 AS x) WHERE x < {text} OR x > {text}"
    assert gquery.sql(sql).fetchall() == duckdb.sql(sql).fetchall()


# ---- single rules ----------------------------------------------------------------------------------------------------


def plan_of(sql: str, tables: Catalog) -> Any:
    query: Query = bind_query(sql, tables)
    return query.plan


def test_from_less_select_has_one_row(tables: Catalog) -> None:
    plan = plan_of("SELECT 1", tables)
    assert plan.source == Values((), ((),))


def test_range(tables: Catalog) -> None:
    for sql, expected in (
        ("FROM range(5)", range(5)),
        ("FROM range(2, 10, 3)", range(2, 10, 3)),
        ("FROM generate_series(1, 3)", range(1, 4)),
        ("FROM generate_series(3, 1, -1)", range(3, 0, -1)),
    ):
        plan = plan_of(sql, tables)
        assert isinstance(plan, Range)
        assert range(plan.start, plan.stop, plan.step) == expected


def test_a_column_of_nulls_is_an_integer(tables: Catalog) -> None:
    query = bind_query("SELECT NULL AS n", tables)
    assert query.outputs[0].dtype == INTEGER


def test_nullability(tables: Catalog) -> None:
    def nullable(sql: str) -> list[bool]:
        return [c.nullable for c in bind_query(sql, tables).outputs]

    assert nullable("SELECT x, y, x + 1, x // 2, x // y, count(*) FROM u GROUP BY ALL") == [
        False, True, False, False, True, False,
    ]  # fmt: skip
    assert nullable("SELECT a.x, b.x FROM u a LEFT JOIN u b ON a.x = b.x") == [False, True]
    assert nullable("SELECT a.x, b.x FROM u a RIGHT JOIN u b ON a.x = b.x") == [True, False]
    assert nullable("SELECT a.x, b.x FROM u a FULL JOIN u b ON a.x = b.x") == [True, True]
    assert nullable("SELECT x FROM u a LEFT JOIN u b USING (x)") == [False]
    assert nullable("SELECT sum(x), max(x) FROM u") == [True, True]
    assert nullable("SELECT x, sum(x), max(y) FROM u GROUP BY x") == [False, False, True]
    assert nullable("SELECT y IS NULL, y IS NOT DISTINCT FROM 1 FROM u") == [False, False]
