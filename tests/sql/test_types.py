"""Types of expressions: what the binder says is what DuckDB's ``typeof`` says, but for the deviations listed here."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery.errors import InterfaceError, NotSupportedError
from gquery.sql.bind import bind_query
from gquery.sql.catalog import Catalog
from tests.support.catalogs import catalog
from tests.support.paths import TESTS

TABLE = """CREATE TABLE t(ti TINYINT, si SMALLINT, i INTEGER, b BIGINT, uti UTINYINT, usi USMALLINT, ui UINTEGER,
    ub UBIGINT, d92 DECIMAL(9,2), d152 DECIMAL(15,2), d380 DECIMAL(38,0), d3810 DECIMAL(38,10), d41 DECIMAL(4,1),
    d180 DECIMAL(18,0), f FLOAT, db DOUBLE, dt DATE, ts TIMESTAMP, s VARCHAR, bo BOOLEAN, n INTEGER);
    INSERT INTO t VALUES (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, '1995-01-01', '1995-01-01',
    'a', true, NULL)"""
LINES = (TESTS / "functions" / "types.case").read_text().splitlines()
EXPRESSIONS = [tuple(line.rsplit(" => ", 1)) for line in LINES if line and not line.startswith("#")]
# (expression, gquery's type, DuckDB's): HUGEINT does not exist here, and a column has a type
DEVIATIONS = [
    ("sum(i)", "BIGINT", "HUGEINT"),
    ("sum(bo)", "BIGINT", "HUGEINT"),
    ("ub + b", "DECIMAL(21,0)", "HUGEINT"),
    ("CASE WHEN bo THEN b ELSE ub END", "DECIMAL(20,0)", "HUGEINT"),
    ("10000000000000000000", "DECIMAL(20,0)", "HUGEINT"),
    ("0.5 * sum(i)", "DECIMAL(21,1)", "DECIMAL(38,1)"),
    ("NULL", "INTEGER", '"NULL"'),
]


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(TABLE)
    return connection


@pytest.fixture(scope="module")
def tables(oracle: duckdb.DuckDBPyConnection) -> Catalog:
    return catalog(oracle)


def bound_type(expression: str, tables: Catalog) -> str:
    return str(bind_query(f"SELECT {expression} FROM t", tables).outputs[0].dtype)


@pytest.mark.parametrize("expression,expected", EXPRESSIONS)
def test_type(tables: Catalog, expression: str, expected: str) -> None:
    assert bound_type(expression, tables) == expected


def test_types_are_those_of_duckdb(oracle: duckdb.DuckDBPyConnection) -> None:
    for expression, expected in EXPRESSIONS:
        row = oracle.execute(f"SELECT typeof({expression}) FROM t").fetchone()
        assert row == (expected,), expression


@pytest.mark.parametrize("expression,ours,theirs", DEVIATIONS)
def test_deviation(tables: Catalog, oracle: duckdb.DuckDBPyConnection, expression: str, ours: str, theirs: str) -> None:
    assert bound_type(expression, tables) == ours
    assert oracle.execute(f"SELECT typeof({expression}) FROM t").fetchone() == (theirs,)


@pytest.mark.parametrize("digits", ["1" + "0" * 38, str(2**127 - 1), str(2**127), str(2**128 - 1)])
def test_integers_of_39_digits_are_refused(tables: Catalog, digits: str) -> None:
    """They are HUGEINT and UHUGEINT in DuckDB: a DOUBLE in their place is another number."""
    for sql in (f"SELECT {digits}", f"SELECT -{digits} FROM t", f"SELECT i FROM t WHERE i IN (1, {digits}) LIMIT 1"):
        with pytest.raises(NotSupportedError, match="integers of 39 digits"):
            bind_query(sql, tables)
    for value in (int(digits), -int(digits)):
        with pytest.raises(NotSupportedError, match="integers of 39 digits"):
            gquery.connect(device="python").sql("SELECT ?", [value])


def test_integers_beyond_those_of_duckdb(tables: Catalog, oracle: duckdb.DuckDBPyConnection) -> None:
    for digits in (str(2**128), "1" + "0" * 60):
        assert bound_type(digits, tables) == "DOUBLE"
        assert oracle.execute(f"SELECT typeof({digits})").fetchone() == ("DOUBLE",)
        with pytest.raises(InterfaceError, match="too large"):
            gquery.connect(device="python").sql("SELECT ?", [int(digits)])
    assert bound_type("0" * 50 + "7", tables) == "INTEGER"
