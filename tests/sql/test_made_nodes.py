"""Nodes that are made while the grammar is read are those that sqlglot makes of the same text (`sql.grammar.nodes`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from unittest import mock

import pyarrow as pa
import pytest
from sqlglot import exp

import gquery
from gquery.errors import Error, ParseError
from gquery.runtime.records import replace
from gquery.sql.closed import check_read
from gquery.sql.grammar import read
from gquery.sql.grammar.tokens import Reading
from gquery.sql.lexer import Lexed
from gquery.sql.parse import Parsed, parse, parse_one
from gquery.sql.supported import check_supported
from tests.support.mutation_pools import Pool, pools
from tpch import queries

PLAIN = """
SELECT a, t.b AS "B b", 1 + 2.5 * c AS s, -(x - 1) / 2 % 3 m, 'it''s' || y AS 'text', count(*), sum(DISTINCT a + b),
    CASE WHEN a = 1 THEN b WHEN NOT c THEN NULL ELSE -1 END AS k, CASE a WHEN 1 THEN true END, coalesce(a, "q q"), 7
FROM t JOIN u ON t.a = u.a AND u.b + 1 < t.b
WHERE a IN (1, 2, 3) AND b NOT BETWEEN 1 AND 2 + 3 OR (c IS NOT NULL AND d NOT LIKE 'x%') AND e IS true AND f ILIKE g
GROUP BY a, t.b, c + 1 HAVING sum(a) > 1 AND max(b) <> 2 ORDER BY a + 1 DESC
"""
QUERY = """
WITH x (a, b) AS MATERIALIZED (SELECT DISTINCT 1, 'a' FROM main.t AS u, v w (c, d)), y AS NOT MATERIALIZED (
    SELECT a FROM t UNION SELECT b FROM t INTERSECT ALL SELECT c FROM t EXCEPT SELECT d FROM t ORDER BY a)
SELECT *, u.*, CAST(a AS int), b::decimal(5, 2)::varchar, DATE '2020-01-01' + INTERVAL '3' month, extract(year FROM d),
    substring(a FROM 1 FOR 2), substring(a, 1), trim(b), sum(x) FILTER (WHERE y > 1), count(*) OVER (),
    rank() OVER (PARTITION BY a, b ORDER BY c DESC NULLS FIRST, d), (SELECT max(a) FROM x) AS m
FROM x INNER JOIN y USING (a, b) left JOIN z ON x.a = z.a CROSS JOIN (SELECT 1) AS q (o) FULL OUTER JOIN r ON x.b < r.b
    SEMI JOIN s ON true, range(1, 10) AS t (i), 'a/b c.parquet', 'it''s' AS f, '*.csv' g (x, "y") LEFT JOIN 'h' USING (x)
WHERE EXISTS (SELECT 1 FROM u WHERE u.a = x.a) AND a NOT IN (SELECT b FROM v UNION ALL (SELECT c FROM w LIMIT 3))
GROUP BY ROLLUP (a, b), CUBE (c), d HAVING sum(a) > 1 ORDER BY 1 DESC NULLS LAST, 2 ASC, a + 1 NULLS FIRST LIMIT 5 OFFSET 2
"""


def made_of(parsed: list[Parsed]) -> list[str]:
    """What was made of statements."""
    readings = [p.reading for p in parsed]
    return [t.sql() for r in readings if isinstance(r, Reading) for m in r.made for t in m.trees]


def described(tree: exp.Expr) -> Iterator[object]:
    """The nodes of a tree, parents first: what each is, where it stands in its parent, what it holds and its place in the
    text. The parts of a node are in the order of their names, as sqlglot's is not always the text's."""
    held = {k: v for k, v in tree.args.items() if v and not isinstance(v, exp.Expr | list)}
    place = [tree.meta.get(k) for k in ("start", "end")]
    yield type(tree), tree.arg_key, tree.index, held, place, tree.parent and type(tree.parent)
    for _, part in sorted(tree.args.items()):
        for node in part if isinstance(part, list) else (part,):
            if isinstance(node, exp.Expr):
                assert node.parent is tree
                yield from described(node)


def read_alone(sql: str, tokens: Lexed, first: int, behind: int) -> Reading | ParseError:
    """What the grammar says of a statement, all of whose nodes are sqlglot's."""
    found = read(sql, tokens, first, behind)
    return replace(found, made=[], tree=None) if isinstance(found, Reading) else found


