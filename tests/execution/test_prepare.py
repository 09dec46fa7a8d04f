"""What is compiled before a program runs is what it will need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.device import cpu_device
from gquery.execution import ExecutionContext, prepare
from gquery.execution.runner import Runner
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import begin as begin_with
from gquery.operators.codegen import units
from gquery.planner.physical import Build

ROWS = 250_000
QUERIES = {
    "filter": "SELECT k, v FROM t WHERE v > 500 ORDER BY v, k LIMIT 5",
    "groups": "SELECT g, sum(v), avg(v) FROM t GROUP BY g",
    "groups by text": "SELECT s, sum(v) FROM t GROUP BY s",
    "unique keys": "SELECT sum(t.v * u.w) FROM t JOIN u ON t.k = u.k",
    "keys that stand twice": "SELECT count(*), max(x.v) FROM t JOIN t AS x ON t.g = x.g WHERE t.v = 7",
    "semi join": "SELECT count(*) FROM t WHERE k IN (SELECT k FROM u WHERE w < 40)",
    "two steps": "SELECT g, count(*) FROM (SELECT g, k, sum(v) AS n FROM t GROUP BY g, k) GROUP BY g",
}


@pytest.fixture(scope="module")
def db() -> gquery.Connection:
    r = np.random.default_rng(6)
    connection = gquery.connect(device="cpu", threads=1)
    k, g = r.integers(0, 50_000, ROWS), r.integers(0, 3_000, ROWS)
    t = {
        "k": k,
        "g": g,
        "v": r.integers(0, 1000, ROWS),
        "far": r.permutation(1_060_000)[:ROWS],
        "s": [f"s{x % 70_000}" for x in range(ROWS)],
    }
    connection.register("t", pa.table(t))
    connection.register("u", pa.table({"k": r.permutation(50_000), "w": r.integers(0, 100, 50_000)}))
    return connection


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_nothing_else_is_compiled(sql: str, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead: set[str] = set()
    needed: set[str] = set()
    begin = Runner._begin

    def noted(target: Any, kernels: Iterable[Kernel], *rest: Any) -> None:
        found = list(kernels)
        ahead.update(k.digest for k in found)
        begin_with(target, found, *rest)

    def ran(self: Runner) -> Any:
        attempt = begin(self)
        needed.update(u.kernel.digest for u in attempt.units.values() if self.name == "cpu")
        return attempt

    monkeypatch.setattr(prepare, "begin", noted)
    monkeypatch.setattr(Runner, "_begin", ran)
    db.sql(sql).fetchall()
    assert needed
    assert needed <= ahead


def test_few_rows_are_another_case(db: gquery.Connection) -> None:
    """A filter on sums may leave few groups: then a hash table is better than an array, and what probes it is another kernel."""
    sql = """SELECT g, count(*), sum(n) FROM (SELECT far AS k, sum(v) AS n FROM t GROUP BY far HAVING sum(v) > 998) AS f
             JOIN t ON t.far = f.k GROUP BY g"""
    program = db.program(sql, "cuda")
    layouts, kernels = [], []
    for few in (False, True):
        context = ExecutionContext("cuda", cpu_device(), replace(db.settings, interpret_limit=0))
        found = [f.runs.pipeline for f in prepare.forecast(program, context, few=few)]
        layouts.append([p.sink.table.layout for p in found if isinstance(p.sink, Build)])
        kernels.append({u.kernel.digest for p in found for u in units(p, "cuda")})
    assert layouts == [["direct-address"], ["hash"]]
    assert kernels[0] != kernels[1]
