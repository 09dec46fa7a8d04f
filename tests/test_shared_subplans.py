"""A subplan that a query uses in several places is two relations: its uses never share a column."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

import gquery
from gquery.errors import InternalError
from gquery.planner.physical import Pipeline, Probe, Program, ReadStage
from gquery.planner.verify_program import verify_program

from .harness import assert_same


@cache
def tables() -> dict[str, pa.Table]:
    """``t`` has repeated values and NULLs, ``s`` a text and values that ``t`` lacks."""
    t = pa.table({"x": pa.array([1, 2, 3, 3, None, 5, None, 2]), "y": pa.array([10, None, 30, 31, 40, 50, 60, 20])})
    s = pa.table({"x": pa.array([1, 3, 3, None, 7]), "w": pa.array(["a", "b", None, "d", "e"])})
    return {"t": t, "s": s}


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


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("body", BODIES)
def test_two_uses_are_two_relations(body: str, use: str) -> None:
    names = "(x, w)" if body == "values" else ""
    assert_same(f"WITH u{names} AS ({BODIES[body]}) {use}", tables(), targets=("python",))


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
