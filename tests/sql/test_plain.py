"""Trees of plain queries (`gquery.sql.plain`) are sqlglot's own, node by node, and what is not plain is left to it."""

from __future__ import annotations

import os
import random
from typing import Any
from unittest import mock

import pytest
from sqlglot import exp

import gquery
from gquery.sql import parse as parsing
from gquery.sql.check import check
from gquery.sql.lexer import lex
from gquery.sql.parse import Parsed, parse
from gquery.sql.plain import plain_tree
from tests.fuzzing.check import of_seed
from tests.support.mutation import mutated
from tests.support.mutation_pools import pools
from tests.support.queries import Generator
from tpch import queries

MUTANTS = int(os.environ.get("GQUERY_MUTANTS", "2000"))


def by_sqlglot(sql: str) -> list[Parsed]:
    with mock.patch.object(parsing, "plain_tree", return_value=None):
        return parse(sql)


def described(value: Any) -> Any:
    """A tree as tuples: what a node says and where it stands, without arguments that say nothing. Clauses of UNION have no
    order."""
    if isinstance(value, list):
        return [described(v) for v in value]
    if not isinstance(value, exp.Expr):
        return value
    arguments = [(k, described(v)) for k, v in value.args.items() if v is not None and v is not False and v != []]
    if isinstance(value, exp.Union):
        arguments.sort(key=lambda pair: pair[0])
    meta = value._meta or {}
    return type(value).__name__, meta.get("start"), meta.get("end"), arguments


def compared(sql: str) -> bool:
    """Whether a text is plain; what is made of it then is what the grammar and sqlglot make, which refuse nothing of it."""
    try:
        made = parse(sql)
    except gquery.Error:
        return False
    if not made or any(p.reading is not None for p in made):
        return False
    others = by_sqlglot(sql)
    for other in others:
        check(other)
    assert [described(p.tree) for p in made] == [described(p.tree) for p in others], sql
    return True


@pytest.mark.parametrize("pool", pools(), ids=lambda p: p.name)
def test_statements(pool: Any) -> None:
    for sql in pool.statements:
        compared(sql)


def test_queries_of_tpch_are_plain() -> None:
    assert all(compared(queries.sql(n)) for n in queries.NUMBERS)


def test_random_queries() -> None:
    texts = [sql for seed in range(400) for sql in (*of_seed(seed).sql, Generator(seed).query())]
    assert sum(map(compared, texts)) > 100


