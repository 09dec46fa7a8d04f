"""Functions: every case of ``functions/*.case`` and every declared example, on the engine and on DuckDB.

A line of a case file is ``edge: expression => value``; the value is what Python's `str` prints.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import duckdb
import pytest

import gquery
from gquery.errors import BindError, ConversionError, OutOfRangeError
from gquery.functions import AGGREGATES, EXAMPLES, FUNCTIONS, RESOLVERS, call
from gquery.functions.registry import LIST_RESOLVERS, SIGNATURES, arguments_of
from gquery.functions.windows import WINDOWS
from gquery.sql.types import python_literal
from tests.support.paths import TESTS

FOLDER = TESTS / "functions"
FILES = [p.stem for p in sorted(FOLDER.glob("*.case")) if p.stem != "types"]
Case = tuple[str, str, str]


def cases(name: str) -> list[Case]:
    """(edge, expression, value) of a file."""
    lines = (FOLDER / f"{name}.case").read_text().splitlines()
    found: list[Case] = []
    for line in lines:
        if line and not line.startswith("#"):
            edge, rest = line.split(": ", 1)
            expression, value = rest.rsplit(" => ", 1)
            found.append((edge, expression, value))
    return found


def same(value: Any, expected: str) -> bool:
    """Exactly the text, or for doubles the number within 1e-9."""
    if isinstance(value, float) and str(value) != expected:
        return math.isclose(value, float(expected), rel_tol=1e-9, abs_tol=1e-15)
    return str(value) == expected


@pytest.fixture(scope="module")
def engine() -> gquery.Connection:
    return gquery.connect(device="python")


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


@pytest.mark.parametrize("name,case", [pytest.param(n, c, id=f"{n}: {c[0]}") for n in FILES for c in cases(n)])
def test_case(engine: gquery.Connection, name: str, case: Case) -> None:
    edge, expression, expected = case
    value = engine.sql(f"SELECT {expression}").fetchall()[0][0]
    assert same(value, expected), f"{edge}: {expression} gives {value!r}, not {expected}"


@pytest.mark.parametrize("name", FILES)
def test_cases_are_those_of_duckdb(oracle: duckdb.DuckDBPyConnection, name: str) -> None:
    for edge, expression, expected in cases(name):
        row = oracle.sql(f"SELECT {expression}").fetchone()
        assert row is not None
        assert same(row[0], expected), f"{edge}: {expression} gives {row[0]!r}"


@pytest.mark.parametrize("name,sql,expected", [pytest.param(*e, id=f"{e[0]}: {e[1]}") for e in EXAMPLES])
def test_example(
    engine: gquery.Connection, oracle: duckdb.DuckDBPyConnection, name: str, sql: str, expected: str
) -> None:
    value = engine.sql(f"SELECT {sql}").fetchall()[0][0]
    assert same(value, expected), f"{sql} gives {value!r}"
    row = oracle.sql(f"SELECT {sql}").fetchone()
    assert row is not None
    assert same(row[0], expected), f"DuckDB gives {row[0]!r}"


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_example(engine: gquery.Connection, oracle: duckdb.DuckDBPyConnection, name: str) -> None:
    sql, expected = AGGREGATES[name].example
    query = f"SELECT {sql} FROM (VALUES (1), (2), (3)) v(x)"
    assert same(engine.sql(query).fetchall()[0][0], expected)
    row = oracle.sql(query).fetchone()
    assert row is not None
    assert same(row[0], expected)


@pytest.mark.parametrize("name", WINDOWS)
def test_window_example(engine: gquery.Connection, oracle: duckdb.DuckDBPyConnection, name: str) -> None:
    """An example gives the value of the row in which x is 1."""
    sql, expected = WINDOWS[name].example
    query = f"SELECT {sql} FROM (VALUES (1), (2), (3)) v(x) QUALIFY x = 1"
    assert same(engine.sql(query).fetchall()[0][0], expected)
    row = oracle.sql(query).fetchone()
    assert row is not None
    assert same(row[0], expected)


def test_every_function_is_documented() -> None:
    declared = [
        f for f in FUNCTIONS.values() if f.body is None or (f.body.__module__ or "").startswith("gquery.functions.")
    ]
    assert len(declared) > 100  # the rest are Python functions of users: other tests make some
    undocumented = [f.name for f in declared if not f.doc]
    assert not undocumented
    for f in declared:
        if f.body is not None:
            assert not inspect.signature(f.body).parameters.keys() & {"self"}, f.name
            assert f.host is None


def test_every_name_has_a_signature() -> None:
    assert all(SIGNATURES.values())


def test_no_overload_names_the_candidates() -> None:
    with pytest.raises(BindError, match=r"substring\(INTEGER, INTEGER\)(.|\n)*candidate: substring\(VARCHAR, start\)"):
        call("substring", python_literal(1), python_literal(2))


def test_unknown_function_has_candidates() -> None:
    with pytest.raises(BindError, match='"length"'):
        call("lenght", python_literal("x"))


@pytest.mark.parametrize(
    "sql,error",
    [
        ("DATE 'tomorrow'", ConversionError),
        ("'x'::INTEGER", ConversionError),
        ("'300'::TINYINT", ConversionError),
        ("'a' LIKE 'ab' ESCAPE 'xy'", BindError),
        ("1::DATE", BindError),
        ("to_days(2147483647) + INTERVAL 1 DAY", OutOfRangeError),
        ("to_months(-2147483648)", OutOfRangeError),
        ("INTERVAL 1 DAY * 1e300", ConversionError),
        ("'a day'::INTERVAL", ConversionError),
        ("time_bucket(INTERVAL 0 DAY, DATE '2020-01-01')", OutOfRangeError),
        ("time_bucket(INTERVAL '1 month 1 day', DATE '2020-01-01')", OutOfRangeError),
        ("INTERVAL 1 DAY::BIGINT", BindError),
        ("sum(INTERVAL 1 DAY)", BindError),
        ("date_trunc('fortnight', DATE '1995-01-01')", BindError),
        ("1::DECIMAL(38,20) * 1::DECIMAL(38,20)", BindError),
        ("1::DECIMAL(39,0)", BindError),
        ("upper(1)", BindError),
        ("TRUE + 1", BindError),
        ("sqrt(-1)", OutOfRangeError),
        ("ln(0)", OutOfRangeError),
        ("log(1, 2)", OutOfRangeError),
        ("acos(1.5)", OutOfRangeError),
        ("sin('inf'::DOUBLE)", OutOfRangeError),
        ("(-128)::TINYINT % (-1)::TINYINT", OutOfRangeError),
        ("TIMESTAMP '2000-01-01' + INTERVAL 300000 YEAR", OutOfRangeError),
        ("last_day(DATE '5881580-07-10')", OutOfRangeError),
        ("date_diff('microsecond', TIMESTAMP '290309-12-22 (BC)', TIMESTAMP '294247-01-01')", OutOfRangeError),
    ],
)
def test_refused(engine: gquery.Connection, sql: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        engine.sql(f"SELECT {sql}").fetchall()


def test_what_takes_lists_is_found_by_its_name() -> None:
    """`call` looks for a name first, whatever its arguments are."""
    assert [name for name in LIST_RESOLVERS if name not in RESOLVERS] == []


def test_a_resolver_s_arguments_are_those_of_its_signature() -> None:
    assert arguments_of(lambda: None) == (0, 0)
    assert arguments_of(lambda a, b=1: None) == (1, 2)
    assert arguments_of(lambda *rest: None) == (0, 10**9)
    assert arguments_of(lambda a, b, c=2, *rest: None) == (2, 10**9)
