"""What may fail is computed for rows alone that go there: arguments of calls that the host makes, in branches, and constants.

Kernels compute arguments in a round of their own, before a branch is known to be taken: CAST(CAST(a AS UTINYINT) AS VARCHAR). A
constant that is no value of its type is an error where a row asks for it, and not while planning.
"""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import gquery
from tests.support.harness import assert_same, expect

TABLE = duckdb.sql("""
    SELECT i, CAST(i - 2 AS INTEGER) AS a, CASE WHEN i % 3 <> 0 THEN 'v' || i END AS s,
        DATE '2020-01-01' + CAST(i AS INTEGER) AS d, CAST(i * 1.5 AS DECIMAL(6,2)) AS x, [i, i + 1] AS l, CAST(i AS DOUBLE) AS f,
        9223372036854775790 + i AS big,
        TIMESTAMP '2020-01-01' + to_hours(CAST(i AS INTEGER)) AS ts
    FROM range(1, 12) AS r(i)""").to_arrow_table()
TABLES = {"t": TABLE}
FAILING = [
    "CAST(a AS UTINYINT)", "CAST(i * 30 AS TINYINT)", "CAST(f * 20 AS TINYINT)", "big + i", "a * 2147483640", "ln(a)", "sqrt(a)",
    "CAST(x * 1000 AS DECIMAL(6,2))", "d + a * 2147483640", "ts + INTERVAL '290000 years'", "CAST(f * 1e40 AS REAL)",
    "CAST(i - 5 AS UBIGINT)", "abs(CAST(-a AS TINYINT) - 120)", "1 << CAST(i * 7 AS INTEGER)", "make_timestamp(big * 2)",
    "(x * x) * 100000000000.0", "ts + to_years(CAST(i * 100000 AS INTEGER))",
]  # fmt: skip
CONDITIONS = [
    "i > 5", "i > 2 AND i < 5", "i < 4", "s = 'v7'", "a BETWEEN 1 AND 3", "s LIKE 'v1%'", "upper(s) = 'V4'", "i = 2", "s IS NULL",
    "d < DATE '2020-01-04'", "length(s || 'x') = 3 AND i < 3",
]  # fmt: skip
CALLS = [
    "CAST({k} AS VARCHAR)", "upper(CAST({k} AS VARCHAR))", "'v' || {k}", "concat('a', {k}, s)", "CAST([{k}, {k}] AS VARCHAR)",
    "length('q' || {k})", "coalesce(s, CAST({k} AS VARCHAR))", "format('{{}}', {k})", "lpad(CAST({k} AS VARCHAR), 5, '0')",
    "list_contains(l, CAST(length(CAST({k} AS VARCHAR)) AS BIGINT))",
]  # fmt: skip
FORMS = [
    "SELECT i, CASE WHEN {c} THEN {h} END FROM t",
    "SELECT i, CASE WHEN NOT ({c}) THEN NULL WHEN {c} THEN {h} ELSE NULL END FROM t",
    "SELECT i FROM t WHERE {c} AND {h} IS NOT NULL",
    "SELECT i, NOT ({c}) OR ({h}) IS NULL FROM t",
    "SELECT i, CASE WHEN {c} THEN coalesce(CAST({h} AS VARCHAR), 'n') ELSE upper('x' || i) END FROM t",
    "SELECT max(CASE WHEN {c} THEN {h} END), count(*) FROM t",
    "SELECT max({h}) FILTER (WHERE {c}) FROM t",
    "SELECT i, CASE WHEN {c} THEN CASE WHEN upper(s) = 'V' || i THEN {h} END END FROM t",
]


def _answers(sql: str) -> bool:
    try:
        expect(sql, TABLES)
    except duckdb.Error:
        return False
    return True


@pytest.mark.parametrize("form", FORMS)
def test_in_branches(form: str) -> None:
    """25 calls of each form, whose argument fails for some rows, and not for those that go there."""
    drawn, asked = random.Random(form), 0
    while asked < 25:
        k, c = drawn.choice(FAILING), drawn.choice(CONDITIONS)
        sql = form.format(c=c, h=drawn.choice(CALLS).format(k=k))
        if not _answers(f"SELECT {k} FROM t") and _answers(f"SELECT {k} FROM t WHERE {c}") and _answers(sql):
            assert_same(sql, TABLES, targets=("python",))
            asked += 1