def test_mutated_statements() -> None:
    rng = random.Random(7)
    statements = [sql for p in pools() for sql in p.statements]
    assert sum(compared(mutated(rng.choice(statements), statements, rng)) for _ in range(MUTANTS)) > MUTANTS // 25


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, t.b AS x, b y, t.*, * FROM t, u x LEFT JOIN v ON a = b AND NOT c IS NULL",
        "SELECT a FROM t JOIN u USING (a, b) CROSS JOIN v FULL OUTER JOIN w ON TRUE RIGHT JOIN x ON FALSE",
        "WITH a AS (SELECT 1), b(q) AS (SELECT 2) (SELECT q FROM b) UNION ALL SELECT 3 UNION SELECT 4 ORDER BY 1 LIMIT 3",
        "SELECT DISTINCT count(*), count(DISTINCT c), now(), sum(a * -b) FROM t GROUP BY a, b + 1 HAVING sum(a) > 3",
        "SELECT a FROM t WHERE a IN (1, 2) AND b NOT IN (SELECT 1 FROM z) OR EXISTS (SELECT * FROM y WHERE NOT a LIKE 'x')",
        "SELECT a FROM t WHERE a NOT BETWEEN -1 AND b || 'x' AND c NOT LIKE 'y' AND d ILIKE 'it''s' AND a = b LIKE c",
        "SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, CASE WHEN a THEN b END, CAST(a AS DECIMAL(15, 2)), a::INT::DATE, -1::BIGINT",
        "SELECT DATE '2020-01-01' + INTERVAL '3' MONTH - INTERVAL 2 days, extract(YEAR FROM a), substring(a FROM 1 FOR 2)",
        'SELECT "a b"."c""d", "sum" FROM "T" ORDER BY a DESC NULLS FIRST, b ASC, c NULLS LAST',
        "SELECT (SELECT max(a) FROM t) > (a + 1), (1), NULL, a / b - c * 2 FROM (SELECT 1 AS a) AS s (b)",
        "SELECT quoted, word, symbol, parameter FROM t",  # kinds of tokens as names
    ],
)  # fmt: skip
def test_what_is_plain(sql: str) -> None:
    assert compared(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a = b IS NULL", "SELECT a IS NULL = b", "SELECT a < b < c", "SELECT a LIKE b LIKE c", "SELECT a LIKE b IS NULL",
        "SELECT +a", "SELECT a ** b", "SELECT a % b", "SELECT a == b", "SELECT DATE '2020-01-01'::VARCHAR", "SELECT 1a",
        "SELECT 1e3", "SELECT .5", "SELECT 'a\nb'", "SELECT a -- b", "SELECT a /* b */", "SELECT $1", "SELECT ?", "SELECT ä",
        "SELECT INTERVAL '1' DAY + '2020-01-01'", "SELECT INTERVAL '1 day'", "SELECT nullif()", "SELECT try_cast('a')",
        "SELECT count(* )::INT, sum(a) OVER ()", "SELECT sum(a) FILTER (WHERE b)", "SELECT _x(1)", "SELECT eq(1, 2)",
        "SELECT t.a.b", "SELECT a AS select", "SELECT a end", "SELECT a,", "SELECT a FROM t,", "SELECT ((SELECT 1))",
        "SELECT a IN ((SELECT 1))", "SELECT a IN (1,)", "SELECT (1, 2)", "SELECT DISTINCT ON (a) a", "SELECT ALL a",
        "SELECT a FROM t GROUP BY ALL", "SELECT a FROM t GROUP BY ROLLUP (a)", "SELECT a FROM t GROUP BY (a)",
        "SELECT a FROM s.t", "SELECT a FROM 'f'", "SELECT a FROM f(1)", "SELECT a FROM (t JOIN u ON b)",
        "SELECT a FROM t NATURAL JOIN u", "SELECT a FROM t SEMI JOIN u ON b", "SELECT a FROM t JOIN u JOIN v ON a ON b",
        "SELECT a FROM t LIMIT a", "SELECT a FROM t LIMIT 5 %", "SELECT a FROM t OFFSET 1 LIMIT 2", "(SELECT 1) LIMIT 1",
        "FROM t", "VALUES (1)", "SELECT 1 EXCEPT SELECT 2", "SELECT 1 UNION BY NAME SELECT 2",
        "WITH RECURSIVE a AS (SELECT 1) SELECT 2", "WITH a AS MATERIALIZED (SELECT 1) SELECT 2", "SELECT CAST(a AS VARCHAR(3))",
        "SELECT CAST(a AS DECIMAL)", "SELECT a[1]", "SELECT a AT TIME ZONE 'b'", "SELECT x -> 1", "SELECT * EXCLUDE a FROM t",
        "SELECT count(DISTINCT)", "SELECT a WHERE", "SELECT", "SELECT a FROM t WHERE b = ANY (SELECT 1)",
        "CREATE TABLE a AS SELECT 1", "SELECT substring(a, 1 = 2)", "SELECT a b c", "SELECT a FROM t u v", "SELECT CASE END",
        "SELECT a NOT NULL", "SELECT a ISNULL", "SELECT count(t.*) FROM t", "SELECT sum(a ORDER BY b)", "SELECT b: 1",
    ],
)  # fmt: skip
def test_what_is_left_to_others(sql: str) -> None:
    tokens = lex(sql)
    assert plain_tree(sql, tokens, 0, len(tokens.words) - 1) is None


def test_several_statements_and_explain() -> None:
    made = parse("EXPLAIN SELECT a FROM t; SELECT 2")
    assert [p.explain for p in made] == [(), None]
    assert [p.reading for p in made] == [None, None]
    assert [described(p.tree) for p in made] == [
        described(p.tree) for p in by_sqlglot("EXPLAIN SELECT a FROM t; SELECT 2")
    ]
    assert parse(" ; ") == []


def test_deep_nesting_has_room() -> None:
    made, other = parse(sql := f"SELECT {'(' * 600}1{')' * 600} AS x"), by_sqlglot(sql)
    assert made[0].reading is None
    assert [type(node) for node in made[0].nodes] == [type(node) for node in other[0].nodes]
    assert sum(type(node) is exp.Paren for node in made[0].nodes) == 600
