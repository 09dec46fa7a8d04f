"""The text is read in full: DuckDB's lexer and grammar, every token in the tree, every part of the tree read."""

from __future__ import annotations

import logging
import re

import duckdb
import pytest
from sqlglot import exp

import gquery
from gquery.errors import BindError, Error, NotSupportedError, ParseError
from gquery.expression import keywords
from gquery.sql.closed import check_read
from gquery.sql.covered import check_covered
from gquery.sql.grammar.tokens import Reading
from gquery.sql.lexer import lex
from gquery.sql.parse import nodes_of, parse_one
from tests.support.harness import assert_same, oracle
from tests.support.mutation_pools import plain_tables


def words(sql: str) -> list[str]:
    return lex(sql).words[:-1]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("1e3+1e3", ["1e3", "+", "1e3"]),
        ("1_000.5_0e1_0", ["1_000.5_0e1_0"]),
        ("1__0", ["1", "__0"]),
        ("1abc 0x1F 1.e 5. .5", ["1", "abc", "0", "x1f", "1.", "e", "5.", ".5"]),
        ("a<-1 b>=+1 c=-1 d*-1", ["a", "<", "-", "1", "b", ">=", "+", "1", "c", "=", "-", "1", "d", "*", "-", "1"]),
        ("2** -1//3::int", ["2", "**", "-", "1", "//", "3", "::", "int"]),
        ("a--b\n-c/* /* */ d */e", ["a", "-", "c", "e"]),
        ("'it''s' \"a\"\"b\" ? $1 $name", ["'it''s'", '"a""b"', "?", "$1", "$name"]),
        ("a!=b AND x<>'y'", ["a", "!=", "b", "and", "x", "<>", "'y'"]),
    ],
)
def test_tokens_are_those_of_duckdb(sql: str, expected: list[str]) -> None:
    assert words(sql) == expected


@pytest.mark.parametrize(
    "sql", ["1 %- 2", "1!=-1", "1//-2", "2**-1", "'open", '"', "/* open", "'a' 'b'", "x'41'", "$$a$$", "a \\ b"]
)
def test_what_is_no_token(sql: str) -> None:
    with pytest.raises(ParseError, match=r"\^$"):
        lex(sql)


def test_keywords_are_those_of_duckdb() -> None:
    ours = {
        "reserved": keywords.RESERVED,
        "column_name": keywords.COLUMN_NAMES,
        "type_function": keywords.FUNCTION_NAMES,
        "unreserved": keywords.UNRESERVED,
    }
    for category, known in ours.items():
        rows = duckdb.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = ?", [category])
        assert {r[0] for r in rows.fetchall()} == known


def refusal(sql: str) -> Error:
    connection = gquery.connect(device="python")
    for name, table in plain_tables().items():
        connection.register(name, table)
    with pytest.raises(Error) as raised:
        connection.sql(sql).fetchall()
    return raised.value


