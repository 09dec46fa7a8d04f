"""Parsing: statements, EXPLAIN, parameters by number, and errors that point at the place."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from sqlglot import exp

from gquery.errors import NotSupportedError, ParseError
from gquery.sql.grammar.statements import StatementReader
from gquery.sql.lexer import lex
from gquery.sql.parse import parse, parse_one, position


class _Counted(list[str]):
    """A list that counts how often an element is asked for."""

    read = 0

    def __getitem__(self, at: Any) -> Any:
        self.read += 1
        return super().__getitem__(at)


def test_several_statements() -> None:
    first, second = parse("SELECT 1; -- one\nSELECT 2;")
    assert isinstance(first.tree, exp.Select)
    assert isinstance(second.tree, exp.Select)


@pytest.mark.parametrize("sql", ["", "  ", ";", "-- nothing\n", "/* nothing */"])
def test_no_statement(sql: str) -> None:
    assert parse(sql) == []
    with pytest.raises(ParseError, match="no statement"):
        parse_one(sql)


def test_one_is_expected() -> None:
    with pytest.raises(ParseError, match="several"):
        parse_one("SELECT 1; SELECT 2")


@pytest.mark.parametrize(
    "sql,options",
    [
        ("EXPLAIN SELECT 1", ()),
        ("explain analyze SELECT 1", ("analyze",)),
        ("  EXPLAIN (optimized, code) SELECT 1", ("optimized", "code")),
        ("-- why\nEXPLAIN physical SELECT 1", ("physical",)),
        ("SELECT 1", None),
        ("SELECT 'EXPLAIN'", None),
    ],
)
def test_explain(sql: str, options: tuple[str, ...] | None) -> None:
    parsed = parse_one(sql)
    assert parsed.explain == options
    assert isinstance(parsed.tree, exp.Select)


@pytest.mark.parametrize(
    "sql,shown",
    [
        ("SELEC 1", "LINE 1: SELEC 1\n"),
        ("SELECT 1 +", "LINE 1: SELECT 1 +\n"),
        ("SELECT (1", "LINE 1: SELECT (1\n"),
        ("SELECT a\nFROM t\nWHERE", "LINE 3: WHERE\n"),
        ("SELECT a FROM t WHERE a = = 1", "LINE 1: SELECT a FROM t WHERE a = = 1\n                                "),
        ("SELECT 'open", "LINE 1: SELECT 'open\n"),
        ("SELECT 1 FROM t GROUP BY ORDER BY", "LINE 1: "),
    ],
)
def test_errors_show_the_line_and_a_caret(sql: str, shown: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    message = str(caught.value)
    assert shown in message
    assert message.endswith("^")
    assert "\x1b" not in message


@pytest.mark.long
def test_too_deep() -> None:
    with pytest.raises(NotSupportedError, match="nested too deeply"):
        parse("SELECT " + "(" * 20_000 + "1" + ")" * 20_000)


def test_parentheses_are_looked_behind_once() -> None:
    """Whether a query stands in so many of them is not asked anew for each: that took four times as long for twice as many."""
    sql = "SELECT " + "(" * 4_000 + "1" + ")" * 4_000
    tokens = lex(sql)
    reader = StatementReader(sql, tokens, 0, len(tokens.words) - 1)
    reader.words = words = _Counted(tokens.words)
    for at in range(1, 4_001):
        reader.go(at)
        assert not reader.starts_query()
    assert words.read < 20 * 4_000


def test_a_statement_that_sqlglot_does_not_know() -> None:
    with pytest.raises(NotSupportedError):
        parse("VACUUM t")


def test_parameters_are_numbered_in_the_order_of_the_text() -> None:
    tree = parse_one("WITH c AS (SELECT ?) SELECT ? FROM c WHERE a LIKE '?' LIMIT ?").tree
    assert sorted(p.name for p in tree.find_all(exp.Placeholder)) == ["1", "2", "3"]
    cte = next(tree.find_all(exp.CTE))
    assert [p.name for p in cte.find_all(exp.Placeholder)] == ["1"]


def test_an_exponent_ends_before_a_sign() -> None:
    assert parse_one("SELECT 1e3+1").tree.sql() == "SELECT 1e3 + 1"
    assert parse_one("SELECT 1e-3-2").tree.sql() == "SELECT 1e-3 - 2"


def test_position() -> None:
    sql = "SELECT a + bb FROM t"
    (column,) = (c for c in parse_one(sql).tree.find_all(exp.Column) if c.name == "bb")
    assert position(column) == sql.index("bb")
    assert position(None) is None


def test_no_class_inherits_from_sqlglots() -> None:
    """None can where sqlglot is compiled (`gquery[fast]`)."""
    for module in ("gquery.api.relation", "gquery.sql.bind"):
        importlib.import_module(module)  # its classes are there then
    waiting, found = [exp.Expr], set[type]()
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found.update(below)
    assert exp.Select in found
    assert not [c for c in found if c.__module__.startswith("gquery")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT datediff('day', a, b)",
        "SELECT DATE_TRUNC('day', a)",
        "SELECT substring(a, 1, 2)",
        "SELECT Trim(a, 'x')",
        "SELECT count(*), COUNT(DISTINCT a), rand(1), str_to_time(b, c), if(a, b, c)",
        "SELECT sum(a) FILTER (WHERE b > 0), count(*) FILTER (b)",
        "SELECT coalesce(lpad(a, 1, 'x'), epoch_ms(b))",
        "SELECT * FROM read_csv('a.csv', delim = ';'), generate_series(1, 2), read_parquet('x')",
    ],
)
def test_calls_arrive_as_they_were_typed(sql: str) -> None:
    nodes = [n for n in parse_one(sql).nodes if isinstance(n, exp.Func) and not isinstance(n, exp.Connector)]
    assert {type(n) for n in nodes} == {exp.Anonymous}
    for node in nodes:
        assert f"{node.name}(" in sql


def test_names_of_values_are_columns_first() -> None:
    tree = parse_one("SELECT current_date, localtime FROM (SELECT 1 AS current_date)").tree
    assert [c.name for c in tree.find_all(exp.Column)] == ["current_date", "localtime"]