def both(sql: str) -> tuple[list[Parsed], list[Parsed]] | None:
    """A text's statements with nodes that were made here, and by sqlglot alone; None where it refuses them."""
    with mock.patch("gquery.sql.parse.read", read_alone):
        try:
            alone = parse(sql)
        except Error:
            return None
    return parse(sql), alone


@pytest.mark.parametrize("pool", pools(), ids=lambda p: p.name)
def test_trees_are_those_of_sqlglot(pool: Pool) -> None:
    count = 0
    for sql in pool.statements:
        if (found := both(sql)) is not None:
            for ours, theirs in zip(*found, strict=True):
                assert list(described(ours.tree)) == list(described(theirs.tree)), sql
                if ours.is_plain:  # nobody asks this of it when it is bound
                    check_supported(ours.nodes, sql)
                    check_read(ours.nodes, sql)
            count += bool(made_of(found[0]))
    assert count or not pool.statements


@pytest.mark.parametrize("sql", [PLAIN, QUERY, *map(queries.sql, queries.NUMBERS)])
def test_plain_expressions_and_queries_are_made(sql: str) -> None:
    found = both(sql)
    assert found is not None
    ours, theirs = found[0][0].tree, found[1][0].tree
    assert list(described(ours)) == list(described(theirs))
    assert made_of(found[0])
    assert found[0][0].is_plain == (sql is not PLAIN)  # a text is no name of a column that is made here


def test_what_sqlglot_reads_is_short() -> None:
    """A whole list of plain entries is one name, so that what sqlglot reads does not grow with it."""
    texts = [
        f"SELECT {', '.join(f'sum(CASE WHEN m = {k} THEN a * b ELSE 0 END) AS c{k}' for k in range(n))} FROM t"
        for n in (3, 300)
    ]
    few, many = map(parse_one, texts)
    assert len(few.read) == len(many.read) < 10
    assert len(many.tree.expressions) == 300
    assert [e.index for e in many.tree.expressions] == list(range(300))


def test_one_side_of_a_condition() -> None:
    """Where a part of a condition has a syntax of its own, the others are made."""
    parsed = parse(
        "SELECT 1 FROM t WHERE a = b AND x IN (SELECT y + 1 FROM u WHERE u.p < u.q USING SAMPLE 3) AND c > d AND e < [f]"
    )
    assert made_of(parsed) == ["y + 1", "u.p < u.q", "a = b", "c > d"]


def test_a_part_that_is_made_has_no_parts() -> None:
    """Conditions of a query that stands in a condition are made with that."""
    (parsed,) = parse("SELECT [1] FROM t WHERE a IN (SELECT y + 1 FROM u WHERE u.p < u.q AND v = 1) OR c > d")
    assert made_of([parsed]) == ["a IN (SELECT y + 1 FROM u WHERE u.p < u.q AND v = 1) OR c > d"]


def test_a_list_of_constants_is_gone_through_once() -> None:
    """Constants are cut out of a tree one by one: each takes as long in a long list as in a short one."""

    def calls(n: int) -> int:
        constants = ", ".join(f"'{k}'" for k in range(n))
        db = gquery.connect("python").register("t", pa.table({"s": ["1", "x"]}))
        counted = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            relation = db.sql(f"SELECT count(*) AS n FROM t WHERE substring(s, 1, 2) IN ({constants})")
        finally:
            sys.setprofile(None)
        assert relation.fetchall() == [(n > 1,)]
        return counted

    calls(10)
    few, some, many = calls(100), calls(500), calls(2500)
    assert many - some < 6 * (some - few)
