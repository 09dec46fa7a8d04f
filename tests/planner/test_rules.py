"""Optimizer rules by their plans: SQL in, plan text out, in golden scripts and in properties that hold for all queries.

A script ``golden/rules/<rule>.txt`` holds cases of SQL, the plan before the rule and after it; without a rule of that
name it holds fully optimized plans. ``GQUERY_UPDATE_GOLDEN=1 pytest tests/planner/test_rules.py`` writes them anew.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gquery.expression.expr import And, Or
from gquery.expression.traverse import conjuncts
from gquery.planner import optimizer
from gquery.planner.logical.canonical import canonical
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Query,
    Scan,
    Shared,
)
from gquery.planner.logical.properties import key_pairs, one_row_at_most
from gquery.planner.logical.tree import column_ids, fresh_copy, walk
from gquery.profile.explain import explain
from tests.support.paths import GOLDEN
from tests.support.plans import bound
from tpch import queries

SCRIPTS = GOLDEN / "rules"
RULE_NAMES = {rule.name for rule in optimizer.RULES}
_SQL, _BEFORE, _AFTER, _END = "-- sql", "-- before", "-- after", "-- end"


SUBQUERIES = (
    "SELECT (SELECT count(*) FROM n WHERE n.k = a.k) FROM a",
    "SELECT (SELECT count(*) + 1 FROM n WHERE n.k < a.k AND n.v = a.x) FROM a",
    "SELECT (SELECT sum(v) FROM n WHERE n.k = a.k OR n.v = a.x) FROM a",
    "SELECT (SELECT a.x + 1) FROM a",
    "SELECT (SELECT max(v + a.x) FROM n WHERE n.k = a.k) FROM a",
    "SELECT (SELECT v FROM n WHERE n.k = a.k ORDER BY v DESC LIMIT 1) FROM a",
    "SELECT (SELECT count(*) FROM n JOIN b ON n.k = b.k AND b.y = a.x) FROM a",
    "SELECT (SELECT count(*) FROM n LEFT JOIN b ON n.k = b.k AND b.y = a.x) FROM a",
    "SELECT (SELECT count(*) FROM n FULL JOIN b ON n.k = b.k AND b.y = a.x) FROM a",
    "SELECT (SELECT count(*) FROM (SELECT k FROM n WHERE v = a.x UNION ALL SELECT k FROM b WHERE y = a.x)) FROM a",
    "SELECT (SELECT count(DISTINCT v) FROM n WHERE n.k = a.k HAVING count(*) > a.x) FROM a",
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM n WHERE n.k = a.k AND EXISTS "
    "(SELECT 1 FROM b WHERE b.k = n.k AND b.y = a.x))",
    "SELECT * FROM a WHERE x IN (SELECT v FROM n WHERE n.k = a.k) OR x = 3",
    "SELECT * FROM a WHERE x NOT IN (SELECT v FROM n WHERE n.k = a.k)",
    "SELECT * FROM a WHERE x > (SELECT avg(v) FROM n WHERE n.k = a.k AND v < (SELECT max(y) FROM b WHERE b.k = n.k))",
    "SELECT * FROM a WHERE x = (SELECT count(*) FROM n WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y = n.v))",
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND b.y IN (SELECT v FROM n)",
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND a.x > (SELECT max(v) FROM n WHERE n.k = a.k)",
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND b.y >= (SELECT max(v) FROM n WHERE n.k = a.k AND n.v < b.y + 2)",
    "SELECT * FROM a LEFT JOIN b ON b.y IN (SELECT v FROM n WHERE n.k = a.k)",
    "SELECT * FROM a FULL JOIN b ON a.k = b.k AND b.y > (SELECT max(v) FROM n WHERE n.k = b.k)",
    "SELECT k, sum((SELECT max(v) FROM n WHERE n.k = a.k)) FROM a GROUP BY k",
    "SELECT * FROM a ORDER BY (SELECT max(v) FROM n WHERE n.k = a.k)",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM n WHERE n.k = a.k) THEN 1 ELSE (SELECT min(y) FROM b) END FROM a",
)


def _cases(path: Path) -> list[tuple[str, str, str]]:
    """(SQL, before, after) of each case of a script."""
    out: list[tuple[str, str, str]] = []
    for block in path.read_text().split(_SQL + "\n")[1:]:
        sql, _, rest = block.partition(_BEFORE + "\n")
        before, _, after = rest.partition(_AFTER + "\n")
        out.append((sql.strip() or block.strip(), before, after.partition(_END)[0]))
    return out


def _run(rule: str, sql: str) -> tuple[str, str]:
    query = bound(sql)
    steps = optimizer.steps(query, check=True)
    if rule not in RULE_NAMES:
        return explain(query), explain(steps[-1].query)
    at = next(i for i, s in enumerate(steps) if s.rule == rule)
    return explain(steps[at - 1].query if at else query), explain(steps[at].query)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    got = [(sql, *_run(path.stem, sql)) for sql, _, _ in _cases(path)]
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        blocks = [f"{_SQL}\n{sql}\n{_BEFORE}\n{before}{_AFTER}\n{after}{_END}\n" for sql, before, after in got]
        path.write_text("\n".join(blocks))
    for (sql, before, after), (_, old_before, old_after) in zip(got, _cases(path), strict=True):
        assert (before, after) == (old_before, old_after), sql


def optimized(sql: str) -> Plan:
    return optimizer.steps(bound(sql), check=True)[-1].query.plan


def _leftmost(plan: Plan) -> str:
    while below := (plan.definition.plan,) if isinstance(plan, Shared) else plan.sources:
        plan = below[0]
    return plan.source.name if isinstance(plan, Scan) else type(plan).__name__


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_tpch_joins_on_equalities(number: int) -> None:
    """`check=True` proves that no subquery is left; here: no cross join, but with a single row."""
    for node in walk(optimized(queries.sql(number))):
        if isinstance(node, Join):
            pairs = key_pairs(node.condition, column_ids(node.left), column_ids(node.right))
            assert pairs or one_row_at_most(node.right), explain(node)


@pytest.mark.parametrize("number", [3, 5, 7, 8, 9, 10, 12, 14, 17, 18, 19])
def test_tpch_streams_the_largest_table(number: int) -> None:
    assert _leftmost(optimized(queries.sql(number))) == "lineitem"


@pytest.mark.parametrize("number", [3, 5, 7, 8, 9, 10])
def test_tpch_aggregates_in_the_same_pipeline(number: int) -> None:
    """From the aggregate down the left side to lineitem, nothing stands in the way of one kernel."""
    node = next(n for n in walk(optimized(queries.sql(number))) if isinstance(n, Aggregate))
    below: Plan = node.source
    while not isinstance(below, Scan):
        assert not isinstance(below, Aggregate), explain(node)
        below = below.sources[0]
    assert below.source.name == "lineitem"


def test_optimizing_is_fast() -> None:
    """A new query must answer within tens of milliseconds: planning may take a few of them, of the processor's time."""
    for number in queries.NUMBERS:
        query = bound(queries.sql(number))
        best = min(_seconds(query) for _ in range(5))
        assert best < 0.02, f"query {number}: {best * 1e3:.1f} ms"


