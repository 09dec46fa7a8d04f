"""Expressions that surely have a body in a kernel are those that rendering never gives back to the host."""

from __future__ import annotations

import gquery
from gquery.errors import Error
from gquery.expression.expr import Expr
from gquery.expression.traverse import walk
from gquery.functions import EXAMPLES
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.bodies import has_body
from gquery.kernels.render import describe
from gquery.kernels.values import value_properties
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import expressions
from gquery.planner.logical.tree import walk as walk_plan
from tests.functions.test_argument_types import TABLE, as_columns

MORE = [
    "CAST(i AS VARCHAR) = s", "CAST(s AS INTEGER) > 1", "s LIKE 'a%'", "s LIKE s", "s ILIKE 'A%' ESCAPE 'x'", "i IN (1, 2)",
    "i + 1 > 2 AND NOT b OR dt - dt = 3", "CAST(i AS DOUBLE) < f", "CASE WHEN b THEN upper(s) ELSE s END = 'X'", "s || 'a' = s",
    "CAST(CAST(d AS DECIMAL(38, 2)) * 2 AS DOUBLE) > sqrt(f)", "dt + INTERVAL 1 MONTH < ts", "greatest(i, 2) = least(i, 3)",
]  # fmt: skip


def is_rendered(e: Expr, plan: Plan) -> bool:
    known = {c.id: value_properties(c.dtype) for node in walk_plan(plan) for c in node.columns}
    try:
        describe(e, known)
    except (NeedsHostError, Error):
        return False
    return True


def test_what_surely_has_a_body_is_rendered() -> None:
    connection = gquery.connect("python")
    connection.sql(TABLE)
    texts = [*MORE, *(text for _, sql, _ in EXAMPLES for text in (sql, *as_columns(sql)))]
    found = {(has, rendered): 0 for has in (False, True) for rendered in (False, True)}
    for text in dict.fromkeys(texts):
        try:
            relation = connection.sql(f"SELECT {text} FROM t")
        except Error:
            continue
        assert relation.prepared is not None
        plan = relation.prepared.bound.plan
        for e in (x for node in walk_plan(plan) for made in expressions(node) for x in walk(made)):
            rendered = is_rendered(e, plan)
            assert rendered or not has_body(e), (text, e)
            found[has_body(e), rendered] += 1
    assert found[True, True] > 500
    assert found[False, False] > 100