CONSTANTS = """
SELECT CASE WHEN i > 100 THEN CAST('abc' AS INTEGER) END FROM t
SELECT i FROM t WHERE i > 100 AND CAST('abc' AS INTEGER) = 1
SELECT i FROM t WHERE i >= 0 OR CAST('abc' AS INTEGER) = 1
SELECT CAST('abc' AS INTEGER), TIMESTAMPTZ 'x', TIME 'x', 'x'::BOOLEAN, 'x'::DECIMAL(5,2) * i, '1e400'::DOUBLE FROM e
SELECT CAST(c AS INTEGER) FROM (SELECT 'abc' AS c FROM t WHERE i > 100)
SELECT coalesce(i, CAST('abc' AS INTEGER)), i + CASE WHEN i > 100 THEN '1x' ELSE '1' END FROM t
SELECT max(CAST('abc' AS INTEGER)), count(CAST('x' AS DATE)), list(DATE 'x') FROM t WHERE i > 100
SELECT CAST('abc' AS INTEGER) FROM t LIMIT 0
SELECT (SELECT CAST('abc' AS INTEGER) WHERE false)
SELECT CASE WHEN true THEN 1 ELSE CAST('abc' AS INTEGER) END
SELECT list_transform([1], lambda x: CASE WHEN x > 5 THEN CAST('abc' AS INTEGER) ELSE x END)
SELECT i FROM t WHERE i IN (1, CASE WHEN i > 100 THEN CAST('abc' AS INTEGER) END)
SELECT CASE WHEN i > 100 THEN DATE '2020-13-01' END, CASE WHEN i > 100 THEN 'x'::INTERVAL END FROM t
SELECT * FROM e WHERE d > 'abc' OR i = 'x'
SELECT i, CAST('x' AS INTEGER) AS k, count(*) FROM e GROUP BY ALL ORDER BY CAST('x' AS INTEGER)
SELECT i FROM e UNION ALL SELECT CAST('x' AS INTEGER) FROM e
SELECT i FROM t WHERE i = (SELECT CAST('x' AS INTEGER) FROM e) OR i IN (SELECT CAST('x' AS INTEGER) FROM e)
SELECT extract(year FROM DATE 'x'), DATE 'x' - d, strftime(DATE 'x', '%Y'), substring(s, CAST('x' AS INTEGER)) FROM e
SELECT max(CAST('x' AS INTEGER)) OVER (ORDER BY DATE 'x') FROM e
SELECT CAST('abc' AS INTEGER)
SELECT i FROM t WHERE d > 'abc'
SELECT i FROM t WHERE i IN ('1', 'x')
SELECT CASE WHEN i > 2 THEN 'x'::DATE END FROM t
SELECT sum(i) OVER (ORDER BY i ROWS CAST('x' AS INTEGER) PRECEDING) FROM t
SELECT count(CAST('x' AS INTEGER)) FROM t
SELECT i FROM t ORDER BY CAST('x' AS INTEGER)
SELECT i FROM t LIMIT CAST('x' AS INTEGER)
SELECT CASE WHEN i > 100 THEN UUID 'x' END, CASE WHEN i > 100 THEN '{'::JSON END, CASE WHEN i > 100 THEN JSON '{' END FROM t
SELECT UUID 'x', '{'::JSON, JSON '{', '\\x'::BLOB, INTERVAL 'x', INTERVAL '1 dy', INTERVAL '99999999999 years' FROM e
SELECT 'x'::INTEGER[], '{'::STRUCT(a INTEGER), 'x'::MAP(INTEGER, INTEGER), ['x']::INTEGER[], {'a': 'x'}::STRUCT(a DATE) FROM e
SELECT json_extract('{', 'a'), unhex('zz'), from_base64('!'), decode(unhex('ff')), strptime('x', '%Y') FROM e
SELECT i FROM t WHERE i > 100 AND (UUID 'x' IS NOT NULL OR '{'::JSON IS NULL OR 'x'::INTEGER[] = [1] OR '\\x'::BLOB = ''::BLOB)
SELECT d + INTERVAL 'x' FROM e
SELECT JSON '{"a": 1}' ->> 'a', JSON '1'::INTEGER + i, [JSON '[1]'], CASE WHEN JSON '{}' = '{}' THEN 1 END FROM t
SELECT UUID 'x' FROM t
SELECT JSON 'x' FROM t
SELECT 'x'::INTEGER[] FROM t
SELECT '\\x'::BLOB FROM t
SELECT INTERVAL 'x' FROM t
SELECT CASE WHEN i > 2 THEN INTERVAL '1 dy' END FROM t
"""


