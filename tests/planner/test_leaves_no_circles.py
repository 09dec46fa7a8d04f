"""What planning leaves behind is freed as it is let go of: objects that hold each other stay until the collector finds them,
which looks at all that is there."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

import gquery
from gquery.runtime import collector
from gquery.sql.parse import parse
from gquery.sql.statement import SelectStatement
from tests.support.mutation_pools import tpch_tables
from tpch import queries

MOST = 12
"""Objects: sqlglot's nodes know their parents, and a few are made for nothing."""
SUMS = ", ".join(f"sum(CASE WHEN l_linenumber = {n} THEN l_quantity * l_tax ELSE 0 END) AS s{n}" for n in range(40))
LONG = f"SELECT l_shipmode, {SUMS} FROM lineitem WHERE l_shipmode IN ('AIR') GROUP BY l_shipmode"
SHARED = """WITH sums AS (SELECT l_suppkey AS k, sum(l_quantity) AS q FROM lineitem GROUP BY k),
    twice AS (SELECT a.k, a.q + b.q AS q FROM sums a JOIN sums b ON a.k = b.k)
    SELECT count(*) FROM twice t JOIN sums s ON t.k = s.k WHERE t.q > (SELECT avg(q) FROM sums)"""
SUBQUERIES = """SELECT count(*) FROM orders o WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_tax > 0)
    AND EXISTS (SELECT 1 FROM customer WHERE c_custkey = o.o_custkey) AND o_totalprice > (SELECT avg(o_totalprice) FROM orders)
    GROUP BY o_custkey HAVING count(*) > (SELECT min(s_suppkey) FROM supplier)"""
ROLLUP = "SELECT l_shipmode, l_returnflag, l_tax, sum(l_quantity) FROM lineitem GROUP BY ROLLUP (l_shipmode, l_returnflag, l_tax)"
MORE = {"long": LONG, "shared": SHARED, "subqueries": SUBQUERIES, "rollup": ROLLUP, "scan": "SELECT * FROM nation"}
"""What TPC-H has little of; uses and subqueries must not remember themselves."""


@pytest.fixture(scope="module")
def db() -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    for name, table in tpch_tables().items():
        connection.register(name, table)
    return connection


TEXTS = dict(zip(map(str, queries.NUMBERS), map(queries.sql, queries.NUMBERS), strict=True)) | MORE
ALL = pytest.mark.parametrize("sql", TEXTS.values(), ids=TEXTS)


def _left(plan: Callable[[int], object]) -> int:
    """What the collector finds behind a call, the least of three: other threads, which compile, leave objects meanwhile."""
    found = list[int]()
    for n in range(3):
        gc.collect()
        kept = plan(n)
        found.append(gc.collect())
        del kept
        if found[-1] <= MOST:
            break
    return min(found)


@ALL
def test_few_objects_of_a_plan_hold_each_other(db: gquery.Connection, sql: str) -> None:
    with collector.paused():
        db.kernels(sql)  # tables and modules are loaded
        assert _left(lambda n: db.sql(sql.replace("SELECT", "SELECT" + " " * (n + 2), 1))) <= MOST


@ALL
def test_a_plan_is_freed_as_it_is_let_go_of(db: gquery.Connection, sql: str) -> None:
    """One that no template keeps, as a template's constants know it."""

    def plan() -> None:
        (parsed,) = parse(sql)
        statement, _ = db._bind(parsed, None, None, "")
        assert isinstance(statement, SelectStatement)
        parsed.release()
        assert db._program(db._plan(statement.query)).stages

    with collector.paused():
        plan()  # classes have the methods that it needs
        assert _left(lambda n: plan()) <= MOST