def _seconds(query: Query) -> float:
    start = time.process_time()
    optimizer.steps(query, check=False)
    return time.process_time() - start


def _joins(sql: str) -> list[JoinKind]:
    return [n.kind for n in walk(optimized(sql)) if isinstance(n, Join)]


def test_not_in_minds_nulls() -> None:
    assert _joins("SELECT * FROM a WHERE k NOT IN (SELECT k FROM b)") == [JoinKind.ANTI]
    assert _joins("SELECT * FROM a WHERE k NOT IN (SELECT k FROM n)") == [JoinKind.MARK]
    assert _joins("SELECT * FROM n WHERE k NOT IN (SELECT k FROM b)") == [JoinKind.MARK]
    assert _joins("SELECT * FROM a WHERE k IN (SELECT k FROM n)") == [JoinKind.SEMI]
    assert _joins("SELECT k IN (SELECT k FROM n) FROM a") == [JoinKind.MARK]


def test_scalar_subqueries() -> None:
    assert _joins("SELECT * FROM a WHERE x > (SELECT y FROM b)") == [JoinKind.SINGLE]
    assert _joins("SELECT * FROM a WHERE x > (SELECT max(y) FROM b)") == [JoinKind.INNER]
    assert _joins("SELECT (SELECT y FROM b WHERE b.k = a.k) FROM a") == [JoinKind.LEFT]  # b.k is unique
    assert _joins("SELECT (SELECT v FROM n WHERE n.k = a.k) FROM a") == [JoinKind.SINGLE]