@pytest.mark.parametrize(
    ("sql", "typed"),
    [
        ("SELECT a FROM t LIMIT 1 WITH TIES", "WITH"),
        ("SELECT a FROM t JOIN u", "ON or USING"),
        ("SELECT a FROM t CROSS JOIN u ON true", "ON"),
        ("SELECT a FROM t LEFT u", "u"),
        ("WITH p AS (DROP TABLE t) SELECT 1", "DROP"),
        ("SELECT a FROM t ORDER BY a LIMIT 1 ORDER BY b", "ORDER"),
        ("SELECT a FROM t WHERE a = 1 WHERE b = 1", "WHERE"),
        ("SELECT a b c FROM t", "c"),
        ("SELECT a year FROM t", "year"),
        ("SELECT 1 < 2 < 3", "parentheses"),
        ("SELECT (1,)", r"\)"),
        ("SELECT * FROM (t)", r"\)"),
        ("SELECT sum(a AS b) FROM t", "AS"),
        ("SELECT count(*, 1) FROM t", r"\*"),
        ("SELECT a IS 1 FROM t", "NULL, TRUE, FALSE"),
        ("SELECT a FROM t UNION SELECT v FROM u LIMIT 1 UNION SELECT 1", "UNION"),
        ("SELECT CAST(a AS int(5)) FROM t", r"\("),
        ("SELECT CASE WHEN f THEN 1 ELSE 2 ELSE 3 END FROM t", "ELSE"),
        ("SELECT INTERVAL 1", "a unit"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS v AS SELECT 1", "IF"),
        ("SELECT", "too early"),
        ("SELECT 1 FROM t t2 t3", "t3"),
        ("FROM t,", "too early"),
        ("SELECT VARCHAR 'abc'[2]", "parentheses"),
        ("SELECT nullif(ALL a, 1) FROM t", "ALL"),
        ("SELECT coalesce(DISTINCT a) FROM t", "DISTINCT"),
        ("SELECT coalesce(a) FILTER (WHERE f) FROM t", r"\("),
        ('SELECT a::"DECIMAL(5, 2)" FROM t', "a type"),
        ("FROM t, WHERE a > 1", "WHERE"),
        ("FROM t, SELECT a", "SELECT"),
        ("SELECT a::VARCHAR(2, 3) FROM t", ","),
        ("SELECT d::TIMESTAMP(6, 6) FROM t", ","),
        ('SELECT "coalesce"(a, b) FROM t', "without quotes"),
    ],
)
def test_a_token_that_cannot_stand_there(sql: str, typed: str) -> None:
    with pytest.raises(duckdb.Error):
        oracle(plain_tables()).execute(sql)
    error = refusal(sql)
    assert isinstance(error, ParseError)
    assert re.search(typed, str(error))
    assert str(error).endswith("^")


@pytest.mark.parametrize(
    ("sql", "kind", "match"),
    [
        ("WITH p AS (SELECT 1), p AS (SELECT 2) SELECT * FROM p", BindError, "twice"),
        ("SELECT count(1, 2)", BindError, "count"),
        ("SELECT a FROM t ORDER BY 'a'", BindError, "neither a column"),
        ("SELECT a FROM t ORDER BY (2)", BindError, "ORDER BY 2"),
        ("SELECT a FROM t GROUP BY -1", BindError, "GROUP BY -1"),
        ("SELECT x.t.a FROM t", BindError, "x.t"),
        ("SELECT eq(1, 2)", BindError, "eq"),
        ("SELECT _year(DATE '2020-01-01')", BindError, "_year"),
        ("SELECT s < k FROM t", BindError, "VARCHAR"),
        ("SELECT bool_and(k) FROM t", BindError, "bool_and"),
        ("SELECT lower(s) FILTER (WHERE true) FROM t", NotSupportedError, "lower"),
        ("SELECT a::DOUBLE(3) FROM t", BindError, "DOUBLE(3)"),
        ("SELECT t.k, u.k FROM t JOIN u ON t.a = u.v ORDER BY k", BindError, "t.k or u.k"),
        ("SELECT * FROM t JOIN u ON t.a = u.v ORDER BY k", BindError, "t.k or u.k"),
        ("SELECT a::INT8(3) FROM t", BindError, "takes no number"),
        ("SELECT d::DATE(3) FROM t", BindError, "takes no number"),
        ("SELECT a::FLOAT(54) FROM t", BindError, "1 to 53"),
        ("SELECT floor('1.5')", BindError, "floor(VARCHAR)"),
        ("SELECT round('2.567', 2)", BindError, "round(VARCHAR, INTEGER)"),
        ("SELECT dayname('2020-01-01')", BindError, "dayname(VARCHAR)"),
        ("SELECT strftime('2020-01-01', '%Y')", BindError, "strftime(VARCHAR, VARCHAR)"),
        ("SELECT (a::UBIGINT * a) // 2 FROM t", NotSupportedError, "128 bits"),
        ("SELECT a FROM t GROUP BY +a", BindError, "GROUP BY"),
        ("SELECT +s FROM t", BindError, "+(VARCHAR)"),
        ("SELECT 1 + +'1' FROM t", BindError, "+(VARCHAR)"),
        ("SELECT -+f FROM t", BindError, "+(BOOLEAN)"),
        ("SELECT + + + d FROM t", BindError, "+(DATE)"),
        ("SELECT +INTERVAL 1 DAY", BindError, "+(INTERVAL)"),
        ("SELECT k FROM t ORDER BY +s", BindError, "+(VARCHAR)"),
        ("SELECT +a::VARCHAR FROM t", BindError, "+(VARCHAR)"),
        ("SELECT a FROM t GROUP BY +1", BindError, "GROUP BY"),
        ("SELECT +[1]", NotSupportedError, "+ of a value of type INTEGER[]"),
        ("SELECT abs(a ORDER BY k) FROM t", NotSupportedError, "ORDER BY within"),
        ("SELECT * FROM (t JOIN u USING (k)) z", NotSupportedError, "alias"),
        ("SELECT bitstring_agg(a) FROM t", NotSupportedError, "bitstring_agg"),
    ],
)
def test_what_parses_and_is_refused(sql: str, kind: type[Error], match: str) -> None:
    error = refusal(sql)
    assert isinstance(error, kind)
    assert match in str(error)


def test_a_tree_without_a_part_of_the_text_is_refused() -> None:
    sql = "SELECT a + b AS c FROM t"
    parsed = parse_one(sql)
    assert isinstance(parsed.reading, Reading)
    check_covered(nodes_of(parsed.tree), parsed.reading, sql)
    alias = parsed.tree.find(exp.Alias)
    assert alias is not None
    parsed.tree.set("expressions", [alias.this])  # what sqlglot does where it does not expect an alias
    with pytest.raises(NotSupportedError, match="c at this place"):
        check_covered(nodes_of(parsed.tree), parsed.reading, sql)


def test_a_tree_of_another_structure_is_refused() -> None:
    sql = "SELECT 1 + 2 * 3"
    parsed = parse_one(sql)
    other = parse_one("SELECT (1+2)* 3")
    assert isinstance(parsed.reading, Reading)
    shifted = [n for n in nodes_of(other.tree) if isinstance(n, exp.Literal)]
    for node, start in zip(sorted(shifted, key=lambda n: n.name), (7, 11, 15), strict=True):
        node.meta.update(start=start, end=start)
    with pytest.raises(NotSupportedError, match="without parentheses"):
        check_covered(nodes_of(other.tree), parsed.reading, sql)


def test_a_part_that_nobody_reads_is_refused() -> None:
    tree = parse_one("SELECT a FROM t").tree
    check_read(nodes_of(tree), "SELECT a FROM t")
    tree.set("into", exp.Into(this=exp.to_table("x")))
    with pytest.raises(NotSupportedError):
        check_read(nodes_of(tree), "SELECT a FROM t")
    with pytest.raises(NotSupportedError, match="JSON"):
        check_read([exp.JSONObject()], "")


def test_sqlglot_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(Error):
        gquery.connect(device="python").sql("ALTER SESSION FOO BAR BAZ")
    assert not caplog.records
    logging.getLogger("sqlglot").warning("theirs")  # its logger is not ours to silence
    assert [r.message for r in caplog.records] == ["theirs"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT NOT a = b AND f OR a IS NULL = f FROM t",
        "SELECT a = b IS NULL, -a ** 2, a - b - 1, a / b // 2 * 3 % 2, 1 || 2 + 3 FROM t",
        "SELECT NOT a BETWEEN 1 AND 2 AND f, a BETWEEN 1 AND 2 = f FROM t",
        "SELECT s LIKE 'a' || '%', NOT s LIKE 'a%' = f, a & 3 | 4 + 1 FROM t",
        "SELECT x.a FROM t x LEFT JOIN u y JOIN u z ON y.k = z.k ON x.k = z.k",
        "SELECT 1 UNION ALL SELECT 2 UNION SELECT 2 UNION ALL SELECT 2",
        "SELECT count_if(f), count_if(f) FILTER (WHERE a > 100), count(), divide(7, 2) FROM t",
        "SELECT a FROM t ORDER BY (1) FETCH FIRST ROW ONLY",
        "CREATE TEMP TABLE made AS SELECT 1 AS a; SELECT 1e3+1e3, a FROM made; ",
    ],
)
def test_operators_bind_as_in_duckdb(sql: str) -> None:
    tables = plain_tables()
    if "made" in sql:
        connection = gquery.connect(device="python")
        assert connection.sql(sql).fetchall() == [(2000.0, 1)]
        return
    assert_same(sql, tables, targets=("python",), ranks=(1,))


