"""A subplan that a query uses in several places is two relations: its uses never share a column."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.errors import InternalError, NotSupportedError
from gquery.expression.expr import Column
from gquery.planner import optimizer
from gquery.planner.logical.nodes import Join, Shared
from gquery.planner.logical.shared import definitions, every_node
from gquery.planner.logical.verify import verify
from gquery.planner.physical import Pipeline, Probe, Program, ReadStage
from gquery.planner.verify_program import verify_program
from gquery.profile.explain import explain
from tests.support.cases import read_cases
from tests.support.harness import assert_error, assert_same
from tests.support.marks import in_turns
from tests.support.plans import bound


@cache
def tables() -> dict[str, pa.Table]:
    """``t`` has repeated values and NULLs, ``s`` a text and values that ``t`` lacks."""
    t = pa.table({"x": pa.array([1, 2, 3, 3, None, 5, None, 2]), "y": pa.array([10, None, 30, 31, 40, 50, 60, 20])})
    s = pa.table({"x": pa.array([1, 3, 3, None, 7]), "w": pa.array(["a", "b", None, "d", "e"])})
    return {"t": t, "s": s}


CASES = [c for c in read_cases() if c.name.startswith("shared:")]
OPTIONAL = sorted(r.name for r in optimizer.RULES if not r.required)


BODIES = {
    "distinct": "SELECT DISTINCT x FROM t",
    "groups": "SELECT x, count(*) AS n, sum(y)::BIGINT AS y FROM t GROUP BY x",
    "union": "SELECT x FROM t UNION SELECT x FROM s",
    "union all": "SELECT x FROM t UNION ALL SELECT x FROM s",
    "join": "SELECT t.x, w, y FROM t JOIN s ON t.x = s.x",
    "rows": "SELECT x, y + 1 AS y FROM t WHERE y IS NOT NULL",
    "first": "SELECT x, y FROM t ORDER BY y DESC NULLS LAST LIMIT 4",
    "values": "VALUES (1, 'a'), (2, NULL), (NULL, 'c')",
}
USES = (
    "SELECT a.x, b.x FROM u a, u b",
    "SELECT a.x, b.x FROM u a JOIN u b ON a.x < b.x",
    "SELECT a.x, b.x FROM u a JOIN u b ON a.x = b.x",
    "SELECT a.x, b.x FROM u a LEFT JOIN u b ON a.x < b.x",
    "SELECT a.x, b.x FROM u a RIGHT JOIN u b ON a.x = b.x + 1",
    "SELECT a.x, b.x FROM u a FULL JOIN u b ON a.x = b.x + 1",
    "SELECT a.x, b.x, c.x FROM u a, u b, u c WHERE a.x = b.x AND b.x <> c.x",
    "SELECT x FROM u WHERE EXISTS (SELECT 1 FROM u v WHERE v.x > u.x)",
    "SELECT x FROM u WHERE NOT EXISTS (SELECT 1 FROM u v WHERE v.x > u.x)",
    "SELECT x FROM u WHERE x + 1 IN (SELECT x FROM u)",
    "SELECT x FROM u WHERE x NOT IN (SELECT x + 1 FROM u WHERE x IS NOT NULL)",
    "SELECT x, (SELECT max(x) FROM u) AS m FROM u",
    "SELECT x, (SELECT count(*) FROM u v WHERE v.x <= u.x) AS n FROM u",
    "SELECT x FROM u UNION ALL SELECT x + 1 FROM u",
    "SELECT x FROM u UNION SELECT x + 1 FROM u",
    "SELECT a.x, count(*) FROM u a, u b WHERE a.x <> b.x GROUP BY a.x",
    "SELECT count(*) FROM u a SEMI JOIN u b ON a.x = b.x + 1",
)


@pytest.mark.parametrize(("body", "use"), in_turns(2, BODIES, USES))
def test_two_uses_are_two_relations(body: str, use: str) -> None:
    names = "(x, w)" if body == "values" else ""
    assert_same(f"WITH u{names} AS ({BODIES[body]}) {use}", tables(), targets=("python",), ranks=(3,))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_rules_do_not_change_what_uses_mean(case: Any) -> None:
    """Without any rule, when each CTE is computed by itself, and without one rule after the other."""
    number = CASES.index(case)
    for disabled in (",".join(OPTIONAL), "inline_shared", OPTIONAL[number % len(OPTIONAL)]):
        assert_same(case.sql, case.tables(), targets=("python",), ranks=(1,), settings={"disabled_rules": disabled})


def test_a_projection_that_was_not_pruned_keeps_what_it_reads() -> None:
    """Without the rule that prunes last; ``m`` is asked for by nobody."""
    extra = "SELECT * FROM (SELECT x + 1 AS x, (SELECT max(w) FROM s) AS m FROM s ORDER BY ALL)"
    sql = f"SELECT min(to_days(t.x::INTEGER)), count(*), min(y) FROM t JOIN ({extra}) AS q ON t.x = q.x"
    assert_same(sql, tables(), targets=("python",), settings={"disabled_rules": "prune_columns_last"})


def _program(sql: str) -> Program:
    connection = gquery.connect(device="cpu")
    for name, table in tables().items():
        connection.register(name, table)
    return connection.program(sql, "cpu")


def test_a_pipeline_that_binds_a_column_twice_is_found() -> None:
    program = _program("WITH u AS (SELECT DISTINCT x FROM t) SELECT a.x, b.x FROM u a, u b WHERE a.x < b.x")
    last = program.stages[-1].work
    assert isinstance(last, Pipeline) and isinstance(last.source, ReadStage) and isinstance(last.steps[0], Probe)
    verify_program(program)
    stored = last.steps[0].table.columns[0]
    broken = replace(last, source=replace(last.source, columns=(stored,)))
    with pytest.raises(InternalError, match="binds x#"):
        verify_program(replace(program, stages=(*program.stages[:-1], replace(program.stages[-1], work=broken))))


def test_a_definition_is_verified() -> None:
    query = bound("WITH u AS (SELECT DISTINCT k FROM n) SELECT a.k, b.k FROM u a, u b WHERE a.k < b.k")
    verify(query)
    join = next(n for n in every_node(query.plan) if isinstance(n, Join))
    assert isinstance(join.left, Shared) and isinstance(join.right, Shared)
    for broken, what in (
        (replace(join, right=join.left), "two inputs of Join give column"),
        (replace(join, right=replace(join.right, fields=(1,))), "asks for a column that it does not have"),
        (replace(join, right=replace(join.right, columns=(_not_null(join.right.columns[0]),))), "a use takes k"),
    ):
        with pytest.raises(InternalError, match=what):
            verify(replace(query, plan=broken, outputs=(), names=()))


def _not_null(c: Column) -> Column:
    return replace(c, nullable=False)


def test_views_that_are_used_twice() -> None:
    connection, oracle = gquery.connect(device="python", partitions=3), duckdb.connect()
    oracle.register("t", tables()["t"])
    connection.register("t", tables()["t"])
    for sql in (
        "CREATE VIEW v1 AS SELECT x, count(*) AS n FROM t GROUP BY x",
        "CREATE VIEW v2(p, q) AS SELECT a.x, b.n FROM v1 a JOIN v1 b ON a.x <= b.x",
    ):
        connection.sql(sql)
        oracle.execute(sql)
    for sql in (
        "SELECT a.*, b.* FROM v1 a FULL JOIN v1 b ON a.x = b.n",
        "SELECT a.p, b.q FROM v2 a, v2 b WHERE a.q = b.q",
    ):
        got, want = connection.sql(sql).fetchall(), oracle.execute(sql).fetchall()
        assert sorted(got, key=str) == sorted(want, key=str), sql


def test_relations_that_are_made_of_one_have_it_in_common() -> None:
    connection = gquery.connect(device="python")
    connection.register("t", tables()["t"])
    u = connection.sql("SELECT DISTINCT x FROM t WHERE x IS NOT NULL")
    pairs = connection.sql("SELECT a.x, b.x FROM u a JOIN u b ON a.x < b.x")
    assert sorted(pairs.fetchall()) == [(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (3, 5)]
    both = u.filter("x < 3").join(u.filter("x > 1"), "x")
    assert both.fetchall() == [(2,)]
    assert both.explain("optimized").count("Scan t") == 1


# ---- planning takes no longer than the text is ------------------------------------------------------------------------

STEPS = {
    "join": "SELECT a.x, b.y FROM {c} a JOIN {c} b ON a.x = b.x",
    "groups": "SELECT a.x, max(b.y) AS y FROM {c} a, {c} b WHERE a.x <= b.x GROUP BY a.x",
    "union": "SELECT x, y FROM {c} UNION SELECT y, x FROM {c}",
    "subqueries": "SELECT x, (SELECT max(y) FROM {c}) AS y FROM {c} WHERE x IN (SELECT x FROM {c})",
    "exists": "SELECT x, y FROM {c} a WHERE EXISTS (SELECT 1 FROM {c} b WHERE b.x = a.x)",
    "expressions": "SELECT x + x - x AS x, y FROM {c} WHERE x > 0",
}


def _chain(step: str, length: int) -> str:
    parts = ["c0 AS (SELECT x, y FROM (VALUES (1, 2), (2, 3), (3, 3)) v(x, y))"]
    parts += [f"c{i} AS ({STEPS[step].format(c=f'c{i - 1}')})" for i in range(1, length + 1)]
    return f"WITH {', '.join(parts)} SELECT count(*), sum(x)::BIGINT FROM c{length}"


@pytest.mark.parametrize("step", STEPS)
def test_chains_of_ctes(step: str) -> None:
    sql, took = _chain(step, 20), []
    for _ in range(3):  # threads of other tests may still compile, which counts here
        connection = gquery.connect(device="python")
        start = time.process_time()
        connection.explain(sql, "physical")
        took.append(time.process_time() - start)
    assert min(took) < 1.0
    assert connection.sql(sql).fetchall() == duckdb.sql(_chain(step, 4)).fetchall()  # each step changes nothing more


@pytest.mark.long
def test_a_chain_of_two_hundred_is_no_deep_recursion() -> None:
    connection = gquery.connect(device="python")
    assert connection.sql(_chain("union", 200)).fetchall() == duckdb.sql(_chain("union", 4)).fetchall()


def test_relations_that_are_joined_with_themselves_again_and_again() -> None:
    connection = gquery.connect(device="python")
    r = connection.sql("SELECT * FROM (VALUES (1, 2), (2, 3)) v(x, y)")
    start = time.process_time()
    for _ in range(20):
        r = r.join(r, "x").select("x", "y")
    assert sorted(r.fetchall()) == [(1, 2), (2, 3)]
    assert time.process_time() - start < 3.0


@pytest.mark.long
def test_a_correlated_cte_is_copied_within_bounds() -> None:
    few = "SELECT x, (WITH c AS (SELECT y FROM t u WHERE u.x = t.x) SELECT count(*) FROM c a, c b) FROM t"
    assert_same(few, tables(), targets=("python",))
    parts = ["c0 AS (SELECT y FROM t u WHERE u.x = t.x)"]
    parts += [f"c{i} AS (SELECT a.y FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 40)]
    many = f"SELECT (WITH {', '.join(parts)} SELECT count(*) FROM c39) FROM t"
    assert_error(
        many, tables(), NotSupportedError, "a CTE that uses columns of the query around it", targets=("python",)
    )


# ---- what is computed once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "shared"),
    [
        ("WITH u AS (SELECT DISTINCT k FROM n) SELECT k FROM u", 0),
        ("WITH u AS (SELECT DISTINCT k FROM n) SELECT a.k, b.k FROM u a, u b", 1),
        ("WITH u AS (SELECT k, v FROM n WHERE v > 3) SELECT a.k, b.k FROM u a, u b", 0),
        ("WITH u AS (SELECT n.k, y FROM n JOIN b ON n.k = b.k) SELECT a.k, c.y FROM u a, u c", 1),
        ("WITH u AS (SELECT k FROM n LIMIT 3) SELECT a.k, b.k FROM u a, u b", 1),
        ("WITH u AS (SELECT DISTINCT k FROM n), w AS (SELECT k FROM u WHERE k > 3) SELECT a.k, b.k FROM w a, w b", 1),
        ("WITH u AS (SELECT DISTINCT k FROM n), w AS (SELECT a.k FROM u a, u b) SELECT a.k, b.k FROM w a, w b", 2),
        ("WITH u AS MATERIALIZED (SELECT k FROM n) SELECT k FROM u", 1),
        ("SELECT * FROM (SELECT DISTINCT k FROM n) a, (SELECT DISTINCT k FROM n) b", 1),
    ],
)
def test_what_is_computed_once(sql: str, shared: int) -> None:
    plan = optimizer.steps(bound(sql), check=True)[-1].query.plan
    assert len(definitions(plan)) == shared, explain(plan)


def test_an_unused_cte_may_say_what_it_likes() -> None:
    assert_same("WITH u AS (SELECT nothing FROM nowhere) SELECT count(*) FROM t", tables(), targets=("python",))


def test_explain_shows_a_definition_once() -> None:
    connection = gquery.connect(device="python")
    connection.register("t", tables()["t"])
    text = connection.explain("WITH u AS (SELECT DISTINCT x FROM t) SELECT a.x, b.x FROM u a, u b", "optimized")
    assert text.count("Scan t") == 1
    assert text.count("Shared u") == 2
    assert text.count("as above") == 1
    analyzed = connection.sql(
        "EXPLAIN ANALYZE WITH u AS (SELECT DISTINCT x FROM t) SELECT a.x, b.x FROM u a, u b"
    ).fetchall()
    assert str(analyzed).count("Scan t") == 1
