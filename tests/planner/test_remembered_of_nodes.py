"""What a node of a plan remembers is what a walk that remembers nothing finds, behind each rule: most nodes stay from rule to
rule, and others take over what is known of those that they are made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gquery.expression.expr import Exists, Expr, InSubquery, ScalarSubquery
from gquery.planner import optimizer
from gquery.planner.logical.nodes import Join, Plan, Shared
from gquery.planner.logical.shared import definitions, has_subqueries, kinds, kinds_of, nodes, uses
from gquery.planner.logical.tree import column_ids, expressions, own_subqueries
from tests.support.plans import bound
from tpch import queries

SUBQUERIES = ScalarSubquery | Exists | InSubquery
MORE = {
    "subqueries within others": "SELECT (SELECT max(o_totalprice) FROM orders WHERE o_custkey = c_custkey AND o_orderkey IN "
    "(SELECT l_orderkey FROM lineitem)) FROM customer ORDER BY 1 LIMIT 3",
    "one in HAVING": "SELECT o_custkey, count(*) FROM orders GROUP BY ROLLUP (o_custkey) HAVING count(*) > (SELECT 3)",
    "several in one term": "SELECT rank() OVER (PARTITION BY n_regionkey ORDER BY n_name) FROM nation "
    "WHERE n_nationkey BETWEEN (SELECT min(r_regionkey) FROM region) AND (SELECT 5)",
    "in a LEFT JOIN": "SELECT n_name, r_name FROM nation LEFT JOIN region ON n_regionkey = r_regionkey AND n_nationkey > "
    "(SELECT avg(s_nationkey) FROM supplier) WHERE r_name IS NOT NULL",
    "a recursion": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(n_nationkey) "
    "FROM nation)) SELECT * FROM r a, r b WHERE a.n = b.n",
    "definitions of definitions": "WITH a AS (SELECT o_custkey AS k, count(*) AS n FROM orders GROUP BY k), "
    "b AS (SELECT * FROM a WHERE n IN (SELECT n + 1 FROM a)) SELECT * FROM b, a, b c "
    "WHERE b.k = a.k AND EXISTS (SELECT 1 FROM b d WHERE d.n = c.n)",
}
TEXTS = {f"{n}": queries.sql(n) for n in queries.NUMBERS} | MORE


def parts(e: Expr) -> Iterator[Expr]:
    yield e
    for k in e.children:
        yield from parts(k)


def asked(plan: Plan) -> list[Plan]:
    """The plans of a node's own subqueries, each once."""
    found = [x for e in expressions(plan) for x in parts(e) if isinstance(x, SUBQUERIES)]
    return [x.plan for x in {id(x): x for x in found}.values()]


def below(plan: Plan) -> list[Plan]:
    return [plan, *(n for s in plan.sources for n in below(s))]


def everything(plan: Plan) -> list[Plan]:
    """The nodes, those of subqueries too."""
    return [m for n in below(plan) for m in (n, *(x for p in asked(n) for x in everything(p)))]


@pytest.mark.parametrize("sql", TEXTS.values(), ids=TEXTS)
def test_nodes_know_what_is_below_them(sql: str) -> None:
    query = bound(sql)
    for step in [query, *(s.query for s in optimizer.steps(query))]:
        for part in (*(d.plan for d in definitions(step.plan)), step.plan):
            for node in everything(part):
                found = below(node)
                own = kinds_of(*(n.kind if isinstance(n, Join) else type(n) for n in found))
                assert kinds(node) & ~1 == own
                assert has_subqueries(node) == any(asked(n) for n in found)
                assert {id(s.plan) for s in own_subqueries(node)} == {id(p) for p in asked(node)}
                assert column_ids(node) == {c.id for c in node.columns}
                assert sorted(map(id, nodes(node))) == sorted(map(id, everything(node)))
                assert sorted(map(id, uses(node))) == sorted(id(n) for n in everything(node) if isinstance(n, Shared))