@pytest.mark.parametrize("sql", SUBQUERIES)
def test_every_shape_of_subquery_becomes_joins(sql: str) -> None:
    """Verified after every rule; with every optional rule switched off too."""
    optimized(sql)
    optional = frozenset(r.name for r in optimizer.RULES if not r.required)
    optimizer.steps(bound(sql), disabled=optional, check=True)


@pytest.mark.parametrize("rule", sorted(r.name for r in optimizer.RULES if not r.required))
def test_every_rule_can_be_switched_off(rule: str) -> None:
    for number in queries.NUMBERS:
        optimizer.steps(bound(queries.sql(number)), disabled=frozenset((rule,)), check=True)


@pytest.mark.parametrize("extreme", ["min", "max"])
def test_an_extreme_that_is_not_null_stays_so(extreme: str) -> None:
    """Of intervals it becomes the value of the first row at it, which nothing but the declaration knows to be there."""
    sql = f"SELECT k, {extreme}(to_days(y::INTEGER)) FROM b GROUP BY k"
    optimizer.steps(bound(sql), disabled=frozenset(("refresh_nullability",)), check=True)


@pytest.mark.parametrize("rule", ["", *sorted(r.name for r in optimizer.RULES if not r.required)])
def test_what_is_not_null_stays_so(rule: str) -> None:
    """The columns that rules make of groups and of their counts are as certain as those in whose places they come."""
    for sql in (
        "SELECT k, min(x), count(*), avg(x) FROM a WHERE 1 = 0 GROUP BY ROLLUP (k) HAVING count(*) <= 5",
        "SELECT k, s, x, min(d), count(x), avg(x), sum(x) FROM a GROUP BY CUBE (k, s, x)",
        "SELECT k, x, count(DISTINCT s), max(d) FROM a GROUP BY GROUPING SETS ((k), (x)) UNION ALL SELECT 1, 2, 3, NULL",
        "SELECT b.k, count(n.v), count(*) FROM b LEFT JOIN n ON b.k = n.k GROUP BY b.k",
        "SELECT k + (SELECT count(*) FROM n WHERE n.k = a.k) AS m FROM a WHERE x > 1 UNION ALL SELECT 2 FROM a WHERE 1 = 0",
    ):
        optimizer.steps(bound(sql), disabled=frozenset((rule,)), check=True)


@pytest.mark.parametrize(
    ("value", "may_be_null"),
    [
        ("coalesce(v, 1)", False),
        ("coalesce(v, k)", True),
        ("coalesce(v, k, 1)", False),
        ("CASE WHEN v IS NULL THEN 0 ELSE v END", False),
        ("CASE WHEN k = 1 THEN 1 WHEN v IS NULL THEN 0 ELSE v END", False),
        ("CASE WHEN v IS NOT NULL AND k = 1 THEN v ELSE 0 END", False),
        ("CASE WHEN v IS NOT NULL OR k = 1 THEN v ELSE 0 END", True),
        ("CASE WHEN v IS NULL THEN v ELSE 0 END", True),
        ("CASE WHEN v IS NULL THEN 0 ELSE v + k END", True),
        ("CASE WHEN k IS NULL THEN 0 ELSE v END", True),
        ("CASE WHEN k IS NULL THEN 0 WHEN v IS NULL THEN k ELSE v END", False),
        ("CASE WHEN v IS NULL AND k = 1 THEN 0 ELSE v END", True),
    ],
)
def test_a_value_that_has_been_tested_is_not_null(value: str, may_be_null: bool) -> None:
    assert optimized(f"SELECT {value} FROM n").columns[0].nullable == may_be_null
    assert _joins(f"SELECT * FROM a WHERE k NOT IN (SELECT {value} FROM n)") == [(JoinKind.ANTI, JoinKind.MARK)[may_be_null]]


def test_copies_are_canonically_equal() -> None:
    plan = optimized(queries.sql(9))
    copy, _ = fresh_copy(plan)
    assert not column_ids(plan) & column_ids(copy)
    assert canonical(plan) == canonical(copy)
    assert canonical(plan) != canonical(optimized(queries.sql(8)))


def test_conditions_inside_an_or_are_found() -> None:
    plan = optimized(queries.sql(19))
    filters = [n for n in walk(plan) if isinstance(n, Filter)]
    assert len(filters) == 2  # both tables are filtered before the join
    assert all(isinstance(f.predicate, And | Or) and conjuncts(f.predicate) for f in filters)