def test_headers_are_those_of_duckdb() -> None:
    sql = """SELECT coalesce(a, b), ifnull(a, 1), if(f, 1, 2), count(*), COUNT(), sum(a) FILTER (WHERE f), left('abc', 1),
        substring('abc', 1), trim(' a '), NOT a = 1, a = 1 AND b = 2 AND f, a IN (SELECT 1), 1e3, - -1, a::DOUBLE
        FROM t GROUP BY ALL"""
    mine = gquery.connect(device="python")
    theirs = duckdb.connect()
    for name, table in plain_tables().items():
        mine.register(name, table)
        theirs.register(name, table)
    assert list(mine.sql(sql).columns) == [c[0] for c in theirs.execute(sql).description]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'ab' == 'a' || 'b'",  # == binds as || does in DuckDB
        "SELECT 1 == 3 & 1",
        "SELECT 'a' LIKE 'a' == 'a'",
        "SELECT 1 BETWEEN 0 AND 1 == 1",
        "SELECT 1 BETWEEN 0 == 0 AND 1",
        "SELECT 'a' || NOT TRUE",  # || is taken for an operator behind its value
        "SELECT 1 == NOT TRUE",
        "SELECT 1 + 5 //-1",  # //- is another operator than //, and binds less tightly
        "SELECT 1 + 2 **-1",
    ],
)
def test_operators_that_bind_otherwise_in_duckdb_are_refused(sql: str) -> None:
    assert isinstance(refusal(sql), ParseError)


@pytest.mark.parametrize(
    "sql", ["NOT 1 == 2", "3 & 1 == 1", "1 == 2 + 1", "1 == 1 AND 2 == 2", "(1 == 1) || 'x'", "1 == 1 IS NULL"]
)
def test_double_equals(sql: str) -> None:
    assert_same(f"SELECT {sql} AS v", {}, targets=("python",), ranks=(1,))