@pytest.mark.parametrize("sql", CONSTANTS.strip().splitlines())
def test_constants(sql: str) -> None:
    """As in DuckDB: an error where a row has it, one of gquery's own."""
    tables = TABLES | {"e": TABLE.slice(0, 0)}
    try:
        expect(sql, tables)
    except duckdb.Error:
        db = gquery.connect(device="python")
        for name, table in tables.items():
            db.register(name, table)
        with pytest.raises(gquery.Error) as raised:
            db.sql(sql).fetchall()
        assert not isinstance(raised.value, gquery.InternalError)
    else:
        assert_same(sql, tables, targets=("python",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1,\n  CAST('a''c' AS INTEGER)", "SELECT i FROM t WHERE d > 'a''c'", "INSERT INTO t VALUES ('a''c', NULL)",
        "CREATE TABLE u AS SELECT 'a''c'::DATE", "SELECT TIMESTAMPTZ 'a''c'",
    ],
)  # fmt: skip
def test_place_of_constants(sql: str) -> None:
    """The error points at the constant."""
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t AS SELECT 1 AS i, DATE '2020-01-01' AS d")
    with pytest.raises(gquery.ConversionError) as raised:
        db.sql(sql).fetchall()
    *_, line, caret = str(raised.value).splitlines()
    assert line[caret.index("^") :].startswith("'a''c'")


LONG = "x" * 100


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("CAST({} AS TIMESTAMPTZ)", "could not convert string 'zz' to TIMESTAMP WITH TIME ZONE"),
        ("CAST({} AS UUID)", "could not convert string 'zz' to UUID"),
        ("CAST({} AS JSON)", "malformed JSON: 'zz'"),
        ("CAST({} AS DATE)", "could not convert string 'zz' to DATE"),
        ("CAST({} AS INTEGER[])", r"could not convert string 'zz' to INTEGER\[\]"),
        ("strptime({}, '%Y')", "strptime: a text is not of its format: 'zz'"),
        ("from_base64({})", "from_base64: a text is no Base64: 'zz'"),
        ("unhex({})", "unhex: no hexadecimal digits: 'zz'"),
        ("CAST({} || repeat('x', 98) AS UUID)", f"'zz{LONG[:78]}...' to UUID"),
    ],
)
@pytest.mark.parametrize("given", ["'zz'", "s", "(s || '')", "CASE WHEN i > 0 THEN s END"])
def test_errors_say_the_text(call: str, said: str, given: str) -> None:
    """Of constants, of columns with dictionaries and of texts that are made."""
    db = gquery.connect(device="python")
    db.register("t", pa.table({"s": [None, "zz"] * 20, "i": [0, 1] * 20}))
    with pytest.raises(gquery.ConversionError, match=said):
        db.sql(f"SELECT {call.format(given)} FROM t").fetchall()


@pytest.mark.parametrize(
    "entries", ["[(s, 1)]", "[(s, 1), ('zz', 2)]", "[('a', 1), ('a', 2)]", "[(NULL::VARCHAR, [1])]", "[(s, s), (s, s)]"]
)
@pytest.mark.parametrize("given", ["{}", "CASE WHEN i > 0 THEN {} END"])
def test_errors_of_rows_without_names(entries: str, given: str) -> None:
    """Rows of a list, whose fields have one name, are no values of Python to be said."""
    db = gquery.connect(device="python")
    db.register("t", pa.table({"s": [None, "zz"] * 20, "i": [0, 1] * 20}))
    asked = f"SELECT {given.format(f'map_from_entries({entries})')} FROM t"
    if entries == "[(s, 1)]" and given != "{}":
        assert db.sql(f"SELECT count(*) FROM ({asked}) v(m) WHERE m = MAP {{'zz': 1}}").fetchall() == [(20,)]
    else:
        with pytest.raises(gquery.ConversionError, match="the keys of a map have to differ"):
            db.sql(asked).fetchall()
